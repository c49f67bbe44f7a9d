"""Online kernel logistic regression, and other classifiers that learn from one row after the other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Labels
from mercer.estimators.online.expansion import REMEDY, OnlineExpansion
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.baseline import warn_if_worse_than_majority
from mercer.estimators.shared.labels import all_classes, check_labels, class_codes, encoded, winners
from mercer.estimators.shared.statements import outputs
from mercer.kernels.convert import KernelLike
from mercer.losses import Loss, Softmax, as_loss, check_own_loss, is_logistic


def _has_probabilities(model: KernelEstimator) -> bool:
    return is_logistic(model.loss)


class OnlineKernelLogisticRegression(ClassifierMixin, OnlineExpansion):
    r"""Online logistic regression in the space of a kernel: one step per row, with a step size for each row.

    .. math:: f \leftarrow (1 - \gamma_i \alpha)\, f + \gamma_i\, (t_i - \sigma(f(x_i) + b))\, k(x_i, \cdot), \qquad
              b \leftarrow b + \gamma_i\, (t_i - \sigma(f(x_i) + b))

    for labels :math:`t_i` of 0 and 1. In the space of a map with :math:`\langle \phi(x), \phi(z) \rangle = k(x, z)`
    these are the steps :math:`w \leftarrow (1 - \gamma_i \alpha) w + \gamma_i (t_i - y_i) \phi(x_i)` of online logistic
    regression with :math:`y_i = \sigma(\langle w, \phi(x_i) \rangle + b)`. For k classes there are k functions, and
    :math:`y_i` are the softmax of their values. With another ``loss`` :math:`\ell(y f)` of labels -1 and 1 the step is
    :math:`-\gamma_i\, \ell'(y_i (f(x_i) + b))\, y_i` (NORMA), and classes are separated one against the rest.


    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"} or object, default="log_loss"
        The loss that the steps descend on; ``"logistic"`` is another name for the log loss. Also a loss of
        :mod:`mercer.losses` for labels, or a user-defined object with ``value(y, f)``, ``gradient(y, f)`` and ``targets
        = "signs"`` (see :class:`mercer.losses.OwnLoss`), whose steps run in Python.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        As in :class:`mercer.SVC`; also ``"precomputed"`` (``fit`` only).
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float, defaults "scale", 3, 0.0
        For named kernels.
    alpha : float, default=0.0
        Weight of half the squared norm against the mean loss, 0 or more, and thus how quickly f forgets.
    learning_rate : {"invscaling", "constant", "optimal"} or callable, default="invscaling"
        The step sizes :math:`\gamma_t`: :math:`\eta_0 / t^p`; :math:`\eta_0`; :math:`1 / (\alpha (t + t_0))` with
        :math:`t_0 = 1 / (\alpha \eta_0)`; or a function from the numbers t of steps over all calls, from 1 on, (n,), to
        n sizes. Step sizes passed to ``fit`` or ``partial_fit`` for each row take precedence.
    eta0 : float or "auto", default="auto"
        :math:`\eta_0`, above 0. ``"auto"``: 1 over s times the largest :math:`k(x, x)` (plus 1 for the offset) of the
        rows of the first call, with s = 1/2 for log loss, 1 for the hinge and 2 for the others, so that no step
        overshoots.
    power_t : float, default=0.5
        p.
    fit_intercept : bool, default=True
        Whether there is an offset b, which is neither regularised nor forgotten.
    budget : int, optional, default=500
        Maximum number B of support points; None for no limit.
    budget_strategy : {"projection", "truncation", "smallest", "merging"}, default="projection"
        What happens when the budget is exceeded. ``"truncation"``: the term that was learned or changed first is
        dropped. ``"smallest"``: the term of smallest norm is dropped. ``"projection"``: among all terms, including the
        new one, the term whose replacement by its projection on the span of the others changes f least is replaced;
        :math:`O(B^2)` operations per row. Points within :math:`10^{-5} k(x, x)` (squared distance) of the span of the
        others are projected as well. ``"merging"``: the term of smallest norm and another one are replaced by a single
        term at the best point between the two; for the RBF kernel on dense rows.
    max_iter : int, default=5
        Passes of ``fit``.
    shuffle : bool, default=True
        Whether each pass of ``fit`` takes the rows in a new random order; ``partial_fit`` takes them as they come.
    random_state : int, RandomState or None, default=None
        Seed of the random orders.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    n_jobs : int, optional
        Worker threads for kernel values; the steps themselves come one after the other. The result is bitwise the same
        for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite, for which there is no space with a w: ``"warn"`` makes the same
        steps and warns, True makes them silently, and False raises an error.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    dual_coef_ : ndarray of shape (1 or k, n_sv)
        Weights of the support points, one row for two classes.
    coef_ : ndarray of shape (1 or k, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1 or k,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    support_vectors_ : array or CSR of shape (n_sv, d)
        The support points: rows, or points between rows for ``"merging"``; empty for ``"precomputed"``.
    support_ : ndarray of shape (n_sv,)
        Positions of the support points in X; after ``fit``, except for ``"merging"``.
    intercept_ : ndarray of shape (1 or k,)
        b.
    budget_error_ : ndarray of shape (1 or k,)
        A bound on the distance (in the space of the kernel) of f from the sum of all learned terms, as if nothing had
        been dropped, projected or merged. Each such change is measured, and decays together with f. For
        ``"projection"`` and steps that do not overshoot, as with ``eta0="auto"``, it also bounds the distance of (f, b)
        from the result without a budget. 0 if all rows fit into the budget.
    truncation_bound_ : float
        For ``"truncation"``: a bound of ``budget_error_`` from the step sizes alone, :math:`\frac{CR}{\alpha} \prod (1
        - \gamma_t \alpha)` over the last B steps, with the largest slope C of the loss and the largest R of
        :math:`\sqrt{k(x, x)}`. 0 before anything is dropped, infinite if it does not apply.
    progressive_loss_ : ndarray of shape (n_iter_,)
        Mean loss of the rows in each pass of the last call, each evaluated before learning from the row: in the first
        pass an unbiased estimate of the loss on new rows.
    n_iter_ : int
        Passes of the last call.
    t_ : int
        Steps (rows seen) over all calls.
    n_changes_ : int
        Number of times that a support point was dropped, replaced or merged.
    eta0_ : float
        :math:`\eta_0`, given or chosen.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit`` and ``partial_fit``: bad data, an invalid parameter or step size, a kernel that is not
        positive semi-definite or cannot be merged, a problem that exceeds the memory budget.
    NumericalError
        If values overflow because steps are too long for the loss.

    Notes
    -----
    There are no sample weights: the step size of a row is its weight. Some lecture notes write :math:`w_i^{(k+1)} =
    w_i^{(k)} + \gamma_i (t_i - y_i^{(k)}) \phi(x_i)` and call it a descent; there is one w for all i, and the step
    *ascends* the log likelihood, whose gradient is :math:`\Phi^\top (t - y)`. Since the objective changes with every
    row, there is no certificate; ``budget_error_`` measures what the budget costs.

    There is no ``certificate_``: each step lowers the loss of one row, and no sum over all rows is minimised.
    ``progressive_loss_`` times the number of rows is the cumulative loss of a pass in which each row is predicted
    before it is learned. For a loss whose slope is at most 1, without a budget, with ``alpha=0`` and steps of one size
    :math:`\eta`, theory bounds it in the first pass over n rows for any function u, with R the longest row (and without
    a bias): :math:`\sum_t \ell_t(f_t) \le \sum_t \ell_t(u) + \|u\|^2 / (2 \eta) + \eta R^2 n / 2`. The bound depends on
    u, so it is not a property of the fit.

    References
    ----------
    Kivinen, Smola and Williamson (2004), "Online learning with kernels", IEEE Transactions on Signal Processing 52
    (proposition 1 on truncation); Csato and Opper (2002), "Sparse on-line Gaussian processes", Neural Computation 14;
    Wang, Crammer and Vucetic (2012), "Breaking the curse of kernelization", JMLR 13; Blum, Kalai and Langford (1999),
    "Beating the hold-out", COLT (on the progressive loss).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineKernelLogisticRegression(budget=50, gamma=0.5)
    >>> for _ in range(20):
    ...     X = rng.normal(size=(100, 2))
    ...     model = model.partial_fit(X, X[:, 0] * X[:, 1] > 0, classes=[False, True])
    >>> model.predict_proba([[1.0, 1.0], [1.0, -1.0]]).round(1).tolist(), len(model.support_vectors_)
    ([[0.1, 0.9], [0.9, 0.1]], 50)
    """

    _fitted = Fitted(
        {"classes_": Labels("k", least=2)},
        rules=(
            (
                "the number of functions does not match the classes",
                lambda m: len(m.intercept_) == outputs(len(m.classes_)),
            ),
        ),
    )

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        kernel: KernelLike = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        alpha: float = 0.0,
        learning_rate: Any = "invscaling",
        eta0: float | str = "auto",
        power_t: float = 0.5,
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
        """Learn from rows and their labels, starting from zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Labels.
        step_sizes : array-like of shape (n,), optional
            The sizes of the steps at each row, the same in every pass.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._check_X(X, reset=True)
        y = check_labels(type(self).__name__, y, X.shape[0])
        classes, codes = encoded(type(self).__name__, y)
        self.classes_ = classes
        rows = self._begin(X)
        self._check_merging(X)
        values = self._learn_all(X, rows, self._targets(codes), step_sizes)
        warn_if_worse_than_majority("OnlineKernelLogisticRegression", codes, winners(values), REMEDY)
        return self

    def partial_fit(
        self, X: RowsLike, y: ArrayLike, classes: ArrayLike | None = None, step_sizes: ArrayLike | None = None
    ) -> Self:
        """One pass over the rows ``X`` (n, d) with labels ``y`` (n,), in their order, from where the last call ended.

        The kernel, and ``gamma="scale"``, come from the rows of the first call. A row equal to a support point counts
        as the same row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (k,), optional
            All classes that will ever occur; needed in the first call.
        step_sizes : array-like of shape (n,), optional
            The sizes of the steps at these rows, 0 or more.
        """
        self._check_parameters()
        self._refuse_precomputed()
        first = not hasattr(self, "_walk")
        X = self._check_X(X, reset=first)
        y = check_labels(type(self).__name__, y, X.shape[0])
        labels = all_classes(type(self).__name__, classes, None if first else self.classes_)
        codes = class_codes(y, labels)
        if first:
            self.classes_ = labels
            self._begin(X)
        self._check_merging(X)
        self._learn_part(X, self._targets(codes), step_sizes)
        return self

    def decision_function(self, X: RowsLike) -> Vector:
        """Return the values of f + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            For two classes (m,), positive for ``classes_[1]``; else (m, k).
        """
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the class of each row; of equal decision values, the first class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        values = self._values(X)
        return self.classes_[winners(values)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: RowsLike) -> Vector:
        """Probabilities of the classes, (m, k), for ``loss="log_loss"``."""
        values = self._values(X)
        if values.shape[1] == 1:
            return np.hstack([expit(-values), expit(values)])
        return np.asarray(softmax(values, axis=1))

    @property
    def _loss(self) -> Loss | Softmax:
        joint = is_logistic(self.loss) and len(self.classes_) > 2
        return Softmax() if joint else as_loss(self.loss, "signs")

    @property
    def _step_bound(self) -> float:
        # The softmax has twice the curvature of the logistic loss; steps do not depend on the number of classes.
        return Softmax.step_bound if is_logistic(self.loss) else self._loss.step_bound

    def _targets(self, codes: np.ndarray) -> Vector:
        """1 and -1 for each function, or 1 and 0 where their softmax counts; (n, 1 or k)."""
        if len(self.classes_) == 2:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        other = 0.0 if is_logistic(self.loss) else -1.0
        return np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, other)

    def _check_parameters(self) -> None:
        check_own_loss(as_loss(self.loss, "signs"))
        self._check_online()
