"""Ordered classes: errors on the sets of ORCA with their 30 hold-outs, beside published ones.

For every hold-out C and gamma, 10^-3 to 10^3 each, are chosen on its training part by five folds (stratified, seed 0):
for the mean absolute error (MAE) by that, for the share of wrong classes (MZE) by that. Columns are standardised on the
training part. Everything is as the estimator has it by default: logistic link, most probable class. Distances are
computed once for a hold-out; a path over C starts each fit from the last. The published figures are those of ORCA
(Sanchez-Monedero, Gutierrez and Perez-Ortiz, "ORCA: A Matlab/Octave toolbox for ordinal regression", JMLR 20, 2019)
over the same hold-outs, from its tutorial; for the other sets there is the proportional odds model without a penalty,
computed here. The Gaussian process chooses its hyper-parameters by the evidence, without folds.
"""

from __future__ import annotations

import csv
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from harness import Row, data_folder, tell
from mercer import GaussianProcessOrdinalRegression, KernelOrdinalRegression, PrecomputedGram
from mercer.data.distinct import equal_rows
from mercer.estimators.ordinal.ordered import class_probabilities, decide
from mercer.solvers.risk.cumulative_links import LINKS
from mercer.solvers.risk.ordinal import OrdinalSolver
from mercer.solvers.risk.ordinal_problem import OrdinalProblem

TITLE = "Ordered classes: MAE and MZE over 30 hold-outs, C and gamma chosen within each training part"
# With published figures over the same hold-outs, and without.
PUBLISHED, OTHERS = ("pasture", "tae", "toy"), ("contact-lenses", "ERA", "car")
GRID = 10.0 ** np.arange(-3, 4)
HOLD_OUTS, FOLDS = 30, 5
# The Gaussian process takes minutes for each hold-out of a thousand rows.
GP_ROWS = 300
LINK = LINKS["logit"]
# Classes are told apart long before this.
TOL = 1e-5


@dataclass(frozen=True)
class Split:
    """A hold-out: standardised rows and codes of both parts."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int


def splits(folder: Path, name: str) -> list[Split]:
    """The hold-outs of a data set."""
    frame = pd.read_csv(folder / "ordinal" / f"{name}.csv.gz")
    X = frame[[c for c in frame if c.startswith("x")]].to_numpy(float)
    y = frame["y"].to_numpy(int)
    y = y - y.min()
    parts = []
    for number in range(HOLD_OUTS):
        test = frame[f"test{number}"].to_numpy(bool)
        mean, deviation = X[~test].mean(axis=0), X[~test].std(axis=0)
        varies = deviation > 0
        Z = (X[:, varies] - mean[varies]) / deviation[varies]
        parts.append(Split(Z[~test], y[~test], Z[test], y[test], int(y.max()) + 1))
    return parts


def path(K: np.ndarray, rows: np.ndarray, codes: np.ndarray, K_new: np.ndarray, classes: int) -> np.ndarray:
    """Predicted codes for new rows, one line for each C of the grid; equal rows are one point."""
    first, owner = equal_rows(rows)
    present = np.unique(codes)
    gram = PrecomputedGram(np.ascontiguousarray(K[np.ix_(first, first)]))
    K_new = K_new[:, first]
    lines, start = [], None
    for C in GRID:
        problem = OrdinalProblem(gram, np.searchsorted(present, codes), np.full(len(codes), C), LINK, owner)
        solution = OrdinalSolver(tol=TOL, max_iter=200).solve(problem, start)
        start = solution.state
        p = class_probabilities(LINK, K_new @ solution.value.coefficients, solution.value.cuts)
        lines.append(present[decide(p, "mode")])
    return np.array(lines)


def nested(split: Split) -> tuple[float, float]:
    """MAE and MZE on the hold-out, C and gamma chosen on the training part for each."""
    with threadpool_limits(1), warnings.catch_warnings():
        # Classes of fewer rows than folds.
        warnings.simplefilter("ignore", UserWarning)
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(split.X, split.y))
        among = cdist(split.X, split.X, "sqeuclidean")
        across = cdist(split.X_test, split.X, "sqeuclidean")
        costs, tests = np.zeros((2, len(GRID), len(GRID))), []
        for g, gamma in enumerate(GRID):
            K = np.exp(-gamma * among)
            tests.append(path(K, split.X, split.y, np.exp(-gamma * across), split.classes))
            for a, b in folds:
                predicted = path(K[np.ix_(a, a)], split.X[a], split.y[a], K[np.ix_(b, a)], split.classes)
                costs[0, g] += np.abs(predicted - split.y[b]).sum(axis=1)
                costs[1, g] += (predicted != split.y[b]).sum(axis=1)
    by_error, by_class = (tests[best // len(GRID)][best % len(GRID)] for best in costs.reshape(2, -1).argmin(axis=1))
    return float(np.abs(by_error - split.y_test).mean()), float((by_class != split.y_test).mean())


def of(model: object, split: Split) -> tuple[float, float]:
    """MAE and MZE of a model without anything to choose."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.fit(split.X, split.y).predict(split.X_test)
    return float(np.abs(predicted - split.y_test).mean()), float((predicted != split.y_test).mean())


def over_all(function: object, *arguments: object, parts: list[Split]) -> np.ndarray:
    """Errors of all hold-outs, (30, 2), two processes at a time."""
    return np.array(Parallel(n_jobs=2)(delayed(function)(*arguments, part) for part in parts))


def published(folder: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """MAE and MZE by data set and method."""
    with open(folder / "reference" / "orca_30holdout_results.csv", encoding="utf-8") as lines:
        return {
            (row["dataset"], row["method"]): (float(row["mae_mean"]), 1.0 - float(row["acc_mean"]) / 100.0)
            for row in csv.DictReader(lines)
        }


def rows_of(folder: Path, name: str) -> list[Row]:
    """What one data set gives: a row for each error, and one for the Gaussian process where it is small."""
    parts = splits(folder, name)
    tell(f"{name}: {len(parts[0].y)} training rows")
    start = time.perf_counter()
    ours = over_all(nested, parts=parts)
    seconds = time.perf_counter() - start
    mean, error = ours.mean(axis=0), ours.std(axis=0, ddof=1) / np.sqrt(len(ours))
    if name in PUBLISHED:
        figures = published(folder)
        rival, peer = figures[name, "svorim"], "SVORIM (published)"
        beside = ", ".join(
            f"{m.upper()} {figures[name, m][0]:.3f}/{figures[name, m][1]:.3f}" for m in ("svc1v1", "pom")
        )
    else:
        pom = KernelOrdinalRegression(kernel="linear", C=1e4, max_iter=500)
        rival, peer, beside = tuple(over_all(of, pom, parts=parts).mean(axis=0)), "POM (here)", ""
    facts = {"mae": mean[0], "mze": mean[1], "peer_mae": rival[0], "peer_mze": rival[1]}
    rows = []
    for column, measure in enumerate(("MAE", "MZE")):
        note = f"{mean[column]:.4f} +- {error[column]:.4f}, {peer} {rival[column]:.4f}" + (
            f"; published MAE/MZE: {beside}" if beside else ""
        )
        met = bool(mean[column] <= rival[column] + 5e-5)
        rows.append(Row(f"{name}, {measure}", peer, seconds, None, "no larger", met, note, facts))
    if len(parts[0].y) <= GP_ROWS:
        start = time.perf_counter()
        gp = over_all(of, GaussianProcessOrdinalRegression(), parts=parts).mean(axis=0)
        note = f"MAE {gp[0]:.4f}, MZE {gp[1]:.4f}; {peer} {rival[0]:.4f}, {rival[1]:.4f}"
        rows.append(
            Row(f"{name}, Gaussian process", peer, time.perf_counter() - start, None, "for comparison", True, note)
        )
    return rows


def run() -> list[Row]:
    """All rows of the section."""
    folder = data_folder()
    if folder is None:
        return []
    return [row for name in (*PUBLISHED, *OTHERS) for row in rows_of(folder, name)]


if __name__ == "__main__":
    for row in run():
        print(row)
