"""KernelOrdinalRegression: its labels, decisions, slope and weights, and the models that it comes down to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mercer import GaussianProcessOrdinalRegression, KernelLogisticRegression, KernelOrdinalRegression
from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer.kernels import RBF, Linear, NegativeDistance
from mercer.solvers.risk.cumulative_links import LINKS

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 3))
LATENT = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RNG.normal(size=80)
Y = np.digitize(LATENT, [-0.5, 0.3, 1.2])
NEW = RNG.normal(size=(30, 3))
NAMES = np.array(["poor", "fair", "good", "best"])

every_link = pytest.mark.parametrize("link", LINKS)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_classes_are_logistic_regression(C):
    y = np.where(Y > 1, "yes", "no")
    ours = KernelOrdinalRegression(kernel="linear", C=C).fit(X, y)
    peer = LogisticRegression(C=C, tol=1e-10, solver="newton-cholesky", max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(-ours.thresholds_, peer.intercept_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), rtol=1e-6)
    np.testing.assert_array_equal(ours.predict(NEW), peer.predict(NEW))
    weight = RNG.integers(0, 4, 80)
    ours.fit(X, y, weight)
    peer.fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), rtol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("slope", [0.3, 1.0, 4.0])
def test_two_classes_are_kernel_logistic_regression(C, slope):
    """With v = a f the objective is a^-2 (a^2 C sum psi(v) + |v|^2 / 2): that of logistic regression at a^2 C."""
    y, weight = np.where(Y > 1, "yes", "no"), RNG.uniform(0.1, 2.0, 80)
    ours = KernelOrdinalRegression(kernel=RBF(1.5), C=C, slope=slope).fit(X, y, weight)
    peer = KernelLogisticRegression(kernel=RBF(1.5), C=slope**2 * C, tol=1e-9).fit(X, y, weight)
    scale = slope**2 * ours.certificate_.primal
    # Each is within its gap above the best value of one and the same problem.
    gaps = slope**2 * ours.certificate_.gap + peer.certificate_.gap
    assert abs(scale - peer.certificate_.primal) <= gaps + 1e-13 * scale and gaps < 1e-9 * scale
    np.testing.assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), rtol=1e-6)
    score = slope * (ours.latent(NEW) - ours.thresholds_)
    np.testing.assert_allclose(score, peer.decision_function(NEW), rtol=1e-6, atol=1e-8)


@every_link
def test_a_general_minimiser_in_the_primal_finds_the_same(link):
    ours = KernelOrdinalRegression(kernel="linear", C=0.7, link=link, slope=2.0).fit(X, Y)
    F = LINKS[link].cumulative

    def objective(z: np.ndarray) -> float:
        ends = np.concatenate([[-np.inf], np.sort(z[3:]), [np.inf]])
        mass = F(2.0 * (ends[Y + 1] - X @ z[:3])) - F(2.0 * (ends[Y] - X @ z[:3]))
        with np.errstate(divide="ignore"):
            return float(-0.7 * np.log(mass).sum() + 0.5 * z[:3] @ z[:3])

    at = np.concatenate([ours.coef_, ours.thresholds_])
    assert objective(at) == pytest.approx(ours.certificate_.primal, rel=1e-10)
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-8, "fatol": 1e-12, "adaptive": True}
    start = np.array([0.0, 0.0, 0.0, -1.0, 0.0, 1.0])
    optimum = minimize(objective, start, method="Nelder-Mead", options=options)
    assert ours.certificate_.dual <= ours.certificate_.primal <= optimum.fun * (1 + 1e-14)
    assert optimum.fun - ours.certificate_.dual <= 1e-6 * optimum.fun


@every_link
def test_probabilities(link):
    for C in (1e-3, 1.0, 1e6):
        model = KernelOrdinalRegression(link=link, C=C, gamma=2.0).fit(X, Y)
        p = model.predict_proba(np.vstack([X, NEW, 100.0 * NEW]))
        assert (p >= 0).all() and np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
        ends = np.concatenate([[-np.inf], model.thresholds_, [np.inf]])
        expected = np.diff(LINKS[link].cumulative(ends - model.latent(NEW)[:, None]), axis=1)
        np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-14)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), model.predict_proba(NEW), rtol=1e-12)


def test_decisions():
    model = KernelOrdinalRegression(C=0.3).fit(X, Y)
    p = model.predict_proba(NEW)
    np.testing.assert_array_equal(model.predict(NEW), p.argmax(axis=1))
    median = clone(model).set_params(decision="median").fit(X, Y).predict(NEW)
    # With a symmetric link the median is the class whose interval holds the latent value.
    np.testing.assert_array_equal(median, np.searchsorted(model.thresholds_, model.latent(NEW)))
    mean = clone(model).set_params(decision="mean").fit(X, Y).predict(NEW)
    expected = p @ np.arange(4)
    assert (np.abs(mean - expected) <= 0.5).all()
    # The best class for a loss is what the decision promises, whatever the distribution.
    costs = p @ np.abs(np.arange(4)[:, None] - np.arange(4))
    assert (costs[np.arange(30), median] <= costs.min(axis=1) + 1e-12).all()


def test_the_order_of_labels():
    numbered = KernelOrdinalRegression().fit(X, Y)
    named = KernelOrdinalRegression(classes=NAMES).fit(X, NAMES[Y])
    np.testing.assert_array_equal(named.predict(NEW), NAMES[numbered.predict(NEW)])
    assert named.classes_.tolist() == NAMES.tolist()
    frame = pd.Series(pd.Categorical(NAMES[Y], categories=NAMES, ordered=True))
    categorical = KernelOrdinalRegression().fit(X, frame)
    assert categorical.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(categorical.dual_coef_, named.dual_coef_)
    backwards = KernelOrdinalRegression(classes=NAMES[::-1]).fit(X, NAMES[Y])
    np.testing.assert_allclose(backwards.predict_proba(NEW)[:, ::-1], named.predict_proba(NEW), rtol=1e-6)
    np.testing.assert_allclose(backwards.thresholds_[::-1], -named.thresholds_, rtol=1e-6)


@pytest.mark.parametrize("learner", [KernelOrdinalRegression, GaussianProcessOrdinalRegression])
def test_text_has_no_order_of_its_own(learner):
    words = rf"{learner.__name__} needs the order of its 4 classes.*: {learner.__name__}\(classes=\['.*'\]\), in their"
    unordered, equal = pd.Series(pd.Categorical(NAMES[Y])), np.array(["1", "2", "1.0", "3"])[Y]
    for labels in (NAMES[Y], NAMES.astype(object)[Y], NAMES[Y].tolist(), unordered, equal):
        with pytest.raises(ParameterError, match=words):
            learner().fit(X, labels)
    # Two classes have the same probabilities in either order, but for links that are not symmetric.
    labels = np.array(["low", "high"])[(Y > 1) * 1]
    models = [learner(classes=classes).fit(X, labels) for classes in (None, ["low", "high"])]
    assert models[0].classes_.tolist() == ["high", "low"]
    np.testing.assert_allclose(models[0].predict_proba(NEW), models[1].predict_proba(NEW)[:, ::-1], atol=1e-5)
    with pytest.raises(ParameterError, match="needs the order of its 2 classes"):
        learner(link="cloglog").fit(X, labels)


@pytest.mark.parametrize("learner", [KernelOrdinalRegression, GaussianProcessOrdinalRegression])
def test_text_that_sorts_in_its_order_can_be_said_to(learner):
    names = np.array(["1 poor", "2 fair", "3 good", "4 best"])
    model, named = (learner(classes=classes).fit(X, names[Y]) for classes in ("sorted", names))
    assert model.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(model.dual_coef_, named.dual_coef_)
    with pytest.raises(ParameterError, match="or \"sorted\", but is 'alphabetical'"):
        learner(classes="alphabetical").fit(X, names[Y])


@pytest.mark.parametrize("names", [["-3", "2", "10", "1e3"], ["8", "09", "10", "11"]])
def test_numbers_that_are_written_as_text_are_in_the_order_of_numbers(names):
    numbered, model = KernelOrdinalRegression().fit(X, Y), KernelOrdinalRegression().fit(X, np.array(names)[Y])
    assert model.classes_.tolist() == names != sorted(names)
    np.testing.assert_array_equal(model.predict(NEW), np.array(names)[numbered.predict(NEW)])


@pytest.mark.parametrize(
    "labels",
    [Y * 10.0 - 5.0, Y > 1, Y.astype(np.uint8), Y.astype(str), (Y * 100).astype("datetime64[D]")],
    ids=lambda labels: f"{labels.dtype}, {labels[0]}",
)
def test_labels_of_any_type_that_has_an_order(labels):
    model = KernelOrdinalRegression().fit(X, labels)
    assert model.predict(NEW).dtype == model.classes_.dtype
    assert set(model.predict(NEW).tolist()) <= set(model.classes_.tolist())
    assert model.score(X, labels) > 0.6
    assert model.classes_.tolist() == sorted(set(labels.tolist()))


@every_link
def test_classes_that_no_row_has(link):
    rows = Y != 1
    without = KernelOrdinalRegression(link=link).fit(X[rows], Y[rows])
    model = KernelOrdinalRegression(link=link, classes=[-1, 0, 1, 2, 3, 9]).fit(X[rows], Y[rows])
    assert model.classes_.tolist() == [-1, 0, 1, 2, 3, 9]
    assert model.thresholds_[0] == -np.inf and model.thresholds_[4] == np.inf
    assert model.thresholds_[1] == model.thresholds_[2] == without.thresholds_[0]
    p = model.predict_proba(NEW)
    assert (p[:, [0, 2, 5]] == 0).all()
    np.testing.assert_array_equal(p[:, [1, 3, 4]], without.predict_proba(NEW))
    for decision in ("mode", "median"):
        model.set_params(decision=decision)
        assert not set(model.predict(NEW)) & {-1, 1, 9}
    weights = dict.fromkeys([-1, 0, 1, 2, 3, 9], 2.0)
    weighted = clone(model).set_params(class_weight=weights).fit(X[rows], Y[rows])
    twice = clone(without).set_params(C=2.0).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.predict_proba(NEW)[:, [1, 3, 4]], twice.predict_proba(NEW), rtol=1e-9)
    assert weighted.class_weight_.tolist() == [1.0, 2.0, 1.0, 2.0, 2.0, 1.0]


def test_weights_are_repetitions():
    weight = RNG.integers(0, 4, 80)
    a = KernelOrdinalRegression(C=5.0, class_weight="balanced").fit(X, Y, weight)
    b = KernelOrdinalRegression(C=5.0, class_weight="balanced").fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(a.latent(NEW), b.latent(NEW), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.thresholds_, b.thresholds_, rtol=1e-10)
    assert a.certificate_.primal == pytest.approx(b.certificate_.primal, rel=1e-12)
    assert (a.dual_coef_[weight == 0] == 0).all()
    sums = np.add.reduceat(b.dual_coef_, np.concatenate([[0], np.cumsum(weight[weight > 0])[:-1]]))
    np.testing.assert_allclose(a.dual_coef_[weight > 0], sums, rtol=1e-9, atol=1e-12)
    # As a matrix equal rows are not seen, and the answer is the same.
    rows, labels, kernel = np.repeat(X, weight, axis=0), np.repeat(Y, weight), RBF(1.5)
    merged = KernelOrdinalRegression(C=5.0, kernel=kernel).fit(rows, labels)
    matrix = KernelOrdinalRegression(C=5.0, kernel="precomputed").fit(kernel(rows), labels)
    np.testing.assert_allclose(matrix.predict_proba(kernel(NEW, rows)), merged.predict_proba(NEW), rtol=1e-8)


def test_equal_rows_with_different_labels():
    rows = np.repeat(X[:8], 10, axis=0)
    model = KernelOrdinalRegression(kernel="rbf", gamma=1.0).fit(rows, Y)
    jitter = rows + 1e-9 * RNG.normal(size=rows.shape)
    distinct = KernelOrdinalRegression(kernel="rbf", gamma=1.0).fit(jitter, Y)
    np.testing.assert_allclose(model.predict_proba(NEW), distinct.predict_proba(NEW), rtol=1e-5)
    assert model.certificate_.peak_bytes < distinct.certificate_.peak_bytes / 50
    sparse = KernelOrdinalRegression(kernel="rbf", gamma=1.0).fit(sp.csr_matrix(rows), Y)
    np.testing.assert_allclose(sparse.dual_coef_, model.dual_coef_, rtol=1e-8)


def test_the_slope_and_C_say_the_same():
    a = KernelOrdinalRegression(C=8.0, slope=0.5).fit(X, Y)
    b = KernelOrdinalRegression(C=2.0).fit(X, Y)
    np.testing.assert_allclose(a.predict_proba(NEW), b.predict_proba(NEW), rtol=1e-10)
    np.testing.assert_allclose(a.thresholds_, 2.0 * b.thresholds_, rtol=1e-10)
    np.testing.assert_allclose(a.latent(NEW), 2.0 * b.latent(NEW), rtol=1e-9, atol=1e-12)
    assert a.certificate_.primal == pytest.approx(4.0 * b.certificate_.primal, rel=1e-12)
    assert a.certificate_.gap < 1e-8 and (a.slope_, b.slope_) == (0.5, 1.0)


def test_the_slope_by_evidence():
    a = KernelOrdinalRegression(slope="evidence").fit(X, Y)
    b = KernelOrdinalRegression(slope="evidence", C=25.0).fit(X, Y)
    assert a.slope_ == pytest.approx(5.0 * b.slope_, rel=5e-3)
    np.testing.assert_allclose(a.predict_proba(NEW), b.predict_proba(NEW), atol=2e-3)
    fixed = KernelOrdinalRegression(slope=a.slope_).fit(X, Y)
    np.testing.assert_allclose(a.predict_proba(NEW), fixed.predict_proba(NEW), rtol=1e-6)
    assert a.certificate_.status.name == "converged" and np.isfinite(a.log_evidence_)
    # Noisier labels have a smaller slope.
    noisy = np.where(RNG.random(80) < 0.25, RNG.permutation(Y), Y)
    assert KernelOrdinalRegression(slope="evidence").fit(X, noisy).slope_ < a.slope_


def test_warm_start():
    model = KernelOrdinalRegression(C=1.0, warm_start=True).fit(X, Y)
    cold = KernelOrdinalRegression(C=1.1).fit(X, Y)
    model.set_params(C=1.1).fit(X, Y)
    assert model.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(model.latent(NEW), cold.latent(NEW), atol=1e-7)
    for rows, labels in ((X[:50], Y[:50]), (X, Y > 1), (np.repeat(X, 2, axis=0), np.repeat(Y, 2))):
        other = clone(model).fit(rows, labels)
        np.testing.assert_allclose(model.fit(rows, labels).latent(NEW), other.latent(NEW), atol=1e-7)
    weight = np.ones(80)
    weight[70:] = 0
    model.fit(X, Y, weight)
    np.testing.assert_allclose(model.fit(X, Y).latent(NEW), cold.latent(NEW), atol=1e-7)


def test_kernels_that_are_positive_where_weights_sum_to_zero():
    plain = KernelOrdinalRegression(kernel=NegativeDistance(), C=2.0).fit(X, Y)
    centred = KernelOrdinalRegression(kernel=NegativeDistance().centered(X), C=2.0).fit(X, Y)
    np.testing.assert_allclose(plain.predict_proba(NEW), centred.predict_proba(NEW), rtol=1e-6)
    assert plain.certificate_.primal == pytest.approx(centred.certificate_.primal, rel=1e-9)
    given = KernelOrdinalRegression(kernel="precomputed", C=2.0).fit(NegativeDistance()(X), Y)
    np.testing.assert_allclose(given.predict_proba(NegativeDistance()(NEW, X)), plain.predict_proba(NEW), rtol=1e-6)
    function = KernelOrdinalRegression(kernel=lambda A, B: NegativeDistance()(A, B), C=2.0, warm_start=True).fit(X, Y)
    np.testing.assert_allclose(function.predict_proba(NEW), plain.predict_proba(NEW), rtol=1e-6)
    assert function.fit(X, Y).n_iter_ <= 1


def test_an_indefinite_kernel_where_it_is_allowed():
    K = RBF(1.0)(X) - 0.3 * np.eye(80)
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        KernelOrdinalRegression(kernel="precomputed", allow_indefinite=False).fit(K, Y)
    with pytest.raises(IndefiniteKernelError, match="slope='evidence' needs a positive semi-definite kernel"):
        KernelOrdinalRegression(kernel="precomputed", slope="evidence").fit(K, Y)
    model = KernelOrdinalRegression(kernel="precomputed", allow_indefinite=True, C=0.5).fit(K, Y)
    assert model.certificate_.status.name == "stationary" and not model.certificate_.convex
    assert "another stationary point" in model.certificate_.explain()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0.0}, "C must be a finite number above 0, but is 0.0"),
        ({"C": np.inf}, "C must be a finite number above 0"),
        ({"tol": -1.0}, "tol must be a finite number above 0"),
        ({"max_iter": 0}, "max_iter must be a whole number of 1 or more"),
        ({"link": "cauchit"}, "link must be 'logit', 'probit', 'cloglog' or 'loglog', but is 'cauchit'"),
        ({"decision": "best"}, "decision must be 'mode', 'median' or 'mean'"),
        ({"slope": "learned"}, "slope must be a finite number above 0 or 'evidence', but is 'learned'"),
        ({"slope": 0.0}, "slope must be a finite number above 0"),
        ({"slope": "evidence", "allow_indefinite": True}, "slope='evidence' needs a positive semi-definite kernel"),
        ({"warm_start": "yes"}, "warm_start must be True or False"),
        ({"classes": [1]}, "classes must be two or more different labels"),
        ({"classes": [0, 1, 1, 2, 3]}, "classes must be two or more different labels"),
        ({"classes": "low"}, "classes must be two or more different labels"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KernelOrdinalRegression(**parameters).fit(X, Y)


def test_labels_that_cannot_be_used():
    with pytest.raises(DataError, match=r"label 3 in row \d+, which is not one of the classes \[0, 1, 2\]"):
        KernelOrdinalRegression(classes=[0, 1, 2]).fit(X, Y)
    with pytest.raises(DataError, match=r"needs at least two classes, but y has 1 class\(es\): \[0\]; also pass rows"):
        KernelOrdinalRegression().fit(X, 0 * Y)
    with pytest.raises(DataError, match="not counting rows of weight 0"):
        KernelOrdinalRegression().fit(X, Y, Y == 1)
    with pytest.raises(DataError, match=r"1 class\(es\)"):
        KernelOrdinalRegression().fit(X[:1], Y[:1])


def test_rows_of_weight_zero_may_have_any_label():
    model = KernelOrdinalRegression(classes=[0, 1, 2]).fit(X, Y, Y < 3)
    assert model.classes_.tolist() == [0, 1, 2]


def test_constant_rows_learn_the_shares():
    model = KernelOrdinalRegression().fit(np.ones((80, 2)), Y)
    shares = np.bincount(Y) / 80
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2)))[0], shares, rtol=1e-9)


def test_too_few_steps_are_told():
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        model = KernelOrdinalRegression(C=1e4, max_iter=2).fit(X, Y)
    assert model.certificate_.status.name == "iteration_limit" and model.n_iter_ == 2
    assert model.certificate_.gap > 1.0


def test_coefficients_of_a_linear_kernel_alone():
    model = KernelOrdinalRegression(kernel=Linear()).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(NEW @ model.coef_, model.latent(NEW), rtol=1e-10, atol=1e-12)
    with pytest.raises(AttributeError, match="finite feature map only"):
        _ = KernelOrdinalRegression().fit(X, Y).coef_


def test_float32_rows():
    single = KernelOrdinalRegression(C=3.0).fit(X.astype(np.float32), Y)
    double = KernelOrdinalRegression(C=3.0).fit(X.astype(np.float32).astype(np.float64), Y)
    p = single.predict_proba(NEW.astype(np.float32))
    np.testing.assert_allclose(p, double.predict_proba(NEW.astype(np.float32).astype(np.float64)), rtol=1e-3)
    np.testing.assert_allclose(single.dual_coef_, double.dual_coef_, rtol=1e-3, atol=1e-6)
