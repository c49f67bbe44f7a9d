"""SVC against scikit-learn and scikit-learn-intelex: time, dual objective, accuracy.

Each peer is timed in float64 and in float32 and stands with the faster of the two. The dual objective of every model
is computed here, in float64, from its coefficients.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as LibSVC
from sklearnex.svm import SVC as IntelexSVC

from harness import Row, data_folder, in_turn
from mercer import SVC, Gram, kernels

TITLE = "SVC, RBF, tol = 1e-3"

# name: C, gamma, standardised, only the source's training part
CASES = {
    "letter": (10.0, 1 / 16, True, True),
    "usps": (10.0, 1 / 128, False, True),
    "magic": (10.0, 0.2, True, False),
    "a9a": (1.0, 0.05, False, True),
}


def load(name: str, folder: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows; where the source has no test part, the training rows serve as both."""
    archive = np.load(folder / "classification" / f"{name}.npz")
    X, y = archive["X"].astype(np.float64), archive["y"]
    _, _, standardise, train_only = CASES[name]
    n = int(archive["n_train"]) if train_only else len(X)
    if standardise:
        X = StandardScaler().fit(X[:n]).transform(X)
    return X[:n], y[:n], (X[n:] if n < len(X) else X), (y[n:] if n < len(X) else y)


def dual_objective(model: Any, gamma: float) -> float:
    """Sum over the pairs of classes of ``sum_i alpha_i - beta' K beta / 2``."""
    support = np.asarray(model.support_vectors_, dtype=np.float64)
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    pairs = list(combinations(range(len(model.classes_)), 2))
    beta = np.zeros((len(support), len(pairs)))
    for column, (a, b) in enumerate(pairs):
        in_a, in_b = slice(ends[a], ends[a + 1]), slice(ends[b], ends[b + 1])
        beta[in_a, column] = model.dual_coef_[b - 1, in_a]
        beta[in_b, column] = model.dual_coef_[a, in_b]
    products = Gram(kernels.RBF.from_gamma(gamma), support) @ beta
    return float(np.abs(beta).sum() - 0.5 * np.einsum("ij,ij->", beta, products))


def case(name: str, folder: Any) -> list[Row]:
    """Two rows: against the faster peer, and against scikit-learn."""
    C, gamma, *_ = CASES[name]
    X, y, X_test, y_test = load(name, folder)
    X32 = X.astype(np.float32)
    options = {"C": C, "gamma": gamma, "tol": 1e-3, "cache_size": 1000}
    runs = {
        "Mercer, float64": (SVC, X), "Mercer, float32": (SVC, X32),
        "scikit-learn, float64": (LibSVC, X),
        "scikit-learn-intelex, float64": (IntelexSVC, X), "scikit-learn-intelex, float32": (IntelexSVC, X32),
    }  # fmt: skip
    models: dict[str, Any] = {}

    def fit(label: str) -> None:
        kind, rows = runs[label]
        models[label] = kind(**options).fit(rows, y)

    times = in_turn({label: lambda label=label: fit(label) for label in runs}, repeats=3)
    ours = min((label for label in runs if label.startswith("Mercer")), key=times.__getitem__)
    objective = {label: dual_objective(model, gamma) for label, model in models.items()}
    scores = {label: model.score(X_test, y_test) for label, model in models.items()}
    rows = []
    for peer in ("scikit-learn-intelex", "scikit-learn,"):
        label = min((r for r in runs if r.startswith(peer)), key=times.__getitem__)
        difference = (objective[ours] - objective["scikit-learn, float64"]) / abs(objective["scikit-learn, float64"])
        note = (
            f"{ours.split(', ')[1]}; accuracy {scores[ours]:.4f} / {scores[label]:.4f}; dual objective "
            f"{difference:+.0e} relative to scikit-learn's; gap {models[ours].certificate_.relative_gap:.0e}"
        )
        met = times[label] >= times[ours] and abs(difference) < 1e-4 and abs(scores[ours] - scores[label]) < 2e-3
        rows.append(Row(name, label, times[ours], times[label], ">= 1", met, note))
    return rows


def run() -> list[Row]:
    """All rows of the section; none where the data are missing."""
    folder = data_folder()
    if folder is None:
        return []
    return [row for name in CASES for row in case(name, folder)]
