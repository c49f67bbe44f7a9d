"""Indefinite matrices are found by a few products."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.linalg import null_space

from mercer._errors import IndefiniteKernelError, KernelValueError
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Linear, NegativeDistance, Sigmoid, from_function
from mercer.solvers import curvature
from mercer.solvers.curvature import lowest_quotient, require_conditionally_positive, require_kernel, require_positive

X = np.random.default_rng(0).normal(size=(150, 3))


def planted(values: np.ndarray) -> np.ndarray:
    Q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(len(values), len(values))))
    return (Q * values) @ Q.T


@pytest.mark.parametrize(
    "K",
    [
        -np.eye(2),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        -RBF(1.0)(X),
        Sigmoid(0.5)(X),
        np.tanh(X @ X.T - 1.0).astype(np.float32),
        RBF(3.0)(X) - 1e-3 * np.eye(150),
        planted(np.r_[-0.02, np.linspace(0.0, 1.0, 99)]),
        planted(np.r_[-1.0, np.zeros(99)]),
    ],
    ids=range(8),
)
def test_what_curves_downwards_is_refused(K: np.ndarray) -> None:
    with pytest.raises(IndefiniteKernelError, match=r"c'Kc = -.*validity\.nearest.*allow_indefinite=True"):
        require_conditionally_positive(PrecomputedGram((K + K.T) / 2))


@pytest.mark.parametrize(
    "K",
    [
        np.zeros((5, 5)),
        np.ones((1, 1)),
        -np.ones((5, 5)),
        np.eye(7),
        RBF(1.0)(X),
        RBF(1.0)(X.astype(np.float32)),
        Linear()(X),
        Linear()(X).astype(np.float32),
        Linear()(1e6 + X),
        np.round(RBF(1.0)(X), 7),
        NegativeDistance()(X),
        planted(np.logspace(-16, 3, 60)),
    ],
    ids=range(12),
)
def test_what_is_conditionally_positive_up_to_rounding_is_taken(K: np.ndarray) -> None:
    require_conditionally_positive(PrecomputedGram((K + K.T) / 2))
    centring = np.eye(len(K)) - 1 / len(K)
    assert np.linalg.eigvalsh(centring @ K @ centring)[0] > -1e-4 * max(np.abs(K).max() * len(K), 1e-300)


def test_without_the_sum_every_direction_counts() -> None:
    for K in (RBF(1.0)(X), Linear()(X), np.zeros((5, 5)), np.ones((1, 1)), planted(np.logspace(-16, 3, 60))):
        require_positive(PrecomputedGram((K + K.T) / 2))
    for K in (-np.ones((5, 5)), -np.ones((1, 1)), NegativeDistance()(X), RBF(1.0)(X) - 0.5):
        require_conditionally_positive(PrecomputedGram(K))
        with pytest.raises(IndefiniteKernelError, match=r"c'Kc = -.*unit vector c, and.*validity\.nearest"):
            require_positive(PrecomputedGram(K))


@pytest.mark.parametrize("require", [require_positive, require_conditionally_positive])
def test_a_cholesky_factor_spares_a_positive_matrix_the_lanczos_steps(monkeypatch, require) -> None:
    rows = np.random.default_rng(2).normal(size=(600, 3))
    K = RBF(1.0)(rows)

    def never(*_: object) -> None:
        raise AssertionError("Lanczos ran")

    with monkeypatch.context() as patch:
        patch.setattr(curvature, "_ritz_values", never)
        given = K.copy()
        require(PrecomputedGram(given))
        require(PrecomputedGram(K[:100, :100]))
        require(PrecomputedGram(K.astype(np.float32)))
        require(Gram(RBF(1.0), rows))
        assert (given == K).all()
    # One entry of the sampled rows that makes them indefinite is still found, and the direction described.
    K[0, 599] = K[599, 0] = 1.5
    with pytest.raises(IndefiniteKernelError, match=r"512 of its 600 rows is indefinite: c'Kc = -[0-9.]+ for a unit"):
        require(PrecomputedGram(K))


def test_a_spread_sample_of_a_function_is_looked_at() -> None:
    rows = np.random.default_rng(2).normal(size=(2000, 3))
    called = []

    def hollow(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        called.append(len(A) * len(B))
        return np.asarray(A @ B.T - 3.0 * np.exp(-((A[:, None, 0] - B[:, 0]) ** 2)))

    gram, positions = Gram(from_function(hollow), rows), np.arange(2000)
    with pytest.raises(IndefiniteKernelError, match=r"on 512 rows of X is indefinite: c'Kc = -.*Choose another"):
        require_kernel(gram, positions, np.float64, balanced=True, curved=False)
    assert sum(called) <= 512**2 + 1000
    require_kernel(gram, positions, np.float64, balanced=True, curved=True)


def test_a_function_is_symmetric_but_for_rounding() -> None:
    rows = np.random.default_rng(2).normal(size=(300, 3)) + 10.0
    single = from_function(lambda A, B: (A.astype(np.float32) @ B.T.astype(np.float32)) ** 2)
    require_kernel(Gram(single, rows), np.arange(300), np.float64, balanced=True, curved=False)
    crooked = from_function(lambda A, B: A @ B.T + 1e-3 * (A[:, :1] - B[:, 0]))
    with pytest.raises(KernelValueError, match=r"for the rows .* and .* of X"):
        require_kernel(Gram(crooked, rows), np.arange(300), np.float64, balanced=True, curved=False)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
def test_quotients_lie_within_the_spectrum_where_the_krylov_space_ends(balanced, n):
    A = np.random.default_rng(n).normal(size=(n, 2))
    # Three eigenvalues, however many rows.
    K = A @ A.T - 2.0 * np.eye(n)
    least = lowest_quotient(PrecomputedGram(K), balanced=balanced)
    # The vectors that may be taken: all, or those that sum to 0.
    span = null_space(np.ones((1, n))) if balanced else np.eye(n)
    values = np.linalg.eigvalsh(span.T @ K @ span) if span.size else np.zeros(1)
    assert least == pytest.approx(values[0], abs=1e-9 * max(1.0, values[-1]))


@functools.cache
def turns() -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(3).standard_normal((300, 300)))[0]


@pytest.mark.parametrize("scale", [1e-50, 1e-10, 1.0, 1e10, 1e50])
@pytest.mark.parametrize("lowest", [-0.1, -1e-3, -1e-5, 1e-5, 1e-3])
def test_eigenvalues_next_to_zero_are_told_by_their_sign(
    monkeypatch: pytest.MonkeyPatch, lowest: float, scale: float
) -> None:
    Q, rng = turns(), np.random.default_rng(0)
    # The largest entry of the diagonal is about 1, and so is the scale of what counts as rounding.
    values = np.r_[np.full(150, 2.0), rng.uniform(0.01, 0.2, 149), lowest]
    K = scale * (Q * values) @ Q.T
    gram = PrecomputedGram((K + K.T) / 2)
    if lowest < 0:
        with pytest.raises(IndefiniteKernelError):
            require_positive(gram)
        return

    def never(*_: object) -> None:
        raise AssertionError("a matrix that has a Cholesky factor needs no Lanczos")

    monkeypatch.setattr(curvature, "_ritz_values", never)
    require_positive(gram)
