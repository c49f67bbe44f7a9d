"""Expectation propagation for two classes, with a probit link."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.solvers.gaussian.classification import Approximation, Effort, GaussianClassification
from mercer.solvers.gaussian.latent_store import LatentStore
from mercer.solvers.gaussian.mixing import Mixing
from mercer.solvers.gaussian.mode import require_factor
from mercer.solvers.gaussian.workspace import Workspace
from mercer.solvers.solution import Certificate, Solution, Status

_LOG_ROOT_TWO_PI = 0.5 * np.log(2.0 * np.pi)
# If a site takes less than this share of its row's variance away, the inverse of B does not give that exactly enough.
_WEAK = 1e-5
# Variances may be below zero by this, which is little beside that of the link, 1.
_NEGATIVE = 1e-6
# No step takes more than this share of the precision of a site away.
_LEFT = 0.1


def expectation_propagation(
    problem: GaussianClassification, theta: Vector, work: Workspace, start: Matrix | None, effort: Effort
) -> Solution[Approximation, Matrix]:
    r"""The Gaussian whose marginals match those of the posterior, site by site, and the evidence that goes with it.

    Each factor :math:`\Phi(y_i f_i)` of the posterior stands as :math:`\exp(\nu_i f_i - \tau_i f_i^2 / 2)`, such that
    the mean and the variance of f_i are the same with the one as with the other.

    Parameters
    ----------
    problem : GaussianClassification
        Of two classes.
    theta : ndarray of shape (p,)
    work : Workspace
    start : ndarray of shape (n, 2), optional
        ``tau`` and ``nu`` of a neighbouring problem.
    effort : Effort
        ``tol`` is the largest change of a site to stop at, in units of the posterior of its row:
        :math:`\Sigma_{ii} |\delta \tau_i|` and :math:`\Sigma_{ii}^{1/2} |\delta \nu_i|`; ``max_iter`` the most sweeps.

    Returns
    -------
    Solution
        The certificate's ``primal`` is the negative evidence; nothing bounds it.

    Raises
    ------
    NumericalError
        If K has NaN or infinite entries, or eigenvalues far below zero.

    Notes
    -----
    All sites change at once, so that a sweep costs a factor and its inverse, ``2 n^3 / 3`` operations, and not n
    updates of rank one; the steps are mixed from the last ones, and damped where they lead away. At the fixed point the
    evidence is stationary in the sites, and its derivative by K is :math:`(b b^\top - R) / 2` with
    :math:`R = (K + T^{-1})^{-1}`, :math:`b = (I - R K) \nu`.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), algorithms 3.5, 3.6 and
    5.2; M. van Gerven, B. Cseke, R. Oostenveld and T. Heskes, "Bayesian source localization with the multivariate
    Laplace prior", NIPS 22 (2009), for updates in parallel.
    """
    start_time = time.perf_counter()
    store, signs = problem.store(theta, work), problem.signs
    tau, nu = np.zeros(problem.n), np.zeros(problem.n)
    if start is not None and start.shape == (problem.n, 2):
        tau, nu = start[:, 0].copy(), start[:, 1].copy()
    progress = Progress(None, "sweep")
    mixing, sweeps, status = Mixing(), 0, None
    while status is None:
        posterior = _Posterior.of(store, tau, nu)
        change = posterior.change(signs)
        if change.size <= effort.tol:
            status = Status.converged
        elif sweeps >= effort.max_iter:
            status = Status.iteration_limit
        else:
            tau, nu = _moved(posterior, change, mixing)
            sweeps += 1
            progress.advance()
            record("sweeps", sweeps, {"evidence": posterior.evidence(signs), "violation": change.size})
    evidence = posterior.evidence(signs)
    gradient: Vector | None = None
    factor: Matrix | None = None
    root = np.sqrt(tau)
    if effort.keep_factor:
        require_factor(store, root)
        factor = store.lower_factor()
        work.give_away("K")
    elif effort.gradient:
        store.finish_inverse()
        b = posterior.weights[:, None]
        gradient = np.asarray(problem.covariance.pullback(theta, store.slope(root, b, b)))
    state = np.stack([tau, nu], axis=1)
    approximation = Approximation(evidence, gradient, posterior.weights[:, None], root[:, None], factor, state)
    violations = {"sites": change.size}
    seconds = time.perf_counter() - start_time
    certificate = Certificate(-evidence, -np.inf, change.size, sweeps, seconds, 0, status, violations)
    return Solution(approximation, status, certificate, state)


def _moved(posterior: _Posterior, change: _Change, mixing: Mixing) -> tuple[Vector, Vector]:
    """The sites after a step, with precisions of 0 or more."""
    tau, n = posterior.tau, len(posterior.tau)
    scale = np.concatenate([posterior.variance, np.sqrt(posterior.variance)])
    residual = np.concatenate([change.tau, change.nu])
    step = mixing.step(np.concatenate([tau, posterior.nu]), residual, scale)
    moved = tau + step[:n]
    plain = np.maximum(tau + mixing.damping * change.tau, 0.0)
    return np.where(moved < _LEFT * tau, plain, moved), posterior.nu + step[n:]


@dataclass(frozen=True)
class _Change:
    """What a sweep without damping adds to the sites, and the largest change in units of the posterior."""

    tau: Vector
    nu: Vector
    size: float


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The Gaussian that the sites make of the prior, and without each row its cavity."""

    tau: Vector
    nu: Vector
    weights: Vector
    mean: Vector
    variance: Vector
    cavity_mean: Vector
    cavity_variance: Vector
    log_determinant: float

    @classmethod
    def of(cls, store: LatentStore, tau: Vector, nu: Vector) -> _Posterior:
        """By a factor of ``I + T^1/2 K T^1/2`` and its inverse, which takes its place."""
        root = np.sqrt(tau)
        require_factor(store, root)
        V = nu[:, None]
        weights = nu - root * store.solve(root[:, None] * store.product(V))[:, 0]
        mean = store.product(weights[:, None])[:, 0]
        weak = np.flatnonzero(tau * store.diagonal < _WEAK)
        exact = _variances(store, root, weak)
        log_determinant = store.log_determinant
        # The share of a row's variance that its own site leaves, 1 - tau_i Sigma_ii.
        left = store.invert_triangle()
        variance = np.divide(1.0 - left, tau, out=np.zeros_like(tau), where=tau > 0)
        variance[weak] = exact
        left[weak] = 1.0 - tau[weak] * exact
        cavity = (mean - variance * nu) / left, variance / left
        if not (cavity[1] > -_NEGATIVE).all():
            raise NumericalError(
                "a row has a negative variance, so the kernel matrix has eigenvalues far below zero. Choose another "
                "kernel, or repair the matrix with mercer.validity.nearest(K)."
            )
        return cls(tau, nu, weights, mean, variance, *cavity, log_determinant)

    def _z(self, signs: Vector) -> Vector:
        return signs * self.cavity_mean / np.sqrt(1.0 + self.cavity_variance)

    def change(self, signs: Vector) -> _Change:
        """Sites whose moments match, less what they are."""
        m, v, z = self.cavity_mean, self.cavity_variance, self._z(signs)
        ratio = np.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI - log_ndtr(z))
        slope = signs * ratio / np.sqrt(1.0 + v)
        bend = ratio * (z + ratio) / (1.0 + v)
        tau = bend / (1.0 - v * bend) - self.tau
        nu = (slope + m * bend) / (1.0 - v * bend) - self.nu
        size = np.maximum(self.variance * np.abs(tau), np.sqrt(self.variance) * np.abs(nu))
        return _Change(tau, nu, float(size.max()))

    def evidence(self, signs: Vector) -> float:
        """``log Z``."""
        m, v, tau, nu = self.cavity_mean, self.cavity_variance, self.tau, self.nu
        own = 1.0 + tau * v
        sites = log_ndtr(self._z(signs)) + 0.5 * (np.log(own) + (tau * m * m - nu * nu * v - 2.0 * m * nu) / own)
        return float(sites.sum()) + 0.5 * float(nu @ self.mean) - 0.5 * self.log_determinant


def _variances(store: LatentStore, root: Vector, rows: NDArray[np.intp]) -> Vector:
    """Posterior variances of some rows, by the columns of K."""
    if not root.any() or not len(rows):
        return store.diagonal[rows]
    whitened = store.whiten(root[:, None] * store.columns(rows))
    return store.diagonal[rows] - np.einsum("ij,ij->j", whitened, whitened)
