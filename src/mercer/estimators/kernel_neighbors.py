"""Classification and regression by the nearest rows in the feature space of a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError
from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Each, Either, Flag, Floats, Labels, Whole
from mercer.estimators.distances.neighbors import KernelNeighbors
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.labels import check_labels


def _are_labels(model: KernelEstimator) -> bool:
    classes = model.classes_ if model.outputs_2d_ else [model.classes_]
    sizes = [len(labels) for labels in classes] if isinstance(model.classes_, list) == model.outputs_2d_ else []
    codes = model._targets
    return len(sizes) == codes.shape[1] and bool((codes.max(axis=0) < sizes).all())


class KernelNeighborsClassifier(MultiOutputMixin, ClassifierMixin, KernelNeighbors):
    r"""The majority class of the nearest training rows, by the distance in the feature space of a kernel.

    .. math:: d(x, z)^2 = \|\phi(x) - \phi(z)\|^2 = k(x, x) - 2 k(x, z) + k(z, z)

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that vote.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Weight of each neighbour: equal weights (also None), the inverse of its distance, or the result of a function of
        the array of distances, (n, n_neighbors). If training rows are at distance 0, only they vote.
    kernel : str, Kernel, scikit-learn kernel or callable, default="linear"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ``"laplacian"``, ``"chi2"``, ``"cosine"``), a
        kernel, a function ``(X, Z) -> block``, or ``"precomputed"``. With the linear kernel distances are Euclidean.
        Conditionally positive kernels also define distances.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None is ``1 / n_features`` (1 for ``"chi2"``).
    degree : int, default=3
        Degree of ``"poly"``.
    coef0 : float, default=1
        Constant term of ``"poly"`` and ``"sigmoid"``.
    allow_indefinite : bool or "warn", default="warn"
        Has no effect; accepted so that learners are interchangeable. Nearest rows do not need a positive semi-definite
        kernel. The formula of the distance orders the rows in any case, and squared distances below 0 count as 0.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of them
        The labels, sorted; a list with one array for each output if y has two dimensions.
    outputs_2d_ : bool
        Whether y has two dimensions.
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The training rows; for ``"precomputed"``, the matrix.
    n_samples_fit_ : int
        Number of training rows.
    kernel_ : Kernel or None
        The kernel; None for ``"precomputed"``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    See Also
    --------
    KernelNeighborsRegressor : The same for numbers.

    Notes
    -----
    Parameters and their meaning are those of ``sklearn.neighbors.KNeighborsClassifier``, which gives the same results
    with ``kernel="linear"``. Among training rows at equal distances the first ones are taken; among classes with equal
    votes, the first in ``classes_``. The kernel matrix is never stored: memory is needed only for some tiles and the
    result.

    Votes of neighbours are not a linear function in feature space, so there is neither ``coef_`` nor ``norm_``.

    Kernels that fall with a distance of the rows, such as RBF, are ordered by that distance: rows whose kernel values
    round to the same number (near ones, where k is 1, and far ones, where it is 0) are still distinguished, and
    :math:`2 - 2 e^{-t}` is computed without cancellation. For other kernels, squared distances within rounding of 0
    count as 0.

    There is no ``certificate_``, since nothing is minimised: the search visits all training rows. The last column of
    the distances that ``kneighbors`` returns is the radius within which the neighbours lie; up to rounding, no other
    training row is closer.

    References
    ----------
    T. Cover and P. Hart, "Nearest neighbor pattern classification" (1967). B. Schoelkopf, "The kernel trick for
    distances" (2001), section 2.

    Examples
    --------
    >>> from mercer import KernelNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [10.0], [11.0]], ["low", "low", "low", "high", "high"]
    >>> model = KernelNeighborsClassifier(3, kernel="rbf", gamma=0.1).fit(X, y)
    >>> model.predict([[1.2], [9.0]]).tolist()
    ['low', 'high']
    >>> model.predict_proba([[9.0]]).round(3).tolist()
    [[0.667, 0.333]]
    >>> distances, indices = model.kneighbors([[1.2]], 2)
    >>> distances.round(4).tolist(), indices.tolist()
    ([[0.0894, 0.3521]], [[1, 2]])
    """

    classes_: Any
    _fitted = Fitted(
        {
            "outputs_2d_": Flag(),
            "_targets": Whole("n, o"),
            "classes_": Either(Labels("k", least=1), Each(Labels("?", least=1))),
        },
        rules=(("the codes of the labels go beyond the classes", _are_labels),),
    )
    _targets: NDArray[np.intp]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: RowsLike, y: ArrayLike) -> Self:
        """Keep rows ``X`` and labels ``y``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError
            If the data or a parameter cannot be used; see the messages.
        """
        self._check_controls()
        X = self._check_X(X, reset=True)
        labels = np.asarray(y)
        self.outputs_2d_ = labels.ndim == 2 and labels.shape[1] != 1
        name = type(self).__name__
        if self.outputs_2d_:
            if not labels.shape[1]:
                raise DataError(f"y has the shape {labels.shape}; it needs at least one column.")
            columns = [check_labels(name, column, X.shape[0]) for column in labels.T]
        else:
            columns = [check_labels(name, y, X.shape[0])]
        pairs = [np.unique(column, return_inverse=True) for column in columns]
        self._keep(X)
        classes, codes = [c for c, _ in pairs], np.column_stack([np.ravel(i) for _, i in pairs]).astype(np.intp)
        self.classes_ = classes if self.outputs_2d_ else classes[0]
        self._targets = codes
        return self

    def predict(self, X: RowsLike, *, diagonal: ArrayLike | None = None) -> np.ndarray:
        """Labels, of shape (n,) or (n, n_outputs).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or None
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (n, n_samples). None for the
            training rows, each predicted from its neighbours among the others.
        diagonal : array-like of shape (n,), optional
            As for :meth:`kneighbors`.
        """
        shares = self._shares(X, diagonal)
        classes = self.classes_ if self.outputs_2d_ else [self.classes_]
        labels = [c[share.argmax(axis=1)] for c, share in zip(classes, shares, strict=True)]
        return np.column_stack(labels) if self.outputs_2d_ else labels[0]

    def predict_proba(self, X: RowsLike, *, diagonal: ArrayLike | None = None) -> Any:
        """Shares of the neighbours, by weight, that have each class: (n, n_classes), or a list with one an output.

        Parameters
        ----------
        X, diagonal
            As for :meth:`predict`.
        """
        shares = self._shares(X, diagonal)
        return shares if self.outputs_2d_ else shares[0]

    def _shares(self, X: RowsLike, diagonal: ArrayLike | None) -> list[Vector]:
        check_is_fitted(self)
        indices, weights = self._weighted(X, diagonal)
        classes = self.classes_ if self.outputs_2d_ else [self.classes_]
        every = np.arange(len(indices))
        shares = []
        for output, labels in enumerate(classes):
            share = np.zeros((len(indices), len(labels)))
            codes = self._targets[:, output]
            for place in range(indices.shape[1]):
                share[every, codes[indices[:, place]]] += 1.0 if weights is None else weights[:, place]
            share /= share.sum(axis=1, keepdims=True)
            shares.append(share)
        return shares


class KernelNeighborsRegressor(MultiOutputMixin, RegressorMixin, KernelNeighbors):
    r"""The mean target of the nearest training rows, by the distance in the feature space of a kernel.

    .. math:: f(x) = \frac{\sum_{i \in N(x)} w_i y_i}{\sum_{i \in N(x)} w_i}, \qquad
              d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z)

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that vote.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Weight of each neighbour: equal weights (also None), the inverse of its distance, or the result of a function of
        the array of distances, (n, n_neighbors). If training rows are at distance 0, only they vote.
    kernel : str, Kernel, scikit-learn kernel or callable, default="linear"
        As for :class:`KernelNeighborsClassifier`.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None is ``1 / n_features`` (1 for ``"chi2"``).
    degree : int, default=3
        Degree of ``"poly"``.
    coef0 : float, default=1
        Constant term of ``"poly"`` and ``"sigmoid"``.
    allow_indefinite : bool or "warn", default="warn"
        Has no effect; accepted so that learners are interchangeable. Nearest rows do not need a positive semi-definite
        kernel. The formula of the distance orders the rows in any case, and squared distances below 0 count as 0.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The training rows; for ``"precomputed"``, the matrix.
    n_samples_fit_ : int
        Number of training rows.
    kernel_ : Kernel or None
        The kernel; None for ``"precomputed"``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    See Also
    --------
    KernelNeighborsClassifier : The same for classes; how distances are computed.

    Notes
    -----
    Parameters and their meaning are those of ``sklearn.neighbors.KNeighborsRegressor``, which gives the same results
    with ``kernel="linear"``. Among training rows at equal distances the first ones are taken. Means over neighbours are
    not a linear function in feature space, so there is neither ``coef_`` nor ``norm_``.

    There is no ``certificate_``, since nothing is minimised: the search visits all training rows. The last column of
    the distances that ``kneighbors`` returns is the radius within which the neighbours lie; up to rounding, no other
    training row is closer.

    References
    ----------
    B. Schoelkopf, "The kernel trick for distances" (2001), section 2.

    Examples
    --------
    >>> from mercer import KernelNeighborsRegressor
    >>> model = KernelNeighborsRegressor(2, kernel="rbf").fit([[0.0], [1.0], [2.0], [9.0]], [0.0, 1.0, 4.0, 81.0])
    >>> model.predict([[1.4], [30.0]]).tolist()
    [2.5, 42.5]
    """

    _targets: Vector
    _fitted = Fitted({"_targets": Either(Floats("n"), Floats("n, t"))})

    def fit(self, X: RowsLike, y: ArrayLike) -> Self:
        """Keep rows ``X`` and targets ``y``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError
            If the data or a parameter cannot be used; see the messages.
        """
        self._check_controls()
        X, y = self._check_X_and_numbers(X, y, several=True)
        self._keep(X)
        self._targets = y.copy()
        return self

    def predict(self, X: RowsLike, *, diagonal: ArrayLike | None = None) -> Vector:
        """Predictions, of shape (n,) or (n, n_targets), in float64.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or None
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (n, n_samples). None for the
            training rows, each predicted from its neighbours among the others.
        diagonal : array-like of shape (n,), optional
            As for :meth:`kneighbors`.
        """
        check_is_fitted(self)
        indices, weights = self._weighted(X, diagonal)
        total = np.zeros((len(indices), *self._targets.shape[1:]))
        several = total.ndim == 2
        for place in range(indices.shape[1]):
            values = self._targets[indices[:, place]]
            if weights is not None:
                weight = weights[:, place]
                values = values * (weight[:, None] if several else weight)
            total += values
        divisor = np.full(len(indices), float(indices.shape[1])) if weights is None else weights.sum(axis=1)
        result: Vector = total / (divisor[:, None] if several else divisor)
        return result
