"""Inner products of explicit features are the kernel's values; sums are checked against exact rational arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.preprocessing import PolynomialFeatures

import mercer
from mercer import KernelRidge
from mercer._errors import DataError, MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RBF, AllSubsets, Polynomial
from mercer.maps import AllSubsetsMap, GaussianSeriesMap, PolynomialMap

EPS = float(np.finfo(float).eps)
ENTRIES = st.one_of(
    st.just(0.0), st.floats(-10, 10), st.floats(1e-9, 1e-6), st.floats(-1e8, -1e6), st.sampled_from([1e-160, 1e25])
)


@st.composite
def two_rows(draw: Any, widest: int = 5) -> np.ndarray:
    d = draw(st.integers(1, widest))
    return np.array([draw(st.lists(ENTRIES, min_size=d, max_size=d)) for _ in range(2)])


def exact(values: np.ndarray) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


def inner(f: np.ndarray, g: np.ndarray) -> Fraction:
    return sum((a * b for a, b in zip(exact(f), exact(g), strict=True)), Fraction(0))


def assert_near(result: Fraction, expected: Fraction, of_sizes: Fraction, roundings: int) -> None:
    """Within so many relative roundings of the sum of the sizes of the terms; numbers below 1e-290 may vanish."""
    assert abs(result - expected) <= of_sizes * Fraction(roundings * EPS) + Fraction(1e-280)


@given(two_rows(), st.integers(1, 5), st.floats(0.01, 50), st.one_of(st.just(0.0), st.floats(0.01, 50)))
def test_polynomial_map(X: np.ndarray, degree: int, scale: float, offset: float) -> None:
    phi = PolynomialMap(degree, scale, offset).fit(X)
    F = phi.transform(X)
    assert F.shape == (2, phi.n_output_features_) and phi.kernel == Polynomial(degree, scale, offset)
    s, c = Fraction(scale), Fraction(offset)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        pairs = list(zip(exact(X[i]), exact(X[j]), strict=True))
        expected = (s * sum(a * b for a, b in pairs) + c) ** degree
        sizes = (s * sum(abs(a * b) for a, b in pairs) + c) ** degree
        # Each factor of a feature: scaling, root, two roundings a power; twice, for both rows.
        assert_near(inner(F[i], F[j]), expected, sizes, 12 * degree + 12)


@given(two_rows())
def test_all_subsets_map(X: np.ndarray) -> None:
    F = AllSubsetsMap().fit(X).transform(X)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        pairs = list(zip(exact(X[i]), exact(X[j]), strict=True))
        expected, sizes = (math.prod(1 + f(a * b) for a, b in pairs) for f in (lambda v: v, abs))
        assert_near(inner(F[i], F[j]), expected, sizes, 4 * X.shape[1])


@given(two_rows(3), st.integers(1, 12), st.floats(0.1, 10))
def test_gaussian_series_map(X: np.ndarray, degree: int, length_scale: float) -> None:
    phi = GaussianSeriesMap(length_scale, degree).fit(X)
    F = phi.transform(X)
    assert np.isfinite(F).all()
    u = X / length_scale
    with np.errstate(over="ignore"):
        squares = (u * u).sum(axis=1)
    error = phi.truncation_error(X)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        weight = math.exp(-squares[i] / 2) * math.exp(-squares[j] / 2)
        terms = [float(u[i] @ u[j]) ** t / math.factorial(t) for t in range(degree + 1)] if weight else [0.0]
        product = float(inner(F[i], F[j]))
        # Sizes of the terms are those of the series of |u_i| |u_j|, which with the weights is at most 1.
        rounding = (20 * degree + 20 + 4 * min(squares.max(), 800)) * EPS
        assert product == pytest.approx(weight * math.fsum(terms), abs=rounding)
        if i == j:
            assert 1 - product == pytest.approx(error[i], abs=rounding)
        value = math.exp(-float((u[i] - u[j]) @ (u[i] - u[j])) / 2)
        assert abs(product - value) <= math.sqrt(error[i] * error[j]) + rounding


def test_the_error_of_the_series_falls_to_rounding(rng: np.random.Generator) -> None:
    X = rng.uniform(-1, 1, (20, 2))
    errors = [abs((F := GaussianSeriesMap(1.0, p).fit_transform(X)) @ F.T - RBF(1.0)(X)).max() for p in range(1, 20)]
    assert all(b <= a + 8 * EPS for a, b in itertools.pairwise(errors)) and errors[-1] < 1e-14


def test_one_length_scale_a_column(rng: np.random.Generator) -> None:
    X = rng.uniform(-1, 1, (6, 2))
    phi = GaussianSeriesMap([1.0, 3.0], 20).fit(X)
    np.testing.assert_allclose((F := phi.transform(X)) @ F.T, phi.kernel(X), rtol=1e-13)
    np.testing.assert_allclose(phi.transform(sp.csr_matrix(X)).toarray(), F, rtol=1e-14)
    with pytest.raises(DataError, match="3 length scales, but X has 2 columns"):
        GaussianSeriesMap([1.0, 2.0, 3.0]).fit(X)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_features_are_those_of_scikit_learn_in_its_order(rng: np.random.Generator, degree: int, offset: float) -> None:
    X = rng.normal(size=(7, 4))
    phi = PolynomialMap(degree, 1.0, offset).fit(X)
    peer = PolynomialFeatures((degree, degree) if offset == 0 else degree, include_bias=offset > 0).fit(X)
    assert phi.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    p = peer.powers_
    rest = degree - p.sum(axis=1)
    weights = [math.factorial(degree) / math.prod(map(math.factorial, [*a, r])) for a, r in zip(p, rest, strict=True)]
    np.testing.assert_allclose(phi.transform(X), peer.transform(X) * np.sqrt(weights), rtol=1e-13)


MAPS = [
    pytest.param(PolynomialMap(3, 0.5, 2.0), id="polynomial"),
    pytest.param(PolynomialMap(3, 0.5, 0.0), id="polynomial without offset"),
    pytest.param(PolynomialMap(1, 0.5, 0.0), id="linear"),
    pytest.param(GaussianSeriesMap(2.0, 3), id="series"),
    pytest.param(AllSubsetsMap(), id="subsets"),
]


@pytest.mark.parametrize("phi", MAPS)
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_the_same_features(phi: Any, density: float, dtype: type, rng: np.random.Generator) -> None:
    X = (rng.normal(size=(40, 9)) * (rng.random((40, 9)) < density)).astype(dtype)
    S = sp.csr_matrix(X)
    dense, sparse = phi.fit(X).transform(X), phi.transform(S)
    assert sp.issparse(sparse) and sparse.dtype == dense.dtype == dtype
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=20 * np.finfo(dtype).eps)
    # Every entry belongs to columns that are all there, so none is zero, and columns stand in order.
    assert sparse.nnz == np.count_nonzero(dense)
    assert all((np.diff(row.indices) > 0).all() for row in sparse)


@pytest.mark.parametrize("phi", MAPS)
def test_sparse_rows_as_they_come(phi: Any) -> None:
    # Columns out of order, one entry in two parts.
    S = sp.csr_matrix((np.array([3.0, 1.0, 1.0]), np.array([2, 0, 0]), np.array([0, 3, 3])), shape=(2, 4))
    before = S.indices.copy()
    np.testing.assert_allclose(phi.fit(S).transform(S).toarray(), phi.transform(S.toarray()), rtol=1e-14)
    np.testing.assert_array_equal(S.indices, before)


def test_many_columns_of_which_few_are_there(rng: np.random.Generator) -> None:
    S = sp.random_array((30, 100_000), density=1e-4, random_state=rng, format="csr")
    phi = PolynomialMap(3).fit(S)
    F = phi.transform(S)
    assert F.shape[1] == phi.n_output_features_ == math.comb(100_003, 3)
    # Only the columns with entries: products of sparse matrices of SciPy take memory for every column.
    used, places = np.unique(F.indices, return_inverse=True)
    G = sp.csr_matrix((F.data, places, F.indptr), shape=(30, len(used)))
    np.testing.assert_allclose((G @ G.T).toarray(), phi.kernel(S), rtol=1e-13)
    with pytest.raises(MemoryBudgetError, match="the names of 166,676,666,850,001 features"):
        phi.get_feature_names_out()


@pytest.mark.parametrize("phi", MAPS)
def test_the_same_bits_for_any_number_of_threads_and_any_cut(phi: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(9000, 8))
    with mercer.config(n_jobs=1):
        one = phi.fit(X).transform(X)
    with mercer.config(n_jobs=3):
        np.testing.assert_array_equal(phi.transform(X), one)
    np.testing.assert_array_equal(phi.transform(X[:3]), one[:3])


@pytest.mark.parametrize("phi", MAPS)
def test_what_does_not_fit_is_refused_with_the_count(phi: Any) -> None:
    X = np.ones((1000, 20))
    phi.fit(X)
    count = f"{phi.n_output_features_:,} features would take .* 10.0 KiB left"
    with mercer.config(memory="10KiB"):
        for rows in (X, sp.csr_matrix(X)) if not isinstance(phi, AllSubsetsMap) else (X,):
            with pytest.raises(MemoryBudgetError, match=f"1,000 rows with .*{count}"):
                phi.transform(rows)


def test_more_features_than_can_be_numbered() -> None:
    with pytest.raises(MemoryBudgetError, match=r"C\(10 \+ 400, 400\) = .* features exceed what"):
        GaussianSeriesMap(degree=400).fit(np.ones((1, 10)))
    with pytest.raises(MemoryBudgetError, match=r"2\^63 = 9,223,372,036,854,775,808 features of 63 columns"):
        AllSubsetsMap().fit(np.ones((1, 63)))
    # Counts of more digits than Python prints.
    for phi, words in [
        (AllSubsetsMap(), r"2\^20000 = about 4\.0e\+6020 features of 20000 columns"),
        (PolynomialMap(3000), r"C\(20000 \+ 3000, 3000\) = about 4\.\de\+\d{4} features"),
    ]:
        with pytest.raises(MemoryBudgetError, match=words) as caught:
            phi.fit(np.ones((1, 20_000)))
        assert len(str(caught.value)) < 250
    S = sp.csr_matrix(([2.0, 3.0], ([0, 0], [0, 61])), shape=(1, 62))
    F = AllSubsetsMap().fit(S).transform(S)
    assert F.indices.tolist() == [0, 1, 2**61, 2**61 + 1] and F.data.tolist() == [1.0, 2.0, 3.0, 6.0]


@pytest.mark.parametrize("phi", [PolynomialMap(2), PolynomialMap(2, offset=0.0), AllSubsetsMap()], ids=repr)
def test_overflow_is_named(phi: Any) -> None:
    X = np.array([[1e200, 1e200]])
    for rows in (X, sp.csr_matrix(X)):
        with pytest.raises(NumericalError, match=r"features overflow in float64\. Scale the columns"):
            phi.fit(rows).transform(rows)
    with pytest.raises(NumericalError, match=r"features overflow in float32.*or pass float64"):
        phi.transform(np.array([[1e30, 1e30]], np.float32))
    np.testing.assert_array_equal(np.isfinite(phi.transform([[1e150, 1e150]])), True)


def test_parameters_that_are_refused() -> None:
    X = np.ones((2, 2))
    for phi, words in [
        (PolynomialMap(0), "degree must be a whole number of at least 1, but is 0"),
        (PolynomialMap(2.5), "degree must be a whole number"),
        (PolynomialMap(2, -1.0), "scale must be finite and above 0"),
        (PolynomialMap(2, 1.0, -1.0), "offset must be finite and at least 0"),
        (GaussianSeriesMap(0.0), "length_scale must be finite and above 0"),
        (GaussianSeriesMap(1.0, 0), "GaussianSeriesMap: degree must be a whole number of at least 1"),
    ]:
        with pytest.raises(ParameterError, match=words):
            phi.fit(X)
    with pytest.raises(NumericalError, match="weights of degree=400 with offset=1 overflow"):
        PolynomialMap(400).fit(X[:, :1])


@pytest.mark.parametrize("degree", [1, 3, 9])
@pytest.mark.parametrize("make", [PolynomialMap, GaussianSeriesMap])
@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_a_degree_that_is_set_after_the_fit_waits_for_the_next_fit(make: Any, degree: int, as_rows: Any) -> None:
    X = as_rows(np.random.default_rng(0).normal(size=(12, 4)))
    phi = make(degree=4).fit(X)
    before, names = phi.transform(X), phi.get_feature_names_out().tolist()
    phi.set_params(degree=degree)
    assert abs(phi.transform(X) - before).max() == 0 and phi.get_feature_names_out().tolist() == names
    if make is GaussianSeriesMap:
        same = make(degree=4).fit(X)
        assert phi.truncation_error(X).tolist() == same.truncation_error(X).tolist()


@pytest.mark.parametrize("make", [PolynomialMap, GaussianSeriesMap])
def test_a_whole_number_may_be_a_float(make: Any) -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    assert make(degree=2.0).fit_transform(X).tolist() == make(degree=2).fit_transform(X).tolist()
    assert (
        make(degree=2.0).fit(X).get_feature_names_out().tolist()
        == make().set_params(degree=2).fit(X).get_feature_names_out().tolist()
    )


def test_high_degrees(rng: np.random.Generator) -> None:
    X = rng.uniform(0.1, 1, (5, 1))
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        F = PolynomialMap(100, 0.5, 0.5).fit_transform(X.astype(dtype)).astype(float)
        np.testing.assert_allclose(F @ F.T, Polynomial(100, 0.5, 0.5)(X), rtol=tolerance)


def test_columns_have_names() -> None:
    phi = PolynomialMap(2).fit([[1.0, 2.0]])
    assert phi.get_feature_names_out(["a", "b"]).tolist() == ["1", "a", "b", "a^2", "a b", "b^2"]
    with pytest.raises(DataError, match="input_features"):
        phi.get_feature_names_out(["a"])
    names = AllSubsetsMap().fit([[1.0, 2.0]]).get_feature_names_out(["a", "b"])
    assert names.tolist() == ["1", "a", "b", "a b"]
    assert AllSubsetsMap().kernel == AllSubsets() and GaussianSeriesMap(2.0).kernel == RBF(2.0)


def test_a_hook_hears_of_the_work_and_may_cancel_it() -> None:
    X = np.ones((2000, 60))
    heard: list[Any] = []
    with mercer.on_progress(lambda *what: heard.append(what)):
        phi = PolynomialMap(2).fit(X)
        phi.transform(X)
    assert heard[-1][1] == heard[-1][2] == 2

    def cancel(*what: Any) -> None:
        raise KeyboardInterrupt

    with mercer.on_progress(cancel), pytest.raises(KeyboardInterrupt):
        phi.transform(X)


@pytest.mark.parametrize("phi", [PolynomialMap(2, 0.5, 1.0), AllSubsetsMap()], ids=repr)
def test_learning_in_feature_space_is_learning_with_the_kernel(phi: Any, rng: np.random.Generator) -> None:
    X, new, y = rng.normal(size=(25, 3)), rng.normal(size=(6, 3)), rng.normal(size=25)
    F = phi.fit(X).transform(X)
    primal, dual = Ridge(0.7, fit_intercept=False).fit(F, y), KernelRidge(0.7, kernel=phi.kernel_).fit(X, y)
    np.testing.assert_allclose(dual.predict(new), primal.predict(phi.transform(new)), rtol=1e-9)
    # The representer theorem: the weights in feature space are a combination of the rows' features.
    np.testing.assert_allclose(dual.dual_coef_ @ F, primal.coef_, rtol=1e-8, atol=1e-10)
