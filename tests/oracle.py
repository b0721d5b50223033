"""The textbook: the paper's equations with one-hot matrices, loops and float64.

Nothing here is fast and nothing is shared with the package but the names of the parameters. Each
function treats one case, so unequal lengths are simply series of different lengths.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

EPS = 1e-18


def one_hot(codes: Tensor, n: int) -> Tensor:
    """O (L, n*v) from codes (v, L); a point without symbol (code 0) has an all-zero block."""
    v, L = codes.shape
    O = torch.zeros(L, n * v, dtype=torch.float64)
    for j in range(v):
        for t in range(L):
            if codes[j, t] > 0:
                O[t, j * n + int(codes[j, t]) - 1] = 1.0
    return O


def raw_columns(x: Tensor, codes: Tensor, slope: Tensor, offset: Tensor) -> Tensor:
    """O of the ablation: learnt affine functions of the value at each observed point."""
    v, L = x.shape
    rows = []
    for t in range(L):
        blocks = [(slope[j] * x[j, t] + offset[j]) * float(codes[j, t] > 0) for j in range(v)]
        rows.append(torch.cat(blocks))
    return torch.stack(rows)


def window(m: int, depth: int, shape: str) -> Tensor:
    """Weights of the m points of a segment in Z."""
    if shape == "box":
        return torch.full((m,), 1.0 / m, dtype=torch.float64)
    weights = [1.0]
    for k in kernels(m, depth):
        longer = [0.0] * (len(weights) + k - 1)
        for i, w in enumerate(weights):
            for j in range(k):
                longer[i + j] += w / k
        weights = longer
    return torch.tensor(weights, dtype=torch.float64)


def kernels(m: int, depth: int) -> list[int]:
    """Kernel sizes with receptive field m, as equal as possible, the larger ones last."""
    sizes = [1] * depth
    for step in range(m - 1):
        sizes[depth - 1 - step % depth] += 1
    return sorted(sizes)


def composition(O: Tensor, weights: Tensor) -> Tensor:
    """Z (kappa, n*v): the weighted average of O over each segment (Eq. 1)."""
    m = len(weights)
    rows = []
    for k in range(O.shape[0] - m + 1):
        rows.append(sum(weights[offset] * O[k + offset] for offset in range(m)))
    return torch.stack(rows)


def project(x: Tensor, weight: Tensor, bias: Tensor, positional: bool) -> Tensor:
    """Map each time point of x (U, L) linearly, and add the encoding of its position."""
    columns = [weight @ x_t + bias for x_t in x.T]
    if positional:
        columns = [column + sinusoid(t, len(column)) for t, column in enumerate(columns)]
    return torch.stack(columns, dim=1)


def encode(x: Tensor, params: dict[str, Tensor], m: int, depth: int) -> Tensor:
    """Q (kappa, q) for one stream x (U, L): every segment encoded by itself."""
    rows = []
    for k in range(x.shape[1] - m + 1):
        h = x[:, k : k + m]
        for layer in range(depth):
            weight = params[f"convolutions.{layer}.weight"].squeeze(2)
            bias = params[f"convolutions.{layer}.bias"]
            h = F.conv1d(h[None], weight, bias)[0]
            if layer < depth - 1:
                h = torch.relu(h)
        assert h.shape[1] == 1, "the receptive field is not m"
        h = h[:, 0]
        normal = (h - h.mean()) / torch.sqrt(((h - h.mean()) ** 2).mean() + 1e-5)
        rows.append(normal * params["norm.weight"] + params["norm.bias"])
    return torch.stack(rows)


def sinusoid(t: int, dim: int) -> Tensor:
    """The encoding of position t."""
    values = []
    for i in range(dim):
        angle = t / 10_000 ** (2 * (i // 2) / dim)
        values.append(math.sin(angle) if i % 2 == 0 else math.cos(angle))
    return torch.tensor(values, dtype=torch.float64)


class Textbook:
    """One network, read from its parameters, applied to one case at a time."""

    def __init__(self, network):
        self.config = network.config
        self.params = {
            name: p.detach().double().clone().requires_grad_()
            for name, p in network.named_parameters()
        }

    def _encoder(self, size: int) -> dict[str, Tensor]:
        prefix = f"encoders.{size}."
        return {k[len(prefix) :]: p for k, p in self.params.items() if k.startswith(prefix)}

    def weights(self) -> Tensor:
        """W (C, |m|, v, n, q): average pooling undone by repeating each weight over its group."""
        c = self.config
        W = self.params["head.weight"]
        full = []
        for j in range(c.n_channels):
            rows = []
            for i in range(c.n_symbols):
                columns = []
                for col in range(c.latent_dim):
                    gi, gc = i // c.pooling[0], col // c.pooling[1]
                    n_i = min((gi + 1) * c.pooling[0], c.n_symbols) - gi * c.pooling[0]
                    n_c = min((gc + 1) * c.pooling[1], c.latent_dim) - gc * c.pooling[1]
                    columns.append(W[:, :, 0 if c.channels == "shared" else j, gi, gc] / n_i / n_c)
                rows.append(torch.stack(columns, -1))
            full.append(torch.stack(rows, -2))
        return torch.stack(full, 2)

    def streams(self, x: Tensor, codes: Tensor) -> list[list[tuple[list[int], Tensor, Tensor]]]:
        """For each segment size the streams of a case: (channels, Z, Q / kappa)."""
        c = self.config
        groups = [list(range(c.n_channels))]
        if c.channels != "mixed":
            groups = [[j] for j in range(c.n_channels)]
        result = []
        for size, m in enumerate(c.segment_sizes):
            if x.shape[1] < m:  # extended by points without value and symbol to one segment
                x = F.pad(x, (0, m - x.shape[1]))
                codes = F.pad(codes, (0, m - codes.shape[1]))
            L = max(int(self.length), m)
            streams = []
            for group in groups:
                if c.raw:
                    a, b = self.params["raw.slope"][group], self.params["raw.offset"][group]
                    O = raw_columns(x[group, :L], codes[group, :L], a, b)
                else:
                    O = one_hot(codes[group, :L], c.n_symbols)
                Z = composition(O, window(m, c.depth, c.window))
                x_group = x[group, :L]
                if "projection.linear.weight" in self.params:
                    weight = self.params["projection.linear.weight"]
                    bias = self.params["projection.linear.bias"]
                    x_group = project(x_group, weight, bias, c.positional_encoding)
                Q = encode(x_group, self._encoder(size), m, c.depth)
                streams.append((group, Z, Q / len(Q)))
            result.append(streams)
        return result

    def logits(self, x: Tensor, codes: Tensor) -> Tensor:
        """Logits (C,) of a case x (v, L) with codes (v, L), both without padding."""
        self.length = x.shape[1]
        W = self.weights()
        logits = self.params["head.bias"]
        for size, streams in enumerate(self.streams(x, codes)):
            for group, Z, Q in streams:
                P = Z.T @ Q  # (n*U, q), Eq. 2
                W_group = W[:, size, group].flatten(1, 2)  # (C, n*U, q)
                logits = logits + (W_group * P).sum((1, 2))
        return logits

    def phi(self, x, codes, c: int, activation="relu", max_scaling=True, contrast="logit"):
        """phi+ and phi- (v, L) of class c: the double loop over rows and columns of P."""
        self.length = x.shape[1]
        W = self.weights().detach()
        g_all = W[c] if contrast == "logit" else W[c] - W.mean(0)
        v, n = self.config.n_channels, self.config.n_symbols
        longest = max(x.shape[1], *self.config.segment_sizes)
        positive = torch.zeros(v, longest, dtype=torch.float64)
        negative = torch.zeros(v, longest, dtype=torch.float64)
        act = {
            "relu": torch.relu,
            "abs": torch.abs,
            "sigmoid": torch.sigmoid,
            "tanh": torch.tanh,
            "none": lambda y: y,
        }[activation]
        for size, streams in enumerate(self.streams(x, codes)):
            m = self.config.segment_sizes[size]
            for group, Z, Q in streams:
                Z, Q = Z.detach(), Q.detach()
                for u, j in enumerate(group):
                    for i in range(n):
                        for col in range(Q.shape[1]):
                            g = g_all[size, j, i, col]
                            sigma = torch.sign(g)
                            term = Z[:, u * n + i] * Q[:, col]
                            for sign, phi in ((1, positive), (-1, negative)):
                                zeta = act(sign * sigma * term)
                                if max_scaling:
                                    zeta = zeta / (zeta.max() + EPS)
                                phi[j] += to_time(abs(g) * zeta, m, longest)
        return positive[:, : x.shape[1]], negative[:, : x.shape[1]]

    def evidence(self, x, codes, c: int) -> Tensor:
        """Additive contributions (v, L) of every point and channel to logit c."""
        self.length = x.shape[1]
        W = self.weights().detach()
        longest = max(x.shape[1], *self.config.segment_sizes)
        evidence = torch.zeros(self.config.n_channels, longest, dtype=torch.float64)
        n = self.config.n_symbols
        for size, (m, streams) in enumerate(
            zip(self.config.segment_sizes, self.streams(x, codes), strict=True)
        ):
            weights = window(m, self.config.depth, self.config.window)
            for group, _, Q in streams:
                O = one_hot(codes[group], n)
                for k, q in enumerate(Q.detach()):
                    for offset in range(m):
                        t = k + offset
                        for u, j in enumerate(group):
                            if t < len(O):
                                w = (O[t, u * n : (u + 1) * n, None] * W[c, size, j]).sum(0)
                                evidence[j, t] += weights[offset] * (w @ q)
        return evidence[:, : x.shape[1]]


def to_time(segments: Tensor, m: int, L: int) -> Tensor:
    """Mean over the segments that cover each point."""
    points = torch.zeros(L, dtype=torch.float64)
    for t in range(len(segments) + m - 1):
        covering = [segments[k] for k in range(t - m + 1, t + 1) if 0 <= k < len(segments)]
        points[t] = sum(covering) / len(covering)
    return points
