"""Files of data of every format, damaged or made to harm: a table, or a documented error, soon and in little memory."""

from __future__ import annotations

import gzip
import io
import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer import config
from mercer._errors import MemoryBudgetError, MercerError
from mercer.data.readers import read_table
from mercer.data.table import Table


def _npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _parquet() -> bytes:
    out = io.BytesIO()
    pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]}).to_parquet(out)
    return out.getvalue()


GRAPH = {
    "graph": {"label": 1},
    "nodes": [{"id": 0, "label": "C"}, {"id": 1, "label": "O"}],
    "edges": [{"source": 0, "target": 1, "label": 1}],
}
CSV = b'age,town,price\n1.5,Ulm,3\n2,"Z, ug",4\n,NA,5\n7,"a ""b""",6\n'
SEEDS = {
    ".csv": CSV,
    ".tsv": CSV.replace(b",", b"\t"),
    ".csv.gz": gzip.compress(CSV),
    ".libsvm": b"1 0:1.5 3:2\n-1 1:0.5 2:1 # note\n1 0:1 1:2\n",
    ".npz": _npz(X=np.arange(12.0).reshape(4, 3), y=np.arange(4)),
    ".json": json.dumps([GRAPH, {**GRAPH, "graph": {"label": 2}}]).encode(),
    ".parquet": _parquet(),
}
PIECES = st.sampled_from(
    [
        b"\0",
        b'"',
        b",",
        b"\n",
        b"\r",
        b"\t",
        b";",
        b"\xff\xfe",
        b"nan",
        b"inf",
        b"1e999",
        b"-",
        b":",
        b"[",
        b"{",
        b"null",
        b"9" * 400,
        b"\xef\xbb\xbf",
        b"PK\3\4",
        b"99999999999:1",
        b"-1:1",
        b"true",
        b'"a',
        b"\x1f\x8b",
        b"=1+1",
        b"1_0",
    ]
)
EDITS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 12), PIECES | st.binary(max_size=6)), max_size=4)


def reads_or_says_why(path: Path) -> Table | None:
    try:
        table = read_table(path)
    except MercerError as error:
        assert str(error)
        return None
    assert table.n_rows > 0
    return table


def edited(raw: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, cut, piece in edits:
        place %= len(raw) + 1
        raw = raw[:place] + piece + raw[place + cut :]
    return raw


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def test_the_honest_files_are_read(folder):
    for suffix, raw in SEEDS.items():
        path = folder / f"honest{suffix}"
        path.write_bytes(raw)
        assert read_table(path).n_rows >= 2


@pytest.mark.parametrize("suffix", SEEDS)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(edits=EDITS)
def test_edited_files(suffix, folder, edits):
    path = folder / f"edited{suffix}"
    path.write_bytes(edited(SEEDS[suffix], edits))
    reads_or_says_why(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SEEDS)
@settings(max_examples=350, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits=EDITS)
def test_many_edited_files(suffix, folder, edits):
    path = folder / f"many{suffix}"
    path.write_bytes(edited(SEEDS[suffix], edits))
    reads_or_says_why(path)


def _archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "."), content)
    return out.getvalue()


def _npy(shape: str, descr: str = "<f8", data: bytes = b"\0" * 64) -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


NASTY = {
    "object arrays.npz": _npz(X=np.array([[1, "a"]], dtype=object)),
    "no array.npz": _archive(readme__txt=b"hello"),
    "claims 2^60 rows.npz": _archive(X__npy=_npy("(1152921504606846976, 8)")),
    "claims negative rows.npz": _archive(X__npy=_npy("(-4, 8)")),
    "claims a tuple of text.npz": _archive(X__npy=_npy("('a', 2)")),
    "runs nothing.npz": _archive(X__npy=_npy("__import__('os').getpid()")),
    "no rows.npz": _npz(X=np.empty((0, 3))),
    "deep.json": b"[" * 100_000,
    "deep and closed.json": b"[" * 100_000 + b"]" * 100_000,
    "digits.json": b"[" + b"9" * 10**6 + b"]",
    "nodes that are numbers.json": b'[{"nodes": 3, "edges": 4}]',
    "a node far away.json": b'[{"nodes": [{"id": 1e999, "label": NaN}], "edges": [{"source": 1, "target": 2}]}]',
    "attributes of text.json": b'[{"nodes": [{"id": 0, "attributes": ["a"]}], "edges": []}]',
    "an unhashable id.json": b'[{"nodes": [{"id": {"a": 1}}], "edges": []}]',
    "zero bytes.csv": b"a,b\n1,\0\n2,3\n",
    "zero bytes in a quotation.csv": b'a,b\n"1\0",2\n',
    "one long field.csv": b"a,b\n" + b"x" * 10**6 + b",1\n",
    "a million commas.csv": b"a,b\n" + b"," * 10**6 + b"\n",
    "a quotation that never ends.csv": b'a,b\n"' + b"1,2\n" * 10**5,
    "far features.libsvm": b"1 0:1 99999999999999999999:1\n",
    "a far feature.libsvm": b"1 0:1 2147483646:1\n-1 0:2\n",
    "digits.libsvm": b"1 0:" + b"9" * 10**6 + b"\n",
    "half.csv.gz": gzip.compress(CSV * 1000)[:200],
    "half.parquet": _parquet()[:-9],
}


@pytest.mark.parametrize("name", NASTY)
def test_files_that_are_made_to_harm_end_soon(name, folder):
    path = folder / name.replace(" ", "-")
    path.write_bytes(NASTY[name])
    start_time = time.perf_counter()
    reads_or_says_why(path)
    assert time.perf_counter() - start_time < 20


def test_an_archive_that_unpacks_to_more_than_the_budget_is_refused_before_it_is_read(folder):
    path = folder / "bomb.npz"
    np.savez_compressed(path, X=np.zeros((2000, 2000)))
    assert path.stat().st_size < 200_000
    with config(memory="20MB"), pytest.raises(MemoryBudgetError, match=r"bomb\.npz"):
        read_table(path)
