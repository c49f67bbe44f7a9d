"""What a Gaussian process classification predicts: latent values, and probabilities averaged over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import spans
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import PROCESS
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, without_noise
from mercer.estimators.shared.labels import winners
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import diagonal as kernel_diagonal
from mercer.solvers.gaussian.averages import logistic_average, probit_average, softmax_average
from mercer.solvers.gaussian.latent import LatentPosterior

# Kernel values of new rows that are worked on at once.
_ENTRIES = 2**22
_TINY = np.finfo(np.float64).tiny


class LatentPredictions(ClassifierMixin, KernelEstimator):
    """Everything of the estimator that needs a posterior of all classes together and no search."""

    _if_indefinite = PROCESS

    approximation: Any
    kernel_: Any
    classes_: np.ndarray
    dual_coef_: Matrix
    X_train_: Any
    W_sr_: Matrix
    _factor: Matrix

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def latent_mean_and_variance(self, X: Any, diagonal: Any = None) -> tuple[Matrix, Matrix]:
        """Mean and variance of the latent function in new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``"precomputed"``, kernel values of new and training rows, shape (m, n_samples).
        diagonal : array-like of shape (m,), optional
            ``k(x, x)`` of the new rows, for ``"precomputed"`` alone: else the kernel tells. It may be left out where
            all training rows have the same.

        Returns
        -------
        mean, variance : ndarray of shape (m,), or (m, n_classes) for several classes
        """
        X = self._new_rows(X)
        means, variances = [], []
        for mean, spread in self._latent(X, diagonal):
            means.append(mean[:, 0] if spread.ndim == 1 else mean)
            variances.append(spread if spread.ndim == 1 else np.einsum("ijj->ij", spread))
        return np.concatenate(means), np.concatenate(variances)

    def predict_proba(self, X: Any, diagonal: Any = None) -> Matrix:
        """Probabilities of the classes, (m, n_classes), averaged over the posterior; each row sums to one.

        Parameters
        ----------
        X, diagonal
            As for :meth:`latent_mean_and_variance`.
        """
        X = self._new_rows(X)
        out = np.empty((X.shape[0], len(self.classes_)))
        done = 0
        for mean, spread in self._latent(X, diagonal):
            rows = slice(done, done + len(mean))
            done = rows.stop
            if spread.ndim > 1:
                out[rows] = softmax_average(mean, spread)
                continue
            average = probit_average if self.approximation == "ep" else logistic_average
            # Each side by itself: one minus the other would lose the digits of the smaller one.
            out[rows, 0], out[rows, 1] = average(-mean[:, 0], spread), average(mean[:, 0], spread)
        return out / out.sum(axis=1, keepdims=True)

    def decision_function(self, X: Any, diagonal: Any = None) -> Matrix:
        """Log odds of ``classes_[1]``, (m,), or for several classes the logs of their probabilities, (m, n_classes).

        Parameters
        ----------
        X, diagonal
            As for :meth:`latent_mean_and_variance`.
        """
        logs = np.log(np.maximum(self.predict_proba(X, diagonal), _TINY))
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Any, diagonal: Any = None) -> np.ndarray:
        """The most probable class of each row, (m,).

        With two classes the means of the latent values tell, without their variances.

        Parameters
        ----------
        X, diagonal
            As for :meth:`latent_mean_and_variance`.
        """
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return self.classes_[self.predict_proba(X, diagonal).argmax(axis=1)]
        X = self._check_X(X, reset=False)
        mean = self._expansion.values(X, np.float64)
        return self.classes_[winners(mean)]

    @property
    def _expansion(self) -> KernelExpansion:
        if isinstance(self.kernel_, tuple) or not hasattr(self, "dual_coef_"):
            raise AttributeError("there is no latent function of all classes; ask the estimators_ for theirs.")
        return KernelExpansion(without_noise(self.kernel_), self.X_train_, self.dual_coef_, n_jobs=self.n_jobs)

    @property
    def _posterior(self) -> LatentPosterior:
        weights = np.ascontiguousarray(self.dual_coef_.T)
        return LatentPosterior(weights, self.W_sr_.reshape(len(weights), -1), self._factor)

    def _rows_of(self, X: Any) -> Any:
        """The other side of a block with new rows; for ``"precomputed"`` there is none, and X is the block."""
        return X if self.kernel_ is None else self.X_train_

    def _latent(self, X: Any, diagonal: Any) -> Iterator[tuple[Matrix, NDArray[np.float64]]]:
        """Means (t, c) with variances (t,), or covariances (t, c, c), of tiles of new rows in turn."""
        posterior, m = self._posterior, X.shape[0]
        prior = self._prior(X, diagonal)
        cross: Any = self._gram(X, self._rows_of(X), dtype=np.float64)
        n = cross.shape[1]
        copies = 1 if posterior.classes == 1 else posterior.classes + 1
        tiles = spans(m, max(1, min(m, _ENTRIES // (n * copies))))
        size = tiles[0].stop * n
        progress = Progress(len(tiles), "predictions")
        with memory.reserve(8 * size * copies, "kernel values of new rows"), threads.workers(self.n_jobs):
            buffer = np.empty(size)
            for rows in tiles:
                block = buffer[: (rows.stop - rows.start) * n].reshape(-1, n)
                cross.block(rows, None, out=block)
                mean = posterior.mean(block)
                moments = posterior.variance if posterior.classes == 1 else posterior.covariance
                yield mean, moments(block, prior[rows])
                progress.advance()

    def _prior(self, X: Any, diagonal: Any) -> Vector:
        """``k(x, x)`` of new rows."""
        if self.kernel_ is not None:
            if diagonal is not None:
                raise ParameterError("diagonal is for precomputed kernel values; the kernel tells k(x, x) by itself.")
            return np.asarray(kernel_diagonal(self.kernel_, Rows(X)), dtype=np.float64)
        if diagonal is None:
            known = self.X_train_.diagonal()
            if not np.allclose(known, known[0], rtol=1e-12, atol=0.0):
                raise ParameterError(
                    "a precomputed block does not say what k(x, x) is for new rows, and it differs among the training "
                    "rows; pass diagonal=[k(x, x) for each new row]."
                )
            return np.full(X.shape[0], float(known[0]))
        given = np.asarray(diagonal, dtype=np.float64)
        if given.shape != (X.shape[0],) or not np.isfinite(given).all() or (given < 0).any():
            raise DataError(
                f"diagonal must hold k(x, x), 0 or more, for each of the {X.shape[0]} new rows; its shape is "
                f"{given.shape}."
            )
        return given
