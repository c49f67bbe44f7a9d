"""Support vector regression that learns the width of its tube."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from mercer._registered import CommandLine
from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Number
from mercer.engine import memory
from mercer.estimators.shared.baseline import words_on_constant
from mercer.estimators.shared.parameters import require_number
from mercer.estimators.shared.targets import warn_of_constant
from mercer.estimators.shared.weights import check_svm_weight
from mercer.estimators.svm.single_expansion import (
    TUBE,
    SingleExpansion,
    check_cost,
    describe_tube,
    warn_if_tol_is_coarse,
)
from mercer.estimators.svm.solvers import check_solver
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.losses import EpsilonInsensitive
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.nu_tube import solve_nu_tube
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.solver import BoxSolver, Start


class NuSVR(RegressorMixin, SingleExpansion):
    r"""Support vector regression that learns the width of its tube, with any kernel; each solution has a certificate.

    It solves, with :math:`C_i = C \cdot \text{sample\_weight}_i`,

    .. math:: \min_{w, b, \varepsilon \ge 0, \xi^\pm \ge 0} \tfrac12 \|w\|^2
              + \nu \varepsilon \sum_i C_i + \sum_i C_i (\xi^+_i + \xi^-_i) \quad\text{s.t.}\quad
              -\varepsilon - \xi^-_i \le y_i - \langle w, \phi(x_i) \rangle - b \le \varepsilon + \xi^+_i

    through its dual, in which only the kernel appears:

    .. math:: \min_{\alpha, \alpha^*} \tfrac12 \beta^\top K \beta - y^\top \beta, \quad \beta = \alpha - \alpha^*
              \quad\text{s.t.}\quad 0 \le \alpha_i, \alpha^*_i \le C_i,\;
              \sum_i \alpha_i = \sum_i \alpha^*_i = \tfrac{\nu}{2} \sum_i C_i

    At most a fraction nu of the rows lies outside the tube, and at least a fraction nu are support vectors. A weight
    counts repetitions exactly: a row of weight 3 gives the same function as the row three times, and a row of weight 0
    has no effect.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1.
    C : float, default=1.0
        Weight of the sum of the errors beyond epsilon against half the squared norm, above 0.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    shrinking : bool, default=True
        Accepted for compatibility; the solver chooses its working sets by itself.
    tol : float, default=1e-3
        The violation of the optimality conditions, in units of y, at which the solver stops;
        with ``stop="gap"`` also the relative duality gap. Up to 256 rows are solved to the precision of float64 for
        any ``tol``, if 400 steps per row suffice.
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
    epsilon_ : float
        Half the fitted width of the tube, in units of y.
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``.
    n_support_ : ndarray of shape (1,)
        Their number.
    dual_coef_ : array or CSR of shape (1, n_sv)
        The weights of the expansion, :math:`\beta_i`.
    intercept_ : ndarray of shape (1,)
        b.
    coef_ : array or CSR of shape (1, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these. CSR after a fit to CSR, as the two above.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,)
        :math:`\|w\|` in the feature space of any kernel.
    slacks_above_, slacks_below_ : ndarray of shape (n,)
        :math:`\xi^+` and :math:`\xi^-`: how far each training target lies above and below the tube, in units of y.
    roles_ : ndarray of str of shape (n,)
        ``"inside"`` the tube (weight zero), ``"on"`` its edge, or ``"outside"`` (weight at its bound, with positive
        slack). A row of sample weight 0 is outside if its target is, else inside.
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
        From ``fit``: targets or weights that cannot be used, an invalid parameter, a kernel that is not
        positive semi-definite, a problem that exceeds the memory budget.

    Warns
    -----
    MercerWarning
        If all targets are equal, or differ by less than ``tol``, which ended the fit too early.
    ConvergenceWarning
        If ``max_iter`` or rounding ended the fit before ``tol`` was met.

    See Also
    --------
    SVR : With ``epsilon`` set to the ``epsilon_`` found here it gives the same function.

    Notes
    -----
    Sources: Schoelkopf, Smola, Williamson and Bartlett (2000), "New support vector algorithms", section 3; Chang and
    Lin (2002), "Training nu-support vector regression", for the sums as equations. C is the weight of a single row, as
    in LIBSVM, not of all rows together, as in the first paper.

    Examples
    --------
    >>> from mercer import NuSVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.2, 1.9, 9.0, 4.0]
    >>> model = NuSVR(nu=0.5, kernel="linear", C=10.0).fit(X, y)
    >>> model.predict([[1.0], [4.0]]).round(6).tolist()
    [1.025, 4.175]
    >>> round(model.epsilon_, 6), model.roles_.tolist()
    (0.175, ['inside', 'on', 'on', 'outside', 'on'])
    """

    _command_line = CommandLine("nu-svr")
    _fitted = Fitted({**TUBE.always, "epsilon_": Number(least=0)})

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
        warm_start: bool = False,
        stop: str = "kkt",
        solver: str | BoxSolver = "smo",
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite
        self.warm_start = warm_start
        self.stop = stop
        self.solver = solver

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Factors of C for each row. Rows of weight 0 or below are left out, negative ones with a warning.

        Returns
        -------
        self
        """
        check_solver(self)
        check_cost(self)
        require_number(self, "nu", "above 0 and at most 1", lambda value: 0 < value <= 1)
        X, y = self._check_X_and_numbers(X, y)
        weight = check_svm_weight(sample_weight, X)
        warn_of_constant(y, weight)
        learned = self._learn(X, y, weight)
        above, below = learned.offsets
        # Below zero by rounding only: a tube of negative width costs more than it saves.
        self.epsilon_ = max((above - below) / 2, 0.0)
        describe_tube(self, learned, self.epsilon_, weight)
        used = weight > 0
        # A constant costs no more with the best tube than without one.
        absolute, price = EpsilonInsensitive(0.0), float(self.C) * weight[used]
        self._report(lambda: words_on_constant(absolute, y[used], price, self.certificate_.primal, intercept=True))
        warn_if_tol_is_coarse(self, y, weight)
        return self

    def predict(self, X: RowsLike) -> Vector:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
            In float64.
        """
        return self._values(X)

    def _solve(self, problem: BoxQP, solver: BoxSolver, start: Start) -> Answer:
        """Without a tube where its width is zero."""
        return solve_nu_tube(problem, solver, start)

    def _problem(self, gram: GramMatrix, targets: Vector, weight: Vector, convex: bool) -> BoxQP:
        """Each row twice, once for alpha and once for -alpha*, with a sum and an offset for each of the two."""
        n = len(weight)
        if self.kernel_ is None:
            # A given matrix is copied; a lazy one is not.
            memory.require(4 * n * n * gram.dtype.itemsize, "the kernel matrix with each row twice")
        twice = np.tile(np.arange(n), 2)
        bound, zero = self.C * weight, np.zeros(n)
        total = 0.5 * self.nu * float(bound.sum())
        return BoxQP(
            gram.restrict(twice, twice),
            np.tile(targets, 2),
            np.concatenate([zero, -bound]),
            np.concatenate([bound, zero]),
            totals=(total, -total),
            groups=np.repeat(np.array([0, 1], dtype=np.int8), n),
            convex=convex,
            once=gram,
        )
