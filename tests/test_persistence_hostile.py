"""Model files that were truncated, altered, or made by somebody who means harm: each is refused with words."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import load, save
from mercer._errors import ModelFileError
from mercer.kernels import RBF, Linear
from mercer.persistence import container
from mercer.persistence.registry import registry

X = np.random.default_rng(0).random((7, 3))


def forge(path: Path, metadata: Any = None, entries: Any = (), data: bytes = b"", header: str | None = None, **kw):
    """A file whose checksum is right, whatever else is in it."""
    texts = {"format_version": "1", "mercer_version": "9.9", "sklearn_version": "1.0", **(metadata or {})}
    fixed = {"format": "mercer-model", "sha256": "0" * 64, "bytes": "0" * 20}
    text = header
    if text is None:
        text = json.dumps({"__metadata__": {**fixed, **texts}, **dict(entries)}, separators=(",", ":"))
    body = bytearray(struct.pack("<Q", kw.get("length", len(text))) + text.encode() + data)
    place = body.index(b'"bytes":"') + 9
    body[place : place + 20] = b"%020d" % kw.get("size", len(body))
    place = body.index(b'"sha256":"') + 10
    body[place : place + 64] = hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(body)


def forge_model(path: Path, nodes: list[Any], root: Any = None, entries: Any = (), data: bytes = b"", **texts: str):
    """A file with this table of objects, whose last row is the model."""
    table = {"root": [len(nodes) - 1] if root is None else root, "nodes": nodes}
    versions = {"sklearn_version": sklearn.__version__}
    forge(path, {"model": json.dumps(table), **versions, **texts}, entries, data)


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
    with pytest.raises(ModelFileError, match=r"version 2 of the format .* mercer 3\.1\.4; .* Upgrade with pip"):
        load(path)


@pytest.mark.parametrize("version", ["", "one", "1.5", "-1", "0", "²", "9" * 30])
def test_a_version_that_is_none(version, path):
    forge(path, {"format_version": version, "model": "{}"})
    with pytest.raises(ModelFileError, match=r"which version of the format|metadata are"):
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


def entry(dtype: Any = "F64", shape: Any = (2,), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


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


# ---- tables of objects

ARRAY = {"kind": "array", "order": "C", "data": "a0"}
BYTES = {"a0": entry()}
EMPTY_DICT = {"kind": "dict", "items": []}


def scaler(**fields: Any) -> dict[str, Any]:
    full = {"copy": True, "with_mean": True, "with_std": True, **fields}
    return {"kind": "estimator", "class": "sklearn.StandardScaler", "fields": full}


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "record", "class": name, "fields": fields}


CSR = {"kind": "csr_matrix", "shape": [1, 1], "data": [0], "indices": [0], "indptr": [0]}

TABLES = {
    "no class": ([{"kind": "record", "class": ["x"], "fields": {}}], "an object of the class"),
    "a class by its module": ([record("os.system", command="true")], r"class 'os\.system'"),
    "a class of builtins": ([record("builtins.eval", source="1")], r"class 'builtins\.eval'"),
    "a record as an estimator": ([{**scaler(), "class": "mercer.RBF"}], r"class 'mercer\.RBF'"),
    "an unknown kind": ([{"kind": "reduce", "callable": "os.system"}], "unknown kind 'reduce'"),
    "a kind of another type": ([{"kind": ["array"]}], "unknown kind"),
    "a row of another type": (["array"], "unknown kind None"),
    "more entries": ([{**EMPTY_DICT, "code": 1}], "has the entries"),
    "fewer entries": ([{"kind": "dict"}], "has the entries"),
    "itself": ([{"kind": "list", "items": [[0]]}], "points to the row 0, and 0 come before"),
    "a later row": ([{"kind": "list", "items": [[1]]}, EMPTY_DICT], "points to the row 1"),
    "a negative row": ([EMPTY_DICT, {"kind": "list", "items": [[-1]]}], "points to the row -1"),
    "a row by name": ([EMPTY_DICT, {"kind": "list", "items": [["0"]]}], "a reference reads"),
    "true as a row": ([EMPTY_DICT, {"kind": "list", "items": [[True]]}], "a reference reads"),
    "an object in place": ([{"kind": "list", "items": [{"kind": "dict"}]}], "a reference reads"),
    "items that are none": ([{"kind": "list", "items": "abc"}], "not a list"),
    "pairs that are none": ([{"kind": "dict", "items": [[1, 2, 3]]}], "not pairs"),
    "an unhashable key": ([EMPTY_DICT, {"kind": "dict", "items": [[[0], 1]]}], "unhashable"),
    "a slice of two": ([{"kind": "slice", "items": [1, 2]}], "three positions"),
    "a slice of floats": ([{"kind": "slice", "items": [1.5, 2, 3]}], "three positions"),
    "a float that is code": ([{"kind": "float", "value": "__import__('os')"}], "neither nan nor infinite"),
    "a number that is none": ([{"kind": "number", "class": "numpy.int8", "value": "1 + 1"}], "invalid literal"),
    "a number out of range": ([{"kind": "number", "class": "numpy.int8", "value": "300"}], "cannot be rebuilt"),
    "a number of digits": ([{"kind": "number", "class": "numpy.int64", "value": "9" * 9999}], "cannot be rebuilt"),
    "a boolean that is none": ([{"kind": "number", "class": "numpy.bool", "value": "yes"}], "cannot be rebuilt"),
    "a member that is none": ([{"kind": "enum", "class": "mercer.Status", "member": "mro"}], "has no member"),
    "a type that is none": ([{"kind": "type", "class": "builtins.eval"}], r"class 'builtins\.eval'"),
    "a dtype with fields": ([{"kind": "dtype", "value": "i4,O"}], "type of array elements"),
    "a missing array": ([{**ARRAY, "data": "a9"}], "'a9' is missing"),
    "an array that is a list": ([{**ARRAY, "data": ["a0"]}], "is missing or used twice"),
    "an array used twice": ([ARRAY, ARRAY], "'a0' is missing or used twice"),
    "an array of nobody": ([EMPTY_DICT], "'a0' belongs to no object"),
    "text of floats": ([{"kind": "text", "data": "a0"}], "no code points"),
    "strings of floats": ([{"kind": "strings", "data": "a0", "lengths": "a0"}], "is missing or used twice"),
    "objects that do not fill": ([{"kind": "objects", "shape": [2], "items": [1]}], "has 1 items"),
    "objects without a shape": ([{"kind": "objects", "shape": [-1], "items": []}], "a shape reads"),
    "a sparse matrix of a dict": ([EMPTY_DICT, CSR], "three vectors"),
    "a sparse matrix of floats": ([ARRAY, CSR], "whole numbers"),
    "a kernel with a dict": ([EMPTY_DICT, record("mercer.RBF", length_scale=[0])], "is of the type dict"),
    "a kernel with text": ([record("mercer.RBF", length_scale="1")], "is of the type str"),
    "a kernel out of range": ([record("mercer.RBF", length_scale=-1.0)], "must be finite and above 0"),
    "a kernel with more": ([record("mercer.RBF", code=1)], "RBF has no field 'code'"),
    "a kernel with a dunder": ([record("mercer.RBF", __class__=1)], "RBF has no field '__class__'"),
    "a kernel without its part": ([record("mercer.Normalized")], "cannot be rebuilt"),
    "a kernel of a dict": ([EMPTY_DICT, record("mercer.Normalized", kernel=[0])], "takes a kernel"),
    "a kernel with a class to call": (
        [{"kind": "type", "class": "builtins.str"}, record("mercer.FromFunction", function=[0])],
        "is a class, which could be called",
    ),
    "an array that is a dict": ([EMPTY_DICT, record("mercer.FrozenArray", array=[0])], "must be ndarray"),
    "fields without names": ([{**scaler(), "fields": [1]}], "are not named"),
    "a mean that is a dict": ([EMPTY_DICT, scaler(mean_=[0])], r"mean_ is of the type dict, and must be ndarray"),
    "a count that is text": ([scaler(n_features_in_="3")], "n_features_in_ is of the type str"),
    "a dunder": ([EMPTY_DICT, scaler(__dict__=[0])], "an attribute named '__dict__'"),
    "a class attribute": ([scaler(__class__=1)], "an attribute named '__class__'"),
    "no identifier": ([scaler(**{"a.b": 1})], r"an attribute named 'a\.b'"),
    "a method": ([scaler(transform="x")], "in the place of a method"),
    "a property": ([scaler(_repr_html_=1)], "in the place of a method"),
    "a missing parameter": (
        [{"kind": "estimator", "class": "sklearn.Pipeline", "fields": {}}], "lacks its parameter 'steps'"
    ),
    "steps that are text": (
        [{"kind": "estimator", "class": "sklearn.Pipeline", "fields": {"steps": "x"}}], "must be list"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_objects_that_are_none(name, path):
    nodes, message = TABLES[name]
    needs_array = any(isinstance(node, dict) and node.get("data") == "a0" for node in nodes)
    with_array = needs_array or name == "an array of nobody"
    entries, data = (BYTES, b"\0" * 16) if with_array else ({}, b"")
    forge_model(path, nodes, entries=entries, data=data)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[]", "other parts than"),
        ('{"root": 1}', "other parts than"),
        ('{"root": 1, "nodes": {}}', "not a list"),
        ('{"root": [0], "nodes": []}', "points to the row 0"),
        ("{", "not valid JSON"),
        ('{"root": Infinity, "nodes": []}', "Infinity is not JSON"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_tables_that_are_none(table, message, path):
    forge(path, {"model": table, "sklearn_version": sklearn.__version__})
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_chain_of_rows_cannot_nest_without_limit(path):
    lists = [{"kind": "list", "items": [[i - 1]] if i else []} for i in range(5000)]
    forge_model(path, lists)
    with pytest.raises(ModelFileError, match="nested deeper than 100 levels"):
        load(path)


def test_sparse_indices_beyond_the_matrix_are_refused(path):
    vectors = [np.ones(2), np.array([0, 5], np.int32), np.array([0, 2], np.int32)]
    nodes = [{**ARRAY, "data": f"a{i}"} for i in range(3)]
    nodes.append({"kind": "csr_matrix", "shape": [1, 3], "data": [0], "indices": [1], "indptr": [2]})
    entries, offset = {}, 0
    for i, (vector, dtype) in enumerate(zip(vectors, ["F64", "I32", "I32"], strict=True)):
        entries[f"a{i}"] = entry(dtype, list(vector.shape), [offset, offset + vector.nbytes])
        offset += vector.nbytes
    forge_model(path, nodes, entries=entries, data=b"".join(v.tobytes() for v in vectors))
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        load(path)


def test_bytes_that_are_no_truth_values_text_or_strings_are_refused(path):
    two = {"a0": entry("BOOL", [16])}
    forge_model(path, [ARRAY], entries=two, data=b"\1\2" * 8)
    with pytest.raises(ModelFileError, match="no truth values"):
        load(path)
    forge_model(path, [{"kind": "text", "data": "a0"}], entries={"a0": entry("U32", [2, 2])}, data=b"\xff" * 16)
    with pytest.raises(ModelFileError, match="no characters"):
        load(path)
    strings = {"kind": "strings", "data": "a0", "lengths": "a1"}
    for lengths, data, message in [
        ([2, -1], b"\xff", "do not fit"),
        ([5, 0], b"abc", "do not fit"),
        ([1], b"\xff", "cannot be rebuilt"),
        ([2**62, 2**62, 2**62, 2**62], b"", "do not fit"),
    ]:
        size = 8 * len(lengths)
        entries = {
            "a1": entry("I64", [len(lengths)], [0, size]),
            "a0": entry("U8", [len(data)], [size, size + len(data)]),
        }
        forge_model(path, [strings], entries=entries, data=np.array(lengths, "<i8").tobytes() + data)
        with pytest.raises(ModelFileError, match=message):
            load(path)


def test_no_module_is_imported_and_nothing_runs_for_a_name_in_a_file(path, monkeypatch):
    registry()
    forge_model(path, [record("antigravity.fly")])
    monkeypatch.setattr("importlib.import_module", lambda name, *_: pytest.fail(f"imported {name}"))
    with pytest.raises(ModelFileError, match=r"antigravity\.fly"):
        load(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_change_of_a_table_is_refused_or_harmless(data, tmp_path_factory):
    """Replace any one value anywhere in an honest file's table: loading gives an object or a ModelFileError."""
    path = tmp_path_factory.mktemp("files") / "model.mercer"
    kernel = 0.5 * RBF([1.0, 2.0]) + Linear().on("a")
    save([StandardScaler().fit(X), kernel, np.array(["a", "b"]), {"k": (1, 2.5)}], path)
    texts, arrays = container.read(path)
    table = json.loads(texts["model"])
    place: Any = table
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.integers(0, 4)) == 0:
            break
        place = place[key]
    place[key] = data.draw(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
        | st.lists(st.integers(-1, 30), max_size=2) | st.just({}) | st.sampled_from(["a0", "dict", "mercer.RBF"])
    )  # fmt: skip
    container.write(path, {**texts, "model": json.dumps(table)}, arrays)
    try:
        loaded = load(path)
    except ModelFileError as error:
        assert str(path) in str(error)
    else:
        assert not callable(loaded) or isinstance(loaded, mercer.kernels.Kernel)
