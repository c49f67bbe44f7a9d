"""The bytes of a model file: text entries and arrays in the safetensors layout, with a checksum over all bytes.

Any reader of safetensors can open the arrays: the layout is eight bytes with the length of the header, a JSON header,
and the bytes of the arrays one after another. Mercer reads and writes it itself for two reasons: it computes the
checksum while it writes, and it reads straight into the arrays, where the safetensors package maps the file and copies
each array out of the map, which takes twice the memory.

The digest is at a fixed place, first in ``__metadata__``. It is the SHA-256 of the whole file with the digest itself
replaced by zeros, so a change of any byte is detected, even in the digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from mercer import __version__
from mercer._errors import ModelFileError
from mercer.engine.drafts import written_in_one_stroke
from mercer.engine.memory import describe, require
from mercer.persistence.lead import PREFIX, check_lead, opened

FORMAT_VERSION = 1
"""The version of the format of model files that is written, and the newest that is read."""

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "F16": np.dtype("<f2"),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_DIGEST = slice(8 + len(PREFIX), 8 + len(PREFIX) + 64)
_SIZE_KEY = b'","bytes":"'
_SIZE = slice(_DIGEST.stop + len(_SIZE_KEY), _DIGEST.stop + len(_SIZE_KEY) + 20)
_FIXED_KEYS = {"format", "sha256", "bytes"}
_LARGEST_HEADER = 100_000_000  # the limit of the safetensors package
_CHUNK = 1 << 24

STORABLE = frozenset(_NAMES)


@dataclass(frozen=True)
class _Entry:
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


def write(path: Path, texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file atomically: a reader of ``path`` sees either the old file or the complete new one.

    Raises
    ------
    ModelFileError
        If the file cannot be written there; nothing is left behind.
    """
    # Wide numbers first, so that every array is aligned for readers that map the file.
    arrays = dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))
    header = _header(texts, arrays)
    target = Path(os.path.realpath(path))
    try:
        # A name that is too long raises OSError, too.
        if target.exists() and not target.is_file():
            raise ModelFileError(f"{path} is a directory or a device, not a file; give the name of a file.")
        if not target.parent.is_dir():
            raise ModelFileError(f"the directory {target.parent} does not exist; create it, or write elsewhere.")
        with written_in_one_stroke(target) as (file, _):
            _write_all(file, header, arrays)
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be written: {error.strerror or error}. Check the permissions and the free space."
        ) from error


def _header(texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> bytearray:
    entries: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        span = [offset, offset + array.nbytes]
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": span}
        offset = span[1]
    metadata = {"format": "mercer-model", "sha256": "0" * 64, "bytes": "0" * 20, **texts}
    text = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise ModelFileError(
            f"the model holds {describe(len(text))} of text and small objects, but a model file takes "
            f"at most {describe(_LARGEST_HEADER)}; keep long lists of numbers or strings in NumPy arrays."
        )
    header = bytearray(len(text).to_bytes(8, "little") + text)
    header[_SIZE] = b"%020d" % (len(header) + offset)
    return header


def _write_all(file: BinaryIO, header: bytearray, arrays: Mapping[str, np.ndarray]) -> None:
    digest = hashlib.sha256(header)
    file.write(header)
    for array in arrays.values():
        for chunk in _chunks(np.ascontiguousarray(array)):
            digest.update(chunk)
            file.write(chunk)
    file.seek(_DIGEST.start)
    file.write(digest.hexdigest().encode())


def _chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of a C-contiguous array in chunks, so that Ctrl-C works between them."""
    if array.nbytes == 0:
        return
    view = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(view), _CHUNK):
        yield view[start : start + _CHUNK]


def read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Verify the checksum of a file and return its text entries and arrays.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is not a model file, is truncated or altered, or contradicts itself.
    """
    with opened(path) as file:
        header, data_size = _verified_header(file)
        texts, entries = _parse(header, data_size)
        require(data_size, f"loading {path}", "Raise the budget with mercer.config(memory=...).")
        start = 8 + len(header)
        return texts, {entry.name: _read_array(file, start, entry) for entry in entries}


def read_texts(path: Path) -> dict[str, str]:
    """Verify the checksum of a file and return its text entries alone.

    Raises
    ------
    ModelFileError
        As :func:`read`.
    """
    with opened(path) as file:
        return _parse(*_verified_header(file))[0]


def check_format(texts: Mapping[str, str]) -> None:
    """Raise an error unless the text entries of a file are in a format that this version reads.

    Raises
    ------
    ModelFileError
        If the format is newer; the message says which version wrote the file.
    """
    written = texts.get("format_version", "")
    if not (written.isascii() and written.isdigit()) or len(written) > 9 or int(written) < 1:
        malformed("it does not state the version of its format")
    if int(written) > FORMAT_VERSION:
        raise ModelFileError(
            f"the file has version {written} of the format and was written by mercer "
            f"{texts.get('mercer_version', '')[:40]}; the mercer installed here ({__version__}) reads "
            f"up to version {FORMAT_VERSION}. Upgrade with pip install -U mercer."
        )


def malformed(what: str) -> NoReturn:
    """Raise for a file with a correct checksum but with content that Mercer does not write."""
    raise ModelFileError(
        f"the file was not written by mercer.save, or has been tampered with: {what}. Do not use it; get the model "
        "again from its author.",
        finding=what,
    )


def _verified_header(file: BinaryIO) -> tuple[bytes, int]:
    size = os.fstat(file.fileno()).st_size
    lead = file.read(_SIZE.stop)
    check_lead(lead)
    if len(lead) < _SIZE.stop:
        raise ModelFileError(f"the file is truncated: only {size} bytes are left. Copy or download it again.")
    expected = lead[_DIGEST]
    checksum = _digest(file, size).encode()
    if checksum != expected:
        _damaged(size, lead[_SIZE], expected, checksum)
    length = int.from_bytes(lead[:8], "little")
    if length > min(size - 8, _LARGEST_HEADER):
        malformed(f"it claims a header of {length} bytes, but the file has {size}")
    if lead[_DIGEST.stop : _SIZE.start] != _SIZE_KEY or lead[_SIZE] != b"%020d" % size:
        malformed("it does not state its own size")
    file.seek(8)
    return file.read(length), size - 8 - length


def _digest(file: BinaryIO, size: int) -> str:
    """SHA-256 of the file, with zeros in place of the digest."""
    digest = hashlib.sha256()
    file.seek(0)
    digest.update(file.read(_DIGEST.start) + b"0" * 64)
    file.seek(_DIGEST.stop)
    buffer = memoryview(bytearray(min(_CHUNK, size)))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(buffer[:count])
    return digest.hexdigest()


def _damaged(size: int, stated: bytes, expected: bytes, checksum: bytes) -> NoReturn:
    way_out = "Copy or download it again, or save the model again."
    if stated.isdigit() and size < int(stated):
        raise ModelFileError(f"the file is truncated: it has {size} of its {int(stated)} bytes. {way_out}")
    raise ModelFileError(
        f"the file was altered since it was written: its checksum is {checksum[:12].decode()}..., "
        f"but {expected[:12].decode('ascii', 'replace')}... is stored in it. {way_out}"
    )


def parse_json(text: str | bytes, what: str) -> Any:
    """Parse standard JSON: without duplicate keys, NaN, or nesting that would exhaust the stack."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except RecursionError:
        malformed(f"its {what} is nested too deeply")
    except ValueError as error:
        malformed(f"its {what} is not valid JSON ({error})")


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return table


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse(header: bytes, data_size: int) -> tuple[dict[str, str], list[_Entry]]:
    table = parse_json(header, "header")
    if not isinstance(table, dict) or not isinstance(table.get("__metadata__"), dict):
        malformed("its header has no metadata")
    metadata = table.pop("__metadata__")
    if not all(isinstance(text, str) for text in metadata.values()):
        malformed("its metadata are not all text")
    entries = sorted((_entry(name, row) for name, row in table.items()), key=lambda e: (e.start, e.stop))
    offset = 0
    for entry in entries:
        if entry.start != offset:
            malformed(f"the array {entry.name!r} overlaps another one or leaves a gap before it")
        offset = entry.stop
    if offset != data_size:
        malformed(f"its arrays take {offset} bytes, but the file has {data_size} for them")
    return {key: text for key, text in metadata.items() if key not in _FIXED_KEYS}, entries


def _entry(name: str, row: Any) -> _Entry:
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        malformed(f"the array {name!r} is not described by dtype, shape and data_offsets alone")
    shape, offsets = row["shape"], row["data_offsets"]
    if not isinstance(row["dtype"], str) or row["dtype"] not in _DTYPES:
        malformed(f"the array {name!r} has the dtype {row['dtype']!r}")
    if not are_counts(shape) or len(shape) > 32:
        malformed(f"the array {name!r} has the shape {shape!r}")
    if not are_counts(offsets) or len(offsets) != 2:
        malformed(f"the array {name!r} has the offsets {offsets!r}")
    dtype = _DTYPES[row["dtype"]]
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        malformed(f"the array {name!r} of shape {shape} does not fill its offsets {offsets}")
    return _Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**62 for value in values)


def _read_array(file: BinaryIO, start: int, entry: _Entry) -> np.ndarray:
    try:
        array = np.empty(entry.shape, entry.dtype)
    except ValueError:
        malformed(f"the array {entry.name!r} has the impossible shape {entry.shape}")
    file.seek(start + entry.start)
    for chunk in _chunks(array):
        if file.readinto(chunk) != len(chunk):  # type: ignore[attr-defined]
            raise ModelFileError("the file became shorter during reading; read it when no process writes it.")
    if entry.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        malformed(f"the array {entry.name!r} holds bytes that are not truth values")
    return array
