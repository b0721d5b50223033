"""Peak memory of one forward pass: python -m benchmarks.memory timesliver|textbook."""

import sys

import torch

from benchmarks import measure, textbook
from timesliver import NetworkConfig, TimeSliverNetwork

N_CASES, N_CHANNELS, N_TIMEPOINTS, N_BINS = 256, 64, 3000, 20


def main() -> None:
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
