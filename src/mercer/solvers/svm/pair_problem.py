"""The problem of one pair of classes, and the interface of a machine that solves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from mercer._types import Integers, Vector
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.joined_pair import PairMatrix
from mercer.solvers.svm.pair_answers import Answer, Pair
from mercer.solvers.svm.solver import BoxSolver, Start
from mercer.solvers.svm.step_rule import StepRule


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Two classes.

    Parameters
    ----------
    gram : GramMatrix
        K of their rows, (q, q).
    y : ndarray of shape (q,)
        Signs, +1 for the first class and -1 for the second.
    upper : ndarray of shape (q,)
        Bounds of the sizes of the weights; infinite for a hard margin.
    convex : bool, default=True
        Whether K is positive semi-definite on vectors that keep the sums.
    joined : PairMatrix, optional
        The matrix by rows, where it is small.
    pair : tuple of int, default=(0, 1)
        The numbers of the classes.
    """

    gram: GramMatrix
    y: Vector
    upper: Vector
    convex: bool = True
    joined: PairMatrix | None = None
    pair: Pair = (0, 1)


@dataclass(frozen=True)
class PairMachine(ABC):
    """A machine for two classes: it states a :class:`PairProblem` as box problems, which ``solver`` solves."""

    solver: BoxSolver
    intercept: bool = True

    @abstractmethod
    def solve(self, problem: PairProblem, start: Start | None = None) -> Answer:
        """Solve ``problem``; ``start.beta`` are the weights of an earlier answer."""

    @abstractmethod
    def box(self, problem: PairProblem) -> BoxQP:
        """The problem as a quadratic programme."""

    def is_compiled(self, from_zero: bool) -> bool:
        """Whether the compiled loop over tiny pairs solves this machine's problems."""
        return False

    def of_classes(self, numbers: Integers) -> Self:
        """Return the machine for problems with these classes only."""
        return self

    def rule(self, convex: bool) -> StepRule:
        """The stopping rule for compiled loops."""
        return StepRule(self.solver.tol, self.solver.stop, self.solver.limit, self.intercept, convex)
