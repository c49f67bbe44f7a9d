"""Files in the svmlight (libsvm) format, read some megabytes of lines at a time as CSR."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.blocks.block import Block, Piece
from mercer.data.blocks.files import Files, find_files
from mercer.data.blocks.source import FLOAT64, Layout, Source, array_piece
from mercer.data.libsvm import libsvm_fault
from mercer.data.separated import DAMAGE, damaged, not_utf8

SUFFIXES = (".svmlight", ".libsvm", ".svm")
# Bytes of text that are read at a time; they become about as many of CSR.
_CHUNK = 2**22
_MOST_FEATURES = 2**31 - 1


@dataclass(frozen=True)
class SvmlightSource(Source):
    """Files whose lines are ``label index:value ...``; column ``j`` of X is the feature ``j`` of the file."""

    files: Files
    n_features: int | None = None

    @classmethod
    def of(cls, paths: Any, n_features: int | None = None) -> SvmlightSource:
        """From a path, a pattern, a folder or a list of paths."""
        return cls(Files.of(find_files(paths, SUFFIXES)), n_features)

    @cached_property
    def layout(self) -> Layout:
        if self.n_features is not None:
            return Layout(self.n_features, None, FLOAT64, True, None, FLOAT64)
        n, d = 0, 0
        for X, _, _, _ in self._parts():
            n, d = n + X.shape[0], max(d, int(X.indices.max(initial=-1)) + 1)
        if n == 0 or d == 0:
            raise DataError(f"{self} has no {'rows' if n == 0 else 'features'}.")
        return Layout(d, None, FLOAT64, True, n, FLOAT64)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        d = self.layout.d
        for X, y, file, row in self._parts():
            widest = int(X.indices.max(initial=-1))
            if widest >= d:
                raise DataError(f"{file} has the feature {widest}, but n_features is {d}; raise n_features.")
            whole = Block(sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d)), y)
            yield array_piece(whole, file, row, FLOAT64)

    @property
    def stored(self) -> tuple[Files, ...]:
        return (self.files,)

    def __str__(self) -> str:
        return str(self.files)

    def _parts(self) -> Iterator[tuple[Any, Any, str, int]]:
        """Yield CSR rows, labels, the file and the number of the first row in it."""
        # Imported here and by name: scikit-learn's data sets bring packages that no other format needs.
        load = importlib.import_module("sklearn.datasets").load_svmlight_file
        for path in self.files.paths:
            row = 0
            for lines in _line_groups(path):
                try:
                    # zero_based=True keeps the numbers of the file, so that all files agree.
                    X, y = load(BytesIO(lines), n_features=_MOST_FEATURES, zero_based=True)
                except (ValueError, IndexError, OverflowError) as error:
                    raise DataError(_fault(path, error)) from error
                if X.shape[0]:
                    yield sp.csr_matrix(X), np.asarray(y), str(path), row
                    row += X.shape[0]


def _fault(path: Path, error: Exception) -> str:
    try:
        return libsvm_fault(path, str(error))
    except UnicodeDecodeError:
        return not_utf8(path)


def _line_groups(path: Path) -> Iterator[bytes]:
    """Yield whole lines of a file, some megabytes at a time."""
    try:
        with _open_bytes(path) as file:
            while lines := file.readlines(_CHUNK):
                yield b"".join(lines)
    except DAMAGE as error:
        raise DataError(damaged(path, error)) from error


def _open_bytes(path: Path) -> BinaryIO | gzip.GzipFile:
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    return path.open("rb")
