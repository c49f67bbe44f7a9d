"""Steps by two pairs at a time, against those by one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.picked import PickedRows
from mercer.loops.smo import StepLimits, StepRoom, smo_steps
from mercer.loops.smo_double import SecondKeys, smo_double_steps, two_largest

FLOATS = [(np.float32, np.int32), (np.float64, np.int64)]


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 128, 129, 1000])
def test_the_two_largest_of_different_chunks(n: int, rng) -> None:
    for keys in (rng.integers(-5, 5, n).astype(np.int32), rng.integers(-(2**40), 2**40, n)):
        first, second = two_largest(keys)
        assert first == np.argmax(keys)
        others = np.arange(n) // 64 != first // 64
        if others.any():
            assert others[second] and keys[second] == keys[others].max()
        else:
            assert second == first


class Problem:
    """A box problem over pairs with sum zero, or, with ``offset=False``, with the row of zeros for the offset."""

    def __init__(self, real, integer, rng, *, n: int = 300, tube: float = 0.0, offset: bool = True) -> None:
        X = rng.standard_normal((n, 2))
        self.K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)).astype(real)
        self.y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
        C = 5.0
        self.lower = np.where((self.y > 0) & (tube == 0), 0.0, -C)
        self.upper = np.where((self.y < 0) & (tube == 0), 0.0, C)
        self.tube = np.full(n, tube)
        if not offset:
            self.K = np.pad(self.K, (0, 1))
            self.y, self.tube = np.append(self.y, 0.0), np.append(self.tube, 0.0)
            self.lower, self.upper = np.append(self.lower, -1e150), np.append(self.upper, 1e150)
        self.beta = np.zeros(len(self.y))
        self.F = self.y.astype(real)
        self.rise, self.fall, self.work, self.second = np.empty((4, len(self.y)), real)
        self.integer = integer
        set_masks(self.weights, self.rise, self.fall)

    @property
    def weights(self) -> BoxWeights:
        return BoxWeights(self.beta, self.lower, self.upper, self.tube)

    def run(self, *, double: bool, tolerance: float = 1e-3, most: int = 10**6) -> tuple[int, float]:
        limits, diagonal = StepLimits(tolerance, 1e-7, most), self.K.diagonal().copy()
        room = StepRoom(self.rise, self.fall, self.work, self.work.view(self.integer))
        if double:
            second = SecondKeys(self.second, self.second.view(self.integer))
            return smo_double_steps(self.K, diagonal, self.F, self.weights, room, second, limits)
        rows = PickedRows(self.K, np.ones(len(self.y), bool), self.K, np.empty(0, np.intp))
        return smo_steps(rows, diagonal, self.F, self.weights, room, limits)[:2]

    @property
    def objective(self) -> float:
        K = self.K.astype(np.float64)
        return float(self.y @ self.beta - self.tube @ np.abs(self.beta) - 0.5 * self.beta @ K @ self.beta)


@pytest.mark.parametrize("real, integer", FLOATS)
@pytest.mark.parametrize("tube", [0.0, 0.2])
@pytest.mark.parametrize("offset", [True, False])
def test_two_pairs_at_a_time_reach_the_optimum_of_one(real, integer, tube: float, offset: bool) -> None:
    one, two = (Problem(real, integer, np.random.default_rng(1), tube=tube, offset=offset) for _ in range(2))
    one.run(double=False)
    steps, gap = two.run(double=True)
    assert gap <= 1e-3 and 0 < steps < 10**6
    assert (two.lower <= two.beta).all() and (two.beta <= two.upper).all() and abs(two.beta.sum()) < 1e-9
    np.testing.assert_allclose(two.F, two.y - two.K.astype(np.float64) @ two.beta, atol=3e-4)
    # Either is within its violation times the weights of the optimum.
    assert abs(one.objective - two.objective) <= 2e-3 * np.abs(one.beta[: len(one.y)]).sum() / 2


def test_every_step_raises_the_objective_and_counts(rng) -> None:
    two = Problem(np.float64, np.int64, rng)
    before, total = two.objective, 0
    for most in (1, 2, 3, 1, 5, 8, 13):
        steps, gap = two.run(double=True, most=most)
        assert steps == most and gap > 1e-3 and two.objective > before
        np.testing.assert_allclose(two.F, two.y - two.K @ two.beta, atol=1e-12)
        before, total = two.objective, total + steps
    # Two pairs before a step is chosen anew.
    assert np.count_nonzero(two.beta) > total


def test_the_second_to_rise_may_be_the_only_one_to_fall() -> None:
    two = Problem(np.float64, np.int64, np.random.default_rng(0), n=130)
    # All want to rise, the first most; the last but one can fall, too.
    two.K = np.eye(130)
    two.y = two.F = np.r_[3.0, np.zeros(98), 2.0, np.zeros(30)]
    two.lower, two.upper = np.zeros(130), np.full(130, 5.0)
    two.beta[99] = 1.0
    two.F = two.y - two.beta
    two.upper[np.delete(np.arange(130), [0, 99])] = 0.0
    set_masks(two.weights, two.rise, two.fall)
    steps, gap = two.run(double=True)
    assert steps == 1 and gap <= 1e-3
    np.testing.assert_allclose(two.beta[[0, 99]], [1.0, 0.0])


@pytest.mark.parametrize("n", [2, 30, 64])
def test_few_rows_take_one_pair_at_a_time(n: int, rng) -> None:
    two = Problem(np.float64, np.int64, rng, n=n)
    two.run(double=True)
    gradient = two.y - two.K @ two.beta
    rising, falling = gradient[two.beta < two.upper], gradient[two.beta > two.lower]
    assert not len(rising) or not len(falling) or rising.max() - falling.min() <= 1e-3 + 1e-9


@pytest.mark.parametrize("real, integer", FLOATS)
def test_a_row_that_is_not_finite_ends_the_steps(real, integer, rng) -> None:
    for i in (0, 150, 299):
        two = Problem(real, integer, rng)
        two.K[i] = two.K[:, i] = np.nan
        steps, _ = two.run(double=True, most=10**5)
        assert steps < 10**5 and (not np.isfinite(two.F).all() or two.beta[i] == 0)


_SCRIPT = """
import hashlib
import numpy as np
from test_smo_double import Problem
problem = Problem(np.float32, np.int32, np.random.default_rng(1), n=1500)
problem.run(double=True)
print(hashlib.sha256(problem.F.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_compiled_and_cached_steps_give_the_same_bits(tmp_path: Path) -> None:
    folders = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": folders}
    gradients = set()
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        gradients.add(run.stdout)
    assert len(gradients) == 1
