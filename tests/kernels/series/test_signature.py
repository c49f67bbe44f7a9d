"""Signatures beside their definition, closed forms, and what leaves a path as it is."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.special import i0, i1, j0

import mercer
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, ParameterError
from mercer.data.series import Series
from mercer.kernels import RBF, Signature, SignaturePDE

_rng = np.random.default_rng(5)
PATHS = [0.2 * _rng.normal(size=(n, 2)).cumsum(axis=0) for n in (1, 2, 3, 6, 20, 9)]


def _word(x: np.ndarray, word: tuple[int, ...]) -> float:
    """An iterated integral from its definition: every way to put the letters into the straight pieces, in order."""
    steps = np.diff(x, axis=0)
    total = 0.0
    for places in itertools.combinations_with_replacement(range(len(steps)), len(word)):
        volume = math.prod(1 / math.factorial(places.count(p)) for p in set(places))
        total += volume * math.prod(steps[p, c] for p, c in zip(places, word))
    return total


def _timed(x: np.ndarray, time: float) -> np.ndarray:
    return np.c_[x, np.linspace(0.0, time, len(x))]


@pytest.mark.parametrize("time", [0.0, 0.7])
def test_signature_is_the_sum_over_words(time: float) -> None:
    level, scale = 3, 0.8
    few = [_timed(x, time) if time else x for x in PATHS[:4]]
    words = [w for k in range(level + 1) for w in itertools.product(range(few[0].shape[1]), repeat=k)]
    S = np.array([[scale ** len(w) * _word(x, w) for w in words] for x in few])
    K = Signature(level, scale, time)(PATHS[:4])
    np.testing.assert_allclose(K, S @ S.T, rtol=1e-13)
    np.testing.assert_allclose(Signature(level, scale, time).diagonal(PATHS[:4]), np.diag(S @ S.T), rtol=1e-13)


def test_a_straight_line_is_an_exponential() -> None:
    # Its own numbers: the sum below alternates, and loses digits, where v @ w is far below 0.
    rng = np.random.default_rng(1)
    v, w = rng.normal(size=(2, 3))
    lines = [np.array([p, p + d]) for p, d in zip(rng.normal(size=(2, 3)), (v, w))]
    terms = [(v @ w) ** n / math.factorial(n) ** 2 for n in range(40)]
    assert Signature(6, time=0.0)(lines)[0, 1] == pytest.approx(sum(terms[:7]), rel=1e-13)
    assert SignaturePDE(time=0.0)(lines)[0, 1] == pytest.approx(sum(terms), rel=1e-12)
    assert SignaturePDE(2.0, time=0.0)(lines)[0, 1] == pytest.approx(
        sum(t * 4**n for n, t in enumerate(terms)), rel=1e-12
    )
    # Cut into pieces it is the same line.
    cut = [np.linspace(line[0], line[1], 7) for line in lines]
    assert SignaturePDE(time=0.0)(cut)[0, 1] == pytest.approx(sum(terms), rel=1e-12)


@pytest.mark.parametrize("time", [0.0, 0.5])
def test_whole_signatures_are_the_limit_of_truncated_ones(time: float) -> None:
    level = 10 if time else 14
    # Words of length n are at most of the size (length of the path)^n / n! together.
    size = 0.8**2 * np.multiply.outer(*2 * [[np.hypot(*np.diff(x, axis=0).T).sum() + time for x in PATHS]])
    left_out = sum(size**n / math.factorial(n) ** 2 for n in range(level + 1, 60))
    error = np.abs(SignaturePDE(0.8, time=time)(PATHS) - Signature(level, 0.8, time)(PATHS))
    assert (error <= left_out + 1e-12).all() and left_out[1:4, 1:4].max() < 1e-9


def _refined(x: np.ndarray, z: np.ndarray, length_scale: float, parts: int) -> float:
    """The equation by Salvi's finite differences on a fine grid, for paths through the features of a Gaussian."""
    points = RBF(length_scale)(x, z)
    pieces = np.diff(np.diff(points, axis=0), axis=1) / parts**2
    k = np.ones(((len(x) - 1) * parts + 1, (len(z) - 1) * parts + 1))
    for i, j in itertools.product(range(k.shape[0] - 1), range(k.shape[1] - 1)):
        a = pieces[i // parts, j // parts]
        k[i + 1, j + 1] = (k[i + 1, j] + k[i, j + 1]) * (1 + a / 2 + a**2 / 12) - k[i, j] * (1 - a**2 / 12)
    return float(k[-1, -1])


def test_paths_through_features_of_a_gaussian() -> None:
    x, z = PATHS[3], PATHS[5]
    fine, finer = (_refined(x, z, 0.7, parts) for parts in (8, 16))
    # Of second order: the next refinement leaves a quarter of the error.
    extrapolated = finer + (finer - fine) / 3
    assert SignaturePDE(length_scale=0.7, time=0.0)([x], [z])[0, 0] == pytest.approx(
        extrapolated, abs=0.1 * abs(finer - fine)
    )
    timed = SignaturePDE(length_scale=0.7, time=0.4)([x], [z])[0, 0]
    by_hand = SignaturePDE(length_scale=0.7, time=0.0)([_timed(x, 0.4)], [_timed(z, 0.4)])[0, 0]
    assert timed == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(
    "kernel", [Signature(4, time=0.0), SignaturePDE(time=0.0), SignaturePDE(length_scale=0.8, time=0.0)]
)
def test_what_leaves_a_path_as_it_is(kernel: Any) -> None:
    K = kernel(PATHS)
    repeated = [np.repeat(x, _rng.integers(1, 4, size=len(x)), axis=0) for x in PATHS]
    np.testing.assert_allclose(kernel(repeated), K, rtol=1e-11)
    np.testing.assert_allclose(kernel([x + 3.0 for x in PATHS]), K, rtol=1e-9)
    if not getattr(kernel, "length_scale", 0.0):
        # Points on the way; in features of a Gaussian the way is another one.
        between = [np.insert(x, 1, x[:2].mean(axis=0), axis=0) if len(x) > 1 else x for x in PATHS]
        np.testing.assert_allclose(kernel(between), K, rtol=1e-11)
    # A point, and a path that goes back the way it came, are the same as none.
    there_and_back = np.r_[PATHS[4], PATHS[4][::-1]]
    np.testing.assert_allclose(kernel([there_and_back], PATHS), np.ones((1, len(PATHS))), rtol=1e-9)
    assert np.array_equal(kernel([PATHS[0]], PATHS), np.ones((1, len(PATHS))))


def test_one_channel_without_time_has_its_ends_only() -> None:
    walk = _rng.normal(size=(3, 12)).cumsum(axis=1)
    ends = walk[:, -1] - walk[:, 0]
    expected = sum(np.multiply.outer(ends, ends) ** n / math.factorial(n) ** 2 for n in range(5))
    np.testing.assert_allclose(Signature(4, time=0.0)(walk), expected, rtol=1e-11)
    assert np.abs(Signature(4, time=1.0)(walk) - expected).max() > 0.1


@pytest.mark.parametrize("size", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("length_scale", [0.0, 1.0])
def test_whole_signatures_are_positive(size: float, length_scale: float) -> None:
    for _ in range(8):
        X = [size * _rng.normal(size=(_rng.integers(2, 6), 2)) for _ in range(12)]
        eigenvalues = np.linalg.eigvalsh(SignaturePDE(length_scale=length_scale, time=0.0)(X))
        assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


@pytest.mark.parametrize("scale", [1e-2, 1.0, 3.0])
@pytest.mark.parametrize("lengths", [(0.0, 0.0), (0.0, 0.6), (0.9, 0.0), (0.9, 0.6)])
def test_slopes_beside_differences(scale: float, lengths: tuple[float, float]) -> None:
    whole = SignaturePDE(scale, *lengths)
    kernels = [whole] if lengths[0] else [whole, Signature(4, scale, lengths[1])]
    weights = np.cos(np.arange(36.0)).reshape(6, 6)
    for kernel in kernels:
        gradient, theta = kernel.pullback(PATHS, None, weights), kernel.theta
        assert len(theta) == 1 + (lengths[1] > 0) + (isinstance(kernel, SignaturePDE) and lengths[0] > 0)
        for i in range(len(theta)):
            step = np.zeros(len(theta))
            step[i] = 1e-4
            up, down = kernel.with_theta(theta + step), kernel.with_theta(theta - step)
            difference = (weights * (up(PATHS) - down(PATHS))).sum() / 2e-4
            assert gradient[i] == pytest.approx(difference, rel=1e-4, abs=1e-10)


def test_pieces_that_are_long_are_cut() -> None:
    x = np.array([[0.0], [2.0], [-2.5], [3.0]])
    fine = np.interp(np.linspace(0, 3, 61), np.arange(4), x[:, 0])
    assert SignaturePDE(time=0.0)([x])[0, 0] == pytest.approx(SignaturePDE(time=0.0)([fine])[0, 0], rel=1e-11)
    assert SignaturePDE(time=0.0)([x])[0, 0] == pytest.approx(i0(6.0), rel=1e-11)
    for factor in (100.0, 1e60):
        with pytest.raises(KernelValueError, match=r"too long for SignaturePDE.* Lower scale"):
            SignaturePDE(time=0.0)([factor * x, x * factor])


@pytest.mark.parametrize("count", [100, 200])
def test_rough_paths_in_one_channel_have_a_closed_form(count: int) -> None:
    """By rounding alone, values grew exponentially with the number of steps."""
    x, z = np.random.default_rng(0).normal(size=(2, count))
    ends = np.array([x[-1] - x[0], z[-1] - z[0]])
    products = np.multiply.outer(ends, ends)
    K = SignaturePDE(time=0.0)([x, z])
    root = 2 * np.sqrt(np.abs(products))
    np.testing.assert_allclose(K, np.where(products > 0, i0(root), j0(root)))
    # The slope by the logarithm of scale: x d/dx I_0(2 x) at the scale 1, twice as much by the square of the scale.
    slope = SignaturePDE(time=0.0).pullback([x], None, np.ones((1, 1)))
    assert slope[0] == pytest.approx(2 * abs(ends[0]) * i1(2 * abs(ends[0])), rel=1e-8)


def test_rough_paths_that_go_back_are_none() -> None:
    way = np.random.default_rng(3).normal(size=(60, 2)) * 0.5
    back = np.r_[way, way[::-1]]
    np.testing.assert_allclose(SignaturePDE(time=0.0)([back], [back, way]), 1.0, rtol=1e-6)


def test_paths_of_too_few_digits_are_refused() -> None:
    # Of a line of length 10 there and back, values on the way are 4e7 and the last one is 1; rounding left 0.84.
    line = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 0.0]])
    rough = 5.0 * np.random.default_rng(1).normal(size=60)
    for path in (line, rough):
        for evaluate in (SignaturePDE(time=0.0), SignaturePDE(time=0.0).diagonal, SignaturePDE(time=0.0).normalized()):
            with pytest.raises(KernelValueError, match=r"too long for SignaturePDE.* Lower scale"):
                evaluate([path, 0.1 * path])
    with pytest.raises(KernelValueError, match="too long for"):
        SignaturePDE(time=0.0)([line], [0.9 * line])
    assert SignaturePDE(0.5, time=0.0)([line])[0, 0] == pytest.approx(1.0, abs=1e-6)
    length = np.abs(np.diff(rough)).sum()
    assert SignaturePDE(1 / length, time=0.0)([rough])[0, 0] == pytest.approx(
        i0(2 * abs(rough[-1] - rough[0]) / length)
    )
    # Large values alone are not refused.
    assert SignaturePDE(time=0.0)([line[:2]])[0, 0] == pytest.approx(i0(20.0), rel=1e-12)
    assert SignaturePDE(time=0.0)([3.5 * line[:2]])[0, 0] == pytest.approx(i0(70.0), rel=1e-9)


def test_mistakes_are_named() -> None:
    for kernel in (Signature(2, time=0.0), SignaturePDE(time=0.0)):
        with pytest.raises(DataError, match="the same number of channels"):
            kernel([[1.0, 2.0]], [np.zeros((3, 2))])
    with pytest.raises(ParameterError, match="level must be a whole number above 0, but is 0"):
        Signature(0, time=0.0)
    with pytest.raises(ParameterError, match="time must be finite and at least 0"):
        SignaturePDE(time=-1.0)
    # Of the last the number of words has more digits than Python prints.
    for level, size in ((9, 5), (60, 2), (30_000, 2)):
        with mercer.config(memory=2**20), pytest.raises(MemoryBudgetError, match=r"Lower the level, or .*SignaturePDE"):
            Signature(level, time=0.0)(list(_rng.normal(size=(3, 4, size))))
    with pytest.raises(DataError, match="row 0 of X: a series must have a value at every time, but has masked ones"):
        Series.of([np.ma.masked_array([1.0, 2.0], [0, 1])])
    with pytest.raises(DataError, match="row 1 of X has masked entries"):
        Signature(2, time=0.0)([[1.0, 2.0], np.ma.masked_array([1.0, 2.0], [0, 1])])


@pytest.mark.filterwarnings("error")
def test_signatures_that_overflow_are_named() -> None:
    for kernel, far in (
        (Signature(2, time=0.0), 1e100),
        (Signature(4, scale=1e100), 1.0),
        (Signature(2, time=1.0), 1e149),
    ):
        for evaluate in (kernel, kernel.diagonal):
            with pytest.raises(KernelValueError, match="returned inf"):
                evaluate([[0.0, far], [far, 0.0]])


@pytest.mark.parametrize("count", [40, 600])
def test_signatures_stay_inside_the_budget(count: int) -> None:
    X = list(0.1 * _rng.normal(size=(count, 4, 4)))
    kernel = Signature(6 if count > 512 else 7, time=0.0)
    with mercer.config(n_jobs=1):
        kernel(X[:2])
        tracemalloc.start()
        kernel(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # What takes so much is refused where there is less.
        with mercer.config(memory=int(0.9 * peak)), pytest.raises(MemoryBudgetError, match="signatures"):
            kernel(Series.of([x + 0.0 for x in X]))


def test_two_long_paths_are_refused_where_their_pieces_do_not_fit() -> None:
    X = [0.001 * np.arange(1000.0), [0.0, 1.0]]
    with mercer.config(memory="20MiB"), pytest.raises(MemoryBudgetError, match="paths of 1000 and 1000 points"):
        SignaturePDE(time=0.0)(X)
    with mercer.config(memory="20MiB"):
        assert SignaturePDE(time=0.0)(X[:1], X[1:]).shape == (1, 1)


def test_one_channel_has_the_words_of_a_straight_line() -> None:
    walk, other = _rng.normal(size=40).cumsum(), _rng.normal(size=7)
    v, w = walk[-1] - walk[0], other[-1] - other[0]
    expected = sum((v * w) ** k / math.factorial(k) ** 2 for k in range(30))
    # Of a level that no recursion over pairs of levels would come to the end of.
    assert Signature(50_000, time=0.0)([walk], [other])[0, 0] == pytest.approx(expected, rel=1e-12)
    assert Signature(3, time=0.0)([[5.0]], [other])[0, 0] == 1.0


def test_levels_of_too_many_words_are_refused_at_once() -> None:
    with pytest.raises(MemoryBudgetError, match="Lower the level"):
        Signature(50_000, time=1.0)([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("kernel", [Signature, SignaturePDE])
def test_by_default_shapes_in_one_channel_differ(kernel: Any) -> None:
    times = np.linspace(0.0, 1.0, 15)
    hill, valley = np.sin(np.pi * times), -np.sin(np.pi * times)
    K = kernel()([hill, valley])
    assert K[0, 1] < 0.9 * min(K[0, 0], K[1, 1])
    np.testing.assert_allclose(kernel(time=0.0)([hill, valley]), 1.0, rtol=1e-12)
