"""The whole model in dense tensors, beside the paper: slow, plain, and the measure of the rest.

It reads the weights of a `TimeSliverNetwork` and shares no computation with it. B cases, v
channels, J symbol channels, S streams, L time points, n symbols, q latent columns, kappa segments,
C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network.batch import Batch, Symbols, View

__all__ = ["DenseTerm", "additive", "averages", "encode", "logits", "one_hot", "phi", "terms"]

_EPS = 1e-18  # the paper's epsilon


class DenseTerm(NamedTuple):
    """What the equations name, for one encoder with one set of symbols."""

    A: Tensor  # (B, kappa, L)     which points each segment averages
    O: Tensor  # (B, J, L, n)      the one-hot matrix
    Z: Tensor  # (B, J, kappa, n)  its averages, Eq. 1
    Q: Tensor  # (B, J, kappa, q)  the latent rows, over the number of segments
    P: Tensor  # (B, J, n, q)      Eq. 2
    weights: Any
    view: View


def terms(network: Any, batch: Batch) -> Iterator[DenseTerm]:
    """Yield the matrices of every term."""
    for part in network.parts:
        view = batch.views[part.view]
        x = view.values if part.separate else view.values[:, None]  # (B, S, L) or (B, 1, v, L)
        x = x.view(len(view), -1, 1 if part.separate else view.n_channels, view.n_timepoints)
        for encoder, with_symbols in zip(part.encoders, part.terms, strict=True):
            kappa = view.n_timepoints - (sum(encoder.widths) - len(encoder.widths))
            count = (view.lengths - view.n_timepoints + kappa).clamp(min=1)  # (B,)
            inside = torch.arange(kappa) < count[:, None]  # (B, kappa)
            A = averages(view.n_timepoints, encoder.widths).to(x) * inside[..., None]
            Q = encode(encoder, part.stem, x) / count.view(-1, 1, 1, 1)  # (B, S, kappa, q)
            for term in with_symbols:
                O = one_hot(view.symbols[term.symbols]).to(x)  # (B, J, L, n)
                Z = torch.einsum("bkt,bjtn->bjkn", A, O)
                each = Q.expand(-1, O.shape[1], -1, -1)
                P = torch.einsum("bjkn,bjkq->bjnq", Z, each)
                yield DenseTerm(A, O, Z, each, P, term.weights, view)


def logits(network: Any, batch: Batch) -> Tensor:
    """Return the logits, (B, C)."""
    total: Tensor = network.bias.expand(len(batch), -1)
    for term in terms(network, batch):
        total = total + head(term.weights, term.P)
    return total


def head(weights: Any, P: Tensor) -> Tensor:
    """Average groups of symbols and columns, then weigh them: (B, J, n, q) to (B, C)."""
    pooled = F.avg_pool2d(P, weights.pooling, ceil_mode=True, count_include_pad=False)
    W = weights.weight.expand(-1, P.shape[1], -1, -1)
    return torch.einsum("bjnq,cjnq->bc", pooled, W)


def one_hot(symbols: Symbols) -> Tensor:
    """Return O, (B, J, L, n); a point without a symbol has a row of zeros."""
    return F.one_hot(symbols.codes.long(), symbols.n_rows)[..., 1:]


def averages(n_timepoints: int, widths: tuple[int, ...]) -> Tensor:
    """Return A, (kappa, L): averages over these widths, one after another."""
    A = torch.eye(n_timepoints, dtype=torch.float64)
    for width in widths:
        A = A.unfold(0, width, 1).mean(-1)
    return A


def encode(encoder: Any, stem: Any, x: Tensor) -> Tensor:
    """Return Q, (B, S, kappa, q), for streams (B, S, U, L)."""
    h: Tensor = x.flatten(0, 1)  # (B*S, U, L)
    if stem is not None:
        h = (stem.linear.weight @ h) + stem.linear.bias[:, None]
        if stem.positional_encoding:
            h = h + _positions(h.shape[1], h.shape[2]).to(h)
    if hasattr(encoder, "convolutions"):
        for layer, convolution in enumerate(encoder.convolutions):
            h = torch.relu(h) if layer else h
            h = F.conv1d(h, convolution.weight.squeeze(2), convolution.bias)
        h = h.transpose(1, 2)  # (B*S, kappa, q)
        norm = encoder.norm
        h = F.layer_norm(h, h.shape[-1:], norm.weight, norm.bias, norm.eps)
    else:
        h = encoder(h.transpose(1, 2))
    return h.view(*x.shape[:2], *h.shape[1:])


def additive(network: Any, batch: Batch, c: int) -> Tensor:
    """Return the shares of symbol channels and points in logit c, by term: a list of (B, J, L)."""
    shares = []
    for term in terms(network, batch):
        g = _gradient(term, c)  # (B, J, n, q)
        Qt = torch.einsum("bkt,bjkq->bjtq", term.A, term.Q)
        shares.append(torch.einsum("bjtn,bjnq,bjtq->bjt", term.O, g, Qt))
    return torch.stack(shares) if len({s.shape for s in shares}) == 1 else shares  # type: ignore[return-value]


def phi(
    network: Any,
    batch: Batch,
    c: int,
    activation: Callable[[Tensor], Tensor] = torch.relu,
    max_scaling: bool = True,
    centred: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return phi+ and phi- (Eqs. 3 and 4) of symbol channels and points for logit c: (B, J, L)."""
    signs: list[Any] = [0, 0]
    for term in terms(network, batch):
        g = _gradient(term, c, centred)[:, :, None]  # (B, J, 1, n, q)
        product = g.sign() * term.Z[..., None] * term.Q[..., None, :]  # (B, J, kappa, n, q)
        cover = (term.A > 0).to(product)  # (B, kappa, L)
        for i, sign in enumerate((1, -1)):
            zeta = activation(sign * product)
            if max_scaling:
                zeta = zeta / (zeta.amax(2, keepdim=True) + _EPS)
            segments = (g.abs() * zeta).sum((3, 4)) * (cover.sum(2) > 0)[:, None]  # (B, J, kappa)
            points = torch.einsum("bjk,bkt->bjt", segments, cover)
            signs[i] = signs[i] + points / cover.sum(1).clamp(min=1)[:, None]
    return signs[0], signs[1]


def _gradient(term: DenseTerm, c: int, centred: bool = False) -> Tensor:
    """Return the gradient of logit c, or of it minus the mean of all, with respect to P."""
    with torch.enable_grad():
        P = term.P.detach().requires_grad_()
        all_logits = head(term.weights, P)
        explained = all_logits[:, c] - (all_logits.mean(1) if centred else 0)
        (g,) = torch.autograd.grad(explained.sum(), P)
    return g


def _positions(dim: int, n_timepoints: int) -> Tensor:
    """Return the sinusoidal encoding, (dim, L)."""
    i = torch.arange(dim, dtype=torch.float64)[:, None]
    angle = torch.arange(n_timepoints) / 10_000 ** (2 * (i // 2) / dim)
    return torch.where(i % 2 == 0, angle.sin(), angle.cos())
