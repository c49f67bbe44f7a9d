import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import mercer
from mercer._errors import DataError, MemoryBudgetError, NumericalError, ParameterError
from mercer.engine import memory
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Linear, Polynomial
from mercer.loops.losses import margin_value, slope
from mercer.losses import OwnLoss, as_loss
from mercer.solvers.solution import Status
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.stochastic import MarginRisk, StochasticDescent, one_pass
from mercer.solvers.svm.stochastic_rows import DescentState, FeatureRows, KernelRows

ONE = np.array([1])


class OwnModifiedHuber:
    """What ``ModifiedHuber`` is, without compiled code."""

    targets = "signs"
    step_bound = 2.0

    def value(self, y, f):
        return np.where(y * f < -1, -4 * y * f, np.maximum(0, 1 - y * f) ** 2)

    def gradient(self, y, f):
        return -y * np.clip(2 * (1 - y * f), 0, 4)


LOSSES = {name: as_loss(name) for name in ("hinge", "squared_hinge", "log_loss", "modified_huber")}
every_loss = pytest.mark.parametrize("loss", LOSSES)


def make(rng, n=40, d=3):
    X = rng.standard_normal((n, d))
    codes = (X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n) > 0).astype(int)
    return X, codes, rng.uniform(0.5, 1.5, n)


def naive(F, y, v, alpha, order, derivative, shift=0.0):
    """The steps as they are written down, with a list of all iterates; returns the last w and their mean."""
    theta, iterates = np.zeros(F.shape[1]), []
    for t, i in enumerate(order, start=1):
        w = theta / (alpha * (t + shift))
        iterates.append(w)
        theta = theta - v[i] * derivative(y[i] * (w @ F[i])) * y[i] * F[i]
    return theta / (alpha * (len(order) + 1 + shift)), np.mean(iterates, axis=0)


DERIVATIVES = {
    "hinge": lambda z: -1.0 if z < 1 else 0.0,
    "squared_hinge": lambda z: -2 * (1 - z) if z < 1 else 0.0,
    "log_loss": lambda z: -1 / (1 + np.exp(z)),
    "own": lambda z: -4.0 if z < -1 else -2 * (1 - z) if z < 1 else 0.0,
    "modified_huber": lambda z: -4.0 if z < -1 else -2 * (1 - z) if z < 1 else 0.0,
}


@every_loss
def test_slopes_and_conjugates(loss):
    builtin, one = LOSSES[loss], np.ones(1)
    for z in (-3.0, -1.5, -0.5, 0.3, 0.9, 1.5, 40.0, -40.0):
        numeric = (builtin.value(one, np.array([z + 1e-6])) - builtin.value(one, np.array([z - 1e-6]))) / 2e-6
        assert margin_value(builtin.code, z) == pytest.approx(builtin.value(one, np.array([z]))[0], rel=1e-12)
        assert slope(builtin.code, z) == pytest.approx(-numeric[0], rel=1e-6, abs=1e-7)
        assert slope(builtin.code, z) == pytest.approx(-DERIVATIVES[loss](z), rel=1e-12)
    grid = np.linspace(-30, 30, 60_001)
    for u in (0.0, 0.1, 0.5, 0.9, 1.0):
        least = (builtin.value(one, grid) + u * grid).min()
        assert -builtin.conjugate(one, np.array([-u]))[0] == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("loss", [*LOSSES, "own"])
@pytest.mark.parametrize("damped", [True, False])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("form", ["dense", "sparse", "kernel", "rows in blocks", "few rows at a time"])
def test_the_steps_are_those_of_a_naive_loop(loss, damped, average, form, rng):
    X, codes, v = make(rng)
    F = np.column_stack([X, np.ones(40)])
    alpha = 0.5
    if form in ("dense", "sparse"):
        rows = FeatureRows(F if form == "dense" else sp.csr_matrix(F))
    else:
        rows = KernelRows(Gram(Linear(), X), constant=1.0)
    known = OwnLoss(OwnModifiedHuber()) if loss == "own" else LOSSES[loss]
    risk = MarginRisk(rows, codes, ONE, v, alpha, known)
    order = np.concatenate([one_pass(risk, "shuffled", state) for state in [np.random.RandomState(5)] for _ in "abc"])
    shift = known.step_bound * (v * (F**2).sum(axis=1)).max() / alpha if damped else 0.0
    expected = naive(F, 2.0 * codes - 1, v, alpha, order, DERIVATIVES[loss], shift)[int(average)]
    with mercer.config(memory={"rows in blocks": 22_000, "few rows at a time": 9_000}.get(form, "1GiB")):
        solution = StochasticDescent(max_epochs=3, tol=1e-9, average=average, damped=damped).solve(
            risk, rng=np.random.RandomState(5)
        )
    result = solution.value.coefficients[0]
    np.testing.assert_allclose(
        F.T @ result if isinstance(rows, KernelRows) else result, expected, rtol=1e-9, atol=1e-12
    )
    assert solution.state.steps == solution.certificate.iterations == 120
    assert solution.value.epochs == 3 and solution.status is Status.iteration_limit


@pytest.mark.parametrize("order", ["shuffled", "uniform", "given"])
@pytest.mark.parametrize("average", [True, False])
def test_certificate_of_the_hinge_encloses_the_optimum(order, average, rng):
    X, codes, v = make(rng, n=120)
    alpha, gram, y = 1e-2, Gram(RBF(1.0), X), 2.0 * codes - 1
    best = SMO(tol=1e-8).solve(BoxQP.classification(gram, y, v / (alpha * 120), intercept=False)).certificate.dual
    solution = StochasticDescent(order=order, average=average, max_epochs=1024).solve(
        MarginRisk(KernelRows(gram), codes, ONE, v, alpha)
    )
    c = solution.certificate
    assert c.dual <= alpha * best + 1e-12 and c.primal >= alpha * best - 1e-12
    assert c.relative_gap <= 1e-2 and c.status is Status.converged
    assert c.kkt_violation >= -1e-12 and c.seconds > 0 and c.peak_bytes > 8 * 120**2
    a = solution.value.coefficients[0]
    K = gram.dense()
    naive_value = 0.5 * alpha * a @ K @ a + (v * np.maximum(0, 1 - y * (K @ a))).mean()
    assert c.primal == pytest.approx(naive_value, rel=1e-12)


@every_loss
@pytest.mark.parametrize("sparse", [False, True])
def test_certificate_of_every_loss_encloses_the_optimum(loss, sparse, rng):
    X, codes, v = make(rng, n=150)
    alpha, y = 1e-2, 2.0 * codes - 1

    def value(w):
        return 0.5 * alpha * w @ w + (v * LOSSES[loss].value(y, X @ w)).mean()

    best = min(minimize(value, np.zeros(3), method=m, options={"maxiter": 4000}).fun for m in ("BFGS", "Nelder-Mead"))
    risk = MarginRisk(FeatureRows(sp.csr_array(X) if sparse else X), codes, ONE, v, alpha, LOSSES[loss])
    solution = StochasticDescent(max_epochs=1024, tol=5e-3).solve(risk)
    assert solution.status is Status.converged
    assert solution.certificate.dual <= best + 1e-9 <= solution.certificate.primal + 2e-9
    assert solution.certificate.primal == pytest.approx(value(solution.value.coefficients[0]), rel=1e-12)


def test_outputs_do_not_disturb_each_other(rng):
    X, _, v = make(rng)
    codes = rng.integers(0, 3, 40)
    K = Gram(RBF(1.0), X)
    together = StochasticDescent(max_epochs=4, tol=1e-9).solve(MarginRisk(KernelRows(K), codes, np.arange(3), v, 1e-2))
    separate = [
        StochasticDescent(max_epochs=4, tol=1e-9).solve(MarginRisk(KernelRows(K), codes, np.array([c]), v, 1e-2))
        for c in range(3)
    ]
    np.testing.assert_array_equal(together.value.coefficients, np.vstack([s.value.coefficients for s in separate]))
    assert together.certificate.primal == pytest.approx(sum(s.certificate.primal for s in separate))
    assert together.certificate.dual == pytest.approx(sum(s.certificate.dual for s in separate))


def test_rows_of_an_expansion_that_are_not_learned_from(rng):
    X, codes, v = make(rng)
    gram = Gram(RBF(1.0), X)
    walk = DescentState(rng.standard_normal((1, 40)), np.zeros((1, 40)), 0.1, steps=7, clock=2.0)
    risk = MarginRisk(KernelRows(gram, 25), codes[:25], ONE, v[:25], 0.1)
    before = walk.theta.copy()
    solution = StochasticDescent(max_epochs=2, damped=False, order="given").solve(risk, walk)
    np.testing.assert_array_equal(walk.theta[:, 25:], before[:, 25:])
    assert (walk.theta[:, :25] != before[:, :25]).any() and walk.steps == 57
    a = solution.value.coefficients[0]
    assert solution.certificate.primal == pytest.approx(
        0.05 * a @ gram.dense() @ a
        + (v[:25] * np.maximum(0, 1 - (2.0 * codes[:25] - 1) * (gram.dense() @ a)[:25])).mean()
    )


def test_a_new_regulariser_or_shift_begins_at_the_same_point(rng):
    walk = DescentState(rng.standard_normal((2, 5)), rng.standard_normal((2, 5)), 0.1, steps=30, shift=2.0, clock=3.5)
    last, mean = walk.last(), walk.mean()
    walk.rebase(0.7, 11.0)
    np.testing.assert_allclose(walk.last(), last, rtol=1e-12)
    np.testing.assert_allclose(walk.mean(), mean, rtol=1e-12, atol=1e-12)
    assert (walk.alpha, walk.shift) == (0.7, 11.0)
    walk.rebase(0.7, 3.0)
    assert walk.shift == 11.0


def test_orders(rng):
    X, codes, _ = make(rng, n=5)
    v = np.array([1.0, 2.0, 3.0, 1e-3, 4.0])
    risk = MarginRisk(FeatureRows(X), codes, ONE, v, 1.0)
    state = np.random.RandomState(0)
    assert one_pass(risk, "given", state).tolist() == [0, 1, 2, 3, 4]
    assert sorted(one_pass(risk, "shuffled", state)) == [0, 1, 2, 3, 4]
    draws = np.concatenate([one_pass(risk, "uniform", state) for _ in range(4000)])
    np.testing.assert_allclose(np.bincount(draws, minlength=5) / len(draws), v / v.sum(), atol=0.01)


def test_same_bits_for_any_number_of_threads(rng):
    X, codes, _ = make(rng, n=1100)
    results = [
        StochasticDescent(max_epochs=2).solve(
            MarginRisk(KernelRows(Gram(RBF(1.0), X, n_jobs=k)), codes, ONE, np.ones(1100), 1e-3)
        )
        for k in (1, 2)
    ]
    np.testing.assert_array_equal(results[0].value.coefficients, results[1].value.coefficients)
    assert results[0].certificate.dual == results[1].certificate.dual


def test_float32_rows_end_near_float64_ones(rng):
    X, codes, v = make(rng, n=200)
    answers = [
        StochasticDescent(max_epochs=64).solve(
            MarginRisk(KernelRows(Gram(RBF(1.0), X, dtype=dtype)), codes, ONE, v, 1e-2)
        )
        for dtype in (np.float32, np.float64)
    ]
    assert answers[0].certificate.primal == pytest.approx(answers[1].certificate.primal, rel=1e-3)


def test_indefinite_kernels_are_not_called_converged(rng):
    X, codes, v = make(rng)
    risk = MarginRisk(KernelRows(PrecomputedGram(np.tanh(X @ X.T - 1.0))), codes, ONE, v, 1.0, convex=False)
    assert StochasticDescent(tol=1e9).solve(risk).status is Status.stationary


def test_a_hook_may_end_the_work_and_nothing_stays_held(rng):
    X, codes, v = make(rng)

    class Enough(Exception):
        pass

    heard = []

    def hook(*step):
        heard.append(step)
        if step == ("passes of stochastic descent", 3, 10):
            raise Enough

    reserved = memory._process.reserved
    with mercer.on_progress(hook), pytest.raises(Enough):
        StochasticDescent(max_epochs=10, tol=1e-9).solve(MarginRisk(KernelRows(Gram(RBF(), X)), codes, ONE, v, 1e-6))
    assert memory._process.reserved == reserved


def test_what_makes_no_sense_is_refused(rng):
    X, codes, v = make(rng)
    rows = FeatureRows(X)
    for error, words, arguments in [
        (DataError, r"40 rows need a class and a weight each.*\(39,\)", (rows, codes[:39], ONE, v, 1.0)),
        (DataError, "above 0, but reach from 0.0", (rows, codes, ONE, 0 * v, 1.0)),
        (ParameterError, "alpha must be a finite number above 0, but is -1", (rows, codes, ONE, v, -1.0)),
        (ParameterError, "one of labels -1 and 1, and 'squared'", (rows, codes, ONE, v, 1.0, as_loss("squared"))),
    ]:
        with pytest.raises(error, match=words):
            MarginRisk(*arguments)
    with pytest.raises(ParameterError, match="no order 'random'; the orders are shuffled"):
        StochasticDescent(order="random").solve(MarginRisk(rows, codes, ONE, v, 1.0))
    with mercer.config(memory="6KiB"), pytest.raises(MemoryBudgetError, match="block of kernel rows would take"):
        StochasticDescent().solve(MarginRisk(KernelRows(Gram(RBF(), X)), codes, ONE, v, 1.0))


def test_overflow_is_an_error_that_says_what_to_do(rng):
    X, codes, v = make(rng)
    risk = MarginRisk(KernelRows(Gram(Polynomial(3), 10 * X)), codes, ONE, v, 1e-4, LOSSES["squared_hinge"])
    with pytest.raises(NumericalError, match=r"overflowed after \d+ steps.*damped steps"):
        StochasticDescent(damped=False).solve(risk)
    assert np.isfinite(StochasticDescent(max_epochs=1).solve(risk).certificate.primal)
