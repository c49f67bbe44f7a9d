"""SVC.predict against scikit-learn and scikit-learn-intelex, each with the model that it fitted itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness import Row, data_folder, in_turn, tell
from svc import KINDS
from svm_compare import Comparison, labels
from svm_data import SETTINGS, load

TITLE = "SVC.predict, RBF"
CASES = ("letter", "usps", "magic", "a9a", "ijcnn1")
LEAST = {"scikit-learn-intelex": 1.0, "scikit-learn": 8.0}
_MOST_ROWS = 20_000
_WARM_UP_ROWS = 500


def case(name: str, folder: Path) -> list[Row]:
    """A row for each peer."""
    tell(name)
    setting, data = SETTINGS[name], load(name, folder)
    options = {"C": setting.C, "gamma": setting.gamma, "tol": 1e-3, "cache_size": 1000}
    rows = {dtype: data.X_test[:_MOST_ROWS].astype(dtype) for dtype in ("float64", "float32")}
    comparison = compare_predictions(options, data.X, data.y, rows)
    ours = comparison.best("Mercer")
    out = []
    for peer, least in LEAST.items():
        label = comparison.best(peer)
        same = float(np.mean(comparison.made[ours] == comparison.made[label]))
        met = comparison.seconds[label] >= least * comparison.seconds[ours] and same >= 0.995
        note = f"{ours}; same class for {100 * same:.2f} % of the rows"
        case = f"{name}, {len(rows['float64']):,} rows"
        row = Row(
            case, label, comparison.seconds[ours], comparison.seconds[label], f">= {least:g}", met, note, {"same": same}
        )
        out.append(row)
    return out


def compare_predictions(
    options: dict[str, Any], X: np.ndarray, y: np.ndarray, rows: dict[str, np.ndarray]
) -> Comparison:
    """Fit each contender once, and time the predictions in turn: medians of 3, or one run if slow."""
    dtypes = {label: dtype for label, (_, dtype) in labels(KINDS).items()}
    models, predicted = {}, {}
    for label, (name, dtype) in labels(KINDS).items():
        models[label] = KINDS[name](**options).fit(X.astype(dtype, copy=False), y)
        tell(f"  {label} fitted")

    def predict(label: str) -> None:
        predicted[label] = models[label].predict(rows[dtypes[label]])

    def warm_up(label: str) -> None:
        models[label].predict(rows[dtypes[label]][:_WARM_UP_ROWS])

    seconds = in_turn({label: lambda label=label: predict(label) for label in models}, repeats=3, warm_up=warm_up)
    return Comparison(seconds, predicted)


def run() -> list[Row]:
    """All rows of the section; none where the data are missing."""
    folder = data_folder()
    return [] if folder is None else [row for name in CASES for row in case(name, folder)]
