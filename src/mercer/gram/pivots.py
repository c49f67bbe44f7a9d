"""Randomly pivoted Cholesky: a factor of low rank of a positive semi-definite kernel matrix, from a few of its rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Positions, Vector
from mercer.engine import arrays, memory, threads
from mercer.engine.progress import Progress
from mercer.engine.routines import add_product, by_triangle
from mercer.engine.tiles import spans
from mercer.gram.protocol import GramMatrix

# Pivots are proposed by the tenth of their number, within these bounds.
_SHARE, _FEWEST, _MOST = 10, 16, 512
# Columns of the factor's transpose that one task updates.
_WIDE = 1024
# An update of fewer multiplications runs in this thread.
_ALONE = 2**21
# This many roundings of K_ii count as a residual of 0.
_ROUNDINGS = 32
# Outside of this range of exponents of its largest entry, K is scaled to the upper one: small entries stay numbers.
_LOW, _HIGH = -500, 500


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """A part ``F F^T`` of a positive semi-definite matrix K, equal to it in the rows and columns of the pivots.

    Attributes
    ----------
    pivots : ndarray of int of shape (r,)
        In the order in which they were drawn.
    factor : ndarray of shape (n, r)
        F, in float64; its rows at the pivots are a lower triangular matrix.
    residual : ndarray of shape (n,)
        The diagonal of ``K - F F^T``; below 0 by rounding only if K is positive semi-definite.
    """

    pivots: Positions
    factor: Matrix
    residual: Vector

    @property
    def residual_trace(self) -> float:
        """The trace of ``K - F F^T``."""
        return float(self.residual.sum())


def randomly_pivoted_cholesky(
    gram: GramMatrix,
    most: int,
    random: np.random.RandomState,
    stack: ExitStack,
    *,
    weight: Vector | None = None,
    enough: Callable[[int, float], bool] | None = None,
    verbose: bool | int = False,
) -> PivotedCholesky:
    r"""Factor K partially, with pivots drawn in proportion to the diagonal of what the previous ones leave of K.

    Parameters
    ----------
    gram : GramMatrix of shape (n, n)
        K, positive semi-definite. If it is not, the factor has fewer columns or none, and the residual is below 0.
    most : int
        Number of pivots. There are fewer only if these leave nothing of K but rounding.
    random : RandomState
    stack : ExitStack
        Keeps the memory of the factor, 8 n ``most`` bytes, reserved until it is closed.
    weight : ndarray of shape (n,), optional
        How many rows each row stands for, at least 0: pivots are drawn in proportion to the weighted diagonal.
    enough : callable, optional
        Ends the factorisation after a block of pivots if it returns True. Its arguments are the number of pivots so
        far, and by how much each one of the block has lowered the (weighted) trace of what is left. The latter is about
        the largest eigenvalue of that, since a pivot lowers the trace by ``tr(E^2) / tr(E)`` in expectation.
    verbose : bool or int, default=False
        Whether progress is written to standard error.

    Returns
    -------
    PivotedCholesky

    Raises
    ------
    MemoryBudgetError
        If the factor does not fit the memory budget.
    NumericalError
        If entries of K are not finite.

    Notes
    -----
    Pivots are proposed in blocks, drawn in proportion to the residual diagonal u at the beginning of a block. One at a
    time, a proposal s is accepted with probability :math:`d_s / u_s`, where d is the diagonal after those accepted
    before it. The accepted pivots have the same distribution as if each had been drawn from d, but F grows by blocks,
    in products of matrices. The factor takes :math:`n r^2` operations and r rows of K.

    The bits of the result do not depend on the number of threads.

    References
    ----------
    Y. Chen, E. Epperly, J. Tropp, R. Webber, "Randomly pivoted Cholesky: Practical approximation of a kernel matrix
    with few entry evaluations" (2023); E. Epperly, J. Tropp, R. Webber, "Embrace rejection: Kernel matrix approximation
    by accelerated randomly pivoted Cholesky" (2024).

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> with ExitStack() as stack:
    ...     result = randomly_pivoted_cholesky(PrecomputedGram(x @ x.T), 2, np.random.RandomState(0), stack)
    >>> result.factor.round(9).tolist(), result.residual_trace
    ([[1.0], [2.0], [3.0]], 0.0)
    """
    n = gram.shape[0]
    most = min(most, n)
    size = _proposals(most)
    stack.enter_context(memory.reserve(8 * n * most, f"{most:,} columns of the Cholesky factor of {n:,} rows"))
    # Entries in another precision are made beside the factor.
    nbytes = _block_bytes(most) + (0 if gram.dtype == np.float64 else gram.dtype.itemsize * n * size)
    with threads.one_blas_thread(), memory.reserve(nbytes, f"a block of {size} proposed pivots"):
        elimination = _Elimination(gram, most, size, weight)
        progress = Progress(most, "pivots", verbose)
        while elimination.is_unfinished():
            threads.checkpoint()
            before = elimination.trace
            count = elimination.extend(random)
            progress.advance(count)
            fall = (before - elimination.trace) / max(count, 1)
            if enough is not None and count and enough(elimination.rank, fall):
                break
    return elimination.result()


def bytes_needed(n: int, most: int) -> int:
    """Return the memory that the factorisation takes.

    >>> bytes_needed(100, 10)
    13376
    """
    return 8 * n * most + _block_bytes(most)


def _proposals(most: int) -> int:
    return min(max(_FEWEST, most // _SHARE), _MOST)


def _block_bytes(most: int) -> int:
    """Of the columns of proposals, what is left between them and its factor."""
    size = _proposals(most)
    return 8 * size * (most + 2 * size)


class _Elimination:
    """The rows of ``F^T`` so far, and the diagonal that they leave.

    Both are of K times a power of 4, which differs from 1 where sums of squares would over- or underflow.
    """

    def __init__(self, gram: GramMatrix, most: int, size: int, weight: Vector | None) -> None:
        diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
        _require_finite(diagonal)
        exponent = int(np.frexp(diagonal.max(initial=0.0))[1])
        self._exponent = 0 if _LOW < exponent < _HIGH else 2 * ((exponent - _HIGH) // 2)
        self._gram, self._size, self._weight = gram, size, weight
        self._rows = arrays.empty((most, len(diagonal)), np.float64)
        self._pivots: list[int] = []
        self._left = np.ldexp(diagonal, -self._exponent)
        self._diagonal = np.maximum(self._left, 0.0)
        # A share of the diagonal, because the factor's rounding errors are in proportion to it in each row.
        self._rounding = _ROUNDINGS * float(np.finfo(gram.dtype).eps)
        self._weigh()

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return len(self._pivots)

    @property
    def trace(self) -> float:
        """The weighted trace of what is left of K itself."""
        return float(np.ldexp(self._chances.sum(), self._exponent))

    def is_unfinished(self) -> bool:
        """Whether more pivots are requested, and there is one."""
        return len(self._pivots) < len(self._rows) and bool(self._chances.any())

    def result(self) -> PivotedCholesky:
        """The factor and the residual diagonal of K itself."""
        rows = self._rows[: len(self._pivots)]
        if self._exponent:
            np.ldexp(rows, self._exponent // 2, out=rows)
        residual = np.ldexp(self._left, self._exponent)
        return PivotedCholesky(np.array(self._pivots, dtype=np.intp), rows.T, residual)

    def extend(self, random: np.random.RandomState) -> int:
        """Append the rows of the pivots that are accepted among one block of proposals; return their number."""
        sums = np.cumsum(self._chances)
        places = np.searchsorted(sums, random.random_sample(self._size) * sums[-1], side="right")
        # A product that is rounded up to the last sum belongs to the last row with a positive chance.
        places = np.minimum(places, np.searchsorted(sums, sums[-1]))
        accepted, upper = self._thin(places, random.random_sample(self._size))
        self._append(places[accepted], upper)
        return len(accepted)

    def _entries(self, rows: Positions, columns: Positions | None, out: Matrix) -> None:
        """Write entries of the scaled matrix."""
        if self._gram.dtype == np.float64:
            self._gram.block(rows, columns, out)
        else:
            out[...] = self._gram.block(rows, columns)
        if self._exponent:
            np.ldexp(out, -self._exponent, out=out)

    def _thin(self, places: Positions, draws: Vector) -> tuple[list[int], Matrix]:
        """Return which proposals are accepted, and the triangular factor of what is left of K between them.

        The factor is the upper one: ``U^T U``.
        """
        count, size = len(self._pivots), len(places)
        between = np.empty((size, size))
        self._entries(places, places, between)
        known = self._rows[:count, places]
        between -= known.T @ known
        proposed = self._left[places]
        floor = self._rounding * self._diagonal[places]
        left = proposed.copy()
        upper = np.zeros((size, size))
        accepted: list[int] = []
        for i in range(size):
            if not left[i] > floor[i] or draws[i] * proposed[i] >= left[i]:
                continue
            r, pivot = len(accepted), float(np.sqrt(left[i]))
            row = (between[i] - upper[:r, i] @ upper[:r]) / pivot
            row[i] = pivot
            upper[r] = row
            left -= row * row
            # The same row again has a residual of rounding.
            left[places == places[i]] = 0.0
            accepted.append(i)
            if count + len(accepted) == len(self._rows):
                break
        return accepted, np.ascontiguousarray(upper[: len(accepted), accepted])

    def _append(self, pivots: Positions, upper: Matrix) -> None:
        """Append ``U^-T (K_p - F_p F^T)`` to the rows of ``F^T``, for the rows p of the new pivots."""
        count, n = len(self._pivots), len(self._left)
        new = self._rows[count : count + len(pivots)]
        self._entries(pivots, None, new)
        known = np.ascontiguousarray(self._rows[:count, pivots])

        def update(columns: slice) -> Callable[[], None]:
            def work() -> None:
                part = new[:, columns]
                if count:
                    add_product(part, known, self._rows[:count, columns], alpha=-1.0, left_turned=True)
                by_triangle("trsm", upper, part, transposed=True)
                self._left[columns] -= np.einsum("ij,ij->j", part, part)

            return work

        alone = len(pivots) * (count + len(pivots)) * n < _ALONE
        threads.run([update(columns) for columns in spans(n, _WIDE)], 1 if alone else None)
        self._pivots += pivots.tolist()
        self._left[self._pivots] = 0.0
        self._weigh()

    def _weigh(self) -> None:
        """Set the chances of the rows: none if their residual may be rounding, whose size residuals below 0 show."""
        _require_finite(self._left)
        below = self._left < 0
        excess, limit = -self._left[below], self._diagonal[below]
        shares = np.divide(excess, limit, out=np.ones_like(excess), where=excess < limit)
        self._rounding = max(self._rounding, 2.0 * float(shares.max(initial=0.0)))
        self._chances = np.where(self._left > self._rounding * self._diagonal, self._left, 0.0)
        if self._weight is not None:
            self._chances *= self._weight


def _require_finite(diagonal: Vector) -> None:
    if not np.isfinite(diagonal).all():
        raise NumericalError(
            f"kernel values of row {int(np.flatnonzero(~np.isfinite(diagonal))[0])} are NaN or infinite. Scale the "
            "columns of X, if it has columns (sklearn.preprocessing.StandardScaler), or choose a kernel or parameters "
            "with smaller values."
        )
