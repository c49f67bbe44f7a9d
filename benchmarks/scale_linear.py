"""Linear kernels on more rows than features: text of 20,000 words, and the features of a map, beside scikit-learn.

The text is drawn: words have Zipf's law, documents have one of twenty topics, and counts are weighted as by
``TfidfTransformer(sublinear_tf=True)``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from harness import Row
from mercer import SVC, KernelLogisticRegression, KernelRidge
from mercer.maps import NystroemMap

WORDS, TOPICS, LENGTH = 20_000, 20, 80
REPEATS = 3
# Objectives are equal to this share.
_EQUAL = 2e-6


def drawn_text(n: int, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Documents, (n, 20,000), their two classes, and a target."""
    random = np.random.default_rng(seed)
    common = 1 / (np.arange(WORDS) + 2.7) ** 1.05
    topics = common * random.gamma(0.3, 1 / 0.3, size=(TOPICS, WORDS))
    mixed = 0.5 * topics / topics.sum(axis=1, keepdims=True) + 0.5 * common / common.sum()
    until = np.cumsum(mixed, axis=1)
    lengths = random.poisson(LENGTH * random.gamma(2, 0.5, size=n)) + 5
    documents, topic = np.repeat(np.arange(n), lengths), np.repeat(random.integers(TOPICS, size=n), lengths)
    draws, words = random.random(len(documents)), np.empty(len(documents), np.int64)
    for k in range(TOPICS):
        own = topic == k
        words[own] = np.minimum(np.searchsorted(until[k], draws[own] * until[k, -1]), WORDS - 1)
    counts = sp.csr_matrix((np.ones(len(documents)), (documents, words)), shape=(n, WORDS))
    X = sp.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    score = X @ (random.normal(size=WORDS) * (random.random(WORDS) < 0.3))
    score /= score.std()
    labels = np.where(score + 0.3 * random.normal(size=n) > np.median(score), 1, -1)
    return X, labels, score + 0.5 * random.normal(size=n)


def _processor_seconds(fits: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """The least of several, in turn, of all threads; and what the fits return."""
    best, fitted = dict.fromkeys(fits, np.inf), {}
    for _ in range(REPEATS):
        for name, fit in fits.items():
            start = time.process_time()
            fitted[name] = fit()
            best[name] = min(best[name], time.process_time() - start)
    return best, fitted


def _row(case: str, peer: str, times: dict[str, float], met: bool, note: str, facts: dict[str, float]) -> Row:
    met = met and times["ours"] <= times["peer"]
    return Row(case, peer, times["ours"], times["peer"], ">= 1", met, f"CPU seconds; {note}", facts)


def linear_svc() -> list[Row]:
    """Support vector machines on text, at equal objectives with an offset that has no penalty."""
    rows = []
    for n in (20_000, 100_000):
        X, y, _ = drawn_text(n)
        models = {
            "ours": SVC(kernel="linear", tol=5e-4),
            "peer": LinearSVC(loss="hinge", tol=1e-3, max_iter=10_000, random_state=0),
        }
        SVC(kernel="linear").fit(X[:4000, :3000], y[:4000])
        times, fitted = _processor_seconds({name: partial(model.fit, X, y) for name, model in models.items()})
        values = {}
        for name, model in fitted.items():
            w = np.ravel(model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_)
            values[name] = float(0.5 * w @ w + np.maximum(0.0, 1.0 - y * (X @ w + model.intercept_[0])).sum())
        note = f"objectives {values['ours']:.2f} and {values['peer']:.2f}"
        met = values["ours"] <= values["peer"] * (1.0 + _EQUAL)
        rows.append(_row(f"SVC on text, {n:,} rows", "liblinear", times, met, note, values))
    return rows


def linear_ridge() -> list[Row]:
    """Ridge regression on text, at equal residuals of the normal equations."""
    rows = []
    for n in (20_000, 100_000):
        X, _, t = drawn_text(n)
        KernelRidge().fit(X[:6000, :5000], t[:6000])
        models = {"ours": KernelRidge(), "peer": Ridge(fit_intercept=False, tol=1e-5)}
        times, fitted = _processor_seconds({name: partial(model.fit, X, t) for name, model in models.items()})
        size = np.linalg.norm(X.T @ t)
        left = {
            name: float(np.linalg.norm(X.T @ (t - X @ model.coef_) - model.coef_) / size)
            for name, model in fitted.items()
        }
        note = f"residuals {left['ours']:.1e} and {left['peer']:.1e}"
        rows.append(_row(f"ridge on text, {n:,} rows", "sparse_cg", times, left["ours"] <= left["peer"], note, left))
    return rows


def columns() -> list[Row]:
    """Ridge and logistic regression on 500 dense columns, and on 500 features of a map."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 500))
    t = X @ random.normal(size=500) / np.sqrt(500) + random.normal(size=len(X))
    few = X[:, :10].copy()
    case = "100,000 rows"
    ridge = {"ours": partial(KernelRidge().fit, X, t), "peer": partial(Ridge(fit_intercept=False).fit, X, t)}
    logistic = {
        "ours": partial(KernelLogisticRegression(kernel="linear").fit, X, t > 0),
        "peer": partial(LogisticRegression(tol=1e-6, max_iter=1000).fit, X, t > 0),
    }
    maps = {
        name: make_pipeline(NystroemMap(n_components=500, random_state=0), model)
        for name, model in (("ours", KernelRidge()), ("peer", Ridge(fit_intercept=False)))
    }
    mapped = {name: partial(_fitted_part, pipeline, few, np.sin(few[:, 0])) for name, pipeline in maps.items()}
    rows = []
    for name, fits in (("ridge", ridge), ("logistic", logistic), ("a map of 500 features and ridge", mapped)):
        times, fitted = _processor_seconds(fits)
        ours, theirs = fitted["ours"].coef_, fitted["peer"].coef_
        apart = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        note = f"coefficients apart by {apart:.1e}"
        rows.append(_row(f"{name}, {case}", "scikit-learn", times, apart < 1e-3, note, {"apart": apart}))
    return rows


def _fitted_part(pipeline: Any, X: np.ndarray, t: np.ndarray) -> Any:
    """The regression of a pipeline after a fit."""
    return pipeline.fit(X, t)[-1]


PARTS = {"text_svc": linear_svc, "text_ridge": linear_ridge, "columns": columns}
