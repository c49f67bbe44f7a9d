"""The C-SVC of pairs of classes of a few hundred rows each: steps in float32 on joined blocks, checked in float64.

Such problems take a millisecond each, of which making their whole matrix would be the most. What steps alone do not
solve is left to :func:`mercer.solvers.smo.solve_box_qp`.
"""

from __future__ import annotations

import time

import numpy as np

from mercer.engine.tiles import scratch_tile, spans
from mercer.loops.joined import solve_joined
from mercer.loops.pairs import FIGURES, assess
from mercer.solvers.pair_answers import Pair, PairAnswers
from mercer.solvers.problems import Array, GramMatrix, Vector
from mercer.solvers.step_rule import StepRule

# The part of the tolerance that is aimed at in float32, to leave room for its rounding.
_FLOAT32_PART = 0.9
_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)


class SmallPairs:
    """Solves pairs, from any thread, given the blocks of the classes with themselves in float32.

    Parameters
    ----------
    gram : GramMatrix
        K of all rows, sorted by class.
    own : dict of int to ndarray
        The block of each class with itself.
    upper : ndarray of shape (n,)
        Bounds of the sizes of the weights.
    answers : PairAnswers
        Where the answers go.
    rule : StepRule
        When a pair is solved.
    """

    def __init__(
        self, gram: GramMatrix, own: dict[int, Array], upper: Vector, answers: PairAnswers, rule: StepRule
    ) -> None:
        self._single, self._exact = gram.astype(np.float32), gram.astype(np.float64)
        self._own, self._upper, self._answers, self._rule = own, upper, answers, rule

    def solve(self, pair: Pair) -> bool:
        """Solve one pair if steps alone do it; says whether they did."""
        begun = time.perf_counter()
        parts = [self._answers.layout.part(group) for group in pair]
        (a, b), bound = (part.stop - part.start for part in parts), [self._upper[part] for part in parts]
        y = np.repeat([1.0, -1.0], [a, b])
        lower, upper = np.concatenate([np.zeros(a), -bound[1]]), np.concatenate([bound[0], np.zeros(b)])
        beta = np.zeros(a + b)
        cross = scratch_tile("cross block", (a, b), _FLOAT32)
        for rows in spans(a):
            self._single.fill(slice(parts[0].start + rows.start, parts[0].start + rows.stop), parts[1], cross[rows])
        steps = solve_joined(
            self._own[pair[0]], self._own[pair[1]], cross, scratch_tile("joined rows", (a + b, a + b), _FLOAT32),
            scratch_tile("steps", (5, a + b), _FLOAT32), beta, lower, upper, _FLOAT32_PART * self._rule.tol,
        )  # fmt: skip
        F = self._gradient(parts, y, beta)
        figures = np.empty(FIGURES)
        offset = assess(F, y, beta, lower, upper, True, figures)
        figures[3] = steps
        if not (np.isfinite(F).all() and self._rule.accepts(figures)):
            return False
        nbytes = 4 * ((a + b) ** 2 + a * b)
        for values, part in ((self._answers.beta, beta), (self._answers.gradient, F), (self._answers.state, beta)):
            self._answers.layout.put(values, pair, part)
        number = np.array([self._answers.layout.number(*pair)])
        self._rule.keep(self._answers, number, np.array([offset]), figures[None], time.perf_counter() - begun, nbytes)
        return True

    def _gradient(self, parts: list[slice], y: Vector, beta: Vector) -> Vector:
        """``y - K beta`` in float64."""
        a = parts[0].stop - parts[0].start
        support = np.flatnonzero(beta)
        rows = np.where(support < a, parts[0].start + support, parts[1].start + support - a)
        F, weights = y.copy(), beta[support]
        if len(support):
            lines = self._exact.restrict(rows, None)
            for part, target in zip(parts, (F[:a], F[a:])):
                for columns in spans(len(target)):
                    for some in spans(len(support)):
                        block = scratch_tile("exact rows", (_length(some), _length(columns)), _FLOAT64)
                        lines.fill(some, slice(part.start + columns.start, part.start + columns.stop), block)
                        target[columns] -= weights[some] @ block
        return F


def _length(part: slice) -> int:
    return int(part.stop - part.start)
