"""C-support vector classification."""

from __future__ import annotations

import time
import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from mercer._errors import DataError, ParameterError
from mercer.engine import memory
from mercer.estimators._advice import advised
from mercer.estimators._base import KernelEstimator
from mercer.estimators._one_vs_one import Expansion, join, one_vs_rest, pair_values, total, votes
from mercer.kernels.vector.dot import Linear
from mercer.solvers.curvature import require_conditionally_positive
from mercer.solvers.pairwise import Controls, solve_pairs
from mercer.solvers.problems import Vector
from mercer.solvers.solution import Status

_STOPPED = (Status.iteration_limit, Status.stalled)


class SVC(ClassifierMixin, KernelEstimator):
    r"""Support vector classification with any kernel, each answer with its certificate.

    For every pair of classes (y = +1 for the first, -1 for the second) it solves

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - y_i (\langle w, \phi(x_i) \rangle + b)),
              \qquad C_i = C \cdot \text{sample\_weight}_i \cdot \text{class\_weight}_{y_i}

    through its dual, in which only the kernel appears. Weights mean repetition, exactly: a row of weight 3 gives
    the same classifier as the row three times, and a row of weight 0 as no row.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated margin, above 0.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    shrinking : bool, default=True
        Taken for compatibility; the solver chooses its working sets by itself.
    tol : float, default=1e-3
        The violation of the optimality conditions, in units of the decision function, that is good enough.
        Small problems are solved to the precision of float64 whatever ``tol`` is.
    cache_size : float, default=200
        Memory for kernel rows that are kept, in MB (of 2^20 bytes).
    class_weight : dict or "balanced", optional
        Factors of C by class; ``"balanced"`` makes them inversely proportional to the weight of the class.
    verbose : bool, default=False
        Show progress on standard error.
    max_iter : int, default=-1
        The most steps for each pair of classes; -1 for no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One column a class (votes, with ties broken by the decision values) or one a pair of classes.
    break_ties : bool, default=False
        With ``"ovr"`` and more than two classes: predict by the decision function instead of votes alone.
    random_state : int, optional
        Taken for compatibility; nothing here is random.
    n_jobs : int, optional
        Worker threads, all cores by default. The answer has the same bits for any number of them.
    allow_indefinite : bool, default=False
        Accept a kernel that is not positive semi-definite; the answer is then a stationary point. A precomputed
        matrix counts as indefinite if this is set.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors, by class.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``.
    n_support_ : ndarray of shape (k,)
        Their numbers, by class.
    dual_coef_ : ndarray of shape (k - 1, n_sv)
        ``y_i alpha_i`` of each against each other class, laid out as scikit-learn does.
    intercept_ : ndarray of shape (k (k - 1) / 2,)
        b of each pair.
    coef_ : ndarray of shape (k (k - 1) / 2, d)
        w of each pair; for the linear kernel only.
    certificate_ : Certificate
        Primal and dual objective (sums over the pairs), worst violation, steps, time and memory. The gradient behind
        them is computed in float64 for the support vectors and for all rows that are anywhere near the margin; see
        :mod:`mercer.solvers.certify`.
    certificates_ : list of Certificate
        One for each pair of classes.
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

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: one class only or bad weights, a parameter that makes no sense, a kernel that is not
        positive semi-definite, a job that does not fit.

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
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        allow_indefinite: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to ``X`` (n, d), or (n, n) for ``"precomputed"``, and labels ``y`` (n,).

        ``sample_weight`` (n,) multiplies C row by row.
        """
        begun = time.perf_counter()
        self._check_parameters()
        X = self._check_X(X, reset=True)
        y = _check_labels(y, X.shape[0])
        weight = _check_weight(sample_weight, X)
        used = np.flatnonzero(weight)
        self.classes_, codes = np.unique(y[used], return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"SVC needs two classes at least, and y has {len(self.classes_)} class(es): "
                f"{self.classes_[:1].tolist()}"
                + (", not counting rows of weight 0" if len(used) < len(y) else "")
                + "; pass rows of another class, too."
            )
        self._fit_weighted_kernel(X, weight)
        self.class_weight_ = _class_weights(self.class_weight, self.classes_, codes, weight[used])
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        rows, codes = used[order], codes[order]
        upper = self.C * weight[rows] * self.class_weight_[codes]
        identity = len(rows) == X.shape[0] and np.array_equal(rows, np.arange(len(rows)))
        gram = self._gram(X, dtype=None if self.kernel_ is None else np.float64)
        gram = gram if identity else gram.restrict(rows, rows)
        if self.kernel_ is None and not self.allow_indefinite:
            require_conditionally_positive(gram)
        with memory.track() as account:
            answers = solve_pairs(gram, sizes, upper, self._controls())
        expansion = join(answers, sizes)
        self._keep(X, rows, expansion)
        self.shape_fit_ = X.shape
        self.certificates_ = [answer.certificate for answer in answers]
        self.n_iter_ = np.array([part.iterations for part in self.certificates_], dtype=np.int32)
        self.certificate_ = total(answers, time.perf_counter() - begun, account.peak)
        self._report()
        return self

    def decision_function(self, X: Any) -> Vector:
        """Decision values: (m,) for two classes, positive for ``classes_[1]``; else as ``decision_function_shape``."""
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return -values[:, 0]
        return values if self.decision_function_shape == "ovo" else one_vs_rest(values, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of ``X``, (m,)."""
        k = len(self.classes_) if hasattr(self, "classes_") else 0
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ParameterError("break_ties must be False when decision_function_shape is 'ovo'; use 'ovr'.")
        values = self._pair_values(X)
        by_value = self.break_ties and k > 2
        winners = one_vs_rest(values, k).argmax(axis=1) if by_value else votes(values, k)
        return self.classes_[winners]

    @property
    def coef_(self) -> Vector:
        """w of each pair of classes, (k (k - 1) / 2, d); for the linear kernel only."""
        check_is_fitted(self)
        if self.kernel_ != Linear():
            raise AttributeError(f"coef_ exists for the linear kernel only, and the kernel is {self.kernel_!r}.")
        vectors = self.support_vectors_

        def product(part: slice, V: Vector) -> Vector:
            return np.asarray(vectors[part].T @ V)

        sign = -1.0 if len(self.classes_) == 2 else 1.0
        expansion = Expansion(
            self.support_, self.n_support_, sign * self.dual_coef_, np.zeros(len(self.intercept_))
        )
        return sign * pair_values(product, expansion, vectors.shape[1]).T

    def _check_parameters(self) -> None:
        for name, kind, low in (("C", Real, 0), ("tol", Real, 0), ("cache_size", Real, 0)):
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool) or not low < float(value) < np.inf:
                raise ParameterError(f"{name} must be a finite number above {low}, and is {value!r}.")
        if not isinstance(self.max_iter, Integral) or self.max_iter < -1:
            raise ParameterError(f"max_iter must be a whole number, -1 for no limit, and is {self.max_iter!r}.")
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ParameterError(
                f"decision_function_shape must be 'ovr' or 'ovo', and is {self.decision_function_shape!r}."
            )

    def _fit_weighted_kernel(self, X: Any, weight: Vector) -> None:
        """Fit the kernel; ``gamma="scale"`` takes the variance of the rows as often as they count."""
        relative = isinstance(self.kernel, str) and isinstance(self.gamma, str) and self.gamma == "scale"
        gamma = _weighted_scale(X, weight) if relative and not self._is_precomputed else None
        self._fit_kernel(X, allow_indefinite=self.allow_indefinite, intercept=True, gamma=gamma)

    def _controls(self) -> Controls:
        return Controls(
            tol=self.tol,
            max_iter=self.max_iter,
            cache_bytes=int(self.cache_size * 2**20),
            n_jobs=self.n_jobs,
            convex=not self.allow_indefinite if self.kernel_ is None else self.kernel_.definiteness != "indefinite",
            verbose=bool(self.verbose),
        )

    def _keep(self, X: Any, rows: np.ndarray, expansion: Expansion) -> None:
        """Set the attributes that hold the expansion, with scikit-learn's sign for two classes."""
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        self.support_ = rows[expansion.support].astype(np.int32)
        self.n_support_ = expansion.n_support
        self.dual_coef_ = sign * expansion.dual_coef
        self.intercept_ = sign * expansion.intercept
        self.support_vectors_ = np.empty((0, 0)) if self.kernel_ is None else X[self.support_]

    def _pair_values(self, X: Any) -> Vector:
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        if self.kernel_ is None:
            gram: Any = self._gram(X[:, self.support_], X)
        else:
            gram = self._gram(X, self.support_vectors_)

        def product(part: slice, V: Vector) -> Vector:
            return np.asarray(gram.restrict(None, part) @ V, dtype=np.float64)

        expansion = Expansion(self.support_, self.n_support_, sign * self.dual_coef_, sign * self.intercept_)
        return pair_values(product, expansion, X.shape[0])

    def _report(self) -> None:
        status = self.certificate_.status
        self.fit_status_ = int(status in _STOPPED)
        if self.fit_status_:
            warnings.warn(f"SVC: {status.value}", ConvergenceWarning, stacklevel=3)


def _check_labels(y: Any, n: int) -> np.ndarray:
    if y is None:
        raise DataError("SVC requires y to be passed, but the target y is None; pass one label for each row of X.")
    with advised():
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
    if len(y) != n:
        raise DataError(f"X has {n} rows and y has {len(y)} labels; there must be one label a row.")
    return y


def _check_weight(sample_weight: Any, X: Any) -> Vector:
    weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64), dtype=np.float64)
    if (weight < 0).any():
        raise DataError(
            f"sample_weight has {int((weight < 0).sum())} negative values (the least is {weight.min()}); "
            "weights count rows, so they must be 0 or more."
        )
    return weight


def _class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: Vector) -> Vector:
    """Factors of C by class; "balanced" counts rows by their weight."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, weights=weight)
        return weight.sum() / (len(classes) * counts)
    factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]), dtype=np.float64)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ParameterError(f"class_weight must be finite numbers above 0, and gives {factors.tolist()}.")
    return factors


def _weighted_scale(X: Any, weight: Vector) -> float:
    """``1 / (d * variance)`` over all entries of X, each row counted as often as its weight."""
    if (weight == weight[0]).all():
        variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    else:
        share = weight / (weight.sum() * X.shape[1])
        if sp.issparse(X):
            variance = (share @ X.multiply(X)).sum() - (share @ X).sum() ** 2
        else:
            variance = share @ np.square(X - (share @ X).sum()).sum(axis=1)
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0
