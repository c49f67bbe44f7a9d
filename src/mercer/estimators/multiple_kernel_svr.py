"""Support vector regression with learned weights of several kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer._types import Matrix, Vector
from mercer.estimators.shared.layout import dense
from mercer.estimators.svm.chosen_by_folds import FoldChoice
from mercer.estimators.svm.kernel_weights import LEARNED_WEIGHTS, WeightedTerms, plain
from mercer.estimators.svr import SVR


class MultipleKernelSVR(WeightedTerms, SVR):
    r"""Support vector regression in which the weights of the terms of a sum of kernels are learned.

    .. math:: \min_{\gamma \ge 0,\; \sum_m \gamma_m = 1}\; \min_{f_1, f_2, \dots, b}
              \tfrac12 \sum_m \frac{\|f_m\|^2}{\gamma_m}
              + \sum_i C_i \max\Bigl(0, \bigl|y_i - \textstyle\sum_m f_m(x_i) - b\bigr| - \varepsilon\Bigr)

    with :math:`f_m` in the space of the m-th kernel, divided by the mean of its diagonal. The problem is convex, and
    most weights are often zero.

    Parameters
    ----------
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A sum, whose terms get weights, as for :class:`MultipleKernelSVC`. A kernel that is not a sum, or
        ``"precomputed"``, is one term: the machine is then an :class:`SVR`.
    degree, gamma, coef0 : int, float or str, float
        As for :class:`SVR`.
    tol : float, default=1e-3
        As for :class:`SVR`, and the relative duality gap of the weights.
    C, epsilon : float, default=1.0, 0.1
        As for :class:`SVR`, numbers.
    shrinking, cache_size, verbose, max_iter, n_jobs, allow_indefinite, warm_start, stop : object
        As for :class:`SVR`.
    fit_intercept, solver : object
        As for :class:`SVR`.
    approximation, n_landmarks, landmarks, random_state : None, int, str, int
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
        As of :class:`SVR`, but the dual objective bounds the value for all weights, so that the gap covers these.

    See Also
    --------
    SVR : All other parameters, attributes and methods.
    MultipleKernelSVC : The method, its cost and its sources.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MultipleKernelSVR
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> kernel = RBF(1.0).on([0]) + RBF(1.0).on([1])
    >>> model = MultipleKernelSVR(kernel=kernel, C=10.0).fit(X, np.sin(2 * X[:, 1]))
    >>> bool(model.weights_[1] > 0.99), bool(model.certificate_.relative_gap < 1e-3)
    (True, True)
    """

    # The weights are learned for one C and one epsilon.
    _choice = FoldChoice(())
    _fitted = LEARNED_WEIGHTS

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the weights of the kernels, and fit to rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or other rows
        y : array-like of shape (n,)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Factors of C for each row.

        Returns
        -------
        self
        """
        with self._learned_weights(X, y, sample_weight):
            return super().fit(X, y, sample_weight)

    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        return self._check_X_and_numbers(X, y)

    def _inner(self) -> Any:
        return plain(self, SVR, stop="gap")

    def _squares(self, inner: Any, terms: list[Matrix]) -> Vector:
        support, beta = inner.support_, dense(inner.dual_coef_)[0]
        return np.array([beta @ term[np.ix_(support, support)] @ beta for term in terms])
