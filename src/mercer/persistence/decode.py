"""Rebuild objects from the flat table of a model file, which is neither trusted nor executed.

A row may refer to earlier rows only. Names are looked up in the registry. Kernels and certificates are rebuilt by their
constructors, and the names of an estimator's attributes are checked before they are set.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import ModelFileError
from mercer.persistence import container
from mercer.persistence.calibration import DERIVED, make_derived
from mercer.persistence.container import malformed
from mercer.persistence.registry import (
    DEEPEST,
    DTYPE,
    NUMBERS,
    SPARSE,
    TYPES,
    Names,
    Registry,
    check_attribute,
    check_field,
)
from mercer.persistence.states import check_state

# The most entries that an object may expand to: a constant, plus a multiple of the entries of the table so far.
_MOST_SHARED, _SHARES = 2**18, 8


class Decoder:
    """Rebuilds the rows of a table in order, from the classes of a registry."""

    def __init__(self, arrays: Mapping[str, np.ndarray], written_by: str, registry: Registry) -> None:
        self._registry = registry
        self._arrays = dict(arrays)
        self._written_by = written_by
        self._objects: list[Any] = []
        self._depths: list[int] = []
        self._deepest_child = 0
        # Entries of each object, with shared parts counted wherever they occur, as hashing and printing visit them.
        self._expanded: list[int] = []
        self._visited = self._entries = 0

    def decode(self, table: Any) -> Any:
        """Return the object that the table describes."""
        if not isinstance(table, dict) or set(table) != {"root", "nodes"}:
            malformed("its table of objects has parts other than a root and nodes")
        if not isinstance(table["nodes"], list):
            malformed("its table of objects is not a list")
        for row, node in enumerate(table["nodes"]):
            self._deepest_child, self._visited = 0, 1
            try:
                value = self._read(node)
            except (ModelFileError, MemoryError):
                raise
            # Constructors check their arguments; any error that they raise is a fault of the file.
            except Exception as error:
                malformed(f"row {row} of its table cannot be rebuilt ({type(error).__name__}: {error})")
            if self._deepest_child + 1 > DEEPEST:
                malformed(f"row {row} of its table is nested deeper than {DEEPEST} levels")
            self._objects.append(value)
            self._expanded.append(self._visited)
            self._depths.append(self._deepest_child + 1)
        if self._arrays:
            malformed(f"the array {min(self._arrays)!r} belongs to no object")
        return self._child(table["root"])

    def _read(self, node: Any) -> Any:
        kind = node.get("kind") if isinstance(node, dict) else None
        if not isinstance(kind, str) or kind not in _READERS:
            malformed(f"its table has a row of the unknown kind {kind!r}")
        read, keys = _READERS[kind]
        if set(node) != {"kind", *keys}:
            malformed(f"a row of the kind {kind!r} has the entries {sorted(node)}")
        return read(self, node)

    def _child(self, value: Any) -> Any:
        self._entries += 1
        if not isinstance(value, (list, dict)):
            self._visit(1)
            return value
        if isinstance(value, dict) or len(value) != 1 or type(value[0]) is not int:
            malformed(f"a reference reads {str(value)[:60]}")
        if not 0 <= value[0] < len(self._objects):
            malformed(f"a reference points to the row {value[0]}, and {len(self._objects)} come before it")
        self._deepest_child = max(self._deepest_child, self._depths[value[0]])
        self._visit(self._expanded[value[0]])
        return self._objects[value[0]]

    def _visit(self, entries: int) -> None:
        """Count the entries of the current object; 40 nested pairs of shared parts would be 2^40 entries."""
        self._visited += entries
        if self._visited > _MOST_SHARED + _SHARES * self._entries:
            malformed(
                f"row {len(self._objects)} of its table holds parts that are shared so often that it would expand to "
                f"{self._visited} entries"
            )

    def _children(self, values: Any) -> list[Any]:
        if not isinstance(values, list):
            malformed("the items of a sequence are not a list")
        return [self._child(value) for value in values]

    def _take(self, name: Any) -> np.ndarray:
        """Return an array of the file; each belongs to one object, so none is returned twice."""
        if not isinstance(name, str) or name not in self._arrays:
            malformed(f"the array {str(name)[:60]!r} is missing or used twice")
        return self._arrays.pop(name)

    def _class(self, names: Names, node: Mapping[str, Any]) -> Any:
        name = node["class"]
        if not isinstance(name, str) or name not in names.classes:
            raise ModelFileError(
                f"the model holds an object of the class {str(name)[:100]!r}, which is not among those that a model "
                "file may hold. If it is a user-defined class, import the module that registers it "
                "(mercer.extend.register) before you load the file, or name it with mercer --import. It was written "
                f"by mercer {self._written_by[:40]}: if that is newer than the installed version, upgrade with pip "
                "install -U mercer; otherwise do not trust the file."
            )
        return names.classes[name]

    # ---- plain values

    def _float(self, node: Mapping[str, Any]) -> float:
        if node["value"] not in ("nan", "inf", "-inf"):
            malformed("a special number is neither NaN nor infinite")
        return float(node["value"])

    def _list(self, node: Mapping[str, Any]) -> list[Any]:
        return self._children(node["items"])

    def _tuple(self, node: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(self._children(node["items"]))

    def _dict(self, node: Mapping[str, Any]) -> dict[Any, Any]:
        pairs = node["items"]
        if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
            malformed("the items of a dict are not pairs")
        items = {self._child(key): self._child(value) for key, value in pairs}
        if len(items) < len(pairs):
            malformed("a key of a dict occurs twice")
        return items

    def _slice(self, node: Mapping[str, Any]) -> slice:
        parts = self._children(node["items"])
        if len(parts) != 3 or not all(isinstance(p, (int, str, np.integer, type(None))) for p in parts):
            malformed("a slice is not made of three positions or names")
        return slice(*parts)

    def _enum(self, node: Mapping[str, Any]) -> Any:
        members = self._class(self._registry.enums, node).__members__
        if not isinstance(node["member"], str) or node["member"] not in members:
            malformed(f"{node['class']} has no member {str(node['member'])[:60]!r}")
        return members[node["member"]]

    def _number(self, node: Mapping[str, Any]) -> Any:
        kind, value = self._class(NUMBERS, node), node["value"]
        if not isinstance(value, str):
            malformed("a number is not written as text")
        if kind is np.str_:
            return np.str_(value)
        if kind is np.bool_:
            return np.bool_({"True": True, "False": False}[value])
        return kind(int(value) if issubclass(kind, np.integer) else float(value))

    def _type(self, node: Mapping[str, Any]) -> type:
        return self._class(TYPES, node)

    def _dtype(self, node: Mapping[str, Any]) -> np.dtype:
        if not isinstance(node["value"], str) or not DTYPE.fullmatch(node["value"]):
            malformed(f"a type of array elements reads {str(node['value'])[:60]!r}")
        return np.dtype(node["value"])

    # ---- arrays

    def _array(self, node: Mapping[str, Any]) -> np.ndarray:
        data = self._take(node["data"])
        return data.T if node["order"] == "F" else data

    def _text(self, node: Mapping[str, Any]) -> np.ndarray:
        codes = self._take(node["data"])
        if codes.dtype != np.uint32 or codes.ndim < 1 or codes.shape[-1] < 1:
            malformed("an array of text has no code points")
        if codes.size and codes.max() > 0x10FFFF:
            malformed("an array of text holds numbers that are not characters")
        shape, width = codes.shape[:-1], codes.shape[-1]
        return codes.reshape(-1).view(f"<U{width}").reshape(shape)

    def _strings(self, node: Mapping[str, Any]) -> np.ndarray:
        data, lengths = self._take(node["data"]), self._take(node["lengths"])
        if data.dtype != np.uint8 or data.ndim != 1 or lengths.dtype != np.int64:
            malformed("an array of strings is not made of bytes and lengths")
        if (lengths.size and (lengths.min() < 0 or lengths.max() > data.size)) or lengths.sum() != data.size:
            malformed("the lengths of an array of strings do not fit its bytes")
        stops = np.cumsum(lengths.ravel()).tolist()
        text = data.tobytes()
        result = np.empty(lengths.size, object)
        for i, (start, stop) in enumerate(zip([0, *stops], stops)):
            result[i] = text[start:stop].decode("utf-8", "surrogatepass")
        return result.reshape(lengths.shape)

    def _objects_array(self, node: Mapping[str, Any]) -> np.ndarray:
        items, shape = self._children(node["items"]), _shape(node["shape"])
        if math.prod(shape) != len(items):
            malformed(f"an array of the shape {shape} has {len(items)} items")
        result = np.empty(len(items), object)
        # Item by item, because a single assignment would unpack sequences.
        for i, item in enumerate(items):
            result[i] = item
        return result.reshape(shape)

    def _sparse(self, node: Mapping[str, Any]) -> sp.csr_matrix | sp.csr_array:
        parts = [self._child(node[name]) for name in SPARSE]
        if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
            malformed("a sparse matrix is not made of three vectors")
        data, indices, indptr = parts
        if data.dtype.kind not in "biuf" or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
            malformed("a sparse matrix is not made of numbers and whole numbers")
        kind = sp.csr_matrix if node["kind"] == "csr_matrix" else sp.csr_array
        matrix = kind((data, indices, indptr), shape=_shape(node["shape"]))
        # SciPy's loops trust the indices: a wrong one would read memory outside the arrays.
        matrix.check_format(full_check=True)
        return matrix

    # ---- objects

    def _fields(self, node: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(node["fields"], dict):
            malformed(f"the fields of {node['class']} are not named")
        return {name: self._child(value) for name, value in node["fields"].items()}

    def _record(self, node: Mapping[str, Any]) -> Any:
        cls, fields = self._class(self._registry.records, node), self._fields(node)
        for name, value in fields.items():
            check_field(cls, name, value)
        record = cls(**fields)
        check_state(record)
        return record

    def _estimator(self, node: Mapping[str, Any]) -> Any:
        cls, fields = self._class(self._registry.estimators, node), self._fields(node)
        for name in fields:
            check_attribute(cls, name)
        for name, parameter in inspect.signature(cls).parameters.items():
            if name in fields or parameter.kind is parameter.VAR_KEYWORD:
                continue
            # The version that wrote the file did not have this parameter, so the default applies.
            if parameter.default is parameter.empty:
                malformed(f"{node['class']} lacks its parameter {name!r}")
            fields[name] = parameter.default
        model = cls.__new__(cls)
        for name, value in fields.items():
            setattr(model, name, value)
        if DERIVED.get(cls, "") in fields:
            malformed(f"{node['class']} has an attribute that is never written")
        check_state(model)
        make_derived(model)
        return model


def _shape(value: Any) -> tuple[int, ...]:
    if not container.are_counts(value) or len(value) > 32:
        malformed(f"a shape reads {str(value)[:60]}")
    return tuple(value)


_Reader = Callable[[Decoder, Mapping[str, Any]], Any]

_READERS: dict[str, tuple[_Reader, Sequence[str]]] = {
    "float": (Decoder._float, ["value"]),
    "list": (Decoder._list, ["items"]),
    "tuple": (Decoder._tuple, ["items"]),
    "dict": (Decoder._dict, ["items"]),
    "slice": (Decoder._slice, ["items"]),
    "enum": (Decoder._enum, ["class", "member"]),
    "number": (Decoder._number, ["class", "value"]),
    "type": (Decoder._type, ["class"]),
    "dtype": (Decoder._dtype, ["value"]),
    "array": (Decoder._array, ["order", "data"]),
    "text": (Decoder._text, ["data"]),
    "strings": (Decoder._strings, ["data", "lengths"]),
    "objects": (Decoder._objects_array, ["shape", "items"]),
    "csr_matrix": (Decoder._sparse, ["shape", *SPARSE]),
    "csr_array": (Decoder._sparse, ["shape", *SPARSE]),
    "record": (Decoder._record, ["class", "fields"]),
    "estimator": (Decoder._estimator, ["class", "fields"]),
}
