from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler

import mercer
from mercer._errors import DataError, IndefiniteKernelError, KernelValueError, ParameterError
from mercer.data.distinct import distinct_rows, row_keys
from mercer.estimators.kernel_sgd import KernelSGDClassifier
from mercer.gram import Gram
from mercer.kernels import RBF, Constant, Polynomial, Sigmoid
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO
from sklearn_checks import in_turn, not_passed

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(11)
X = RNG.normal(size=(120, 3))
Y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * RNG.normal(size=120) > 0, "up", "down")
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.3, 1.2])
LOSSES = ["hinge", "squared_hinge", "log_loss", "modified_huber"]


class Quadratic(TransformerMixin, BaseEstimator):
    """The map of ``(<x, z> + 1)^2``: all products of two of the columns and a constant."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        X = np.column_stack([X, np.ones(len(X))])
        return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1)


def short(**parameters):
    return KernelSGDClassifier(**{"alpha": 0.05, "max_iter": 5, "tol": 1e-12, "random_state": 3, **parameters})


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("shuffle", [True, False, "uniform"])
@pytest.mark.parametrize("rate", ["damped", "pegasos"])
@pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
def test_both_forms_take_the_same_steps(average, shuffle, rate, y):
    common = {"average": average, "shuffle": shuffle, "learning_rate": rate, "fit_intercept": True}
    weight = RNG.uniform(0.5, 2.0, 120)
    for primal, kernel in [
        (short(feature_map="identity", **common), short(kernel="linear", feature_map=None, **common)),
        (short(feature_map=Quadratic(), **common), short(kernel=Polynomial(2, 1.0, 1.0), **common)),
    ]:
        primal.fit(X, y, weight)
        kernel.fit(X, y, weight)
        assert hasattr(primal, "coef_") and not hasattr(primal, "dual_coef_")
        assert hasattr(kernel, "dual_coef_") and "coef_" not in vars(kernel)
        np.testing.assert_allclose(kernel.norm_, primal.norm_, rtol=1e-9)
        expansion = kernel.dual_coef_ @ primal._mapped(kernel.support_vectors_)
        np.testing.assert_allclose(expansion, primal.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(kernel.intercept_, primal.intercept_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(kernel.decision_function(X), primal.decision_function(X), rtol=1e-9, atol=1e-9)
        for name in ("primal", "dual", "kkt_violation"):
            ours, theirs = (getattr(model.certificate_, name) for model in (kernel, primal))
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_both_forms_take_the_same_steps_for_every_loss(loss):
    primal = short(feature_map=Quadratic(), loss=loss)
    kernel = short(kernel="poly", degree=2, coef0=1, gamma=1, loss=loss)
    np.testing.assert_allclose(
        primal.fit(X, Y).decision_function(X), kernel.fit(X, Y).decision_function(X), rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize("average", [True, False])
def test_the_notes_algorithm_with_kernels_step_by_step(average):
    alpha, y, K = 0.05, np.where(Y == "up", 1.0, -1.0), RBF(1.0)(X)
    beta, iterates = np.zeros(120), []
    for t in range(1, 361):
        a = beta / (alpha * t)
        iterates.append(a)
        i = (t - 1) % 120
        if y[i] * (a @ K[:, i]) < 1:
            beta[i] += y[i]
    expected = np.mean(iterates, axis=0) if average else beta / (alpha * 361)
    model = short(kernel=RBF(1.0), learning_rate="pegasos", shuffle=False, max_iter=3, average=average).fit(X, Y)
    weights = np.zeros(120)
    weights[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=1e-13)
    assert model.t_ == 360 and model.n_iter_ == 3


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_objective_is_that_of_the_support_vector_machine(kernel, intercept):
    alpha = 1e-3
    model = KernelSGDClassifier(kernel=kernel, alpha=alpha, fit_intercept=intercept, random_state=0).fit(X, Y)
    used = model.kernel_ + Constant(1.0) if intercept else model.kernel_
    signs = np.where(Y == "up", 1.0, -1.0)
    problem = BoxQP.classification(Gram(used, X), signs, np.full(120, 1 / (alpha * 120)), intercept=False)
    best = alpha * SMO().solve(problem).certificate.primal
    c = model.certificate_
    assert c.dual <= best * (1 + 1e-9) and best * (1 - 1e-9) <= c.primal
    assert c.primal <= 1.02 * best
    assert model.score(X, Y) > 0.75


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("parameters", [{"kernel": "rbf", "gamma": 0.5}, {"kernel": "linear"}], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rate", ["damped", "pegasos"])
def test_parts_make_up_one_pass(average, parameters, loss, rate):
    model = short(shuffle=False, average=average, loss=loss, learning_rate=rate, fit_intercept=True, **parameters)
    whole = clone(model).set_params(max_iter=1).fit(X, THREE)
    parts = clone(model)
    # The longest row first: a longer one later would damp the steps from there on only.
    longest = int(np.square(X).sum(axis=1).argmax())
    order = np.concatenate([[longest], np.delete(np.arange(120), longest)])
    whole.fit(X[order], THREE[order])
    for rows in np.array_split(order, 4):
        parts.partial_fit(X[rows], THREE[rows], classes=[0, 1, 2])
    assert parts.t_ == whole.t_ == 120 and not hasattr(parts, "certificate_")
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-10)


def test_partial_fit_goes_on_after_a_longer_row_and_after_fit():
    model = short(kernel="rbf", gamma=1.0).fit(X, Y)
    before = model.decision_function(X)
    model.partial_fit(5 * X[:10], Y[:10])
    assert model.t_ == 610 and not hasattr(model, "support_")
    assert not np.allclose(model.decision_function(X), before)
    steep = short(kernel="linear", loss="squared_hinge").partial_fit(X[:5], Y[:5], classes=["down", "up"])
    w = steep.coef_
    steep.partial_fit(1000 * X[5:6], Y[5:6])
    assert np.isfinite(steep.coef_).all() and np.abs(steep.coef_ - w).max() < 1.0


def test_support_vectors_met_again_do_not_multiply():
    for rows in (X, sp.csr_array(X)):
        model = short(kernel="rbf")
        for _ in range(3):
            model.partial_fit(rows, Y, classes=np.unique(Y))
        assert len(np.unique(row_keys(model.support_vectors_))) == model.dual_coef_.shape[1] <= 120
    mixed = short(kernel="rbf").partial_fit(X, Y, classes=np.unique(Y)).partial_fit(sp.csr_array(X), Y)
    assert mixed.support_vectors_.shape[0] <= 120


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_warm_start_goes_on(kernel):
    rows = RBF(1.0)(X) if kernel == "precomputed" else X
    model = short(kernel=kernel, shuffle=False, warm_start=True, max_iter=2).fit(rows, Y).fit(rows, Y)
    whole = short(kernel=kernel, shuffle=False, max_iter=4).fit(rows, Y)
    np.testing.assert_allclose(model.decision_function(rows), whole.decision_function(rows), rtol=1e-9, atol=1e-11)
    assert model.t_ == whole.t_ == 480
    other = model.set_params(alpha=0.2).fit(rows, Y)
    assert other.t_ == 720
    with pytest.raises(DataError, match=r"with warm_start, y must have the classes of the last fit, \['down', 'up'\]"):
        model.fit(rows, np.where(Y == "up", "left", "right"))


def test_warm_start_keeps_rows_that_no_longer_count():
    weight = np.ones(120)
    weight[:40] = 0
    for kernel, rows in (("precomputed", RBF(1.0)(X)), (RBF(1.0), X)):
        model = short(kernel=kernel, shuffle=False, warm_start=True, max_iter=2).fit(rows, Y)
        early = set(model.support_) & set(range(40))
        model.fit(rows, Y, weight)
        assert early and model.t_ == 400
        values = RBF(1.0)(X, X[model.support_] if kernel == "precomputed" else model.support_vectors_)
        np.testing.assert_allclose(values @ model.dual_coef_[0], model.decision_function(rows), atol=1e-10)
        assert (early <= set(model.support_)) == (kernel == "precomputed")
        assert ((model.support_ == -1).sum() == len(early)) == (kernel != "precomputed")


@pytest.mark.parametrize("shuffle", [True, "uniform"])
@pytest.mark.parametrize("parameters", [{"kernel": "rbf"}, {"kernel": "linear", "fit_intercept": True}], ids=str)
def test_weights_are_repetition_and_order_does_not_matter(shuffle, parameters):
    weight = RNG.integers(0, 4, 120)
    model = short(shuffle=shuffle, class_weight={0: 2.0, 1: 1.0, 2: 0.5}, **parameters)
    weighted = clone(model).fit(X, THREE, weight)
    mixed = RNG.permutation(np.repeat(np.arange(120), weight))
    for rows in (X, sp.csr_matrix(X)):
        repeated = clone(model).fit(rows[mixed], THREE[mixed])
        np.testing.assert_allclose(repeated.decision_function(X), weighted.decision_function(X), rtol=1e-9, atol=1e-10)
        assert repeated.t_ == weighted.t_
        assert repeated.certificate_.primal == pytest.approx(weighted.certificate_.primal, rel=1e-9)
    if parameters["kernel"] == "rbf":
        assert (weight[weighted.support_] > 0).all()
    scaled = clone(model).fit(X, THREE, 0.25 * weight)
    np.testing.assert_allclose(scaled.decision_function(X), weighted.decision_function(X), rtol=1e-9, atol=1e-10)


def test_class_weights_are_weights_of_rows():
    factors = {"up": 3.0, "down": 0.5}
    by_class = short(class_weight=factors).fit(X, Y)
    by_row = short(kernel=by_class.kernel_).fit(X, Y, np.vectorize(factors.get)(Y))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), rtol=1e-9, atol=1e-10)
    counts = dict(zip(*np.unique(Y, return_counts=True)))
    balanced = short(class_weight="balanced").fit(X, Y)
    given = short(class_weight={c: 120 / (2 * n) for c, n in counts.items()}).fit(X, Y)
    np.testing.assert_allclose(balanced.decision_function(X), given.decision_function(X), rtol=1e-9, atol=1e-10)


def test_distinct_rows_in_an_order_of_their_own():
    rows = RNG.integers(-1, 2, (200, 3)).astype(float)
    codes, weight = RNG.integers(0, 2, 200), RNG.uniform(1, 2, 200)
    index, sums = distinct_rows(rows, codes, weight)
    expected = {}
    for x, c, w in zip(map(tuple, rows), codes, weight):
        expected[x, c] = expected.get((x, c), 0.0) + w
    results = {(tuple(rows[i]), codes[i]): s for i, s in zip(index, sums)}
    assert results.keys() == expected.keys() and len(index) == len(results)
    assert all(results[key] == pytest.approx(expected[key]) for key in results)
    mixed = RNG.permutation(200)
    again, _ = distinct_rows(sp.csr_matrix(rows)[mixed], codes[mixed], weight[mixed])
    np.testing.assert_array_equal(rows[mixed][again], rows[index])
    assert all(i == min(np.flatnonzero((rows == rows[i]).all(axis=1) & (codes == codes[i]))) for i in index)


def test_classes_are_learned_against_the_rest():
    model = short(kernel="rbf").fit(X, THREE)
    assert model.decision_function(X).shape == (120, 3)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert model.intercept_.tolist() == [0.0, 0.0, 0.0]
    # Without merging, the order does not hang on the labels.
    given = short(kernel="rbf", shuffle=False).fit(X, THREE)
    for c in range(3):
        alone = short(kernel="rbf", shuffle=False).fit(X, np.equal(THREE, c))
        np.testing.assert_allclose(alone.decision_function(X), given.decision_function(X)[:, c], rtol=1e-9, atol=1e-10)


def test_a_precomputed_matrix_is_its_kernel():
    by_kernel = short(kernel=RBF(1.0), shuffle=False).fit(X[:80], Y[:80])
    given = short(kernel="precomputed", shuffle=False).fit(RBF(1.0)(X[:80]), Y[:80])
    np.testing.assert_allclose(
        given.decision_function(RBF(1.0)(X[80:], X[:80])), by_kernel.decision_function(X[80:]), rtol=1e-9, atol=1e-11
    )


def test_maps_that_draw_and_maps_that_stay_sparse():
    other = KernelSGDClassifier(feature_map=RBFSampler(gamma=0.5, n_components=60, random_state=0), random_state=0)
    assert other.fit(X, Y).score(X, Y) > 0.9
    assert other.coef_.shape == (1, 60) and other.kernel_ is None
    dense, sparse = (short(feature_map="identity", fit_intercept=True).fit(form, Y) for form in (X, sp.csc_array(X)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-10)
    np.testing.assert_allclose(sparse.decision_function(sp.coo_array(X)), dense.decision_function(X), rtol=1e-9)


def test_convergence_is_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelSGDClassifier(random_state=0, alpha=1e-2).fit(X, Y)
    assert model.certificate_.status.name == "converged" and model.certificate_.relative_gap <= 1e-2
    assert model.n_iter_ < 1000 and model.t_ == 120 * model.n_iter_
    with pytest.warns(ConvergenceWarning, match=r"KernelSGDClassifier: max_iter was reached.*1 / \(alpha n\)"):
        short().fit(X, Y)


def test_the_seed_decides():
    first, second, third = (short(random_state=seed).fit(X, Y).dual_coef_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert first.shape != third.shape or (first != third).any()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_copies_and_files_go_on_where_the_model_stood(kernel, tmp_path):
    model = short(kernel=kernel, fit_intercept=True).fit(X, THREE)
    mercer.save(model, tmp_path / "model.mercer")
    restored = [pickle.loads(pickle.dumps(model)), mercer.load(tmp_path / "model.mercer")]
    expected = model.partial_fit(X[:20], THREE[:20]).decision_function(X)
    for other in restored:
        np.testing.assert_array_equal(other.partial_fit(X[:20], THREE[:20]).decision_function(X), expected)


SETTINGS = (
    KernelSGDClassifier(kernel="linear", fit_intercept=True),
    KernelSGDClassifier(loss="log_loss", average=False, learning_rate="pegasos"),
    KernelSGDClassifier(shuffle="uniform", loss="squared_hinge"),
)


# Each check has one of the settings every day, and each of the others in a slow test.
@pytest.mark.parametrize("first", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, len(SETTINGS)))])
def test_scikit_learns_own_checks_with_the_settings_in_turn(first):
    checks = in_turn(SETTINGS, first)
    assert len(checks) > 50 and not_passed(checks) == {}


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"alpha": 0.0}, ParameterError, "alpha must be a finite number above 0, but is 0.0"),
        ({"tol": -1}, ParameterError, "tol must be"),
        ({"max_iter": 0}, ParameterError, "max_iter must be a whole number of passes, at least 1, but is 0"),
        ({"loss": "hing"}, ParameterError, "no loss 'hing'; the losses are hinge"),
        ({"learning_rate": "optimal"}, ParameterError, "'damped' or 'pegasos', but is 'optimal'"),
        ({"shuffle": "yes"}, ParameterError, "True, False or 'uniform', but is 'yes'"),
        ({"feature_map": "poly"}, ParameterError, "feature_map must have fit and transform.*is 'poly'"),
        ({"feature_map": 3}, ParameterError, "feature_map must have fit and transform.*is 3"),
        ({"feature_map": "identity", "kernel": "precomputed"}, ParameterError, 'maps rows, and kernel="precomputed"'),
        ({"class_weight": {"up": -1.0}}, ParameterError, "class_weight must be finite numbers above 0"),
        ({"kernel": Sigmoid(), "allow_indefinite": False}, IndefiniteKernelError, "allow_indefinite=True"),
    ],
)
def test_parameters_that_make_no_sense(parameters, error, words):
    with pytest.raises(error, match=words):
        KernelSGDClassifier(**parameters).fit(X, Y)


def test_an_indefinite_kernel_on_request():
    with pytest.raises(IndefiniteKernelError, match="c'Kc = -"):
        short(kernel="precomputed", allow_indefinite=False).fit(X @ X.T - 40.0, Y)
    model = short(kernel=Sigmoid(0.1), allow_indefinite=True, tol=1e9).fit(X, Y)
    assert model.certificate_.status.name == "stationary"


def test_labels_and_parts_that_make_no_sense():
    with pytest.raises(DataError, match=r"at least two classes, but y has 1 class\(es\): \['up'\], not counting"):
        short().fit(X, Y, Y == "up")
    with pytest.raises(DataError, match="first call of partial_fit needs classes"):
        short().partial_fit(X, Y)
    with pytest.raises(DataError, match=r"at least two classes, but classes has 1 class\(es\): \['up'\]"):
        short().partial_fit(X, Y, classes=["up"])
    model = short().partial_fit(X, Y, classes=["up", "down", "rest"])
    assert model.decision_function(X).shape == (120, 3)
    with pytest.raises(DataError, match=r"classes must be those of the first call"):
        model.partial_fit(X, Y, classes=["up", "down"])
    with pytest.raises(DataError, match="y has the label 'side', which is not among the classes"):
        model.partial_fit(X, np.where(Y == "up", "side", Y))
    with pytest.raises(ParameterError, match="class_weight='balanced' needs all rows at once"):
        short(class_weight="balanced").partial_fit(X, Y, classes=["up", "down"])
    with pytest.raises(ParameterError, match="partial_fit needs kernel values between new and earlier rows"):
        short(kernel="precomputed").partial_fit(X @ X.T, Y, classes=["up", "down"])


@pytest.mark.parametrize("memory", ["1GiB", "600KiB"])
def test_a_kernel_that_gives_no_numbers(memory):
    def kernel(A, B):
        return np.where(np.abs(A[:, :1] - B[:, 0]) > 3, np.nan, A @ B.T)

    with mercer.config(memory=memory), pytest.raises(KernelValueError, match="returned nan"):
        short(kernel=kernel, learning_rate="pegasos").fit(np.vstack([X, X]) + np.arange(240)[:, None] / 1e3, [*Y, *Y])


class Broken(Quadratic):
    def transform(self, X):
        return np.full((len(X), 2), np.nan)


def test_a_map_that_gives_no_numbers():
    with pytest.raises(DataError, match=r"(?s)contains NaN"):
        short(feature_map=Broken()).fit(X, Y)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_going_on_needs_the_columns_of_the_last_fit(kernel):
    K = X @ X.T if kernel == "precomputed" else X
    model = KernelSGDClassifier(alpha=0.1, kernel=kernel, warm_start=True, random_state=0).fit(K, Y)
    before = model.decision_function(K)
    with pytest.raises(DataError, match=r"with warm_start, X must have the .* columns.*warm_start=False"):
        model.fit(K[:20, :20] if kernel == "precomputed" else X[:, :2], Y[:20] if kernel == "precomputed" else Y)
    np.testing.assert_array_equal(model.decision_function(K), before)


def test_functions_that_are_no_kernels():
    with pytest.raises(IndefiniteKernelError, match="on 120 rows of X is indefinite"):
        KernelSGDClassifier(kernel=lambda A, B: -A @ B.T, allow_indefinite=False).fit(X, Y)
    model = KernelSGDClassifier(kernel=lambda A, B: -A @ B.T, allow_indefinite=True, max_iter=2).fit(X, Y)
    assert not model.certificate_.convex
