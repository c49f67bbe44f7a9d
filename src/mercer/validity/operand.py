"""What is checked: a Gram matrix of any kind, in float64, as an array or as an operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from mercer._errors import DataError, KernelValueError
from mercer._types import AnyArray
from mercer.engine.progress import Progress
from mercer.gram import Gram, PrecomputedGram, precomputed
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel, as_kernel

# Entries that are compared for symmetry where a matrix is too large to compare all of them.
_SAMPLE = 512
_ROWS = 512


@dataclass(frozen=True)
class Asymmetry:
    """The worst ``|K_ij - K_ji|``, where it is, and whether only a sample of the rows was compared."""

    worst: float
    at: tuple[int, int] | None
    sampled: bool


@dataclass(frozen=True)
class Operand:
    """A square matrix, lazy or not."""

    gram: GramMatrix
    declared: str | None

    @classmethod
    def of(cls, source: Any, X: Any = None) -> Operand:
        """From a kernel with rows, a lazy Gram matrix, or an array.

        Raises
        ------
        DataError
            If it is not a square, non-empty matrix of finite real numbers, or ``X`` is missing or superfluous.
        """
        if X is not None:
            if isinstance(source, (GramMatrix, np.ndarray)):
                raise DataError(
                    f"X applies only to a kernel, but this {type(source).__name__} is a matrix; leave X out."
                )
            source = Gram(as_kernel(source, X=X).with_data(X), X)
        elif isinstance(source, Kernel) or callable(source) or isinstance(source, str):
            raise DataError(f"a kernel has a Gram matrix only on rows of data; pass X as well: check({source!r}, X).")
        declared = source.kernel.definiteness if isinstance(source, Gram) else None
        if isinstance(source, Gram):
            # One value a pair would hide that a function is not symmetric.
            source = source.in_both_orders()
        gram = source if isinstance(source, GramMatrix) else PrecomputedGram(_as_matrix(source))
        if gram.shape[0] != gram.shape[1]:
            raise DataError(
                f"the matrix must be square, k(x_i, x_j) for all pairs of rows, but has shape {gram.shape}."
            )
        if gram.shape[0] == 0:
            raise DataError("the matrix is empty: its shape is (0, 0). At least one row is needed.")
        return cls(gram, declared)

    @property
    def n(self) -> int:
        return self.gram.shape[0]

    @property
    def dtype(self) -> np.dtype:
        return self.gram.dtype

    def dense(self) -> AnyArray:
        """The matrix in float64, with ``K_ij`` and ``K_ji`` evaluated apart; not to be written to."""
        stored = self.gram.stored_array()
        if stored is not None:
            K = stored.astype(np.float64, copy=False)
        else:
            everything = np.arange(self.n)
            # Two arrays of positions: for one and the same the engine would mirror one half.
            K = self.gram.block(everything, everything.copy()).astype(np.float64, copy=False)
        _check_finite(K)
        return K

    def asymmetry(self, rng: np.random.Generator) -> Asymmetry:
        """The worst asymmetry of a large matrix: of all of an array, of a sample of a lazy one."""
        stored = self.gram.stored_array()
        if stored is not None:
            return worst_asymmetry(stored)
        sample = rng.permutation(self.n)[: 2 * _SAMPLE]
        rows, columns = np.array_split(sample, 2)
        block, back = self.gram.block(rows, columns), self.gram.block(columns, rows).T
        _check_finite(block)
        _check_finite(back)
        difference = np.abs(block - back)
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        worst = float(difference[i, j])
        return Asymmetry(worst, (int(rows[i]), int(columns[j])) if worst else None, True)

    def operator(self, symmetric: bool, verbose: bool = False) -> LinearOperator:
        """Multiplication by ``(K + K') / 2`` in float64."""
        gram, stored = self.gram, self.gram.stored_array()
        progress = Progress(None, "products with the Gram matrix", verbose)

        def multiply(V: AnyArray) -> AnyArray:
            V = V.reshape(self.n, -1)
            product = gram @ V if stored is None else _product(stored, V, symmetric)
            if not np.isfinite(product).all():
                i, j = np.argwhere(~np.isfinite(product))[0]
                raise KernelValueError(
                    f"the matrix holds NaN, an infinity or numbers too large to add up in row {i}: its product with "
                    f"a vector is {product[i, j]}. Scale the columns of X (sklearn.preprocessing.StandardScaler)."
                )
            progress.advance()
            return product

        return LinearOperator((self.n, self.n), matvec=multiply, matmat=multiply, dtype=np.float64)


def worst_asymmetry(K: AnyArray) -> Asymmetry:
    """Of an array."""
    worst, i, j = precomputed.worst_asymmetry(K)
    return Asymmetry(worst, (i, j) if worst else None, False)


def _strips(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS))


def _product(K: AnyArray, V: AnyArray, symmetric: bool) -> AnyArray:
    """``(K + K') V / 2``, a few rows at a time, so that no float64 copy of a float32 matrix is made."""
    out = np.zeros(V.shape)
    for rows in _strips(len(K)):
        strip = K[rows].astype(np.float64, copy=False)
        out[rows] += strip @ V
        if not symmetric:
            out += strip.T @ V[rows]
    return out if symmetric else out / 2


def _as_matrix(source: Any) -> AnyArray:
    if sp.issparse(source):
        raise DataError("the matrix is sparse; pass it as an array: K.toarray().")
    K = np.asarray(source)
    if K.ndim != 2:
        raise DataError(f"the matrix must have two dimensions, but has shape {K.shape}.")
    if K.dtype.kind not in "biuf":
        raise DataError(f"the matrix must hold real numbers, but holds {K.dtype}; convert it to float64.")
    K = K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)
    for rows in _strips(len(K)):
        _check_finite(K[rows], rows.start)
    return K


def _check_finite(K: AnyArray, first_row: int = 0) -> None:
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise KernelValueError(
            f"the matrix has {K[i, j]} in row {i + first_row}, column {j}; every entry must be finite. Check those "
            "two rows of X, or scale its columns (sklearn.preprocessing.StandardScaler)."
        )
