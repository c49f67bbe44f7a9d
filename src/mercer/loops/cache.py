"""Files of compiled loops: one for each loop, types of its arguments, and level of the processor.

A file is valid for the versions of Numba and LLVM and for the source of all loops of the folder, because a loop is
inlined in others. It is named by what it was compiled for and written at once, so processes may compile side by side;
Numba's own index of files loses entries then, and two entries may have one file.

Files are read from the folder ``compiled`` of an installed package, and then from ``NUMBA_CACHE_DIR`` or, without it,
from the package's ``__pycache__`` (a container may have been built by another user), the user's folder for caches, and
a private temporary folder. They are written to the first of these that can be written, or not at all.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import uuid
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
from numba.core import config
from numba.core.caching import _CacheLocator
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from mercer.loops.levels import own_level


class LoopCache:
    """The stored code of one loop, for Numba's dispatcher."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._source = Path(function.__code__.co_filename)
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder that is written to."""
        folder = _folders(self._source, config.CACHE_DIR)[0]
        return None if folder is None else str(folder)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: a file that is no longer valid is written anew."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the stored code, or None."""
        context.refresh()
        if not self._enabled:
            return None
        name, seal = self._name_and_seal(signature, context.codegen())
        own, others = _folders(self._source, config.CACHE_DIR)
        payload = None
        for folder in others:
            with suppress(OSError):
                payload = payload or _read(folder / name, seal)
        if payload is None and own is not None:
            payload = _read(own / name, seal)
        return None if payload is None else CompileResult._rebuild(context, *pickle.loads(payload))

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store compiled code where a folder can be written."""
        folder = _folders(self._source, config.CACHE_DIR)[0]
        if not self._enabled or folder is None or result.lifted or result.library.has_dynamic_globals:
            return
        name, seal = self._name_and_seal(signature, result.codegen)
        payload = dumps(result._reduce())
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{uuid.uuid4().hex}.tmp"
        try:
            draft.write_bytes(_digest(seal, payload) + payload)
            draft.replace(folder / name)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            # On Windows, a file that another process reads cannot be replaced.
            if os.name != "nt":
                raise

    def _name_and_seal(self, signature: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the name of the file, and what its content was made from."""
        closure = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        bytecode = hashlib.sha256(self._function.__code__.co_code + dumps(closure)).hexdigest()
        key = repr((sys.implementation.cache_tag, signature, codegen.magic_tuple(), bytecode)).encode()
        name = f"{self._source.stem}.{self._function.__qualname__}-{hashlib.sha256(key).hexdigest()[:16]}.nbc"
        return name.replace("<", "").replace(">", ""), key + _stamp(self._source.parent)


def package_folder() -> tuple[Path | None, str]:
    """Return the folder that Mercer's loops are written to, and a name for what they are compiled from and for."""
    processor = (own_level() or llvmlite.binding.get_host_cpu_name(), config.CPU_NAME, config.CPU_FEATURES)
    version = hashlib.sha256(_stamp(Path(__file__).parent) + repr((sys.version_info[:2], processor)).encode())
    return _folders(Path(__file__), config.CACHE_DIR)[0], version.hexdigest()[:16]


def _read(path: Path, seal: bytes) -> bytes | None:
    """Return the content of a file if it is undamaged and was made from the same."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    digest, payload = content[:32], content[32:]
    return payload if digest == _digest(seal, payload) else None


def _digest(seal: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(seal).digest() + payload).digest()


@lru_cache
def _stamp(folder: Path) -> bytes:
    """Return a hash of the source of all loops in a folder and of what compiles them."""
    stamp = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted(folder.glob("*.py")):
        stamp.update(hashlib.sha256(path.read_bytes()).digest())
    return stamp.digest()


@lru_cache
def _folders(source: Path, chosen: str) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the folder to write to and read from, if there is one, and those to read from before it."""
    beside = source.parent
    if not beside.is_dir():
        # An archive or a frozen program: nothing tells whether a file is valid.
        return None, ()
    part = _CacheLocator.get_suitable_cache_subpath(str(source))
    candidates = [Path(chosen) / part]
    if not chosen:
        candidates = [beside / "__pycache__", Path(AppDirs("numba", appauthor=False).user_cache_dir) / part]
    folder = next(filter(_is_writable, candidates), None) or _private_folder(part)
    given = beside / "compiled"
    return folder, tuple(path for path in (given, *candidates) if path != folder)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private_folder(part: str) -> Path | None:
    """Return a temporary folder in which nobody else can place code; None if there is none."""
    if not hasattr(os, "getuid"):
        return None
    with suppress(OSError):
        parent = Path(tempfile.gettempdir()).resolve()
        # Where others may rename what is not theirs, a folder is not private.
        if parent.stat().st_mode & 0o022 and not parent.stat().st_mode & stat.S_ISVTX:
            return None
        top = parent / f"mercer-{os.getuid()}"
        with suppress(FileExistsError):
            top.mkdir(mode=0o700)
        found = top.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return top / part if _is_writable(top / part) else None
    return None
