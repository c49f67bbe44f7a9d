"""Kernels that are a function of one statistic of the two rows."""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mercer._types import Array
from mercer.kernels.base import Definiteness, is_overridden
from mercer.kernels.elementary import exponential
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.pairs import Pairs, scratch
from mercer.kernels.statistics import Dot, SquaredDistance, Statistic
from mercer.loops import steps

if TYPE_CHECKING:
    from mercer.kernels.program import Lowering

Powers = dict[str, int]
# Codes with their factors.
Steps = list[tuple[Any, ...]]
# With fewer columns, an exponential in float32 takes less time than a copy of it in memory.
_FEW_COLUMNS = 32


@dataclass(frozen=True, repr=False)
class StatisticKernel(Kernel):
    """``k(x, z) = f(t)`` with ``t = multiplier * statistic(x, z)``.

    A leaf gives the statistic, the multiplier and the powers of the parameters in it, ``f`` in place, and ``f``'s
    derivatives. The multiplier is apart because the engine can apply it at no cost while it computes the statistic,
    and kernels that differ in it alone share the statistic.
    """

    # Numbers that the statistic itself depends on, beside vectors of scales, which it always does.
    _in_statistic: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def _statistic(self) -> Statistic:
        """What the kernel is a function of."""

    def _multiplier(self) -> float:
        return 1.0

    def _multiplier_powers(self) -> Powers:
        """The powers of the kernel's numbers that the multiplier is proportional to."""
        return {}

    def _finish(self, t: Array) -> None:
        """Turn ``t`` into ``f(t)`` in place."""

    def _steps(self) -> Steps | None:
        """``f`` as steps of a program (``mercer.loops.programs``); None if it is not made of these."""
        return None

    def _lower(self, program: Lowering) -> bool:
        steps = self._steps() if not is_overridden(self, "_finish", "_steps") else None
        if steps is None or not program.statistic(self._statistic(), self._multiplier()):
            return False
        return all(program.step(*step) for step in steps)

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        """``f'(t)``, and the derivative of ``f`` by each of the kernel's numbers that it depends on otherwise.

        ``t`` may be overwritten, and may be the first of the two.
        """
        return np.ones_like(t), {}

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        statistic, multiplier = self._statistic(), self._multiplier()
        if not pairs.by_table(statistic, multiplier, self._finish, out):
            pairs.statistic(statistic, multiplier, out)
            self._finish(out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if not slopes.size:
            return
        multiplier = self._multiplier()
        values = pairs.values(self._statistic())
        with scratch(weights) as t:
            np.multiply(values, multiplier, out=t)
            outer, others = self._slopes(t)
            by_itself = {name: float(np.vdot(weights, slope)) for name, slope in others.items()}
            inner = np.multiply(weights, outer, out=t)
            self._add_slopes(pairs, inner, values, by_itself, slopes)

    def _add_slopes(
        self, pairs: Pairs, inner: Array, values: Array | None, by_itself: dict[str, float], slopes: Array
    ) -> None:
        """Slopes by each number from the weights ``inner`` of ``t``; ``values`` are those of the statistic."""
        statistic, multiplier, powers = self._statistic(), self._multiplier(), self._multiplier_powers()
        through_multiplier = 0.0 if values is None or not powers else float(np.vdot(inner, values))
        position = 0
        for name, _ in self._numbers():
            number = getattr(self, name)
            if isinstance(number, tuple) or name in self._in_statistic:
                count = len(number) if isinstance(number, tuple) else 1
                slopes[position : position + count] += multiplier * pairs.pull(statistic, inner)
                position += count
                continue
            slopes[position] += by_itself.get(name, 0.0)
            if name in powers:
                # Of c number^p it is p / number; a number of 0 is a factor itself. In this order nothing overflows.
                slopes[position] += (
                    through_multiplier * multiplier * powers[name] / number if number else through_multiplier
                )
            position += 1

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, self._statistic()

    def _is_cheap(self, rows: Rows) -> bool:
        # Values for counts of bits are in a table.
        return isinstance(self._statistic(), (Dot, SquaredDistance)) and rows.width < _FEW_COLUMNS and rows.is_binary


@dataclass(frozen=True, repr=False)
class Exponential(StatisticKernel):
    """``exp(t)``, which is its own derivative."""

    def _finish(self, t: Array) -> None:
        exponential(t)

    def _steps(self) -> Steps | None:
        return [(steps.exponential,)]

    def _is_cheap(self, rows: Rows) -> bool:
        return isinstance(self._statistic(), (Dot, SquaredDistance)) and rows.width < _FEW_COLUMNS

    def squared_distance(self) -> Callable[[Array], Array] | None:
        return (lambda t: -2 * np.expm1(-t)) if self._statistic().is_distance else None

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        self._finish(t)
        return t, {}

    def _pull_sum(self, pairs: Pairs, weights: Array, slopes: Array) -> float:
        with scratch(weights) as t:
            values = pairs.values(self._statistic()) if self._multiplier_powers() else None
            if values is None:
                pairs.statistic(self._statistic(), self._multiplier(), t)
            else:
                np.multiply(values, self._multiplier(), out=t)
            self._finish(t)
            t *= weights
            self._add_slopes(pairs, t, values, {}, slopes)
            return float(t.sum())

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if slopes.size:
            self._pull_sum(pairs, weights, slopes)
