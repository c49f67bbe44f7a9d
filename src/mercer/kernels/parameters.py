"""Parameters of kernels: name, value, bounds, transform, fixed or free."""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mercer._errors import ParameterError
from mercer.data.objects import short

Transform = Literal["log", "identity"]
Bounds = tuple[float, float]

_SMALLEST = 1e-150


@dataclass(frozen=True)
class Parameter:
    """One number of a kernel.

    Parameters
    ----------
    name : str
        Its path in the kernel, such as ``"left.length_scale[1]"``.
    value : float
    bounds : (float, float)
        The range of an optimiser, in the units of ``value``.
    transform : {"log", "identity"}
        The scale on which an optimiser works.
    free : bool
        Whether it is part of ``kernel.theta``.
    """

    name: str
    value: float
    bounds: Bounds
    transform: Transform
    free: bool

    @property
    def theta(self) -> float:
        """The value on the scale of an optimiser."""
        return math.log(self.value) if self.transform == "log" else self.value

    def at(self, theta: float) -> Parameter:
        """The same parameter with another value, given on the scale of an optimiser."""
        return dataclasses.replace(self, value=math.exp(theta) if self.transform == "log" else float(theta))

    def chain(self, slope: float) -> float:
        """A derivative by ``value`` turned into one by ``theta``."""
        return slope * self.value if self.transform == "log" else slope


def whole_vector(name: str) -> str:
    """``"left.length_scale"`` for ``"left.length_scale[1]"``; any other name unchanged."""
    return re.sub(r"\[\d+\]$", "", name)


def number(
    default: Any = dataclasses.MISSING,
    *,
    bounds: Bounds = (1e-5, 1e5),
    transform: Transform = "log",
    low: float = 0.0,
    closed: bool = False,
    per_column: bool = False,
    rules: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that is a tunable number of a kernel.

    Parameters
    ----------
    default : float, list of float or str, optional
        If it is an empty list, so may the number be.
    bounds : (float, float), default=(1e-5, 1e5)
        The range of an optimiser.
    transform : {"log", "identity"}, default="log"
        The scale on which an optimiser works.
    low : float, default=0.0
        The number must be above it.
    closed : bool, default=False
        Whether it may be equal to ``low``.
    per_column : bool, default=False
        Whether it may be a list of numbers.
    rules : tuple of str, default=()
        Names of rules that are also accepted, by which ``kernel.with_data(X)`` computes the number from the rows.

    Returns
    -------
    dataclasses.Field
    """
    info = {
        "bounds": bounds,
        "transform": transform,
        "low": low,
        "closed": closed,
        "per_column": per_column,
        "optional": default == (),
        "rules": rules,
    }
    return dataclasses.field(default=default, metadata={"parameter": info})


def check_number(kernel: str, name: str, value: Any, info: Mapping[str, Any]) -> float | tuple[float, ...] | str:
    """``value`` as a float, as a tuple of floats for one number a column, or as the name of a rule."""
    if isinstance(value, str) and value in info["rules"]:
        return value
    if info["optional"] and isinstance(value, (list, tuple)) and not value:
        return ()
    if info["per_column"] and (isinstance(value, (list, tuple)) or np.ndim(value) > 0):
        values = _real_numbers(value)
        if values is None:
            raise ParameterError(
                f"{kernel}: {name} must be a number or a list with one number a column, but is {short(value)}."
            )
        if type(value) is tuple and all(type(v) is float for v in value):
            # The very tuple comes back, so that scikit-learn's clone finds what it passed in.
            checked = value
        else:
            checked = tuple(values.astype(float).tolist())
        for v in checked:
            _check_range(kernel, name, v, info)
        return checked
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        requirement = " or ".join(["a number", *map(repr, info["rules"])])
        raise ParameterError(f"{kernel}: {name} must be {requirement}, but is {short(value)}.")
    value = as_float(value)
    _check_range(kernel, name, value, info)
    return value


def _real_numbers(value: Any) -> np.ndarray | None:
    """A sequence of numbers as an array; None for anything else."""
    try:
        values = np.asarray(value)
    except ValueError:
        # A ragged list.
        return None
    return values if values.ndim == 1 and values.size > 0 and values.dtype.kind in "fiu" else None


def whole(kernel: str, name: str, value: Any, allowed: str, low: int = 1, high: int = 2**53) -> int:
    """``value`` as an int of at least ``low``; ``allowed`` describes the allowed values.

    >>> whole("Spectrum", "length", 1e300, "a whole number above 0")
    Traceback (most recent call last):
        ...
    mercer._errors.ParameterError: Spectrum: length must be at most 9007199254740992, but is 1e+300.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    # Whole numbers may be beyond all floats.
    if not real or not (isinstance(value, numbers.Integral) or as_float(value).is_integer()) or value < low:
        raise ParameterError(f"{kernel}: {name} must be {allowed}, but is {short(value)}.")
    if value > high:
        raise ParameterError(f"{kernel}: {name} must be at most {high}, but is {short(value)}.")
    return int(value)


def as_float(value: Any) -> float:
    """A real number as a float, infinite where it is beyond all floats.

    >>> as_float(3), as_float(-(10**400))
    (3.0, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def one_of(kernel: str, name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """``value`` as one of some words."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{kernel}: {name} must be one of {', '.join(allowed)}, but is {short(value)}.")
    return str(value)


def flag(kernel: str, name: str, value: Any) -> bool:
    """``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{kernel}: {name} must be True or False, but is {short(value)}.")
    return bool(value)


def positive(kernel: str, name: str, value: Any, allowed: str, high: float = math.inf) -> float:
    """``value`` as a float above 0 and at most ``high``; ``allowed`` describes the allowed values."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < as_float(value) <= high:
        raise ParameterError(f"{kernel}: {name} must be {allowed}, but is {short(value)}.")
    return as_float(value)


def check_function(method: str, function: Any) -> None:
    """Raise unless ``function`` can be part of a kernel, which is a value: callable and hashable."""
    if not callable(function):
        raise ParameterError(f"{method}() takes a function, but got {function!r}.")
    if not isinstance(function, Hashable):
        raise ParameterError(
            f"{method}() takes a function that can be hashed, since a kernel is a value, but {type(function).__name__} "
            "cannot; wrap it in a function."
        )


def _check_range(kernel: str, name: str, value: float, info: Mapping[str, Any]) -> None:
    low, closed = info["low"], info["closed"]
    if not math.isfinite(value) or value < low or (value == low and not closed):
        requirement = "finite" if low == -math.inf else f"finite and {'at least' if closed else 'above'} {low:g}"
        raise ParameterError(f"{kernel}: {name} must be {requirement}, but is {short(value)}.")
    if value and info["transform"] == "log" and not _SMALLEST < value < 1 / _SMALLEST:
        raise ParameterError(
            f"{kernel}: {name} must lie between {_SMALLEST:g} and {1 / _SMALLEST:g}, so that its square does not "
            f"overflow, but is {short(value)}."
        )


def check_bounds(name: str, bounds: Any) -> Bounds:
    """``bounds`` as a pair of finite floats in order."""
    try:
        low, high = (as_float(b) for b in bounds)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"bounds of {name} must be a pair (low, high), but are {short(bounds)}.") from error
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"bounds of {name} must be finite with low < high, but are {short(bounds)}.")
    return low, high
