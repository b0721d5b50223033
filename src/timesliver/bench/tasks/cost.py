"""What a forward pass costs: operations and time, against the sizes of a network."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import load_parts, settings
from timesliver.bench.tasks.models import build, n_parameters
from timesliver.network import Batch, InteractionTerm, TimeSliverNetwork
from timesliver.typing import JSONDict

__all__ = ["perform"]

_CASES = 32
_REPEATS = 5


def perform(job: Job, cache: Cache) -> JSONDict:  # noqa: ARG001
    """Return operations, seconds per case and weights of an untrained network.

    The operations are those of convolutions and matrix products, as torch counts them; summing Q
    by symbols adds two for each point, symbol channel and latent column, in every term.
    """
    config = settings(job)["model"]
    options = {**config["options"], **dict(job.options), "max_epochs": 1}
    parts = load_parts(job)
    some = slice(0, 4 * _CASES)
    model = build({"class": config["class"], "options": options}, job.seed)
    model.fit(parts.train.X[some], parts.train.y[some])  # type: ignore[index]
    batch = model._batch(model._read(parts.test.X[:_CASES]))
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        model.network_(batch)
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        with torch.no_grad():
            model.network_(batch)
        times.append(time.perf_counter() - start)
    return {
        "gflops": (counter.get_total_flops() + _bag_sums(model, batch)) / _CASES / 1e9,
        "seconds": min(times) / _CASES,
        "n_parameters": n_parameters(model),
    }


def _bag_sums(model: Any, batch: Batch) -> int:
    network = model.network_
    if not isinstance(network, TimeSliverNetwork):
        return 0
    numbers: int = sum(
        batch.views[part.view].symbols[term.symbols].codes.numel() * term.weights.latent_dim
        for part in network.parts
        for term in part.modules()
        if isinstance(term, InteractionTerm)
    )
    return 2 * numbers
