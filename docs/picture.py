"""Draw the picture of the README: python docs/picture.py."""

from pathlib import Path

from timesliver import TimeSliverClassifier
from timesliver.datasets import make_lowvar

train, test = make_lowvar(600, random_state=0), make_lowvar(200, random_state=1)
model = TimeSliverClassifier(random_state=0).fit(train.X, train.y)
figure = model.explain(test.X).plot(case=2)
figure.savefig(Path(__file__).with_name("explanation.png"), dpi=110)
