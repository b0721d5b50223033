"""Ridge regression to the classes, in closed form, over features that come in blocks.

With as many columns as cases or more, the matrix that is decomposed holds one row per case (dual),
otherwise one row per column (primal). Either way one decomposition serves all strengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.training.calibration import check_cases, temperature
from timesliver.typing import FloatArray, IntArray

__all__ = ["Columns", "FeatureBlocks", "RidgeSolution", "solve_ridge", "temperature"]

_Matrix = NDArray[np.float64]
_Three = tuple[_Matrix, _Matrix, _Matrix]

_SLICE = 1024  # cases, or columns, that are worked on at once
_CONSTANT = 1e-6  # a deviation below this part of the feature's size is rounding
_TIE = 1e-12  # relative difference between errors that is rounding
_STRENGTHS = tuple(np.logspace(-3, 3, 10))


class FeatureBlocks(Protocol):
    """Features of cases, in blocks of columns that are fetched one by one."""

    @property
    def widths(self) -> Sequence[int]:
        """Return the number of columns of each block."""

    def __len__(self) -> int:
        """Return the number of cases."""

    def block(self, index: int, cases: slice) -> NDArray[np.float32]:
        """Return the columns of one block for some cases: (cases, ``widths[index]``)."""


class Columns:
    """Features that are in memory already.

    Parameters
    ----------
    blocks : list of arrays of shape (n_cases, width)
        The features.
    """

    def __init__(self, blocks: Sequence[NDArray[np.float32]]) -> None:
        self.blocks = blocks
        self.widths = [block.shape[1] for block in blocks]

    def __len__(self) -> int:
        return len(self.blocks[0])

    def block(self, index: int, cases: slice) -> NDArray[np.float32]:
        """Return the columns of one block for some cases."""
        return self.blocks[index][cases]


@dataclass(frozen=True)
class RidgeSolution:
    """What came of `solve_ridge`; the scores of features x are ``bias + sum(weights @ x)``.

    Attributes
    ----------
    weights : list of float arrays of shape (n_classes, width)
        Per block, for the features as they are: their scaling is part of the weights.
    bias : float array of shape (n_classes,)
        The intercepts.
    strength : float
        The chosen strength of the penalty.
    left_out : float array of shape (n_cases, n_classes)
        The scores of each case by a fit without it, at the chosen strength.
    errors : float array
        Per strength: the weighted mean squared error of such scores.
    means : list of float arrays of shape (width,)
        Per block: the weighted mean of each feature.
    """

    weights: list[_Matrix]
    bias: _Matrix
    strength: float
    left_out: _Matrix
    errors: _Matrix
    means: list[_Matrix]


@dataclass(frozen=True)
class _Problem:
    """What both ways of solving share."""

    targets: _Matrix  # (n, m): -1 or 1; for two classes only the second one's column
    weight: _Matrix
    strengths: _Matrix
    scaled: bool
    size: int = _SLICE

    @property
    def target_mean(self) -> _Matrix:
        mean: _Matrix = self.weight @ self.targets / self.weight.sum()
        return mean

    def part(self, features: FeatureBlocks, index: int, cases: slice) -> NDArray[np.float32]:
        part = features.block(index, cases)
        if not np.isfinite(part).all():
            raise InvalidInputError(
                f"block {index} of the features holds NaN or infinite values; check the series "
                "for values that are missing or far too large"
            )
        return part

    def slices(self, n: int) -> Iterator[slice]:
        return (slice(start, min(start + self.size, n)) for start in range(0, n, self.size))

    def factor(self, mean: _Matrix, variance: _Matrix) -> _Matrix:
        """Return what centred features are multiplied by: 0 for those that are constant."""
        deviation = np.sqrt(variance.clip(min=0))
        constant = deviation <= _CONSTANT * np.hypot(mean, deviation)
        return np.where(constant, 0, 1 / np.where(constant, 1, deviation) if self.scaled else 1)

    def choose(self, residuals: _Matrix) -> tuple[int, _Matrix]:
        """Return the best strength's index and all errors from left-out residuals (s, n, m)."""
        squares = np.einsum("snm,snm,n->s", residuals, residuals, self.weight)
        errors = squares / (self.weight.sum() * self.targets.shape[1])
        tied = errors <= errors.min() * (1 + _TIE)
        return int(np.argmax(np.where(tied, self.strengths, 0))), errors


def _columns(features: FeatureBlocks, problem: _Problem) -> Iterator[_Three]:
    """Yield columns of all cases, centred and scaled, with their means and factors."""
    n, weight = len(features), problem.weight
    for index, width in enumerate(features.widths):
        block = np.empty((n, width), dtype=np.float32)
        for cases in problem.slices(n):
            block[cases] = problem.part(features, index, cases)
        for some in problem.slices(width):
            x = block[:, some].astype(np.float64)
            mean = weight @ x / weight.sum()
            x -= mean
            factor = problem.factor(mean, weight @ np.square(x) / weight.sum())
            x *= factor
            yield x, mean, factor


def _solve_dual(features: FeatureBlocks, problem: _Problem) -> _Three:
    """Solve with one row per case: weights (columns, m), means, left-out residuals (s, n, m).

    With the root of the weights s and the features Z, centred, scaled and times s, the solution is
    Z'c with c = (ZZ' + strength)⁻¹ s(t - mean), and a case's left-out residual is c / d / s, where
    d is the diagonal of the inverse in the space orthogonal to s, the direction of the intercept.
    """
    root = np.sqrt(problem.weight)
    gram = np.zeros((len(root), len(root)))
    for x, _, _ in _columns(features, problem):
        x *= root[:, None]
        gram += x @ x.T
    # ZZ's = 0. Lifted above all others, the direction of s is the last, and is left away.
    lift = (1 + 2 * np.trace(gram)) / problem.weight.sum()
    gram += lift * np.outer(root, root)
    values, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
    values, vectors = values[:-1].clip(min=0), vectors[:, :-1]

    projected = vectors.T @ (root[:, None] * (problem.targets - problem.target_mean))
    squared = np.square(vectors)
    residuals = np.empty((len(problem.strengths), *problem.targets.shape))
    inverses = 1 / (values[:, None] + problem.strengths)  # (n - 1, s)
    for residual, inverse in zip(residuals, inverses.T, strict=True):
        c = vectors @ (inverse[:, None] * projected)
        residual[:] = c / ((squared @ inverse) * root)[:, None]
    del gram, squared

    best, _ = problem.choose(residuals)
    c = vectors @ (inverses[:, best, None] * projected) * root[:, None]
    parts = [(factor[:, None] * (x.T @ c), mean) for x, mean, factor in _columns(features, problem)]
    weights, means = zip(*parts, strict=True)
    return np.concatenate(weights), np.concatenate(means), residuals


def _rows(features: FeatureBlocks, problem: _Problem) -> Iterator[tuple[slice, _Matrix]]:
    """Yield all columns of some cases."""
    for cases in problem.slices(len(features)):
        blocks = [problem.part(features, i, cases) for i in range(len(features.widths))]
        yield cases, np.concatenate(blocks, axis=1, dtype=np.float64)


def _solve_primal(features: FeatureBlocks, problem: _Problem) -> _Three:
    """Solve with one row per column; a left-out residual is the residual / (1 - hat value)."""
    weight, total, width = problem.weight, problem.weight.sum(), sum(features.widths)
    gram, moment = np.zeros((width, width)), np.zeros((width, problem.targets.shape[1]))
    centred = problem.targets - problem.target_mean
    start, offset = np.zeros(width), np.zeros(width)
    for cases, x in _rows(features, problem):
        if cases.start == 0:  # near enough to the mean to lose no digits
            start = weight[cases] @ x / weight[cases].sum()
        x -= start
        offset += weight[cases] @ x / total
        moment += x.T @ (weight[cases, None] * centred[cases])
        x *= np.sqrt(weight[cases, None])
        gram += x.T @ x
    gram -= total * np.outer(offset, offset)
    mean = start + offset
    factor = problem.factor(mean, np.diag(gram) / total)
    gram *= np.outer(factor, factor)
    values, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
    values = values.clip(min=0)

    inverses = 1 / (values[:, None] + problem.strengths)  # (columns, s)
    projected = vectors.T @ (factor[:, None] * moment)
    residuals = np.empty((len(problem.strengths), *problem.targets.shape))
    for cases, x in _rows(features, problem):
        z = ((x - mean) * factor) @ vectors
        room = 1 - weight[cases, None] * (np.square(z) @ inverses + 1 / total)
        room = room.clip(min=np.finfo(np.float64).eps)
        for s, inverse in enumerate(inverses.T):
            fitted = z @ (inverse[:, None] * projected)
            residuals[s, cases] = (centred[cases] - fitted) / room[:, s, None]

    best, _ = problem.choose(residuals)
    weights = factor[:, None] * (vectors @ (inverses[:, best, None] * projected))
    return weights, mean, residuals


def solve_ridge(
    features: FeatureBlocks,
    y: IntArray,
    n_classes: int,
    weight: FloatArray,
    strengths: ArrayLike = _STRENGTHS,
    scaled: bool = True,
) -> RidgeSolution:
    """Fit ridge regression to the classes; the strength is chosen by leaving out each case.

    The targets are 1 for the class of a case and -1 for the others. What is minimised is the
    weighted squared error plus the strength times the squared weights of the scaled features,
    without the intercept. The strength is that with the least error of the left-out scores, the
    larger one of two that tie. Leaving out is exact, but for the scaling, which stays that of all
    cases. Features that do not vary get weights of 0.

    In memory are a few square matrices as large as the cases or the columns, whichever are fewer,
    the left-out scores of every strength, and either one block or all blocks for 1024 cases. Each
    block is fetched twice.

    Parameters
    ----------
    features : FeatureBlocks
        The features of all cases.
    y : int array of shape (n_cases,)
        Class indices.
    n_classes : int
        The number of classes, at least 2.
    weight : float array of shape (n_cases,)
        How much each case counts, above 0.
    strengths : array-like of float
        Strengths of the penalty to choose from.
    scaled : bool
        Divide each feature by its weighted standard deviation.

    Examples
    --------
    >>> class Blocks:
    ...     widths = [2, 1]
    ...     columns = np.array([[0, 1, 5], [1, 0, 5], [4, 1, 5], [5, 0, 5]], dtype=np.float32)
    ...
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def block(self, index, cases):
    ...         return self.columns[cases, :2] if index == 0 else self.columns[cases, 2:]
    >>> solution = solve_ridge(Blocks(), np.array([0, 0, 1, 1]), 2, np.ones(4), strengths=[0.1, 10])
    >>> solution.strength
    0.1
    >>> [part[1].round(2).tolist() for part in solution.weights]
    [[0.49, 0.47], [0.0]]
    >>> solution.left_out.argmax(axis=1)
    array([0, 0, 1, 1])
    """
    y, cast = check_cases(y, weight, len(features), n_classes)
    tried = np.asarray(strengths, dtype=np.float64)
    if tried.ndim != 1 or not tried.size or not (np.isfinite(tried) & (tried > 0)).all():
        raise InvalidParameterError(
            f"strengths must be a list of finite numbers above 0; got {strengths!r}"
        )
    if not sum(features.widths):
        raise InvalidInputError("the features have no columns; give at least one")
    classes = np.arange(n_classes) if n_classes > 2 else np.array([1])
    problem = _Problem(np.where(y[:, None] == classes, 1.0, -1.0), cast, tried, scaled)
    solve = _solve_dual if len(y) <= sum(features.widths) else _solve_primal
    weights, means, residuals = solve(features, problem)
    best, errors = problem.choose(residuals)
    bias, left_out = problem.target_mean - means @ weights, problem.targets - residuals[best]
    if n_classes == 2:
        weights, bias, left_out = (
            np.concatenate([-one, one], axis=-1) for one in (weights, bias, left_out)
        )
    cuts = np.cumsum(features.widths)[:-1]
    parts = [np.ascontiguousarray(part.T) for part in np.split(weights, cuts)]
    return RidgeSolution(parts, bias, float(tried[best]), left_out, errors, np.split(means, cuts))
