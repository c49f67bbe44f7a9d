"""Tables with nothing chosen, beside boosted trees at their defaults: test errors, coverage of intervals, time.

``python benchmarks/tables.py [--write] [--splits=N] [name ...]`` measures some tables (concrete, magic, ...), on the
first N splits alone if so asked; ``run.py tables`` measures all of them.

The error is the RMSE of a regression and the log loss of a classification. At most TRAINED rows are learnt from and
TESTED are tested, drawn with a seed. Splits are the source's, or else random tenths of the rows; tables of more than
LARGE rows have FEW of them. The rule by which ``TabularRegressor`` and ``TabularClassifier`` choose was fixed on the
tables of the first half alone, and the second half is reported apart. Peers that are not installed are left out.
``tuned`` is a random search on a fifth of the training rows held out, for as long as ours took on that split, and then
a fit with the best parameters. A standard error is over splits, or over test rows where there are fewer than FIVE.
"""

from __future__ import annotations

import datetime
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from harness import (
    Row,
    Section,
    as_markdown,
    data_folder,
    machine,
    peak_so_far,
    read_sections,
    seconds_of,
    tell,
    write_sections,
)
from mercer import TabularClassifier, TabularRegressor

TITLE = "Tables with nothing chosen, beside boosted trees: test errors, intervals and time"
TRAINED, TESTED, LARGE = 4000, 4000, 2500
SPLITS, FEW, FIVE = 10, 3, 5
COVERAGE, LOW, HIGH = (0.05, 0.95), 0.87, 0.93
LARGEST_RATIO, BETTER = 0.92, 0.75
# Ratios are counted as this at most, or one over this at least.
MOST = 3.0
GIB = 2**30

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
    return [np.random.default_rng(split).permutation(n)[: n // 10] for split in range(count)]


# ---- contenders


def _for_trees(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows with dates as numbers and text as categories, new ones as one that is not in training."""
    X, X_test = (frame.set_axis([f"c{c}" for c in frame.columns], axis=1) for frame in (split.X, split.X_test))
    for column in X.columns:
        if X[column].dtype.kind == "M":
            X[column], X_test[column] = X[column].astype("int64") / 1e9, X_test[column].astype("int64") / 1e9
        elif X[column].dtype.kind not in "biuf":
            known = sorted(X[column].unique())
            kind = pd.CategoricalDtype([*known, "(other)"])
            X_test[column] = X_test[column].where(X_test[column].isin(known), "(other)").astype(kind)
            X[column] = X[column].astype(kind)
    return X, X_test


def _of(module: str, name: str, **options: Any) -> Any:
    return getattr(importlib.import_module(module), name)(**options)


def peers(classifies: bool) -> dict[str, Callable[..., Any]]:
    """Estimators of other packages by name, which take their parameters; the first is what is compared with."""
    kind = "Classifier" if classifies else "Regressor"
    hist = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
    found: dict[str, Callable[..., Any]] = {}
    if importlib.util.find_spec("catboost"):
        found["CatBoost"] = lambda **o: _of("catboost", f"CatBoost{kind}", verbose=0, allow_writing_files=False, **o)
    if importlib.util.find_spec("lightgbm"):
        found["LightGBM"] = lambda **o: _of("lightgbm", f"LGBM{kind}", verbose=-1, **o)
    if importlib.util.find_spec("xgboost"):
        found["XGBoost"] = lambda **o: _of("xgboost", f"XGB{kind}", enable_categorical=True, **o)
    found["HistGradientBoosting"] = lambda **o: hist(categorical_features="from_dtype", **o)
    return found


DRAWS: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "CatBoost": lambda r: {
        "learning_rate": 10 ** r.uniform(-2, -0.5),
        "depth": int(r.integers(3, 9)),
        "l2_leaf_reg": 10 ** r.uniform(-1, 1.5),
        "iterations": int(r.choice([300, 1000])),
    },
    "LightGBM": lambda r: {
        "learning_rate": 10 ** r.uniform(-2, -0.5),
        "num_leaves": int(2 ** r.integers(2, 8)),
        "min_child_samples": int(2 ** r.integers(1, 7)),
        "n_estimators": int(r.choice([100, 300, 1000])),
        "reg_lambda": 10 ** r.uniform(-3, 1.5),
    },
}


def fitted(name: str, make: Callable[..., Any], X: pd.DataFrame, y: np.ndarray, **options: Any) -> Any:
    """A peer with its parameters, fitted."""
    if name.startswith("CatBoost"):
        options["cat_features"] = [column for column in X.columns if X[column].dtype == "category"]
    return make(**options).fit(X, y)


def tuned(name: str, make: Callable[..., Any], X: pd.DataFrame, y: np.ndarray, seconds: float) -> Any:
    """The best of random parameters on a fifth of the rows, as many as the seconds allow, fitted to all rows."""
    random, begun = np.random.default_rng(0), time.perf_counter()
    classifies = y.dtype.kind != "f"
    rest, held_out = train_test_split(
        np.arange(len(y)), test_size=0.2, random_state=0, stratify=y if classifies else None
    )
    best, best_error = {}, np.inf
    options: dict[str, Any] = {}
    while time.perf_counter() - begun < seconds:
        model = fitted(name, make, X.iloc[rest], y[rest], **options)
        error = float(np.mean(errors(model, X.iloc[held_out], y[held_out])))
        if error < best_error:
            best, best_error = options, error
        options = DRAWS[name](random)
    return fitted(name, make, X, y, **best)


def errors(model: Any, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """The squared error of each row, or the log loss."""
    if not hasattr(model, "predict_proba"):
        return np.square(np.asarray(model.predict(X)).ravel() - y)
    P = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 1e-15, 1.0)
    known = np.searchsorted(model.classes_, y)
    return -np.log(P[np.arange(len(y)), known])


# ---- one table


@dataclass
class Scores:
    """Errors of the rows of each split, seconds, and whether ours covers the targets, by contender."""

    classifies: bool
    rows: dict[str, list[np.ndarray]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    covered: list[float] = field(default_factory=list)

    def add(self, name: str, values: np.ndarray, seconds: float) -> None:
        self.rows.setdefault(name, []).append(values)
        self.seconds.setdefault(name, []).append(seconds)

    def of_splits(self, name: str) -> np.ndarray:
        means = np.array([values.mean() for values in self.rows[name]])
        return means if self.classifies else np.sqrt(means)

    def error(self, name: str) -> float:
        return float(self.of_splits(name).mean())

    def standard_error(self, peer: str) -> float:
        """Of the difference between ours and that of the peer."""
        ours, theirs = self.rows["Mercer"], self.rows[peer]
        if len(ours) >= FIVE:
            return float((self.of_splits("Mercer") - self.of_splits(peer)).std(ddof=1) / np.sqrt(len(ours)))
        difference = np.concatenate(ours) - np.concatenate(theirs)
        scale = 1.0 if self.classifies else 2 * self.error(peer)
        return float(difference.std(ddof=1) / np.sqrt(len(difference)) / scale)


def measured(data: Table, name: str, splits: int) -> Scores:
    """All contenders on the splits of a table."""
    scores = Scores(name in CLASSES)
    for number in range(min(splits, len(data.tests))):
        split = data.split(number)
        ours = TabularClassifier() if scores.classifies else TabularRegressor()
        _, seconds = _timed(partial(ours.fit, split.X, split.y))
        scores.add("Mercer", errors(ours, split.X_test, split.y_test), seconds)
        if not scores.classifies:
            low, high = ours.predict_quantiles(split.X_test, COVERAGE).T
            scores.covered.append(float(np.mean((low <= split.y_test) & (split.y_test <= high))))
        X, X_test = _for_trees(split)
        for peer, make in peers(scores.classifies).items():
            ways: dict[str, Callable[[], Any]] = {peer: partial(fitted, peer, make, X, split.y)}
            if peer in DRAWS:
                ways[f"{peer}, tuned"] = partial(tuned, peer, make, X, split.y, seconds)
            for way, run in ways.items():
                model, spent = _timed(run)
                scores.add(way, errors(model, X_test, split.y_test), spent)
        tell(f"{name}, split {number + 1}: " + _figures(scores))
    return scores


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    results: list[Any] = []
    seconds = seconds_of(lambda: results.append(run()))
    return results[0], seconds


def _figures(scores: Scores) -> str:
    return ", ".join(f"{name} {scores.error(name):.4g}" for name in scores.rows)


def row(name: str, scores: Scores) -> Row:
    """The line of a table."""
    peer = next(iter(peers(scores.classifies)))
    ours, theirs, margin = scores.error("Mercer"), scores.error(peer), scores.standard_error(peer)
    facts = {f"error of {key}": scores.error(key) for key in scores.rows} | {"ratio": ours / theirs, "margin": margin}
    note = ("log loss: " if scores.classifies else "RMSE: ") + _figures(scores)
    if scores.covered:
        facts["coverage"] = float(np.mean(scores.covered))
        note += f"; coverage of 90 % intervals {facts['coverage']:.3f}"
    half = "first half" if name in DESIGN else "second half"
    return Row(
        f"{name} ({half}, {len(scores.rows['Mercer'])} splits)",
        peer,
        float(np.median(scores.seconds["Mercer"])),
        float(np.median(scores.seconds[peer])),
        "not worse by more than a standard error",
        bool(ours <= theirs + margin),
        note,
        facts,
    )


def summary(rows: list[Row]) -> Iterator[Row]:
    """The lines of each half, and of both."""
    for half in ("first half", "second half", "half"):
        part = [r for r in rows if half in r.case]
        if not part:
            continue
        # One table whose log loss is next to zero would else decide the mean.
        ratios = np.clip([r.facts["ratio"] for r in part], 1 / MOST, MOST)
        covered = [r.facts["coverage"] for r in part if "coverage" in r.facts]
        mean, better = float(np.exp(np.log(ratios).mean())), float(np.mean(ratios < 1))
        called = "all tables" if half == "half" else f"all of the {half}"
        demand = f"geometric mean of error ratios <= {LARGEST_RATIO}, better on {BETTER:.0%}"
        note = f"ratio {mean:.3f}, better on {better:.0%} of {len(part)}"
        facts = {"ratio": mean, "better": better}
        yield Row(called, part[0].peer, None, None, demand, mean <= LARGEST_RATIO and better >= BETTER, note, facts)
        if covered:
            value = float(np.mean(covered))
            demand = f"coverage of 90 % intervals between {LOW} and {HIGH}"
            yield Row(called, "", None, None, demand, LOW <= value <= HIGH, f"{value:.3f}", {"coverage": value})


def times() -> Iterator[Row]:
    """Time and memory of our own fits; first in a process, whose peak is then theirs."""
    for n, d, most in ((1000, 8, 2.0), (4000, 10, 15.0)):
        X, y = datasets.make_friedman1(n, max(d, 5), noise=1.0, random_state=0)
        TabularRegressor().fit(X[:50], y[:50])
        _, seconds = _timed(partial(TabularRegressor().fit, X, y))
        note = f"peak of the process {peak_so_far() / GIB:.2f} GiB"
        yield Row(
            f"{n} x {d}",
            "",
            seconds,
            None,
            f"<= {most:g} s, <= 2 GiB",
            seconds <= most and peak_so_far() < 2 * GIB,
            note,
        )


def run(names: list[str] | None = None, splits: int = SPLITS) -> list[Row]:
    """Measure the tables of these names, or all."""
    folder = data_folder()
    own = list(times())
    if folder is None:
        return own
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names or sorted(DESIGN) + sorted(REPORT):
            rows.append(row(name, measured(table(folder, name), name, splits)))
    return own + list(summary(rows)) + rows


def main(arguments: list[str]) -> None:
    """Measure some tables and print them."""
    names = [argument for argument in arguments if not argument.startswith("--")]
    splits = next((int(a.partition("=")[2]) for a in arguments if a.startswith("--splits=")), SPLITS)
    command = "python benchmarks/tables.py " + " ".join(arguments)
    section = Section(TITLE, machine(), str(datetime.date.today()), command, run(names or None, splits))
    print(as_markdown(section))
    if "--write" in arguments:
        write_sections(read_sections() | {"tables": section})


if __name__ == "__main__":
    main(sys.argv[1:])
