"""Certificates of fits to blocks for the problem of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import (
    SVC,
    SVR,
    Blocks,
    KernelLogisticRegression,
    KernelMachine,
    KernelQuantileRegression,
    KernelRidge,
    certify_landmarks,
    config,
)
from mercer._errors import DataError, ParameterError
from mercer.certification.rows_in_blocks import RowsInBlocks
from mercer.kernels import RBF
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=150)
WEIGHT = np.maximum(RNG.integers(-1, 3, 150), 0).astype(float)
FEW: dict[str, Any] = {"kernel": RBF(1.5), "approximation": "nystroem", "n_landmarks": 15, "random_state": 0}
CASES: list[tuple[Any, np.ndarray]] = [
    (KernelRidge(0.1, **FEW), Y),
    (KernelRidge(0.1, **FEW), np.column_stack([Y, -3 * Y + X[:, 0]])),
    (KernelLogisticRegression(**FEW), np.digitize(Y, [0.0])),
    (KernelLogisticRegression(**FEW), np.digitize(Y, [-1.0, 1.0])),
    (KernelLogisticRegression(class_weight={0: 0.5, 1: 1.0, 2: 2.0}, **FEW), np.digitize(Y, [-1.0, 1.0])),
    (SVR(tol=0.01, **FEW), Y),
    (SVC(tol=0.01, **FEW), np.digitize(Y, [0.0])),
    (KernelMachine("huber", fit_intercept=True, **FEW), Y),
    (KernelMachine("hinge", tol=0.01, **FEW), np.digitize(Y, [0.0])),
    (KernelQuantileRegression([0.2, 0.8], non_crossing=False, tol=0.01, **FEW), Y),
]


@pytest.mark.parametrize(
    ("model", "y", "weight"),
    # Learners that are there twice are with weights and without.
    [(model, y, [WEIGHT, None][number % 2]) for number, (model, y) in enumerate(CASES)],
    ids=lambda case: type(case).__name__,
)
def test_it_is_that_of_the_same_rows_as_arrays(model: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
    blocks = Blocks(X, y, sample_weight=weight, rows_per_block=80)
    model.fit(blocks)
    one = certify_landmarks(model, blocks, n_rows=30)
    other = certify_landmarks(model, X, y, sample_weight=weight, n_rows=30)
    assert one.status is Status.probable and one.primal == pytest.approx(other.primal, rel=1e-12)
    assert one.gap_interval == pytest.approx(other.gap_interval, rel=1e-6)
    if y.max() != 2:
        bounds = one.prediction_bound(X[:20])
        np.testing.assert_allclose(bounds, other.prediction_bound(X[:20]), rtol=1e-5)
    whole = certify_landmarks(model, X, y, sample_weight=weight)
    assert whole.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert one.gap_interval[0] <= whole.gap <= one.gap_interval[1]


def test_sparse_rows_and_rows_in_any_order() -> None:
    rows = RowsInBlocks(Blocks(sp.csr_matrix(X), Y, rows_per_block=7), np.arange(0, 150, 2))
    np.testing.assert_allclose(rows[np.array([3, 74, 0])].toarray(), X[[6, 148, 0]])
    assert sum(part.shape[0] for part in rows.some(slice(10, 50))) == 40


def test_blocks_need_a_number_of_rows() -> None:
    blocks = Blocks(X, Y, rows_per_block=80)
    model = KernelRidge(0.1, **FEW).fit(blocks)
    for count in (None, 150):
        with pytest.raises(ParameterError, match=f"n_rows is {count}, and all pairs of 150 rows in blocks"):
            certify_landmarks(model, blocks, n_rows=count)
    with pytest.raises(DataError, match="leave out y"):
        certify_landmarks(model, blocks, Y, n_rows=30)
    with pytest.raises(DataError, match="has none; name them with target"):
        certify_landmarks(model, Blocks(X), n_rows=30)
    with pytest.raises(DataError, match="X has 2 columns, but this KernelRidge was fitted on 3"):
        certify_landmarks(model, Blocks(X[:, :2], Y), n_rows=30)
    of_arrays = KernelRidge(0.1, **FEW).fit(X, Y)
    with pytest.raises(DataError, match="X differs from the rows"):
        certify_landmarks(of_arrays, Blocks(X[::-1], Y), n_rows=30)


def test_memory_is_not_that_of_the_rows() -> None:
    many = RNG.normal(size=(20_000, 40))
    blocks = Blocks(many, many[:, 0], rows_per_block=500)
    model = KernelRidge(1.0, **{**FEW, "kernel": RBF(8.0), "landmarks": "uniform"}).fit(blocks)
    # The rows take 6.1 MiB, and those of a sample 3 % of that.
    with config(memory="4 MiB"):
        assert certify_landmarks(model, blocks, n_rows=100).gap > 0
