"""Losses of the margin ``z = y f(x)``, each with its conjugate, which is what a dual bound needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from mercer.loops import sgd
from mercer.solvers.matrix import Vector


@dataclass(frozen=True)
class MarginLoss:
    r"""A convex loss :math:`\ell(z)` of the margin.

    Parameters
    ----------
    code : int
        What the compiled loops know it by.
    value : callable
        :math:`\ell`, element by element.
    gain : callable
        :math:`-\ell^*(-u) = \inf_z \ell(z) + u z`, for slopes u that :math:`-\ell'` takes.
    steepness : float
        A step of length s at a row x does not overshoot if ``s * k(x, x) * steepness <= 1``: the largest second
        derivative; 1 for the hinge, whose margin then moves by 1 at most.

    Examples
    --------
    >>> hinge = LOSSES["hinge"]
    >>> hinge.value(np.array([0.0, 2.0])), hinge.gain(np.array([0.5]))
    (array([1., 0.]), array([0.5]))
    """

    code: int
    value: Callable[[Vector], Vector]
    gain: Callable[[Vector], Vector]
    steepness: float


def _hinge(z: Vector) -> Vector:
    return np.maximum(1.0 - z, 0.0)


def _squared_hinge(z: Vector) -> Vector:
    return np.square(np.maximum(1.0 - z, 0.0))


def _log(z: Vector) -> Vector:
    return np.logaddexp(0.0, -z)


def _modified_huber(z: Vector) -> Vector:
    return np.where(z < -1.0, -4.0 * z, _squared_hinge(z))


def _entropy(u: Vector) -> Vector:
    return np.asarray(entr(u) + entr(1.0 - u))


def _parabola(u: Vector) -> Vector:
    return u - 0.25 * u * u


LOSSES = {
    "hinge": MarginLoss(sgd.HINGE, _hinge, np.positive, steepness=1.0),
    "squared_hinge": MarginLoss(sgd.SQUARED_HINGE, _squared_hinge, _parabola, steepness=2.0),
    "log_loss": MarginLoss(sgd.LOG, _log, _entropy, steepness=0.25),
    "modified_huber": MarginLoss(sgd.MODIFIED_HUBER, _modified_huber, _parabola, steepness=2.0),
}
"""By the names that scikit-learn's ``SGDClassifier`` gives them."""
