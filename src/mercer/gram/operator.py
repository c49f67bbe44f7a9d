"""The lazy Gram matrix: the only view that solvers have of kernels and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import LinearOperator

from mercer._errors import DataError
from mercer._types import Array, Matrix, Vector
from mercer.gram.array_interface import ArrayInterface
from mercer.gram.features import ExplicitFeatures, features_of_rows
from mercer.gram.linear import linear_product, worth_it
from mercer.kernels.base import LinearParts
from mercer.kernels.convert import as_kernel
from mercer.kernels.function import in_both_orders
from mercer.kernels.inputs import Index, Rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.plan import Plan, check_finite, diagonal
from mercer.kernels.stored_parts import StoredValues, Use
from mercer.kernels.vector.dot import Linear

# With this many columns, the product of two rows takes longer than the rest of the computation of an entry.
_EXPENSIVE_COLUMNS = 64


def as_index(index: Any, n: int, what: str) -> Index:
    """A slice with bounds, or an array of positions."""
    if index is None:
        return slice(0, n)
    if isinstance(index, slice):
        start, stop, step = index.indices(n)
        return slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
    positions = np.atleast_1d(np.asarray(index))
    if positions.dtype == bool and positions.shape == (n,):
        positions = np.flatnonzero(positions)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        raise DataError(
            f"{what} must be a slice, a list of whole numbers or a mask of length {n}, but are an array of "
            f"{positions.dtype} of shape {positions.shape}."
        )
    if positions.size and (positions.min() < -n or positions.max() >= n):
        raise DataError(f"{what} range from {positions.min()} to {positions.max()}, but there are only {n}.")
    positions = positions.astype(np.intp, copy=False)
    return np.where(positions < 0, positions + n, positions) if positions.size and positions.min() < 0 else positions


def check_factor(V: Any, m: int) -> np.ndarray:
    """``V`` as an array of real numbers that a matrix with ``m`` columns can multiply."""
    V = np.asarray(V)
    if V.ndim not in (1, 2) or V.shape[0] != m:
        raise DataError(f"K has {m} columns, so it cannot multiply an array of shape {V.shape}.")
    if V.dtype.kind not in "fiub":
        raise DataError(f"K multiplies arrays of real numbers, not of {V.dtype}.")
    return V


def _fits(V: np.ndarray, dtype: np.dtype) -> bool:
    """Whether the largest entry of every column is a number of a precision, and far above its smallest one."""
    if V.dtype == dtype or dtype == np.float64 or not V.size:
        return True
    info, largest = np.finfo(dtype), np.abs(V.astype(np.float64, copy=False)).max(axis=0)
    inside = (info.tiny / info.eps < largest) & (largest <= info.max)
    # A product with NaN or infinities is what it is in either precision.
    return bool((inside | (largest == 0) | ~np.isfinite(largest)).all())


class Gram(ArrayInterface):
    """The matrix ``K_ij = k(x_i, z_j)``, evaluated on demand and by tiles; nothing is stored.

    Parameters
    ----------
    kernel : Kernel, str, sklearn.gaussian_process.kernels.Kernel or callable
        As :func:`mercer.kernels.as_kernel` takes it; ``"rbf"`` is of the rate 1 / d.
    X : (n, d) array, sparse matrix, or other input of the kernel
    Z : the same, optional
        ``None`` stands for ``X`` itself; the matrix is then symmetric, which halves the work.
    dtype : {float32, float64}, optional
        Precision of the tiles; by default float32 if both inputs are float32, else float64.
    n_jobs : int, optional
        Worker threads. Results are bit-identical for any number of them.

    Raises
    ------
    DataError
        If the kernel is not defined on the data.
    ParameterError
        If there is no such kernel or precision.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gram, kernels
    >>> K = Gram(kernels.RBF(1.0), np.eye(3))
    >>> (K @ np.ones(3)).round(4).tolist()
    [1.7358, 1.7358, 1.7358]
    >>> K.shape, K.nbytes
    ((3, 3), 72)
    >>> np.asarray(K).shape, (np.ones(3) @ K).round(4).tolist()
    ((3, 3), [1.7358, 1.7358, 1.7358])
    """

    # Solvers ask for it several times, and user-defined functions may take long.
    _diagonal: Array | None = None

    def __init__(
        self, kernel: Any, X: Any, Z: Any = None, *, dtype: DTypeLike | None = None, n_jobs: int | None = None
    ) -> None:
        left = X if isinstance(X, Rows) else Rows(X)
        kernel = kernel if isinstance(kernel, Kernel) else as_kernel(kernel, X=left.root.raw)
        right = left if Z is None else Z if isinstance(Z, Rows) else Rows(Z)
        self._begin(Plan(kernel, left, right, dtype), n_jobs)
        self._plan.prepare()

    def _begin(self, plan: Plan, n_jobs: int | None) -> Self:
        self._plan, self.kernel, self.n_jobs = plan, plan.kernel, n_jobs
        return self

    def _of(self, plan: Plan) -> Gram:
        """Return the matrix of another plan with the same settings; that of this one has been checked."""
        return Gram.__new__(Gram)._begin(plan, self.n_jobs)

    @classmethod
    def of_checked(cls, kernel: Kernel, X: Any, Z: Any, dtype: DTypeLike | None, n_jobs: int | None) -> Self:
        """Return the matrix of rows that a learner has checked, which are prepared for the first entry.

        Parameters
        ----------
        kernel : Kernel
        X, Z : Rows or checked rows
            None as Z: the same rows.
        dtype : dtype or None
        n_jobs : int or None
            As for the class.

        Returns
        -------
        Gram
        """
        left = X if isinstance(X, Rows) else Rows(X)
        plan = Plan(kernel, left, left if Z is None else Rows(Z), dtype)
        plan.prepare_for_workers()
        return cls.__new__(cls)._begin(plan, n_jobs)

    @property
    def shape(self) -> tuple[int, int]:
        return self._plan.shape

    @property
    def dtype(self) -> np.dtype:
        """The precision of the entries."""
        return self._plan.dtype

    @property
    def symmetric(self) -> bool:
        """Whether both sides are the same rows."""
        return self._plan.symmetric

    @property
    def tile(self) -> int:
        """Rows and columns of a tile."""
        return self._plan.tile

    @property
    def nbytes(self) -> int:
        """Size of the whole matrix in bytes."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def expensive(self) -> bool:
        """Whether an entry takes much longer to compute than to read from memory."""
        return self._plan.left.width >= _EXPENSIVE_COLUMNS

    @property
    def cheap(self) -> bool:
        """Whether an entry takes less time to compute than to store it and to read it again."""
        return self.kernel._is_cheap(self._plan.left)

    @property
    def width(self) -> float:
        """How many numbers of a row the computation of an entry reads, about."""
        return self._plan.left.width

    def __repr__(self) -> str:
        return f"Gram({self.kernel!r}, {self.shape[0]} x {self.shape[1]}, {self.dtype})"

    def __matmul__(self, V: Any) -> Array:
        """``K @ V`` for ``V`` of shape ``(m,)`` or ``(m, k)``; sums over tiles in float64."""
        V = check_factor(V, self.shape[1])
        result_dtype = np.result_type(self.dtype, V.dtype if V.dtype == np.float32 else np.float64)
        columns = np.ascontiguousarray(V if V.ndim == 2 else V[:, None])
        if not _fits(columns, self.dtype):
            return self.astype(np.float64) @ V
        columns = columns.astype(self.dtype, copy=False)
        left, right = self._linear_parts()
        out: Array
        if left is not None and right is not None and worth_it(left, right):
            out = linear_product(left, right, columns.astype(np.float64, copy=False), self.n_jobs)
        else:
            out = self._plan.product(columns, self.n_jobs)
        if np.isfinite(columns).all():
            check_finite(out, self.kernel)
        return out.reshape(self.shape[0], *V.shape[1:]).astype(result_dtype, copy=False)

    def pull_residuals(
        self, V: Matrix, targets: Matrix, weights: Vector, n_jobs: int | None
    ) -> tuple[Matrix, Vector] | None:
        """Return ``K^T U`` with ``U = weights * (targets - K V)``, and the weighted squares of what is left.

        The prediction of targets beyond the columns of V is 0. None if no compiled loop evaluates K.

        Parameters
        ----------
        V : ndarray of shape (m, k)
        targets : ndarray of shape (n, t)
        weights : ndarray of shape (n,)
        n_jobs : int, optional

        Returns
        -------
        tuple of ndarray of shapes (m, t) and (t,), or None
        """
        program = self._plan.program(self.dtype)
        if program is None:
            return None
        return program.sweep(np.ascontiguousarray(V, self.dtype), targets, weights, n_jobs)

    def _linear_parts(self) -> tuple[LinearParts | None, LinearParts | None]:
        plan = self._plan
        left = plan.kernel._linear_parts(plan.left)
        return left, left if plan.symmetric or left is None else plan.kernel._linear_parts(plan.right)

    def dense(self, out: Array | None = None) -> Array:
        """Return the whole matrix as an array.

        Parameters
        ----------
        out : ndarray of shape (n, m), optional
            Written to and returned.

        Returns
        -------
        ndarray of shape (n, m)

        Raises
        ------
        MemoryBudgetError
            If the matrix does not fit the memory budget; raised before anything is allocated.
        """
        return self._plan.dense(out, self.n_jobs)

    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array:
        """Return the dense submatrix at some rows and columns.

        Parameters
        ----------
        rows, columns : slice or array-like of int, optional
            Positions; None for all.
        out : ndarray, optional
            Written to and returned.

        Returns
        -------
        ndarray of shape (len(rows), len(columns))
        """
        return self.restrict(rows, columns).dense(out)

    def fill(self, rows: Index, columns: slice, out: Array) -> None:
        """Write the submatrix at some rows and columns into an array.

        It is evaluated in this thread as one tile, without checks.

        Parameters
        ----------
        rows : slice or ndarray of int
        columns : slice
        out : ndarray of shape (len(rows), len(columns))
        """
        self._plan.fill(rows, columns, out)

    def rows(self, index: Any) -> Array:
        """Return whole rows.

        Parameters
        ----------
        index : slice or array-like of int
            Their positions.

        Returns
        -------
        ndarray of shape (len(index), m)
        """
        return self.block(index, None)

    def restrict(self, rows: Any = None, columns: Any = None) -> Gram:
        """Return the lazy submatrix at some rows and columns.

        Parameters
        ----------
        rows, columns : slice or array-like of int, optional
            Positions; None for all. The submatrix is symmetric if both are the same object.

        Returns
        -------
        Gram
        """
        n, m = self.shape
        same = self.symmetric and rows is columns
        left = self._plan.left.take(as_index(rows, n, "row positions"))
        right = left if same else self._plan.right.take(as_index(columns, m, "column positions"))
        return self._of(self._plan.between(left, right))

    def diagonal(self) -> Array:
        """Return ``K_ii`` in float64, without the rest of the matrix."""
        if not self.symmetric:
            raise DataError("only the Gram matrix of rows with themselves has a diagonal k(x, x).")
        if self._diagonal is None:
            self._diagonal = diagonal(self.kernel, self._plan.left)
            check_finite(self._diagonal, self.kernel)
        return self._diagonal.copy()

    def astype(self, dtype: DTypeLike) -> Gram:
        """Return the same matrix with tiles of another precision.

        Parameters
        ----------
        dtype : {float32, float64}

        Returns
        -------
        Gram
        """
        plan, dtype = self._plan, np.dtype(dtype)
        if dtype == plan.dtype:
            return self
        plan = Plan(plan.kernel, plan.left, plan.right, dtype, plan.instead)
        plan.prepare_for_workers()
        return self._of(plan)

    def explicit_features(self, most: int, most_dense: int | None = None) -> ExplicitFeatures | None:
        """Return F, (n, p), with ``K = F F^T``; None if K is not known to have one of at most ``most`` columns.

        Linear and polynomial kernels have one, kernels that count features of objects, and sums and multiples of these,
        on chosen columns or normalised. None as well where F is a new array that does not fit the memory budget.

        Parameters
        ----------
        most : int
        most_dense : int, optional
            The most columns of a dense F, whose products read all entries; ``most`` by default.

        Returns
        -------
        ExplicitFeatures or None
        """
        plan = self._plan
        if not self.symmetric or plan.instead or self.kernel.definiteness != "positive":
            return None
        raw = plan.left.root.raw
        # Features of numbers are dense, those of objects are sparse.
        if most_dense is not None and isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
            most = min(most, most_dense)
        matrix = self.kernel._explicit_features(plan.left, most)
        if matrix is None:
            return None
        given = plan.left.vectors if isinstance(self.kernel, Linear) else None
        return features_of_rows(matrix, given)

    def leading(self) -> Gram | None:
        """Return a much cheaper matrix that is close to this one, or None if there is none.

        Rows of many columns that vary in few directions are compared in these; see :mod:`mercer.kernels.leading`.
        """
        plan = self._plan.leading() if self.expensive else None
        return None if plan is None else self._of(plan)

    def from_stored(self, values: Mapping[Use, Array]) -> Gram:
        """Return the same matrix, evaluated from stored values of parts of its kernel.

        Parameters
        ----------
        values : dict of ndarray of shape (n, n)
            By the statistics that the parts compute: see :mod:`mercer.kernels.stored_parts`.

        Returns
        -------
        Gram

        Examples
        --------
        >>> from mercer.kernels import Subsequence
        >>> from mercer.kernels.stored_parts import expensive_parts
        >>> words, kernel = ["gram", "gramme", "green"], Subsequence(2).normalized()
        >>> stored = {use: part(words) for use, part in expensive_parts(kernel).items()}
        >>> bool((Gram(kernel, words).from_stored(stored).dense() == kernel(words)).all())
        True
        """
        plan = self._plan
        instead = {use: StoredValues(array) for use, array in values.items()}
        return self._of(Plan(plan.kernel, plan.left, plan.right, plan.dtype, instead))

    def in_both_orders(self) -> Gram:
        """Return the same matrix, for which functions of two rows are called for ``(x, z)`` and for ``(z, x)``.

        Otherwise the value of one order counts for both, which hides that a function is not symmetric.
        """
        plan = self._plan
        instead = {**plan.instead, **in_both_orders(plan.kernel._uses(()))}
        return self._of(Plan(plan.kernel, plan.left, plan.right, plan.dtype, instead))

    @property
    def T(self) -> Gram:
        """The transposed matrix, lazy as well; the matrix itself if it is symmetric."""
        return self if self.symmetric else self._of(self._plan.between(self._plan.right, self._plan.left))

    def _entries(self) -> tuple[Array, bool]:
        return self.dense(), True

    def as_linear_operator(self) -> LinearOperator:
        """Return the matrix as an operator for SciPy's iterative solvers."""
        transposed = self.T
        return LinearOperator(
            self.shape,
            dtype=self.dtype,
            matvec=self.__matmul__,
            matmat=self.__matmul__,
            rmatvec=transposed.__matmul__,
            rmatmat=transposed.__matmul__,
        )
