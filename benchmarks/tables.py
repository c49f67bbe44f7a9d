"""Tables with nothing chosen, beside boosted trees at their defaults: test errors, coverage of intervals, time.

``python benchmarks/tables.py [--write]`` or ``run.py tables`` measures all tables and contenders, which takes hours.
What was measured is kept in ``tables.sqlite`` beside this file, so that an interrupted run goes on where it ended, and
parts can be measured at different times. ``$TABLES=concrete,magic`` selects tables, ``$TABLE_FOLDS=3`` the first
splits, and ``$TABLE_PEERS="CatBoost;CatBoost, tuned"`` the other contenders. Rows are written for all that is in the
file, whenever it was measured.

The error is the RMSE of a regression and the log loss of a classification. At most TRAINED rows are learnt from and
TESTED are tested, drawn with a seed. Splits are the source's, or else ten folds of the rows; of tables of more than
LARGE rows the first FEW are taken. The rule by which ``TabularRegressor`` and ``TabularClassifier`` choose was fixed on
the tables of the first half, and the second half is reported apart; but see docs/decisions/0101-rare-classes.md.
Peers that are not installed are left out. Seconds of fits to tables are processor time of all threads, so that other
work on the machine counts little. ``tuned`` is a random search on a fifth of the training rows held out, for as long as
ours took on that split, and then a fit with the best parameters. A standard error is over splits, or over test rows
where there are fewer than FIVE.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets

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
from table_data import CLASSES, DESIGN, REPORT, SPLITS, Split, Table, table
from table_parts import Part, Parts, our_version
from table_peers import DRAWS, errors, fitted, for_trees, peers, tuned, version

TITLE = "Tables with nothing chosen, beside boosted trees: test errors, intervals and time"
FIVE = 5
COVERAGE, LOW, HIGH = (0.05, 0.95), 0.87, 0.93
LARGEST_RATIO, BETTER = 0.92, 0.75
# Ratios are counted as this at most, or one over this at least.
MOST = 3.0
GIB = 2**30
OURS, FIRST = "Mercer", "CatBoost"


# ---- measuring


def contenders(classifies: bool) -> list[str]:
    """Names of all that are measured, ours first."""
    names = [way for peer in peers(classifies) for way in ([peer, f"{peer}, tuned"] if peer in DRAWS else [peer])]
    asked = os.environ.get("TABLE_PEERS")
    chosen = names if asked is None else [name for name in names if name in asked.split(";")]
    return [OURS, *chosen]


def version_of(contender: str, classifies: bool) -> str:
    """What a part of the file must have been measured with."""
    return our_version(classifies) if contender == OURS else version(contender)


def measure(data: Table, name: str, splits: int, parts: Parts) -> None:
    """Measure what the file lacks of a table."""
    for number in range(min(splits, len(data.tests))):
        split, ours = None, None
        for contender in contenders(name in CLASSES):
            known = parts.get(name, number, contender, version_of(contender, name in CLASSES))
            if known is None:
                split = data.split(number) if split is None else split
                known = _measured(contender, split, name in CLASSES, ours)
                parts.add(name, number, contender, version_of(contender, name in CLASSES), known)
                tell(f"{name}, split {number + 1}, {contender}: {known.errors.mean():.4g} in {known.seconds:.1f} s")
            ours = known if contender == OURS else ours


def _measured(contender: str, split: Split, classifies: bool, ours: Part | None) -> Part:
    if contender == OURS:
        own = TabularClassifier() if classifies else TabularRegressor()
        _, seconds = _timed(partial(own.fit, split.X, split.y))
        coverage = None
        if isinstance(own, TabularRegressor):
            low, high = own.predict_quantiles(split.X_test, COVERAGE).T
            coverage = float(np.mean((low <= split.y_test) & (split.y_test <= high)))
        return Part(errors(own, split.X_test, split.y_test), seconds, coverage)
    X, X_test = for_trees(split)
    peer = contender.partition(",")[0]
    make = peers(classifies)[peer]
    run = partial(fitted, peer, make, X, split.y)
    if contender != peer:
        assert ours is not None
        run = partial(tuned, peer, make, X, split.y, ours.seconds)
    model, seconds = _timed(run)
    return Part(errors(model, X_test, split.y_test), seconds)


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and its processor time."""
    start = time.process_time()
    result = run()
    return result, time.process_time() - start


# ---- scores


@dataclass
class Scores:
    """The parts of one table by contender, of the splits that ours and the first peer have."""

    classifies: bool
    parts: dict[str, list[Part]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, splits: int, parts: Parts) -> Scores:
        scores = cls(name in CLASSES)
        for contender in contenders(scores.classifies):
            found = [
                parts.get(name, number, contender, version_of(contender, name in CLASSES)) for number in range(splits)
            ]
            scores.parts[contender] = [part for part in found if part is not None]
        count = min(len(scores.parts.get(OURS, [])), len(scores.parts.get(FIRST, [])))
        scores.parts = {key: found[:count] for key, found in scores.parts.items() if count and len(found) >= count}
        return scores

    def of_splits(self, name: str) -> np.ndarray:
        means = np.array([part.errors.mean() for part in self.parts[name]])
        return means if self.classifies else np.sqrt(means)

    def error(self, name: str) -> float:
        return float(self.of_splits(name).mean())

    def seconds(self, name: str) -> float:
        return float(np.median([part.seconds for part in self.parts[name]]))

    def standard_error(self, peer: str) -> float:
        """Of the difference between ours and that of the peer."""
        ours, theirs = self.parts[OURS], self.parts[peer]
        if len(ours) >= FIVE:
            return float((self.of_splits(OURS) - self.of_splits(peer)).std(ddof=1) / np.sqrt(len(ours)))
        difference = np.concatenate([own.errors - other.errors for own, other in zip(ours, theirs, strict=True)])
        scale = 1.0 if self.classifies else 2 * self.error(peer)
        return float(difference.std(ddof=1) / np.sqrt(len(difference)) / scale)


def row(name: str, scores: Scores) -> Row:
    """The line of a table."""
    ours, theirs, margin = scores.error(OURS), scores.error(FIRST), scores.standard_error(FIRST)
    ratios = {f"ratio to {key}": ours / scores.error(key) for key in scores.parts if key != OURS}
    facts = {f"error of {key}": scores.error(key) for key in scores.parts} | ratios
    facts |= {"margin": margin, "standard errors worse": (ours - theirs) / margin}
    figures = ", ".join(f"{key} {scores.error(key):.4g}" for key in scores.parts)
    note = ("log loss: " if scores.classifies else "RMSE: ") + figures + f"; standard error {margin:.2g}"
    covered = [part.coverage for part in scores.parts[OURS] if part.coverage is not None]
    if covered:
        facts["coverage"] = float(np.mean(covered))
        note += f"; coverage of 90 % intervals {facts['coverage']:.3f}"
    half, count = "first half" if name in DESIGN else "second half", len(scores.parts[OURS])
    return Row(
        f"{name} ({half}, {count} split{'s' * (count > 1)})",
        FIRST,
        scores.seconds(OURS),
        scores.seconds(FIRST),
        "not worse by more than a standard error",
        bool(ours <= theirs + margin),
        note,
        facts,
    )


# ---- all tables


def summary(rows: list[Row]) -> Iterator[Row]:
    """The lines of each half, and of both."""
    for half in ("first half", "second half", "half"):
        part = [r for r in rows if half in r.case]
        if not part:
            continue
        called = f"tables of both halves: {len(part)}" if half == "half" else f"tables of the {half}: {len(part)}"
        yield _against(FIRST, called, part)
        worst = max(part, key=lambda r: r.facts["standard errors worse"])
        far = worst.facts["standard errors worse"]
        note = f"{worst.case.partition(' ')[0]}, {far:+.1f} standard errors, ratio {worst.facts[_ratio(FIRST)]:.3f}"
        demand = "the worst not worse by more than a standard error"
        yield Row(called, FIRST, None, None, demand, far <= 1, note, {"standard errors worse": far})
        covered = [r.facts["coverage"] for r in part if "coverage" in r.facts]
        if covered:
            value = float(np.mean(covered))
            note = f"{value:.3f} on the mean of {len(covered)}, {min(covered):.3f} to {max(covered):.3f}"
            demand = f"coverage of 90 % intervals between {LOW} and {HIGH}"
            yield Row(called, "", None, None, demand, LOW <= value <= HIGH, note, {"coverage": value})
        others = dict.fromkeys(key[len("ratio to ") :] for r in part for key in r.facts if key.startswith("ratio to "))
        yield from (_against(peer, called, part) for peer in others if peer != FIRST)


def _ratio(peer: str) -> str:
    return f"ratio to {peer}"


def _against(peer: str, called: str, rows: list[Row]) -> Row:
    """The geometric mean of error ratios; the demand is that for the first peer."""
    # One table whose log loss is next to zero would else decide the mean.
    ratios = np.clip([r.facts[_ratio(peer)] for r in rows if _ratio(peer) in r.facts], 1 / MOST, MOST)
    mean, better = float(np.exp(np.log(ratios).mean())), int((ratios < 1).sum())
    note = f"geometric mean of error ratios {mean:.3f}, better on {better} of {len(ratios)}"
    demand, met = "", True
    if peer == FIRST:
        demand = f"geometric mean of error ratios <= {LARGEST_RATIO}, better on {BETTER:.0%}"
        met = mean <= LARGEST_RATIO and better >= BETTER * len(ratios)
    return Row(called, peer, None, None, demand, met, note, {"ratio": mean, "better": better, "tables": len(ratios)})


def times() -> Iterator[Row]:
    """Time and memory of our own fits; first in a process, whose peak is then theirs."""
    for n, d, most in ((1000, 8, 2.0), (4000, 10, 15.0)):
        X, y = datasets.make_friedman1(n, max(d, 5), noise=1.0, random_state=0)
        TabularRegressor().fit(X[:50], y[:50])
        used = time.process_time()
        seconds = seconds_of(partial(TabularRegressor().fit, X, y))
        note = (
            f"{time.process_time() - used:.1f} s of processor time, peak of the process {peak_so_far() / GIB:.2f} GiB"
        )
        met = seconds <= most and peak_so_far() < 2 * GIB
        yield Row(f"{n} x {d}", "", seconds, None, f"<= {most:g} s, <= 2 GiB", met, note)


def names() -> list[str]:
    """All tables, or those of ``$TABLES``."""
    every = sorted(DESIGN) + sorted(REPORT)
    asked = [name for name in os.environ.get("TABLES", "").split(",") if name]
    unknown = [name for name in asked if name not in every]
    if unknown:
        raise SystemExit(f"no table {unknown[0]!r}; there are {', '.join(every)}")
    return asked or every


def rows_of(parts: Parts) -> list[Row]:
    """The lines of all tables in the file, after their summary."""
    rows = []
    for name in sorted(DESIGN) + sorted(REPORT):
        scores = Scores.of(name, SPLITS, parts)
        if scores.parts:
            rows.append(row(name, scores))
    return [*summary(rows), *rows]


def run() -> list[Row]:
    """Measure what the file lacks, and return the lines of all that it has."""
    folder, parts = data_folder(), Parts()
    own = list(times())
    if folder is None:
        return own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names():
            measure(table(folder, name), name, int(os.environ.get("TABLE_FOLDS", SPLITS)), parts)
    return own + rows_of(parts)


def main(arguments: list[str]) -> None:
    """Measure, and print all that was measured."""
    section = Section(TITLE, machine(), str(datetime.date.today()), "python benchmarks/tables.py", run())
    print(as_markdown(section))
    if "--write" in arguments:
        write_sections(read_sections() | {"tables": section})


if __name__ == "__main__":
    main(sys.argv[1:])
