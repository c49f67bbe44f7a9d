"""Regression with kernels that learns from one row after the other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer._errors import DataError
from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Flag
from mercer.estimators.online.expansion import REMEDY, OnlineExpansion
from mercer.estimators.shared.baseline import warn_if_worse_than_constant, warn_if_worse_than_mean
from mercer.estimators.shared.parameters import require_number
from mercer.estimators.shared.targets import check_numbers
from mercer.kernels.convert import KernelLike
from mercer.loops.losses import GIVEN
from mercer.losses import EpsilonInsensitive, Huber, Loss, as_loss, check_own_loss

_WITH_EPSILON = {"epsilon_insensitive": EpsilonInsensitive, "huber": Huber}


class OnlineKernelRegressor(MultiOutputMixin, RegressorMixin, OnlineExpansion):
    r"""Online regression in the space of a kernel: one step per row, with a step size for each row (NORMA).

    .. math:: f \leftarrow (1 - \gamma_i \alpha)\, f - \gamma_i\, \ell'(r_i)\, k(x_i, \cdot), \qquad
              b \leftarrow b - \gamma_i\, \ell'(r_i), \qquad r_i = f(x_i) + b - y_i

    With :math:`\ell(r) = \tfrac12 r^2` these are the steps of least mean squares. Parameters and attributes that are
    not listed here are those of :class:`mercer.OnlineKernelLogisticRegression`.

    Parameters
    ----------
    loss : {"squared_error", "epsilon_insensitive", "huber", "quantile", "poisson"} or object, default="squared_error"
        :math:`\tfrac12 r^2` (also ``"squared"``); :math:`\max(0, |r| - \varepsilon)`; :math:`\tfrac12 r^2` up to
        :math:`|r| = \varepsilon` and a straight line beyond; the median; or counts, whose steps need ``eta0``. Also a
        loss of :mod:`mercer.losses` for numbers, or a user-defined object with ``value(y, f)`` and ``gradient(y, f)``
        (see :class:`mercer.losses.OwnLoss`). The steps for the first three losses are compiled; others run in Python.
    epsilon : float, default=0.1
        Parameter of the named losses that have one, in units of y; above 0 for ``"huber"``, else 0 or more.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float, defaults "scale", 3, 0.0
    alpha : float, default=0.0
        Weight of half the squared norm against the mean loss, 0 or more.
    learning_rate : {"invscaling", "constant", "optimal"} or callable, default="invscaling"
    eta0 : float or "auto", default="auto"
        ``"auto"`` is 1 over the largest :math:`k(x, x)` (plus 1 for the offset) among the rows of the first call; for
        ``"squared_error"``, twice that value leaves the size of the error of a row unchanged, and larger values
        diverge.
    power_t : float, default=0.25
    fit_intercept : bool, default=True
    budget : int, optional, default=500
    budget_strategy : {"projection", "truncation", "smallest", "merging"}, default="projection"
    max_iter : int, default=5
    shuffle : bool, default=True
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
    n_jobs : int, optional
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite, for which there is no space with a w: ``"warn"`` makes the same
        steps and warns, True makes them silently, and False raises an error.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_targets, n_sv)
        Weights of the support points.
    coef_ : ndarray of shape (n_targets, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (n_targets,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    intercept_ : ndarray of shape (n_targets,)
        b.
    support_vectors_, support_, budget_error_, truncation_bound_, progressive_loss_, n_iter_, t_, n_changes_, eta0_,
    kernel_
        As in :class:`mercer.OnlineKernelLogisticRegression`.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError, NumericalError
        As in :class:`mercer.OnlineKernelLogisticRegression`.

    Notes
    -----
    There is no ``certificate_``: each step lowers the loss of one row, and no sum over all rows is minimised.
    ``progressive_loss_`` times the number of rows is the cumulative loss of a pass, each row being predicted before it
    is learned from. For a loss whose slope is at most 1, without a budget, with ``alpha=0`` and steps of one size
    :math:`\eta`, theory bounds it in the first pass over n rows for any function u, with R the longest row (and
    without a bias): :math:`\sum_t \ell_t(f_t) \le \sum_t \ell_t(u) + \|u\|^2 / (2 \eta) + \eta R^2 n / 2`. The
    bound depends on u, so it is not a property of the fit.

    References
    ----------
    Kivinen, Smola and Williamson (2004), "Online learning with kernels", IEEE Transactions on Signal Processing 52.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineKernelRegressor(budget=30, gamma=1.0)
    >>> for _ in range(20):
    ...     X = rng.uniform(0, 6, size=(100, 1))
    ...     model = model.partial_fit(X, np.sin(X).ravel())
    >>> bool(np.abs(model.predict([[1.0], [4.0]]) - np.sin([1.0, 4.0])).max() < 0.1)
    True
    """

    _single: bool

    _fitted = Fitted(
        {"_single": Flag()}, rules=(("there are several functions", lambda m: not m._single or len(m.intercept_) == 1),)
    )

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        epsilon: float = 0.1,
        kernel: KernelLike = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        alpha: float = 0.0,
        learning_rate: Any = "invscaling",
        eta0: float | str = "auto",
        power_t: float = 0.25,
        fit_intercept: bool = True,
        budget: int | None = 500,
        budget_strategy: str = "projection",
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.fit_intercept = fit_intercept
        self.budget = budget
        self.budget_strategy = budget_strategy
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite

    def fit(self, X: RowsLike, y: ArrayLike, step_sizes: ArrayLike | None = None) -> Self:
        """Learn from rows and their targets, starting from zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,) or (n, t)
            Targets.
        step_sizes : array-like of shape (n,), optional
            The sizes of the steps at each row, the same in every pass.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = self._check_X_and_numbers(X, y, several=True)
        self._check_loss(y)
        self._single = y.ndim == 1
        rows = self._begin(X)
        self._check_merging(X)
        values = self._learn_all(X, rows, y.reshape(len(y), -1), step_sizes)
        if self._loss.code != GIVEN:
            warn_if_worse_than_mean("OnlineKernelRegressor", y, values, None, REMEDY)
            return self
        # Others need not be near the mean.
        for target, fitted in zip(y.reshape(len(y), -1).T, values.T, strict=True):
            warn_if_worse_than_constant("OnlineKernelRegressor", self._loss, target, fitted, np.ones(len(y)), REMEDY)
        return self

    def partial_fit(self, X: RowsLike, y: ArrayLike, step_sizes: ArrayLike | None = None) -> Self:
        """One pass over rows and their targets, in their order, from where the last call ended.

        The kernel, and ``gamma="scale"``, come from the rows of the first call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, t)
            Targets.
        step_sizes : array-like of shape (n,), optional
            The sizes of the steps at these rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._refuse_precomputed()
        first = not hasattr(self, "_walk")
        if first:
            X, y = self._check_X_and_numbers(X, y, several=True)
            self._check_loss(y)
            self._single = y.ndim == 1
            self._begin(X)
        else:
            X = self._check_X(X, reset=False)
            y = check_numbers(self, y, X, several=True)
            self._loss.check_targets(y.ravel())
            self._check_targets(y)
        self._check_merging(X)
        self._learn_part(X, y.reshape(len(y), -1), step_sizes)
        return self

    def predict(self, X: RowsLike) -> NDArray[np.floating]:
        """Return the predictions f + b; of counts their mean, the exponential of that.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,) or (m, t)
        """
        values = self._loss.response(self._values(X))
        return values[:, 0] if self._single else values

    @property
    def _loss(self) -> Loss:
        named = _WITH_EPSILON.get(self.loss) if isinstance(self.loss, str) else None
        return as_loss(self.loss if named is None else named(float(self.epsilon)), "numbers", "counts")

    def _check_loss(self, y: Vector) -> None:
        loss = self._loss
        loss.check_targets(y.ravel())
        check_own_loss(loss, y.ravel())

    def _check_targets(self, y: Vector) -> None:
        """Raise unless there are as many targets as there were before."""
        before, now = len(self.intercept_), y.reshape(len(y), -1).shape[1]
        if before != now:
            raise DataError(f"y has {now} target(s) a row, but had {before} in earlier calls; pass as many.")

    def _check_parameters(self) -> None:
        requirement = "a finite number above 0 for the loss 'huber', else of 0 or more"
        huber = self.loss == "huber"
        require_number(
            self, "epsilon", requirement, lambda value: (value > 0 if huber else value >= 0) and value < np.inf
        )
        self._check_online()
