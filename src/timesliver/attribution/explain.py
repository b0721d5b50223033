"""`explain`: from a network and a batch to an `Attribution`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from timesliver.attribution.phi import phi
from timesliver.attribution.result import Attribution, join
from timesliver.attribution.shares import additive_shares
from timesliver.errors import (
    InvalidInputError,
    InvalidParameterError,
    check_choice,
    check_count,
)
from timesliver.network import Batch, TimeSliverNetwork
from timesliver.network.windows import span

__all__ = ["DEFAULTS", "explain", "options_of"]

#: The options of each method, with their defaults.
DEFAULTS: dict[str, dict[str, Any]] = {
    "additive": {"centred": False, "background": "training", "smoothing": "auto"},
    "timesliver": {"max_scaling": True, "centred": False},
}


def options_of(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return all options of a method, those given and the defaults of the others."""
    check_choice("method", method, tuple(DEFAULTS))
    for name in options:
        if name not in DEFAULTS[method]:
            raise InvalidParameterError(
                f"{name!r} is not an option of method={method!r}; its options are "
                f"{', '.join(DEFAULTS[method])}"
            )
    chosen = DEFAULTS[method] | options
    if method == "additive":
        check_choice("background", chosen["background"], ("training", "series", None))
        if chosen["smoothing"] != "auto":
            check_count("smoothing", chosen["smoothing"], 0)
    return chosen


@torch.no_grad()
def explain(
    network: TimeSliverNetwork,
    batch: Batch,
    target: ArrayLike | None = None,
    method: str = "additive",
    classes: NDArray[Any] | None = None,
    **options: Any,
) -> Attribution:
    """Say which moments and channels of a batch spoke for a class and which against it.

    Parameters
    ----------
    network : TimeSliverNetwork
        The network to explain.
    batch : Batch
        The cases, few enough to be explained at once.
    target : None, int, one int per case, or "all"
        Index of the class to explain; None is the predicted one. "all" explains every class, one
        after another, which costs little more than one.
    method : {"additive", "timesliver"}
        Exact shares of the logit, or the paper's max-scaled scores.
    classes : array or None
        Labels to put on the result; by default 0, 1, ...
    **options
        See `TimeSliverClassifier.explain`.
    """
    chosen = options_of(method, options)
    C = network.n_classes
    classes = np.arange(C) if classes is None else np.asarray(classes)
    if classes.shape != (C,):
        raise InvalidInputError(
            f"the network has {C} classes, but the class labels have shape {classes.shape}"
        )
    targets = _targets(target, len(batch), C, batch.lengths.device)
    encoded = list(network.each(batch))
    logits = network.add_up(encoded, len(batch))
    if targets is None:
        targets = logits.argmax(1, keepdim=True)
    K = targets.shape[1]
    explained = logits - logits.mean(1, keepdim=True) if chosen["centred"] else logits
    by_symbol: tuple[Tensor | None, Tensor | None] = None, None
    if method == "additive":
        if chosen["smoothing"] == "auto":
            chosen["smoothing"] = _widest(network, batch)
        positive, negative, base = additive_shares(network, batch, encoded, targets, **chosen)
    else:
        positive, negative, *by_symbol = phi(batch, encoded, targets, **chosen)  # type: ignore[assignment]
        bias = network.bias
        base = (bias - bias.mean() if chosen["centred"] else bias)[targets]
    parts: dict[str, Tensor | None] = {
        "positive_by_channel": positive,
        "negative_by_channel": negative,
        "logit": explained.gather(1, targets),
        "base": base,
        "target": targets,
        "positive_by_symbol": by_symbol[0],
        "negative_by_symbol": by_symbol[1],
    }
    arrays: dict[str, Any] = {k: p.cpu().numpy() for k, p in parts.items() if p is not None}
    arrays["probabilities"] = logits.double().softmax(1).cpu().numpy()[:, None].repeat(K, 1)
    return join(
        [
            Attribution(
                classes=classes, method=method, **{k: part[:, i] for k, part in arrays.items()}
            )
            for i in range(K)
        ]
    )


def _widest(network: TimeSliverNetwork, batch: Batch) -> int:
    """Return how many points the longest row of any encoder looks at."""
    widths: list[int] = [
        span(encoder.widths) * batch.views[part.view].step
        for part in network.parts
        for encoder in part.encoders
    ]
    return max(widths)


def _targets(
    target: ArrayLike | None, n_cases: int, n_classes: int, device: torch.device
) -> Tensor | None:
    """Return the classes to explain, (n_cases, K), or None for the predicted one."""
    if target is None:
        return None
    if isinstance(target, str):
        check_choice("target", target, ("all",))
        return torch.arange(n_classes, device=device).expand(n_cases, -1)
    given = np.asarray(target)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n_cases,)):
        raise InvalidInputError(
            f"target must be None, 'all', a class index, or one index for each of the "
            f"{n_cases} cases; got {given.dtype} of shape {given.shape}"
        )
    if given.min(initial=0) < 0 or given.max(initial=0) >= n_classes:
        raise InvalidInputError(
            f"target must lie in 0..{n_classes - 1}, got {given.min()}..{given.max()}"
        )
    rows = torch.from_numpy(np.broadcast_to(given, (n_cases,)).astype(np.int64))
    return rows.to(device)[:, None]
