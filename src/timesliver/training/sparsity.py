"""A penalty that makes silent moments say nothing: the L1 norm of the centred evidence.

The share of point t in the centred logit of class c is
``e_ct = <W_c[s_t] - mean_c W[s_t], Qt[t]>``. All shares of a class sum to its centred logit
without the bias, whatever the length of the series and the number of its channels, and so
``sum_t |e_ct|`` is measured in units of the logit for every kind of data: it is at least the
logit's own size, and exceeds it by what moments say for and against the class and cancels out.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from timesliver.network import Moments, Term

__all__ = ["total_evidence"]


def total_evidence(encoded: Sequence[tuple[Term, Moments]], by_channel: bool) -> Tensor:
    """Return the mean over cases and classes of ``sum_t |e_ct|``, in units of the logit.

    Parameters
    ----------
    encoded : list of (Term, Moments)
        Every term of a network with what its encoder says of the cases.
    by_channel : bool
        Whether each channel of a time point is a point of its own, which it is where channels
        are encoded separately.
    """
    weights = [term.weight() for term, _ in encoded]
    centred = [W - W.mean(0) for W in weights]
    first = encoded[0][1]
    n_cases, n_classes = len(first.view), len(weights[0])
    total = first.Q.new_zeros(())
    for c in range(n_classes):  # one after another, so memory does not grow with their number
        targets = first.view.lengths.new_full((n_cases, 1), c)
        e = sum(
            term.shares(moments, W, targets)
            for (term, moments), W in zip(encoded, centred, strict=True)
        )
        total = total + (e if by_channel else e.sum(2)).abs().sum()  # type: ignore[union-attr]
    return total / (n_cases * n_classes)
