"""Fits for several values of a penalty, each from the answer for its neighbour."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._types import RowsLike
from mercer.estimators.shared.base import KernelEstimator
from mercer.solvers.risk.values import RiskValue


class FitsAlongPenalty(KernelEstimator, ABC):
    """Base of learners whose solver starts from an answer for another penalty."""

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each value of the penalty, from the strongest penalty to the weakest.

        Parameters
        ----------
        parameter : str
            ``"C"`` or ``"alpha"``.
        values : sequence of float
            Its values, ascending.
        X, y, sample_weight
            As for ``fit``.

        Returns
        -------
        list of fitted estimators
            In the order of the values.
        """
        models: list[Self] = []
        # A large alpha is a strong penalty, and a large C a weak one.
        weaker = list(reversed(values)) if parameter == "alpha" else list(values)
        for value in weaker:
            model = clone(self).set_params(**{parameter: value}).take_matrices_from(self._matrices)
            model._fit_after(models[-1] if models else None, X, y, sample_weight)
            models.append(model)
        for model in models:
            model._forget_start()
        return list(reversed(models)) if parameter == "alpha" else models

    @abstractmethod
    def _fit_after(self, last: Self | None, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Fit to rows, from the answer of another fit to them."""

    @abstractmethod
    def _forget_start(self) -> None:
        """Drop what a next fit would start from."""


class FitsFromAttributes(FitsAlongPenalty):
    """Learners with ``warm_start``, which start from their own attributes."""

    warm_start: Any

    def _fit_after(self, last: Self | None, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        given = self.warm_start
        if last is not None:
            for name, value in vars(last).items():
                if name.endswith("_"):
                    setattr(self, name, value)
            self.warm_start = True
        self.fit(X, y, sample_weight)
        self.warm_start = given

    def _forget_start(self) -> None:
        """The attributes are what was learned."""


class FitsFromSolutions(FitsAlongPenalty):
    """Learners that solve one or several problems of regularised risk."""

    # Solutions that a solve starts from, and replaces by its own; None outside of a path.
    _solutions: list[RiskValue] | None = None

    def _fit_after(self, last: Self | None, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._solutions = [] if last is None else list(last._solutions or [])
        try:
            self.fit(X, y, sample_weight)
        except BaseException:
            del self._solutions
            raise

    def _starts(self, count: int) -> list[RiskValue | None]:
        """What each of ``count`` problems starts from."""
        known = self._solutions or []
        return list(known) if len(known) == count else [None] * count

    def _solved(self, solutions: list[RiskValue]) -> None:
        """Remember the solutions along a path."""
        if self._solutions is not None:
            self._solutions = solutions

    def _forget_start(self) -> None:
        del self._solutions
