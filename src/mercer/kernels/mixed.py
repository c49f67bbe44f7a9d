"""Kernels on rows that mix types: a kernel for each column, or group of columns, of a table."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

from mercer._errors import ParameterError
from mercer.kernels.kernel import Kernel


def product_of(columns: Mapping[Any, Kernel]) -> Kernel:
    """``k(x, z) = prod_c k_c(x_c, z_c)``: rows are similar if they are similar in every group of columns.

    Parameters
    ----------
    columns : mapping of column to kernel
        A key is the name or the position of a column, or a tuple of several, for a kernel on numbers.

    Returns
    -------
    Kernel
        The product of ``kernel.on(column)``. Such kernels can also be added: ``Spectrum(3).on(0) + RBF(1.0).on(1)``.

    Raises
    ------
    ParameterError
        If ``columns`` is empty or not a mapping, or a value is not a kernel.

    Examples
    --------
    >>> from mercer.kernels import RBF, Spectrum
    >>> k = product_of({"message": Spectrum(2).normalized(), ("hour", "length"): RBF(2.0)})
    >>> k
    Spectrum(2).normalized().on(['message']) * RBF(2.0).on(['hour', 'length'])
    >>> import pandas as pd
    >>> k(pd.DataFrame({"message": ["abab", "ba"], "hour": [1, 2], "length": [4, 2]})).round(4).tolist()
    [[1.0, 0.2394], [0.2394, 1.0]]
    """
    if not isinstance(columns, Mapping) or not columns:
        raise ParameterError(f"product_of takes a kernel for each column, as {{column: kernel}}, but got {columns!r}.")
    for column, kernel in columns.items():
        if not isinstance(kernel, Kernel):
            raise ParameterError(
                f"product_of: the value for the column {column!r} must be a kernel, but is {kernel!r}."
            )
    factors = [kernel.on(list(c) if isinstance(c, tuple) else [c]) for c, kernel in columns.items()]
    return functools.reduce(operator.mul, factors)
