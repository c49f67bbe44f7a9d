"""A path of classifiers by pairs of classes: every pair is solved for all values while its matrix is in hand."""

from __future__ import annotations

from typing import Any

from mercer.engine import memory
from mercer.estimators.svm.class_rows import MergedRows
from mercer.estimators.svm.pair_classifier import PairClassifier
from mercer.estimators.svm.pair_probabilities import is_wanted
from mercer.solvers.svm.pairwise import solve_pairs_along


def fit_pairs(models: list[PairClassifier], X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``models``, which differ in C or nu alone and are in ascending order of it."""
    first = models[0]
    for model in models:
        model._check_parameters()
    X, data, _ = first._prepare(X, y, sample_weight)
    fitted = {name: value for name, value in vars(first).items() if name not in first.get_params(deep=False)}
    for model in models[1:]:
        model.__dict__.update(fitted)
    merged = MergedRows(first, X, data)
    few = merged.data
    with memory.track() as account:
        gram, convex = matrix = first._class_gram(X, few)
        bounds, machines = [model._bounds(few) for model in models], [model._machine(few) for model in models]
        every = solve_pairs_along(gram, few.sizes, bounds, machines, convex=convex)
    if few is not data and is_wanted(first.probability):
        matrix = first._class_gram(X, data)
    for model, answers in zip(models, every):
        answers = merged.spread(answers, model._bounds(data))
        model._finish(X, data, answers, float(answers.certificates.seconds.sum()), account.peak)
        model._report()
        model._calibrate(*matrix, data, model._bounds(data), answers)
