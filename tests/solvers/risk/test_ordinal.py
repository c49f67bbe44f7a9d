"""The solver for ordered classes: against a general minimiser, its own dual, and neighbouring problems."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import mercer
import mercer.engine.progress
from mercer._errors import MemoryBudgetError, MercerWarning, NumericalError
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear
from mercer.solvers.risk.cumulative_links import LINKS
from mercer.solvers.risk.ordinal import NewtonPath, OrdinalSolver, OrdinalStart
from mercer.solvers.risk.ordinal_evidence import log_evidence, slope_by_evidence
from mercer.solvers.risk.ordinal_problem import OrdinalProblem, best_cuts, widest_step

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=60), [0.0, 1.0, 2.0])
K = RBF(1.0)(X)

every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)


def problem(C: float = 3.0, link: str = "logit", **other) -> OrdinalProblem:
    parameters = {"gram": PrecomputedGram(K), "codes": Y, "weight": np.full(60, C), "link": LINKS[link]}
    return OrdinalProblem(**(parameters | other))


def objective(p: OrdinalProblem, features: np.ndarray, z: np.ndarray) -> float:
    """The naive objective in explicit features; cut-points by logarithms of their gaps."""
    v, rest = z[: features.shape[1]], z[features.shape[1] :]
    cuts = rest[0] + np.concatenate([[0.0], np.cumsum(np.exp(rest[1:]))])
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    g = features @ v
    with np.errstate(divide="ignore"):
        return float(-p.weight @ np.log(_mass(p, ends, g)) + 0.5 * v @ v)


def _mass(p: OrdinalProblem, ends: np.ndarray, g: np.ndarray) -> np.ndarray:
    return p.link.cumulative(ends[p.codes + 1] - g) - p.link.cumulative(ends[p.codes] - g)


@every_link
def test_a_general_minimiser_finds_the_same(link):
    features = X[:, :2]
    p = problem(2.0, link.name, gram=PrecomputedGram(features @ features.T))
    solution = OrdinalSolver().solve(p)
    start = np.concatenate([np.zeros(2), [-1.0], np.zeros(2)])
    optimum = minimize(
        lambda z: objective(p, features, z),
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 10_000, "maxfev": 10_000},
    )
    c = solution.certificate
    # A general minimiser stops above the best value, which the dual bounds from below.
    assert c.dual <= c.primal <= optimum.fun + 1e-9 * optimum.fun
    assert optimum.fun - c.dual <= 1e-8 * optimum.fun
    np.testing.assert_allclose(features.T @ solution.value.coefficients, optimum.x[:2], atol=1e-4)


@every_link
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3, 1e6])
def test_primal_meets_dual(link, C):
    solution = OrdinalSolver().solve(problem(C, link.name))
    c = solution.certificate
    assert solution.status.name == "converged"
    assert 0 <= c.gap <= 1e-10 * abs(c.primal)
    assert (np.diff(solution.value.cuts) > 0).all()
    # The weights of an optimal answer sum to zero: latent values and cut-points may move together.
    assert abs(solution.value.coefficients.sum()) <= 1e-9 * np.abs(solution.value.coefficients).sum()


@every_link
def test_the_gap_is_a_bound_wherever_the_path_is_cut_off(link):
    best = OrdinalSolver().solve(problem(50.0, link.name)).certificate.primal
    for steps in range(6):
        solution = OrdinalSolver(max_iter=steps).solve(problem(50.0, link.name))
        c = solution.certificate
        assert c.iterations == steps and solution.status.name == "iteration_limit"
        assert c.dual <= best * (1 + 1e-12) and c.primal >= best * (1 - 1e-12)


def conjugate(p: OrdinalProblem, by_upper: float, by_lower: float, code: int) -> float:
    """sup over (u, l) of ``by_upper u + by_lower l - psi(u, l)``, by a general minimiser."""
    first, last = code == 0, code == p.classes - 1

    def less(z: np.ndarray) -> float:
        low, gap = z[0], np.exp(z[1])
        upper = np.inf if last else z[0] + (0.0 if first else gap)
        ends = np.array([upper]), np.array([-np.inf if first else low]), np.array([np.inf if first or last else gap])
        gain = (0.0 if last else by_upper * upper) + (0.0 if first else by_lower * low)
        return float(p.link.value(*ends)[0]) - gain

    return -min(
        minimize(less, [0.0, s], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).fun for s in (-1.0, 1.0)
    )


def test_the_dual_value_is_that_of_the_conjugates():
    # The identity that the certificate rests on, with conjugates from their definition.
    p = problem(1.0, codes=Y[:12], weight=np.ones(12), gram=PrecomputedGram(K[:12, :12]))
    path = NewtonPath(p, K[:12, :12])
    path.coefficients = RNG.normal(size=12)
    path.coefficients -= path.coefficients.mean()
    path.latent = K[:12, :12] @ path.coefficients
    certificate = path.finish(None, 0.0, 0).certificate
    slopes = p.link.slopes(*p.ends(path.latent, path.cuts))
    beta = -slopes.latent
    dual = -0.5 * beta @ K[:12, :12] @ beta
    for upper, lower, code in zip(slopes.upper, slopes.lower, p.codes, strict=True):
        dual -= conjugate(p, upper, lower, int(code))
    assert certificate.dual == pytest.approx(dual, abs=1e-7)
    assert certificate.gap > 0.01


def test_derivatives_of_the_whole_problem():
    p = problem(1.3, "probit", owner=np.arange(60) // 2, gram=PrecomputedGram(K[:30, :30]))
    latent, cuts = RNG.normal(size=30), np.array([-1.0, 0.3, 0.9])
    expansion = p.expand(latent, cuts)
    h = 1e-6
    for j in range(30):
        move = h * np.eye(30)[j]
        up, down = p.expand(latent + move, cuts), p.expand(latent - move, cuts)
        assert (p.loss(latent + move, cuts) - p.loss(latent - move, cuts)) / (2 * h) == pytest.approx(
            expansion.slope[j], abs=1e-6
        )
        np.testing.assert_allclose((up.slope - down.slope)[j] / (2 * h), expansion.curvature[j], atol=1e-6)
        np.testing.assert_allclose((up.cut_slope - down.cut_slope) / (2 * h), expansion.cross[j], atol=1e-6)
    for j in range(3):
        move = h * np.eye(3)[j]
        up, down = p.expand(latent, cuts + move), p.expand(latent, cuts - move)
        assert (p.loss(latent, cuts + move) - p.loss(latent, cuts - move)) / (2 * h) == pytest.approx(
            expansion.cut_slope[j], abs=1e-6
        )
        np.testing.assert_allclose((up.cut_slope - down.cut_slope) / (2 * h), expansion.cut_curvature[j], atol=1e-5)


def test_convex_along_random_lines():
    p = problem(1.0, "cloglog")
    for _ in range(50):
        ends = [(RNG.normal(size=60), np.sort(RNG.normal(size=3) * 2)) for _ in range(2)]
        (g0, t0), (g1, t1) = ends
        middle = p.loss((g0 + g1) / 2, (t0 + t1) / 2)
        assert middle <= (p.loss(g0, t0) + p.loss(g1, t1)) / 2 + 1e-12


def test_rows_at_one_point_are_rows_of_equal_features():
    owner = RNG.permutation(np.arange(60) % 20)
    codes = Y[np.argsort(RNG.random(60))]
    merged = OrdinalSolver().solve(problem(codes=codes, owner=owner, gram=PrecomputedGram(K[:20, :20])))
    separate = OrdinalSolver().solve(problem(codes=codes, gram=PrecomputedGram(K[np.ix_(owner, owner)])))
    assert merged.certificate.primal == pytest.approx(separate.certificate.primal, rel=1e-12)
    np.testing.assert_allclose(merged.value.cuts, separate.value.cuts, rtol=1e-9)
    np.testing.assert_allclose(merged.value.latent[owner], separate.value.latent, rtol=1e-8, atol=1e-9)
    p = problem(codes=codes, owner=owner, gram=PrecomputedGram(K[:20, :20]))
    shared = merged.value.row_coefficients(p)
    np.testing.assert_allclose(np.bincount(owner, shared, 20), merged.value.coefficients, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(shared, separate.value.row_coefficients(problem(codes=codes)), atol=1e-7)


def test_a_start_near_the_answer_saves_steps_and_a_bad_one_does_no_harm():
    cold = OrdinalSolver().solve(problem(100.0))
    warm = OrdinalSolver().solve(problem(110.0), cold.state)
    again = OrdinalSolver().solve(problem(110.0))
    assert warm.certificate.iterations < again.certificate.iterations
    assert warm.certificate.primal == pytest.approx(again.certificate.primal, rel=1e-12)
    far = OrdinalStart(RNG.normal(size=60) * 100, np.array([-1e-3, 0.0, 1e4]))
    assert OrdinalSolver().solve(problem(110.0), far).certificate.primal == pytest.approx(again.certificate.primal)


def test_centring_moves_latent_values_and_cuts_alike():
    plain = OrdinalSolver().solve(problem())
    centred = OrdinalSolver().solve(problem(centred=True, gram=PrecomputedGram(K - 5.0)))
    shift = np.mean((K - 5.0) @ centred.value.coefficients)
    np.testing.assert_allclose(centred.value.coefficients, plain.value.coefficients, atol=1e-8)
    np.testing.assert_allclose(centred.value.cuts + shift, plain.value.cuts, atol=1e-8)


@every_link
def test_without_features_the_cuts_are_those_of_the_shares(link):
    p = problem(1.0, link.name, gram=PrecomputedGram(np.zeros((60, 60))))
    solution = OrdinalSolver().solve(p)
    assert solution.certificate.iterations == 0
    shares = np.cumsum(np.bincount(Y))[:-1] / 60
    np.testing.assert_allclose(link.cumulative(solution.value.cuts), shares, rtol=1e-12)
    cuts, _ = best_cuts(p, np.zeros(60), np.array([-5.0, 0.0, 0.1]))
    np.testing.assert_allclose(link.cumulative(cuts), shares, rtol=1e-9)


def test_classes_of_vanishing_weight():
    weight = np.where(Y == 1, 1e-12, 1.0)
    solution = OrdinalSolver().solve(problem(weight=weight))
    assert solution.status.name == "converged" and (np.diff(solution.value.cuts) > 0).all()
    without = Y != 1
    rest = OrdinalSolver().solve(
        problem(
            codes=np.maximum(Y[without] - 1, 0),
            weight=np.ones(without.sum()),
            gram=PrecomputedGram(K[np.ix_(without, without)]),
        )
    )
    assert solution.certificate.primal == pytest.approx(rest.certificate.primal, rel=1e-8)


def test_an_indefinite_matrix_ends_in_a_stationary_point():
    indefinite = K - 0.3 * np.eye(60)
    p = problem(0.5, gram=PrecomputedGram(indefinite), convex=False)
    solution = OrdinalSolver().solve(p)
    answer = solution.value
    assert solution.status.name == "stationary" and not solution.certificate.convex
    expansion = p.expand(answer.latent, answer.cuts)
    np.testing.assert_allclose(answer.coefficients, -expansion.slope, atol=1e-7)
    np.testing.assert_allclose(expansion.cut_slope, 0.0, atol=1e-7)
    same = OrdinalSolver().solve(problem(0.5, convex=False))
    assert same.certificate.primal == pytest.approx(OrdinalSolver().solve(problem(0.5)).certificate.primal, rel=1e-9)


def test_what_cannot_be_solved():
    with pytest.raises(NumericalError, match="NaN or infinite"):
        OrdinalSolver().solve(problem(gram=PrecomputedGram(np.where(K > 0.99, np.nan, K))))
    with pytest.raises(NumericalError, match=r"mercer\.validity\.nearest"):
        OrdinalSolver().solve(problem(1e3, gram=PrecomputedGram(-K)))
    with mercer.config(memory="20KiB"), pytest.raises(MemoryBudgetError, match="kernel matrix and a factor"):
        OrdinalSolver().solve(problem())


def test_steps_keep_the_order():
    for _ in range(20):
        cuts, direction = np.sort(RNG.normal(size=5)), RNG.normal(size=5) * 10
        step = widest_step(cuts, direction)
        assert 0 < step <= 1 and (np.diff(cuts + step * direction) > 0).all()


def test_the_evidence_is_a_determinant_and_a_likelihood():
    scale = 0.7
    p = problem(scale)
    path = NewtonPath(p, K)
    path.run(1e-10, mercer.engine.progress.Progress(None, "steps"), 100)
    likelihood = -p.loss(path.latent, path.cuts) / scale
    prior = -0.5 * path.latent @ np.linalg.solve(scale * K, path.latent)
    W = p.expand(path.latent, path.cuts).curvature / scale
    volume = -0.5 * np.linalg.slogdet(np.eye(60) + scale * K * W)[1]
    assert log_evidence(path, scale) == pytest.approx(likelihood + prior + volume, rel=1e-6)


def test_the_slope_has_the_largest_evidence_and_undoes_C():
    p = problem(1.0)
    answers = {C: slope_by_evidence(p, C, tol=1e-9, max_iter=100) for C in (0.1, 10.0)}
    best = answers[0.1]
    for other in (0.5, 0.9, 1.1, 2.0):
        scaled = problem(0.1 * (other * best.slope) ** 2)
        path = NewtonPath(scaled, K)
        path.run(1e-9, mercer.engine.progress.Progress(None, "steps"), 100)
        assert log_evidence(path, float(scaled.weight[0])) < best.log_evidence
    # Only a^2 C counts; the search stops within a thousandth on the scale of logarithms.
    assert answers[10.0].slope * 10.0 == pytest.approx(best.slope, rel=3e-3)
    assert answers[10.0].log_evidence == pytest.approx(best.log_evidence, abs=1e-5)


def test_a_slope_at_its_bound_is_told():
    with pytest.warns(MercerWarning, match="slope still grows at its bound of 1000"):
        slope_by_evidence(problem(1.0), 1e-8, tol=1e-8, max_iter=100)


def test_every_pair_of_steps_in_C_agrees_with_a_linear_model():
    # Scaling the features by s is the same as scaling C by s^2.
    gram = Linear()(X)
    for s, C in itertools.product((0.5, 3.0), (0.1, 10.0)):
        a = OrdinalSolver().solve(problem(C, gram=PrecomputedGram(s**2 * gram)))
        b = OrdinalSolver().solve(problem(C * s**2, gram=PrecomputedGram(gram)))
        np.testing.assert_allclose(a.value.latent, b.value.latent, rtol=1e-7, atol=1e-8)
