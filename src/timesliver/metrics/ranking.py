"""Statistics over a table of results: one row per data set, one column per method."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata, wilcoxon

from timesliver.errors import (
    InvalidInputError,
    InvalidParameterError,
    MissingExtraError,
    check_count,
    check_number,
)
from timesliver.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "PairwiseTests",
    "average_ranks",
    "critical_difference_diagram",
    "top_counts",
    "wilcoxon_holm",
]

# Results that agree to this many digits are ties: means over seeds differ by rounding only.
_DIGITS = 12
# With more data sets than this the normal approximation is as good.
_MOST_EXACT = 50


def average_ranks(results: ArrayLike, higher_is_better: bool = True) -> FloatArray:
    """Return the mean rank of each method over the data sets; 1 is the best.

    Methods with equal results share the mean of their ranks.

    Parameters
    ----------
    results : array or data frame of shape (n_datasets, n_methods)
        The results.
    higher_is_better : bool
        True for accuracies, False for errors.

    Examples
    --------
    >>> average_ranks([[0.9, 0.8, 0.8], [0.5, 0.7, 0.6]])
    array([2.  , 1.75, 2.25])
    """
    ranks: FloatArray = _ranks(_table(results), higher_is_better, "average").mean(axis=0)
    return ranks


def top_counts(results: ArrayLike, k: int = 1, higher_is_better: bool = True) -> IntArray:
    """Return on how many data sets each method is among the best k.

    A method is among them if fewer than k others are better. So all that tie count, and the
    counts may add up to more than k times the number of data sets.

    Parameters
    ----------
    results : array or data frame of shape (n_datasets, n_methods)
        The results.
    k : int
        How many places, 1 to n_methods.
    higher_is_better : bool
        True for accuracies, False for errors.

    Examples
    --------
    >>> top_counts([[0.9, 0.9, 0.8], [0.5, 0.7, 0.6]])
    array([1, 2, 0])
    """
    table = _table(results)
    check_count("k", k, 1, table.shape[1])
    counts: IntArray = (_ranks(table, higher_is_better, "min") <= k).sum(axis=0)
    return counts


@dataclass(frozen=True, eq=False)
class PairwiseTests:
    """p-values of every pair of methods, symmetric, with 1 on the diagonal.

    Attributes
    ----------
    p_values : array of shape (n_methods, n_methods)
        Two-sided, each by itself.
    adjusted : array of shape (n_methods, n_methods)
        After Holm's correction; the methods differ at level alpha where this is below alpha.
    """

    p_values: FloatArray
    adjusted: FloatArray


def wilcoxon_holm(results: ArrayLike) -> PairwiseTests:
    """Test every pair of methods with Wilcoxon's signed-rank test, Holm's correction applied.

    Data sets on which the two methods tie say nothing about them and are left out; without any
    other, p is 1. Up to 50 data sets p is exact; five or fewer cannot show a difference at the
    5 % level.

    Parameters
    ----------
    results : array or data frame of shape (n_datasets, n_methods)
        The results of at least two methods.

    Examples
    --------
    >>> tests = wilcoxon_holm([[0.1 * i, 0.09 * i] for i in range(1, 9)])
    >>> float(tests.adjusted[0, 1])
    0.0078125
    """
    table = _table(results)
    first, second = np.triu_indices(table.shape[1], 1)
    if not len(first):
        raise InvalidInputError("one method cannot be compared; give at least two columns")
    p = np.array(
        [_signed_rank(table[:, i], table[:, j]) for i, j in zip(first, second, strict=True)]
    )
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    matrices = []
    for values in (p, adjusted):
        matrix = np.ones((table.shape[1],) * 2)
        matrix[first, second] = matrix[second, first] = values
        matrices.append(matrix)
    return PairwiseTests(*matrices)


def critical_difference_diagram(
    results: ArrayLike,
    methods: Sequence[str],
    higher_is_better: bool = True,
    alpha: float = 0.05,
) -> Figure:
    """Draw the average ranks; a bar joins methods that the data cannot tell apart.

    The bars are those of aeon: a Friedman test, then one-sided Wilcoxon tests of neighbours with
    Holm's correction. `wilcoxon_holm` is stricter, as it corrects for all pairs.

    Parameters
    ----------
    results : array or data frame of shape (n_datasets, n_methods)
        The results of at least three methods on at least two data sets.
    methods : list of str
        Names of the methods.
    higher_is_better : bool
        True for accuracies, False for errors.
    alpha : float
        Level of the tests, between 0 and 1.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig("ranks.png")``. It does not belong to pyplot, so there is
        nothing to close.
    """
    table = _table(results)
    names = [str(name) for name in methods]
    if len(names) != table.shape[1] or len(set(names)) < len(names):
        raise InvalidParameterError(
            f"methods must be a different name for each of the {table.shape[1]} columns, "
            f"got {names}"
        )
    if table.shape[0] < 2 or table.shape[1] < 3:
        raise InvalidInputError(
            f"the diagram needs results of at least three methods on at least two data sets, "
            f"got {table.shape[1]} on {table.shape[0]}"
        )
    check_number("alpha", alpha, above=0, below=1)
    try:
        from aeon.visualisation import plot_critical_difference
    except ImportError:
        raise MissingExtraError("aeon", "archive") from None
    from matplotlib import pyplot as plt
    from matplotlib.textpath import TextPath

    longest = max(TextPath((0, 0), name, size=16).get_extents().width for name in names)
    side = 1 + longest / 72  # inches for the names beside the scale
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # methods with equal results, which are one clique
        figure: Figure = plot_critical_difference(
            table,
            names,
            lower_better=not higher_is_better,
            alpha=alpha,
            width=3 + 2 * side,
            textspace=side,
        )[0]
    plt.close(figure)
    return figure


def _table(results: Any) -> FloatArray:
    try:
        table = np.asarray(results, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"results must be a table of numbers, one row per data set and one column per "
            f"method ({error})"
        ) from error
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidInputError(
            f"results must have shape (n_datasets, n_methods), neither of them 0; got {table.shape}"
        )
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        raise InvalidInputError(
            f"results must be finite, but row {row}, column {column} is {table[row, column]}; "
            f"leave out data sets or methods that are not complete"
        )
    return table


def _ranks(table: FloatArray, higher_is_better: bool, ties: str) -> FloatArray:
    """Return the rank of each method on each data set, 1 the best."""
    scale = np.abs(table).max(axis=1, keepdims=True)
    rounded = np.round(table / np.where(scale > 0, scale, 1), _DIGITS)
    ranks: FloatArray = rankdata(-rounded if higher_is_better else rounded, ties, axis=1)
    return ranks


def _signed_rank(first: FloatArray, second: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test."""
    scale = max(np.abs(first).max(), np.abs(second).max(), np.finfo(np.float64).tiny)
    differences = np.round(first / scale - second / scale, _DIGITS)
    differences = differences[differences != 0]
    if len(differences) > _MOST_EXACT:
        return float(wilcoxon(differences).pvalue)
    # Over all signs, how often each sum of ranks occurs. Doubled, tied ranks are whole as well.
    # (What scipy does with few values and ties depends on its version.)
    ranks = np.rint(2 * rankdata(np.abs(differences))).astype(int)
    chances = np.zeros(ranks.sum() + 1)
    chances[0] = 1
    for rank in ranks:
        chances[rank:] += chances[:-rank].copy()
        chances /= 2
    fewer = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    return min(1.0, 2 * float(chances[: fewer + 1].sum()))
