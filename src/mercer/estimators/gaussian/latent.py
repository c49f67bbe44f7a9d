"""Latent values of Gaussian process classification at new rows, and probabilities averaged over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._errors import DataError, ParameterError
from mercer._types import CheckedRows, Matrix, Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import spans
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.gram.evaluated import EvaluatedGram
from mercer.kernels import Kernel
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import diagonal as kernel_diagonal
from mercer.solvers.gaussian.averages import logistic_average, probit_average, softmax_average
from mercer.solvers.gaussian.inducing_latent import InducingLatent
from mercer.solvers.gaussian.latent import LatentPosterior

# Kernel values of new rows that are worked on at once.
_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class LatentValues:
    """The latent functions of all classes together, as known after a fit.

    ``expansion`` holds their means, without the noise in ``kernel``, and ``rows`` are those of the fit, or landmarks.
    """

    posterior: LatentPosterior | InducingLatent
    expansion: KernelExpansion
    kernel: Kernel | None
    rows: Any
    approximation: str

    def mean_and_variance(self, X: CheckedRows, diagonal: ArrayLike | None) -> tuple[Matrix, Matrix]:
        """Means and variances in new rows, (m,), or (m, n_classes) for several classes."""
        means, variances = [], []
        for mean, spread in self.moments(X, diagonal):
            means.append(mean[:, 0] if spread.ndim == 1 else mean)
            variances.append(spread if spread.ndim == 1 else np.einsum("ijj->ij", spread))
        return np.concatenate(means), np.concatenate(variances)

    def probabilities(self, X: CheckedRows, diagonal: ArrayLike | None) -> Matrix:
        """Probabilities of the classes, (m, n_classes), averaged over the posterior."""
        out = np.empty((X.shape[0], max(self.posterior.classes, 2)))
        position = 0
        for mean, spread in self.moments(X, diagonal):
            rows = slice(position, position + len(mean))
            position = rows.stop
            if spread.ndim > 1:
                out[rows] = softmax_average(mean, spread)
                continue
            average = probit_average if self.approximation == "ep" else logistic_average
            # Each side by itself: one minus the other would lose the digits of the smaller one.
            out[rows, 0], out[rows, 1] = average(-mean[:, 0], spread), average(mean[:, 0], spread)
        return out / out.sum(axis=1, keepdims=True)

    def moments(self, X: CheckedRows, diagonal: ArrayLike | None) -> Iterator[tuple[Matrix, NDArray[np.float64]]]:
        """Means (t, c) with variances (t,), or covariances (t, c, c), of tiles of new rows in turn."""
        posterior, m = self.posterior, X.shape[0]
        prior = self._prior(X, diagonal)
        cross = self.expansion.gram(X, np.float64).astype(np.float64)
        n = cross.shape[1]
        copies = posterior.copies
        tiles = spans(m, max(1, min(m, _ENTRIES // (n * copies))))
        size = tiles[0].stop * n
        progress = Progress(len(tiles), "predictions")
        with memory.reserve(8 * size * copies, "kernel values of new rows"), threads.workers(self.expansion.n_jobs):
            buffer = np.empty(size)
            for rows in tiles:
                block = buffer[: (rows.stop - rows.start) * n].reshape(-1, n)
                cross.block(rows, None, out=block)
                mean = posterior.mean(block)
                moments = posterior.variance if posterior.classes == 1 else posterior.covariance
                yield mean, moments(block, prior[rows])
                progress.advance()

    def _prior(self, X: CheckedRows | EvaluatedGram, diagonal: ArrayLike | None) -> Vector:
        """``k(x, x)`` of new rows."""
        if self.kernel is not None:
            if diagonal is not None:
                raise ParameterError(
                    "diagonal applies only to precomputed kernel values; this kernel computes k(x, x) itself."
                )
            return np.asarray(kernel_diagonal(self.kernel, Rows(X)), dtype=np.float64)
        if diagonal is None and isinstance(X, EvaluatedGram) and X.squared_norms is not None:
            return X.squared_norms
        if diagonal is None:
            own = self.rows.diagonal()
            if not np.allclose(own, own[0], rtol=1e-12, atol=0.0):
                raise ParameterError(
                    "a precomputed block does not contain k(x, x) of new rows, which differs among the training "
                    "rows; pass diagonal=[k(x, x) for each new row]."
                )
            return np.full(X.shape[0], float(own[0]))
        values = np.asarray(diagonal, dtype=np.float64)
        if values.shape != (X.shape[0],) or not np.isfinite(values).all() or (values < 0).any():
            raise DataError(
                f"diagonal must hold k(x, x), 0 or more, for each of the {X.shape[0]} new rows; its shape is "
                f"{values.shape}."
            )
        return values
