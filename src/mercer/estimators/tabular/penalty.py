"""The penalty of logistic regression with a given kernel, chosen by the log loss of folds of the rows."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_softmax

from mercer._types import Array, Positions, Vector
from mercer.gram import PrecomputedGram
from mercer.losses.log_loss import log_loss
from mercer.solvers.risk.logistic import LogisticSolver
from mercer.solvers.risk.logistic_problem import LogisticPoint, LogisticRisk

# Penalties are tried upwards in these steps, until two in a row make the loss larger.
_COSTS = tuple(10.0 ** (0.5 * step) for step in range(-2, 9))
_FOLDS = 5
# Of a class with fewer rows, the losses of left-out rows are so few that the evidence for the kernel has a say.
_FEW_ROWS = 30
# Then as many partitions into folds are averaged, and the expected C is between these.
_PARTITIONS = 2
_EXPECTED = (0.1, 10.0)
# So few rows are left out one by one, which is the same for any order of them.
_SINGLY = 20
_TOLERANCE = 1e-2


def choose_cost(
    K: Array, codes: Positions, n_jobs: int | None = None, *, weights: Vector | None = None, variance: float = 1.0
) -> tuple[float, float]:
    r"""The C of kernel logistic regression with the least log loss of left-out rows, and the sum of these losses.

    Where a class has fewer than 30 rows, :math:`(\log C - \log C_0)^2 / 2` is added to the sum of the losses: a normal
    prior of :math:`\log C`. Its mean is what the evidence for the kernel expects. A process f with ``variance`` for
    targets of variance 1 changes the share p of a class by :math:`\sqrt{p (1 - p)} f`, and its logit by
    :math:`f / \sqrt{p (1 - p)}`, whose variance is :math:`C_0 = \text{variance} / (p (1 - p))`, the mean of p (1 - p)
    over the classes; between .1 and 10. The sum that is returned contains it.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix of rows in random order, with a diagonal of 1.
    codes : ndarray of shape (n,)
        Numbers of their classes, all of which occur.
    n_jobs : int, optional
        Threads.
    weights : ndarray of shape (n,), optional
        How often each row counts.
    variance : float, default=1.0
        That of the process whose evidence chose the kernel, as a share of the variance of its targets.
    """
    weights = np.ones(len(codes)) if weights is None else weights
    few = int(np.bincount(codes).min()) < _FEW_ROWS
    if len(codes) <= _SINGLY:
        partitions = [np.where(np.bincount(codes)[codes] > 1, np.arange(len(codes)), -1)]
    else:
        partitions = [_folds(codes, number) for number in range(_PARTITIONS if few else 1)]
    parts = [np.flatnonzero(folds == fold) for folds in partitions for fold in np.unique(folds[folds >= 0])]
    gram = PrecomputedGram(K, finite=True)
    starts: list[LogisticPoint | None] = [None] * len(parts)
    expected = _expected_cost(codes, weights, variance)
    losses: list[float] = []
    for cost in _COSTS:
        loss = 0.0
        for place, rows in enumerate(parts):
            losses_of_rows, starts[place] = _left_out(gram, codes, rows, cost * weights, starts[place], n_jobs)
            loss += float(weights[rows] @ losses_of_rows) / len(partitions)
        losses.append(loss + (0.5 * float(np.log(cost / expected)) ** 2 if few else 0.0))
        if len(losses) > 2 and min(losses[-2:]) > losses[-3]:
            break
    return _COSTS[int(np.argmin(losses))], min(losses)


def way_of_choice(rows: int) -> str:
    """How :func:`choose_cost` compares penalties on so many rows, in words.

    >>> way_of_choice(20), way_of_choice(21)
    ('leaving out each row in turn', '5 folds')
    """
    return "leaving out each row in turn" if rows <= _SINGLY else f"{_FOLDS} folds"


def _expected_cost(codes: Positions, weights: Vector, variance: float) -> float:
    """The C that the evidence for a process of some variance expects.

    >>> _expected_cost(np.array([0, 0, 1, 1]), np.ones(4), 0.5)
    2.0
    """
    shares = np.bincount(codes, weights) / weights.sum()
    return float(np.clip(variance / np.mean(shares * (1.0 - shares)), *_EXPECTED))


def _folds(codes: Positions, seed: int = 0) -> Positions:
    """The fold of each row, the classes in equal shares; -1 for a class of one row, which cannot do without it.

    Those of seed 0 are in the order of the rows.
    """
    folds = np.full(len(codes), -1)
    offset = 0
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        if seed:
            rows = np.random.default_rng([seed, code]).permutation(rows)
        if len(rows) > 1:
            folds[rows] = (np.arange(len(rows)) + offset) % _FOLDS
            offset += len(rows)
    return folds


def _left_out(
    gram: PrecomputedGram,
    codes: Positions,
    left_out: Positions,
    costs: Vector,
    start: LogisticPoint | None,
    n_jobs: int | None,
) -> tuple[Vector, LogisticPoint]:
    """The loss of rows (n_left_out,) by a fit to all others with ``costs`` (n,), and that fit."""
    rest = np.setdiff1d(np.arange(len(codes)), left_out)
    k = int(codes.max()) + 1
    loss = log_loss(codes[rest], costs[rest], k)
    problem = LogisticRisk(gram.restrict(rest, rest), loss)
    point = LogisticSolver(tol=_TOLERANCE, n_jobs=n_jobs).solve(problem, start).value
    values = gram.block(left_out, rest) @ point.weights + point.offset
    if k == 2:
        own = log_expit(np.where(codes[left_out] == 1, values[:, 0], -values[:, 0]))
    else:
        own = log_softmax(values, axis=1)[np.arange(len(left_out)), codes[left_out]]
    return -own, point
