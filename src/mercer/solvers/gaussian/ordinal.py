r"""Gaussian processes on ordered classes: Laplace's evidence and its gradient.

The latent function f is a Gaussian process with the covariance :math:`k_\theta`, and a row of the class j has the
likelihood :math:`F(a (\phi_j - f)) - F(a (\phi_{j-1} - f))`. In units of the link, with g = a f and t = a phi, the
covariance of g is :math:`a^2 K`; with the mode :math:`\hat g = a^2 K \alpha`, losses psi and their curvatures W,

.. math:: \log Z = -\psi(\hat g) - \tfrac12 \alpha^\top \hat g - \tfrac12 \log |B|, \qquad
          B = I + W^{1/2} a^2 K W^{1/2}

Its derivative by the entries of :math:`a^2 K` is, with :math:`R = W^{1/2} B^{-1} W^{1/2}`,
:math:`s_i = -\tfrac12 \operatorname{var}(g_i) W'_i` and :math:`u = s - R\, a^2 K s`,

.. math:: \tfrac12 \alpha \alpha^\top - \tfrac12 R + \tfrac12 (u \alpha^\top + \alpha u^\top)

and by a cut-point, with the slopes h and cross derivatives b of the losses,
:math:`-h - \tfrac12 \sum_i \operatorname{var}(g_i) \partial W_i - b^\top a^2 K u`. The variances of the posterior are
:math:`(1 - (B^{-1})_{ii}) / W_i`, so that beside the factor of B its inverse is all that is needed.

Sources: Chu and Ghahramani, "Gaussian processes for ordinal regression", JMLR 6 (2005), 1019-1041, for the model;
Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), section 5.5, for the gradient.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from mercer._errors import NumericalError
from mercer._types import Array, Matrix, Positions, Vector
from mercer.engine import lapack
from mercer.engine.progress import Progress
from mercer.gram.hold import reserve_square
from mercer.gram.precomputed import PrecomputedGram
from mercer.solvers.gaussian.covariance import Covariance, upper_tile
from mercer.solvers.gaussian.factor import factor
from mercer.solvers.gaussian.workspace import Workspace
from mercer.solvers.risk.cumulative_links import Link
from mercer.solvers.risk.ordinal import NewtonPath, OrdinalStart
from mercer.solvers.risk.ordinal_problem import OrdinalProblem, QuadraticLoss, cross_at_points
from mercer.solvers.solution import Certificate, Status

# How exact a mode is: an error of the mode of this size, in units of 1 + the largest latent value, is one of that
# order in the gradient.
_MODE = 1e-10
# Curvatures below this share of the largest possible are no more than rounding of 1 - (B^-1)_ii.
_FLAT = 1e-14


@dataclass(frozen=True, eq=False)
class OrdinalProcess:
    """The model, with its hyper-parameters free.

    ``theta`` holds the parameters of the covariance, then the logarithm of the slope where ``slope`` is None, then the
    first cut-point in units of f, then the logarithms of the gaps between cut-points.

    Parameters
    ----------
    covariance : Covariance
        Over m points.
    codes : ndarray of int, shape (n,)
        Numbers of the classes, 0, ..., k - 1, all of which occur.
    link : Link
    slope : float or None
        a, if it is given.
    owner : ndarray of int, shape (n,), optional
        The point of each row; by default row i stands at point i.
    definite : bool, default=True
        Whether the covariance is positive semi-definite but for rounding. If not, its diagonal is raised until it is.
    """

    covariance: Covariance
    codes: Positions
    link: Link
    slope: float | None
    owner: Positions | None = None
    definite: bool = True

    @property
    def cuts(self) -> int:
        """The number k - 1 of cut-points."""
        return int(self.codes.max())

    @property
    def size(self) -> int:
        """The number of hyper-parameters."""
        return self.covariance.size + (self.slope is None) + self.cuts

    def split(self, theta: Vector) -> tuple[Vector, float, Vector]:
        """Parameters of the covariance, the slope, and the cut-points in units of f."""
        p = self.covariance.size
        slope = math.exp(theta[p]) if self.slope is None else self.slope
        first, *gaps = theta[p + (self.slope is None) :]
        return theta[:p], slope, np.asarray(first + np.concatenate([[0.0], np.cumsum(np.exp(gaps))]))

    def join(self, kernel: Vector, slope: float, cuts: Vector) -> Vector:
        """``theta`` from its parts."""
        middle = [math.log(slope)] if self.slope is None else []
        return np.concatenate([kernel, middle, cuts[:1], np.log(np.diff(cuts))])

    def likely_cuts(self, slope: float, variance: float) -> Vector:
        """Cut-points that give every class its share, f having that variance: a start."""
        counts = np.bincount(self.codes)
        below = np.cumsum(counts)[:-1] / counts.sum()
        # The normal link has the variance 1 and the others about as much.
        return np.asarray(self.link.quantile(below) * math.hypot(1.0 / slope, math.sqrt(variance)))


@dataclass(frozen=True, eq=False)
class OrdinalPosterior:
    """What is known after a fit, in units of f.

    ``coefficients`` (m,) is the expansion of the mean, ``root`` (m,) and ``factor`` (m, m) give the variance at a row
    with the kernel values k: ``k(x, x) - |L^-1 (root * k)|^2`` with ``factor`` laid out as :mod:`mercer.engine.lapack`
    has it.
    """

    coefficients: Vector
    root: Vector
    factor: Matrix
    slope: float
    cuts: Vector
    evidence: float
    certificate: Certificate


class OrdinalEvidence:
    """The objective of one search: ``theta -> (log evidence, gradient)``.

    A mode is looked for from the one before, so that a search from one start takes an object, and a thread, of its own.
    """

    def __init__(self, process: OrdinalProcess, max_iter: int = 100) -> None:
        self.process, self._max_iter = process, max_iter
        self._work = Workspace()
        self._last: Vector | None = None
        self._scaled: tuple[Vector, float] | None = None

    @property
    def bytes_each(self) -> int:
        """What an evaluation holds."""
        return 16 * self.process.covariance.n**2

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        with ExitStack() as stack:
            self._reserve(stack)
            mode = self._mode(theta)
            root = np.sqrt(mode.curvature)
            factor = mode.path.factor(root)
            return self._value(mode, factor), self._gradient(theta, mode, root, factor)

    def value(self, theta: Vector) -> float:
        """The log evidence alone."""
        with ExitStack() as stack:
            self._reserve(stack)
            mode = self._mode(theta)
            return self._value(mode, mode.path.factor(np.sqrt(mode.curvature)))

    def posterior(self, theta: Vector) -> OrdinalPosterior:
        """The approximate posterior at given hyper-parameters."""
        with ExitStack() as stack:
            sentence = self._reserve(stack)
            mode = self._mode(theta)
            root = np.sqrt(mode.curvature)
            factor = mode.path.factor(root)
            _, slope, cuts = self.process.split(theta)
            solution = mode.path.finish(mode.status, 0.0, 0, sentence)
            # The triangle below is left over from the matrix.
            return OrdinalPosterior(
                slope * mode.path.coefficients,
                slope * root,
                np.triu(factor),
                slope,
                cuts,
                self._value(mode, factor),
                solution.certificate,
            )

    def _reserve(self, stack: ExitStack) -> str:
        return reserve_square(stack, self.process.covariance.n, 16, "the covariance matrix and a factor")

    def _mode(self, theta: Vector) -> _Mode:
        process, n = self.process, self.process.covariance.n
        own, slope, cuts = process.split(np.asarray(theta, dtype=np.float64))
        if not (np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()):
            raise NumericalError(f"the cut-points {cuts.tolist()} are not finite numbers in their order.")
        K = self._matrix(own, slope)
        problem = OrdinalProblem(
            process.codes, np.ones(len(process.codes)), process.link, process.owner, gram=PrecomputedGram(K)
        )
        start = None if self._last is None else OrdinalStart(self._last, slope * cuts)
        path = NewtonPath(problem, K, start, self._work.array("factor", (n, n)), fixed_cuts=slope * cuts)
        status = path.run(_MODE, Progress(self._max_iter, "Newton steps"), self._max_iter)
        self._last = path.coefficients
        return _Mode(path, status)

    def _matrix(self, own: Vector, slope: float) -> Matrix:
        """``a^2 K``; a kernel whose parameters are those of the last time is not evaluated again."""
        n = self.process.covariance.n
        K = self._work.array("K", (n, n))
        if self._scaled is not None and np.array_equal(self._scaled[0], own):
            K *= (slope / self._scaled[1]) ** 2
        else:
            self._scaled = None
            self.process.covariance.matrix(own, K)
            if not self.process.definite:
                # The factor is computed after the matrix, so its array is free.
                trial = self._work.array("factor", (n, n))
                trial[...] = K
                np.einsum("ii->i", K)[...] += factor(trial, definite=False).jitter
            K *= slope**2
        self._scaled = own.copy(), slope
        return K

    def _value(self, mode: _Mode, factor: Matrix) -> float:
        path = mode.path
        fit = path.expansion.loss + 0.5 * float(path.coefficients @ path.latent)
        return -fit - float(np.log(np.einsum("ii->i", factor)).sum())

    def _gradient(self, theta: Vector, mode: _Mode, root: Vector, factor: Matrix) -> Vector:
        """By all hyper-parameters; the inverse takes the place of the factor."""
        process, path, alpha = self.process, mode.path, mode.path.coefficients
        own, slope, cuts = process.split(theta)
        lapack.invert_cholesky(factor)
        inverse = factor
        variance = _variances(inverse, mode.curvature, path.K)
        problem, slopes = path.problem, path.expansion.slopes
        loss = QuadraticLoss.of(problem, slopes)
        skew = problem.at_points(-(slopes.third_upper + slopes.third_lower))
        cut_third = cross_at_points(problem, slopes.third_upper, slopes.third_lower)
        s = -0.5 * variance * skew
        pulled = path.K @ s
        u = s - root * _symmetric_product(inverse, root * pulled)
        pulled_u = path.K @ u
        cut_slope = -loss.cut_slope - 0.5 * (variance @ cut_third) - loss.cross.T @ pulled_u
        weights = _Weights(inverse, root, alpha, alpha + 2.0 * u)
        parts = [slope**2 * process.covariance.pullback(own, weights.fill)] if len(own) else []
        if process.slope is None:
            # By the logarithm of a: the covariance grows as a^2, the cut-points t as a.
            energy = 0.5 * float(alpha @ path.latent) + float(u @ path.latent)
            trace = 0.5 * float((1.0 - np.einsum("ii->i", inverse)).sum())
            parts.append(np.array([2.0 * (energy - trace) + path.cuts @ cut_slope]))
        # A gap moves every cut-point above it.
        by_cut = slope * cut_slope
        above = np.cumsum(by_cut[::-1])[::-1]
        parts.append(np.concatenate([above[:1], above[1:] * np.diff(cuts)]))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Mode:
    """The mode of the posterior of g, and how the search for it ended."""

    path: NewtonPath
    status: Status

    @property
    def curvature(self) -> Vector:
        """W, summed over the rows of each point."""
        return self.path.expansion.curvature


@dataclass(frozen=True, eq=False)
class _Weights:
    """``(a b' + b a') / 4 - R / 2`` by tiles, for ``b = alpha + 2 u`` and R from the inverse in an upper triangle."""

    inverse: Matrix
    root: Vector
    a: Vector
    b: Vector

    def fill(self, rows: slice, columns: slice, out: Array) -> None:
        """Write one tile on the diagonal or above."""
        upper_tile(self.inverse, rows, columns, out)
        out *= self.root[rows, None] * (-0.5 * self.root[columns])
        out += np.outer(0.25 * self.a[rows], self.b[columns])
        out += np.outer(0.25 * self.b[rows], self.a[columns])


def _variances(inverse: Matrix, curvature: Vector, K: Matrix) -> Vector:
    """Variances of the posterior; where a row says nothing, those of the prior."""
    left = 1.0 - np.einsum("ii->i", inverse)
    prior = np.einsum("ii->i", K)
    informative = curvature * prior > _FLAT
    return np.where(informative, left / np.where(informative, curvature, 1.0), prior)


def _symmetric_product(upper: Matrix, v: Vector) -> Vector:
    """``A v`` for a symmetric matrix of which the upper triangle is there."""
    return np.asarray(blas.dsymv(1.0, upper.T, v, lower=1))
