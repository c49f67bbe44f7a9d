"""Roles of the training rows, the rows with the largest weights, and the relevance of features."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import MercerError
from mercer._types import Vector
from mercer.estimators.table import TableModel
from mercer.plotting.relevance import RelevanceDisplay
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material

_SHOWN = 10
# Permutations of more features, or of more rows, would take long.
_MOST_FEATURES, _MOST_ROWS, _REPEATS = 30, 400, 3
_ROLES = {
    "outside": "without a weight: on the right side of the margin",
    "free": "free support vectors: on the margin",
    "bounded": "bounded support vectors: within the margin or on its wrong side",
}
_ROLES_OF_TUBE = {
    "inside": "without a weight: inside the tube",
    "on": "free support vectors: on the edge of the tube",
    "outside": "bounded support vectors: outside the tube",
}


def influence(material: Material) -> Section | None:
    """Return the roles of the training rows and those with the largest weights; None without weights of rows."""
    learner = material.subject.learner
    weights = _weights(learner)
    tables = [table for table in (_roles(learner), None if weights is None else _largest(material, weights)) if table]
    if not tables or weights is None:
        return None
    facts: list[tuple[str, Any]] = [("rows with a weight", int((weights > 0).sum()))]
    share = float((weights**2).sum())
    if share > 0:
        effective = float(weights.sum()) ** 2 / share
        facts.append(("effective number of rows, by their weights", effective))
    return Section("rows", "Roles and influential rows", (), tuple(facts), tuple(tables))


def _weights(learner: Any) -> Vector | None:
    """The length of the weights of each row in the expansion, over its outputs, (s,)."""
    coefficients = getattr(learner, "dual_coef_", None)
    if coefficients is None:
        coefficients = getattr(learner, "alpha_", None)
    if coefficients is None and hasattr(learner, "model_"):
        return _weights(learner.model_)
    if coefficients is None or np.ndim(coefficients) not in (1, 2):
        return None
    values = coefficients.toarray() if sp.issparse(coefficients) else np.asarray(coefficients, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    n = _count(learner)
    if n is not None and values.shape[0] != n and values.shape[1] == n:
        values = values.T
    if values.shape[0] == 0 or not np.isfinite(values).all() or (n is not None and values.shape[0] != n):
        return None
    return np.sqrt((values**2).sum(axis=1))


def _count(learner: Any) -> int | None:
    """How many rows the learner keeps."""
    support = getattr(learner, "support_", None)
    if support is not None:
        return len(support)
    for name in ("X_fit_", "X_train_", "support_vectors_"):
        rows = getattr(learner, name, None)
        if rows is not None:
            return int(rows.shape[0])
    return None


def _roles(learner: Any) -> Table | None:
    roles = getattr(learner, "roles_", None)
    if roles is None:
        return None
    counts = Counter(np.asarray(roles).ravel().tolist())
    names = _ROLES if {"free", "bounded"} & counts.keys() else _ROLES_OF_TUBE
    rows = [(names.get(role, role), count) for role, count in counts.most_common()]
    pairs = "" if np.ndim(roles) == 1 else ", counted for every pair of classes"
    return Table.of(f"Roles of the training rows{pairs}", ("role", "rows"), rows)


def _largest(material: Material, weights: Vector) -> Table:
    learner, total = material.subject.learner, float(weights.sum()) or 1.0
    positions = _positions(learner, len(weights))
    order = np.argsort(-weights, kind="stable")[:_SHOWN]
    truth = material.truth_of_fit
    rows = []
    for row in order[weights[order] > 0]:
        known = None if positions is None else int(positions[row])
        name = f"landmark {row + 1}" if known is None else material.place_of_fit(known)
        target = None if truth is None or known is None or known >= len(truth) else _plain(truth[known])
        rows.append((name, target, float(weights[row]), float(weights[row]) / total))
    heads = ("row of the fit", "target", "size of its weight", "share of all weights")
    return Table.of("The rows with the largest weights", heads, rows, is_long=True)


def _positions(learner: Any, count: int) -> Any:
    """Where the rows with weights are among the training rows, or None if they are not among them."""
    if hasattr(learner, "support_"):
        return learner.support_
    if hasattr(learner, "landmark_indices_"):
        return learner.landmark_indices_
    return None if hasattr(learner, "model_") else np.arange(count)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ", ".join(f"{entry:.4g}" for entry in value[:4])
    return float(value) if isinstance(value, (float, np.floating)) else str(value)


def relevance(material: Material) -> Section | None:
    """Return how much each feature counts; None where rows have no features."""
    display = _relevance(material)
    if display is None:
        return None
    order = np.argsort(-display.values, kind="stable")
    rows = [(display.names[place], float(display.values[place])) for place in order]
    table = Table.of("Relevance", ("feature", display.meaning), rows)
    words = f"Features by {display.meaning}: most relevant {display.names[order[0]]}."
    height = 1.2 + 0.24 * min(len(rows), 30)
    title = "Relevance of features"
    return Section("relevance", title, (), (), (), (Figure(title, words, table, display.plot, (6.4, height)),))


def _learnt(learner: Any) -> RelevanceDisplay | None:
    """The relevance that the learner or its length scales state, if they do."""
    try:
        display = RelevanceDisplay.from_estimator(learner)
    except MercerError:
        # The kernel has no length scale for each feature.
        return None
    return display if np.isfinite(display.values).all() else None


def _relevance(material: Material) -> RelevanceDisplay | None:
    model = material.subject.model
    own = (
        None if isinstance(model, TableModel) and not material.subject.is_tabular else _learnt(material.subject.learner)
    )
    if own is not None:
        return own
    X, judged = material.X, material.judged
    wide = getattr(X, "ndim", 1) == 2 and not sp.issparse(X) and not material.subject.is_precomputed
    if judged is None or not judged.is_finite or not wide or not 1 <= X.shape[1] <= _MOST_FEATURES:
        return None
    rows = np.random.default_rng(material.seed).permutation(judged.n)[:_MOST_ROWS]
    part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    return RelevanceDisplay.from_permutation(
        model, part, judged.truth[rows], n_repeats=_REPEATS, random_state=material.seed
    )
