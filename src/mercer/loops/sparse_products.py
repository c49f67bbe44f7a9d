"""Products of a sparse matrix with a vector: by rows for ``F v``, and scattered over the columns for ``F^T u``."""

from __future__ import annotations

import numpy as np

from mercer.loops._jit import jit


@jit
def multiply_rows(rows, first, last, v, out):
    """``out[i] = <f_i, v>`` for the rows from ``first`` to ``last``."""
    for i in range(first, last):
        total = 0.0
        for a in range(rows.starts[i], rows.starts[i + 1]):
            total += rows.values[a] * v[rows.columns[a]]
        out[i] = total


@jit
def add_rows(rows, first, last, u, out):
    """``out += sum_i u_i f_i`` over the rows from ``first`` to ``last``."""
    for i in range(first, last):
        weight = u[i]
        if weight != 0.0:
            for a in range(rows.starts[i], rows.starts[i + 1]):
                out[rows.columns[a]] += rows.values[a] * weight


@jit
def add_curved_rows(rows, first, last, weights, v, out):
    """``out += sum_i w_i <f_i, v> f_i`` over the rows from ``first`` to ``last``: each row is read once."""
    for i in range(first, last):
        total = 0.0
        for a in range(rows.starts[i], rows.starts[i + 1]):
            total += rows.values[a] * v[rows.columns[a]]
        total *= weights[i]
        for a in range(rows.starts[i], rows.starts[i + 1]):
            out[rows.columns[a]] += rows.values[a] * total


@jit
def square_rows(rows, out):
    """``out[i] = <f_i, f_i>``."""
    for i in range(out.shape[0]):
        total = 0.0
        for a in range(rows.starts[i], rows.starts[i + 1]):
            total += np.float64(rows.values[a]) ** 2
        out[i] = total


@jit
def add_squared_entries(rows, weights, out):
    """``out[j] += sum_i w_i f_ij^2``."""
    for i in range(weights.shape[0]):
        for a in range(rows.starts[i], rows.starts[i + 1]):
            out[rows.columns[a]] += weights[i] * np.float64(rows.values[a]) ** 2
