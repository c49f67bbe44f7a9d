"""Ctrl-C during a fit over landmarks: an error, or the best function so far where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import (
    SVC,
    Blocks,
    KernelLogisticRegression,
    KernelQuantileRegression,
    KernelRidge,
    certify_landmarks,
    config,
)
from mercer.kernels import RBF
from mercer.selection import GridSearchCV, KernelSearchCV
from mercer.solvers.restricted.passes import StoredRows
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 6))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=900)
# So many that the preconditioner is of a sample of them, and a fit to the gap of 1e-10 takes some ten passes.
MORE = RNG.normal(size=(3000, 6))
MORE_Y = np.sin(2 * MORE).sum(axis=1) + 0.1 * RNG.normal(size=3000)


def ridge(**options: Any) -> KernelRidge:
    defaults = {"kernel": RBF(3.0), "approximation": "nystroem", "n_landmarks": 300, "random_state": 0}
    return KernelRidge(options.pop("alpha", 1e-3), **{**defaults, **options})


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that sets the numbers of the passes, from 1 on, in which Ctrl-C is pressed: of all, or over n rows."""
    original, state = StoredRows._sweep, {"passes": 0, "at": (), "rows": None}

    def sweep(self: Any, *arguments: Any) -> Any:
        state["passes"] += state["rows"] in (None, self.shape[0])
        if state["passes"] in state["at"]:
            raise KeyboardInterrupt
        return original(self, *arguments)

    def press(*numbers: int, rows: int | None = None) -> None:
        state.update(passes=0, at=numbers, rows=rows)

    monkeypatch.setattr(StoredRows, "_sweep", sweep)
    yield press


def test_by_default_it_is_an_error(interrupted: Any) -> None:
    interrupted(5)
    with pytest.raises(KeyboardInterrupt):
        ridge(n_landmarks=100).fit(MORE, MORE_Y)


@pytest.mark.parametrize("number", [2, 3, 6, 8])
def test_the_best_function_so_far_is_kept_with_its_true_gap(interrupted: Any, number: int) -> None:
    best = ridge(tol=1e-10, n_landmarks=100).fit(MORE, MORE_Y).certificate_
    interrupted(number)
    with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning, match="Ctrl-C ended"):
        model = ridge(tol=1e-10, n_landmarks=100).fit(MORE, MORE_Y)
    certificate = model.certificate_
    assert certificate.status is Status.interrupted and certificate.relative_gap > 1e-10
    assert certificate.dual <= best.primal <= certificate.primal < MORE_Y @ MORE_Y
    residuals = MORE_Y - model.predict(MORE)
    assert certificate.primal == pytest.approx(residuals @ residuals + 1e-3 * model.norm_[0] ** 2, rel=1e-5)
    assert "fit again" in certificate.explain()


def test_later_interruptions_leave_smaller_gaps(interrupted: Any) -> None:
    gaps = []
    for number in (3, 6):
        interrupted(number)
        with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning):
            gaps.append(ridge(tol=1e-10, n_landmarks=100).fit(MORE, MORE_Y).certificate_.gap)
    assert gaps[1] < gaps[0]


def test_before_there_is_a_function_and_pressed_twice_it_is_an_error(interrupted: Any) -> None:
    for numbers in ((1,), (5, 6)):
        interrupted(*numbers)
        with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
            ridge(tol=1e-10, n_landmarks=100).fit(MORE, MORE_Y)


@pytest.mark.parametrize("learner", [KernelLogisticRegression, SVC])
def test_classifiers(interrupted: Any, learner: Any) -> None:
    model = learner(kernel=RBF(3.0), approximation="nystroem", n_landmarks=100, random_state=0, tol=1e-8)
    interrupted(6)
    with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning, match="Ctrl-C ended"):
        model.fit(X, Y > 0)
    assert model.certificate_.status is Status.interrupted and model.fit_status_ == 1
    assert model.score(X, Y > 0) > 0.6 and model.certificate_.gap > 0
    exact = learner(kernel=RBF(3.0), tol=1e-6).fit(X, Y > 0).certificate_
    assert 0 < model.certificate_.primal - exact.primal <= certify_landmarks(model, X, Y > 0).gap
    interrupted(1)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        model.fit(X, Y > 0)


def test_some_pairs_of_classes_are_no_model(interrupted: Any) -> None:
    interrupted(6)
    model = SVC(kernel=RBF(3.0), approximation="nystroem", n_landmarks=50, random_state=0)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        model.fit(X, np.digitize(Y, [-1.0, 1.0]))


def test_some_pairs_of_classes_of_blocks_are_no_model(interrupted: Any) -> None:
    model = SVC(kernel=RBF(3.0), approximation="nystroem", n_landmarks=50, random_state=0)
    blocks = Blocks(X, np.digitize(Y, [-1.0, 1.0]), rows_per_block=450)
    # In the middle of the first pair, and between the blocks of a pass.
    interrupted(11)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        model.fit(blocks)
    interrupted(11)
    with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning, match="Ctrl-C ended"):
        model.fit(Blocks(X, Y > 0, rows_per_block=450))
    assert model.certificate_.status is Status.interrupted and model.score(X, Y > 0) > 0.6


def test_some_of_several_functions_of_blocks_are_no_model(interrupted: Any) -> None:
    model = KernelQuantileRegression([0.1, 0.9], kernel=RBF(3.0), approximation="nystroem", n_landmarks=50)
    model.set_params(non_crossing=False, tol=1e-8)
    interrupted(9)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        model.fit(Blocks(X, Y, rows_per_block=300))


def test_with_a_checkpoint_it_is_an_error_and_goes_on(interrupted: Any, tmp_path: Path) -> None:
    model, path = ridge(n_landmarks=100, checkpoint=tmp_path / "run"), tmp_path / "run"
    interrupted(12)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        model.fit(Blocks(MORE, MORE_Y, rows_per_block=1000))
    assert path.exists()
    interrupted()
    model.fit(Blocks(MORE, MORE_Y, rows_per_block=1000))
    assert model.certificate_.status is Status.converged and not path.exists()


def test_blocks_without_a_checkpoint_keep_the_best(interrupted: Any) -> None:
    interrupted(20)
    with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning):
        model = ridge(tol=1e-10, n_landmarks=100).fit(Blocks(MORE, MORE_Y, rows_per_block=1000))
    assert model.certificate_.status is Status.interrupted


def test_a_number_that_is_left_open(interrupted: Any, tmp_path: Path) -> None:
    model = ridge(n_landmarks="auto", alpha=0.1)
    interrupted(1)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    # The first number takes some passes; a later one is interrupted.
    interrupted()
    first = ridge(n_landmarks=100, alpha=0.1).fit(X[:720], Y[:720]).certificate_.iterations
    interrupted(first + 3)
    with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning):
        model.fit(X, Y)
    assert model.landmark_path_.ending == "interrupted" and model.landmark_path_.chosen == model.X_fit_.shape[0]
    assert model.certificate_.status is Status.interrupted
    np.testing.assert_array_equal(X[model.landmark_indices_], model.X_fit_)
    mercer.save(model, tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").certificate_.status is Status.interrupted


@pytest.mark.parametrize("search", [GridSearchCV, KernelSearchCV])
def test_a_search_ends_as_a_whole(interrupted: Any, search: Any) -> None:
    options = {"param_grid": {"alpha": [0.1, 1.0]}} if search is GridSearchCV else {"random_state": 0}
    searching = search(ridge(kernel="rbf", n_landmarks=50, tol=1e-10), cv=2, n_jobs=1, **options)
    # Steps of the first fit, which has a function then.
    interrupted(3)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        searching.fit(X, Y)


@pytest.mark.parametrize("search", [GridSearchCV, KernelSearchCV])
def test_the_last_fit_of_a_search_is_part_of_it(interrupted: Any, search: Any) -> None:
    model = ridge(kernel="rbf", n_landmarks=50, tol=1e-10)
    options: dict[str, Any] = {"random_state": 0, "time_budget": 0.2}
    if search is GridSearchCV:
        # Only learners without an approximation share matrices.
        model.set_params(approximation=None)
        options = {"param_grid": {"alpha": [0.1, 1.0], "approximation": ["nystroem"]}}
    searching = search(model, cv=2, n_jobs=1, **options)
    interrupted(3, rows=len(MORE))
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        searching.fit(MORE, MORE_Y)
    assert search is KernelSearchCV or not searching.sharing_.startswith("nothing")


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(mercer.MercerError, match="on_interrupt must be 'raise' or 'keep'"):
        config(on_interrupt="best")
