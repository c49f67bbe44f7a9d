"""The rows of a classifier by pairs of classes, sorted by class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer._errors import InfeasibleError
from mercer._types import CheckedRows, Vector
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.labels import encoded
from mercer.estimators.svm.copies import Copies
from mercer.solvers.svm.pair_answers import PairAnswers


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows with a weight, those of the first class first: positions in X, numbers of classes, and weights.

    ``total`` is the number of all rows of X.
    """

    names: np.ndarray
    rows: NDArray[np.intp]
    codes: NDArray[np.intp]
    weight: Vector
    total: int

    @classmethod
    def of(cls, learner: str, y: np.ndarray, weight: Vector) -> ClassRows:
        """From labels and weights of all rows, for the learner of that name; two classes must have a weight."""
        used = np.flatnonzero(weight)
        names, codes = encoded(learner, y, used)
        order = np.argsort(codes, kind="stable")
        return cls(names, used[order], codes[order], weight[used[order]], len(weight))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of rows of each class."""
        return np.bincount(self.codes)

    def located(self, error: InfeasibleError) -> InfeasibleError:
        """The error with the names of the classes, and multipliers for the rows of X."""
        pair = error.pair or (0, 1)
        names = " and ".join(map(repr, self.names[list(pair)].tolist()))
        multipliers = np.zeros(self.total)
        multipliers[self.rows[np.isin(self.codes, pair)]] = error.multipliers
        located = InfeasibleError(
            str(error).replace("the classes", f"the classes {names}", 1),
            multipliers=multipliers,
            distance=error.distance,
            least_slack=error.least_slack,
        )
        located.pair = pair
        return located


class MergedRows:
    """The rows of classes with equal ones merged into one, whose weight is their sum, and answers separated again."""

    def __init__(self, model: KernelEstimator, X: CheckedRows, data: ClassRows) -> None:
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
