"""The paper's architecture table: our counts and the differences add up to the printed ones."""

import pytest

from benchmarks.parameters import ROWS
from timesliver import Segments
from timesliver.encoders import Shape


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_differences_explain_the_printed_count(row):
    assert row.ours() + sum(count for _, count in row.differences) == row.printed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_network_counted_is_the_one_that_trains(row):
    """Up to the width of the input projection, which is always the same."""
    encoder = Segments(
        sizes=row.segment_sizes,
        latent_dim=row.latent_dim,
        pooling=row.pooling,
        positional_encoding=row.projection_dim is not None,
    )
    shape = Shape(row.n_channels, row.n_classes, ((row.n_channels, row.n_bins),))
    [(_, network)] = encoder.networks(shape, seed=0, can_choose=False)
    counted, trained = (dict(one.named_parameters()) for one in (row.network(), network))
    assert counted.keys() == trained.keys()
    for name, parameter in counted.items():
        if row.projection_dim is None or not ("stem" in name or "convolutions.0.w" in name):
            assert parameter.shape == trained[name].shape
