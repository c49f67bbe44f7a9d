r"""The parameters of the kernel of all subsets of columns, learnt by the errors in held-out rows of a sample.

Each set of parameters is tried by least squares over landmarks, for which the errors of all penalties follow from one
decomposition:

.. math:: \hat\gamma = (\Phi^\top \Phi + \lambda I)^{-1} \Phi^\top y
          = Q (\Lambda + \lambda I)^{-1} Q^\top \Phi^\top y, \qquad \Phi = K_{nm} L^{-\top}, \quad K_{mm} = L L^\top
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.engine.threads import one_blas_thread
from mercer.kernels import Anova
from mercer.kernels.kernel import Kernel
from mercer.solvers.restricted.whitening import Whitening

# Rows of the sample that are not held out; the landmarks are the first of them, at most so many.
_SHARE, _LANDMARKS = 0.75, 400
_PENALTIES = 10.0 ** np.arange(-2.0, 4.5, 0.5)
MOST_PENALTY = float(_PENALTIES[-1])
# Where the search begins: the same numbers for all columns.
_WEIGHTS, _WIDTHS = (0.03, 0.1, 0.3, 1.0), (1.0, 0.3, 0.1, 0.03, 0.01)
_STEP = 3.0
_LEAST_WIDTH, _LEAST_WEIGHT, _MOST_WEIGHT = 1e-3, 1e-3, 10.0
# A step must lower the error by this share, and a round over all columns as well.
_GAIN, _ROUND_GAIN = 2e-4, 1e-3
_ROUNDS, _MOST_TRIALS = 3, 150


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows of a sample in two parts, with targets (n, t) that are centred and have a mean square of 1.

    Parameters
    ----------
    rows, others : ndarray of shape (n, p), (n', p)
        Those of the fits, and those that are held out.
    targets, truth : ndarray of shape (n, t), (n', t)
    n_jobs : int, optional
    """

    rows: Matrix
    targets: Matrix
    others: Matrix
    truth: Matrix
    n_jobs: int | None = None

    @classmethod
    def of(cls, X: Matrix, targets: Matrix, random: np.random.RandomState, n_jobs: int | None = None) -> HeldOut:
        """Hold out a quarter of the rows at random."""
        order = random.permutation(len(X))
        kept, others = np.split(order, [int(np.ceil(_SHARE * len(X)))])
        return cls(X[kept], targets[kept], X[others], targets[others], n_jobs)

    def error(self, kernel: Kernel) -> tuple[float, float]:
        """The mean squared error in the rows held out, as a share of that of the mean, and the penalty that has it."""
        m = min(_LANDMARKS, len(self.rows))
        landmarks = self.rows[:m]
        what = f"{len(self.rows):,} rows to choose the kernel on"
        with memory.reserve(8 * m * (len(self.rows) + len(self.others) + 4 * m), what), one_blas_thread():
            white = Whitening.of(np.asarray(kernel.block(landmarks)), overwrite=True)
            K = kernel.block(self.rows, landmarks)
            mean = self.targets.mean(axis=0)
            slopes = white.pull(K.T @ (self.targets - mean))
            # L^-1 K' K L^-T, one side after the other.
            gram = white.pull(np.ascontiguousarray(white.pull(K.T @ K).T))
            values, Q = np.linalg.eigh((gram + gram.T) / 2)
            inside = Q.T @ slopes
            features = kernel.block(self.others, landmarks) @ white.coefficients(Q)
            wrong = self.truth - mean
            errors = [
                float(np.square(wrong - features @ (inside / (np.maximum(values, 0.0) + penalty)[:, None])).mean())
                for penalty in _PENALTIES
            ]
        best = int(np.argmin(errors))
        return errors[best] / float(np.square(wrong).mean()), float(_PENALTIES[best])


@dataclass(frozen=True, eq=False)
class Trial:
    """Parameters of the kernel (p,), the error that they have in held-out rows, and the penalty that goes with it."""

    weights: Vector
    widths: Vector
    error: float = np.inf
    penalty: float = 1.0

    @property
    def kernel(self) -> Anova:
        """The kernel."""
        return Anova(tuple(self.weights.tolist()), tuple(self.widths.tolist()))

    def tried(self, rows: HeldOut) -> Trial:
        """The same with its error."""
        error, penalty = rows.error(self.kernel)
        return replace(self, error=error, penalty=penalty)

    def neighbours(self, column: int, ordered: bool) -> Iterator[list[Trial]]:
        """Sequences of trials along which one parameter of a column goes further and further."""
        for factor in (1 / _STEP, _STEP):
            yield [trial for power in (1, 2, 3) if (trial := self._moved("widths", column, factor**power)) and ordered]
        for factor in (_STEP, 1 / _STEP):
            yield [trial for power in (1, 2, 3) if (trial := self._moved("weights", column, factor**power))]

    def _moved(self, name: str, column: int, factor: float) -> Trial | None:
        least, most = (_LEAST_WIDTH, 1.0) if name == "widths" else (_LEAST_WEIGHT, _MOST_WEIGHT)
        numbers = getattr(self, name).copy()
        numbers[column] *= factor
        if not least <= numbers[column] <= most * (1 + 1e-9):
            return None
        return replace(self, **{name: numbers}, error=np.inf)


@dataclass(frozen=True, eq=False)
class AnovaSearch:
    """Trials one after the other: common numbers for all columns first, and then one column after the other.

    Parameters
    ----------
    rows : HeldOut
    ordered : ndarray of shape (p,)
        Which columns have an order; the others are codes, whose width is 1.
    """

    rows: HeldOut
    ordered: NDArray[np.bool_]

    def best(self) -> tuple[Trial, int]:
        """The trial with the least error, and how many there were."""
        progress = Progress(None, "kernels")
        starts = [self._common(weight, width) for weight in _WEIGHTS for width in _WIDTHS]
        best, count = starts[0], 0
        for start in starts:
            trial, count = start.tried(self.rows), count + 1
            progress.advance()
            best = min(best, trial, key=lambda one: one.error)
        for _ in range(_ROUNDS):
            before = best.error
            for column, ordered in enumerate(self.ordered):
                for sequence in best.neighbours(column, bool(ordered)):
                    for trial in sequence:
                        if count >= _MOST_TRIALS:
                            return best, count
                        trial, count = trial.tried(self.rows), count + 1
                        progress.advance()
                        if not trial.error < best.error * (1 - _GAIN):
                            break
                        best = trial
            if not best.error < before * (1 - _ROUND_GAIN):
                break
        return best, count

    def _common(self, weight: float, width: float) -> Trial:
        return Trial(np.full(len(self.ordered), weight), np.where(self.ordered, width, 1.0))
