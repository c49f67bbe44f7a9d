"""What searches keep in memory, beside what they reserve from the budget."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold

import mercer
from mercer import SVC, GridSearchCV, KernelRidge
from mercer.engine import memory, threads
from mercer.gram.evaluated import EvaluatedGram
from mercer.selection.fold_rows import Fold, SearchData, untransformed
from mercer.selection.shared_fits import SharedFits
from mercer.solvers.svm import pairwise
from search_cases import curve, two_classes

N, FOLDS = 340, 5
RIDGE = GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]}, cv=FOLDS, refit=False)
# The matrix in float32, but not the matrices of a fit beside it.
NO_ROOM = 9 * N**2


def test_an_error_that_is_kept_keeps_no_arrays() -> None:
    arrays = []

    def fail(before: bool) -> None:
        array = np.ones(3)
        arrays.append(weakref.ref(array))
        try:
            if before:
                fail(False)
            array /= int(before)
            raise KeyError("context")
        except ValueError as error:
            raise KeyError("of") from error

    with pytest.raises(KeyError) as caught:
        fail(False)
    assert arrays[0]() is not None
    memory.release_arrays(caught.value)
    assert arrays[0]() is None and caught.value.__traceback__ is not None


def test_fits_that_found_no_room_leave_no_matrix_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    matrices: list[weakref.ref[Any]] = []
    evaluate, fit_alone = EvaluatedGram.evaluate, SharedFits._fit_alone
    alive: list[bool] = []

    def evaluated(gram: Any, stack: Any) -> EvaluatedGram | None:
        matrix = evaluate(gram, stack)
        assert matrix is not None
        # What the form returns is a view of the array that its parts keep.
        matrices.append(weakref.ref(matrix.stored_as(np.float32).base))
        return matrix

    def alone(self: SharedFits, *arguments: Any) -> Any:
        alive.append(memory._process.reserved == 0 and any(matrix() is not None for matrix in matrices))
        return fit_alone(self, *arguments)

    monkeypatch.setattr(EvaluatedGram, "evaluate", evaluated)
    monkeypatch.setattr(SharedFits, "_fit_alone", alone)
    X, y = curve(N)
    gc.disable()
    try:
        with mercer.config(memory=NO_ROOM):
            RIDGE.fit(X, y)
    finally:
        gc.enable()
    assert matrices and alive and not any(alive)


def test_a_budget_does_not_change_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pairs of classes of any size then have the solver of large ones.
    for name in ("JOINED", "PICKED_ALONG"):
        monkeypatch.setattr(pairwise, name, 512)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 5))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(900) > 0
    values: list[np.ndarray] = []

    def keep(targets: np.ndarray, decisions: np.ndarray) -> float:
        values.append(decisions)
        return 0.0

    scoring = make_scorer(keep, response_method="decision_function")
    grid = {"C": [0.1, 1.0], "gamma": [0.1]}
    search = GridSearchCV(SVC(tol=1e-8), grid, cv=KFold(3), refit=False, scoring=scoring)
    search.fit(X, y)
    usual, values = values[-6:], []
    # The matrix in float32, and one of a fold beside it.
    with mercer.config(memory=9 * 900**2):
        search.fit(X, y)
    assert search.sharing_.startswith("1 kernel matrices")
    np.testing.assert_allclose(values[-6:], usual, rtol=0, atol=1e-6)


def test_fits_run_side_by_side_where_they_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[int | None] = []
    run = threads.run

    def noted(tasks: Any, n_jobs: int | None = None) -> None:
        tasks = list(tasks)
        if tasks and getattr(getattr(tasks[0], "func", None), "__name__", "") == "_fit":
            jobs.append(n_jobs)
        run(tasks, n_jobs)

    monkeypatch.setattr(threads, "run", noted)
    X, y = two_classes(200)
    search = GridSearchCV(SVC(gamma=0.1), {"C": [0.1, 1.0]}, cv=KFold(4), refit=False, n_jobs=3)
    for room, expected in ((3, 3), (2, 2), (1, 1), (0, 1)):
        # Both forms of the matrix, and parts of 150 rows in float64.
        with mercer.config(memory=14 * 200**2 + (room * 8 * 150**2 - 2 * 200**2 if room else 0)):
            search.fit(X, y)
        assert jobs[-1] == expected


def test_the_rows_of_folds_are_copied_when_they_are_needed() -> None:
    X, y = curve(N)
    folds = tuple(Fold(k, np.flatnonzero(np.arange(N) % 5 != k), np.arange(k, N, 5)) for k in range(5))
    data = SearchData(X, y, None, N, folds)
    rows = list(untransformed(data, SVC(), None))
    np.testing.assert_array_equal(rows[2].train(), X[folds[2].train])
    assert rows[2].train() is not rows[2].train()
