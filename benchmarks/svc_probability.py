"""SVC(probability=True) against scikit-learn's: five folds and the fit to all rows, and the loss on other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import log_loss
from sklearn.svm import SVC as Reference

from harness import Row, in_turn, tell
from mercer import SVC

TITLE = "SVC(probability=True), RBF"
LEAST = 1.0
KINDS = {"Mercer": SVC, "scikit-learn": Reference}


def case(name: str, X: np.ndarray, y: np.ndarray, n: int, C: float) -> Row:
    """Fit to the first ``n`` rows; the loss is that of the others."""
    tell(name)
    models: dict[tuple[str, bool], Any] = {}

    def fit(kind: str, probability: bool, rows: int = n) -> None:
        models[kind, probability] = KINDS[kind](C=C, random_state=0, **({"probability": True} if probability else {}))
        models[kind, probability].fit(X[:rows], y[:rows])

    def contender(kind: str, probability: bool) -> Callable[[], None]:
        return lambda: fit(kind, probability)

    contenders = {
        f"{kind}, {probability}": contender(kind, probability) for kind in KINDS for probability in (False, True)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        seconds = in_turn(contenders, warm_up=lambda label: fit(label.partition(",")[0], True, n // 4))
    losses = {kind: float(log_loss(y[n:], models[kind, True].predict_proba(X[n:]))) for kind in KINDS}
    ours, theirs = (seconds[f"{kind}, True"] for kind in KINDS)
    cost = {kind: seconds[f"{kind}, True"] / seconds[f"{kind}, False"] for kind in KINDS}
    met = theirs >= LEAST * ours and losses["Mercer"] <= 1.02 * losses["scikit-learn"]
    note = (
        f"{cost['Mercer']:.1f} fits without probabilities, the peer {cost['scikit-learn']:.1f}; "
        f"log loss {losses['Mercer']:.4f}, the peer {losses['scikit-learn']:.4f}"
    )
    return Row(name, "scikit-learn", ours, theirs, f">= {LEAST:g}, loss <= 1.02 x", met, note, losses)


def run() -> list[Row]:
    """All rows of the section."""
    X, y = make_classification(8000, 20, n_informative=8, flip_y=0.1, random_state=0)
    digits, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return [
        case("2,000 rows, two classes, C = 1", X, y, 2000, 1.0),
        case("4,000 rows, two classes, C = 1", X, y, 4000, 1.0),
        case("4,000 rows, two classes, C = 10", X, y, 4000, 10.0),
        case("digits, 1,300 rows, ten classes", digits[order] / 16.0, labels[order], 1300, 1.0),
    ]
