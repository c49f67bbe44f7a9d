"""Every loss and penalty, found by discovery, with examples; one without an example fails the tests."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.losses import (
    Ball,
    EpsilonInsensitive,
    HalfSquare,
    Hinge,
    Huber,
    Logistic,
    Loss,
    ModifiedHuber,
    Norm,
    NormPower,
    OwnLoss,
    OwnPenalty,
    Penalty,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)


class _Named:
    """Prints as its name alone: names of tests must be the same in every process."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LogCosh(_Named):
    """Smooth and convex; tells its curvature."""

    def value(self, y, f):
        r = np.abs(f - y)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def gradient(self, y, f):
        return np.tanh(f - y)

    def curvature(self, y, f):
        return 1.0 - np.tanh(f - y) ** 2


class Absolute(_Named):
    """With a kink; tells its gradient only."""

    def value(self, y, f):
        return np.abs(y - f)

    def gradient(self, y, f):
        return np.sign(f - y)


class Asymmetric(_Named):
    """Smooth in parts, with a kink at the target; tells its gradient only."""

    def value(self, y, f):
        return np.where(f > y, 2.0 * (f - y) + (f - y) ** 2, 0.5 * (y - f))

    def gradient(self, y, f):
        return np.where(f > y, 2.0 + 2.0 * (f - y), -0.5)


class BeyondOne(_Named):
    """A penalty of norms above 1 alone, with a kink there."""

    def __call__(self, norm):
        return 5.0 * max(0.0, norm - 1.0)


EXAMPLES: dict[type[Loss], list[Loss]] = {
    Squared: [Squared()],
    Hinge: [Hinge()],
    SquaredHinge: [SquaredHinge()],
    ModifiedHuber: [ModifiedHuber()],
    Logistic: [Logistic()],
    EpsilonInsensitive: [EpsilonInsensitive(), EpsilonInsensitive(0.0), EpsilonInsensitive(1.5)],
    Huber: [Huber(), Huber(0.2)],
    Quantile: [Quantile(), Quantile(0.9)],
    Poisson: [Poisson()],
    OwnLoss: [OwnLoss(LogCosh()), OwnLoss(Absolute()), OwnLoss(Asymmetric())],
}
PENALTIES: dict[type[Penalty], list[Penalty]] = {
    HalfSquare: [HalfSquare()],
    Norm: [Norm()],
    NormPower: [NormPower(), NormPower(1.5), NormPower(6.0)],
    Ball: [Ball(2.0)],
    OwnPenalty: [OwnPenalty(np.cosh), OwnPenalty(BeyondOne())],
}


def concrete(base: type) -> set[type]:
    """Every class of Mercer's below ``base`` that can be made into an object."""

    def below(cls: type) -> Iterator[type]:
        for derived in cls.__subclasses__():
            if derived.__module__.startswith("mercer.") and not inspect.isabstract(derived):
                yield derived
            yield from below(derived)

    return set(below(base))


def cases(examples: dict[Any, list[Any]]) -> list[Any]:
    return [example for several in examples.values() for example in several]


def targets(loss: Loss, n: int, seed: int = 0) -> np.ndarray:
    """Random targets of the kind that a loss takes."""
    rng = np.random.default_rng(seed)
    by_kind = {"signs": rng.choice([-1.0, 1.0], n), "counts": rng.poisson(3.0, n), "numbers": 2.0 * rng.normal(size=n)}
    return by_kind[loss.targets].astype(np.float64)
