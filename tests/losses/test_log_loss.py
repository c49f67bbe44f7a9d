"""The log loss against naive loops and finite differences, also where probabilities are next to 0 and 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer.losses.log_loss import LogLoss, log_loss
from mercer.solvers.risk.newton import best_offset, pseudo_inverse

RNG = np.random.default_rng(0)
COST = RNG.uniform(0.5, 3.0, 12)


def loss_of(classes: int) -> LogLoss:
    return log_loss(np.arange(12) % classes, COST, classes)


def naive_value(loss: LogLoss, F: np.ndarray) -> float:
    total = 0.0
    for i, code in enumerate(loss.codes):
        row = [0.0, F[i, 0]] if F.shape[1] == 1 else list(F[i])
        total += loss.cost[i] * (math.log(math.fsum(math.exp(f) for f in row)) - row[code])
    return total


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_value_against_a_loop(classes: int) -> None:
    loss = loss_of(classes)
    F = RNG.normal(size=(12, loss.columns), scale=3.0)
    assert loss.value(F) == pytest.approx(naive_value(loss, F), rel=1e-13)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_slope_and_curvature_against_finite_differences(classes: int) -> None:
    loss = loss_of(classes)
    F, Z = RNG.normal(size=(2, 12, loss.columns), scale=2.0)
    step = 1e-5
    along = (loss.value(F + step * Z) - loss.value(F - step * Z)) / (2 * step)
    assert -(loss.pull(F) * Z).sum() == pytest.approx(along, rel=1e-7)
    slope = loss.slope(F)
    np.testing.assert_array_equal(slope.pull, loss.pull(F))
    bent = -(loss.pull(F + step * Z) - loss.pull(F - step * Z)) / (2 * step)
    # Central differences of functions of size 3 err by step^2 and by eps / step, each about 1e-10.
    np.testing.assert_allclose(slope.curve(Z), bent, atol=1e-8)
    sums = np.stack([slope.curve(np.tile(e, (12, 1))).sum(axis=0) for e in np.eye(loss.columns)], axis=1)
    np.testing.assert_allclose(slope.total(), sums, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("scale", [0.1, 2.0, 30.0])
def test_curvatures_are_sums_over_pairs(classes: int, scale: float) -> None:
    loss, h = loss_of(classes), 1e-6
    F = scale * RNG.normal(size=loss.shape)
    slope, c = loss.slope(F), loss.columns
    trace = np.zeros(12)
    for j in range(c):
        unit = np.tile(np.eye(c)[j], (12, 1))
        product = np.zeros((12, c))
        for (a, b), w in zip(loss.pairs, slope.pair_weights().T, strict=True):
            e = np.eye(c)[a] - (np.eye(c)[b] if a != b else 0.0)
            product += (w * e[j])[:, None] * e
        np.testing.assert_allclose(product, slope.curve(unit), atol=1e-14)
        trace += product[:, j]
    np.testing.assert_allclose(slope.scalar, trace / max(c - 1, 1), rtol=1e-12, atol=1e-14)
    nu = RNG.normal(size=slope.pair_weights().shape)
    for j in range(c):
        step = h * np.eye(c)[j]
        bend = (loss.slope(F + step).pair_weights() - loss.slope(F - step).pair_weights()) / (2 * h)
        np.testing.assert_allclose(slope.pull_pairs(nu)[:, j], (nu * bend).sum(axis=1), atol=1e-8)


@pytest.mark.parametrize("classes", [3, 5])
def test_equal_changes_of_all_columns_change_nothing(classes: int) -> None:
    loss = loss_of(classes)
    F = RNG.normal(size=(12, classes))
    shifted = F + RNG.normal(size=(12, 1))
    assert loss.value(shifted) == pytest.approx(loss.value(F), rel=1e-13)
    np.testing.assert_allclose(loss.slope(F).curve(shifted - F), 0.0, atol=1e-13)
    np.testing.assert_allclose(loss.pull(F).sum(axis=1), 0.0, atol=1e-13)


def test_two_classes_are_the_softmax_of_zero_and_one_value() -> None:
    codes, f = np.arange(12) % 2, RNG.normal(size=(12, 1), scale=4.0)
    two, many = log_loss(codes, COST, 2), log_loss(codes, COST, 3)
    # A third class whose probability is zero.
    F = np.column_stack([np.zeros(12), f, np.full(12, -800.0)])
    assert two.value(f) == pytest.approx(many.value(F), rel=1e-13)
    np.testing.assert_allclose(two.pull(f)[:, 0], many.pull(F)[:, 1], rtol=1e-13)


@pytest.mark.parametrize("classes", [2, 3])
def test_small_probabilities_keep_their_digits(classes: int) -> None:
    loss = log_loss(np.array([1, 1]), np.ones(2), classes)
    own, others = (0, 1) if classes == 2 else (1, 2)
    F = np.zeros((2, loss.columns))
    F[:, own] = [50.0, 700.0]
    # What is left out of the logarithm is far below eps.
    assert loss.value(F) == pytest.approx(others * math.exp(-50.0), rel=1e-13)
    expected = [others * math.exp(-50.0), others * math.exp(-700.0)]
    assert loss.pull(F)[:, own].tolist() == pytest.approx(expected, rel=1e-13)
    far = loss.value(1e6 * (1.0 - F))
    assert np.isfinite(far) and np.isfinite(loss.slope(-1e6 * F).pull).all()


@given(
    arrays(np.float64, (6, 3), elements=st.floats(-30, 30)),
    arrays(np.float64, 6, elements=st.floats(1e-3, 1e3)),
    arrays(np.float64, 3, elements=st.floats(-20, 20)),
)
def test_the_best_offset_balances_the_pulls(F: np.ndarray, cost: np.ndarray, start: np.ndarray) -> None:
    loss = log_loss(np.array([0, 1, 2, 0, 1, 2]), cost, 3)
    offset = best_offset(loss, F, start)
    assert np.abs(loss.pull(F + offset).sum(axis=0)).max() <= 1e-12 * cost.sum()
    assert offset.sum() == pytest.approx(start.sum(), abs=1e-9)
    assert loss.value(F + offset) <= loss.value(F + start)


def test_pseudo_inverse_of_nothing_is_nothing() -> None:
    np.testing.assert_array_equal(pseudo_inverse(np.zeros((3, 3))), np.zeros((3, 3)))


@pytest.mark.parametrize("classes", [2, 3])
def test_divergence_against_a_loop(classes: int) -> None:
    loss = loss_of(classes)
    F = RNG.normal(size=(12, loss.columns))
    change = loss.pull(F + 0.3 * RNG.normal(size=F.shape)) - loss.pull(F)
    for factor, whole in ((-1e-6, True), (-1.0, True), (40.0, False)):
        part, divergence = loss.slope(F).divergence(factor * change)
        total = lowest = 0.0
        for i in range(12):
            row = np.exp([0.0, F[i, 0]] if classes == 2 else F[i])
            p = row / row.sum()
            moved = factor * (np.array([-change[i, 0], change[i, 0]]) if classes == 2 else change[i]) / COST[i]
            q = p + part * moved
            lowest = min(lowest, ((p + moved) / p).min() - 1.0)
            total += COST[i] * sum(a * math.log(a / b) for a, b in zip(q, p, strict=True) if a > 1e-15)
        assert (part == 1.0) == whole and part == pytest.approx(min(1.0, -1.0 / lowest))
        # The loop loses digits where q is next to p.
        assert divergence == pytest.approx(total, rel=1e-9, abs=1e-14)


def test_divergence_where_probabilities_are_zero() -> None:
    loss = log_loss(np.array([0, 1]), np.ones(2), 3)
    slope = loss.slope(np.array([[0.0, -800.0, 0.0], [0.0, 0.0, 0.0]]))
    assert slope.divergence(np.zeros((2, 3))) == (1.0, 0.0)
    # Nothing may be taken from, and nothing given to, a class without any probability.
    assert slope.divergence(np.array([[0.1, -0.2, 0.1], [0.0, 0.0, 0.0]])) == (0.0, 0.0)
    assert slope.divergence(np.array([[-0.1, 0.2, -0.1], [0.0, 0.0, 0.0]])) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("least", "reached"), [(-600.0, True), (-680.0, True), (-705.0, False), (-716.0, False), (-740.0, False)]
)
def test_divergence_where_probabilities_are_next_to_zero(least: float, reached: bool) -> None:
    loss = log_loss(np.array([0, 1]), np.full(2, 1e7), 3)
    slope = loss.slope(np.array([[0.0, least, 0.0], [0.0, 0.0, 0.0]]))
    given = np.array([[-1e6, 2e6, -1e6], [0.0, 0.0, 0.0]])
    with np.errstate(all="raise"):
        part, divergence = slope.divergence(given)
    # It is given, or said to be out of reach.
    assert part == reached
    assert divergence == (pytest.approx(-2e6 * least, rel=0.05) if reached else 0.0)
