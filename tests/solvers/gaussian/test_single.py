"""Predictive variances in float32: the bound on their error holds, and what it cannot promise is done in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mercer
from mercer import GaussianProcessRegressor
from mercer.engine import lapack, memory
from mercer.kernels import RBF, Kernel, Linear, Matern
from mercer.solvers.gaussian import posterior, single
from mercer.solvers.gaussian.single import PROBES, TOLERANCE, SingleFactor

N, NEW = 520, 1100
RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(N, 4)), RNG.normal(size=(NEW, 4))
Y = np.sin(X[:, 0]) + X[:, 1]


def factor(kernel: Kernel, noise: float) -> np.ndarray:
    A = kernel(X)
    A[np.diag_indices(N)] += noise
    assert lapack.factor_cholesky(A) == 0
    return np.triu(A)


def exact(L: np.ndarray, block: np.ndarray) -> np.ndarray:
    rows = block.copy()
    lapack.solve_triangle(L, rows)
    return np.einsum("ij,ij->i", rows, rows)


@pytest.mark.parametrize("kernel", [RBF(2.0), 3e9 * RBF(1.0), 1e-9 * Matern(2.0) + 1e-9 * Linear()], ids=repr)
def test_errors_are_below_their_bounds(kernel: Kernel) -> None:
    size = float(kernel.diagonal(X).mean())
    L, block = factor(kernel, 0.01 * size), np.ascontiguousarray(kernel(Z, X))
    rough = SingleFactor.of(L)
    assert rough is not None
    single = rough.measured(L, block[:PROBES], kernel.diagonal(Z[:PROBES]))
    assert single is not None and single.kappa > 0
    q, bound = single.explained(block, np.empty(block.shape, np.float32))
    right = exact(L, block)
    assert (np.abs(q - right) <= bound).all()
    # Of float64 alone it would be right to 1e-12: the product is in float32.
    assert np.abs(q - right).max() > 1e-11 * size
    assert (bound <= TOLERANCE * (kernel.diagonal(Z) - right)).mean() > 0.75


def test_the_parts_are_those_of_the_whole() -> None:
    L, block = factor(RBF(2.0), 0.01), RBF(2.0)(Z[:50], X)
    single = SingleFactor.of(L)
    assert single is not None
    h = block @ single.project.T
    rest = block - h @ single.directions
    np.testing.assert_allclose((h**2).sum(axis=1) + exact(L, rest), exact(L, block), rtol=1e-10)
    # What is left is orthogonal to the directions in the inner product of A^-1, and much shorter.
    np.testing.assert_allclose(rest @ single.project.T, 0.0, atol=1e-9)
    assert np.median(np.linalg.norm(rest, axis=1)) < 0.1 * np.median(np.linalg.norm(block, axis=1))
    v = np.empty(rest.shape, np.float32)
    spread = single._rest(block, h, v)
    W = np.linalg.inv(L.T) * single.scale
    np.testing.assert_allclose(spread.sum(axis=1), (v.astype(float) ** 2) @ (W**2).sum(axis=0), rtol=1e-5)
    sizes = np.array([(W[rows] ** 2).sum(axis=0) for rows in single._blocks()]).T
    np.testing.assert_allclose(single.sizes, sizes, rtol=1e-5, atol=1e-12)


def test_a_wrong_product_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    L, block = factor(RBF(2.0), 0.01), RBF(2.0)(Z[:PROBES], X)
    single = SingleFactor.of(L)
    assert single is not None and single.measured(L, block, np.ones(PROBES)) is not None
    single.inverse[:] = single.inverse.astype(np.float16)
    assert single.measured(L, block, np.ones(PROBES)) is None


def in_double(model: Any, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    with monkeypatch.context() as patch:
        patch.setattr(posterior, "LEAST_ROWS", 10**9)
        mean, std = model.predict(rows, return_std=True)
    return mean, std


@pytest.mark.parametrize(
    ("kernel", "alpha", "mean"),
    [
        (1.0 * RBF(2.0), 0.01, "linear"),
        (1.0 * RBF(1.0), 1e-3, "zero"),
        (1.0 * RBF(30.0), 1e-6, "linear"),
        (1.0 * Matern(1.0, nu=0.5), 1e-10, "zero"),
        (1e12 * Linear() + 1.0 * RBF(1.0), 0.1, "linear"),
        (1e12 * Linear() + 1.0 * RBF(1.0), 0.1, "zero"),
    ],
    ids=repr,
)
def test_deviations_are_right_whatever_the_condition(
    kernel: Kernel, alpha: float, mean: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = GaussianProcessRegressor(kernel, alpha=alpha, mean=mean, optimizer=None, normalize_y=True).fit(X, Y)
    # Some are training rows, whose variance is next to nothing, and some are far from all.
    rows = np.concatenate([Z, X[:20], 50 + Z[:5], 1e30 * Z[:1]])
    right = in_double(model, rows, monkeypatch)
    predictions = model.predict(rows, return_std=True)
    np.testing.assert_allclose(predictions[0], right[0], rtol=1e-12)
    # To half of the tolerance of the variance; what is done in float64 depends on the tile in its last bits.
    np.testing.assert_allclose(predictions[1], right[1], rtol=TOLERANCE / 2, atol=1e-9 * float(np.sqrt(alpha)))


def test_what_is_done_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    factors: list[SingleFactor | None] = []
    measure = SingleFactor.measured

    def measured(self: SingleFactor, *rows: Any) -> SingleFactor | None:
        factors.append(measure(self, *rows))
        return factors[-1]

    monkeypatch.setattr(single.SingleFactor, "measured", measured)
    model = GaussianProcessRegressor(1.0 * RBF(2.0), alpha=0.01, optimizer=None).fit(X, Y)
    few = model.predict(Z[: 2 * N - 1], return_std=True)[1]
    assert factors == []
    many = model.predict(Z, return_std=True)[1][: 2 * N - 1]
    assert len(factors) == 1 and factors[0] is not None
    assert 0 < np.abs(many / few - 1).max() < TOLERANCE / 2
    # So near to singular that float32 says nothing of any row.
    GaussianProcessRegressor(1.0 * RBF(30.0), alpha=1e-9, optimizer=None).fit(X, Y).predict(Z, return_std=True)
    assert factors[1:] == [None]


def test_rows_without_a_promise_are_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = 1e-4
    model = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=alpha, optimizer=None).fit(X, Y)
    rows = np.concatenate([Z, X])
    right = in_double(model, rows, monkeypatch)[1]
    monkeypatch.setattr(single, "_DOUBTFUL", 1.0)
    # Which rows are doubtful depends on rounding, so the decision itself is recorded.
    passes: list[tuple[bool, np.ndarray]] = []
    by_strips = posterior.Posterior._by_strips

    def recorded(self: Any, cross: Any, prior: Any, H: Any, factor: Any, n_jobs: Any) -> Any:
        result = by_strips(self, cross, prior, H, factor, n_jobs)
        passes.append((factor is None, result[2]))
        return result

    monkeypatch.setattr(posterior.Posterior, "_by_strips", recorded)
    predictions = model.predict(rows, return_std=True)[1]
    (first_in_double, sure), (second_in_double, _) = passes
    doubtful = ~sure
    assert not first_in_double and second_in_double and len(passes[1][1]) == doubtful.sum()
    assert 0 < doubtful.sum() < len(rows)
    # A triangular solve in float64, of another number of rows at a time: relative to q <= 1, an error of
    # sqrt(n) eps cond(L), which is half as large in the deviation but relative to the variance.
    condition = np.sqrt(N / alpha)
    rounding = np.sqrt(N) * np.finfo(float).eps * condition / (right**2).min()
    np.testing.assert_allclose(predictions[doubtful], right[doubtful], rtol=rounding)
    np.testing.assert_allclose(predictions, right, rtol=TOLERANCE / 2)


def test_the_budget_is_kept() -> None:
    model = GaussianProcessRegressor(1.0 * RBF(2.0), alpha=0.01, optimizer=None).fit(X, Y)
    with mercer.config(memory="1GiB"):
        free = model.predict(Z, return_std=True)[1]
    # The inverse in both precisions, or not: the rows go to float64 where there is no room.
    for budget in (40 * N * N, 8 * N * N):
        with mercer.config(memory=budget, n_jobs=1), memory.track() as account:
            predictions = model.predict(Z, return_std=True)[1]
        assert account.peak <= budget
        np.testing.assert_allclose(predictions, free, rtol=TOLERANCE)
