"""How well a linear model predicts the rows of a table, which tells whether a kernel lacks a linear term."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.data.columns import MixedRows
from mercer.estimators.kernel_ridge import KernelRidge


def linear_errors(features: Any, targets: Vector, counts: Vector) -> Vector:
    """The errors (n,) of ridge regression in rows that are left out.

    Parameters
    ----------
    features : ndarray or MixedRows of shape (n, p)
        Columns of text are left out.
    targets : ndarray of shape (n,)
    counts : ndarray of shape (n,)
        Repetitions of each row, one of which is left out.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 9)
    >>> [bool(abs(linear_errors(x[:, None], y, np.ones(9))).max() < 1e-3) for y in (3 * x, x**2)]
    [True, False]
    """
    columns = features.columns if isinstance(features, MixedRows) else features.T
    Z = np.column_stack([np.ones(len(targets)), *(column for column in columns if isinstance(column, np.ndarray))])
    with warnings.catch_warnings():
        # That it is worse than the mean says nothing here.
        warnings.simplefilter("ignore")
        ridge = KernelRidge("loo", kernel="linear").fit(Z, targets, sample_weight=counts)
    return np.asarray(targets - ridge.loo_predictions_)
