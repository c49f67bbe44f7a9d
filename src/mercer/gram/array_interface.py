"""The interface through which NumPy uses a Gram matrix: conversion to an array, and products from the left."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mercer._errors import DataError
from mercer._types import Array, Positions


class ArrayInterface(abc.ABC):
    """``np.asarray(K)`` and ``V @ K`` for a matrix that has ``K.T``, ``K @ V``, a shape and a dense form."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    @abc.abstractmethod
    def T(self) -> Any:
        """The transposed matrix, in the same form; nothing is computed."""

    @abc.abstractmethod
    def __matmul__(self, V: Any) -> Array:
        """``K @ V`` for ``V`` of shape ``(m,)`` or ``(m, k)``."""

    @abc.abstractmethod
    def _entries(self) -> tuple[Array, bool]:
        """All entries, and whether the array is new, so that its holder may change it."""

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The matrix as an array, within the memory budget; ``dtype`` and ``copy`` as in ``np.asarray``.

        Raises
        ------
        MemoryBudgetError
            If it would not fit the memory budget; raised before anything is allocated.
        ValueError
            With ``copy=False``, if the entries are not stored or have another dtype.
        """
        if copy is False and not self._is_stored(dtype):
            raise ValueError(
                "copy=False needs a stored array of that dtype, but the entries of this matrix must be computed or "
                "converted; use copy=None."
            )
        entries, new = self._entries()
        converted = entries if dtype is None else entries.astype(dtype, copy=False)
        return converted.copy() if copy and not new and converted is entries else converted

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Products, and sums and extremes over entries, as of the matrix; arithmetic by elements is an error.

        Raises
        ------
        MemoryBudgetError
            If the entries are needed and do not fit the memory budget.
        TypeError
            For arithmetic by elements, which would compute and store all of them without a request.
        """
        if ufunc is np.matmul and method == "__call__" and not options:
            left, right = inputs
            return left @ right if isinstance(left, ArrayInterface) else right.__rmatmul__(left)
        if method == "reduce":
            return ufunc.reduce(np.asarray(inputs[0]), *inputs[1:], **options)
        raise TypeError(
            f"numpy.{ufunc.__name__} works elementwise, but a {type(self).__name__} is not an array: its entries may "
            "be computed on demand. Pass the entries, numpy.asarray(K)."
        )

    def _is_stored(self, dtype: DTypeLike | None) -> bool:
        """Whether the entries are an array of that dtype."""
        return False

    def stored_array(self) -> Array | None:
        """The entries if they are stored in an array already; do not modify it."""
        return None

    def stored(self) -> tuple[Array, Positions] | None:
        """The array from which a symmetric matrix was taken, and the positions of its rows and columns in it."""
        return None

    def stored_is_finite(self) -> bool:
        """Whether all entries of a stored array are finite; False if no array is stored."""
        return False

    def stored_as(self, dtype: DTypeLike) -> Array | None:
        """The entries if they are stored in a C-ordered array of that precision already; do not modify it.

        Parameters
        ----------
        dtype : {float32, float64}

        Returns
        -------
        ndarray of shape (n, m) or None
        """
        return None

    def __rmatmul__(self, V: Any) -> Array:
        """``V @ K`` for ``V`` of shape ``(n,)`` or ``(k, n)``."""
        V = np.asarray(V)
        if V.ndim not in (1, 2) or V.shape[-1] != self.shape[0]:
            raise DataError(f"K has {self.shape[0]} rows, so an array of shape {V.shape} cannot multiply it.")
        product: Array = self.T @ V.T
        return product.T
