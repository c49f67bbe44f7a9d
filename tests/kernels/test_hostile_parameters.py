"""Parameters of any type and size: a kernel, or an error that says what was expected."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernel_table import EXAMPLES, GRAPHS, SERIES, WORDS
from mercer._errors import DataError, MercerError, ParameterError
from mercer.data.objects import short
from mercer.kernels import (
    RBF,
    BagOfWords,
    BlendedSpectrum,
    DynamicTimeWarping,
    Graphlet,
    Kernel,
    Linear,
    Matern,
    PartialTree,
    Propagation,
    SpatialPyramid,
    Spectrum,
    Subsequence,
    WeightedDegree,
    WeisfeilerLehman,
    from_function,
)

_VALUES: list[Any] = [
    0,
    -1,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    -(10**400),
    10**5000,
    2**63,
    1e300,
    True,
    None,
    "1",
    "",
    b"1",
    [],
    [math.nan],
    [[1.0]],
    np.array(2.0),
    np.array([]),
    np.array(["a"]),
    1j,
    object(),
    {},
    {1: 2},
    Fraction(1, 2),
    Decimal("0.5"),
]

_OF_EACH_CLASS = list({type(kernel): kernel for kernel, _ in EXAMPLES if not kernel.children()}.values())


@pytest.mark.parametrize("kernel", _OF_EACH_CLASS, ids=lambda kernel: type(kernel).__name__)
def test_parameters_of_every_class(kernel: Kernel) -> None:
    for field in dataclasses.fields(kernel):
        if field.name in ("tuning", "function", "theirs"):
            continue
        for value in _VALUES:
            try:
                other = dataclasses.replace(kernel, **{field.name: value})
            except MercerError as error:
                assert len(str(error)) < 400, field.name
            else:
                assert other == dataclasses.replace(kernel, **{field.name: value}) and hash(other) == hash(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RBF(10**400),
        lambda: RBF(1.0) + 10**400,
        lambda: RBF(1.0) * 10**400,
        lambda: RBF(1.0) / 10**400,
        lambda: RBF(1.0) / math.inf,
        lambda: RBF(1.0) ** 10**400,
        lambda: RBF.from_gamma(10**400),
        lambda: RBF(1.0).bounded(length_scale=(1, 10**400)),
        lambda: RBF(1.0).with_theta(10**400),
        lambda: RBF(1.0).with_theta(1j),
        lambda: RBF(1.0).fixed(["length_scale"]),
        lambda: PartialTree(terminal_factor=10**400),
        lambda: SpatialPyramid(values=(0, 10**400)),
        lambda: Spectrum(10**5000),
        lambda: BlendedSpectrum(10**9),
        lambda: BagOfWords(idf=np.array(2.0)),
        lambda: BagOfWords(lowercase=10**5000),
        lambda: WeisfeilerLehman(2, base=np.array(["edge", "subtree"])),
        lambda: Propagation(source=np.array([])),
        lambda: Propagation(seed=2**63),
        lambda: from_function(lambda X, Z: X @ Z.T, pairwise="no"),
        lambda: from_function(lambda X, Z: X @ Z.T, definiteness=np.array(["positive"])),
    ],
)
def test_what_is_no_parameter(make: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert len(str(caught.value)) < 400


def test_rows_of_numbers_beyond_all_floats_are_an_error() -> None:
    with pytest.raises(DataError, match="must be a table of numbers"):
        Linear()([[10**400]])


def test_out_must_be_an_array() -> None:
    with pytest.raises(DataError, match="out must be a NumPy array"):
        Linear().block([[1.0]], None, [[0.0]])


def test_a_number_of_thousands_of_digits_has_a_place_in_messages() -> None:
    assert short(10**5000) == "a value of type int that cannot be printed"


@pytest.mark.parametrize("size", [10, 100, 10**6, 2**31 - 1])
def test_lengths_beyond_all_strings_change_nothing(size: int) -> None:
    X, Z = WORDS
    pairs = [
        (Subsequence(size, decay=0.7), Subsequence(8, decay=0.7)),
        (WeightedDegree(3, shift=size), WeightedDegree(3, shift=8)),
    ]
    if size <= 10**6:
        pairs.append((BlendedSpectrum(min(size, 10**5), decay=0.9), BlendedSpectrum(8, decay=0.9)))
    for kernel, least in pairs:
        for other in (X, Z):
            np.testing.assert_allclose(kernel(X, other), least(X, other), rtol=1e-12)
            weights = np.ones((len(X), len(other)))
            np.testing.assert_allclose(
                kernel.pullback(X, other, weights), least.pullback(X, other, weights), rtol=1e-12
            )


def test_degrees_beyond_all_strings_weigh_by_the_degree() -> None:
    # Runs of l symbols count 2 (d - l + 1) / (d (d + 1)).
    for degree in (3, 10, 10**6, 2**31 - 1):
        K = WeightedDegree(degree)(["ab", "ab"])
        weights = [2 * (degree - run + 1) / (degree * (degree + 1)) for run in (1, 2)]
        assert K[0, 1] == pytest.approx(2 * weights[0] + weights[1], rel=1e-12)


def test_weights_of_lengths_beyond_all_strings_have_no_slope() -> None:
    X = WORDS[0]
    for kernel in (Subsequence(12, weights=[1.0] * 12), WeightedDegree(12, weights=[1.0] * 12)):
        slopes = kernel.pullback(X, None, np.ones((len(X), len(X))))
        assert len(slopes) == len(kernel.theta) and (slopes[-4:] == 0).all() and (slopes[-12:-8] > 0).all()


def test_bands_and_seeds_of_any_size() -> None:
    with pytest.raises(ParameterError, match="window must be at most"):
        DynamicTimeWarping(window=2**54)
    wide = DynamicTimeWarping(window=2**31 - 1)(SERIES[0])
    np.testing.assert_array_equal(wide, DynamicTimeWarping()(SERIES[0]))
    assert Graphlet(3, samples=5, seed=2**63 - 1)(GRAPHS[0]).shape == (7, 7)


def test_the_least_exponent_keeps_distances_of_zero() -> None:
    K = DynamicTimeWarping(exponent=5e-324)([[1.0, 2.0], [1.0, 2.0], [3.0]])
    np.testing.assert_array_equal(K, [[0.0, 0.0, -1.0], [0.0, 0.0, -1.0], [-1.0, -1.0, 0.0]])


@pytest.mark.parametrize("nu", [0.3, 0.9, 1.0, 2.0, 60.0, 1e5, 1e15, 1e17, 1e300])
def test_matern_of_any_order_and_distance(nu: float) -> None:
    distances = np.array([0.0, 1e-170, 1e-100, 1e-10, 1e-3, 1e3, 1e100, 1e150])
    values = Matern(1.0, nu=nu)(np.zeros((1, 1)), distances[:, None])[0]
    assert (values <= 1).all() and (values >= 0).all() and (np.diff(values) <= 1e-12).all()
    for distance in distances:
        slopes = Matern(1.0, nu=nu).pullback([[0.0], [distance]], None, np.ones((2, 2)))
        assert np.isfinite(slopes).all(), distance
    if nu >= 1e15:
        points = np.linspace(0, 3, 7)[:, None]
        np.testing.assert_allclose(Matern(1.0, nu=nu)(points), RBF(1.0)(points), rtol=1e-12)
