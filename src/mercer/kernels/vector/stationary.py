"""Kernels that are functions of a distance."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import gamma, kv

from mercer._errors import ParameterError
from mercer._types import Array
from mercer.data.objects import short
from mercer.kernels.base import Definiteness
from mercer.kernels.elementary import exponential
from mercer.kernels.leaf import Exponential, Powers, StatisticKernel, Steps
from mercer.kernels.pairs import Pairs, scratch
from mercer.kernels.parameters import as_float, number, positive
from mercer.kernels.statistics import ManhattanDistance, SquaredDistance, Statistic
from mercer.kernels.vector.bessel import FAR, matern_function
from mercer.loops import steps

# From this order on a Matern kernel is a Gaussian one to all digits.
_GAUSSIAN = 1e16


@dataclass(frozen=True, repr=False)
class StationaryKernel(StatisticKernel):
    """A function of ``sum_c ((x_c - z_c) / length_scale_c)^2``."""

    length_scale: float | tuple[float, ...] = number(1.0, per_column=True)

    def _scales(self) -> tuple[float, ...]:
        return self.length_scale if isinstance(self.length_scale, tuple) else ()

    def _statistic(self) -> Statistic:
        return SquaredDistance(self._scales())

    def _constant(self) -> float:
        """``t`` is this times the squared distance in units of the length scale."""
        return 1.0

    @abc.abstractmethod
    def _finish(self, t: Array) -> None:
        """Turn ``t`` into the kernel's values in place."""

    def _multiplier(self) -> float:
        one = self.length_scale
        return self._constant() if isinstance(one, tuple) else self._constant() / (one * one)

    def _multiplier_powers(self) -> Powers:
        return {} if isinstance(self.length_scale, tuple) else {"length_scale": -2}


@dataclass(frozen=True, repr=False)
class RBF(Exponential, StationaryKernel):
    """``k(x, z) = exp(-|x - z|^2 / (2 length_scale^2))``: the Gaussian, smooth functions.

    Parameters
    ----------
    length_scale : float or sequence of float, default 1.0
        In the units of the columns, above 0; one number, or one a column (automatic relevance determination).
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If a length scale is not a finite number above 0.

    Examples
    --------
    >>> RBF(2.0)([[0.0]], [[2.0]]).round(6).tolist()
    [[0.606531]]
    >>> RBF.from_gamma(0.125) == RBF(2.0)
    True

    References
    ----------
    Rasmussen & Williams (2006), *Gaussian Processes for Machine Learning*, equation 4.9.
    """

    @classmethod
    def from_gamma(cls, gamma: Any) -> Self:
        """``exp(-gamma |x - z|^2)``, so ``length_scale = 1 / sqrt(2 gamma)``.

        Parameters
        ----------
        gamma : float or list of float
            Above 0; a list is one a column: ``exp(-sum_c gamma_c (x_c - z_c)^2)``.

        Returns
        -------
        RBF

        Examples
        --------
        >>> RBF.from_gamma([0.5, 2.0])
        RBF([1.0, 0.5])
        """
        return cls(_converted("gamma", gamma, lambda value: math.sqrt(0.5 / value)))

    @classmethod
    def from_variance(cls, variance: Any) -> Self:
        """``exp(-|x - z|^2 / (2 variance))``, so ``length_scale = sqrt(variance)``.

        Parameters
        ----------
        variance : float or list of float
            Above 0; a list is one a column.

        Returns
        -------
        RBF

        Examples
        --------
        >>> RBF.from_variance(4.0)
        RBF(2.0)
        """
        return cls(_converted("variance", variance, math.sqrt))

    @classmethod
    def from_width(cls, width: Any) -> Self:
        """``exp(-|x - z|^2 / width^2)``, so ``length_scale = width / sqrt(2)``.

        Parameters
        ----------
        width : float or list of float
            Above 0; a list is one a column.

        Returns
        -------
        RBF

        Examples
        --------
        >>> RBF.from_width(2.0)([[0.0]], [[2.0]]).round(6).tolist()
        [[0.367879]]
        """
        return cls(_converted("width", width, lambda value: value / math.sqrt(2.0)))

    def _constant(self) -> float:
        return -0.5


def _converted(name: str, value: Any, convert: Callable[[float], float]) -> float | tuple[float, ...]:
    """A parameter in another form, for one number or for one a column."""
    several = isinstance(value, (list, tuple)) or np.ndim(value) > 0
    entries = list(value) if several else [value]
    for entry in entries:
        real = isinstance(entry, Real) and not isinstance(entry, (bool, np.bool_))
        if not real or not 0 < as_float(entry) < math.inf:
            requirement = "finite numbers above 0, one per column" if several else "a finite number above 0"
            raise ParameterError(f"{name} must be {requirement}, but is {short(value)}.")
    converted = tuple(convert(float(entry)) for entry in entries)
    return converted if several else converted[0]


@dataclass(frozen=True, repr=False)
class Matern(StationaryKernel):
    """The Matern kernel: functions that are ``ceil(nu) - 1`` times differentiable.

    ``k = 2^(1-nu) / Gamma(nu) u^nu K_nu(u)`` with ``u = sqrt(2 nu) |x - z| / length_scale``. For nu = 1/2, 3/2, 5/2:
    ``exp(-u)``, ``(1 + u) exp(-u)``, ``(1 + u + u^2/3) exp(-u)``; nu = inf is the RBF.

    Parameters
    ----------
    length_scale : float or sequence of float, default 1.0
        One number, or one a column; above 0.
    nu : float, default 1.5
        Above 0; not tuned by gradient.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Matern(1.0, nu=0.5)([[0.0]], [[1.0]]).round(6).tolist()
    [[0.367879]]

    References
    ----------
    Rasmussen & Williams (2006), *Gaussian Processes for Machine Learning*, equations 4.14 to 4.17.
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", positive("Matern", "nu", self.nu, "a number above 0 (inf is allowed)"))

    def _constant(self) -> float:
        return 0.5 if self.nu >= _GAUSSIAN else 2 * self.nu

    def _root(self, t: Array, out: Array) -> Array:
        """``u``, at most one at which the kernel is 0: infinity times 0 would be NaN."""
        return np.minimum(np.sqrt(t, out=out), FAR * max(1.0, self.nu), out=out)

    def squared_distance(self) -> Callable[[Array], Array] | None:
        if self.nu == math.inf:
            return lambda t: -2 * np.expm1(-t)
        return (lambda t: -2 * np.expm1(-np.sqrt(t))) if self.nu == 0.5 else None

    def _finish(self, t: Array) -> None:
        if self.nu >= _GAUSSIAN:
            exponential(np.negative(t, out=t))
            return
        u = self._root(t, t)
        if self.nu == 0.5:
            exponential(np.negative(u, out=u))
        elif self.nu in (1.5, 2.5):
            with scratch(u) as decay:
                exponential(np.negative(u, out=decay))
                self._times_polynomial(u, decay)
        else:
            t[...] = matern_function(u, self.nu)

    def _steps(self) -> Steps | None:
        if self.nu >= _GAUSSIAN:
            return [(steps.scale, -1.0), (steps.exponential,)]
        polynomial = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}.get(self.nu)
        return None if polynomial is None else [(steps.decay, FAR * max(1.0, self.nu), *polynomial)]

    def _times_polynomial(self, u: Array, decay: Array) -> None:
        """``u`` becomes ``(1 + u) decay``, or ``(1 + u + u^2 / 3) decay``."""
        if self.nu == 2.5:
            with scratch(u) as square:
                np.multiply(u, u, out=square)
                square *= u.dtype.type(1 / 3)
                u += square
        u += u.dtype.type(1)
        u *= decay

    def _pull_sum(self, pairs: Pairs, weights: Array, slopes: Array) -> float:
        if self.nu not in (1.5, 2.5):
            return super()._pull_sum(pairs, weights, slopes)
        # The value and the slope are two polynomials in u times the same decay.
        values = pairs.values(self._statistic())
        with scratch(weights) as u, scratch(weights) as decay, scratch(weights) as first:
            self._root(np.multiply(values, self._multiplier(), out=u), u)
            exponential(np.negative(u, out=decay))
            decay *= weights
            np.multiply(decay, u, out=first)
            total = float(decay.sum() + first.sum())
            if self.nu == 1.5:
                inner = np.multiply(decay, -0.5, out=decay)
            else:
                total += float(np.vdot(first, u)) / 3
                first += decay
                inner = np.multiply(first, -1 / 6, out=first)
            self._add_slopes(pairs, inner, values, {}, slopes)
        return total

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        """``dk/dt = (dk/du) / (2u)``; at distance 0, where nu = 1/2 has a kink, it is set to 0."""
        if self.nu >= _GAUSSIAN:
            return np.negative(exponential(-t)), {}
        u = self._root(t, t)
        if self.nu == 1.5:
            exponential(np.negative(u, out=u))
            u *= -0.5
            return u, {}
        if self.nu == 2.5:
            with scratch(u) as decay:
                exponential(np.negative(u, out=decay))
                u += 1.0
                u *= decay
            u *= -1 / 6
            return u, {}
        # d/du [u^nu K_nu(u)] = -u^nu K_(nu-1)(u)
        if self.nu > 1:
            return -matern_function(u, self.nu - 1) / (4 * (self.nu - 1)), {}
        at_zero = u == 0
        u[at_zero] = 1
        if self.nu == 0.5:
            slope = -exponential(-u) / (2 * u)
        else:
            slope = -(2 ** (-self.nu)) / gamma(self.nu) * u ** (self.nu - 1) * kv(1 - self.nu, np.minimum(u, FAR))
        slope[at_zero] = 0
        return slope, {}


@dataclass(frozen=True, repr=False)
class RationalQuadratic(StationaryKernel):
    """``k(x, z) = (1 + |x - z|^2 / (2 alpha length_scale^2))^(-alpha)``: RBFs of many length scales at once.

    Parameters
    ----------
    length_scale : float or sequence of float, default 1.0
        One number, or one a column; above 0.
    alpha : float, default 1.0
        How narrow the mixture is, above 0; the RBF is its limit.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> RationalQuadratic(1.0, alpha=1.0)([[0.0]], [[1.0]]).round(6).tolist()
    [[0.666667]]

    References
    ----------
    Rasmussen & Williams (2006), *Gaussian Processes for Machine Learning*, equation 4.19.
    """

    alpha: float = number(1.0)

    def _constant(self) -> float:
        return 0.5 / self.alpha

    def _multiplier_powers(self) -> Powers:
        return {"alpha": -1} | super()._multiplier_powers()

    def squared_distance(self) -> Callable[[Array], Array]:
        alpha = float(self.alpha)
        return lambda t: -2 * np.expm1(-alpha * np.log1p(t))

    def _finish(self, t: Array) -> None:
        # (1 + t)^(-alpha) by exp and log1p, which NumPy vectorises and pow is not.
        np.log1p(t, out=t)
        t *= t.dtype.type(-self.alpha)
        exponential(t)

    def _steps(self) -> Steps | None:
        return [(steps.log1p,), (steps.scale, -self.alpha), (steps.exponential,)]

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        log = np.log1p(np.minimum(t, np.finfo(t.dtype).max, out=t))
        value = exponential(-self.alpha * log)
        return -self.alpha * value / (1 + t), {"alpha": -log * value}


@dataclass(frozen=True, repr=False)
class Laplacian(Exponential, StationaryKernel):
    """``k(x, z) = exp(-sum_c |x_c - z_c| / length_scale_c)``: rough functions, robust to outlying columns.

    Parameters
    ----------
    length_scale : float or sequence of float, default 1.0
        One number (``1 / gamma`` in scikit-learn's ``laplacian_kernel``), or one a column; above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Laplacian(2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(6).tolist()
    [[0.367879]]
    """

    def _statistic(self) -> Statistic:
        return ManhattanDistance(self._scales())

    def _multiplier(self) -> float:
        return -1.0 if isinstance(self.length_scale, tuple) else -1.0 / self.length_scale

    def _multiplier_powers(self) -> Powers:
        return {} if isinstance(self.length_scale, tuple) else {"length_scale": -1}


@dataclass(frozen=True, repr=False)
class NegativeDistance(StatisticKernel):
    """``k(x, z) = -|x - z|^exponent``: conditionally positive; scale-free, for learners with an intercept.

    Parameters
    ----------
    exponent : float, default 1.0
        Above 0 and at most 2.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> NegativeDistance().definiteness
    'conditional'

    References
    ----------
    Schoelkopf (2001), *The kernel trick for distances*, proposition 2 and section 3.
    """

    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        exponent = positive("NegativeDistance", "exponent", self.exponent, "above 0 and at most 2", high=2)
        object.__setattr__(self, "exponent", exponent)

    def _statistic(self) -> Statistic:
        return SquaredDistance()

    def squared_distance(self) -> Callable[[Array], Array]:
        half = self.exponent / 2
        return lambda t: 2 * np.power(t, half)

    def _finish(self, t: Array) -> None:
        np.power(t, self.exponent / 2, out=t)
        np.negative(t, out=t)

    def _steps(self) -> Steps | None:
        root = (steps.root,) if self.exponent == 1 else (steps.real_power, self.exponent / 2)
        return [(steps.scale, -1.0)] if self.exponent == 2 else [root, (steps.scale, -1.0)]

    @property
    def definiteness(self) -> Definiteness:
        return "conditional"
