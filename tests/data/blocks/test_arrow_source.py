"""Parquet and Arrow files and data sets in blocks."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from mercer import Blocks
from mercer._errors import DataError
from mercer.data.blocks.block import join
from mercer.data.readers import read_table


def put(folder, **tables):
    for name, columns in tables.items():
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)
    return folder


def fails(words, source, **options):
    with pytest.raises(DataError, match=words):
        list(Blocks.from_parquet(source, rows_per_block=2, **options))


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"x": [1.0]}, r"b\.parquet has no column 'y', which .*a\.parquet has"),
        ({"x": [1.0], "y": [2.0], "z": [3.0]}, r"b\.parquet has a column 'z', which .*a\.parquet lacks"),
        (
            {"x": [1.0], "y": ["u"]},
            r"the column 'y' of .*b\.parquet holds text \(string\), but that of .*a\.parquet numbers",
        ),
        ({"x": [1.0, 2.0], "y": [2.0, None]}, r"b\.parquet, row 2, column 'y': a value is missing"),
        ({"x": [1.0, np.inf], "y": [2.0, 3.0]}, r"b\.parquet, row 2, column 'x': a value is infinite"),
    ],
)
def test_a_second_file_that_does_not_fit(tmp_path, second, words):
    put(tmp_path, a={"x": [1.0], "y": [2.0]}, b=second)
    fails(words, tmp_path)


def test_files_that_are_not_parquet(tmp_path):
    put(tmp_path, a={"x": [1.0], "y": [2.0]})
    (tmp_path / "b.parquet").write_bytes(b"no such thing")
    fails(r"b\.parquet cannot be read", tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"")
    fails(r"b\.parquet cannot be read", tmp_path)


def test_partitions_without_rows_are_skipped(tmp_path):
    nothing = pa.table({"x": pa.array([], pa.null())})
    put(tmp_path, a=nothing, b={"x": [1.0], "y": [2.0]}, c=nothing)
    blocks = Blocks(tmp_path)
    assert blocks.shape == (1, 2) and join(list(blocks)).X.tolist() == [[1.0, 2.0]]
    put(tmp_path, b=nothing)
    fails("has no rows of data", tmp_path)


def test_numbers_of_every_type(tmp_path):
    columns = {
        "i": pa.array([1, 2], pa.int8()),
        "u": pa.array([1, 2], pa.uint64()),
        "f": pa.array([1, 2], pa.float32()),
        "b": pa.array([True, False]),
        "d": pa.array([decimal.Decimal("1.5"), decimal.Decimal(2)]),
        "h": pa.array(np.array([1, 2], np.float16)),
        "a.b": pa.array([1.0, 2.0]),
    }
    put(tmp_path, a=columns, b={"i": [1.5], "u": [1], "f": [1.0], "b": [1], "d": [0], "h": [0], "a.b": [3.0]})
    found = join(list(Blocks(tmp_path))).X
    assert found.tolist() == [[1, 1, 1, 1, 1.5, 1, 1], [2, 2, 2, 0, 2, 2, 2], [1.5, 1, 1, 1, 0, 0, 3]]
    put(tmp_path, b={"i": [1], "u": [1], "f": [1.0], "b": [1], "d": [0], "h": [0], "a.b": [None]})
    fails(r"b\.parquet, row 1, column 'a\.b': a value is missing", tmp_path)


@pytest.mark.parametrize(
    ("first", "second", "dtype", "classes"),
    [
        ([1, 2], [3], np.int64, [1, 2, 3]),
        ([True, False], [True], np.bool_, [False, True]),
        (pa.array(["u", "v"]).dictionary_encode(), pa.array(["w"]).dictionary_encode(), object, ["u", "v", "w"]),
        ([1.0, 2.0], [3], np.float64, [1.0, 2.0, 3.0]),
        ([1, 2], [2.5], np.float64, None),
    ],
)
def test_targets_have_one_type(tmp_path, first, second, dtype, classes):
    put(tmp_path, a={"x": [0.0, 0.0], "y": first}, b={"x": [0.0], "y": second})
    blocks = Blocks(tmp_path, "y", rows_per_block=2)
    assert {block.y.dtype for block in blocks} == {np.dtype(dtype)}
    found = blocks.survey().classes
    assert (found is None) == (classes is None) and (classes is None or found.tolist() == classes)


def test_targets_and_weights_that_cannot_be_used(tmp_path):
    dates = pa.array([datetime.date(2026, 1, 1)])
    put(tmp_path, a={"x": [0.0], "text": ["u"], "gap": pa.array([None], pa.string()), "day": dates, "minus": [-1.0]})
    options = {"columns": ["x"]}
    fails("the target 'gap' is missing", tmp_path, target="gap", **options)
    fails("the target 'day' holds datetime64", tmp_path, target="day", **options)
    fails(
        "column 'text' holds text .string., but numbers are needed", tmp_path, target=["x", "text"], columns=["minus"]
    )
    fails("row 1: the sample weight 'minus' is -1.0", tmp_path, sample_weight="minus", **options)
    fails("the column 'text' holds text", tmp_path, sample_weight="text", **options)
    fails(r"column 'text' of .*a\.parquet holds text \(string\), but X must be numbers", tmp_path, columns=["text"])
    fails(r"column 'day' of .*a\.parquet holds date", tmp_path, columns=["day"])


def test_parts_of_paths_are_columns(tmp_path):
    put(tmp_path, **{"year=2021/a": {"x": [1.0]}, "year=2020/b": {"x": [2.0]}, "year=2020/_left": {"x": [9.0]}})
    for source in (tmp_path, tmp_path / "year=*" / "[ab].parquet", ds.dataset(tmp_path, partitioning="hive")):
        blocks = Blocks.from_parquet(source, rows_per_block=1)
        assert blocks.columns == ("x", "year")
        assert join(list(blocks)).X.tolist() == [[2.0, 2020.0], [1.0, 2021.0]]
    # One file alone is a file.
    assert Blocks(tmp_path / "year=2020" / "b.parquet").columns == ("x",)


def test_files_are_read_in_the_order_that_is_given(tmp_path):
    put(tmp_path, a={"x": [1.0]}, b={"x": [2.0]}, c={"x": [3.0]})
    paths = [tmp_path / f"{name}.parquet" for name in "cab"]
    assert join(list(Blocks(paths))).X.ravel().tolist() == [3.0, 1.0, 2.0]


def test_tables_in_memory(tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": ["u", "v", "u"]})
    for source in (table, table.to_batches()[0], ds.dataset(table)):
        blocks = Blocks(source, "y", rows_per_block=2)
        assert blocks.n == 3 and repr(blocks) == "Blocks(an Arrow data set, rows_per_block=2)"
        assert join(list(blocks)).y.tolist() == ["u", "v", "u"]
    with pytest.raises(DataError, match="RecordBatchReader, which can be read only once"):
        Blocks(table.to_reader())
    with pytest.raises(DataError, match="Array cannot be read as a table"):
        Blocks(pa.array([1.0, 2.0]))
    with pytest.raises(DataError, match=r"cannot be read in fragments.*without filter"):
        Blocks(ds.dataset(table).filter(ds.field("x") > 1))


@pytest.mark.parametrize("write", [pq.write_table, pa.feather.write_feather])
def test_large_row_groups_are_read_in_parts(tmp_path, write):
    path = tmp_path / ("a.parquet" if write is pq.write_table else "a.arrow")
    table = pa.table({f"x{i}": np.random.default_rng(i).normal(size=1_500_000) for i in range(2)})
    write(table, path)
    blocks = Blocks(path, rows_per_block=10_000, columns=["x1", "x0"])
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in blocks)
    assert most < table.nbytes / 3


def test_parts_of_a_data_set(tmp_path):
    put(tmp_path, **{"year=2021/a": {"x": [1.0, 2.0]}})
    pq.write_table(pa.table({"x": np.arange(6.0)}), tmp_path / "b.parquet", row_group_size=2)
    (part,) = ds.dataset(tmp_path / "b.parquet").get_fragments()
    some = ds.FileSystemDataset([part.subset(row_group_ids=[0, 2])], part.physical_schema, part.format)
    assert join(list(Blocks(some, rows_per_block=3))).X.ravel().tolist() == [0, 1, 4, 5]
    # Columns that only paths tell.
    assert join(list(Blocks(str(tmp_path / "year=*" / "*.parquet"), columns=["year"]))).X.tolist() == [[2021.0]] * 2


def test_frames_hold_what_files_hold(tmp_path):
    table = pd.DataFrame(
        {
            "number": [1.0, None, 3.0],
            "word": pd.Categorical(["u", None, "v"]),
            "day": pd.to_datetime(["2026-01-01", None, "2026-01-03"]),
        }
    )
    table.to_parquet(tmp_path / "a.parquet")
    for rows in (1, 2, 3):
        found = join(list(Blocks(tmp_path, rows_per_block=rows).frames())).X
        pd.testing.assert_frame_equal(found.astype({"word": object}), table.astype({"word": object}), check_dtype=False)
    assert Blocks(tmp_path).encoded().n == 3


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_an_index_of_pandas_is_a_column_where_it_has_a_name(tmp_path, suffix):
    """As where the whole table is read: rows that were filtered keep their labels, which say nothing about them."""
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0.0, 1.0, 0.0, 1.0]})
    for name in (None, "day"):
        part = table[table["x"] != 3].rename_axis(name)
        path = tmp_path / f"a.{suffix}"
        if suffix == "parquet":
            part.to_parquet(path)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.Schema.from_pandas(part)) as file:
                file.write(pa.Table.from_pandas(part))
        columns = ("x", "y") if name is None else ("x", "y", "day")
        assert Blocks(path).columns == columns and Blocks(tmp_path).columns == columns
        assert Blocks(pa.Table.from_pandas(part)).columns == columns
        assert set(read_table(path).names) == set(columns)
