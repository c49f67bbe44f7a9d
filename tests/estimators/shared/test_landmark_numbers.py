"""``n_landmarks="auto"``: what is tried, where it ends, and the fit to all rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import (
    SVC,
    SVR,
    Blocks,
    KernelLogisticRegression,
    KernelMachine,
    KernelPCA,
    KernelQuantileRegression,
    KernelRidge,
    config,
)
from mercer._errors import DataError, MemoryBudgetError, MercerError, ParameterError
from mercer.estimators.shared import landmark_numbers
from mercer.estimators.shared.landmark_path import LandmarkPath
from mercer.kernels import RBF, Spectrum
from mercer.solvers.restricted.least_squares import RestrictedCG

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1500, 2))
Y = np.sin(3 * X).sum(axis=1) + 0.1 * RNG.normal(size=1500)


def ridge(**options: Any) -> KernelRidge:
    defaults = {"kernel": RBF(0.5), "approximation": "nystroem", "n_landmarks": "auto", "random_state": 0}
    return KernelRidge(options.pop("alpha", 0.1), **{**defaults, **options})


def test_the_number_is_doubled_until_the_loss_no_longer_falls() -> None:
    model = ridge().fit(X, Y)
    path = model.landmark_path_
    m = path.n_landmarks
    np.testing.assert_array_equal(m[1:], 2 * m[:-1])
    falls = path.losses[:-1] - path.losses[1:]
    enough = falls > np.maximum(path.standard_errors[1:], 1e-3 * path.losses[1:])
    assert enough[:-1].all() and not enough[-1] and path.ending == "no gain"
    assert model.dual_coef_.shape == (path.chosen,) == (m[-2],) and model.n_landmarks == "auto"
    # The answer is that of a fit to all rows with this number.
    alone = ridge(n_landmarks=path.chosen, random_state=np.random.RandomState(0).randint(2**31 - 1)).fit(X, Y)
    np.testing.assert_array_equal(model.landmark_indices_, alone.landmark_indices_)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-2)
    assert model.certificate_.relative_gap <= model.tol and not hasattr(alone, "landmark_path_")


def test_losses_are_those_of_rows_that_were_held_out() -> None:
    noise = np.random.default_rng(1).normal(size=1500)
    model = ridge(alpha=1e-3).fit(X, noise)
    # Noise alone cannot be predicted: on the rows of the fit errors are smaller.
    assert model.landmark_path_.chosen == 100
    assert model.landmark_path_.losses.min() > 1.05 * ((model.predict(X) - noise) ** 2).mean()


def test_each_fit_goes_on_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    won = []
    original = RestrictedCG.solve

    def recorded(self: Any, problem: Any, start: Any = None) -> Any:
        nothing = problem.residual(np.zeros((problem.rows.shape[1], 1)))[1].item()
        won.append(1.0 if start is None else problem.residual(start)[1].item() / nothing)
        return original(self, problem, start)

    monkeypatch.setattr(RestrictedCG, "solve", recorded)
    model = ridge(kernel=RBF(0.25)).fit(X, Y)
    assert len(won) == len(model.landmark_path_.n_landmarks) + 1 >= 3
    assert won[0] == 1.0 and max(won[1:]) < 0.5
    model.set_params(n_landmarks=50).fit(X, Y)
    assert won[-1] == 1.0


@pytest.mark.parametrize(
    "learner",
    [KernelLogisticRegression(kernel=RBF(0.5)), SVC(kernel=RBF(0.5)), SVR(kernel=RBF(0.5))],
    ids=lambda learner: type(learner).__name__,
)
def test_every_learner(learner: Any) -> None:
    target: Any = Y if isinstance(learner, SVR) else np.digitize(Y, [-0.5, 0.5])
    learner.set_params(approximation="nystroem", n_landmarks="auto", random_state=0, tol=1e-2)
    if isinstance(learner, SVC):
        target = np.where(Y > 0, "a", "b")
    model = learner.fit(X[:700], target[:700])
    path = model.landmark_path_
    assert isinstance(path, LandmarkPath) and path.losses[-1] < path.losses[0] * 1.02
    assert model.score(X[700:], target[700:]) > 0.75
    assert f"{path.chosen:9d}" in str(path) and "chosen" in str(path)


@pytest.mark.parametrize("name", ["huber", "hinge", "logistic", "poisson"])
def test_machines_are_judged_by_their_own_loss(name: str) -> None:
    counts = np.random.default_rng(1).poisson(np.exp(0.5 * Y[:300]))
    targets: Any = {"huber": Y[:300], "poisson": counts}.get(name, np.digitize(Y[:300], [-0.5, 0.5]))
    options: dict[str, Any] = {"kernel": RBF(0.5), "approximation": "nystroem", "random_state": 0, "tol": 1e-2}
    model = KernelMachine(name, alpha=0.3, n_landmarks="auto", **options).fit(X[:300], targets)
    path = model.landmark_path_
    assert path.chosen == model.dual_coef_.shape[1] and path.ending in ("no gain", "all rows")
    # A machine of the same number of landmarks has about this loss at rows that no fit saw.
    other = KernelMachine(name, alpha=0.3, n_landmarks=path.chosen, **options).fit(X[:240], targets[:240])
    F = other.decision_function(X[240:300]) if hasattr(other, "classes_") else other.predict(X[240:300])[:, None]
    if name == "poisson":
        F = np.log(F)
    columns = [np.where(targets[240:] == k, 1.0, -1.0) for k in range(3)] if F.shape[1] == 3 else [targets[240:] * 1.0]
    loss = sum(other.loss_.value(y, F[:, j]).mean() for j, y in enumerate(columns))
    assert path.losses.min() == pytest.approx(loss, rel=0.5)


def test_quantiles_are_judged_by_the_pinball_loss() -> None:
    options: dict[str, Any] = {"kernel": RBF(0.5), "C": 10.0, "approximation": "nystroem", "random_state": 0}
    options["tol"] = 1e-2
    one = KernelQuantileRegression(0.5, n_landmarks="auto", **options).fit(X[:300], Y[:300])
    # At the median it is half the absolute error.
    errors = np.abs(Y[300:600] - one.predict(X[300:600]))
    assert one.landmark_path_.losses.min() == pytest.approx(0.5 * errors.mean(), rel=0.4)
    two = KernelQuantileRegression([0.5, 0.9], non_crossing=False, n_landmarks="auto", **options).fit(X[:300], Y[:300])
    assert two.landmark_path_.losses[0] > one.landmark_path_.losses[0]


def test_the_path_of_few_rows_says_that_none_were_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    model = KernelMachine("huber", approximation="nystroem", n_landmarks="auto", verbose=True).fit(X[:3], Y[:3])
    text = str(model.landmark_path_) + capsys.readouterr().err
    assert "nan" not in text and "none were held out, as of fewer than 50 rows all are landmarks" in text


def test_weights_frames_words_and_several_targets() -> None:
    frame = pd.DataFrame(X[:400], columns=["a", "b"])
    weights = np.where(np.arange(400) % 4 == 0, 0.0, 2.0)
    model = ridge().fit(frame, np.column_stack([Y[:400], X[:400, 0]]), weights)
    assert model.feature_names_in_.tolist() == ["a", "b"] and model.predict(frame).shape == (400, 2)
    assert (weights[model.landmark_indices_] > 0).all()
    words = ["".join(RNG.choice(list("acgt"), 8)) for _ in range(120)]
    counts = np.array([word.count("ac") for word in words], dtype=float)
    assert ridge(kernel=Spectrum(2)).fit(words, counts).score(words, counts) > 0.9


@pytest.mark.parametrize("rows", [1, 2, 49])
def test_of_few_rows_all_are_landmarks(rows: int) -> None:
    model = ridge().fit(X[:rows], Y[:rows])
    exact = KernelRidge(0.1, kernel=RBF(0.5)).fit(X[:rows], Y[:rows])
    np.testing.assert_allclose(model.predict(X[:9]), exact.predict(X[:9]), atol=1e-5)
    assert model.landmark_path_.ending == "all rows" and len(model.landmark_path_.n_landmarks) == 1


def test_all_rows_may_be_needed_and_equal_rows_need_few() -> None:
    # Each row is far from all others, and a linear part makes every further one tell something.
    far = np.arange(300.0)[:, None]
    model = ridge(kernel=RBF(1.5), alpha=1e-3).fit(far, np.sin(far[:, 0]))
    assert model.landmark_path_.ending == "all rows" and model.X_fit_.shape[0] == 300
    same = ridge().fit(np.ones((200, 2)), Y[:200])
    assert same.X_fit_.shape[0] <= 2 and same.landmark_path_.ending == "no gain"


def test_a_path_of_one_number_without_a_gain_is_in_no_file(tmp_path: Path) -> None:
    model = ridge().fit(X[:20], Y[:20])
    model.landmark_path_ = replace(model.landmark_path_, ending="no gain")
    # A model is read again before it is written, by the same rules.
    with pytest.raises(MercerError, match="a path without a gain has one number"):
        mercer.save(model, tmp_path / "m.mercer")


def test_the_end_of_memory_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    original = KernelRidge._fit_on_landmarks

    def limited(self: Any, *arguments: Any) -> Any:
        if self.n_landmarks > 200:
            raise MemoryBudgetError("too many")
        return original(self, *arguments)

    monkeypatch.setattr(KernelRidge, "_fit_on_landmarks", limited)
    model = ridge(kernel=RBF(0.25)).fit(X, Y)
    assert model.landmark_path_.ending == "memory" and model.landmark_path_.chosen == 200
    monkeypatch.setattr(landmark_numbers, "_FIRST", 400)
    with pytest.raises(MemoryBudgetError):
        ridge().fit(X, Y)


def test_it_is_the_same_each_time_and_is_saved(tmp_path: Any) -> None:
    models = []
    for jobs in (1, 2):
        with config(n_jobs=jobs):
            models.append(ridge().fit(X[:500], Y[:500]))
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    mercer.save(models[0], tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert str(again.landmark_path_) == str(models[0].landmark_path_)


def test_verbose_says_what_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    SVR(kernel=RBF(0.5), approximation="nystroem", n_landmarks="auto", verbose=True).fit(X[:300], Y[:300])
    assert "mercer: 100 landmarks: held-out loss" in capsys.readouterr().err


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="landmarks are given already"):
        ridge(landmarks=X[:9]).fit(X, Y)
    with pytest.raises(ParameterError, match="a checkpoint is that of one"):
        ridge(checkpoint="run.checkpoint").fit(X, Y)
    with pytest.raises(DataError, match="needs targets"):
        ridge().fit(Blocks(X))
    with pytest.raises(DataError, match="leave out y"):
        ridge().fit(Blocks(X, Y), Y)
    with pytest.raises(ParameterError, match="or 'auto'"):
        ridge(n_landmarks="many").fit(X, Y)
    with pytest.raises(ParameterError, match="a whole number of at least 1, but"):
        KernelPCA(2, kernel=RBF(0.5), approximation="nystroem", n_landmarks="auto").fit(X)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="is no number"):
        mercer.estimate(ridge(), X, Y)
    with pytest.raises((DataError, ValueError)):
        ridge().fit(X, Y[:-1])
    with pytest.raises(DataError, match="needs targets"):
        ridge().fit(X, None)
