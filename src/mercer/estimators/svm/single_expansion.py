"""Base of the machines with one expansion, ``f(x) = sum_i beta_i k(x_i, x) + b``."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from mercer._errors import MercerWarning, warn_user
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats, Is, Lengths, Whole, Words
from mercer.engine import memory
from mercer.estimators.shared.along import fitted_alone
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.certificates import warn_if_stopped
from mercer.estimators.shared.expansion import (
    KernelExpansion,
    coef_of,
    feature_map_of,
    norm_of,
    of_support,
    precision_of,
)
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.layout import dense, laid_out_as
from mercer.estimators.shared.parameters import require_number
from mercer.estimators.shared.restricted_risk import forget, of_all_rows
from mercer.estimators.shared.statements import Coefficients, SupportRows, training_shape
from mercer.estimators.shared.weights import check_svm_weight, fit_weighted_kernel, weighted_gram
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.svm.copies import Copies
from mercer.estimators.svm.solvers import solver_of
from mercer.gram.protocol import GramMatrix
from mercer.solvers import evaluate
from mercer.solvers.solution import Certificate, Solution
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.smo import STORED
from mercer.solvers.svm.solver import BoxSolver, Start
from mercer.solvers.svm.warm_starts import WarmStarts, feasible, outward

# A fit with a gap of this share of its objective is not one to the optimum.
_FAR = 0.1
# Targets whose median is so many times their spread are centred: gradients in float32 would lose their digits.
_OFF_CENTRE = 10.0


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of a fit for all rows, also those of weight 0: ``weights`` beta and ``residual`` ``y - f``, (n,).

    ``offsets`` are the multipliers of the equality constraints, for centred targets, and ``gram`` is K of all rows.
    """

    weights: Vector
    residual: Vector
    offsets: tuple[float, ...]
    gram: GramMatrix


class SingleExpansion(KernelEstimator, ABC):
    """Base of the machines with one expansion; a subclass states its problem and interprets the result.

    Besides the parameters of :class:`KernelEstimator` the constructor must have ``tol, cache_size, max_iter, verbose,
    allow_indefinite, warm_start, stop, solver``.
    """

    tol: Any
    cache_size: Any
    max_iter: Any
    verbose: Any
    warm_start: Any
    stop: Any
    solver: Any
    C: Any
    dual_coef_: Any
    intercept_: Vector
    certificate_: Certificate
    shares_matrices = True
    most_shared_rows = STORED
    # Leads from fit to fit along a path over the same rows, weights and kernel.
    _warm_starts: WarmStarts | None = None
    _fitted = Fitted(
        {
            "shape_fit_": Lengths(training_shape),
            "support_": Whole("s", below="n"),
            "support_vectors_": SupportRows("s"),
            "n_support_": Whole("1", total="s"),
            "dual_coef_": Coefficients("1, s"),
            "intercept_": Floats("1"),
            "n_iter_": Count(),
            "certificate_": Is(Certificate),
            "fit_status_": Count(most=1),
        }
    )

    support_ = of_all_rows("support_", "Landmarks are at landmark_indices_, and in support_vectors_.")
    n_support_ = of_all_rows("n_support_", "The number of landmarks is that of the rows of support_vectors_.")
    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each value of one parameter; each solve starts from an answer for a neighbouring value.

        Parameters
        ----------
        parameter : str
            ``"C"``, ``"nu"`` or ``"epsilon"``.
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
        models = [clone(self).set_params(**{parameter: value}) for value in values]
        with ExitStack() as stack:
            starts: dict[int, WarmStarts] = {}
            for number, before in outward(len(models)):
                model = models[number].take_matrices_from(self._matrices)
                model._warm_starts = starts[number] = WarmStarts(stack) if before is None else copy.copy(starts[before])
                try:
                    model.fit(X, y, sample_weight)
                finally:
                    del model._warm_starts
        return models

    def _certificate_of(
        self,
        coefficients: GivenCoefficients,
        X: CheckedRows,
        targets: Vector,
        sample_weight: ArrayLike | None,
        *,
        intercept: bool,
    ) -> Certificate:
        """The certificate of coefficients for the problem on checked rows."""
        weight = check_svm_weight(sample_weight, X)
        used = np.flatnonzero(weight)
        beta = coefficients.weights(1, X.shape[0], weight)[0]
        offsets = coefficients.offsets(1, allowed=intercept)
        gram, convex = weighted_gram(self, X, weight, intercept=intercept)
        problem = self._problem(gram, targets[used], weight[used], convex)
        return evaluate.of_box(problem, beta[used], None if offsets is None else float(offsets[0]))

    @abstractmethod
    def _problem(self, gram: GramMatrix, targets: Vector, weight: Vector, convex: bool) -> BoxQP:
        """Return the dual problem over the rows with a weight, with each row once or twice."""

    def _bound(self, weight: Vector) -> Vector:
        """Return the bounds on the coefficients of rows with these weights."""
        return np.asarray(self.C * weight)

    def _learn(self, X: CheckedRows, targets: Vector, weight: Vector, *, intercept: bool = True) -> Learned:
        """Fit the kernel, solve, and set all attributes that the machines share."""
        start_time = time.perf_counter()
        last, warm_starts = self._last_weights(X.shape[0]), self._warm_starts
        used = np.flatnonzero(weight)
        side = fit_weighted_kernel(self, X, weight, intercept=intercept)
        whole: Any = self._gram(side, dtype=None if self.kernel_ is None else np.float64)
        copies = Copies.find(X, used, targets[used], self.kernel_)
        rows = used if copies is None else used[copies.first]
        counted = weight[used] if copies is None else copies.summed(weight[used])
        gram = whole if len(rows) == X.shape[0] else whole.restrict(rows, rows)
        # Along a path the matrix does not change, so it is examined once.
        verdict = warm_starts.convex if warm_starts else None
        convex = self._is_convex(gram, rows, X.dtype, intercept=intercept) if verdict is None else verdict
        with memory.track() as account:
            centre = centre_of(targets[used]) if intercept else 0.0
            problem = self._problem(gram, targets[rows] - centre, counted, convex)
            if last is not None:
                last = last[used] if copies is None else copies.summed(last[used])
            start = Start(None if last is None else feasible(last, problem))
            if warm_starts:
                start = replace(warm_starts.start(problem, feasible), matrix=warm_starts.matrix(problem.gram))
            with naming_what_fits(self, X.shape[0]):
                solution = self._solve(problem, solver_of(self), start)
        value = solution.value
        if warm_starts:
            warm_starts.keep(problem, value)
        offset = sum(value.offsets) / len(value.offsets) if value.offsets else 0.0
        weights = np.zeros(X.shape[0])
        # A problem that states each row twice shares the row's weight between the two.
        beta, gradient = value.beta.reshape(-1, len(rows)).sum(axis=0), value.gradient[: len(rows)]
        if copies is not None:
            bound = self._bound(weight[used])
            beta, gradient = copies.share(beta, -bound, bound), gradient[copies.owner]
        weights[used] = beta
        self._keep(X, weights, offset + centre)
        residual = np.empty(X.shape[0])
        residual[used] = gradient - offset
        idle = np.flatnonzero(weight == 0)
        if len(idle):
            values = whole.restrict(idle, self.support_) @ weights[self.support_]
            residual[idle] = targets[idle] - centre - values - offset
        self.n_iter_ = solution.certificate.iterations
        self.certificate_ = replace(
            solution.certificate, seconds=time.perf_counter() - start_time, peak_bytes=account.peak
        )
        return Learned(weights, residual, value.offsets, whole)

    def _solve(self, problem: BoxQP, solver: BoxSolver, start: Start) -> Solution[BoxQPValue, Vector]:
        """Solve the dual problem."""
        return solver.solve(problem, start)

    def _last_weights(self, n: int) -> Vector | None:
        """Return the weights of the last fit, (n,), if this one starts from them, else None."""
        if not self.warm_start or "support_" not in vars(self) or self.shape_fit_[0] != n:
            return None
        weights = np.zeros(n)
        weights[self.support_] = dense(self.dual_coef_)[0]
        return weights

    def _keep(self, X: CheckedRows, weights: Vector, offset: float) -> None:
        """Set the attributes with the expansion."""
        forget(self, "landmark_indices_")
        self.support_ = np.flatnonzero(weights).astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self.kernel_ is None else X[self.support_]
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.dual_coef_ = laid_out_as(X, weights[None, self.support_])
        self.intercept_ = np.array([offset])
        self.shape_fit_ = X.shape

    def _report(self, more: Callable[[], str] = str) -> None:
        """Set ``fit_status_``; warn if the solver stopped early, with more words."""
        self.fit_status_ = int(warn_if_stopped(self, more))

    def _values(self, X: RowsLike) -> Vector:
        """f at the rows of ``X``, (m,), in float64."""
        X = self._new_rows(X)
        return self._expansion.values(X, precision_of(self))[:, 0]

    @property
    def _expansion(self) -> KernelExpansion:
        return of_support(self)


OF_ALL_ROWS = ("support_", "n_support_")
"""What only a fit to all rows has."""

TUBE = Fitted(
    {
        "slacks_above_": Floats("n", least=0),
        "slacks_below_": Floats("n", least=0),
        "roles_": Words("n", ("outside", "inside", "on")),
    }
)
"""Statements about a fit of the regressions with an epsilon-tube."""


class TubeModel(Protocol):
    """The interface of a regression with an epsilon-tube for the functions below."""

    C: Any
    tol: Any
    solver: Any
    certificate_: Certificate
    slacks_above_: Vector
    slacks_below_: Vector
    roles_: NDArray[np.str_]

    def _bound(self, weight: Vector) -> Vector: ...


def centre_of(targets: Vector) -> float:
    """Return what targets are lessened by before a solve with an offset, which then takes it up: 0 unless they need it.

    Repeated rows do not change it.

    Examples
    --------
    >>> centre_of(np.array([0.0, 1.0, 2.0])), centre_of(np.array([1e7, 1e7 + 1, 1e7 + 2]))
    (0.0, 10000001.0)
    """
    ordered = np.unique(targets)
    low, median, high = ordered[np.array([1, 2, 3]) * (len(ordered) - 1) // 4].tolist()
    return median if abs(median) > _OFF_CENTRE * (high - low) else 0.0


def check_cost(model: TubeModel, or_word: str = "") -> None:
    """Raise unless ``C`` is a finite number above 0; ``or_word`` names the word that it may be."""
    advice = ""
    if isinstance(model.C, float) and np.isposinf(model.C):
        advice = "Use a large C, such as 1e6, for residuals that are almost all inside the tube."
    require_number(model, "C", f"a finite number above 0{or_word}", lambda value: 0 < value < np.inf, advice)


def describe_tube(model: TubeModel, learned: Learned, width: float, weight: Vector) -> None:
    """Set the slacks and roles of the rows."""
    model.slacks_above_ = np.maximum(learned.residual - width, 0.0)
    model.slacks_below_ = np.maximum(-learned.residual - width, 0.0)
    model.roles_ = roles(learned.weights, model._bound(weight), model.slacks_above_ + model.slacks_below_)


def roles(weights: Vector, bound: Vector, slack: Vector) -> NDArray[np.str_]:
    """``"outside"`` for weights at their bound with positive slack, else ``"inside"`` for weights of 0, or ``"on"``.

    Examples
    --------
    >>> roles(np.array([0.0, 0.5, -1.0]), np.ones(3), np.array([0.0, 0.0, 0.2])).tolist()
    ['inside', 'on', 'outside']
    """
    outside = (np.abs(weights) >= bound) & (slack > 0)
    return np.where(outside, "outside", np.where(weights == 0, "inside", "on"))


def warn_if_tol_is_coarse(model: TubeModel, y: Vector, weight: Vector) -> None:
    """Warn if ``tol``, which is in units of y, ended a fit to targets that differ by less, far from the optimum."""
    used = y[weight > 0]
    differ = float(np.ptp(used)) if len(used) else 0.0
    gap = model.certificate_.relative_gap
    if isinstance(model.solver, str) and 0.0 < differ <= model.tol and gap > _FAR:
        warn_user(
            f"{type(model).__name__}: the targets differ by {differ:.3g} at most, and tol={model.tol:g}, which is in "
            f"units of y, ended the fit with a duality gap of {gap:.0%} of the objective. Lower tol, or scale y.",
            MercerWarning,
        )
