"""Predictions for training rows, each left out in turn, which calibrate intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mercer._types import Vector
from mercer.estimators.tabular.linear import linear_errors

MOST_ROWS = 2000
"""Of at most so many rows, errors with each left out calibrate the intervals."""


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """Targets y (n,) of weighted rows; mean and variance of each by all others, one of its repetitions left out.

    ``model`` is the :class:`~mercer.GaussianProcessRegressor` that was fitted to them.
    """

    model: Any
    y: Vector
    mean: Vector
    variance: Vector
    counts: Vector

    @classmethod
    def of(cls, model: Any, y: Vector, noise: Vector, counts: Vector) -> LeftOutRows:
        left_out = model.leave_one_out()
        mean, variance = left_out.mean, left_out.variance
        if (counts != 1.0).any():
            # Of a row of weight w, w - 1 repetitions stay.
            own = np.maximum(variance - noise / counts, np.finfo(float).tiny)
            others = np.maximum(counts - 1.0, 0.0) / noise
            precision = 1.0 / own + others
            mean, variance = (mean / own + others * y) / precision, 1.0 / precision + noise
        return cls(model, y, mean, variance, counts)

    def standardised(self) -> Vector:
        """Sorted errors in units of their deviations, each as often as it counts."""
        errors = (self.y - self.mean) / np.sqrt(self.variance)
        return np.sort(errors) if (self.counts == 1.0).all() else _repeated(errors, self.counts)

    def is_better_than_the_mean(self) -> bool:
        """Whether the sum of the sizes of the errors is no larger than for the mean of all others."""
        total, counts = float(self.counts.sum()), self.counts
        if total <= 1.0:
            return True
        others = (counts @ self.y - self.y) / (total - 1.0)
        return float(counts @ np.abs(self.y - self.mean)) <= float(counts @ np.abs(self.y - others))

    def is_worse_than_linear(self, features: Any) -> bool:
        """Whether ridge regression has smaller errors, by the sum of their sizes or of their squares."""
        own, others = self.y - self.mean, linear_errors(features, self.y, self.counts, self.model.n_jobs)
        return any(self.counts @ size(others) < self.counts @ size(own) for size in (np.abs, np.square))


def _repeated(errors: Vector, counts: Vector) -> Vector:
    """Sorted errors (n,), each as often as it counts (n,); at most ``MOST_ROWS`` of them, equally far apart.

    >>> _repeated(np.array([3.0, 1.0]), np.array([1.0, 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    order = np.argsort(errors)
    ends = np.cumsum(counts[order])
    number = int(np.clip(round(float(ends[-1])), 1, MOST_ROWS))
    places = (np.arange(number) + 0.5) / number * ends[-1]
    return np.asarray(errors[order][np.searchsorted(ends, places)])


def error_quantiles(errors: Vector, wanted: Vector) -> Vector:
    """Quantiles of errors (n,), of which the i-th is that of i / (n + 1); beyond the first and last Student's."""
    n = len(errors)
    shares = np.arange(1, n + 1) / (n + 1)
    inside = np.interp(wanted, shares, errors)
    tails = student_quantiles(n, wanted)
    ends = student_quantiles(n, shares[[0, -1]])
    lower = np.minimum(errors[0] + tails - ends[0], tails)
    upper = np.maximum(errors[-1] + tails - ends[1], tails)
    return np.where(wanted < shares[0], lower, np.where(wanted > shares[-1], upper, inside))


def student_quantiles(n: int, wanted: Vector) -> Vector:
    r"""Quantiles of an error in units of a deviation that was estimated from n targets.

    They are those of :math:`\sqrt{n / (n - 1)} \, t`, where t has Student's distribution with n - 1 degrees of freedom,
    and one at the least: of one target, no deviation is known. With many targets the quantiles are Gaussian.

    >>> [student_quantiles(n, np.array([0.95])).round(2).item() for n in (1, 2, 3, 10, 1000)]
    [6.31, 8.93, 3.58, 1.93, 1.65]
    """
    freedom = max(n - 1, 1)
    return np.asarray(stdtrit(freedom, wanted) * np.sqrt(n / freedom))
