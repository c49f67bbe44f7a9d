"""Classification on tables: against the regression of its kernel, on awkward tables, beside simple learners."""

from __future__ import annotations

import functools
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import mercer
from mercer import Graph, KernelLogisticRegression, TabularClassifier
from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.estimators.tabular.penalty import _COSTS
from sklearn_checks import every_check, not_passed

RNG = np.random.default_rng(0)
N = 150
FRAME = pd.DataFrame(
    {"size": RNG.uniform(40, 140, N), "town": RNG.choice(["Ulm", "Zug"], N), "nothing": RNG.normal(size=N)}
)
LIMIT = np.where(FRAME["town"] == "Zug", 60.0, 110.0)
TWO = np.where(FRAME["size"] > LIMIT, "dear", "cheap")
THREE = np.where(np.abs(FRAME["size"] - LIMIT) < 15, "fair", TWO)
FRAME.loc[5, "size"] = np.nan
FRAME.loc[7, "town"] = None
TRAIN, TEST = FRAME[:110], FRAME[110:]


@functools.cache
def fitted(classes: int) -> TabularClassifier:
    return TabularClassifier().fit(TRAIN, (TWO if classes == 2 else THREE)[:110])


@pytest.mark.slow
def test_scikit_learns_own_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    # The choice of a penalty is most of a fit, and no check looks at it.
    for name, value in {"_COSTS": (1.0, 10.0), "_FOLDS": 2, "_PARTITIONS": 1, "_SINGLY": 4}.items():
        monkeypatch.setattr(f"mercer.estimators.tabular.penalty.{name}", value)
    checks = every_check(TabularClassifier())
    assert len(checks) > 50 and not_passed(checks) == {}


@pytest.mark.slow
def test_scikit_learns_own_checks_with_other_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.estimators.tabular.penalty._COSTS", _COSTS[::4])
    assert not_passed(every_check(TabularClassifier())) == {}


@pytest.mark.parametrize(("classes", "y"), [(2, TWO), pytest.param(3, THREE, marks=pytest.mark.slow)])
def test_it_is_the_logistic_regression_of_its_kernel(classes: int, y: np.ndarray) -> None:
    model = fitted(classes)
    rows, new = model.encoder_.transform(TRAIN), model.encoder_.transform(TEST)
    alone = KernelLogisticRegression(C=model.model_.C, kernel="precomputed").fit(model.kernel_(rows), y[:110])
    np.testing.assert_allclose(model.predict_proba(TEST), alone.predict_proba(model.kernel_(new, rows)), rtol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(TEST)), model.predict_proba(TEST))
    assert model.classes_.tolist() == sorted(set(y))
    np.testing.assert_array_equal(model.predict(TEST), model.classes_[model.predict_proba(TEST).argmax(axis=1)])
    shape = (len(TEST),) if classes == 2 else (len(TEST), 3)
    assert model.decision_function(TEST).shape == shape


@pytest.mark.parametrize(("classes", "y"), [(2, TWO), (3, THREE)])
def test_it_learns_what_a_linear_model_cannot(classes: int, y: np.ndarray) -> None:
    model = fitted(classes)
    assert model.score(TEST, y[110:]) > 0.85
    assert log_loss(y[110:], model.predict_proba(TEST)) < 0.4
    assert model.relevance_[0] > 0.5 > 0.1 > model.relevance_[2]


def test_it_beats_the_shares_and_a_line_on_generated_tables() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=200) > 0
    loss = [
        -cross_val_score(m, X, y, cv=3, scoring="neg_log_loss").mean()
        for m in (TabularClassifier(), LogisticRegression(), DummyClassifier(strategy="prior"))
    ]
    assert loss[0] < 0.45 < 0.6 < min(loss[1:])


def test_noise_alone_has_the_probabilities_of_the_classes() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.random(150) < 0.3
    P = TabularClassifier().fit(X, y).predict_proba(rng.normal(size=(100, 3)))
    assert np.abs(P[:, 1] - y.mean()).mean() < 0.1


def test_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    assert TabularClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.92


@pytest.mark.parametrize(("classes", "y"), [(2, TWO), pytest.param(3, THREE, marks=pytest.mark.slow)])
def test_weights_are_repetitions(classes: int, y: np.ndarray) -> None:
    weights = np.random.default_rng(1).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    weighted = TabularClassifier().fit(TRAIN[:60], y[:60], sample_weight=weights)
    repeated = TabularClassifier().fit(TRAIN.iloc[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(TEST), repeated.predict_proba(TEST), atol=1e-6)
    assert weighted.n_rows_ == repeated.n_rows_ == (weights > 0).sum()


def test_a_class_whose_rows_have_no_weight_is_none() -> None:
    model = TabularClassifier().fit(TRAIN, THREE[:110], sample_weight=THREE[:110] != "fair")
    assert model.classes_.tolist() == ["cheap", "dear"]
    with pytest.raises(DataError, match="at least two classes"):
        TabularClassifier().fit(TRAIN, TWO[:110], sample_weight=TWO[:110] == "dear")


def test_a_rare_class_keeps_its_share() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=2400) > 2.0
    P = TabularClassifier().fit(X[:400], y[:400]).predict_proba(X[400:])[:, 1]
    assert 0.02 < y[:400].mean() < 0.06 and abs(P.mean() - y[:400].mean()) < 0.01
    assert log_loss(y[400:], P) < 0.7 * log_loss(y[400:], np.full(2000, y[:400].mean()))


@pytest.mark.slow
def test_a_rare_class_at_the_end_of_a_column_is_learnt_beside_others(tmp_path: Path) -> None:
    """By one set of length scales, with scores that are cut off among its rows, the loss is .256."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1240, 3))
    y = (np.sin(3 * X[:, 0]) + X[:, 1] > 0).astype(int)
    y[X[:, 2] > 1.9] = 2
    model = TabularClassifier().fit(X[:240], y[:240])
    P = model.predict_proba(X[240:])
    assert (y[:240] == 2).sum() == 2 and model.encoder_.farthest > 2.8
    assert log_loss(y[240:], P) < 0.21
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict_proba(X[240:]), P)


def test_classes_of_similar_size_need_no_second_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []
    learn = TabularClassifier._learn
    monkeypatch.setattr(TabularClassifier, "_learn", lambda *given: searches.append(given) or learn(*given))
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3
    TabularClassifier().fit(X, y)
    assert len(searches) == 1
    TabularClassifier().fit(X, np.where(np.arange(40) < 4, 2, y % 2))
    assert len(searches) == 3


def test_the_noise_of_labels_has_a_lower_bound() -> None:
    """Without one the process goes through every label of a table with many columns and few rows."""
    X = np.random.default_rng(0).normal(size=(60, 20))
    assert TabularClassifier().fit(X, X[:, 0] > 0).noise_ >= 0.03 * (1 - 1e-12)


SHORT = TRAIN[:50]
AWKWARD = {
    "one column": (SHORT[["size"]], TWO[:50]),
    "two rows of each class": (SHORT[:4], ["a", "b", "a", "b"]),
    "booleans and dates": (
        SHORT.assign(old=SHORT["size"] > 80, sold=pd.date_range("2020-01-01", periods=50, freq="11D")),
        TWO[:50],
    ),
    "two rows": (SHORT[:2], ["a", "b"]),
    "constant columns": (SHORT.assign(size=1.0), TWO[:50]),
    "nothing but constants": (SHORT[["size"]].assign(size=1.0), TWO[:50]),
    "a column that is missing": (SHORT.assign(size=np.nan), TWO[:50]),
    "repeated rows": (pd.concat([SHORT[:10]] * 5), np.tile(TWO[:10], 5)),
    "repeated rows that disagree": (pd.concat([SHORT[:10]] * 5), RNG.choice(["a", "b"], 50)),
    "huge values": (SHORT.assign(size=SHORT["size"] * 1e140), TWO[:50]),
    "a class of one row": (SHORT, np.where(np.arange(50) == 3, "rare", TWO[:50])),
    "text": (SHORT.assign(note=[f"number {i} in the list" for i in range(50)]), TWO[:50]),
    "each row a class": (SHORT[:8], np.arange(8)),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_tables(name: str) -> None:
    X, y = AWKWARD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = TabularClassifier().fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(y, P, labels=model.classes_) <= log_loss(y, np.tile(P.mean(axis=0), (len(X), 1))) + 0.01
    assert np.isfinite(model.relevance_).all()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(110, "a"), "at least two classes"),
        (np.where(np.arange(110) == 3, None, TWO[:110]), "1 labels are missing"),
        (np.where(np.arange(110) == 3, np.nan, 1.0), "NaN"),
        (RNG.normal(size=110), "continuous"),
        (TWO[:80], "110 rows and y has 80 labels"),
    ],
)
def test_labels_that_cannot_be_used(y: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        TabularClassifier().fit(TRAIN, y)


def test_new_categories() -> None:
    P = fitted(2).predict_proba(TEST.assign(town="Rom"))
    assert np.isfinite(P).all()


@pytest.mark.slow
def test_rows_that_are_left_out_are_of_all_classes_in_their_shares() -> None:
    y = np.where(np.arange(110) == 3, "rare", TWO[:110])
    with pytest.warns(MercerWarning, match="learns from 30 of the 110 rows"):
        model = TabularClassifier(max_rows=30).fit(TRAIN, y)
    kept = model.model_.predict(model.model_.X_fit_)
    assert model.n_rows_ == 30 == len(kept) and len(model.classes_) == 3
    assert abs(np.mean(kept == "cheap") - np.mean(y == "cheap")) < 0.1
    assert model.certificate_.storage.endswith("30 of 110 rows")


def test_copies_and_files(tmp_path: object) -> None:
    for model in (fitted(2), fitted(3)):
        mercer.save(model, f"{tmp_path}/model.mercer")
        for twin in (pickle.loads(pickle.dumps(model)), mercer.load(f"{tmp_path}/model.mercer")):
            np.testing.assert_array_equal(twin.predict_proba(TEST), model.predict_proba(TEST))
        assert not hasattr(clone(model), "model_")


@pytest.mark.parametrize("names", [["no", "yes"], pytest.param(["a", "b", "c"], marks=pytest.mark.slow)])
def test_a_gap_that_is_new_is_averaged_over(names: list[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.array(names)[np.digitize(X[:, 0], [0.0] if len(names) == 2 else [-0.5, 0.5])]
    model = TabularClassifier().fit(X, y)
    new = X[:40].copy()
    new[:20, 0] = np.nan
    P = model.predict_proba(new)
    shares = np.array([np.mean(y == name) for name in names])
    assert np.abs(P[:20] - shares).max() < 0.3
    np.testing.assert_array_equal(model.predict(new), np.array(names)[P.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), P, atol=1e-12)
    values = model.decision_function(new)
    chosen = (values > 0).astype(int) if len(names) == 2 else values.argmax(axis=1)
    np.testing.assert_array_equal(np.array(names)[chosen], model.predict(new))
    # As many rows: BLAS may round products of another number of rows differently.
    np.testing.assert_array_equal(P[20:], model.predict_proba(X[:40])[20:])


@pytest.mark.parametrize("seed", [2, 6])
def test_few_rows_of_a_class_that_nothing_tells_are_no_worse_than_the_shares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2100, 4))
    y = (rng.random(2100) < 0.05).astype(int)
    P = TabularClassifier().fit(X[:100], y[:100]).predict_proba(X[100:])
    shares = DummyClassifier(strategy="prior").fit(X[:100], y[:100]).predict_proba(X[100:])
    assert log_loss(y[100:], P) < log_loss(y[100:], shares) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 12])
def test_a_handful_of_rows_is_no_worse_than_the_shares(n: int) -> None:
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500 + n, 2))
        y = (rng.random(500 + n) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
        losses.append(log_loss(y[n:], TabularClassifier().fit(X[:n], y[:n]).predict_proba(X[n:])))
    assert max(losses) < 0.75 and np.mean(losses) < 0.6


@pytest.mark.parametrize("words", [["true", "false"], ["True", "False"]])
def test_booleans_are_those_that_their_text_names(words: list[str]) -> None:
    text, y = pd.DataFrame({"paid": words * 20}), np.arange(40) % 2
    typed = text == words[0]
    for fitted in (text, typed):
        model = TabularClassifier().fit(fitted, y)
        assert model.score(text, y) == model.score(typed, y) == model.score(typed.astype(object), y) == 1.0
        assert [model.predict(text[row : row + 1])[0] for row in range(2)] == [0, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([Graph([(0, 1)], ["C", "O"])] * 20, r"row 0 of X is Graph\(n=2, .*use mercer.SVC or .*WeisfeilerLehman\(3\)"),
        (["some words", "other ones"] * 10, r"row 0 of X is 'some words'\. .*pass pandas.DataFrame\({\"text\": X}\)"),
        ([{"a": 1}] * 20, "For other objects, use mercer.SVC or mercer.SVR with a kernel of mercer.kernels"),
        (np.zeros((20, 3, 4)), "dim 3.*series, trees, graphs, images.*pass a matching kernel"),
    ],
)
def test_rows_that_are_no_table_say_what_to_do(rows: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TabularClassifier().fit(rows, np.arange(20) % 2)


def test_what_is_advised_for_rows_that_are_no_table_runs() -> None:
    y = np.arange(40) % 2
    texts = [f"{word} {row % 7}" for row, word in zip(range(40), ["some words", "other ones"] * 20)]
    assert TabularClassifier().fit(pd.DataFrame({"text": texts}), y).score(pd.DataFrame({"text": texts}), y) > 0.9
    graphs = [Graph([(0, 1), (1, 2)], ["C", "O", "CN"[row % 2]]) for row in range(40)]
    model = mercer.SVC(kernel=mercer.kernels.WeisfeilerLehman(3).normalized()).fit(graphs, y)
    assert model.score(graphs, y) == 1.0


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_factors_of_classes_are_those_of_their_probabilities(classes: int, tmp_path: Path) -> None:
    y = (TWO if classes == 2 else THREE)[:110]
    plain = fitted(classes)
    costs = dict(zip(plain.classes_, [8.0, 1.0, 0.5], strict=False))
    model = TabularClassifier(class_weight=costs).fit(TRAIN, y)
    expected = plain.predict_proba(TEST) * list(costs.values())
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(TEST), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(TEST), np.log(expected), atol=1e-9)
    np.testing.assert_array_equal(model.predict(TEST), model.classes_[expected.argmax(axis=1)])
    assert (model.predict(TEST) != plain.predict(TEST)).any()
    values = model.decision_function(TEST)
    odds = np.log(expected[:, 1] / expected[:, 0])
    np.testing.assert_allclose(values if classes == 2 else values[:, 1] - values[:, 0], odds, atol=1e-9)
    # Among them rows with a gap where training rows had none.
    gap = TEST[:3].assign(nothing=np.nan)
    averaged = plain.predict_proba(gap) * list(costs.values())
    averaged /= averaged.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(gap), averaged, atol=1e-12)
    np.testing.assert_array_equal(model.predict(gap), model.classes_[averaged.argmax(axis=1)])
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict_proba(TEST), model.predict_proba(TEST))


def test_balanced_classes_count_alike_and_none_is_as_before() -> None:
    y = np.where(np.arange(110) % 11 == 0, "rare", "often")
    model = TabularClassifier(class_weight="balanced").fit(TRAIN, y)
    np.testing.assert_allclose(model.class_weight_, [0.55, 5.5])
    weighted = clone(model).fit(TRAIN, y, sample_weight=np.where(y == "rare", 2.0, 1.0))
    np.testing.assert_allclose(weighted.class_weight_, [0.6, 3.0])
    assert not hasattr(model.set_params(class_weight=None).fit(TRAIN, y), "class_weight_")


@pytest.mark.parametrize("factors", ["equal", {"cheap": 1.0, "dear": 0.0}, {"cheap": 1.0, "other": 2.0}, 3])
def test_factors_that_are_none_are_refused_before_any_work(factors: Any) -> None:
    with pytest.raises(ParameterError, match="class_weight"):
        TabularClassifier(class_weight=factors).fit(TRAIN, TWO[:110])
