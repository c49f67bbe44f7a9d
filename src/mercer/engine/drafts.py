"""Files that are written in one stroke: a draft beside the file, locked by its process, then put in its place.

A process that is killed leaves its draft behind, but not the lock. So the next file that is written beside it finds a
draft that nobody holds, and removes it; the number of a process, which others may have by then, is never looked at.
Locks are known to the kernel that gave them: drafts of other machines in a shared folder, whose names say so, stay,
but for those of this machine before it was started anew, a day later.
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
except ImportError:  # Windows, where drafts of killed processes stay.
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\..*\.([0-9a-f]{12})-([0-9a-f]{12})-[0-9a-f]{16}\.draft", re.DOTALL)
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
_DAY = 86_400.0


@contextmanager
def written_in_one_stroke(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A draft of ``target``, open and by its name; at the end of the block it becomes the file, on disk.

    If anything fails the draft is removed, and the old file, if there was one, is as it was. What processes that
    were killed have left in that directory is removed first.

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
                # Under the lock, so that nobody removes it in between.
                os.replace(draft, target)
        if fcntl is None:
            os.replace(draft, target)
    except BaseException:
        _remove(draft)
        raise
    _sync_directory(target.parent)


def _new_draft(target: Path) -> tuple[BinaryIO, Path]:
    """A new draft, open and held."""
    machine, start = _here()
    while True:
        draft = target.with_name(f".{target.name[:80]}.{machine}-{start}-{secrets.token_hex(8)}.draft")
        handle = -1
        try:
            handle = os.open(draft, _NEW, 0o666)
            if fcntl is not None:
                # Where there are no locks, nobody else gets one either, so that nobody removes it.
                with suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_EX)
            if draft.exists():
                return os.fdopen(handle, "w+b"), draft
            # Another process held it before we did, and took it for one that was left.
            os.close(handle)
        except BaseException:
            if handle >= 0:
                os.close(handle)
            _remove(draft)
            raise


def _remove(draft: Path) -> None:
    # What cannot be removed is not held any more, so the next file that is written here removes it.
    with suppress(OSError):
        draft.unlink(missing_ok=True)


def remove_left_drafts(directory: Path) -> None:
    """Remove the drafts in a directory whose processes are gone; what cannot be looked at stays."""
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
    """Remove a draft of this machine unless a process holds it."""
    handle = os.open(draft, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        # Raises BlockingIOError if it is held.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.unlink()
    finally:
        os.close(handle)


@cache
def _here() -> tuple[str, str]:
    """This machine, and since when it runs: short marks for the names of drafts."""
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
    # The new name is durable once the directory is; systems that cannot open one (Windows) need no such step.
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
