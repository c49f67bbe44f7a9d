"""Every form of the quadratic programme: with a tube, with one sum, two or none, begun at zero or not."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer._errors import DataError, ParameterError
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.solution import Status
from mercer.solvers.svm import active_set, smo
from mercer.solvers.svm.active_set import scopes
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.smo import SMO

FORMS = ["regression", "homogeneous regression", "one class", "classes", "homogeneous classes", "nu", "nu regression"]
every_form = pytest.mark.parametrize("form", FORMS)


def problem(form, rng, n=30):
    X = rng.standard_normal((n, 2))
    gram = Gram(RBF(1.0), X)
    target, weight, zero = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n), rng.uniform(0.5, 2, n), np.zeros(n)
    y = np.where(target > 0, 1.0, -1.0)
    twice = np.concatenate([np.arange(n), np.arange(n)])
    share, half = 0.3 * min(weight[y > 0].sum(), weight[y < 0].sum()), 0.2 * weight.sum()
    match form:
        case "regression":
            return BoxQP(gram, target, -weight, weight, tube=0.2)
        case "homogeneous regression":
            return BoxQP(gram, target, -weight, weight, tube=0.2, totals=())
        case "one class":
            return BoxQP(gram, zero, zero, weight, totals=(0.3 * weight.sum(),))
        case "classes":
            return BoxQP.classification(gram, y, weight)
        case "homogeneous classes":
            return BoxQP.classification(gram, y, weight, intercept=False)
        case "nu":
            lower, upper = np.where(y > 0, 0, -weight), np.where(y > 0, weight, 0)
            return BoxQP(gram, zero, lower, upper, totals=(share, -share), groups=y < 0)
    lower, upper = np.concatenate([zero, -weight]), np.concatenate([weight, zero])
    groups = np.repeat([0, 1], n)
    both = gram.restrict(twice, twice)
    return BoxQP(both, np.tile(target, 2), lower, upper, totals=(half, -half), groups=groups)


def by_slsqp(p):
    """The largest dual value, with beta as the difference of two positive parts."""
    K, n = p.gram.dense(), len(p.linear)
    sums = [np.ones(n) if p.groups is None else 1.0 * (p.groups == g) for g in range(len(p.totals))]

    def value(z):
        beta = z[:n] - z[n:]
        return 0.5 * beta @ K @ beta - p.linear @ beta + p.tube * z.sum()

    def slope(z):
        gradient = K @ (z[:n] - z[n:]) - p.linear
        return np.concatenate([gradient + p.tube, p.tube - gradient])

    begin = Iterate.begin(p, None)
    begin.fill(np.array(p.totals))
    both = [np.concatenate([a, -a]) for a in sums]
    equalities = [
        {"type": "eq", "fun": lambda z, a=a, s=s: a @ z - s, "jac": lambda z, a=a: a} for a, s in zip(both, p.totals)
    ]
    bounds = [(0, u) for u in p.upper] + [(0, -low) for low in p.lower]
    start = np.concatenate([np.maximum(begin.beta, 0), np.maximum(-begin.beta, 0)])
    options = {"ftol": 1e-14, "maxiter": 1000}
    answer = minimize(value, start, jac=slope, bounds=bounds, constraints=equalities, method="SLSQP", options=options)
    return -answer.fun


def naive_gap(p, beta, offsets):
    """Primal less dual, from their definitions."""
    K = p.gram.dense()
    f = K @ beta
    b = np.zeros(len(beta)) if not offsets else np.asarray(offsets)[0 if p.groups is None else p.groups]
    r = p.linear - f - b
    loss = p.upper * np.maximum(r - p.tube, 0) - p.lower * np.maximum(-r - p.tube, 0)
    primal = 0.5 * beta @ f + loss.sum() + np.dot(offsets, p.totals)
    return primal - (p.linear @ beta - p.tube * np.abs(beta).sum() - 0.5 * beta @ f)


@every_form
def test_agrees_with_a_general_solver(form, rng):
    p = problem(form, rng)
    solution = SMO().solve(p)
    c = solution.certificate
    assert c.dual == pytest.approx(by_slsqp(p), rel=1e-8, abs=1e-8)
    assert c.gap == pytest.approx(naive_gap(p, solution.value.beta, solution.value.offsets), abs=1e-9)
    assert -1e-9 <= c.gap <= 1e-7 * max(abs(c.dual), 1)
    assert c.violations["box"] == 0 and c.violations["sum"] < 1e-9
    assert len(solution.value.offsets) == len(p.totals)


@every_form
def test_samples_active_sets_and_working_sets_find_what_the_whole_matrix_does(form, rng, monkeypatch):
    p = problem(form, rng, n=700)
    whole = SMO(tol=1e-4).solve(p)
    monkeypatch.setattr(smo, "WHOLE", 1)
    monkeypatch.setattr(active_set, "_WORKING_SET", 64)
    monkeypatch.setattr(active_set, "FIRST", 40)
    parts = SMO(tol=1e-4, cache_bytes=2**18).solve(p)
    assert parts.status is whole.status is Status.converged
    assert parts.certificate.dual == pytest.approx(whole.certificate.dual, rel=1e-6)
    assert parts.certificate.kkt_violation <= 1e-4
    assert parts.certificate.gap == pytest.approx(naive_gap(p, parts.value.beta, parts.value.offsets), rel=1e-6)
    np.testing.assert_allclose(parts.value.gradient, p.linear - p.gram.dense() @ parts.value.beta, atol=1e-9)


@every_form
def test_a_gap_can_be_asked_for(form, rng):
    p = problem(form, rng, n=600)
    assert SMO(tol=1e-5, stop="gap").solve(p).certificate.relative_gap <= 1e-5


@pytest.mark.parametrize("form", ["classes", "regression", "nu"])
def test_the_interior_point_method_ends_the_crawl_of_active_rows(form, rng, monkeypatch):
    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        return whole(*arguments, **options)

    whole = active_set.interior_round
    monkeypatch.setattr(active_set, "interior_round", counted)
    monkeypatch.setattr(active_set, "_CRAWL", 1)
    monkeypatch.setattr(smo, "WHOLE", 1)
    p = problem(form, rng, n=600)
    solution = SMO().solve(p)
    assert calls and solution.status is Status.converged


def test_the_first_weights_are_those_that_gain_most(rng):
    p = problem("one class", rng)
    point = Iterate.begin(p, None)
    point.F = rng.standard_normal(30)
    point.fill(np.array(p.totals))
    assert point.beta.sum() == pytest.approx(p.totals[0])
    used = np.flatnonzero(point.beta)
    assert point.F[used].min() >= np.delete(point.F, used).max()


@pytest.mark.parametrize("n", [1, 100, 8192, 8193, 100_000])
def test_scopes_are_nested_and_end_with_all_rows(n):
    result = scopes(n)
    assert len(result[-1]) == n
    for small, large in pairwise(result):
        assert len(small) >= active_set.FIRST and set(small) < set(large)
        assert np.diff(small).max() <= 3 * n / len(small)


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"linear": np.zeros(2)}, DataError, "shapes are linear"),
        ({"upper": np.full(3, np.inf)}, ParameterError, "must be finite"),
        ({"lower": np.ones(3)}, ParameterError, "row 0 has 1.0 and 1.0"),
        ({"totals": (1.0, -1.0)}, DataError, "two totals need a group"),
        ({"groups": np.zeros(3)}, DataError, "two totals need a group"),
        ({"totals": (4.0,)}, DataError, "between -3.0 and 3.0, but 4.0"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(change, error, words):
    fields = {"linear": np.zeros(3), "lower": -np.ones(3), "upper": np.ones(3)} | change
    with pytest.raises(error, match=words):
        BoxQP(PrecomputedGram(np.eye(3)), **fields)
