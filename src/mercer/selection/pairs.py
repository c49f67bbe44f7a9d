"""A path of classifiers by pairs of classes: every pair is solved for all values while its matrix is in hand."""

from __future__ import annotations

import copy
from contextlib import ExitStack
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.engine import memory
from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.svm.class_rows import ClassRows, MergedRows
from mercer.estimators.svm.pair_classifier import PairClassifier
from mercer.estimators.svm.pair_probabilities import is_wanted
from mercer.estimators.svm.warm_starts import WarmStarts, outward
from mercer.gram import PrecomputedGram
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.joined_pair import PairMatrix
from mercer.solvers.svm.pair_answers import PairAnswers
from mercer.solvers.svm.pairwise import Answer, Controls, Method, Pair, c_svc
from mercer.solvers.svm.smo import EXACT


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
    steps = _Steps(models, few)
    with memory.track() as account:
        matrix = first._class_gram(X, few)
        first._solve(*matrix, few, steps.bounds[0], None, steps.solve)
    if few is not data and is_wanted(first.probability):
        matrix = first._class_gram(X, data)
    for number, model in enumerate(models):
        answers = PairAnswers.of(few.sizes, (steps.answers[pair][number] for pair in sorted(steps.answers)))
        answers = merged.spread(answers, model._bounds(data))
        model._finish(X, data, answers, float(answers.certificates.seconds.sum()), account.peak)
        model._report()
        model._calibrate(*matrix, data, model._bounds(data), answers)


class _Steps:
    """Solves the problem of a pair for one model after the other, and keeps all the answers."""

    def __init__(self, models: list[PairClassifier], data: ClassRows) -> None:
        self.bounds = [model._bounds(data) for model in models]
        self.answers: dict[Pair, dict[int, Answer]] = {}
        self._methods = [model._method(data) for model in models]
        # The weights of a nu-machine sum to what is known where its problem is stated; it scales them itself.
        self._by_itself = isinstance(models[0], NuSVC)
        ends = np.cumsum(data.sizes)
        self._parts = [slice(int(end - size), int(end)) for end, size in zip(ends, data.sizes)]

    def solve(
        self,
        gram: GramMatrix,
        y: Vector,
        upper: Vector,
        *,
        controls: Controls,
        start: Vector | None,
        joined: PairMatrix | None,
        pair: Pair,
    ) -> Answer:
        """As a :class:`mercer.solvers.svm.pairwise.Method`; returns the answer of the first model."""
        answers: dict[int, Answer] = {}
        rows = np.r_[self._parts[pair[0]], self._parts[pair[1]]]
        with ExitStack() as held:
            begin = WarmStarts(held)
            if joined is None and len(y) <= EXACT:
                gram = PrecomputedGram(begin.matrix(gram))
            trails: dict[int, WarmStarts] = {}
            for number, before in outward(len(self._methods)):
                method, bound = self._methods[number], self.bounds[number][rows]
                if self._by_itself:
                    last = None if before is None else answers[before].value.beta
                    answers[number] = method(gram, y, bound, controls=controls, start=last, joined=joined, pair=pair)
                else:
                    warm_starts = trails[number] = begin if before is None else copy.copy(trails[before])
                    answers[number] = _next(warm_starts, method, gram, y, bound, controls, joined, pair)
        self.answers[pair] = answers
        return answers[0]


def _next(
    warm_starts: WarmStarts,
    method: Method,
    gram: GramMatrix,
    y: Vector,
    upper: Vector,
    controls: Controls,
    joined: PairMatrix | None,
    pair: Pair,
) -> Answer:
    """The C-SVC for the next value."""
    problem = BoxQP.classification(gram, y, upper, intercept=controls.intercept, convex=controls.convex)
    start, gradient = warm_starts.start(problem)
    known = {"start_gradient": gradient} if method is c_svc else {}
    answer = method(gram, y, upper, controls=controls, start=start, joined=joined, pair=pair, **known)
    warm_starts.keep(problem, answer.value)
    return answer
