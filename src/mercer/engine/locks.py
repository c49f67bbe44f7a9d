"""Locks of open files, which the system releases when the process ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from typing import IO

# On Windows nobody can read or write the locked part of a file, so this part lies beyond the end of any file.
_BEYOND = 2**30
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock(file: IO[bytes]) -> bool:
    """Lock a file until it is closed, or the process ends; return False if it is locked already.

    Another process cannot lock the file then, nor this one with another file object. File systems that have no locks
    answer True.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as first, open(first.name, "rb") as second:
    ...     lock(first), lock(second)
    (True, False)
    """
    try:
        _lock(file.fileno())
    except OSError as error:
        return error.errno not in _TAKEN
    return True
