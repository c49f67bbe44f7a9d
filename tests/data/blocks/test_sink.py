"""Predictions written block by block."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mercer import Blocks, write_blocks
from mercer._errors import DataError

X = np.arange(20.0).reshape(10, 2)


def predictions(one):
    return [one(part) for part in (X[:4], X[4:8], X[8:])]


@pytest.mark.parametrize(
    "one",
    [
        lambda part: part,
        lambda part: part[:, 0].astype(np.float32),
        lambda part: part[:, 0].astype(np.int64),
        lambda part: part > 3,
    ],
)
def test_what_is_written_can_be_read(tmp_path, one):
    whole, blocks = one(X), predictions(one)
    names = ["prediction"] if whole.ndim == 1 else ["prediction_0", "prediction_1"]
    for name in ("a.npy", "a.csv", "a.parquet"):
        assert write_blocks(tmp_path / name, iter(blocks)) == 10
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), whole, strict=True)
    for table in (pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "a.parquet")):
        assert list(table.columns) == names
        np.testing.assert_array_equal(table.to_numpy().reshape(whole.shape), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.npy", "a.parquet"]


def test_text_and_names(tmp_path):
    blocks = [np.array(["u", "v"]), np.array(["longer"])]
    for name, read in (("a.csv", pd.read_csv), ("a.parquet", pd.read_parquet)):
        write_blocks(str(tmp_path / name), iter(blocks), columns=["label"])
        assert read(tmp_path / name)["label"].tolist() == ["u", "v", "longer"]
        write_blocks(tmp_path / name, [pd.DataFrame({"a": [1], "b": ["x"]}), pd.DataFrame({"a": [2], "b": ["y"]})])
        assert read(tmp_path / name).to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize("name", ["a.npy", "a.csv", "a.parquet"])
def test_a_file_appears_when_it_is_complete(tmp_path, name):
    path = tmp_path / name
    write_blocks(path, [X])
    before = path.read_bytes()

    def broken():
        yield X
        assert path.read_bytes() == before
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_blocks(path, broken())
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "blocks", "words"),
    [
        ("a.txt", [X], r"blocks are written to files that end in \.parquet, \.pq, \.csv, \.npy"),
        ("no/a.csv", [X], "the directory .*no does not exist"),
        ("a.npy", [], "there are no blocks to write"),
        ("a.csv", [], "there are no blocks to write"),
        ("a.parquet", [], "there are no blocks to write"),
        ("a.npy", [np.array(["u"])], "takes numbers, but a block is <U1; write text to .csv"),
        ("a.npy", [X, X.astype(np.float32)], "the block from row 11 on has"),
        ("a.npy", [X, X[:, 0]], "the block from row 11 on has"),
        ("a.csv", [X, X[:, :1]], r"the block from row 11 on has \['prediction'\], but the first block"),
        ("a.parquet", [np.arange(2), np.array(["u", "v"])], "the block from row 3 on is not of the types before"),
    ],
)
def test_blocks_that_cannot_be_written(tmp_path, name, blocks, words):
    with pytest.raises(DataError, match=words):
        write_blocks(tmp_path / name, iter(blocks))
    assert list(tmp_path.iterdir()) == []


def test_names_must_be_as_many_as_columns(tmp_path):
    with pytest.raises(DataError, match="columns has 1 names, but a block 2 columns"):
        write_blocks(tmp_path / "a.csv", [X], columns=["a"])


def test_blocks_in_and_blocks_out(tmp_path):
    np.save(tmp_path / "X.npy", X)
    blocks = Blocks(tmp_path / "X.npy", rows_per_block=3)
    write_blocks(tmp_path / "double.npy", (2 * block.X for block in blocks))
    np.testing.assert_array_equal(np.load(tmp_path / "double.npy"), 2 * X)
