"""Equal rows of a class as one row with their weight, for the classifiers by pairs of classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.svm.class_rows import ClassRows
from mercer.estimators.svm.copies import Copies
from mercer.solvers.svm.pair_answers import PairAnswers


class MergedRows:
    """The rows of classes with equal ones merged into one, whose weight is their sum, and answers told apart again."""

    def __init__(self, model: KernelEstimator, X: Any, data: ClassRows) -> None:
        self.whole, self.data = data, data
        self._copies = copies = Copies.find(X, data.rows, data.codes, model.kernel_)
        if copies is not None:
            first = copies.first
            self.data = replace(data, rows=data.rows[first], codes=data.codes[first], weight=copies.summed(data.weight))

    def start(self, weights: Vector | None) -> Vector | None:
        """Weights of all rows, (k - 1, n), added up over equal ones."""
        return weights if weights is None or self._copies is None else self._copies.summed(weights)

    def spread(self, answers: PairAnswers, bounds: Vector) -> PairAnswers:
        """The answers for all rows, whose weights are at most ``bounds`` (n,) before any division."""
        if self._copies is None:
            return answers
        whole = PairAnswers(self.whole.sizes)
        scale = np.divide(answers.beta, answers.state, out=np.ones(answers.beta.shape), where=answers.state != 0)
        for layer, state in enumerate(answers.state):
            whole.state[layer] = self._copies.share(state, -bounds, bounds)
        whole.beta[...] = whole.state * scale[:, self._copies.owner]
        whole.gradient[...] = answers.gradient[:, self._copies.owner]
        whole.offsets, whole.certificates = answers.offsets, answers.certificates
        return whole
