"""Hashes of data, and the versions of what computed a report, so that it can be reproduced."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.objects import Objects

_PACKAGES = ("mercer", "numpy", "scipy", "numba", "scikit-learn")


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of Python and of the packages that compute, and the system.

    >>> [name for name, _ in versions()][:2]
    ['python', 'mercer']
    """
    packages = [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return (("python", platform.python_version()), *packages, ("system", platform.platform(terse=True)))


def of_file(path: Path) -> str | None:
    """Return the SHA-256 of a file, as ``sha256sum`` prints it; None for a folder or a name that is not a file."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_rows(X: Any, y: Any = None) -> str:
    """Return a SHA-256 of rows and targets: of the shape, the type and the bytes of arrays, of the text of objects.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or objects
    y : array-like, optional

    Examples
    --------
    >>> of_rows(np.eye(2)) == of_rows(np.eye(2)), of_rows(np.eye(2)) == of_rows(np.eye(2), [0, 1])
    (True, False)
    """
    digest = hashlib.sha256()
    for part in (X, y):
        for piece in () if part is None else _pieces(part):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(data: Any) -> list[bytes]:
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        return [piece for place, name in enumerate(data.columns) for piece in _column(name, data.iloc[:, place])]
    if sp.issparse(data):
        rows = data.tocsr()
        return [repr(rows.shape).encode(), *(_bytes(part) for part in (rows.data, rows.indices, rows.indptr))]
    if isinstance(data, Objects):
        return [repr(item).encode() for item in data]
    try:
        array = np.asarray(data)
    except ValueError:
        # Lists of different lengths, such as series.
        return [repr(item).encode() for item in data]
    return [f"{array.shape}{array.dtype.str}".encode(), _bytes(array)]


def _column(name: Any, values: Any) -> list[bytes]:
    return [str(name).encode("utf-8", "surrogatepass"), *_pieces(values.to_numpy())]


def _bytes(array: Any) -> bytes:
    if array.dtype.hasobject:
        return "\x1f".join(map(repr, array.ravel().tolist())).encode("utf-8", "surrogatepass")
    return np.ascontiguousarray(array).tobytes()
