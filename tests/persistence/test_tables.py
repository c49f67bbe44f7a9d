"""Tables of objects that somebody made who means harm: each is refused with words."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

import mercer
from forgery import entry, forge, forge_model
from mercer import load, save
from mercer._errors import ModelFileError
from mercer.kernels import RBF, Linear
from mercer.persistence import container
from mercer.persistence.registry import registry

X = np.random.default_rng(0).random((7, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mercer"


ARRAY = {"kind": "array", "order": "C", "data": "a0"}
BYTES = {"a0": entry()}
EMPTY_DICT = {"kind": "dict", "items": []}


def scaler(**fields: Any) -> dict[str, Any]:
    full = {"copy": True, "with_mean": True, "with_std": True, **fields}
    return {"kind": "estimator", "class": "sklearn.StandardScaler", "fields": full}


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "record", "class": name, "fields": fields}


FITTED = {"n_features_in_": 1, "n_samples_seen_": 2, "var_": None, "scale_": None}
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
    "a float that is code": ([{"kind": "float", "value": "__import__('os')"}], "neither NaN nor infinite"),
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
    "an array that is a dict": (
        [EMPTY_DICT, record("mercer.FrozenArray", array=[0], names=None)],
        "must be an array of numbers",
    ),
    "fields without names": ([{**scaler(), "fields": [1]}], "are not named"),
    "a mean that is a dict": ([EMPTY_DICT, scaler(**FITTED, mean_=[0])], r"mean_ must be an array of f8 or f4"),
    "a count that is text": ([scaler(**{**FITTED, "n_features_in_": "3"}, mean_=None)], "must be a whole number"),
    "a scaler without a mean": ([scaler(**FITTED)], "StandardScaler lacks mean_"),
    "a dunder": ([EMPTY_DICT, scaler(__dict__=[0])], "an attribute named '__dict__'"),
    "a class attribute": ([scaler(__class__=1)], "an attribute named '__class__'"),
    "no identifier": ([scaler(**{"a.b": 1})], r"an attribute named 'a\.b'"),
    "a method": ([scaler(transform="x")], "in place of a method"),
    "a property": ([scaler(_repr_html_=1)], "in place of a method"),
    "a missing parameter": (
        [{"kind": "estimator", "class": "sklearn.Pipeline", "fields": {}}],
        "lacks its parameter 'steps'",
    ),
    "steps that are text": (
        [{"kind": "estimator", "class": "sklearn.Pipeline", "fields": {"steps": "x"}}],
        "must be of the class list",
    ),
}


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
        ("[]", "parts other than"),
        ('{"root": 1}', "parts other than"),
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


def _doubled(first: dict[str, Any], pair: Any) -> list[dict[str, Any]]:
    """Rows each of which holds the one before twice, 40 deep."""
    return [first, *(pair(row) for row in range(40))]


@pytest.mark.parametrize("name", ["keys", "sums", "lists"])
def test_shared_parts_cannot_make_an_object_that_is_never_done(name, path):
    """A few kilobytes of pairs of pairs are 2^40 entries to whatever hashes or prints them, deaf to Ctrl-C."""
    tuples = _doubled({"kind": "tuple", "items": [1]}, lambda row: {"kind": "tuple", "items": [[row], [row]]})
    if name == "keys":
        nodes = [*tuples, {"kind": "dict", "items": [[[40], 1]]}]
    elif name == "lists":
        nodes = [{**row, "kind": "list"} for row in tuples]
    else:
        nodes = [record("mercer.RBF")]
        for row in range(0, 80, 2):
            nodes += [{"kind": "tuple", "items": [[row], [row]]}, record("mercer.Sum", terms=[row + 1])]
    forge_model(path, nodes)
    assert path.stat().st_size < 8000
    start_time = time.perf_counter()
    with pytest.raises(ModelFileError, match="shared so often that it would expand"):
        load(path)
    assert time.perf_counter() - start_time < 10


def test_what_is_shared_a_few_times_is_kept_shared(path):
    words = [f"word {i}" for i in range(2000)]
    save([words] * 20, path)
    back = load(path)
    assert back == [words] * 20
    assert back[0] is back[19]


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
    with pytest.raises(ModelFileError, match="not truth values"):
        load(path)
    forge_model(path, [{"kind": "text", "data": "a0"}], entries={"a0": entry("U32", [2, 2])}, data=b"\xff" * 16)
    with pytest.raises(ModelFileError, match="not characters"):
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


@settings(max_examples=75, deadline=None)
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
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
        | st.lists(st.integers(-1, 30), max_size=2)
        | st.just({})
        | st.sampled_from(["a0", "dict", "mercer.RBF"])
    )
    container.write(path, {**texts, "model": json.dumps(table)}, arrays)
    try:
        loaded = load(path)
    except ModelFileError as error:
        assert str(path) in str(error)
    else:
        assert not callable(loaded) or isinstance(loaded, mercer.kernels.Kernel)
