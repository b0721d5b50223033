"""The network: a base plus a sum of terms, each a sum over moments.

`batch` holds series and symbols, `segments` the paper's Module I, `windows` and `entries` Module
II.b, `interaction` Module III, `weights` the linear layer, `term` joins encoder, symbols and
weights, `model` adds terms up. `dense` is the whole on one page, slow and plain.
"""

from timesliver.network.batch import Batch, Symbols, View
from timesliver.network.model import InteractionPart, TimeSliverNetwork
from timesliver.network.term import InteractionTerm, Moments, Term

__all__ = [
    "Batch",
    "InteractionPart",
    "InteractionTerm",
    "Moments",
    "Symbols",
    "Term",
    "TimeSliverNetwork",
    "View",
]
