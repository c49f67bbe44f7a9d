"""After ``mercer warm-up``, first calls compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mercer.cli import main
from mercer.loops import cache

_FIRST_CALLS = """
import numpy as np
from numba.core import event
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

class Compiled(event.Listener):
    def on_start(self, event):
        print("compiled", event.data["dispatcher"].py_func.__qualname__, event.data["args"])
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
import mercer
from mercer.kernels import RBF, Matern

numbers, classes = load_diabetes(return_X_y=True), load_iris(return_X_y=True)
many = load_breast_cancer(return_X_y=True)
for dtype in (np.float64, np.float32):
    for X, y in (classes, many):
        X = X.astype(dtype)
        for model in (
            mercer.SVC(), mercer.SVC(kernel="linear"), mercer.NuSVC(nu=0.1), mercer.KernelLogisticRegression(),
            mercer.GaussianProcessClassifier(),
            mercer.SVC(approximation="nystroem", n_landmarks=50),
        ):
            model.fit(X, y).predict(X)
            if hasattr(model, "predict_proba"):
                model.predict_proba(X[:5])
        mercer.GridSearchCV(mercer.SVC(), {"C": [1, 10], "gamma": [0.1, 1.0]}).fit(X, y).predict(X)
        mercer.KernelKMeans(n_clusters=3, random_state=0).fit(X).predict(X)
        mercer.KernelPCA(n_components=3, kernel="rbf").fit(X).transform(X)
        mercer.KernelNeighborsClassifier().fit(X, y).predict(X)
    X, y = numbers[0].astype(dtype), numbers[1]
    for model in (
        mercer.SVR(), mercer.KernelRidge(kernel="rbf"), mercer.KernelRidge(kernel="laplacian"),
        mercer.GaussianProcessRegressor(), mercer.GaussianProcessRegressor(Matern(nu=1.5)),
        mercer.KernelRidge(kernel="rbf", approximation="nystroem", n_landmarks=50),
    ):
        model.fit(X, y).predict(X)
    mercer.GridSearchCV(mercer.KernelRidge(kernel="rbf"), {"alpha": [0.1, 1], "gamma": [0.1, 1.0]}).fit(X, y).predict(X)
    large = np.random.default_rng(0).normal(size=(50_000, 12)).astype(dtype)
    mercer.SVC().fit(large[:2500], large[:2500, 0] > 0).predict(large)
    mercer.KernelRidge(kernel="rbf", approximation="nystroem", n_landmarks=100).fit(large, large[:, 0]).predict(large)
X, y = classes
mercer.report(mercer.SVC().fit(X, y), X, y)
mercer.report(mercer.KernelRidge(kernel="rbf").fit(*numbers), *numbers)
print("end")
"""


def _output(environment: dict[str, str], *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_after_a_warm_up_first_calls_compile_nothing(tmp_path: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    _output(environment, "-m", "mercer", "warm-up")
    (folder,) = tmp_path.iterdir()
    files = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert f"Compiled loops are in {folder} (" in _output(environment, "-m", "mercer", "warm-up", "--processes", "1")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == files
    assert _output(environment, "-W", "ignore", "-c", _FIRST_CALLS).splitlines() == ["end"]


@pytest.mark.slow
@pytest.mark.skipif(
    not (Path(cache.__file__).parent / "compiled").exists(), reason="the package carries no compiled loops"
)
def test_from_a_wheel_with_compiled_loops_first_calls_compile_nothing(tmp_path: Path) -> None:
    assert _output({"NUMBA_CACHE_DIR": str(tmp_path)}, "-W", "ignore", "-c", _FIRST_CALLS).splitlines() == ["end"]


def test_a_warm_up_that_could_keep_nothing_says_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("mercer.cli.warm_up.package_folder", lambda: (None, ""))
    assert main(["warm-up"]) == 2
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err
