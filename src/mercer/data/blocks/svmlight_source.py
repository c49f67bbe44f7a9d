"""Files in the svmlight (libsvm) format, read some megabytes of lines at a time as CSR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.blocks.block import Block, Piece
from mercer.data.blocks.files import Files, find_files
from mercer.data.blocks.source import FLOAT64, Layout, Source, array_piece
from mercer.data.libsvm import first_feature, read_parts, require_features
from mercer.data.text_files import TextFile

SUFFIXES = (".svmlight", ".libsvm", ".svm")


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
        n, d, first = 0, 0, [np.zeros(0)]
        for X, _, _, _ in self._parts():
            n, d = n + X.shape[0], max(d, int(X.indices.max(initial=-1)) + 1)
            first.append(first_feature(X))
        if n == 0 or d == 0:
            raise DataError(f"{self} has no {'rows' if n == 0 else 'features'}.")
        require_features(np.concatenate(first), d, str(self))
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
        for path in self.files.paths:
            row = 0
            for X, y in read_parts(TextFile(path)):
                yield X, y, str(path), row
                row += X.shape[0]
