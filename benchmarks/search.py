"""``GridSearchCV`` beside scikit-learn's search over its own or scikit-learn-intelex's estimators, with all cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import kernel_ridge, model_selection, svm
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from harness import Row, data_folder, seconds_of, tell
from mercer import SVC, GridSearchCV, KernelRidge
from search_kernels import length_scales, memory, several_kernels
from search_objects import graphs, strings
from search_without_grid import without_grid
from svm_data import SETTINGS, load, read, some_rows

try:
    from sklearnex.svm import SVC as IntelexSVC
except ImportError:
    IntelexSVC = None

TITLE = "Searches over parameters: GridSearchCV, each once, with all scores"
# Rows and parameters of a first search, which compiles.
_WARM_UP_ROWS = 600


@dataclass(frozen=True)
class Search:
    """A search: rows, targets, the grid, the folds, and how many times faster than the peer it has to be."""

    name: str
    X: np.ndarray
    y: np.ndarray
    grid: dict[str, Any]
    folds: int
    demand: float


def seconds_and_results(search: Any, case: Search) -> tuple[float, dict[str, Any]]:
    """Time one search, and return its table."""
    fitted = clone(search)
    return seconds_of(lambda: fitted.fit(case.X, case.y)), fitted.cv_results_


def compare(case: Search, ours: Any, peers: dict[str, Any]) -> list[Row]:
    """Our search beside the faster of the peers, and beside our own estimator in scikit-learn's search."""
    tell(case.name)
    options = {"cv": case.folds, "refit": False}
    few = some_rows(len(case.X), _WARM_UP_ROWS)
    contenders: dict[str, Any] = {"Mercer": GridSearchCV(ours, case.grid, **options)}
    contenders["Mercer in scikit-learn's search"] = model_selection.GridSearchCV(ours, case.grid, **options)
    for name, estimator in peers.items():
        contenders[name] = model_selection.GridSearchCV(estimator, case.grid, n_jobs=os.cpu_count(), **options)
    seconds, tables = {}, {}
    for name, search in contenders.items():
        clone(search).fit(case.X[few], case.y[few])
        seconds[name], tables[name] = seconds_and_results(search, case)
        tell(f"{case.name}: {name} {seconds[name]:.1f} s")
    fastest = min(peers, key=lambda name: seconds[name])
    rows = []
    for peer, demand in ((fastest, case.demand), ("Mercer in scikit-learn's search", 3.0)):
        apart = np.abs(tables["Mercer"]["mean_test_score"] - tables[peer]["mean_test_score"]).max()
        best = tables[peer]["mean_test_score"].max() - tables["Mercer"]["mean_test_score"].max()
        note = f"mean scores at most {apart:.1e} apart, the best {abs(best):.1e}"
        ratio = seconds[peer] / seconds["Mercer"]
        facts = {"scores_apart": float(apart), "best_apart": float(best)}
        rows.append(
            Row(case.name, peer, seconds["Mercer"], seconds[peer], f">= {demand:g}", ratio >= demand, note, facts)
        )
    return rows


def covtype(folder: Path) -> list[Row]:
    """Ten values of C, ten of gamma, five folds, on the standardised training part."""
    X, y, n = read(folder, "classification", "covtype_5000")
    grid = {"C": np.logspace(-2, 3, 10), "gamma": 2.0 ** np.linspace(-7, 2, 10)}
    case = Search("covtype_5000, 10 C x 10 gamma, 5 folds", StandardScaler().fit_transform(X[:n]), y[:n], grid, 5, 8.0)
    return compare(case, SVC(), support_vector_machines())


def several_sets(folder: Path) -> list[Row]:
    """Five values of C and of gamma, three folds, on four sets."""
    rows = []
    for name in ("letter", "usps", "magic", "a9a"):
        data, gamma = load(name, folder), SETTINGS[name].gamma
        grid = {"C": np.logspace(-1, 3, 5), "gamma": gamma * 4.0 ** np.arange(-2, 3)}
        case = Search(f"{name}, 5 C x 5 gamma, 3 folds", data.X, data.y, grid, 3, 6.0)
        rows += compare(case, SVC(), support_vector_machines())
    return rows


def ridge(folder: Path) -> list[Row]:
    """Ten penalties, ten values of gamma, five folds, 3000 rows."""
    del folder
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 10))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(3000)
    grid = {"alpha": np.logspace(-4, 2, 10), "gamma": np.logspace(-3, 0, 10)}
    case = Search("KernelRidge, n = 3000, 10 gamma x 10 alpha, 5 folds", X, y, grid, 5, 30.0)
    return compare(case, KernelRidge(kernel="rbf"), {"scikit-learn": kernel_ridge.KernelRidge(kernel="rbf")})


def support_vector_machines() -> dict[str, Any]:
    """The peers that are installed."""
    peers = {"scikit-learn": svm.SVC()}
    if IntelexSVC is not None:
        peers["scikit-learn-intelex"] = IntelexSVC()
    return peers


def _on_data(case: Callable[[Path], list[Row]]) -> Callable[[], list[Row]]:
    """The case on ``$MERCER_DATA``; without it there are no rows."""

    def run() -> list[Row]:
        folder = data_folder()
        return [] if folder is None else case(folder)

    return run


PARTS: dict[str, Callable[[], list[Row]]] = {
    "covtype": _on_data(covtype),
    "without_grid": _on_data(lambda folder: without_grid(folder, support_vector_machines())),
    "ridge": _on_data(ridge),
    "several": _on_data(several_sets),
    "strings": _on_data(strings),
    "graphs": _on_data(graphs),
    "length_scales": _on_data(length_scales),
    "several_kernels": _on_data(several_kernels),
    "memory": _on_data(memory),
}
