"""Least squares over landmarks without single rows, and the rows that decide the ends of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.kernels import RBF, Polynomial
from mercer.solvers.conformal import of_rank, undecided
from mercer.solvers.restricted import left_out_ends
from mercer.solvers.restricted.left_out import FeatureRows, FeatureSums, LeftOutRows
from mercer.solvers.restricted.left_out_ends import Scores, jackknife_ends
from mercer.solvers.restricted.whitening import Whitening

RNG = np.random.default_rng(0)
X, NEW, Z = RNG.normal(size=(2000, 2)), RNG.normal(size=(5, 2)), RNG.normal(size=(12, 2))
Y = np.c_[np.sin(X[:, 0]), X[:, 1]] + 0.3 * RNG.normal(size=(2000, 2))
KERNEL = RBF(1.0)
ROWS = FeatureRows(Gram(KERNEL, X, Z, dtype=np.float64), Whitening.of(KERNEL(Z)))


def left_out(weights: np.ndarray, taken: np.ndarray) -> LeftOutRows:
    return LeftOutRows.of(ROWS, FeatureSums.of(ROWS, Y, weights), Y, taken, 0.5)


def test_errors_are_those_of_solutions_with_less_weight() -> None:
    weights, taken, K = RNG.uniform(0.5, 3.0, 2000), RNG.uniform(0.1, 0.5, 2000), KERNEL(X, Z)
    found = left_out(weights, taken)
    for i in (0, 7, 1999):
        w = weights.copy()
        w[i] -= taken[i]
        beta = np.linalg.solve((K.T * w) @ K + 0.5 * KERNEL(Z), (K.T * w) @ Y)
        np.testing.assert_allclose(found.errors[i], Y[i] - K[i] @ beta, atol=1e-9)


def test_the_gap_is_the_difference_of_the_objectives() -> None:
    ones, K, beta = np.ones(2000), KERNEL(X, Z), RNG.normal(size=(12, 2))
    sums = FeatureSums.of(ROWS, Y, ones)
    found = LeftOutRows.of(ROWS, sums, Y, ones, 0.5)
    objective = ((Y - K @ beta) ** 2).sum(axis=0) + 0.5 * np.einsum("ij,ik,kj->j", beta, KERNEL(Z), beta)
    np.testing.assert_allclose(found.gap(beta), objective - found.least(sums), rtol=1e-9)


@pytest.mark.parametrize("variances", [None, RNG.uniform(0.5, 50.0, 2000)], ids=["plain", "with deviations"])
@pytest.mark.parametrize("counts", [None, RNG.integers(1, 4, 2000) / 2], ids=["alike", "counted"])
def test_ends_are_those_of_all_numbers_and_few_rows_are_looked_at(
    variances: Any, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ones = np.ones(2000)
    found = left_out(ones, ones)
    scores = Scores(np.abs(found.errors) * RNG.uniform(0.5, 2.0, (2000, 1)), counts, variances)
    F, _ = found.features(KERNEL(NEW, Z))
    units = RNG.uniform(0.5, 2.0, 5)
    looked_at = []
    visit = FeatureRows.visit

    def counting(self: FeatureRows, see: Any, positions: Any = None) -> None:
        looked_at.append(len(positions))
        visit(self, see, positions)

    monkeypatch.setattr(FeatureRows, "visit", counting)
    cross = Gram(KERNEL, NEW, Z, dtype=np.float64)
    lower, upper = jackknife_ends(found, cross, scores, 0.9, lambda part, *_: units[part])
    assert sum(looked_at) < 400
    Psi = np.empty((2000, 12))
    visit(ROWS, lambda part, block: Psi.__setitem__(part, found.features(KERNEL(X[part], Z))[0]))
    moves = F @ Psi.T
    rank = int(0.1 * ((2000 if counts is None else counts.sum()) + 1) + 1e-9)
    for j in range(2):
        spread = units[:, None] * scores.radii[:, j]
        if variances is not None:
            spread = np.sqrt(units[:, None] ** 2 + moves**2 * variances) * scores.radii[:, j]
        centres = (F @ found.solution)[:, [j]] - moves * found.errors[:, j]
        np.testing.assert_allclose(lower[:, j], of_rank(centres - spread, rank, counts), atol=1e-9)
        np.testing.assert_allclose(upper[:, j], -of_rank(-centres - spread, rank, counts), atol=1e-9)


def test_a_far_row_does_not_make_others_look_at_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, new = Polynomial(degree=2), RNG.normal(size=(100, 2))
    new[50] *= 1000.0
    rows = FeatureRows(Gram(kernel, X, Z, dtype=np.float64), Whitening.of(kernel(Z)))
    found = LeftOutRows.of(rows, FeatureSums.of(rows, Y, np.ones(2000)), Y, np.ones(2000), 0.5)
    sizes = []
    moves = left_out_ends._moves

    def counting(one: LeftOutRows, positions: np.ndarray, F: np.ndarray) -> np.ndarray:
        sizes.append(len(positions) * len(F))
        return moves(one, positions, F)

    monkeypatch.setattr(left_out_ends, "_moves", counting)
    jackknife_ends(found, Gram(kernel, new, Z, dtype=np.float64), Scores(np.abs(found.errors)), 0.9)
    # All of 100 x 2000 without groups.
    assert 2000 <= sum(sizes) < 50_000


@pytest.mark.parametrize("counts", [None, RNG.integers(1, 5, 60) / 2], ids=["alike", "counted"])
def test_what_bounds_leave_undecided_holds_the_number_of_the_rank(counts: Any) -> None:
    for rank in range(1, 60):
        values, width = RNG.integers(0, 20, 60).astype(float), RNG.integers(0, 3, (2, 60))
        chosen, below = undecided(values - width[0], values + width[1], rank, counts)
        rest = rank - (below.sum() if counts is None else counts[below].sum())
        some = None if counts is None else counts[chosen]
        assert of_rank(values[None, chosen], rest, some) == of_rank(values[None].copy(), rank, counts)
