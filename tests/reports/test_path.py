"""Paths: their quantities and the place of the model, and errors on rows that the path has not seen alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer._errors import ParameterError

X = np.random.default_rng(0).normal(size=(120, 2))
TARGET = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=120)
SIDES = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")


@pytest.fixture(scope="module")
def machines() -> Any:
    return mercer.svm_path(X[:80], SIDES[:80], [10.0, 0.1, 1.0])


def test_errors_on_held_out_rows_are_those_of_all_models(machines: Any) -> None:
    report = mercer.report(machines[2], X[80:], SIDES[80:], X_train=X[:80], y_train=SIDES[:80], path=machines)
    section = report["path"]
    table = section.table("Values along the path")
    errors = [1 - machines[i].score(X[80:], SIDES[80:]) for i in (1, 2, 0)]
    assert table.column("C") == [0.1, 1.0, 10.0] and section.fact("C of this model") == 1.0
    np.testing.assert_allclose(table.column("error rate"), errors)
    assert section.fact("C of the least error rate") == table.column("C")[int(np.argmin(errors))]
    assert section.text[0].startswith("SVC along C: 3 fits in ")
    assert "40 rows held out from the fit" in section.text[1] and "flatter a value" in section.text[1]


def test_rows_of_the_fit_give_no_errors(machines: Any) -> None:
    for rows in ((), (X[:80], SIDES[:80])):
        section = mercer.report(machines[0], *rows, path=machines)["path"]
        assert section.table("Values").heads == ("C", "support vectors", "relative gap")
        assert section.facts == (("C of this model", 10.0),) and len(section.text) == 1


def test_criteria_of_a_ridge_path_and_its_ends() -> None:
    path = mercer.ridge_path(X, TARGET, [1e-3, 1e-1, 1e1, 1e3], kernel="rbf")
    section = mercer.report(path.best(), path=path)["path"]
    for quantity, which in (("leave-one-out error", "least"), ("GCV", "least"), ("log evidence", "greatest")):
        values = section.table("Values").column(quantity)
        best = (max if which == "greatest" else min)(values)
        assert section.fact(f"alpha of the {which} {quantity}") == path.alphas[values.index(best)]
    assert section.fact("alpha of this model") == path.best().alpha == 0.1 and len(section.text) == 1
    half = mercer.ridge_path(X, TARGET, [1e1, 1e3], kernel="rbf")
    text = mercer.report(half[1], path=half)["path"].text
    assert "The least GCV is at an end of the path: values of alpha beyond it may be better." in text


def test_the_page_draws_the_path_and_marks_the_model(machines: Any) -> None:
    report = mercer.report(machines[0], X[80:], SIDES[80:], path=machines)
    (figure,) = report["path"].figures
    drawing = figure.svg()
    assert all(f">{word}<" in drawing for word in ("this model", "support vectors", "error rate", "C"))
    assert 'id="path"' in report.to_html() and "path" not in mercer.report(machines[0])


def test_several_targets_and_a_penalty_for_each() -> None:
    targets = np.column_stack([TARGET, X[:, 1]])
    path = mercer.ridge_path(X[:80], targets[:80], [0.01, 1.0], kernel="rbf")
    model = mercer.KernelRidge([0.1, 1.0], kernel="rbf").fit(X[:80], targets[:80])
    section = mercer.report(model, X[80:], targets[80:], path=path)["path"]
    errors = [np.square(one.predict(X[80:]) - targets[80:]).sum(axis=1).mean() for one in path]
    np.testing.assert_allclose(section.table("Values").column("mean squared error"), errors)
    assert section.fact("alpha of this model") is None and "this model" not in section.figures[0].svg()


def test_the_model_may_be_a_pipeline_around_a_model_of_the_path() -> None:
    scaler = StandardScaler().fit(X[:80])
    path = mercer.svm_path(scaler.transform(X[:80]), SIDES[:80], [0.1, 1.0])
    model = make_pipeline(scaler, mercer.SVC(C=1.0)).fit(X[:80], SIDES[:80])
    table = mercer.report(model, X[80:], SIDES[80:], path=path)["path"].table("Values")
    assert table.column("error rate")[1] == pytest.approx(1 - model.score(X[80:], SIDES[80:]))


def test_what_is_not_the_path_of_the_model(machines: Any) -> None:
    with pytest.raises(ParameterError, match=r"choose it, .*mercer.report\(path\[0\], X, y, path=path\)"):
        mercer.report(machines, X, SIDES)
    with pytest.raises(ParameterError, match=r"path.best\(\)"):
        mercer.report(mercer.ridge_path(X, TARGET, [1.0]))
    with pytest.raises(ParameterError, match="path must come from mercer"):
        mercer.report(machines[0], path=machines.models)
    with pytest.raises(ParameterError, match="path has models of the class SVC, but the model is KernelRidge"):
        mercer.report(mercer.KernelRidge().fit(X, TARGET), path=machines)
