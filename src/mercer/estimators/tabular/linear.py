"""How well a linear model predicts the rows of a table, which tells whether a kernel lacks a linear term."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.data.columns import MixedRows
from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.solvers.linear.choose_penalty import reduce_and_choose
from mercer.solvers.linear.linear_system import LinearSystem


def linear_errors(features: Any, targets: Vector, counts: Vector, n_jobs: int | None = None) -> Vector:
    """The errors (n,) of ridge regression in rows that are left out, with the penalty that makes them least.

    Parameters
    ----------
    features : ndarray or MixedRows of shape (n, p)
        Columns of text are left out.
    targets : ndarray of shape (n,)
    counts : ndarray of shape (n,)
        Repetitions of each row, one of which is left out.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 9)
    >>> [bool(abs(linear_errors(x[:, None], y, np.ones(9))).max() < 1e-3) for y in (3 * x, x**2)]
    [True, False]
    """
    columns = features.columns if isinstance(features, MixedRows) else features.T
    Z = np.column_stack([np.ones(len(targets)), *(column for column in columns if isinstance(column, np.ndarray))])
    gram = Gram(Linear(), Z, dtype=np.float64, n_jobs=n_jobs)
    system = LinearSystem(gram, targets[:, None], np.zeros(1), counts)
    with ExitStack() as stack:
        path, penalties, _ = reduce_and_choose(system, stack, "loo", None, per_target=False, n_jobs=n_jobs)
        return np.asarray(path.left_out_errors(float(penalties[0]))[:, 0])
