"""Weights in a box: the slopes of ``-tube |beta|`` at each weight, and moves of weight from one row to another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Vector
from mercer.loops._jit import jit

AT_BOUND = 1e-13


class BoxWeights(NamedTuple):
    """The weights of a problem, which steps change, and what bounds them, (q,) each."""

    beta: Vector
    lower: Vector
    upper: Vector
    tube: Vector
    """The factor of ``|beta|`` in the objective, zero where there is none."""


@jit
def slope_up(beta, upper, tube):
    """What a rise of ``beta`` does to ``-tube |beta|``; minus infinity at the bound."""
    if beta >= upper:
        return -np.inf
    return -tube if beta >= 0 else tube


@jit
def slope_down(beta, lower, tube):
    """What a fall of ``beta`` does to ``-tube |beta|``; minus infinity at the bound."""
    if beta <= lower:
        return -np.inf
    return tube if beta > 0 else -tube


@jit
def set_masks(weights, rise, fall):
    """The slopes of ``-tube |beta|`` for a rise and for a fall; minus infinity where ``beta`` is at its bound."""
    beta, lower, upper, tube = weights
    for k in range(beta.shape[0]):
        rise[k] = slope_up(beta[k], upper[k], tube[k])
        fall[k] = slope_down(beta[k], lower[k], tube[k])


@jit
def shift(weights, rise, fall, i, j, step):
    """Move weight from j to i, at most ``step`` and as far as the bounds allow; return how much."""
    beta, lower, upper, tube = weights
    # With a tube a weight stops at zero, where the slope changes.
    end_i = 0.0 if tube[i] > 0 and beta[i] < 0 else upper[i]
    end_j = 0.0 if tube[j] > 0 and beta[j] > 0 else lower[j]
    room_i = end_i - beta[i]
    room_j = beta[j] - end_j
    moved = min(step, room_i, room_j)
    # A weight within rounding of its bound is at its bound: as a free one it would decide the offset. The unit is that
    # of the weights, since the box may be far wider than any of them becomes.
    rounding = AT_BOUND * max(abs(beta[i]), abs(beta[j]), moved)
    beta[i] = end_i if room_i - moved <= rounding else beta[i] + moved
    beta[j] = end_j if room_j - moved <= rounding else beta[j] - moved
    rise[i] = slope_up(beta[i], upper[i], tube[i])
    fall[i] = slope_down(beta[i], lower[i], tube[i])
    rise[j] = slope_up(beta[j], upper[j], tube[j])
    fall[j] = slope_down(beta[j], lower[j], tube[j])
    return moved
