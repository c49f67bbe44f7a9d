"""Searches over kernels on strings and graphs, beside scikit-learn's over matrices that are made for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from grakel.kernels import VertexHistogram
from grakel.kernels import WeisfeilerLehman as PeerWeisfeilerLehman
from sklearn import model_selection, svm
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import PredefinedSplit, StratifiedKFold

from graphs import as_grakel, load
from harness import Row, seconds_of, tell
from mercer import SVC, GridSearchCV
from mercer.kernels import Kernel, Spectrum, WeisfeilerLehman
from strings import read
from svm_data import some_rows

# Rows of a first search, which compiles.
_WARM_UP_ROWS = 600
# Of normalised kernels and of plain ones, whose values are some hundreds.
FORMS = (("normalised", True, np.logspace(-2, 3, 6)), ("plain", False, np.logspace(-5, 0, 6)))
DEMAND = 10.0


@dataclass(frozen=True)
class ObjectSearch:
    """A search over kernels on objects and C; the peer makes a matrix for each kernel with its own ``matrix``."""

    name: str
    X: list[Any]
    y: np.ndarray
    kernels: dict[Kernel, Callable[[], np.ndarray]]
    Cs: np.ndarray
    folds: Any


def compare_on_objects(case: ObjectSearch) -> Row:
    """Our search beside scikit-learn's over ``SVC(kernel="precomputed")``; each makes all its matrices."""
    tell(case.name)
    ours = GridSearchCV(SVC(), {"kernel": list(case.kernels), "C": case.Cs}, cv=case.folds, refit=False)
    few = np.arange(len(case.X))[some_rows(len(case.X), _WARM_UP_ROWS)]
    clone(ours).set_params(cv=3).fit([case.X[i] for i in few], case.y[few])
    seconds = seconds_of(lambda: ours.fit(case.X, case.y))
    tell(f"{case.name}: Mercer {seconds:.1f} s; {ours.sharing_}")
    of_matrices, of_fits, tables = 0.0, 0.0, []
    for make in case.kernels.values():
        matrices: list[np.ndarray] = []
        of_matrices += seconds_of(lambda: matrices.append(make()))  # noqa: B023
        peer = model_selection.GridSearchCV(
            svm.SVC(kernel="precomputed"), {"C": case.Cs}, cv=case.folds, refit=False, n_jobs=os.cpu_count()
        )
        of_fits += seconds_of(lambda: peer.fit(matrices[0], case.y))  # noqa: B023
        tables.append(peer.cv_results_["mean_test_score"])
    tell(f"{case.name}: scikit-learn {of_matrices:.1f} + {of_fits:.1f} s")
    # Of ours, the kernel is the parameter that changes fastest.
    theirs, scores = np.array(tables).T.ravel(), ours.cv_results_["mean_test_score"]
    apart, best = np.abs(scores - theirs).max(), theirs.max() - scores.max()
    note = (
        f"mean scores at most {apart:.1e} apart, the best {abs(best):.1e}; the peer's matrices took {of_matrices:.1f} s"
    )
    facts = {"scores_apart": float(apart), "best_apart": float(best), "matrices_seconds": of_matrices}
    ratio = (of_matrices + of_fits) / seconds
    peer_name = "scikit-learn on precomputed matrices"
    return Row(case.name, peer_name, seconds, ratio * seconds, f">= {DEMAND:g}", ratio >= DEMAND, note, facts)


def strings(folder: Path) -> list[Row]:
    """Spectrum kernels of 2 to 6 symbols on the splice sequences, ten folds."""
    texts, labels, _ = read(folder, "splice")
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    rows = []
    for name, normalized, Cs in FORMS:
        kernels: dict[Kernel, Callable[[], np.ndarray]] = {}
        for k in range(2, 7):
            kernels[Spectrum(k).normalized() if normalized else Spectrum(k)] = partial(_counted, texts, k, normalized)
        case = f"splice, Spectrum(2 ... 6) {name}, 6 C, 10 folds"
        rows.append(compare_on_objects(ObjectSearch(case, texts, labels, kernels, Cs, folds)))
    return rows


def _counted(texts: list[str], k: int, normalized: bool) -> np.ndarray:
    counts = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False).fit_transform(texts)
    K = np.asarray((counts @ counts.T).toarray(), dtype=np.float64)
    if normalized:
        norms = np.sqrt(K.diagonal())
        K /= norms[:, None]
        K /= norms
    return K


def graphs(folder: Path) -> list[Row]:
    """Subtree kernels of 1 to 5 steps on NCI1, the ten folds of the data."""
    data = load("NCI1", folder)
    plain, theirs = [(edges, labels) for edges, labels, _ in data.graphs], as_grakel(data.graphs)

    def peer(steps: int, normalized: bool) -> np.ndarray:
        kernel = PeerWeisfeilerLehman(n_iter=steps, base_graph_kernel=VertexHistogram, normalize=normalized)
        return np.asarray(kernel.fit_transform(theirs))

    rows = []
    for name, normalized, Cs in FORMS:
        kernels: dict[Kernel, Callable[[], np.ndarray]] = {}
        for h in range(1, 6):
            kernel = WeisfeilerLehman(h)
            kernels[kernel.normalized() if normalized else kernel] = partial(peer, h, normalized)
        case = f"NCI1, WeisfeilerLehman(1 ... 5) {name}, 6 C, 10 folds"
        rows.append(compare_on_objects(ObjectSearch(case, plain, data.y, kernels, Cs, PredefinedSplit(data.folds[0]))))
    return rows
