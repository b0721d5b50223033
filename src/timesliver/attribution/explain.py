"""`explain`: from a network and a batch to an `Attribution`, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from timesliver.attribution.additive import evidence
from timesliver.attribution.result import Attribution
from timesliver.attribution.scores import segment_scores, to_time_points
from timesliver.errors import InvalidInputError, InvalidParameterError, check_choice
from timesliver.network import Batch, TimeSliverNetwork

__all__ = ["explain", "join"]

_OPTIONS = {
    "timesliver": ("activation", "max_scaling", "centred"),
    "additive": ("centred", "background", "spread"),
}


@overload
def explain(
    network: TimeSliverNetwork,
    batch: Batch,
    target: Literal["all"],
    method: str = ...,
    classes: NDArray[Any] | None = ...,
    **options: Any,
) -> list[Attribution]: ...
@overload
def explain(
    network: TimeSliverNetwork,
    batch: Batch,
    target: ArrayLike | None = ...,
    method: str = ...,
    classes: NDArray[Any] | None = ...,
    **options: Any,
) -> Attribution: ...
@torch.no_grad()
def explain(
    network: TimeSliverNetwork,
    batch: Batch,
    target: ArrayLike | None = None,
    method: str = "timesliver",
    classes: NDArray[Any] | None = None,
    **options: Any,
) -> Attribution | list[Attribution]:
    """Say which moments and channels spoke for a class and which against it.

    Parameters
    ----------
    network : TimeSliverNetwork
        The network to explain.
    batch : Batch
        Any number of cases.
    target : None, int, one int per case, or "all"
        Index of the class to explain; None is the predicted one. "all" returns a list with one
        attribution per class, which costs little more than one.
    method : {"timesliver", "additive"}
        The paper's max-scaled scores, or exact shares of the logit.
    classes : array or None
        Labels to put on the result; by default 0, 1, ...
    **options
        For "timesliver": ``activation``, ``max_scaling``, ``centred``. For "additive":
        ``centred``, ``background``, ``spread``.

    Examples
    --------
    >>> import numpy as np
    >>> from timesliver.network import NetworkConfig
    >>> from timesliver.symbols import SAX
    >>> X = np.random.default_rng(0).normal(size=(5, 2, 30))
    >>> batch = Batch.prepare(X, SAX(n_bins=6).fit_transform(X), n_symbols=6)
    >>> network = TimeSliverNetwork(NetworkConfig(n_channels=2, n_symbols=6, n_classes=3))
    >>> scores = explain(network, batch, method="additive")
    >>> bool(np.allclose(scores.net.sum(axis=1) + scores.bias, scores.logit, atol=1e-5))
    True
    """
    check_choice("method", method, tuple(_OPTIONS))
    for name in options:
        if name not in _OPTIONS[method]:
            raise InvalidParameterError(
                f"{name!r} is not an option of method={method!r}; its options are "
                f"{', '.join(_OPTIONS[method])}"
            )
    C = network.config.n_classes
    classes = np.arange(C) if classes is None else np.asarray(classes)
    if classes.shape != (C,):
        raise InvalidInputError(
            f"the network has {C} classes, but the class labels have shape {classes.shape}"
        )
    wanted = _targets(target, len(batch), C, batch.lengths.device)
    numbers = network.numbers_per_case(batch)
    if method == "timesliver":  # also holds Q by sign, and the entries of Z
        per_segment = min(max(network.config.segment_sizes), network.config.n_symbols)
        numbers = 4 * numbers + batch.n_channels * batch.n_timepoints * per_segment
    parts, start = [], 0
    for part in batch.split(numbers):
        rows = None if wanted is None else wanted[start : start + len(part)]
        parts.append(_explain_part(network, part, rows, method, options))
        start += len(part)
    joined = [torch.cat(tensors).cpu().numpy() for tensors in zip(*parts, strict=True)]
    positive, negative, logit, bias, targets, probabilities, *by_symbol = joined
    symbols: dict[str, Any] = dict(
        zip(("positive_by_symbol", "negative_by_symbol"), by_symbol, strict=False)
    )
    result = [
        Attribution(
            positive[:, k],
            negative[:, k],
            logit[:, k],
            bias[:, k],
            targets[:, k],
            classes,
            method,
            probabilities=probabilities,
            **{name: scores[:, k] for name, scores in symbols.items()},
        )
        for k in range(targets.shape[1])
    ]
    return result if isinstance(target, str) else result[0]


def join(parts: Sequence[Attribution]) -> Attribution:
    """Return the cases of several attributions in one; all else is that of the first."""
    by_case = [part.by_case() for part in parts]
    return replace(
        parts[0],
        **{name: np.concatenate([part[name] for part in by_case]) for name in by_case[0]},
    )


def _explain_part(
    network: TimeSliverNetwork,
    batch: Batch,
    targets: Tensor | None,
    method: str,
    options: dict[str, Any],
) -> tuple[Tensor, ...]:
    """Return positive, negative, logit, bias, targets, probabilities, and scores by symbol."""
    Q = network.encode(batch)
    Qt = network.spread(Q, batch)
    logits = network.classify(Qt, batch)  # (B, C)
    if targets is None:
        targets = logits.argmax(1, keepdim=True)
    probabilities = logits.double().softmax(1)
    explained = logits - logits.mean(1, keepdim=True) if options.get("centred") else logits
    logit = explained.gather(1, targets)
    if method == "additive":
        shares = evidence(network, batch, Qt, targets, **options)
        return shares.positive, shares.negative, logit, shares.bias, targets, probabilities
    scores = segment_scores(network, batch, Q, targets, **options)
    positive = sum(to_time_points(s.positive, batch, s.segment_size) for s in scores)
    negative = sum(to_time_points(s.negative, batch, s.segment_size) for s in scores)
    bias = network.head.bias.detach()
    bias = (bias - bias.mean() if options.get("centred") else bias)[targets]
    by_symbol = (
        sum(s.positive_by_symbol for s in scores),
        sum(s.negative_by_symbol for s in scores),
    )
    return positive, negative, logit, bias, targets, probabilities, *by_symbol  # type: ignore[return-value]


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
