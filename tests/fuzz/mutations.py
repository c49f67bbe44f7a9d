"""Ways in which a model file is made to lie: its bytes, the values of its table, its arrays; with right checksums."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from mercer.persistence import container

_NUMBERS = [0, 1, -1, 2, 3, 7, 255, 2**31, -(2**31), 2**62, -(2**63), 10**30, 0.0, -0.5, 1e300, -1e300, 1e-300, 5e-324]
_WORDS = ["", "ovr", "ovo", "rbf", "precomputed", "nan", "inf", "-inf", "a0", "n", "\0", "é" * 50, "poly", "mean", "F"]
_DTYPES = ["<f8", "<f4", "<i8", "<i4", "<i2", "i1", "u1", "<u4", "<u8", "?", "<f2"]


def mutated_bytes(raw: bytes, rng: Random) -> bytes:
    """Some bytes changed, cut out or put in; in two of three cases with the checksum and the size of the result."""
    body = bytearray(raw)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        place, kind = rng.randrange(len(body)), rng.randrange(6)
        if kind == 0:
            del body[place : place + rng.choice([1, 8, 64])]
        elif kind == 1:
            body[place:place] = rng.randbytes(rng.choice([1, 8, 64]))
        elif kind == 2:
            body[place] ^= 1 << rng.randrange(8)
        else:
            body[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x30, 0x39, 0x5B, 0x2D])
    if rng.random() < 0.67 and len(body) > 250:
        body = _sealed(body)
    return bytes(body)


def _sealed(body: bytearray) -> bytearray:
    head = bytes(body[:400])
    size, digest = head.find(b'"bytes":"'), head.find(b'"sha256":"')
    if size < 0 or digest < 0:
        return body
    body[size + 9 : size + 29] = b"%020d" % len(body)
    body[digest + 10 : digest + 74] = b"0" * 64
    body[digest + 10 : digest + 74] = hashlib.sha256(body).hexdigest().encode()
    return body


def mutate_table(table: Any, rng: Random) -> None:
    """One value somewhere in the table replaced, two swapped, a key taken away or a class renamed."""
    place, key = _walk(table, rng)
    kind = rng.randrange(10)
    if kind == 0 and isinstance(place, dict):
        del place[key]
    elif kind == 1:
        other, key2 = _walk(table, rng)
        place[key], other[key2] = copy.deepcopy(other[key2]), copy.deepcopy(place[key])
    elif kind == 2:
        other, key2 = _walk(table, rng)
        place[key] = copy.deepcopy(other[key2])
    elif kind == 3 and isinstance(place, list):
        place.insert(key, copy.deepcopy(place[key]))
    elif kind == 4 and isinstance(place, list):
        del place[key]
    elif kind == 5 and isinstance(place, dict):
        second = rng.choice(list(place))
        place[key], place[second] = place[second], place[key]
    else:
        place[key] = _other_value(place[key], rng)


def _walk(table: Any, rng: Random) -> tuple[Any, Any]:
    place = table["nodes"] if table.get("nodes") and rng.random() < 0.97 else table
    while True:
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.12:
            return place, key
        place = inner


def _other_value(value: Any, rng: Random) -> Any:
    if isinstance(value, bool):
        return rng.choice([not value, None, 1, "True"])
    if isinstance(value, int) and rng.random() < 0.6:
        return rng.choice([value + 1, value - 1, -value, 2 * value, value + 0.5, value + 2**32])
    if isinstance(value, float) and rng.random() < 0.6:
        return rng.choice([-value, value * 1e3, value / 1e3, 0.0, value + 1])
    if isinstance(value, str) and value and rng.random() < 0.3:
        return rng.choice([value[:-1], value + "x", value.upper(), value[::-1]])
    return rng.choice([rng.choice(_NUMBERS), rng.choice(_WORDS), None, True, False, [], [0], {}, [rng.randrange(40)]])


def mutate_array(array: np.ndarray, rng: Random) -> np.ndarray:
    """The array with other values, of another length, shape or type."""
    array = np.array(array)
    kind = rng.randrange(9)
    if kind == 0 and array.size:
        return np.delete(array, rng.randrange(array.shape[-1]), axis=-1) if array.ndim else array
    if kind == 1 and array.ndim and array.size:
        return np.concatenate([array, array[:1]])
    if kind == 2 and array.ndim:
        return array[rng.choice([slice(0), slice(1), slice(-1)])]
    if kind == 3:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(_DTYPES))
    if kind == 4:
        return array.T.copy() if array.ndim > 1 else array.reshape(1, -1)
    if kind == 5 and array.size:
        return array.ravel()
    return _with_other_values(array, rng)


def _with_other_values(array: np.ndarray, rng: Random) -> np.ndarray:
    flat = array.reshape(-1)
    if not flat.size:
        return np.zeros(3, array.dtype)
    for _ in range(rng.choice([1, 1, 3])):
        place = rng.randrange(flat.size)
        if array.dtype.kind == "f":
            flat[place] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -flat[place], 1e3, -1e3, 1e-300, 2.0**-1074])
        elif array.dtype.kind in "iu":
            ends = np.iinfo(array.dtype)
            values = [-1, 0, 1, flat.size, flat.size - 1, ends.max, ends.min, ends.max // 2, 10**6, -(10**6), 127]
            flat[place] = rng.choice([v for v in values if ends.min <= v <= ends.max])
        else:
            flat[place] = not flat[place]
    return array


def write_mutant(raw: bytes, source: Path, target: Path, rng: Random) -> str:
    """Write a file that differs from the honest one by a mutation; returns its kind."""
    kind = rng.choice(["bytes", "table", "table", "table", "array", "array", "both"])
    if kind == "bytes":
        target.write_bytes(mutated_bytes(raw, rng))
        return kind
    texts, arrays = container.read(source)
    if kind in ("table", "both"):
        table = json.loads(texts["model"])
        mutate_table(table, rng)
        texts["model"] = json.dumps(table)
    if kind in ("array", "both") and arrays:
        names = list(arrays)
        name = rng.choice(names)
        if rng.random() < 0.15:
            other = rng.choice(names)
            arrays[name], arrays[other] = arrays[other], arrays[name]
        else:
            arrays[name] = mutate_array(arrays[name], rng)
    container.write(target, texts, arrays)
    return kind
