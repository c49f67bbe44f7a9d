"""Quantile regression with kernels, at one level or at several that do not cross."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score

from mercer._errors import ParameterError
from mercer._types import CheckedRows, Matrix, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.statements import Count, Flag, Floats, Is, Maybe, Whole
from mercer.engine import memory
from mercer.estimators.shared.along import FitsAlongPenalty, FromSolutions
from mercer.estimators.shared.certificates import joined, warn_if_stopped
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, of_support, values_of
from mercer.estimators.shared.in_parts import in_parts, row_source
from mercer.estimators.shared.landmark_numbers import fit_along_numbers, is_left_open
from mercer.estimators.shared.on_blocks import RowSource
from mercer.estimators.shared.parameters import require_flags, require_number, require_positive, require_whole
from mercer.estimators.shared.restricted import Beside, require_approximation
from mercer.estimators.shared.restricted_risk import (
    Task,
    forget,
    keep_landmarks,
    of_all_rows,
    one_form,
    solve_on_landmarks,
)
from mercer.estimators.shared.statements import GIVEN_COLUMNS, SupportRows
from mercer.estimators.shared.targets import warn_of_constant
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.losses import Quantile
from mercer.solvers.risk.ordered_quantiles import OrderedQuantiles, QuantilesSolver
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.solve import RiskSolver, shared_gram
from mercer.solvers.risk.stationary import StationarySolver
from mercer.solvers.solution import Certificate

# Predictions of two levels that cross by this part of the spread of the targets do so by rounding.
_ROUNDING = 1e-12


class KernelQuantileRegression(RegressorMixin, FitsAlongPenalty):
    r"""Quantiles of the target given the row, with any kernel; for several levels, quantiles that do not cross.

    For each level :math:`\tau_j` it fits a function :math:`f_j(x) = \langle w_j, \phi(x) \rangle + b_j`, together

    .. math:: \min \sum_j \Bigl( \tfrac12 \|w_j\|^2 + \sum_i C_i\, \rho_{\tau_j}(y_i - f_j(x_i)) \Bigr)
              \quad\text{s.t.}\quad f_1(x_i) \le \dots \le f_m(x_i) \text{ for every training row},
              \qquad C_i = C \cdot \text{sample\_weight}_i

    with the pinball loss :math:`\rho_\tau(r) = \max(\tau r, (\tau - 1) r)`. A weight counts repetitions exactly.

    Parameters
    ----------
    quantiles : float or array-like of shape (m,), default=0.5
        Levels between 0 and 1, each once. With a number, ``predict`` returns one prediction per row.
    C : float, default=1.0
        Weight of the sum of the losses against half the squared norm, above 0.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    non_crossing : bool, default=True
        Whether quantiles of several levels are kept in order; see the notes. Otherwise each level is fitted separately.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    cache_size : float, default=200
        Memory for stored kernel rows, in MB (of 2^20 bytes). More is used if most rows turn out to be support vectors
        and the whole kernel matrix fits the memory budget.
    max_iter : int, default=-1
        Maximum number of steps of each solver; -1 for no limit. With an approximation, of passes over the rows for each
        level; -1 for 1000.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a separate stationary point for each level,
        marked as such in ``certificate_``, with sorted predictions, and warns; True does so silently; False raises an
        error. A precomputed matrix or a function is checked for this; if this is True, it counts as indefinite.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts each function to the span of few rows, the landmarks:
        :math:`f_j(x) = \sum_l c_{jl} k(x, z_l) + b_j`. Time is then linear in the number of rows, and no matrix of rows
        and landmarks is kept. It needs a positive kernel, and ``non_crossing=False`` for several levels.
    n_landmarks : int or "auto", default=1000
        With an approximation: the number of landmarks, all rows if there are fewer. ``"auto"`` doubles it from 100 on,
        until the loss of a fifth of the rows (5000 at most), which are held out, no longer falls by more than the
        standard error of the difference and 0.1 %, or memory ends; then it fits to all rows.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.
    random_state : int, RandomState or None, default=None
        Seed of the choice of landmarks.

    Attributes
    ----------
    support_ : ndarray of shape (n_sv,)
        Positions of the rows with a weight in some expansion; not with an approximation.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``; with an approximation, the landmarks.
    landmark_path_ : LandmarkPath
        With ``n_landmarks="auto"``: the numbers that were tried, with the held-out losses; printed as a table.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts.
    dual_coef_ : ndarray of shape (m, n_sv)
        The weights of the expansions, one row for each level, in the order of ``quantiles``.
    coef_ : ndarray of shape (m, p)
        w of each level in the p features of ``feature_map_``, for linear kernels (where they are the columns of X),
        polynomial and all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (m,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    intercept_ : ndarray of shape (m,)
        b of each level.
    quantiles_ : ndarray of shape (m,)
        The levels.
    crossings_ : int
        The number of training rows at which separately fitted quantiles cross.
    certificate_ : Certificate
        Primal and dual objective in float64 (sums over the levels), worst violation, steps, time and memory. With an
        approximation the problem is that over the landmarks, the violation is the length of the gradient, and steps are
        passes over the rows.
    n_iter_ : int
        Steps.
    fit_status_ : int
        0 if the tolerance was met, else 1.
    kernel_ : Kernel or None
        The kernel with its parameters (None for ``"precomputed"``).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: targets or weights that cannot be used, an invalid parameter, a kernel that is not
        positive semi-definite, a problem that exceeds the memory budget.

    Warns
    -----
    MercerWarning
        If all targets are equal.
    ConvergenceWarning
        If ``max_iter`` or rounding ended the fit before ``tol`` was met.

    Notes
    -----
    **What is guaranteed.** With ``non_crossing=True`` the functions are in order at every training row of positive
    weight: the problem has this constraint, and the certificate refers to that problem. Elsewhere the functions may
    still cross; ``predict`` then sorts the m predictions of a row. That keeps each row in order, changes nothing where
    they are in order, never raises the sum of the pinball losses of a row, whatever its target, and brings predictions
    no farther from the true quantiles (Chernozhukov and others, 2010).

    Levels are first fitted separately, as quadratic programmes of the form of support vector machines; the joint
    problem, which needs the kernel matrix in memory, is solved only if these cross at a training row.

    References
    ----------
    I. Takeuchi, Q. V. Le, T. D. Sears and A. J. Smola, "Nonparametric quantile estimation", Journal of Machine
    Learning Research 7 (2006), equations 10-12 and section 3.2; V. Chernozhukov, I. Fernandez-Val and A. Galichon,
    "Quantile and probability curves without crossing", Econometrica 78 (2010), proposition 4.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelQuantileRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (200, 1))
    >>> y = np.sin(X).ravel() + 0.3 * rng.standard_normal(200)
    >>> model = KernelQuantileRegression([0.1, 0.5, 0.9], gamma=0.5).fit(X, y)
    >>> bool((np.diff(model.predict(X)) >= 0).all()), model.certificate_.relative_gap < 1e-6
    (True, True)
    >>> shares = (y[:, None] <= model.predict(X)).mean(axis=0)
    >>> np.abs(shares - [0.1, 0.5, 0.9]).max() < 0.05
    np.True_
    """

    _continuation = FromSolutions()
    shares_matrices = True
    may_leave_landmarks_open = True
    _beside_landmarks = (
        Beside(
            "non_crossing",
            False,
            "Pass non_crossing=False; np.sort puts predictions of a row in order.",
            lambda model: not model.non_crossing or np.size(model.quantiles) == 1,
        ),
    )
    _fitted = Fitted(
        {
            "crossings_": Count(),
            "support_vectors_": SupportRows("s"),
            "dual_coef_": Floats("m, s"),
            "intercept_": Floats("m"),
            "quantiles_": Floats("m", least=0, most=1),
            "certificate_": Is(Certificate),
            "n_iter_": Count(),
            "fit_status_": Count(most=1),
        },
        {"support_": Whole("s"), "landmark_indices_": Maybe(Whole("s", distinct=True))},
        parameters={"non_crossing": Flag()},
        rules=(
            GIVEN_COLUMNS,
            one_form("support_"),
            (
                "quantiles_ are not those of the parameter",
                lambda m: np.array_equal(m.quantiles_, np.ravel(np.asarray(m.quantiles, dtype=np.float64))),
            ),
        ),
    )

    support_ = of_all_rows("support_", "Landmarks are at landmark_indices_, and in support_vectors_.")
    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def __init__(
        self,
        quantiles: Any = 0.5,
        *,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        non_crossing: bool = True,
        tol: float = 1e-6,
        cache_size: float = 200,
        max_iter: int = -1,
        allow_indefinite: bool | str = "warn",
        n_jobs: int | None = None,
        verbose: bool = False,
        approximation: str | None = None,
        n_landmarks: int | str = 1000,
        landmarks: Any = "rpcholesky",
        random_state: Any = None,
    ) -> None:
        self.quantiles = quantiles
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.non_crossing = non_crossing
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.allow_indefinite = allow_indefinite
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state

    @takes_parts
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have targets and weights of their
            own, are read once for each pass of the solver. Blocks and Dask need an approximation.
        y : array-like of shape (n,)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Factors of C for each row.

        Returns
        -------
        self
        """
        if is_left_open(self):
            return fit_along_numbers(self, X, y, sample_weight)
        start_time = time.perf_counter()
        levels = self._check_parameters()
        source = row_source(self, X, y, sample_weight)
        if source is not None:
            X, y, sample_weight = source.training()
        X, y = self._check_X_and_numbers(X, y)
        weight = check_sample_weight(sample_weight, X)
        warn_of_constant(y, weight)
        used = np.flatnonzero(weight)
        side = fit_weighted_kernel(self, X, weight, intercept=False)
        if source is not None:
            return self._fit_on_landmarks(source.checked(X, y, weight), y[used], levels)
        gram: Any = self._gram(side, dtype=None if self.kernel_ is None else np.float64)
        if len(used) < X.shape[0]:
            gram = gram.restrict(used, used)
        convex = self._is_convex(gram, used, X.dtype, intercept=False)
        with memory.track() as account, naming_what_fits(self, X.shape[0]):
            C, b, certificate = self._solve(gram, y[used], float(self.C) * weight[used], levels, convex)
        self._keep(X, used, levels, C, b)
        self.certificate_ = replace(certificate, seconds=time.perf_counter() - start_time, peak_bytes=account.peak)
        self.n_iter_ = max(1, certificate.iterations)
        self.fit_status_ = int(warn_if_stopped(self))
        return self

    def _fit_on_landmarks(self, source: RowSource, y: Vector, levels: Vector) -> Self:
        """Fit functions over landmarks, each level separately; ``y`` are targets of all rows or of a sample."""
        losses = [Quantile(float(level)) for level in levels]
        tasks = [Task.of_numbers(loss, y, float(self.C), intercept=True) for loss in losses]
        fitted = solve_on_landmarks(self, source, tasks, intercept=True, passes=int(self.max_iter))
        keep_landmarks(self, fitted, ["support_"])
        self.quantiles_, self.n_iter_ = levels, fitted.certificate.iterations
        self.crossings_ = _crossings(fitted.values(), levels, y)
        self.fit_status_ = int(warn_if_stopped(self))
        return self

    @in_parts
    def predict(self, X: RowsLike) -> Vector:
        """Return the quantiles at each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (r, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (r, n).

        Returns
        -------
        ndarray of shape (r,) or (r, m)
            For a number as ``quantiles`` (r,), else (r, m) in the order of the levels.
        """
        F = values_of(self, X)
        if self.non_crossing:
            order = np.argsort(self.quantiles_)
            F[:, order] = np.sort(F, axis=1)
        return F[:, 0] if np.ndim(self.quantiles) == 0 else F

    def score(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return ``D^2``, the share of the pinball loss of constant quantiles that is explained; a mean over levels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (r, d)
            As for :meth:`predict`.
        y : array-like of shape (r,)
            Targets.
        sample_weight : array-like of shape (r,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        float
            1 is best; constant quantiles of y reach 0.
        """
        F = self.predict(X).reshape(-1, len(self.quantiles_))
        scores = [
            d2_pinball_score(y, F[:, j], sample_weight=sample_weight, alpha=float(level))
            for j, level in enumerate(self.quantiles_)
        ]
        return float(np.mean(scores))

    @property
    def _expansion(self) -> KernelExpansion:
        return of_support(self)

    def _check_parameters(self) -> Vector:
        """The levels."""
        require_number(self, "C", "a finite number above 0", lambda value: 0 < value < np.inf)
        require_positive(self, "tol", "cache_size")
        require_whole(self, "max_iter", "a whole number, -1 for no limit", least=-1)
        require_flags(self, "non_crossing")
        try:
            levels = np.atleast_1d(np.asarray(self.quantiles, dtype=np.float64))
        except (TypeError, ValueError):
            levels = np.empty(0)
        inside = levels.ndim == 1 and len(levels) > 0 and bool(((levels > 0) & (levels < 1)).all())
        if not inside or len(np.unique(levels)) < len(levels):
            raise ParameterError(
                f"quantiles must be a number between 0 and 1, or several distinct ones, but is {short(self.quantiles)}."
            )
        require_approximation(self)
        return levels

    def _solve(
        self, gram: GramMatrix, y: Vector, price: Vector, levels: Vector, convex: bool
    ) -> tuple[NDArray[np.float64], Vector, Certificate]:
        """Weights (n, m) and offsets (m,) of the levels as they were given."""
        options: dict[str, Any] = {
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "n_jobs": self.n_jobs,
            "verbose": bool(self.verbose),
        }
        kind = RiskSolver if convex else StationarySolver
        solver = kind(cache_bytes=int(self.cache_size * 2**20), **options)
        with ExitStack() as stack:
            shared = shared_gram(gram, stack) if len(levels) > 1 else gram
            problems = [
                RegularizedRisk(shared, Quantile(float(level)), y, price, intercept=True, convex=convex)
                for level in levels
            ]
            if isinstance(solver, RiskSolver):
                starts = self._continuation.starts(self, len(levels))
                solutions = [solver.solve(p, start) for p, start in zip(problems, starts, strict=True)]
                self._continuation.keep(self, [solution.value for solution in solutions])
            else:
                solutions = [solver.solve(p) for p in problems]
            C = np.column_stack([s.value.c for s in solutions])
            b = np.array([s.value.b for s in solutions])
            certificate = joined([s.certificate for s in solutions])
            order = np.argsort(levels)
            self.crossings_ = _crossings(np.column_stack([s.value.Kc for s in solutions]) + b, levels, y)
            if not (self.crossings_ and self.non_crossing and convex):
                return C, b, certificate
            problem = OrderedQuantiles(shared, y, levels[order], price)
            solution = QuantilesSolver(**options).solve(problem, (C[:, order], b[order]))
        C[:, order], b[order] = solution.value.C, solution.value.b
        steps = certificate.iterations + solution.certificate.iterations
        return C, b, replace(solution.certificate, iterations=steps)

    def _keep(self, X: CheckedRows, used: NDArray[np.intp], levels: Vector, C: NDArray[np.float64], b: Vector) -> None:
        """Set the attributes that hold the expansions."""
        forget(self, "landmark_indices_")
        support = np.flatnonzero(C.any(axis=1))
        self.support_ = used[support].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self.kernel_ is None else X[self.support_]
        self.dual_coef_ = np.ascontiguousarray(C[support].T)
        self.intercept_ = b
        self.quantiles_ = levels


def _crossings(F: Matrix, levels: Vector, y: Vector) -> int:
    """The number of rows at which quantiles (n, m) cross."""
    F = F[:, np.argsort(levels)]
    return int((F[:, :-1] - F[:, 1:] > _ROUNDING * float(np.ptp(y))).any(axis=1).sum())
