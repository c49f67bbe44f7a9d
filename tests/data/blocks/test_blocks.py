"""Blocks of rows: the same rows, bits, fingerprint, sample and survey however they are cut into files and blocks."""

from __future__ import annotations

import pickle
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from mercer import Blocks
from mercer._errors import DataError, ParameterError
from mercer.data.blocks.block import Block, join
from mercer.kernels import RBF

NAMES = ["a", "b", "c"]


def rows_of(n, seed=0):
    """Numbers that every format gives back exactly, whole targets and weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-64, 64, (n, 3)) / 8
    return X, rng.integers(0, 4, n) - 1.0, rng.integers(0, 3, n).astype(float)


def table_of(X, y, weights):
    return pd.DataFrame(X, columns=NAMES).assign(y=y, w=weights)


def write_csv(folder, parts):
    for number, part in enumerate(parts):
        table_of(*part).to_csv(folder / f"{number:03}.csv", index=False)
    return lambda rows: Blocks(folder, "y", sample_weight="w", rows_per_block=rows)


def write_parquet(folder, parts):
    for number, part in enumerate(parts):
        table_of(*part).to_parquet(folder / f"{number:03}.parquet", index=False, row_group_size=7)
    return lambda rows: Blocks(str(folder / "*.parquet"), "y", sample_weight="w", rows_per_block=rows)


def write_arrow(folder, parts):
    for number, part in enumerate(parts):
        table_of(*part).to_feather(folder / f"{number:03}.arrow")
    return lambda rows: Blocks(folder, "y", sample_weight="w", rows_per_block=rows)


def write_npy(folder, parts):
    for number, part in enumerate(parts):
        for name, values in zip("Xyw", part, strict=True):
            np.save(folder / f"{name}{number:03}.npy", values)
    files = [str(folder / f"{name}*.npy") for name in "Xyw"]
    return lambda rows: Blocks(files[0], files[1], sample_weight=files[2], rows_per_block=rows)


def write_svmlight(folder, parts):
    for number, (X, y, _) in enumerate(parts):
        path = folder / f"{number:03}.svmlight"
        path.touch()
        if len(y):
            dump_svmlight_file(X, y, str(path), zero_based=True)
    return lambda rows: Blocks.from_svmlight(folder, n_features=3, rows_per_block=rows)


def write_function(folder, parts):
    return lambda rows: Blocks(lambda: iter(parts), rows_per_block=rows)


def write_frames(folder, parts):
    frames = [table_of(*part) for part in parts]
    return lambda rows: Blocks(lambda: iter(frames), "y", sample_weight="w", rows_per_block=rows)


def write_arrays(folder, parts):
    X, y, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return lambda rows: Blocks(X, y, sample_weight=weights, rows_per_block=rows)


WRITERS = [
    write_csv, write_parquet, write_arrow, write_npy, write_svmlight, write_function, write_frames, write_arrays
]  # fmt: skip


def cut(rows, places):
    """Parts of X, y and weights that end at these places; some may be empty."""
    edges = [0, *sorted(places), len(rows[0])]
    return [tuple(each[a:b] for each in rows) for a, b in pairwise(edges)]


def same(first, second):
    assert (first is None) == (second is None)
    if first is not None:
        first, second = (part.toarray() if sp.issparse(part) else np.asarray(part) for part in (first, second))
        np.testing.assert_array_equal(first, second, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.removeprefix("write_"))
@settings(max_examples=10)
@given(n=st.integers(1, 50), data=st.data())
def test_any_way_of_cutting_gives_the_same(write, n, data):
    X, y, weights = rows = rows_of(n, n)
    weights[0] = 1.0
    places = data.draw(st.lists(st.integers(0, n), max_size=3))
    size, other = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 60))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as many:
        whole = write(Path(one), [rows])(other)
        parts = write(Path(many), cut(rows, places))(size)
        blocks = list(parts)
        assert [block.rows for block in blocks] == [size] * (n // size) + [n % size] * (n % size > 0)
        assert all(type(block.X) is type(blocks[0].X) for block in blocks)
        found = join(blocks)
        same(found.X, X if write is not write_svmlight else sp.csr_matrix(X))
        same(found.y, y)
        if write is not write_svmlight:
            same(found.sample_weight, weights)
        assert parts.shape == whole.shape == (n, 3)
        assert parts.fingerprint == whole.fingerprint
        first_survey, second_survey = (blocks.survey(sample=5, random_state=1) for blocks in (whole, parts))
        for name, first in vars(first_survey).items():
            second = getattr(second_survey, name)
            if isinstance(first, Block):
                for pair in zip(first, second, strict=True):
                    same(*pair)
            elif isinstance(first, np.ndarray):
                same(first, second)
            else:
                assert first == second


def test_sums_over_blocks_have_the_same_bits(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 3))
    table = table_of(X, np.sin(X[:, 0]), np.ones(500))
    table.to_parquet(tmp_path / "whole.parquet")
    for number in range(7):
        table[number * 72 : (number + 1) * 72].to_parquet(tmp_path / f"part{number}.parquet", row_group_size=19)
    kernel, results = RBF(1.0), set()
    for source in (tmp_path / "whole.parquet", tmp_path / "part*.parquet", table):
        blocks = Blocks(source, "y", sample_weight="w", rows_per_block=64)
        landmarks = blocks.survey(sample=40, random_state=0).sample.X
        sums = np.zeros(40)
        for X_block, y_block, weights in blocks:
            sums += kernel(X_block, landmarks).T @ (weights * y_block)
        results.add(sums.tobytes())
    assert len(results) == 1


def test_a_fingerprint_tells_what_differs():
    X, y, weights = rows_of(20)
    variants = [
        Blocks(X, y),
        Blocks(X),
        Blocks(X, y, sample_weight=weights),
        Blocks(X, y.astype(int)),
        Blocks(X.astype(np.float32), y),
        Blocks(X[:-1], y[:-1]),
        Blocks(X[::-1], y),
        Blocks(sp.csr_matrix(X), y),
        Blocks(pd.DataFrame(X), y),
        Blocks(pd.DataFrame(X, columns=NAMES), y),
        Blocks(pd.DataFrame(X, columns=NAMES), y).frames(),
        Blocks(X, y.astype(str)),
        Blocks(X, y.astype(str).astype("U30")),
    ]
    marks = [blocks.fingerprint for blocks in variants]
    assert marks[-1] == marks[-2] and len(set(marks)) == len(marks) - 1
    assert all(len(mark) == 64 for mark in marks)


def test_small_facts(tmp_path):
    X, y, weights = rows_of(10)
    blocks = Blocks(pd.DataFrame(X, columns=NAMES), y, rows_per_block=4)
    assert (blocks.n, blocks.d, blocks.shape, blocks.n_blocks, blocks.rows_per_block) == (10, 3, (10, 3), 3, 4)
    assert blocks.columns == ("a", "b", "c") and blocks.dtype == np.float64
    assert Blocks(X).columns is None
    assert repr(blocks) == "Blocks(a data frame of shape (10, 3), rows_per_block=4)"
    assert "frames of" in repr(blocks.frames()) and "encoded" in repr(blocks.encoded())
    table_of(X, y, weights).to_parquet(tmp_path / "a.parquet")
    assert Blocks(tmp_path / "a.parquet", ["y", "w"]).shape == (10, 3)


def test_float32_stays(tmp_path):
    X = rows_of(10)[0].astype(np.float32)
    pd.DataFrame(X, columns=NAMES).to_parquet(tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", X)
    for blocks in (Blocks(X), Blocks(tmp_path / "a.parquet"), Blocks(tmp_path / "a.npy"), Blocks(lambda: iter([X]))):
        same(next(iter(blocks)).X, X)
    table = pd.DataFrame(X, columns=NAMES).assign(d=np.arange(10.0))
    assert Blocks(table).dtype == np.float64


def test_blocks_lie_row_by_row_in_memory(tmp_path):
    X = np.asfortranarray(rows_of(10)[0])
    np.save(tmp_path / "a.npy", X)
    table = pd.DataFrame(X, columns=NAMES)
    table.to_parquet(tmp_path / "a.parquet")
    for source in (X, table, tmp_path / "a.npy", tmp_path / "a.parquet", lambda: iter([X]), lambda: iter([table])):
        assert all(block.X.flags.c_contiguous for block in Blocks(source, rows_per_block=4))


def test_several_targets(tmp_path):
    X, y, weights = rows_of(10)
    table_of(X, y, weights).to_parquet(tmp_path / "a.parquet")
    for blocks in (Blocks(tmp_path / "a.parquet", ["y", "w"]), Blocks(X, np.column_stack([y, weights]))):
        same(join(list(blocks)).y, np.column_stack([y, weights]))
        survey = blocks.survey()
        np.testing.assert_allclose(survey.target_mean, [y.mean(), weights.mean()])
        assert survey.classes is None


def test_blocks_travel():
    blocks = Blocks(rows_of(10)[0], rows_per_block=3)
    other = pickle.loads(pickle.dumps(blocks))
    assert other.fingerprint == blocks.fingerprint


def test_tables_are_encoded_from_a_sample():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=300), "town": rng.choice(["Ulm", "Zug"], 300), "y": np.arange(300.0)})
    table.loc[::7, "size"] = np.nan
    blocks = Blocks(table, "y", rows_per_block=64)
    with pytest.raises(DataError, match=r"column 'town' of a data frame of shape \(300, 3\) holds text"):
        list(blocks)
    encoded = blocks.encoded()
    assert encoded.d == 5 and encoded.columns is None
    first = join(list(encoded))
    same(encoded.encoder.transform(table[["size", "town"]]), first.X)
    assert blocks.encoder is None
    assert first.X.shape == (300, 5) and np.isfinite(first.X).all()
    assert (first.X[:, 1] == table["size"].isna()).all()
    # The frames hold the table as it is.
    frames = join(list(blocks.frames())).X
    pd.testing.assert_frame_equal(frames, table[["size", "town"]], check_dtype=False)
    # The cut does not matter, and neither does a fitted encoder of another kind.
    assert Blocks(table, "y", rows_per_block=7).encoded().fingerprint == encoded.fingerprint

    class Sizes:
        def transform(self, X):
            return X[["size"]].fillna(0.0).to_numpy()

    assert Blocks(table, "y").encoded(Sizes()).shape == (300, 1)


def test_rows_are_counted_once():
    calls = []

    def load():
        calls.append(1)
        yield pd.DataFrame({"a": np.arange(10.0)})

    blocks = Blocks(load)
    encoded = blocks.encoded()
    # The layout, the sample, and the width of the encoding.
    assert len(calls) == 3
    assert encoded.n == blocks.n == blocks.frames().n == 10 and len(calls) == 3


def test_what_an_encoder_may_not_return():
    table = pd.DataFrame({"word": [f"{i} words" for i in range(50)], "a": np.arange(50.0)})
    with pytest.raises(DataError, match="'word' holds text, which is not encoded as numbers"):
        Blocks(table).encoded()
    assert Blocks(table).encoded(kinds={"word": "category"}).n == 50
    with pytest.raises(ParameterError, match="kinds names the column 'wort'"):
        Blocks(table).encoded(kinds={"wort": "category"})
    with pytest.raises(ParameterError, match="kinds are for the default encoder"):
        Blocks(table).encoded(table, kinds={"word": "category"})

    def encoder(answer):
        return type("Encoder", (), {"transform": lambda self, X: answer(X)})()

    for answer, words in [
        (lambda X: sp.csr_matrix(X[["a"]].to_numpy()), "sparse matrix"),
        (lambda X: X[["word"]].to_numpy(), "returned object of shape"),
        (lambda X: np.ones((len(X) + 1, 2)), "numbers of shape"),
        (lambda X: np.full((len(X), 2), np.nan), "NaN"),
    ]:
        with pytest.raises(DataError, match=words):
            list(Blocks(table).encoded(encoder(answer)))


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "many"])
def test_sizes_that_make_no_sense(size):
    X = rows_of(5)[0]
    with pytest.raises(ParameterError, match="rows_per_block must be a whole number"):
        Blocks(X, rows_per_block=size)
    with pytest.raises(ParameterError, match="size of a sample must be a whole number"):
        Blocks(X).sample(size)
    with pytest.raises(ParameterError, match="n_features must be a whole number"):
        Blocks.from_svmlight("a.svm", n_features=size)


def test_rows_of_no_weight():
    X, y, _ = rows_of(5)
    blocks = Blocks(X, y, sample_weight=np.zeros(5))
    with pytest.raises(DataError, match="all sample weights are zero, so no row can be drawn"):
        blocks.sample(2)
    with pytest.raises(DataError, match="all sample weights are zero"):
        blocks.survey()
    with pytest.raises(DataError, match="a survey needs numbers"):
        Blocks(pd.DataFrame(X)).frames().survey()
    with pytest.raises(DataError, match="no named columns"):
        blocks.frames()


def test_constructors_by_name(tmp_path):
    rows = rows_of(10)
    X, y, weights = rows
    for number, write in enumerate((write_csv, write_parquet, write_npy, write_svmlight)):
        (tmp_path / str(number)).mkdir()
        write(tmp_path / str(number), [rows])
    csv = Blocks.from_csv(tmp_path / "0", "y", sample_weight="w")
    parquet = Blocks.from_parquet(tmp_path / "1", "y", sample_weight="w")
    assert csv.fingerprint == parquet.fingerprint
    npy = Blocks.from_npy(tmp_path / "2" / "X000.npy", tmp_path / "2" / "y000.npy")
    assert npy.fingerprint == Blocks.from_arrays(X, y).fingerprint
    assert npy.fingerprint == Blocks.from_function(lambda: iter([(X, y)])).fingerprint
    assert Blocks.from_svmlight(tmp_path / "3", n_features=3).shape == (10, 3)
    assert Blocks.from_arrays(table_of(*rows), weights).columns == ("a", "b", "c", "y", "w")
    with pytest.raises(DataError, match="can be read only once"):
        Blocks.from_function(iter([X]))
