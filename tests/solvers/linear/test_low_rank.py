"""Matrices of low rank, and that penalties are judged on them as on others."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear, Polynomial
from mercer.solvers.linear import low_rank_solve, penalty_path
from mercer.solvers.linear.linear_system import LinearSystem, ScaledGram
from mercer.solvers.linear.low_rank import LowRankForm, ShiftedLowRank, find_low_rank
from mercer.solvers.linear.penalty_path import PenaltyPath

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
T = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.3 * RNG.normal(size=(120, 2))


@settings(max_examples=40, deadline=None)
@given(n=st.integers(4, 90), rank=st.integers(1, 20), scale=st.sampled_from([1e-6, 1.0, 1e8]), seed=st.integers(0, 9))
def test_what_is_found_is_the_matrix(n: int, rank: int, scale: float, seed: int) -> None:
    G = np.random.default_rng(seed).normal(size=(n, rank)) * np.geomspace(1.0, 1e-3, rank)
    A = scale * G @ G.T
    form = find_low_rank(ScaledGram(PrecomputedGram(A)), most=min(rank + 3, n))
    assert form is not None and form.Q.shape[1] <= min(rank + 3, n)
    r = form.Q.shape[1]
    bound = 64 * n * np.finfo(float).eps
    assert np.abs(form.Q.T @ form.Q - np.eye(r)).max() < bound
    # The projection of A on Q is A, and B is what it is in Q.
    inner = form.Q.T @ A @ form.Q
    assert np.abs(form.Q @ inner @ form.Q.T - A).max() < 10 * bound * n * A.diagonal().max()
    dense = sum(np.diag(row[: r - k], -k) for k, row in enumerate(form.inner.band[:r]))
    assert np.abs(np.tril(inner) - dense).max() < 10 * bound * n * A.diagonal().max()
    V = np.random.default_rng(1).normal(size=(n, 3))
    np.testing.assert_allclose(form.back(form.into(V)), V, atol=1e-12)


@pytest.mark.parametrize("shift", [1e-6, 0.3, 50.0])
def test_what_a_shift_is_asked_for(shift: float) -> None:
    A = X @ X.T
    form = find_low_rank(ScaledGram(PrecomputedGram(A)), most=20)
    assert form.Q.shape == (120, 2) and form.shape == (120, 120)
    shifted = ShiftedLowRank(form, shift)
    inverse = np.linalg.inv(A + shift * np.eye(120))
    assert shifted.regular
    assert shifted.log_determinant == pytest.approx(np.linalg.slogdet(A + shift * np.eye(120))[1], rel=1e-10)
    assert shifted.inverse_trace == pytest.approx(np.trace(inverse), rel=1e-8)
    np.testing.assert_allclose(shifted.inverse_diagonal(form.Q), inverse.diagonal(), rtol=1e-8)
    np.testing.assert_allclose(form.back(shifted.solve(form.into(T))), inverse @ T, rtol=1e-7, atol=1e-7 / shift)
    assert not ShiftedLowRank(form, 0.0).regular


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(60),
        RBF(0.5)(X),
        -X @ X.T,
        np.kron(np.eye(30), [[0.0, 1.0], [1.0, 0.0]]),
        # Nothing is left on the diagonal after two steps, but beside it.
        np.pad(np.ones((58, 58)), (0, 2)) + np.pad([[0.0, 1.0], [1.0, 0.0]], (58, 0)),
        X @ X.T - 1e-3 * np.eye(120),
        np.zeros((60, 60)),
    ],
    ids=["identity", "full rank", "negative", "no diagonal", "hidden", "slightly indefinite", "zeros"],
)
def test_what_has_no_low_rank_or_is_not_positive(matrix: np.ndarray) -> None:
    before = matrix.copy()
    assert find_low_rank(ScaledGram(PrecomputedGram(matrix)), most=15) is None
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("w", [None, RNG.uniform(0.1, 2.0, 120)], ids=["one", "parts"])
def test_a_high_rank_is_told_by_some_rows(monkeypatch: pytest.MonkeyPatch, w: np.ndarray | None) -> None:
    evaluated = []
    rows = ScaledGram.rows
    monkeypatch.setattr(ScaledGram, "rows", lambda self, index: evaluated.extend(index) or rows(self, index))
    scale = None if w is None else np.sqrt(w)
    points = np.random.default_rng(2).normal(size=(120, 6))
    # Every second row twice: ranks of 120 and of 60, of which up to 80 are looked for.
    for matrix, low in ((RBF(0.7)(points), False), (RBF(0.7)(np.repeat(points[:60], 2, axis=0)), True)):
        evaluated.clear()
        form = find_low_rank(ScaledGram(PrecomputedGram(matrix), scale), most=80)
        assert (form is not None) == low and (len(set(evaluated)) >= 60 if low else len(evaluated) <= 40)


def test_rows_that_repeat_others() -> None:
    K = RBF(1.0)(np.repeat(X[:9], 20, axis=0))
    form = find_low_rank(ScaledGram(PrecomputedGram(K)), most=45)
    assert form is not None and form.Q.shape == (180, 9)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), RBF(4.0)], ids=repr)
@pytest.mark.parametrize("w", [None, RNG.integers(1, 4, 120).astype(float), RNG.uniform(0.1, 2.0, 120)])
@pytest.mark.parametrize("single_rows", [True, False])
def test_penalties_are_judged_as_on_the_whole_matrix(
    monkeypatch: pytest.MonkeyPatch, kernel, w: np.ndarray | None, single_rows: bool
) -> None:
    system = LinearSystem(PrecomputedGram(kernel(X)), T, [0.0, 0.0], w)
    with ExitStack() as stack:
        whole = PenaltyPath(system, stack, single_rows=single_rows)
        monkeypatch.setattr(low_rank_solve, "_FROM", 10)
        monkeypatch.setattr(penalty_path, "_LOW_RANK", 0.5)
        low = PenaltyPath(system, stack, single_rows=single_rows)
        assert isinstance(low._form, LowRankForm) and not isinstance(whole._form, LowRankForm)
        for alpha in (1e-3, 1.0, 1e3):
            mine, expected = low.criteria(alpha), whole.criteria(alpha)
            assert mine.keys() == expected.keys()
            for name in mine:
                np.testing.assert_allclose(mine[name], expected[name], rtol=1e-8, err_msg=name)
            if single_rows:
                errors = low.left_out_errors(alpha)
                np.testing.assert_allclose(errors, whole.left_out_errors(alpha), rtol=1e-6, atol=1e-9)
        shifts = np.array([[1e-2, 1.0], [10.0, 10.0]])
        for mine, expected in zip(low.solutions(shifts), whole.solutions(shifts)):
            fitted = kernel(X) @ mine.value
            np.testing.assert_allclose(fitted, kernel(X) @ expected.value, rtol=1e-7, atol=1e-9)
            assert mine.certificate.kkt_violation < 1e-10
