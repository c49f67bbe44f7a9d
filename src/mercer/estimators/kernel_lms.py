"""Least mean squares by batch gradient descent with kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer._errors import DataError, ParameterError, warn_user
from mercer._types import Positions, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.statements import Count, Either, Floats, Is, Maybe, Number
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.baseline import no_offset_remedy, warn_if_worse_than_mean
from mercer.estimators.shared.certificates import write_result
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of
from mercer.estimators.shared.left_out_baseline import has_large_offset, warn_if_held_out_is_worse
from mercer.estimators.shared.parameters import require_flags, require_number, require_seed, require_whole
from mercer.estimators.shared.statements import FitRows
from mercer.estimators.shared.targets import warn_of_constant
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel
from mercer.kernels.convert import KernelLike
from mercer.solvers.risk.gradient_descent import Descent, HeldOut, LeastSquares, descend
from mercer.solvers.solution import Certificate, Solution, Status


class KernelLMS(MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""Least mean squares by batch gradient descent on the coefficients of the rows.

    .. math:: \beta_i \leftarrow \beta_i + \eta\, w_i \Bigl(y_i - \sum_j \beta_j k(x_j, x_i)\Bigr)
              \quad\text{for all } i \text{ at once},\qquad f(x) = \sum_j \beta_j k(x_j, x)

    It starts at :math:`\beta = 0`. In the space of a map with :math:`\langle \phi(x), \phi(z) \rangle = k(x, z)` these
    are the steps :math:`\theta \leftarrow \theta + \eta \sum_i w_i (y_i - \theta^\top \phi(x_i)) \phi(x_i)` of gradient
    descent on :math:`\tfrac12 \sum_i w_i (y_i - \theta^\top \phi(x_i))^2`, step by step, since :math:`\theta = \sum_i
    \beta_i \phi(x_i)` throughout. Only the number of steps keeps it from fitting noise.

    Parameters
    ----------
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        As in :class:`mercer.SVC`; also ``"precomputed"``.
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float, defaults "scale", 3, 0.0
        For named kernels.
    learning_rate : float or "auto", default="auto"
        :math:`\eta`, above 0. Steps below :math:`2 / \lambda` converge, where :math:`\lambda` is the largest eigenvalue
        of :math:`W^{1/2} K W^{1/2}`; ``"auto"`` is :math:`1 / \lambda`.
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-3
        The descent ends when the norm of the gradient (in the space of the kernel) is at most this fraction of its
        initial value, for each target; 0 for all ``max_iter`` steps. With ``early_stopping`` also the least rise of the
        score that counts as an improvement.
    early_stopping : bool, default=False
        Whether to hold out rows, to end when the score (:math:`R^2`) of their predictions has not risen by ``tol`` for
        ``n_iter_no_change`` steps, and to return the best step.
    validation_fraction : float, default=0.1
        The fraction of the rows of positive weight to hold out, between 0 and 1.
    n_iter_no_change : int, default=10
        Steps to wait for a better score.
    random_state : int, RandomState or None, default=None
        Seed of the choice of the rows to hold out.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    n_jobs : int, optional
        Worker threads. The result is bitwise the same for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite, for which there is no theta: ``"warn"`` makes the same steps
        and warns, True makes them silently, and False raises an error. Along negative eigenvalues of K no step
        converges.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, n_targets)
        :math:`\beta`, in float64; 0 for rows that were not used.
    coef_ : ndarray of shape (p,) or (n_targets, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,) or (n_targets,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    X_fit_ : ndarray or csr_matrix of shape (n, d)
        The training rows; empty for ``"precomputed"``.
    learning_rate_ : float
        :math:`\eta`.
    largest_eigenvalue_ : float or None
        :math:`\lambda`, to nine digits and never too large; None if K did not fit the memory budget and
        ``learning_rate`` was given.
    loss_history_ : ndarray of shape (n_iter_ + 1,)
        Half the (weighted) sum of squared errors, over all targets, before the first step and after each.
    validation_scores_ : ndarray of shape (n_iter_ + 1,) or None
        The scores before the first step and after each, with ``early_stopping``.
    n_iter_ : int
        Number of steps.
    best_iter_ : int
        The step whose coefficients are returned: ``n_iter_``, or the one with the best score.
    certificate_ : Certificate
        ``primal`` is the loss, evaluated again; ``dual`` the least-squares residual if the numerical rank of K is below
        n/4, otherwise the lower bound 0; the violation is the length of the gradient relative to that at the start.
    kernel_ : Kernel or None
        The kernel with its parameters (None for ``"precomputed"``).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: bad data or weights, an invalid parameter, a step size that is known to be too large, a kernel
        that is not positive semi-definite, a problem that exceeds the memory budget.
    NumericalError
        If the steps diverge, as soon as the loss rises; with the longest safe step in the message.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` ended the steps and ``tol`` is not 0.

    Notes
    -----
    Integer weights are the same as repeated rows, and a row of weight 0 has no effect (except on which rows
    ``early_stopping`` draws). Along an eigenvector of K with the eigenvalue :math:`\lambda_i` the error falls by the
    factor :math:`1 - \eta \lambda_i` per step, which is why few steps give smooth functions. Some lecture notes give
    the update as :math:`\beta_i + \eta (y_i - \sum_i \beta_i \langle \phi(x_i), \phi(x_i) \rangle)`; the sum must be
    over another index j than that of the row, with :math:`\langle \phi(x_j), \phi(x_i) \rangle`.

    References
    ----------
    Ng and Ma, "CS229 lecture notes", chapter 5 (2022); Yao, Rosasco and Caponnetto (2007), "On early stopping in
    gradient descent learning", Constructive Approximation 26.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLMS
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> model = KernelLMS("poly", degree=2, gamma=1.0, coef0=1.0, max_iter=9999, tol=1e-5).fit(X, 1 - X.ravel() ** 2)
    >>> model.predict([[2.0]]).round(2).tolist()
    [-3.0]
    >>> bool((np.diff(model.loss_history_) < 0).all())
    True
    """

    shares_matrices = True
    _fitted = Fitted(
        {
            "X_fit_": FitRows("n", kept=False),
            "dual_coef_": Either(Floats("n"), Floats("n, t")),
            "learning_rate_": Number(least=0),
            "largest_eigenvalue_": Maybe(Number(least=0)),
            "loss_history_": Floats("steps"),
            "n_iter_": Count(),
            "validation_scores_": Maybe(Floats("steps")),
            "best_iter_": Count(),
            "certificate_": Is(Certificate),
        },
        rules=(("there are more steps than losses", lambda m: m.best_iter_ <= m.n_iter_ == len(m.loss_history_) - 1),),
    )

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        learning_rate: float | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,) or (n, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = self._check_X_and_numbers(X, y, several=True)
        weight = check_sample_weight(sample_weight, X)
        warn_of_constant(y, weight)
        rows, others = self._split(np.flatnonzero(weight))
        # Of a matrix all rows are checked, else those that are learned from.
        side = fit_weighted_kernel(self, X, weight, intercept=False)
        whole: Any = self._gram(side, dtype=None if self.kernel_ is None else np.float64)
        gram = whole if len(rows) == X.shape[0] else whole.restrict(rows, rows)
        convex = self._is_convex(gram, rows, X.dtype, intercept=False)
        targets = y.reshape(len(y), -1)
        problem = LeastSquares(gram, targets[rows], weight[rows], convex)
        held_out = None
        if len(others):
            held_out = HeldOut(
                whole.restrict(others, rows),
                targets[others],
                weight[others],
                int(self.n_iter_no_change),
                float(self.tol),
            )
        solution = descend(
            problem,
            None if isinstance(self.learning_rate, str) else float(self.learning_rate),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            held_out=held_out,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
        )
        coefficients = np.zeros(targets.shape)
        coefficients[rows] = solution.value
        self.dual_coef_ = coefficients.reshape(y.shape)
        self.X_fit_ = np.empty((0, 0)) if self.kernel_ is None else X
        self.learning_rate_ = solution.state.learning_rate
        self.largest_eigenvalue_ = solution.state.largest_eigenvalue
        self.loss_history_, self.n_iter_ = solution.state.losses, solution.state.n_iter
        self.validation_scores_ = None if held_out is None else np.array(held_out.scores)
        self.best_iter_ = self.n_iter_ if self.validation_scores_ is None else int(self.validation_scores_.argmax())
        self.certificate_ = solution.certificate
        write_result(self)
        self._warn_of(problem, solution)
        return self

    def predict(self, X: RowsLike) -> NDArray[np.floating]:
        """Return the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,) or (m, n_targets)
            In the precision of X.
        """
        X = self._new_rows(X)
        values = self._expansion.values(X).reshape(-1, *self.dual_coef_.shape[1:])
        return values.astype(X.dtype, copy=False)

    def _warn_of(self, problem: LeastSquares, solution: Solution[Vector, Descent]) -> None:
        """Warn of a fit that is worse than the mean of y, and of one that ran out of steps."""
        gram, y, weight = problem.gram, problem.targets, problem.weights
        remedy = no_offset_remedy(y)
        fitted = np.asarray(gram @ solution.value, dtype=np.float64)
        worse = warn_if_worse_than_mean("KernelLMS", y, fitted, weight, remedy)
        if not worse and problem.convex and has_large_offset(y, weight):
            warn_if_held_out_is_worse("KernelLMS", gram, y, weight, lambda part: self._fit_part(problem, part), remedy)
        if solution.status is Status.iteration_limit and self.tol > 0:
            warn_user(
                f"KernelLMS: max_iter={self.max_iter} steps did not reach the tolerance. Raise "
                "max_iter, loosen tol, or pass tol=0 to make exactly this many steps.",
                ConvergenceWarning,
            )

    def _fit_part(self, problem: LeastSquares, rows: Positions) -> NDArray[np.float64]:
        """Coefficients (m, t) after as many steps for the rows at some positions (m,) as were made for all rows."""
        part = LeastSquares(
            problem.gram.restrict(rows, rows), problem.targets[rows], problem.weights[rows], problem.convex
        )
        coefficients: NDArray[np.float64] = descend(
            part, self.learning_rate_, max_iter=max(self.best_iter_, 1), tol=0.0, n_jobs=self.n_jobs
        ).value
        return coefficients

    @property
    def _expansion(self) -> KernelExpansion:
        coefficients = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        return KernelExpansion(self.kernel_, self.X_fit_, coefficients.T, n_jobs=self.n_jobs)

    def _split(self, used: Positions) -> tuple[Positions, Positions]:
        """Rows to learn from, and rows to hold out, both in order."""
        if not self.early_stopping:
            return used, used[:0]
        count = int(np.ceil(self.validation_fraction * len(used)))
        if len(used) - count < 1:
            raise DataError(
                f"validation_fraction={self.validation_fraction} holds out {count} of {len(used)} rows with a weight, "
                "which leaves none for training; pass more rows, or early_stopping=False."
            )
        order = check_random_state(self.random_state).permutation(len(used))
        return used[np.sort(order[count:])], used[np.sort(order[:count])]

    def _check_parameters(self) -> None:
        rate = self.learning_rate
        if isinstance(rate, str) or not isinstance(rate, Real) or isinstance(rate, bool):
            if not (isinstance(rate, str) and rate == "auto"):
                raise ParameterError(f"learning_rate must be a finite number above 0 or 'auto', but is {short(rate)}.")
        elif not 0 < float(rate) < np.inf:
            raise ParameterError(f"learning_rate must be a finite number above 0 or 'auto', but is {short(rate)}.")
        require_number(self, "tol", "a finite number of 0 or more", lambda value: 0 <= value < np.inf)
        require_number(self, "validation_fraction", "a number between 0 and 1", lambda value: 0 < value < 1)
        for name in ("max_iter", "n_iter_no_change"):
            require_whole(self, name, "a whole number of steps, at least 1")
        require_flags(self, "early_stopping")
        require_seed(self)
