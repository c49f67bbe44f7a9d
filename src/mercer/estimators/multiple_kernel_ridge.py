"""Ridge regression with learned weights of several kernels."""

from __future__ import annotations

import functools
import operator
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from mercer._errors import ParameterError
from mercer._types import Matrix, Positions, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Either, Floats, Is, Word
from mercer.engine import memory, threads
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of
from mercer.estimators.shared.parameters import require_choice, require_flags, require_seed, require_whole
from mercer.estimators.shared.penalties import check_penalties
from mercer.estimators.shared.statements import FitRows
from mercer.estimators.shared.targets import warn_of_constant, warn_of_outlier
from mercer.estimators.shared.terms import terms_of
from mercer.estimators.shared.weights import check_sample_weight
from mercer.gram import Gram
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel
from mercer.kernels.convert import KernelLike
from mercer.kernels.inputs import Rows
from mercer.solvers.gaussian.left_out_gradient import LeftOutObjective, LeftOutProblem
from mercer.solvers.gaussian.search import MultiStart, Search
from mercer.solvers.linear.multiple_kernels import CandidateSearch, KernelSum
from mercer.solvers.linear.penalty_curves import HIGHEST, LOWEST
from mercer.solvers.solution import Certificate

# The range of a weight in a search by the gradient, in units of equal weights; the least of it counts as zero.
_LEAST, _MOST = 1e-6, 1e3
_TOLERANCE = 1e-6
# Starts of that search are chosen on so many rows, among these penalties.
_START_ROWS = 400
_PENALTIES = (1e-3, 1e-2, 1e-1)
# Draws from flat and sparse Dirichlet distributions take turns.
_CONCENTRATIONS = (1.0, 0.1)


class MultipleKernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""Kernel ridge regression in which the weights of the terms of a sum of kernels are learned.

    .. math:: k = \sum_m \gamma_m k_m, \qquad \gamma_m \ge 0, \qquad
              \min_f \sum_i w_i (y_i - f(x_i))^2 + \alpha \|f\|^2

    The weights and the penalty have the least mean squared error of exact leave-one-out predictions.

    Parameters
    ----------
    kernel : Kernel, str, scikit-learn kernel or callable, default="RBF(1.0) + Linear()"
        A sum, whose terms :math:`k_m` get weights: ``RBF(1.0) + RBF(10.0) + Linear()``, also as text. The terms may
        compare different columns (``RBF(1.0).on([0, 1]) + Spectrum(3).on([2])``). Parameters of the terms are kept. A
        kernel that is not a sum, or ``"precomputed"``, is one term.
    search : {"gradient", "random"}, default="gradient"
        ``"gradient"`` learns weights that all targets share, by the gradient of the leave-one-out error. ``"random"``
        draws weights from the simplex, and each target keeps its own best draw and penalty: for many targets, which
        all share one reduction of the weighted sum for each draw.
    n_iter : int, default=100
        Number of draws for ``search="random"``; the first one has equal weights.
    alphas : array-like, optional
        Penalties to choose from, for kernels with a mean diagonal of 1. None for a grid that reaches from 1e-9 to 10
        times the sum of the eigenvalues.
    alpha_per_target : bool, default=False
        Whether each target has its own penalty with ``search="gradient"``.
    random_state : int, RandomState or None, default=None
        Seed of the draws.
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float
        For a kernel given by name.
    allow_indefinite : bool or "warn", default="warn"
        For a term that is not positive semi-definite, as for :class:`KernelRidge`.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_terms,) or (n_terms, n_targets)
        :math:`\gamma_m`, for terms divided by the mean of their diagonal on the training rows; they sum to one.
    term_scales_ : ndarray of shape (n_terms,)
        The means of the diagonals.
    alpha_ : ndarray of shape (n_targets,)
        The penalties.
    loo_errors_ : ndarray of shape (n_targets,)
        Mean squared leave-one-out errors.
    search_ : Search
        For ``search="gradient"``: the search over the logarithms of the weights and of alpha.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients c.
    X_fit_ : ndarray, csr_matrix or objects of shape (n_samples, n_features)
        The training rows; for ``"precomputed"``, the matrix.
    kernel_ : Kernel or None
        The sum without weights.
    certificate_ : Certificate
        Objectives (sums over the targets) for the chosen weights, the largest relative residual, time and memory.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    KernelRidge : With ``kernel_params="loo"`` it learns the parameters of the terms together with factors of them.
    GaussianProcessRegressor : With ``kernel=1.0 * k1 + 1.0 * k2 + White(0.1)`` the evidence learns factors of the
        terms, their parameters and the noise.

    Notes
    -----
    Integer weights are the same as repeated rows. The matrices of the terms are stored: :math:`8 n^2` bytes for each.
    A draw takes one reduction to a band, about :math:`8 n^3 / 3` operations, and :math:`2 n^2` operations for each
    target and penalty.

    References
    ----------
    T. Dupre la Tour, M. Eickenberg, A. O. Nunez-Elizalde and J. L. Gallant, "Feature-space selection with banded ridge
    regression", NeuroImage 264 (2022), for the random search.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MultipleKernelRidge
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> kernel = RBF(1.0).on([0]) + RBF(1.0).on([1])
    >>> model = MultipleKernelRidge(kernel).fit(X, np.sin(2 * X[:, 1]))
    >>> bool(model.weights_[1] > 0.99)
    True
    """

    certificate_: Certificate

    _fitted = Fitted(
        {
            "X_fit_": FitRows("n"),
            "dual_coef_": Either(Floats("n"), Floats("n, targets")),
            "_weights": Floats("m, targets", least=0),
            "term_scales_": Floats("m", least=0),
            "alpha_": Floats("targets", least=0),
            "loo_errors_": Floats("targets", least=0),
            "certificate_": Is(Certificate),
        },
        {"search_": Is(Search)},
        parameters={"search": Word(("gradient", "random"))},
        rules=(
            ("its weights are not those of the terms of the kernel", lambda m: len(m._weights) == len(m._parts)),
            ("its targets are not one", lambda m: m.dual_coef_.ndim == 2 or len(m.alpha_) == 1),
        ),
    )

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def __init__(
        self,
        kernel: KernelLike = "RBF(1.0) + Linear()",
        *,
        search: str = "gradient",
        n_iter: int = 100,
        alphas: Any = None,
        alpha_per_target: bool = False,
        random_state: int | np.random.RandomState | None = None,
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        allow_indefinite: bool | str = "warn",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.search = search
        self.n_iter = n_iter
        self.alphas = alphas
        self.alpha_per_target = alpha_per_target
        self.random_state = random_state
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.allow_indefinite = allow_indefinite
        self.n_jobs = n_jobs

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the weights of the kernels and the coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or other rows
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weights, 0 or more.

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
            If the data or a parameter cannot be used, or the problem exceeds the memory budget.
        """
        start_time = time.perf_counter()
        require_choice(self, "search", ("gradient", "random"))
        require_flags(self, "alpha_per_target")
        require_whole(self, "n_iter", "a whole number of draws, at least 1")
        require_seed(self)
        penalties = None if self.alphas is None else check_penalties(self.alphas)
        X, y = self._check_X_and_numbers(X, y, several=True)
        weight = np.ones(len(y)) if sample_weight is None else check_sample_weight(sample_weight, X)
        warn_of_constant(y, None if sample_weight is None else weight)
        warn_of_outlier(y, None if sample_weight is None else weight)
        self._fit_kernel(X, intercept=False)
        if hasattr(self, "search_"):
            del self.search_
        with memory.track() as account, ExitStack() as stack:
            self._learn(X, y, weight, penalties, stack)
        self.certificate_ = replace(
            self.certificate_, seconds=time.perf_counter() - start_time, peak_bytes=account.peak
        )
        return self

    def predict(self, X: RowsLike) -> NDArray[np.floating]:
        """Predictions, of shape (n,) or (n, n_targets).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or other rows
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (n, n_samples).
        """
        X = self._new_rows(X)
        coefficients = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        values = np.zeros((X.shape[0], coefficients.shape[1]))
        for gram, weights in zip(self._terms(X, self.X_fit_), self._weights / self.term_scales_[:, None], strict=True):
            if weights.any():
                values += np.asarray(gram @ (coefficients * weights), dtype=np.float64)
        dtype = X.dtype if getattr(X, "dtype", None) == np.float32 else np.float64
        return values.reshape(-1, *self.dual_coef_.shape[1:]).astype(dtype, copy=False)

    @property
    def weights_(self) -> Matrix:
        """The weights of the terms, (n_terms,), or (n_terms, n_targets) if each target has its own."""
        return self._weights[:, 0] if self.dual_coef_.ndim == 1 or self.search == "gradient" else self._weights

    @property
    def _expansion(self) -> KernelExpansion:
        """The functions; an AttributeError if each target has a kernel of its own."""
        if (self._weights != self._weights[:, :1]).any():
            raise AttributeError("each target has weights of its own, and so another kernel; use predict.")
        factors = self._weights[:, 0] / self.term_scales_
        coefficients = self.dual_coef_.reshape(len(self.dual_coef_), -1).T
        if len(factors) == 1:
            return KernelExpansion(self.kernel_, self.X_fit_, factors[0] * coefficients, n_jobs=self.n_jobs)
        terms = zip(factors, self._parts, strict=True)
        kernel = functools.reduce(operator.add, [float(factor) * term for factor, term in terms if term and factor > 0])
        return KernelExpansion(kernel, self.X_fit_, coefficients, n_jobs=self.n_jobs)

    @property
    def _parts(self) -> tuple[Kernel | None, ...]:
        """The terms of the kernel; one None for ``"precomputed"``."""
        return (None,) if self.kernel_ is None else terms_of(self.kernel_)

    def _terms(self, X: Any, Z: Any = None) -> list[GramMatrix]:
        """The Gram matrices of the terms."""
        if self.kernel_ is None:
            return [self._gram(X, Z, dtype=np.float64)]
        left = Rows(X)
        right = None if Z is None else Rows(Z)
        return [Gram(term, left, right, dtype=np.float64, n_jobs=self.n_jobs) for term in terms_of(self.kernel_)]

    def _learn(self, X: Any, y: Matrix, weight: Vector, penalties: Vector | None, stack: ExitStack) -> None:
        rows = np.flatnonzero(weight)
        grams: list[Any] = self._terms(X)
        if len(rows) < len(y):
            grams = [gram.restrict(rows, rows) for gram in grams]
        targets, weight = y.reshape(len(y), -1)[rows], weight[rows]
        # Of indefinite terms the sum may still be definite, but not for all weights.
        convex = all(self._is_convex(gram, rows, np.float64, intercept=False) for gram in grams)
        terms = KernelSum.of(grams, stack)
        self.term_scales_ = terms.scales(weight)
        for term, scale in zip(terms.terms, self.term_scales_, strict=True):
            term /= scale
        apart = self.search == "random" or bool(self.alpha_per_target)
        candidates = self._draws(terms.size) if self.search == "random" else self._descend(terms, targets, weight)
        given = None if penalties is None else tuple(penalties.tolist())
        solution = CandidateSearch(apart, given, self.n_jobs).solve(terms, targets, weight, candidates, convex=convex)
        self._keep(X, y, rows, solution.value.coefficients)
        self._weights, self.alpha_ = solution.value.weights, solution.value.penalties
        self.loo_errors_, self.certificate_ = solution.value.errors, solution.certificate

    def _keep(self, X: Any, y: Matrix, rows: Positions, coefficients: Matrix) -> None:
        self.X_fit_ = X
        whole = np.zeros((len(y), coefficients.shape[1]))
        whole[rows] = coefficients
        self.dual_coef_ = whole.reshape(y.shape)

    def _draws(self, count: int) -> Matrix:
        """Points of the simplex, (n_iter, count)."""
        random = check_random_state(self.random_state)
        draws = [
            random.dirichlet(np.full(count, _CONCENTRATIONS[i % len(_CONCENTRATIONS)])) for i in range(self.n_iter - 1)
        ]
        return np.vstack([np.full((1, count), 1.0 / count), *draws])

    def _descend(self, terms: KernelSum, targets: Matrix, weight: Vector) -> Matrix:
        """The weights of the least leave-one-out error of all targets, (1, count)."""
        count = terms.size
        if count == 1:
            return np.ones((1, 1))
        equal = np.full(count, -np.log(count))
        own = np.column_stack([equal + np.log(_LEAST), equal + np.log(_MOST)])
        bounds = np.vstack([own, np.log(terms.n * np.array([[LOWEST, HIGHEST]]))])
        objective = LeftOutObjective(LeftOutProblem(terms, targets, weight), self.n_jobs)
        ascent = MultiStart(
            n_jobs=self.n_jobs, bytes_each=objective.bytes_each, what="leave-one-out search", tolerance=_TOLERANCE
        )
        with threads.workers(self.n_jobs):
            starts = self._starts(terms, targets, weight)
            searches = [ascent.maximise(objective, start, bounds) for start in starts]
        self.search_ = max(searches, key=lambda search: search.value)
        weights = np.exp(self.search_.theta[:count])
        weights[self.search_.theta[:count] <= own[:, 0] + 1e-9] = 0.0
        if not weights.any():
            raise ParameterError("no kernel lowers the leave-one-out error; all weights went to zero.")
        return np.asarray(weights[None] / weights.sum())

    def _starts(self, terms: KernelSum, targets: Matrix, weight: Vector) -> list[Vector]:
        """Logarithms of equal weights, and of most of the weight on the best single term, each with a penalty."""
        count = terms.size
        rows = np.arange(terms.n)
        if terms.n > _START_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(terms.n, _START_ROWS, replace=False))
        some = KernelSum([np.ascontiguousarray(term[np.ix_(rows, rows)]) for term in terms.terms])
        objective = LeftOutObjective(LeftOutProblem(some, targets[rows], weight[rows]), self.n_jobs)

        def best(candidates: Matrix) -> Vector:
            points = [np.log(np.append(c, penalty)) for c in candidates for penalty in _PENALTIES]
            return max(points, key=objective.value)

        single = np.full((count, count), 0.1 / (count - 1)) + (0.9 - 0.1 / (count - 1)) * np.eye(count)
        return [best(np.full((1, count), 1.0 / count)), best(single)]
