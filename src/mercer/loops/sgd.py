"""Steps of stochastic subgradient descent on a regularised risk, in a feature space and with kernel values.

Each step at a row with the features ``x``, for every output of its own::

    w = theta / (alpha (t + shift)),   u = -loss'(y <w, x>),   theta += price * u * y * x

The mean of ``w`` over the steps needs no sum over all of them: what is added to ``theta`` at step t is in ``w`` from
the next step on, so the sum is ``clock * theta - lagged``, where ``clock`` adds up ``1 / (alpha (t + shift))`` and
``lagged`` what was added times the clock at that time.
"""

from __future__ import annotations

from typing import NamedTuple

from mercer._types import Array, Integers, Vector
from mercer.loops._jit import jit
from mercer.loops.losses import GIVEN, slope


class Risk(NamedTuple):
    """What is minimised, with the labels of the rows."""

    codes: Integers
    """The class of each row, (n,)."""
    positive: Integers
    """For each output the class for which y = +1, (k,)."""
    price: Vector
    """(n,)"""
    loss: int
    alpha: float
    shift: float


class Descent(NamedTuple):
    """What steps change."""

    theta: Vector
    """(k, p)"""
    lagged: Vector
    """(k, p)"""
    gathered: Vector
    """The sum of u of each row, (k, n)."""


class KernelValues(NamedTuple):
    """Rows of K, and the values of the outputs."""

    rows: Array
    where: Integers
    """``rows[where[s]]`` is the row of K that belongs to the step s."""
    constant: float
    """What is added to each entry of K."""
    values: Vector
    """``theta (K + constant)``, (k, p)."""


@jit
def dense_steps(X, order, risk, descent, t, clock, slopes):
    """A step at each row of ``X`` (n, p) in ``order``, after ``t`` steps before; returns the clock.

    ``slopes`` (k,) has u if the loss is ``GIVEN``.
    """
    codes, positive, price, loss, alpha, shift = risk
    theta, lagged, gathered = descent
    for s in range(order.shape[0]):
        i = order[s]
        scale = 1.0 / (alpha * (t + s + 1.0 + shift))
        clock += scale
        for c in range(theta.shape[0]):
            value = 0.0
            for k in range(X.shape[1]):
                value += theta[c, k] * X[i, k]
            y = 1.0 if codes[i] == positive[c] else -1.0
            u = slopes[c] if loss == GIVEN else slope(loss, y * scale * value)
            if u != 0.0:
                gathered[c, i] += u
                change = price[i] * u * y
                late = change * clock
                for k in range(X.shape[1]):
                    theta[c, k] += change * X[i, k]
                    lagged[c, k] += late * X[i, k]
    return clock


@jit
def sparse_steps(rows, order, risk, descent, t, clock, slopes):
    """The same for the rows of a CSR matrix."""
    starts, indices, data = rows
    codes, positive, price, loss, alpha, shift = risk
    theta, lagged, gathered = descent
    for s in range(order.shape[0]):
        i = order[s]
        scale = 1.0 / (alpha * (t + s + 1.0 + shift))
        clock += scale
        for c in range(theta.shape[0]):
            value = 0.0
            for e in range(starts[i], starts[i + 1]):
                value += theta[c, indices[e]] * data[e]
            y = 1.0 if codes[i] == positive[c] else -1.0
            u = slopes[c] if loss == GIVEN else slope(loss, y * scale * value)
            if u != 0.0:
                gathered[c, i] += u
                change = price[i] * u * y
                late = change * clock
                for e in range(starts[i], starts[i + 1]):
                    theta[c, indices[e]] += change * data[e]
                    lagged[c, indices[e]] += late * data[e]
    return clock


@jit
def kernel_steps(kernel, order, risk, descent, t, clock, slopes):
    """The same with kernel values, where ``theta`` weighs the expansion."""
    rows, where, constant, values = kernel
    codes, positive, price, loss, alpha, shift = risk
    theta, lagged, gathered = descent
    for s in range(order.shape[0]):
        i = order[s]
        row = rows[where[s]]
        scale = 1.0 / (alpha * (t + s + 1.0 + shift))
        clock += scale
        for c in range(theta.shape[0]):
            y = 1.0 if codes[i] == positive[c] else -1.0
            u = slopes[c] if loss == GIVEN else slope(loss, y * scale * values[c, i])
            if u != 0.0:
                gathered[c, i] += u
                change = price[i] * u * y
                theta[c, i] += change
                lagged[c, i] += change * clock
                for k in range(row.shape[0]):
                    values[c, k] += change * (row[k] + constant)
    return clock
