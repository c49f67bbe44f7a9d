r"""The span of support vectors: what a decision value loses when one of them is left out.

Let F be the rows with a weight between its bounds, and H the matrix of their optimality conditions,

.. math:: H = \begin{pmatrix} K_{FF} & 1 \\ 1^\top & 0 \end{pmatrix}

(without the last row and column where there is no offset). If all other rows keep their roles, the value of the
function at row p falls by :math:`\beta_p S_p^2` when its weight :math:`\beta_p` is taken away, where

.. math:: S_p^2 = \frac{1}{[H^{-1}]_{pp}} \quad (p \in F), \qquad
          S_p^2 = K_{pp} - v^\top H^{-1} v, \quad v = (K_{Fp}, 1) \quad (p \text{ at its bound})

(V. Vapnik and O. Chapelle, "Bounds on error expectation for support vector machines", Neural Computation 12, 2000).
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import scipy.linalg

from mercer._types import Matrix, Positions, Vector
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.gram.hold import reserve_square
from mercer.gram.protocol import GramMatrix

# What makes equal rows solvable, in units of the mean of the diagonal of K.
_JITTER = 1e-12


def squared_spans(
    gram: GramMatrix, free: Positions, bounded: Positions, *, offset: bool, n_jobs: int | None = None
) -> Vector:
    """Return ``S_p^2`` of all rows, (n,): 0 for rows without a weight.

    Infinite where the others do not determine the offset: of the only free row, and of every row if none is free.

    Parameters
    ----------
    gram : GramMatrix
        K, (n, n).
    free, bounded : ndarray of int
        Positions of the rows with a weight between its bounds, and at its bound.
    offset : bool
        Whether the function has an offset.
    n_jobs : int, optional

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> K = PrecomputedGram(np.diag([1.0, 1.0, 2.0]))
    >>> squared_spans(K, np.array([0, 1]), np.array([2]), offset=True).round(9).tolist()
    [2.0, 2.0, 2.5]
    """
    out = np.zeros(gram.shape[0])
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    if offset and not len(free):
        out[bounded] = np.inf
        return out
    if not len(free):
        out[bounded] = diagonal[bounded]
        return out
    with ExitStack() as stack, threads.workers(n_jobs):
        size = len(free) + int(offset)
        reserve_square(stack, size, 16, "the inverse of the matrix of the free support vectors")
        inverse = _inverse(np.array(gram.block(free, free), dtype=np.float64), offset)
        with np.errstate(divide="ignore"):
            curvature = inverse.diagonal()[: len(free)]
            # The only free row: rounding is what is left of 0.
            out[free] = np.inf if offset and len(free) == 1 else 1.0 / curvature
        for part in spans(len(bounded)):
            rows = bounded[part]
            v = np.ones((len(rows), size))
            v[:, : len(free)] = gram.block(rows, free)
            out[rows] = diagonal[rows] - np.einsum("ij,ij->i", v @ inverse, v)
    return np.maximum(out, 0.0)


def _inverse(K: Matrix, offset: bool) -> Matrix:
    """The inverse of H; a little jitter separates rows that are equal."""
    n = len(K)
    H = np.zeros((n + int(offset),) * 2)
    H[:n, :n] = K
    H[np.arange(n), np.arange(n)] += _JITTER * float(np.abs(K.diagonal()).mean())
    if offset:
        H[n, :n] = H[:n, n] = 1.0
    return np.asarray(scipy.linalg.inv(H, check_finite=False, overwrite_a=True))
