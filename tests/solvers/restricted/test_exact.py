"""Products with all rows, or a sample of them, and variances of few rows, beside naive ones."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import NumericalError
from mercer.gram import Gram
from mercer.kernels import RBF, Sigmoid
from mercer.solvers.restricted.exact import RowSample, SubsetVariance, squares

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
K = RBF(1.0)(X)


def test_all_rows_give_a_point() -> None:
    C = RNG.normal(size=(300, 3))
    found = squares(Gram(RBF(1.0), X), C, np.zeros_like(C))
    np.testing.assert_allclose(found.high, np.einsum("ij,ik,kj->j", C, K, C), rtol=1e-10)
    assert (found.low == found.high).all() and found.rows == 300


def test_intervals_of_samples_cover_the_value_and_shrink_where_f_is_near() -> None:
    c = RNG.normal(size=(300, 1))
    true, near = float(c[:, 0] @ K @ c[:, 0]), K @ c - 0.1 * c
    widths, covered = [], 0
    for seed in range(50):
        far, close = (
            squares(Gram(RBF(1.0), X), c, f, RowSample(40, 0.9, np.random.RandomState(seed)))
            for f in (np.zeros_like(c), near)
        )
        covered += far.low.item() <= true <= far.high.item()
        assert close.rows <= 40 and abs(close.low.item() + close.high.item() - 2 * true) < 0.05 * true
        widths.append((close.high - close.low).item() / (far.high - far.low).item())
    assert covered >= 40 and max(widths) < 0.2


def test_intervals_of_several_columns_hold_together() -> None:
    # All rows have the same share in each column, and what a row adds has a normal distribution.
    C = RNG.choice([-1.0, 1.0], size=(300, 20))
    near = K @ C + RNG.normal(size=C.shape)
    true, covered = squares(Gram(RBF(1.0), X), C, near).high, 0
    for seed in range(50):
        found = squares(Gram(RBF(1.0), X), C, near, RowSample(60, 0.9, np.random.RandomState(seed)))
        covered += ((found.low <= true) & (true <= found.high)).all()
    assert covered >= 42


def test_coefficients_that_are_all_zero() -> None:
    zero = np.zeros((300, 1))
    found = squares(Gram(RBF(1.0), X), zero, zero, RowSample(20, 0.9, np.random.RandomState(0)))
    assert found.low.tolist() == found.high.tolist() == [0.0]


def test_variances_fall_with_more_rows_and_are_above_that_of_all() -> None:
    noise, new = RNG.uniform(0.01, 0.1, 300), RNG.normal(size=(1500, 2))
    across = RBF(1.0)(new, X)
    naive = 1.0 - np.einsum("ij,ij->i", across @ np.linalg.inv(K + np.diag(noise)), across)
    few, all_rows = (SubsetVariance.of(RBF(1.0), X[:s], noise[:s])(new) for s in (50, 300))
    np.testing.assert_allclose(all_rows, naive, atol=1e-8)
    assert (few >= all_rows - 1e-10).all() and few.mean() > 1.2 * all_rows.mean()


def test_equal_rows_without_noise_and_a_matrix_that_is_indefinite() -> None:
    variance = SubsetVariance.of(RBF(1.0), np.zeros((5, 1)), np.zeros(5))
    assert 0 <= variance(np.zeros((1, 1))).item() < 1e-6
    with pytest.raises(NumericalError, match="negative eigenvalue"):
        SubsetVariance.of(Sigmoid(), X * 3, np.zeros(300))
