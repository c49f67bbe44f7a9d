"""Every estimator with a decision value is explained, each of its outputs."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from estimator_table import CASES, CLUSTERERS, NEIGHBORS, RESTRICTED, TRANSFORMERS, X
from mercer import SVC, SVR, GaussianProcessRegressor, KernelLogisticRegression, KernelRidge
from mercer._errors import DataError, ParameterError
from mercer.estimators.table import TableModel
from mercer.explain import contributions
from mercer.kernels import BagOfWords, Linear, Polynomial, Spectrum

THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])]
ROW = np.array([0.3, -0.8, 1.1])


def fit(model: Any, y: Any, rows: Any = X) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, y)


def value_of(model: Any) -> float:
    """Of the function that decides: probabilities are functions of a latent value."""
    if hasattr(model, "latent_mean_and_variance"):
        return float(model.latent_mean_and_variance(ROW[None])[0][0])
    decide = getattr(model, "latent", None) or getattr(model, "decision_function", None) or model.predict
    return float(np.ravel(decide(ROW[None]))[0])


def linear(model: Any) -> Any:
    """The model with a kernel that is a sum over columns."""
    copy: Any = clone(model).set_params(kernel=Linear() + Polynomial(2))
    return copy


@pytest.mark.parametrize(("model", "y"), [*CASES, *RESTRICTED[:-1]])
def test_the_sum_is_the_decision_value(model: Any, y: Any) -> None:
    model = fit(linear(model), y)
    found = contributions(model, ROW)
    scale = np.abs(found.values).sum() + abs(found.decision) + abs(found.intercept)
    assert found.method == "exact"
    assert abs(found.sum - found.decision) <= 1e-10 * scale
    assert abs(found.decision - value_of(model)) <= 1e-9 * scale
    by_rows = contributions(model, ROW, by="rows")
    assert abs(by_rows.sum - found.decision) <= 1e-9 * (np.abs(by_rows.values).sum() + abs(found.decision))


@pytest.mark.parametrize(("model", "y"), [*TRANSFORMERS, *CLUSTERERS, *NEIGHBORS])
def test_models_without_a_decision_value_are_named(model: Any, y: Any) -> None:
    with pytest.raises(ParameterError, match=type(model).__name__):
        contributions(fit(clone(model), y), ROW)


def test_a_process_of_several_classes() -> None:
    model = fit(mercer.GaussianProcessClassifier(Polynomial(2), optimizer=None, multi_class="multinomial"), THREE)
    for label, value in zip(model.classes_, model.latent_mean_and_variance(ROW[None])[0][0], strict=True):
        assert contributions(model, ROW, output=label).sum == pytest.approx(value, rel=1e-9)
    split = fit(mercer.GaussianProcessClassifier(Polynomial(2), optimizer=None, multi_class="one_vs_rest"), THREE)
    with pytest.raises(ParameterError, match="estimators_"):
        contributions(split, ROW)
    part = split.estimators_[0]
    assert contributions(part, ROW).sum == pytest.approx(value_of(part), rel=1e-9)


def test_every_pair_of_classes() -> None:
    model = SVC(kernel=Polynomial(2), decision_function_shape="ovo").fit(X, THREE)
    values = model.decision_function(ROW[None])[0]
    for (first, second), value in zip(combinations(model.classes_.tolist(), 2), values, strict=True):
        found = contributions(model, ROW, output=(first, second))
        assert found.output == f"{first} against {second}"
        assert found.sum == pytest.approx(value, abs=1e-10) and found.decision == pytest.approx(value, abs=1e-10)
        assert contributions(model, ROW, output=(second, first)).sum == pytest.approx(-value, abs=1e-10)


@pytest.mark.parametrize("row", X[:12])
def test_the_predicted_class_is_explained_against_its_closest_rival(row: Any) -> None:
    model = SVC(kernel=Polynomial(2), decision_function_shape="ovo").fit(X, THREE)
    found = contributions(model, row)
    predicted, _, rival = found.output.partition(" against ")
    assert predicted == model.predict(row[None])[0]
    against = [
        contributions(model, row, output=(predicted, other)).sum for other in model.classes_ if other != predicted
    ]
    assert found.sum == pytest.approx(min(against)) and rival in model.classes_


def test_every_class_of_a_multinomial_model() -> None:
    model = KernelLogisticRegression(kernel=Polynomial(2)).fit(X, THREE)
    values = model.decision_function(ROW[None])[0]
    for label, value in zip(model.classes_, values, strict=True):
        found = contributions(model, ROW, output=label)
        assert found.output == label and found.sum == pytest.approx(value, abs=1e-10)
    assert contributions(model, ROW).output == model.predict(ROW[None])[0]


def test_the_first_of_two_classes_has_the_other_sign() -> None:
    model = SVC(kernel=Linear()).fit(X, X[:, 0] > 0)
    one, other = contributions(model, ROW), contributions(model, ROW, output=False)
    assert (one.output, other.output) == ("True against False", "False against True")
    assert np.array_equal(one.values, -other.values) and one.intercept == -other.intercept


def test_every_target() -> None:
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    model = KernelRidge(0.1, kernel=Polynomial(2)).fit(X, Y)
    for target, value in enumerate(model.predict(ROW[None])[0]):
        assert contributions(model, ROW, output=target).sum == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("options", [{}, {"normalize_y": True}, {"mean": "constant"}, {"mean": "linear"}])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_mean_of_a_process(options: dict[str, Any], targets: int) -> None:
    Y = 5.0 + np.column_stack([X[:, 0], X[:, 1] ** 2])[:, :targets]
    kernel = 1.0 * Polynomial(2) + mercer.kernels.White(0.1)
    model = fit(GaussianProcessRegressor(kernel, optimizer=None, **options), Y if targets > 1 else Y[:, 0])
    for target, value in enumerate(np.ravel(model.predict(ROW[None]))):
        found = contributions(model, ROW, output=target)
        assert found.sum == pytest.approx(value, rel=1e-9) and found.decision == pytest.approx(value, rel=1e-9)
    terms = {part.term for part in found.parts}
    assert ("mean function" in terms) == (options.get("mean") == "linear")


def test_a_pipeline_and_a_search_are_looked_into() -> None:
    y = X[:, 0] > 0
    pipeline = make_pipeline(StandardScaler(), SVC(kernel=Linear()))
    search = mercer.GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=2).fit(X, y)
    found = contributions(search, ROW)
    assert found.sum == pytest.approx(search.decision_function(ROW[None])[0], abs=1e-10)
    assert [part.name for part in found.parts] == ["x0", "x1", "x2"]
    text = make_pipeline(SVC(kernel=Spectrum(2))).fit(["abab", "bcbc"], [0, 1])
    assert contributions(text, "abc").sum == pytest.approx(text.decision_function(["abc"])[0], abs=1e-12)


def test_columns_have_the_names_of_the_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "size", "mass"])
    model = SVR(kernel=Linear().on(["mass"]) + Polynomial(2).on(["age"])).fit(frame, X[:, 0])
    for row in (frame.iloc[:1], frame.iloc[0]):
        found = contributions(model, row)
        assert found.sum == pytest.approx(model.predict(frame.iloc[:1])[0], abs=1e-10)
        assert [(part.name, part.places) for part in found.parts if part.kind != "constant"] == [
            ("mass", (2,)),
            ("age", (0,)),
            ("age^2", (0,)),
        ]


def test_the_model_of_a_table_is_explained_in_the_unit_of_its_target() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": X[:, 0], "town": np.where(X[:, 1] > 0, "Ulm", "Zug")})
    model = TableModel(KernelRidge(0.1, kernel="linear"), target="price").fit(frame, 1000.0 + 100.0 * X[:, 0])
    found = contributions(model, frame.iloc[:1])
    assert found.sum == pytest.approx(model.predict(frame.iloc[:1])[0], rel=1e-10)
    assert found.parts[0].name == "size" and any("town" in part.name for part in found.parts)


def test_a_column_of_text_beside_numbers() -> None:
    rows = [[1.0, "a free prize"], [2.0, "lunch at home"], [0.0, "free lunch"], [5.0, "at home"]]
    kernel = Linear().on([0]) + BagOfWords().on([1])
    model = SVC(kernel=kernel).fit(rows, [1, 0, 1, 0])
    found = contributions(model, [2.0, "free at last"])
    assert found.sum == pytest.approx(model.decision_function([[2.0, "free at last"]])[0], abs=1e-12)
    assert ("free", (0, 1, 2, 3)) in [(part.name, part.places) for part in found.parts]


def test_sparse_rows_have_the_parts_of_dense_ones() -> None:
    sp = pytest.importorskip("scipy.sparse")
    model = SVC(kernel="linear").fit(sp.csr_matrix(X), X[:, 0] > 0)
    row = sp.csr_matrix(np.where(ROW < 0, 0.0, ROW)[None])
    found = contributions(model, row)
    assert [part.places for part in found.parts] == [(0,), (2,)]
    assert found.sum == pytest.approx(model.decision_function(row)[0], abs=1e-10)
    curved = SVC(kernel="rbf").fit(sp.csr_matrix(X), X[:, 0] > 0)
    found = contributions(curved, row)
    without = row.toarray()
    without[0, 2] = 0.0
    difference = curved.decision_function(row) - curved.decision_function(sp.csr_matrix(without))
    assert found.method == "left out" and found.values[1] == pytest.approx(difference[0], abs=1e-10)


def test_a_precomputed_kernel_has_rows_alone() -> None:
    K = X @ X.T
    model = SVC(kernel="precomputed").fit(K, X[:, 0] > 0)
    found = contributions(model, K[4], by="rows")
    assert found.sum == pytest.approx(model.decision_function(K[4:5])[0], abs=1e-10)
    assert {part.places[0] for part in found.parts} <= set(model.support_.tolist())
    with pytest.raises(ParameterError, match='by="rows"'):
        contributions(model, K[4])


def test_an_unfitted_model_and_what_is_no_model() -> None:
    with pytest.raises(NotFittedError):
        contributions(SVC(), ROW)
    for wrong in (SVC, 3, "SVC"):
        with pytest.raises(ParameterError, match="must be a fitted estimator"):
            contributions(wrong, ROW)


@pytest.mark.parametrize(
    ("row", "message"),
    [(X[:2], "row must be one row"), ("text", "."), (ROW[:2], "2 features"), ([np.nan] * 3, "NaN"), (3.0, ".")],
)
def test_a_row_of_a_wrong_kind(row: Any, message: str) -> None:
    model = SVC().fit(X, X[:, 0] > 0)
    with pytest.raises((DataError, ValueError, TypeError), match=message):
        contributions(model, row)


def test_a_row_that_is_no_string() -> None:
    model = SVC(kernel=Spectrum(2)).fit(["abab", "bcbc"], [0, 1])
    with pytest.raises(DataError, match="string"):
        contributions(model, 3.5)
    with pytest.raises(DataError, match="string"):
        contributions(model, mercer.Graph(n=2))


@pytest.mark.parametrize("output", [2, -1, True, "none", ("ash", "elm"), 1.5])
def test_an_output_that_does_not_exist(output: Any) -> None:
    Y = np.column_stack([X[:, 0], X[:, 1]])
    with pytest.raises(ParameterError, match="from 0 to 1"):
        contributions(KernelRidge().fit(X, Y), ROW, output=output)


@pytest.mark.parametrize("output", ["ash", ("ash",), ("ash", "ash"), ("ash", "fir"), 0])
def test_a_pair_that_does_not_exist(output: Any) -> None:
    with pytest.raises(ParameterError, match="output must be"):
        contributions(SVC().fit(X, THREE), ROW, output=output)


def test_by_is_checked() -> None:
    with pytest.raises(ParameterError, match="by must be"):
        contributions(SVC().fit(X, X[:, 0] > 0), ROW, by="columns")  # type: ignore[arg-type]
