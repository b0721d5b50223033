"""The network: symbols and segments, their interaction, one linear layer.

Read next to section 2 of the paper: `segments` is Module I, `composition` Module II, `interaction`
Module III. B cases, S streams per case, L time points, v channels, n symbols, q latent columns,
kappa = L - m + 1 segments, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from timesliver.errors import InvalidInputError, InvalidParameterError, check_choice, check_count
from timesliver.network.composition import Batch
from timesliver.network.head import LinearHead
from timesliver.network.interaction import bag_sum, scale, spread
from timesliver.network.raw import RawProjection
from timesliver.network.segments import InputProjection, SegmentEncoder, kernel_sizes

__all__ = ["NetworkConfig", "TimeSliverNetwork"]

# Width of the input projection under a positional encoding, unless it is set.
_PROJECTION_DIM = 16
# Each convolution is twice as wide as the last, so more than this is a mistake.
_DEEPEST = 10
_MOST_SIZES = 32


@dataclass(frozen=True)
class NetworkConfig:
    """All that shapes a network.

    Attributes
    ----------
    n_channels, n_symbols, n_classes : int
        v, n and C.
    latent_dim : int
        Length q of a segment's latent vector.
    segment_sizes : tuple of int
        The segment sizes m.
    depth : int
        Number of stacked convolutions; 1 is a single one of width m.
    window : "box" or "bell"
        How the points of a segment are weighted in Z: equally (Eq. 1), or by averages over the
        same widths as the stacked convolutions, in a row.
    pooling : (int, int)
        Average pooling of P over symbols and latent columns.
    channels : "mixed", "separate" or "shared"
        One encoder that sees all channels (the paper's); one that runs on each channel by itself
        and meets that channel's symbols only; the same with one head for all channels.
    projection_dim : int or None
        Width of a learnt projection of the input; None for no projection, or, with a positional
        encoding, for a width of 16.
    positional_encoding : bool
        Whether the sinusoid is added to the projected input.
    raw : bool
        Whether learnt projections of the values replace the symbols (the paper's ablation).
    """

    n_channels: int
    n_symbols: int
    n_classes: int
    latent_dim: int = 36
    segment_sizes: tuple[int, ...] = (4, 7)
    depth: int = 3
    window: str = "box"
    pooling: tuple[int, int] = (1, 1)
    channels: str = "mixed"
    projection_dim: int | None = None
    positional_encoding: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("n_channels", 1),
            ("n_symbols", 1),
            ("n_classes", 2),
            ("latent_dim", 1),
        ):
            check_count(name, getattr(self, name), least)
        check_count("depth", self.depth, 1, _DEEPEST)
        if not 1 <= len(self.segment_sizes) <= _MOST_SIZES:
            raise InvalidParameterError(
                f"segment_sizes must hold 1 to {_MOST_SIZES} sizes, got {len(self.segment_sizes)}"
            )
        for m in self.segment_sizes:
            check_count("each of segment_sizes", m, 1)
        if len(set(self.segment_sizes)) < len(self.segment_sizes):
            raise InvalidParameterError(f"segment_sizes={self.segment_sizes} repeats a size")
        if len(self.pooling) != 2:
            raise InvalidParameterError(
                f"pooling must be a pair (symbols, latent columns), got {self.pooling}"
            )
        check_count("pooling over symbols", self.pooling[0], 1, self.n_symbols)
        check_count("pooling over latent columns", self.pooling[1], 1, self.latent_dim)
        check_choice("window", self.window, ("box", "bell"))
        check_choice("channels", self.channels, ("mixed", "separate", "shared"))
        if self.projection_dim is not None:
            check_count("projection_dim", self.projection_dim, 1)

    @property
    def separate(self) -> bool:
        """Whether each channel is a stream of its own."""
        return self.channels != "mixed"

    def window_widths(self, m: int) -> tuple[int, ...]:
        """Return the widths of the averages that make the window of Z for this segment size."""
        if self.window == "box":
            return (m,)
        return kernel_sizes(m, self.depth)


class TimeSliverNetwork(nn.Module):
    """Series and symbols in, logits out, linear in the interaction of the two.

    Parameters
    ----------
    config : NetworkConfig
        The shape of the network.
    seed : int
        Decides the initial weights; torch's own random state is left alone.
    """

    def __init__(self, config: NetworkConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(config)

    def _build(self, config: NetworkConfig) -> None:
        n_inputs = 1 if config.separate else config.n_channels
        self.projection = None
        if config.projection_dim is not None or config.positional_encoding:
            dim = config.projection_dim or _PROJECTION_DIM
            self.projection = InputProjection(n_inputs, dim, config.positional_encoding)
            n_inputs = dim
        self.encoders = nn.ModuleList(
            SegmentEncoder(n_inputs, config.latent_dim, m, config.depth)
            for m in config.segment_sizes
        )
        self.raw = RawProjection(config.n_channels, config.n_symbols) if config.raw else None
        self.head = LinearHead(
            config.n_classes,
            len(config.segment_sizes),
            config.n_channels,
            config.n_symbols,
            config.latent_dim,
            config.pooling,
            shared=config.channels == "shared",
        )

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits, shape (B, C)."""
        Qt = self.spread(self.encode(batch), batch)
        return self.classify(Qt, batch)

    def encode(self, batch: Batch) -> list[Tensor]:
        """Return Q for each segment size, shape (B*S, kappa, q)."""
        self._check(batch)
        x = batch.values.flatten(0, 1)  # (B*S, L, U)
        if self.projection is not None:
            x = self.projection(x)  # (B*S, L, projection_dim)
        return [encoder(x) for encoder in self.encoders]

    def spread(self, Q: list[Tensor], batch: Batch) -> list[Tensor]:
        """Return ``A^T Q`` for each segment size, up to the factors of `scales`: (B*S, L, q)."""
        return [
            spread(Q_m, batch, self.config.window_widths(m))
            for m, Q_m in zip(self.config.segment_sizes, Q, strict=True)
        ]

    def scales(self, batch: Batch) -> list[Tensor]:
        """Return what `spread` and `interact` leave out: a factor per size and case, (B,)."""
        return [scale(batch, self.config.window_widths(m)) for m in self.config.segment_sizes]

    def interact(self, Qt: list[Tensor], batch: Batch) -> list[Tensor]:
        """Return R: for each size ``P = Z^T Q`` up to the same factors, shape (B, v*(n+1), q)."""
        product = bag_sum if self.raw is None else self.raw
        return [product(Qt_m, batch) for Qt_m in Qt]

    def classify(self, Qt: list[Tensor], batch: Batch) -> Tensor:
        """Return the logits from the segments spread onto time points."""
        logits: Tensor = self.head(self.interact(Qt, batch), self.scales(batch))
        return logits

    @torch.no_grad()
    def infer(self, batch: Batch) -> Tensor:
        """Return the logits of any number of cases in bounded memory."""
        return torch.cat([self(part) for part in batch.split(self.numbers_per_case(batch))])

    def numbers_per_case(self, batch: Batch) -> int:
        """Return the size of a case's intermediate arrays: its segments, or a quarter of its P.

        Several arrays of segments exist at a time, but only one P.
        """
        points = batch.n_streams * batch.n_timepoints
        rows = batch.n_channels * batch.n_rows
        return max(points, rows // 4) * max(self.config.latent_dim, 32)

    def _check(self, batch: Batch) -> None:
        c = self.config
        streams = c.n_channels if c.separate else 1
        given = (batch.n_channels, batch.n_rows - 1, batch.n_streams)
        if given != (c.n_channels, c.n_symbols, streams):
            raise InvalidInputError(
                f"the batch has {given[0]} channels, {given[1]} symbols and {given[2]} streams; "
                f"the network was made for {c.n_channels}, {c.n_symbols} and {streams}. "
                f"Prepare it with Batch.prepare(X, codes, {c.n_symbols}, separate={c.separate})"
            )
        if max(c.segment_sizes) > batch.n_timepoints:
            raise InvalidInputError(
                f"a segment of m={max(c.segment_sizes)} points does not fit series of "
                f"L={batch.n_timepoints} points; use smaller segment_sizes (now {c.segment_sizes})"
            )
