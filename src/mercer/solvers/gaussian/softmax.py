"""Laplace's approximation for several classes, with a softmax link."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from mercer._errors import NumericalError
from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack, threads
from mercer.engine.tiles import Fill, spans
from mercer.losses.log_loss import ManyClasses
from mercer.solvers.gaussian.classification import Approximation, Effort, GaussianClassification
from mercer.solvers.gaussian.latent_store import LatentStore
from mercer.solvers.gaussian.mode import certify, find_mode, require_factor
from mercer.solvers.gaussian.workspace import Workspace
from mercer.solvers.solution import Solution


def softmax_laplace(
    problem: GaussianClassification, theta: Vector, work: Workspace, start: Matrix | None, effort: Effort
) -> Solution[Approximation, Matrix]:
    r"""The Gaussian at the mode of the posterior of all classes together, and the evidence that goes with it.

    .. math:: \log q(y) = -\tfrac12 \operatorname{tr} A^\top \hat F + \log p(y \mid \hat F)
              - \tfrac12 \log |I + (I_c \otimes K) W|, \qquad \hat F = K A, \quad A = \nabla \log p(y \mid \hat F)

    Parameters and errors are those of :func:`mercer.solvers.gaussian.laplace.laplace`, with c classes that share K.

    Notes
    -----
    W holds the block ``diag(p_i) - p_i p_i'`` of each row. With :math:`E_j = D_j^{1/2} B_j^{-1} D_j^{1/2}`,
    :math:`B_j = I + D_j^{1/2} K D_j^{1/2}`, D_j the probabilities of class j, and :math:`M M^\top = \sum_j E_j`,

    .. math:: \log |I + (I_c \otimes K) W| = \sum_j \log |B_j| + \log |M M^\top|, \qquad
              Q_{jj} = E_j - E_j (M M^\top)^{-1} E_j

    for the diagonal blocks of :math:`Q = (W^{-1} + I_c \otimes K)^{-1} = W - W \Sigma W`. The derivative by K is
    :math:`\tfrac12 \sum_j (a_j a_j^\top + u_j a_j^\top + a_j u_j^\top - Q_{jj})`, with :math:`u = (I - Q K) s` and

    .. math:: s_{ij} = -\tfrac12 (r_{ij} - p_{ij} \sum_l r_{il}), \qquad
              r_{ij} = (W - Q)_{ij,ij} / p_{ij} = 1 - p_{ij} - (B_j^{-1})_{ii} + |M^{-1} D_j^{1/2} B_j^{-1} e_i|^2,

    the derivative of the log determinant by the latent values: since W has the constants as its null space, the
    blocks of different classes drop out of it, and nothing is divided by a probability. A class costs about nine times
    ``n^3 / 3`` operations and an array of (n, n); no matrix of (cn, cn) is made.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 3.3 and
    section 5.5.1 for the implicit terms, which are given there for two classes.
    """
    start_time = time.perf_counter()
    loss = ManyClasses(problem.codes, np.ones(problem.n), problem.classes)
    store = problem.store(theta, work)
    mode = find_mode(store, loss, start=start, tol=effort.tol, max_iter=effort.max_iter)
    probabilities = loss.slope(mode.latent).probabilities
    parts = _Parts.of(store, np.sqrt(probabilities), work)
    evidence = -mode.objective - 0.5 * parts.log_determinant
    gradient: Vector | None = None
    factor: Matrix | None = None
    if effort.keep_factor:
        factor = parts.factor()
        work.give_away("classes")
    elif effort.gradient:
        weigh = parts.slope(store, probabilities, mode.weights, work)
        gradient = np.asarray(problem.covariance.pullback(theta, weigh))
    approximation = Approximation(
        evidence, gradient, mode.weights, np.sqrt(probabilities), factor, mode.weights, probabilities
    )
    return Solution(approximation, mode.status, certify(mode, time.perf_counter() - start_time), mode.weights)


@dataclass(eq=False)
class _Parts:
    """``B_j^-1 D_j^1/2`` for each class; and last, above the diagonal, M, and below it the sum of the E."""

    stack: Matrix
    roots: Matrix
    inverse_diagonal: Matrix
    total_diagonal: Vector
    log_determinant: float

    @classmethod
    def of(cls, store: LatentStore, roots: Matrix, work: Workspace) -> _Parts:
        """By a factor and an inverse for each class; K is still in the store."""
        n, classes = roots.shape
        stack = work.array("classes", (classes + 1, n, n))
        total = stack[-1]
        total[...] = 0.0
        inverse_diagonal = np.empty((n, classes))
        log_determinant = 0.0
        for j in range(classes):
            threads.checkpoint()
            require_factor(store, roots[:, j])
            log_determinant += store.log_determinant
            inverse_diagonal[:, j] = store.invert()
            _spread(store, roots[:, j], stack[j], total)
        total_diagonal = total.diagonal().copy()
        if lapack.factor_cholesky(total) != 0 or not np.isfinite(total.diagonal()).all():
            raise NumericalError(
                "the matrix that couples the classes is singular to working precision; use a kernel of smaller "
                "variance, or bound it (kernel.bounded)."
            )
        log_determinant += 2.0 * float(np.log(total.diagonal()).sum())
        return cls(stack, roots, inverse_diagonal, total_diagonal, log_determinant)

    def factor(self) -> Matrix:
        """E for each class, and last the lower factor of their sum; the parts are given up for it."""
        for j, part in enumerate(self.stack[:-1]):
            part *= self.roots[:, j, None]
        last = self.stack[-1]
        for rows in spans(len(last)):
            last[rows, : rows.start] = 0.0
            last[rows, rows] = np.triu(last[rows, rows])
        # M is lower triangular, as one reads it.
        return self.stack

    def slope(self, store: LatentStore, probabilities: Matrix, weights: Matrix, work: Workspace) -> Fill:
        """The derivative of the evidence by the entries of K, by tiles; the parts are used up."""
        total, shape = self.stack[-1], self.stack[-1].shape
        # What the coupling of the classes takes from the sum of the E.
        reduction, product = work.array("taken", shape), work.array("product", shape)
        reduction[...] = 0.0
        shares = 1.0 - probabilities - self.inverse_diagonal
        for j, part in enumerate(self.stack[:-1]):
            threads.checkpoint()
            lapack.solve_triangle(total, part)
            shares[:, j] += np.einsum("ij,ij->i", part, part)
            part *= self.roots[:, j, None]
            reduction += lapack.multiply(part, part.T, out=product)
        s = -0.5 * (shares - probabilities * shares.sum(axis=1, keepdims=True))
        right = weights + 2.0 * (s - self._times_q(store.product(s)))

        def weigh(rows: slice, columns: slice, out: Array) -> None:
            out[...] = total[columns, rows].T
            if rows == columns:
                above = np.triu_indices(len(out), 1)
                out.T[above] = out[above]
                np.fill_diagonal(out, self.total_diagonal[rows])
            out -= reduction[rows, columns]
            out *= -0.5
            out += 0.25 * (weights[rows] @ right[columns].T + right[rows] @ weights[columns].T)

        return weigh

    def _times_q(self, V: Matrix) -> Matrix:
        """``Q V`` for V (n, c), once the parts are ``E_j M^-T``."""
        whitened = np.stack([part.T @ v for part, v in zip(self.stack[:-1], V.T)], axis=1)
        shared = whitened.sum(axis=1)
        turned = self.stack[-1].T
        own = [blas.dtrmv(turned, z, lower=1) for z in whitened.T]
        return np.stack([y - part @ shared for y, part in zip(own, self.stack[:-1])], axis=1)


def _spread(store: LatentStore, root: Vector, out: Matrix, total: Matrix) -> None:
    """Write ``B^-1 D^1/2``, which the store has above its diagonal, and add ``D^1/2 B^-1 D^1/2`` to ``total``."""
    strips = spans(len(store))
    for number, rows in enumerate(strips):
        for columns in strips[number:]:
            tile = np.empty((rows.stop - rows.start, columns.stop - columns.start))
            store.upper_tile(rows, columns, tile)
            out[rows, columns] = tile * root[columns]
            out[columns, rows] = tile.T * root[rows]
    for rows in strips:
        total[rows] += root[rows, None] * out[rows]
