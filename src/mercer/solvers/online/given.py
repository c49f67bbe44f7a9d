"""Steps by compiled loops, also on losses that have no compiled code."""

from __future__ import annotations

from collections.abc import Callable

from mercer._types import Vector
from mercer.engine import threads
from mercer.loops.losses import GIVEN
from mercer.loops.online import LOSS
from mercer.losses import Loss, Softmax

# Steps between two checks for an interruption.
_CHUNK = 1024


def go_through(
    loss: Loss | Softmax,
    steps: Callable[[Vector, int, int], int],
    value: Callable[[int], Vector],
    targets: Vector,
    numbers: Vector,
    start: int = 0,
) -> int:
    """Steps at all rows from ``start`` on, many in one call where the loss has compiled code; returns where they ended.

    Parameters
    ----------
    loss : Loss or Softmax
    steps : callable
        Takes targets (n, k) and makes the steps from one row to before another; returns where it ended.
    value : callable
        f at a row, (k,), as it is before the step there.
    targets : ndarray of shape (n, k)
    numbers : ndarray
        Whose entry ``LOSS`` adds up the losses.
    start : int, default=0
    """
    if loss.code != GIVEN:
        while start < len(targets):
            threads.checkpoint()
            end = min(start + _CHUNK, len(targets))
            start = int(steps(targets, start, end))
            if start < end:
                return start
        return start
    descents = targets.copy()
    for s in range(start, len(targets)):
        threads.checkpoint()
        f = value(s)
        descents[s] = -loss.gradient(targets[s], f)
        before = float(loss.value(targets[s], f).sum())
        if steps(descents, s, s + 1) == s:
            return s
        numbers[LOSS] += before
    return len(targets)
