"""Products with linear kernels, which go by the columns and not by the entries of K."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.gram import Gram
from mercer.kernels import Constant, Linear, Polynomial
from mercer.kernels.plan import Plan

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(120, 4)), RNG.normal(size=(90, 4))
V = RNG.normal(size=(120, 3))
KERNELS = [Linear(), 0.5 * Linear(), Linear() + 2.0, 3.0 * (Linear().on([0, 2]) + Constant(0.5)) + Linear()]


@pytest.fixture
def no_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry of K may be computed by a product."""

    def fail(*arguments: object) -> None:
        raise AssertionError("a product with a linear kernel went by tiles")

    monkeypatch.setattr(Plan, "product", fail)


@pytest.mark.usefixtures("no_tiles")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_is_the_matrix_times_the_vectors(kernel, wrap) -> None:
    K = Gram(kernel, wrap(X))
    scale = np.abs(K.dense()) @ np.abs(V)
    assert (np.abs(K @ V - K.dense() @ V) <= 200 * np.finfo(float).eps * scale).all()
    assert (K @ V[:, 0]).shape == (120,)
    cross = Gram(kernel, wrap(Z), wrap(X))
    np.testing.assert_allclose(cross @ V, cross.dense() @ V, rtol=1e-10, atol=1e-10)
    part = K.restrict(np.arange(5, 50), np.arange(60, 118))
    np.testing.assert_allclose(part @ V[:58], part.dense() @ V[:58], rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("no_tiles")
def test_sums_are_taken_in_float64_for_float32_rows() -> None:
    rows = X.astype(np.float32)
    exact = rows.astype(float) @ (rows.astype(float).T @ V.astype(np.float32).astype(float))
    product = Gram(Linear(), rows) @ V.astype(np.float32)
    assert product.dtype == np.float32
    # One rounding to float32 at the end, and none before.
    assert (np.abs(product - exact) <= np.finfo(np.float32).eps * np.abs(exact)).all()


@pytest.mark.usefixtures("no_tiles")
def test_the_same_bits_for_any_number_of_threads() -> None:
    rows = np.random.default_rng(1).normal(size=(30_000, 3))
    v = np.random.default_rng(2).normal(size=30_000)
    one, two = (Gram(Linear(), rows, n_jobs=jobs) @ v for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kernel", [Polynomial(2), Linear() * Linear(), Linear() + Polynomial(2)], ids=repr)
def test_other_kernels_go_by_tiles(kernel) -> None:
    K = Gram(kernel, X)
    assert kernel._linear_parts(K._plan.left) is None
    np.testing.assert_allclose(K @ V, K.dense() @ V, rtol=1e-10, atol=1e-10)


def test_wide_rows_go_by_tiles(no_tiles: None) -> None:
    with pytest.raises(AssertionError, match="went by tiles"):
        Gram(Linear(), X[:, :4].repeat(10, axis=1)) @ V
