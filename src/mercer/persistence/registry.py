"""The classes that a model file may contain, by name, and the checks of their fields and attributes.

Names in a file are looked up here and nowhere else. A file never causes an import.
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
"""How deep objects may be nested: far deeper than any model needs, far less than the stack allows."""

DTYPE = re.compile(r"[<|](?:[iu][1248]|f[248]|b1|O|U[0-9]{1,6})")
"""Array dtypes that may be values themselves, such as the ``_fit_dtype`` of an imputer."""

SPARSE = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Names:
    """Classes by their names in a file, and names by class."""

    classes: dict[str, type]
    names: dict[type, str]

    @classmethod
    def of(cls, classes: Iterable[type]) -> Names:
        """Name classes by package and class (``"mercer.RBF"``), so that they may move between modules."""
        table = {f"{c.__module__.partition('.')[0]}.{c.__name__}": c for c in classes}
        return cls(table, {c: name for name, c in table.items()})


@dataclass(frozen=True)
class Registry:
    """The classes, grouped by how they are rebuilt: records by constructor, estimators by attributes."""

    records: Names
    estimators: Names
    enums: Names


_NUMBER_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 str"
_NUMBERS = tuple(np.dtype(name).type for name in _NUMBER_NAMES.split())
NUMBERS = Names.of(_NUMBERS)
TYPES = Names.of((*_NUMBERS, np.object_, bool, int, float, str, object))

# A file may contain subclasses of these, these values, and the classes of their parts.
_BASES = (Expression, Loss, Penalty, BoxSolver, mercer.priors.Prior, Objects, BaseEstimator)
_HOMES = (mercer.kernels, mercer.losses, mercer.priors, mercer.data, mercer.maps, mercer.estimators)
_VALUES = (Graph, MixedRows)


def registry() -> Registry:
    """Return all classes that a model file may contain: Mercer's own, and those that users registered."""
    _import_all()
    return loaded_classes()


@functools.cache
def _import_all() -> None:
    """Import every module of these packages, because classes are found as subclasses of their bases."""
    for package in _HOMES:
        for module in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
            importlib.import_module(module.name)
    sklearn_kernels(load=True)


def loaded_classes() -> Registry:
    """The part of :func:`registry` whose modules are loaded, which contains the class of every existing object."""
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
    """Every public, concrete subclass of ``base`` in Mercer."""
    cls: type
    for cls in base.__subclasses__():
        yield from _below(cls)
        stored = dataclasses.is_dataclass(cls) or issubclass(cls, Objects)
        if issubclass(cls, BaseEstimator):
            # Not searches, which leave what no statement describes; their best estimator can be stored.
            stored = not cls.__module__.startswith("mercer.selection.")
        if _is_own(cls) and stored:
            yield cls


@functools.cache
def _parts(cls: type) -> tuple[type, ...]:
    """Mercer's classes that are named in the statements and annotations of one of its classes."""
    schema = statements(cls)
    if not _is_own(cls):
        return ()
    named = [*_classes_in({} if schema is None else schema.entries)]
    if _kind(cls) == "records":
        named += _classes_in(field_hints(cls))
    return tuple(filter(_is_own, named))


def _classes_in(value: Any) -> Iterator[type]:
    """The classes in statements and annotations, at any depth."""
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
    """Names of the arguments of a record's constructor, which are also the names of its fields."""
    return list(inspect.signature(cls).parameters)


def check_field(cls: type, name: str, value: Any) -> None:
    """Raise unless a field of a record has the type of its annotation."""
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
    """Raise if the name of an attribute is not allowed for this estimator."""
    if not name.isidentifier() or name.startswith("__"):
        malformed(f"{cls.__name__} has an attribute named {name[:60]!r}")
    inherited = inspect.getattr_static(cls, name, None)
    if isinstance(inherited, Fallback):
        # A stored value takes precedence over the fallback, and is checked like any other attribute.
        return
    if callable(inherited) or hasattr(inherited, "__get__"):
        malformed(f"{cls.__name__} has an attribute {name!r} in place of a method")
