"""Fits for several values of a penalty, each from the answer for its neighbour."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._types import RowsLike
from mercer.estimators.shared.base import KernelEstimator
from mercer.solvers.risk.values import RiskValue


class Continuation(ABC):
    """How a learner starts from the answer for another penalty; the learner is an argument of each method."""

    @abstractmethod
    def fit_after(self, model: Any, last: Any | None, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit to rows, from the answer of another fit to them."""

    @abstractmethod
    def forget(self, model: Any) -> None:
        """Drop what a next fit would start from."""

    def fit_along(self, model: Any, parameter: str, values: Sequence[float], X: Any, y: Any, weight: Any) -> list[Any]:
        """A fitted copy for each value of the penalty, from the strongest penalty to the weakest."""
        models: list[Any] = []
        # A large alpha is a strong penalty, and a large C a weak one.
        weaker = list(reversed(values)) if parameter == "alpha" else list(values)
        for value in weaker:
            copied = clone(model).set_params(**{parameter: value}).take_matrices_from(model._matrices)
            self.fit_after(copied, models[-1] if models else None, X, y, weight)
            models.append(copied)
        for fitted in models:
            self.forget(fitted)
        return list(reversed(models)) if parameter == "alpha" else models


class FromAttributes(Continuation):
    """Of learners with ``warm_start``, which start from their own attributes."""

    def fit_after(self, model: Any, last: Any | None, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit with the attributes of the other fit as a warm start."""
        given = model.warm_start
        if last is not None:
            for name, value in vars(last).items():
                if name.endswith("_"):
                    setattr(model, name, value)
            model.warm_start = True
        model.fit(X, y, sample_weight)
        model.warm_start = given

    def forget(self, model: Any) -> None:
        """The attributes are what was learned."""


class FromSolutions(Continuation):
    """Of learners that solve one or several problems of regularised risk.

    Along a path a learner has the attribute ``_solutions``: what it starts from, and then its own solutions.
    """

    def fit_after(self, model: Any, last: Any | None, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit with the solutions of the other fit at hand."""
        model._solutions = [] if last is None else list(last._solutions)
        try:
            model.fit(X, y, sample_weight)
        except BaseException:
            del model._solutions
            raise

    def forget(self, model: Any) -> None:
        """Drop the solutions."""
        del model._solutions

    def starts(self, model: Any, count: int) -> list[RiskValue | None]:
        """What each of ``count`` problems starts from."""
        known = getattr(model, "_solutions", [])
        return list(known) if len(known) == count else [None] * count

    def keep(self, model: Any, solutions: list[RiskValue]) -> None:
        """Remember the solutions along a path."""
        if hasattr(model, "_solutions"):
            model._solutions = solutions


class FitsAlongPenalty(KernelEstimator):
    """Base of learners whose solver starts from an answer for another penalty."""

    _continuation: ClassVar[Continuation]

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
        if self.is_on_landmarks:
            return fitted_alone(self, parameter, values, X, y, sample_weight)
        return self._continuation.fit_along(self, parameter, values, X, y, sample_weight)


def fitted_alone(learner: Any, parameter: str, values: Sequence[float], X: Any, y: Any, weight: Any) -> list[Any]:
    """A fitted copy for each value of a parameter, each from the start."""
    return [clone(learner).set_params(**{parameter: value}).fit(X, y, weight) for value in values]
