"""The perceptron with kernels against the one in an explicit feature space, step by step, and its options."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import mercer
from mercer import KernelPerceptron
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.gram import Gram, hold, operator
from mercer.kernels import RBF, Linear, Polynomial
from mercer.solvers.online import look_ahead
from mercer.solvers.online.problem import PerceptronProblem

RNG = np.random.default_rng(7)
X = RNG.normal(size=(150, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * RNG.normal(size=150) > 0, "up", "down")
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.3, 1.2])]
NEW = RNG.normal(size=(40, 3))


def quadratic(X: np.ndarray) -> np.ndarray:
    """The map of ``(<x, z> + 1)^2``: all products of two of the columns and a constant."""
    X = np.column_stack([X, np.ones(len(X))])
    return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1)


class Primal:
    """The perceptron with weights w and a bias, as it stands in textbooks, and all that it has been."""

    def __init__(self, features: np.ndarray, signs: np.ndarray, orders: list, margin: float, bias: bool) -> None:
        self.w, self.b, self.history, self.mistakes, self.rows = np.zeros(features.shape[1]), 0.0, [], [], []
        for order in orders:
            count = 0
            for i in order:
                if signs[i] * (self.w @ features[i] + self.b) <= margin:
                    self.w = self.w + signs[i] * features[i]
                    self.b += signs[i] * bias
                    self.rows.append(i)
                    count += 1
                self.history.append((self.w, self.b))
            self.mistakes.append(count)
            if not count:
                break

    def values(self, features: np.ndarray, averaging: str) -> np.ndarray:
        if averaging == "plain":
            return features @ self.w + self.b
        outcomes = np.array([features @ w + b for w, b in self.history])
        return (np.sign(outcomes) if averaging == "voted" else outcomes).mean(axis=0)


def orders_of(seed: int, n: int, passes: int, shuffle: bool) -> list:
    rng = np.random.RandomState(seed)
    return [rng.permutation(n) if shuffle else np.arange(n) for _ in range(passes)]


@pytest.mark.parametrize("averaging", ["plain", "averaged", "voted"])
@pytest.mark.parametrize(("kernel", "features"), [(Linear(), np.asarray), (Polynomial(2, 1.0, 1.0), quadratic)])
@pytest.mark.parametrize(("margin", "bias", "shuffle"), [(0.0, True, True), (0.0, False, False), (0.7, True, True)])
def test_update_by_update_the_primal_perceptron(averaging, kernel, features, margin, bias, shuffle):
    parameters: dict[str, Any] = {"margin": margin, "fit_intercept": bias, "shuffle": shuffle, "random_state": 5}
    signs = np.where(Y == "up", 1.0, -1.0)
    for passes in (1, 2, 9):
        model = KernelPerceptron(kernel, averaging=averaging, max_iter=passes, **parameters).fit(X, Y)
        primal = Primal(features(X), signs, orders_of(5, len(X), passes, shuffle), margin, bias)
        assert model.mistakes_.tolist() == primal.mistakes
        assert model.t_ == len(primal.history) and model.n_iter_ == len(primal.mistakes)
        if averaging == "plain":
            counts = np.bincount(primal.rows, minlength=len(X)) * signs
            assert model.dual_coef_[0].tolist() == counts[counts != 0].tolist()
            assert model.support_.tolist() == np.flatnonzero(counts).tolist()
            assert model.intercept_[0] == primal.b
        expected = primal.values(features(NEW), averaging)
        np.testing.assert_allclose(model.decision_function(NEW), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 4))
def test_rows_of_whole_numbers_give_the_same_updates_exactly(seed, n, columns):
    rng = np.random.default_rng(seed)
    rows, signs = rng.integers(-3, 4, (n, columns)).astype(float), rng.choice([-1.0, 1.0], n)
    signs[:2] = 1.0, -1.0
    model = KernelPerceptron("linear", max_iter=6, shuffle=False).fit(rows, signs)
    primal = Primal(rows, signs, [np.arange(n)] * 6, 0.0, True)
    assert model.mistakes_.tolist() == primal.mistakes
    assert model.decision_function(rows).tolist() == (rows @ primal.w + primal.b).tolist()


@pytest.mark.parametrize("averaging", ["plain", "averaged", "voted"])
def test_several_classes_are_told_apart_one_against_the_rest(averaging):
    model = KernelPerceptron(averaging=averaging, max_iter=4, shuffle=False).fit(X, THREE)
    values = model.decision_function(NEW)
    for c, name in enumerate(model.classes_):
        alone = KernelPerceptron(averaging=averaging, max_iter=4, shuffle=False).fit(X, name == THREE)
        np.testing.assert_allclose(values[:, c], alone.decision_function(NEW), rtol=1e-10, atol=1e-12)
    assert model.predict(NEW).tolist() == model.classes_[values.argmax(axis=1)].tolist()


def test_it_stops_after_a_pass_without_mistakes_within_novikoffs_bound():
    model = KernelPerceptron(RBF(0.5), max_iter=1000, random_state=0).fit(X, Y)
    assert model.mistakes_[-1] == 0 and (model.mistakes_[:-1] > 0).all() and model.n_iter_ < 1000
    assert (model.predict(X) == Y).all()
    # The answer itself separates, and so bounds the margin from below.
    K = RBF(0.5)(X) + 1.0
    theta = np.zeros(len(X))
    theta[model.support_] = model.dual_coef_[0]
    margin = (np.where(Y == "up", 1, -1) * (K @ theta)).min() / np.sqrt(theta @ K @ theta)
    assert model.mistakes_.sum() <= K.diagonal().max() / margin**2


def test_a_margin_is_left_free():
    model = KernelPerceptron(RBF(0.3), margin=0.5, max_iter=2000, random_state=0).fit(X, Y)
    assert model.mistakes_[-1] == 0
    assert (np.where(Y == "up", 1, -1) * model.decision_function(X)).min() > 0.5


def by_hand(K: np.ndarray, signs: np.ndarray, orders: list, budget: int) -> tuple[np.ndarray, list]:
    theta, queue, mistakes = np.zeros(len(K)), [], []
    for order in orders:
        mistakes.append(0)
        for i in order:
            if signs[i] * (theta @ K[i]) <= 0:
                if i not in queue:
                    if len(queue) == budget:
                        theta[queue.pop(0)] = 0.0
                    queue.append(i)
                theta[i] += signs[i]
                mistakes[-1] += 1
        if not mistakes[-1]:
            break
    return theta, mistakes


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("budget", [1, 7, 40, 149, 400])
def test_a_budget_gives_up_the_oldest_support_vector(budget, whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(hold, "_SMALL", 0)
        monkeypatch.setattr("mercer.solvers.online.perceptron._CHUNK", 16)
    model = KernelPerceptron(RBF(1.0), budget=budget, max_iter=6, random_state=3).fit(X, Y)
    signs = np.where(Y == "up", 1.0, -1.0)
    theta, mistakes = by_hand(RBF(1.0)(X) + 1.0, signs, orders_of(3, len(X), 6, True), budget)
    assert model.mistakes_.tolist() == mistakes
    weights = np.zeros(len(X))
    weights[model.support_] = model.dual_coef_[0]
    assert weights.tolist() == theta.tolist()
    assert len(model.support_) <= budget
    streamed = KernelPerceptron(RBF(1.0), budget=budget, shuffle=False)
    for rows in np.array_split(np.arange(len(X)), 7):
        streamed.partial_fit(X[rows], Y[rows], ["down", "up"])
        assert len(streamed.support_vectors_) <= budget
    theta, _ = by_hand(RBF(1.0)(X) + 1.0, signs, [np.arange(len(X))], budget)
    expected = (RBF(1.0)(NEW, X) + 1.0) @ theta
    np.testing.assert_allclose(streamed.decision_function(NEW), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("averaging", ["plain", "averaged", "voted"])
@pytest.mark.parametrize("expensive_columns", [1, 1000], ids=["rows held", "rows made again"])
def test_rows_made_when_needed_give_the_same(expensive_columns, averaging, labels, monkeypatch):
    model = KernelPerceptron(averaging=averaging, max_iter=5, random_state=1)
    expected = clone(model).fit(X, labels)
    monkeypatch.setattr(hold, "_SMALL", 0)
    monkeypatch.setattr(operator, "_EXPENSIVE_COLUMNS", expensive_columns)
    monkeypatch.setattr(look_ahead, "_LEAST", 4)
    monkeypatch.setattr(look_ahead, "_FEWEST", 7)
    monkeypatch.setattr(look_ahead, "_MOST", 40)
    monkeypatch.setattr(look_ahead, "_MISTAKES", 6)
    # One budget holds every row that errs, the other a few of them.
    for limit in ("1GiB", 2 * 11 * 8 * len(X), 12 * 8 * len(X)):
        with mercer.config(memory=limit):
            other = clone(model).fit(X, labels)
        assert other.mistakes_.tolist() == expected.mistakes_.tolist()
        assert other.dual_coef_.tolist() == expected.dual_coef_.tolist()


@pytest.mark.parametrize("averaging", ["plain", "averaged", "voted"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_parts_one_after_the_other_are_one_pass(averaging, form):
    model = KernelPerceptron(RBF(1.0), averaging=averaging, shuffle=False, max_iter=2)
    streamed, counts = clone(model), []
    for _ in range(2):
        counts.append(0)
        for rows in np.array_split(np.arange(len(X)), 4):
            streamed.partial_fit(form(X[rows]), THREE[rows], classes=["ash", "elm", "oak"])
            counts[-1] += int(streamed.mistakes_.sum())
    whole = model.fit(form(X), THREE)
    assert counts == whole.mistakes_.tolist() and streamed.t_ == whole.t_ == 2 * len(X)
    assert streamed.support_vectors_.shape == whole.support_vectors_.shape and not hasattr(streamed, "support_")
    np.testing.assert_allclose(
        streamed.decision_function(form(NEW)), whole.decision_function(form(NEW)), rtol=1e-10, atol=1e-10
    )
    again = pickle.loads(pickle.dumps(streamed)).partial_fit(form(X), THREE)
    assert again.t_ == 3 * len(X)


def test_fit_begins_anew_and_partial_fit_goes_on_from_it():
    model = KernelPerceptron(RBF(1.0), shuffle=False, max_iter=1)
    once = clone(model).fit(X, Y).partial_fit(X, Y)
    np.testing.assert_allclose(
        once.decision_function(NEW), clone(model).set_params(max_iter=2).fit(X, Y).decision_function(NEW), atol=1e-10
    )
    assert once.fit(X, Y).t_ == len(X)
    limited = clone(model).fit(X, Y).set_params(budget=5).partial_fit(X[:20], Y[:20])
    assert len(limited.support_vectors_) <= 5
    freed = limited.set_params(budget=None).partial_fit(X, Y)
    assert len(freed.support_vectors_) > 5
    with pytest.raises(ParameterError, match="averaging was 'plain' so far but is now 'voted'"):
        freed.set_params(averaging="voted").partial_fit(X, Y)


def test_a_matrix_and_float32_rows():
    K = RBF(1.0)(X)
    given = KernelPerceptron("precomputed", random_state=0).fit(K, THREE)
    rows = KernelPerceptron(RBF(1.0), random_state=0).fit(X, THREE)
    np.testing.assert_array_equal(given.support_, rows.support_)
    np.testing.assert_allclose(given.decision_function(RBF(1.0)(NEW, X)), rows.decision_function(NEW), atol=1e-10)
    # By rows it is used where it lies, by columns too, and otherwise copied; it is never written to.
    for layout in (np.asfortranarray(K), np.repeat(K, 2, axis=1)[:, ::2]):
        layout.flags.writeable = False
        other = KernelPerceptron("precomputed", random_state=0).fit(layout, THREE)
        assert other.dual_coef_.tolist() == given.dual_coef_.tolist()
    single = KernelPerceptron(RBF(1.0), averaging="voted", random_state=0).fit(X.astype(np.float32), Y)
    assert single.support_vectors_.dtype == np.float32
    assert (single.predict(X) == Y).mean() > 0.9


def test_seeds():
    one, same, other = (KernelPerceptron(random_state=s, max_iter=2).fit(X, Y) for s in (0, 0, 1))
    assert one.support_.tolist() == same.support_.tolist() != other.support_.tolist()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"max_iter": 0}, "max_iter must be a whole number of passes, at least 1, but is 0"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"budget": 0}, "budget must be a whole number of support vectors, or None, at least 1, but is 0"),
        ({"margin": -0.1}, "margin must be a finite number of 0 or more, but is -0.1"),
        ({"margin": np.nan}, "margin must be a finite number"),
        ({"averaging": "mean"}, "averaging must be 'plain', 'averaged' or 'voted', but is 'mean'"),
        ({"max_iter": True}, "max_iter must be a whole number"),
        ({"budget": True}, "budget must be a whole number"),
        ({"shuffle": "yes"}, "shuffle must be True or False"),
        ({"fit_intercept": None}, "fit_intercept must be True or False"),
        ({"random_state": "x"}, "random_state must be a whole number"),
        ({"averaging": "voted", "budget": 9}, "averaging='voted' needs every row.*budget=9 forgets some; pass averag"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KernelPerceptron(**parameters).fit(X, Y)


def test_labels_that_make_no_sense():
    with pytest.raises(DataError, match=r"needs at least two classes, but y has 1 class\(es\): \['up'\]"):
        KernelPerceptron().fit(X, np.full(len(X), "up"))
    with pytest.raises(DataError, match="first call of partial_fit needs classes"):
        KernelPerceptron().partial_fit(X, Y)
    with pytest.raises(DataError, match=r"needs at least two classes, but classes has 1"):
        KernelPerceptron().partial_fit(X, Y, ["up"])
    with pytest.raises(DataError, match="y has the label 'up', which is not among the classes"):
        KernelPerceptron().partial_fit(X, Y, ["down", "left"])
    model = KernelPerceptron().partial_fit(X, Y, ["down", "up"])
    with pytest.raises(DataError, match="classes must be those of the first call"):
        model.partial_fit(X, Y, ["down", "left"])
    with pytest.raises(DataError, match="X has 2 features"):
        model.partial_fit(X[:, :2], Y)
    with pytest.raises(ParameterError, match="partial_fit needs kernel values between new and earlier rows"):
        KernelPerceptron("precomputed").partial_fit(RBF(1.0)(X), Y, ["down", "up"])


def test_kernels_that_are_none_and_values_that_overflow():
    with pytest.raises(IndefiniteKernelError):
        KernelPerceptron(lambda A, B: -A @ B.T, allow_indefinite=False).fit(X, Y)
    assert KernelPerceptron(lambda A, B: -A @ B.T, allow_indefinite=True, max_iter=2).fit(X, Y).n_iter_ == 2
    with pytest.raises(NumericalError, match="overflow"):
        KernelPerceptron("linear", max_iter=500, margin=1e308).fit(X * 1e152, Y)


def test_constant_and_two_rows():
    constant = KernelPerceptron(max_iter=3, random_state=0).fit(np.ones((6, 2)), [0, 1] * 3)
    assert constant.n_iter_ == 3 and set(constant.predict(np.ones((2, 2)))) <= {0, 1}
    pair = KernelPerceptron(RBF(1.0)).fit([[0.0], [5.0]], ["a", "b"])
    assert pair.predict([[0.1], [4.9]]).tolist() == ["a", "b"]


def test_a_budget_of_memory_that_is_too_small():
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match="kernel"):
        KernelPerceptron().fit(X, Y)


def test_the_problem_is_checked():
    gram = Gram(RBF(1.0), X)
    with pytest.raises(DataError, match="200 codes, but the matrix has 150 rows"):
        PerceptronProblem(gram, np.zeros(200, dtype=int), np.array([1]))
    with pytest.raises(ParameterError, match="margin"):
        PerceptronProblem(gram, np.zeros(150, dtype=int), np.array([1]), margin=-1.0)
    with pytest.raises(ParameterError, match="budget"):
        PerceptronProblem(gram, np.zeros(150, dtype=int), np.array([1]), budget=0)


def test_votes_are_counted_in_blocks_that_fit_the_memory_budget():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 3))
    model = KernelPerceptron(averaging="voted", max_iter=1, random_state=0).fit(rows, rng.integers(0, 2, 1200))
    expected = model.decision_function(rows)
    with mercer.config(memory="1MiB"):
        assert model.decision_function(rows).tolist() == expected.tolist()
