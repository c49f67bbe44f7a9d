"""Prior densities of hyper-parameters, for learners that choose them by the evidence.

A prior is a density of the value of the parameter, in its own units. Its logarithm is added to the objective unchanged:
the search then ends at the posterior mode of the values, whichever scale it works on.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.kernels.parameters import Parameter, whole_vector

__all__ = ["Gamma", "HalfNormal", "InverseGamma", "LogNormal", "Normal", "Prior"]


_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Prior(abc.ABC):
    """A density of one number. To define a new one, write a class with :meth:`log_density` and :meth:`slope`."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not real or not math.isfinite(value):
                raise ParameterError(f"{type(self).__name__}: {field.name} must be a finite number, but is {value!r}.")
            object.__setattr__(self, field.name, float(value))
            if field.name != "mean" and field.name != "log_mean" and value <= 0:
                raise ParameterError(f"{type(self).__name__}: {field.name} must be above 0, but is {value!r}.")

    @abc.abstractmethod
    def log_density(self, value: float) -> float:
        """Return the logarithm of the density.

        Parameters
        ----------
        value : float
            The value of the parameter.

        Returns
        -------
        float
            ``-inf`` where the density is 0.
        """

    @abc.abstractmethod
    def slope(self, value: float) -> float:
        """Return the derivative of :meth:`log_density` with respect to the value.

        Parameters
        ----------
        value : float
            The value of the parameter.

        Returns
        -------
        float
        """


@dataclass(frozen=True)
class Normal(Prior):
    """The normal density, for numbers of either sign.

    Parameters
    ----------
    mean : float, default=0.0
    deviation : float, default=1.0
        The standard deviation, above 0.

    Raises
    ------
    ParameterError
        If a parameter is not finite or out of its range; the same holds for the other priors.

    Examples
    --------
    >>> Normal(1.0, 2.0).slope(3.0)
    -0.5
    """

    mean: float = 0.0
    deviation: float = 1.0

    def log_density(self, value: float) -> float:
        return -0.5 * ((value - self.mean) / self.deviation) ** 2 - math.log(self.deviation) - _LOG_ROOT_TWO_PI

    def slope(self, value: float) -> float:
        return (self.mean - value) / self.deviation**2


@dataclass(frozen=True)
class LogNormal(Prior):
    """The density of a number above 0 whose logarithm is normal: for length scales, periods and variances.

    Parameters
    ----------
    log_mean : float, default=0.0
        The mean of the logarithm, so that ``exp(log_mean)`` is the median.
    log_deviation : float, default=1.0
        The standard deviation of the logarithm, above 0.

    Examples
    --------
    >>> round(LogNormal(0.0, 1.0).log_density(1.0), 6)
    -0.918939
    """

    log_mean: float = 0.0
    log_deviation: float = 1.0

    def log_density(self, value: float) -> float:
        if value <= 0:
            return -math.inf
        distance = (math.log(value) - self.log_mean) / self.log_deviation
        return -0.5 * distance**2 - math.log(value * self.log_deviation) - _LOG_ROOT_TWO_PI

    def slope(self, value: float) -> float:
        return -(1.0 + (math.log(value) - self.log_mean) / self.log_deviation**2) / value


@dataclass(frozen=True)
class Gamma(Prior):
    """The gamma density of a number above 0, proportional to ``value^(shape - 1) exp(-rate value)``.

    Parameters
    ----------
    shape : float, default=2.0
        Above 0; above 1 it keeps the number away from 0.
    rate : float, default=1.0
        Above 0; the mean is ``shape / rate``.

    Examples
    --------
    >>> Gamma(3.0, 2.0).slope(1.0)
    0.0
    """

    shape: float = 2.0
    rate: float = 1.0

    def log_density(self, value: float) -> float:
        if value <= 0:
            return -math.inf
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1.0) * math.log(value) - self.rate * value

    def slope(self, value: float) -> float:
        return (self.shape - 1.0) / value - self.rate


@dataclass(frozen=True)
class InverseGamma(Prior):
    """The density of a number above 0 whose inverse is gamma: keeps length scales away from 0, with a heavy tail.

    Parameters
    ----------
    shape : float, default=2.0
        Above 0.
    scale : float, default=1.0
        Above 0; the mode is ``scale / (shape + 1)``.

    Examples
    --------
    >>> InverseGamma(3.0, 2.0).slope(0.5)
    0.0
    """

    shape: float = 2.0
    scale: float = 1.0

    def log_density(self, value: float) -> float:
        if value <= 0:
            return -math.inf
        constant = self.shape * math.log(self.scale) - math.lgamma(self.shape)
        return constant - (self.shape + 1.0) * math.log(value) - self.scale / value

    def slope(self, value: float) -> float:
        return (self.scale / value - self.shape - 1.0) / value


@dataclass(frozen=True)
class HalfNormal(Prior):
    """The density of the absolute value of a normal variable, for deviations that are small unless the data disagree.

    Parameters
    ----------
    deviation : float, default=1.0
        Above 0.

    Examples
    --------
    >>> HalfNormal(2.0).slope(2.0)
    -0.5
    """

    deviation: float = 1.0

    def log_density(self, value: float) -> float:
        if value < 0:
            return -math.inf
        return math.log(2.0) - 0.5 * (value / self.deviation) ** 2 - math.log(self.deviation) - _LOG_ROOT_TWO_PI

    def slope(self, value: float) -> float:
        return -value / self.deviation**2


@dataclass(frozen=True)
class LogPrior:
    """The sum of the log densities of some of the free parameters, as a function of ``theta``.

    Parameters
    ----------
    parameters : tuple of Parameter
        The free parameters, in the order of ``theta``.
    priors : tuple of Prior or None
        One for each of them.
    """

    parameters: tuple[Parameter, ...]
    priors: tuple[Prior | None, ...]

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        """The sum, and its gradient by ``theta``."""
        total, gradient = 0.0, np.zeros(len(self.parameters))
        for i, (parameter, prior) in enumerate(zip(self.parameters, self.priors, strict=True)):
            if prior is None:
                continue
            point = parameter.at(theta[i])
            total += prior.log_density(point.value)
            gradient[i] = point.chain(prior.slope(point.value))
        return total, gradient


def bind_priors(priors: Mapping[str, Prior] | None, parameters: Sequence[Parameter]) -> LogPrior | None:
    """Combine priors, given by the names of parameters, into one function of ``theta``; None if there are none.

    Parameters
    ----------
    priors : dict of str to Prior, optional
        A name is the path of a parameter, such as ``"left.length_scale"``; the name of a vector stands for all its
        entries.
    parameters : sequence of Parameter
        All parameters; those that are free make up ``theta``, in their order.

    Raises
    ------
    ParameterError
        If a name is not that of a free parameter, or its value is not a prior.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> prior = bind_priors({"length_scale": LogNormal()}, RBF(1.0).parameters)
    >>> value, gradient = prior(RBF(1.0).theta)
    >>> round(value, 4), gradient.tolist()
    (-0.9189, [-1.0])
    """
    if not priors:
        return None
    if not isinstance(priors, Mapping):
        raise ParameterError(f"priors must be a dict from names of parameters to priors, but is {priors!r}.")
    free = tuple(p for p in parameters if p.free)
    valid_names = {name for p in free for name in (p.name, whole_vector(p.name))}
    for name, prior in priors.items():
        if name not in valid_names:
            names = ", ".join(p.name for p in free) or "none"
            raise ParameterError(
                f"priors name {name!r}, which is not a free parameter; the free parameters are {names}."
            )
        check_prior(name, prior)
    matches = tuple(priors.get(p.name, priors.get(whole_vector(p.name))) for p in free)
    return LogPrior(free, matches)


def check_prior(name: str, prior: Any) -> None:
    """Raise an error unless ``prior`` is a prior."""
    if not isinstance(prior, Prior):
        raise ParameterError(
            f"the prior of {name} must be one of mercer.priors, such as LogNormal(0.0, 1.0), but is {prior!r}."
        )
