"""nu-support vector classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._registered import CommandLine
from mercer._types import Vector
from mercer.data.objects import short
from mercer.estimators.shared.parameters import require_number
from mercer.estimators.svm.class_rows import ClassRows
from mercer.estimators.svm.pair_classifier import PairClassifier
from mercer.estimators.svm.solvers import solver_of
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.solvers.svm.nu_margin import NuMargin
from mercer.solvers.svm.pair_answers import PairAnswers, PairLayout
from mercer.solvers.svm.pair_problem import PairMachine
from mercer.solvers.svm.solver import BoxSolver

# What rounding may do to a nu that is as large as can be.
_ROUNDING = 1e-12


class NuSVC(PairClassifier):
    r"""Support vector classification in which nu, a fraction of the rows, replaces C.

    For every pair of classes (y = +1 for the first, -1 for the second) it solves

    .. math:: \min_{w, b, \rho} \tfrac12 \|w\|^2 - \nu \rho \sum_i w_i
              + \sum_i w_i \max(0, \rho - y_i (\langle w, \phi(x_i) \rangle + b)),
              \qquad w_i = \text{sample\_weight}_i

    through its dual, and divides by the margin :math:`\rho`. At most a fraction nu of all rows lies inside the margin,
    and at least this fraction are support vectors. The solution is that of SVC with :math:`C = 1 / \rho`. A weight
    counts repetitions exactly.

    Parameters
    ----------
    nu : float, default=0.5
        The fraction, above 0 and at most 1. For classes of different sizes the largest feasible value is twice the
        fraction of the smaller class.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    shrinking : bool, default=True
        Accepted for compatibility; the solver chooses its working sets by itself.
    probability : bool, default="deprecated"
        Whether to learn probabilities by five internal folds, as scikit-learn does and deprecates; ``fit`` then takes
        two to five times as long. With two classes and no ``class_weight`` the more probable class is the predicted
        one: where the sigmoid disagrees, which happens only close to the boundary, the probability is set to 1/2. With
        ``class_weight``, which moves the boundary but not the probabilities, and with more than two classes, where
        pairs vote, the two may disagree. ``NuSVC(...).calibrated()`` is a classifier that always agrees.
    tol : float, default=1e-3
        The violation of the optimality conditions, in units of the decision function, at which the solver stops.
        Pairs of up to 512 rows are solved to the precision of float64 for any ``tol``, if 200 steps per row
        suffice.
    cache_size : float, default=200
        Memory for stored kernel rows, in MB (of 2^20 bytes). More is used if most rows turn out to be support vectors
        and the whole kernel matrix fits the memory budget.
    class_weight : dict or "balanced", optional
        Factors of C by class, where C is the ``1 / rho`` that nu leads to without them; ``"balanced"`` makes them
        inversely proportional to the weight of the class. (scikit-learn takes this parameter and ignores it.)
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    max_iter : int, default=-1
        Maximum number of steps for each pair of classes; -1 for 2000 per row.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One column per class (votes, with ties broken by the decision values) or one per pair of classes. With ``"ovr"``
        and more than two classes, an error of the solver can move a value by 1 where the value of a pair is about 0. Of
        220,800 values of generated data with pairs of more than 512 rows, 0.029 % were more than 0.1 from the exact
        solution at the default ``tol``, against 0.007 % of scikit-learn's, and 0.002 % at ``tol=1e-4`` in the same CPU
        time; of 213,108 values with smaller pairs none, against 0.08 %.
    break_ties : bool, default=False
        With ``"ovr"`` and more than two classes: predict by the decision function instead of votes alone.
    random_state : int or RandomState, optional
        Seed of the folds of ``probability=True``; nothing else is random.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function
        is checked for this; if this is True, it counts as indefinite.
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

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors, by class.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``.
    n_support_ : ndarray of shape (k,)
        Number of support vectors of each class.
    dual_coef_ : array or CSR of shape (k - 1, n_sv)
        ``y_i alpha_i / rho`` of each support vector against each other class, in scikit-learn's layout.
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
        Primal and dual objective (sums over the pairs, before the division by rho; with class weights those of the
        SVC with C = 1 / rho), worst violation, steps, time and memory. The gradient behind
        them is computed in float64 over all rows; see :mod:`mercer.solvers.svm.certify`.
    certificates_ : sequence of Certificate
        One for each pair of classes, each computed on first access.
    margins_ : ndarray of shape (n,), or (k - 1, n) for more than two classes
        ``y_i f(x_i)`` of each training row, NaN for rows of weight 0. For more than two classes laid out as
        ``dual_coef_``: row j of a row of class c is against the j-th class that is not c.
    slacks_ : ndarray, shaped as ``margins_``
        ``max(0, 1 - margins_)``.
    roles_ : ndarray of str, shaped as ``margins_``
        ``"outside"`` for rows of weight 0 in the expansion, ``"free"`` between the bounds, ``"bounded"`` at its bound.
    n_iter_ : ndarray of shape (k (k - 1) / 2,)
        Steps of each pair.
    class_weight_ : ndarray of shape (k,)
        Factors of slack by class.
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
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: one class only or bad weights, an invalid parameter (such as a nu that is too large
        for the classes), a kernel that is not positive semi-definite, a problem that exceeds the memory budget.

    Warns
    -----
    FutureWarning
        If ``probability`` is given, where the installed scikit-learn has deprecated it.

    Notes
    -----
    Source: Schoelkopf, Smola, Williamson and Bartlett (2000), "New support vector algorithms", equations 32 to 41. If
    nu is so small that :math:`\rho = 0` is optimal, which happens only if the classes are not separable, the solution
    is useless, and ``fit`` warns.

    Examples
    --------
    >>> from mercer import NuSVC
    >>> model = NuSVC(nu=0.5, kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.predict([[1.5], [2.5]]).tolist()
    [0, 1]
    """

    _command_line = CommandLine("nu-svc")

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
        warm_start: bool = False,
        stop: str = "kkt",
        solver: str | BoxSolver = "smo",
    ) -> None:
        self.nu = nu
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
        self.warm_start = warm_start
        self.stop = stop
        self.solver = solver

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number(self, "nu", "a number above 0 and at most 1", lambda value: 0 < value <= 1)

    def _bounds(self, data: ClassRows) -> Vector:
        self._require_feasible(data)
        return data.weight * self.class_weight_[data.codes]

    def _require_feasible(self, data: ClassRows) -> None:
        """Raise if the weights of some class cannot add up to what nu asks of them."""
        weights = np.bincount(data.codes, weights=data.weight)
        # Twice the share of the smaller class, of each pair of classes.
        first, second = PairLayout(data.sizes).classes
        largest = 2.0 * np.minimum(weights[first], weights[second]) / (weights[first] + weights[second])
        number = int(largest.argmin())
        most, pair = float(largest[number]), (int(first[number]), int(second[number]))
        if float(self.nu) > most * (1.0 + _ROUNDING):
            rows = [float(weights[number]) for number in pair]
            names = [repr(name) for name in data.names[list(pair)].tolist()]
            raise ParameterError(
                f"nu={short(self.nu)} is infeasible: for the classes {names[0]} and {names[1]}, with rows of weight "
                f"{rows[0]:g} and {rows[1]:g}, nu can be {most:.6g} at most, twice the share of the smaller one. "
                f"Choose nu <= {np.floor(most * 1e6) / 1e6:g}, or SVC."
            )

    def _machine(self, data: ClassRows) -> PairMachine:
        machine = NuMargin(solver_of(self), nu=float(self.nu), factors=self.class_weight_)
        # Pairs are solved in other threads, where a warning would not know the user's line.
        self._flat = machine.flat
        return machine

    def _calibrate(self, gram: GramMatrix, convex: bool, data: ClassRows, bounds: Vector, answers: PairAnswers) -> None:
        super()._calibrate(gram, convex, data, bounds, answers)
        # A margin of zero in a fold says nothing of the fit to all rows.
        self.__dict__.pop("_flat", None)

    def _report(self, more: Callable[[], str] = str) -> None:
        for pair in sorted(self.__dict__.pop("_flat", [])):
            first, second = self.classes_[list(pair)].tolist()
            warn_user(
                f"nu={short(self.nu)} is so small that the optimal margin between the classes {first!r} and {second!r} "
                "is zero to rounding, and predictions between the two are meaningless. Raise nu, use a kernel that "
                "separates the classes better, or use SVC.",
                MercerWarning,
            )
        super()._report(more)

    def _start(self, weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector:
        """As they are: where the weights may be is known when the problem is stated."""
        return weights

    def _fold_start(self, weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector | None:
        return weights
