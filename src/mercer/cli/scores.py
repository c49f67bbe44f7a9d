"""Scores of predictions, and the two simple models that every fit is compared with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)

from mercer.data.columns import MixedRows
from mercer.data.strings import Strings

Scores = dict[str, float]

_MOST_WORDS = 20_000


def scores(task: str, y: np.ndarray, predicted: np.ndarray) -> Scores:
    """Accuracy and balanced accuracy; or R², root mean squared and mean absolute error.

    >>> scores("classification", np.array(["a", "b"]), np.array(["a", "a"]))
    {'accuracy': 0.5, 'balanced_accuracy': 0.5}
    """
    if task == "classification":
        with warnings.catch_warnings():
            # A class that is predicted and does not occur among the rows is no fault of theirs.
            warnings.simplefilter("ignore", UserWarning)
            balanced = float(balanced_accuracy_score(y, predicted))
        return {"accuracy": float(accuracy_score(y, predicted)), "balanced_accuracy": balanced}
    # R² compares with the spread of y, which a single row does not have.
    r2 = float(r2_score(y, predicted)) if len(y) > 1 else float("nan")
    return {
        "r2": r2,
        "rmse": float(root_mean_squared_error(y, predicted)),
        "mae": float(mean_absolute_error(y, predicted)),
    }


def features(rows: Any, more: Any) -> tuple[Any, Any, str]:
    """Two sets of rows as matrices for linear models, and what these see where the rows are not vectors.

    Numbers are as they are; of text the words are counted, or the letters where there are hardly any words.

    >>> rows = MixedRows([Strings.of(["a cat", "a dog"])], ["text"])
    >>> X, Z, what = features(rows, rows)
    >>> X.toarray().tolist(), what
    ([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]], ' on counts of words')
    """
    if not isinstance(rows, MixedRows):
        return rows, more, ""
    pairs, counted = [], ""
    for mine, its in zip(rows.columns, more.columns, strict=True):
        if isinstance(mine, Strings):
            texts, others = ([_text(item) for item in column] for column in (mine, its))
            counted = "words" if sum(text.count(" ") for text in texts) >= len(texts) else "letters"
            parts = {"token_pattern": r"\b\w+\b"} if counted == "words" else {"analyzer": "char"}
            counter = CountVectorizer(max_features=_MOST_WORDS, **parts)
            try:
                pairs.append([counter.fit_transform(texts), counter.transform(others)])
            except ValueError:
                # There is no word in any text.
                continue
        elif isinstance(mine, np.ndarray):
            pairs.append([sp.csr_matrix(column[:, None]) for column in (mine, its)])
    if not pairs:
        return np.zeros((len(rows), 0)), np.zeros((len(more), 0)), ""
    X, Z = (sp.hstack(side, format="csr", dtype=np.float64) for side in zip(*pairs, strict=True))
    return X, Z, f" on counts of {counted}" if counted else ""


def _text(item: Any) -> str:
    return item if isinstance(item, str) else " ".join(map(str, item))


def baseline_scores(
    task: str, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, what: str = ""
) -> dict[str, Scores]:
    """Scores of a linear model, where there are numbers for one, and of a constant answer, on the same rows."""
    rivals: dict[str, Any]
    if task == "classification":
        rivals = {
            f"logistic regression{what}": LogisticRegression(max_iter=1000),
            "most frequent class": DummyClassifier(strategy="most_frequent"),
        }
    else:
        rivals = {f"linear (ridge) regression{what}": Ridge(), "mean of the target": DummyRegressor()}
    if X.shape[1] == 0:
        rivals = dict(list(rivals.items())[1:])
    found = {}
    for name, rival in rivals.items():
        with warnings.catch_warnings():
            # The rival is a yardstick; where it stopped short of its optimum its score still is one.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found[name] = scores(task, y_test, rival.fit(X, y).predict(X_test))
    return found
