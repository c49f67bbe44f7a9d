"""What holds for every loss: gradients, curvature, convexity, Fenchel and Young, proximal maps."""

from __future__ import annotations

import copy
import pickle
from dataclasses import is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from loss_table import EXAMPLES, cases, concrete, targets
from mercer.losses import LOSSES, Loss, check_loss

N = 200
every_loss = pytest.mark.parametrize("loss", cases(EXAMPLES), ids=repr)


def sample(loss: Loss, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    return targets(loss, N, seed), rng.normal(size=N) * rng.choice([0.1, 1.0, 3.0], N)


def test_the_table_is_complete() -> None:
    assert concrete(Loss) == set(EXAMPLES)
    assert {cls.name for cls in EXAMPLES if cls.name} == set(LOSSES)


@every_loss
def test_the_public_checker_passes_it(loss: Loss) -> None:
    check_loss(loss, targets(loss, 50))
    check_loss(loss, np.repeat(targets(loss, 1), 3))


@every_loss
def test_values_are_finite_and_not_negative_and_of_the_right_shape(loss: Loss) -> None:
    y, f = sample(loss)
    for result in (loss.value(y, f), loss.curvature(y, f)):
        assert result.shape == (N,) and np.isfinite(result).all() and (result >= 0).all()
    assert loss.gradient(y, f).shape == (N,)


@every_loss
def test_gradient_against_differences(loss: Loss) -> None:
    y, f = sample(loss)
    h = 1e-6
    above, below = (loss.value(y, f + h) - loss.value(y, f)) / h, (loss.value(y, f) - loss.value(y, f - h)) / h
    g = loss.gradient(y, f)
    # A convex function's derivative lies between the two; they are off by the curvature times h, and by rounding.
    slack = 1e-6 * (1.0 + np.abs(g))
    assert (g >= below - slack).all() and (g <= above + slack).all()


@every_loss
def test_curvature_against_differences(loss: Loss) -> None:
    y, f = sample(loss)
    h = 1e-5
    rise = (loss.gradient(y, f + h) - loss.gradient(y, f - h)) / (2 * h)
    at_kink = np.abs(loss.curvature(y, f + h) - loss.curvature(y, f - h)) > 1e-3 * (1.0 + rise)
    if not loss.smooth:
        np.testing.assert_array_equal(loss.curvature(y, f), 0.0)
        return
    assert at_kink.sum() < N / 20
    np.testing.assert_allclose(loss.curvature(y, f)[~at_kink], rise[~at_kink], rtol=1e-5, atol=1e-7)


@every_loss
@given(a=st.floats(-6, 6), b=st.floats(-6, 6), share=st.floats(0, 1), seed=st.integers(0, 5))
def test_convexity(loss: Loss, a: float, b: float, share: float, seed: int) -> None:
    y = targets(loss, 4, seed)
    at = [np.full(4, x) for x in (a, b, share * a + (1 - share) * b)]
    left, right, middle = (loss.value(y, f) for f in at)
    assert (middle <= share * left + (1 - share) * right + 1e-12 * (1.0 + left + right)).all()


@every_loss
def test_fenchel_and_young(loss: Loss) -> None:
    y, f = sample(loss)
    u = loss.gradient(y, f)
    low, high = loss.slopes(y)
    assert (low <= u).all() and (u <= high).all()
    # Equality at a gradient, and no less for any other prediction.
    np.testing.assert_allclose(loss.value(y, f) + loss.conjugate(y, u), u * f, rtol=1e-9, atol=1e-9)
    for other in (np.zeros(N), f[::-1].copy(), y):
        assert (loss.value(y, other) + loss.conjugate(y, u) >= u * other - 1e-9 * (1.0 + np.abs(u * other))).all()


@every_loss
def test_conjugate_against_the_best_of_many_predictions(loss: Loss) -> None:
    y, f = sample(loss)
    u = 0.9 * loss.gradient(y, f)
    # 0 is a slope of every loss that is 0 somewhere; so is what lies between it and a gradient.
    grid = np.linspace(-60, 60, 200_001)[None, :]
    values = np.stack([loss.value(np.full(grid.size, target), grid[0]) for target in y[:8]])
    best = (u[:8, None] * grid - values).max(axis=1)
    conjugate = loss.conjugate(y[:8], u[:8])
    # A grid of step 6e-4 misses the top by at most the largest slope times that, and is never above it.
    assert (best <= conjugate + 1e-9).all() and (best >= conjugate - 5e-3).all()


@every_loss
def test_beyond_its_slopes_the_conjugate_is_infinite(loss: Loss) -> None:
    every = targets(loss, 20)
    for side, away in ((0, -0.01), (1, 0.01)):
        # A loss of a user's that grows without end has a gradient taken far out in the place of none.
        y = every[np.abs(loss.slopes(every)[side]) < 1e6]
        slope = loss.slopes(y)[side]
        assert np.isinf(loss.conjugate(y, slope + away)).all()
        assert np.isfinite(loss.conjugate(y, slope)).all()


@every_loss
@pytest.mark.parametrize("step", [0.05, 1.0, 20.0])
def test_prox_against_minimisation(loss: Loss, step: float) -> None:
    y, v = (part[:15] for part in sample(loss, 3))
    points = loss.prox(y, v, step)

    def objective(f: np.ndarray) -> np.ndarray:
        return loss.value(y, f) + (f - v) ** 2 / (2 * step)

    for i in range(len(v)):
        one = minimize_scalar(
            lambda f, i=i: float(objective(np.where(np.arange(len(v)) == i, f, v))[i]),
            bracket=(v[i] - 1, v[i] + 1),
            tol=1e-12,
        )
        # The objective curves by 1 / step at least, so that a value tells the point to the root of its rounding.
        assert points[i] == pytest.approx(one.x, abs=1e-5 * (1 + abs(one.x)))
    gain = objective(points)
    assert (gain <= objective(v) + 1e-12).all() and (gain <= objective(y) + 1e-12).all()


@every_loss
def test_prox_takes_a_step_for_each_row_and_moves_less_than_its_argument(loss: Loss) -> None:
    y, v = sample(loss, 4)
    steps = np.random.default_rng(0).uniform(0.1, 5.0, N)
    points = loss.prox(y, v, steps)
    one = np.array([loss.prox(y[i : i + 1], v[i : i + 1], steps[i])[0] for i in range(20)])
    np.testing.assert_allclose(points[:20], one, rtol=1e-12, atol=1e-14)
    moved = loss.prox(y, v + 0.3, steps) - points
    assert (moved >= -1e-12).all() and (moved <= 0.3 + 1e-12).all()


@every_loss
def test_losses_of_straight_pieces_say_so(loss: Loss) -> None:
    y, f = sample(loss)
    pieces = loss.tube(y)
    if pieces is None:
        return
    r = pieces.centre - f
    expected = np.maximum(0.0, np.maximum(pieces.above * (r - pieces.width), pieces.below * (-r - pieces.width)))
    np.testing.assert_allclose(loss.value(y, f), expected, rtol=1e-12, atol=1e-14)


@every_loss
def test_values_print_copy_and_pickle(loss: Loss) -> None:
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        y, f = sample(loss)
        np.testing.assert_array_equal(other.value(y, f), loss.value(y, f))
    if is_dataclass(loss):
        assert eval(repr(loss), {type(loss).__name__: type(loss)}) == loss
