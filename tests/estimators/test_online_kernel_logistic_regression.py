"""Online learning with kernels against the same steps in an explicit space, and budgets against plain loops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone

import mercer
from mercer import OnlineKernelLogisticRegression
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RBF, Linear
from mercer.maps import PolynomialMap
from mercer.solvers.online import budgeted

RNG = np.random.default_rng(11)
X = RNG.normal(size=(120, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * RNG.normal(size=120) > 0, "up", "down")
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.3, 1.2])]
NEW = RNG.normal(size=(30, 3))
RATES = RNG.uniform(0.0, 0.3, size=120) * (RNG.random(120) > 0.1)
MAP = PolynomialMap(degree=2).fit(X)

# Minus the derivative of each loss by the margin.
SLOPES: dict[str, Any] = {
    "log_loss": lambda z: expit(-z),
    "hinge": lambda z: (z < 1) * 1.0,
    "squared_hinge": lambda z: 2 * np.maximum(1 - z, 0),
    "modified_huber": lambda z: np.minimum(2 * np.maximum(1 - z, 0), 4),
}


class Primal:
    """The steps in the space of a map, as they stand in textbooks: one w and one offset for each output."""

    def __init__(self, loss: str, alpha: float, bias: bool, outputs: int, p: int) -> None:
        self.loss, self.alpha, self.bias = loss, alpha, bias
        self.w, self.b, self.history = np.zeros((outputs, p)), np.zeros(outputs), []

    def step(self, phi: np.ndarray, code: int, rate: float) -> None:
        values = self.w @ phi + self.b
        if len(values) == 1:
            y = 1.0 if code == 1 else -1.0
            g = np.array([y * SLOPES[self.loss](y * values[0])])
        elif self.loss == "log_loss":
            g = (np.arange(len(values)) == code) - softmax(values)
        else:
            y = np.where(np.arange(len(values)) == code, 1.0, -1.0)
            g = y * SLOPES[self.loss](y * values)
        self.w = (1 - rate * self.alpha) * self.w + rate * np.outer(g, phi)
        self.b = self.b + rate * g * self.bias
        self.history.append((self.w, self.b))


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize(("alpha", "bias"), [(0.0, True), (0.3, True), (0.3, False)])
def test_update_by_update_the_steps_in_the_space_of_the_map(labels, loss, alpha, bias):
    classes, codes = np.unique(labels, return_inverse=True)
    features, new = MAP.transform(X), MAP.transform(NEW)
    primal = Primal(loss, alpha, bias, 1 if len(classes) == 2 else 3, features.shape[1])
    model = OnlineKernelLogisticRegression(loss, kernel=MAP.kernel, alpha=alpha, fit_intercept=bias, budget=None)
    at = 0
    for size in (1, 1, 2, 3, 30, 50):
        rows = slice(at, at + size)
        for i in range(at, at + size):
            primal.step(features[i], codes[i], RATES[i])
        model.partial_fit(X[rows], labels[rows], classes, step_sizes=RATES[rows])
        at += size
        expected = new @ primal.w.T + primal.b
        values = model.decision_function(NEW).reshape(len(NEW), -1)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
    assert model.t_ == at and (model.budget_error_ == 0).all() and model.truncation_bound_ == 0
    if loss == "log_loss":
        shares = softmax(expected, axis=1) if len(classes) == 3 else np.hstack([expit(-expected), expit(expected)])
        np.testing.assert_allclose(model.predict_proba(NEW), shares, rtol=1e-8)
        assert model.predict(NEW).tolist() == classes[shares.argmax(axis=1)].tolist()
    else:
        assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("schedule", ["invscaling", "constant", "optimal", lambda t: 0.5 / (1 + t)])
def test_fit_makes_passes_with_the_sizes_of_a_schedule(schedule):
    codes = (Y == "up").astype(int)
    features = MAP.transform(X)
    for passes, shuffle in ((1, False), (3, True)):
        model = OnlineKernelLogisticRegression(
            kernel=MAP.kernel,
            alpha=0.1,
            learning_rate=schedule,
            eta0=0.2,
            power_t=0.7,
            budget=None,
            max_iter=passes,
            shuffle=shuffle,
            random_state=4,
        ).fit(X, Y)
        rng, primal, t = np.random.RandomState(4), Primal("log_loss", 0.1, True, 1, features.shape[1]), 0
        losses = []
        for _ in range(passes):
            for i in rng.permutation(len(X)) if shuffle else range(len(X)):
                t += 1
                sizes = {"invscaling": 0.2 / t**0.7, "constant": 0.2, "optimal": 1 / (0.1 * (t + 1 / 0.02))}
                value = (primal.w @ features[i] + primal.b)[0]
                losses.append(np.logaddexp(0, -value if codes[i] else value))
                primal.step(features[i], codes[i], schedule(t) if callable(schedule) else sizes[schedule])
        expected = (MAP.transform(NEW) @ primal.w.T + primal.b)[:, 0]
        np.testing.assert_allclose(model.decision_function(NEW), expected, rtol=1e-8, atol=1e-9)
        means = np.array(losses).reshape(passes, -1).mean(axis=1)
        np.testing.assert_allclose(model.progressive_loss_, means, rtol=1e-9)
        assert model.n_iter_ == passes and model.t_ == t
    sizes = OnlineKernelLogisticRegression(kernel=MAP.kernel, budget=None, max_iter=2, shuffle=True, random_state=1)
    sizes.fit(X, Y, step_sizes=RATES)
    primal = Primal("log_loss", 0.0, True, 1, features.shape[1])
    rng = np.random.RandomState(1)
    for i in [*rng.permutation(len(X)), *rng.permutation(len(X))]:
        primal.step(features[i], codes[i], RATES[i])
    expected = (MAP.transform(NEW) @ primal.w.T + primal.b)[:, 0]
    np.testing.assert_allclose(sizes.decision_function(NEW), expected, rtol=1e-8, atol=1e-9)


class Plain:
    """The same steps with a list of terms, and a budget of them, as one writes it down."""

    def __init__(self, kernel: Any, strategy: str, budget: int, alpha: float, outputs: int) -> None:
        self.kernel, self.strategy, self.budget, self.alpha = kernel, strategy, budget, alpha
        self.points, self.weights, self.born, self.b = np.empty((0, 3)), np.empty((0, outputs)), [], np.zeros(outputs)
        self.lost = np.zeros(outputs)

    def values(self, rows: np.ndarray) -> np.ndarray:
        if not len(self.points):
            return np.tile(self.b, (len(rows), 1))
        return self.kernel(rows, self.points) @ self.weights + self.b

    def step(self, x: np.ndarray, code: int, rate: float, t: int) -> None:
        if rate == 0:
            return
        values = self.values(x[None])[0]
        if len(values) == 1:
            g = np.array([(code == 1) - expit(values[0])])
        else:
            g = (np.arange(len(values)) == code) - softmax(values)
        self.weights, self.b = self.weights * (1 - rate * self.alpha), self.b + rate * g
        self.lost *= 1 - rate * self.alpha
        full = len(self.points) == self.budget
        if full and self.strategy in ("truncation", "smallest"):
            lengths = (self.weights**2).sum(axis=1) * self.kernel.diagonal(self.points)
            gone = int(np.argmin(self.born if self.strategy == "truncation" else lengths))
            self.lost += np.abs(self.weights[gone]) * np.sqrt(self.kernel.diagonal(self.points)[gone])
            self._remove(gone)
        self.points, self.born = np.vstack([self.points, x]), [*self.born, t]
        self.weights = np.vstack([self.weights, rate * g])
        if full and self.strategy == "projection":
            self._project()
        elif len(self.points) > self.budget:
            self._merge()

    def _remove(self, gone: int) -> None:
        self.points, self.weights = np.delete(self.points, gone, axis=0), np.delete(self.weights, gone, axis=0)
        self.born.pop(gone)

    def _project(self) -> None:
        K = self.kernel(self.points)
        results = []
        for j in range(len(K)):
            others = np.delete(np.arange(len(K)), j)
            shares = np.linalg.lstsq(K[np.ix_(others, others)], K[others, j], rcond=1e-12)[0]
            results.append((max(K[j, j] - shares @ K[others, j], 0.0), shares))
        # No point depends on the others so much that it would not be kept.
        assert min(distance for distance, _ in results) > budgeted.loops.DEPENDENT
        gone = int(np.argmin([distance * (self.weights[j] ** 2).sum() for j, (distance, _) in enumerate(results)]))
        others = np.delete(np.arange(len(K)), gone)
        self.weights[others] += np.outer(results[gone][1], self.weights[gone])
        self.lost += np.abs(self.weights[gone]) * np.sqrt(results[gone][0])
        self._remove(gone)

    def _merge(self) -> None:
        """What the cheapest merge of the shortest term would cost, on a grid and then by bisection around its best."""
        a = int((self.weights**2).sum(axis=1).argmin())
        costs = []
        for b in np.delete(np.arange(len(self.points)), a):
            exponent = -((self.points[a] - self.points[b]) ** 2).sum() / 2
            u, v = self.weights[a], self.weights[b]
            low, high = 0.0, 1.0
            for _ in range(6):
                h = np.linspace(low, high, 101)
                coefficients = np.outer(np.exp(exponent * (1 - h) ** 2), u) + np.outer(np.exp(exponent * h**2), v)
                cost = u @ u + v @ v + 2 * np.exp(exponent) * u @ v - (coefficients**2).sum(axis=1)
                best = int(cost.argmin())
                low, high = h[max(best - 1, 0)], h[min(best + 1, 100)]
            costs.append(cost.min())
        self.cheapest = float(min(costs))


@pytest.mark.parametrize("strategy", ["truncation", "smallest", "projection"])
@pytest.mark.parametrize(
    ("labels", "budget"), [(Y, 1), (THREE, 7), (Y, 20), (THREE, 200)], ids=["two-1", "three-7", "two-20", "three-200"]
)
def test_budgets_are_those_of_a_plain_loop(labels, strategy, budget, monkeypatch):
    monkeypatch.setattr(budgeted, "_CHUNK", 16)
    monkeypatch.setattr(budgeted, "_FEWER", 16)
    classes, codes = np.unique(labels, return_inverse=True)
    plain = Plain(RBF(1.5), strategy, budget, 0.05, 1 if len(classes) == 2 else 3)
    model = OnlineKernelLogisticRegression(kernel=RBF(1.5), alpha=0.05, budget=budget, budget_strategy=strategy)
    for rows in np.array_split(np.arange(len(X)), 5):
        for i in rows:
            plain.step(X[i], codes[i], RATES[i], i)
        model.partial_fit(X[rows], labels[rows], classes, step_sizes=RATES[rows])
        values = model.decision_function(NEW).reshape(len(NEW), -1)
        np.testing.assert_allclose(values, plain.values(NEW), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(model.budget_error_, plain.lost, rtol=1e-4, atol=1e-6)
        assert len(model.support_vectors_) <= budget


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("strategy", ["truncation", "smallest", "projection", "merging"])
def test_the_error_of_the_budget_bounds_what_was_lost(labels, strategy):
    """The terms that were learned, with nothing dropped, in an expansion that is kept beside."""
    classes, codes = np.unique(labels, return_inverse=True)
    kernel, alpha, budget = RBF(0.7), 0.1, 20
    model = OnlineKernelLogisticRegression(kernel=kernel, alpha=alpha, budget=budget, budget_strategy=strategy)
    outputs = 1 if len(classes) == 2 else 3
    rows = X[:60]
    everything = np.zeros((len(rows), outputs))
    for i in range(len(rows)):
        if i == 0:
            values = np.zeros(outputs)
        else:
            values = model.decision_function(rows[[i]]).reshape(-1)
        g = (np.arange(outputs) == codes[i]) - softmax(values) if outputs > 1 else [(codes[i] == 1) - expit(values[0])]
        everything *= 1 - RATES[i] * alpha
        everything[i] += RATES[i] * np.asarray(g)
        model.partial_fit(rows[[i]], labels[[i]], classes, step_sizes=RATES[[i]])
    both = np.vstack([rows, model.support_vectors_])
    for c in range(outputs):
        difference = np.concatenate([everything[:, c], -model.dual_coef_[c]])
        distance = np.sqrt(difference @ kernel(both) @ difference)
        assert 1e-6 < distance <= model.budget_error_[c] * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0.01, 0.9), st.sampled_from(["log_loss", "hinge"]))
def test_the_bound_of_norma_holds(seed, budget, alpha, loss):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(40, 2)), rng.choice([-1, 1], 40)
    model = OnlineKernelLogisticRegression(
        loss,
        kernel=2.0 * RBF(1.0),
        alpha=alpha,
        learning_rate="constant",
        eta0=rng.uniform(0.1, 1.0),
        budget=budget,
        budget_strategy="truncation",
    )
    model.partial_fit(rows, y, [-1, 1])
    eta = model.eta0
    # Proposition 1: eta sum over the terms before the last B of (1 - alpha eta)^age times C R.
    assert model.truncation_bound_ == pytest.approx((1 - eta * alpha) ** budget * np.sqrt(2.0) / alpha, rel=1e-9)
    assert model.budget_error_[0] <= model.truncation_bound_


def test_the_scale_of_the_steps():
    for loss, steepness in (("log_loss", 0.5), ("hinge", 1.0), ("squared_hinge", 2.0)):
        model = OnlineKernelLogisticRegression(loss, kernel=3.0 * RBF(1.0), max_iter=1).fit(X, Y)
        assert model.eta0_ == pytest.approx(1 / (steepness * 4.0))
        assert clone(model).set_params(fit_intercept=False).fit(X, Y).eta0_ == pytest.approx(1 / (steepness * 3.0))
        assert clone(model).set_params(alpha=50.0).fit(X, Y).eta0_ == pytest.approx(1 / 50.0)
    # With it the units of the columns do not matter.
    small = OnlineKernelLogisticRegression(kernel="linear", fit_intercept=False, random_state=0).fit(X, Y)
    large = clone(small).fit(1e4 * X, Y)
    np.testing.assert_allclose(large.decision_function(1e4 * NEW), small.decision_function(NEW), rtol=1e-8)
    first = clone(small).partial_fit(X, Y, ["down", "up"])
    assert first.partial_fit(100 * X, Y).eta0_ == small.eta0_


def test_where_the_bound_does_not_hold_it_is_infinite():
    model = OnlineKernelLogisticRegression(kernel=RBF(1.0), alpha=0.1, budget=10, budget_strategy="truncation")
    first = model.fit(X, Y)
    assert 0 < first.truncation_bound_ < np.inf and first.budget_error_[0] <= first.truncation_bound_
    assert clone(first).set_params(alpha=0.0).fit(X, Y).truncation_bound_ == np.inf
    assert clone(first).set_params(loss="squared_hinge", eta0=0.1).fit(X, Y).truncation_bound_ == np.inf
    assert clone(first).set_params(budget_strategy="smallest").fit(X, Y).truncation_bound_ == np.inf
    unlimited = clone(first).set_params(budget=None).fit(X, Y)
    assert unlimited.truncation_bound_ == 0
    assert unlimited.set_params(budget=5).partial_fit(X[:1], Y[:1]).truncation_bound_ > 0


def test_a_projection_in_a_space_of_few_dimensions_loses_nothing():
    """Ten features: as soon as ten rows span them, every other row is in their span."""
    model = OnlineKernelLogisticRegression(kernel=MAP.kernel, budget=12, eta0=0.05)
    exact = clone(model).set_params(budget=None)
    for rows in np.array_split(np.arange(len(X)), 3):
        model.partial_fit(X[rows], Y[rows], ["down", "up"])
        exact.partial_fit(X[rows], Y[rows], ["down", "up"])
    assert len(model.support_vectors_) == 10
    np.testing.assert_allclose(model.decision_function(NEW), exact.decision_function(NEW), rtol=1e-5, atol=1e-6)
    assert model.budget_error_[0] < 1e-3


def test_the_inverse_is_computed_anew_now_and_then(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 3))
    y = np.where(rows[:, 0] * rows[:, 1] > 0, 1, -1)
    model = OnlineKernelLogisticRegression(
        kernel=RBF(1.0), budget=15, learning_rate="constant", eta0=0.5, max_iter=3, shuffle=False
    )
    monkeypatch.setattr(budgeted, "_FEWER", 50)
    anew = clone(model).fit(rows, y)
    assert anew.n_changes_ > 2 * 15
    K = RBF(1.0)(anew.support_vectors_)
    np.testing.assert_allclose(anew._walk["inverse"] @ K, np.eye(15), atol=1e-6)


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_a_merge_is_nearly_the_cheapest(labels):
    classes, codes = np.unique(labels, return_inverse=True)
    outputs = 1 if len(classes) == 2 else 3
    ratios = []
    for seed in range(12):
        rows = np.random.default_rng(seed).choice(len(X), 9, replace=False)
        model = OnlineKernelLogisticRegression(
            kernel=RBF(1.0), budget=8, budget_strategy="merging", learning_rate="constant"
        )
        plain = Plain(RBF(1.0), "merging", 8, 0.0, outputs)
        for t, i in enumerate(rows):
            plain.step(X[i], codes[i], 1.0, t)
        model.partial_fit(X[rows], labels[rows], classes)
        assert len(model.support_vectors_) == 8 and model.n_changes_ == 1
        # The errors of the outputs, together.
        ratios.append((model.budget_error_**2).sum() / max(plain.cheapest, 1e-12))
    assert min(ratios) > 1 - 1e-6
    # Only two places between two points are tried before one pair is chosen.
    assert np.median(ratios) < 1.01 and max(ratios) < 1.5


def test_merging_with_a_length_scale_for_each_column():
    scales = [0.5, 2.0, 1.0]
    model = OnlineKernelLogisticRegression(kernel=RBF(scales), budget=15, budget_strategy="merging", shuffle=False)
    plain = clone(model).set_params(kernel=RBF(1.0))
    np.testing.assert_allclose(
        model.fit(X * scales, Y).decision_function(NEW * scales), plain.fit(X, Y).decision_function(NEW), rtol=1e-9
    )
    np.testing.assert_allclose(model.support_vectors_, plain.support_vectors_ * scales, rtol=1e-9)
    assert not hasattr(model, "support_")
    assert model.partial_fit(X, Y).t_ == 6 * len(X)
    unlimited = clone(plain).set_params(budget=None).fit(X, Y)
    assert len(unlimited.support_) == len(X)
    # Rows that are there already are not merged.
    again = clone(plain).set_params(budget=len(X)).fit(X, Y)
    np.testing.assert_allclose(again.decision_function(NEW), unlimited.decision_function(NEW), rtol=1e-9)
    assert again.n_changes_ == 0
    with pytest.raises(ParameterError, match=r"known for the RBF kernel only, and the kernel is Linear\(\)"):
        clone(model).set_params(kernel="linear").fit(X, Y)
    with pytest.raises(ParameterError, match="kernel is a matrix"):
        clone(model).set_params(kernel="precomputed").fit(RBF(1.0)(X), Y)
    with pytest.raises(DataError, match="which are not sparse"):
        clone(model).fit(sp.csr_matrix(X), Y)


@pytest.mark.parametrize("strategy", ["truncation", "projection"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_parts_one_after_the_other_are_one_pass(strategy, form):
    model = OnlineKernelLogisticRegression(
        kernel=RBF(1.0), budget=40, budget_strategy=strategy, shuffle=False, max_iter=2, alpha=0.01
    )
    streamed = clone(model)
    for _ in range(2):
        for rows in np.array_split(np.arange(len(X)), 4):
            streamed.partial_fit(form(X[rows]), THREE[rows], classes=["ash", "elm", "oak"])
    whole = model.fit(form(X), THREE)
    np.testing.assert_allclose(
        streamed.decision_function(form(NEW)), whole.decision_function(form(NEW)), rtol=1e-6, atol=1e-7
    )
    assert streamed.t_ == whole.t_ and not hasattr(streamed, "support_") and len(whole.support_) == 40
    np.testing.assert_array_equal(np.asarray(X[whole.support_]), sp.csr_matrix(whole.support_vectors_).toarray())
    again = pickle.loads(pickle.dumps(streamed)).partial_fit(form(X), THREE)
    assert again.t_ == 3 * len(X)
    assert model.fit(form(X), THREE).t_ == 2 * len(X)


def test_a_matrix_and_rows_give_the_same_and_float32_is_taken():
    K = RBF(1.0)(X)
    for strategy in ("truncation", "projection"):
        model = OnlineKernelLogisticRegression(kernel=RBF(1.0), budget=30, budget_strategy=strategy, random_state=0)
        rows = model.fit(X, THREE)
        given = clone(model).set_params(kernel="precomputed").fit(K, THREE)
        np.testing.assert_array_equal(given.support_, rows.support_)
        np.testing.assert_allclose(given.predict_proba(RBF(1.0)(NEW, X)), rows.predict_proba(NEW), rtol=1e-7)
    single = clone(rows).fit(X.astype(np.float32), Y)
    assert single.support_vectors_.dtype == np.float32 and (single.predict(X) == Y).mean() > 0.8
    merged = OnlineKernelLogisticRegression(budget=30, budget_strategy="merging").fit(X.astype(np.float32), Y)
    assert merged.support_vectors_.dtype == np.float32


def test_changes_of_the_budget_between_parts():
    model = OnlineKernelLogisticRegression(kernel=RBF(1.0), budget=None, alpha=0.1).partial_fit(X, Y, ["down", "up"])
    assert len(model.support_vectors_) == len(X)
    model.set_params(budget=12, budget_strategy="truncation").partial_fit(X[:1], Y[:1])
    assert len(model.support_vectors_) == 12 and model.budget_error_[0] > 0
    model.set_params(budget=9, budget_strategy="projection").partial_fit(X[:5], Y[:5])
    assert len(model.support_vectors_) == 9 and model.truncation_bound_ == np.inf
    model.set_params(budget=6, budget_strategy="merging").partial_fit(X[:5], Y[:5])
    assert len(model.support_vectors_) == 6
    assert model.set_params(budget_strategy="projection", budget=20).partial_fit(X, Y).support_vectors_.shape == (20, 3)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(["truncation", "smallest", "projection", "merging"]))
def test_equal_rows_and_rates_of_nothing(seed, budget, strategy):
    rng = np.random.default_rng(seed)
    rows, y = rng.integers(0, 2, (25, 2)).astype(float), rng.choice([0, 1], 25)
    model = OnlineKernelLogisticRegression(kernel=RBF(1.0), budget=budget, budget_strategy=strategy)
    model.partial_fit(rows, y, [0, 1], step_sizes=rng.choice([0.0, 1.0], 25))
    assert np.isfinite(model.decision_function(rows)).all() and len(model.support_vectors_) <= budget
    idle = clone(model).partial_fit(rows, y, [0, 1], step_sizes=np.zeros(25))
    assert idle.dual_coef_.shape == (1, 0) and (idle.predict_proba(rows) == 0.5).all()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "square"}, "there is no loss 'square'; the losses are hinge, squared_hinge, logistic, m"),
        ({"alpha": -1}, "alpha must be a finite number of 0 or more"),
        ({"eta0": 0.0}, "eta0 must be a finite number above 0, or 'auto', but is 0.0"),
        ({"eta0": "big"}, "eta0 must be a finite number above 0, or 'auto'"),
        ({"power_t": np.nan}, "power_t must be a finite number of 0 or more"),
        ({"learning_rate": "adaptive"}, "learning_rate must be 'constant', 'invscaling' or 'optimal'"),
        ({"learning_rate": "optimal"}, 'learning_rate="optimal" takes steps.*and alpha is 0'),
        (
            {"learning_rate": "constant", "alpha": 2.0, "eta0": 1.0},
            "a step of 1 with alpha=2 would reverse the sign of f",
        ),
        ({"learning_rate": lambda t: -t}, "learning_rate returned -1.0 for row 0"),
        ({"learning_rate": lambda t: 1.0}, r"learning_rate returned an array of shape \(\)"),
        ({"learning_rate": lambda t: "x"}, "learning_rate returned no numbers"),
        ({"budget": 0}, "budget must be a whole number of support points, or None, at least 1, but is 0"),
        ({"budget_strategy": "forget"}, "budget_strategy must be"),
        ({"max_iter": True}, "max_iter must be a whole number of passes"),
        ({"shuffle": 2}, "shuffle must be True or False"),
        ({"random_state": "x"}, "random_state must be a whole number"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    with pytest.raises(ParameterError, match=words):
        OnlineKernelLogisticRegression(**parameters).fit(X, Y)


def test_data_that_make_no_sense():
    model = OnlineKernelLogisticRegression()
    with pytest.raises(DataError, match=r"needs at least two classes, but y has 1 class\(es\): \['up'\]"):
        model.fit(X, np.full(len(X), "up"))
    with pytest.raises(DataError, match="first call of partial_fit needs classes"):
        model.partial_fit(X, Y)
    with pytest.raises(DataError, match="y has the label 'up', which is not among the classes"):
        model.partial_fit(X, Y, ["down", "left"])
    with pytest.raises(ParameterError, match=r"step_sizes are an array of shape \(3,\)"):
        model.fit(X, Y, step_sizes=[1.0, 1.0, 1.0])
    with pytest.raises(ParameterError, match="step_sizes are nan for row 5"):
        model.fit(X, Y, step_sizes=np.where(np.arange(len(X)) == 5, np.nan, 1.0))
    with pytest.raises(ParameterError, match="partial_fit needs kernel values between"):
        OnlineKernelLogisticRegression(kernel="precomputed").partial_fit(np.eye(2), [0, 1], [0, 1])
    model.partial_fit(X, Y, ["down", "up"])
    with pytest.raises(DataError, match="classes must be those of the first call"):
        model.partial_fit(X, Y, ["down", "left"])
    with pytest.raises(IndefiniteKernelError):
        OnlineKernelLogisticRegression(kernel=lambda A, B: -A @ B.T, allow_indefinite=False).fit(X, Y)
    with pytest.raises(NumericalError, match="too long for the loss 'squared_hinge'"):
        OnlineKernelLogisticRegression("squared_hinge", kernel="linear", eta0=1.0, max_iter=200).fit(X * 1e3, Y)
    with mercer.config(memory="4KiB"), pytest.raises(MemoryBudgetError, match="kernel"):
        OnlineKernelLogisticRegression().fit(X, Y)
    pair = OnlineKernelLogisticRegression(kernel=RBF(1.0)).fit([[0.0], [5.0]], ["a", "b"])
    assert pair.predict([[0.1], [4.9]]).tolist() == ["a", "b"]
    zeros = OnlineKernelLogisticRegression(kernel=Linear()).fit(np.zeros((6, 2)), [0, 1] * 3)
    assert zeros.dual_coef_.shape[1] == 0 or (zeros.decision_function(np.ones((1, 2))) == zeros.intercept_).all()


@pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    ("strategy", "budget"), [("truncation", 30), ("smallest", 30), ("projection", 30), ("truncation", None)]
)
def test_little_memory_means_shorter_blocks(strategy: str, budget: int | None, y: np.ndarray) -> None:
    model = OnlineKernelLogisticRegression(
        kernel=RBF(1.0), budget=budget, budget_strategy=strategy, max_iter=2, random_state=0
    )
    expected = clone(model).fit(X, y)
    # All rows at once would take 144 000 bytes beside a support of 30.
    with mercer.config(memory=33_000):
        model.fit(X, y)
    # The support may come in another order.
    mine, theirs = np.argsort(model.support_), np.argsort(expected.support_)
    np.testing.assert_array_equal(model.support_[mine], expected.support_[theirs])
    np.testing.assert_allclose(model.dual_coef_[:, mine], expected.dual_coef_[:, theirs], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.progressive_loss_, expected.progressive_loss_, rtol=1e-12)


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_the_cumulative_loss_of_a_pass_is_within_the_bound_on_regret(loss: str) -> None:
    rng = np.random.default_rng(11)
    rows, eta = rng.normal(size=(200, 2)), 0.2
    labels = np.where(rows[:, 0] * rows[:, 1] > 0, 1, -1)
    kernel = mercer.kernels.RBF(1.0)
    model = mercer.OnlineKernelLogisticRegression(
        loss,
        kernel=kernel,
        alpha=0.0,
        learning_rate="constant",
        eta0=eta,
        fit_intercept=False,
        shuffle=False,
        max_iter=1,
    ).fit(rows, labels)
    K = kernel(rows)
    for scale in (0.0, 0.05, 0.2, 0.5):
        u = scale * labels
        margins = labels * (K @ u)
        losses = np.maximum(0.0, 1.0 - margins) if loss == "hinge" else np.logaddexp(0.0, -margins)
        bound = losses.sum() + float(u @ K @ u) / (2 * eta) + 0.5 * eta * len(rows)
        assert 0 < len(rows) * model.progressive_loss_[0] <= bound
