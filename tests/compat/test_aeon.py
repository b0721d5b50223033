import numpy as np
import pytest

pytest.importorskip("aeon", reason="needs the extra 'archive'")

from aeon.testing.estimator_checking import parametrize_with_checks
from sklearn.base import clone

import timesliver
from classifier.conftest import bumps
from timesliver import Segments
from timesliver.compat.aeon import TimeSliverClassifier


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@parametrize_with_checks([TimeSliverClassifier])
def test_aeon_checks(check):
    check()


def test_the_adapter_is_thin():
    X, y, _ = bumps()
    encoder = Segments(max_epochs=5, positional_encoding=False)
    settings = {"encoder": encoder, "random_state": 0, "n_jobs": 1}
    adapter = TimeSliverClassifier(**settings).fit(X, y)
    direct = timesliver.TimeSliverClassifier(**settings).fit(X, y)
    np.testing.assert_array_equal(adapter.predict_proba(X), direct.predict_proba(X))
    assert adapter.get_params() == direct.get_params()
    assert adapter.get_params()["encoder__max_epochs"] == 5
    copied = clone(adapter).set_params(encoder__max_epochs=3)
    assert copied.get_params().keys() == adapter.get_params().keys()
    assert (copied.encoder.max_epochs, encoder.max_epochs) == (3, 5)
    assert len(adapter.model_.explain(X[:2])) == 2
    with pytest.raises(TypeError, match="n_bins"):
        TimeSliverClassifier(n_bins=3)
