"""Small random problems on which the fast path is compared with the textbook."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from hypothesis import strategies as st

from oracle import Textbook
from timesliver import Batch, NetworkConfig, TimeSliverNetwork
from timesliver.series import PaddedSeries, as_series
from timesliver.symbols import Symbolizer, create

SYMBOLIZERS = ("sax", "sfa", "abba", "raw")


@dataclass(frozen=True)
class Problem:
    series: PaddedSeries
    codes: np.ndarray
    network: TimeSliverNetwork
    batch: Batch

    def textbook(self) -> Textbook:
        return Textbook(self.network)

    def cases(self):
        """Each case without its padding, as the textbook wants it: (x, codes)."""
        for values, codes, length in zip(
            self.series.values, self.codes, self.series.lengths, strict=True
        ):
            x = torch.from_numpy(values[:, :length].astype(np.float32)).double()
            yield x, torch.from_numpy(codes[:, :length].astype(np.int64))


def make_problem(
    X, n_bins=4, symbolizer: str | Symbolizer = "sax", n_classes=3, double=True, seed=0, **settings
) -> Problem:
    series = as_series(X)
    symbolizer = create(symbolizer, n_bins)
    codes = symbolizer.fit_transform(series)
    config = NetworkConfig(
        n_channels=series.n_channels,
        n_symbols=symbolizer.n_symbols,
        n_classes=n_classes,
        raw=symbolizer.name == "raw",
        **settings,
    )
    network = TimeSliverNetwork(config, seed=seed)
    batch = Batch.prepare(series, codes, config.n_symbols, config.separate)
    if double:
        network, batch = network.double(), replace(batch, values=batch.values.double())
    return Problem(series, codes, network, batch)


@st.composite
def problems(draw, double=True, symbolizers=SYMBOLIZERS, **fixed) -> Problem:
    """Draw lengths 1..60, channels 1..5, bins 2..9, sizes up to L, NaN, unequal lengths."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    L = draw(st.integers(1, 60))
    v = draw(st.integers(1, 5))
    n_cases = draw(st.integers(1, 3))
    X = (
        rng.normal(size=(n_cases, v, L)).cumsum(-1)
        if draw(st.booleans())
        else rng.normal(size=(n_cases, v, L))
    )
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.2] = np.nan
    if draw(st.booleans()):
        for case in X[1:]:
            case[:, rng.integers(1, L + 1) :] = np.nan
    sizes = draw(
        st.lists(st.integers(1, min(L, 12)) | st.just(L), min_size=1, max_size=2, unique=True)
    )
    q = draw(st.integers(1, 4))
    n_bins = draw(st.integers(2, 9))
    symbolizer = draw(st.sampled_from(symbolizers))
    n_symbols = create(symbolizer, n_bins).n_symbols
    settings = {
        "latent_dim": q,
        "segment_sizes": tuple(sizes),
        "depth": draw(st.integers(1, 3)),
        "window": draw(st.sampled_from(["box", "bell"])),
        "pooling": (draw(st.integers(1, n_symbols)), draw(st.integers(1, q))),
        "channels": draw(st.sampled_from(["mixed", "separate", "shared"])),
        "positional_encoding": draw(st.booleans()),
        "n_classes": draw(st.integers(2, 3)),
    } | fixed
    seed = draw(st.integers(0, 1000))
    return make_problem(X, n_bins, symbolizer, double=double, seed=seed, **settings)
