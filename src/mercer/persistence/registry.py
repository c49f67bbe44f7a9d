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
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import mercer.data
import mercer.estimators
import mercer.kernels
import mercer.losses
import mercer.maps
import mercer.priors
from mercer._registered import CLASSES
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.estimators.shared.primal import Fallback
from mercer.kernels.base import Expression
from mercer.losses import Loss, Penalty
from mercer.persistence import calibration
from mercer.persistence.container import malformed
from mercer.solvers.solution import Status

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


_NUMBERS = (
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.str_,
)
NUMBERS = Names.of(_NUMBERS)
TYPES = Names.of((*_NUMBERS, np.object_, bool, int, float, str, object))

# Classes beside those below a base of Mercer's, by their modules.
_RECORDS = {
    "mercer.data.graph": ("Graph",),
    "mercer.data.graphs": ("GraphArrays",),
    "mercer.data.images": ("Pixels",),
    "mercer.data.schema": ("Schema",),
    "mercer.kernels.modifiers": ("FrozenArray",),
    "mercer.kernels.string.bag_of_words": ("WordWeights",),
    "mercer.solvers.gaussian.linear_model": ("DesignSpectrum",),
    "mercer.solvers.gaussian.search": ("Search", "Trial"),
    "mercer.solvers.gaussian.trend": ("TrendFit",),
    "mercer.solvers.linear.penalty_curves": ("PenaltyCurves",),
    "mercer.solvers.online.mistakes": ("MistakeBound",),
    "mercer.solvers.solution": ("Certificate",),
    "mercer.solvers.svm.pair_answers": ("Certificates",),
}
_ESTIMATORS = {
    "mercer.data.encoding": ("TableEncoder",),
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.gaussian_process.kernels": (
        "ConstantKernel", "WhiteKernel", "RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct",
        "PairwiseKernel", "Sum", "Product", "Exponentiation",
    ),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "FunctionTransformer", "LabelEncoder", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OneHotEncoder",
        "OrdinalEncoder", "RobustScaler", "StandardScaler",
    ),
}  # fmt: skip


def registry() -> Registry:
    """Everything that a model file may hold beside plain values and arrays: Mercer's own, and what users registered."""
    _import_all()
    return loaded_classes()


@functools.cache
def _import_all() -> None:
    """Classes are found by what is below their base, so every module of these packages must have run."""
    for package in (mercer.data, mercer.kernels, mercer.maps, mercer.estimators):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    for name in (*_RECORDS, *_ESTIMATORS):
        importlib.import_module(name)


def loaded_classes() -> Registry:
    """The part of :func:`registry` whose modules have run: all that an object can hold that exists."""
    kernels = [c for c in _concrete(Expression, mercer.kernels.__name__) if dataclasses.is_dataclass(c)]
    losses = [c for base in (Loss, Penalty) for c in _concrete(base, mercer.losses.__name__)]
    rows = [*_concrete(Objects, mercer.data.__name__), MixedRows]
    priors = _concrete(mercer.priors.Prior, mercer.priors.__name__)
    estimators = [c for p in (mercer.maps, mercer.estimators) for c in _concrete(BaseEstimator, p.__name__)]
    dataclass_losses = filter(dataclasses.is_dataclass, losses)
    records = [*kernels, *dataclass_losses, *priors, *rows, *_loaded(_RECORDS), *calibration.RECORDS]
    estimators += [*_loaded(_ESTIMATORS), *calibration.ESTIMATORS]
    for cls in CLASSES.values():
        (estimators if issubclass(cls, BaseEstimator) else records).append(cls)
    return Registry(records=Names.of(records), estimators=Names.of(estimators), enums=Names.of([Status]))


def _loaded(classes: Mapping[str, Sequence[str]]) -> Iterator[type]:
    for module, names in classes.items():
        if module in sys.modules:
            yield from (getattr(sys.modules[module], name) for name in names)


def _concrete(base: type, package: str) -> Iterator[type]:
    """Every public, concrete class below ``base`` that is defined in ``package``."""
    cls: type
    for cls in base.__subclasses__():
        yield from _concrete(cls, package)
        public = f"{cls.__module__}.".startswith(package + ".") and not cls.__name__.startswith("_")
        if public and not inspect.isabstract(cls):
            yield cls


def record_fields(cls: type) -> list[str]:
    """Names of what the constructor of a record takes; the record keeps each under the same name."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls) if field.init]
    return list(inspect.signature(cls).parameters)


_COUNT = (int, np.integer)


@functools.cache
def _field_types(cls: type) -> dict[str, tuple[type, ...]]:
    """Types of the fields of a record, where its annotations say them; NumPy's numbers count as numbers."""
    hints = typing.get_type_hints(cls) if dataclasses.is_dataclass(cls) else {}
    return {name: kinds for name, hint in hints.items() if (kinds := _plain_types(hint))}


def _plain_types(hint: Any) -> tuple[type, ...]:
    """The classes that an annotation allows; none if it does not come down to classes."""
    if isinstance(hint, types.UnionType):
        parts = [_plain_types(part) for part in typing.get_args(hint)]
        return tuple(kind for part in parts for kind in part) if all(parts) else ()
    kind = typing.get_origin(hint) or hint
    if kind is Any or not isinstance(kind, type):
        return ()
    return {float: (float, int, np.floating, np.integer), int: _COUNT}.get(kind, (kind,))


def check_field(cls: type, name: str, value: Any) -> None:
    """Raise if a field of a record is of another type than its annotation says."""
    if name not in record_fields(cls):
        malformed(f"{cls.__name__} has no field {name[:60]!r}")
    if isinstance(value, type):
        malformed(f"{cls.__name__}.{name} is a class, which could be called")
    _check_type(cls, name, value, _field_types(cls).get(name))


def check_attribute(cls: type, name: str) -> None:
    """Raise if an estimator's attribute has a name that it must not have."""
    if not name.isidentifier() or name.startswith("__"):
        malformed(f"{cls.__name__} has an attribute named {name[:60]!r}")
    inherited = inspect.getattr_static(cls, name, None)
    if isinstance(inherited, Fallback):
        # What is stored goes before it, and is checked like any other attribute.
        return
    if callable(inherited) or hasattr(inherited, "__get__"):
        malformed(f"{cls.__name__} has an attribute {name!r} in the place of a method")


def _check_type(cls: type, name: str, value: Any, allowed: tuple[type, ...] | None) -> None:
    if allowed is not None and not isinstance(value, allowed):
        wanted = " or ".join(kind.__name__ for kind in allowed)
        malformed(f"{cls.__name__}.{name} is of the type {type(value).__name__}, and must be {wanted}")
