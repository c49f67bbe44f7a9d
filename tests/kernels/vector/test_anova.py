"""The kernel of sums over all subsets of the columns."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import DataError
from mercer.kernels import Anova, parse_kernel

WEIGHT, WIDTH = (0.3, 2.0, 0.1), (0.5, 1.0, 3.0)


def naive(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    hats = np.maximum(0.0, 1.0 - np.abs(X[:, None] - Z[None]) / np.asarray(WIDTH))
    return np.asarray(np.prod(1.0 + np.asarray(WEIGHT) * hats, axis=2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_formula(dtype: type) -> None:
    random = np.random.default_rng(0)
    X, Z = random.normal(size=(40, 3)).astype(dtype), random.normal(size=(25, 3)).astype(dtype)
    kernel = Anova(WEIGHT, WIDTH)
    np.testing.assert_allclose(kernel(X, Z), naive(X, Z), rtol=20 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(kernel.diagonal(X), np.prod(1.0 + np.asarray(WEIGHT)), rtol=1e-6)


def test_a_number_is_that_of_all_columns() -> None:
    X = np.random.default_rng(1).normal(size=(9, 4))
    np.testing.assert_array_equal(Anova(0.4, 0.7)(X), Anova([0.4] * 4, [0.7] * 4)(X))
    summed = Anova([0.4] * 4, [0.7] * 4).pullback(X, X[:3], np.ones((9, 3))).reshape(2, 4).sum(axis=1)
    np.testing.assert_allclose(Anova(0.4, 0.7).pullback(X, X[:3], np.ones((9, 3))), summed)


def test_codes_are_equal_or_different() -> None:
    codes = np.array([[0.0, 7.0], [1.0, 7.0], [700.0, 8.0]])
    np.testing.assert_array_equal(Anova(1.0, 1.0)(codes), [[4.0, 2.0, 1.0], [2.0, 4.0, 1.0], [1.0, 1.0, 4.0]])


def test_a_hat_is_the_probability_of_a_common_bin() -> None:
    x, z, width = 0.3, 0.85, 1.5
    shifts = np.random.default_rng(2).uniform(0, width, 100_000)
    together = np.mean(np.floor((x - shifts) / width) == np.floor((z - shifts) / width))
    assert Anova(1.0, width)([[x]], [[z]])[0, 0] - 1.0 == pytest.approx(together, abs=0.01)


def test_numbers_of_other_columns() -> None:
    kernel = parse_kernel("Anova([0.3, 2.0, 0.1], width=[0.5, 1.0, 3.0])")
    assert kernel == Anova(WEIGHT, WIDTH)
    with pytest.raises(DataError, match="3 numbers in weight, but X has 2 columns"):
        kernel(np.zeros((2, 2)))
    with pytest.raises(DataError, match="2 numbers in width, but X has 3 columns"):
        Anova(1.0, [1.0, 2.0])(np.zeros((2, 3)))
