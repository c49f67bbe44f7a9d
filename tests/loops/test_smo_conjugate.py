"""Steps along conjugate directions, against steps on pairs."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gram import PrecomputedGram
from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.picked import PickedRows
from mercer.loops.smo import StepLimits, StepRoom, smo_steps
from mercer.loops.smo_conjugate import Direction, conjugate_steps
from mercer.solvers.svm import block
from mercer.solvers.svm.block import Block
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.iterate import Iterate

FLOATS = [(np.float32, np.int32), (np.float64, np.int64)]


class Problem:
    """A box problem over pairs with sum zero, or, with ``offset=False``, with the row of zeros for the offset."""

    def __init__(self, real, integer, *, n=300, C=5.0, tube=0.0, offset=True, seed=1):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 2))
        self.K = np.exp(-4.0 * ((X[:, None] - X[None]) ** 2).sum(-1)).astype(real)
        self.y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
        lower = np.where((self.y > 0) & (tube == 0), 0.0, -C)
        upper = np.where((self.y < 0) & (tube == 0), 0.0, C)
        slopes = np.full(n, tube)
        if not offset:
            self.K, self.y, slopes = np.pad(self.K, (0, 1)), np.append(self.y, 0.0), np.append(slopes, 0.0)
            lower, upper = np.append(lower, -1e150), np.append(upper, 1e150)
        self.weights = BoxWeights(np.zeros(len(self.y)), lower, upper, slopes)
        self.F = self.y.astype(real)
        rise, fall, work = np.empty((3, len(self.y)), real)
        self.room = StepRoom(rise, fall, work, work.view(integer))
        set_masks(self.weights, rise, fall)

    def run(self, *, most=10**6, rows=16):
        """Steps along conjugate directions of so many rows, on pairs for 0; return their number and the violation."""
        limits, diagonal = StepLimits(1e-3, 1e-7, most), self.K.diagonal().copy()
        if rows:
            direction = Direction(np.empty_like(self.F), np.empty(rows, np.intp), np.empty(rows))
            return conjugate_steps(self.K, diagonal, self.F, self.weights, self.room, direction, limits)
        present = PickedRows(self.K, np.ones(len(self.y), bool), self.K, np.empty(0, np.intp))
        return smo_steps(present, diagonal, self.F, self.weights, self.room, limits)[:2]

    @property
    def gradient(self):
        return self.y - self.K.astype(np.float64) @ self.weights.beta

    @property
    def objective(self):
        beta = self.weights.beta
        return float(0.5 * beta @ (self.y + self.gradient) - self.weights.tube @ np.abs(beta))


@pytest.mark.parametrize("real, integer", FLOATS)
@pytest.mark.parametrize("tube", [0.0, 0.2])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("rows", [2, 16])
def test_they_reach_the_optimum_of_pairs(real, integer, tube, offset, rows):
    pairs, turned = (Problem(real, integer, tube=tube, offset=offset) for _ in range(2))
    pairs.run(rows=0)
    steps, gap = turned.run(rows=rows)
    beta, lower, upper, _ = turned.weights
    assert gap <= 1e-3 and 0 < steps < 10**6
    assert (lower <= beta).all() and (beta <= upper).all() and abs(beta.sum()) < 1e-9
    np.testing.assert_allclose(turned.F, turned.gradient, atol=3e-4)
    weights = np.abs(pairs.weights.beta[: pairs.y.size]).sum()
    assert abs(pairs.objective - turned.objective) <= 1e-3 * weights


def test_they_are_fewer_where_many_weights_are_inside():
    pairs, turned = (Problem(np.float64, np.int64, n=600, C=1e3) for _ in range(2))
    before, after = pairs.run(rows=0)[0], turned.run()[0]
    assert after < 0.7 * before


def test_every_step_raises_the_objective_and_is_conjugate_to_the_last():
    betas, values = [np.zeros(300)], [0.0]
    for most in range(1, 8):
        p = Problem(np.float64, np.int64)
        p.K += np.eye(300)
        p.weights.lower[:], p.weights.upper[:] = -1e6, 1e6
        set_masks(p.weights, p.room.rise, p.room.fall)
        assert p.run(most=most)[0] == most
        np.testing.assert_allclose(p.F, p.gradient, atol=1e-12)
        betas.append(p.weights.beta.copy())
        values.append(p.objective)
    assert (np.diff(values) > 0).all()
    steps = np.diff(betas, axis=0)
    products = steps @ p.K @ steps.T
    lengths = np.sqrt(products.diagonal())
    assert np.abs(products.diagonal(1) / (lengths[1:] * lengths[:-1])).max() < 1e-12
    # Pairs alone are not.
    assert np.count_nonzero(steps, axis=1).max() > 2


def test_weights_stop_at_their_bounds():
    turned = Problem(np.float64, np.int64, C=0.3)
    turned.run()
    beta, lower, upper, _ = turned.weights
    at_bound = (beta == lower) | (beta == upper)
    width = upper - lower
    assert np.count_nonzero(at_bound & (beta != 0)) > 100
    assert (np.minimum(beta - lower, upper - beta)[~at_bound] > 1e-13 * width[~at_bound]).all()


def test_what_is_not_finite_is_passed_on():
    turned = Problem(np.float32, np.int32)
    turned.K[:, 3] = turned.K[3] = np.nan
    turned.run()
    assert not np.isfinite(turned.F).all()


def test_large_blocks_take_them(rng, monkeypatch):
    made = []
    monkeypatch.setattr(block, "conjugate_steps", lambda *a: made.append(len(a[0])) or conjugate_steps(*a))
    monkeypatch.setattr(block, "_CONJUGATE", 250)
    for n in (240, 260):
        p = Problem(np.float64, np.int64, n=n)
        point = Iterate.begin(BoxQP.classification(PrecomputedGram(p.K), p.y, np.full(n, 5.0)), None)
        change = Block(n, np.float64).solve(p.K, p.K.diagonal(), point, 1e-3, 10**6)
        point.F = p.y - p.K @ change
        assert point.violation() <= 1e-3
    assert made == [260]
