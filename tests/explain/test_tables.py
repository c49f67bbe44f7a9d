"""Contributions of the columns of a table to the decisions of the default models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mercer import GaussianProcessRegressor, TabularClassifier, TabularRegressor
from mercer._errors import DataError, ParameterError
from mercer.estimators.table import TableModel
from mercer.explain import contributions
from mercer.kernels import RBF


def table(n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.uniform(40, 140, n), "town": rng.choice(["Ulm", "Zug", "Rom"], n)})
    return frame.assign(age=rng.uniform(0, 9, n), same=1.0)


FRAME = table()
PRICE = FRAME["size"] * np.where(FRAME["town"] == "Zug", 9.0, 5.0) - 30.0 * FRAME["age"]


@pytest.fixture(scope="module")
def regressor() -> Any:
    return TabularRegressor(n_jobs=1).fit(FRAME, PRICE)


def naive(model: Any, row: pd.DataFrame, column: str, value: Any) -> float:
    """The value less the mean of those with the entry of each row of the fit."""
    changed = pd.concat([row.assign(**{column: entry}) for entry in FRAME[column]], ignore_index=True)
    return float(value(row)[0] - np.mean(value(changed)))


def test_a_value_is_that_of_a_loop_over_rows_of_the_fit(regressor: Any) -> None:
    row = FRAME[3:4]
    found = contributions(regressor, row)
    assert found.method == "left out" and [part.name for part in found.parts] == ["size", "town", "age"]
    assert found.decision == pytest.approx(regressor.predict(row)[0])
    expected = [naive(regressor, row, part.name, regressor.predict) for part in found.parts]
    np.testing.assert_allclose(found.values, expected, rtol=1e-6, atol=1e-6 * np.std(PRICE))


@pytest.mark.parametrize(("classes", "weight"), [(2, None), (2, "balanced"), (3, "balanced")])
def test_a_class_is_explained_by_its_decision_value(classes: int, weight: Any) -> None:
    label = np.array(["low", "middle", "top"])[np.digitize(PRICE, np.quantile(PRICE, [0.3, 0.6][: classes - 1]))]
    model = TabularClassifier(class_weight=weight, n_jobs=1).fit(FRAME, label)
    row = FRAME[:1]
    for place, name in enumerate(model.classes_):

        def value(rows: pd.DataFrame, place: int = place) -> Any:
            decided = model.decision_function(rows)
            return (decided if place else -decided) if classes == 2 else decided[:, place]

        found = contributions(model, row, output=name)
        assert found.output.startswith(name) and found.decision == pytest.approx(value(row)[0])
        expected = [naive(model, row, part.name, value) for part in found.parts]
        np.testing.assert_allclose(found.values, expected, rtol=1e-6, atol=1e-6)
    if classes == 3:
        assert contributions(model, row).output == model.predict(row)[0]


def test_contributions_to_a_sum_over_columns_add_up_to_the_prediction_less_the_mean() -> None:
    model = TabularRegressor(n_jobs=1).fit(FRAME, PRICE)
    terms = [(2.0 * RBF(1.0)).on(places.tolist()) for places in model._places if len(places)]
    process = GaussianProcessRegressor(terms[0] + terms[1] + terms[2], alpha=0.1, optimizer=None)
    model.model_ = process.fit(model.model_.X_train_, model.model_.y_train_)
    found = contributions(model, FRAME[7:8])
    expected = model.predict(FRAME[7:8])[0] - np.mean(model.predict(FRAME))
    assert np.sum(found.values) == pytest.approx(expected)


def test_text_and_gaps_and_rows_of_an_array(regressor: Any) -> None:
    rng = np.random.default_rng(1)
    words = ["old house", "new house", "a flat", "a barn", "mill"]
    texts = [" ".join(rng.choice(words, 3)) + str(i) for i in range(30)]
    frame = FRAME.assign(text=texts)
    frame.loc[::7, "age"] = None
    model = TabularRegressor(kinds={"text": "text"}, n_jobs=1).fit(frame, PRICE)
    found = contributions(model, frame.iloc[7])
    assert found.decision == pytest.approx(model.predict(frame[7:8])[0])
    assert {part.name for part in found.parts} == {"size", "town", "age", "text"}
    # The first row of the fit without its text has the text of all rows in turn.
    changed = pd.concat([frame[7:8].assign(text=text) for text in texts])
    value = dict(zip((part.name for part in found.parts), found.values))["text"]
    assert value == pytest.approx(found.decision - np.mean(model.predict(changed)), abs=1e-6 * np.std(PRICE))
    X = FRAME[["size", "age"]].to_numpy()
    named = contributions(TabularRegressor(n_jobs=1).fit(X, PRICE), X[0])
    assert [part.name for part in named.parts] == ["x0", "x1"]


def test_a_table_model_explains_in_the_unit_of_its_target() -> None:
    model = TableModel(TabularRegressor(n_jobs=1), target="price").fit(FRAME, PRICE)
    found = contributions(model, FRAME[3:4])
    assert found.decision == pytest.approx(model.predict(FRAME[3:4])[0])
    assert found.values[0] == pytest.approx(naive(model, FRAME[3:4], "size", model.predict))


def test_what_cannot_be_explained_is_said_with_a_remedy(regressor: Any) -> None:
    with pytest.raises(DataError, match=r"has no entry in 'age', where every row of the fit has one.*Fill it in"):
        contributions(regressor, FRAME[:1].assign(age=np.nan))
    with pytest.raises(ParameterError, match=r'does not keep which rows of its fit.*use by="parts"'):
        contributions(regressor, FRAME[:1], by="rows")
    with pytest.raises(DataError, match="row must be one row"):
        contributions(regressor, FRAME[:2])
