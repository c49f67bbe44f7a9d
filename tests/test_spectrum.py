"""Mercer's theorem on a sample: what defines the functions, and the Gaussian kernel under a Gaussian density."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.polynomial.hermite import hermval
from numpy.polynomial.hermite_e import hermegauss

import mercer
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RBF, Linear, Matern, NegativeDistance, Polynomial, Sigmoid, Spectrum, from_function
from mercer.spectrum import eigenfunctions

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), RNG.normal(size=(9, 3))
MANY = RNG.normal(size=(700, 2))


class Gaussian:
    """``exp(-(x - z)^2 / (2 l^2))`` for x from N(0, s^2): Rasmussen and Williams, equations 4.39 to 4.41."""

    def __init__(self, scale: float, deviation: float) -> None:
        self.a, b = 1 / (4 * deviation**2), 1 / (2 * scale**2)
        self.c = np.sqrt(self.a**2 + 2 * self.a * b)
        total = self.a + b + self.c
        self.first, self.ratio = np.sqrt(2 * self.a / total), b / total

    def values(self, k: int) -> np.ndarray:
        return self.first * self.ratio ** np.arange(k)

    def functions(self, x: np.ndarray, k: int) -> np.ndarray:
        columns = []
        norm = np.sqrt(self.a / self.c)
        for i in range(k):
            norm *= 2 * i if i else 1
            h = hermval(np.sqrt(2 * self.c) * x, np.eye(k)[i])
            columns.append(np.exp(-(self.c - self.a) * x**2) * h / np.sqrt(norm))
        return np.column_stack(columns)


@pytest.mark.parametrize(("scale", "deviation"), [(1.0, 1.0), (0.8, 1.2), (3.0, 0.7)])
def test_a_quadrature_rule_gives_the_known_functions(scale: float, deviation: float) -> None:
    exact = Gaussian(scale, deviation)
    nodes, weights = hermegauss(120)
    nodes, weights = nodes[weights > 1e-30] * deviation, weights[weights > 1e-30]
    k = int((exact.values(12) > 1e-6 * exact.first).sum())
    psi = eigenfunctions(RBF(scale), nodes[:, None], k, sample_weight=weights)
    np.testing.assert_allclose(psi.eigenvalues, exact.values(k), rtol=1e-9)
    assert psi.trace == pytest.approx(1.0, rel=1e-12)
    x = np.linspace(-2, 2, 41) * deviation
    result, expected = psi(x[:, None]), exact.functions(x, k)
    np.testing.assert_allclose(result * np.sign((result * expected).sum(axis=0)), expected, atol=1e-7)


def test_a_sample_comes_near_them_as_its_size_says() -> None:
    exact, n = Gaussian(1.0, 1.0), 3000
    x = np.random.default_rng(3).normal(size=n)
    psi = eigenfunctions(RBF(1.0), x[:, None], 4, random_state=0)
    values, functions = exact.values(4), exact.functions(x, 4)
    # The estimate of an eigenvalue is, to first order, the mean over the sample of lambda psi^2: five of its errors.
    errors = values * (functions**2).std(axis=0) / np.sqrt(n)
    assert (np.abs(psi.eigenvalues - values) < 5 * errors).all()
    result = psi(x[:, None])
    overlap = np.abs((result * functions).mean(axis=0))
    # First order again: what mixes in of function j is lambda_i / (lambda_i - lambda_j) times a mean of products.
    gaps = values[:, None] / np.where(np.eye(4) > 0, np.inf, values[:, None] - values)
    mixed = (gaps**2).sum(axis=1) * (functions**4).mean(axis=0).max() / n
    assert (1 - overlap / np.sqrt((functions**2).mean(axis=0)) < 25 * mixed).all()


@pytest.mark.parametrize("kernel", [RBF(1.5), Matern(1.0, nu=1.5), Polynomial(2, 1.0, 0.5), "rbf"], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_what_defines_them(kernel: Any, weighted: bool) -> None:
    weight = RNG.integers(0, 4, len(X)) if weighted else None
    psi = eigenfunctions(kernel, X, 30, sample_weight=weight)
    share = np.full(60, 1 / 60) if weight is None else weight / weight.sum()
    K = psi.kernel(X)
    at, values = psi(X), psi.eigenvalues
    assert (np.diff(values) <= 0).all() and psi.trace == pytest.approx(share @ K.diagonal())
    lost = 1e-13 * values[0] / values[-1]
    np.testing.assert_allclose(at.T @ (share[:, None] * at), np.eye(len(values)), atol=lost)
    np.testing.assert_allclose(K @ (share[:, None] * at), at * values, atol=lost)
    if isinstance(kernel, Polynomial):
        # Of ten monomials: no more functions than that, and they give back all of the kernel, also elsewhere.
        assert len(values) == 10
        np.testing.assert_allclose(psi(NEW) * values @ at.T, kernel(NEW, X), atol=1e-9 * K.max())


def test_all_of_them_give_back_the_kernel_on_the_sample() -> None:
    psi = eigenfunctions(RBF(0.7), X, 60)
    at = psi(X)
    np.testing.assert_allclose((at * psi.eigenvalues) @ at.T, psi.kernel(X), atol=1e-11)
    assert psi.eigenvalues.sum() == pytest.approx(psi.trace, rel=1e-12)
    # A function of the linear kernel is a linear function.
    psi = eigenfunctions(Linear(), X, 60)
    assert len(psi.eigenvalues) == 3
    np.testing.assert_allclose(psi(NEW), NEW @ np.linalg.lstsq(X, psi(X), rcond=None)[0], atol=1e-12)


def test_weights_are_repetition_and_zeros_leave_out() -> None:
    weight = np.array([0, 1, 2, 3] * 15)
    one = eigenfunctions(RBF(1.0), X, 5, sample_weight=weight)
    other = eigenfunctions(RBF(1.0), np.repeat(X, weight, axis=0), 5)
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=1e-11)
    result = one(NEW)
    np.testing.assert_allclose(result, other(NEW), atol=1e-9)
    np.testing.assert_allclose(eigenfunctions(RBF(1.0), X, 5, sample_weight=7.0 * weight)(NEW), result, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_signs_do_not_depend_on_how_often_rows_are_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weight = rng.normal(size=(25, 2)), rng.integers(1, 9, 25)
    # As many rows on either side: functions that are odd have two largest values.
    rows, weight = np.concatenate([rows, -rows]), np.concatenate([weight, weight])
    one = eigenfunctions(RBF(1.0), rows, 6, sample_weight=weight)
    other = eigenfunctions(RBF(1.0), np.repeat(rows, weight, axis=0), 6)
    np.testing.assert_allclose(one(NEW[:, :2]), other(NEW[:, :2]), atol=1e-8)
    at = one(rows)
    assert (at.max(axis=0) >= -(1 - 2e-6) * at.min(axis=0)).all()


def test_rows_of_next_to_no_weight_choose_no_sign() -> None:
    weight = np.where(np.arange(60) % 2 > 0, 1.0, 1e-30)
    np.testing.assert_allclose(
        eigenfunctions(RBF(1.0), X, 5, sample_weight=weight)(NEW), eigenfunctions(RBF(1.0), X[1::2], 5)(NEW), atol=1e-9
    )


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("scale", [1e160, 1e153])
@pytest.mark.parametrize("rows", [60, 500])
def test_a_kernel_that_overflows(scale: float, rows: int) -> None:
    sample = RNG.normal(size=(rows, 3)) * scale
    with pytest.raises(NumericalError, match=r"overflow float64.*Scale the columns of X"):
        eigenfunctions(Linear(), sample * (1.0 if rows > 60 else 1e2), 3)


@pytest.mark.parametrize("memory", ["1GiB", "3.6MB"])
def test_iterations_find_what_lapack_finds(memory: str) -> None:
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 700)
    root = np.sqrt(weight / weight.sum())
    expected = np.linalg.eigvalsh(RBF(1.0)(MANY) * root * root[:, None])[::-1][:5]
    with mercer.config(memory=memory):
        psi = eigenfunctions(RBF(1.0), MANY, 5, sample_weight=weight, random_state=0)
    np.testing.assert_allclose(psi.eigenvalues, expected, rtol=1e-11)
    assert psi.certificate.status.name == "converged" and (psi.certificate.peak_bytes > 8 * 700**2) == (
        memory == "1GiB"
    )
    assert psi.certificate.primal == pytest.approx(1.0 - expected.sum(), abs=1e-12)


def test_matrices_sparse_rows_functions_names_and_strings() -> None:
    expected = eigenfunctions(RBF(1.0), X, 4)
    weight = np.arange(60)
    given = eigenfunctions("precomputed", RBF(1.0)(X), 4, sample_weight=weight)
    same = eigenfunctions(RBF(1.0), X, 4, sample_weight=weight)
    np.testing.assert_allclose(given(RBF(1.0)(NEW, X)), same(NEW), atol=1e-11)
    assert given.kernel is None
    np.testing.assert_allclose(
        eigenfunctions(RBF(1.0), sp.csr_array(X), 4)(sp.csr_array(NEW)), expected(NEW), atol=1e-10
    )
    own = eigenfunctions(lambda A, B: RBF(1.0)(A, B), X, 4)
    np.testing.assert_allclose(own(NEW), expected(NEW), atol=1e-11)
    single = eigenfunctions(RBF(1.0), X.astype(np.float32), 4)
    np.testing.assert_allclose(single(NEW.astype(np.float32)), expected(NEW), atol=1e-4)
    text = eigenfunctions(Spectrum(2), ["banana", "bandana", "ananas", "nab"], 4)
    at = text(["banana", "bandana", "ananas", "nab"])
    np.testing.assert_allclose((at * text.eigenvalues) @ at.T, Spectrum(2)(["banana", "bandana", "ananas", "nab"]))


def test_what_cannot_be_used() -> None:
    for count in (0, 61, 2.5, True):
        with pytest.raises(ParameterError, match="n_components must be a whole number from 1 to 60"):
            eigenfunctions("rbf", X, count)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"from 1 to 2, the rows of a weight above 0, but is 3"):
        eigenfunctions("rbf", X, 3, sample_weight=[1, 1] + [0] * 58)
    with pytest.raises(IndefiniteKernelError, match="center it"):
        eigenfunctions(NegativeDistance(), X)
    with pytest.raises(IndefiniteKernelError, match="choose another kernel"):
        eigenfunctions(Sigmoid(1.0, 1.0), X)
    with pytest.raises(IndefiniteKernelError, match="has a negative eigenvalue, -"):
        eigenfunctions(from_function(lambda A, B: -A @ B.T), X, 2)
    with pytest.raises(IndefiniteKernelError, match="has a negative eigenvalue, -"):
        eigenfunctions("precomputed", np.diag([1.0, -1.0]), 1)
    with pytest.raises(DataError, match=r"X cannot be used: .*NaN"):
        eigenfunctions("rbf", np.where(X > 1, np.nan, X))
    with pytest.raises(DataError, match="must be square"):
        eigenfunctions("precomputed", X)
    with pytest.raises(DataError, match="negative values"):
        eigenfunctions("rbf", X, sample_weight=-np.ones(60))
    with pytest.raises(DataError, match="sample_weight is zero for each"):
        eigenfunctions("rbf", X, sample_weight=np.zeros(60))
    with pytest.raises(ParameterError, match="random_state must be"):
        eigenfunctions("rbf", X, random_state="x")
    with pytest.raises(DataError, match="X has 2 columns, but the sample has 3"):
        eigenfunctions("rbf", X)(X[:, :2])
    with pytest.raises(DataError, match=r"of shape \(m, 60\).*but have the shape \(60, 3\)"):
        eigenfunctions("precomputed", RBF(1.0)(X))(X)
    with mercer.config(memory="50KiB"), pytest.raises(MemoryBudgetError, match="eigenvectors of 700 rows"):
        eigenfunctions("rbf", MANY)


def test_constant_rows_and_one_row() -> None:
    psi = eigenfunctions(RBF(1.0), np.ones((7, 2)), 7)
    np.testing.assert_allclose(psi.eigenvalues, [1.0])
    np.testing.assert_allclose(psi([[1.0, 1.0], [1.0, 2.0]]).ravel(), [1.0, np.exp(-0.5)])
    assert eigenfunctions(RBF(1.0), [[3.0]], 1)([[3.0]]).tolist() == [[1.0]]
    assert eigenfunctions(Linear(), np.zeros((4, 2)), 2)(NEW[:, :2]).shape == (9, 0)
