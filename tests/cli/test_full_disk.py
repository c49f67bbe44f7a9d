"""Predictions on a disk that fills up: the system refuses a write of pandas or pyarrow, at any byte of the file."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer.cli import main
from mercer.engine import drafts
from mercer.estimators.table import TableModel

resource = pytest.importorskip("resource", reason="limits of the size of files are set otherwise on this system")

N = 1_500
OLD = b"old"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and so many rows that their predictions take several writes of each writer."""
    folder = tmp_path_factory.mktemp("full disk")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N)})
    frame.assign(y=frame["a"] ** 2).iloc[:60].to_csv(folder / "train.csv", index=False)
    frame.to_csv(folder / "new.csv", index=False)
    model = str(folder / "m.mercer")
    assert main(["fit", str(folder / "train.csv"), "-t", "y", "-q", "--set", "alpha=1", "-o", model]) == 0
    return folder


@pytest.fixture
def predictions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions, made once: what is tried again and again is how they are written."""
    values = mercer.load(folder / "m.mercer").predict(pd.read_csv(folder / "new.csv"))
    monkeypatch.setattr(TableModel, "predict", lambda *_, **__: values)


@contextlib.contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Every write to a file beyond so many bytes fails, also one that compiled code makes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _predict(folder: Path, out: Path) -> int:
    return main(["predict", str(folder / "m.mercer"), str(folder / "new.csv"), "--out", str(out)])


def _check_failure(out: Path, exists: bool, message: str, words: str) -> None:
    assert words in refusal(message)
    assert [path.name for path in out.parent.iterdir()] == ([out.name] if exists else [])
    assert not exists or out.read_bytes() == OLD


@pytest.mark.slow
@pytest.mark.usefixtures("predictions")
@pytest.mark.parametrize(
    ("suffix", "exists"), [(".csv", True), (".tsv", False), (".parquet", True), (".parquet", False)]
)
def test_a_write_that_fails_at_any_byte_leaves_the_old_file(capsys, folder, tmp_path, suffix, exists):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="predictions are written as Parquet by pyarrow")
    out = tmp_path / f"p{suffix}"
    assert _predict(folder, out) == 0
    whole = out.read_bytes()
    out.unlink()
    if exists:
        out.write_bytes(OLD)
    capsys.readouterr()
    # The first byte, the first and the last block of what is written in pieces, the footer of Parquet, the last byte.
    for size in (0, 1, 4, 5000, len(whole) // 2, len(whole) - 600, len(whole) - 8, len(whole) - 1):
        with no_file_beyond(size):
            code = _predict(folder, out)
        assert code == 2
        _check_failure(out, exists, capsys.readouterr().err, os.strerror(errno.EFBIG))
    with no_file_beyond(len(whole)):
        assert _predict(folder, out) == 0
    assert out.read_bytes() == whole


@pytest.mark.usefixtures("predictions")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_step_that_fails_around_the_writer_leaves_the_old_file(capsys, monkeypatch, folder, tmp_path, suffix, step):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="predictions are written as Parquet by pyarrow")
    out = tmp_path / f"p{suffix}"
    out.write_bytes(OLD)

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(drafts.os, step, fail)
        code = _predict(folder, out)
    assert code == 2
    _check_failure(out, True, capsys.readouterr().err, os.strerror(errno.EIO))
