import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import config
from mercer._errors import DataError, NumericalError, ParameterError
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Laplacian
from mercer.solvers.solution import Status
from mercer.solvers.svm import active_set, shrinking, smo, whole_matrix
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.certify import objectives, renew_gradient, violations
from mercer.solvers.svm.free_set import newton_change
from mercer.solvers.svm.interior import interior_point
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.kept_matrix import KeptMatrix
from mercer.solvers.svm.quadratic import StoredQuadratic
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start
from mercer.solvers.svm.working_set import select


def make(rng, n=40, C=2.0, noise=0.3):
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] * X[:, 1] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y, np.full(n, C) * rng.uniform(0.5, 1.5, n)


def by_slsqp(K, y, upper, p):
    Q = y[:, None] * y * K
    answer = minimize(
        lambda a: 0.5 * a @ Q @ a - p @ a,
        np.zeros(len(y)),
        jac=lambda a: Q @ a - p,
        method="SLSQP",
        bounds=[(0, c) for c in upper],
        constraints={"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return answer.x, -answer.fun


def violation(K, y, alpha, upper, p):
    """The conditions from scratch: y_i (p_i - y_i f_i) of rows that may rise against rows that may fall."""
    F = y * p - K @ (y * alpha)
    up = ((y > 0) & (alpha < upper)) | ((y < 0) & (alpha > 0))
    low = ((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < upper))
    return F[up].max() - F[low].min()


def naive_objectives(K, y, alpha, upper, p, b):
    beta = y * alpha
    f = K @ beta
    primal = 0.5 * beta @ f + upper @ np.maximum(0, p - y * (f + b))
    return primal, (p * alpha).sum() - 0.5 * beta @ f


@pytest.mark.parametrize("linear_term", [False, True])
def test_agrees_with_a_general_solver_on_small_problems(linear_term, rng):
    X, y, upper = make(rng)
    p = rng.uniform(0.2, 2.0, len(y)) if linear_term else np.ones(len(y))
    K = Gram(RBF(1.0), X).dense()
    alpha, best = by_slsqp(K, y, upper, p)
    solution = SMO().solve(BoxQP.classification(Gram(RBF(1.0), X), y, upper, p))
    assert solution.status is Status.converged
    assert solution.certificate.dual == pytest.approx(best, rel=1e-9)
    assert solution.certificate.dual >= best - 1e-9
    np.testing.assert_allclose(solution.value.alpha, alpha, atol=1e-4)
    assert violation(K, y, solution.value.alpha, upper, p) < 1e-9


@pytest.mark.parametrize("whole", [2048, 50])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_conditions_and_certificate_hold_for_larger_problems(whole, C, rng, monkeypatch):
    monkeypatch.setattr(smo, "WHOLE", whole)
    monkeypatch.setattr(active_set, "_WORKING_SET", 128)
    X, y, upper = make(rng, n=900, C=C)
    K = Gram(RBF(1.0), X).dense()
    solution = SMO().solve(BoxQP.classification(Gram(RBF(1.0), X), y, upper))
    alpha, c = solution.value.alpha, solution.certificate
    assert c.status is Status.converged
    assert (alpha >= 0).all() and (alpha <= upper).all() and abs(y @ alpha) < 1e-9 * upper.sum()
    assert violation(K, y, alpha, upper, 1.0) <= 1e-3 + 1e-9
    primal, dual = naive_objectives(K, y, alpha, upper, 1.0, solution.value.offset)
    assert c.primal == pytest.approx(primal, rel=1e-10)
    assert c.dual == pytest.approx(dual, rel=1e-10)
    assert c.kkt_violation == pytest.approx(max(violation(K, y, alpha, upper, 1.0), 0), abs=1e-9)
    assert 0 <= c.gap <= 1e-3 * c.primal
    assert c.iterations > 0 and c.seconds > 0 and c.peak_bytes > 0


# Rows of the second kernel are worth keeping.
@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(1.0)])
def test_working_sets_and_whole_matrix_find_the_same_objective(kernel, rng, monkeypatch):
    X, y, upper = make(rng, n=900, C=5.0)
    problem = BoxQP.classification(Gram(kernel, X), y, upper)
    whole = SMO(tol=1e-4).solve(problem).certificate
    monkeypatch.setattr(smo, "WHOLE", 1)
    monkeypatch.setattr(active_set, "_WORKING_SET", 64)
    parts = SMO(tol=1e-4, cache_bytes=20 * 900 * 4).solve(problem).certificate
    assert parts.dual == pytest.approx(whole.dual, rel=1e-6)


def test_the_whole_matrix_is_made_once_for_all_rounds_in_float32(rng, monkeypatch):
    made, checked = [], []
    make_matrix, renew = KeptMatrix.make, smo.renew_gradient
    monkeypatch.setattr(
        KeptMatrix, "make", lambda self, gram, pad: made.append(gram.dtype) or make_matrix(self, gram, pad)
    )
    monkeypatch.setattr(smo, "renew_gradient", lambda *arguments: checked.append(True) or renew(*arguments))
    for module, name, value in (
        (smo, "WHOLE", 1),
        (smo, "EXACT", 1),
        (active_set, "FIRST", 40),
        (active_set, "_WIDE", 0),
    ):
        monkeypatch.setattr(module, name, value)
    X, y, upper = make(rng, n=300, C=1.0, noise=2.0)
    certificate = SMO(tol=1e-7).solve(BoxQP.classification(Gram(RBF(0.3), X), y, upper)).certificate
    assert certificate.kkt_violation <= 1e-7
    assert made == [np.float32] and len(checked) > 1


def test_same_bits_for_any_number_of_threads(rng, monkeypatch):
    monkeypatch.setattr(smo, "WHOLE", 1)
    X, y, upper = make(rng, n=5000, C=1.0)
    problems = {k: BoxQP.classification(Gram(RBF(1.0), X, n_jobs=k), y, upper) for k in (1, 2)}
    alphas = [SMO(n_jobs=k).solve(problem).value.alpha for k, problem in problems.items()]
    np.testing.assert_array_equal(*alphas)


def test_float64_takes_over_where_float32_cannot_tell_the_tolerance(rng):
    X, y, upper = make(rng, n=700, C=1e4)
    K = Gram(RBF(1.0), X).dense()
    solution = SMO(tol=1e-6).solve(BoxQP.classification(Gram(RBF(1.0), X), y, upper))
    assert solution.status is Status.converged
    assert violation(K, y, solution.value.alpha, upper, 1.0) <= 1e-6 + 1e-8


def test_a_kernel_that_overflows_float32_is_solved_in_float64(rng):
    X, y, upper = make(rng, n=600)
    K = 1e40 * Gram(RBF(1.0), X).dense()
    solution = SMO().solve(BoxQP.classification(PrecomputedGram(K), y, upper * 1e-40))
    unscaled = SMO().solve(BoxQP.classification(PrecomputedGram(K / 1e40), y, upper))
    assert solution.certificate.dual == pytest.approx(1e-40 * unscaled.certificate.dual, rel=1e-5)


def test_iterations_are_limited(rng):
    X, y, upper = make(rng, n=800)
    solution = SMO(max_iter=7).solve(BoxQP.classification(Gram(RBF(1.0), X), y, upper))
    assert solution.status is Status.iteration_limit
    assert solution.certificate.iterations == 7
    assert solution.certificate.gap > 0


def test_start_from_the_answer_takes_no_steps(rng):
    X, y, upper = make(rng, n=800)
    problem = BoxQP.classification(Gram(RBF(1.0), X), y, upper)
    first = SMO().solve(problem)
    again = SMO().solve(problem, Start(first.state))
    assert again.certificate.iterations == 0
    np.testing.assert_array_equal(again.value.beta, first.value.beta)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e5, 1e8])
def test_extreme_prices_end_well(C, rng):
    X, y, _ = make(rng, n=300, noise=0.7)
    solution = SMO().solve(BoxQP.classification(Gram(RBF(1.0), X), y, np.full(300, C)))
    assert solution.status is Status.converged
    assert solution.certificate.kkt_violation <= 1e-3


def test_opposite_labels_on_equal_rows_go_to_the_bound(rng):
    X = np.repeat(rng.standard_normal((20, 2)), 2, axis=0)
    y = np.tile([1.0, -1.0], 20)
    solution = SMO().solve(BoxQP.classification(Gram(RBF(1.0), X), y, np.full(40, 3.0)))
    np.testing.assert_allclose(solution.value.alpha, 3.0)
    assert solution.certificate.gap == pytest.approx(0, abs=1e-9)


def test_indefinite_matrix_gives_a_stationary_point(rng):
    X, y, upper = make(rng, n=100)
    K = np.tanh(X @ X.T - 1.0)
    solution = SMO().solve(BoxQP.classification(PrecomputedGram(K), y, upper, convex=False))
    assert solution.status is Status.stationary
    assert violation(K, y, solution.value.alpha, upper, 1.0) <= 1e-3


def test_nan_in_the_kernel_is_an_error(rng):
    X, y, upper = make(rng, n=600)
    K = Gram(RBF(1.0), X).dense()
    K[:] = np.nan
    with pytest.raises(NumericalError, match="NaN or infinity in"):
        SMO().solve(BoxQP.classification(PrecomputedGram(K), y, upper))


@pytest.mark.parametrize(
    "y, upper, error, words",
    [
        ([1.0, -1.0, 0.0], [1.0] * 3, DataError, "both signs"),
        ([1.0, 1.0, 1.0], [1.0] * 3, DataError, "both signs"),
        ([1.0, -1.0], [1.0] * 3, DataError, "shape"),
        ([1.0, -1.0, 1.0], [1.0, 0.0, 1.0], ParameterError, "row 1 has -0.0 and 0.0"),
        ([1.0, -1.0, 1.0], [1.0, np.inf, 1.0], ParameterError, "finite"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(y, upper, error, words):
    with pytest.raises(error, match=words):
        BoxQP.classification(PrecomputedGram(np.eye(3)), np.array(y), np.array(upper))


def test_a_total_beyond_the_box_by_rounding_alone_is_moved_to_its_end():
    gram, upper = PrecomputedGram(np.eye(3)), np.array([0.1, 0.2, 0.3])
    most = float(upper.sum())
    problem = BoxQP(gram, np.zeros(3), np.zeros(3), upper, totals=(np.nextafter(most, 1.0),))
    assert problem.totals == (most,)
    with pytest.raises(DataError, match="is required"):
        BoxQP(gram, np.zeros(3), np.zeros(3), upper, totals=(most * (1 + 1e-14),))


def test_selection_takes_the_worst_of_both_sides_and_keeps_half():
    rising = np.array([5.0, 4.0, 3.0, 2.0, -np.inf, -np.inf, 0.0, 0.0])
    falling = np.array([-np.inf, -np.inf, 2.0, 1.0, 5.0, 4.0, 3.5, -1.0])
    selection = select(rising.copy(), falling.copy(), 4, np.empty(0, dtype=np.intp))
    assert sorted(selection) == [0, 1, 4, 5]
    selection = select(rising.copy(), falling.copy(), 4, np.array([7, 0, 1]))
    assert sorted(selection) == [0, 1, 4, 7]


def test_newton_change_equalises_the_gradient_inside_a_wide_box(rng):
    A = rng.standard_normal((6, 10))
    K, F = A @ A.T, rng.standard_normal(6)
    change = newton_change(K, F, np.zeros(6), np.full(6, -1e6), np.full(6, 1e6), np.ones((6, 1)))
    after = F - K @ change
    assert abs(change.sum()) < 1e-9
    assert np.ptp(after) < 1e-8


def test_newton_change_stays_in_the_box_and_gains(rng):
    A = rng.standard_normal((6, 10))
    K, F = A @ A.T, 100 * rng.standard_normal(6)
    change = newton_change(K, F, np.zeros(6), np.full(6, -0.1), np.full(6, 0.1), np.ones((6, 1)))
    assert np.abs(change).max() <= 0.1 + 1e-12
    assert F @ change - 0.5 * change @ K @ change > 0


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
def test_interior_point_agrees_with_smo(C, rng):
    X, y, _ = make(rng, n=60)
    K = Gram(RBF(1.0), X).dense()
    beta = interior_point(
        StoredQuadratic(K), y, np.where(y > 0, 0, -C), np.where(y > 0, C, 0), np.ones((60, 1)), np.zeros(1)
    )
    best = SMO().solve(BoxQP.classification(PrecomputedGram(K), y, np.full(60, C))).certificate.dual
    assert y @ beta - 0.5 * beta @ K @ beta == pytest.approx(best, rel=1e-7)
    assert abs(beta.sum()) < 1e-8 * C


def test_the_interior_point_method_takes_over_where_pairs_crawl(rng, monkeypatch):
    calls = []

    def counted(*args):
        calls.append(1)
        return interior_point(*args)

    monkeypatch.setattr(whole_matrix, "interior_point", counted)
    monkeypatch.setattr(whole_matrix, "CRAWL", 5)
    monkeypatch.setattr(shrinking, "CRAWL", 5)
    X, y, _ = make(rng, n=600, noise=0.7)
    solution = SMO().solve(BoxQP.classification(Gram(RBF(1.0), X), y, np.full(600, 1e5)))
    assert calls
    assert solution.status is Status.converged


def test_the_gradient_of_the_certificate_is_the_float64_one_on_all_rows(rng):
    X, y, upper = make(rng, n=500)
    K = Gram(RBF(1.0), X).dense()
    problem = BoxQP.classification(PrecomputedGram(K), y, upper)
    beta = SMO().solve(problem).value.beta
    point = Iterate.begin(problem, beta)
    renew_gradient(problem.gram, point)
    np.testing.assert_allclose(point.F, y - K @ beta, atol=1e-12)
    primal, dual = naive_objectives(K, y, np.abs(beta), upper, 1.0, point.offsets()[0])
    assert objectives(point) == pytest.approx((primal, dual), rel=1e-12)
    result = violations(point)
    assert result["stationarity"] == pytest.approx(max(violation(K, y, np.abs(beta), upper, 1.0), 0), abs=1e-12)
    assert result["box"] == 0 and result["sum"] < 1e-9
    loss = upper * np.maximum(0, 1 - y * (K @ beta + point.offsets()[0]))
    assert result["complementary slackness"] == pytest.approx((loss - point.residual() * beta).max(), abs=1e-12)


@pytest.mark.parametrize("n, room", [(400, 8 * 400**2), (1000, 4 * 1000**2), (2600, 12 * 2**20)])
def test_a_small_budget_is_kept_by_keeping_fewer_rows(n, room, rng):
    X, y, upper = make(rng, n)
    with config(memory=room + 2**18):
        solution = SMO().solve(BoxQP.classification(Gram(RBF(1.0), X), y, upper))
    assert solution.status is Status.converged and solution.certificate.peak_bytes <= room + 2**18


def test_rounding_next_to_a_bound_decides_no_offset():
    upper = np.array([0.03, 0.01, 0.02])
    point = Iterate(np.zeros(3), np.zeros(3), upper, upper * [1.0, 0.0, 1.0], np.array([5.0, 1.0, 4.0]))
    neighbours = np.nextafter(point.beta, [0.0, 1.0, 0.0])
    moved = Iterate(point.linear, point.lower, upper, neighbours, point.F)
    assert moved.free.all() and moved.offsets() == point.offsets() == (2.5,)


@pytest.mark.parametrize("y", [[1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 2.0], [np.nan, 1.0, -1.0], []])
def test_signs_of_a_classification_problem_are_checked(y: list[float]) -> None:
    with pytest.raises(DataError, match="both signs"):
        BoxQP.classification(PrecomputedGram(np.eye(len(y))), np.array(y), np.ones(len(y)))
