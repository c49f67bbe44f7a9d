"""Rows and targets of Gaussian process regression, and how its predictions are compared with another library's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as their

from mercer.kernels import RBF, White

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * _RNG.normal(size=60)
TWO = np.c_[Y, 10 * np.cos(X[:, 2]) - 3]
NEW = _RNG.normal(size=(25, 3))
ALPHA = 0.01 + 0.1 * _RNG.random(60)
THEIRS = their.ConstantKernel(2.0) * their.RBF([1.0, 2.0, 1.5]) + their.WhiteKernel(0.1)
OURS = 2.0 * RBF([1.0, 2.0, 1.5]) + White(0.1)


def assert_same_predictions(ours: Any, theirs: Any, rows: np.ndarray = NEW, tolerance: float = 1e-9) -> None:
    scale = np.abs(theirs.predict(rows)).max()
    for kind in ("return_std", "return_cov"):
        for a, b in zip(ours.predict(rows, **{kind: True}), theirs.predict(rows, **{kind: True}), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=tolerance * scale)
    assert ours.predict(rows).shape == theirs.predict(rows).shape
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), atol=tolerance * scale)
