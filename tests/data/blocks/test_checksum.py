"""Later passes must find the rows of the first one."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from mercer import Blocks
from mercer._errors import DataError


def write(path, X):
    """Rewrite a file so that neither its size nor its time shows it."""
    before = path.stat() if path.exists() else None
    np.save(path, X)
    if before is not None:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def files(tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    write(tmp_path / "a.npy", X[:12])
    write(tmp_path / "b.npy", X[12:])
    return tmp_path, X


def test_a_value_that_changes_between_passes(files):
    folder, X = files
    blocks = Blocks(folder, rows_per_block=5)
    list(blocks)
    changed = X[12:].copy()
    changed[5, 1] = -1.0
    write(folder / "b.npy", changed)
    seen = []
    with pytest.raises(DataError, match=r"block 3 \(rows 16 to 20, from .*b.npy\) has changed since it was first"):
        seen += [block.rows for block in blocks]
    with pytest.raises(DataError, match="make new Blocks"):
        blocks.survey()
    # Known from the passes that stopped early, too.
    fresh = Blocks(folder, rows_per_block=5)
    next(iter(fresh))
    changed[0, 0] += 1
    write(folder / "b.npy", changed)
    list(fresh)
    changed[0, 0] += 1
    write(folder / "b.npy", changed)
    with pytest.raises(DataError, match=r"block 2 .*a\.npy, .*b\.npy"):
        list(fresh)


def test_blocks_before_the_change_are_yielded(files):
    folder, X = files
    blocks = Blocks(folder, rows_per_block=5)
    list(blocks)
    write(folder / "b.npy", X[12:] + 1)
    passed = iter(blocks)
    np.testing.assert_array_equal(next(passed).X, X[:5])
    np.testing.assert_array_equal(next(passed).X, X[5:10])
    with pytest.raises(DataError, match="block 2"):
        next(passed)


def test_a_file_that_has_changed_is_seen_before_work_starts(files):
    folder, X = files
    blocks = Blocks(folder)
    np.save(folder / "b.npy", X)
    with pytest.raises(DataError, match=r"b\.npy has changed since these Blocks were made \(320 bytes, now 608\)"):
        iter(blocks).__next__()
    os.remove(folder / "b.npy")
    with pytest.raises(DataError, match=r"b\.npy cannot be read any more: No such file"):
        list(blocks)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (18, "block 3 .* it has 3 rows, and had 5"),
        (15, "this pass ended after 15 rows, an earlier one after 20"),
        (23, r"block 4 .* was not there before: an earlier pass had 20 rows"),
        (0, r"the first 5 rows of load\(\) are not those of its first call"),
    ],
)
def test_a_function_that_yields_other_rows_the_next_time(later, words):
    X = np.arange(100.0).reshape(50, 2)
    counts = [20, 20]

    def load():
        rows = X[: counts.pop(0) if counts else later]
        yield rows[:5]
        yield rows[5:]

    blocks = Blocks(load, rows_per_block=5)
    assert blocks.n == 20
    with pytest.raises(DataError, match=words):
        list(blocks)
    with pytest.raises(DataError, match=words):
        list(blocks)


@pytest.mark.parametrize("what", ["y", "sample_weight", "text", "frame"])
def test_targets_weights_and_tables_count(what):
    X, y, weights = np.eye(4), np.zeros(4), np.ones(4)
    text = np.array(["a", "b", "ab", ""], dtype=object)
    table = pd.DataFrame({"a": text, "b": y})
    options = {"text": (X, text), "frame": (table,)}.get(what, (X, y))
    blocks = Blocks(*options, sample_weight=weights)
    blocks = blocks.frames() if what == "frame" else blocks
    list(blocks)
    if what == "frame":
        table.loc[2, "a"] = "c"
    else:
        {"y": y, "sample_weight": weights, "text": text}[what][2] = "c" if what == "text" else 7.0
    with pytest.raises(DataError, match="must not change while they are in use"):
        list(blocks)


def test_texts_are_not_joined():
    X = np.ones((2, 1))
    first, second = (Blocks(X, np.array(text, object)).fingerprint for text in (["ab", "c"], ["a", "bc"]))
    assert first != second
