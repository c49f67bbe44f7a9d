"""Regression with Gaussian processes."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, MemoryBudgetError, MercerWarning, ParameterError, warn_user
from mercer._registered import CommandLine
from mercer._types import CheckedRows, Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Either, Floats, Is, Maybe, Number, Whole, Word
from mercer.engine import memory, threads
from mercer.estimators.gaussian.contradictions import warn_of_contradictions
from mercer.estimators.gaussian.in_parts import PartRows, PartsFit
from mercer.estimators.gaussian.options import (
    ALPHA,
    NOISE_BOUNDS,
    ROWS_OR_LANDMARKS,
    TARGETS_AND_TREND,
    VARIANCES,
    check_search,
    default_kernel,
    is_bare,
    mean_functions,
    noise_parameter,
    one_column_kernel,
    row_variances,
    scaled,
)
from mercer.estimators.gaussian.over_landmarks import SAMPLE, LandmarkFit, require_all_rows
from mercer.estimators.gaussian.predictions import GaussianPredictions
from mercer.estimators.gaussian.starts import starts_of
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import judge_covariance
from mercer.estimators.shared.left_out_baseline import has_large_offset, warn_if_left_out_is_worse
from mercer.estimators.shared.parameters import require_choice, require_flags
from mercer.estimators.shared.restricted import Beside, require_approximation
from mercer.estimators.shared.statements import FitRows, LikeThe, has_full_diagonal, theta_fits
from mercer.estimators.shared.targets import warn_of_constant, warn_of_outlier
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.gram.hold import fits
from mercer.kernels import RBF, Kernel
from mercer.kernels.convert import KernelLike
from mercer.kernels.parameters import Parameter
from mercer.priors import bind_priors
from mercer.solvers.gaussian.condition import condition
from mercer.solvers.gaussian.covariance import Covariance
from mercer.solvers.gaussian.inducing_posterior import InducingFactors
from mercer.solvers.gaussian.regression import GaussianRegression, Objective
from mercer.solvers.gaussian.search import MultiStart, Search, warn_of_bounds
from mercer.solvers.gaussian.trend import Trend, TrendFit
from mercer.solvers.solution import Certificate

# Above it, squares of gradients of the evidence may overflow, which goes by squares of targets.
_LARGEST_TARGET = 1e70

# The least deviation of targets that has an inverse.
_LEAST = float(np.finfo(np.float64).tiny)

_REMEDY = 'The process has the mean 0, and y is far from it: pass normalize_y=True or mean="constant".'


def _noise_in_words(model: KernelEstimator) -> str | None:
    if model.noise_ is None:
        return None
    return f"kernel, and noise={model.noise_:.4g} of the target's variance, by the evidence"


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, GaussianPredictions):
    r"""Regression with a Gaussian process: predictions with their uncertainty, hyper-parameters by the evidence.

    .. math:: y_i = m(x_i) + f(x_i) + e_i, \qquad f \sim \mathrm{GP}(0, k_\theta), \qquad
              e_i \sim N(0, \alpha_i + \sigma^2)

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, str or callable, optional
        The covariance function, whose free parameters are optimised, starting from their current values. None is
        ``1.0 * RBF(length)``, whose factor and length scale start at the mean square of the targets and the median
        distance of rows (with ``optimizer=None``, it is ``1.0 * RBF(1.0)``). Also a name (``"rbf"``, ...), a function
        ``(X, Z) -> block``, or ``"precomputed"``. A kernel on strings, graphs, series or other objects that has no
        factor and no ``White`` term gets a factor, which is learnt, unless ``optimizer`` is None.
    alpha : float or array-like of shape (n_samples,), default=1e-10
        Known variance of the noise, of all rows or of each; added to the diagonal of the kernel matrix.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        None keeps the hyper-parameters fixed. A function is called as ``optimizer(objective, start, bounds=bounds)``,
        where ``objective(theta, eval_gradient=True)`` is to be minimised, and returns the best theta and its value.
    n_restarts_optimizer : int or "auto", default="auto"
        Further searches from starts drawn between the bounds; they run in parallel. ``"auto"`` searches once more from
        length scales at the median distance of rows, factors at the mean square of the targets and noise at a tenth of
        it, and with up to 500 rows from a quarter of these lengths before, until two ends agree in the log evidence to
        0.01. With a function as ``optimizer`` it is 0. A kernel with free periods (``Periodic``) is always searched
        from one more start, whose periods are peaks of a periodogram of the targets.
    normalize_y : bool, default=False
        Whether targets are standardised to mean 0 and variance 1; alpha and noise are then in these units.
    copy_X_train : bool, default=True
        Whether to copy the training rows.
    n_targets : int, optional
        Number of targets of the prior, before a fit.
    random_state : int, RandomState or None, default=None
        Seed of the random starts, and with an approximation of the choice of landmarks.
    noise : float, "auto" or None, default="auto"
        The start of the search for the variance :math:`\sigma^2` of the noise. None means no noise except alpha, and
        the kernel may have a ``White`` term. ``"auto"`` starts at a tenth of the mean square of the targets if the
        kernel is None or gets a factor, alpha is left at its default, and there is a search; else it is None. The
        variances of predictions are those of ``m + f`` without this noise, but with that of a ``White`` term; see
        ``observation`` of :meth:`predict`.
    noise_bounds : (float, float), default=(1e-8, 1e5)
        With ``noise="auto"`` these defaults are in units of the mean square of the targets.
    mean : {"zero", "constant", "linear"}, default="zero"
        The mean function m: none, a constant, or a constant and a slope for each column. Its coefficients have a flat
        prior and are integrated out of the evidence.
    objective : {"evidence", "loo"}, default="evidence"
        What the search maximises: the log marginal likelihood, or the sum of the log densities of every row given
        all others, which is more robust if the kernel is misspecified.
    priors : dict of str to Prior, optional
        Priors of hyper-parameters, by name (``"length_scale"``, ``"left.factor"``, ``"noise"``); see
        :mod:`mercer.priors`.
    gamma, degree, coef0 : float, int, float
        For kernels given by name.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` warns, and raises an error only if its matrix on the
        training rows, at the fitted hyper-parameters, is not positive semi-definite, whatever the noise; True raises
        the diagonal as far as necessary; False raises an error for the kernel.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` gives the variational posterior over few rows, the landmarks, in time linear in the number of
        rows. Then ``mean`` must be ``"zero"`` and ``objective`` ``"evidence"``, the kernel must be positive
        semi-definite, with ``White`` parts only as terms of a sum, and there must be noise in every row.
    n_landmarks : int, default=1000
        With an approximation: the number of landmarks, all rows if there are fewer.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    kernel_ : Kernel or None
        The kernel with the fitted hyper-parameters.
    noise_ : float or None
        The fitted variance of the noise.
    theta_ : ndarray of shape (p,)
        Free parameters of ``kernel_`` and then the noise, each on the scale of its transform (log by default).
    log_marginal_likelihood_value_ : float
        The log evidence at ``theta_``; the sum over the targets. With an approximation, its bound from below, which the
        search maximises.
    log_marginal_likelihood_bounds_ : ndarray of shape (2,)
        With an approximation: bounds of the exact log evidence at ``theta_`` from below and above, up to rounding.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them.
        After a fit to rows in parts it is None as well.
    search_rows_ : int
        After a fit to rows in parts with a search: the number of rows of the sample on which it was made.
    search_ : Search or None
        All searches: where each started and ended, the objective there, and how it ended.
    X_train_, y_train_ : ndarray of shape (n_samples, n_features), (n_samples,) or (n_samples, n_targets)
        The rows, and the targets as they were learned (normalised). With an approximation, the landmarks and None.
    L_ : ndarray of shape (n_samples, n_samples)
        Lower Cholesky factor of the covariance of the targets. Model files of more than 1024 rows do not contain it: it
        is computed again, in :math:`n^3 / 3` operations, when standard deviations are first requested. It does not
        exist with an approximation.
    alpha_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Dual coefficients: ``P y``, where P is the inverse of that covariance on what the mean function leaves. With an
        approximation, one coefficient for each landmark.
    coef_ : ndarray of shape (p,) or (n_targets, p)
        w of the posterior mean, in the units of y, in the p features of ``feature_map_``, for linear kernels (where
        they are the columns of X), polynomial and all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,) or (n_targets,)
        :math:`\|w\|` in the feature space of any kernel, in the units of y.
    jitter_ : float
        The jitter that the factorisation needed on the diagonal; 0 if none.
    certificate_ : Certificate
        Accuracy of the linear system, time and memory; its iterations are evaluations of the objective.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MultipleKernelRidge : Learns the weights of a sum of kernels by leave-one-out errors. Here the evidence learns them,
        as the factors of ``1.0 * k1 + 1.0 * k2``.

    Notes
    -----
    Names, defaults and meaning are those of ``sklearn.gaussian_process.GaussianProcessRegressor``, except that the
    default of ``n_restarts_optimizer`` is 0 there. An evaluation of the objective takes one Cholesky factorisation and
    one inverse, in place: :math:`n^3` operations and :math:`8 n^2` bytes, however many parameters there are.

    With an approximation by m landmarks, an evaluation takes about :math:`6 n m^2` operations and :math:`56 m^2` bytes
    beside blocks of rows. Hyper-parameters are searched by the exact evidence of a sample of up to 1000 rows, from all
    starts, then landmarks are chosen for them, and then a search from there maximises the bound of the evidence on all
    rows, which ends when five steps together gain less than 0.1. The bound holds for any landmarks; where they leave
    much of the variance of f, the fitted noise is too large. With all rows as landmarks the posterior is exact.
    Variances are those of a process whose values in the landmarks have seen all rows. They are usually larger than the
    exact ones, but not always: rows far from a landmark may teach it too much.

    Of rows in blocks or partitions, landmarks and hyper-parameters come from a uniform sample, which is drawn in one
    pass: the last search maximises the bound of the evidence of its ``search_rows_`` rows. The posterior and the bounds
    of the evidence are those of all rows. Eight numbers and the targets of each row are in memory.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), chapters 2 and 5; M. K.
    Titsias, "Variational learning of inducing variables in sparse Gaussian processes" (2009), and "Variational
    inference for Gaussian and determinantal point processes" (2014), for landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessRegressor
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> y = np.sin(X).ravel() + 0.1 * np.cos(40 * X).ravel()
    >>> model = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1).fit(X, y)
    >>> mean, std = model.predict([[1.5], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.05), bool(std[0] < 0.05 < std[1])
    (True, True)
    >>> sparse = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1, approximation="nystroem", n_landmarks=8)
    >>> sparse = sparse.set_params(random_state=0).fit(X, y)
    >>> low, high = sparse.log_marginal_likelihood_bounds_
    >>> bool(low <= high < low + 1), bool(abs(sparse.predict([[1.5]])[0] - mean[0]) < 0.01)
    (True, True)
    """

    _beside_landmarks = (
        Beside("mean", "zero", 'Pass mean="zero", with normalize_y=True for targets far from 0.'),
        Beside("objective", "evidence", 'Pass objective="evidence".'),
    )
    _command_line = CommandLine(
        "gp",
        # Without noise it would go through every value of the target. The search starts here, of a variance of 1.
        parameters={"noise": 0.1},
        scaled=True,
        pair_bytes=8,
        frugal="svr",
        advised=False,
        choice=_noise_in_words,
    )
    _fitted = Fitted(
        {
            "X_train_": FitRows("n"),
            "_y_mean": Either(Floats(""), Floats("t")),
            "_y_scale": LikeThe("_y_mean", Either(Floats("", least=_LEAST), Floats("t", least=_LEAST))),
            "_center": Maybe(Floats("d")),
            "search_": Maybe(Is(Search)),
            "theta_": Floats("p"),
            "noise_": Maybe(Number(least=0)),
            "_variances": Maybe(Floats("n", least=0)),
            "alpha_": Either(Floats("n"), Floats("n, t")),
            "y_train_": Maybe(LikeThe("alpha_", Either(Floats("n"), Floats("n, t")))),
            "_trend": Maybe(Is(TrendFit)),
            "jitter_": Number(least=0),
            "log_marginal_likelihood_value_": Number(),
            "certificate_": Is(Certificate),
        },
        # Files of many rows are without the factor.
        {
            "L_": Floats("n, n"),
            "_landmark_factors": Is(InducingFactors),
            "landmark_indices_": Maybe(Whole("n", distinct=True)),
            "log_marginal_likelihood_bounds_": Floats(lambda: (2,)),
            "search_rows_": Count(least=1),
        },
        parameters={"mean": Word(("zero", "constant", "linear"))},
        rules=(
            has_full_diagonal("L_"),
            TARGETS_AND_TREND,
            ROWS_OR_LANDMARKS,
            VARIANCES,
            theta_fits(lambda m: m.noise_ is not None),
        ),
    )

    def __init__(
        self,
        kernel: KernelLike | None = None,
        *,
        alpha: Any = ALPHA,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int | str = "auto",
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        noise: float | str | None = "auto",
        noise_bounds: tuple[float, float] = NOISE_BOUNDS,
        mean: str = "zero",
        objective: str = "evidence",
        priors: Any = None,
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        allow_indefinite: bool | str = "warn",
        approximation: str | None = None,
        n_landmarks: int = 1000,
        landmarks: Any = "rpcholesky",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state
        self.noise = noise
        self.noise_bounds = noise_bounds
        self.mean = mean
        self.objective = objective
        self.priors = priors
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.allow_indefinite = allow_indefinite
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.n_jobs = n_jobs

    @takes_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Search for the hyper-parameters and condition on rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have targets of their own, are read
            once for targets and a sample, on which hyper-parameters are searched, and three times for the posterior.
            Partitions of Dask are read as blocks, on this machine. Both need an approximation.
        y : array-like of shape (n,) or (n, n_targets)

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError, NumericalError, MemoryBudgetError
            If the data or a parameter cannot be used, the covariance is not positive definite, or the problem exceeds
            the memory budget.

        Warns
        -----
        MercerWarning
            If the targets are constant, one of them makes up nearly all squared errors or is missed by more than ten
            standard deviations of the noise, all of them are more than three standard deviations from their
            predictions by other rows, a hyper-parameter ended at a bound, the factorisation needed jitter, or the
            landmarks leave more than ten times the variance of the noise.
        """
        start_time = time.perf_counter()
        self._check_parameters()
        parts = PartRows.of(self, X, y)
        if parts is not None:
            X, y = parts.training()
        X, y = self._check_X_and_numbers(X, y, several=True)
        y = y.copy() if parts is None else parts.y.astype(np.float64)
        self._check_targets(y)
        variances = row_variances(self.alpha, len(y))
        rows = self._fit_kernel(X, intercept=False)
        # Also says what is wrong with priors before any work.
        noise = noise_parameter(self.noise, self.noise_bounds, self._scale_kernel(X, y))
        self.noise_ = None if noise is None else noise.value
        parameters = self._parameters(noise)
        log_prior = bind_priors(self.priors, parameters)
        self._forget()
        if self.is_on_landmarks:
            self._normalise(y)
            self._center = None
            targets = self.y_train_.reshape(len(y), -1)
            if parts is None:
                LandmarkFit(self, X, targets, variances, parameters, log_prior).run()
            else:
                drawn, places = (targets[parts.positions], variances[parts.positions]), parts.blocks
                PartsFit(self, X, *drawn, parameters, log_prior, places, targets, variances).run()
            if self.search_ is not None:
                self._warn_if_degenerate(X)
            return self
        given = self._given_matrix()
        convex = judge_covariance(self, rows, X.dtype, given)
        self.X_train_ = X.copy() if self.copy_X_train else X
        self._normalise(y)
        self._center = X.mean(axis=0, dtype=np.float64) if self.mean == "linear" and isinstance(X, np.ndarray) else None
        # For the whole search: L-BFGS-B on a few parameters would wake the threads of BLAS as well.
        searched = 0 if self.optimizer is None or not parameters else 8 * min(len(y), SAMPLE) ** 2
        with memory.track() as account, threads.workers(self.n_jobs), naming_what_fits(self, len(y), searched):
            problem = self._with_trend(variances, self._covariance(rows, given))
            self.search_ = self._search(problem, parameters, log_prior)
            self._condition(problem, parameters)
        if self.search_ is not None and not convex:
            # Also at the fitted hyper-parameters.
            judge_covariance(self, rows, X.dtype)
        if self.search_ is not None:
            self._warn_if_degenerate(X)
        warn_of_contradictions(self, X, variances + (self.noise_ or 0.0) + self.jitter_)
        self._compare()
        evaluations = 0 if self.search_ is None else self.search_.evaluations
        self.certificate_ = dataclasses.replace(
            self.certificate_,
            iterations=evaluations,
            seconds=time.perf_counter() - start_time,
            peak_bytes=account.peak,
            convex=convex,
        )
        return self

    def _check_parameters(self) -> None:
        check_search(self, "auto")
        require_flags(self, "normalize_y", "copy_X_train")
        require_choice(self, "mean", ("zero", "constant", "linear"))
        require_choice(self, "objective", ("evidence", "loo"))
        if self._is_precomputed and self.mean == "linear":
            raise ParameterError('mean="linear" needs the columns of X, and the kernel is precomputed.')
        require_approximation(self)

    def _forget(self) -> None:
        """Drop what only some fits set."""
        bounds = "log_marginal_likelihood_bounds_"
        for name in ("L_", "_landmark_factors", "landmark_indices_", bounds, "search_rows_"):
            self.__dict__.pop(name, None)

    def _scale_kernel(self, X: CheckedRows, y: Matrix) -> float | None:
        """Scale the kernel if its factor is learnt by default; the unit of noise, None if that is not."""
        if self.optimizer is None or not (self.kernel is None or is_bare(self.kernel_)):
            return None
        assert self.kernel_ is not None
        size = float(np.mean(self.kernel_.diagonal(X)))
        scale = 1.0 if self.normalize_y else float(np.mean(np.square(y)))
        scale = scale if scale > _LEAST else 1.0
        if not 0 < size < np.inf:
            # The kernel is 0, of which the user is told.
            return None
        self.kernel_ = scaled(self.kernel_, scale / size)
        return scale if np.ndim(self.alpha) == 0 and self.alpha == ALPHA else None

    def _check_targets(self, y: Matrix) -> None:
        columns = y.shape[1] if y.ndim > 1 else 1
        if self.n_targets is not None and self.n_targets != columns:
            raise ParameterError(f"n_targets is {self.n_targets}, and y has {columns} columns; leave n_targets out.")
        largest = float(np.abs(y).max(initial=0.0))
        if largest > _LARGEST_TARGET:
            raise DataError(f"y reaches up to {largest:g}, whose squares and theirs overflow float64; scale y.")
        warn_of_constant(y, None)
        warn_of_outlier(y, None)

    def _make_kernel(self, X: CheckedRows, gamma: Any) -> Kernel:
        if self.kernel is None:
            return 1.0 * RBF(1.0) if self.optimizer is None else default_kernel(X)
        return one_column_kernel(super()._make_kernel(X, gamma), getattr(self, "n_features_in_", None))

    def _parameters(self, noise: Parameter | None) -> tuple[Parameter, ...]:
        """All that are free, in the order of theta."""
        own = () if self.kernel_ is None else self.kernel_.parameters
        return tuple(p for p in own if p.free) + (() if noise is None else (noise,))

    def _normalise(self, y: Matrix) -> None:
        shape = y.shape[1:]
        self._y_mean, self._y_scale = np.zeros(shape), np.ones(shape)
        if self.normalize_y:
            self._y_mean, deviation = np.asarray(y.mean(axis=0)), y.std(axis=0)
            # Of a constant target, rounding is all that a deviation can be.
            size = np.abs(y).max(axis=0)
            self._y_scale = np.where(deviation > 10 * np.finfo(float).eps * size, deviation, 1.0)
        self.y_train_ = (y - self._y_mean) / self._y_scale

    def _with_trend(self, variances: Vector, covariance: Covariance | None = None) -> GaussianRegression:
        H = mean_functions(self.mean, self.X_train_, self._center)
        return self._problem(variances, None if H is None else Trend.of(H), covariance)

    def _search(self, problem: GaussianRegression, parameters: tuple[Parameter, ...], log_prior: Any) -> Search | None:
        if self.optimizer is None or not parameters:
            return None
        bounds = [[dataclasses.replace(p, value=b).theta for b in p.bounds] for p in parameters]
        objective = Objective(problem, self.objective, self.n_jobs)
        what = "evidence" if self.objective == "evidence" else "leave-one-out density"
        search = MultiStart(
            **starts_of(self, self.kernel_, self.X_train_, parameters, self.y_train_),
            random_state=self.random_state,
            optimizer=self.optimizer if callable(self.optimizer) else None,
            n_jobs=self.n_jobs,
            bytes_each=objective.bytes_each,
            what=what,
        ).maximise(objective, [p.theta for p in parameters], bounds, log_prior)
        warn_of_bounds(search, bounds, [p.name for p in parameters])
        return search

    def _condition(self, problem: GaussianRegression, parameters: tuple[Parameter, ...]) -> None:
        """Set the fitted hyper-parameters, and solve."""
        self.theta_ = np.array([p.theta for p in parameters]) if self.search_ is None else self.search_.theta
        own, noise = problem.split(self.theta_)
        if self.kernel_ is not None:
            self.kernel_ = self.kernel_.with_theta(own)
        if self.search_ is None:
            # As given: a round trip through its logarithm would change its digits.
            noise = self.noise_ or 0.0
        self.noise_ = noise if problem.free_noise else None
        self._variances = problem.variances
        solution = condition(problem, self.theta_, n_jobs=self.n_jobs)
        self._keep(solution.value)
        self.jitter_ = solution.state.jitter
        self.log_marginal_likelihood_value_ = solution.state.evidence
        self.certificate_ = solution.certificate
        if self.jitter_:
            warn_user(
                f"the covariance matrix is not positive definite to working precision, so {self.jitter_:.3g} was added "
                "to its diagonal. Raise alpha, or pass noise=..., or leave out rows that repeat others.",
                MercerWarning,
            )

    def _compare(self) -> None:
        """Warn if a process of mean zero loses the offset of the targets between its rows."""
        y = self.y_train_
        n = len(y)
        if self.mean != "zero" or not has_large_offset(y) or not fits(8 * n * n):
            return
        targets = y.reshape(n, -1)
        try:
            with threads.workers(self.n_jobs):
                errors = targets - self._posterior.leave_one_out(targets).mean
        except MemoryBudgetError:
            # What was free may be taken by the time that the inverse reserves it; the fit stands all the same.
            return
        warn_if_left_out_is_worse("GaussianProcessRegressor", y, (errors**2).mean(axis=0), None, _REMEDY)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The log marginal likelihood of the training rows, summed over the targets.

        Parameters
        ----------
        theta : array-like of shape (p,), optional
            As ``theta_``; None for the value at the fitted hyper-parameters.
        eval_gradient : bool, default=False
            Whether the gradient, of shape (p,), is returned as well.
        clone_kernel : bool, default=True
            For compatibility with scikit-learn; ``kernel_`` is never changed.

        Returns
        -------
        float, or (float, ndarray of shape (p,))

        Raises
        ------
        ParameterError
            If theta has another length, the gradient is requested without theta, or there is a theta and the fit kept
            its landmarks alone.
        IndefiniteKernelError, NumericalError
            If the covariance is not positive definite there.
        """
        check_is_fitted(self, "alpha_")
        if theta is None:
            if eval_gradient:
                raise ParameterError("a gradient needs theta; pass theta=model.theta_.")
            return np.float64(self.log_marginal_likelihood_value_)
        require_all_rows(self, "the evidence at other hyper-parameters")
        theta = np.asarray(theta, dtype=np.float64).ravel()
        if theta.shape != self.theta_.shape:
            raise ParameterError(
                f"theta must have the {len(self.theta_)} entries of theta_, but has {theta.size}: the free parameters "
                f"of {self.kernel_!r}{', and the log of the noise variance' if self.noise_ is not None else ''}."
            )
        objective = Objective(self._with_trend(self._variances), n_jobs=self.n_jobs)
        if not eval_gradient:
            # Arithmetic of a NumPy number with a float32 stays in float64; that of a Python number does not.
            return np.float64(objective.value(theta))
        value, gradient = objective(theta)
        return np.float64(value), gradient
