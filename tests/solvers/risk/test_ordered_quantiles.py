"""Quantiles that do not cross: the proximal map, the derivative, and the joint problem against linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from mercer._errors import DataError, ParameterError
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.risk.ordered_quantiles import OrderedQuantiles, QuantilesSolver
from mercer.solvers.risk.ordered_rows import OrderedRows, ordered_prox, pinball
from mercer.solvers.solution import Status

LEVELS = np.array([0.1, 0.3, 0.6, 0.9])


def test_prox_against_a_plain_optimiser() -> None:
    rng = np.random.default_rng(0)
    V, y, step = 2.0 * rng.normal(size=(12, 4)), rng.normal(size=12), rng.uniform(0.2, 3.0, 12)
    P = ordered_prox(y, LEVELS, V, step)
    assert (np.diff(P) >= 0).all()
    for i in range(12):

        def slack(z: np.ndarray, i: int = i) -> np.ndarray:
            r = y[i] - z[:4]
            return np.concatenate([np.diff(z[:4]), z[4:] - LEVELS * r, z[4:] - (LEVELS - 1.0) * r])

        best = minimize(
            lambda z, i=i: step[i] * z[4:].sum() + 0.5 * ((z[:4] - V[i]) ** 2).sum(),
            np.r_[np.full(4, y[i]), np.ones(4)],
            constraints={"type": "ineq", "fun": slack},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        # Strongly convex with modulus 1; SLSQP keeps its constraints to about 1e-8.
        np.testing.assert_allclose(P[i], best.x[:4], atol=1e-5)


@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 1.0))
def test_envelope_is_convex_with_its_gradient_and_curvature(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    rows = OrderedRows(rng.normal(size=5), LEVELS, rng.uniform(0.5, 2.0, 5), rng.normal(size=(5, 4)), 2.0)
    F, D = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    middle = rows.value(F + share * D)
    assert middle <= (1 - share) * rows.value(F) + share * rows.value(F + D) + 1e-10
    h = 1e-6
    slope = (rows.value(F + h * D) - rows.value(F - h * D)) / (2 * h)
    # Off by the change of a slope of at most sigma |D|^2 over h.
    assert slope == pytest.approx(float((rows.gradient(F) * D).sum()), abs=1e-4)
    expanded = rows.expand(F)
    model = np.zeros_like(F)
    np.add.at(model, expanded.rows, expanded.directions * (expanded.directions * D[expanded.rows]).sum(1)[:, None])
    up, down = (rows.gradient(F + s * h * D) - rows.gradient(F) for s in (1.0, -1.0))
    smooth = np.abs(up + down).max(axis=1) < 1e-9
    np.testing.assert_allclose(model[smooth], (up / h)[smooth], atol=1e-5)


@pytest.mark.parametrize("price", [0.5, 20.0])
def test_joint_problem_against_quadratic_programming(price: float) -> None:
    rng = np.random.default_rng(1)
    n, levels = 14, np.array([0.3, 0.5, 0.7])
    X = rng.uniform(0, 4, (n, 1))
    y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=n)
    K = RBF(0.6)(X)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    solution = QuantilesSolver(tol=1e-8).solve(OrderedQuantiles(PrecomputedGram(K), y, levels, np.full(n, price)))
    assert solution.status is Status.converged and (np.diff(solution.value.F) >= 0).all()

    def parts(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        V, b, S = np.split(z, [3 * n, 3 * n + 3])
        return V.reshape(n, 3), L @ V.reshape(n, 3) + b, S.reshape(n, 3)

    def slack(z: np.ndarray) -> np.ndarray:
        _, F, S = parts(z)
        r = y[:, None] - F
        return np.concatenate([np.diff(F).ravel(), (S - levels * r).ravel(), (S - (levels - 1.0) * r).ravel()])

    def value(z: np.ndarray) -> float:
        V, _, S = parts(z)
        return float(0.5 * (V**2).sum() + price * S.sum())

    start = np.concatenate([np.zeros(3 * n), np.full(3, np.median(y)), np.full(3 * n, 3.0)])
    best = minimize(
        value,
        start,
        constraints={"type": "ineq", "fun": slack},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert solution.certificate.dual <= best.fun * (1 + 1e-7)
    assert solution.certificate.primal == pytest.approx(best.fun, rel=1e-5)


def test_at_a_small_penalty_it_is_the_linear_programme() -> None:
    rng = np.random.default_rng(2)
    n, levels = 30, np.array([0.25, 0.5, 0.75])
    x = rng.normal(size=n)
    y = 0.3 * x + rng.normal(size=n)
    # w_j, b_j free; the two parts of each residual at 0 or above; f_1 <= f_2 <= f_3 at every row.
    m = len(levels)
    cost = np.concatenate([np.zeros(2 * m), np.repeat(levels, n), np.repeat(1.0 - levels, n)])
    fit = np.hstack([np.kron(np.eye(m), x[:, None]), np.kron(np.eye(m), np.ones((n, 1)))])
    order = np.kron(np.eye(m)[:-1] - np.eye(m)[1:], np.eye(n)) @ fit
    best = linprog(
        cost,
        A_ub=np.hstack([order, np.zeros((len(order), 2 * m * n))]),
        b_ub=np.zeros(len(order)),
        A_eq=np.hstack([fit, np.eye(m * n), -np.eye(m * n)]),
        b_eq=np.tile(y, m),
        bounds=[(None, None)] * (2 * m) + [(0, None)] * (2 * m * n),
    )
    price = 1e5
    gram = PrecomputedGram(np.outer(x, x))
    solution = QuantilesSolver().solve(OrderedQuantiles(gram, y, levels, np.full(n, price)))
    # The penalty is at most that of the programme's own slopes.
    slack = 0.5 * float(np.square(best.x[:m]).sum()) / price + 1e-6 * best.fun
    losses = float(pinball(y, levels, solution.value.F).sum())
    assert best.fun - 1e-9 <= losses <= best.fun + slack + 1e-6 * best.fun


@pytest.mark.parametrize("seed, price", [(4, 1e4), (0, 1e6)])
def test_steps_do_not_crawl_where_prices_are_large(seed: int, price: float) -> None:
    rng = np.random.default_rng([seed, 40])
    x = rng.uniform(0, 1, (40, 1))
    y = np.sin(6 * x[:, 0]) + (0.1 + x[:, 0]) * 0.5 * rng.normal(size=40)
    levels, K = np.array([0.05, 0.25, 0.5, 0.75, 0.95]), RBF.from_gamma(0.1)(x)
    solution = QuantilesSolver().solve(OrderedQuantiles(PrecomputedGram(K), y, levels, np.full(40, price)))
    certificate, value = solution.certificate, solution.value
    assert solution.status is Status.converged and certificate.iterations < 1000
    F = K @ value.C + value.b
    objective = 0.5 * float((value.C * (K @ value.C)).sum()) + price * float(pinball(y, levels, F).sum())
    assert certificate.primal == pytest.approx(objective, rel=1e-8)
    # Multipliers in the box, whose rows are in order and whose columns sum to 0, bound the best value from below.
    U = solution.state
    assert np.abs(U.sum(axis=0)).max() <= 1e-6 * price
    assert certificate.dual == pytest.approx(
        -float((U * y[:, None]).sum()) - 0.5 * float((U * (K @ U)).sum()), rel=1e-5
    )


def test_what_is_refused() -> None:
    gram = PrecomputedGram(np.eye(3))
    for levels in ([0.5, 0.5], [0.0, 0.5], [0.5, 1.0], []):
        with pytest.raises(ParameterError, match="levels must ascend between 0 and 1"):
            OrderedQuantiles(gram, np.ones(3), np.array(levels), np.ones(3))
    with pytest.raises(DataError, match=r"targets and prices of shape \(3,\)"):
        OrderedQuantiles(gram, np.ones(2), np.array([0.5]), np.ones(3))
    with pytest.raises(DataError, match="every price finite and above 0"):
        OrderedQuantiles(gram, np.ones(3), np.array([0.5]), np.zeros(3))
