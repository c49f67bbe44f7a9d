"""Several classes by several classifiers of two: one against the rest, or one against one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError
from mercer._types import Matrix, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Each, Either, Floats, Is, Labels, Maybe, Number, Whole, Word
from mercer.estimators.gaussian.latent import LatentValues
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import PROCESS
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, without_noise
from mercer.estimators.shared.in_parts import in_parts
from mercer.estimators.shared.labels import winners
from mercer.estimators.shared.statements import FitRows, FittedKernel, outputs, theta_fits
from mercer.kernels import Kernel
from mercer.solvers.gaussian.inducing_latent import InducingLatent
from mercer.solvers.gaussian.inducing_posterior import InducingFactors
from mercer.solvers.gaussian.latent import LatentPosterior
from mercer.solvers.gaussian.search import Search
from mercer.solvers.solution import Certificate


def parts(codes: NDArray[np.intp], classes: int, scheme: str) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows, and their labels 0 and 1, for each classifier.

    >>> [y.tolist() for _, y in parts(np.array([0, 1, 2]), 3, "one_vs_rest")]
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> [rows.tolist() for rows, _ in parts(np.array([0, 1, 2]), 3, "one_vs_one")]
    [[0, 1], [0, 2], [1, 2]]
    """
    every = np.arange(len(codes))
    if scheme == "one_vs_rest":
        return [(every, (codes == j).astype(np.intp)) for j in range(classes)]
    pairs = ((i, j) for i in range(classes) for j in range(i + 1, classes))
    members = ((np.flatnonzero((codes == i) | (codes == j)), j) for i, j in pairs)
    return [(rows, (codes[rows] == j).astype(np.intp)) for rows, j in members]


def one_or_parts(model: KernelEstimator) -> bool:
    """Whether there is one posterior of all classes, or as many classifiers of two as the scheme has."""
    k, count = len(model.classes_), len(model.estimators_)
    if any((part.y_train_ is None) != (model.y_train_ is None) for part in model.estimators_):
        return False
    if not count:
        return not isinstance(model.kernel_, tuple) and _has_posterior(model)
    expected = {"one_vs_rest": k, "one_vs_one": k * (k - 1) // 2}.get(model._scheme, 0)
    kernels = model.kernel_ is None or (isinstance(model.kernel_, tuple) and len(model.kernel_) == count)
    # Over landmarks the rows are not known.
    split = count == expected and model.y_train_ is not None
    pairs = zip(model.estimators_, parts(model.y_train_, k, model._scheme) if split else ())
    return (
        k > 2
        and count == expected
        and kernels
        and all(type(part) is type(model) for part in model.estimators_)
        and all(
            len(part.classes_) == 2 and vars(part).get("n_features_in_") == vars(model).get("n_features_in_", None)
            if model.kernel_ is not None
            else len(part.classes_) == 2 and part.n_features_in_ == len(rows)
            for part, (rows, _) in pairs
        )
    )


def _has_posterior(model: KernelEstimator) -> bool:
    """Whether there is what the posterior of all classes needs: of all rows, or of landmarks."""
    attributes, factors = vars(model), model._landmark_factors
    if factors is None:
        whole = {"dual_coef_", "_factor", "_state", "W_sr_"} <= attributes.keys() and model.y_train_ is not None
        return whole and (len(model.classes_) > 2 or bool((model._factor.diagonal() > 0).all()))
    if not {"dual_coef_", "landmark_indices_"} <= attributes.keys() or {"_factor", "W_sr_", "pi_"} & attributes.keys():
        return False
    functions, m = model.dual_coef_.shape
    fits = len(factors.landmarks) == m and len(factors.system) == functions * m
    return fits and model.y_train_ is None and model.kernel_ is not None and model.approximation == "nystroem"


ONE_OR_PARTS = ("there is neither a single posterior nor a classifier for each part", one_or_parts)


def votes(values: Matrix, classes: int) -> Matrix:
    """Votes of the classifiers of pairs, (m, classes), ties broken by their decision values (m, pairs).

    >>> votes(np.array([[-1.0, -2.0, 3.0]]), 3).argmax(axis=1).tolist()
    [0]
    """
    won, sums = np.zeros((len(values), classes)), np.zeros((len(values), classes))
    number = 0
    for i in range(classes):
        for j in range(i + 1, classes):
            value = values[:, number]
            won[:, j] += value > 0
            won[:, i] += value <= 0
            sums[:, j] += value
            sums[:, i] -= value
            number += 1
    # Less than a vote.
    return won + sums / (3.0 * (np.abs(sums) + 1.0))


def _of_classes(k: int, n: int) -> tuple[int, ...]:
    return (n,) if k == 2 else (n, k)


def _of_factor(k: int, n: int) -> tuple[int, ...]:
    return (n, n) if k == 2 else (k + 1, n, n)


class BinaryParts(ClassifierMixin, KernelEstimator):
    """Predictions of one posterior of all classes; or of classifiers of two, where ``estimators_`` holds some."""

    _if_indefinite = PROCESS
    shares_matrices = True
    predicts_in = np.float64

    multi_class: Any
    approximation: Any
    kernel_: Any
    classes_: np.ndarray
    dual_coef_: Matrix
    X_train_: Any
    W_sr_: Matrix
    _factor: Matrix
    n_classes_: int
    theta_: Vector
    # None after a fit on landmarks.
    y_train_: Any
    estimators_: list[Any]
    # None after a fit to all rows.
    _landmark_factors: InducingFactors | None = None
    _fitted = Fitted(
        {
            "kernel_": Either(FittedKernel(), Each(Is(Kernel))),
            "X_train_": FitRows("n"),
            "classes_": Labels("k", least=2),
            "n_classes_": Count("k"),
            "y_train_": Maybe(Whole("n", below="k")),
            "estimators_": Each(Is(KernelEstimator)),
            "search_": Maybe(Is(Search)),
            "theta_": Floats("p"),
            "log_marginal_likelihood_value_": Number(),
            "certificate_": Is(Certificate),
        },
        {
            "dual_coef_": Floats("outputs, n"),
            "_factor": Floats(_of_factor),
            "_state": Either(Floats("n, outputs"), Floats(lambda k, n: (n, max(k, 2)))),
            "W_sr_": Floats(_of_classes),
            "pi_": Floats(_of_classes),
            "_landmark_factors": Is(InducingFactors),
            "landmark_indices_": Maybe(Whole("n", distinct=True)),
            "search_rows_": Count(least=1),
        },
        {
            "multi_class": Word(("auto", "multinomial", "one_vs_rest", "one_vs_one")),
            "approximation": Word(("auto", "laplace", "ep", "nystroem")),
        },
        {"outputs": outputs},
        (ONE_OR_PARTS, theta_fits(lambda _: 0)),
    )

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    @property
    def can_share(self) -> bool:
        """Whether a fit can use kernel matrices that exist already; classifiers of two have their own."""
        return super().can_share and self.multi_class in ("auto", "multinomial")

    @property
    def _scheme(self) -> str:
        """How more than two classes are told apart."""
        if self.multi_class != "auto":
            return str(self.multi_class)
        return "one_vs_rest" if self.approximation in ("auto", "ep") else "multinomial"

    @property
    def _expansion(self) -> KernelExpansion:
        if isinstance(self.kernel_, tuple) or not hasattr(self, "dual_coef_"):
            raise AttributeError("there is no latent function of all classes; use those of estimators_.")
        return KernelExpansion(without_noise(self.kernel_), self.X_train_, self.dual_coef_, n_jobs=self.n_jobs)

    @property
    def _latent(self) -> LatentValues:
        weights = np.ascontiguousarray(self.dual_coef_.T)
        posterior: LatentPosterior | InducingLatent
        if self._landmark_factors is None:
            posterior = LatentPosterior(weights, self.W_sr_.reshape(len(weights), -1), self._factor)
        else:
            posterior = InducingLatent(weights, self._landmark_factors)
        return LatentValues(posterior, self._expansion, self.kernel_, self.X_train_, self.approximation)

    @in_parts
    def predict_proba(self, X: RowsLike, diagonal: ArrayLike | None = None) -> Matrix:
        """Probabilities of the classes, (m, n_classes), averaged over the posterior; each row sums to one.

        Parameters
        ----------
        X, diagonal
            As for :meth:`latent_mean_and_variance`; also Blocks or a collection of Dask.

        Raises
        ------
        ParameterError
            With ``multi_class="one_vs_one"`` and more than two classes, as in scikit-learn.
        """
        if not self._has_parts():
            return self._latent.probabilities(self._check_X(X, reset=False), diagonal)
        if self.multi_class == "one_vs_one":
            raise ParameterError(
                "classifiers of pairs of classes do not give probabilities of all classes; pass "
                'multi_class="multinomial" or "one_vs_rest".'
            )
        each = [part.predict_proba(rows, diagonal)[:, 1] for part, rows in self._part_rows(X)]
        against_rest = np.maximum(np.stack(each, axis=1), np.finfo(np.float64).tiny)
        return np.asarray(against_rest / against_rest.sum(axis=1, keepdims=True))

    @in_parts
    def decision_function(self, X: RowsLike, diagonal: ArrayLike | None = None) -> Matrix:
        """Log odds of ``classes_[1]``, (m,), or for several classes the logs of their probabilities, (m, n_classes).

        With ``multi_class="one_vs_one"``, votes, with ties broken by the log odds.

        Parameters
        ----------
        X, diagonal
            As for :meth:`latent_mean_and_variance`.
        """
        if not self._has_parts() or self._scheme == "one_vs_rest":
            logs = np.log(np.maximum(self.predict_proba(X, diagonal), np.finfo(np.float64).tiny))
            return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
        each = [part.decision_function(rows, diagonal) for part, rows in self._part_rows(X)]
        return votes(np.stack(each, axis=1), self.n_classes_)

    @in_parts
    def predict(self, X: RowsLike, diagonal: ArrayLike | None = None) -> np.ndarray:
        """The most probable class of each row, (m,); with two classes by the mean of the latent values alone.

        Parameters
        ----------
        X, diagonal
            As for :meth:`latent_mean_and_variance`.
        """
        if not self._has_parts() and len(self.classes_) == 2:
            return self.classes_[winners(self._expansion.values(self._check_X(X, reset=False), np.float64))]
        if not self._has_parts():
            return self.classes_[self.predict_proba(X, diagonal).argmax(axis=1)]
        return self.classes_[self.decision_function(X, diagonal).argmax(axis=1)]

    def latent_mean_and_variance(self, X: RowsLike, diagonal: ArrayLike | None = None) -> tuple[Matrix, Matrix]:
        """Mean and variance of the latent function in new rows, (m,), or of those of all classes, (m, n_classes).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``"precomputed"``, kernel values of new and training rows, shape (m, n_samples).
        diagonal : array-like of shape (m,), optional
            ``k(x, x)`` of the new rows, for ``"precomputed"`` alone: else the kernel tells. It may be left out where
            all training rows have the same.

        Raises
        ------
        ParameterError
            With classifiers of two for several classes: their ``estimators_`` have latent functions each.
        """
        if self._has_parts():
            raise ParameterError("there is no latent function of all classes; use those of estimators_.")
        return self._latent.mean_and_variance(self._check_X(X, reset=False), diagonal)

    def _has_parts(self) -> bool:
        check_is_fitted(self)
        return bool(self.estimators_)

    def _part_rows(self, X: RowsLike) -> Iterator[tuple[Any, Any]]:
        """Each classifier of two with what it predicts from: new rows, or their values with its training rows."""
        X = self._check_X(X, reset=False)
        if not self._is_precomputed:
            yield from ((part, X) for part in self.estimators_)
            return
        rows = [rows for rows, _ in parts(self.y_train_, self.n_classes_, self._scheme)]
        for part, some in zip(self.estimators_, rows, strict=True):
            yield part, np.ascontiguousarray(X[:, some])

    def _mean_evidence(self, theta: Vector, eval_gradient: bool) -> Any:
        """Over classifiers of two, at one theta for all or at one for each."""
        count = len(self.estimators_)
        shared = theta.size * count == self.theta_.size
        if not shared and theta.size != self.theta_.size:
            raise ParameterError(
                f"theta must have {self.theta_.size // count} entries, for all {count} classifiers, or "
                f"{self.theta_.size}, but has {theta.size}."
            )
        each = np.tile(theta, (count, 1)) if shared else theta.reshape(count, -1)
        pairs = zip(self.estimators_, each, strict=True)
        values = [part.log_marginal_likelihood(own, eval_gradient=True) for part, own in pairs]
        value, slopes = float(np.mean([v for v, _ in values])), np.stack([g for _, g in values]) / count
        return (value, slopes.sum(axis=0) if shared else slopes.ravel()) if eval_gradient else value
