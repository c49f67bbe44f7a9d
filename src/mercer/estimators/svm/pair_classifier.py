"""Base of the support vector classifiers: one problem for each pair of classes, and votes."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from mercer._errors import InfeasibleError, ParameterError
from mercer._types import CheckedRows, Matrix, Positions, RowsLike, Vector
from mercer.engine import memory
from mercer.estimators.shared.along import fitted_alone
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.certificates import joined, warn_if_stopped
from mercer.estimators.shared.expansion import coef_of, feature_map_of, norm_of, of_support, precision_of
from mercer.estimators.shared.in_parts import in_parts
from mercer.estimators.shared.labels import check_labels, class_factors
from mercer.estimators.shared.layout import laid_out_as
from mercer.estimators.shared.parameters import require_choice, require_flags, require_seed
from mercer.estimators.shared.restricted_risk import forget, of_all_rows
from mercer.estimators.shared.weights import check_svm_weight, fit_weighted_kernel
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.svm.class_rows import ClassRows, MergedRows
from mercer.estimators.svm.left_out import Solver, deal_folds, values_of_rows_left_out
from mercer.estimators.svm.on_landmarks import LandmarkPairs
from mercer.estimators.svm.one_vs_one import JointExpansion, PairExpansion, join, one_vs_rest
from mercer.estimators.svm.pair_probabilities import (
    PairSigmoids,
    evaluated_for_folds,
    has_probabilities,
    is_wanted,
    sigmoid_offsets_of,
    sigmoid_slopes_of,
    warn_of_parameter,
)
from mercer.estimators.svm.pair_records import PAIRS, last_weights, margin_of, margins_and_roles, roles_of, slacks_of
from mercer.estimators.svm.solvers import check_solver
from mercer.gram.protocol import GramMatrix
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.pair_answers import Certificates, PairAnswers
from mercer.solvers.svm.pair_problem import PairMachine
from mercer.solvers.svm.pairwise import solve_pairs, solve_pairs_along
from mercer.solvers.svm.smo import STORED


class PairClassifier(ClassifierMixin, KernelEstimator, ABC):
    """Base of the one-vs-one classifiers; a subclass states the problem of a pair.

    Besides the parameters of :class:`KernelEstimator` the constructor must have ``tol, cache_size, class_weight,
    verbose, max_iter, decision_function_shape, break_ties, probability, allow_indefinite, warm_start, stop, solver``.
    """

    class_weight: Any
    decision_function_shape: Any
    break_ties: Any
    probability: Any
    random_state: Any
    warm_start: Any
    classes_: np.ndarray
    dual_coef_: Any
    intercept_: Vector
    certificate_: Certificate
    certificates_: Certificates
    class_weight_: Vector
    support_vectors_: Any
    _probA: Vector
    _probB: Vector
    _fitted = PAIRS
    shares_matrices = True
    most_shared_rows = STORED

    support_ = of_all_rows("support_", "Landmarks are at landmark_indices_, and in support_vectors_.")
    n_support_ = of_all_rows("n_support_", "The number of landmarks is that of the rows of support_vectors_.")
    margins_ = of_all_rows("margins_", "They are the decision values of the training rows, times the signs of classes.")
    _role_codes = of_all_rows("roles_", "Compare the decision values of the training rows with 1.")
    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)
    margin_ = property(margin_of)
    slacks_ = property(slacks_of)
    roles_ = property(roles_of)
    probA_ = property(sigmoid_slopes_of)
    probB_ = property(sigmoid_offsets_of)

    @abstractmethod
    def _bounds(self, data: ClassRows) -> Vector:
        """Return the bounds on the absolute weights, one for each row of ``data``."""

    @abstractmethod
    def _machine(self, data: ClassRows) -> PairMachine:
        """Return the machine that solves the problem of a pair."""

    @abstractmethod
    def _start(self, weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector:
        """Return a start from the weights of the last fit, both in the layout of ``PairLayout(sizes)``."""

    @abstractmethod
    def _fold_start(self, weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector | None:
        """Return a start for a fold from the weights of this fit, both in the layout of ``PairLayout(sizes)``."""

    @property
    def _has_intercept(self) -> bool:
        return True

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions. Rows of weight 0 or below are left out, negative ones with a
            warning.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        X, side, data, last = self._prepare(X, y, sample_weight)
        with memory.track() as account, naming_what_fits(self, X.shape[0]):
            merged = MergedRows(self, X, data)
            matrix = self._class_gram(side, merged.data)
            answers = self._solve_merged(side, merged, matrix, last)
        self._finish(X, data, answers, time.perf_counter() - start_time, account.peak)
        self._report(lambda: self._beside_constant(data))
        if merged.data is not data and is_wanted(self.probability):
            # Folds consist of the original rows.
            matrix = self._class_gram(side, data)
        self._calibrate(*matrix, data, self._bounds(data), answers)
        return self

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each value of one parameter; each pair of classes is solved for all values in turn.

        Parameters
        ----------
        parameter : str
            ``"C"`` or ``"nu"``.
        values : sequence of float
            Its values, ascending.
        X, y, sample_weight
            As for ``fit``.

        Returns
        -------
        list of fitted estimators
            In the order of the values.
        """
        if self.is_on_landmarks:
            return fitted_alone(self, parameter, values, X, y, sample_weight)
        models = [clone(self).set_params(**{parameter: value}) for value in values]
        first = models[0]
        if first.learns_kernel:
            return [model.fit(X, y, sample_weight) for model in models]
        for model in models:
            model.take_matrices_from(self._matrices)._check_parameters()
        X, side, data, _ = first._prepare(X, y, sample_weight)
        models[1:] = [copy.copy(first).set_params(**model.get_params(deep=False)) for model in models[1:]]
        merged = MergedRows(first, X, data)
        few = merged.data
        with memory.track() as account:
            gram, convex = matrix = first._class_gram(side, few)
            bounds, machines = [model._bounds(few) for model in models], [model._machine(few) for model in models]
            every = solve_pairs_along(gram, few.sizes, bounds, machines, convex=convex)
        if few is not data and is_wanted(self.probability):
            matrix = first._class_gram(side, data)
        for model, answers in zip(models, every, strict=True):
            answers = merged.spread(answers, model._bounds(data))
            model._finish(X, data, answers, float(answers.certificates.seconds.sum()), account.peak)
            model._report(partial(model._beside_constant, data))
            model._calibrate(*matrix, data, model._bounds(data), answers)
        return models

    def _solve_merged(
        self, side: Any, merged: MergedRows, matrix: tuple[Any, bool], last: Vector | None
    ) -> PairAnswers:
        """Solve over the distinct rows; if there is no hard margin, the error is raised for the original rows."""
        few, data = merged.data, merged.whole
        try:
            answers = self._solve(*matrix, few, merged.start(last))
        except InfeasibleError:
            if few is data:
                raise
            return self._solve(*self._class_gram(side, data), data, last)
        return merged.spread(answers, self._bounds(data))

    def _prepare(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, Any, ClassRows, Vector | None]:
        """Check the arguments and fit the kernel.

        Return X, the same as a side of matrices, its rows by class, and the weights of the last fit.
        """
        self._check_parameters()
        warn_of_parameter(type(self).__name__, self.probability)
        X = self._check_X(X, reset=True)
        y = check_labels(type(self).__name__, y, X.shape[0])
        weight = check_svm_weight(sample_weight, X)
        data = ClassRows.of(type(self).__name__, y, weight)
        last = last_weights(self, data, X.shape[0]) if self.warm_start else None
        self.classes_ = data.names
        side = fit_weighted_kernel(self, X, weight, intercept=self._has_intercept)
        self.class_weight_ = class_factors(self.class_weight, data.names, data.codes, data.weight)
        return X, side, data, last

    def _finish(self, X: CheckedRows, data: ClassRows, answers: PairAnswers, seconds: float, peak_bytes: int) -> None:
        """Set the attributes that are computed from the answers."""
        self._keep(X, data, answers)
        margins, codes = margins_and_roles(X.shape[0], data, answers, self._bounds(data))
        two = len(self.classes_) == 2
        self.margins_, self._role_codes = (margins[0], codes[0]) if two else (margins, codes)
        self.certificates_ = answers.certificates
        self.n_iter_ = self.certificates_.iterations.astype(np.int32)
        self.certificate_ = joined(self.certificates_, seconds, peak_bytes)

    @in_parts
    def decision_function(self, X: RowsLike) -> Vector:
        """Return decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,), (m, k) or (m, k * (k - 1) / 2)
            For two classes (m,), positive for ``classes_[1]``; else as ``decision_function_shape``.
        """
        X, f = self._new_rows(X), self._expansion
        gram = f.gram(X, precision_of(self))
        if len(self.classes_) > 2 and self.decision_function_shape == "ovr":
            return one_vs_rest(*f.tally(gram, strict=False))
        values = f.pair_values(gram)
        return -values[:, 0] if len(self.classes_) == 2 else values

    @in_parts
    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ParameterError("break_ties must be False when decision_function_shape is 'ovo'; use 'ovr'.")
        X, f = self._new_rows(X), self._expansion
        gram = f.gram(X, precision_of(self))
        by_value = self.break_ties and len(self.classes_) > 2
        won, sums = f.tally(gram, strict=not by_value)
        return self.classes_[(one_vs_rest(won, sums) if by_value else won).argmax(axis=1)]

    @available_if(has_probabilities)
    def predict_proba(self, X: RowsLike) -> Matrix:
        """Return the probability of each class for the rows of ``X``, (m, k), in the order of ``classes_``.

        Each pair of classes has a sigmoid of its decision value, fitted to held-out rows; more than two classes are
        coupled by least squares.

        Raises
        ------
        NotFittedError
            If the classifier was fitted with ``probability=False``.
        """
        X = self._new_rows(X)
        if not len(self._probA):
            raise NotFittedError(
                f"predict_proba is not available when fitted with probability=False; call fit of this "
                f"{type(self).__name__} again, with probability=True."
            )
        expansion = self._expansion
        # Over landmarks there are no probabilities.
        assert isinstance(expansion, PairExpansion)
        agree = bool((self.class_weight_ == self.class_weight_[0]).all())
        return PairSigmoids(self._probA, self._probB).predict(expansion, X, agree=agree)

    @available_if(has_probabilities)
    def predict_log_proba(self, X: RowsLike) -> Matrix:
        """Return the logarithm of :meth:`predict_proba`, (m, k)."""
        return np.log(self.predict_proba(X))

    def calibrated(self, cv: Any = 5, method: str = "sigmoid") -> CalibratedClassifierCV:
        """A classifier with probabilities, not yet fitted: this one with its decision values calibrated.

        The calibration is learned from decision values of held-out rows (cross-fitting by ``cv``), and it predicts the
        most probable class, so that ``predict`` and ``predict_proba`` always agree.

        Parameters
        ----------
        cv : int, splitter or iterable, default=5
            Folds.
        method : {"sigmoid", "isotonic", "temperature"}, default="sigmoid"
            From decision values to probabilities; ``"isotonic"`` needs about 1000 rows.

        Returns
        -------
        sklearn.calibration.CalibratedClassifierCV
            With a copy of this classifier inside.

        References
        ----------
        Platt (2000), "Probabilistic outputs for support vector machines"; Zadrozny and Elkan (2002), "Transforming
        classifier scores into accurate multiclass probability estimates", for more than two classes.

        Examples
        --------
        >>> from mercer import SVC
        >>> X = np.linspace(-1, 1, 40)[:, None]
        >>> model = SVC(C=10.0).calibrated().fit(X, X[:, 0] > 0)
        >>> model.predict_proba([[-1.0], [1.0]]).argmax(axis=1), model.predict([[-1.0], [1.0]])
        (array([0, 1]), array([False,  True]))
        """
        inner = clone(self).set_params(decision_function_shape="ovr")
        return CalibratedClassifierCV(inner, method=method, cv=cv, ensemble=False)

    @property
    def _sign(self) -> float:
        """The sign in scikit-learn: for two classes, positive values mean the second one."""
        return -1.0 if len(self.classes_) == 2 else 1.0

    def _check_parameters(self) -> None:
        check_solver(self)
        require_choice(self, "decision_function_shape", ("ovr", "ovo"))
        require_flags(self, "break_ties")
        require_seed(self)
        require_choice(self, "probability", (True, False, "deprecated"))

    def _class_gram(self, side: Any, data: ClassRows) -> tuple[Any, bool]:
        """Return the kernel matrix of the rows with a weight, sorted by class, and whether its problems are convex."""
        gram: Any = self._gram(side, dtype=None if self.kernel_ is None else np.float64)
        if not np.array_equal(data.rows, np.arange(data.total)):
            gram = gram.restrict(data.rows, data.rows)
        convex = self._is_convex(gram, data.rows, side.dtype, intercept=self._has_intercept)
        if is_wanted(self.probability):
            gram = evaluated_for_folds(gram, len(data.names))
        return gram, convex

    def _solve(self, gram: GramMatrix, convex: bool, data: ClassRows, last: Vector | None) -> PairAnswers:
        bounds = self._bounds(data)
        starts = None if last is None else self._start(last, bounds, data.sizes)
        try:
            return solve_pairs(gram, data.sizes, bounds, self._machine(data), convex=convex, starts=starts)
        except InfeasibleError as error:
            raise data.located(error) from None

    def _calibrate(self, gram: GramMatrix, convex: bool, data: ClassRows, bounds: Vector, answers: PairAnswers) -> None:
        """Fit the sigmoids for probabilities, if ``probability`` asks for them."""

        def solve(part: GramMatrix, rows: NDArray[np.intp], sizes: NDArray[np.intp]) -> PairAnswers:
            machine, starts = self._machine(data), None
            if len(sizes) < len(data.names):
                machine = machine.of_classes(np.unique(data.codes[rows]))
            elif convex:
                # The start depends on the left-out rows. The answer does not, if the problem is convex.
                starts = self._fold_start(answers.beta[:, rows], bounds[rows], sizes)
            return solve_pairs(part, sizes, bounds[rows], machine, convex=convex, starts=starts)

        self._learn_probabilities(gram, data.codes, data.weight, solve)

    def _learn_probabilities(self, gram: GramMatrix, codes: Positions, weight: Vector, solve: Solver) -> None:
        """Set the sigmoids of all pairs of classes, for rows sorted by class; see ``values_of_rows_left_out``."""
        self._probA, self._probB = np.empty((2, 0))
        if is_wanted(self.probability):
            folds = deal_folds(codes, check_random_state(self.random_state))
            rows = values_of_rows_left_out(gram, codes, folds, solve)
            sigmoids = PairSigmoids.fit(type(self).__name__, rows, codes, weight)
            self._probA, self._probB = sigmoids.A, sigmoids.B

    def _keep(self, X: CheckedRows, data: ClassRows, answers: PairAnswers) -> None:
        """Set the attributes with the expansion, with scikit-learn's sign for two classes."""
        forget(self, "landmark_indices_")
        expansion = join(answers)
        self.support_ = data.rows[expansion.support].astype(np.int32)
        self.n_support_ = expansion.n_support
        self.dual_coef_ = laid_out_as(X, self._sign * expansion.dual_coef)
        self.intercept_ = self._sign * expansion.intercept
        self.support_vectors_ = np.empty((0, 0)) if self.kernel_ is None else X[self.support_]
        self.shape_fit_ = X.shape

    @property
    def _expansion(self) -> PairExpansion | LandmarkPairs:
        plain = of_support(self)
        if "landmark_indices_" in vars(self):
            return LandmarkPairs(**vars(plain), classes=len(self.classes_))
        coefficients = plain.dual_coef
        pairs = JointExpansion(self.support_, self.n_support_, self._sign * coefficients, self._sign * self.intercept_)
        margins = np.atleast_2d(self.margins_)[:, self.support_]
        return PairExpansion(**vars(plain), pairs=pairs, margins=margins)

    def _report(self, more: Callable[[], str] = str) -> None:
        """Set ``fit_status_``; warn if the solver stopped early, with more words."""
        self.fit_status_ = int(warn_if_stopped(self, more))

    def _beside_constant(self, data: ClassRows) -> str:
        """What the warning of a solver that stopped early says about functions that are worse than constants."""
        return ""
