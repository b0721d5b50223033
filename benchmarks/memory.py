"""Peak memory in megabytes: python -m benchmarks.memory timesliver|textbook|explain.

The first two run one forward pass; "explain" explains 10,000 cases with a fitted classifier and
prints the peak of the whole process, its data included.
"""

import resource
import sys

import numpy as np
import torch

from benchmarks import measure, textbook
from timesliver import NetworkConfig, TimeSliverClassifier, TimeSliverNetwork

N_CASES, N_CHANNELS, N_TIMEPOINTS, N_BINS = 256, 64, 3000, 20


def explain_many() -> float:
    X = measure.noise(10_000, 6, 500)
    model = TimeSliverClassifier(max_epochs=1, positional_encoding=False, random_state=0)
    model.fit(X[:200], np.arange(200) % 2).explain(X)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    if sys.argv[1] == "explain":
        print(explain_many())
        return
    batch = measure.batch(measure.sines(N_CASES, N_CHANNELS, N_TIMEPOINTS), N_BINS)
    network = TimeSliverNetwork(NetworkConfig(N_CHANNELS, N_BINS, 2, 36, (7,)))
    network.infer(batch[:1])
    if sys.argv[1] == "timesliver":
        peak = measure.peak_megabytes(lambda: network.infer(batch))
    else:
        x, codes = textbook.channels_first(batch), batch.codes
        with torch.no_grad():
            peak = measure.peak_megabytes(lambda: textbook.logits(network, x, codes))
    print(peak)


if __name__ == "__main__":
    main()
