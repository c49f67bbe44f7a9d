"""Support vector machines that learn the weights of the terms of their kernel."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer._errors import ParameterError, warn_user
from mercer._types import Matrix, Positions, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats
from mercer.engine import memory
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import is_usable
from mercer.estimators.shared.terms import is_sum, terms_of
from mercer.estimators.shared.weights import check_svm_weight, fit_weighted_kernel
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import Kernel
from mercer.kernels.inputs import Rows
from mercer.solvers.linear.multiple_kernels import KernelSum
from mercer.solvers.solution import Certificate, Status
from mercer.solvers.svm.kernel_weights import KernelWeights, LevelMethod, Machine

# Rounding leaves no smaller relative gap.
_LEAST_GAP = 1e-9
# The last machine has a tolerance of its conditions: its gap may be a few times that of the weights.
_FAR = 10.0
_NO_DIGITS = "Products of C and sample weights that are very large leave them no digits: lower these."

LEARNED_WEIGHTS = Fitted(
    {"weights_": Floats("terms", least=0), "term_scales_": Floats("terms", least=0), "n_machines_": Count()}
)
"""What a machine with learned weights of kernels states of a fit."""


@dataclass(frozen=True, eq=False)
class _WeightedSum:
    """The matrix of the kernel with its weights, which the search has left."""

    gram: PrecomputedGram

    def matrix(self, kernel: Kernel) -> PrecomputedGram:
        """Return it; the fit has no other kernel."""
        return self.gram


class WeightedTerms(KernelEstimator, ABC):
    """Mixin, before a support vector machine: its kernel becomes the weighted sum of the terms."""

    weights_: Vector
    term_scales_: Vector
    n_machines_: int
    certificate_: Certificate
    fit_intercept: Any
    tol: Any
    approximation: Any
    # A fit evaluates each term, and the kernel with its weights is the kernel of this fit alone.
    shares_matrices = False

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each value of one parameter, each with its own weights.

        Parameters
        ----------
        parameter : str
        values : sequence of float
        X, y, sample_weight
            As for ``fit``.

        Returns
        -------
        list of fitted estimators
        """
        return [clone(self).set_params(**{parameter: value}).fit(X, y, sample_weight) for value in values]

    @abstractmethod
    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """The rows and their targets, checked."""

    @abstractmethod
    def _squares(self, inner: Any, terms: list[Matrix]) -> Vector:
        """``beta' K_m beta`` of a fitted machine for each term, summed over its problems."""

    @abstractmethod
    def _inner(self) -> Any:
        """The machine for a precomputed matrix, which starts from its last solution."""

    def _fit_kernel(self, X: Any, *, intercept: bool, gamma: Any = None) -> Any:
        """As the base does, and then with the weights, where these are known."""
        rows = super()._fit_kernel(X, intercept=intercept, gamma=gamma)
        weights = vars(self).get("weights_")
        if weights is not None and self.kernel_ is not None and len(weights) > 1:
            parts = zip(weights / self.term_scales_, terms_of(self.kernel_), strict=True)
            self.kernel_ = functools.reduce(operator.add, [float(w) * term for w, term in parts if w > 0])
        return rows

    @contextmanager
    def _learned_weights(self, X: Any, y: Any, sample_weight: Any) -> Iterator[None]:
        """Learn the weights; in the block the machine is fitted, on the weighted sum of the matrices of the search."""
        if self.is_on_landmarks:
            raise ParameterError(
                f"{type(self).__name__} learns weights from the matrices of all rows, so approximation must be None, "
                f"but is {self.approximation!r}. Pass None; or learn the weights on a sample, and fit an SVC or SVR "
                "with kernel_ to all rows."
            )
        with memory.track() as account, ExitStack() as stack:
            result = self._learn_weights(X, y, sample_weight, stack)
            try:
                yield
            finally:
                if "_matrices" in vars(self):
                    del self._matrices
        self._with_bound(result, account.peak)

    def _learn_weights(self, X: Any, y: Any, sample_weight: Any, stack: ExitStack) -> KernelWeights | None:
        """Set ``weights_`` and ``term_scales_``, and the matrix of a fit to all rows; None if there is one term."""
        for name in ("weights_", "term_scales_"):
            if hasattr(self, name):
                delattr(self, name)
        self.n_machines_ = 0
        if not is_sum(self.kernel):
            self.weights_ = self.term_scales_ = np.ones(1)
            return None
        X, y = self._checked(X, y)
        weight = check_svm_weight(sample_weight, X)
        fit_weighted_kernel(self, X, weight, intercept=bool(self.fit_intercept))
        rows = np.flatnonzero(weight)
        n = len(rows)
        stack.enter_context(memory.reserve(8 * n * n, "the weighted sum of the kernel matrices"))
        mixed = np.empty((n, n))
        with ExitStack() as terms:
            matrices = self._term_matrices(X, rows, terms, weight[rows])
            result = self._descend(matrices, y[rows], weight[rows], mixed)
            self.weights_, self.n_machines_ = result.weights / result.weights.sum(), result.iterations
            matrices.weighted(self.weights_, mixed)
        if n == X.shape[0]:
            self.take_matrices_from(_WeightedSum(PrecomputedGram(mixed)))
        return result

    def _term_matrices(self, X: Any, rows: Positions, stack: ExitStack, weight: Vector) -> KernelSum:
        """The matrices of the terms over the rows with a weight, with a mean diagonal of one."""
        assert self.kernel_ is not None
        some = Rows(X if len(rows) == X.shape[0] else X[rows])
        grams = [Gram(term, some, dtype=np.float64, n_jobs=self.n_jobs) for term in terms_of(self.kernel_)]
        matrices = KernelSum.of(grams, stack)
        self.term_scales_ = matrices.scales(weight)
        for matrix, scale in zip(matrices.terms, self.term_scales_, strict=True):
            matrix /= scale
        return matrices

    def _descend(self, terms: KernelSum, y: Any, weight: Vector, mixed: Matrix) -> KernelWeights:
        inner = self._inner()

        def solve(weights: Vector) -> Machine:
            inner.fit(terms.weighted(weights, mixed), y, weight)
            squares = self._squares(inner, list(terms.terms))
            certificate = inner.certificate_
            return Machine(certificate.primal, certificate.dual + 0.5 * float(weights @ squares), squares)

        result = LevelMethod(tol=max(float(self.tol), _LEAST_GAP)).minimise(solve, terms.size)
        if not result.relative_gap <= max(float(self.tol), _LEAST_GAP):
            warn_user(
                f"{type(self).__name__}: the weights of the kernels have a relative duality gap of "
                f"{result.relative_gap:.1e} after {result.iterations} machines, above tol = {self.tol:g}; raise tol, "
                f"or lower it if the machines themselves are not accurate enough. {_NO_DIGITS}",
                ConvergenceWarning,
            )
        return result

    def _with_bound(self, result: KernelWeights | None, peak_bytes: int) -> None:
        """Let the certificate speak of the weights as well: its dual objective bounds the value for all of them.

        With a gap far above the tolerance the fit has not converged, although the last machine met its own tolerance.
        """
        certificate = replace(self.certificate_, peak_bytes=peak_bytes)
        if result is not None and certificate.convex:
            certificate = replace(certificate, dual=min(result.lower, certificate.dual))
            tol = max(float(self.tol), _LEAST_GAP)
            if certificate.relative_gap > _FAR * tol:
                if certificate.status is Status.converged:
                    most = result.iterations >= LevelMethod.max_iter
                    certificate = replace(certificate, status=Status.iteration_limit if most else Status.stalled)
                self.fit_status_ = 1
                if result.relative_gap <= tol:
                    warn_user(
                        f"{type(self).__name__}: the machine with the weights of the kernels has the objective "
                        f"{certificate.primal:.4g}, and for other weights and machines it could be as low as "
                        f"{certificate.dual:.4g}, a relative gap of {certificate.relative_gap:.1e} with tol = "
                        f"{self.tol:g}. {_NO_DIGITS}",
                        ConvergenceWarning,
                    )
        self.certificate_ = certificate


def plain(model: WeightedTerms, kind: type, **changes: Any) -> Any:
    """A machine of another class with the parameters of a model, for precomputed matrices."""
    parameters = model.get_params(deep=False)
    parameters |= {"kernel": "precomputed", "warm_start": True, "verbose": False} | changes
    if model.kernel_ is not None and not is_usable(model.kernel_, bool(model.fit_intercept)):
        # Warnings about the kernel were given for the sum.
        parameters["allow_indefinite"] = True
    return clone(kind(**parameters))
