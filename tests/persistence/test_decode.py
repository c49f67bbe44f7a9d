"""Model files that were truncated, altered, or made by somebody who means harm: each is refused with words."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from forgery import entry, forge, forge_model
from mercer import load, save
from mercer._errors import ModelFileError
from mercer.kernels import RBF, Linear
from mercer.persistence.look import look

X = np.random.default_rng(0).random((7, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mercer"


@pytest.fixture
def honest(path: Path) -> bytes:
    save([StandardScaler().fit(X), 0.5 * RBF([1.0, 2.0, 3.0]) + Linear(), X], path)
    return path.read_bytes()


# ---- damage


def test_the_forger_can_make_honest_files(path):
    """Else the tests below would pass for the wrong reason."""
    node = {"kind": "array", "order": "C", "data": "a0"}
    entry = {"a0": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
    forge_model(path, [node], entries=entry, data=struct.pack("<dd", 1.0, 2.0))
    assert load(path).tolist() == [1.0, 2.0]


def test_every_truncation_is_found(path, honest):
    for length in [*range(0, 250), *range(250, len(honest), 97), len(honest) - 1]:
        path.write_bytes(honest[:length])
        with pytest.raises(ModelFileError, match=r"truncated|not a model file"):
            load(path)


def test_every_altered_byte_is_found(path, honest):
    places = random.Random(0)
    for place in [*range(0, 250), *(places.randrange(len(honest)) for _ in range(400))]:
        altered = bytearray(honest)
        altered[place] ^= 1 << places.randrange(8)
        path.write_bytes(altered)
        with pytest.raises(ModelFileError, match=r"altered|truncated|not a model file"):
            load(path)


@settings(max_examples=100, deadline=None)
@given(noise=st.binary(max_size=300), place=st.integers(0, 3000), insert=st.booleans())
def test_any_splice_is_found(noise, place, insert, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.mercer"
    save([StandardScaler().fit(X), X], path)
    body = path.read_bytes()
    spliced = body[:place] + noise + body[place + (0 if insert else len(noise)) :]
    path.write_bytes(spliced)
    if spliced == body:
        assert len(load(path)) == 2
    else:
        with pytest.raises(ModelFileError):
            load(path)


def test_bytes_after_the_end_are_found(path, honest):
    path.write_bytes(honest + b"\0")
    with pytest.raises(ModelFileError, match=r"altered since it was written.*Copy or download it again"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04\x95pickle", b"\0" * 5000, b"{" * 300])
def test_other_files_are_no_model_files(content, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.mercer: (this is not a model file|the file is truncated)"):
        load(path)


def test_missing_files_and_directories_are_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.mercer: there is no such file"):
        load(tmp_path / "none.mercer")
    with pytest.raises(ModelFileError, match="this is a directory"):
        load(tmp_path)


# ---- versions


def test_a_newer_format_says_so(path):
    forge(path, {"format_version": "2", "mercer_version": "3.1.4", "other": "things"})
    for read in (load, look):
        with pytest.raises(ModelFileError, match=r"version 2 of the format .* mercer 3\.1\.4; .* Upgrade with pip"):
            read(path)


@pytest.mark.parametrize("version", ["", "one", "1.5", "-1", "0", "²", "9" * 30])
def test_a_version_that_is_none(version, path):
    forge(path, {"format_version": version, "model": "{}"})
    with pytest.raises(ModelFileError, match=r"the version of its format|metadata are"):
        load(path)


def test_a_class_that_is_not_known_names_the_version_that_wrote_it(path):
    forge_model(path, [{"kind": "record", "class": "mercer.FutureKernel", "fields": {}}])
    with pytest.raises(ModelFileError, match=r"mercer\.FutureKernel.*written by mercer 9\.9.*pip install -U"):
        load(path)


# ---- headers


def test_a_header_that_claims_to_be_huge(path):
    for length in (2**63 + 5, 2**40, 10_000):
        forge(path, {"model": "{}"}, length=length)
        with pytest.raises(ModelFileError, match=f"claims a header of {length} bytes"):
            load(path)


def test_a_file_that_lies_about_its_size(path):
    forge(path, {"model": "{}"}, size=17)
    with pytest.raises(ModelFileError, match="does not state its own size"):
        load(path)


START = '{"__metadata__":{"format":"mercer-model","sha256":"' + "0" * 64 + '","bytes":"' + "0" * 20 + '"'
HEADERS = {
    "deep": (START + ',"x":' + "[" * 100_000, "nested too deeply|not valid JSON"),
    "cut": (START, "not valid JSON"),
    "twice": (START + ',"model":"a","model":"b"}}', "a key occurs twice"),
    "number": (START + ',"model":3}}', "not all text"),
    "nan": (START + '},"a0":NaN}', "NaN is not JSON"),
    "digits": (START + '},"a0":' + "9" * 5000 + "}", "not valid JSON"),
    "list": (START + '},"a0":[1]}', "not described by dtype"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_are_none(name, path):
    header, message = HEADERS[name]
    forge(path, header=header)
    with pytest.raises(ModelFileError, match=message):
        load(path)


ENTRIES = {
    "beyond the end": ({"a0": entry(offsets=[0, 32], shape=[4])}, "arrays take 32 bytes"),
    "overlap": ({"a0": entry(), "a1": entry(shape=[1], offsets=[8, 16])}, "overlaps another one"),
    "same place": ({"a0": entry(), "a1": entry()}, "overlaps another one"),
    "gap": ({"a0": entry(shape=[1], offsets=[8, 16])}, "leaves a gap"),
    "unused bytes": ({"a0": entry(shape=[1], offsets=[0, 8])}, "arrays take 8 bytes"),
    "negative": ({"a0": entry(offsets=[-8, 8])}, "has the offsets"),
    "backwards": ({"a0": entry(offsets=[16, 0])}, "does not fill its offsets"),
    "fractions": ({"a0": entry(offsets=[0.0, 16.0])}, "has the offsets"),
    "three offsets": ({"a0": entry(offsets=[0, 8, 16])}, "has the offsets"),
    "wrong size": ({"a0": entry(shape=[3])}, "does not fill"),
    "huge shape": ({"a0": entry(shape=[2**61, 2**61])}, "does not fill"),
    "overflowing shape": ({"a0": entry(shape=[2**61, 2**61, 2**6, 0], offsets=[0, 0])}, "impossible shape|16"),
    "negative shape": ({"a0": entry(shape=[-1, -2])}, "has the shape"),
    "true as a shape": ({"a0": entry(shape=[True, 2])}, "has the shape"),
    "text as a shape": ({"a0": entry(shape="2")}, "has the shape"),
    "many axes": ({"a0": entry(shape=[1] * 40 + [2])}, "has the shape"),
    "objects": ({"a0": entry(dtype="O")}, "has the dtype 'O'"),
    "dtype of another type": ({"a0": entry(dtype=["F64"])}, "has the dtype"),
    "more keys": ({"a0": {**entry(), "code": "x"}}, "not described by"),
    "a path": ({"../../etc/passwd": entry()}, "missing or used twice|belongs to no object"),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_arrays_that_are_none(name, path):
    entries, message = ENTRIES[name]
    forge_model(path, [{"kind": "array", "order": "C", "data": "a0"}], entries=entries, data=b"\0" * 16)
    with pytest.raises(ModelFileError, match=message):
        load(path)
