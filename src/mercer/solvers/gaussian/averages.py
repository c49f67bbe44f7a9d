"""Probabilities of classes, averaged over a Gaussian of the latent values."""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import qmc

from mercer._types import Matrix, Vector
from mercer.engine.tiles import spans

# The trapezoidal rule with this step is exact to rounding for what decays like either density and has no pole within
# pi of the real line: its error is exp(-2 pi^2 / step), times exp(pi^2 / 2) at most for the Gaussian.
_STEP = 0.5
_NARROW = np.arange(-18, 19) * _STEP
_WIDE = np.arange(-74, 75) * _STEP
# Points for several classes, a power of two, each with its mirror image; an average of this many is good to 1e-3.
_POINTS = 1024
_ENTRIES = 2**21


def logistic_average(mean: Vector, variance: Vector) -> Vector:
    r""":math:`\int \sigma(f) N(f \mid m, v)\, df` for each row, to the precision of float64.

    Parameters
    ----------
    mean, variance : ndarray of shape (m,)

    Notes
    -----
    Up to a variance of 1 the trapezoidal rule is applied to it as it stands, in units of the deviation; above, to
    :math:`\int \sigma'(f) \Phi((m - f) / \sqrt v)\, df`, which is the same by parts and has no narrow step.

    References
    ----------
    L. N. Trefethen and J. A. C. Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 56 (2014),
    385-458.

    Examples
    --------
    >>> logistic_average(np.array([0.0, 1.0, 1.0]), np.array([4.0, 0.0, 1e6])).round(6).tolist()
    [0.5, 0.731059, 0.500399]
    """
    out = np.empty(len(mean))
    deviation = np.sqrt(np.maximum(variance, 0.0))
    narrow = deviation <= 1.0
    density = np.exp(-0.5 * _NARROW**2)
    for rows in _chunks(np.flatnonzero(narrow), len(_NARROW)):
        values = expit(mean[rows, None] + deviation[rows, None] * _NARROW)
        out[rows] = values @ (density / density.sum())
    slope = expit(_WIDE) * expit(-_WIDE)
    for rows in _chunks(np.flatnonzero(~narrow), len(_WIDE)):
        values = ndtr((mean[rows, None] - _WIDE) / deviation[rows, None])
        out[rows] = values @ (slope / slope.sum())
    return out


def probit_average(mean: Vector, variance: Vector) -> Vector:
    r""":math:`\int \Phi(f) N(f \mid m, v)\, df = \Phi(m / \sqrt{1 + v})` for each row.

    >>> probit_average(np.array([2.0]), np.array([3.0])).round(6).tolist()
    [0.841345]
    """
    return np.asarray(ndtr(mean / np.sqrt(1.0 + np.maximum(variance, 0.0))))


def softmax_average(mean: Matrix, covariance: Matrix) -> Matrix:
    r"""The mean of the softmax under :math:`N(m, S)` for each row, (m, c), by points that are always the same.

    Parameters
    ----------
    mean : ndarray of shape (m, c)
    covariance : ndarray of shape (m, c, c)

    Notes
    -----
    What is common to all classes does not matter and is taken out. The points are those of a scrambled Sobol sequence
    with a fixed seed and their mirror images, the first coordinates along the directions of most variance. Each row
    sums to one.

    References
    ----------
    A. B. Owen, "Scrambled net variance for integrals of smooth functions", Annals of Statistics 25 (1997), 1541-1562.

    Examples
    --------
    >>> softmax_average(np.zeros((1, 3)), np.eye(3)[None]).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """
    m, c = mean.shape
    centred = covariance - covariance.mean(axis=1, keepdims=True)
    centred -= centred.mean(axis=2, keepdims=True)
    values, vectors = np.linalg.eigh(centred)
    # The largest first; the last direction is that of the constants, which has no variance left.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, :0:-1]
    points, out = _sobol(c - 1), np.empty((m, c))
    for rows in _chunks(np.arange(m), len(points) * c):
        shift = points @ np.swapaxes(root[rows], 1, 2)
        out[rows] = 0.5 * (_mean_softmax(mean[rows, None] + shift) + _mean_softmax(mean[rows, None] - shift))
    return out / out.sum(axis=1, keepdims=True)


def _mean_softmax(F: Matrix) -> Matrix:
    """The mean over the second axis, in place."""
    F -= F.max(axis=2, keepdims=True)
    np.exp(F, out=F)
    F /= F.sum(axis=2, keepdims=True)
    return np.asarray(F.mean(axis=1))


@functools.lru_cache(maxsize=8)
def _sobol(dimensions: int) -> Matrix:
    """Points of the standard normal distribution, (1024, dimensions)."""
    uniform = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(0)).random(_POINTS)
    # In the middle of their cells, so that none is at the end of the range.
    return np.asarray(ndtri(np.clip(uniform, 0.5 / _POINTS**2, 1.0 - 0.5 / _POINTS**2)))


def _chunks(rows: np.ndarray, entries: int) -> list[np.ndarray]:
    """Parts of ``rows``, whose arrays have ``entries`` numbers a row, so that these arrays stay small."""
    return [rows[part] for part in spans(len(rows), max(1, _ENTRIES // entries))]
