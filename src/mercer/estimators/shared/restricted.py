"""Learners whose functions are restricted to the span of few rows: the parameters that they share, and their parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import clone

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._registered import estimate_of
from mercer._types import Matrix, Positions, Vector
from mercer.data.objects import Objects
from mercer.data.seeds import generator
from mercer.engine import memory
from mercer.estimators.shared.parameters import is_among, require_choice, require_whole
from mercer.gram import Gram
from mercer.gram.hold import evaluated
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel
from mercer.landmarks.choose import Landmarks, Names, choose
from mercer.solvers.restricted.whitening import Whitening

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator

# Estimates of seconds are known to a factor of about 2.
_SHARE, _MANY = 0.5, 2**20
RESTRICTED = "conjugate gradients over landmarks"


@dataclass(frozen=True)
class Beside:
    """What another parameter of a learner must be with an approximation.

    Parameters
    ----------
    name : str
    value : object
        The value to pass instead, or that alone is allowed.
    advice : str
    allows : callable, optional
        Whether a learner has a value that goes with landmarks; by default, whether it has this one.
    """

    name: str
    value: Any
    advice: str
    allows: Callable[[Any], bool] | None = None


def not_beside_landmarks(learner: KernelEstimator) -> list[Beside]:
    """What has to change for an approximation."""
    return [
        needed
        for needed in learner._beside_landmarks
        if not (needed.allows(learner) if needed.allows else is_among(getattr(learner, needed.name), (needed.value,)))
    ]


def require_approximation(learner: Any, choices: tuple[str | None, ...] = (None, "nystroem")) -> bool:
    """Whether a learner is to be restricted to landmarks; raises if its parameters do not go with that.

    Raises
    ------
    ParameterError
        If a parameter has an invalid value, or does not go with an approximation.
    """
    require_choice(learner, "approximation", choices)
    if not learner.is_on_landmarks:
        return False
    auto = ", or 'auto'" if learner.may_leave_landmarks_open else ""
    require_whole(learner, "n_landmarks", f"a whole number of at least 1{auto}")
    if learner._is_precomputed:
        raise ParameterError(
            'approximation="nystroem" evaluates the kernel between rows and landmarks, and kernel is "precomputed", so '
            "that all values exist already. Leave out approximation, or pass the kernel and the rows."
        )
    for needed in not_beside_landmarks(learner):
        raise ParameterError(
            f'approximation="nystroem" cannot be combined with {needed.name}={getattr(learner, needed.name)!r}. '
            f"{needed.advice}"
        )
    return True


NO_WARM_START = Beside("warm_start", False, "Pass warm_start=False.", lambda learner: not learner.warm_start)
OWN_SOLVER = "Problems over landmarks have a solver of their own; leave out solver."


def warn_if_exact_is_faster(learner: KernelEstimator, X: Any) -> None:
    """Warn where a fit to objects without landmarks is estimated to fit into memory, and to take half of the time."""
    options: Any = learner
    # Fewer kernel values take no longer than the estimates; a fit that goes on from another one was warned of.
    if not isinstance(X, Objects) or X.shape[0] * options.n_landmarks < _MANY or learner.continues is not None:
        return
    here, exact = (estimate_of(one, X) for one in (learner, clone(learner).set_params(approximation=None)))
    if exact.fits and None not in (here.seconds, exact.seconds) and exact.seconds < _SHARE * here.seconds:
        warn_user(
            f"{type(learner).__name__} with {options.n_landmarks:,} landmarks takes about {here.seconds:.2g} s on "
            f"these {X.shape[0]:,} rows, and the exact fit about {exact.seconds:.2g} s. Pass approximation=None.",
            MercerWarning,
        )


@dataclass(frozen=True, eq=False)
class Restriction:
    """The landmarks of a fit, the factor of their kernel matrix, and kernel values of all rows with them, lazily."""

    landmarks: Landmarks
    white: Whitening
    gram: GramMatrix

    def with_positions_in(self, used: Positions) -> Restriction:
        """The same with positions of landmarks among all rows, of which the fit had those at ``used``."""
        indices = self.landmarks.indices
        if indices is None:
            return self
        return dataclasses.replace(self, landmarks=dataclasses.replace(self.landmarks, indices=used[indices]))


def restriction(learner: KernelEstimator, X: Any, weights: Vector | None, seed: Any = None) -> Restriction:
    """Choose landmarks among the rows of a fit for its ``kernel_``, and prepare what solvers need.

    ``seed`` is that of the learner.

    Raises
    ------
    IndefiniteKernelError
        If the kernel is not positive semi-definite.
    """
    kernel: Any = learner.kernel_
    options: Any = learner
    if weights is not None and (weights == weights[0]).all():
        weights = None
    landmarks = choose(
        kernel,
        X,
        options.n_landmarks,
        options.landmarks,
        generator(seed),
        names=Names(type(learner).__name__),
        sample_weight=weights,
    )
    return restriction_to(landmarks, kernel, X, learner.n_jobs)


def restriction_to(landmarks: Landmarks, kernel: Any, X: Any, n_jobs: int | None) -> Restriction:
    """Prepare what solvers need of landmarks and rows X for a kernel.

    Raises
    ------
    IndefiniteKernelError
        If the kernel is not positive semi-definite.
    """
    m = landmarks.rows.shape[0]
    gram = Gram(kernel, X, landmarks.rows, dtype=np.float64, n_jobs=n_jobs)
    with memory.reserve(2 * 8 * m * m, f"the kernel matrix of {m:,} landmarks and its factor", _FEWER):
        K = np.asarray(kernel.block(landmarks.rows.astype(np.float64, copy=False)), dtype=np.float64)
        white = Whitening.of(K, overwrite=True)
    return Restriction(landmarks, white, evaluated(gram) if gram.expensive else gram)


def continued(learner: KernelEstimator, parts: Restriction) -> tuple[Matrix, Vector] | None:
    """Where a fit starts that goes on from another one: coordinates (m, k) of its functions, projected, and offsets."""
    before = learner.continues
    if before is None:
        return None
    landmarks, kernel = parts.landmarks.rows, cast(Kernel, learner.kernel_)
    offsets = np.broadcast_to(np.asarray(before.offsets, dtype=np.float64), len(before.dual_coef))
    values = Gram(kernel, landmarks, before.rows, dtype=np.float64, n_jobs=learner.n_jobs) @ before.dual_coef.T
    return parts.white.pull(np.asarray(values)), offsets


_FEWER = "Pass a smaller n_landmarks, or raise the budget with mercer.config(memory=...)."
