"""Whether the best is better than the second best by more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ttest_rel

from timesliver.bench.tables.runs import Trial
from timesliver.metrics import average_ranks, wilcoxon_holm
from timesliver.typing import FloatArray

__all__ = ["FEWEST_SETS", "Field", "Verdict", "compare", "over_sets"]

#: With fewer pairs Wilcoxon's test cannot reach the 5 % level.
FEWEST_SETS = 6
_LEVEL = 0.05


@dataclass(frozen=True)
class Verdict:
    """What a test said of two methods.

    Attributes
    ----------
    text : str
        The test and its p-value in words, or why there was none.
    tested : bool
        There was a test.
    significant : bool
        The methods differ at the 5 % level.
    """

    text: str
    tested: bool = False
    significant: bool = False


@dataclass(frozen=True, eq=False)
class Field:
    """Methods that can be ranked, and their results where all of them have one.

    Attributes
    ----------
    results : array of shape (n_sets, n_ranked)
        The results on the data sets on which all ranked methods have one.
    ranked : list of int
        The methods with results on at least half of the data sets.
    """

    results: FloatArray
    ranked: list[int]

    @classmethod
    def of(cls, results: ArrayLike) -> Field:
        """Choose from results of shape (n_sets, n_methods), NaN where there is none.

        Examples
        --------
        >>> field = Field.of([[0.9, 0.8, np.nan], [0.7, 0.6, np.nan], [0.5, np.nan, 0.1]])
        >>> field.ranked, field.results.tolist()
        ([0, 1], [[0.9, 0.8], [0.7, 0.6]])
        """
        table = np.asarray(results, dtype=np.float64)
        known = np.isfinite(table)
        ranked = [i for i in range(table.shape[1]) if known[:, i].mean() >= 0.5]
        return cls(table[known[:, ranked].all(axis=1)][:, ranked], ranked)


def compare(first: Mapping[Trial, float], second: Mapping[Trial, float]) -> Verdict:
    """Test two methods over the trials that both have.

    From six trials on this is Wilcoxon's signed-rank test, for three to five a paired t-test.

    Examples
    --------
    >>> compare({(0, 0): 0.9, (0, 1): 0.8}, {(0, 0): 0.7, (0, 1): 0.6}).text
    'too few trials to test (2)'
    """
    common = sorted(first.keys() & second.keys())
    n = len(common)
    if n < 3:
        return Verdict(f"too few trials to test ({n})")
    a = np.array([first[trial] for trial in common])
    b = np.array([second[trial] for trial in common])
    changes = np.round(a - b, 12)
    if np.ptp(changes) == 0:
        return Verdict("the difference is the same in all trials: no test")
    if n < FEWEST_SETS:
        p, test = float(ttest_rel(a, b).pvalue), "paired t-test"
    else:
        p = float(wilcoxon_holm(np.column_stack([a, b])).p_values[0, 1])
        test = "Wilcoxon's signed-rank test"
    return Verdict(f"{test} over {n} trials, {_p(p)}", True, p < _LEVEL)


def over_sets(results: ArrayLike, methods: Sequence[str], higher_is_better: bool = True) -> str:
    """Say which methods differ from the one of best rank, over data sets.

    Parameters
    ----------
    results : array of shape (n_datasets, n_methods)
        Complete results.
    methods : list of str
        Names of the methods.
    higher_is_better : bool
        True for accuracies, False for errors.
    """
    table = np.asarray(results, dtype=np.float64)
    if len(table) < FEWEST_SETS or len(methods) < 2:
        return (
            f"Over data sets: too few to test ({len(table)} on which all {len(methods)} methods "
            f"have a result; Wilcoxon's signed-rank test needs {FEWEST_SETS})."
        )
    best = int(np.argmin(average_ranks(table, higher_is_better)))
    adjusted = wilcoxon_holm(table).adjusted[best]
    others = [i for i in range(len(methods)) if i != best]
    told = [f"{methods[i]} ({_p(adjusted[i])})" for i in others if adjusted[i] < _LEVEL]
    alike = [f"{methods[i]} ({_p(adjusted[i])})" for i in others if adjusted[i] >= _LEVEL]
    parts = [
        f"{methods[best]}, first by average rank, {verb} {', '.join(names)}"
        for verb, names in (("differs from", told), ("cannot be told from", alike))
        if names
    ]
    return (
        f"Over the {len(table)} data sets on which all {len(methods)} methods have a result, by "
        f"Wilcoxon's signed-rank test with Holm's correction at the 5 % level: "
        f"{'; '.join(parts)}."
    )


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
