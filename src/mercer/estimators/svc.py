"""C-support vector classification."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._errors import ParameterError
from mercer._registered import CommandLine
from mercer._types import RowsLike, Vector
from mercer.estimators.shared.baseline import words_on_pairs
from mercer.estimators.shared.certificates import joined
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.in_parts import row_source
from mercer.estimators.shared.landmark_numbers import fit_along_numbers, is_left_open
from mercer.estimators.shared.parameters import is_among, require_flags, require_number
from mercer.estimators.shared.restricted import Beside, require_approximation
from mercer.estimators.shared.restricted_risk import refuse_certificate
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.estimators.svm.chosen_by_folds import CHOICE, FoldChoice
from mercer.estimators.svm.class_rows import ClassRows
from mercer.estimators.svm.left_out import balanced
from mercer.estimators.svm.on_landmarks import fit_pairs_on_landmarks
from mercer.estimators.svm.pair_classifier import PairClassifier
from mercer.estimators.svm.pair_probabilities import is_wanted, warn_of_parameter
from mercer.estimators.svm.solvers import BESIDE_LANDMARKS, solver_of
from mercer.kernels.convert import KernelLike
from mercer.solvers import evaluate
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.c_svc import CSVC
from mercer.solvers.svm.hard_margin import HardMargin
from mercer.solvers.svm.pair_answers import PairLayout
from mercer.solvers.svm.pair_problem import PairMachine
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import BoxSolver


class SVC(PairClassifier):
    r"""Support vector classification with any kernel; each solution has a certificate.

    For every pair of classes (y = +1 for the first, -1 for the second) it solves

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - y_i (\langle w, \phi(x_i) \rangle + b)),
              \qquad C_i = C \cdot \text{sample\_weight}_i \cdot \text{class\_weight}_{y_i}

    through its dual, in which only the kernel appears. A weight counts repetitions exactly: a row of weight 3
    gives the same classifier as the row three times, and a row of weight 0 has no effect.

    Parameters
    ----------
    C : float or "cv", default=1.0
        Weight of the sum of the losses against half the squared norm, above 0. ``inf`` requires a hard margin, which no
        row may violate; if the classes cannot be separated, ``fit`` raises an error that contains the proof. ``"cv"``
        chooses it by :class:`~mercer.KernelSearchCV` with five folds, within its time budget of a minute.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto", "cv"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``, and ``"cv"`` chooses as for ``C``.
    shrinking : bool, default=True
        Accepted for compatibility; the solver chooses its working sets by itself.
    probability : bool, default="deprecated"
        Whether to learn probabilities by five internal folds, as scikit-learn does and deprecates; ``fit`` then takes
        two to five times as long. With two classes and no ``class_weight`` the more probable class is the predicted
        one: where the sigmoid disagrees, which happens only close to the boundary, the probability is set to 1/2. With
        ``class_weight``, which moves the boundary but not the probabilities, and with more than two classes, where
        pairs vote, the two may disagree. ``SVC(...).calibrated()`` is a classifier that always agrees.
    tol : float, default=1e-3
        The violation of the optimality conditions, in units of the decision function, at which the solver stops.
        Pairs of up to 512 rows are solved to the precision of float64 for any ``tol``, if 200 steps per row
        suffice. With an approximation: the largest gap of the objective over the landmarks, as a share of it.
    cache_size : float, default=200
        Memory for stored kernel rows, in MB (of 2^20 bytes). More is used if most rows turn out to be support vectors
        and the whole kernel matrix fits the memory budget.
    class_weight : dict or "balanced", optional
        Factors of C by class; ``"balanced"`` makes them inversely proportional to the weight of the class.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    max_iter : int, default=-1
        Maximum number of steps for each pair of classes; -1 for no limit (with a hard margin, 2000 per row). With
        an approximation, of passes over the rows; -1 for 1000.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One column per class (votes, with ties broken by the decision values) or one per pair of classes. With ``"ovr"``
        and more than two classes, an error of the solver can move a value by 1 where the value of a pair is about 0. Of
        220,800 values of generated data with pairs of more than 512 rows, 0.039 % were more than 0.1 from the exact
        solution at the default ``tol``, against 0.055 % of scikit-learn's, and 0.004 % at ``tol=1e-4`` for 3 % more CPU
        time; of 213,108 values with smaller pairs none, against 0.13 %.
    break_ties : bool, default=False
        With ``"ovr"`` and more than two classes: predict by the decision function instead of votes alone.
    random_state : int or RandomState, optional
        Seed of the folds of ``probability=True`` and of the choice of landmarks; nothing else is random.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function
        is checked for this; if this is True, it counts as indefinite.
    fit_intercept : bool, default=True
        Without it b is 0: the homogeneous problem, in which the weight of every row can change independently.
    warm_start : bool, default=False
        Start from the solution of the last fit, if it had as many rows with the same classes in the same places;
        otherwise from zero. The solution is the same within the tolerance, except with an indefinite kernel.
    stop : {"kkt", "gap"}, default="kkt"
        What must be at most ``tol``: the violation of the optimality conditions; with ``"gap"`` also the relative
        duality gap of every pair.
    solver : {"smo", "projected-gradient", "accelerated-projected-gradient"} or BoxSolver, default="smo"
        The projected gradients are for teaching: they reach the same solution, far more slowly. A value such as
        ``mercer.solvers.SMO(tol=1e-6)`` has its own ``tol``, ``stop``, ``max_iter``, ``cache_bytes``, ``n_jobs`` and
        ``verbose``, which replace those of this estimator.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts the function of each pair to the span of few rows, the landmarks:
        :math:`f(x) = \sum_j \beta_j k(x, z_j) + b`. Time is then linear in the number of rows, and no matrix of rows
        and landmarks is kept. It needs a positive kernel and a finite number for ``C``.
    n_landmarks : int or "auto", default=1000
        With an approximation: the number of landmarks of all pairs together, all rows if there are fewer. ``"auto"``
        doubles it from 100 on, until the loss of a fifth of the rows (5000 at most), which are held out, no longer
        falls by more than the standard error of the difference and 0.1 %, or memory ends; then it fits to all rows.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.

    Attributes
    ----------
    C_, gamma_ : float
        The values that ``"cv"`` has chosen.
    search_ : FoldSearch
        With ``"cv"``, the candidates with their scores and bounds (``search_.table``), and whether the best is certain.
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors, by class; not with an approximation.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``; with an approximation, the landmarks.
    n_support_ : ndarray of shape (k,)
        Number of support vectors of each class; not with an approximation.
    landmark_path_ : LandmarkPath
        With ``n_landmarks="auto"``: the numbers that were tried, with the held-out losses; printed as a table.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts.
    dual_coef_ : array or CSR of shape (k - 1, n_sv)
        ``y_i alpha_i`` of each support vector against each other class, in scikit-learn's layout.
        With an approximation, an array of the coefficients of the landmarks for each pair,
        (k (k - 1) / 2, n_landmarks).
    intercept_ : ndarray of shape (k (k - 1) / 2,)
        b of each pair.
    coef_ : array or CSR of shape (k (k - 1) / 2, p)
        w of each pair in the p features of ``feature_map_``, for linear kernels (where they are the columns of X),
        polynomial and all-subsets kernels, and sums, products and powers of these. CSR after a fit to CSR, as the two
        above.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (k (k - 1) / 2,)
        :math:`\|w\|` in the feature space of any kernel, for each pair.
    margin_ : ndarray of shape (k (k - 1) / 2,)
        The width of the margin of each pair in feature space, ``2 / norm_``.
    certificate_ : Certificate
        Primal and dual objective (sums over the pairs), worst violation, steps, time and memory. The gradient behind
        them is computed in float64 over all rows; see :mod:`mercer.solvers.svm.certify`. With an approximation the
        problems are those over the landmarks, the violation is the length of a gradient, and steps are passes over the
        rows.
    certificates_ : sequence of Certificate
        One for each pair of classes, each computed on first access.
    margins_ : ndarray of shape (n,), or (k - 1, n) for more than two classes
        ``y_i f(x_i)`` of each training row, NaN for rows of weight 0. For more than two classes laid out as
        ``dual_coef_``: row j of a row of class c is against the j-th class that is not c. Not with an approximation, as
        the two below.
    slacks_ : ndarray, shaped as ``margins_``
        ``max(0, 1 - margins_)``.
    roles_ : ndarray of str, shaped as ``margins_``
        ``"outside"`` for rows of weight 0 in the expansion, ``"free"`` between 0 and C, ``"bounded"`` at C.
    n_iter_ : ndarray of shape (k (k - 1) / 2,)
        Steps of each pair.
    class_weight_ : ndarray of shape (k,)
        Factors of C by class.
    fit_status_ : int
        0 if the tolerance was met, else 1.
    shape_fit_ : tuple
        Shape of X.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).
    probA_, probB_ : ndarray of shape (k (k - 1) / 2,)
        The sigmoids of the pairs with ``probability=True``, else empty: ``1 / (1 + exp(A f + B))`` is the probability
        of the first class, where positive f indicate the first class. Deprecated in scikit-learn, too.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, InfeasibleError, MemoryBudgetError
        From ``fit``: one class only or bad weights, an invalid parameter, a kernel that is not
        positive semi-definite, classes that no hard margin separates, a problem that exceeds the memory budget.

    Warns
    -----
    FutureWarning
        If ``probability`` is given, where the installed scikit-learn has deprecated it.

    Notes
    -----
    Sources: Cortes and Vapnik (1995), "Support-vector networks"; Fan, Chen and Lin (2005) for the choice of pairs.

    Examples
    --------
    >>> from mercer import SVC
    >>> model = SVC(kernel="linear", C=10.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.predict([[1.5], [2.5]]).tolist()
    [0, 1]
    >>> model.support_.tolist(), round(model.certificate_.primal, 6)
    ([1, 2], 0.5)
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> chosen = SVC(C="cv", gamma="cv").fit(X, abs(X[:, 0]) > 1)
    >>> chosen.C_ > 0, chosen.gamma_ > 0, chosen.search_.best["C"] == chosen.C_
    (True, True, True)
    """

    _command_line = CommandLine("svc", left_open="C")
    _choice = FoldChoice(("C", "gamma"))
    may_leave_landmarks_open = True
    _beside_landmarks = (
        *BESIDE_LANDMARKS,
        Beside("C", 1e6, "Pass a finite number, such as 1e6.", lambda model: not is_among(model.C, (np.inf,))),
        Beside(
            "probability",
            False,
            "SVC(...).calibrated() has probabilities.",
            lambda model: not is_wanted(model.probability),
        ),
    )
    _fitted = CHOICE

    def __init__(
        self,
        *,
        C: float | str = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
        fit_intercept: bool = True,
        warm_start: bool = False,
        stop: str = "kkt",
        solver: str | BoxSolver = "smo",
        approximation: str | None = None,
        n_landmarks: int | str = 1000,
        landmarks: Any = "rpcholesky",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.stop = stop
        self.solver = solver
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks

    @takes_parts
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have labels and weights of their own,
            are read once for each pass of the solver and each pair of classes. Blocks and Dask need an approximation.
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions. Rows of weight 0 or below are left out, negative ones with a
            warning.

        Returns
        -------
        self
        """
        if is_left_open(self):
            return fit_along_numbers(self, X, y, sample_weight)
        if require_approximation(self):
            self._choice.refuse_on_landmarks(self)
        source = row_source(self, X, y, sample_weight)
        if self._choice.left_open(self):
            return self._choice.fit(self, X, y, sample_weight)
        self._choice.forget(self)
        if source is None:
            return super().fit(X, y, sample_weight)
        self._check_parameters()
        warn_of_parameter(type(self).__name__, self.probability)
        source = fit_pairs_on_landmarks(self, source)
        self._report(lambda: self._worse_than_constants(float(self.C) * self.class_weight_ * source.classes[1]))
        return self

    def certificate_of(
        self, coefficients: GivenCoefficients, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Certificate:
        """Return the certificate of coefficients for the problem of a fit; see :func:`mercer.certify`.

        Parameters
        ----------
        coefficients : GivenCoefficients
            Laid out as ``dual_coef_`` and ``intercept_``.
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        Certificate
        """
        refuse_certificate(self)
        self._choice.require_values(self)
        X, side, data, _ = self._prepare(X, y, sample_weight)
        bounds, intercept = self._bounds(data), self._has_intercept
        if np.isinf(bounds).any():
            raise ParameterError("C=inf means a hard margin, which has no dual bound; pass a finite C.")
        k, n = len(data.names), X.shape[0]
        weight = np.zeros(n)
        weight[data.rows] = data.weight
        # As in scikit-learn, positive stands for the second of two classes, and for the first of a pair of several.
        sign = -1.0 if k == 2 else 1.0
        A = sign * coefficients.weights(k - 1, n, weight)[:, data.rows]
        layout = PairLayout(data.sizes)
        offsets = coefficients.offsets(layout.pairs, allowed=intercept)
        gram, convex = self._class_gram(side, data)
        certificates = []
        for i, j in combinations(range(k), 2):
            rows = layout.rows((i, j))
            y_pair = np.where(data.codes[rows] == i, 1.0, -1.0)
            problem = BoxQP.classification(
                gram.restrict(rows, rows), y_pair, bounds[rows], intercept=intercept, convex=convex
            )
            b = None if offsets is None else sign * float(offsets[layout.number(i, j)])
            certificates.append(evaluate.of_box(problem, layout.take(A, (i, j)), b))
        return joined(certificates)

    @property
    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept)

    @property
    def learns_kernel(self) -> bool:
        """Whether the fit chooses parameters by folds, so that no other fit can share its kernel matrix."""
        return bool(self._choice.left_open(self))

    def _check_data(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._prepare(X, y, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._choice.refuse_loo(self)
        words = f"a number above 0, or inf for a hard margin{self._choice.or_word(self, 'C')}"
        require_number(self, "C", words, lambda value: value > 0)
        require_flags(self, "fit_intercept")
        if np.isinf(self.C) and not (self.solver == "smo" or isinstance(self.solver, SMO)):
            raise ParameterError(
                f"C=inf is solved by solver='smo' only, but solver is {self.solver!r}; change one of them."
            )
        require_approximation(self)

    def _bounds(self, data: ClassRows) -> Vector:
        return float(self.C) * data.weight * self.class_weight_[data.codes]

    def _machine(self, data: ClassRows) -> PairMachine:
        machine = HardMargin if np.isinf(self.C) else CSVC
        return machine(solver_of(self), self._has_intercept)

    def _beside_constant(self, data: ClassRows) -> str:
        return self._worse_than_constants(np.bincount(data.codes, self._bounds(data)).astype(np.float64))

    def _worse_than_constants(self, prices: Vector) -> str:
        return words_on_pairs(prices, self.certificate_.primal, intercept=self._has_intercept)

    def _start(self, weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector:
        """Scaled into the box; also upwards if there were weights at their bounds, which then are again."""
        if np.isinf(self.C):
            return weights
        support = weights != 0
        room = np.divide(bounds, np.abs(weights), out=np.full(weights.shape, np.inf), where=support)
        scale = PairLayout(sizes).least(room)
        if not (self._role_codes == 2).any():
            scale = np.minimum(scale, 1.0)
        scaled = np.multiply(weights, scale, out=np.zeros(weights.shape), where=support)
        # What rounding has left next to a bound would count as free.
        return np.where(np.abs(scaled) > (1.0 - 1e-12) * bounds, np.sign(weights) * bounds, scaled)

    def _fold_start(self, weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector | None:
        if np.isinf(self.C):
            return None
        return balanced(weights, bounds, sizes) if self.fit_intercept else weights
