"""What kernels promise to the last bit: symmetry, ones on the diagonal; and digits that no neighbour may take away."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from kernel_table import EXAMPLES
from mercer import Gram, KernelRidge
from mercer._errors import DataError, KernelValueError
from mercer.kernels import (
    RBF,
    ArcCosine,
    ExponentialDot,
    Kernel,
    Linear,
    Matern,
    NegativeDistance,
    Periodic,
    Polynomial,
    Tanimoto,
    from_function,
)

_NAMES = [f"{i}-{kernel!r:.60}" for i, (kernel, _) in enumerate(EXAMPLES)]


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES, ids=_NAMES)
def test_gram_matrices_are_symmetric_and_normalized_ones_have_ones(kernel: Kernel, data: Any) -> None:
    K = kernel(data[0])
    np.testing.assert_array_equal(K, K.T)
    if kernel.definiteness != "positive":
        return
    cosines = kernel.normalized()(data[0])
    np.testing.assert_array_equal(cosines, cosines.T)
    np.testing.assert_array_equal(np.diag(cosines), kernel.diagonal(data[0]) > 0)
    np.testing.assert_array_equal(np.diag(cosines), kernel.normalized().diagonal(data[0]))


def test_symmetry_of_functions_and_centring_across_tiles(rng: np.random.Generator) -> None:
    X = rng.normal(size=(530, 3))
    for kernel in (
        Polynomial(3).normalized(),
        Linear().scaled_by(lambda X: np.exp(3 * X[:, 0])),
        RBF(1.0).centered(X[:7]),
    ):
        for rows in (X, X.astype(np.float32)):
            K = kernel(rows)
            np.testing.assert_array_equal(K, K.T)


def test_a_row_of_another_input_is_not_set_to_one() -> None:
    X = np.array([[1.0, 0.0], [1.0, 1.0]])
    K = Linear().normalized()(X, X[::-1])
    np.testing.assert_allclose(K, [[math.sqrt(0.5), 1.0], [1.0, math.sqrt(0.5)]], rtol=1e-15)


@pytest.mark.parametrize("scale", [1e-30, 1e-40, 1e15])
def test_normalized_rows_of_single_precision_are_never_nan(scale: float) -> None:
    X = (scale * np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0]])).astype(np.float32)
    K = Linear().normalized()(X)
    np.testing.assert_array_equal(np.diag(K), [1.0, 1.0, 0.0])
    assert np.isfinite(K).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-60, 1e60, 1e170, 1e300])
def test_cosines_and_overlaps_of_rows_whose_squares_are_no_numbers(size: float, form: Any) -> None:
    X = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 0.0], [1.0, 2.0]])
    Z = 0.5 * X[:2]
    kernels = (
        Linear().normalized(),
        Polynomial(3, 1.0, 0.0).normalized(),
        (2.0 * Linear() ** 2 * ArcCosine(1)).normalized(),
        (Linear() ** 2 + Polynomial(2, 3.0, 0.0)).normalized(),
        Tanimoto(),
    )
    for kernel in kernels:
        for tile, tolerance in ((np.float32, 1e-5), (np.float64, 1e-12)):
            K = Gram(kernel, form(size * X), dtype=tile).dense()
            np.testing.assert_allclose(K, kernel(X), rtol=tolerance)
            np.testing.assert_array_equal(K, K.T)
            block = Gram(kernel, form(size * X), form(size * Z), dtype=tile).dense()
            np.testing.assert_allclose(block, kernel(X, Z), rtol=tolerance)
        np.testing.assert_allclose(kernel.diagonal(form(size * X)), kernel.diagonal(X), rtol=1e-12)
    np.testing.assert_allclose(Tanimoto()(size * X[:2])[0, 1], 4 / 6, rtol=1e-12)


def test_overlaps_of_rows_of_all_sizes() -> None:
    K = Tanimoto()([[1e-170], [1e170], [1e-200], [0.0]])
    expected = np.eye(4)
    expected[0, 2] = expected[2, 0] = 1e-30
    np.testing.assert_allclose(K, expected, rtol=1e-12)


# ---- angles


def _one_minus_angle(x: np.ndarray, z: np.ndarray) -> float:
    """``1 - angle / pi`` from exact products, so that close rows have an angle of the right size."""
    a, b = (Fraction(value) / Fraction(np.abs(x).max()) for value in x)
    c, d = (Fraction(value) / Fraction(np.abs(z).max()) for value in z)
    return 1 - math.atan2(float(abs(a * d - b * c)), float(a * c + b * d)) / math.pi


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_angles_of_close_and_opposite_rows(form: Any) -> None:
    X = np.array([[1, 2], [1, 2], [1, 2 + 1e-9], [-1, -2], [3e200, 6e200], [1e-200, 3e-200], [2, -1]], dtype=float)
    expected = np.array([[_one_minus_angle(x, z) for z in X] for x in X])
    np.testing.assert_allclose(ArcCosine(0)(form(X)), expected, rtol=0, atol=4e-16)
    np.testing.assert_array_equal(ArcCosine(0).diagonal(form(X)), np.ones(len(X)))


def test_rows_far_from_the_origin_keep_the_definiteness_of_angles(rng: np.random.Generator) -> None:
    for offset in (0.0, 1e3, 1e8, 1e12):
        X = offset + np.repeat(rng.normal(size=(20, 3)), 2, axis=0)
        K = ArcCosine(0)(X)
        np.testing.assert_array_equal(np.diag(K), np.ones(len(X)))
        assert np.linalg.eigvalsh(K)[0] >= -1e-13 * len(X)


def test_angles_in_single_precision(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 4))
    X[1] = X[0] * (1 + 1e-4)
    single = ArcCosine(0)(X.astype(np.float32))
    np.testing.assert_array_equal(np.diag(single), np.ones(30))
    np.testing.assert_allclose(single, ArcCosine(0)(X), atol=1e-5)


def test_a_row_of_zeros_is_at_a_right_angle_to_all() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    K = ArcCosine(0)(X)
    np.testing.assert_allclose(K, [[0.5, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 0.5]], rtol=1e-15)
    np.testing.assert_allclose(ArcCosine(0).diagonal(X), np.diag(K), rtol=1e-15)


# ---- one entry that is far from all others


@pytest.mark.parametrize("outlier", [1e9, 1e17, -1e20, 1e100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel", [RBF(2.0), RBF([2.0, 3.0]), Matern(2.0), Periodic(2.0, period=3.0), NegativeDistance()], ids=repr
)
def test_an_outlier_leaves_the_others_their_digits(kernel: Kernel, dtype: type, outlier: float) -> None:
    if dtype == np.float32 and abs(outlier) > 1e18:
        return
    rows = np.array([[0.0, 1.0], [5.0, -2.0], [6.0, 1.0], [7.5, 0.5]], dtype)
    expected = kernel(rows)
    for X in (rows, np.vstack([rows, rows, rows])):
        K = kernel(np.vstack([np.full((1, 2), outlier, dtype), X]))[1 : len(rows) + 1, 1 : len(rows) + 1]
        np.testing.assert_allclose(K, expected, rtol=1e-3 if dtype == np.float32 else 1e-10)


def test_centring_stays_definite_beside_an_outlier(rng: np.random.Generator) -> None:
    X = rng.normal(size=(15, 2))
    kernel = RBF(1.0).centered(X)
    eigenvalues = np.linalg.eigvalsh(kernel(np.vstack([X, [[1e20, 1e20]]])))
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_learners_see_the_others_beside_an_outlier(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 1))
    y = np.sin(X[:, 0])
    model = KernelRidge(kernel=RBF(1.0), alpha=1e-3).fit(np.vstack([X, [[1e20]]]), np.append(y, 0.0))
    assert np.abs(model.predict(X) - y).max() < 0.05


# ---- values that are not numbers


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (ExponentialDot(), [[30.0], [1.0]]),
        (Linear(), [[1e200], [1.0]]),
        (Polynomial(3), [[1e150], [1.0]]),
        (Polynomial(40), [[-1e9], [1.0]]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("error")
def test_values_beyond_all_numbers_are_an_error(kernel: Kernel, X: Any) -> None:
    for use in (lambda: kernel(X), lambda: kernel(X, np.asarray(X)[:1])):
        with pytest.raises(KernelValueError, match=r"returned (-?inf|nan)"):
            use()
    with pytest.raises(KernelValueError, match=r"returned (inf|nan)"):
        kernel.diagonal(X)


def test_what_overflows_in_a_late_tile_is_found() -> None:
    X = np.zeros((1100, 1))
    X[-1] = 1e200
    with pytest.raises(KernelValueError, match="returned inf"):
        Linear()(X)


@pytest.mark.filterwarnings("error")
def test_a_function_of_two_rows_must_be_real() -> None:
    for value in (1.0 + 2.0j, np.complex128(1.0), np.array(1.0 + 0.0j)):
        with pytest.raises(KernelValueError, match="must return one number"):
            from_function(lambda x, z, value=value: value, pairwise=True)([[1.0]])


# ---- columns by name


def test_columns_in_another_order_are_an_error() -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [10.0, 20.0]})
    for kernel in (Linear(), RBF(1.0), Polynomial(2).normalized()):
        with pytest.raises(DataError, match=r"column 0 is 'a' and 'b'\. Pass Z\[X\.columns\]"):
            kernel(X, X[["b", "a"]])
    np.testing.assert_allclose(RBF(1.0).on("a")(X, X[["b", "a"]]), RBF(1.0).on("a")(X, X), rtol=1e-15)
    # Other names, or none, are compared by place.
    other = X.rename(columns={"a": "c"})
    np.testing.assert_array_equal(Linear()(X, other), Linear()(X, X.to_numpy()))
