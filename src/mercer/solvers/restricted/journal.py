"""A file of the answers of passes, from which work goes on after an interruption and ends with the same bits."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import Matrix, Vector
from mercer.engine.drafts import written_in_one_stroke

_KIND, _VERSION = "mercer checkpoint", 2
# Sums in the middle of a pass are written at most this often, in seconds.
_EVERY = 5.0


class Journal:
    """Answers of passes, in the order in which a solver asks for them.

    A solver is deterministic: with the same answers it takes the same steps. So the answers are all that is kept, and
    what follows from them is computed again. The file is written anew after each pass, and in the middle of long ones,
    in one stroke.

    Parameters
    ----------
    path : str or Path
    identity : str
        What the work depends on: the data, the kernel, the landmarks, parameters and versions. A file of other work is
        an error.

    Raises
    ------
    DataError
        If the file is not a checkpoint, is damaged, or belongs to other work.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.checkpoint"
    >>> Journal(path, "a fit").keep("first", np.ones((2, 1)), np.zeros(1))
    >>> again = Journal(path, "a fit")
    >>> again.recall("first")[0].ravel().tolist(), again.recall("second")
    ([1.0, 1.0], None)
    """

    def __init__(self, path: str | Path, identity: str) -> None:
        self.path, self.identity = Path(path), identity
        self._answers: list[tuple[Matrix, Vector]] = []
        self._keys: list[str] = []
        self._partial: tuple[str, int, Matrix, Vector] | None = None
        self._next, self._written = 0, time.monotonic()
        if self.path.exists():
            self._load()

    @property
    def passes(self) -> int:
        """How many passes are known."""
        return len(self._answers)

    def recall(self, key: str) -> tuple[Matrix, Vector] | None:
        """The answer of the next pass, if it is known and has this key."""
        if self._next >= len(self._answers) or self._keys[self._next] != key:
            return None
        self._next += 1
        products, sums = self._answers[self._next - 1]
        return products.copy(), sums.copy()

    def begun(self, key: str) -> tuple[int, Matrix, Vector] | None:
        """How many blocks of the pass with this key were summed, and their sums."""
        if self._partial is None or self._partial[0] != key:
            return None
        partial, self._partial = self._partial[1:], None
        return partial

    def note(self, key: str, blocks: int, products: Matrix, sums: Vector) -> None:
        """Keep the sums of the first blocks of a pass, if the last ones were written some seconds ago."""
        if time.monotonic() - self._written >= _EVERY:
            self._write((key, blocks, products, sums))

    def keep(self, key: str, products: Matrix, sums: Vector) -> None:
        """Keep the answer of a pass; known answers that were not used belong to other steps, and are dropped."""
        self._keys = [*self._keys[: self._next], key]
        self._answers = [*self._answers[: self._next], (products.copy(), sums.copy())]
        self._next = len(self._answers)
        self._write(None)

    def remove(self) -> None:
        """Remove the file, when the work is done."""
        self.path.unlink(missing_ok=True)

    def _write(self, partial: tuple[str, int, Matrix, Vector] | None) -> None:
        header: dict[str, Any] = {
            "kind": _KIND,
            "version": _VERSION,
            "identity": self.identity,
            "answers": self._keys,
            "begun": None if partial is None else partial[:2],
        }
        pairs = self._answers if partial is None else [*self._answers, partial[2:]]
        header["checksum"] = _checksum(header, pairs)
        arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
        for number, (products, sums) in enumerate(pairs):
            arrays[f"products{number}"], arrays[f"sums{number}"] = products, sums
        try:
            with written_in_one_stroke(self.path) as (file, _):
                np.savez(file, allow_pickle=False, **arrays)
        except OSError as error:
            raise DataError(
                f"the checkpoint {self.path} cannot be written ({error.strerror or error}). Make room and fit "
                "again: the work goes on from the last checkpoint that was written whole."
            ) from error
        self._written = time.monotonic()

    def _load(self) -> None:
        try:
            # For a file that is not an archive, NumPy's message is about pickles.
            if not zipfile.is_zipfile(self.path):
                raise ValueError("it is truncated, or not a checkpoint")
            with np.load(self.path, allow_pickle=False) as stored:
                header = json.loads(stored["header"].tobytes())
                if header["kind"] != _KIND or header["version"] != _VERSION:
                    raise DataError(f"{self.path} is no checkpoint of this version of Mercer; choose another file.")
                if header["identity"] != self.identity:
                    raise DataError(
                        f"{self.path} is the checkpoint of another fit: its data, kernel, landmarks or parameters are "
                        "not those of this one. Choose another file, or remove it."
                    )
                keys, started_pass = header["answers"], header["begun"]
                pairs = [_pair(stored, number) for number in range(len(keys))]
                partial = [] if started_pass is None else [_pair(stored, len(pairs))]
                # A damaged archive may be read without an error.
                if header.pop("checksum") != _checksum(header, [*pairs, *partial]):
                    raise ValueError("its checksum is not that of its contents")
                self._keys, self._answers = keys, pairs
                self._partial = None if started_pass is None else (*started_pass, *partial[0])
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{self.path} cannot be read as a checkpoint ({error}); choose another file, or remove it."
            ) from error


def _checksum(header: dict[str, Any], pairs: Sequence[tuple[Matrix, Vector]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for pair in pairs:
        for array in pair:
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _pair(stored: np.lib.npyio.NpzFile, number: int) -> tuple[Matrix, Vector]:
    products, sums = stored[f"products{number}"], stored[f"sums{number}"]
    if products.dtype != np.float64 or products.ndim != 2 or sums.dtype != np.float64 or sums.ndim != 1:
        raise ValueError("its arrays have other types or shapes")
    return products, sums
