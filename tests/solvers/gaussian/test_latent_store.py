"""The matrix and its factors in one array, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF
from mercer.solvers.gaussian.latent_store import LatentStore
from mercer.solvers.gaussian.workspace import Workspaces

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 5, 530])
def test_everything_that_the_store_knows(n: int) -> None:
    K, d = RBF(1.0)(RNG.normal(size=(n, 2))), RNG.random(n)
    d[0] = 0.0
    B = np.eye(n) + d[:, None] * K * d
    store = LatentStore(K.copy(), np.empty((n, n), np.float32))
    V = RNG.normal(size=(n, 6))
    single = store.factor_single(d)
    assert single is not None
    for k in (1, 3, 6):
        np.testing.assert_allclose(store.product(V[:, :k]), K @ V[:, :k], atol=1e-10)
        np.testing.assert_allclose(single.solve(V[:, :k]), np.linalg.solve(B, V[:, :k]), rtol=1e-3, atol=1e-3)
    assert store.factor(d)
    assert store.log_determinant == pytest.approx(np.linalg.slogdet(B)[1], abs=1e-9)
    for k in (1, 3, 6):
        np.testing.assert_allclose(store.product(V[:, :k]), K @ V[:, :k], atol=1e-10)
        np.testing.assert_allclose(store.solve(V[:, :k]), np.linalg.solve(B, V[:, :k]), atol=1e-9)
    np.testing.assert_allclose(store.whiten(V), np.linalg.solve(np.linalg.cholesky(B), V), atol=1e-9)
    index = np.array([0, n // 2, n - 1])
    np.testing.assert_array_equal(store.columns(index), K[:, index])
    inverse = np.linalg.inv(B)
    np.testing.assert_allclose(store.invert(), inverse.diagonal(), atol=1e-10)
    np.testing.assert_allclose(store.times_inverse(V), inverse @ V, atol=1e-9)
    U, rows = RNG.normal(size=(n, 6)), slice(0, min(n, 4))
    for columns in (rows, slice(n - 1, n)):
        if columns.start >= rows.stop or columns == rows:
            out = np.empty((rows.stop, columns.stop - columns.start))
            store.slope(d, U, V)(rows, columns, out)
            whole = (U @ V.T + V @ U.T) / 4 - d[:, None] * inverse * d / 2
            np.testing.assert_allclose(out, whole[rows, columns], atol=1e-9)
    assert store.factor(d)
    np.testing.assert_allclose(store.invert_triangle(), inverse.diagonal(), atol=1e-10)
    store.finish_inverse()
    np.testing.assert_allclose(store.times_inverse(V), inverse @ V, atol=1e-9)
    assert store.factor(d)
    np.testing.assert_allclose(store.lower_factor(), np.linalg.cholesky(B), atol=1e-10)


def test_what_is_not_positive_definite_has_no_factor() -> None:
    store = LatentStore(-2.0 * np.eye(3), np.empty((3, 3), np.float32))
    assert not store.factor(np.ones(3)) and store.factor_single(np.ones(3)) is None


def test_workspaces_are_used_again() -> None:
    spaces = Workspaces()
    with spaces.one() as first, spaces.one() as second:
        assert first is not second
        array = first.array("K", (2, 2))
        first.give_away("K")
        assert first.array("K", (2, 2)) is not array
        buffer = first.array("K", (2, 2))
        assert first.array("K", (3, 3)).shape == (3, 3) and first.array("K", (2, 2)) is not buffer
    with spaces.one() as again:
        assert again is second or again is first
