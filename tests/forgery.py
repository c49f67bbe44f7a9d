"""Model files with a right checksum and whatever else a test wants in them."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import sklearn


def forge(path: Path, metadata: Any = None, entries: Any = (), data: bytes = b"", header: str | None = None, **kw):
    """A file whose checksum is right, whatever else is in it."""
    texts = {"format_version": "1", "mercer_version": "9.9", "sklearn_version": "1.0", **(metadata or {})}
    fixed = {"format": "mercer-model", "sha256": "0" * 64, "bytes": "0" * 20}
    text = header
    if text is None:
        text = json.dumps({"__metadata__": {**fixed, **texts}, **dict(entries)}, separators=(",", ":"))
    body = bytearray(struct.pack("<Q", kw.get("length", len(text))) + text.encode() + data)
    place = body.index(b'"bytes":"') + 9
    body[place : place + 20] = b"%020d" % kw.get("size", len(body))
    place = body.index(b'"sha256":"') + 10
    body[place : place + 64] = hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(body)


def forge_model(path: Path, nodes: list[Any], root: Any = None, entries: Any = (), data: bytes = b"", **texts: str):
    """A file with this table of objects, whose last row is the model."""
    table = {"root": [len(nodes) - 1] if root is None else root, "nodes": nodes}
    versions = {"sklearn_version": sklearn.__version__}
    forge(path, {"model": json.dumps(table), **versions, **texts}, entries, data)


def entry(dtype: Any = "F64", shape: Any = (2,), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}
