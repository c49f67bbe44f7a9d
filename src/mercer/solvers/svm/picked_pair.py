"""The C-SVC of two classes on a stored matrix: steps in float64 on rows that are copied from it.

A row is copied when a step first needs it, and then also serves the certificate; most rows are never copied.
"""

from __future__ import annotations

import numpy as np

from mercer._types import Array, Vector
from mercer.engine.tiles import scratch_tile
from mercer.gram.hold import whole_matrix
from mercer.gram.protocol import GramMatrix
from mercer.loops.box import BoxWeights
from mercer.loops.joined import pick_rows, solve_picked
from mercer.loops.picked import PickedRows
from mercer.loops.smo import StepRoom
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.joined_pair import PairMatrix


class PickedPair(PairMatrix):
    """The matrix of two classes as a part of one that is stored.

    Its rows are in work memory of the thread: it is valid until the same thread makes another one.

    Parameters
    ----------
    gram : GramMatrix
        The kernel matrix of the two classes, (q, q), which is stored.
    sizes : tuple of int
        Their rows.

    Examples
    --------
    >>> from mercer.solvers.svm.step_rule import StepRule
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.solver import Start
    >>> pair = PickedPair(PrecomputedGram(np.eye(2)), (1, 1))
    >>> pair.solve(np.full(2, 10.0), StepRule(1e-3, "kkt", 100, True, True), Start()).value.beta
    array([ 1., -1.])
    """

    def __init__(self, gram: GramMatrix, sizes: tuple[int, int]) -> None:
        super().__init__(sizes)
        self._gram = gram
        stored = gram.stored()
        assert stored is not None
        q = gram.shape[0]
        K = scratch_tile("picked rows", (q, q), np.dtype(np.float64))
        self._rows = PickedRows(K, np.zeros(q, dtype=bool), *stored)
        self._single: Array | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all stored arrays."""
        return 8 * len(self._rows.K) * int(np.count_nonzero(self._rows.present))

    def matrix(self) -> Array:
        """The whole matrix in float32, for :class:`mercer.solvers.svm.smo.SMO`, copied once for all bounds."""
        if self._single is None:
            with np.errstate(over="ignore"):
                self._single = whole_matrix(self._gram, np.float32)
        return self._single

    def _product(self, weights: Vector) -> Vector:
        """``K weights`` in float64."""
        support = np.flatnonzero(weights)
        pick_rows(self._rows, support)
        product = np.zeros(len(weights))
        subtract_rows(product, self._rows.K, support, -weights[support])
        return product

    def _steps(self, F: Vector, weights: BoxWeights, tol: float) -> int:
        work = scratch_tile("steps", (6, len(F)), np.dtype(np.float64))
        work[0] = F
        # Room for the rounding of sums in another order.
        steps: int = solve_picked(self._rows, work[:2], StepRoom.of(work[2:]), weights, 0.999 * tol)
        return steps
