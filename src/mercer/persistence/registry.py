"""What a model file may hold: names to classes, and what is checked before an attribute is set.

Names in a file are looked up here and nowhere else; nothing is imported because a file says so.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args

import numpy as np
from sklearn.base import BaseEstimator

import mercer.data
import mercer.estimators
import mercer.kernels
import mercer.losses
import mercer.maps
import mercer.priors
from mercer._errors import DataError
from mercer._registered import CLASSES
from mercer.data.annotations import annotated, field_hints
from mercer.data.columns import MixedRows
from mercer.data.fitted import statements
from mercer.data.graph import Graph
from mercer.data.objects import Objects
from mercer.data.statements import Context
from mercer.estimators.shared.expansion import Fallback
from mercer.kernels.base import Expression
from mercer.losses import Loss, Penalty
from mercer.persistence.container import malformed
from mercer.persistence.foreign import STATED, sklearn_kernels
from mercer.solvers.svm.solver import BoxSolver

DEEPEST = 100
"""How deep objects may be nested: far more than any model needs, far less than the stack holds."""

DTYPE = re.compile(r"[<|](?:[iu][1248]|f[248]|b1|O|U[0-9]{1,6})")
"""Types of array elements that may be a value themselves, such as the ``_fit_dtype`` of an imputer."""

SPARSE = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Names:
    """Classes by the name that a file gives them, and the other way round."""

    classes: dict[str, type]
    names: dict[type, str]

    @classmethod
    def of(cls, classes: Iterable[type]) -> Names:
        """Names such as ``"mercer.RBF"``: package and class, which a move between modules does not change."""
        table = {f"{c.__module__.partition('.')[0]}.{c.__name__}": c for c in classes}
        return cls(table, {c: name for name, c in table.items()})


@dataclass(frozen=True)
class Registry:
    """The classes by how they are rebuilt: records by their constructor, estimators by their attributes."""

    records: Names
    estimators: Names
    enums: Names


_NUMBER_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 str"
_NUMBERS = tuple(np.dtype(name).type for name in _NUMBER_NAMES.split())
NUMBERS = Names.of(_NUMBERS)
TYPES = Names.of((*_NUMBERS, np.object_, bool, int, float, str, object))

# What a file may hold beside what others of its objects are made of.
_BASES = (Expression, Loss, Penalty, BoxSolver, mercer.priors.Prior, Objects, BaseEstimator)
_HOMES = (mercer.kernels, mercer.losses, mercer.priors, mercer.data, mercer.maps, mercer.estimators)
_VALUES = (Graph, MixedRows)


def registry() -> Registry:
    """Return all classes that a model file may contain: Mercer's own, and those that users registered."""
    _import_all()
    return loaded_classes()


@functools.cache
def _import_all() -> None:
    """Classes are found by what is below their base, so every module of these packages must have run."""
    for package in _HOMES:
        for module in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
            importlib.import_module(module.name)
    sklearn_kernels(load=True)


def loaded_classes() -> Registry:
    """The part of :func:`registry` whose modules have run: all that an object can hold that exists."""
    classes = dict.fromkeys([*STATED, *sklearn_kernels(), *_VALUES, *CLASSES.values()])
    classes |= dict.fromkeys(cls for base in _BASES for cls in _below(base))
    waiting = list(classes)
    while waiting:
        parts = [part for part in _parts(waiting.pop()) if part not in classes]
        classes |= dict.fromkeys(parts)
        waiting += parts
    kinds = ("records", "estimators", "enums")
    return Registry(*(Names.of(cls for cls in classes if _kind(cls) == kind) for kind in kinds))


def _kind(cls: type) -> str:
    if issubclass(cls, Enum):
        return "enums"
    return "estimators" if issubclass(cls, BaseEstimator) or cls in sklearn_kernels() else "records"


def _below(base: type) -> Iterator[type]:
    """Every public, concrete class of Mercer's below ``base``."""
    cls: type
    for cls in base.__subclasses__():
        yield from _below(cls)
        if _is_own(cls) and (dataclasses.is_dataclass(cls) or issubclass(cls, (Objects, BaseEstimator))):
            yield cls


@functools.cache
def _parts(cls: type) -> tuple[type, ...]:
    """The classes of Mercer's that the statements and the annotations of one of its classes name."""
    schema = statements(cls)
    if not _is_own(cls):
        return ()
    named = [*_classes_in({} if schema is None else schema.entries)]
    if _kind(cls) == "records":
        named += _classes_in(field_hints(cls))
    return tuple(filter(_is_own, named))


def _classes_in(value: Any) -> Iterator[type]:
    """The classes in statements and annotations, however deep."""
    if isinstance(value, type):
        yield value
        return
    inner = vars(value) if dataclasses.is_dataclass(value) else value
    parts = inner.values() if isinstance(inner, Mapping) else inner if isinstance(inner, tuple) else get_args(inner)
    for part in parts:
        yield from _classes_in(part)


def _is_own(cls: type) -> bool:
    public = cls.__module__.startswith("mercer.") and not cls.__name__.startswith("_")
    return public and not inspect.isabstract(cls)


def record_fields(cls: type) -> list[str]:
    """Names of what the constructor of a record takes; the record keeps each under the same name."""
    return list(inspect.signature(cls).parameters)


def check_field(cls: type, name: str, value: Any) -> None:
    """Raise if a field of a record is of another type than its annotation says."""
    if name not in record_fields(cls):
        malformed(f"{cls.__name__} has no field {name[:60]!r}")
    if isinstance(value, type):
        malformed(f"{cls.__name__}.{name} is a class, which could be called")
    try:
        if name in annotated(cls):
            annotated(cls)[name].check(value, f"{cls.__name__}.{name}", Context(None, {}, {}))
    except DataError as error:
        malformed(f"{cls.__name__}.{name} is of the type {type(value).__name__}: {error}")


def check_attribute(cls: type, name: str) -> None:
    """Raise if an estimator's attribute has a name that it must not have."""
    if not name.isidentifier() or name.startswith("__"):
        malformed(f"{cls.__name__} has an attribute named {name[:60]!r}")
    inherited = inspect.getattr_static(cls, name, None)
    if isinstance(inherited, Fallback):
        # What is stored goes before it, and is checked like any other attribute.
        return
    if callable(inherited) or hasattr(inherited, "__get__"):
        malformed(f"{cls.__name__} has an attribute {name!r} in place of a method")
