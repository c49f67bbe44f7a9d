"""Rows of kernels whose values leave steps no digits: an end in bounded time, and bounds that hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC
from mercer.solvers.solution import Status


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def least_losses(X: np.ndarray, y: np.ndarray) -> float:
    """The least sum of hinge losses of all linear functions."""
    n, d = X.shape
    signs = np.where(y, 1.0, -1.0)
    rows = np.column_stack([signs[:, None] * X, signs, np.eye(n)])
    free = [(None, None)] * (d + 1) + [(0.0, None)] * n
    found = linprog(np.r_[np.zeros(d + 1), np.ones(n)], A_ub=-rows, b_ub=-np.ones(n), bounds=free, method="highs")
    return float(found.fun)


@pytest.mark.parametrize("scale", [1e8, 1e10])
@pytest.mark.parametrize("seed", [0, 1, 4, 5, 9, 10, 11])
def test_bounds_hold_where_kernel_values_have_no_digits(seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, size=(40, 2)).astype(float)
    y = X[:, 0] + random.normal(size=40) > 0
    X, y = np.vstack([X, X]), np.append(y, y)
    certificate = SVC(kernel="linear").fit(scale * X, y).certificate_
    # In such units the norm of w costs next to nothing.
    least = least_losses(X, y)
    assert 0 <= certificate.dual <= least * (1 + 1e-9) and certificate.primal >= least * (1 - 1e-9)


def test_bounds_of_usual_problems_are_not_widened() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = X[:, 0] + 0.3 * random.normal(size=200) > 0
    for C in (1e-3, 1.0, 1e3):
        assert SVC(C=C).fit(X, y).certificate_.relative_gap < 1e-9


@pytest.mark.parametrize(
    "units", [[1.0, 1e10, 1e-10], [1e8, 1e8, 1e8], pytest.param([1.0, 1e8, 1e-8], marks=pytest.mark.slow)]
)
def test_columns_in_units_far_apart_end(units: list[float]) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(2200, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.5 * random.normal(size=2200) > 0
    certificate = SVC(kernel="linear").fit(X * units, y).certificate_
    assert certificate.status is Status.stalled and certificate.iterations < 600 * 2200
    assert 0 <= certificate.dual <= least_losses(X[:, :1] * 0, y) and certificate.primal > certificate.dual


def test_repeated_rows_far_from_zero_end() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.5 * random.normal(size=600) > 0
    certificate = SVC(kernel="linear").fit(1e8 * np.vstack([X, X]), np.append(y, y)).certificate_
    assert certificate.status is Status.stalled and certificate.iterations <= 250 * 1200
