"""Kernels on series: Gram matrices beside those of tslearn, and accuracies on UCR sets beside published ones.

One rule chooses the kernel and C for every set, by its training part alone: the fewest errors when each row is left out
once (of over 100 rows in 100 parts); among equals the greatest sigma, then no band before a wide and a narrow one, then
the least C. Published are the accuracies of Bagnall et al. (2017), "The great time series classification bake off", on
the same two parts.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from tslearn.metrics import cdist_dtw, cdist_gak

from harness import Row, data_folder, in_turn, seconds_of, tell
from mercer import SVC, KernelNeighborsClassifier, config, svm_path
from mercer.data.series import Series
from mercer.kernels import DynamicTimeWarping, GlobalAlignment, Kernel

TITLE = "Series: GunPoint, 200 of length 150; UCR sets with their training and test parts"
SETS = ("ArrowHead", "Coffee", "ECG200", "GunPoint", "ItalyPowerDemand", "Trace", "BasicMotions", "JapaneseVowels")
# Parts of the training rows at most, each of which is left out once.
FOLDS = 100
# Multiples of Cuturi's advice for sigma, bands as parts of the median length (0: none), and penalties.
FACTORS, BANDS, PENALTIES = (5.0, 2.0, 1.0, 0.5, 0.2, 0.1), (0.0, 0.5, 0.2), [1.0, 10.0, 100.0, 1000.0]


def _load(folder: Path, name: str) -> tuple[Series, np.ndarray, int]:
    """All series, their classes, and how many are for training."""
    with np.load(folder / "series" / f"{name}.npz") as data:
        return Series.from_padded(data["X"].astype(float).transpose(0, 2, 1)), data["y"], int(data["n_train"])


def _advised(X: Series) -> float:
    """The median distance of points times the root of the median length."""
    points = np.concatenate(list(X))[:: max(1, sum(X.lengths) // 500)]
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    return float(np.median(distances[distances > 0]) * np.sqrt(np.median(X.lengths)))


def _speeds(folder: Path) -> list[Row]:
    X = np.stack([item[:, 0] for item in _load(folder, "GunPoint")[0]])
    alignment, warping = GlobalAlignment(10.0).normalized(), DynamicTimeWarping()
    cases: list[tuple[str, Any, Any, float]] = [
        ("normalised global alignment", lambda: alignment(X), lambda: cdist_gak(X, sigma=10.0, n_jobs=2), 4.0),
        ("dynamic time warping", lambda: -warping(X), lambda: cdist_dtw(X, n_jobs=2), 1.5),
    ]
    rows = []
    for name, ours, peer, demand in cases:
        error = float(np.abs(ours() - peer()).max())
        with config(n_jobs=2):
            times = in_turn({"ours": ours, "peer": peer}, repeats=3)
        met = times["peer"] >= demand * times["ours"] and error < 1e-9
        rows.append(
            Row(
                f"Gram matrix, {name}",
                "tslearn, n_jobs=2",
                times["ours"],
                times["peer"],
                f">= {demand:g} x",
                met,
                f"largest difference {error:.1e}",
                {"error": error},
            )
        )
    return rows


def _published(folder: Path) -> dict[str, dict[str, str]]:
    with open(folder / "reference" / "ucr_bakeoff_accuracy.csv", newline="", encoding="utf-8") as lines:
        return {row["dataset"]: row for row in csv.DictReader(lines)}


def _chosen(X: Series, y: np.ndarray) -> tuple[Kernel, float, int]:
    """The kernel and C of the fewest errors when each row is left out once, and the errors."""
    advised, length = _advised(X), float(np.median(X.lengths))
    choices: list[tuple[Kernel, float, int]] = []
    for factor, band in itertools.product(FACTORS, BANDS):
        kernel = GlobalAlignment(factor * advised, triangular=round(band * length)).normalized()
        K = kernel(X)
        wrong = np.zeros(len(PENALTIES), int)
        for train, test in KFold(min(len(y), FOLDS), shuffle=True, random_state=0).split(y):
            path = svm_path(K[np.ix_(train, train)], y[train], PENALTIES, kernel="precomputed")
            wrong += [int((model.predict(K[np.ix_(test, train)]) != y[test]).sum()) for model in path]
        choices += [(kernel, C, count) for C, count in zip(PENALTIES, wrong.tolist(), strict=True)]
    # The first of equals.
    return min(choices, key=lambda choice: choice[2])


def _accuracies(folder: Path, name: str, published: dict[str, str]) -> list[Row]:
    X, y, n = _load(folder, name)
    nearest = KernelNeighborsClassifier(1, kernel=DynamicTimeWarping()).fit(X[:n], y[:n])
    warped = float((nearest.predict(X[n:]) == y[n:]).mean())
    kernel, C, wrong = _chosen(X[:n], y[:n])
    model = SVC(C=C, kernel=kernel)
    seconds = seconds_of(lambda: model.fit(X[:n], y[:n]))
    aligned = float((model.predict(X[n:]) == y[n:]).mean())
    figures = {
        what: float(published[key])
        for what, key in (("DTW", "DTW_R1_1NN"), ("Euclidean", "Euclidean_1NN"), ("SVM-quad", "SVMQ"))
        if published
    }
    beside = ", ".join(f"{what} {value:.3f}" for what, value in figures.items()) or "none"
    # A set has so few rows that a published figure is equal where it differs by less than half a row.
    half = 0.5 / len(y[n:])
    return [
        Row(
            f"{name}, 1 neighbour by DTW",
            "bake-off, 1NN-DTW",
            None,
            None,
            "the same accuracy",
            not figures or warped >= figures["DTW"] - half,
            f"{warped:.4f}; published: {beside}",
            {"accuracy": warped},
        ),
        Row(
            f"{name}, SVC with global alignment",
            "bake-off, SVM-quad",
            seconds,
            None,
            "no worse",
            not figures or aligned >= figures["SVM-quad"] - half,
            f"{aligned:.4f}, {kernel!r}, C {C:g}, {wrong} of {n} wrong when left out; published: {beside}",
            {"accuracy": aligned},
        ),
    ]


def run(sets: tuple[str, ...] = SETS) -> list[Row]:
    """All rows of the section; none without the data."""
    folder = data_folder()
    if folder is None:
        return []
    rows, published = _speeds(folder), _published(folder)
    for name in sets:
        tell(name)
        rows += _accuracies(folder, name, published.get(name, {}))
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
