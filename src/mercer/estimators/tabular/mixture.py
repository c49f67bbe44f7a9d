r"""The kernel of a table and its parameters, learnt by the evidence.

.. math:: k = a \, k_{5/2}\Bigl(\sqrt{\textstyle\sum_c (x_c - z_c)^2 / \ell_c^2}\Bigr)
              + b \exp\Bigl(-\textstyle\sum_c |x_c - z_c| / m_c\Bigr) + \sum_t s_t \, k_{\mathrm{text}}(x_t, z_t)
              + e \textstyle\sum_c \tilde x_c \tilde z_c

The first term, a Matern kernel of order 5/2, is smooth across columns. The second is a product of one-dimensional
exponentials, whose functions are rough along single columns, as those of trees are. The evidence weighs the terms and
takes columns out of each of them. The last term is optional: linear functions of numbers as they
are, which normal scores bend where the numbers have long tails. What a missing entry would explain is noise: each
column with gaps has a variance that the rows without an entry there have in addition.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from mercer._types import Integers, Matrix, Positions, Vector
from mercer.data.columns import MixedRows
from mercer.estimators.gaussian.covariance import KernelCovariance, NoisyCovariance, ScaledCovariance, TiedCovariance
from mercer.kernels import Kernel, Laplacian, Linear, Matern, Spectrum
from mercer.solvers.gaussian.regression import GaussianRegression, Objective
from mercer.solvers.gaussian.search import MultiStart, Search

# Starts: features have a variance of about 1, and the targets together as well. Distances grow with the number of
# groups, squared ones in the smooth term, and with them the scales; of few groups these are the least.
_SMOOTH_SCALE, _ROUGH_SCALE, _SHARE, _NOISE = 2.0, 4.0, 0.5, 0.1
_LINEAR_SHARE = 0.1
_SMOOTH_GROWTH, _ROUGH_GROWTH = 0.9, 0.8
_SCALE_BOUNDS, _SHARE_BOUNDS, _NOISE_BOUNDS = (0.05, 1e3), (1e-3, 1e3), (1e-6, 10.0)
# Above so many groups of features, those of about the same association with the targets share a length scale: one a
# group would fit noise.
MOST_SCALES = 100
# Above so many columns with gaps there is one variance of their noise.
_MOST_GAPS = 10
# Where the start is the mean of a prior of all parameters: the standard deviation of their logarithms, and the noise,
# since a handful of rows that go together by chance are not to be believed.
_ANCHOR, _ANCHORED_NOISE = 1.0, 0.3
# A known variance for each row, so that repeated rows do not make the covariance singular.
_NUGGET = 1e-8
# The search ends when five steps together gain less than a nat.
_GAIN = 1.0
_TEXT = Spectrum(3).normalized()
# Pairs of rows that the relevance of columns is an average over.
_PAIRS, _LEAST_PAIRS = 256, 16
# With more columns there are fewer pairs, so that tables with 1000 columns are not mostly fitted for their relevance.
_REPLACEMENTS = 64 * _PAIRS
_ROWS = 2048


@dataclass(frozen=True)
class Mixture:
    """A kernel, ``k(x, x) = sum of the shares`` but for the linear term, and which of its parameters are equal.

    Parameters
    ----------
    kernel : Kernel
        With its parameters at the start of the search.
    places : ndarray of shape (number of free parameters of the kernel,)
        The number of each among those that differ.
    deviation : float, default=0.5
        The prior: the standard deviation of the logarithms of the length scales of a term around their mean.
    gaps : int, default=0
        Columns with missing entries.
    anchored : bool, default=False
        Whether the logarithm of each parameter is also normal around its start, with a standard deviation of 1: a
        handful of rows say little of any, and without this prior they have a kernel that is certain of what they are.
    """

    kernel: Kernel
    places: Positions
    deviation: float = 0.5
    gaps: int = 0
    anchored: bool = False

    @classmethod
    def of(
        cls,
        groups: Integers,
        texts: int = 0,
        deviation: float = 0.5,
        gaps: int = 0,
        numbers: int = 0,
        shared: Positions | None = None,
    ) -> Mixture:
        """The mixture for features in ``groups`` (p,), which share a length scale, and for columns of text.

        Groups with the same number in ``shared`` share it too. Between features and text are ``numbers`` that functions
        may be linear in. In ``gaps`` columns entries are missing.

        Examples
        --------
        >>> mixture = Mixture.of(np.array([0, 1, 1]))
        >>> mixture.kernel
        0.5 * Matern([2.0, 2.0, 2.0], nu=2.5) + 0.5 * Laplacian([4.0, 4.0, 4.0])
        >>> mixture.places.tolist()
        [0, 1, 2, 2, 3, 4, 5, 5]
        """
        p, count = len(groups), int(groups[-1]) + 1
        scales = groups if shared is None else shared[groups]
        smooth, rough = max(_SMOOTH_SCALE, _SMOOTH_GROWTH * count**0.5), max(_ROUGH_SCALE, _ROUGH_GROWTH * count)
        terms: list[Kernel] = [_SHARE * Matern((smooth,) * p, nu=2.5), _SHARE * Laplacian((rough,) * p)]
        if texts or numbers:
            terms = [term.on(list(range(p))) for term in terms]
            terms += [(_SHARE * _TEXT).on([p + numbers + text]) for text in range(texts)]
        if numbers:
            terms.append((_LINEAR_SHARE * Linear()).on(list(range(p, p + numbers))))
        kernel = functools.reduce(operator.add, terms)
        keys = [re.sub(r"\[(\d+)\]$", lambda entry: f"[{scales[int(entry[1])]}]", p.name) for p in kernel.parameters]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        return cls(kernel, np.array([places[key] for key in keys]), deviation, gaps)

    @property
    def start(self) -> Vector:
        """The parameters that differ, the noise of gaps, and that of all rows, as logarithms."""
        first = np.unique(self.places, return_index=True)[1]
        noise = _ANCHORED_NOISE if self.anchored else _NOISE
        return np.append(self.kernel.theta[first], np.full(self.noises + 1, np.log(noise)))

    @property
    def noises(self) -> int:
        """Variances of the noise of gaps."""
        return self.gaps if self.gaps <= _MOST_GAPS else 1

    @property
    def names(self) -> list[str]:
        """Names of the parameters that differ."""
        parameters, first = self.kernel.parameters, np.unique(self.places, return_index=True)[1]
        return [parameters[position].name for position in first]

    @property
    def bounds(self) -> Matrix:
        """Bounds of the parameters that differ, and of the noise."""
        pairs = [_SCALE_BOUNDS if "length_scale" in name else _SHARE_BOUNDS for name in self.names]
        return np.log([*pairs, *[_NOISE_BOUNDS] * (self.noises + 1)])

    def log_prior(self, theta: Vector) -> tuple[float, Vector]:
        """The log density, but for a constant, of the length scales of each term around their geometric mean.

        Columns share what is known of them all: without the prior, many columns and few rows fit noise. If
        ``anchored``, that of all parameters around the start is added.
        """
        value, gradient = 0.0, np.zeros(len(theta))
        if self.anchored:
            gradient = (self.start - theta) / _ANCHOR**2
            value = -0.5 * float(gradient @ gradient) * _ANCHOR**2
        terms = [name.partition("length_scale")[0] if "length_scale" in name else None for name in self.names]
        for term in dict.fromkeys(terms):
            if term is not None:
                chosen = np.flatnonzero([other == term for other in terms])
                scores = (theta[chosen] - theta[chosen].mean()) / self.deviation
                value -= 0.5 * float(scores @ scores)
                gradient[chosen] -= scores / self.deviation
        return value, gradient


@dataclass(frozen=True, eq=False)
class Learned:
    """The kernel with learnt parameters, the variance of the noise of a row, and the search.

    ``gap_noise`` has the variance that a missing entry adds, for each column with gaps.
    """

    kernel: Kernel
    noise: float
    search: Search
    gap_noise: Vector


@dataclass(frozen=True, eq=False)
class RowNoise:
    """What is known of the noise of rows: ``weights`` (n,), repetitions of each, or None for 1; ``missing`` (n, g).

    ``missing`` is 1 where an entry is missing in a column with gaps. The variance of a row is at least ``least``.
    """

    weights: Vector | None = None
    missing: Matrix | None = None
    least: float = 0.0


@dataclass(frozen=True, eq=False)
class Repeats:
    r"""Rows (n,) of weight w that count as w rows of equal targets: a factor of the evidence, and the prior.

    A row has the noise :math:`v_i = \sigma^2 + \sum_g \text{shares}_{ig} v_g`, and the factor is
    :math:`\prod_i v_i^{(1 - w_i) t / 2}` for t targets.
    """

    mixture: Mixture
    weights: Vector
    shares: Matrix
    targets: int

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        """The logarithm of the factor and the prior, and its gradient."""
        value, gradient = self.mixture.log_prior(theta)
        own = len(theta) - self.shares.shape[1] - 1
        variances = np.exp(theta[own:])
        shares = np.column_stack([self.shares, np.ones(len(self.weights))])
        noise = shares @ variances
        repeated = 0.5 * self.targets * (self.weights - 1.0)
        gradient[own:] -= (repeated / noise) @ shares * variances
        return value - float(repeated @ np.log(noise)), gradient


def strata(features: Any, groups: Integers, targets: Matrix, weights: Vector | None = None) -> Positions:
    r"""Return the stratum of each group of features: the one of rank r is in stratum :math:`\lfloor\log_4 r\rfloor`.

    Ranks are those of the association with the targets: the share of their variance that a linear function of a
    feature explains, or of its square, the largest one in the group. Equal groups have the same rank.

    Parameters
    ----------
    features : ndarray or MixedRows of shape (n, p)
    groups : ndarray of shape (q,)
        The group of each of the first q features.
    targets : ndarray of shape (n, t)
    weights : ndarray of shape (n,), optional
        Repetitions of each row.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(300, 5))
    >>> strata(x, np.arange(5), x @ np.array([[1], [0], [1], [0], [1]])).tolist()
    [0, 1, 0, 1, 0]
    """
    columns = features.columns if isinstance(features, MixedRows) else features.T
    values = np.column_stack(columns[: len(groups)])
    values = np.hstack([values, np.square(values)])
    counts = np.ones(len(values)) if weights is None else weights
    values -= np.average(values, axis=0, weights=counts)
    covariances = (values.T * counts) @ targets
    variances = counts @ np.square(values) + _NUGGET * counts.sum()
    explained = np.square(covariances).sum(axis=1) / variances / counts.sum()
    association = np.zeros(int(groups[-1]) + 1)
    np.maximum.at(association, np.tile(groups, 2), explained)
    # Rounded, so that the order of rows does not part groups that are equal but for rounding.
    ranks = rankdata(-association.round(9), method="min")
    return np.asarray((np.log2(ranks) / 2).astype(np.intp))


def learn(
    mixture: Mixture, start: Vector, rows: Any, targets: Matrix, noise: RowNoise, n_jobs: int | None = None
) -> Learned:
    r"""Maximise the evidence of centred targets (n, t) of variance 1, summed over the targets, plus the log prior.

    A row of weight w counts as w rows of independent noise, whose target is their mean; see :class:`Repeats`.
    """
    weights = noise.weights
    covariance: Any = TiedCovariance(KernelCovariance(mixture.kernel, rows, n_jobs), mixture.places)
    missing = np.zeros((len(targets), 0)) if noise.missing is None else noise.missing
    # Of many columns with gaps, all have one variance.
    shares = missing if mixture.noises == mixture.gaps else missing.sum(axis=1, keepdims=True)
    log_prior: Callable[[Vector], tuple[float, Vector]] = mixture.log_prior
    if weights is not None:
        factors = np.sqrt(weights)
        covariance, targets = ScaledCovariance(covariance, factors), factors[:, None] * targets
        log_prior = Repeats(mixture, weights, shares, targets.shape[1])
    if mixture.noises:
        covariance = NoisyCovariance(covariance, shares)
    bounds = mixture.bounds
    bounds[-1, 0] = max(bounds[-1, 0], np.log(max(noise.least, _NOISE_BOUNDS[0])))
    problem = GaussianRegression(covariance, targets, np.full(len(targets), _NUGGET), free_noise=True)
    objective = Objective(problem, n_jobs=n_jobs)
    search = MultiStart(gain=_GAIN, n_jobs=n_jobs).maximise(objective, start, bounds, log_prior)
    theta, variance = problem.split(search.theta)
    of_gaps = np.resize(np.exp(theta[len(theta) - mixture.noises :]), mixture.gaps)
    return Learned(mixture.kernel.with_theta(theta[mixture.places]), variance, search, of_gaps)


def relevance(
    function: Callable[[Any], Vector], rows: Any, sources: list[Positions], random: np.random.RandomState
) -> Vector:
    r"""The share of the variance of a function that is lost without a column, for each column.

    This is :math:`\mathrm E (f(x) - f(x'))^2 / (2 \operatorname{Var} f)`, where x' is x with that column from another
    row: the total index of Sobol if the columns are independent. It is an average over 256 pairs of rows; over
    fewer if there are more than 64 columns, 16 at the least.

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
    pairs = max(_LEAST_PAIRS, min(_PAIRS, _REPLACEMENTS // max(len(sources), 1)))
    chosen, others = (random.permutation(len(rows))[:pairs] for _ in range(2))
    here, there = rows[chosen], rows[others]
    values = function(here)
    spread = float(np.var(values, axis=0).sum())
    lost = np.zeros(len(sources))
    if not spread > 0:
        return lost
    # Evaluation of few rows costs as much as that of many, so columns are taken together.
    kept = [column for column, features in enumerate(sources) if len(features)]
    together = max(1, _ROWS // len(chosen))
    for start in range(0, len(kept), together):
        part = kept[start : start + together]
        replaced = _stacked([_replaced(here, there, sources[column]) for column in part])
        other = function(replaced).reshape(len(part), *values.shape)
        lost[part] = np.square(values - other).mean(axis=1).reshape(len(part), -1).sum(axis=1) / 2 / spread
    return lost


def _stacked(parts: list[Any]) -> Any:
    """Several sets of rows as one."""
    if isinstance(parts[0], MixedRows):
        return MixedRows([np.concatenate(columns) for columns in zip(*(part.columns for part in parts))])
    return np.concatenate(parts)


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
