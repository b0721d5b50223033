"""Small random problems on which the fast path is compared with the textbook."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st

from timesliver import Segments
from timesliver.encoders import Shape
from timesliver.network import Batch, TimeSliverNetwork, View
from timesliver.series import PaddedSeries, as_series
from timesliver.symbols import SAX, SFA, Clock, One

SYMBOLIZERS = ("sax", "sfa", "abba", "clock", "one")


@dataclass(frozen=True)
class Problem:
    series: PaddedSeries
    network: TimeSliverNetwork
    batch: Batch

    @property
    def view(self) -> View:
        return self.batch.views[0]


def make_problem(X, encoder=None, n_classes=3, double=True, seed=0, **settings) -> Problem:
    """A network with drawn weights for some series, which need not be standardised."""
    series = as_series(X)
    settings = {"symbols": SAX(4), "sizes": (4, 7), "positional_encoding": False} | settings
    encoder = encoder or Segments(**settings)
    encoder.check()
    encoder = encoder.resolved(series.n_timepoints)
    symbolizers = [one.fit(encoder.seen(series)) for one in encoder.symbolizers()]
    zero, one = np.zeros(series.n_channels), np.ones(series.n_channels)
    view = encoder.view(series, symbolizers, zero, one)
    channels = tuple(
        (series.n_channels if encoder.separate or not s.shared else 1, s.n_symbols)
        for s in symbolizers
    )
    shape = Shape(series.n_channels, n_classes, channels)
    [(_, network), *_] = encoder.networks(shape, seed, can_choose=False)
    batch = Batch.of(series.standardized(zero, one), series, views=(view,))
    if double:
        network, batch = network.double(), batch.to(torch.float64)
    return Problem(series, network, batch)


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
    chosen = draw(st.lists(st.sampled_from(symbolizers), min_size=1, max_size=2, unique=True))
    symbols = [symbolizer(name, draw(st.integers(2, 9))) for name in chosen]
    fewest = min(one.n_symbols for one in symbols)
    settings = {
        "symbols": symbols,
        "latent_dim": q,
        "sizes": tuple(sizes),
        "depth": draw(st.integers(1, 3)),
        "window": draw(st.sampled_from(["box", "bell"])),
        "pooling": (draw(st.integers(1, fewest)), draw(st.integers(1, q))),
        "channels": draw(st.sampled_from(["mixed", "separate", "shared"])),
        "positional_encoding": draw(st.booleans()),
        "step": draw(st.sampled_from([1, 1, 1, 2, 3])),
        "n_classes": draw(st.integers(2, 3)),
    } | fixed
    return make_problem(X, double=double, seed=draw(st.integers(0, 1000)), **settings)


def symbolizer(name: str, n_bins: int):
    if name == "sfa":
        return SFA.with_bins(n_bins)
    if name == "abba":
        from timesliver.symbols import ABBA

        return ABBA(n_bins)
    return {"sax": SAX(n_bins), "clock": Clock(n_bins), "one": One()}[name]
