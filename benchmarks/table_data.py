"""The tables of the benchmark: rows, targets, and the training and test rows of each split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

TRAINED, TESTED, LARGE = 4000, 4000, 2500
SPLITS, FEW = 10, 3

# Tables by which the rule was chosen, and tables on which it was not looked at.
DESIGN = {
    "airfoil", "concrete", "energy", "yacht", "winequality_red", "kin8nm", "cal_housing", "diabetes",
    "magic", "covtype_5000", "svmguide1", "ionosphere", "heart_scale", "breast_cancer",
}  # fmt: skip
REPORT = {
    "bike", "elevators", "kin40k", "pol", "protein", "ccpp", "sarcos", "flights",
    "a9a", "letter", "splice_onehot", "shuttle", "ripley_synth", "banana_bc", "svmguide3", "ijcnn1", "digits", "wine",
}  # fmt: skip
CLASSES = {
    "magic", "covtype_5000", "svmguide1", "ionosphere", "heart_scale", "breast_cancer", "a9a", "letter",
    "splice_onehot", "shuttle", "ripley_synth", "banana_bc", "svmguide3", "ijcnn1", "digits", "wine",
}  # fmt: skip
BUNDLED = {"diabetes", "breast_cancer", "digits", "wine"}


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


@dataclass(frozen=True)
class Table:
    """Rows, targets, and the test rows of each split."""

    X: pd.DataFrame
    y: np.ndarray
    tests: list[np.ndarray]

    def split(self, number: int) -> Split:
        random = np.random.default_rng(number)
        test = self.tests[number]
        train = np.setdiff1d(np.arange(len(self.y)), test)
        train, test = _drawn(train, TRAINED, random), _drawn(test, TESTED, random)
        y, y_test = self.y[train], self.y[test]
        if y.dtype.kind != "f":
            # Some peers take the numbers of classes alone, and none has a probability of a class that it has not seen.
            test = test[np.isin(y_test, y)]
            classes, y = np.unique(y, return_inverse=True)
            y_test = np.searchsorted(classes, self.y[test])
        return Split(self.X.iloc[train], y, self.X.iloc[test], y_test)


def _drawn(rows: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    return np.sort(random.choice(rows, most, replace=False)) if len(rows) > most else rows


def table(folder: Path, name: str) -> Table:
    """A table by its name."""
    if name in BUNDLED:
        bundled = getattr(datasets, f"load_{name}")()
        return Table(pd.DataFrame(bundled.data), bundled.target, _tests({}, len(bundled.target)))
    if name == "flights":
        frame = pd.read_parquet(folder / "large" / "flights-3m.parquet").sample(50_000, random_state=0)
        frame.columns = [column.lower() for column in frame.columns]
        y = frame.pop("delay").to_numpy(np.float64).clip(-60, 240)
        return Table(frame.reset_index(drop=True), y, _tests({}, len(y)))
    kind = "gp" if name == "sarcos" else "classification" if name in CLASSES else "regression"
    data = np.load(folder / kind / f"{'sarcos_test' if name == 'sarcos' else name}.npz")
    X, y = data["X"].astype(np.float64), data["Y"][:, 0] if name == "sarcos" else data["y"]
    if name == "bike":
        # The last two columns give the target away.
        X = X[:, :15]
    return Table(pd.DataFrame(X), y if name in CLASSES else y.astype(np.float64), _tests(data, len(y)))


def _tests(data: Any, n: int) -> list[np.ndarray]:
    count = FEW if n > LARGE else SPLITS
    if "test_fold" in data:
        return [np.flatnonzero(data["test_fold"] == fold) for fold in range(count)]
    if "shuffles" in data:
        return [shuffle[: n // 2] for shuffle in data["shuffles"]]
    # A published test part has another distribution than the training part in some of these.
    if "n_train" in data and n - int(data["n_train"]) > 100:
        return [np.arange(int(data["n_train"]), n)]
    order = np.random.default_rng(0).permutation(n)
    return [order[fold::SPLITS] for fold in range(count)]
