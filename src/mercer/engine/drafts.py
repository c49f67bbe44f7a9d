"""Atomic writes: a draft in the same directory, locked by its process, replaces the file when it is complete.

A killed process leaves its draft behind, but not its lock. The next write in the same directory finds the unlocked
draft and removes it. Process numbers are not used, because they are reused. Locks are only known on the machine that
granted them. So the names of drafts contain the machine and its start: drafts of other machines in a shared folder are
left alone, and drafts from before the last start of this machine are removed after a day.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where the drafts of killed processes remain.
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\..*\.([0-9a-f]{12})-([0-9a-f]{12})-[0-9a-f]{16}\.draft", re.DOTALL)
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
_DAY = 86_400.0


@contextmanager
def written_in_one_stroke(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a draft of ``target``, as a file and its path; at the end of the block it replaces the file, on disk.

    If anything fails, the draft is removed and an old file is unchanged. Drafts of killed processes in that directory
    are removed first.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    target = Path(os.path.realpath(target))
    remove_left_drafts(target.parent)
    file, draft = _new_draft(target)
    try:
        with file:
            yield file, draft
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:
                # Under the lock, so that no other process removes it in between.
                os.replace(draft, target)
        if fcntl is None:
            os.replace(draft, target)
    except BaseException:
        _remove(draft)
        raise
    _sync_directory(target.parent)


def _new_draft(target: Path) -> tuple[BinaryIO, Path]:
    """Create, open and lock a new draft."""
    machine, start = _here()
    while True:
        draft = target.with_name(f".{target.name[:80]}.{machine}-{start}-{secrets.token_hex(8)}.draft")
        handle = -1
        try:
            handle = os.open(draft, _NEW, 0o666)
            if fcntl is not None:
                # On a file system without locks no other process gets one either, so none removes it.
                with suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_EX)
            if draft.exists():
                return os.fdopen(handle, "w+b"), draft
            # Another process locked it first, and removed it as a draft of a killed process.
            os.close(handle)
        except BaseException:
            if handle >= 0:
                os.close(handle)
            _remove(draft)
            raise


def _remove(draft: Path) -> None:
    # If this fails, the draft is unlocked, so the next write in this directory removes it.
    with suppress(OSError):
        draft.unlink(missing_ok=True)


def remove_left_drafts(directory: Path) -> None:
    """Remove the drafts of ended processes from a directory; those that cannot be opened remain."""
    if fcntl is None:
        return
    machine, start = _here()
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is None or match[1] != machine:
                continue
            with suppress(OSError):
                if match[2] == start:
                    _remove_if_free(Path(entry.path))
                elif time.time() - entry.stat(follow_symlinks=False).st_mtime > _DAY:
                    os.unlink(entry.path)


def _remove_if_free(draft: Path) -> None:
    """Remove a draft of this machine unless a process has locked it."""
    handle = os.open(draft, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        # Raises BlockingIOError if it is locked.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.unlink()
    finally:
        os.close(handle)


@cache
def _here() -> tuple[str, str]:
    """Short codes for this machine and for its last start, for the names of drafts."""
    identity, start = [socket.gethostname()], "unknown"
    for place in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError):
            identity.append(Path(place).read_text(errors="replace").strip())
    with suppress(OSError):
        start = Path("/proc/sys/kernel/random/boot_id").read_text(errors="replace").strip()
    return _mark("|".join(identity)), _mark(start)


def _mark(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _sync_directory(directory: Path) -> None:
    # The new name is on disk once the directory is. Windows cannot open directories and does not need this.
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
