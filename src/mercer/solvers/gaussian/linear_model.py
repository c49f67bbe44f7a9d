"""Bayesian linear regression in the singular vectors of its design matrix: posterior, evidence, and their search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import scipy.linalg
from scipy.optimize import brentq

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Flag, Floats, Number
from mercer.engine import decompositions, threads

# Below, shares of a squared length underflow.
_LEAST_SQUARE = 1e-290
Blocks = Iterator[tuple[Matrix, Vector, Vector]]

# The ratio of the precisions is looked for from where rounding is all that is left of the penalty to where the weights
# are nothing, in units of the largest squared singular value; a precision in units of what it is without the other.
_RATIOS = (-14.0, 6.0)
_PRECISIONS = (-8.0, 16.0)
_PER_DECADE = 10


@dataclass(frozen=True, eq=False)
class DesignSpectrum:
    r"""``S X = U diag(s) V^T`` and ``S t``, with :math:`S = W^{1/2}`; what a fit needs of its data.

    With an intercept, both are meant on the orthogonal complement of ``S 1``: the intercept has a flat prior and is
    integrated out.

    Parameters
    ----------
    singular : ndarray of shape (r,)
        s, with r the smaller of the number of rows and of columns.
    projections : ndarray of shape (r,)
        ``U^T S t``.
    rest : float
        Squared length of what of ``S t`` is outside the range of U.
    basis : ndarray of shape (d, r)
        V.
    total : float
        The sum of the weights.
    center : ndarray of shape (d,)
        Means of the columns; zeros without an intercept.
    level : float
        Mean of the targets; zero without an intercept.
    intercept : bool
        Whether there is one.
    """

    singular: Vector
    projections: Vector
    rest: float
    basis: Matrix
    total: float
    center: Vector
    level: float
    intercept: bool
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "basis": Floats("d, r"),
            "singular": Floats("r", least=0),
            "projections": Floats("r"),
            "rest": Number(least=0),
            "total": Number(least=0),
            "center": Floats("d"),
            "level": Number(),
            "intercept": Flag(),
        },
        rules=(("there are no rows with a weight", lambda spectrum: spectrum.total > 0),),
    )

    @property
    def count(self) -> float:
        """Observations that the evidence is a density of: one less with an intercept."""
        return self.total - 1.0 if self.intercept else self.total

    @property
    def square(self) -> float:
        """Squared length of the targets."""
        return float(self.projections @ self.projections) + self.rest

    def mean(self, alpha: float, beta: float) -> Vector:
        """The weights' posterior mean, (d,)."""
        s = self.singular
        return self.basis @ (beta * s * self.projections / (alpha + beta * s**2))

    def evidence(self, alpha: float, beta: float) -> tuple[float, Vector]:
        r"""Log density of the targets, and its gradient in :math:`(\log \alpha, \log \beta)`.

        .. math:: \log p(t) = \tfrac12 \sum_k \log \frac{\alpha}{\alpha + \beta s_k^2} + \tfrac N2 \log
                  \frac{\beta}{2 \pi} - \tfrac12 \Bigl(\beta \rho + \sum_k \frac{\alpha \beta p_k^2}{\alpha + \beta
                  s_k^2}\Bigr)
        """
        s2, p2, n = self.singular**2, self.projections**2, self.count
        shares = beta * s2 / (alpha + beta * s2)
        left = alpha / (alpha + beta * s2)
        value = 0.5 * float(np.log(left).sum()) + 0.5 * n * np.log(beta / (2.0 * np.pi))
        value -= 0.5 * beta * (self.rest + float(p2 @ left))
        by_alpha = 0.5 * float(shares.sum()) - 0.5 * beta * float((p2 * left) @ shares)
        by_beta = 0.5 * (n - float(shares.sum())) - 0.5 * beta * (self.rest + float(p2 @ left**2))
        return float(value), np.array([by_alpha, by_beta])


def decompose(blocks: Blocks, n: int, d: int, *, intercept: bool) -> DesignSpectrum:
    """The spectrum of weighted rows that come in blocks.

    Parameters
    ----------
    blocks : iterator of (rows, targets, weights)
        Arrays of shape (m, d), (m,) and (m,), with n rows altogether and no weight of zero; each is used once.
    n, d : int
    intercept : bool

    Raises
    ------
    NumericalError
        If a value overflows.

    Notes
    -----
    With more rows than columns, :math:`2 n d^2` operations and no more memory than a block and :math:`d^2`: the blocks
    are reduced to a triangle one after the other, which does not square the condition number as products would. Else
    :math:`O(n^2 d)` operations, on all rows at once.

    Examples
    --------
    >>> X, t, w = np.array([[1.0], [2.0], [3.0]]), np.array([2.0, 4.0, 6.0]), np.ones(3)
    >>> design = decompose(iter([(X, t, w)]), 3, 1, intercept=True)
    >>> round(float(design.singular[0] ** 2), 9), round(abs(design.rest), 9), design.level
    (2.0, 0.0, 4.0)
    """
    if n > d + 1:
        reduced, total = _triangle(blocks, d, intercept)
        if intercept:
            center, level = reduced[0, 1:-1] / reduced[0, 0], float(reduced[0, -1] / reduced[0, 0])
            reduced = reduced[1:, 1:]
        else:
            center, level = np.zeros(d), 0.0
        design, targets = reduced[:d, :d], reduced[:d, d]
        rest = float(reduced[d:, d] @ reduced[d:, d])
    else:
        rows, t, w = (np.concatenate(part) for part in zip(*blocks))
        total, scale = float(w.sum()), np.sqrt(w)
        center = w @ rows / total if intercept else np.zeros(d)
        level = float(w @ t / total) if intercept else 0.0
        design, targets, rest = scale[:, None] * (rows - center), scale * (t - level), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        size = float((design**2).sum() + targets @ targets + rest)
    if not np.isfinite(size):
        raise NumericalError("sums of squares of X or y overflow; scale the columns of X and y.")
    with threads.blas_threads_for(min(design.shape)):
        U, s, Vt = decompositions.singular_values(np.array(design, dtype=np.float64, order="C"))
    p = U.T @ targets
    outside = targets - U @ p
    return DesignSpectrum(s, p, rest + float(outside @ outside), Vt.T, total, center, level, intercept)


def _triangle(blocks: Blocks, d: int, intercept: bool) -> tuple[Matrix, float]:
    """R of the QR factorisation of ``[S 1,] S X, S t``, and the sum of the weights."""
    width = d + 1 + intercept
    R = np.zeros((0, width))
    total = 0.0
    for rows, t, w in blocks:
        scale = np.sqrt(w)[:, None]
        parts = [np.ones_like(scale)] * intercept + [rows, t[:, None]]
        stacked = np.vstack([R, scale * np.hstack(parts)])
        R = np.atleast_2d(scipy.linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0])[:width]
        total += float(w.sum())
    return R, total


@dataclass(frozen=True)
class Learned:
    """Precisions of the highest evidence, the steps it took, and whether it lies within what was looked at."""

    alpha: float
    beta: float
    steps: int
    inside: bool


def learn(spectrum: DesignSpectrum, alpha: float | None, beta: float | None) -> Learned:
    """The precisions of the highest evidence; those that are given stay.

    A grid finds the highest hill, since the evidence may have several, and Brent's method the zero of its derivative.

    Parameters
    ----------
    spectrum : DesignSpectrum
    alpha, beta : float or None
        None for what is to be learned. If both are, beta has a closed form for every ratio of the two.

    Examples
    --------
    >>> X, w = np.eye(4)[:, :2], np.ones(4)
    >>> data = decompose(iter([(X, np.array([3.0, 2.0, 0.1, -0.1]), w)]), 4, 2, intercept=False)
    >>> best = learn(data, None, None)
    >>> best.inside, bool(np.abs(data.evidence(best.alpha, best.beta)[1]).max() < 1e-9)
    (True, True)
    """
    if alpha is not None and beta is not None:
        return Learned(alpha, beta, 0, True)
    if 0 < spectrum.square < _LEAST_SQUARE:
        raise NumericalError(
            f"the targets have a squared length of {spectrum.square:.3g}, which is too small for float64; scale y."
        )
    if not spectrum.square > 0 or not spectrum.count > 0:
        # Targets of zeros: any precision of the noise explains them, the higher the better.
        return Learned(alpha or 1.0, beta or 1.0, 0, True)
    if alpha is None:
        (low, high), begin = _RATIOS, np.log(spectrum.singular.max(initial=0.0) ** 2 or 1.0)
    else:
        (low, high), begin = _PRECISIONS, np.log(spectrum.count / spectrum.square)
    grid = begin + np.log(10.0) * np.linspace(low, high, int((high - low) * _PER_DECADE) + 1)
    return _climb(spectrum, partial(_place, spectrum, alpha, beta), 0 if alpha is None else 1, grid)


def _place(spectrum: DesignSpectrum, alpha: float | None, beta: float | None, log_value: float) -> tuple[float, float]:
    """Precisions by the log of their ratio or, where alpha is given, of beta."""
    value = float(np.exp(log_value))
    if alpha is not None:
        return alpha, value
    if beta is not None:
        return value * beta, beta
    # The derivative along this curve is that by alpha alone, since beta is the best for each ratio.
    shares = value / (value + spectrum.singular**2)
    best = spectrum.count / (spectrum.rest + float(spectrum.projections**2 @ shares))
    return value * best, best


def _climb(
    spectrum: DesignSpectrum, place: Callable[[float], tuple[float, float]], coordinate: int, grid: Vector
) -> Learned:
    """The highest hill along one coordinate, from its slopes."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array([spectrum.evidence(*place(x))[0] for x in grid])
    if np.isnan(values).any():
        raise NumericalError(
            f"the evidence overflows float64: singular values of X are up to {spectrum.singular.max():.3g}. Scale the "
            "columns of X (sklearn.preprocessing.StandardScaler)."
        )
    best = int(np.flatnonzero(values >= values.max() - 1e-9 * max(1.0, abs(values.max())))[-1])
    steps = len(grid)

    def derivative(x: float) -> float:
        nonlocal steps
        steps += 1
        return float(spectrum.evidence(*place(x))[1][coordinate])

    left, right = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if not derivative(left) > 0 > derivative(right):
        return Learned(*place(float(grid[best])), steps, 0 < best < len(grid) - 1)
    top = brentq(derivative, left, right, xtol=1e-12, rtol=1e-14, maxiter=100)
    return Learned(*place(float(top)), steps, True)
