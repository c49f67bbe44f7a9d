"""Learners of losses over landmarks on blocks: the answers of arrays, also for kinks, several classes and levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from mercer import SVR, Blocks, KernelMachine, KernelQuantileRegression
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
NUMBERS = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=400)
TWO = np.where(NUMBERS > 0, "yes", "no")
THREE = np.array(["low", "middle", "top"])[np.digitize(NUMBERS, [-0.4, 0.4])]
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(float)
WEIGHTS = RNG.integers(0, 3, 400).astype(float)
HERE: dict[str, Any] = {
    "kernel": RBF(1.0),
    "approximation": "nystroem",
    "landmarks": X[:20],
    "tol": 1e-4,
    "random_state": 0,
}

MODELS = {
    "squared hinge": (KernelMachine("squared_hinge", fit_intercept=True, **HERE), TWO),
    "hinge": (KernelMachine("hinge", fit_intercept=True, **HERE), TWO),
    "one against the rest": (KernelMachine("logistic", fit_intercept=True, **HERE), THREE),
    "counts": (KernelMachine("poisson", alpha=0.1, fit_intercept=True, **HERE), COUNTS),
    "huber": (KernelMachine("huber", **HERE), NUMBERS),
    "a tube": (SVR(C=2.0, epsilon=0.1, **HERE), NUMBERS + 50.0),
    "two levels": (KernelQuantileRegression([0.2, 0.7], C=5.0, non_crossing=False, **HERE), NUMBERS),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "two levels" else name for name in MODELS]
)
def test_blocks_have_the_answer_of_arrays(name: str) -> None:
    model, y = MODELS[name]
    whole = clone(model).fit(X, y, WEIGHTS)
    primal, predicted = whole.certificate_.primal, whole.predict(X)
    blocks = Blocks(X, y, sample_weight=WEIGHTS, rows_per_block=90)
    parts = clone(model).fit(blocks)
    assert parts.certificate_.relative_gap <= 1e-4 and parts.landmark_indices_ is None
    assert parts.certificate_.primal == pytest.approx(primal, rel=3e-4)
    found, in_blocks = parts.predict(X), parts.predict(Blocks(X, rows_per_block=90))
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(found, predicted, atol=0.05)
        np.testing.assert_allclose(in_blocks, found, rtol=1e-9)
    else:
        assert np.mean(found == predicted) > 0.99
        np.testing.assert_array_equal(in_blocks, found)


def test_targets_are_checked_block_by_block() -> None:
    y = COUNTS.copy()
    y[-1] = -1.0
    with pytest.raises(DataError, match="poisson"):
        KernelMachine("poisson", **HERE).fit(Blocks(X, y, rows_per_block=90))


def test_the_shape_is_that_of_all_rows() -> None:
    # More rows than the sample from which landmarks are drawn.
    many = np.tile(X, (18, 1))
    model = SVR(**{**HERE, "landmarks": X[:5], "tol": 0.1}).fit(Blocks(many, np.tile(NUMBERS, 18)))
    assert model.shape_fit_ == many.shape


def test_a_parameter_to_choose_needs_all_rows() -> None:
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        SVR().fit(Blocks(X, NUMBERS))
