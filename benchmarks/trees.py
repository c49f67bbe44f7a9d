"""Kernels on parse trees: seconds for all pairs of 5,452 questions, and ``SVC`` on their six classes.

The questions are those of TREC (Li and Roth, 2002), parsed; 5,452 to learn from and 500 to be told. Decay and C are
chosen by five folds of the training part. Published: Zhang and Lee (2003), "Question classification using support
vector machines", tree kernel 90.0 %, words alone 85.8 %.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from harness import Row, data_folder, seconds_of, tell
from mercer import SVC
from mercer.data.trees import Trees
from mercer.kernels import Kernel, PartialTree, SubsetTree, Subtree

TITLE = "Kernels on trees: parsed questions of TREC"
SECONDS = 120.0
PUBLISHED = 0.900
DECAYS = (0.1, 0.2, 0.4)
COSTS = [3.0, 10.0, 30.0]
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


@dataclass(frozen=True)
class Questions:
    """Parse trees and coarse classes."""

    trees: Trees
    classes: np.ndarray


def questions() -> tuple[Questions, Questions] | None:
    """The training part and the test part; None where they are not at hand."""
    folder = data_folder()
    path = folder and folder / "trees" / "trec_qc_constituency.tsv.gz"
    if not path or not path.exists():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        rows = [line.rstrip("\n").split("\t") for line in lines]
    parts = [[row for row in rows if row[0] == split] for split in ("train", "test")]
    train, test = (Questions(Trees.of([row[4] for row in part]), np.array([row[1] for row in part])) for part in parts)
    return train, test


def all_pairs(kernel: Kernel, trees: Trees) -> Row:
    """Seconds for the Gram matrix, from trees that were read."""
    n = len(trees)
    kernel(Trees(trees.items[:20]))
    seconds = seconds_of(lambda: kernel(Trees(trees.items)))
    note = f"{n * (n + 1) / 2 / seconds / 1e6:.2f} million pairs a second; reading the text included"
    return Row(f"{kernel!r}, n = {n:,}, all pairs", "", seconds, None, f"<= {SECONDS:g} s", seconds <= SECONDS, note)


def with_words(decay: float) -> Kernel:
    """Fragments, beside words and what else is complete."""
    return SubsetTree(decay).normalized() + Subtree().normalized()


def accuracy(name: str, kernels: list[Kernel], train: Questions, test: Questions) -> Row:
    """Correct answers with the kernel and the C that are best in the training part."""
    best: tuple[float, Kernel, float] | None = None
    for kernel in kernels:
        tell(f"{kernel!r}: folds")
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": COSTS}, cv=FOLDS).fit(kernel(train.trees), train.classes)
        if best is None or search.best_score_ > best[0]:
            best = (search.best_score_, kernel, search.best_params_["C"])
    assert best is not None
    score, kernel, C = best
    model = SVC(kernel=kernel, C=C)
    seconds = seconds_of(lambda: model.fit(train.trees, train.classes))
    right = float(np.mean(model.predict(test.trees) == test.classes))
    note = f"accuracy {right:.1%}; {kernel!r}, C = {C:g} (folds {score:.1%}); seconds are those of the fit"
    facts = {"accuracy": right, "folds": float(score)}
    return Row(name, "published", seconds, None, f">= {PUBLISHED:.1%}", right >= PUBLISHED, note, facts)


def run() -> list[Row]:
    """All rows of the section."""
    data = questions()
    if data is None:
        return []
    train, test = data
    rows = [all_pairs(kernel, train.trees) for kernel in (SubsetTree(0.4), PartialTree(0.4, 0.4), Subtree())]
    row_of = partial(accuracy, train=train, test=test)
    rows.append(row_of("SVC, subset trees", [SubsetTree(decay).normalized() for decay in DECAYS]))
    rows.append(row_of("SVC, subset trees + subtrees", [with_words(decay) for decay in DECAYS]))
    rows.append(row_of("SVC, partial trees", [PartialTree(decay, decay).normalized() for decay in DECAYS]))
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
