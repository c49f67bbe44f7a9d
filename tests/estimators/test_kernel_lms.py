"""Gradient descent on the coefficients against gradient descent in an explicit space, step by step, and its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

import mercer
from mercer import KernelLMS, KernelRidge
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.gram import PrecomputedGram
from mercer.gram.hold import Storage
from mercer.kernels import RBF, Linear, Polynomial
from mercer.maps import PolynomialMap
from mercer.solvers.algebra.lanczos import largest_eigenvalue
from mercer.solvers.risk import gradient_descent
from mercer.solvers.risk.gradient_descent import LeastSquares, descend

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * RNG.normal(size=60)
TWO = np.column_stack([Y, X[:, 0] ** 2])
NEW = RNG.normal(size=(20, 3))
WEIGHTS = RNG.integers(0, 4, 60).astype(float)
MAP = PolynomialMap(degree=2, offset=1.0).fit(X)
POLY = MAP.kernel


def primal(features: np.ndarray, y: np.ndarray, weights: np.ndarray, rate: float, steps: int) -> list[np.ndarray]:
    """Batch gradient descent in theta, as it stands in textbooks: theta after 0, 1, ... steps."""
    thetas = [np.zeros((features.shape[1], *y.shape[1:]))]
    for _ in range(steps):
        theta = thetas[-1].copy()
        for i in range(len(y)):
            theta += rate * weights[i] * np.multiply.outer(features[i], y[i] - features[i] @ thetas[-1])
        thetas.append(theta)
    return thetas


@pytest.mark.parametrize("y", [Y, TWO], ids=["one target", "two"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
def test_step_by_step_it_is_gradient_descent_in_theta(y, weights):
    w = np.ones(len(X)) if weights is None else weights
    features = MAP.transform(X)
    rate = 1.5 / np.linalg.eigvalsh((features.T * w) @ features)[-1]
    thetas = primal(features, y, w, rate, 40)
    for steps in (1, 2, 3, 10, 40):
        model = KernelLMS(POLY, learning_rate=rate, max_iter=steps, tol=0).fit(X, y, weights)
        assert model.n_iter_ == model.best_iter_ == steps and len(model.loss_history_) == steps + 1
        np.testing.assert_allclose(model.predict(NEW), MAP.transform(NEW) @ thetas[steps], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(features.T @ model.dual_coef_, thetas[steps], rtol=1e-9, atol=1e-9)
        losses = [0.5 * (w @ (y - features @ theta) ** 2).sum() for theta in thetas[: steps + 1]]
        np.testing.assert_allclose(model.loss_history_, losses, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 3), st.floats(0.05, 1.95))
def test_below_two_over_the_largest_eigenvalue_the_loss_falls(seed, n, targets, share):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(n, 2)), rng.normal(size=(n, targets))
    eigenvalue = np.linalg.eigvalsh(RBF(1.0)(rows))[-1]
    model = KernelLMS(RBF(1.0), learning_rate=share / eigenvalue, max_iter=30, tol=0)
    with pytest.warns(UserWarning, match="nothing to learn") if n > 1 and (y == y[0]).all() else _nothing():
        model.fit(rows, y)
    assert (np.diff(model.loss_history_) <= 1e-12 * model.loss_history_[0]).all()
    assert model.largest_eigenvalue_ == pytest.approx(eigenvalue, rel=1e-8)


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *what: Any) -> None: ...


def test_weights_are_repetitions():
    whole = KernelLMS(max_iter=50, tol=0).fit(X, Y, WEIGHTS)
    times = WEIGHTS.astype(int)
    repeated = KernelLMS(max_iter=50, tol=0).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert whole.kernel_.length_scale == pytest.approx(repeated.kernel_.length_scale, rel=1e-12)
    assert whole.learning_rate_ == pytest.approx(repeated.learning_rate_, rel=1e-8)
    np.testing.assert_allclose(whole.predict(NEW), repeated.predict(NEW), rtol=1e-6, atol=1e-8)
    assert (whole.dual_coef_[WEIGHTS == 0] == 0).all()


def test_auto_is_one_over_the_largest_eigenvalue_and_ends_at_least_squares():
    model = KernelLMS(POLY, max_iter=20000, tol=1e-6).fit(X, TWO, WEIGHTS)
    root = np.sqrt(WEIGHTS)[:, None]
    features = root * MAP.transform(X)
    assert model.learning_rate_ == pytest.approx(1 / np.linalg.eigvalsh(features.T @ features)[-1], rel=1e-8)
    theta = np.linalg.lstsq(features, root * TWO, rcond=None)[0]
    least = 0.5 * ((root * TWO - features @ theta) ** 2).sum()
    certificate = model.certificate_
    assert certificate.status.name == "converged" and certificate.kkt_violation <= 1e-6
    # Ten features on 60 rows: the rank is seen, and what least squares leaves is the bound.
    assert certificate.dual == pytest.approx(least, rel=1e-9)
    assert certificate.dual <= least * (1 + 1e-9) and least <= certificate.primal
    assert certificate.gap <= 1e-6 * certificate.primal
    np.testing.assert_allclose(model.predict(NEW), MAP.transform(NEW) @ theta, rtol=1e-3, atol=1e-3)


def keep_lazy(monkeypatch):
    """As where the memory budget has no room for the matrix."""
    monkeypatch.setattr(gradient_descent, "stored_products", lambda gram, stack, beside=0: Storage(gram, None, ""))


def test_a_matrix_of_full_rank_leaves_nothing_to_least_squares():
    model = KernelLMS(RBF(0.5), max_iter=5000, tol=1e-8).fit(X, Y)
    assert model.certificate_.dual == 0
    assert model.certificate_.primal == pytest.approx(model.loss_history_[-1], rel=1e-6)
    exact = KernelRidge(0.0, kernel=RBF(0.5)).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), exact.predict(NEW), atol=1e-3)


@pytest.mark.parametrize("lazy", [False, True])
def test_steps_that_are_too_long(lazy, monkeypatch):
    if lazy:
        keep_lazy(monkeypatch)
    largest = np.linalg.eigvalsh(RBF(1.0)(X))[-1]
    safe = f"{2 / largest:.6g}"
    if lazy:
        words = rf"the loss has risen from .* in iteration \d+; .* 2 / lambda_max = {safe}"
        with pytest.raises(NumericalError, match=words):
            KernelLMS(RBF(1.0), learning_rate=2.1 / largest).fit(X, Y)
        with pytest.raises(ParameterError, match=r"largest safe step is 2 at most, by the largest k\(x, x\)"):
            KernelLMS(RBF(1.0), learning_rate=2.5).fit(X, Y)
    else:
        with pytest.raises(ParameterError, match=rf"learning_rate=.* is too large: .* safe step is {safe}\."):
            KernelLMS(RBF(1.0), learning_rate=2.0001 / largest).fit(X, Y)
    assert KernelLMS(RBF(1.0), learning_rate=1.999 / largest, max_iter=200, tol=0).fit(X, Y).n_iter_ == 200


def test_divergence_is_noticed_long_before_infinity(monkeypatch):
    gram = PrecomputedGram(np.diag([1.0, 1e-3]))
    # The direction that diverges is hardly there at the start.
    problem = LeastSquares(gram, np.array([[1e-6], [1.0]]), np.ones(2))
    walked = 0.5 * (1e-12 * 1.1 ** (2 * np.arange(400)) + (1 - 2.1e-3) ** (2 * np.arange(400)))
    first = int(np.flatnonzero(np.diff(walked) > 0)[0]) + 1
    monkeypatch.setattr("mercer.solvers.risk.gradient_descent.largest_eigenvalue", lambda *given: (0.9, 0.0))
    with pytest.raises(NumericalError, match=rf"in iteration {first};"):
        descend(problem, 2.1, tol=0.0)


def test_negative_eigenvalues_are_named():
    K = np.diag([2.0, 1.0, -0.5])
    with pytest.raises(IndefiniteKernelError):
        KernelLMS("precomputed", allow_indefinite=False).fit(K, [1.0, 2.0, 3.0])
    model = KernelLMS("precomputed", allow_indefinite=True, tol=0, max_iter=100)
    with pytest.raises(NumericalError, match=r"negative eigenvalue, along which no step converges.*max_iter=\d+"):
        model.fit(K, [1.0, 2.0, 3.0])


def test_tiles_give_the_same_as_a_matrix(monkeypatch):
    rows, y = np.tile(X, (10, 1)) + np.linspace(0, 1, 600)[:, None], np.tile(Y, 10)
    model = KernelLMS(RBF(1.0), max_iter=20, tol=0, early_stopping=True, random_state=0)
    expected = clone(model).fit(rows, y)
    keep_lazy(monkeypatch)
    other = clone(model).fit(rows, y)
    np.testing.assert_allclose(other.dual_coef_, expected.dual_coef_, rtol=1e-8, atol=1e-12)
    assert other.certificate_.peak_bytes < expected.certificate_.peak_bytes


def test_early_stopping_takes_the_best_step():
    rng = np.random.default_rng(0)
    noisy = Y + rng.normal(size=len(Y))
    model = KernelLMS(
        RBF(0.3),
        early_stopping=True,
        validation_fraction=0.25,
        n_iter_no_change=7,
        tol=0.0,
        random_state=1,
        max_iter=5000,
    ).fit(X, noisy)
    held_out = np.sort(np.random.RandomState(1).permutation(60)[:15])
    rest = np.setdiff1d(np.arange(60), held_out)
    assert (model.dual_coef_[held_out] == 0).all() and (model.dual_coef_[rest] != 0).all()
    scores = model.validation_scores_
    assert len(scores) == model.n_iter_ + 1 == len(model.loss_history_)
    best = int(scores.argmax())
    assert model.best_iter_ == best == model.n_iter_ - 7
    again = KernelLMS(RBF(0.3), max_iter=best, tol=0, learning_rate=model.learning_rate_).fit(X[rest], noisy[rest])
    np.testing.assert_allclose(model.predict(NEW), again.predict(NEW), rtol=1e-9, atol=1e-12)
    assert scores[best] == pytest.approx(r2_score(noisy[held_out], again.predict(X[held_out])), rel=1e-9)
    K = RBF(0.3)(X)
    given = clone(model).set_params(kernel="precomputed").fit(K, noisy)
    np.testing.assert_allclose(given.predict(RBF(0.3)(NEW, X)), model.predict(NEW), rtol=1e-9, atol=1e-12)
    unlearned = clone(model).fit(X, noisy).set_params(early_stopping=False, max_iter=3).fit(X, noisy)
    assert unlearned.validation_scores_ is None and unlearned.best_iter_ == unlearned.n_iter_


def test_sparse_rows_several_targets_and_float32():
    model = KernelLMS("linear", max_iter=30, tol=0).fit(X, TWO)
    sparse = clone(model).fit(sp.csr_matrix(X), TWO)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(NEW)), model.predict(NEW), rtol=1e-9)
    for column in range(2):
        alone = clone(model).fit(X, TWO[:, column])
        np.testing.assert_allclose(alone.predict(NEW), model.predict(NEW)[:, column], rtol=1e-10, atol=1e-12)
    single = clone(model).fit(X.astype(np.float32), TWO)
    assert single.dual_coef_.dtype == np.float64 and single.predict(NEW.astype(np.float32)).dtype == np.float32


def test_warnings():
    with pytest.warns(ConvergenceWarning, match="max_iter=3 steps did not reach the tolerance"):
        KernelLMS(max_iter=3).fit(X, Y)
    with pytest.warns(UserWarning, match="y has the value 2 in every row"):
        KernelLMS().fit(X, np.full(len(X), 2.0))


def test_one_row_equal_rows_and_zeros():
    assert KernelLMS(RBF(1.0)).fit([[1.0]], [3.0]).predict([[1.0]]) == pytest.approx(3.0)
    equal = KernelLMS(RBF(1.0)).fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0])
    assert equal.predict(np.ones((1, 2))) == pytest.approx(3.0) and equal.certificate_.dual == pytest.approx(7.0)
    nothing = KernelLMS("linear").fit(np.zeros((4, 2)), [1.0, 2.0, 3.0, 6.0])
    assert nothing.n_iter_ == 0 and nothing.predict(np.ones((1, 2))) == 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0 or 'auto', but is 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a finite number above 0 or 'auto', but is 'fast'"),
        ({"learning_rate": np.inf}, "learning_rate must be a finite number"),
        ({"learning_rate": True}, "learning_rate must be a finite number"),
        ({"max_iter": 0}, "max_iter must be a whole number of steps, at least 1, but is 0"),
        ({"n_iter_no_change": 1.5}, "n_iter_no_change must be a whole number of steps"),
        ({"tol": -1}, "tol must be a finite number of 0 or more"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number between 0 and 1"),
        ({"early_stopping": "yes"}, "early_stopping must be True or False"),
        ({"random_state": "x"}, "random_state must be a whole number"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KernelLMS(**parameters).fit(X, Y)


def test_too_few_rows_to_hold_some_out_and_too_little_memory():
    with pytest.raises(DataError, match=r"holds out 1 of 1 rows.*leaves none"):
        KernelLMS(early_stopping=True).fit([[1.0]], [3.0])
    with mercer.config(memory="4KiB"), pytest.raises(MemoryBudgetError, match="kernel matrix"):
        KernelLMS().fit(X, Y)
    with pytest.raises(DataError, match="do not match K"):
        LeastSquares(PrecomputedGram(np.eye(3)), np.zeros((2, 1)), np.ones(3))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_the_largest_eigenvalue(seed, n):
    A = np.random.default_rng(seed).normal(size=(n, n))
    A = A @ A.T
    value, residual = largest_eigenvalue(lambda v: A @ v, n)
    exact = np.linalg.eigvalsh(A)[-1]
    assert exact - residual - 1e-10 * exact <= value <= exact * (1 + 1e-12)


def test_functions_and_names_as_kernels():
    named = KernelLMS("poly", degree=2, gamma=1.0, coef0=1.0, max_iter=9, tol=0).fit(X, Y)
    given = KernelLMS(lambda A, B: (A @ B.T + 1.0) ** 2, max_iter=9, tol=0).fit(X, Y)
    np.testing.assert_allclose(named.predict(NEW), given.predict(NEW), rtol=1e-9)
    assert named.kernel_ == Polynomial(2, 1.0, 1.0)
    assert KernelLMS(Linear() + 1.0, max_iter=2, tol=0).fit(X, Y).n_iter_ == 2


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (1e154, 1.0, "products with the kernel matrix overflow"),
        (1e-160, 1.0, "whose inverse overflows"),
        (1.0, 1e200, "squares of the targets overflow"),
    ],
)
def test_scales_that_leave_no_numbers_are_named(rows: float, targets: float, message: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    X /= np.abs(X).max()
    with pytest.raises(NumericalError, match=message):
        KernelLMS(Linear()).fit(rows * X, targets * np.sin(X[:, 0]))
