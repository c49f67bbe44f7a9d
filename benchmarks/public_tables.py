"""Public tables that no rule of ours was fixed on: shares of wrong labels, squared errors, and those of other packages.

``python benchmarks/public_tables.py [FOLDER]`` reads CSV files with a header from the folder, or else from
``$MERCER_DATA/tables``; scikit-learn's own tables need no file, and a file that is missing is named and left out. What
was measured is kept in ``public_tables.sqlite`` beside this file, so that an interrupted run goes on, and is measured
again where our rule of choice has changed. ``$TABLES=mpg,tips`` selects tables, ``$TABLE_PEERS="Mercer;linear"``
contenders, and ``$TABLE_ROWS=4000`` the most training rows.

A quarter of the rows is held out, at random, SPLITS times; all contenders have the same rows. The score is the accuracy
or R². The difference to a peer is in standard errors of the mean of the differences of the errors of single test rows.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from harness import data_folder, tell
from mercer import TabularClassifier, TabularRegressor
from table_data import Split
from table_parts import Part, Parts, our_version
from table_peers import errors, fitted, for_trees, peers, version

SPLITS, TRAINED, TESTED = 2, 1500, 1500
FILE = Path(__file__).resolve().parent / "public_tables.sqlite"
# The columns of labels and of numbers to be predicted; in files they are called class or target where not said here.
LABELS = {
    "adult": "class", "anneal": "class", "arrhythmia": "class", "autos": "class", "breast_cancer": "", "car": "class",
    "cmc": "class", "colic": "class", "credit_a": "class", "credit_g": "class", "cylinder_bands": "class",
    "dermatology": "class", "digits": "", "glass": "class", "heart_c": "class", "hypothyroid": "class", "iris": "",
    "kr_vs_kp": "class", "oil_spill": "target", "optdigits": "class", "page_blocks": "class", "penguins": "species",
    "phoneme": "target", "seattle_weather": "weather", "segment": "class", "sick": "class", "sonar": "class",
    "soybean": "class", "spambase": "class", "titanic": "alive", "vehicle": "class", "vowel": "class",
    "waveform5000": "class", "wheat_seeds": "target", "wine": "",
}  # fmt: skip
NUMBERS = {
    "abalone": "target", "ailerons": "target", "auto_imports": "target", "autohorse": "target", "bank32nh": "target",
    "bodyfat": "target", "car_crashes": "total", "cpu_act": "target", "diabetes": "", "diamonds": "price",
    "house8L": "target", "housing": "target", "lowbwt": "target", "machine_cpu": "target", "meta": "target",
    "movies": "Worldwide Gross", "mpg": "mpg", "pbc": "target", "planets": "mass", "pollution": "target",
    "puma32H": "target", "stock": "target", "strike": "target", "taxis": "tip", "tips": "tip", "triazines": "target",
    "winequality_white": "target", "wisconsin": "target",
}  # fmt: skip
DATES = {"pickup", "dropoff", "date"}
OURS = "Mercer"
# Encoders of some peers take no more categories in a column.
CATEGORIES = 200


def table(folder: Path | None, name: str) -> tuple[pd.DataFrame, np.ndarray] | None:
    """The columns and what is predicted, or None if there is no file."""
    target = (LABELS | NUMBERS)[name]
    if not target:
        bundled = getattr(datasets, f"load_{name}")()
        return pd.DataFrame(bundled.data).add_prefix("x"), bundled.target.astype("i8" if name in LABELS else "f8")
    path = None if folder is None else folder / f"{name}.csv"
    if path is None or not path.exists():
        return None
    frame = pd.read_csv(path)
    for column in DATES & set(frame.columns):
        frame[column] = pd.to_datetime(frame[column], format="mixed")
    y = frame.pop(target)
    return frame, pd.factorize(y, sort=True)[0] if name in LABELS else y.to_numpy(np.float64)


def split(X: pd.DataFrame, y: np.ndarray, number: int) -> Split:
    """Training and test rows, of labels that occur in training."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=number)
    train, test = train[: int(os.environ.get("TABLE_ROWS", TRAINED))], test[:TESTED]
    if y.dtype.kind == "i":
        test = test[np.isin(y[test], y[train])]
        known = np.unique(y[train])
        y = np.searchsorted(known, y)
    return Split(X.iloc[train], y[train], X.iloc[test], y[test])


def contenders(classifies: bool) -> dict[str, Callable[[Split], tuple[Any, pd.DataFrame]]]:
    """By name: fit to the training rows, and return the model and the test rows as it takes them."""
    ours = TabularClassifier if classifies else TabularRegressor
    forest = RandomForestClassifier if classifies else RandomForestRegressor
    dummy = DummyClassifier() if classifies else DummyRegressor()
    linear = LogisticRegression(max_iter=2000) if classifies else RidgeCV(np.logspace(-3, 4, 15))
    trees = {name: _peer(name, make) for name, make in peers(classifies).items() if name != "xRFM"}
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    others = {
        **trees,
        "forest": _columns(forest(random_state=0), codes),
        "linear": _columns(linear, OneHotEncoder(handle_unknown="ignore")),
        "dummy": _columns(dummy, codes),
    }
    asked = os.environ.get("TABLE_PEERS")
    every = {OURS: lambda s: (ours().fit(s.X, s.y), s.X_test)} | others
    return {name: way for name, way in every.items() if asked is None or name in asked.split(";")}


def _peer(name: str, make: Callable[..., Any]) -> Callable[[Split], tuple[Any, pd.DataFrame]]:
    def fit(s: Split) -> tuple[Any, pd.DataFrame]:
        X, X_test = for_trees(_common(s))
        return fitted(name, make, X, s.y), X_test

    return fit


def _columns(model: Any, encoder: Any) -> Callable[[Split], tuple[Any, pd.DataFrame]]:
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = make_column_selector(dtype_include="category")
    both = make_column_transformer((encoder, words), (numbers, make_column_selector(dtype_include="number")))

    def fit(s: Split) -> tuple[Any, pd.DataFrame]:
        X, X_test = for_trees(_common(s))
        return make_pipeline(both, model).fit(X, s.y), X_test

    return fit


def _common(s: Split) -> Split:
    """Missing and rare texts as categories of their own."""
    X, X_test = s.X.copy(), s.X_test.copy()
    for column in X.columns:
        if X[column].dtype.kind == "b":
            X[column], X_test[column] = X[column].astype(float), X_test[column].astype(float)
        elif X[column].dtype.kind not in "iufM":
            X[column], X_test[column] = (f[column].astype(object).fillna("(none)").astype(str) for f in (X, X_test))
            common = X[column].value_counts().index[:CATEGORIES]
            X[column] = X[column].where(X[column].isin(common), "(rare)")
    return Split(X, s.y, X_test, s.y_test)


def measure(data: tuple[pd.DataFrame, np.ndarray], name: str, parts: Parts) -> None:
    """Measure what the file lacks of a table."""
    for number in range(SPLITS):
        s = split(*data, number)
        for contender, fit in contenders(name in LABELS).items():
            if parts.get(name, number, contender, _version(contender, name)) is not None:
                continue
            start = time.perf_counter()
            try:
                model, X_test = fit(s)
            except ValueError as error:
                # Some peers cannot take a column of one value, or one that is empty.
                if contender == OURS:
                    raise
                tell(f"{name}, split {number + 1}, {contender}: {error}")
                continue
            seconds = time.perf_counter() - start
            wrong = errors(model, X_test, s.y_test)
            if name in LABELS:
                parts.add(name, number, f"{contender}, log loss", _version(contender, name), Part(wrong, seconds))
                wrong = (np.asarray(model.predict(X_test)).ravel() != s.y_test).astype(float)
            else:
                wrong = wrong / np.var(s.y_test)
            parts.add(name, number, contender, _version(contender, name), Part(wrong, seconds))
            tell(f"{name}, split {number + 1}, {contender}: {1 - wrong.mean():.4f} in {seconds:.1f} s")


def _version(contender: str, name: str) -> str:
    rows = os.environ.get("TABLE_ROWS", str(TRAINED))
    return f"{our_version(name in LABELS) if contender == OURS else version(contender)} {rows}"


def row(name: str, parts: Parts) -> tuple[list[str], dict[str, tuple[float, float]]]:
    """The line of a table, and of each peer by how many standard errors ours is better, and our error by its own."""
    cells, better = [], {}
    found: dict[str, np.ndarray] = {}
    for contender in contenders(name in LABELS):
        own = [parts.get(name, number, contender, _version(contender, name)) for number in range(SPLITS)]
        if all(part is not None for part in own):
            found[contender] = np.concatenate([part.errors for part in own if part is not None])
            cells.append(f"{1 - found[contender].mean():.4f}")
            if contender == OURS:
                cells[-1] += f" ({np.mean([part.seconds for part in own if part is not None]):.1f} s)"
            elif OURS in found:
                difference = found[contender] - found[OURS]
                spread = difference.std(ddof=1) / np.sqrt(len(difference))
                by = float(difference.mean() / spread) if spread else 0.0
                # Shares of wrong labels may be 0; half a row more is wrong in both.
                least = 0.5 / len(difference) if name in LABELS else 0.0
                better[contender] = by, (found[OURS].mean() + least) / (found[contender].mean() + least)
                cells[-1] += f" ({by:+.1f})"
        else:
            cells.append("")
    return cells, better


def main(arguments: list[str]) -> None:
    """Measure, and print a table in Markdown."""
    given = data_folder()
    folder = Path(arguments[0]) if arguments else None if given is None else given / "tables"
    parts = Parts(FILE)
    every = [*LABELS, *NUMBERS]
    asked = [name for name in os.environ.get("TABLES", "").split(",") if name] or every
    lines, compared = [], dict[str, list[tuple[float, float]]]()
    for name in asked:
        data = table(folder, name)
        if data is None:
            tell(f"{name}: there is no file {name}.csv in {folder}")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measure(data, name, parts)
        cells, better = row(name, parts)
        lines.append(f"| {name} ({len(data[1])} x {data[0].shape[1]}) | {' | '.join(cells)} |")
        for peer, pair in better.items():
            compared.setdefault(peer, []).append(pair)
    names = list(contenders(True))
    print("Accuracy or R² (in brackets: seconds; by how many standard errors ours is better)\n")
    print(f"| table | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}\n" + "\n".join(lines) + "\n")
    print("| peer | tables | better by more than two standard errors | worse | geometric mean of our error / its own |")
    print("|---|---|---|---|---|")
    for peer, pairs in compared.items():
        by, ratios = np.array(pairs).T
        mean = np.exp(np.log(ratios).mean())
        print(f"| {peer} | {len(by)} | {np.sum(by > 2)} | {np.sum(by < -2)} | {mean:.3f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
