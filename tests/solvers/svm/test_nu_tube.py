"""The nu-SVR at costs that no weight reaches, where the tube has no width."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SVR, NuSVR
from mercer.gram import PrecomputedGram
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.nu_tube import solve_nu_tube
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import BoxSolver, Start

random = np.random.default_rng(3)
X = random.normal(size=(25, 2))
y = np.sin(X[:, 0]) + 0.3 * random.normal(size=25)
K = np.exp(-3.0 * ((X[:, None] - X) ** 2).sum(axis=2))


def stated_twice(C: float, nu: float) -> BoxQP:
    gram, bound, zero = PrecomputedGram(K), np.full(25, C), np.zeros(25)
    twice, total = np.tile(np.arange(25), 2), 0.5 * nu * 25 * C
    return BoxQP(
        gram.restrict(twice, twice),
        np.tile(y, 2),
        np.concatenate([zero, -bound]),
        np.concatenate([bound, zero]),
        totals=(total, -total),
        groups=np.repeat(np.array([0, 1], dtype=np.int8), 25),
        once=gram,
    )


def interpolating() -> tuple[np.ndarray, float]:
    """The shortest function through all targets: its weights, and half its squared norm."""
    system = np.block([[K, np.ones((25, 1))], [np.ones((1, 25)), np.zeros((1, 1))]])
    beta = np.linalg.solve(system, np.append(y, 0.0))[:-1]
    return beta, 0.5 * float(beta @ K @ beta)


@pytest.mark.parametrize("C", [1e6, 1e9, 1e12, 1e15])
def test_at_a_cost_that_no_weight_reaches_it_goes_through_all_targets(C: float) -> None:
    model = NuSVR(C=C, kernel="precomputed").fit(K, y)
    beta, optimum = interpolating()
    assert model.certificate_.dual <= optimum * (1 + 1e-9)
    assert model.certificate_.dual == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(model.predict(K), y, atol=1e-6)
    np.testing.assert_allclose(model.dual_coef_[0], beta, rtol=1e-5, atol=1e-5 * np.abs(beta).max())
    assert model.epsilon_ == 0.0


def test_with_a_width_it_is_the_support_vector_regression_with_that_width() -> None:
    model = NuSVR(C=1.0, nu=0.4, kernel="precomputed", tol=1e-9).fit(K, y)
    assert model.epsilon_ > 0
    other = SVR(C=1.0, epsilon=model.epsilon_, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.predict(K), other.predict(K), atol=1e-7)


@pytest.mark.parametrize("solver", [SMO(), SMO(max_iter=10)])
def test_its_state_has_the_sums_and_starts_the_next_solve(solver: BoxSolver) -> None:
    problem = stated_twice(1e7, 0.7)
    answer = solve_nu_tube(problem, solver, Start())
    first, second = answer.state[:25], answer.state[25:]
    assert first.sum() == pytest.approx(problem.totals[0]) == -second.sum()
    assert (answer.state >= problem.lower).all() and (answer.state <= problem.upper).all()
    assert answer.certificate.iterations <= solver.limit
    again = solve_nu_tube(problem, SMO(), Start(answer.state))
    assert again.certificate.dual == pytest.approx(interpolating()[1], rel=1e-5)


def test_a_path_goes_on_from_a_fit_without_a_tube() -> None:
    costs = [1e4, 1e8, 1e12]
    models = NuSVR(kernel="precomputed").fit_along("C", costs, K, y)
    for C, model in zip(costs, models):
        np.testing.assert_allclose(model.predict(K), NuSVR(C=C, kernel="precomputed").fit(K, y).predict(K), atol=1e-5)
