"""Hostile input for every estimator: rows, their form, targets and weights that a user may pass by mistake.

A case is drawn from a number, so that any case of the sweep can be run again alone::

    python tests/hostile/sweep.py 0 4200
"""

from __future__ import annotations

import functools
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

import mercer
from estimator_table import CLASSES, CLUSTERERS, NEIGHBORS, SUPERVISED, TRANSFORMERS
from mercer import OneClassSVM
from mercer._errors import MercerError

# What scikit-learn's conventions ask for, beside our own errors.
DOCUMENTED = (MercerError, TypeError, NotFittedError)
KERNELS = ("rbf", "linear", "poly")


@functools.cache
def estimators() -> list[tuple[str, Any, bool]]:
    """Name, estimator and whether it classifies: those of the table, and each of these at its defaults."""
    classes: dict[str, tuple[str, Any, bool]] = {}
    params = [*SUPERVISED, *NEIGHBORS, *CLUSTERERS, *TRANSFORMERS]
    for param in params:
        model, y = param.values
        classes[param.id] = (param.id, model, y is CLASSES)
        name = type(model).__name__
        classes.setdefault(f"{name}()", (f"{name}()", type(model)(), is_classifier(type(model)())))
    classes["OneClassSVM()"] = ("OneClassSVM()", OneClassSVM(), False)
    classes["KernelLocalOutlierFactor()"] = ("KernelLocalOutlierFactor()", mercer.KernelLocalOutlierFactor(), False)
    classes["BayesianLinearRegression()"] = ("BayesianLinearRegression()", mercer.BayesianLinearRegression(), False)
    return list(classes.values())


def rows(kind: str, rng: np.random.Generator, n: int) -> Any:
    X = rng.normal(size=(n, 3))
    if kind == "mixed scales":
        return X * [1e150, 1.0, 1e-150]
    if kind == "one large column":
        return X * [1e6, 1.0, 1.0]
    if kind in ("huge", "tiny", "denormal", "largest", "shifted"):
        if kind == "shifted":
            return X + 1e9
        if kind == "largest":
            return np.where(X > 0, 1.7e308, -1.7e308) * rng.choice([1.0, 0.9], X.shape)
        return X * {"huge": 1e150, "tiny": 1e-160, "denormal": 5e-324}[kind]
    if kind == "constant":
        return np.full((n, 3), 2.5)
    if kind == "zero":
        return np.zeros((n, 3))
    if kind == "repeated":
        return np.repeat(X[: max(n // 4, 1)], 4, axis=0)[:n]
    if kind == "one row":
        return X[:1]
    if kind == "one column":
        return X[:, :1]
    if kind == "no columns":
        return X[:, :0]
    if kind in ("nan", "inf"):
        X[n // 2, 1] = np.nan if kind == "nan" else -np.inf
        return X
    if kind == "integers":
        return rng.integers(-5, 5, (n, 3))
    if kind == "booleans":
        return X > 0
    if kind == "text":
        return np.array([["a", "b", "c"]] * n)
    return X


ROWS = (
    "plain",
    "plain",
    "huge",
    "tiny",
    "mixed scales",
    "one large column",
    "denormal",
    "largest",
    "shifted",
    "constant",
    "zero",
    "repeated",
    "one row",
    "one column",
    "no columns",
    "nan",
    "inf",
    "integers",
    "booleans",
    "text",
)


def formed(X: Any, form: str) -> Any:
    """The same rows in another container."""
    numbers = X.dtype.kind in "fiu"
    if form == "float32" and numbers:
        with np.errstate(over="ignore", under="ignore"):
            return X.astype(np.float32)
    if form == "fortran":
        return np.asfortranarray(X)
    if form == "read only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if form == "not contiguous":
        return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    if form == "csr" and X.dtype.kind == "f":
        return sp.csr_matrix(X)
    if form == "csc" and X.dtype.kind == "f":
        return sp.csc_matrix(X)
    if form == "lists":
        return X.tolist()
    if form == "frame":
        return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    return X


FORMS = ("float64", "float64", "float32", "fortran", "read only", "not contiguous", "csr", "csc", "lists", "frame")


def targets(kind: str, rng: np.random.Generator, n: int, classifies: bool) -> Any:
    y = rng.integers(0, 2, n) if classifies else rng.normal(size=n)
    if kind == "three":
        return rng.integers(0, 3, n)
    if kind == "constant":
        return np.full(n, y[0])
    if kind == "largest":
        return np.where(y > 0, 1.7e308, -1.7e308)
    if kind in ("huge", "tiny"):
        return y * {"huge": 1e150, "tiny": 1e-160}[kind]
    if kind in ("nan", "inf"):
        y = y.astype(float)
        y[n // 3] = np.nan if kind == "nan" else np.inf
        return y
    if kind == "text":
        return np.where(y > 0, "up", "down")
    if kind == "letters":
        return list("abcde" * n)[:n]
    if kind == "booleans":
        return y > 0
    if kind == "objects":
        return np.where(y > 0, 1, 0).astype(object)
    if kind == "column":
        return y[:, None]
    if kind == "short":
        return y[:-1]
    if kind == "none":
        return None
    return y


TARGETS = (
    "plain",
    "plain",
    "three",
    "constant",
    "huge",
    "tiny",
    "largest",
    "nan",
    "inf",
    "text",
    "letters",
    "booleans",
    "objects",
    "column",
    "short",
    "none",
)


def weights(kind: str, rng: np.random.Generator, n: int) -> Any:
    share = rng.uniform(0.5, 2.0, n)
    return {
        "none": None,
        "plain": share,
        "zero": np.zeros(n),
        "some zero": share * (np.arange(n) % 2),
        "huge": 1e300 * share,
        "tiny": 1e-300 * share,
        "mixed": np.where(np.arange(n) % 2, 1e150, 1e-150),
        "negative": share - 1.0,
        "short": share[:-1],
        "nan": np.where(np.arange(n) == 1, np.nan, share),
        "integers": rng.integers(0, 3, n),
        "large": 4e29 * share,
        "small": 4e-30 * share,
        "far apart": np.where(np.arange(n) % 2, 1e14, 1e-14),
        "text": np.full(n, "a"),
        "largest": np.full(n, 1.7e308),
    }[kind]


WEIGHTS = (
    "none",
    "none",
    "none",
    "none",
    "plain",
    "zero",
    "some zero",
    "huge",
    "tiny",
    "mixed",
    "negative",
    "short",
    "nan",
    "integers",
    "text",
    "largest",
    "large",
    "small",
    "far apart",
)


@dataclass(frozen=True)
class Case:
    """One fit, drawn from a number."""

    number: int
    name: str
    model: Any
    X: Any
    y: Any
    weight: Any
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number} {self.name}: {', '.join(self.words)}"


def case(number: int) -> Case:
    """The case of a number; estimators take turns, and at most two of X, y and the weights are hostile."""
    every = estimators()
    name, model, classifies = every[number % len(every)]
    rng = np.random.default_rng(number)
    n = int(rng.integers(2, 25))
    hostile = rng.random(3) < 0.5
    kinds = [
        str(rng.choice(what)) if bad else what[0] for what, bad in zip((ROWS, TARGETS, WEIGHTS), hostile, strict=True)
    ]
    form = str(rng.choice(FORMS))
    X = rows(kinds[0], rng, n)
    model = clone(model)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if name.startswith("MultipleKernelSV"):
        # Weights 29 orders of magnitude apart leave a few of these crawling for a minute, next to rounding.
        model.set_params(max_iter=1000)
    kernel = "own"
    if "kernel" in model.get_params() and rng.random() < 0.4 and not hasattr(model.kernel, "theta"):
        kernel = str(rng.choice(KERNELS))
        model.set_params(kernel=kernel)
    n = len(X)
    return Case(
        number,
        name,
        model,
        formed(X, form),
        targets(kinds[1], rng, n, classifies),
        weights(kinds[2], rng, n),
        (kinds[0], form, f"y {kinds[1]}", f"weights {kinds[2]}", f"kernel {kernel}", f"n = {n}"),
    )


ANSWERS = ("predict", "decision_function", "predict_proba", "transform", "score_samples")


def run(case: Case) -> str:
    """ "answer", or the name of a documented error; raises what should not be."""
    model = case.model
    arguments = {} if case.weight is None else {"sample_weight": case.weight}
    if not has_fit_parameter(model, "sample_weight"):
        arguments = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(case.X, case.y, **arguments)
            answers = {name: getattr(model, name)(case.X) for name in ANSWERS if hasattr(model, name)}
        except DOCUMENTED as error:
            assert str(error), f"{case}: an error without a word"
            return type(error).__name__
    for name, values in answers.items():
        values = np.asarray(values)
        if values.dtype.kind == "f":
            assert np.isfinite(values).all(), f"{case}: {name} is not finite"
    return "answer"


def main(first: int, last: int) -> None:
    """Run cases by hand; prints what should not be, and counts."""
    counts: Counter[str] = Counter()
    for number in range(first, last):
        one = case(number)
        try:
            counts[run(one)] += 1
        except Exception as error:
            counts["wrong"] += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            print(f"{one}\n    {type(error).__name__}: {str(error)[:150]} ({place})", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
