"""Damaged files in blocks: rows, or a documented error, in every form."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer import Blocks, config
from mercer._errors import DataError, MemoryBudgetError, MercerError

TABLE = pd.DataFrame({"a": [1.5, -2.0, 0.25, 7.0], "b": [1, 2, 3, 4], "t": ["u", "v", "", "long text"]})


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


ARROW = _written(lambda out: pyarrow.feather.write_feather(TABLE, out, compression="uncompressed"))
SEEDS = {
    ".csv": TABLE.to_csv(index=False).encode(),
    ".csv.gz": gzip.compress(TABLE.to_csv(index=False).encode()),
    ".parquet": _written(TABLE.to_parquet),
    ".arrow": ARROW,
    ".npy": _written(lambda out: np.save(out, TABLE[["a", "b"]].to_numpy())),
    ".svm": b"1 0:1.5 3:2\n-1 1:0.5 2:1 # note\n1 0:1 1:2\n",
}
PIECES = st.sampled_from(
    [b"\0", b'"', b",", b"\n", b"\xff\xfe", b"nan", b"1e999", b"-", b":", b"9" * 400, b"(", b"true"]
)
EDITS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 12), PIECES | st.binary(max_size=6)), max_size=4)


def read_or_say_why(path: Path) -> int:
    """The number of forms in which all rows could be read."""
    forms = 0
    for form in (lambda blocks: blocks, Blocks.frames, Blocks.encoded):
        try:
            forms += sum(block.rows for block in form(Blocks(path, rows_per_block=3))) > 0
        except MercerError as error:
            assert str(error)
    return forms


def test_the_honest_files_are_read(tmp_path):
    for suffix, raw in SEEDS.items():
        path = tmp_path / f"honest{suffix}"
        path.write_bytes(raw)
        # Tables have text, and what has no names makes no data frames.
        assert read_or_say_why(path) == (1 if suffix in (".npy", ".svm") else 2), suffix


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SEEDS)
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(edits=EDITS)
def test_edited_files(suffix, tmp_path_factory, edits):
    raw = SEEDS[suffix]
    for place, cut, piece in edits:
        place %= len(raw) + 1
        raw = raw[:place] + piece + raw[place + cut :]
    path = tmp_path_factory.mktemp("edited") / f"edited{suffix}"
    path.write_bytes(raw)
    read_or_say_why(path)


@pytest.mark.parametrize(
    "note",
    [b"\x80", b"{", b"[1]", b"null", b"{}", b'{"index_columns": [{}], "columns": [{"name": null, "field_name": {}}]}',
     b'{"index_columns": "a", "columns": 3}', b'{"index_columns": ["a"], "columns": [3]}'],
)  # fmt: skip
def test_a_note_that_pandas_has_not_written_changes_no_column(tmp_path, note):
    path = tmp_path / "a.arrow"
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}).replace_schema_metadata({b"pandas": note})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    assert next(iter(Blocks(path))).X.shape == (2, 2)


def test_offsets_beyond_the_text_of_an_arrow_file(tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.table({"t": pa.array(TABLE["t"], pa.string())})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    raw, offsets = path.read_bytes(), np.array([0, 1, 2, 2, 11], np.int32)
    assert offsets.tobytes() in raw
    path.write_bytes(raw.replace(offsets.tobytes(), (offsets * 10**8).tobytes()))
    with pytest.raises(DataError, match=r"a\.arrow cannot be read: "):
        list(Blocks(path).frames())


def _npy(shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(64)


@pytest.mark.parametrize(
    "shape", ["(1152921504606846976, 8)", "(-4, 8)", "('a', 2)", "(((", "__import__('os').getpid()"]
)
def test_headers_that_lie(tmp_path, shape):
    (tmp_path / "a.npy").write_bytes(_npy(shape))
    with pytest.raises(DataError, match=r"a\.npy cannot be read as a NumPy array"):
        Blocks(tmp_path / "a.npy")


def test_a_feature_far_away(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:1 2147483646:1\n-1 0:2\n")
    blocks = Blocks(tmp_path / "a.svm")
    assert sum(block.X.nnz for block in blocks) == 3
    with config(memory="1GiB"), pytest.raises(MemoryBudgetError, match="statistics of 2,147,483,647 columns"):
        blocks.survey()


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 0:1\n1 \xff:1\n")
    with pytest.raises(DataError, match="line 2, column 3: the byte 0xff is not UTF-8"):
        Blocks(tmp_path / "a.svm")
