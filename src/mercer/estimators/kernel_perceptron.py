"""The perceptron with kernels: plain, averaged and voted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError
from mercer._registered import CommandLine
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.distinct import places_among, stacked
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats, Is, Labels, Whole, Word
from mercer.engine import memory
from mercer.engine.tiles import spans
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.baseline import warn_if_worse_than_majority
from mercer.estimators.shared.definiteness import NO_SPACE
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, of_support
from mercer.estimators.shared.labels import all_classes, check_labels, class_codes, encoded, winners
from mercer.estimators.shared.parameters import (
    require_choice,
    require_flags,
    require_number,
    require_seed,
    require_whole,
)
from mercer.estimators.shared.statements import GIVEN_COLUMNS, SupportRows, outputs
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.loops.perceptron import votes
from mercer.solvers.online.mistakes import MistakeBound, bound_mistakes
from mercer.solvers.online.perceptron import make_passes
from mercer.solvers.online.problem import STATE_TABLE, PerceptronProblem, PerceptronState

_VOTING_BYTES = 2**24
_REMEDY = "Scale the columns of X, choose another kernel or gamma, or pass averaging='averaged' or a larger max_iter."


def _is_within_its_bound(model: KernelEstimator) -> bool:
    bound: MistakeBound | None = getattr(model, "certificate_", None)
    return bound is None or (bound.mistakes == model.mistakes_.sum() and bound.mistakes <= bound.bound)


def _mistakes_in_words(model: KernelEstimator) -> str:
    mistakes, bound = model.mistakes_, getattr(model, "certificate_", None)
    return ("" if bound is None else bound.explain().replace("\n", " ") + " ") + (
        f"{mistakes.sum()} updates in {len(mistakes)} pass{'es' if len(mistakes) > 1 else ''}, "
        f"{mistakes[-1]} of them in the last; a perceptron minimises nothing, so there is no duality gap."
    )


class KernelPerceptron(ClassifierMixin, KernelEstimator):
    r"""Perceptron in the space of a kernel.

    .. math:: f(x) = \sum_i \theta_i\, (k(x_i, x) + c), \qquad
              \theta_i \leftarrow \theta_i + y_i \ \text{ where }\ y_i f(x_i) \le m

    It starts at :math:`\theta = 0` and takes the rows one after the other, ``max_iter`` times or until a pass has no
    mistake; m is ``margin``, and c is 1 with ``fit_intercept`` (so that the bias also moves by :math:`y_i`), else 0. In
    the space of a map with :math:`\langle \phi(x), \phi(z) \rangle = k(x, z)` these are the steps :math:`w \leftarrow w
    + y_i \phi(x_i),\ b \leftarrow b + y_i` of the perceptron, step by step, since :math:`w = \sum_i \theta_i \phi(x_i)`
    throughout. More than two classes are separated one against the rest, by k perceptrons that visit the rows in the
    same order.

    Parameters
    ----------
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        As in :class:`mercer.SVC`; also ``"precomputed"``.
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float, defaults "scale", 3, 0.0
        For named kernels.
    averaging : {"plain", "averaged", "voted"}, default="plain"
        Which function decides: the last f; the mean of f over all steps; or a vote of the signs of f after each step.
        The mean costs no more than the last f. For votes every update is stored, and the cost of a prediction
        grows with the number of updates.
    margin : float, default=0.0
        m, 0 or more: rows classified correctly by no more than m also cause an update.
    fit_intercept : bool, default=True
        Whether there is a bias.
    max_iter : int, default=100
        Maximum number of passes of ``fit``.
    shuffle : bool, default=True
        Whether each pass takes the rows in a new random order.
    random_state : int, RandomState or None, default=None
        Seed of the random orders.
    budget : int, optional
        Maximum number of support vectors, for ``averaging="plain"``. When a mistake would add one more, the oldest one
        is dropped, with its part of the bias.
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
        The :math:`\theta_i` that are not zero, one row for two classes: counts of updates, with the sign of y, or their
        mean over the steps. For votes, those of the last f.
    coef_ : ndarray of shape (1 or k, p)
        w; for votes, of the last f; in the p features of ``feature_map_``, for linear kernels (where they are the
        columns of X), polynomial and all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1 or k,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors in X; after ``fit``, not after ``partial_fit``.
    support_vectors_ : array or CSR of shape (n_sv, d)
        The rows; empty for ``"precomputed"``.
    intercept_ : ndarray of shape (1 or k,)
        Biases; 0 without ``fit_intercept``.
    mistakes_ : ndarray of shape (n_iter_,)
        The updates of each pass, over all classes. If the last is 0, every row is on its side of the margin.
    certificate_ : MistakeBound
        The margin of the last f at the training rows, the radius of the rows, and Novikoff's bound on the mistakes,
        which follows from these (:class:`mercer.solvers.online.mistakes.MistakeBound`). After ``fit`` without a budget
        and with a positive semi-definite kernel: the bound assumes that all rows were seen and none was dropped.
    n_iter_ : int
        Passes of the last call.
    t_ : int
        Steps (rows seen) over all calls.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError, NumericalError
        From ``fit`` and ``partial_fit``: bad data, an invalid parameter, a kernel that is not positive
        semi-definite, a problem that exceeds the memory budget, numbers that overflow.

    Notes
    -----
    If the classes are separated in the feature space by a margin :math:`\gamma` and no :math:`\phi(x_i)` is longer than
    R, there are at most :math:`(R / \gamma)^2` mistakes (Novikoff); ``certificate_`` contains the margin reached. A
    perceptron minimises nothing, so there is no duality gap.

    There are no sample weights: a row given twice in succession is usually classified correctly the second time, so
    that no factor of its update is equivalent to repetition.

    References
    ----------
    Freund and Schapire (1999), "Large margin classification using the perceptron algorithm", Machine Learning 37;
    Daume, "A course in machine learning", algorithm 30 (with a bias); Cavallanti, Cesa-Bianchi and Gentile (2007),
    "Tracking the best hyperplane with a simple budget perceptron", Machine Learning 69 (on budgets).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPerceptron
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = KernelPerceptron(kernel="poly", degree=2, random_state=0).fit(X, y)
    >>> model.predict([[1.0, 1.0], [1.0, -1.0]]).tolist(), int(model.mistakes_[-1])
    (['same', 'other'], 0)
    """

    _walk: dict[str, Any]
    mistakes_: NDArray[np.int64]
    _if_indefinite = NO_SPACE

    # What it learns depends on the order of the rows.
    _command_line = CommandLine("perceptron", seeded=True, advised=False, without_certificate=_mistakes_in_words)
    _fitted = Fitted(
        {
            "classes_": Labels("k", least=2),
            "mistakes_": Whole("steps"),
            "n_iter_": Count("steps"),
            "support_vectors_": SupportRows("s"),
            "dual_coef_": Floats("outputs, s"),
            "intercept_": Floats("outputs"),
            "t_": Count(),
            "_walk": STATE_TABLE,
        },
        {"support_": Whole("s"), "certificate_": Is(MistakeBound)},
        {"averaging": Word(("plain", "averaged", "voted"))},
        {"outputs": outputs},
        (
            GIVEN_COLUMNS,
            ("the certificate has a different count of mistakes, or a bound below it", _is_within_its_bound),
            (
                "the counts of steps disagree",
                lambda m: m._walk["steps"] == m.t_ >= m._walk["updates"][:, 0].max(initial=0),
            ),
        ),
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
        averaging: str = "plain",
        margin: float = 0.0,
        fit_intercept: bool = True,
        max_iter: int = 100,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        budget: int | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.averaging = averaging
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.budget = budget
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite

    def fit(self, X: RowsLike, y: ArrayLike) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._check_X(X, reset=True)
        y = check_labels(type(self).__name__, y, X.shape[0])
        classes, codes = encoded(type(self).__name__, y)
        rows, positive = self._begin(X, classes)
        n = X.shape[0]
        expansion = PerceptronState.empty(self._outputs, n, self.averaging == "voted")
        problem = self._learn(self._gram(rows), codes, expansion, self.max_iter)
        if positive and self.budget is None and expansion.values is not None:
            certificate = bound_mistakes(problem, expansion, expansion.values, int(self.mistakes_.sum()))
            if certificate is not None:
                self.certificate_ = certificate
        self._keep(expansion, None if self.kernel_ is None else X, np.arange(n))
        # Mean and vote are about as good as the functions of the last pass, which saves looking at all rows; the last
        # function alone need not be.
        few = 0.0 if self.averaging == "plain" else 0.5 * (n - np.bincount(codes).max())
        if self.mistakes_[-1] > few:
            warn_if_worse_than_majority("KernelPerceptron", codes, winners(self.decision_function(X)), _REMEDY)
        return self

    def partial_fit(self, X: RowsLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """One pass over the rows ``X`` (n, d) with labels ``y`` (n,), from where the last call has ended.

        The kernel, and ``gamma="scale"``, come from the rows of the first call. A row equal to a support vector counts
        as the same row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (k,), optional
            All classes that will ever occur; needed in the first call.
        """
        self._check_parameters()
        if self._is_precomputed:
            raise ParameterError(
                'partial_fit needs kernel values between new and earlier rows, which kernel="precomputed" cannot give; '
                "pass a kernel, or use fit."
            )
        first = not hasattr(self, "_walk")
        X = self._check_X(X, reset=first)
        y = check_labels(type(self).__name__, y, X.shape[0])
        labels = all_classes(type(self).__name__, classes, None if first else self.classes_)
        codes = class_codes(y, labels)
        if first:
            self._begin(X, labels)
        vectors, expansion = self._carried(X)
        self._learn(self._gram(vectors), codes, expansion, 1)
        self._keep(expansion, vectors, None)
        return self

    def decision_function(self, X: RowsLike) -> Vector:
        """Return decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            For two classes (m,), positive for ``classes_[1]``; else (m, k). For votes they are shares, between -1
            and 1.
        """
        check_is_fitted(self, "classes_")
        X = self._check_X(X, reset=False)
        if len(self._walk["updates"]):
            values = self._shares(self._expansion.gram(X))
        else:
            values = self._expansion.values(X)
        return values.ravel() if len(self.classes_) == 2 else values

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
        values = self.decision_function(X)
        return self.classes_[winners(values)]

    @property
    def _expansion(self) -> KernelExpansion:
        return of_support(self)

    @property
    def _outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _check_X(self, X: RowsLike, *, reset: bool) -> Any:
        X = super()._check_X(X, reset=reset)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def _begin(self, X: CheckedRows, classes: np.ndarray) -> tuple[Any, bool]:
        """Fit the kernel, and forget what was learned; X as one side of matrices, and whether K is positive."""
        for name in ("_walk", "support_", "support_vectors_"):
            if hasattr(self, name):
                delattr(self, name)
        self.classes_ = classes
        self._fit_kernel(X, intercept=False)
        rows = self._rows(X)
        if self._is_taken_on_trust():
            return rows, self._is_convex(self._gram(rows), np.arange(X.shape[0]), X.dtype, intercept=False)
        return rows, self.kernel_ is not None and self.kernel_.definiteness == "positive"

    def _learn(
        self, gram: GramMatrix, codes: NDArray[np.integer], expansion: PerceptronState, max_iter: int
    ) -> PerceptronProblem:
        if hasattr(self, "certificate_"):
            del self.certificate_
        positive = np.array([1]) if self._outputs == 1 else np.arange(self._outputs)
        problem = PerceptronProblem(
            gram,
            codes,
            positive,
            1.0 if self.fit_intercept else 0.0,
            float(self.margin),
            None if self.budget is None else int(self.budget),
        )
        rng = check_random_state(self.random_state) if self.shuffle else None
        self.mistakes_ = make_passes(problem, expansion, int(max_iter), rng, self.n_jobs, bool(self.verbose))
        self.n_iter_ = len(self.mistakes_)
        return problem

    def _carried(self, X: CheckedRows) -> tuple[Any, PerceptronState]:
        """The rows with the support vectors that are not among them behind, and what was learned, for these."""
        if not hasattr(self, "_walk"):
            return X, PerceptronState.empty(self._outputs, X.shape[0], self.averaging == "voted")
        places, others = places_among(X, self.support_vectors_)
        vectors = stacked(X, self.support_vectors_[others]) if len(others) else X
        expansion = PerceptronState.empty(self._outputs, vectors.shape[0], self.averaging == "voted")
        before = self._walk
        if before["averaging"] != self.averaging:
            raise ParameterError(
                f"averaging was {before['averaging']!r} so far but is now {self.averaging!r}, which needs values that "
                "were not stored; call fit to start again."
            )
        expansion.theta[:, places], expansion.lagged[:, places] = before["theta"], before["lagged"]
        expansion.steps, expansion.queue = before["steps"], places[before["queue"]]
        expansion.updates = before["updates"].copy()
        expansion.updates[:, 1] = places[expansion.updates[:, 1]]
        if self.budget is None:
            expansion.queue = np.empty(0, dtype=np.int64)
        else:
            # Without a budget so far the order of entry is not known, and that of the support vectors stands for it.
            queue = expansion.queue if len(expansion.queue) else places
            surplus = max(0, len(queue) - int(self.budget))
            expansion.theta[:, queue[:surplus]] = 0.0
            expansion.queue = queue[surplus:].astype(np.int64)
        return vectors, expansion

    def _keep(self, expansion: PerceptronState, vectors: Any, positions: NDArray[np.intp] | None) -> None:
        """Set the attributes that hold what was learned; of rows without a place in X the positions are None."""
        needed = np.atleast_1d((np.abs(expansion.theta) + np.abs(expansion.lagged)).any(axis=0))
        needed[expansion.queue] = True
        needed[expansion.updates[:, 1]] = True
        if self.budget is not None:
            needed = np.isin(np.arange(len(needed)), expansion.queue)
        support = np.flatnonzero(needed)
        if positions is not None:
            self.support_ = positions[support]
        elif hasattr(self, "support_"):
            del self.support_
        self.support_vectors_ = np.empty((0, 0)) if vectors is None else vectors[support]
        coefficients = expansion.mean() if self.averaging == "averaged" else expansion.theta
        self.dual_coef_ = coefficients[:, support]
        self.intercept_ = self.dual_coef_.sum(axis=1) * float(bool(self.fit_intercept))
        place = np.full(len(needed), -1)
        place[support] = np.arange(len(support))
        updates = expansion.updates.copy()
        updates[:, 1] = place[updates[:, 1]]
        self.t_ = expansion.steps
        self._walk = {
            "theta": expansion.theta[:, support],
            "lagged": expansion.lagged[:, support],
            "steps": expansion.steps,
            "queue": place[expansion.queue],
            "updates": updates,
            "averaging": self.averaging,
            "constant": 1.0 if self.fit_intercept else 0.0,
        }

    def _shares(self, gram: GramMatrix) -> Vector:
        """Votes of all functions so far, (m, k), between -1 and 1."""
        out = np.empty((gram.shape[0], self._outputs))
        width = gram.shape[1]
        constant = self._walk["constant"]
        step = max(1, capacity(8 * width, _VOTING_BYTES // (8 * width), parts=2))
        with memory.reserve(8 * min(step, gram.shape[0]) * width, "a block of kernel rows"):
            for rows in spans(gram.shape[0], step):
                votes(gram.block(rows, None), self._walk["updates"], self.t_, constant, out[rows])
        return out

    def _check_parameters(self) -> None:
        require_number(self, "margin", "a finite number of 0 or more", lambda value: 0 <= value < np.inf)
        require_choice(self, "averaging", ("plain", "averaged", "voted"))
        require_flags(self, "fit_intercept", "shuffle")
        require_seed(self)
        require_whole(self, "max_iter", "a whole number of passes, at least 1")
        if self.budget is not None:
            require_whole(self, "budget", "a whole number of support vectors, or None, at least 1")
        if self.budget is not None and self.averaging != "plain":
            raise ParameterError(
                f"averaging={self.averaging!r} needs every row that was ever learned from, and budget={self.budget} "
                'forgets some; pass averaging="plain", or budget=None.'
            )
