"""Support vector classification with learned weights of several kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer._types import Matrix, Vector
from mercer.estimators.shared.labels import check_labels
from mercer.estimators.shared.layout import dense
from mercer.estimators.svc import SVC
from mercer.estimators.svm.chosen_by_folds import FoldChoice
from mercer.estimators.svm.kernel_weights import LEARNED_WEIGHTS, WeightedTerms, plain
from mercer.estimators.svm.one_vs_one import JointExpansion, squared_norms_of_pairs
from mercer.gram import PrecomputedGram


class MultipleKernelSVC(WeightedTerms, SVC):
    r"""Support vector classification in which the weights of the terms of a sum of kernels are learned.

    .. math:: \min_{\gamma \ge 0,\; \sum_m \gamma_m = 1}\; \min_{f_1, f_2, \dots, b}
              \tfrac12 \sum_m \frac{\|f_m\|^2}{\gamma_m} + \sum_i C_i \max\Bigl(0, 1 - y_i \bigl(\textstyle\sum_m
              f_m(x_i) + b\bigr)\Bigr)

    with :math:`f_m` in the space of the m-th kernel, divided by the mean of its diagonal. The problem is convex, and
    most weights are often zero. All pairs of classes share the weights.

    Parameters
    ----------
    C : float, default=1.0
        As for :class:`SVC`, a number.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A sum, whose terms get weights: ``RBF(1.0) + RBF(10.0) + Linear()``, also as text. The terms may compare
        different columns (``RBF(1.0).on([0, 1]) + Spectrum(3).on([2])``). Their parameters are kept. A kernel that is
        not a sum, or ``"precomputed"``, is one term: the machine is then an :class:`SVC`.
    degree, gamma, coef0, shrinking, probability : int, float or {"scale", "auto"}, float, bool, bool
        As for :class:`SVC`.
    tol : float, default=1e-3
        As for :class:`SVC`, and the relative duality gap of the weights.
    cache_size, class_weight, verbose, max_iter, decision_function_shape, break_ties, random_state, n_jobs : object
        As for :class:`SVC`.
    allow_indefinite, fit_intercept, warm_start, stop, solver : object
        As for :class:`SVC`.
    approximation, n_landmarks, landmarks : None, int, str
        ``approximation`` must be None: the weights are learned from the matrices of all rows.

    Attributes
    ----------
    weights_ : ndarray of shape (n_terms,)
        :math:`\gamma_m`, which sum to one.
    term_scales_ : ndarray of shape (n_terms,)
        The mean of the diagonal of each term on the training rows.
    n_machines_ : int
        How many machines were solved to find the weights.
    kernel_ : Kernel
        The weighted sum, without the terms of weight zero.
    certificate_ : Certificate
        As of :class:`SVC`, but the dual objective bounds the value for all weights, so that the gap covers these.

    See Also
    --------
    SVC : All other parameters, attributes and methods.

    Notes
    -----
    The matrices of the terms are stored: :math:`8 n^2` bytes for each. The weights are found by the level method, which
    solves about ten to forty machines; each starts from the last solution.

    References
    ----------
    A. Rakotomamonjy, F. Bach, S. Canu and Y. Grandvalet, "SimpleMKL", J. Mach. Learn. Res. 9 (2008). Z. Xu, R. Jin,
    I. King and M. Lyu, "An extended level method for efficient multiple kernel learning", NIPS (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MultipleKernelSVC
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> kernel = RBF(1.0).on([0]) + RBF(1.0).on([1])
    >>> model = MultipleKernelSVC(kernel=kernel, C=10.0).fit(X, np.abs(X[:, 1]) > 0.7)
    >>> bool(model.weights_[1] > 0.9), bool(model.certificate_.relative_gap < 1e-3)
    (True, True)
    """

    # The weights are learned for one C.
    _choice = FoldChoice(())
    _fitted = LEARNED_WEIGHTS

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the weights of the kernels, and fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or other rows
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._learned_weights(X, y, sample_weight):
            return super().fit(X, y, sample_weight)

    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        X = self._check_X(X, reset=True)
        return X, check_labels(type(self).__name__, y, X.shape[0])

    def _inner(self) -> Any:
        return plain(self, SVC, probability="deprecated", stop="gap")

    def _squares(self, inner: Any, terms: list[Matrix]) -> Vector:
        support = inner.support_
        expansion = JointExpansion(support, inner.n_support_, dense(inner.dual_coef_), np.zeros(len(inner.intercept_)))
        return np.array(
            [
                squared_norms_of_pairs(PrecomputedGram(term[np.ix_(support, support)]), expansion)[0].sum()
                for term in terms
            ]
        )
