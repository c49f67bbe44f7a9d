"""How well a kernel matrix agrees with targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.engine import threads, tiles
from mercer.engine.progress import Progress
from mercer.engine.tiles import Fill
from mercer.kernels.inputs import Rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.plan import Plan, check_finite

# The sum of the squares of K is itself squared.
_LARGEST = float(np.sqrt(np.finfo(float).max))
# Columns from which the size of the means of the rows is estimated.
_FIRST = 64
# Units of rounding of the entries, above which what is left of a matrix is more than their rounding.
_ROUNDING = 1000.0


def alignment(K: Any, y: Any, X: Any = None, *, n_jobs: int | None = None) -> float:
    r"""The centred alignment of a kernel with targets: the cosine of the angle between two centred matrices.

    .. math:: A = \frac{\langle H K H, Y Y^\top \rangle}{\|H K H\| \, \|H Y Y^\top H\|}, \qquad H = I - 1 1^\top / n

    Parameters
    ----------
    K : ndarray of shape (n, n), Gram or Kernel
        The kernel matrix, or a kernel, which needs ``X``. A lazy one is evaluated by tiles, once.
    y : array-like of shape (n,) or (n, t)
        Targets Y. Numbers are used directly; labels that are not numbers become one column of zeros and ones per
        class.
    X : array-like of shape (n, d), optional
        Rows, for a kernel.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Returns
    -------
    float
        Between 0 and 1 for a positive semi-definite K.

    Raises
    ------
    DataError, ParameterError
        If K is not square, y has another length, there are fewer than two rows, an entry is not finite, or K or y
        is constant, so that it is zero once centred.

    References
    ----------
    C. Cortes, M. Mohri and A. Rostamizadeh, "Algorithms for learning kernels based on centered alignment" (2012),
    definition 4.

    Examples
    --------
    >>> from mercer.kernels import RBF, alignment
    >>> y = [-1, -1, 1, 1]
    >>> round(alignment(RBF(1.0), y, [[0.0], [0.5], [3.0], [3.5]]), 4)
    0.9958
    >>> round(alignment(RBF(1.0), y, [[0.0], [3.0], [0.5], [3.5]]), 4)
    0.0569
    """
    fill, n, dtype, kernel = _source(K, X)
    Y = _centred_targets(y, n)
    V = np.column_stack([np.ones(n), Y])
    shift = _shift(fill, n, np.dtype(dtype))
    products, squares, raw = _moments(fill, n, np.dtype(dtype), V, shift, n_jobs)
    if kernel is not None:
        check_finite(products, kernel)
    elif not np.isfinite(products).all():
        raise DataError("K has entries that are not finite; numpy.isfinite shows where they are.")
    if not raw < _LARGEST:
        raise DataError("the squares of the entries of K overflow; multiply the kernel by a small number.")
    sums = products[:, 0]
    norm = squares - 2 * float(sums @ sums) / n + (float(sums.sum()) / n) ** 2
    targets = float(np.linalg.norm(Y.T @ Y))
    # What rounding leaves of a matrix that is constant, or nearly.
    if norm <= (_ROUNDING * float(np.finfo(dtype).eps)) ** 2 * raw:
        raise DataError(
            "K is constant, so it is zero once centred: the kernel does not distinguish the rows; choose another "
            "kernel."
        )
    return float(np.vdot(Y, products[:, 1:])) / (norm**0.5 * targets)


def _source(K: Any, X: Any) -> tuple[Fill, int, DTypeLike, Kernel | None]:
    """The function that fills tiles, the number of rows, the precision, and the kernel if there is one."""
    if isinstance(K, Kernel):
        if X is None:
            raise ParameterError(f"the alignment of {K!r} needs rows; pass X.")
        rows = Rows(X)
        plan = Plan(K, rows, rows)
        plan.prepare()
        return plan.fill, rows.n, plan.dtype, K
    if X is not None:
        raise ParameterError("X applies only to a kernel; leave it out for a matrix.")
    if hasattr(K, "fill") and hasattr(K, "symmetric"):
        if K.shape[0] != K.shape[1]:
            raise DataError(f"K must be square, but has the shape {K.shape}.")
        return K.fill, K.shape[0], K.dtype, getattr(K, "kernel", None)
    matrix = np.asarray(K)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiub":
        raise DataError(f"K must be a square array of numbers, but is one of {matrix.dtype} of shape {matrix.shape}.")
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    # An alignment does not depend on the scale; a power of two near that of K keeps squares in range.
    power = -int(np.frexp(max(matrix.max(initial=0.0), -matrix.min(initial=0.0)))[1])

    def copy(rows: slice, columns: slice, out: Array) -> None:
        np.ldexp(matrix[rows, columns], power, out=out)

    return copy, len(matrix), matrix.dtype, None


def _centred_targets(y: Any, n: int) -> Array:
    Y = np.asarray(y)
    if Y.ndim not in (1, 2) or len(Y) != n:
        raise DataError(f"K has {n} rows, but y has the shape {Y.shape}; pass one target for each row.")
    if n < 2:
        raise DataError(f"an alignment needs at least two rows, but K has {n}.")
    Y = _as_numbers(Y)
    if not np.isfinite(Y).all():
        raise DataError("Input y contains NaN or infinity; drop these rows.")
    # Nor on that of the targets.
    Y = Y / max(float(np.abs(Y).max(initial=0.0)), np.finfo(float).tiny)
    centred = Y - Y.mean(axis=0)
    if not (np.abs(centred).max(initial=0.0) > 8 * np.finfo(float).eps * np.abs(Y).max(initial=0.0)):
        raise DataError("y is the same in every row, so the alignment is not defined.")
    return centred


def _as_numbers(Y: np.ndarray) -> Array:
    """Targets as columns of numbers; labels as zeros and ones, a column a class."""
    try:
        return Y.astype(np.float64).reshape(len(Y), -1)
    except (TypeError, ValueError) as error:
        if Y.ndim != 1 or any(label is None for label in Y.tolist()):
            raise DataError("y must be numbers, or one-dimensional labels without missing values.") from error
    codes = np.unique(Y.astype(str), return_inverse=True)[1]
    return (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)


def _shift(fill: Fill, n: int, dtype: np.dtype) -> Array:
    r"""Numbers a with which :math:`K - a 1^\top - 1 a^\top`, which is the same when it is centred, has no large mean.

    They are those of the first columns. Without them a wide kernel, all of whose values are near 1, would lose
    precision when it is centred.
    """
    first = slice(0, min(n, _FIRST))
    a = np.empty(n)
    for rows in tiles.spans(n):
        with tiles.scratch((rows.stop - rows.start, first.stop), dtype) as tile:
            fill(rows, first, tile)
            a[rows] = tile.mean(axis=1, dtype=np.float64)
    return (a - a[first].mean() / 2).astype(dtype)


def _moments(
    fill: Fill, n: int, dtype: np.dtype, V: Array, shift: Array, n_jobs: int | None
) -> tuple[Array, float, float]:
    r"""``K @ V`` and the sum of squares, both of :math:`K - a 1^\top - 1 a^\top`, and that of K; sums in float64."""
    strips = tiles.spans(n)
    out, squares, raw = np.zeros((n, V.shape[1])), np.zeros(len(strips)), np.zeros(len(strips))
    columns_of_V = np.ascontiguousarray(V, dtype)
    progress = Progress(len(strips), "alignment")

    def strip(number: int) -> Callable[[], None]:
        def work() -> None:
            rows = strips[number]
            for columns in strips:
                threads.checkpoint()
                with tiles.scratch((rows.stop - rows.start, columns.stop - columns.start), dtype) as tile:
                    fill(rows, columns, tile)
                    raw[number] += np.einsum("ij,ij->", tile, tile, dtype=np.float64)
                    tile -= shift[columns]
                    tile -= shift[rows, None]
                    out[rows] += tile @ columns_of_V[columns]
                    squares[number] += np.einsum("ij,ij->", tile, tile, dtype=np.float64)
            progress.advance()

        return work

    threads.run([strip(number) for number in range(len(strips))], n_jobs)
    return out, float(squares.sum()), float(raw.sum())
