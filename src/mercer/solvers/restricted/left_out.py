r"""Least squares over landmarks with single rows left out, in closed form and with the landmarks as they are.

With the features :math:`\varphi(x) = L^{-1} k_m(x)`, the system :math:`H = \sum_i w_i \varphi_i \varphi_i^\top +
\alpha I = G G^\top` and :math:`\psi = G^{-1} \varphi`, the solution is

.. math:: f(x) = \psi(x)^\top c, \qquad c = \sum_i w_i\, \psi_i\, y_i

and without the part :math:`m_i` of the weight :math:`w_i` of row i

.. math:: f_{-i}(x) = f(x) - m_i\, \psi(x)^\top \psi_i\, e_i, \qquad
          e_i = y_i - f_{-i}(x_i) = \frac{y_i - f(x_i)}{1 - m_i\, \|\psi_i\|^2}

Nothing of n x m is stored: features are computed block by block, in every pass anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Positions, Vector
from mercer.engine import lapack, memory, threads
from mercer.engine.tiles import spans
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.solvers.restricted.evidence_blocks import block_rows
from mercer.solvers.restricted.whitening import Whitening

# Rows of the smallest block.
_FEWEST = 16
# What is left of a row's own target is known to this many times the precision of float64.
_ROUNDING = 1e3 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Rows whose features are computed block by block.

    Parameters
    ----------
    gram : GramMatrix
        Kernel values of n rows and m landmarks in float64.
    white : Whitening
        Of the landmarks.
    """

    gram: GramMatrix
    white: Whitening

    def visit(self, see: Callable[[slice, Matrix], None], positions: Positions | None = None) -> None:
        """Show the features of all rows, or of those at some positions, in blocks that may be overwritten.

        Raises
        ------
        MemoryBudgetError
            If not even a small block fits the memory budget.
        """
        n, m = self.gram.shape
        places = np.arange(n) if positions is None else positions
        step = max(capacity(8 * m, block_rows(len(places), m), parts=2), min(_FEWEST, len(places)), 1)
        with memory.reserve(8 * m * step, f"kernel values of {step} rows with {m:,} landmarks"):
            store = np.empty((step, m))
            for part in spans(len(places), step):
                threads.checkpoint()
                block = store[: part.stop - part.start]
                self.gram.block(places[part], None, out=block)
                see(part, self.white.features(block))


@dataclass(frozen=True, eq=False)
class FeatureSums:
    r"""Sums over the rows.

    Parameters
    ----------
    system : ndarray of shape (m, m)
        Of :math:`w \varphi \varphi^\top`, in the upper triangle.
    products : ndarray of shape (m, t)
        Of :math:`w\, \varphi\, y`.
    squares : ndarray of shape (t,)
        Of :math:`w\, y^2`.
    """

    system: Matrix
    products: Matrix
    squares: Vector

    @classmethod
    def of(cls, rows: FeatureRows, targets: Matrix, weights: Vector) -> FeatureSums:
        """Sum in one pass of :math:`n m^2` operations, in memory that the caller has reserved."""
        m, roots = rows.gram.shape[1], np.sqrt(weights)[:, None]
        system, products = np.zeros((m, m)), np.zeros((m, targets.shape[1]))

        def see(part: slice, F: Matrix) -> None:
            F *= roots[part]
            lapack.add_square_of_columns(system, F)
            products[...] += lapack.multiply(F.T, roots[part] * targets[part])

        rows.visit(see)
        return cls(system, products, (weights[:, None] * targets**2).sum(axis=0))

    def of_targets(self, columns: Positions) -> FeatureSums:
        """The same for some of the targets."""
        return FeatureSums(self.system, np.ascontiguousarray(self.products[:, columns]), self.squares[columns])


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    r"""The solution for one penalty, and what it takes to leave each row out.

    Parameters
    ----------
    rows : FeatureRows
    factor : ndarray of shape (m, m)
        G, in the upper triangle.
    solution : ndarray of shape (m, t)
        c.
    taken : ndarray of shape (n,)
        The part m of the weight of each row that is left out.
    leverages : ndarray of shape (n,)
        :math:`\|\psi_i\|^2`.
    explained : ndarray of shape (n,)
        :math:`\|\varphi_i\|^2`.
    errors : ndarray of shape (n, t)
        e, the targets minus left-out predictions.

    Examples
    --------
    >>> from mercer.gram import Gram
    >>> from mercer.kernels import Linear
    >>> X, y, ones = np.array([[1.0], [1.0]]), np.array([[3.0], [4.0]]), np.ones(2)
    >>> rows = FeatureRows(Gram(Linear(), X, X[:1], dtype=np.float64), Whitening.of(Linear()(X[:1])))
    >>> LeftOutRows.of(rows, FeatureSums.of(rows, y, ones), y, ones, 1.0).errors.round(9).ravel().tolist()
    [1.0, 2.5]
    """

    rows: FeatureRows
    factor: Matrix
    solution: Matrix
    taken: Vector
    leverages: Vector
    explained: Vector
    errors: Matrix

    @classmethod
    def of(cls, rows: FeatureRows, sums: FeatureSums, targets: Matrix, taken: Vector, alpha: float) -> LeftOutRows:
        """Solve and leave out each row, in one pass.

        Raises
        ------
        NumericalError
            If the system is singular to working precision, or a row has nothing but its own target to be predicted by.
        """
        factor = sums.system.copy()
        np.einsum("ii->i", factor)[...] += alpha
        if not np.isfinite(factor).all() or lapack.factor_cholesky(factor):
            raise NumericalError(
                "the system of the landmarks is singular to working precision, so that intervals from left-out rows "
                "are not defined. Raise alpha."
            )
        turned = np.array(sums.products.T, order="C")
        lapack.solve_triangle(factor, turned)
        solution = np.ascontiguousarray(turned.T)
        leverages, explained, fitted = np.empty(len(targets)), np.empty(len(targets)), np.empty(targets.shape)

        def see(part: slice, F: Matrix) -> None:
            explained[part] = np.einsum("ij,ij->i", F, F)
            lapack.solve_triangle(factor, F)
            leverages[part] = np.einsum("ij,ij->i", F, F)
            fitted[part] = lapack.multiply(F, solution)

        rows.visit(see)
        rest = 1.0 - taken * leverages
        if (rest <= _ROUNDING).any():
            row = int(np.argmin(rest))
            raise NumericalError(
                f"the fit goes through the target of row {row} whatever it is, to working precision, so that its error "
                "without this row is not known. Raise alpha."
            )
        return cls(rows, factor, solution, taken, leverages, explained, (targets - fitted) / rest[:, None])

    def features(self, K: Matrix) -> tuple[Matrix, Vector]:
        r""":math:`\psi` of new rows (s, m), in the place of their kernel values, and :math:`\|\varphi\|^2` (s,)."""
        F = self.rows.white.features(K)
        explained = np.einsum("ij,ij->i", F, F)
        lapack.solve_triangle(self.factor, F)
        return F, explained

    def least(self, sums: FeatureSums) -> Vector:
        """The objectives of the solution, (t,)."""
        return np.maximum(sums.squares - (self.solution**2).sum(axis=0), 0.0)

    def gap(self, coefficients: Matrix) -> Vector:
        """How far the objective at coefficients of the landmarks (m, t) is above the least one, (t,)."""
        turned = np.array(self.rows.white.coordinates(coefficients).T, order="C")
        lapack.multiply_triangle(self.factor, turned, transposed=True)
        return np.asarray(((turned - self.solution.T) ** 2).sum(axis=1))
