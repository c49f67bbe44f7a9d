"""Kernel ridge regression."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from mercer._errors import MemoryBudgetError, ParameterError
from mercer._registered import CommandLine
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.statements import Either, Floats, Is, Maybe, Number, Whole, Word
from mercer.engine import memory
from mercer.estimators.gaussian.left_out_kernel import LeftOutKernel, free_gamma
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.in_parts import in_parts, row_source
from mercer.estimators.shared.intervals import (
    JACKKNIFE,
    Intervals,
    LeftOutErrors,
    check_coverage,
    guaranteed_by_jackknife,
    intervals_of_system,
)
from mercer.estimators.shared.landmark_intervals import OVER_LANDMARKS, require_training, ridge_intervals
from mercer.estimators.shared.landmark_numbers import fit_along_numbers, is_left_open
from mercer.estimators.shared.left_out_baseline import warn_if_ridge_is_worse, warn_if_ridge_is_worse_on_own_rows
from mercer.estimators.shared.on_blocks import RowSource, require_checkpoint
from mercer.estimators.shared.parameters import require_choice, require_flags, require_positive
from mercer.estimators.shared.penalties import check_penalties, choices_of, criterion_of, penalties_of, warn_if_few
from mercer.estimators.shared.repeated import warn_of_repeated_rows
from mercer.estimators.shared.restricted import RESTRICTED, require_approximation
from mercer.estimators.shared.restricted_ridge import RidgeOnLandmarks
from mercer.estimators.shared.restricted_risk import forget
from mercer.estimators.shared.statements import FitRows, LikeThe
from mercer.estimators.shared.targets import require_squares, warn_of_constant, warn_of_outlier
from mercer.estimators.shared.weights import check_sample_weight, weighted_scale
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.gram import Gram
from mercer.gram.hold import evaluated
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.convert import KernelLike, is_named
from mercer.kernels.inputs import Rows
from mercer.solvers import evaluate
from mercer.solvers.gaussian.search import Search, warn_of_bounds
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.choose_penalty import reduce_and_choose
from mercer.solvers.linear.iterative import KernelCG
from mercer.solvers.linear.leave_one_out import leave_one_out
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState
from mercer.solvers.linear.penalty_curves import PenaltyCurves, default_penalties, trace
from mercer.solvers.linear.penalty_path import Criterion, PenaltyPath
from mercer.solvers.linear.primal_steps import PrimalCG, sparse_features
from mercer.solvers.linear.principal_systems import PartSolution
from mercer.solvers.solution import Certificate, Solution


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""Least squares with a penalty on the norm of the function, in the space of a kernel.

    .. math:: \min_f \sum_i w_i (y_i - f(x_i))^2 + \alpha \|f\|^2, \qquad f(x) = \sum_i c_i\, k(x, x_i),
              \qquad (K + \alpha W^{-1})\, c = y

    Parameters
    ----------
    alpha : float, array-like of shape (n_targets,), "loo", "gcv" or "evidence", default=1.0
        Weight of the squared norm against the sum of squared errors, zero or above; one for all targets or one for
        each. Targets that share a value share a factorisation. A name selects the criterion that chooses it: ``"loo"``
        by the mean squared error of exact leave-one-out predictions, ``"gcv"`` by generalised cross-validation,
        ``"evidence"`` by the density of the targets under the Gaussian process with this kernel and the best noise
        variance. Copies of rows in the data make errors of left-out rows too small: of more than a tenth of the rows,
        ``"loo"`` warns. With fewer than 6 rows, every criterion warns, because its choice is luck.
    kernel : str, Kernel, scikit-learn kernel or callable, default="linear"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ``"laplacian"``, ``"chi2"``, ``"cosine"``), a
        kernel, a function ``(X, Z) -> block``, or ``"precomputed"``.
    gamma : float or {"scale", "auto", "loo"}, optional
        For named kernels; None is ``1 / n_features`` (1 for ``"chi2"``). ``"loo"`` chooses it by the mean squared error
        of exact leave-one-out predictions.
    degree : int, default=3
        Degree of ``"poly"``.
    coef0 : float, default=1
        Constant term of ``"poly"`` and ``"sigmoid"``.
    kernel_params : dict or "loo", optional
        Keyword arguments for a kernel that is a function. ``"loo"`` chooses all free parameters of the kernel, such as
        one length scale for each column in ``RBF([1.0, 1.0, 1.0])``, by the mean squared error of exact leave-one-out
        predictions and its gradient; their values in ``kernel`` are the start. Then ``alpha`` must be ``"loo"``, which
        chooses the penalty together with them, or one number.
    alphas : array-like, optional
        If ``alpha`` is a criterion: the penalties to choose from. None for any positive number, to three digits.
    alpha_per_target : bool, default=False
        If ``alpha`` is a criterion: whether every target has its own penalty; otherwise one is chosen by the sum of
        their criteria.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` solves the linear system above, whose solution is a
        stationary point of :math:`\sum_i w_i (y_i - (Kc)_i)^2 + \alpha\, c^\top K c` and not its minimum, and warns;
        True does so silently; False raises an error. A precomputed matrix or a function is checked for this; if
        this is True, it counts as indefinite.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        How the system is solved for given penalties. ``"cholesky"`` factors the kernel matrix, which the memory budget
        must have room for, or the square of explicit features, where these are fewer than the rows. ``"cg"`` takes
        products with the matrix until the residual is at most ``tol`` times the targets; a factor of low rank serves as
        preconditioner. One triangle is kept in float32 where it takes at most half of the memory that is free,
        otherwise entries are computed anew for each product; residuals are in float64. For many rows it is the fastest,
        unless ``alpha`` is very small. ``"auto"`` factors what fits, and else takes products. More than 4096 sparse
        features, at most as many as rows, are solved for by products with them.
        ``factorization_`` and ``certificate_.storage`` say how it was done.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts f to the span of few rows, the landmarks: :math:`f(x) = \sum_j c_j k(x, z_j)`. Time is
        then linear in the number of rows. The matrix of rows and landmarks need not be kept; its values in float32 are,
        where they take at most a quarter of the free memory. It needs a positive kernel and ``alpha`` above 0; a
        criterion chooses one for these landmarks.
    n_landmarks : int or "auto", default=1000
        With an approximation: the number of landmarks, all rows if there are fewer. ``"auto"`` doubles it from 100 on,
        until the loss of a fifth of the rows (5000 at most), which are held out, no longer falls by more than the
        standard error of the difference and 0.1 %, or memory ends; then it fits to all rows.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.
    tol : float, default=1e-6
        With an approximation: the largest gap of the objective over the landmarks, as a share of it. For products with
        the kernel matrix: the largest residual, as a share of the targets.
    checkpoint : str or Path, optional
        With an approximation: a file of the passes over the rows that are done. After an interruption the same fit goes
        on from there, and ends with the same bits; at the end the file is removed. Then ``random_state=None`` stands
        for 0.
    random_state : int, RandomState or None, default=None
        Seed of the choice of landmarks.
    n_jobs : int, optional
        Threads that evaluate the kernel; None for all. The result is bitwise the same for any number, except where
        the system of more than 1024 rows is singular to working precision, or a criterion chooses ``alpha`` over more
        than 1024 landmarks: LAPACK then decomposes a matrix on its own threads.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty, given or chosen.
    path_ : PenaltyCurves
        If ``alpha`` is a criterion: the penalties that were tried, ascending, with the criteria for each; ``loo`` only
        for ``alpha="loo"``, which tries fewer penalties where they cannot be the best.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients c, in float64.
    coef_ : ndarray of shape (p,) or (n_targets, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,) or (n_targets,)
        :math:`\|w\|` in the feature space of any kernel.
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The training rows; for ``"precomputed"``, the matrix; with an approximation, the landmarks.
    landmark_path_ : LandmarkPath
        With ``n_landmarks="auto"``: the numbers that were tried, with the held-out losses; printed as a table.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts or with a checkpoint.
    y_fit_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The training targets, from which leave-one-out predictions are computed; None with an approximation.
    sample_weight_fit_ : ndarray of shape (n_samples,) or None
        The training weights.
    kernel_ : Kernel or None
        The kernel, with the chosen parameters; None for ``"precomputed"``.
    search_ : Search
        If parameters of the kernel are chosen: the search on all rows. Its value is minus the logarithm of the mean
        squared leave-one-out error, and its last parameter is the logarithm of alpha if that is chosen.
    factorization_ : str
        How the system was solved: ``"normal equations of explicit features"``, ``"conjugate gradients on explicit
        features"``, ``"low rank"``, ``"float32 Cholesky, refined"``, ``"float64 Cholesky"``,
        ``"least squares"``, ``"float64 LDL^T"`` or, if ``alpha`` is a criterion, ``"float64 band Cholesky"`` or
        ``"float32 band Cholesky, refined"``; by products with the kernel matrix, ``"conjugate gradients"``; with an
        approximation, ``"conjugate gradients over landmarks"``.
    certificate_ : Certificate
        Objectives (sums over the targets), the relative residual of the linear system, time and memory.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    See Also
    --------
    ridge_path : The fits for many penalties.
    mercer.solvers.linear.cholesky.solve : The solver, and its cost.
    mercer.solvers.linear.penalty_path.PenaltyPath : How a penalty is chosen: the formulas, and its cost.

    Notes
    -----
    Integer weights are the same as repeated rows, also for leave-one-out and the choice of the penalty, and a row of
    weight zero has no effect. Choosing a penalty takes one reduction of the matrix, for any number of penalties: eight
    to twelve times the time of a fit with a given one for ``"loo"``, and four to seven for the others; less if the
    kernel matrix has a low rank. From 2048 rows on, the remainder after the leading part is reduced in float32. The
    criteria in ``path_`` then have a relative error of 5e-5 where a penalty may be the best, and a larger one for
    penalties far from it. If rounding could change the choice, the reduction is repeated in float64, which takes about
    twice as long.

    For ``kernel_params="loo"`` or ``gamma="loo"`` each evaluation takes one factor, one inverse and one product of
    matrices, :math:`2 n^3` operations and :math:`8 n^2` bytes, however many parameters there are. The search starts
    from two multiples of the given length scales, chosen on 400 rows; of more than 1000 rows, its first part uses 1000.
    With ``alpha="loo"`` the penalty is then chosen anew for the final kernel, as without a search.

    A kernel with p explicit features, fewer than the rows (linear, polynomial of few columns, counted features of
    strings and graphs), needs no kernel matrix: :math:`n p^2` operations and :math:`24 p^2` bytes.

    A kernel matrix of low rank r (linear kernels of few columns, smooth kernels of one or two, many repeated rows) is
    never computed: a fit then takes :math:`n r^2` operations and memory for r columns.

    With an approximation each step of the solver is one pass over the rows, which takes m kernel values per row for m
    landmarks, and :math:`2 \cdot 8 m^2` bytes beside the rows. The gap of ``certificate_`` bounds how far the objective
    is above that of the best function over these landmarks; it says nothing of functions over all rows, which
    :func:`mercer.certify_landmarks` compares. A criterion for ``alpha`` takes one decomposition for all penalties:
    about :math:`4 n m^2` operations, for ``"loo"`` twice as many, and :math:`4 \cdot 8 m^2` bytes. Rows are left out
    with the landmarks as they are. Penalties of ``"loo"`` are then 8 % apart.

    The names of the
    parameters, their defaults and their meaning are those of ``sklearn.kernel_ridge.KernelRidge``, except that a
    function is called for two blocks of rows if it can be, and for two single rows if not.

    References
    ----------
    K. P. Murphy, "Machine Learning: A Probabilistic Perspective" (2012), section 14.4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X).ravel())
    >>> float(model.predict([[1.5]])[0].round(3))
    0.998
    >>> model.loo_score_ > 0.99, model.certificate_.kkt_violation < 1e-10
    (True, True)
    >>> noisy = np.sin(X).ravel() + 0.1 * np.cos(40 * X).ravel()
    >>> chosen = KernelRidge("loo", kernel="rbf", gamma=1.0).fit(X, noisy)
    >>> round(chosen.alpha_, 2), round(float(chosen.path_.loo.min()), 4)
    (0.16, 0.0074)
    >>> tuned = KernelRidge("loo", kernel="rbf", gamma="loo").fit(X, noisy)
    >>> float(tuned.path_.loo.min()) < float(chosen.path_.loo.min())
    True
    """

    shares_matrices = True
    may_leave_landmarks_open = True
    # Computed on first access.
    _loo_predictions: Vector | None = None
    # None after a fit on landmarks.
    y_fit_: Any
    sample_weight_fit_: Any
    # Of a search that solves for all folds and penalties together.
    _solution: PartSolution | None = None

    # Half of that memory is tried first, before a float64 factor. The time grows with the cube of the rows.
    _command_line = CommandLine("ridge", left_open="alpha", pair_bytes=8, most_rows=20_000, frugal="svr", low_rank=True)
    _fitted = Fitted(
        {
            "X_fit_": FitRows("n"),
            "dual_coef_": Either(Floats("n"), Floats("n, t")),
            "y_fit_": Maybe(LikeThe("dual_coef_", Either(Floats("n"), Floats("n, t")))),
            "sample_weight_fit_": Maybe(Floats("n", least=0)),
            "_loo_predictions": Maybe(LikeThe("dual_coef_", Either(Floats("n"), Floats("n, t")))),
            "alpha_": Either(Number(least=0), Floats("t", least=0)),
            "factorization_": Word(),
            "certificate_": Is(Certificate),
        },
        {"path_": Is(PenaltyCurves), "search_": Is(Search), "landmark_indices_": Maybe(Whole("n", distinct=True))},
    )

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: KernelLike = "linear",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | str | None = None,
        alphas: Any = None,
        alpha_per_target: bool = False,
        allow_indefinite: bool | str = "warn",
        solver: str = "auto",
        approximation: str | None = None,
        n_landmarks: int | str = 1000,
        landmarks: Any = "rpcholesky",
        tol: float = 1e-6,
        checkpoint: str | Path | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alphas = alphas
        self.alpha_per_target = alpha_per_target
        self.allow_indefinite = allow_indefinite
        self.solver = solver
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    @takes_parts
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` and targets ``y``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples). Blocks, which have targets
            and weights of their own, are read once for each step of the solver; of collections of Dask, the workers
            return sums. Both need an approximation.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights, 0 or more.

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
            If the data or a parameter cannot be used, or the problem exceeds the memory budget; see the messages.
        """
        require_flags(self, "alpha_per_target")
        require_choice(self, "solver", ("auto", "cholesky", "cg"))
        require_positive(self, "tol")
        require_checkpoint(self)
        if is_left_open(self):
            return fit_along_numbers(self, X, y, sample_weight)
        require_approximation(self)
        source = row_source(self, X, y, sample_weight)
        if source is not None:
            return self._fit_on_landmarks(source)
        criterion, alphas = criterion_of(self.alpha), choices_of(self.alpha, self.alphas)
        self._check_search()
        if self.solver == "cg" and criterion is not None:
            raise ParameterError(
                f"solver='cg' solves for given penalties, and alpha={short(self.alpha)} is to be chosen; pass numbers, "
                "or another solver."
            )
        rows, system = self._state_problem(X, y, sample_weight)
        if (criterion == "loo" or self.learns_kernel) and not self._is_precomputed:
            warn_of_repeated_rows("KernelRidge", self.X_fit_, self.y_fit_, rows)
        if criterion is not None:
            with naming_what_fits(self, len(rows)):
                return self._choose(rows, system, criterion, alphas)
        with naming_what_fits(self, len(rows)):
            alpha, solution = np.array(system.shifts), self._solve(system)
        self._take(rows, solution, alpha if np.ndim(self.alpha) else alpha[:1])
        warn_if_ridge_is_worse("KernelRidge", system, solution.value, None, n_jobs=self.n_jobs)
        return self

    def _solve(self, system: LinearSystem) -> Solution[Vector, LinearSystemState]:
        """Solve for given penalties, as ``solver`` says."""
        able = system.convex and bool((np.asarray(system.shifts) > 0).all())
        if self.solver == "cg" and not able:
            raise ParameterError(
                f"solver='cg' needs a positive semi-definite kernel and alpha above 0, but kernel is {self.kernel!r} "
                f"and alpha is {short(self.alpha)}; change these, or pass solver='cholesky'."
            )
        if able and self.solver != "cholesky":
            with ExitStack() as stack:
                phi = sparse_features(system, stack)
                if phi is not None:
                    return PrimalCG(self.tol).solve(system, phi, n_jobs=self.n_jobs)
        if self.solver != "cg":
            try:
                return cholesky.solve(system, n_jobs=self.n_jobs)
            except MemoryBudgetError as error:
                if self.solver == "cholesky" or not able:
                    raise
                try:
                    return KernelCG(self.tol).solve(system, n_jobs=self.n_jobs)
                except MemoryBudgetError:
                    # The first message says what the usual way needs.
                    raise error from None
        return KernelCG(self.tol).solve(system, n_jobs=self.n_jobs)

    def _fit_on_landmarks(self, source: RowSource) -> Self:
        """Fit a function over landmarks alone."""
        if self.learns_kernel:
            raise ParameterError(
                'approximation="nystroem" needs numbers for gamma and kernel_params: kernels are not chosen on '
                "landmarks. Choose them without approximation on a sample of the rows, or by mercer.KernelSearchCV."
            )
        criterion, alphas = criterion_of(self.alpha), choices_of(self.alpha, self.alphas)
        X, y, sample_weight = source.training()
        X, y = self._check_X_and_numbers(X, y, several=True)
        require_squares(y)
        weights = check_sample_weight(sample_weight, X)
        given = None if criterion else penalties_of(self.alpha, y.reshape(len(y), -1).shape[1])
        warn_of_constant(y, weights)
        warn_of_outlier(y, weights)
        if criterion == "loo":
            warn_of_repeated_rows("KernelRidge", X, y, np.flatnonzero(weights))
        self._fit_kernel(X, intercept=False)
        source = source.checked(X, y, weights)
        question = RidgeOnLandmarks(criterion, alphas, bool(self.alpha_per_target), given)
        parts = source.restriction(self)
        with source.rows(self, parts, _columns, [*question.settings, self.tol]) as rows:
            answer = question.solve(self, parts, rows)
        self.X_fit_, self.landmark_indices_ = parts.landmarks.rows, parts.landmarks.indices
        self.y_fit_ = self.sample_weight_fit_ = self._loo_predictions = None
        forget(self, "path_", "search_")
        if answer.curves is not None:
            self.path_ = answer.curves.squeezed() if y.ndim == 1 else answer.curves
        several = y.ndim == 2 and self.alpha_per_target if criterion else np.ndim(self.alpha)
        self.alpha_ = answer.alphas if several else float(answer.alphas[0])
        self.dual_coef_ = answer.solution.value.reshape(-1, *y.shape[1:])
        self.factorization_, self.certificate_ = RESTRICTED, answer.solution.certificate
        return self

    def take_solution(self, solution: PartSolution | None) -> Self:
        """Let :meth:`fit_along` use answers that exist already; for searches.

        Parameters
        ----------
        solution : PartSolution or None
            For the penalties and the rows that the next call will get, without the rows of weight 0.

        Returns
        -------
        self
        """
        self._solution = solution
        return self

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each of several penalties; for searches.

        Parameters
        ----------
        parameter : str
            ``"alpha"``.
        values : sequence of float
            Above 0.
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        list of KernelRidge

        Raises
        ------
        ParameterError
            If the parameter is another one.
        """
        if parameter != "alpha":
            raise ParameterError(f"KernelRidge is fitted along alpha, and not along {parameter!r}.")
        given = self._solution
        prototype, rows, system = self._problem_along(values, X, y, sample_weight)
        models = []
        for number, alpha in enumerate(map(float, values)):
            one = dataclasses.replace(system, shifts=np.full(system.shape[1], alpha))
            if given is not None and one.convex and given.solved[number]:
                solution = given.solution(one, number)
            else:
                solution = cholesky.solve(one, n_jobs=self.n_jobs)
            model = copy.copy(prototype).set_params(alpha=alpha)
            models.append(model._take(rows, solution, np.array([alpha])))
            warn_if_ridge_is_worse("KernelRidge", one, solution.value, None, n_jobs=self.n_jobs)
        return models

    def fit_side_by_side(
        self, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit one model that predicts for every penalty: its targets are those of the first, the second, ...

        For searches, which compare predictions of many penalties: there are no certificates, and nothing is said of
        penalties that are worse than a constant.

        Parameters
        ----------
        values : sequence of float
            The penalties.
        X : array-like, sparse matrix or sequence of n rows
        y : array-like of shape (n,) or (n, n_targets)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        KernelRidge
        """
        given = self._solution
        model, rows, system = self._problem_along(values, X, y, sample_weight)
        k = system.shape[1]
        coefficients = np.zeros((len(model.y_fit_), len(values), k))
        for number, alpha in enumerate(map(float, values)):
            if given is not None and system.convex and given.solved[number]:
                value = system.scaled().apply_scale(given.z[number])
            else:
                shifted = dataclasses.replace(system, shifts=np.full(k, alpha))
                value = cholesky.solve(shifted, n_jobs=self.n_jobs).value
            coefficients[rows, number] = value
        model.dual_coef_ = coefficients.reshape(len(coefficients), -1)
        return model

    def _problem_along(
        self, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Self, NDArray[np.intp], LinearSystem]:
        """Return a copy with the checked data, rows with a weight, and the linear system over them."""
        prototype = copy.copy(self).take_solution(None).set_params(alpha=float(values[0]))
        require_flags(prototype, "alpha_per_target")
        choices_of(prototype.alpha, prototype.alphas)
        prototype._check_search()
        return prototype, *prototype._state_problem(X, y, sample_weight)

    def fit_penalties(
        self, X: RowsLike, y: ArrayLike, alphas: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> tuple[list[Self], PenaltyCurves]:
        """Fit a copy for each of several penalties, from one factorisation; see :func:`mercer.ridge_path`.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.
        alphas : array-like, optional
            Penalties, in any order; by default those between which ``alpha="loo"`` chooses.
        sample_weight
            As for :meth:`fit`.

        Returns
        -------
        models : list of KernelRidge
            With ``alpha`` set to each penalty.
        curves : PenaltyCurves
            The criteria by which a penalty may be chosen.
        """
        prototype = copy.copy(self).set_params(alpha=1.0, alphas=None)
        penalties = None if alphas is None else check_penalties(alphas)
        rows, system = prototype._state_problem(X, y, sample_weight)
        n, k = len(prototype.y_fit_), system.shape[1]
        with ExitStack() as stack:
            path = PenaltyPath(system, stack, single_rows=True, n_jobs=self.n_jobs)
            values = default_penalties(path.size) if penalties is None else penalties
            curves = trace(path, values)
            with memory.reserve(40 * n * len(values) * k, f"the coefficients for {len(values)} penalties"):
                solutions = path.solutions(np.repeat(values[:, None], k, axis=1))
                models = [copy.copy(prototype).set_params(alpha=float(alpha)) for alpha in values]
                for model, alpha, solution in zip(models, values, solutions, strict=True):
                    model._take(rows, solution, np.array([alpha]))
                    shifted = dataclasses.replace(system, shifts=np.full(k, alpha))
                    warn_if_ridge_is_worse_on_own_rows("KernelRidge", shifted, solution.value)
        return models, curves.squeezed() if prototype.y_fit_.ndim == 1 else curves

    def certificate_of(
        self, coefficients: GivenCoefficients, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Certificate:
        """Return the certificate of coefficients for the problem of a fit; see :func:`mercer.certify`.

        Parameters
        ----------
        coefficients : GivenCoefficients
            Laid out as ``dual_coef_``.
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        Certificate
        """
        if isinstance(self.alpha, str):
            raise ParameterError(
                f"alpha={short(self.alpha)} has the penalty chosen by a fit; pass the number that was chosen (alpha_)."
            )
        rows, system = self._state_problem(X, y, sample_weight)
        targets, n = system.shape[1], len(self.y_fit_)
        coefficients.offsets(targets, allowed=False)
        # One row of coefficients for each target, where the learner has a column.
        across = dataclasses.replace(coefficients, dual_coef=np.asarray(coefficients.dual_coef).T)
        weight = np.zeros(n)
        weight[rows] = 1.0
        return evaluate.of_system(system, across.weights(targets, n, weight)[:, rows].T)

    @in_parts
    def predict(self, X: RowsLike) -> NDArray[np.floating]:
        """Predictions, of shape (n,) or (n, n_targets).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), Blocks or a collection of Dask
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (n, n_samples).
        """
        X = self._new_rows(X)
        # Coefficients of landmarks are large and cancel.
        dtype = np.float64 if hasattr(self, "landmark_indices_") else None
        values = self._expansion.values(X, dtype).reshape(-1, *self.dual_coef_.shape[1:])
        return values.astype(X.dtype, copy=False)

    @property
    def loo_predictions_(self) -> Vector:
        """Prediction for every training row by the fit to all others, of the shape of ``y``, in float64.

        Computed on first access, at the cost of about two fits in float64, and stored; already known after
        ``alpha="loo"`` unless ``factorization_`` is in float32. If the weight of a row counts several repetitions, one
        repetition is left out; a row of weight below one is left out as a whole.
        """
        check_is_fitted(self)
        if self.y_fit_ is None:
            raise AttributeError(
                'loo_predictions_ needs the training rows, and a fit with approximation="nystroem" keeps its landmarks '
                "alone; use cross-validation."
            )
        if self._loo_predictions is None:
            alpha = np.broadcast_to(self.alpha_, self.y_fit_.reshape(len(self.y_fit_), -1).shape[1])
            rows, system = self._system(alpha, self.certificate_.convex)
            coefficients = self.dual_coef_.reshape(len(self.y_fit_), -1)
            out = np.empty_like(coefficients)
            out[rows] = leave_one_out(system, coefficients[rows], n_jobs=self.n_jobs)
            idle = np.setdiff1d(np.arange(len(out)), rows)
            if len(idle):
                # Nothing was learned from a row of weight zero, so that leaving it out changes nothing.
                out[idle] = self._gram(self.X_fit_, dtype=np.float64).restrict(idle, rows) @ coefficients[rows]
            self._loo_predictions = out.reshape(self.y_fit_.shape)
        return self._loo_predictions

    def interval(self, X: RowsLike, coverage: float = 0.9, *, training: Any = None) -> Intervals:
        r"""Intervals that contain the targets of new rows, by the jackknife+ from exact leave-one-out predictions.

        No model is fitted again: with :math:`G = (K + \alpha I)^{-1}` the fit without row i predicts
        :math:`f_{-i}(x) = f(x) - (G\, k(x))_i\, e_i`, where :math:`e_i` is the error of the left-out row. With
        landmarks these are the fits without row i over the same landmarks.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (m, n_samples).
        coverage : float, default=0.9
            The share of new targets that the intervals are to contain, between 0 and 1.
        training : tuple (X, y) or (X, y, sample_weight), optional
            After a fit with an approximation, which keeps its landmarks alone: the arrays that it was fitted to. The
            model may have been saved and loaded since.

        Returns
        -------
        Intervals
            ``lower`` and ``upper`` of shape (m,) or (m, n_targets). ``guaranteed`` is ``2 * coverage - 1`` if the rows
            have no weights and ``alpha``, the kernel and landmarks that are none of the rows were given, or all rows
            are landmarks; otherwise 0, because all rows had a part in their choice.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1, or ``training`` is missing or not needed.
        DataError
            If ``training`` does not hold the rows of the fit: its objective for them is then not nearly the least one.
        NumericalError
            If ``alpha`` is so small that a left-out error or the system is lost in rounding.
        MemoryBudgetError
            If the kernel matrix in float64 does not fit the memory budget and has no low rank; with landmarks, if three
            of their matrices and about 20 numbers for each row do not fit.

        Warns
        -----
        MercerWarning
            If there are too few rows for bounded intervals.

        Notes
        -----
        Takes a factor, :math:`n^3 / 3` operations and :math:`8 n^2` bytes, and :math:`2 m n^2` operations for m rows;
        at the first call twice as much again for ``loo_predictions_``.

        With l landmarks each call takes two passes over the n training rows, :math:`3 n l^2` operations, and then, for
        each 2048 new rows (fewer where memory is scarce), kernel values and :math:`2 l^2` operations for each training
        row that may be at an end of their intervals. These are few if n is much larger than l, and all if l is n or
        new rows are far outside of the training rows under a kernel that grows.

        References
        ----------
        R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals
        of Statistics 49 (2021).

        Examples
        --------
        >>> import numpy as np
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(X).ravel() + 0.1 * np.cos(40 * X).ravel()
        >>> model = KernelRidge(0.1, kernel="rbf", gamma=1.0).fit(X, y)
        >>> intervals = model.interval([[1.5]], coverage=0.9)
        >>> intervals.lower.round(1).tolist(), intervals.upper.round(1).tolist()
        ([0.9], [1.1])
        >>> intervals.guaranteed, intervals.method
        (0.8, 'jackknife+ by exact leave-one-out')
        """
        coverage = check_coverage(coverage)
        X = self._new_rows(X)
        require_training(self, training, on_landmarks=self.y_fit_ is None)
        if self.y_fit_ is None:
            return self._interval_over_landmarks(X, coverage, training)
        targets, coefficients = (values.reshape(len(self.y_fit_), -1) for values in (self.y_fit_, self.dual_coef_))
        errors = targets - self.loo_predictions_.reshape(targets.shape)
        alpha = np.broadcast_to(self.alpha_, targets.shape[1])
        rows, system = self._system(alpha, self.certificate_.convex)
        cross, weights = self._gram(X, self.X_fit_, dtype=np.float64), self.sample_weight_fit_
        if len(rows) < len(targets):
            cross = cross.restrict(np.arange(cross.shape[0]), rows)
        given = weights is None and not isinstance(self.alpha, str) and self._is_kernel_given(self.X_fit_)
        lower, upper = intervals_of_system(
            system,
            cross,
            coefficients[rows],
            LeftOutErrors.plain(errors[rows], None if weights is None else weights[rows]),
            coverage,
            n_jobs=self.n_jobs,
        )
        shape = (-1, *self.y_fit_.shape[1:])
        guaranteed = guaranteed_by_jackknife(coverage) if given else 0.0
        return Intervals(lower.reshape(shape), upper.reshape(shape), coverage, JACKKNIFE, guaranteed)

    def _interval_over_landmarks(self, X: Any, coverage: float, training: Any) -> Intervals:
        lower, upper, given = ridge_intervals(self, X, training, coverage)
        guaranteed = guaranteed_by_jackknife(coverage) if given else 0.0
        shape = (-1, *self.dual_coef_.shape[1:])
        return Intervals(lower.reshape(shape), upper.reshape(shape), coverage, OVER_LANDMARKS, guaranteed)

    @property
    def loo_score_(self) -> float:
        """``R^2`` of ``loo_predictions_``, weighted as the fit was; the mean over the targets."""
        left_out = self.loo_predictions_
        return float(r2_score(self.y_fit_, left_out, sample_weight=self.sample_weight_fit_))

    @property
    def _expansion(self) -> KernelExpansion:
        coefficients = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        return KernelExpansion(self.kernel_, self.X_fit_, coefficients.T, n_jobs=self.n_jobs)

    def _make_kernel(self, X: CheckedRows, gamma: Any) -> Kernel:
        if isinstance(self.kernel_params, dict) and callable(self.kernel) and not isinstance(self.kernel, Kernel):
            return as_kernel(partial(self.kernel, **self.kernel_params), X=X)
        return super()._make_kernel(X, gamma)

    def _state_problem(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[NDArray[np.intp], LinearSystem]:
        """Check and keep the data; rows with a weight, and the linear system over them."""
        if self.is_on_landmarks:
            raise ParameterError(
                "paths along alpha and certificates of given coefficients are of all rows; pass approximation=None, or "
                "fit a model for each alpha and use mercer.certify_landmarks."
            )
        X, y = self._check_X_and_numbers(X, y, several=True)
        require_squares(y)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, X)
        n_targets = 1 if y.ndim == 1 else y.shape[1]
        alpha = np.zeros(n_targets) if isinstance(self.alpha, str) else penalties_of(self.alpha, n_targets)
        warn_of_constant(y, weights)
        warn_of_outlier(y, weights)
        # A search starts from the scale of the data.
        start = weighted_scale(X, np.ones(len(y)) if weights is None else weights) if self._searches_gamma else None
        side = self._fit_kernel(X, intercept=False, gamma=start)
        self.X_fit_, self.y_fit_, self.sample_weight_fit_ = X, y, weights
        self._loo_predictions = None
        for name in ("path_", "search_", "landmark_indices_"):
            if hasattr(self, name):
                delattr(self, name)
        if self.learns_kernel and self.kernel_ is not None:
            self._search_kernel(free_gamma(self.kernel_, self.kernel) if self._searches_gamma else self.kernel_)
        rows, system = self._system(alpha, True, side)
        convex = self._is_convex(system.gram, rows, X.dtype, intercept=False)
        return rows, dataclasses.replace(system, convex=convex)

    def _search_kernel(self, kernel: Kernel) -> None:
        """Set ``kernel_`` to the kernel with the free parameters of the least leave-one-out error."""
        if not kernel.theta.size:
            raise ParameterError(f"kernel_params='loo' needs a kernel with free parameters, and {kernel!r} has none.")
        X, n = self.X_fit_, len(self.y_fit_)
        weights = np.ones(n) if self.sample_weight_fit_ is None else self.sample_weight_fit_
        rows = np.flatnonzero(weights)
        search = LeftOutKernel(
            kernel,
            Rows(X if len(rows) == n else X[rows]),
            self.y_fit_.reshape(n, -1)[rows],
            weights[rows],
            None if isinstance(self.alpha, str) else float(np.ravel(self.alpha)[0]),
            self.n_jobs,
        )
        self.kernel_, self.search_ = search.search()
        own = [p.name for p in self.kernel_.parameters if p.free]
        # The penalty is chosen once more, without bounds.
        warn_of_bounds(self.search_, search.bounds, own)
        self._warn_if_degenerate(X)

    def _choose(
        self, rows: NDArray[np.intp], system: LinearSystem, criterion: Criterion, alphas: Vector | None
    ) -> Self:
        """Fit with the penalty that the criterion chooses."""
        warn_if_few(type(self).__name__, criterion, len(rows))
        with ExitStack() as stack:
            path, penalties, curves = reduce_and_choose(
                system, stack, criterion, alphas, per_target=bool(self.alpha_per_target), n_jobs=self.n_jobs
            )
            (solution,) = path.solutions(penalties[None])
            # From a form in float32 they would have five digits; then they are computed on first access.
            if criterion == "loo" and len(rows) == len(self.y_fit_) and not path.single:
                errors = np.column_stack([path.left_out_errors(a)[:, j] for j, a in enumerate(penalties)])
                self._loo_predictions = (np.asarray(system.targets) - errors).reshape(self.y_fit_.shape)
        self.path_ = curves.squeezed() if self.y_fit_.ndim == 1 else curves
        several = self.alpha_per_target and self.y_fit_.ndim == 2
        self._take(rows, solution, penalties if several else penalties[:1])
        # Not those of gcv: where rows are interpolated, it may be far below what leaving out each of them says.
        squares = curves.loo
        if squares is not None:
            squares = squares[np.searchsorted(curves.alphas, penalties), np.arange(len(penalties))]
        system = dataclasses.replace(system, shifts=penalties)
        warn_if_ridge_is_worse("KernelRidge", system, solution.value, squares, n_jobs=self.n_jobs)
        return self

    def _take(self, rows: NDArray[np.intp], solution: Solution[Vector, LinearSystemState], alpha: Vector) -> Self:
        """Keep a solution; ``alpha`` is the penalty of every target, or one of all."""
        coefficients = np.zeros((len(self.y_fit_), solution.value.shape[1]))
        coefficients[rows] = solution.value
        self.alpha_ = float(alpha[0]) if len(alpha) == 1 else alpha
        self.dual_coef_ = coefficients.reshape(self.y_fit_.shape)
        self.factorization_ = solution.state.method
        self.certificate_ = solution.certificate
        return self

    def _system(self, alpha: Vector, convex: bool, side: Any = None) -> tuple[NDArray[np.intp], LinearSystem]:
        """Rows with a weight, and the system over them; ``alpha`` for every target, ``side`` those of the fit."""
        n = len(self.y_fit_)
        gram: Any = self._gram(
            self.X_fit_ if side is None else side, dtype=None if self.kernel_ is None else np.float64
        )
        if isinstance(gram, Gram) and self._is_taken_on_trust():
            # An examination, an attempt at a low rank and a factorisation would each call the function.
            gram = evaluated(gram)
        targets = self.y_fit_.reshape(n, -1)
        weights = np.ones(n) if self.sample_weight_fit_ is None else self.sample_weight_fit_
        rows = np.flatnonzero(weights)
        if len(rows) < n:
            gram, targets, weights = gram.restrict(rows, rows), targets[rows], weights[rows]
        return rows, LinearSystem(gram, targets, alpha, weights, convex)

    @property
    def _searches_gamma(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "loo"

    @property
    def learns_kernel(self) -> bool:
        return self._searches_gamma or isinstance(self.kernel_params, str)

    def _check_search(self) -> None:
        """Raise unless ``gamma``, ``kernel_params`` and ``alpha`` state a search that can be made, or none."""
        if isinstance(self.kernel_params, str) and self.kernel_params != "loo":
            raise ParameterError(
                f"kernel_params must be a dict of keyword arguments, 'loo' or None, but is {self.kernel_params!r}."
            )
        if not self.learns_kernel:
            return
        setting = "gamma='loo'" if self._searches_gamma else "kernel_params='loo'"
        if self._is_precomputed:
            raise ParameterError(f"{setting} needs a kernel with parameters, and kernel is 'precomputed'.")
        if self._searches_gamma and not is_named(self.kernel):
            raise ParameterError(
                f"gamma='loo' is for kernels given by name, but kernel={self.kernel!r} has its own parameters; pass "
                "kernel_params='loo' to choose these."
            )
        if isinstance(self.alpha, str) and self.alpha != "loo":
            raise ParameterError(
                f"{setting} cannot be combined with alpha={short(self.alpha)}; pass alpha='loo' or a number."
            )
        if np.size(self.alpha) != 1:
            raise ParameterError(
                f"{setting} needs one penalty for all targets, but alpha has {np.size(self.alpha)} values; pass "
                "alpha='loo' or a number."
            )


def _columns(y: Any) -> tuple[Vector, float]:
    """Targets of a block as columns of numbers; the rows have their own weights."""
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1), 1.0
