"""The data sets of the benchmarks of support vector machines, with their settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler


@dataclass(frozen=True)
class Setting:
    """C, gamma of the RBF kernel, and what is done to the data: columns standardised, values divided.

    ``train_only``: fitted to the source's training part, tested on the other; else to and on all rows.
    """

    C: float
    gamma: float
    standardised: bool
    train_only: bool
    divisor: float = 1.0


SETTINGS = {
    "letter": Setting(10.0, 1 / 16, True, True),
    "usps": Setting(10.0, 1 / 128, False, True),
    "magic": Setting(10.0, 0.2, True, False),
    "a9a": Setting(1.0, 0.05, False, True),
    "w8a": Setting(8.0, 0.05, False, False),
    "ijcnn1": Setting(32.0, 2.0, False, True),
    "covtype_5000": Setting(10.0, 1.0, True, False),
    "shuttle": Setting(100.0, 1.0, True, True),
    "mnist": Setting(10.0, 0.02, False, True, 255.0),
}


@dataclass(frozen=True)
class Data:
    """Rows to fit and rows to test, in float64."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(name: str, folder: Path) -> Data:
    """A data set of ``SETTINGS`` as its setting says."""
    setting = SETTINGS[name]
    X, y, n = read(folder, "classification", name)
    X /= setting.divisor
    if not setting.train_only:
        n = len(X)
    if setting.standardised:
        X = StandardScaler().fit(X[:n]).transform(X)
    return Data(X[:n], y[:n], X[n:], y[n:]) if n < len(X) else Data(X, y, X, y)


def read(folder: Path, group: str, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """All rows in float64, their labels, and the number of rows of the training part (all, if there is no other)."""
    archive = np.load(folder / group / f"{name}.npz")
    n = int(archive["n_train"]) if "n_train" in archive else len(archive["X"])
    return archive["X"].astype(np.float64), archive["y"], n


def some_rows(n: int, most: int) -> slice:
    """About ``most`` rows of ``n``, evenly spaced."""
    return slice(None, None, max(1, n // most))
