"""What a perceptron is to learn, and what it has learned so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, NumericalError, ParameterError
from mercer._types import Integers, Vector
from mercer.data.objects import short
from mercer.data.statements import Context, Count, Floats, Number, Table, Whole, Word
from mercer.gram.protocol import GramMatrix
from mercer.loops.perceptron import Labels


@dataclass(frozen=True, eq=False)
class PerceptronProblem:
    r"""Rows to be separated by :math:`f(x) = \sum_i \theta_i (k(x_i, x) + c)`, one f for each of k outputs.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (p, p). Its first n rows are visited; the others may be in the expansion.
    codes : ndarray of shape (n,)
        The class of each row that is visited.
    positive : ndarray of shape (k,)
        For each output the class for which y = +1; y = -1 for all others.
    constant : float, default=0.0
        c, 1 for a bias.
    margin : float, default=0.0
        A row is learned from where ``y f(x) <= margin``.
    budget : int, optional
        The most rows in the expansion; the one that entered first makes room for a new one.

    Raises
    ------
    DataError
        If there are more codes than rows.
    ParameterError
        If the margin is negative or the budget below 1.
    """

    gram: GramMatrix
    codes: Integers
    positive: Integers
    constant: float = 0.0
    margin: float = 0.0
    budget: int | None = None

    def __post_init__(self) -> None:
        if len(self.codes) > self.gram.shape[0]:
            raise DataError(f"there are {len(self.codes)} codes, but the matrix has {self.gram.shape[0]} rows.")
        if not 0 <= self.margin < np.inf:
            raise ParameterError(f"margin must be a finite number of 0 or more, but is {short(self.margin)}.")
        if self.budget is not None and self.budget < 1:
            raise ParameterError(f"budget must be 1 or more, but is {short(self.budget)}.")

    def labels(self, rows: Integers | slice = slice(None)) -> Labels:
        """These rows in the form that the loops take."""
        return Labels(self.codes[rows], self.positive, float(self.constant), float(self.margin))


@dataclass
class PerceptronState:
    """What perceptrons have learned so far.

    ``theta`` (k, p) weighs the rows; ``lagged`` (k, p) is the sum of its changes, each times the steps before it;
    ``queue`` holds the rows of the expansion from the oldest on, where there is a budget. ``updates`` (u, 4) are step,
    row, output and sign of each change, if ``record`` is set. ``values`` (k, p) is f at all rows after the last pass,
    where it was kept.
    """

    theta: Vector
    lagged: Vector
    steps: int = 0
    queue: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    updates: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))
    record: bool = False
    values: Vector | None = None

    @classmethod
    def empty(cls, outputs: int, p: int, record: bool = False) -> PerceptronState:
        """Of functions that are zero."""
        return cls(np.zeros((outputs, p)), np.zeros((outputs, p)), record=record)

    def mean(self) -> Vector:
        """The mean of theta after each of the steps, (k, p)."""
        return self.theta - self.lagged / max(self.steps, 1)


@dataclass(frozen=True)
class Updates:
    """The changes of an expansion of s rows: step, row, output and sign of each."""

    def check(self, value: Any, what: str, context: Context) -> None:
        Whole("u, 4", least=None).check(value, what, context)
        for column, size in ((1, "s"), (2, "outputs")):
            Whole("u", below=size).check(value[:, column], f"{what}, column {column},", context)
        Whole("u", below=2, least=-1).check(value[:, 3], f"{what}, the signs,", context)
        if (np.diff(value[:, 0], prepend=0) < 0).any():
            raise DataError(f"{what} are not in the order of their steps")


STATE_TABLE = Table(
    {
        "theta": Floats("outputs, s"),
        "lagged": Floats("outputs, s"),
        "steps": Count(),
        "queue": Whole("q", below="s", distinct=True),
        "updates": Updates(),
        "averaging": Word(("plain", "averaged", "voted")),
        "constant": Number(least=0, most=1),
    }
)
"""What an expansion in a model file must be."""


def values_at_all(problem: PerceptronProblem, expansion: PerceptronState) -> Vector:
    """f at all rows, (k, p)."""
    theta = expansion.theta
    used = np.flatnonzero(theta.any(axis=0))
    if not len(used):
        return np.zeros(theta.shape)
    weights = np.ascontiguousarray(theta[:, used].T)
    values = np.asarray(problem.gram.restrict(None, used) @ weights, dtype=np.float64).T
    return np.ascontiguousarray(values + problem.constant * weights.sum(axis=0)[:, None])


def check_values(values: Vector) -> None:
    """Raise if values of f are not finite."""
    if not np.isfinite(values).all():
        raise NumericalError("the values of f overflow float64; scale the kernel or the columns of X.")
