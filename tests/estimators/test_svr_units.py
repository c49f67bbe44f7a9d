"""Regression with a tube on targets far from zero, and on columns in large units."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVR, NuSVR
from mercer.solvers.solution import Status


def noisy(n: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("model", [SVR(), SVR(kernel="linear"), NuSVR()], ids=["rbf", "linear", "nu"])
def test_a_constant_added_to_the_targets_goes_to_the_intercept(model: SVR | NuSVR) -> None:
    X, y = noisy(100)
    weight = np.arange(100) % 3.0
    near = model.fit(X, y, weight).predict(X)
    far = model.fit(X, y + 1e7, weight)
    assert far.certificate_.kkt_violation < 1e-9
    np.testing.assert_allclose(far.predict(X) - 1e7, near, atol=1e-6)
    above, below = far.slacks_above_, far.slacks_below_
    outside = np.maximum(np.abs(y - near) - getattr(far, "epsilon_", 0.1), 0.0)
    np.testing.assert_allclose(above + below, outside, atol=1e-6)


def test_many_rows_with_targets_far_from_zero_take_no_more_steps() -> None:
    X, y = noisy(2500)
    near, far = SVR().fit(X, y), SVR().fit(X, y + 1e5)
    assert far.certificate_.status is Status.converged
    assert far.n_iter_ < 1.5 * near.n_iter_


@pytest.mark.parametrize("unit", [1e2, 1e4])
def test_columns_in_large_units_with_a_tube(unit: float) -> None:
    X, y = noisy(300)
    certificate = SVR(kernel="linear", C=10.0).fit(unit * X, y).certificate_
    assert certificate.status is Status.converged
    assert certificate.relative_gap < 1e-5


def test_kernel_values_beyond_rounding_end_with_a_remedy() -> None:
    X, y = noisy(100)
    model = SVR(kernel="poly", degree=2, coef0=1.0, gamma=1.0, C=10.0)
    with pytest.warns(ConvergenceWarning, match="scale the columns of X"):
        model.fit(1e3 * X, y)
    assert model.n_iter_ < 5000 * len(X)
