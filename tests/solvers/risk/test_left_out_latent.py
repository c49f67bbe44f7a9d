"""Values without a row's own label: exact for squares, and covariances against their definition."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer._errors import MemoryBudgetError
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.risk.left_out_latent import left_out_latent

RNG = np.random.default_rng(0)
X = RNG.normal(size=(15, 2))
K = RBF(1.0)(X)
GRAM = PrecomputedGram(K)


@pytest.mark.parametrize("offsets", [False, True])
def test_it_is_exact_for_the_squared_loss(offsets: bool) -> None:
    # sum_i w_i (y_i - f_i)^2 / 2 + |f|^2 / 2, with and without an offset.
    y, w = RNG.normal(size=15), RNG.choice([1.0, 2.0, 3.0], 15)

    def solve(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        m = len(rows)
        H = np.zeros((m + 1, m + 1))
        H[:m, :m] = K[np.ix_(rows, rows)] + np.diag(1 / weights)
        H[m, :m] = H[:m, m] = 1.0
        H[m, m] = 0.0 if offsets else 1.0
        H[:m, m] *= float(offsets)
        H[m, :m] *= float(offsets)
        a = np.linalg.solve(H, np.append(y[rows], 0.0))
        return a[:m], float(a[m])

    a, b = solve(np.arange(15), w)
    values = (K @ a + b)[:, None]
    result, _ = left_out_latent(GRAM, values, a[:, None], np.sqrt(w)[:, None, None], 1.0 / w, offsets=offsets)
    for i in range(15):
        less = w.copy()
        less[i] -= 1.0
        rows = np.flatnonzero(less)
        a, b = solve(rows, less[rows])
        assert result[i, 0] == pytest.approx(K[i, rows] @ a + b, rel=1e-8, abs=1e-10)


def test_covariances_of_several_latent_values() -> None:
    roots = RNG.normal(size=(15, 3, 3)) * 0.5
    zeros = np.zeros((15, 3))
    _, blocks = left_out_latent(GRAM, zeros, zeros, roots, np.zeros(15), offsets=True)
    # Offsets with a wide prior; nothing is left out.
    prior = np.kron(np.eye(3), K + 1e6)
    W = np.zeros((45, 45))
    for i in range(15):
        at = np.arange(3) * 15 + i
        W[np.ix_(at, at)] = roots[i] @ roots[i].T
    A = prior @ np.linalg.inv(np.eye(45) + W @ prior)
    for i in range(15):
        at = np.arange(3) * 15 + i
        np.testing.assert_allclose(blocks[i], A[np.ix_(at, at)], rtol=1e-3, atol=1e-4)


def test_the_memory_budget() -> None:
    with mercer.config(memory=1000), pytest.raises(MemoryBudgetError):
        left_out_latent(GRAM, np.zeros((15, 1)), np.zeros((15, 1)), np.ones((15, 1, 1)), np.ones(15), offsets=False)
