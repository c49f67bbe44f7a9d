"""Locks of files: one holder at a time, and none where the file system has no locks."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from mercer.engine import locks


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("ab") as first, path.open("ab") as second:
        assert locks.lock(first) and not locks.lock(second)
        # What is locked can be read and written.
        first.write(b"some")
        first.flush()
        assert path.read_bytes() == b"some"
    with path.open("ab") as third:
        assert locks.lock(third)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "_lock", fails)
    with (tmp_path / "file").open("ab") as file:
        assert locks.lock(file)
