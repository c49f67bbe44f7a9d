"""All penalties of least squares over landmarks from one decomposition: leave-one-out, gcv and evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import decompositions, memory
from mercer.solvers.restricted.passes import Part, Passes
from mercer.solvers.restricted.whitening import Whitening

_FEWER = "Pass a smaller n_landmarks, a number for alpha, or raise the budget with mercer.config(memory=...)."
# What is left of a row's own target is known to this many times the precision of float64.
_ROUNDING = 1e3 * float(np.finfo(np.float64).eps)


def memory_of(m: int) -> int:
    """Memory of :class:`DecomposedRows` for m landmarks, in bytes.

    >>> memory_of(1000)
    32000000
    """
    return 4 * 8 * m * m


@dataclass(frozen=True, eq=False)
class DecomposedRows:
    r"""The eigenvectors of :math:`\Phi^\top W \Phi = U \Lambda U^\top`, for the features :math:`\Phi`.

    With :math:`\Phi = K_{nm} L^{-\top}` the coordinates for any penalty are
    :math:`U (\Lambda + \alpha I)^{-1} U^\top \Phi^\top W y`.

    Parameters
    ----------
    rows : Passes
        n rows, with k targets.
    white : Whitening
        Of the m landmarks.
    vectors : ndarray of shape (m, m)
        U.
    values : ndarray of shape (m,)
    turned : ndarray of shape (m, k)
        :math:`U^\top \Phi^\top W y`.
    squares : ndarray of shape (k,)
        :math:`y^\top W y`.
    total : float
        The sum of the weights.

    Examples
    --------
    >>> from mercer.gram import Gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers.restricted.passes import StoredRows
    >>> X, y = np.array([[1.0], [1.0]]), np.array([[2.0], [4.0]])
    >>> rows = StoredRows(Gram(Linear(), X, X[:1]), y, np.ones(2))
    >>> found = DecomposedRows.of(rows, Whitening.of(Linear()(X[:1])))
    >>> found.left_out_errors(np.array([1.0])).round(9).tolist()
    [[4.5]]
    """

    rows: Passes
    white: Whitening
    vectors: Matrix
    values: Vector
    turned: Matrix
    squares: Vector
    total: float

    @classmethod
    def of(cls, rows: Passes, white: Whitening) -> DecomposedRows:
        """Decompose: one pass, and about :math:`4 n m^2` operations."""
        m, k = rows.shape[1:]

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            weighted = part.weights * part.targets
            sums = np.append((weighted * part.targets).sum(axis=0), part.weights.sum())
            return np.hstack([part.weights * F, weighted]), sums

        with memory.reserve(memory_of(m), f"the decomposed features of {m:,} landmarks", _FEWER):
            products, sums = rows.sweep(white.coefficients(np.eye(m)), visit, (m + k, k + 1))
            both = np.ascontiguousarray(white.pull(products))
            S = np.ascontiguousarray((both[:, :m] + both[:, :m].T) / 2)
            values, vectors = decompositions.all_eigenpairs(S)
        U = np.ascontiguousarray(vectors.T)
        return cls(rows, white, U, np.maximum(values, 0.0), U.T @ both[:, m:], sums[:k], float(sums[k]))

    @property
    def size(self) -> float:
        """The sum of the eigenvalues."""
        return float(self.values.sum())

    def coordinates(self, alphas: Vector) -> Matrix:
        """The solutions for one penalty of each target, (m, k)."""
        return np.asarray(self.vectors @ (self.turned / (self.values[:, None] + alphas)))

    def of_sums(self, alphas: Vector) -> tuple[Matrix, Matrix]:
        """Generalised cross-validation and evidence at penalties (a,), (a, k) each, without a pass.

        Both are those of the kernel matrix that the landmarks stand for; a weight counts that many observations.
        """
        gcv, evidence = np.empty((2, len(alphas), len(self.squares)))
        for j, alpha in enumerate(alphas):
            shrunk = self.turned / (self.values + alpha)[:, None]
            along, curved = (self.turned * shrunk).sum(axis=0), (self.values[:, None] * shrunk**2).sum(axis=0)
            left = np.maximum(self.squares - 2 * along + curved, 0.0)
            form = np.maximum(self.squares - along, 0.0) / alpha
            freedom = self.total - float((self.values / (self.values + alpha)).sum())
            determinant = float(np.log1p(self.values / alpha).sum()) + self.total * np.log(alpha)
            with np.errstate(divide="ignore"):
                gcv[j] = self.total * left / freedom**2 if freedom > _ROUNDING * self.total else np.inf
                density = self.total * (1.0 + np.log(2.0 * np.pi * form / self.total))
                evidence[j] = -0.5 * (density + determinant)
        return gcv, evidence

    def left_out_errors(self, alphas: Vector) -> Matrix:
        r"""Mean squared errors of exact leave-one-out predictions at penalties (a,), (a, k); one pass for all.

        .. math:: y_i - f_{-i}(x_i) = \frac{y_i - f(x_i)}{1 - m_i\, \varphi_i^\top H^{-1} \varphi_i}, \qquad
                  m_i = \min(1, w_i)

        The landmarks stay as they are. Of a row of weight w one of w observations is left out.
        """
        k = len(self.squares)
        inverses = 1.0 / (self.values[:, None] + alphas)
        # All penalties of the first target, then of the second one, and so on.
        shrunk = np.hstack([self.turned[:, [j]] * inverses for j in range(k)])
        total = self.total

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            own = 1.0 - np.minimum(part.weights, 1.0) * (F**2 @ inverses)
            fitted = (F @ shrunk).reshape(len(F), k, len(alphas))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                errors = (part.targets[:, :, None] - fitted) / np.where(own > _ROUNDING, own, 0.0)[:, None]
                sums = (part.weights[:, :, None] * errors**2).sum(axis=0) / total
            return np.empty((len(F), 0)), np.where(np.isnan(sums), np.inf, sums).ravel()

        _, sums = self.rows.sweep(self.white.coefficients(self.vectors), visit, (0, k * len(alphas)))
        return np.ascontiguousarray(sums.reshape(k, len(alphas)).T)
