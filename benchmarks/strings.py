"""Kernels on strings: against scikit-learn's counts, cells a second of subsequences, and published accuracies.

A cell of a pair of strings is one pair of their symbols at one length of subsequences.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict
from sklearn.svm import LinearSVC

from harness import Row, data_folder, in_turn, seconds_of, tell
from mercer import SVC, Gram
from mercer.kernels import GappyKmers, Kernel, Spectrum, Subsequence, WeightedDegree

TITLE = "Kernels on strings"
REPEATS = 5
THREADS = 2
N_LONG, LONG, LENGTH, DECAY = 1000, 200, 4, 0.5
LEAST_CELLS = 1e9
# Pairs that the programme in Python does: it is a thousand times as slow.
PYTHON_PAIRS = 2


class Labelled(NamedTuple):
    """Strings with classes, and whether each is for training."""

    texts: list[str]
    labels: np.ndarray
    train: np.ndarray


def read(folder: Path, name: str) -> Labelled:
    """A table of ``split``, ``label`` and ``text``."""
    with gzip.open(folder / "strings" / f"{name}.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    return Labelled([r[2] for r in rows], np.array([r[1] for r in rows]), np.array([r[0] == "train" for r in rows]))


def python_subsequences(x: str, z: str) -> float:
    """The recursion of Lodhi et al. (2002) for all lengths up to ``LENGTH``, as one writes it in Python."""
    above = [[1.0] * (len(z) + 1) for _ in range(len(x) + 1)]
    total = 0.0
    for _ in range(LENGTH):
        below = [[0.0] * (len(z) + 1) for _ in range(len(x) + 1)]
        for s, a in enumerate(x):
            carried = 0.0
            for t, b in enumerate(z):
                carried *= DECAY
                if a == b:
                    carried += DECAY * DECAY * above[s][t]
                    total += DECAY * DECAY * above[s][t]
                below[s + 1][t + 1] = DECAY * below[s][t + 1] + carried
        above = below
    return total


def _spectrum(folder: Path) -> list[Row]:
    texts = read(folder, "splice").texts
    kernel = Spectrum(5)

    def peer() -> np.ndarray:
        counts = CountVectorizer(analyzer="char", ngram_range=(5, 5), lowercase=False).fit_transform(texts)
        return (counts @ counts.T).toarray()

    def ours() -> np.ndarray:
        # Strings are read from the list each time: nothing is kept of the run before.
        return Gram(kernel, texts, n_jobs=THREADS).dense()

    same = np.array_equal(ours(), peer())
    times = in_turn({"ours": ours, "peer": peer}, repeats=REPEATS)
    met = same and times["peer"] >= 3 * times["ours"]
    case = f"Spectrum(5), Gram matrix of {len(texts)} sequences of splice, {THREADS} threads"
    note = "the same numbers" if same else "**other numbers**"
    return [Row(case, "scikit-learn CountVectorizer, V @ V.T", times["ours"], times["peer"], ">= 3", met, note)]


def _subsequences() -> list[Row]:
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("acgt"), LONG)) for _ in range(N_LONG)]
    kernel = Subsequence(LENGTH, DECAY)
    Gram(kernel, texts[:64], n_jobs=THREADS).dense()
    K: list[np.ndarray] = []
    ours = min(seconds_of(lambda: K.append(Gram(kernel, texts, n_jobs=THREADS).dense())) for _ in range(3))
    pairs = N_LONG * (N_LONG + 1) // 2
    values: list[float] = []
    peer = seconds_of(lambda: values.extend(python_subsequences(texts[0], text) for text in texts[:PYTHON_PAIRS]))
    peer *= pairs / PYTHON_PAIRS
    same = np.allclose(values, K[0][0, :PYTHON_PAIRS], rtol=1e-12)
    cells = pairs * LONG * LONG * LENGTH / ours
    case = f"{kernel}, Gram matrix of {N_LONG} strings of {LONG} symbols, {THREADS} threads"
    note = (
        f"{cells:.2e} cells a second with the {LENGTH} lengths counted, {cells / LENGTH:.2e} pairs of symbols; peer's "
        f"time from {PYTHON_PAIRS} pairs"
    )
    met = same and cells >= LEAST_CELLS and peer >= 100 * ours
    demand = ">= 100, >= 1e9 cells a second"
    return [Row(case, "the same recursion in Python", ours, peer, demand, met, note, {"cells": cells})]


def _leave_one_out(folder: Path) -> list[Row]:
    texts, labels, _ = read(folder, "promoters")
    kernel = WeightedDegree(2, shift=2).normalized()
    K = kernel(texts)
    begun = seconds_of(lambda: kernel(texts))
    found = cross_val_predict(SVC(kernel="precomputed", C=10.0), K, labels, cv=LeaveOneOut())
    wrong = int((found != labels).sum())
    note = f"{wrong} of {len(labels)} wrong; KBANN 4 (notes of the data set)"
    case = f"promoters, leave one out, SVC(C=10), {kernel}"
    return [Row(case, "published", begun, None, "<= 4 wrong", wrong <= 4, note, {"wrong": wrong})]


def _splice(folder: Path) -> list[Row]:
    texts, labels, _ = read(folder, "splice")
    # KBANN's figures are of ten folds of a thousand sequences picked at random.
    picked = np.random.default_rng(0).choice(len(labels), 1000, replace=False)
    labels = labels[picked]
    kernel = WeightedDegree(2).normalized()
    K = kernel([texts[i] for i in picked])
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    found = cross_val_predict(SVC(kernel="precomputed"), K, labels, cv=folds)
    published = {"EI": 7.6, "IE": 8.5, "N": 4.6}
    errors = {name: 100 * float((found != labels)[labels == name].mean()) for name in published}
    met = all(errors[name] <= published[name] for name in published)
    note = ", ".join(f"{name} {errors[name]:.1f} % wrong (KBANN {published[name]})" for name in published)
    case = f"splice, ten folds of 1000, SVC(C=1), {kernel}"
    return [Row(case, "published", seconds_of(lambda: kernel(texts[:1000])), None, "<= KBANN", met, note, errors)]


def _against_fastsk(folder: Path, name: str, kernel: Kernel, C: float, accuracy: float, area: float) -> list[Row]:
    texts, labels, train = read(folder, name)
    tell(name)
    train_texts, test_texts = ([t for t, b in zip(texts, train, strict=True) if b == side] for side in (True, False))
    blocks: list[np.ndarray] = []
    seconds = seconds_of(lambda: blocks.extend([kernel(train_texts), kernel(test_texts, train_texts)]))
    # FastSK's own protocol: rows of the kernel matrix are the columns of a linear machine, calibrated in five folds.
    theirs = CalibratedClassifierCV(LinearSVC(C=C), cv=5).fit(blocks[0], labels[train])
    model = SVC(kernel="precomputed", C=C).fit(blocks[0], labels[train])
    known = labels[~train] == model.classes_[1]
    answers = {"linear": theirs.predict_proba(blocks[1])[:, 1] - 0.5, "svc": model.decision_function(blocks[1])}
    facts = {f"{key}_accuracy": float(((found > 0) == known).mean()) for key, found in answers.items()}
    facts |= {f"{key}_area": float(roc_auc_score(known, found)) for key, found in answers.items()}
    met = round(facts["linear_accuracy"], 3) >= accuracy and round(facts["linear_area"], 3) >= area
    note = (
        f"accuracy {facts['linear_accuracy']:.4f} ({accuracy}), area {facts['linear_area']:.4f} ({area}); "
        f"SVC on the kernel itself {facts['svc_accuracy']:.4f}, {facts['svc_area']:.4f}"
    )
    demand = "accuracy and area >= FastSK's"
    case = f"{name}, C={C:g}, {kernel}, FastSK's protocol"
    return [Row(case, "FastSK, published", seconds, None, demand, met, note, facts)]


def run() -> list[Row]:
    """All rows of the section."""
    rows = _subsequences()
    folder = data_folder()
    if folder is None:
        return rows
    rows = _spectrum(folder) + rows + _leave_one_out(folder) + _splice(folder)
    rows += _against_fastsk(folder, "tfbs_CTCF", GappyKmers(13, wildcards=7).normalized(), 1.0, 0.913, 0.970)
    return rows + _against_fastsk(folder, "scop_2.19", GappyKmers(8, wildcards=4).normalized(), 0.01, 0.993, 0.895)


if __name__ == "__main__":
    for row in run():
        print(row)
