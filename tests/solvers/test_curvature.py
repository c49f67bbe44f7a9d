"""Indefinite matrices are found by a few products."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import IndefiniteKernelError
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear, NegativeDistance, Sigmoid
from mercer.solvers.curvature import require_conditionally_positive, require_positive

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
