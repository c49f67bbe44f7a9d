"""Three million flights, late by more than 15 minutes or not, from the command line, beside trees and indicators.

From hour, weekday, day of the year, distance, origin and destination; every tenth row is tested. ``MERCER_PYTHON`` is
the interpreter that runs the command, where that of the peers lacks its packages.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from harness import Row, data_folder, tell

# Demands on the command: seconds, the area under the curve, and bytes.
_SECONDS, _AUC, _BYTES = 900.0, 0.70, 6 * 2**30
_LANDMARKS = 1000
_TREES = 200
_NUMBERS, _CATEGORIES = ["hour", "weekday", "day", "distance"], ["origin", "destination"]


def _table(source: Path) -> Any:
    """The columns of a fit and the label of each flight."""
    pandas = importlib.import_module("pandas")
    flights = pandas.read_parquet(source)
    date = flights["date"].dt
    columns = {"hour": date.hour, "weekday": date.day_of_week, "day": date.day_of_year}
    table = pandas.DataFrame({name: column.astype(np.int16) for name, column in columns.items()})
    for name in ("distance", *_CATEGORIES):
        table[name] = flights[name]
    table["late"] = np.where(flights["delay"] > 15, "yes", "no")
    return table


def _by_command(path: Path, landmarks: int) -> dict[str, Any]:
    """The report of ``mercer fit``, with the seconds and the processor seconds of the process."""
    words = ["fit", path.name, "-t", "late", "--approximation", "nystroem", "--landmarks", str(landmarks), "--json"]
    before, start = os.times(), time.perf_counter()
    command = [os.environ.get("MERCER_PYTHON", sys.executable), "-m", "mercer", *words]
    done = subprocess.run(command, cwd=path.parent, stdout=subprocess.PIPE, check=True)
    seconds, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {**json.loads(done.stdout), "wall": seconds, "used": used}


def _of_trees(table: Any) -> np.ndarray | None:
    """Scores of the tested flights by gradient boosting; None where it is not installed."""
    try:
        lightgbm = importlib.import_module("lightgbm")
    except ImportError:
        tell("lightgbm is not installed")
        return None
    rows = table.astype(dict.fromkeys(_CATEGORIES, "category")).drop(columns="late")
    tested = np.arange(len(rows)) % 10 == 9
    model = lightgbm.LGBMClassifier(n_estimators=_TREES, verbose=-1).fit(rows[~tested], table["late"][~tested])
    return np.asarray(model.predict_proba(rows[tested])[:, 1])


def _of_indicators(table: Any) -> np.ndarray:
    """Scores by logistic regression on standardised numbers and indicators."""
    compose, linear = importlib.import_module("sklearn.compose"), importlib.import_module("sklearn.linear_model")
    pipeline, scaling = importlib.import_module("sklearn.pipeline"), importlib.import_module("sklearn.preprocessing")
    columns = compose.ColumnTransformer(
        [
            ("numbers", scaling.StandardScaler(), _NUMBERS),
            ("codes", scaling.OneHotEncoder(handle_unknown="ignore"), _CATEGORIES),
        ]
    )
    tested = np.arange(len(table)) % 10 == 9
    model = pipeline.make_pipeline(columns, linear.LogisticRegression(max_iter=100))
    model.fit(table[~tested], table["late"][~tested])
    return np.asarray(model.predict_proba(table[tested])[:, 1])


def flights() -> list[Row]:
    """The command, and what others make of the same rows."""
    folder = data_folder()
    source = None if folder is None else folder / "large" / "flights-3m.parquet"
    if source is None or not source.exists():
        tell("there are no flights")
        return []
    area = importlib.import_module("sklearn.metrics").roc_auc_score
    table = _table(source)
    truth = (table["late"] == "yes").to_numpy()[9::10]
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "flights.parquet"
        table.to_parquet(path, index=False)
        report = _by_command(path, _LANDMARKS)
    own = report["scores"]["KernelLogisticRegression"]
    met = own["auc"] >= _AUC and report["wall"] <= _SECONDS and report["process_peak_bytes"] <= _BYTES
    note = (
        f"AUC {own['auc']:.4f}, log loss {own['log_loss']:.4f}, {report['certificate']['iterations']} passes, "
        f"{report['used']:.0f} CPU seconds, {report['process_peak_bytes'] / 2**30:.1f} GiB; {report['kernel']}"
    )
    facts = {"auc": own["auc"], "log_loss": own["log_loss"], "cpu": report["used"]}
    case = f"flights, {report['rows']['fitted']:,} rows, {_LANDMARKS:,} landmarks, mercer fit"
    demand = f"AUC >= {_AUC:.2f}, <= {_SECONDS:g} s, 6 GiB"
    rows = [Row(case, "the clock", report["wall"], _SECONDS, demand, met, note, facts)]
    others: dict[str, Callable[[Any], np.ndarray | None]] = {
        f"LightGBM, {_TREES} trees": _of_trees,
        "logistic regression on indicators": _of_indicators,
    }
    for name, fit in others.items():
        start = time.perf_counter()
        scores = fit(table)
        seconds = time.perf_counter() - start
        if scores is not None:
            found = float(area(truth, scores))
            facts = {"auc": own["auc"], "peer_auc": found}
            note = f"AUC {own['auc']:.4f}, {name} {found:.4f}"
            rows.append(Row(case, name, report["wall"], seconds, "for comparison", True, note, facts))
    return rows
