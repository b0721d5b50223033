"""The network: a base plus the sum of its terms.

Read next to section 2 of the paper: `segments` is Module I, `batch` and `windows` Module II,
`interaction` Module III, `term` joins them with weights. B cases, S streams per case, L time
points, v channels, J symbol channels, n symbols, q latent columns, kappa segments, C classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from timesliver.errors import InvalidInputError
from timesliver.network.batch import Batch, View
from timesliver.network.term import InteractionTerm, Moments, Part, Term
from timesliver.network.windows import span

__all__ = ["InteractionPart", "TimeSliverNetwork"]


class InteractionPart(Part):
    """What one encoder brings to a network: rows Q, and its terms, one for each set of symbols.

    Parameters
    ----------
    encoders : sequence of Module
        Each maps streams (N, L, U) to rows Q (N, kappa, q), and has the attributes ``widths``
        (the averages that make the window of a row) and ``latent_dim`` (q).
    terms : sequence of sequences of Term
        For each encoder, its terms.
    stem : Module or None
        What is done to the streams before any encoder sees them.
    separate : bool
        Whether each channel is a stream of its own.
    view : int
        Which view of a batch the encoders look at.
    """

    def __init__(
        self,
        encoders: Sequence[nn.Module],
        terms: Sequence[Sequence[Term]],
        stem: nn.Module | None = None,
        separate: bool = False,
        view: int = 0,
    ) -> None:
        super().__init__()
        self.stem = stem
        self.encoders: Any = nn.ModuleList(encoders)
        self.terms: Any = nn.ModuleList(nn.ModuleList(of_encoder) for of_encoder in terms)
        self.separate = separate
        self.view = view

    def each(self, view: View, only: Term | None = None) -> Iterator[tuple[Term, Moments]]:
        """Yield every term, or one, with what its encoder says; one encoder's rows at a time."""
        x = self._streams(view)
        n_streams = view.n_channels if self.separate else 1
        for encoder, terms in zip(self.encoders, self.terms, strict=True):
            if only is not None and all(term is not only for term in terms):
                continue
            moments = Moments(encoder(x), view, encoder.widths, n_streams)
            for term in terms:
                if only is None or term is only:
                    yield term, moments

    def smoothing(self, view: View) -> int:
        """Over how many points shares are evened out unless something else is asked for."""
        return view.step * max(span(encoder.widths) for encoder in self.encoders)

    def sizes(self, n_channels: int, n_timepoints: int) -> Iterator[int]:
        """Yield how many numbers each encoder makes of a case: its segments, or a quarter of P.

        Several arrays of segments exist at a time, but only one P.
        """
        points = (n_channels if self.separate else 1) * n_timepoints
        for encoder, terms in zip(self.encoders, self.terms, strict=True):
            entries = max(term.average.numel() for term in terms)
            yield max(max(encoder.latent_dim, 32) * points, entries // 4)

    def _streams(self, view: View) -> Tensor:
        """Return what each run of an encoder sees: (B*S, L, U)."""
        longest = max(span(encoder.widths) for encoder in self.encoders)
        if longest > view.n_timepoints:
            raise InvalidInputError(
                f"a segment of {longest} points does not fit series of {view.n_timepoints} "
                f"points; use smaller sizes"
            )
        for term in self.modules():
            if isinstance(term, InteractionTerm):
                symbols, weights = view.symbols[term.symbols], term.weights
                given = symbols.n_channels, symbols.n_rows - 1
                if given != (weights.n_channels, weights.n_symbols):
                    raise InvalidInputError(
                        f"the series have {given[0]} symbol channels of {given[1]} symbols; the "
                        f"network was made for {weights.n_channels} of {weights.n_symbols}"
                    )
        n_inputs = 1 if self.separate else view.n_channels
        streams = view.values.reshape(-1, n_inputs, view.n_timepoints)
        x = streams.transpose(1, 2).contiguous()
        return x if self.stem is None else self.stem(x)


class TimeSliverNetwork(nn.Module):
    """Series and symbols in, logits out: the base plus the sum of all terms.

    Parameters
    ----------
    parts : sequence of Part
        What each encoder brings.
    n_classes : int
        C.
    """

    def __init__(self, parts: Sequence[Part], n_classes: int) -> None:
        super().__init__()
        self.parts: Any = nn.ModuleList(parts)
        self.bias = nn.Parameter(torch.zeros(n_classes))

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return len(self.bias)

    @property
    def terms(self) -> list[Term]:
        """All terms, in the order of `each`."""
        return [module for module in self.modules() if isinstance(module, Term)]

    def each(self, batch: Batch, only: Term | None = None) -> Iterator[tuple[Term, Moments]]:
        """Yield every term, or one, with what its encoder says of the cases."""
        for part in self.parts:
            yield from part.each(batch.views[part.view], only)

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits, shape (B, C)."""
        return self.add_up(self.each(batch), len(batch))

    def add_up(self, encoded: Iterable[tuple[Term, Moments]], n_cases: int) -> Tensor:
        """Return the logits from what `each` yields."""
        logits = self.bias.expand(n_cases, -1)
        for term, moments in encoded:
            logits = logits + term(moments)
        return logits

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the weights of the linear layer, without those of the encoders."""
        return [self.bias, *(weight for term in self.terms for weight in term.parameters())]

    @torch.no_grad()
    def infer(self, batch: Batch) -> Tensor:
        """Return the logits of any number of cases in bounded memory."""
        return torch.cat([self(part) for part in self.split(batch)])

    def split(self, batch: Batch) -> Iterator[Batch]:
        """Cut cases into batches of which one term after another fits into bounded memory."""
        return batch.split(max(self.sizes(batch.n_channels, batch.n_timepoints)))

    def sizes(self, n_channels: int, n_timepoints: int) -> list[int]:
        """Return how many numbers each encoder makes of a case."""
        return [size for part in self.parts for size in part.sizes(n_channels, n_timepoints)]

    def smoothing(self, batch: Batch) -> int:
        """Over how many points shares are evened out unless something else is asked for."""
        widths: list[int] = [part.smoothing(batch.views[part.view]) for part in self.parts]
        return max(widths)

    @torch.no_grad()
    def learn_average(self, batch: Batch) -> None:
        """Store the mean features of the training cases, against which shares are measured."""
        for term in self.terms:
            term.average.zero_()
        for part in self.split(batch):
            for term, moments in self.each(part):
                term.average += term.features(moments).sum(0, keepdim=True) / len(batch)

    @torch.no_grad()
    def scale(self, factor: float) -> None:
        """Multiply every logit."""
        self.bias.mul_(factor)
        for term in self.terms:
            term.scale_weight(factor)

    @classmethod
    def mean(cls, networks: Sequence[TimeSliverNetwork]) -> TimeSliverNetwork:
        """Return one network whose logits, and shares of them, are the mean of several."""
        if len(networks) == 1:
            return networks[0]
        copies: list[Any] = [deepcopy(network) for network in networks]
        together = cls([part for one in copies for part in one.parts], networks[0].n_classes)
        with torch.no_grad():
            for one in copies:
                one.scale(1 / len(networks))
                together.bias.add_(one.bias)
        return together.to(networks[0].bias.device)
