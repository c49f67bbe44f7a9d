"""Gaussian process classification over landmarks: what can be combined with it, its search and its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Vector
from mercer.data.seeds import generator
from mercer.engine import threads
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.cross_covariance import KernelCross
from mercer.estimators.gaussian.options import has_part
from mercer.estimators.gaussian.over_landmarks import SAMPLE
from mercer.estimators.gaussian.starts import starts_of
from mercer.estimators.shared.restricted import require_approximation
from mercer.kernels import White
from mercer.kernels.inputs import Rows
from mercer.landmarks.choose import Landmarks, Names, choose, method_of, require_positive
from mercer.solvers.gaussian.approaches import approach
from mercer.solvers.gaussian.classification import Evidence, GaussianClassification
from mercer.solvers.gaussian.inducing_laplace import InducingEvidence
from mercer.solvers.gaussian.inducing_mode import InducingClassification, InducingMode
from mercer.solvers.gaussian.inducing_posterior import InducingFactors
from mercer.solvers.gaussian.search import MultiStart, Search, warn_of_bounds

# The search on all rows ends when five steps together gain less than this, in nats.
_GAIN = 0.1
# Of the prior variances of the rows, the share that landmarks may leave without a warning.
_LARGE = 0.5
_WHITE = "this noise is independent between rows, so that landmarks know nothing of it"
APPROXIMATIONS = ("auto", "laplace", "ep", "nystroem")
# Methods whose landmarks depend on the kernel; others are chosen, and checked, before any search.
_BY_KERNEL = ("rpcholesky", "leverage")


def require_landmarks(learner: Any) -> None:
    """Raise ParameterError unless the parameters of landmarks make sense, and can be combined with the others."""
    # Methods whose landmarks do not depend on the kernel choose before any search.
    named = isinstance(learner.landmarks, str) or learner.landmarks is None or np.isscalar(learner.landmarks)
    if require_approximation(learner, APPROXIMATIONS) and named:
        method_of(learner.landmarks, Names(type(learner).__name__), ", or rows of the kind of X")


def require_function(learner: Any) -> None:
    """Raise unless the kernel of a fit over landmarks is positive semi-definite and without noise."""
    require_positive(learner.kernel_, Names(type(learner).__name__))
    if has_part(learner.kernel_, (White,)):
        raise ParameterError(
            f'approximation="nystroem" needs a kernel without White parts, but kernel is '
            f'{learner.kernel_!r}: {_WHITE}. Leave them out, or pass approximation="laplace".'
        )


@dataclass(frozen=True, eq=False)
class ClassLandmarkFit:
    """A fit of ``learner``, whose kernel and classes are set, to checked rows.

    Parameters
    ----------
    learner : GaussianProcessClassifier
    X : rows
    codes : ndarray of shape (n,)
    log_prior : callable or None
    """

    learner: Any
    X: Any
    codes: NDArray[np.intp]
    log_prior: Any

    def run(self) -> None:
        """Search, find the mode, and set all attributes that depend on them."""
        model = self.learner
        random = generator(model.random_state)
        with threads.workers(model.n_jobs):
            theta = np.asarray(model.kernel_.theta)
            searches = model.optimizer is not None and len(theta) > 0
            landmarks = None if self._waits else self._choose(theta, random)
            if searches:
                theta = self._search_on_sample(theta, random).theta
            if landmarks is None:
                landmarks = self._choose(theta, random)
            evidence = self._evidence(landmarks)
            model.search_ = self._search(evidence, theta, evidence.bytes_each) if searches else None
            theta = model.search_.theta if searches else theta
            solution = self._of_all_rows(evidence).solve(theta)
        self._set(theta, landmarks, solution.value)
        model.certificate_ = solution.certificate
        if searches:
            warn_of_bounds(model.search_, model.kernel_.bounds, [p.name for p in model.kernel_.parameters if p.free])
        self._warn_of_remainder(solution.value)

    def _evidence(self, landmarks: Landmarks) -> InducingEvidence:
        model = self.learner
        covariance = KernelCross(model.kernel_, self.X, landmarks.rows, model.n_jobs)
        problem = InducingClassification(covariance, self.codes, model.n_classes_)
        return InducingEvidence(problem, max_iter=int(model.max_iter_predict), n_jobs=model.n_jobs)

    def _of_all_rows(self, evidence: InducingEvidence) -> InducingEvidence:
        """The evidence whose mode is the answer."""
        return evidence

    def _search_on_sample(self, theta: Vector, random: np.random.RandomState) -> Search:
        """By the exact evidence of few rows: cheap, and landmarks need a kernel that is about right."""
        model, n = self.learner, len(self.codes)
        rows = np.arange(n) if n <= SAMPLE else np.sort(random.choice(n, SAMPLE, replace=False))
        part = self.X if len(rows) == n else self.X[rows]
        covariance = covariance_of(model.kernel_, Rows(part), model.n_jobs)
        problem = GaussianClassification(covariance, self.codes[rows], model.n_classes_)
        method = approach(len(rows), model.n_classes_, "laplace")
        evidence = Evidence(problem, method, max_iter=int(model.max_iter_predict), n_jobs=model.n_jobs)
        free = [p for p in model.kernel_.parameters if p.free]
        return self._search(evidence, theta, evidence.bytes_each, **starts_of(model, model.kernel_, part, free))

    def _search(self, objective: Any, theta: Vector, bytes_each: int, **starts: Any) -> Search:
        model = self.learner
        return MultiStart(
            **starts,
            random_state=model.random_state,
            optimizer=model.optimizer if callable(model.optimizer) else None,
            gain=_GAIN,
            n_jobs=model.n_jobs,
            bytes_each=bytes_each,
        ).maximise(objective, theta, model.kernel_.bounds, self.log_prior)

    @property
    def _waits(self) -> bool:
        """Whether the choice of landmarks needs the kernel that a first search finds."""
        how = self.learner.landmarks
        return isinstance(how, str) and how in _BY_KERNEL

    def _choose(self, theta: Vector, random: np.random.RandomState) -> Landmarks:
        model = self.learner
        kernel: Any = model.kernel_.with_theta(theta)
        return choose(kernel, self.X, model.n_landmarks, model.landmarks, random, names=Names(type(model).__name__))

    def _set(self, theta: Vector, landmarks: Landmarks, mode: InducingMode) -> None:
        model = self.learner
        if model.search_ is not None:
            model.kernel_ = model.kernel_.with_theta(theta)
        model.theta_ = theta
        model.X_train_, model.landmark_indices_ = landmarks.rows, landmarks.indices
        model.dual_coef_ = np.ascontiguousarray(mode.weights.T)
        model._landmark_factors = InducingFactors(np.triu(mode.white.factor), np.triu(mode.point.factor))
        model.log_marginal_likelihood_value_ = mode.point.evidence
        # Rows that were not kept are not needed.
        model.y_train_, model.estimators_ = None, []

    def _warn_of_remainder(self, mode: InducingMode) -> None:
        prior, _ = mode.values.diagonals()
        left = np.maximum(prior - mode.point.explained, 0.0)
        total = float(prior.sum())
        share = float(left.sum()) / total if total > 0 else 0.0
        if share > _LARGE:
            warn_user(
                f"{len(mode.point.u):,} landmarks leave {share:.0%} of the prior variance of the rows: probabilities "
                "of most rows are near those without any data. Pass a larger n_landmarks, or bound the kernel's "
                "length scale from below (kernel.bounded).",
                MercerWarning,
            )
