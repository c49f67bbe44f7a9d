"""One pass: the memory budget, progress, and the size of blocks."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mercer import Blocks, config, on_progress
from mercer._errors import MemoryBudgetError, MissingDependencyError
from mercer.data.blocks.reading import default_rows
from mercer.data.blocks.source import Layout, Source
from mercer.engine import memory


def test_rows_of_a_block():
    assert [default_rows(Layout(d)) for d in (1, 16, 17, 1000, 10**6)] == [131072, 131072, 65536, 2048, 16]
    assert default_rows(Layout(10**6, sparse=True)) == 16384
    X = np.zeros((10, 4))
    with config(memory="1MiB"):
        assert Blocks(X).rows_per_block == 131072


@pytest.mark.parametrize("form", ["array", "file", "csr", "frame", "encoded"])
def test_blocks_are_reserved(tmp_path, form):
    X = np.random.default_rng(0).normal(size=(4000, 20))
    np.save(tmp_path / "X.npy", X)
    table = pd.DataFrame(X).rename(columns=str)
    make = {
        "array": lambda rows: Blocks(X, rows_per_block=rows),
        "file": lambda rows: Blocks(tmp_path / "X.npy", rows_per_block=rows),
        "csr": lambda rows: Blocks(sp.csr_matrix(X), rows_per_block=rows),
        "frame": lambda rows: Blocks(table, rows_per_block=rows).frames(),
        "encoded": lambda rows: Blocks(table, rows_per_block=rows).encoded(Numbers()),
    }[form]
    whole = make(4000)
    with config(memory="800 KB"):
        with pytest.raises(MemoryBudgetError, match=r"blocks of 4,000 rows with 20 columns .*smaller rows_per_block"):
            list(whole)
        with memory.track() as account:
            assert sum(block.rows for block in make(1000)) == 4000
    least = 2 if form != "file" else 3
    assert least * X.nbytes / 4 <= account.peak <= 2 * least * X.nbytes / 4 and account.reserved == 0


class Numbers:
    def transform(self, X):
        return X.to_numpy()


def test_few_rows_need_little_and_no_thread(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((10, 4)))
    blocks = Blocks(tmp_path / "X.npy")
    threads = threading.active_count()
    with config(memory="1 KB"):
        for block in blocks:
            assert block.rows == 10 and threading.active_count() == threads


def test_samples_are_reserved():
    X = np.zeros((4000, 20))
    with config(memory="800 KB"):
        blocks = Blocks(X, rows_per_block=100)
        with pytest.raises(MemoryBudgetError, match=r"a sample of 4,000 rows with 20 columns would take 1\.2 MiB"):
            blocks.sample(10_000)
        assert blocks.survey(100).sample.rows == 100


def test_a_pass_that_is_left_gives_its_memory_back():
    X = np.zeros((4000, 20))
    with memory.track() as account:
        for _ in Blocks(X, rows_per_block=1000):
            break
        assert account.reserved == 0 and account.peak > 0


@pytest.mark.parametrize("ahead", [True, False])
def test_reading_ahead_changes_nothing(tmp_path, monkeypatch, ahead):
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.save(tmp_path / "X.npy", X)
    blocks = Blocks(tmp_path / "X.npy", rows_per_block=7)
    assert Source.ahead
    monkeypatch.setattr(Source, "ahead", ahead)
    assert np.concatenate([block.X for block in blocks]).tobytes() == X.tobytes()
    assert blocks.fingerprint == Blocks(X).fingerprint


def test_progress_counts_blocks():
    seen = []
    with on_progress(lambda *step: seen.append(step)):
        list(Blocks(np.zeros((10, 1)), rows_per_block=4))
        list(Blocks(lambda: iter([np.zeros((2, 1))])))
    assert seen == [("blocks", 1, 3), ("blocks", 2, 3), ("blocks", 3, 3), ("blocks", 1, None)]


@pytest.mark.parametrize(("name", "package"), [("a.csv", "pandas"), ("a.parquet", "pyarrow")])
def test_packages_that_are_not_there(tmp_path, monkeypatch, name, package):
    table = pd.DataFrame({"x": [1.0]})
    table.to_csv(tmp_path / name, index=False) if name == "a.csv" else table.to_parquet(tmp_path / name)
    for module in (package, f"{package}.dataset"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=f"needs the package '{package}'.*mercer.tables"):
        Blocks(tmp_path / name)
