"""Gaussian process regression over landmarks: what can be combined with it, its search and its fit."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Matrix, Vector
from mercer.data.seeds import generator
from mercer.engine import memory, threads
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.cross_covariance import KernelCross
from mercer.estimators.gaussian.options import has_part
from mercer.estimators.gaussian.starts import starts_of
from mercer.estimators.shared.expansion import without_noise
from mercer.kernels import Kernel, White
from mercer.kernels.inputs import Rows
from mercer.kernels.parameters import Parameter
from mercer.landmarks.choose import Landmarks, Names, choose
from mercer.solvers.gaussian.inducing import InducingObjective, InducingRegression, Projected, project
from mercer.solvers.gaussian.inducing_bounds import evidence_bounds
from mercer.solvers.gaussian.inducing_posterior import InducingFactors
from mercer.solvers.gaussian.regression import GaussianRegression, Objective
from mercer.solvers.gaussian.search import MultiStart, Search, warn_of_bounds
from mercer.solvers.solution import Certificate, Status

# Rows of the first search, by the exact evidence.
SAMPLE = 1000
# The search on all rows ends when five steps together gain less than this, in nats.
_GAIN = 0.1
# Of the mean variance that the landmarks leave, in units of that of the noise: above it, the bound says little.
_LARGE = 10.0


def require_all_rows(learner: Any, what: str, instead: str = "None") -> None:
    """Raise ParameterError if a fit kept its landmarks alone; ``instead`` is the approximation that does not."""
    if learner._landmark_factors is not None:
        raise ParameterError(
            f'{what} needs the training rows, and a fit with approximation="nystroem" keeps its landmarks alone; fit '
            f"with approximation={instead}."
        )


def _require_terms(kernel: Kernel) -> None:
    """Raise ParameterError if ``White`` is more than a term of the kernel, with or without a factor."""
    if has_part(without_noise(kernel), (White,)):
        raise ParameterError(
            f'approximation="nystroem" needs a kernel whose White parts are terms of a sum with a kernel that is not '
            f"noise, as in RBF(1.0) + White(0.1), but kernel is {kernel!r}."
        )


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """A fit of ``learner``, whose kernel, targets and scale are set, to checked rows.

    Parameters
    ----------
    learner : GaussianProcessRegressor
    X : rows
    targets : ndarray of shape (n, t)
    variances : ndarray of shape (n,)
    parameters : tuple of Parameter
        All that are free, in the order of theta.
    log_prior : callable or None
    """

    learner: Any
    X: Any
    targets: Matrix
    variances: Vector
    parameters: tuple[Parameter, ...]
    log_prior: Any

    def run(self) -> None:
        """Search, project, and set all attributes that depend on them."""
        model, start_time = self.learner, time.perf_counter()
        _require_terms(model.kernel_)
        if model.noise_ is None and not self.variances.all() and without_noise(model.kernel_) is model.kernel_:
            raise ParameterError(
                'approximation="nystroem" needs noise in every row: pass noise=0.1, where its search starts, alpha '
                "above 0, or a kernel with a White term."
            )
        random = generator(model.random_state)
        with memory.track() as account, threads.workers(model.n_jobs):
            theta = np.array([p.theta for p in self.parameters])
            searches = model.optimizer is not None and len(theta) > 0
            if searches:
                theta = self._search_on_sample(theta, random).theta
            landmarks = self._choose(theta, random)
            problem = self._problem(landmarks)
            objective = InducingObjective(problem, model.n_jobs)
            model.search_ = self._search(objective, theta, objective.bytes_each) if searches else None
            theta = model.search_.theta if searches else theta
            whole = self._of_all_rows(problem)
            with InducingObjective(whole, model.n_jobs).room():
                projected = project(whole, theta)
                bounds = evidence_bounds(whole, projected)
        self._set(theta, landmarks, projected)
        model.log_marginal_likelihood_value_ = bounds[0]
        model.log_marginal_likelihood_bounds_ = np.array(bounds)
        model.certificate_ = Certificate(
            -bounds[0],
            -bounds[1],
            projected.residual(),
            model.search_.evaluations if searches else 0,
            time.perf_counter() - start_time,
            account.peak,
            Status.direct,
        )
        if searches:
            warn_of_bounds(model.search_, self._box(), [p.name for p in self.parameters])
        self._warn_of_remainder(projected)

    def _problem(self, landmarks: Landmarks) -> InducingRegression:
        model = self.learner
        covariance = KernelCross(model.kernel_, self.X, landmarks.rows, model.n_jobs)
        return InducingRegression(covariance, self.targets, self.variances, model.noise_ is not None)

    def _of_all_rows(self, problem: InducingRegression) -> InducingRegression:
        """The problem whose posterior is the answer."""
        return problem

    def _box(self) -> list[list[float]]:
        return [[dataclasses.replace(p, value=b).theta for b in p.bounds] for p in self.parameters]

    def _search_on_sample(self, theta: Vector, random: np.random.RandomState) -> Search:
        """By the exact evidence of few rows: cheap, and landmarks need a kernel that is about right."""
        model, n = self.learner, len(self.targets)
        rows = np.arange(n) if n <= SAMPLE else np.sort(random.choice(n, SAMPLE, replace=False))
        part = self.X if len(rows) == n else self.X[rows]
        problem = GaussianRegression(
            covariance_of(model.kernel_, Rows(part), model.n_jobs),
            self.targets[rows],
            self.variances[rows],
            free_noise=model.noise_ is not None,
        )
        objective = Objective(problem, n_jobs=model.n_jobs)
        starts = starts_of(model, model.kernel_, part, self.parameters, self.targets[rows])
        return self._search(objective, theta, objective.bytes_each, **starts)

    def _search(self, objective: Any, theta: Vector, bytes_each: int, **starts: Any) -> Search:
        model = self.learner
        return MultiStart(
            **starts,
            random_state=model.random_state,
            optimizer=model.optimizer if callable(model.optimizer) else None,
            gain=_GAIN,
            n_jobs=model.n_jobs,
            bytes_each=bytes_each,
        ).maximise(objective, theta, self._box(), self.log_prior)

    def _choose(self, theta: Vector, random: np.random.RandomState) -> Landmarks:
        model = self.learner
        kernel = model.kernel_.with_theta(theta[: len(model.kernel_.theta)])
        signal: Any = without_noise(kernel)
        return choose(signal, self.X, model.n_landmarks, model.landmarks, random, names=Names(type(model).__name__))

    def _set(self, theta: Vector, landmarks: Landmarks, projected: Projected) -> None:
        model = self.learner
        count = len(model.kernel_.theta)
        if model.search_ is not None:
            model.kernel_ = model.kernel_.with_theta(theta[:count])
        if model.search_ is not None and model.noise_ is not None:
            model.noise_ = float(np.exp(theta[count]))
        model.theta_ = theta
        model.X_train_, model.landmark_indices_ = landmarks.rows, landmarks.indices
        model.alpha_ = projected.beta.reshape(-1, *model.y_train_.shape[1:])
        model._landmark_factors = InducingFactors.of(projected)
        # Rows that were not kept are not needed.
        model.y_train_ = model._variances = None
        model._trend, model.jitter_ = None, projected.white.jitter

    def _warn_of_remainder(self, projected: Projected) -> None:
        share = float((projected.left / projected.s).mean())
        if share > _LARGE:
            warn_user(
                f"{len(projected.u):,} landmarks leave a variance of {projected.left.mean():.3g} in a row, "
                f"{share:.2g} times that of its noise: the bounds of the evidence are far apart, and means may be far "
                "from those of all rows. Pass a larger n_landmarks, a larger alpha, or noise=0.1, which is then "
                "searched for.",
                MercerWarning,
            )
