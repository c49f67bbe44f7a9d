"""Leave-one-out, generalised cross-validation and evidence of every penalty, against their definitions."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import mercer
from mercer._errors import IndefiniteKernelError, MemoryBudgetError, MercerWarning, NumericalError, ParameterError
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.linear import cholesky, choose_penalty, penalty_path
from mercer.solvers.linear.choose_penalty import choose
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.linear.penalty_curves import default_penalties, trace
from mercer.solvers.linear.penalty_path import BAND, SINGLE_BAND, PenaltyPath
from mercer.solvers.linear.shifted_band import ShiftedBand
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 2))
K = RBF(1.5)(X)
T = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2]) + 0.2 * RNG.normal(size=(25, 2))
WHOLE = RNG.integers(1, 4, 25).astype(float)
PARTS = RNG.uniform(0.05, 3.0, 25)


def path_of(
    w: np.ndarray | None, stack: ExitStack, *, single_rows: bool = True, matrix: np.ndarray = K, convex: bool = True
) -> PenaltyPath:
    system = LinearSystem(PrecomputedGram(matrix), T, [0.0, 0.0], w, convex)
    return PenaltyPath(system, stack, single_rows=single_rows)


def fit(w: np.ndarray, alpha: float) -> np.ndarray:
    """Fitted values of the weighted problem; rows of weight zero have none of it."""
    s = np.sqrt(w)[:, None]
    return K @ (s * np.linalg.solve(s * K * s.T + alpha * np.eye(len(K)), s * T))


@pytest.mark.parametrize("w", [None, WHOLE, PARTS], ids=["one", "whole", "parts"])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 7.0])
def test_leave_one_out_by_fits_with_one_observation_less(w: np.ndarray | None, alpha: float) -> None:
    weights = np.ones(25) if w is None else w
    expected = np.empty_like(T)
    for i in range(25):
        less = weights.copy()
        less[i] = max(less[i] - 1.0, 0.0)
        expected[i] = T[i] - fit(less, alpha)[i]
    with ExitStack() as stack:
        path = path_of(w, stack)
        np.testing.assert_allclose(path.left_out_errors(alpha), expected, rtol=1e-8, atol=1e-10)
        mean = weights @ expected**2 / weights.sum()
        np.testing.assert_allclose(path.criteria(alpha)["loo"], mean, rtol=1e-9)


@pytest.mark.parametrize("single_rows", [True, False])
@pytest.mark.parametrize("w", [None, WHOLE, PARTS, np.full(25, 0.3)], ids=["one", "whole", "parts", "same part"])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 7.0])
def test_generalised_cross_validation_by_its_definition(w: np.ndarray | None, alpha: float, single_rows: bool) -> None:
    weights = np.ones(25) if w is None else w
    residual = T - fit(weights, alpha)
    s = np.sqrt(weights)
    A = s[:, None] * K * s
    leverage = np.diag(A @ np.linalg.inv(A + alpha * np.eye(25)))
    N = weights.sum()
    expected = (weights @ residual**2 / N) / (1.0 - np.minimum(weights, 1.0) @ leverage / N) ** 2
    with ExitStack() as stack:
        curve = path_of(w, stack, single_rows=single_rows).criteria(alpha)["gcv"]
    np.testing.assert_allclose(curve, expected, rtol=1e-8)


@pytest.mark.parametrize("w", [None, WHOLE], ids=["one", "whole"])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 7.0])
def test_evidence_is_the_density_of_repeated_rows_at_the_best_noise(w: np.ndarray | None, alpha: float) -> None:
    rows = np.repeat(np.arange(25), 1 if w is None else w.astype(int))
    C = K[np.ix_(rows, rows)] / alpha + np.eye(len(rows))
    expected = []
    for t in T[rows].T:
        best = t @ np.linalg.solve(C, t) / len(rows)
        densities = [multivariate_normal(cov=f * best * C).logpdf(t) for f in (1.0, 0.99, 1.01)]
        assert densities[0] == max(densities)
        expected.append(densities[0])
    with ExitStack() as stack:
        np.testing.assert_allclose(path_of(w, stack).criteria(alpha)["evidence"], expected, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.integers(1, 3), min_size=25, max_size=25), log_alpha=st.floats(-4, 3), single_rows=st.booleans()
)
def test_whole_weights_are_repeated_rows(counts: list[int], log_alpha: float, single_rows: bool) -> None:
    rows = np.repeat(np.arange(25), counts)
    repeated = LinearSystem(PrecomputedGram(K[np.ix_(rows, rows)]), T[rows], [0.0, 0.0])
    with ExitStack() as stack:
        ours = path_of(np.array(counts, dtype=float), stack, single_rows=single_rows).criteria(10.0**log_alpha)
        theirs = PenaltyPath(repeated, stack, single_rows=single_rows).criteria(10.0**log_alpha)
        assert ours.keys() == theirs.keys() and ("loo" in ours) == single_rows
        for name, values in ours.items():
            np.testing.assert_allclose(values, theirs[name], rtol=1e-7, err_msg=name)


def test_solutions_are_those_of_the_cholesky_solver() -> None:
    shifts = np.array([[1e-6, 1e-3], [0.1, 0.1], [1e4, 2.0]])
    with ExitStack() as stack:
        solutions = path_of(PARTS, stack).solutions(shifts)
    for row, solution in zip(shifts, solutions):
        expected = cholesky.solve(LinearSystem(PrecomputedGram(K), T, row, PARTS))
        np.testing.assert_allclose(solution.value, expected.value, rtol=1e-7, atol=1e-9)
        ours, theirs = solution.certificate, expected.certificate
        # What rounding leaves of a residual is much the same for any backward stable factor.
        assert ours.kkt_violation < max(1e-14, 4 * theirs.kkt_violation)
        assert ours.status is Status.direct and solution.state.method == BAND
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-9) and 0 <= ours.gap < 1e-9 * ours.primal
        assert ours.peak_bytes == 20 * 25**2


def test_residuals_are_evaluated_lazily_where_there_is_no_room_for_a_copy() -> None:
    with ExitStack() as stack, mercer.config(memory=13 * 25**2):
        (solution,) = path_of(WHOLE, stack).solutions(np.array([[0.1, 0.2]]))
    assert solution.certificate.kkt_violation < 1e-13 and solution.certificate.peak_bytes == 12 * 25**2
    with ExitStack() as stack, mercer.config(memory=11 * 25**2), pytest.raises(MemoryBudgetError, match="25 x 25"):
        path_of(WHOLE, stack)
    assert mercer.engine.memory._process.reserved == 0


def test_where_there_is_no_penalty() -> None:
    singular = X @ X.T
    with ExitStack() as stack:
        path = path_of(None, stack, matrix=singular)
        values = path.criteria(0.0)
        assert np.isposinf(values["loo"]).all() and np.isposinf(values["gcv"]).all()
        assert np.isneginf(values["evidence"]).all() and np.isnan(path.left_out_errors(0.0)).all()
        with pytest.warns(MercerWarning, match="rank is 2 of 25"):
            least_squares, usual = path.solutions(np.array([[0.0, 0.0], [1.0, 1.0]]))
        assert least_squares.status is Status.least_squares and usual.status is Status.direct
        np.testing.assert_allclose(singular @ least_squares.value, X @ np.linalg.lstsq(X, T)[0], atol=1e-9)
        with pytest.raises(ParameterError, match=r"'gcv' cannot choose: for none of the 1 penalties.*Give larger"):
            choose(path, "gcv", np.zeros(1), per_target=False)
    with ExitStack() as stack:
        path = path_of(None, stack, matrix=K + 1e-3 * np.eye(25))
        # Interpolation, where the limit of all criteria exists.
        small = path.criteria(1e-12)
        for name, values in path.criteria(0.0).items():
            np.testing.assert_allclose(values, small[name], rtol=1e-6)


def test_indefinite_matrices() -> None:
    bent = K - 0.5 * np.eye(25)
    with ExitStack() as stack:
        path = path_of(None, stack, matrix=bent)
        with pytest.raises(IndefiniteKernelError, match=r"smallest eigenvalue is -0\.[45].*allow_indefinite=True"):
            path.criteria(0.1)
        assert np.isfinite(path.criteria(0.6)["loo"]).all()
        allowed = path_of(None, stack, matrix=bent, convex=False)
        assert np.isposinf(allowed.criteria(0.1)["loo"]).all()
        alpha, _ = choose(allowed, "loo", None, per_target=True)
        assert (alpha > -np.linalg.eigvalsh(bent)[0]).all()
        assert allowed.solutions(alpha[None])[0].status is Status.stationary


def test_values_that_are_not_finite() -> None:
    broken = K.copy()
    broken[3, 4] = broken[4, 3] = np.nan
    with ExitStack() as stack, pytest.raises(NumericalError, match=r"nan at \[3, 4\]"):
        path_of(None, stack, matrix=broken)


@pytest.mark.parametrize("criterion", ["loo", "gcv", "evidence"])
@pytest.mark.parametrize("per_target", [True, False])
def test_the_choice_is_a_minimum_of_its_curve(criterion, per_target: bool) -> None:
    with ExitStack() as stack:
        path = path_of(None, stack)
        penalties, curves = choose(path, criterion, None, per_target=per_target)
        assert len(penalties) == 2 and (per_target or penalties[0] == penalties[1])
        assert (np.diff(curves.alphas) > 0).all() and np.isin(penalties, curves.alphas).all()
        dense = trace(path, np.geomspace(1e-6, 1e3, 150))
        sign = -1.0 if criterion == "evidence" else 1.0
        values, curve = sign * dense.of(criterion), sign * curves.of(criterion)
        if not per_target:
            values, curve = values.sum(axis=1, keepdims=True), curve.sum(axis=1, keepdims=True)
        for j in range(values.shape[1]):
            at = curve[curves.alphas == penalties[j], j][0]
            # Of what is equal to a share of 1e-4 in the mean squared error, the largest alpha is taken.
            equal = 0.5 * 25 * 1e-4 if criterion == "evidence" else 1e-4 * curve[:, j].min()
            assert at <= curve[:, j].min() + equal
            assert at <= values[:, j].min() + 2 * equal


@pytest.mark.parametrize("w", [None, WHOLE, PARTS], ids=["one", "whole", "parts"])
def test_errors_in_training_bound_those_of_leave_one_out_from_below(w: np.ndarray | None) -> None:
    weights = np.ones(25) if w is None else w
    with ExitStack() as stack:
        path = path_of(w, stack)
        for alpha in (1e-4, 0.1, 7.0):
            result = path.training_errors(alpha)
            np.testing.assert_allclose(result, weights @ (T - fit(weights, alpha)) ** 2 / weights.sum(), rtol=1e-7)
            criteria, errors = path.criteria_and_errors(alpha)
            assert (result <= criteria["loo"]).all()
            np.testing.assert_allclose((np.asarray(errors) ** 2).sum(axis=0), criteria["loo"], rtol=1e-12)


def left_out_problem(noise: float, scale: float, seed: int) -> LinearSystem:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 3))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1] + noise * rng.normal(size=200)
    return LinearSystem(PrecomputedGram(RBF(scale)(rows)), np.column_stack([target, target**2]), [0.0, 0.0])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_leave_one_out_is_least_where_few_diagonals_say(
    monkeypatch: pytest.MonkeyPatch, noise: float, scale: float, seed: int
) -> None:
    # In turn, so that each noise and each scale has both.
    per_target = ([0.0, 0.1, 1.0, 10.0].index(noise) + [0.3, 1.0, 4.0].index(scale) + seed) % 2 == 0
    calls = []
    whole = ShiftedBand.inverse_diagonal
    monkeypatch.setattr(ShiftedBand, "inverse_diagonal", lambda *a: calls.append(1) or whole(*a))
    with ExitStack() as stack:
        path = PenaltyPath(left_out_problem(noise, scale, seed), stack, single_rows=True)
        calls.clear()
        penalties, curves = choose(path, "loo", None, per_target=per_target)
        count = len(calls)
        exact = trace(path, curves.alphas)
        dense = trace(path, np.geomspace(*default_penalties(200.0)[[0, -1]], 100))
    # Every value that is given is exact, whatever was interpolated on the way.
    np.testing.assert_array_equal(curves.loo, exact.loo)
    values, results = (
        np.asarray(c.loo) if per_target else np.sum(c.loo, axis=1, keepdims=True) for c in (dense, curves)
    )
    at = results[np.searchsorted(curves.alphas, penalties[: values.shape[1]]), np.arange(values.shape[1])]
    assert (at <= values.min(axis=0) * (1 + 2e-4)).all()
    # The grid and Brent's method take 28 to 34 for one choice.
    assert count <= (32 if per_target else 18)


def test_the_least_leave_one_out_may_be_at_an_end_of_the_penalties() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    matrix = RBF(1.0)(rows)
    nothing, all_of_it = rng.normal(size=60), matrix @ rng.normal(size=60)
    with ExitStack() as stack:
        path = PenaltyPath(
            LinearSystem(PrecomputedGram(matrix + 0.1 * np.eye(60)), nothing[:, None], [0.0]), stack, single_rows=True
        )
        assert choose(path, "loo", None, per_target=False)[0][0] == default_penalties(path.size)[-1]
        path = PenaltyPath(LinearSystem(PrecomputedGram(matrix), all_of_it[:, None], [0.0]), stack, single_rows=True)
        assert choose(path, "loo", None, per_target=False)[0][0] <= 2 * default_penalties(path.size)[0]


def slowly_decaying(n: int, noise: float) -> LinearSystem:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(n, 8))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1] + noise * rng.normal(size=n)
    return LinearSystem(PrecomputedGram(RBF(3.0)(rows)), np.column_stack([target, target**2]), [0.0, 0.0])


@pytest.mark.parametrize("criterion", ["loo", "gcv", "evidence"])
@pytest.mark.parametrize("alphas", [None, np.geomspace(1e-3, 10.0, 9)], ids=["any", "given"])
def test_float32_chooses_what_float64_does(monkeypatch: pytest.MonkeyPatch, criterion, alphas) -> None:
    system = slowly_decaying(600, 0.3)
    results = []
    for mixed_from in (600, 601):
        monkeypatch.setattr(choose_penalty, "MIXED_FROM", mixed_from)
        with ExitStack() as stack:
            path, penalties, curves = choose_penalty.reduce_and_choose(
                system, stack, criterion, alphas, per_target=True
            )
            results.append((path.single, penalties, curves, path.solutions(penalties[None])[0]))
    (single, penalties, curves, solution), (double, expected, exact, reference) = results
    assert single and not double and solution.state.method == SINGLE_BAND and reference.state.method == BAND
    # Brent's method ends within 2e-3 of a logarithm, and three digits are given.
    np.testing.assert_allclose(np.log10(penalties), np.log10(expected), atol=0 if alphas is not None else 6e-3)
    grid = default_penalties(600.0) if alphas is None else alphas
    for j, alpha in enumerate(expected):
        neighbours = grid[np.abs(np.log10(grid / alpha)) < 1]
        ours, theirs = (c.of(criterion)[np.searchsorted(c.alphas, neighbours), j] for c in (curves, exact))
        off = 600 * 5e-5 if criterion == "evidence" else 5e-5 * theirs
        assert (np.abs(ours - theirs) <= off).all()
    assert solution.certificate.kkt_violation <= 1e-11 and 0 <= solution.certificate.relative_gap < 1e-10


def test_float32_gives_way_where_it_could_change_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_penalty, "MIXED_FROM", 600)
    with ExitStack() as stack:
        # Without noise the best penalty is small.
        system = slowly_decaying(600, 0.0)
        path, penalties, _ = choose_penalty.reduce_and_choose(system, stack, "gcv", None, per_target=False)
        assert not path.single and penalties[0] < 1e-3
        # A matrix that is singular with the penalty in float32 may be regular in float64.
        path, penalties, _ = choose_penalty.reduce_and_choose(system, stack, "gcv", np.array([1e-9]), per_target=False)
        assert not path.single and penalties.tolist() == [1e-9, 1e-9]
    assert mercer.engine.memory._process.reserved == 0


def test_a_choice_among_given_penalties_takes_the_largest_of_equals() -> None:
    with ExitStack() as stack:
        path = path_of(None, stack)
        alphas = np.array([10.0, 0.1, 0.1, 1e-5])
        penalties, curves = choose(path, "loo", alphas, per_target=False)
        assert curves.alphas.tolist() == [1e-5, 0.1, 10.0] and penalties.tolist() == [0.1, 0.1]
        nothing = PenaltyPath(LinearSystem(PrecomputedGram(K), 0 * T, [0.0, 0.0]), stack, single_rows=True)
        for criterion in ("loo", "gcv", "evidence"):
            assert choose(nothing, criterion, alphas, per_target=False)[0].tolist() == [10.0, 10.0]
            assert choose(nothing, criterion, alphas, per_target=True)[0].tolist() == [10.0, 10.0]


def test_a_target_of_zeros_does_not_disturb_the_choice_for_others() -> None:
    with ExitStack() as stack:
        both = PenaltyPath(LinearSystem(PrecomputedGram(K), T * [1.0, 0.0], [0.0, 0.0]), stack, single_rows=True)
        alone = PenaltyPath(LinearSystem(PrecomputedGram(K), T[:, :1], [0.0]), stack, single_rows=True)
        for criterion in ("loo", "gcv", "evidence"):
            assert (
                choose(both, criterion, None, per_target=False)[0][0]
                == choose(alone, criterion, None, per_target=False)[0][0]
            )


def test_the_default_penalties_follow_the_scale_of_the_matrix() -> None:
    small, large = default_penalties(1.0), default_penalties(1e5)
    np.testing.assert_allclose(large, small * 1e5, rtol=5e-3)
    assert default_penalties(0.0).tolist() == [1.0]


def test_refinement_ends_where_rounding_leaves_no_more_to_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    # Errors of 1e-11 in products put a residual of 1e-12 out of reach for the columns of the small penalty, which alone
    # have answers longer than their targets. Those of rounding itself are smaller.
    n, shift = 400, 1e-2
    K = RBF(1.0)(RNG.normal(size=(n, 3)))
    columns: list[int] = []
    product = PenaltyPath._product

    def counted(path: PenaltyPath, V: np.ndarray) -> np.ndarray:
        columns.append(V.shape[1])
        noise = np.random.default_rng(len(columns)).normal(size=V.shape)
        size = np.where(np.linalg.norm(V, axis=0) > np.sqrt(n), 1e-11 * np.sqrt(n), 0.0)
        return product(path, V) + size * noise / np.linalg.norm(noise, axis=0)

    monkeypatch.setattr(PenaltyPath, "_product", counted)
    targets = RNG.normal(size=(n, 4))
    shifts = np.array([[shift, 10.0, shift, 10.0]])
    with ExitStack() as stack:
        path = PenaltyPath(
            LinearSystem(PrecomputedGram(K), targets, np.zeros(4)), stack, single_rows=True, single_for=shift
        )
        (solution,) = path.solutions(shifts)
    assert path.single and 1e-12 < solution.certificate.kkt_violation < 1e-10
    # Only some of the columns take more steps, and none of them all that are allowed.
    assert columns[0] == 4 and columns[-1] == 2 and len(columns) < 1 + penalty_path._SINGLE_POLISH
