"""Estimation of the support of a distribution from one class."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats, Words
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.layout import read_only
from mercer.estimators.shared.parameters import require_number
from mercer.estimators.shared.weights import check_svm_weight
from mercer.estimators.svm.single_expansion import Learned, SingleExpansion, roles
from mercer.estimators.svm.solvers import check_solver, solver_of
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.one_class import solve_one_class
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.solver import BoxSolver, Start

# Roundings that add up in a decision value.
_ROUNDING = 16.0
# A row is far from the others if the rounding of its value is this many times that of theirs.
_FAR = 1e3


class OneClassSVM(OutlierMixin, SingleExpansion):
    r"""The region where most rows lie, with any kernel: rows outside it are outliers. Each solution has a certificate.

    With :math:`v_i` the sample weights it solves

    .. math:: \min_{w, \rho, \xi \ge 0} \tfrac12 \|w\|^2 - \nu \rho \sum_i v_i + \sum_i v_i \xi_i
              \quad\text{s.t.}\quad \langle w, \phi(x_i) \rangle \ge \rho - \xi_i

    through its dual, in which only the kernel appears:

    .. math:: \min_\alpha \tfrac12 \alpha^\top K \alpha
              \quad\text{s.t.}\quad 0 \le \alpha_i \le v_i,\; \sum_i \alpha_i = \nu \sum_i v_i,
              \qquad f(x) = \sum_i \alpha_i k(x_i, x) - \rho

    At most a fraction nu of the rows lies outside, and at least a fraction nu are support vectors. A weight
    counts repetitions exactly: a row of weight 3 gives the same region as the row three times, and a row of weight 0
    has no effect.

    Parameters
    ----------
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    tol : float, default=1e-3
        The violation of the optimality conditions at which the solver stops, in units of the decision function, or
        relative to rho where that is below 1, as it is for small kernel values: the region does not then depend on the
        unit of the columns. With ``stop="gap"`` also the relative duality gap. Up to 512 rows are solved to the
        precision of float64 for any ``tol``, if 200 steps per row suffice.
    nu : float, default=0.5
        Above 0 and at most 1.
    shrinking : bool, default=True
        Accepted for compatibility; the solver chooses its working sets by itself.
    cache_size : float, default=200
        Memory for stored kernel rows, in MB (of 2^20 bytes). More is used if most rows turn out to be support vectors
        and the whole kernel matrix fits the memory budget.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    max_iter : int, default=-1
        Maximum number of steps; -1 for no limit.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function
        is checked for this; if this is True, it counts as indefinite.
    warm_start : bool, default=False
        Start from the weights of the last fit if it had as many rows, row by row: they are clipped to the new bounds
        and scaled to the sums that the problem requires. Parameters, targets and rows may have changed.
        The solution is the same within ``tol``; it takes fewer steps if the problems are similar.
    stop : {"kkt", "gap"}, default="kkt"
        Whether ``tol`` bounds the violation of the optimality conditions alone, or the relative duality gap as well.
    solver : {"smo", "projected-gradient", "accelerated-projected-gradient"} or BoxSolver, default="smo"
        The projected gradients are for teaching: they reach the same solution, far more slowly. A value such as
        ``mercer.solvers.SMO(tol=1e-6)`` has its own ``tol``, ``stop``, ``max_iter``, ``cache_bytes``, ``n_jobs`` and
        ``verbose``, which replace those of this estimator.

    Attributes
    ----------
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``.
    n_support_ : ndarray of shape (1,)
        Their number.
    dual_coef_ : array or CSR of shape (1, n_sv)
        The weights of the expansion, :math:`\alpha_i`.
    intercept_ : ndarray of shape (1,)
        :math:`-\rho`.
    coef_ : array or CSR of shape (1, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these. CSR after a fit to CSR, as the two above.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,)
        :math:`\|w\|` in the feature space of any kernel.
    margin_ : ndarray of shape (1,)
        The distance of the boundary from the origin in feature space, ``offset_ / norm_``.
    offset_ : ndarray of shape (1,)
        :math:`\rho`, so that ``decision_function = score_samples - offset_``.
    slacks_ : ndarray of shape (n,)
        :math:`\xi`: how far each training row is outside, in units of the decision function.
    roles_ : ndarray of str of shape (n,)
        ``"inside"`` (weight zero), ``"on"`` the boundary, or ``"outside"`` (weight at its bound, with positive slack).
        A row of sample weight 0 is outside if its decision value is negative, else inside.
    certificate_ : Certificate
        Primal and dual objective, worst violation, steps, time and memory.
    n_iter_ : int
        Steps.
    fit_status_ : int
        0 if the tolerance was met, else 1.
    shape_fit_ : tuple
        Shape of X.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: rows or weights that cannot be used, an invalid parameter, a kernel that is not
        positive semi-definite, a problem that exceeds the memory budget.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` or rounding ended the fit before ``tol`` was met.

    Notes
    -----
    The scores of free support vectors are rho up to ``tol`` and rounding. The lowest of them is used as rho, so that
    rows on the boundary count as inside and at most a fraction nu of the training rows is predicted as -1. With
    ``nu=1`` every row is at its bound, any rho that is at least as large as all scores is optimal, and rho is the
    largest score.

    Source: Schoelkopf, Platt, Shawe-Taylor, Smola and Williamson (2001), "Estimating the support of a
    high-dimensional distribution", equations (5) to (11). The sum of the weights is nu n, as in LIBSVM, and not 1.

    Examples
    --------
    >>> from mercer import OneClassSVM
    >>> model = OneClassSVM(nu=0.4, gamma=0.1).fit([[0.0], [1.0], [1.5], [2.0], [2.5], [9.0]])
    >>> model.predict([[1.2], [7.0]]).tolist()
    [1, -1]
    >>> model.roles_.tolist()
    ['on', 'inside', 'inside', 'inside', 'on', 'outside']
    """

    _fitted = Fitted(
        {"offset_": Floats("1"), "slacks_": Floats("n", least=0), "roles_": Words("n", ("outside", "inside", "on"))}
    )

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
        warm_start: bool = False,
        stop: str = "kkt",
        solver: str | BoxSolver = "smo",
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite
        self.warm_start = warm_start
        self.stop = stop
        self.solver = solver

    def fit(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : ignored
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions. Rows of weight 0 or below are left out, negative ones with a
            warning.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._check_X(X, reset=True)
        weight = check_svm_weight(sample_weight, X)
        learned = self._learn(X, np.zeros(X.shape[0]), weight)
        margin = self._margin(X, learned, weight)
        self.intercept_ = self.intercept_ + margin
        self.offset_ = -self.intercept_
        self.slacks_ = np.maximum(learned.residual - margin, 0.0)
        self.roles_ = roles(learned.weights, weight, self.slacks_)
        self._report()
        return self

    def decision_function(self, X: RowsLike) -> Vector:
        """Return decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
            Positive inside, negative outside.
        """
        return self._values(X)

    def score_samples(self, X: RowsLike) -> Vector:
        """Return the decision values before the offset is subtracted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        return self._values(X) + self.offset_

    def predict(self, X: RowsLike) -> NDArray[np.intp]:
        """Return +1 for rows that are inside or on the boundary, -1 for the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of int of shape (m,)
        """
        return np.where(self._values(X) >= 0, 1, -1).astype(np.intp)

    @property
    def margin_(self) -> Vector:
        """``offset_ / norm_``, (1,): the distance in feature space of the boundary from the origin; 0 where w is 0."""
        norm = self.norm_
        return read_only(np.divide(self.offset_, norm, out=np.zeros(1), where=norm != 0))

    def _margin(self, X: CheckedRows, learned: Learned, weight: Vector) -> float:
        """By how much rho is lowered, so that rows on the boundary count as inside.

        Their decision values are zero up to the tolerance and rounding, whose sign means nothing.
        """
        tol = solver_of(self).tol
        left_open = np.minimum(learned.residual, tol)
        # A sum of alpha_i k(x_i, x) is rounded in units of its terms, that of float32 rows in float32. Each row has
        # its own rounding. That of a far row, above the tolerance and far above that of others, moves no boundary: the
        # sign of its value means nothing in any case.
        lengths = np.sqrt(np.abs(np.asarray(learned.gram.diagonal(), dtype=np.float64)))
        rounding = _ROUNDING * float(np.finfo(X.dtype).eps) * lengths * float(lengths @ learned.weights)
        rounding[rounding > max(tol * float(np.abs(self.intercept_[0])), _FAR * float(np.median(rounding)))] = 0.0
        # Rows whose weight may rise are inside at the optimum, and those of the largest weight may be on the boundary.
        inside = (learned.weights < weight) | (np.abs(learned.residual) <= rounding)
        return float((left_open + rounding)[inside].max(initial=0.0))

    def certificate_of(
        self,
        coefficients: GivenCoefficients,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Certificate:
        """Return the certificate of coefficients for the problem of a fit; see :func:`mercer.certify`.

        Parameters
        ----------
        coefficients : GivenCoefficients
            Laid out as ``dual_coef_`` and ``intercept_``.
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        Certificate
        """
        self._check_parameters()
        X = self._check_X(X, reset=True)
        return self._certificate_of(coefficients, X, np.zeros(X.shape[0]), sample_weight, intercept=True)

    def _check_parameters(self) -> None:
        check_solver(self)
        require_number(self, "nu", "above 0 and at most 1", lambda value: 0 < value <= 1)

    def _bound(self, weight: Vector) -> Vector:
        return weight

    def _problem(self, gram: GramMatrix, targets: Vector, weight: Vector, convex: bool) -> BoxQP:
        total = float(self.nu * weight.sum())
        return BoxQP(gram, targets, np.zeros(len(weight)), weight, totals=(total,), convex=convex)

    def _solve(self, problem: BoxQP, solver: BoxSolver, start: Start) -> Answer:
        """With a tolerance in proportion to small kernel values."""
        return solve_one_class(problem, solver, start)
