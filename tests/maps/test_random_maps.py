"""Random features have the kernel's values for their means and the variance that theory gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer._errors import DataError, MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RBF, ArcCosine, Laplacian, Linear, Matern, Polynomial
from mercer.maps import CountSketchMap, RandomFourierMap

X = np.random.default_rng(3).normal(size=(6, 3))
SEEDS = 200
STATIONARY = [
    RBF(1.5),
    RBF((1.0, 2.0, 3.0)),
    Matern(1.5, nu=0.5),
    Matern(2.0, nu=2.5),
    Matern(1.0, nu=math.inf),
    Laplacian(2.0),
    Laplacian((1.0, 2.0, 4.0)),
]


def errors(make: Any, kernel: Any) -> np.ndarray:
    """Errors of the inner products, one matrix a seed."""
    result = np.empty((SEEDS, 6, 6))
    for seed in range(SEEDS):
        F = make(seed).fit_transform(X)
        result[seed] = F @ F.T - kernel(X)
    return result


def assert_mean_and_variance(result: np.ndarray, variance: np.ndarray) -> None:
    """Mean 0 and the given variance of every entry, within five deviations of what ``SEEDS`` draws show."""
    assert (np.abs(result.mean(axis=0)) <= 5 * np.sqrt(variance / SEEDS) + 1e-13).all()
    squares = result**2
    assert (np.abs(squares.mean(axis=0) - variance) <= 5 * squares.std(axis=0) / math.sqrt(SEEDS) + 1e-13).all()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_variance_of_random_fourier_features(kernel: Any) -> None:
    K = kernel(X)
    # f(2 (x - z)) is the value of rows twice as far apart.
    variance = 1 + kernel(2 * X) - 2 * K**2
    np.testing.assert_allclose(np.diag(variance), 0, atol=1e-15)
    for count in (32, 512):
        result = errors(lambda seed, c=count: RandomFourierMap(kernel, c, random_state=seed), kernel)
        assert_mean_and_variance(result, variance / count)


@pytest.mark.parametrize("count", [1, 9])
def test_an_odd_number_of_features(count: int) -> None:
    kernel = RBF(1.5)
    K, twice = kernel(X), kernel(2 * X)
    # Pairs as above; a cosine at a random phase has 2 cos(a) cos(b), whose square has the mean 1 + f(2 (x - z)) / 2.
    variance = ((count - 1) * (1 + twice - 2 * K**2) + (1 + twice / 2 - K**2)) / count**2
    assert_mean_and_variance(errors(lambda s: RandomFourierMap(kernel, count, random_state=s), kernel), variance)


@pytest.mark.parametrize("order", [0, 1])
def test_variance_of_arc_cosine_features(order: int) -> None:
    kernel = ArcCosine(order)
    variance = 2 * ArcCosine(2 * order)(X) - kernel(X) ** 2
    for count in (31, 512):
        result = errors(lambda seed, c=count: RandomFourierMap(kernel, c, random_state=seed), kernel)
        assert_mean_and_variance(result, variance / count)


def test_arc_cosine_of_order_two_and_of_rows_of_zeros() -> None:
    rows = np.vstack([X, np.zeros((1, 3))])
    for order in (0, 1, 2):
        F = RandomFourierMap(ArcCosine(order), 200_000, random_state=0).fit_transform(rows)
        K = ArcCosine(order)(rows)
        sizes = np.sqrt(np.outer(np.diag(K), np.diag(K)))
        # The fourth moment of a normal variable of power 4 is 105, that of its square 3: a deviation below 6 sizes.
        assert (np.abs(F @ F.T - K) <= 5 * 6 * sizes / math.sqrt(200_000)).all()


@pytest.mark.parametrize("kernel", [RBF(2.0), Matern(2.0, nu=1.5), ArcCosine(1)], ids=repr)
def test_orthogonal_directions(kernel: Any) -> None:
    W = RandomFourierMap(kernel, 16, orthogonal=True, random_state=0).fit(X).frequencies_
    for start in range(0, W.shape[1], 3):
        block = W[:, start : start + 3]
        np.testing.assert_allclose(block.T @ block, np.diag((block**2).sum(axis=0)), atol=1e-12)
    results, plain = (
        errors(lambda seed, o=o: RandomFourierMap(kernel, 60, orthogonal=o, random_state=seed), kernel)
        for o in (True, False)
    )
    deviations = results.std(axis=0) / math.sqrt(SEEDS)
    assert (np.abs(results.mean(axis=0)) <= 5 * deviations + 1e-13).all()
    assert (results**2).mean() < (plain**2).mean()


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_variance_of_count_sketches(degree: int, offset: float) -> None:
    kernel = Polynomial(degree, 0.5, offset)
    sizes = np.outer(kernel.diagonal(X), kernel.diagonal(X))
    means = []
    for count in (32, 512):
        result = errors(lambda seed, c=count: CountSketchMap(degree, 0.5, offset, c, random_state=seed), kernel)
        deviations = result.std(axis=0) / math.sqrt(SEEDS)
        assert (np.abs(result.mean(axis=0)) <= 5 * deviations + 1e-10).all()
        squares = result**2
        below = (2 + 3**degree) * sizes / count + 5 * squares.std(axis=0) / math.sqrt(SEEDS)
        assert (squares.mean(axis=0) <= below).all()
        means.append((squares / sizes).mean())
    # 16 times the features: variances fall by 16, up to terms of the order 1 / D^2 and what is left to chance.
    assert 8 < means[0] / means[1] < 32


def test_a_count_sketch_of_degree_one_has_its_exact_variance() -> None:
    squares = X**2
    variance = np.outer(squares.sum(axis=1), squares.sum(axis=1)) + (X @ X.T) ** 2 - 2 * squares @ squares.T
    result = errors(lambda seed: CountSketchMap(1, 1.0, 0.0, 8, random_state=seed), Linear())
    assert_mean_and_variance(result, variance / 8)


def test_the_sketch_is_that_of_the_products() -> None:
    phi = CountSketchMap(3, 0.5, 2.0, 7, random_state=0).fit(X)
    u = np.hstack([math.sqrt(0.5) * X, np.full((6, 1), math.sqrt(2.0))])
    expected = np.zeros((6, 7))
    for i in range(4):
        for j in range(4):
            for k in range(4):
                place = (phi.places_[0, i] + phi.places_[1, j] + phi.places_[2, k]) % 7
                expected[:, place] += (
                    phi.signs_[0, i] * phi.signs_[1, j] * phi.signs_[2, k] * u[:, i] * u[:, j] * u[:, k]
                )
    np.testing.assert_allclose(phi.transform(X), expected, atol=1e-13 * np.abs(expected).max())


MAPS = [
    RandomFourierMap(RBF(2.0), 30, random_state=0),
    RandomFourierMap(Laplacian(2.0), 30, random_state=0),
    RandomFourierMap(ArcCosine(2), 31, random_state=0),
    CountSketchMap(1, 0.5, 1.0, 30, random_state=0),
    CountSketchMap(3, 0.5, 1.0, 31, random_state=0),
]


@pytest.mark.parametrize("phi", MAPS, ids=repr)
def test_sparse_rows_and_single_precision(phi: Any) -> None:
    F = phi.fit(X).transform(X)
    np.testing.assert_allclose(phi.transform(sp.csr_matrix(X)), F, rtol=1e-12, atol=1e-13 * np.abs(F).max())
    single = phi.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, F, atol=2e-4 * np.abs(F).max())


@pytest.mark.parametrize("phi", MAPS, ids=repr)
def test_any_number_of_threads(phi: Any, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(20_000, 3))
    with mercer.config(n_jobs=1):
        one = phi.fit(rows).transform(rows)
    with mercer.config(n_jobs=2):
        np.testing.assert_array_equal(phi.transform(rows), one)


@pytest.mark.parametrize("phi", MAPS, ids=repr)
def test_what_cannot_be_made(phi: Any) -> None:
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match=r"KiB.*1\.0 KiB left"):
        phi.fit(X).transform(X)
    if phi not in MAPS[3:4]:
        with pytest.raises(NumericalError, match="features overflow in float64"):
            phi.fit(X).transform(np.full((1, 3), 1.7e308))


def test_parameters_that_are_refused() -> None:
    for phi, error, words in [
        (RandomFourierMap(Linear()), ParameterError, r"takes the kernels RBF.*got Linear\(\)\. For polynomials"),
        (RandomFourierMap("rbff"), ParameterError, "there is no kernel 'rbff'"),
        (RandomFourierMap(n_components=0), ParameterError, "n_components must be a whole number"),
        (RandomFourierMap(Laplacian(), orthogonal=True), ParameterError, "no preferred directions"),
        (RandomFourierMap(random_state="x"), ParameterError, "random_state must be a whole number"),
        (RandomFourierMap(RBF((1.0, 2.0))), DataError, "2 length scales, but X has 3 columns"),
        (CountSketchMap(0), ParameterError, "degree must be a whole number"),
        (CountSketchMap(n_components=1.5), ParameterError, "n_components must be a whole number"),
        (CountSketchMap(random_state=-1), ParameterError, "random_state must be a whole number"),
    ]:
        with pytest.raises(error, match=words):
            phi.fit(X)
