"""Gaussian processes on ordered classes."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError, warn_user
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.distinct import equal_rows
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats, Is, Labels, Maybe, Number, Whole, Word
from mercer.engine import lapack, memory, threads
from mercer.engine.tiles import spans
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.options import check_search
from mercer.estimators.gaussian.ordinal_search import search_bounds, search_ordinal, slope_parameter
from mercer.estimators.ordinal.likelihood import OrdinalLikelihood
from mercer.estimators.ordinal.ordered import DECISIONS, averaged_probabilities, decide, ordered_labels
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import PROCESS, counts_as_definite, judge_covariance
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.shared.parameters import require_choice, require_slope, require_whole
from mercer.estimators.shared.statements import ASCENDING, FitRows, has_full_diagonal, theta_fits
from mercer.gram.evaluated import EvaluatedGram
from mercer.kernels import RBF, Kernel
from mercer.kernels.convert import KernelLike
from mercer.kernels.inputs import Rows
from mercer.kernels.parameters import Parameter
from mercer.kernels.plan import diagonal
from mercer.priors import bind_priors
from mercer.solvers.gaussian.ordinal import OrdinalEvidence, OrdinalPosterior, OrdinalProcess
from mercer.solvers.gaussian.search import Search
from mercer.solvers.risk.cumulative_links import LINKS
from mercer.solvers.solution import Certificate, Status

# New rows that are predicted at a time.
_TILE = 512


def _free_beside_the_kernel(model: KernelEstimator) -> int:
    """The cut-points between the classes that have rows, and the slope where it is searched for."""
    return int(model._ranks.max()) + isinstance(model.slope, str)


class GaussianProcessOrdinalRegression(ClassifierMixin, OrdinalLikelihood):
    r"""Ordinal regression: ordered classes, separated by cut-points on the scale of a Gaussian process.

    .. math:: P(t = j \mid f) = F(a (\phi_j - f(x))) - F(a (\phi_{j-1} - f(x))), \qquad f \sim \mathrm{GP}(0, k_\theta)

    with the distribution function F of the link, cut-points :math:`\phi_1 < \dots < \phi_{k-1}` and the slope a; with
    the normal link, ``1 / a`` is the standard deviation of a noise on f. The hyper-parameters, which are those of the
    kernel, the slope and the cut-points, maximise Laplace's evidence.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, str or callable, optional
        The covariance function, whose free parameters are optimised, starting from their current values; None is
        ``RBF(1.0)``. Its scale and the slope are redundant: for a kernel with a free factor, such as
        ``1.0 * RBF(1.0)``, set ``slope`` to a number. Also a name (``"rbf"``, ...) or a function ``(X, Z) -> block``;
        with ``"precomputed"`` there are no probabilities of new rows, whose ``k(x, x)`` is not known.
    link : {"probit", "logit", "cloglog", "loglog"}, default="probit"
        F: the normal or the logistic distribution, ``1 - exp(-exp(z))`` or ``exp(-exp(-z))``.
    slope : float or "evidence", default="evidence"
        a; ``"evidence"`` optimises it from ``1 / s`` between ``0.001 / s`` and ``30 / s``, where ``s**2`` is the
        mean variance of f at the rows before their labels are seen, for the kernel as given.
    classes : sequence or "sorted", optional
        All labels from the lowest to the highest, such as ``["low", "middle", "high"]``; also for classes that may be
        missing in y. Three or more classes whose labels are text need it, unless all are numbers ("1", "2", "10"), or
        y is an ordered categorical of pandas. ``"sorted"`` takes text in alphabetical order ("1 low", "2 middle").
    decision : {"mode", "median", "mean"}, default="mode"
        What ``predict`` returns: the most probable class, the class in which the distribution function reaches one
        half (best for the mean absolute error), or the one nearest to the expected number of the class.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        None keeps kernel and slope at the start of the search, and sets the cut-points to match the class
        frequencies. A function is called as ``optimizer(objective, start, bounds)``, where ``objective(theta,
        eval_gradient=True)`` is to be minimised, and returns the best theta and its value.
    n_restarts_optimizer : int, default=0
        Further searches, with kernel and slope drawn between their bounds.
    max_iter_predict : int, default=100
        Maximum number of Newton steps to a mode.
    priors : dict of str to Prior, optional
        Priors of the parameters of the kernel, by name, and of ``"slope"``; see :mod:`mercer.priors`.
    random_state : int, RandomState or None, default=None
        Seed of the random starts.
    gamma, degree, coef0 : float, int, float
        For kernels given by name.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` warns, and raises an error only if its matrix on the
        training rows, at the fitted hyper-parameters, is not positive semi-definite; True raises the diagonal of that
        matrix as far as necessary; False raises an error for the kernel.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes in their order.
    thresholds_ : ndarray of shape (k - 1,)
        The cut-points, in units of f. A class without rows lies between two equal cut-points (infinite ones at an end
        of the scale) and has probability 0.
    slope_ : float
    kernel_ : Kernel or None
        The kernel with the fitted hyper-parameters.
    theta_ : ndarray of shape (p,)
        Free parameters of ``kernel_`` on the scales of their transforms, the logarithm of the slope if it was searched
        for, the first cut-point, and the logarithms of the gaps, for the classes that occur.
    log_marginal_likelihood_value_ : float
        Laplace's evidence at ``theta_``.
    search_ : Search or None
        All searches: where each started and ended, the objective there, and how it ended.
    X_fit_ : ndarray or csr_matrix of shape (m, n_features)
        The distinct training rows.
    dual_coef_ : ndarray of shape (m,)
        Coefficients of the mean of f over ``X_fit_``.
    coef_ : ndarray of shape (p,)
        w of the mean of f in the p features of ``feature_map_``, for linear kernels (where they are the columns of X),
        polynomial and all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    certificate_ : Certificate
        The accuracy of the mode of the posterior; its iterations are evaluations of the evidence.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, NumericalError, MemoryBudgetError
        From ``fit``: one class only or unknown labels, an invalid parameter, a kernel that is not positive
        semi-definite, a problem that exceeds the memory budget.

    Notes
    -----
    Rows that are equal share a latent value, and are stored once. An evaluation of the evidence and its gradient takes
    one Cholesky factorisation for each of five to ten Newton steps and one inverse, on two matrices of m^2 numbers.

    References
    ----------
    W. Chu and Z. Ghahramani, "Gaussian processes for ordinal regression", JMLR 6 (2005), 1019-1041.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessOrdinalRegression
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> y = np.digitize(X[:, 0] + 0.3 * np.cos(40 * X[:, 0]), [1.0, 2.0])
    >>> model = GaussianProcessOrdinalRegression().fit(X, y)
    >>> model.predict([[0.2], [1.5], [2.9]]).tolist()
    [0, 1, 2]
    >>> p = model.predict_proba([[1.0]])
    >>> bool(p[0, 0] > 0.2 and p[0, 1] > 0.2 > p[0, 2])
    True
    """

    _if_indefinite = PROCESS
    shares_matrices = True
    predicts_in = np.float64
    _fitted = Fitted(
        {
            "search_": Maybe(Is(Search)),
            "theta_": Floats("p"),
            "classes_": Labels("k", least=2),
            "X_fit_": FitRows("m"),
            "_ranks": Whole("n", below="k"),
            "_owner": Whole("n", below="m"),
            "dual_coef_": Floats("m"),
            "_root": Floats("m"),
            "_factor": Floats("m, m"),
            "slope_": Number(least=0),
            "thresholds_": Floats("cuts", finite=False),
            "log_marginal_likelihood_value_": Number(),
            "certificate_": Is(Certificate),
        },
        parameters={"link": Word(tuple(LINKS)), "decision": Word(DECISIONS)},
        derived={"cuts": lambda k: k - 1},
        rules=(ASCENDING, has_full_diagonal("_factor"), theta_fits(_free_beside_the_kernel)),
    )

    def __init__(
        self,
        kernel: KernelLike | None = None,
        *,
        link: str = "probit",
        slope: float | str = "evidence",
        classes: ArrayLike | None = None,
        decision: str = "mode",
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        priors: Any = None,
        random_state: int | np.random.RandomState | None = None,
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        allow_indefinite: bool | str = "warn",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.link = link
        self.slope = slope
        self.classes = classes
        self.decision = decision
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.priors = priors
        self.random_state = random_state
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.allow_indefinite = allow_indefinite
        self.n_jobs = n_jobs

    def fit(self, X: RowsLike, y: ArrayLike) -> Self:
        """Search for the hyper-parameters and condition on rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self

        Warns
        -----
        MercerWarning
            If a hyper-parameter ended at a bound.
        """
        start_time = time.perf_counter()
        self._check_parameters()
        X = self._check_X(X, reset=True)
        labels = ordered_labels(type(self).__name__, y, self.classes, np.ones(X.shape[0]), self.link)
        self._fit_kernel(X, intercept=False)
        points, owner = self._points(X)
        log_prior = bind_priors(self.priors, self._parameters(1.0))
        rows = self._rows(points)
        given = self._given_matrix()
        if given is not None and owner is not None:
            first = _first_of(owner)
            given = given.restrict(first, first)
        convex = judge_covariance(self, rows, X.dtype, given)
        slope = None if isinstance(self.slope, str) else float(self.slope)
        covariance = covariance_of(self.kernel_, rows, self.n_jobs, given)
        process = OrdinalProcess(covariance, labels.ranks, LINKS[self.link], slope, owner, counts_as_definite(self))
        with memory.track() as account, threads.workers(self.n_jobs):
            variance = self._variance(self.kernel_, rows)
            parameters = self._parameters(variance)
            starts = self._starts(process, parameters, rows, variance)
            self.search_ = None
            if self.optimizer is not None:
                self.search_ = search_ordinal(
                    process,
                    parameters,
                    starts,
                    log_prior,
                    max_iter=int(self.max_iter_predict),
                    optimizer=self.optimizer if callable(self.optimizer) else None,
                    n_jobs=self.n_jobs,
                )
            self.theta_ = starts[0] if self.search_ is None else self.search_.theta
            posterior = OrdinalEvidence(process, int(self.max_iter_predict)).posterior(self.theta_)
        self.classes_, self._ranks = labels.names, labels.ranks
        self._owner = np.arange(X.shape[0]) if owner is None else owner
        self._keep(posterior, points, labels.all_cuts(posterior.cuts))
        if self.search_ is not None and not convex:
            judge_covariance(self, rows, X.dtype)
        if self.search_ is not None:
            self._warn_if_degenerate(points)
        evaluations = 0 if self.search_ is None else self.search_.evaluations
        self.certificate_ = dataclasses.replace(
            posterior.certificate,
            iterations=evaluations,
            seconds=time.perf_counter() - start_time,
            peak_bytes=account.peak,
        )
        if self.certificate_.status is not Status.converged:
            warn_user(
                f"{type(self).__name__}: the mode was not reached. {self.certificate_.status.value}", ConvergenceWarning
            )
        return self

    def latent(self, X: RowsLike, return_std: bool = False) -> Any:
        """Return the mean of f at each row, and its standard deviation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).
        return_std : bool, default=False
            Whether to return standard deviations as well.

        Returns
        -------
        mean : ndarray of shape (m,)
        std : ndarray of shape (m,)
            With ``return_std``.

        Raises
        ------
        ParameterError
            If deviations are requested and the kernel is precomputed.
        """
        X = self._new_rows(X)
        if return_std:
            mean, variance = self._moments(X)
            return mean, np.sqrt(variance)
        return self._expansion.values(X)[:, 0]

    def predict_proba(self, X: RowsLike) -> Vector:
        """Return the probabilities of the classes, averaged over the posterior of f.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        ndarray of shape (m, k)
            In the order of ``classes_``.

        Raises
        ------
        ParameterError
            If the kernel is precomputed.
        """
        X = self._new_rows(X)
        mean, variance = self._moments(X)
        a = self.slope_
        return averaged_probabilities(LINKS[self.link], a * mean, a * a * variance, a * self.thresholds_)

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the class of each row, by ``decision``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        ParameterError
            If the kernel is precomputed.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[decide(self.predict_proba(X), self.decision)])

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """Laplace's evidence of the training rows.

        Parameters
        ----------
        theta : array-like of shape (p,), optional
            As ``theta_``; None for the value at the fitted hyper-parameters.
        eval_gradient : bool, default=False
            Whether the gradient, of shape (p,), is returned as well.

        Returns
        -------
        float, or (float, ndarray of shape (p,))

        Raises
        ------
        ParameterError
            If theta has another length, or the gradient is requested without theta.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ParameterError("a gradient needs theta; pass theta=model.theta_.")
            return self.log_marginal_likelihood_value_
        theta = np.asarray(theta, dtype=np.float64).ravel()
        if theta.shape != self.theta_.shape or not np.isfinite(theta).all():
            raise ParameterError(
                f"theta must be {len(self.theta_)} finite numbers, as theta_ is, but is {theta[:20].tolist()}."
            )
        slope = None if isinstance(self.slope, str) else float(self.slope)
        covariance = covariance_of(self.kernel_, self.X_fit_, self.n_jobs)
        process = OrdinalProcess(
            covariance, self._ranks, LINKS[self.link], slope, self._owner, counts_as_definite(self)
        )
        evidence = OrdinalEvidence(process, int(self.max_iter_predict))
        return evidence(theta) if eval_gradient else evidence.value(theta)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Cut-points cannot separate classes that are not in order along the function.
        tags.classifier_tags.poor_score = True
        return tags

    def _check_parameters(self) -> None:
        require_choice(self, "link", tuple(LINKS))
        require_choice(self, "decision", DECISIONS)
        require_slope(self)
        check_search(self)
        require_whole(self, "max_iter_predict", "a whole number of at least 1")

    def _make_kernel(self, X: CheckedRows, gamma: Any) -> Kernel:
        return RBF(1.0) if self.kernel is None else super()._make_kernel(X, gamma)

    def _points(self, X: CheckedRows) -> tuple[Any, NDArray[np.intp] | None]:
        """The distinct rows, and the number among them of each row; None if all are."""
        if self.kernel_ is None:
            return X, None
        first, owner = equal_rows(X)
        return (X, None) if len(first) == X.shape[0] else (X[first], owner)

    def _parameters(self, variance: float) -> tuple[Parameter, ...]:
        """What the search moves beside the cut-points, for f of that variance."""
        own = () if self.kernel_ is None else tuple(p for p in self.kernel_.parameters if p.free)
        return (*own, slope_parameter(variance)) if isinstance(self.slope, str) else own

    def _variance(self, kernel: Kernel | None, rows: Any) -> float:
        """The mean variance of f at the points before their labels are seen."""
        return float((rows.diagonal() if kernel is None else diagonal(kernel, rows.renewed())).mean())

    def _starts(
        self, process: OrdinalProcess, parameters: tuple[Parameter, ...], rows: Any, variance: float
    ) -> list[Vector]:
        """The given start, and draws from the bounds; cut-points are put where every class has its share."""
        box = search_bounds(parameters)
        random = check_random_state(self.random_state)
        draws = [random.uniform(box[:, 0], box[:, 1]) for _ in range(int(self.n_restarts_optimizer))]
        size = process.covariance.size
        starts = []
        for number, front in enumerate((np.array([p.theta for p in parameters]), *draws)):
            own = np.asarray(front[:size], dtype=np.float64)
            slope = float(np.exp(front[size])) if process.slope is None else process.slope
            if number and self.kernel_ is not None:
                variance = self._variance(self.kernel_.with_theta(own), rows)
            starts.append(process.join(own, slope, process.likely_cuts(slope, variance)))
        return starts

    def _keep(self, posterior: OrdinalPosterior, points: Any, cuts: Vector) -> None:
        """Set the attributes that predictions need."""
        if self.kernel_ is not None:
            self.kernel_ = self.kernel_.with_theta(self.theta_[: len(self.kernel_.theta)])
        self.X_fit_, self.dual_coef_ = points, posterior.coefficients
        self._root, self._factor = posterior.root, posterior.factor
        self.slope_, self.thresholds_ = posterior.slope, cuts
        self.log_marginal_likelihood_value_ = posterior.evidence

    def _moments(self, X: CheckedRows) -> tuple[Vector, Vector]:
        """Means and variances of f, by tiles of new rows."""
        n, variance = X.shape[0], self._prior_variance(X)
        mean = np.empty(n)
        gram: Any = self._expansion.gram(X, np.float64)
        with memory.reserve(16 * min(_TILE, n) * len(self.dual_coef_), "kernel values of a tile of new rows"):
            for tile in spans(n, _TILE):
                block = gram.block(tile, None)
                mean[tile] = block @ self.dual_coef_
                block *= self._root
                lapack.solve_triangle(self._factor, block)
                variance[tile] -= np.einsum("ij,ij->i", block, block)
        return mean, np.maximum(variance, 0.0)

    @property
    def _expansion(self) -> KernelExpansion:
        # Kernel values of new rows are those with all rows of the fit, of which equal ones have one coefficient.
        columns = _first_of(self._owner) if self.kernel_ is None else None
        return dataclasses.replace(super()._expansion, columns=columns)

    def _prior_variance(self, X: CheckedRows | EvaluatedGram) -> Vector:
        """k(x, x) of new rows, in an array of its own."""
        if self.kernel_ is not None:
            return diagonal(self.kernel_, Rows(X)).astype(np.float64)
        if isinstance(X, EvaluatedGram) and X.squared_norms is not None:
            return X.squared_norms.copy()
        raise ParameterError(
            "the variance of f at new rows, and with it probabilities, needs k(x, x) of these, which a precomputed "
            "kernel does not contain; pass a kernel, or use latent(X) for the mean alone."
        )


def _first_of(owner: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first row of each group of equal rows, (m,), for the group of each row, (n,)."""
    return np.unique(owner, return_index=True)[1]
