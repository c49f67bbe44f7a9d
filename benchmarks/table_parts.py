"""What was measured of each table, split and contender, in one file that an interrupted run leaves complete.

Errors of single rows are kept, so that contenders of different runs are compared on the same test rows. What another
version of a package has measured counts as missing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parent / "tables.sqlite"
_TABLE = """CREATE TABLE IF NOT EXISTS parts (
    name TEXT, split INTEGER, contender TEXT, version TEXT, errors BLOB, seconds REAL, coverage REAL,
    PRIMARY KEY (name, split, contender))"""
# The modules of ours by which the rule of choice is written.
_FOLDER = "estimators/tabular"
_FILES = ("data/column_encoder.py", "data/column_features.py")


@dataclass(frozen=True)
class Part:
    """The errors of the test rows of a split (squared, or log losses), seconds of the fit, coverage of intervals."""

    errors: np.ndarray
    seconds: float
    coverage: float | None = None


class Parts:
    """The file of the parts; several processes may add to it at once.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = Parts(Path(folder) / "parts")
    ...     parts.add("wine", 0, "CatBoost", "1.2", Part(np.array([0.5, 0.25]), 3.0))
    ...     parts.get("wine", 0, "CatBoost", "1.2").errors.tolist(), parts.get("wine", 0, "CatBoost", "1.3")
    ([0.5, 0.25], None)
    """

    def __init__(self, path: Path = FILE) -> None:
        self._path = path
        with closing(self._open()) as file, file:
            file.execute(_TABLE)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60.0)

    def add(self, name: str, split: int, contender: str, version: str, part: Part) -> None:
        """Store a part in the place of an older one."""
        values = (
            name, split, contender, version, part.errors.astype("<f4").tobytes(), part.seconds, part.coverage,
        )  # fmt: skip
        with closing(self._open()) as file, file:
            file.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def get(self, name: str, split: int, contender: str, version: str) -> Part | None:
        """A part, if this version has measured it."""
        with closing(self._open()) as file:
            found = file.execute(
                "SELECT errors, seconds, coverage FROM parts WHERE (name, split, contender, version) = (?, ?, ?, ?)",
                (name, split, contender, version),
            ).fetchone()
        return None if found is None else Part(np.frombuffer(found[0], "<f4").astype(np.float64), *found[1:])


def our_version(classifies: bool) -> str:
    """A digest of the code by which ours chooses."""
    source = importlib.util.find_spec("mercer")
    assert source is not None and source.origin is not None
    root = Path(source.origin).parent
    own = f"estimators/tabular_{'classifier' if classifies else 'regressor'}.py"
    files = [*(root / _FOLDER).glob("*.py"), *(root / name for name in (*_FILES, own))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()[:12]
