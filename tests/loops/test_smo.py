import numpy as np
import pytest

from mercer.loops._jit import jit
from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.picked import PickedRows
from mercer.loops.smo import Groups, StepLimits, StepRoom, first_largest, ordered, smo_steps

FLOATS = [(np.float32, np.int32), (np.float64, np.int64)]


@jit
def _keys(values, keys):
    for k in range(values.shape[0]):
        keys[k] = ordered(values[k])


@pytest.mark.parametrize("real, integer", FLOATS)
def test_bits_are_ordered_as_the_floats_are(real, integer, rng):
    values = np.concatenate([rng.standard_normal(200) * 10.0 ** rng.integers(-30, 30, 200), [0, np.inf, -np.inf]])
    values = values.astype(real)
    keys = np.empty(len(values), integer)
    _keys(values, keys)
    order = np.argsort(values, kind="stable")
    assert (np.diff(keys[order]) >= 0).all() and len(np.unique(keys)) == len(np.unique(values))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000])
def test_first_largest_is_argmax(n, rng):
    for keys in (rng.integers(-5, 5, n).astype(np.int32), rng.integers(-(2**40), 2**40, n)):
        assert first_largest(keys) == np.argmax(keys)


def _problem(real, rng, n=60, C=5.0):
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)).astype(real)
    return K, y, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)


def _steps(K, present, diagonal, F, weights):
    """Until the violation is 1e-3."""
    room = StepRoom.of(np.empty((4, len(F)), F.dtype))
    set_masks(weights, room.rise, room.fall)
    rows = PickedRows(K, present, K, np.empty(0, np.intp))
    return smo_steps(rows, diagonal, F, weights, Groups((0,), (len(F),), (0,)), room, StepLimits(1e-3, 1e-7, 10**6))


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_steps_reach_the_tolerance_and_keep_the_constraints(real, rng):
    K, y, lower, upper = _problem(real, rng)
    F, beta = y.astype(real), np.zeros(len(y))
    weights = BoxWeights(beta, lower, upper, np.zeros(len(y)))
    steps, gap, missing = _steps(K, np.ones(len(y), bool), K.diagonal().copy(), F, weights)
    assert 0 < steps < 10**6
    assert (lower <= beta).all() and (beta <= upper).all()
    assert abs(beta.sum()) < 1e-9
    gradient = y - K.astype(np.float64) @ beta
    np.testing.assert_allclose(F, gradient, atol=2e-4)
    violation = gradient[beta < upper].max() - gradient[beta > lower].min()
    assert violation <= 1e-3 + 2e-4
    assert gap <= 1e-3
    assert missing == -1


def test_steps_ask_for_the_rows_that_they_use_and_for_no_others(rng):
    K, y, lower, upper = _problem(np.float64, rng)
    rows, present = np.full_like(K, np.nan), np.zeros(len(y), bool)
    F, beta = y.copy(), np.zeros(len(y))
    weights = BoxWeights(beta, lower, upper, np.zeros(len(y)))
    missing = 0
    while missing >= 0:
        rows[missing], present[missing] = K[missing], True
        _, gap, missing = _steps(rows, present, K.diagonal().copy(), F, weights)
        assert missing == -1 or not present[missing]
    assert gap <= 1e-3
    assert present[np.flatnonzero(beta)].all()
    assert present.sum() < len(y)
    np.testing.assert_allclose(F, y - K @ beta, atol=1e-9)


def test_a_nan_in_the_matrix_ends_the_steps(rng):
    K, y, lower, upper = _problem(np.float64, rng)
    K[:] = np.nan
    weights = BoxWeights(np.zeros(len(y)), lower, upper, np.zeros(len(y)))
    steps, _, _ = _steps(K, np.ones(len(y), bool), K.diagonal().copy(), y.copy(), weights)
    assert steps < 100
