"""What a Gaussian process regression predicts: before a fit, after it, with rows left out and with more rows."""

from __future__ import annotations

import copy
import dataclasses
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer._types import CheckedRows, Matrix, RowsLike, Vector
from mercer.data.distinct import stacked
from mercer.data.objects import short
from mercer.data.sklearn_errors import advised
from mercer.data.vectors import column_names
from mercer.engine import memory
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.in_parts import predicts_parts
from mercer.estimators.gaussian.intervals import NewRows, intervals_of_posterior
from mercer.estimators.gaussian.landmark_intervals import process_intervals
from mercer.estimators.gaussian.options import function_variance, mean_functions, require_observation, row_variances
from mercer.estimators.gaussian.over_landmarks import require_all_rows
from mercer.estimators.shared.base import KernelEstimator, bind_columns
from mercer.estimators.shared.definiteness import PROCESS, counts_as_definite
from mercer.estimators.shared.expansion import KernelExpansion, feature_map_of, norm_of, unless_stored, without_noise
from mercer.estimators.shared.intervals import JACKKNIFE, Intervals, check_coverage, guaranteed_by_jackknife
from mercer.estimators.shared.landmark_intervals import OVER_LANDMARKS, require_training
from mercer.estimators.shared.layout import read_only
from mercer.gram import Gram
from mercer.gram.hold import reserve_square
from mercer.gram.protocol import GramMatrix
from mercer.kernels import RBF, Kernel
from mercer.kernels.domain import checked_rows
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import diagonal
from mercer.solvers.gaussian.condition import factor_of, resume
from mercer.solvers.gaussian.covariance import Covariance
from mercer.solvers.gaussian.inducing_posterior import InducingFactors, InducingPosterior
from mercer.solvers.gaussian.posterior import LeftOut, Posterior, extend
from mercer.solvers.gaussian.regression import GaussianRegression
from mercer.solvers.gaussian.search import Search
from mercer.solvers.gaussian.trend import Trend, TrendFit
from mercer.solvers.solution import Certificate

# Files of more rows than this, where the factor is more than 8 MiB, are without it.
_MOST_STORED = 1024


class GaussianPredictions(KernelEstimator):
    """Everything of the estimator that needs a posterior and no search."""

    _if_indefinite = PROCESS
    shares_matrices = True
    predicts_in = np.float64

    alpha: Any
    mean: Any
    n_targets: Any
    noise: Any
    normalize_y: Any
    certificate_: Certificate
    noise_: float | None
    search_: Search | None
    X_train_: Any
    # None after a fit on landmarks, as the variances of the noise are.
    y_train_: Any
    alpha_: Matrix
    # None after a fit to all rows.
    _landmark_factors: InducingFactors | None = None
    jitter_: float
    log_marginal_likelihood_value_: float
    _trend: TrendFit | None
    _center: Vector | None
    _variances: Any
    theta_: Vector
    _y_mean: Matrix
    _y_scale: Matrix

    feature_map_ = property(feature_map_of)
    norm_ = property(norm_of)

    @property
    def can_share(self) -> bool:
        """Whether a fit can use kernel matrices that exist already; a linear mean needs the rows themselves."""
        return super().can_share and self.mean != "linear"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Before a fit there is the prior.
        tags.requires_fit = False
        return tags

    def _keep(self, posterior: Posterior) -> None:
        self.L_ = posterior.factor.T
        self.alpha_ = posterior.alpha.reshape(self.y_train_.shape)
        self._trend = posterior.trend

    @unless_stored
    def L_(self) -> Matrix:
        """The factor of the covariance of the targets, computed when it is first needed if a file had no room for it.

        Raises
        ------
        MemoryBudgetError
            If it does not fit the memory budget.
        AttributeError
            If the fit kept its landmarks alone.
        """
        check_is_fitted(self, "alpha_")
        if self._landmark_factors is not None:
            raise AttributeError('there is no factor of the covariance of all rows with approximation="nystroem".')
        self.L_ = factor_of(self._problem(self._variances, None), self.theta_, n_jobs=self.n_jobs).T
        return vars(self)["L_"]

    @property
    def _not_in_file(self) -> tuple[str, ...]:
        """Attributes that follow from the others, and are too large for a model file."""
        return ("trace_", "L_") if len(self.alpha_) > _MOST_STORED else ("trace_",)

    @property
    def _posterior(self) -> Posterior:
        """That of a fit to all rows."""
        # A model file gives L_ back in C order, which is one copy away from what LAPACK reads.
        return self._posterior_with(np.ascontiguousarray(self.L_.T))

    @property
    def _predictive(self) -> Posterior | InducingPosterior:
        """What predicts new rows."""
        return self._posterior if self._landmark_factors is None else self._on_landmarks(self._landmark_factors)

    def _on_landmarks(self, factors: InducingFactors) -> InducingPosterior:
        return InducingPosterior(factors, self.alpha_.reshape(len(self.alpha_), -1))

    def _posterior_with(self, factor: Matrix) -> Posterior:
        return Posterior(factor, self.alpha_.reshape(len(self.alpha_), -1), self._trend)

    @property
    def mean_coef_(self) -> Matrix | None:
        """Coefficients of the mean function, in the units of X and y: a constant, then slopes; None for a mean of 0."""
        check_is_fitted(self, "alpha_")
        if self._trend is None:
            return None
        coefficients = self._trend.transform @ self._trend.coefficients
        if self._center is not None:
            coefficients[0] -= self._center @ coefficients[1:]
        coefficients = coefficients.reshape(len(coefficients), *self.y_train_.shape[1:]) * self._y_scale
        coefficients[0] += self._y_mean
        return coefficients

    @property
    def coef_(self) -> Matrix:
        """w of the posterior mean, (p,) or (n_targets, p), in the units of y, for kernels with a finite feature map.

        The p columns belong to the features of ``feature_map_``: the columns of X for the linear kernel.
        ``predict(X)`` is ``phi(X) @ coef_.T`` plus the mean function (see ``mean_coef_``); with ``normalize_y`` and
        ``mean="zero"``, plus the mean of the targets.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        coef = self._expansion.coefficients()
        return read_only(coef[0] if self.alpha_.ndim == 1 else coef)

    @property
    def _expansion(self) -> KernelExpansion:
        """The posterior mean but for the mean function, in the units of y."""
        check_is_fitted(self, "alpha_")
        weights = (self.alpha_.reshape(len(self.alpha_), -1) * np.ravel(self._y_scale)).T
        # White terms between training rows are noise, and not part of the function.
        return KernelExpansion(without_noise(self.kernel_), self.X_train_, weights, n_jobs=self.n_jobs)

    @predicts_parts
    def predict(
        self, X: RowsLike, return_std: bool = False, return_cov: bool = False, *, observation: bool | None = None
    ) -> Any:
        """Means in new rows, and how sure they are; before a fit those of the prior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features), Blocks or a collection of Dask
            For ``"precomputed"``, kernel values of new and training rows, shape (m, n_samples). For rows in parts there
            is no ``return_cov``.
        return_std : bool, default=False
            Whether to return standard deviations as well, of the quantity that ``observation`` selects. They are
            computed in tiles of new rows, whose size follows from the memory budget. For at least twice as many new
            rows as training rows, deviations are computed in float32 if a bound on rounding errors guarantees a
            relative error of at most 1e-4, and in float64 otherwise; fewer rows and means are always in float64. For
            ``"precomputed"``, the prior variances ``k(x, x)`` of new rows are not known.
        return_cov : bool, default=False
            The same for the covariance matrix.
        observation : bool, optional
            Whether deviations and covariances are those of a new observation y, or of the function ``m(x) + f(x)``
            (False). An observation has the variances of ``White`` terms of the kernel, of ``noise``, and of ``alpha``
            if that is one number. The default, None, includes ``White`` terms only, as scikit-learn does.

        Returns
        -------
        mean : ndarray of shape (m,) or (m, n_targets)
        std : ndarray of the same shape
        cov : ndarray of shape (m, m) or (m, m, n_targets)

        Raises
        ------
        ParameterError
            If deviations and covariances are both requested, or the kernel is precomputed.
        MemoryBudgetError
            If the covariance matrix does not fit the memory budget.
        """
        if return_std and return_cov:
            raise ParameterError(
                "at most one of return_std and return_cov can be True; the covariance contains the variances."
            )
        require_observation(observation)
        if not hasattr(self, "alpha_"):
            return self._predict_prior(X, return_std, return_cov, observation)
        X = self._check_X(X, reset=False)
        cross, H = self._cross(X), mean_functions(self.mean, X, self._center)
        if not (return_std or return_cov):
            # Means need no factor, which may have to be computed first.
            return self._unscaled(self._posterior_with(np.empty((0, 0))).mean(cross, H))
        self._require_kernel()
        posterior, rows = self._predictive, Rows(X)
        if return_std:
            prior_variance = self._prior_variance(self.kernel_, rows, observation)
            mean, variance = posterior.moments(cross, prior_variance, H, n_jobs=self.n_jobs)
            return self._unscaled(mean), self._flat(np.sqrt(variance)[:, None] * np.ravel(self._y_scale))
        with ExitStack() as stack:
            reserve_square(stack, rows.n, 8, "the covariance matrix of the new rows")
            prior = np.empty((rows.n, rows.n))
            self._gram(rows, dtype=np.float64).dense(prior)
            if observation is not None:
                np.fill_diagonal(prior, self._prior_variance(self.kernel_, rows, observation))
            mean, covariance = posterior.covariance(cross, prior, H)
        return self._unscaled(mean), self._scaled_covariance(covariance)

    def _scaled_covariance(self, covariance: Matrix) -> Matrix:
        """In the units of y, and for every target where there are several."""
        variances = np.square(np.ravel(self._y_scale))
        return covariance * variances[0] if variances.size == 1 else covariance[:, :, None] * variances

    def _predict_prior(self, X: RowsLike, return_std: bool, return_cov: bool, observation: bool | None) -> Any:
        self._require_kernel()
        # There is no fit whose columns these could be compared with.
        names, X = column_names(X), checked_rows(self.kernel, X, "X")
        rows, targets = Rows(X), self.n_targets or 1
        prior = 1.0 * RBF(1.0) if self.kernel is None else self._make_kernel(X, self.gamma)
        kernel = bind_columns(prior, names).with_data(X)
        mean = np.zeros((rows.n, targets)) if targets > 1 else np.zeros(rows.n)
        if return_std:
            deviation = np.sqrt(self._prior_variance(kernel, rows, observation))
            return mean, np.repeat(deviation[:, None], targets, axis=1) if targets > 1 else deviation
        if return_cov:
            covariance = np.asarray(Gram(kernel, rows, dtype=np.float64, n_jobs=self.n_jobs).dense())
            if observation is not None:
                np.fill_diagonal(covariance, self._prior_variance(kernel, rows, observation))
            return mean, np.repeat(covariance[:, :, None], targets, axis=2) if targets > 1 else covariance
        return mean

    def sample_y(self, X: RowsLike, n_samples: int = 1, random_state: Any = 0) -> Matrix:
        """Functions drawn from the process, in rows of ``X``: from the prior before a fit, else from the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0

        Returns
        -------
        ndarray of shape (m, n_samples) or (m, n_targets, n_samples)
        """
        if not isinstance(n_samples, (int, np.integer)) or isinstance(n_samples, bool) or n_samples < 1:
            raise ParameterError(f"n_samples must be a whole number of at least 1, but is {short(n_samples)}.")
        random = check_random_state(random_state)
        mean, covariance = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return _draw(mean, covariance, n_samples, random)
        samples = [_draw(mean[:, t], covariance[:, :, t], n_samples, random) for t in range(mean.shape[1])]
        return np.stack(samples, axis=1)

    def leave_one_out(self, *, observation: bool | None = None) -> LeftOut:
        """Each training row by all others, in closed form: means, variances and log densities of their targets.

        Hyper-parameters and, with ``normalize_y``, units are those of the whole fit.

        Parameters
        ----------
        observation : bool, optional
            Whether variances are those of the targets, with all their noise (True, and by default), or of the function
            ``m(x) + f(x)`` (False). Log densities are always those of the targets.

        Returns
        -------
        LeftOut
            A named tuple ``(mean, variance, log_density)`` of arrays of the shape of y.

        Raises
        ------
        ParameterError
            If the fit kept its landmarks alone.
        """
        check_is_fitted(self, "alpha_")
        require_all_rows(self, "leave_one_out")
        targets = self.y_train_.reshape(len(self.y_train_), -1)
        require_observation(observation)
        mean, variance, density = self._posterior.leave_one_out(targets)
        if observation is False:
            variance = np.maximum(variance - self._noise_of_targets()[:, None], 0.0)
        scale = np.ravel(self._y_scale)
        return LeftOut(self._unscaled(mean), self._flat(variance * scale**2), self._flat(density - np.log(scale)))

    def _noise_of_targets(self) -> Vector:
        """Variances of the noise of the normalised training targets, with those of ``White`` terms."""
        noise: Vector = self._variances + (self.noise_ or 0.0)
        if self.kernel_ is None:
            return noise
        rows = Rows(self.X_train_)
        return noise + diagonal(self.kernel_, rows) - function_variance(self.kernel_, rows)

    def interval(self, X: RowsLike, coverage: float = 0.9, *, training: Any = None) -> Intervals:
        r"""Intervals that contain new observations in rows X, by the jackknife+ from exact left-out predictions.

        The process without row i predicts :math:`f_{-i}(x)` with deviation :math:`\sigma_{-i}(x)`, both in closed form.
        Intervals follow from :math:`f_{-i}(x) \pm \sigma_{-i}(x)\, |y_i - f_{-i}(x_i)| / \sigma_{-i}(x_i)`, so they are
        wider where the process is less sure, and as wide as the errors of left-out rows were, whatever the noise is.
        With landmarks, these are the processes without row i over the same landmarks.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``"precomputed"``, kernel values of new and training rows, shape (m, n_samples); as ``k(x, x)`` is not
            known, errors are then not divided by deviations.
        coverage : float, default=0.9
            The share of new observations that the intervals are to contain, between 0 and 1.
        training : tuple (X, y), optional
            After a fit with an approximation, which keeps its landmarks alone: the arrays that it was fitted to. The
            model may have been saved and loaded since.

        Returns
        -------
        Intervals
            ``lower`` and ``upper`` of shape (m,) or (m, n_targets). ``guaranteed`` is ``2 * coverage - 1`` if
            hyper-parameters and landmarks that are none of the rows were given and ``alpha`` is a number; otherwise 0,
            because all rows had a part in their choice.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1, or ``training`` is missing or not needed.
        DataError
            If ``training`` does not hold the rows of the fit: its objective for them is then not nearly the least one.
        MemoryBudgetError
            If the matrices and, with landmarks, about 20 numbers for each row do not fit the memory budget.

        Warns
        -----
        MercerWarning
            If there are too few rows for bounded intervals.

        References
        ----------
        R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals
        of Statistics 49 (2021).

        Examples
        --------
        >>> from mercer import GaussianProcessRegressor
        >>> from mercer.kernels import RBF
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(X).ravel() + 0.1 * np.cos(40 * X).ravel()
        >>> model = GaussianProcessRegressor(RBF(1.0), alpha=0.01, optimizer=None).fit(X, y)
        >>> intervals = model.interval([[1.5], [9.0]], coverage=0.9)
        >>> (intervals.upper - intervals.lower).round(1).tolist(), intervals.guaranteed
        ([0.2, 2.1], 0.8)
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self, "alpha_")
        on_landmarks = self._landmark_factors is not None
        require_training(self, training, on_landmarks=on_landmarks)
        X = self._check_X(X, reset=False)
        if on_landmarks:
            lower, upper, sure = process_intervals(self, X, self._cross(X), training, coverage)
            guaranteed = guaranteed_by_jackknife(coverage) if sure else 0.0
            return Intervals(self._unscaled(lower), self._unscaled(upper), coverage, OVER_LANDMARKS, guaranteed)
        kernel = self.kernel_
        rows = NewRows(
            self._cross(X),
            None if kernel is None else lambda part: function_variance(kernel, Rows(X[part])),
            lambda part: mean_functions(self.mean, X[part], self._center),
        )
        targets, noise = self.y_train_.reshape(len(self.y_train_), -1), self._noise_of_targets()
        lower, upper = intervals_of_posterior(self._posterior, targets, noise, rows, coverage, n_jobs=self.n_jobs)
        given = self.search_ is None and self._is_kernel_given(self.X_train_)
        sure = given and not self.normalize_y and np.ndim(self.alpha) == 0
        guaranteed = guaranteed_by_jackknife(coverage) if sure else 0.0
        return Intervals(self._unscaled(lower), self._unscaled(upper), coverage, JACKKNIFE, guaranteed)

    def condition_on(self, X: RowsLike, y: ArrayLike, alpha: Any = None) -> Self:
        """A copy that has seen more rows, with the same hyper-parameters: the factor grows, nothing is refitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (k, n_features)
        y : array-like of shape (k,) or (k, n_targets)
        alpha : float or array-like of shape (k,), optional
            Known variance of the noise of the new rows; None for that of the fit, which must then be a number.

        Raises
        ------
        ParameterError
            If the kernel is precomputed, alpha is needed, or the fit kept its landmarks alone.
        DataError
            If the data are not compatible with those of the fit.
        """
        check_is_fitted(self, "alpha_")
        require_all_rows(self, "condition_on")
        self._require_kernel()
        X, targets = self._more_rows(X, y)
        variances = row_variances(self._new_alpha(alpha), len(targets))
        more = copy.copy(self)
        n, k = len(self.y_train_), len(targets)
        with memory.reserve(8 * (n * k + k * k), f"kernel values of {k} more rows"):
            cross = np.ascontiguousarray(self._cross(X).block(None, None))
            corner = np.empty((k, k))
            self._covariance(X).matrix(self._kernel_theta, corner)
            np.einsum("ii->i", corner)[...] += variances + (self.noise_ or 0.0)
            whole, jitter = extend(self._posterior.factor, cross, corner, definite=counts_as_definite(self))
        more.X_train_ = stacked(self.X_train_, X)
        more.y_train_ = np.concatenate([self.y_train_, (targets - self._y_mean) / self._y_scale])
        more._variances = np.concatenate([self._variances, variances])
        more.jitter_ = max(self.jitter_, jitter)
        if jitter:
            warn_user(
                f"{jitter:.3g} was added to the variances of the new rows, because some of them repeat others.",
                MercerWarning,
            )
        more._solve(whole, jitter)
        return more

    def _solve(self, factor: Matrix, jitter: float) -> None:
        """Everything that follows from the factor with more rows."""
        H = mean_functions(self.mean, self.X_train_, self._center)
        trend = None if H is None or self._trend is None else Trend.on_axes(H, self._trend.transform)
        solution = resume(self._problem(self._variances, trend), factor, jitter)
        self._keep(solution.value)
        self.log_marginal_likelihood_value_ = solution.state.evidence
        self.certificate_ = dataclasses.replace(solution.certificate, convex=self.certificate_.convex)

    def _more_rows(self, X: RowsLike, y: ArrayLike) -> tuple[Any, Matrix]:
        X = self._check_X(X, reset=False)
        with advised():
            targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        shape = (X.shape[0], *self.y_train_.shape[1:])
        if targets.shape != shape:
            raise DataError(
                f"y must have the shape {shape} for these rows and the targets of the fit, but has {targets.shape}."
            )
        if sp.issparse(X) != sp.issparse(self.X_train_):
            raise DataError("new rows must be sparse if the training rows are sparse, and dense if they are dense.")
        return X, targets

    def _new_alpha(self, alpha: Any) -> Any:
        if alpha is None and np.size(self.alpha) > 1:
            raise ParameterError("alpha differed between the rows of the fit, so it is also required for new rows.")
        return self.alpha if alpha is None else alpha

    def _require_kernel(self) -> None:
        if self._is_precomputed:
            raise ParameterError(
                "a precomputed matrix does not contain k(x, x) of new rows; pass a kernel and the rows themselves."
            )

    @property
    def _kernel_theta(self) -> Vector:
        theta = np.zeros(0) if self.kernel_ is None else self.kernel_.theta
        return np.asarray(theta, dtype=np.float64)

    def _covariance(self, rows: Any, given: GramMatrix | None = None) -> Covariance:
        """Of some rows, whose matrix may be given."""
        return covariance_of(self.kernel_, rows, self.n_jobs, given)

    def _problem(
        self, variances: Vector, trend: Trend | None, covariance: Covariance | None = None
    ) -> GaussianRegression:
        targets = self.y_train_.reshape(len(variances), -1)
        if covariance is None:
            covariance = self._covariance(self.X_train_)
        return GaussianRegression(
            covariance, targets, variances, trend, self.noise_ is not None, counts_as_definite(self)
        )

    def _cross(self, X: CheckedRows) -> Any:
        """Kernel values of new rows with the training rows, in float64; for ``"precomputed"``, ``X`` itself."""
        return self._gram(X, self.X_train_, dtype=np.float64)

    def _prior_variance(self, kernel: Kernel | None, rows: Rows, observation: bool | None) -> Vector:
        """Of each row before targets are seen: of the function, of an observation, or of the kernel (None)."""
        assert kernel is not None
        if observation is False:
            return function_variance(kernel, rows)
        variance: Vector = diagonal(kernel, rows).astype(np.float64, copy=False)
        if observation is None:
            return variance
        # Before a fit the noise is where its search starts.
        noise = getattr(self, "noise_", None if isinstance(self.noise, str) else self.noise) or 0.0
        return variance + noise + (float(self.alpha) if np.ndim(self.alpha) == 0 else 0.0)

    def _unscaled(self, values: Matrix) -> Matrix:
        """From normalised targets, (m, t), to those of the fit; one column alone is (m,), as in scikit-learn."""
        return self._flat(values * np.ravel(self._y_scale) + np.ravel(self._y_mean))

    def _flat(self, values: Matrix) -> Matrix:
        return values[:, 0] if values.shape[1] == 1 else values


def _draw(mean: Vector, covariance: Matrix, count: int, random: np.random.RandomState) -> Matrix:
    """Samples (m, count) of a normal distribution, whose covariance may be singular."""
    values, vectors = scipy.linalg.eigh(covariance, check_finite=False)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return mean[:, None] + root @ random.standard_normal((len(values), count))
