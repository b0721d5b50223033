"""Peak memory in megabytes: python -m benchmarks.memory timesliver|textbook|explain.

The first two run one forward pass, the textbook's being `timesliver.network.dense`, over as many
cases as it can take here; "explain" explains 10,000 cases with a fitted classifier and
prints the peak of the whole process, its data included.
"""

import sys

import numpy as np
import torch

from benchmarks import measure
from timesliver import Segments, TimeSliverClassifier
from timesliver.network import dense

N_CASES, N_CHANNELS, N_TIMEPOINTS, N_BINS = 32, 64, 3000, 20


def explain_many() -> float:
    X = measure.noise(10_000, 6, 500)
    encoder = Segments(max_epochs=1, positional_encoding=False)
    model = TimeSliverClassifier(encoder, random_state=0)
    model.fit(X[:200], np.arange(200) % 2).explain(X, method="timesliver")
    return measure.peak_of_process()


def main() -> None:
    if sys.argv[1] == "explain":
        print(explain_many())
        return
    network, batch = measure.problem(measure.sines(N_CASES, N_CHANNELS, N_TIMEPOINTS), N_BINS)
    network.infer(batch[:1])
    if sys.argv[1] == "timesliver":
        peak = measure.peak_megabytes(lambda: network.infer(batch))
    else:
        with torch.no_grad():
            peak = measure.peak_megabytes(lambda: dense.logits(network, batch))
    print(peak)


if __name__ == "__main__":
    main()
