"""Regression with kernels that learns from one row after the other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer._errors import DataError
from mercer.data.fitted import Fitted
from mercer.data.statements import Flag
from mercer.estimators._baseline import warn_if_worse_than_mean
from mercer.estimators._online import REMEDY, OnlineExpansion
from mercer.estimators._parameters import require_choice, require_number
from mercer.estimators._targets import check_numbers
from mercer.solvers.matrix import Vector

_LOSSES = ("squared_error", "epsilon_insensitive", "huber")


class OnlineKernelRegressor(MultiOutputMixin, RegressorMixin, OnlineExpansion):
    r"""Regression in the space of a kernel from one row after the other, with a step size for each (NORMA).

    .. math:: f \leftarrow (1 - \gamma_i \alpha)\, f - \gamma_i\, \ell'(r_i)\, k(x_i, \cdot), \qquad
              b \leftarrow b - \gamma_i\, \ell'(r_i), \qquad r_i = f(x_i) + b - y_i

    With :math:`\ell(r) = \tfrac12 r^2` these are the steps of least mean squares. Parameters and attributes that are
    not named here are those of :class:`mercer.OnlineKernelLogisticRegression`.

    Parameters
    ----------
    loss : {"squared_error", "epsilon_insensitive", "huber"}, default="squared_error"
        :math:`\tfrac12 r^2`; :math:`\max(0, |r| - \varepsilon)`; or :math:`\tfrac12 r^2` up to
        :math:`|r| = \varepsilon` and a straight line beyond.
    epsilon : float, default=0.1
        Of the losses that have one, in units of y; above 0 for ``"huber"``, else 0 or more.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float, defaults "scale", 3, 0.0
    alpha : float, default=0.0
        Weight of half the squared norm against the mean loss, 0 or more.
    learning_rate : {"invscaling", "constant", "optimal"} or callable, default="invscaling"
    eta0 : float or "auto", default="auto"
        ``"auto"`` is 1 over the largest :math:`k(x, x)` (plus 1 for the offset) among the rows of the first call; twice
        that makes the error of a row as large as it was, for ``"squared_error"``, and more diverges.
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
    intercept_ : ndarray of shape (n_targets,)
        b.
    support_vectors_, support_, budget_error_, truncation_bound_, progressive_loss_, n_iter_, t_, n_changes_, eta0_,
    kernel_
        As there.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError, NumericalError
        As there.

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
        {"_single": Flag()},
        rules=(("there are several functions", lambda m: not m._single or len(m.intercept_) == 1),),
    )  # fmt: skip

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        epsilon: float = 0.1,
        kernel: Any = "rbf",
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
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any, step_sizes: Any = None) -> Self:
        """Learn from ``X`` (n, d), or (n, n) for ``"precomputed"``, and targets ``y`` (n,) or (n, t), anew.

        ``step_sizes`` (n,) are the sizes of the steps at each row, the same in every pass.
        """
        self._check_parameters()
        X, y = self._check_X_and_numbers(X, y, several=True)
        self._single = y.ndim == 1
        rows = self._begin(X)
        self._check_merging(X)
        values = self._learn_all(X, rows, y.reshape(len(y), -1), step_sizes)
        warn_if_worse_than_mean("OnlineKernelRegressor", y, values, None, REMEDY)
        return self

    def partial_fit(self, X: Any, y: Any, step_sizes: Any = None) -> Self:
        """One pass over the rows ``X`` (n, d) with targets ``y`` (n,) or (n, t), in their order, from the last call on.

        The kernel, and ``gamma="scale"``, come from the rows of the first call. ``step_sizes`` (n,) are the sizes of
        the steps at these rows.
        """
        self._check_parameters()
        self._refuse_precomputed()
        first = not hasattr(self, "_walk")
        if first:
            X, y = self._check_X_and_numbers(X, y, several=True)
            self._single = y.ndim == 1
            self._begin(X)
        else:
            X = self._check_X(X, reset=False)
            y = check_numbers(self, y, X, several=True)
            self._check_targets(y)
        self._check_merging(X)
        self._learn_part(X, y.reshape(len(y), -1), step_sizes)
        return self

    def predict(self, X: Any) -> NDArray[np.floating]:
        """Predictions f + b, (m,) or (m, t)."""
        values = self._values(X)
        return values[:, 0] if self._single else values

    @property
    def _loss(self) -> str:
        return str(self.loss)

    def _check_targets(self, y: Vector) -> None:
        """Raise unless there are as many targets as there were before."""
        before, now = len(self.intercept_), y.reshape(len(y), -1).shape[1]
        if before != now:
            raise DataError(f"y has {now} target(s) a row, and had {before} in the calls before; pass as many.")

    def _check_parameters(self) -> None:
        require_choice(self, "loss", _LOSSES)
        wanted = "a finite number above 0 for the loss 'huber', else of 0 or more"
        huber = self.loss == "huber"
        require_number(self, "epsilon", wanted, lambda value: (value > 0 if huber else value >= 0) and value < np.inf)
        self._check_online()
