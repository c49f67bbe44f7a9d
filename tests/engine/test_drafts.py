"""Files are written in one stroke: no failure and no kill harms the old file, and no draft stays."""

from __future__ import annotations

import builtins
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer._errors import ModelFileError
from mercer.cli.files import write_atomically
from mercer.engine import drafts
from mercer.engine.drafts import remove_left_drafts, written_in_one_stroke

HOLDER = """
import sys, time
from pathlib import Path
from mercer.engine.drafts import written_in_one_stroke
with written_in_one_stroke(Path(sys.argv[1])) as (file, draft):
    file.write(b"half of a file")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""
SAVER = """
import sys
import numpy as np
import mercer
for number in range(10**6):
    mercer.save([np.full(2_000_000, float(number))], sys.argv[1])
    print(number, flush=True)
"""


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def held(path: Path, program: str = HOLDER) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


needs_locks = pytest.mark.skipif(drafts.fcntl is None, reason="there are no locks of files on this system")


@needs_locks
def test_the_next_file_removes_what_a_killed_process_left_and_nothing_else(tmp_path):
    (tmp_path / ".notes.draft").write_text("mine")
    left, writing = held(tmp_path / "a.mercer"), held(tmp_path / "b.mercer")
    assert len(names(tmp_path)) == 3
    mercer.save([1.0], tmp_path / "c.mercer")
    assert len(names(tmp_path)) == 4, "drafts that are being written stay"
    killed(left)
    mercer.save([1.0], tmp_path / "c.mercer")
    files = names(tmp_path)
    assert [name for name in files if name.startswith(".a.mercer")] == []
    assert len([name for name in files if name.startswith(".b.mercer")]) == 1
    killed(writing)
    write_atomically(tmp_path / "c.csv", lambda draft: draft.write_text("a\n1\n"))
    assert names(tmp_path) == [".notes.draft", "c.csv", "c.mercer"]


@needs_locks
@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_model_that_is_saved_again_and_again_survives_every_kill(tmp_path, kills):
    path = tmp_path / "model.mercer"
    for number in range(kills):
        process = held(path, SAVER)
        time.sleep(0.05 + 0.16 * number / kills)
        killed(process)
        values = mercer.load(path)[0]
        assert values.shape == (2_000_000,)
        assert (values == values[0]).all()
    mercer.save([1.0], path)
    assert names(tmp_path) == ["model.mercer"]


@needs_locks
def test_drafts_of_other_machines_and_earlier_starts_are_left_until_they_are_old(tmp_path):
    machine, start = drafts._here()
    other = tmp_path / f".m.{'0' * 12}-{start}-{'a' * 16}.draft"
    earlier = tmp_path / f".m.{machine}-{'0' * 12}-{'a' * 16}.draft"
    other.touch()
    earlier.touch()
    remove_left_drafts(tmp_path)
    assert len(names(tmp_path)) == 2
    old = time.time() - 2 * 86_400
    os.utime(other, (old, old))
    os.utime(earlier, (old, old))
    remove_left_drafts(tmp_path)
    assert names(tmp_path) == [other.name]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_atomically(tmp_path / "link.csv", lambda draft: draft.write_text("new"))
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


# ---- every step fails once

ERRORS = {
    "no space": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "input or output": OSError(errno.EIO, os.strerror(errno.EIO)),
    "no memory": MemoryError(),
    "Ctrl-C": KeyboardInterrupt(),
}


class Failing:
    """Files whose writes and flushes fail, and functions of the system that do, at the given one of their calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseException, at: int) -> None:
        self.calls, self.at, self.error = 0, at, error
        for name in ("open", "fsync", "replace", "fdopen"):
            monkeypatch.setattr(drafts.os, name, self._counting(getattr(os, name), name))

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise self.error

    def _counting(self, function, name):
        def call(*args, **kwargs):
            self._step()
            result = function(*args, **kwargs)
            return _File(result, self._step) if name == "fdopen" else result

        return call


class _File:
    def __init__(self, file, step) -> None:
        self._file, self._step = file, step

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        if name in ("write", "flush", "seek"):
            self._step()
        return getattr(self._file, name)


MODEL = [np.arange(5.0), {"a": np.ones((3, 3))}, "text"]
FRAME = pd.DataFrame({"price": [1.0, 2.0]})
WRITERS = {
    "model": lambda path: mercer.save(MODEL, path),
    "table": lambda path: write_atomically(path, lambda draft: FRAME.to_csv(draft, index=False)),
    "parquet": lambda path: write_atomically(path, lambda draft: FRAME.to_parquet(draft, index=False)),
    "bytes": lambda path: _bytes(path),
}


def _bytes(path: Path) -> None:
    with written_in_one_stroke(path) as (file, _):
        file.write(b"new")


@pytest.mark.parametrize("exists", [True, False], ids=["replacing", "new"])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_step_fails_once_and_the_old_file_is_whole(writer, error, exists, tmp_path):
    if writer == "parquet":
        pytest.importorskip("pyarrow", reason="pandas writes Parquet by pyarrow")
    path = tmp_path / "file"
    steps = 0
    WRITERS[writer](path)
    new = path.read_bytes()
    for at in range(1, 60):
        path.unlink(missing_ok=True)
        if exists:
            path.write_bytes(b"old")
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, ERRORS[error], at)
            try:
                WRITERS[writer](path)
            except (ModelFileError, OSError, MemoryError, KeyboardInterrupt):
                steps += 1
        if failing.calls < at:
            break
        result = path.read_bytes() if path.exists() else None
        assert result in (b"old" if exists else None, new), at
        assert names(tmp_path) in ([], ["file"]), at
    assert steps >= 5
    assert path.read_bytes() == new


def test_a_failure_of_every_write_of_a_table_leaves_the_old_one(tmp_path, monkeypatch):
    """Tables are written by pandas, which opens the draft by its name."""
    path = tmp_path / "predictions.csv"
    path.write_text("old")
    honest = builtins.open

    def full(file, mode="r", *args, **kwargs):
        if "w" in mode:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return honest(file, mode, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, lambda draft: FRAME.to_csv(draft, index=False))
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["predictions.csv"]
