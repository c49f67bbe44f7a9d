"""Write objects as a flat table: every object after its parts, and every array by its name in the file.

A value in the table is either a JSON scalar, or a list with one number: the row with the object. So a shared object is
written once, and a table cannot contain cycles or unlimited nesting.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from enum import Enum
from pathlib import PurePath
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer._errors import ModelFileError
from mercer.persistence.calibration import DERIVED
from mercer.persistence.container import STORABLE
from mercer.persistence.registry import DEEPEST, DTYPE, NUMBERS, SPARSE, TYPES, Registry, loaded_classes, record_fields

Scalar = str | int | float | bool | None
Child = Scalar | list[int]
Node = dict[str, Any]


class Encoder:
    """Fills ``nodes`` and ``arrays`` through ``child``; ``known`` are the classes that it can write."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.known = loaded_classes()
        self.arrays: dict[str, np.ndarray] = {}
        self._rows: dict[int, int] = {}
        self._open: set[int] = set()
        # Rows are found by the address of their object, so no object may be freed before the end.
        self._alive: list[Any] = []

    def child(self, value: Any, path: str, depth: int = 0) -> Child:
        """Return ``value`` as it stands in the table; ``path`` names it in messages."""
        if value is None or type(value) in (str, bool):
            return value
        if isinstance(value, PurePath):
            # Learners take paths as text as well.
            return str(value)
        if type(value) is int and value.bit_length() <= 1024:
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if id(value) in self._rows:
            return [self._rows[id(value)]]
        if id(value) in self._open:
            raise ModelFileError(f"{path} contains itself, but a model file cannot hold cycles; remove the cycle.")
        if depth > DEEPEST:
            raise ModelFileError(
                f"{path} is nested more than {DEEPEST} levels deep, which a model file does not allow; make it flatter."
            )
        self._open.add(id(value))
        node = _writer(value, path, self.known)(self, value, path, depth + 1)
        self._open.remove(id(value))
        self._alive.append(value)
        self.nodes.append(node)
        self._rows[id(value)] = len(self.nodes) - 1
        return [len(self.nodes) - 1]

    def _special_float(self, value: float, path: str, depth: int) -> Node:
        return {"kind": "float", "value": repr(value)}

    def _sequence(self, value: list[Any] | tuple[Any, ...], path: str, depth: int) -> Node:
        items = [self.child(item, f"{path}[{i}]", depth) for i, item in enumerate(value)]
        return {"kind": type(value).__name__, "items": items}

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> Node:
        keys = [self.child(key, f"the key {key!r} of {path}", depth) for key in value]
        items = [self.child(item, f"{path}[{key!r}]", depth) for key, item in value.items()]
        return {"kind": "dict", "items": [list(pair) for pair in zip(keys, items)]}

    def _slice(self, value: slice, path: str, depth: int) -> Node:
        items = [self.child(part, path, depth) for part in (value.start, value.stop, value.step)]
        return {"kind": "slice", "items": items}

    def _enum(self, value: Enum, path: str, depth: int) -> Node:
        return {"kind": "enum", "class": self.known.enums.names[type(value)], "member": value.name}

    def _number(self, value: np.generic, path: str, depth: int) -> Node:
        # Every float32 and float16 is also a float64, so the printed Python number is exact.
        text = str(value) if isinstance(value, np.str_) else repr(value.item())
        return {"kind": "number", "class": NUMBERS.names[type(value)], "value": text}

    def _type(self, value: type, path: str, depth: int) -> Node:
        return {"kind": "type", "class": TYPES.names[value]}

    def _dtype(self, value: np.dtype, path: str, depth: int) -> Node:
        return {"kind": "dtype", "value": value.str}

    def _record(self, value: Any, path: str, depth: int) -> Node:
        names = record_fields(type(value))
        fields = {name: self.child(getattr(value, name), f"{path}.{name}", depth) for name in names}
        return {"kind": "record", "class": self.known.records.names[type(value)], "fields": fields}

    def _estimator(self, value: BaseEstimator, path: str, depth: int) -> Node:
        state = {**value.get_params(deep=False), **vars(value)}
        for name in (DERIVED.get(type(value), ""), *getattr(value, "_not_in_file", ())):
            state.pop(name, None)
        fields = {name: self.child(item, f"{path}.{name}", depth) for name, item in state.items()}
        return {"kind": "estimator", "class": self.known.estimators.names[type(value)], "fields": fields}

    def _sparse(self, value: sp.csr_matrix, path: str, depth: int) -> Node:
        parts = {name: self.child(getattr(value, name), f"{path}.{name}", depth) for name in SPARSE}
        return {"kind": type(value).__name__, "shape": list(value.shape), **parts}

    def _array(self, value: np.ndarray, path: str, depth: int) -> Node:
        if value.dtype == object:
            return self._objects(value, path, depth)
        if value.dtype.kind == "U" and value.dtype.itemsize:
            return self._text(value)
        dtype = value.dtype.newbyteorder("<")
        if dtype not in STORABLE:
            raise ModelFileError(
                f"{path} is an array of {value.dtype}, which a model file cannot hold; "
                "convert it to float64, int64, bool or str first."
            )
        # The order in memory is kept, because matrix products may have other bits in another order.
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        name = self._store(value.T if turned else value)
        return {"kind": "array", "order": "F" if turned else "C", "data": name}

    def _text(self, value: np.ndarray) -> Node:
        """Write fixed-width text as NumPy's code points."""
        native = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="), copy=False))
        codes = native.reshape(-1).view(np.uint32).reshape(*value.shape, value.dtype.itemsize // 4)
        return {"kind": "text", "data": self._store(codes)}

    def _objects(self, value: np.ndarray, path: str, depth: int) -> Node:
        items = value.ravel().tolist()
        if not all(type(item) is str for item in items):
            rows = [self.child(item, f"{path}[{i}]", depth) for i, item in enumerate(items)]
            return {"kind": "objects", "shape": list(value.shape), "items": rows}
        encoded = [item.encode("utf-8", "surrogatepass") for item in items]
        data = np.frombuffer(b"".join(encoded), np.uint8)
        lengths = np.array([len(item) for item in encoded], np.int64).reshape(value.shape)
        return {"kind": "strings", "data": self._store(data), "lengths": self._store(lengths)}

    def _store(self, array: np.ndarray) -> str:
        """Store an array for the file under a unique name."""
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return name


_Writer = Callable[[Encoder, Any, str, int], Node]

# Functions of the class, because bound methods stored in the object itself would keep its arrays alive.
_WRITERS: dict[type, _Writer] = {
    float: Encoder._special_float,
    list: Encoder._sequence,
    tuple: Encoder._sequence,
    dict: Encoder._dict,
    slice: Encoder._slice,
    np.ndarray: Encoder._array,
    np.memmap: Encoder._array,
    sp.csr_matrix: Encoder._sparse,
    sp.csr_array: Encoder._sparse,
}


def _writer(value: Any, path: str, registry: Registry) -> _Writer:
    kind = type(value)
    if kind in _WRITERS:
        return _WRITERS[kind]
    if kind in registry.enums.names:
        return Encoder._enum
    if kind in registry.records.names:
        return Encoder._record
    if kind in registry.estimators.names:
        return Encoder._estimator
    if kind in NUMBERS.names:
        return Encoder._number
    if isinstance(value, type) and value in TYPES.names:
        return Encoder._type
    if isinstance(value, np.dtype) and DTYPE.fullmatch(value.str):
        return Encoder._dtype
    _refuse(value, path)


def _refuse(value: Any, path: str) -> NoReturn:
    """Raise an error that says which object cannot be saved, and what to do instead."""
    named = callable(value) and hasattr(value, "__name__") and not isinstance(value, type)
    if named or isinstance(value, functools.partial):
        name = getattr(value, "__name__", "a functools.partial")
        raise ModelFileError(
            f"{path} is a Python function ({name}), but a model file holds data only, so that loading it "
            "never runs code. Use a kernel of mercer.kernels instead, or keep the model with pickle."
        )
    if sp.issparse(value):
        raise ModelFileError(f"{path} is a {type(value).__name__}, but a model file takes CSR only; use its .tocsr().")
    kind = value if isinstance(value, type) else type(value)
    what = "the class" if isinstance(value, type) else "an object of the class"
    way_out = {
        "RandomState": "Pass a whole number as random_state.",
        "Generator": "Pass a whole number as random_state.",
    }.get(kind.__name__, "Replace it by a plain value, or keep the model with pickle.")
    raise ModelFileError(
        f"{path} is {what} {kind.__module__}.{kind.__qualname__}, which a model file cannot hold: "
        "it takes Mercer's own objects, scikit-learn's common transformers, arrays and plain values. "
        f"{way_out}"
    )
