"""Bayesian linear regression."""

from __future__ import annotations

import time
from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._documentation import documented
from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.sklearn_errors import advised
from mercer.data.statements import Count, Floats, Is, Labels, Number
from mercer.data.vectors import refuse_unreal
from mercer.engine import memory
from mercer.engine.threads import OneBlasThread
from mercer.estimators.shared.baseline import warn_if_worse_than_mean
from mercer.estimators.shared.parameters import require_flags
from mercer.estimators.shared.targets import check_numbers, warn_of_constant, warn_of_outlier
from mercer.estimators.shared.weights import check_sample_weight
from mercer.estimators.shared.whole_rows import refuse_parts
from mercer.solvers.gaussian.linear_model import DesignSpectrum, decompose, learn
from mercer.solvers.solution import Certificate, Status

_LEARNED = "evidence"
# Rows at once, while they are reduced and when they are predicted.
_ROWS = 4096

# The least number that can be divided by.
_SMALLEST = float(np.finfo(np.float64).tiny)


@refuse_parts
@documented
class BayesianLinearRegression(RegressorMixin, BaseEstimator, OneBlasThread):
    r"""Linear regression with a Gaussian prior on the weights: posterior, predictions with uncertainty, and evidence.

    .. math:: w \sim \mathcal N(0, \alpha^{-1} I), \qquad t \mid w \sim \mathcal N(X w, \beta^{-1} W^{-1})

    Parameters
    ----------
    alpha : float or "evidence", default="evidence"
        Precision of the prior, above 0; ``"evidence"`` maximises the evidence.
    beta : float or "evidence", default="evidence"
        Precision of the noise, above 0; ``"evidence"`` maximises the evidence.
    fit_intercept : bool, default=False
        Whether there is an offset, with a flat prior. It is integrated out of the evidence, which is then the density
        of n - 1 contrasts of the targets.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The posterior mean of the weights; also available as ``coef_``.
    covariance_ : ndarray of shape (n_features, n_features)
        The posterior covariance of the weights; computed on first access.
    intercept_ : float
        The posterior mean of the offset; 0 without an offset.
    alpha_, beta_ : float
        The precisions, given or learned.
    log_marginal_likelihood_value_ : float
        The log evidence at ``alpha_`` and ``beta_``.
    n_iter_ : int
        Number of evaluations of the evidence in the search for the precisions; 0 if both are given.
    certificate_ : Certificate
        The certificate of the penalised least squares problem that the mean solves, with penalty ``alpha_ / beta_``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    See Also
    --------
    GaussianProcessRegressor : The same model with the kernel ``(1 / alpha) * Linear()`` and noise variance
        ``1 / beta``, or with any other kernel; its standard deviations are those of the function, without the noise.

    Notes
    -----
    The posterior is :math:`\mathcal N(m, \Sigma)` with

    .. math:: \Sigma = (\alpha I + \beta X^\top W X)^{-1}, \qquad m = \beta\, \Sigma\, X^\top W t

    and a new target at x has the mean :math:`x^\top m` and the variance :math:`\beta^{-1} + x^\top \Sigma x`; with an
    offset, x is centred by the mean of the columns, and :math:`1 / (\beta \sum_i w_i)` is added. The log evidence is

    .. math:: \tfrac d2 \log \alpha + \tfrac N2 \log \frac{\beta}{2\pi} - \tfrac12 \log \det \Sigma^{-1}
              - \tfrac\beta2 \sum_i w_i (t_i - x_i^\top m)^2 - \tfrac\alpha2 \|m\|^2, \qquad N = \sum_i w_i

    Everything follows from one singular value decomposition, so that each evaluation at new precisions costs
    :math:`O(\min(n, d))`. Integer weights are the same as repeated rows. The result is bitwise the same for any number
    of threads, except with more than 1024 rows and columns: LAPACK then decomposes on its own threads.

    Some lecture notes define covariance functions as positive: that holds for variances only, and the covariance
    :math:`x^\top z / \alpha` of this model takes either sign. The predictive variance :math:`c - v^\top C^{-1} v` is
    that of a new target, noise included, if c is the diagonal of :math:`C = \beta^{-1} I + \alpha^{-1} K`, as here; the
    variance of the function is smaller by :math:`1 / \beta`. The derivatives of the evidence are

    .. math:: \frac{\partial \log p}{\partial \log \alpha} = \tfrac12 (\gamma - \alpha \|m\|^2), \qquad
              \frac{\partial \log p}{\partial \log \beta} = \tfrac12 \bigl(N - \gamma - \beta \sum_i w_i
              (t_i - x_i^\top m)^2\bigr), \qquad \gamma = d - \alpha \operatorname{tr} \Sigma

    In scikit-learn's ``BayesianRidge`` alpha is the precision of the noise and lambda that of the weights.

    References
    ----------
    C. M. Bishop, "Pattern Recognition and Machine Learning" (2006), sections 3.3 and 3.5, equations 3.53, 3.54, 3.59
    and 3.86.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import BayesianLinearRegression
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> model = BayesianLinearRegression(alpha=1.0, beta=2.0).fit(X, [1.1, 1.9, 3.2, 3.9])
    >>> model.mean_.round(4).tolist(), model.covariance_.round(4).tolist()
    ([0.9869], [[0.0164]])
    >>> mean, std = model.predict([[5.0]], return_std=True)
    >>> mean.round(3).tolist(), std.round(3).tolist()
    ([4.934], [0.954])
    >>> learned = BayesianLinearRegression().fit(X, [1.1, 1.9, 3.2, 3.9])
    >>> learned.log_marginal_likelihood_value_ > model.log_marginal_likelihood_value_
    True
    """

    _fitted = Fitted(
        {
            "n_features_in_": Count("d", least=1),
            "_spectrum": Is(DesignSpectrum),
            "alpha_": Number(least=_SMALLEST),
            "beta_": Number(least=_SMALLEST),
            "n_iter_": Count(),
            "mean_": Floats("d"),
            "intercept_": Number(),
            "log_marginal_likelihood_value_": Number(finite=False),
            "certificate_": Is(Certificate),
        },
        {"feature_names_in_": Labels("d", texts=True)},
        rules=(("the spectrum belongs to other columns", lambda m: len(m._spectrum.center) == m.n_features_in_),),
    )

    def __init__(self, alpha: Any = _LEARNED, beta: Any = _LEARNED, *, fit_intercept: bool = False) -> None:
        self.alpha = alpha
        self.beta = beta
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` and targets ``y``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights, 0 or more.

        Raises
        ------
        DataError, ParameterError, MemoryBudgetError
            If the data or a parameter cannot be used, or the problem exceeds the memory budget; see the messages.

        Warns
        -----
        MercerWarning
            If the targets are all equal, one of them makes up nearly all squared errors,
            or the evidence has no maximum: it grows without bound for data without noise,
            or for targets that are unrelated to X.
        """
        start_time = time.perf_counter()
        alpha, beta = self._precision("alpha"), self._precision("beta")
        require_flags(self, "fit_intercept")
        refuse_unreal(X, "X")
        refuse_unreal(y, "y")
        with advised():
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", y_numeric=True
            )
        y = check_numbers(self, y, X, several=False)
        weight = check_sample_weight(sample_weight, X)
        warn_of_constant(y, weight)
        warn_of_outlier(y, weight)
        used = np.flatnonzero(weight)
        n, d = len(used), X.shape[1]
        size = 8 * (d * d + 3 * _ROWS * d if n > d + 1 else 5 * n * d)
        with memory.track() as account, memory.reserve(size, f"the decomposition of {n} rows of {d} columns"):
            spectrum = decompose(_blocks(X, y, weight, used), n, d, intercept=bool(self.fit_intercept))
        learned = learn(spectrum, alpha, beta)
        self._spectrum = spectrum
        self.alpha_, self.beta_, self.n_iter_ = learned.alpha, learned.beta, learned.steps
        self.mean_ = spectrum.mean(learned.alpha, learned.beta)
        self.intercept_ = spectrum.level - float(spectrum.center @ self.mean_)
        self.log_marginal_likelihood_value_ = spectrum.evidence(learned.alpha, learned.beta)[0]
        seconds = time.perf_counter() - start_time
        self.certificate_ = self._certify(X, y, weight, spectrum, seconds, account.peak)
        if not learned.inside:
            self._warn_of_a_bound()
        fitted = np.asarray(X @ self.mean_, dtype=np.float64) + self.intercept_
        warn_if_worse_than_mean(
            "BayesianLinearRegression",
            y,
            fitted,
            weight,
            "Set fit_intercept=True, or subtract the means of y and of the columns of X.",
        )
        return self

    @property
    def coef_(self) -> Vector:
        """The same as ``mean_``."""
        check_is_fitted(self)
        return self.mean_

    @property
    def covariance_(self) -> NDArray[np.float64]:
        """The weights' posterior covariance, (d, d).

        Raises
        ------
        MemoryBudgetError
            If it does not fit the memory budget.
        """
        check_is_fitted(self)
        V, s2 = self._spectrum.basis, self._spectrum.singular**2
        d, r = V.shape
        with memory.reserve(16 * d * d, f"the covariance of {d} weights"):
            if r == d:
                return np.asarray((V / (self.alpha_ + self.beta_ * s2)) @ V.T)
            shrinkage = self.beta_ * s2 / (self.alpha_ * (self.alpha_ + self.beta_ * s2))
            return np.asarray(np.eye(d) / self.alpha_ - (V * shrinkage) @ V.T)

    def predict(self, X: RowsLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the means of new targets and, on request, their standard deviations or covariance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        return_std : bool, default=False
            Whether to return the standard deviations of new targets as well, with those of the function and of the
            noise combined.
        return_cov : bool, default=False
            Whether to return their covariance as well, with the noise on its diagonal.

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of shape (n,)
            If ``return_std``.
        cov : ndarray of shape (n, n)
            If ``return_cov``.

        Raises
        ------
        ParameterError
            If both are requested.
        MemoryBudgetError
            If the covariance does not fit the memory budget.
        """
        check_is_fitted(self)
        if return_std and return_cov:
            raise ParameterError(
                "return_std and return_cov are both True; pass one of them, since the covariance contains the "
                "variances."
            )
        refuse_unreal(X, "X")
        with advised():
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        mean = np.asarray(X @ self.mean_ + self.intercept_).astype(X.dtype, copy=False)
        if return_cov:
            return mean, self._covariance(X).astype(X.dtype, copy=False)
        if not return_std:
            return mean
        variances = [self._variances(_dense(X[i : i + _ROWS])) for i in range(0, X.shape[0], _ROWS)]
        return mean, np.sqrt(np.concatenate(variances)).astype(X.dtype, copy=False)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The log evidence at ``theta = log([alpha, beta])``, by default that of the fit.

        Parameters
        ----------
        theta : array-like of shape (2,), optional
        eval_gradient : bool, default=False
            Whether to return the gradient with respect to theta as well.

        Returns
        -------
        value : float
        gradient : ndarray of shape (2,)
            If ``eval_gradient``.

        Raises
        ------
        ParameterError
            If theta is not two finite numbers.
        """
        check_is_fitted(self)
        precisions = (self.alpha_, self.beta_)
        if theta is not None:
            logs = np.asarray(theta, dtype=np.float64)
            if logs.shape != (2,) or not np.isfinite(logs).all():
                raise ParameterError(
                    f"theta must be two finite numbers, log(alpha) and log(beta), but is {short(theta)}."
                )
            precisions = (float(np.exp(logs[0])), float(np.exp(logs[1])))
        value, gradient = self._spectrum.evidence(*precisions)
        return (value, gradient) if eval_gradient else value

    def _precision(self, name: str) -> float | None:
        """A precision, checked; None if it is to be learned."""
        value = getattr(self, name)
        if isinstance(value, str) and value == _LEARNED:
            return None
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
            raise ParameterError(f"{name} must be a finite number above 0, or 'evidence', but is {short(value)}.")
        return float(value)

    def _coordinates(self, rows: Vector) -> tuple[Vector, Vector]:
        """Rows in the basis, and their remainder outside of it."""
        rows = rows - self._spectrum.center
        inside = rows @ self._spectrum.basis
        full = self._spectrum.basis.shape[0] == self._spectrum.basis.shape[1]
        return inside, rows[:, :0] if full else rows - inside @ self._spectrum.basis.T

    def _variances(self, rows: Vector) -> Vector:
        inside, outside = self._coordinates(rows)
        precisions = self.alpha_ + self.beta_ * self._spectrum.singular**2
        variances: Vector = self._noise() + inside**2 @ (1.0 / precisions) + (outside**2).sum(axis=1) / self.alpha_
        return variances

    def _covariance(self, X: CheckedRows) -> NDArray[np.float64]:
        n = X.shape[0]
        with memory.reserve(8 * (2 * n * n + 3 * n * X.shape[1]), f"the covariance of {n} predictions"):
            inside, outside = self._coordinates(_dense(X))
            precisions = self.alpha_ + self.beta_ * self._spectrum.singular**2
            cov = (inside / precisions) @ inside.T
            if outside.shape[1]:
                cov += outside @ outside.T / self.alpha_
            cov += self._noise() - 1.0 / self.beta_
            cov.flat[:: n + 1] += 1.0 / self.beta_
            return np.asarray(cov)

    def _noise(self) -> float:
        """Variance of the noise, and of the offset at the mean of the columns."""
        return (1.0 + (1.0 / self._spectrum.total if self._spectrum.intercept else 0.0)) / self.beta_

    def _certify(
        self, X: Any, y: Vector, weight: Vector, spectrum: DesignSpectrum, seconds: float, peak: int
    ) -> Certificate:
        """Of ``sum w (t - X m - b)^2 + ratio |m|^2``; the gap is bounded by the gradient and the curvature."""
        ratio = self.alpha_ / self.beta_
        errors = y - np.asarray(X @ self.mean_, dtype=np.float64) - self.intercept_
        pull, level = weight * errors, float(weight @ errors)
        gradient = np.asarray(X.T @ pull, dtype=np.float64) - spectrum.center * level - ratio * self.mean_
        size = float(np.linalg.norm(spectrum.singular * spectrum.projections))
        slope = float(np.linalg.norm(gradient))
        primal = float(pull @ errors) + ratio * float(self.mean_ @ self.mean_)
        gap = slope**2 / ratio + (level**2 / spectrum.total if spectrum.intercept else 0.0)
        return Certificate(
            primal, primal - gap, slope / size if size > 0 else 0.0, self.n_iter_, seconds, peak, Status.direct
        )

    def _warn_of_a_bound(self) -> None:
        learned = [name for name in ("alpha", "beta") if isinstance(getattr(self, name), str)]
        values = " and ".join(f"{name} = {getattr(self, name + '_'):.3g}" for name in learned)
        warn_user(
            f"the evidence has no maximum within the bounds of the search, which ended at {values}: the targets "
            "have no noise, or show no dependence on X. Pass the precision as a number if it is known.",
            MercerWarning,
        )


def _dense(rows: Any) -> NDArray[np.float64]:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def _blocks(
    X: CheckedRows, y: Vector, weight: Vector, used: NDArray[np.intp]
) -> Iterator[tuple[Vector, Vector, Vector]]:
    """Rows with a weight, in float64, with their targets and weights."""
    for start in range(0, len(used), _ROWS):
        rows = used[start : start + _ROWS]
        yield _dense(X[rows]), y[rows], weight[rows]
