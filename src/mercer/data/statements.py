"""A vocabulary for what an attribute of a fitted object must be: its type, shape, range, and sizes that agree.

Sizes have names, such as ``n``. The first attribute with a name sets the size, and all others must agree. ``?`` allows
any size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn, Protocol

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects, short

Shape = str | Callable[..., tuple[int, ...]]


@dataclass
class Context:
    """The object that is checked, and the sizes known so far."""

    model: Any
    sizes: dict[str, int]
    derived: dict[str, Callable[..., int]]

    def size(self, name: str) -> int | None:
        """The size of that name; None if it is not known yet."""
        if name not in self.sizes and name in self.derived:
            self.sizes[name] = self.call(self.derived[name])
        return self.sizes.get(name)

    def call(self, function: Callable[..., Any]) -> Any:
        """``function`` of the sizes that its parameters name."""
        return function(*(self.size(name) for name in inspect.signature(function).parameters))

    def agree(self, what: str, size: str, length: int) -> None:
        """Raise unless the size equals ``length``; an unknown size becomes ``length``, and ``?`` is any."""
        if size == "?":
            return
        expected = int(size) if size.isdigit() else self.size(size)
        if expected is None:
            self.sizes[size] = length
        elif expected != length:
            raise DataError(f"{what} has {length} where {expected} are expected")

    def shape(self, what: str, stated: Shape, shape: tuple[int, ...]) -> None:
        """Raise unless ``shape`` is as stated."""
        if callable(stated):
            expected = self.call(stated)
            if shape != expected:
                raise DataError(f"{what} has the shape {shape} where {expected} is expected")
            return
        names = [name.strip() for name in stated.split(",") if name.strip()]
        if len(names) != len(shape):
            raise DataError(f"{what} has {len(shape)} axes where {len(names)} are expected")
        for name, length in zip(names, shape):
            self.agree(what, name, length)


class Statement(Protocol):
    """What a value must be."""

    def check(self, value: Any, what: str, context: Context) -> None:
        """Raise DataError unless the value is as stated; ``what`` names it in the message."""


def _wrong(what: str, value: Any, requirement: str) -> NoReturn:
    description = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else short(value)
    raise DataError(f"{what} must be {requirement}, but is {description}")


def _in_range(what: str, least: Any, largest: Any, low: float | None, high: float | None) -> None:
    # Written with "not", so that NaN raises too.
    if low is not None and not least >= low:
        raise DataError(f"{what} must be at least {low:g}, but is {least}")
    if high is not None and not largest <= high:
        raise DataError(f"{what} must be at most {high:g}, but is {largest}")


# ---- arrays


@dataclass(frozen=True)
class Floats:
    """An array of floats; finite by default."""

    shape: Shape
    least: float | None = None
    most: float | None = None
    finite: bool = True
    nan: bool = False
    types: tuple[str, ...] = ("f8",)

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind + str(value.dtype.itemsize) not in self.types:
            _wrong(what, value, f"an array of {' or '.join(self.types)}")
        context.shape(what, self.shape, value.shape)
        if not value.size:
            return
        with np.errstate(invalid="ignore"):
            low, high = (
                (np.fmin.reduce(value, None), np.fmax.reduce(value, None)) if self.nan else (value.min(), value.max())
            )
        if self.nan and np.isnan(low):
            return
        if self.finite and not (np.isfinite(low) and np.isfinite(high)):
            raise DataError(f"{what} must be finite, but reaches from {low} to {high}")
        if not self.finite and not self.nan and np.isnan(low):
            raise DataError(f"{what} holds NaN")
        _in_range(what, low, high, self.least, self.most)


@dataclass(frozen=True)
class Whole:
    """An array of whole numbers from ``least`` to below the size ``below``."""

    shape: Shape
    below: str | int | None = None
    least: int | None = 0
    total: str | None = None
    distinct: bool = False

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "i":
            _wrong(what, value, "an array of whole numbers")
        context.shape(what, self.shape, value.shape)
        if value.size:
            top = context.size(self.below) if isinstance(self.below, str) else self.below
            _in_range(what, int(value.min()), int(value.max()), self.least, None if top is None else top - 1)
        if self.total is not None:
            context.agree(f"the sum of {what}", self.total, sum(value.ravel().tolist()))
        if self.distinct and len(np.unique(value)) < value.size:
            raise DataError(f"{what} contains a number twice")


@dataclass(frozen=True)
class Numbers:
    """An array of finite numbers of any kind and shape."""

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
            _wrong(what, value, "an array of numbers")
        if value.size and not (np.isfinite(value.min()) and np.isfinite(value.max())):
            raise DataError(f"{what} must be finite")


@dataclass(frozen=True)
class Arrays:
    """An array with a shape, and with elements of some ``kinds`` (NumPy's letters); None allows any."""

    shape: Shape | None = None
    kinds: str | None = None

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, np.ndarray) or (self.kinds is not None and value.dtype.kind not in self.kinds):
            _wrong(what, value, f"an array{'' if self.kinds is None else f' of the kind {self.kinds!r}'}")
        if self.shape is not None:
            context.shape(what, self.shape, value.shape)


@dataclass(frozen=True)
class Labels:
    """Distinct labels or names."""

    shape: str
    least: int = 0
    texts: bool = False

    def check(self, value: Any, what: str, context: Context) -> None:
        kinds = "UO" if self.texts else "UOSiufb"
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.ndim != 1:
            _wrong(what, value, "a list of texts" if self.texts else "a list of labels")
        items = value.tolist()
        if self.texts and not all(isinstance(item, str) for item in items):
            _wrong(what, value, "a list of texts")
        if not all(isinstance(item, (str, bytes, bool, int, float)) and item == item for item in items):
            _wrong(what, value, "a list of texts or numbers")
        if len(set(items)) < len(items):
            raise DataError(f"{what} contains a label twice")
        context.shape(what, self.shape, value.shape)
        _in_range(f"the number of {what}", len(items), len(items), self.least, None)


@dataclass(frozen=True)
class Words:
    """An array of words, all of them in ``among``."""

    shape: Shape
    among: tuple[str, ...]

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "U":
            _wrong(what, value, "an array of words")
        context.shape(what, self.shape, value.shape)
        if not np.isin(value, self.among).all():
            raise DataError(f"{what} holds other words than {', '.join(self.among)}")


@dataclass(frozen=True)
class RowsOfData:
    """Rows that a kernel compares: an array or CSR with ``columns``, objects, or a table of several kinds."""

    rows: str
    columns: str = "d"
    objects: bool = True

    def check(self, value: Any, what: str, context: Context) -> None:
        if isinstance(value, Objects) and self.objects:
            context.agree(what, self.rows, len(value))
            return
        if not (isinstance(value, (np.ndarray, MixedRows)) or sp.issparse(value)):
            _wrong(what, value, "rows of data")
        context.shape(what, f"{self.rows}, {self.columns}", value.shape)
        if isinstance(value, MixedRows):
            return
        numbers = value.data if sp.issparse(value) else value
        if numbers.dtype not in (np.float32, np.float64):
            raise DataError(f"{what} must hold float32 or float64, but holds {numbers.dtype}")
        # The extremes take no further memory.
        if numbers.size and not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
            raise DataError(f"{what} must be finite")


# ---- single values


@dataclass(frozen=True)
class Number:
    """A number; finite by default."""

    least: float | None = None
    most: float | None = None
    finite: bool = True

    def check(self, value: Any, what: str, context: Context) -> None:
        value = value.item() if isinstance(value, np.ndarray) and value.shape == () else value
        if not isinstance(value, Real) or isinstance(value, bool):
            _wrong(what, value, "a number")
        if not (np.isfinite(float(value)) if self.finite else float(value) == float(value)):
            raise DataError(f"{what} must be a {'finite ' if self.finite else ''}number, but is {value}")
        _in_range(what, value, value, self.least, self.most)


@dataclass(frozen=True)
class Count:
    """A 64-bit integer. ``size`` names the size that it sets; ``most`` may be the name of another size."""

    size: str | None = None
    least: int | None = 0
    most: int | str = 2**63 - 1

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, Integral) or isinstance(value, bool):
            _wrong(what, value, "a whole number")
        most = context.size(self.most) if isinstance(self.most, str) else self.most
        _in_range(what, int(value), int(value), self.least, most)
        if self.size is not None:
            context.agree(what, self.size, int(value))


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, (bool, np.bool_)):
            _wrong(what, value, "True or False")


@dataclass(frozen=True)
class Word:
    """A string; one of ``among``, unless that is empty."""

    among: tuple[str, ...] = ()

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, str) or (self.among and value not in self.among):
            _wrong(what, value, f"one of {', '.join(map(repr, self.among))}" if self.among else "a text")


@dataclass(frozen=True)
class Is:
    """An instance of one of the classes, whose own constructor or statements have checked it."""

    classes: tuple[type, ...]

    def __init__(self, *classes: type) -> None:
        object.__setattr__(self, "classes", classes)

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, self.classes):
            _wrong(what, value, f"of the class {' or '.join(c.__name__ for c in self.classes)}")


@dataclass(frozen=True)
class Lengths:
    """A tuple of sizes, such as the shape of X in the fit."""

    sizes: Callable[[Any], str]

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, tuple) or not all(isinstance(v, Integral) and int(v) >= 0 for v in value):
            _wrong(what, value, "a tuple of lengths")
        context.shape(what, self.sizes(context.model), tuple(int(v) for v in value))


# ---- combinations


@dataclass(frozen=True)
class Maybe:
    """None, or a value as stated by ``inner``."""

    inner: Statement

    def check(self, value: Any, what: str, context: Context) -> None:
        if value is not None:
            self.inner.check(value, what, context)


@dataclass(frozen=True)
class Either:
    """At least one of several statements. The first that holds sets the sizes."""

    choices: tuple[Statement, ...]

    def __init__(self, *choices: Statement) -> None:
        object.__setattr__(self, "choices", choices)

    def check(self, value: Any, what: str, context: Context) -> None:
        errors = []
        for choice in self.choices:
            trial = Context(context.model, dict(context.sizes), context.derived)
            try:
                choice.check(value, what, trial)
            except DataError as error:
                errors.append(str(error))
                continue
            context.sizes.update(trial.sizes)
            return
        raise DataError(" or ".join(dict.fromkeys(errors)))


@dataclass(frozen=True)
class Each:
    """A list or tuple whose items are all as stated by ``inner``."""

    inner: Statement
    size: str | None = None
    kinds: tuple[type, ...] = (list, tuple)

    def check(self, value: Any, what: str, context: Context) -> None:
        if not issubclass(type(value), self.kinds):
            _wrong(what, value, "a tuple" if self.kinds == (tuple,) else "a list")
        if self.size is not None:
            context.agree(what, self.size, len(value))
        for number, item in enumerate(value):
            self.inner.check(item, f"{what}[{number}]", context)


@dataclass(frozen=True)
class Table:
    """A dict with exactly these keys, or with further ones if ``more``."""

    entries: Mapping[str, Statement]
    more: bool = False

    def check(self, value: Any, what: str, context: Context) -> None:
        keys = set(self.entries)
        if not isinstance(value, dict) or not (keys <= set(value) if self.more else keys == set(value)):
            _wrong(what, value, f"a dict of {', '.join(self.entries)}")
        for name, statement in self.entries.items():
            statement.check(value[name], f"{what}[{name!r}]", context)


@dataclass(frozen=True)
class Texts:
    """A dict with strings as keys and values as stated by ``inner``."""

    inner: Statement

    def check(self, value: Any, what: str, context: Context) -> None:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            _wrong(what, value, "a dict with texts as keys")
        for key, item in value.items():
            self.inner.check(item, f"{what}[{key!r}]", context)
