"""Symmetry and finiteness in one pass."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.loops.symmetry import has_wider_gap


def layouts(K: np.ndarray) -> list[np.ndarray]:
    """The same matrix with rows that lie together, with columns that do, and with gaps between the entries."""
    strided = np.zeros((2 * len(K), 2 * len(K)), K.dtype)
    strided[::2, ::2] = K
    return [K, np.asfortranarray(K), strided[::2, ::2]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 23])
def test_every_entry_is_looked_at(n: int, dtype: type, rng: np.random.Generator) -> None:
    K = rng.standard_normal((n, n)).astype(dtype)
    K += K.T
    for matrix in layouts(K):
        assert not has_wider_gap(matrix, 0, n, 0, n, 0.0)
    for i in range(n):
        for j in range(n):
            for wrong in (np.nan, np.inf, -np.inf, *([] if i == j else [K[i, j] + 0.5, K[i, j] - 0.5])):
                bad = K.copy()
                bad[i, j] = wrong
                for matrix in layouts(bad):
                    assert has_wider_gap(matrix, 0, n, 0, n, 0.25)
                    assert has_wider_gap(matrix, 0, n, 0, n, 1.0) == (not np.isfinite(wrong))


def test_only_the_part_within_the_bounds_counts() -> None:
    K = np.eye(40)
    K[3, 30] = 1.0
    assert not has_wider_gap(K, 0, 20, 0, 20, 0.0) and not has_wider_gap(K, 4, 20, 20, 40, 0.0)
    assert has_wider_gap(K, 0, 20, 20, 40, 0.0) and has_wider_gap(K, 3, 4, 30, 31, 0.0)
