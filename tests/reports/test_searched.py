"""Searches and paths."""

from __future__ import annotations

import numpy as np

import mercer
from mercer.reports.material import Material
from mercer.reports.searched import searched
from mercer.reports.subject import Subject

X = np.random.default_rng(0).normal(size=(80, 2))


def test_candidates_are_those_of_the_search() -> None:
    search = mercer.GridSearchCV(mercer.SVC(), {"C": [0.1, 1.0, 10.0], "kernel": ["rbf", "linear"]}, cv=3)
    section = mercer.report(search.fit(X, X[:, 0] * X[:, 1] > 0))["search"]
    table = section.table("The best 6 of 6 candidates")
    assert table.column("mean score") == sorted(search.cv_results_["mean_test_score"].tolist(), reverse=True)
    assert table.rows[0][table.heads.index("C")] == search.best_params_["C"]
    assert section.table("Candidates").column("score")[0] == search.best_score_


def test_a_search_without_numbers_has_no_picture() -> None:
    search = mercer.GridSearchCV(mercer.SVC(), {"kernel": ["rbf", "linear"]}, cv=3).fit(X, X[:, 0] > 0)
    section = mercer.report(search)["search"]
    assert section.figures == () and len(section.tables) == 1


def test_the_search_of_the_command_line() -> None:
    row = {"parameters": {"C": 1.0}, "score": 0.9, "error": 0.1, "lower": None, "upper": None}
    found = {
        "candidates": 3,
        "folds": 5,
        "table": [row],
        "sentence": "It is sure.",
        "stop": "done",
        "metric": "accuracy",
    }
    section = searched(Material(Subject(mercer.SVC()), 0, record={"search": found}))
    assert section.text == ("It is sure.", "done") and section.tables[0].rows == ((1.0, 0.9, 0.1, None, None),)


def test_landmarks_that_were_tried() -> None:
    model = mercer.KernelRidge(kernel="rbf", approximation="nystroem", n_landmarks="auto", random_state=0)
    model.fit(np.tile(X, (3, 1)), np.tile(X[:, 0], 3))
    table = mercer.report(model)["search"].table("Landmarks")
    assert table.column("landmarks") == model.landmark_path_.n_landmarks.tolist()
