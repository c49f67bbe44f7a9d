"""Classification with Gaussian processes."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError, warn_user
from mercer._registered import CommandLine
from mercer._types import CheckedRows, Matrix
from mercer.engine import memory, threads
from mercer.estimators.gaussian.binary_parts import BinaryParts, parts
from mercer.estimators.gaussian.classes_in_parts import ClassPartsFit
from mercer.estimators.gaussian.classes_over_landmarks import ClassLandmarkFit, require_function, require_landmarks
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.in_parts import PartRows
from mercer.estimators.gaussian.options import check_search, default_kernel, is_bare, one_column_kernel, scaled
from mercer.estimators.gaussian.over_landmarks import require_all_rows
from mercer.estimators.gaussian.starts import starts_of
from mercer.estimators.shared.certificates import joined
from mercer.estimators.shared.definiteness import counts_as_definite, judge_covariance
from mercer.estimators.shared.labels import check_labels, encoded
from mercer.estimators.shared.parameters import require_choice, require_flags, require_whole
from mercer.estimators.shared.restricted import NO_WARM_START
from mercer.estimators.shared.restricted_risk import forget
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.kernels import RBF, Kernel
from mercer.kernels.algebra import Scaled, Sum
from mercer.kernels.convert import KernelLike
from mercer.priors import bind_priors
from mercer.solvers.gaussian.approaches import approach
from mercer.solvers.gaussian.classification import Evidence, GaussianClassification
from mercer.solvers.gaussian.covariance import Covariance
from mercer.solvers.gaussian.search import MultiStart, Search, warn_of_bounds
from mercer.solvers.solution import Certificate, Status


class GaussianProcessClassifier(BinaryParts):
    r"""Classification with Gaussian processes: probabilities averaged over the posterior, hyper-parameters by evidence.

    The labels depend on latent functions with the prior :math:`f \sim \mathrm{GP}(0, k_\theta)`, one function for two
    classes and one per class for several:

    .. math:: p(y = 1 \mid f) = \sigma(f), \qquad p(y = j \mid f) = e^{f_j} / \sum_l e^{f_l}

    Their posterior is approximated by a Gaussian, at its mode (Laplace) or by matching moments (expectation
    propagation, with :math:`\Phi` in place of :math:`\sigma`).

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel, str or callable, optional
        The covariance function, whose free parameters are optimised, starting from their current values. None is
        ``1.0 * RBF(length)``, whose length scale starts at the median distance of rows (with ``optimizer=None``, it is
        ``1.0 * RBF(1.0)``). Also a name (``"rbf"``, ...), a function ``(X, Z) -> block``, or ``"precomputed"``. A
        kernel on strings, graphs, series or other objects that has no factor and no ``White`` term gets a factor, which
        is learnt, unless ``optimizer`` is None.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        None keeps the hyper-parameters fixed. A function is called as ``optimizer(objective, start, bounds=bounds)``,
        where ``objective(theta, eval_gradient=True)`` is to be minimised, and returns the best theta and its value.
    n_restarts_optimizer : int or "auto", default="auto"
        Further searches from starts drawn between the bounds; they run in parallel. ``"auto"`` searches once more from
        length scales at the median distance of rows, factors of 4 and a tenth of it as noise, and with up to 500 rows
        from a quarter of these lengths before, until two ends agree in the log evidence to 0.01. With a function as
        ``optimizer`` it is 0.
    max_iter_predict : int, default=100
        Maximum number of Newton steps, or of sweeps of expectation propagation, at each value of the hyper-parameters.
    warm_start : bool, default=False
        Start from the posterior of the last fit, if it had as many rows and classes. Within a search, each evaluation
        always starts from the previous one. It must be False with ``approximation="nystroem"``.
    copy_X_train : bool, default=True
        Whether to copy the training rows.
    random_state : int, RandomState or None, default=None
        Seed of the random starts, and of the choice of landmarks.
    multi_class : {"auto", "multinomial", "one_vs_rest", "one_vs_one"}, default="auto"
        For more than two classes: one posterior of the latent functions of all classes, or a binary classifier for each
        class or pair, as in scikit-learn. ``"auto"`` is ``"multinomial"`` with ``approximation="laplace"`` and
        ``"nystroem"``, else ``"one_vs_rest"``; with ``approximation="auto"`` all classes then have one kernel, with the
        hyper-parameters of ``"multinomial"``, which rare classes could not learn by themselves.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.
    approximation : {"auto", "laplace", "ep", "nystroem"}, default="auto"
        Expectation propagation is more accurate but slower, and handles two classes only; with more classes, it cannot
        be combined with ``"multinomial"``. ``"auto"`` is ``"laplace"`` for one posterior; binary classifiers for more
        than two classes have the posterior of expectation propagation, with hyper-parameters by the evidence of
        Laplace's approximation (see Notes). ``"nystroem"`` is Laplace's approximation for latent functions over few
        rows, the landmarks, in time linear in the number of rows. Then the kernel must be positive semi-definite and
        without ``White`` parts.
    n_landmarks : int, default=1000
        With ``approximation="nystroem"``: the number of landmarks, all rows if there are fewer.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves. Classifiers of
        two classes choose their own.
    priors : dict of str to Prior, optional
        Priors of hyper-parameters, by name (``"length_scale"``, ``"left.factor"``); see :mod:`mercer.priors`.
    gamma, degree, coef0 : float, int, float
        For kernels given by name.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` warns, and raises an error only if its matrix on the
        training rows, at the fitted hyper-parameters, is not positive semi-definite; True raises the diagonal of that
        matrix as far as necessary; False raises an error for the kernel.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    n_classes_ : int
        Number of classes.
    kernel_ : Kernel, tuple of Kernel, or None
        With the fitted hyper-parameters: a tuple with that of each binary classifier, if there are several.
    theta_ : ndarray of shape (p,)
        Free parameters of ``kernel_``, each on the scale of its transform (log by default).
    log_marginal_likelihood_value_ : float
        The approximate evidence at ``theta_``; the mean over the binary classifiers. Over landmarks, that of the prior
        that they give.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With ``approximation="nystroem"``: the positions of the landmarks among the training rows; None if they are none
        of them.
    search_ : Search or None
        All searches: where each started and ended, the evidence there, and how it ended.
    X_train_, y_train_ : ndarray of shape (n_samples, n_features), (n_samples,)
        The rows (for ``"precomputed"`` the matrix), and the indices of their classes. With
        ``approximation="nystroem"``, the landmarks and None; if there are several binary classifiers, which have their
        own, no rows.
    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        Coefficients a of the posterior mean :math:`\sum_i a_i k(x_i, x)`; over landmarks, one for each of them.
    coef_ : ndarray of shape (1, p) or (n_classes, p)
        w of the posterior mean in the p features of ``feature_map_``, for linear kernels (where they are the columns of
        X), polynomial and all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,) or (n_classes,)
        :math:`\|w\|` in the feature space of any kernel.
    pi_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of ``classes_[1]``, or of all classes, at the mode; for one posterior by Laplace's approximation.
    W_sr_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Roots of the curvatures of the likelihood, or of the precisions of the sites.
    L_ : ndarray of shape (n_samples, n_samples)
        Lower factor of ``I + W_sr_ K W_sr_``, for two classes. It, ``pi_`` and ``W_sr_`` do not exist over landmarks.
    estimators_ : list
        The binary classifiers, if there are several; else empty.
    certificate_ : Certificate
        The accuracy of the posterior: for Laplace how far its mode is from stationary, with a duality gap; for
        expectation propagation the largest change of a site, in units of the posterior.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, NumericalError, MemoryBudgetError
        From ``fit``: one class only, an invalid parameter, a kernel that is not a covariance function, a problem that
        exceeds the memory budget.

    See Also
    --------
    mercer.solvers.gaussian.laplace.laplace, mercer.solvers.gaussian.softmax.softmax_laplace,
    mercer.solvers.gaussian.propagation.expectation_propagation : The approximations, and their cost.

    Notes
    -----
    If classes hardly overlap, the evidence favours latent functions of large variance. The mode of Laplace's
    approximation is then far below the mean of the posterior, and its probabilities are too cautious, although its
    classes are right. Expectation propagation does not have this problem. It takes three to five times as long for each
    value of the evidence. The two agree about the hyper-parameters if the links do: :math:`\sigma(f)` is about
    :math:`\Phi(f \sqrt{\pi / 8})`, which has the same slope at 0. So ``"auto"`` multiplies the learnt factor of the
    kernel by :math:`\pi / 8` between the one and the other.

    Names, defaults and meaning are those of ``sklearn.gaussian_process.GaussianProcessClassifier``, except for
    ``approximation`` with several classes, and for the default of ``n_restarts_optimizer``, which is 0 there. For two
    classes the evidence is the same number, and so are the predictions, except that probabilities are averaged to
    rounding. Memory in bytes: 12 :math:`n^2` for two classes, and 8 :math:`n^2` for each class and four more with
    ``"multinomial"``.

    Over m landmarks z, the prior covariance is :math:`Q = K_{nm} K_{mm}^{-1} K_{mn}` in place of K. A Newton step takes
    :math:`2 n m^2` operations for two classes, and :math:`m^2 (1 + c (c - 1) / 2)` for each row and c classes together,
    whose memory is about 24 :math:`(c m)^2` bytes beside blocks of rows. Hyper-parameters are searched by the exact
    evidence of a sample of up to 1000 rows, from all starts, then landmarks are chosen for them, and then a search from
    there maximises the evidence of all rows over these landmarks, which ends when five steps together gain less than
    0.1. This evidence is not a bound on the exact one. Latent variances are

    .. math:: k(x, x) - k_x^\top K_{mm}^{-1} k_x + k_x^\top (K_{mm} + K_{mn} W K_{nm})^{-1} k_x,

    where the first two terms, what the landmarks leave of the prior variance, are as in the deterministic training
    conditional (DTC) and in the variational posterior of :class:`GaussianProcessRegressor`. They are never below that
    remainder, but may be below the exact ones: rows far from a landmark may teach it too much. With all rows as
    landmarks everything is that of the exact classifier.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), chapters 3 and 5; J.
    Quiñonero-Candela and C. E. Rasmussen, "A unifying view of sparse approximate Gaussian process regression" (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> kernel = (100.0 * RBF(0.5)).fixed("factor")
    >>> model = GaussianProcessClassifier(kernel, approximation="ep").fit(X, np.sin(9.0 * X[:, 0]) > 0.3)
    >>> model.predict_proba([[-0.8], [0.0], [0.2]])[:, 1].round(1).tolist()
    [0.0, 0.0, 1.0]
    >>> model.certificate_.kkt_violation < 1e-6
    True
    >>> few = GaussianProcessClassifier(kernel, approximation="nystroem", n_landmarks=12, random_state=0)
    >>> few = few.fit(X, np.sin(9.0 * X[:, 0]) > 0.3)
    >>> few.predict([[-0.8], [0.0], [0.2]]).tolist(), few.dual_coef_.shape
    ([False, False, True], (1, 12))
    """

    certificate_: Certificate
    search_: Search | None
    _state: Matrix

    _beside_landmarks = (NO_WARM_START,)
    _command_line = CommandLine("gpc gp", scaled=True, pair_bytes=12, frugal="svc", advised=False)

    def __init__(
        self,
        kernel: KernelLike | None = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int | str = "auto",
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: int | np.random.RandomState | None = None,
        multi_class: str = "auto",
        n_jobs: int | None = None,
        approximation: str = "auto",
        n_landmarks: int = 1000,
        landmarks: Any = "rpcholesky",
        priors: Any = None,
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        allow_indefinite: bool | str = "warn",
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state
        self.multi_class = multi_class
        self.n_jobs = n_jobs
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.priors = priors
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.allow_indefinite = allow_indefinite

    @takes_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Search for the hyper-parameters and approximate the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have labels of their own, are read
            once for each step to the mode, and hyper-parameters are learnt on a sample of their rows. Partitions of
            Dask are read as blocks, on this machine. Both need ``approximation="nystroem"`` and, for more than two
            classes, ``multi_class="multinomial"``.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameters()
        in_parts = PartRows.of(self, X, y)
        if in_parts is not None:
            X, y = in_parts.training()[0], in_parts.y
        X = self._check_X(X, reset=True)
        y = check_labels(type(self).__name__, y, X.shape[0] if in_parts is None else in_parts.blocks.n)
        classes, codes = encoded(type(self).__name__, y)
        self._check_classes(classes, in_parts is not None)
        start = self._last_state(X.shape[0], len(classes))
        self._fit_kernel(X, intercept=False)
        log_prior = bind_priors(self.priors, () if self.kernel_ is None else self.kernel_.parameters)
        inputs = self._rows(X)
        given = self._given_matrix()
        self.classes_, self.n_classes_, self.y_train_ = classes, len(classes), codes
        if self.is_on_landmarks:
            require_function(self)
            convex = True
        else:
            convex = judge_covariance(self, inputs, X.dtype, given)
            self.X_train_ = X.copy() if self.copy_X_train else X
        of_some_fits = ("_landmark_factors", "landmark_indices_", "_factor", "_state", "W_sr_", "pi_", "dual_coef_")
        forget(self, *of_some_fits, "search_rows_")
        with memory.track() as account, naming_what_fits(self, X.shape[0]):
            if len(classes) > 2 and self._scheme != "multinomial":
                self._fit_parts(X)
            elif in_parts is not None:
                ClassPartsFit(self, X, codes[in_parts.positions], log_prior, in_parts.blocks, codes).run()
            elif self.is_on_landmarks:
                ClassLandmarkFit(self, X, codes, log_prior).run()
            else:
                self._fit_posterior(log_prior, start, covariance_of(self.kernel_, inputs, self.n_jobs, given))
        if self.search_ is not None and not convex:
            # Also at the fitted hyper-parameters.
            judge_covariance(self, inputs, X.dtype)
        if self.search_ is not None:
            self._warn_if_degenerate(X)
        self.certificate_ = dataclasses.replace(
            self.certificate_, seconds=time.perf_counter() - start_time, peak_bytes=account.peak
        )
        self._report()
        return self

    def _check_parameters(self) -> None:
        check_search(self, "auto")
        require_flags(self, "warm_start", "copy_X_train")
        require_choice(self, "multi_class", ("auto", "multinomial", "one_vs_rest", "one_vs_one"))
        require_whole(self, "max_iter_predict", "a whole number of steps, at least 1")
        require_landmarks(self)

    def _check_classes(self, classes: np.ndarray, in_parts: bool) -> None:
        if len(classes) > 2 and in_parts and self._scheme != "multinomial":
            raise ParameterError(
                f"multi_class={self.multi_class!r} fits classifiers of two to rows in memory, and these come in parts, "
                f'with {len(classes)} classes; pass multi_class="multinomial", or arrays.'
            )
        if len(classes) > 2 and self.approximation == "ep" and self.multi_class == "multinomial":
            raise ParameterError(
                f'approximation="ep" is for two classes, and y has {len(classes)}; pass multi_class="one_vs_rest" or '
                '"one_vs_one", or approximation="laplace".'
            )

    def _make_kernel(self, X: CheckedRows, gamma: Any) -> Kernel:
        if self.kernel is None:
            return 1.0 * RBF(1.0) if self.optimizer is None else default_kernel(X)
        kernel = one_column_kernel(super()._make_kernel(X, gamma), getattr(self, "n_features_in_", None))
        return scaled(kernel, 1.0) if self.optimizer is not None and is_bare(kernel) else kernel

    def _last_state(self, n: int, classes: int) -> Matrix | None:
        """Where the last fit ended, if this one may begin there."""
        if not self.warm_start or not hasattr(self, "_state") or getattr(self, "n_classes_", 0) != classes:
            return None
        return self._state if len(self._state) == n else None

    def _evidence(self, start: Matrix | None, covariance: Covariance) -> Evidence:
        problem = GaussianClassification(covariance, self.y_train_, self.n_classes_, counts_as_definite(self))
        method = approach(problem.n, self.n_classes_, "ep" if self.approximation == "ep" else "laplace")
        return Evidence(problem, method, max_iter=int(self.max_iter_predict), n_jobs=self.n_jobs, start=start)

    def _fit_posterior(self, log_prior: Any, start: Matrix | None, covariance: Covariance) -> None:
        """One posterior for all classes."""
        evidence = self._evidence(start, covariance)
        self.search_ = self._search(evidence, log_prior)
        if self.kernel_ is None:
            self.theta_ = np.zeros(0)
        else:
            self.theta_ = np.asarray(self.kernel_.theta if self.search_ is None else self.search_.theta)
            self.kernel_ = self.kernel_.with_theta(self.theta_)
        solution = evidence.solve(self.theta_, keep_factor=True)
        posterior = solution.value
        assert posterior.factor is not None
        self.dual_coef_ = np.ascontiguousarray(posterior.weights.T)
        self._factor, self._state, self.estimators_ = posterior.factor, solution.state, []
        two = self.n_classes_ == 2
        self.W_sr_ = posterior.root[:, 0] if two else posterior.root
        if posterior.probabilities is not None:
            self.pi_ = posterior.probabilities[:, 0] if two else posterior.probabilities
        self.log_marginal_likelihood_value_ = posterior.evidence
        self.certificate_ = solution.certificate

    def _search(self, evidence: Evidence, log_prior: Any) -> Search | None:
        if self.optimizer is None or self.kernel_ is None or not len(self.kernel_.theta):
            return None
        bounds, free = self.kernel_.bounds, [p for p in self.kernel_.parameters if p.free]
        # For the whole search: L-BFGS-B on a few parameters would wake the threads of BLAS as well.
        with threads.workers(self.n_jobs):
            search = MultiStart(
                **starts_of(self, self.kernel_, self.X_train_, free),
                random_state=self.random_state,
                optimizer=self.optimizer if callable(self.optimizer) else None,
                n_jobs=self.n_jobs,
                bytes_each=evidence.bytes_each,
            ).maximise(evidence, self.kernel_.theta, bounds, log_prior)
        warn_of_bounds(search, bounds, [p.name for p in free])
        return search

    def _fit_parts(self, X: CheckedRows) -> None:
        """A binary classifier for each class or pair."""
        kernel = "precomputed" if self.kernel_ is None else self.kernel_
        optimizer = self.optimizer
        if self.multi_class == self.approximation == "auto" and optimizer is not None and _is_searched(kernel):
            # A class of few rows cannot tell a length scale by itself: its evidence is largest for a constant function.
            way = {"kernel": kernel, "multi_class": "multinomial", "warm_start": False, "copy_X_train": False}
            kernel, optimizer = _for_probit(clone(self).set_params(**way).fit(X, self.y_train_).kernel_), None
        self.estimators_ = []
        for rows, labels in parts(self.y_train_, self.n_classes_, self._scheme):
            part = clone(self).set_params(kernel=kernel, optimizer=optimizer, copy_X_train=False, warm_start=False)
            if len(rows) == len(self.y_train_):
                some = X
            else:
                some = X[np.ix_(rows, rows)] if self._is_precomputed else X[rows]
            fit = type(self).fit if self.approximation != "auto" else _propagated
            self.estimators_.append(fit(part, some, labels))
        self.search_ = None
        self.theta_ = np.concatenate([part.theta_ for part in self.estimators_])
        if self.kernel_ is not None:
            self.kernel_ = tuple(part.kernel_ for part in self.estimators_)
        values = [part.log_marginal_likelihood_value_ for part in self.estimators_]
        self.log_marginal_likelihood_value_ = float(np.mean(values))
        if self.is_on_landmarks:
            # Rows that were not kept are not needed.
            self.X_train_, self.y_train_ = X[np.arange(0)], None
        self.certificate_ = joined([part.certificate_ for part in self.estimators_])

    def _report(self) -> None:
        """Warn if an approximation stopped early."""
        status = self.certificate_.status
        if status is not Status.converged:
            what = "max_iter_predict" if status is Status.iteration_limit else "the precision of float64"
            warn_user(
                f"GaussianProcessClassifier: {what} ended the approximation of the posterior with its conditions "
                f"violated by {self.certificate_.kkt_violation:.1e}; raise max_iter_predict, scale the columns of X, "
                "or bound the kernel's variance (kernel.bounded).",
                ConvergenceWarning,
            )

    @property
    def base_estimator_(self) -> Self:
        """What holds ``X_train_``, ``pi_``, ``W_sr_`` and ``L_``, which is the estimator itself."""
        check_is_fitted(self)
        return self

    @property
    def L_(self) -> Matrix:
        """Lower factor of ``I + W_sr_ K W_sr_``, (n, n); for two classes only."""
        check_is_fitted(self)
        if self.n_classes_ > 2:
            raise AttributeError("L_ is one factor, for two classes; with several classes there is one for each.")
        if self._landmark_factors is not None:
            raise AttributeError('there is no factor of all rows with approximation="nystroem".')
        return self._factor

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The approximate evidence ``log p(y)`` of the training rows; the mean over the binary classifiers.

        Parameters
        ----------
        theta : array-like of shape (p,), optional
            Parameters of the kernel, on the scale of ``theta_``; None for the value at the fitted ones. With
            several binary classifiers, those of one kernel for all, or of each in turn as in ``theta_``.
        eval_gradient : bool, default=False
            Whether the gradient, of the shape of theta, is returned as well.
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
        NumericalError
            If the kernel matrix there is not positive semi-definite, or not finite.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ParameterError("a gradient needs theta; pass theta=model.theta_.")
            return np.float64(self.log_marginal_likelihood_value_)
        theta = np.asarray(theta, dtype=np.float64).ravel()
        if self.estimators_:
            return self._mean_evidence(theta, eval_gradient)
        require_all_rows(self, "the evidence at other hyper-parameters", '"laplace"')
        if theta.shape != self.theta_.shape:
            raise ParameterError(
                f"theta must have the {len(self.theta_)} entries of theta_, but has {theta.size}: the free parameters "
                f"of {self.kernel_!r}."
            )
        covariance = covariance_of(self.kernel_, self.X_train_, self.n_jobs)
        result = self._evidence(self._state, covariance).solve(theta, gradient=eval_gradient).value
        return (np.float64(result.evidence), result.gradient) if eval_gradient else np.float64(result.evidence)


def _propagated(part: GaussianProcessClassifier, X: Any, labels: Any) -> GaussianProcessClassifier:
    """Fit a binary classifier: hyper-parameters by Laplace's approximation, posterior by expectation propagation."""
    if part.optimizer is not None and _is_searched(part.kernel):
        rough = clone(part).set_params(approximation="laplace").fit(X, labels)
        part.set_params(kernel=_for_probit(rough.kernel_))
    return part.set_params(approximation="ep", optimizer=None).fit(X, labels)


def _is_searched(kernel: Any) -> bool:
    """Whether there are hyper-parameters to learn."""
    return isinstance(kernel, Kernel) and len(kernel.theta) > 0


def _for_probit(kernel: Any) -> Kernel:
    """The kernel of a latent function with the logistic link as one with the probit link, in its learnt factors.

    >>> changed = _for_probit(8.0 * RBF(1.0) + (8.0 * RBF(2.0)).fixed("factor"))
    >>> [round(term.factor, 4) for term in changed.terms]
    [3.1416, 8.0]
    """
    if isinstance(kernel, Sum):
        return kernel.with_children(tuple(_for_probit(child) for _, child in kernel.children()))
    free = [p for p in kernel.parameters if p.free]
    if not isinstance(kernel, Scaled) or not free or free[0].name != "factor":
        return kernel
    theta = kernel.theta.copy()
    theta[0] = max(theta[0] + np.log(np.pi / 8.0), kernel.bounds[0, 0])
    return kernel.with_theta(theta)
