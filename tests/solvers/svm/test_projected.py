import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import mercer
from mercer._errors import NumericalError, ParameterError
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.solution import Status
from mercer.solvers.svm import projected
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.projected import ProjectedGradient, largest_curvature, project
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start

FORMS = ["classifier", "homogeneous", "regression", "homogeneous regression", "one class", "nu", "nu regression"]


def make(form, rng, n=60, C=1.0):
    """A problem of each form that the estimators state."""
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    t, w, zero = np.sin(2 * X[:, 0]), C * rng.uniform(0.5, 1.5, n), np.zeros(n)
    gram = Gram(RBF(1.0), X)
    if form in ("classifier", "homogeneous"):
        return BoxQP.classification(gram, y, w, intercept=form == "classifier")
    if form in ("regression", "homogeneous regression"):
        return BoxQP(gram, t, -w, w, tube=0.1, totals=(0.0,) if form == "regression" else ())
    if form == "one class":
        return BoxQP(gram, zero, zero, w, totals=(0.3 * w.sum(),))
    if form == "nu":
        bound = 0.15 * w.sum()
        return BoxQP(gram, zero, np.where(y > 0, 0, -w), np.where(y > 0, w, 0), totals=(bound, -bound), groups=y < 0)
    twice = np.concatenate([np.arange(n)] * 2)
    return BoxQP(
        gram.restrict(twice, twice),
        np.tile(t, 2),
        np.concatenate([zero, -w]),
        np.concatenate([w, zero]),
        totals=(0.15 * w.sum(), -0.15 * w.sum()),
        groups=np.repeat([0, 1], n),
    )


def parts(problem):
    if problem.groups is None:
        return [np.ones(len(problem.linear), dtype=bool)] if problem.totals else []
    return [problem.groups == 0, problem.groups == 1]


def by_slsqp(problem, quadratic, linear, price):
    """Minimise ``b'Qb / 2 - c'b + price |b|_1`` over the feasible set; with a price in doubled variables."""
    n = len(linear)
    both = np.hstack([np.eye(n), -np.eye(n)])
    Q = both.T @ quadratic @ both
    c = both.T @ linear - price
    rows = [both[part].sum(axis=0) for part in parts(problem)]
    sums = [
        {"type": "eq", "fun": lambda a, row=row, total=total: row @ a - total}
        for row, total in zip(rows, problem.totals)
    ]
    answer = minimize(
        lambda a: 0.5 * a @ Q @ a - c @ a,
        np.zeros(2 * n),
        jac=lambda a: Q @ a - c,
        method="SLSQP",
        bounds=[*((0, u) for u in problem.upper), *((0, -v) for v in problem.lower)],
        constraints=sums,
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert answer.success
    return both @ answer.x, answer.fun


def value(problem, K, beta):
    return 0.5 * beta @ K @ beta - problem.linear @ beta + problem.tube * np.abs(beta).sum()


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_pairwise_decomposition(form, accelerated, rng):
    problem = make(form, rng, n=30)
    best = SMO(tol=1e-8).solve(problem).certificate.dual
    solution = ProjectedGradient(accelerated=accelerated).solve(problem)
    c, beta = solution.certificate, solution.value.beta
    assert solution.status is Status.converged
    assert c.kkt_violation <= 1e-3 and c.kkt_violation == c.violations["stationarity"]
    assert (beta >= problem.lower).all() and (beta <= problem.upper).all()
    for part, total in zip(parts(problem), problem.totals):
        assert beta[part].sum() == pytest.approx(total, abs=1e-12)
    K = problem.gram.block(None, None)
    assert c.dual == pytest.approx(-value(problem, K, beta), rel=1e-9)
    assert c.dual <= best + 1e-9 and c.primal >= best - 1e-9
    assert c.dual == pytest.approx(best, rel=1e-3, abs=1e-4)
    np.testing.assert_allclose(solution.value.gradient, problem.linear - K @ beta, atol=1e-12)
    assert c.iterations > 0 and c.seconds > 0 and c.peak_bytes > 0


@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_a_general_solver(form, rng):
    problem = make(form, rng, n=8)
    K = problem.gram.block(None, None)
    expected, least = by_slsqp(problem, K, problem.linear, problem.tube)
    solution = ProjectedGradient(tol=1e-9, accelerated=True).solve(problem)
    assert -solution.certificate.dual == pytest.approx(least, abs=1e-8)
    assert value(problem, K, expected) == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("price", [0.0, 0.7])
def test_projection_agrees_with_a_general_solver(form, price, rng):
    problem = make(form, rng, n=5)
    v = 2 * rng.standard_normal(len(problem.linear))
    expected, _ = by_slsqp(problem, np.eye(len(v)), v, price * problem.tube)
    np.testing.assert_allclose(project(problem, v, price), expected, atol=2e-6)


def sizes(low, high):
    return st.lists(st.floats(low, high).map(lambda x: round(x, 3)), min_size=6, max_size=6).map(np.array)


@given(v=sizes(-1e3, 1e3), lower=sizes(-2, 0), upper=sizes(0.001, 3), share=st.floats(0, 1), tube=st.floats(0, 2))
def test_projection_is_feasible_and_nothing_feasible_is_nearer(v, lower, upper, share, tube):
    total = lower.sum() + share * (upper.sum() - lower.sum())
    total = min(max(total, lower.sum()), upper.sum())
    problem = BoxQP(PrecomputedGram(np.eye(6)), np.zeros(6), lower, upper, tube=tube, totals=(total,))
    beta = project(problem, v, 1.0)
    assert (beta >= lower).all() and (beta <= upper).all()
    assert beta.sum() == pytest.approx(total, abs=1e-11)
    np.testing.assert_allclose(project(problem, beta, 0.0), beta, atol=1e-11)

    def cost(b):
        return 0.5 * ((b - v) ** 2).sum() + tube * np.abs(b).sum()

    # Weight moved between any two rows costs more: for a convex function that means nothing feasible is better.
    for i in range(6):
        for j in range(6):
            step = min(1e-3, upper[i] - beta[i], beta[j] - lower[j])
            if i != j and step > 0:
                moved = beta.copy()
                moved[i], moved[j] = beta[i] + step, beta[j] - step
                assert cost(moved) >= cost(beta) - 1e-9 * (1 + np.abs(v).max())


def test_projection_is_right_for_many_rows_of_very_different_size(rng):
    n = 20_000
    v = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 6, n)
    problem = BoxQP(PrecomputedGram(np.broadcast_to(0.0, (n, n))), np.zeros(n), np.full(n, -1.0), np.full(n, 2.0))
    beta = project(problem, v)
    assert abs(beta.sum()) < 1e-9
    free = (beta > -1) & (beta < 2)
    assert np.ptp((v - beta)[free]) < 1e-8


@pytest.mark.parametrize("form", ["classifier", "homogeneous", "nu"])
def test_curvature_is_the_largest_eigenvalue_on_feasible_directions(form, rng):
    problem = make(form, rng, n=30)
    centre = np.eye(30)
    for part in parts(problem):
        centre -= np.outer(part, part) / part.sum()
    largest = np.linalg.eigvalsh(centre @ problem.gram.block(None, None) @ centre)[-1]
    curvature = largest_curvature(problem, problem.gram)
    assert curvature <= largest * (1 + 1e-12) and curvature == pytest.approx(largest, rel=0.05)


def test_too_small_a_curvature_is_noticed_and_raised(rng, monkeypatch):
    problem = make("classifier", rng)
    monkeypatch.setattr(projected, "largest_curvature", lambda *_: 1e-3)
    solution = ProjectedGradient(accelerated=True).solve(problem)
    assert solution.status is Status.converged
    assert solution.certificate.dual == pytest.approx(SMO().solve(problem).certificate.dual, rel=1e-4)


def test_every_plain_step_is_the_one_of_the_formula_and_improves_the_objective(rng):
    problem = make("homogeneous", rng)
    K = problem.gram.block(None, None)
    L = 1.05 * largest_curvature(problem, problem.gram)
    beta, before = np.zeros(60), -np.inf
    for steps in range(1, 6):
        beta = np.clip(beta + (problem.linear - K @ beta) / L, problem.lower, problem.upper)
        solution = ProjectedGradient(max_iter=steps).solve(problem)
        np.testing.assert_allclose(solution.value.beta, beta, atol=1e-12)
        assert solution.certificate.dual > before
        before = solution.certificate.dual


def test_acceleration_needs_far_fewer_steps(rng):
    problem = make("classifier", rng, n=100)
    plain, fast = (ProjectedGradient(accelerated=a).solve(problem).certificate.iterations for a in (False, True))
    assert 3 * fast < plain


def test_limit_start_and_gap(rng):
    problem = make("regression", rng)
    short = ProjectedGradient(max_iter=3).solve(problem)
    assert short.status is Status.iteration_limit and short.certificate.iterations == 3
    assert "max_iter" in short.certificate.explain()
    whole = ProjectedGradient(accelerated=True).solve(problem)
    assert ProjectedGradient().solve(problem, Start(whole.state)).certificate.iterations == 0
    outside = ProjectedGradient(max_iter=0).solve(problem, Start(whole.state + 5.0))
    assert abs(outside.value.beta.sum()) < 1e-12
    loose = ProjectedGradient(tol=1e-2, accelerated=True).solve(problem).certificate
    tight = ProjectedGradient(tol=1e-2, stop="gap", accelerated=True).solve(problem).certificate
    assert tight.relative_gap <= 1e-2 and tight.iterations >= loose.iterations
    with pytest.raises(ParameterError, match="'kkt' or 'gap', but is 'soon'"):
        ProjectedGradient(stop="soon").solve(problem)


def test_same_bits_for_any_number_of_threads(rng):
    problem = make("classifier", rng, n=1100)
    betas = [ProjectedGradient(max_iter=4, n_jobs=k).solve(problem).value.beta for k in (1, 2)]
    np.testing.assert_array_equal(*betas)


def test_degenerate_matrices_end(rng):
    y = np.tile([1.0, -1.0], 5)
    flat = BoxQP.classification(PrecomputedGram(np.ones((10, 10))), y, np.full(10, 3.0))
    solution = ProjectedGradient().solve(flat)
    assert solution.status is Status.converged
    assert solution.certificate.dual == pytest.approx(30.0)
    large = make("classifier", rng, C=1e6)
    limited = ProjectedGradient(max_iter=50, accelerated=True).solve(large)
    assert limited.status is Status.iteration_limit and np.isfinite(limited.certificate.primal)


def test_rounding_in_the_way_is_said(rng, monkeypatch):
    monkeypatch.setattr(projected, "_PATIENCE", 20)
    solution = ProjectedGradient(tol=1e-300).solve(make("classifier", rng, n=20))
    assert solution.status is Status.stalled


def test_indefinite_matrix_gives_a_stationary_point(rng):
    X = rng.standard_normal((50, 3))
    K, y = np.tanh(X @ X.T - 1.0), np.tile([1.0, -1.0], 25)
    problem = BoxQP.classification(PrecomputedGram(K), y, np.ones(50), convex=False)
    solution = ProjectedGradient(accelerated=True).solve(problem)
    assert solution.status is Status.stationary
    point = Iterate.begin(problem, solution.value.beta)
    point.F = y - K @ solution.value.beta
    assert point.violation() <= 1e-3


def test_nan_in_the_kernel_is_an_error():
    K = np.full((4, 4), np.nan)
    problem = BoxQP.classification(PrecomputedGram(K), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4))
    with pytest.raises(NumericalError, match="NaN or infinity in"):
        ProjectedGradient().solve(problem)


def test_a_hook_hears_of_the_steps_and_may_end_them(rng):
    heard = []

    class Enough(Exception):
        pass

    def hook(what, done, total):
        heard.append((what, done, total))
        if done == 5:
            raise Enough

    with mercer.on_progress(hook), pytest.raises(Enough):
        ProjectedGradient().solve(make("classifier", rng))
    assert heard[-1] == ("projected gradient steps", 5, None)
