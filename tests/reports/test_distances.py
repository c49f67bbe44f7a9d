"""Rows far from the training rows."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.kernels import RBF
from mercer.reports.distances import distances

RNG = np.random.default_rng(0)


def test_distances_are_those_in_feature_space() -> None:
    X, Z = RNG.normal(size=(30, 2)), RNG.normal(size=(7, 2))
    found = distances(RBF(1.0), Z, X, 0)
    squares = ((Z[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.sort(found.new), np.sort(np.sqrt(2 - 2 * np.exp(-squares / 2)).min(axis=1)))


@pytest.mark.parametrize("n", [400, 4000])
def test_rows_like_those_of_the_fit_are_rarely_far(n: int) -> None:
    X, Z = RNG.normal(size=(n, 3)), RNG.normal(size=(900, 3))
    assert 0.02 < distances(RBF(1.0), Z, X, 0).share < 0.09
    assert distances(RBF(1.0), Z + 6.0, X, 0).share > 0.9


def test_rows_that_repeat_are_not_far() -> None:
    X = np.repeat(RNG.normal(size=(40, 2)), 3, axis=0)
    assert distances(RBF(1.0), X[::3] * (1 + 1e-12), X, 0).share == 0.0


def test_the_verdict_warns_of_far_rows() -> None:
    X = RNG.normal(size=(150, 2))
    y = np.sin(2 * X[:, 0])
    model = mercer.SVR(C=10.0, epsilon=0.01).fit(X[:100], y[:100])
    near = mercer.report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100])
    Z = np.r_[X[100:130], X[100:120] + 2 * np.pi]
    far = mercer.report(model, Z, np.r_[y[100:130], np.zeros(20)], X_train=X[:100], y_train=y[:100])
    assert far["distance"].fact("share of far rows") >= 0.4 > near["distance"].fact("share of far rows")
    assert "distance" not in mercer.report(model, X[:100], y[:100])
    assert "far from all training rows" in far.verdict[2] and "far" not in near.verdict[2]
