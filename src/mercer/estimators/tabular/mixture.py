r"""The kernel of a table and its parameters, learnt by the evidence.

.. math:: k = a \, k_{5/2}\Bigl(\sqrt{\textstyle\sum_c (x_c - z_c)^2 / \ell_c^2}\Bigr)
              + b \exp\Bigl(-\textstyle\sum_c |x_c - z_c| / m_c\Bigr) + \sum_t s_t \, k_{\mathrm{text}}(x_t, z_t)

The first term, a Matern kernel of order 5/2, is smooth across columns. The second is a product of one-dimensional
exponentials, whose functions are rough along single columns, as those of trees are. The evidence weighs the terms and
takes columns out of each of them.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Integers, Matrix, Positions, Vector
from mercer.data.columns import MixedRows
from mercer.estimators.gaussian.covariance import KernelCovariance, ScaledCovariance, TiedCovariance
from mercer.kernels import Kernel, Laplacian, Matern, Spectrum
from mercer.solvers.gaussian.regression import GaussianRegression, Objective
from mercer.solvers.gaussian.search import MultiStart, Search

# Starts: features have a variance of about 1, and the targets together as well. Distances grow with the number of
# groups, squared ones in the smooth term, and with them the scales; of few groups these are the least.
_SMOOTH_SCALE, _ROUGH_SCALE, _SHARE, _NOISE = 2.0, 4.0, 0.5, 0.1
_SMOOTH_GROWTH, _ROUGH_GROWTH = 0.9, 0.8
_SCALE_BOUNDS, _SHARE_BOUNDS, _NOISE_BOUNDS = (0.05, 1e3), (1e-3, 1e3), (1e-6, 10.0)
# Above so many groups of features there is one length scale a term: one a group would fit noise.
_MOST_SCALES = 100
# A known variance for each row, so that repeated rows do not make the covariance singular.
_NUGGET = 1e-8
# The search ends when five steps together gain less than a nat.
_GAIN = 1.0
_TEXT = Spectrum(3).normalized()
# Pairs of rows that the relevance of columns is an average over.
_PAIRS = 256


@dataclass(frozen=True)
class Mixture:
    """A kernel with ``k(x, x) = sum of the shares``, and which of its parameters are equal.

    Parameters
    ----------
    kernel : Kernel
        With its parameters at the start of the search.
    places : ndarray of shape (number of free parameters of the kernel,)
        The number of each among those that differ.
    deviation : float, default=0.5
        The prior: the standard deviation of the logarithms of the length scales of a term around their mean.
    """

    kernel: Kernel
    places: Positions
    deviation: float = 0.5

    @classmethod
    def of(cls, groups: Integers, texts: int = 0, deviation: float = 0.5) -> Mixture:
        """The mixture for features in ``groups`` (p,), which share a length scale, and for columns of text after them.

        Examples
        --------
        >>> mixture = Mixture.of(np.array([0, 1, 1]))
        >>> mixture.kernel
        0.5 * Matern([2.0, 2.0, 2.0], nu=2.5) + 0.5 * Laplacian([4.0, 4.0, 4.0])
        >>> mixture.places.tolist()
        [0, 1, 2, 2, 3, 4, 5, 5]
        """
        p, count = len(groups), int(groups[-1]) + 1
        if count > _MOST_SCALES:
            groups = np.zeros(p, np.intp)
        smooth, rough = max(_SMOOTH_SCALE, _SMOOTH_GROWTH * count**0.5), max(_ROUGH_SCALE, _ROUGH_GROWTH * count)
        terms: list[Kernel] = [_SHARE * Matern((smooth,) * p, nu=2.5), _SHARE * Laplacian((rough,) * p)]
        if texts:
            terms = [term.on(list(range(p))) for term in terms]
            terms += [(_SHARE * _TEXT).on([p + text]) for text in range(texts)]
        kernel = functools.reduce(operator.add, terms)
        keys = [re.sub(r"\[(\d+)\]$", lambda entry: f"[{groups[int(entry[1])]}]", p.name) for p in kernel.parameters]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return cls(kernel, np.array([numbers[key] for key in keys]), deviation)

    @property
    def start(self) -> Vector:
        """The parameters that differ, and the noise, as logarithms."""
        first = np.unique(self.places, return_index=True)[1]
        return np.append(self.kernel.theta[first], np.log(_NOISE))

    @property
    def names(self) -> list[str]:
        """Names of the parameters that differ."""
        parameters, first = self.kernel.parameters, np.unique(self.places, return_index=True)[1]
        return [parameters[position].name for position in first]

    @property
    def bounds(self) -> Matrix:
        """Bounds of the parameters that differ, and of the noise."""
        pairs = [_SCALE_BOUNDS if "length_scale" in name else _SHARE_BOUNDS for name in self.names]
        return np.log([*pairs, _NOISE_BOUNDS])

    def log_prior(self, theta: Vector) -> tuple[float, Vector]:
        """The log density, but for a constant, of the length scales of each term around their geometric mean.

        Columns share what is known of them all: without the prior, many columns and few rows fit noise.
        """
        value, gradient = 0.0, np.zeros(len(theta))
        terms = [name.partition("length_scale")[0] if "length_scale" in name else None for name in self.names]
        for term in dict.fromkeys(terms):
            if term is not None:
                chosen = np.flatnonzero([other == term for other in terms])
                scores = (theta[chosen] - theta[chosen].mean()) / self.deviation
                value -= 0.5 * float(scores @ scores)
                gradient[chosen] = -scores / self.deviation
        return value, gradient


@dataclass(frozen=True)
class Learned:
    """The kernel with learnt parameters, the variance of the noise, and the search."""

    kernel: Kernel
    noise: float
    search: Search


def learn(
    mixture: Mixture,
    start: Vector,
    rows: Any,
    targets: Matrix,
    n_jobs: int | None = None,
    *,
    weights: Vector | None = None,
    least_noise: float = 0.0,
) -> Learned:
    r"""Maximise the evidence of centred targets (n, t) of variance 1, summed over the targets, plus the log prior.

    A row of weight w counts as w rows of independent noise: its target is their mean, and the evidence has a factor
    of :math:`\sigma^{1 - w}` more, for targets that do not differ. :math:`\sigma^2` is at least ``least_noise``.
    """
    covariance: Any = TiedCovariance(KernelCovariance(mixture.kernel, rows, n_jobs), mixture.places)
    log_prior = mixture.log_prior
    if weights is not None:
        factors = np.sqrt(weights)
        covariance, targets = ScaledCovariance(covariance, factors), factors[:, None] * targets
        repeated = 0.5 * targets.shape[1] * float((weights - 1.0).sum())

        def log_prior(theta: Vector) -> tuple[float, Vector]:
            value, gradient = mixture.log_prior(theta)
            gradient[-1] -= repeated
            return value - repeated * float(theta[-1]), gradient

    bounds = mixture.bounds
    bounds[-1, 0] = max(bounds[-1, 0], np.log(max(least_noise, _NOISE_BOUNDS[0])))
    problem = GaussianRegression(covariance, targets, np.full(len(targets), _NUGGET), free_noise=True)
    objective = Objective(problem, n_jobs=n_jobs)
    search = MultiStart(gain=_GAIN, n_jobs=n_jobs).maximise(objective, start, bounds, log_prior)
    theta, noise = problem.split(search.theta)
    return Learned(mixture.kernel.with_theta(theta[mixture.places]), noise, search)


def relevance(
    function: Callable[[Any], Vector], rows: Any, sources: list[Positions], random: np.random.RandomState
) -> Vector:
    r"""The share of the variance of a function that is lost without a column, for each column.

    This is :math:`\mathrm E (f(x) - f(x'))^2 / (2 \operatorname{Var} f)`, where x' is x with that column from another
    row: the total index of Sobol if the columns are independent. It is an average over pairs of rows.

    Parameters
    ----------
    function : callable
        From rows to values (n,) or (n, k).
    rows : ndarray or MixedRows of shape (n, p)
    sources : list of ndarray
        For each column of the table the positions of its features in ``rows``.
    random : RandomState
        Of the pairs of rows.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> relevance(lambda x: x[:, 0] * x[:, 1], rows, [np.array([0]), np.array([2])], np.random.RandomState(0)).round(1)
    array([1., 0.])
    """
    chosen, others = (random.permutation(len(rows))[:_PAIRS] for _ in range(2))
    here, there = rows[chosen], rows[others]
    values = function(here)
    spread = float(np.var(values, axis=0).sum())
    lost = np.zeros(len(sources))
    for column, features in enumerate(sources):
        if len(features) and spread > 0:
            lost[column] = (
                np.square(values - function(_replaced(here, there, features))).mean(axis=0).sum() / 2 / spread
            )
    return lost


def _replaced(rows: Any, others: Any, features: Positions) -> Any:
    """``rows`` with some features from ``others``."""
    if isinstance(rows, MixedRows):
        return MixedRows(
            [
                other if place in features else own
                for place, (own, other) in enumerate(zip(rows.columns, others.columns))
            ]
        )
    mixed = rows.copy()
    mixed[:, features] = others[:, features]
    return mixed
