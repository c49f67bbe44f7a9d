"""Writing and reading a model file: what cannot be saved is refused, and nothing half-written is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from mercer import load, save
from mercer._errors import MemoryBudgetError, MercerWarning, ModelFileError
from mercer.engine.settings import config
from mercer.kernels import RBF, Linear, from_function
from mercer.persistence import container

X = np.random.default_rng(0).random((12, 3))


class Stranger:
    pass


class OwnKernel(RBF):
    pass


UNSAVABLE = [
    (RBF().scaled_by(len) + Linear(), r"Sum\.terms\[0\]\.function is a Python function \(len\)"),
    (from_function(np.inner), r"FromFunction\.function is a Python function"),
    (Linear() * RBF().warped(lambda x: x), r"Product\.terms\[1\]\.map is a Python function \(<lambda>\)"),
    (Pipeline([("log", FunctionTransformer(np.log1p))]), r"Pipeline\.steps\[0\]\[1\]\.func is a Python function"),
    ({"model": [Stranger()]}, r"dict\['model'\]\[0\] is an object of the class .*Stranger"),
    (Pipeline([("line", LinearRegression())]), r"Pipeline\.steps\[0\]\[1\] is an object of the class .*Linear"),
    (OwnKernel(), "OwnKernel is an object of the class"),
    (Stranger, "type is the class .*Stranger"),
    (SimpleImputer(missing_values=np.random.RandomState(0)), "missing_values .*Pass a whole number"),
    (sp.csc_matrix(np.eye(2)), r"csc_matrix is a csc_matrix, .*tocsr\(\)"),
    (np.ones(2, complex), "ndarray is an array of complex128"),
    (np.ones(2, "datetime64[s]"), "ndarray is an array of datetime64"),
    (np.ones(2, "i4,f8"), "ndarray is an array of"),
    (np.ma.masked_array([1.0]), "MaskedArray is an object of the class"),
    (2**2000, "int is an object of the class builtins.int"),
]


@pytest.mark.parametrize(("model", "message"), UNSAVABLE, ids=[m for _, m in UNSAVABLE])
def test_what_cannot_be_saved_is_named_before_anything_is_written(model, message, tmp_path):
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "model.mercer")
    assert os.listdir(tmp_path) == []


def test_circles_and_bottomless_nesting_are_refused(tmp_path):
    circle: list = [1]
    circle.append({"me": circle})
    with pytest.raises(ModelFileError, match=r"list\[1\]\['me'\] contains itself"):
        save(circle, tmp_path / "model.mercer")
    with pytest.raises(ModelFileError, match="nested more than 100 levels"):
        save(deepen([], 5000), tmp_path / "model.mercer")
    # Sharing can make things deeper than any path that is walked while saving.
    deep = deepen([], 80)
    with pytest.raises(ModelFileError, match="nested deeper than 100"):
        save([deep, deepen(deep, 50)], tmp_path / "model.mercer")
    assert os.listdir(tmp_path) == []


def deepen(value: list, levels: int) -> list:
    for _ in range(levels):
        value = [value]
    return value


# ---- writing


def test_the_file_is_a_safetensors_file(tmp_path):
    path = tmp_path / "model.mercer"
    arrays = [X, np.arange(7, dtype=np.int8), np.array([True]), X.astype(np.float32)]
    save(arrays, path)
    with safe_open(path, framework="numpy") as file:
        names = file.keys()
        tensors = [file.get_tensor(name) for name in names]
        metadata = file.metadata()
    assert sorted(t.tobytes() for t in tensors) == sorted(a.tobytes() for a in arrays)
    assert metadata["format"] == "mercer-model"
    assert metadata["format_version"] == "1"
    assert json.loads(metadata["model"])["nodes"]


def test_every_array_is_aligned_in_the_file(tmp_path):
    path = tmp_path / "model.mercer"
    for length in range(8):
        save([np.ones(3, np.int8), "x" * length, np.ones(3, np.int16), X], path)
        content = path.read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        del header["__metadata__"]
        sizes = {"F64": 8, "I16": 2, "I8": 1}
        assert len(header) == 3
        assert all((start + e["data_offsets"][0]) % sizes[e["dtype"]] == 0 for e in header.values())


def test_saving_replaces_the_file_and_respects_links_and_the_umask(tmp_path):
    path, link = tmp_path / "model.mercer", tmp_path / "link.mercer"
    link.symlink_to(path)
    save(RBF(1.0), path)
    save(RBF(2.0), str(link))
    assert load(path) == load(link) == RBF(2.0)
    assert link.is_symlink()
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["link.mercer", "model.mercer", "plain"]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_leaves_the_old_file_and_nothing_else(step, failure, tmp_path, monkeypatch):
    path = tmp_path / "model.mercer"
    save(RBF(1.0), path)

    def fail(*_):
        raise failure

    target = {"write": (container, "_chunks"), "fsync": (os, "fsync"), "replace": (os, "replace")}[step]
    monkeypatch.setattr(*target, fail)
    expected = KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else ModelFileError
    with pytest.raises(expected):
        save([X, RBF(2.0)], path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["model.mercer"]
    assert load(path) == RBF(1.0)


BAD_PATHS = [
    ("nowhere/model.mercer", "the directory .*nowhere does not exist; create it"),
    ("", "is a directory"),
    ("a\0b", "is not a file name"),
]


@pytest.mark.parametrize(("name", "message"), BAD_PATHS)
def test_places_that_cannot_be_written(name, message, tmp_path):
    with pytest.raises(ModelFileError, match=message):
        save(RBF(), f"{tmp_path}/{name}")
    with pytest.raises(ModelFileError):
        load(f"{tmp_path}/{name}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", [3, None, b"model.mercer", ""])
def test_paths_of_the_wrong_kind(path):
    with pytest.raises(ModelFileError, match="is not a file name"):
        save(RBF(), path)
    with pytest.raises(ModelFileError, match="is not a file name"):
        load(path)


def test_too_much_text_for_a_header_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "_LARGEST_HEADER", 10_000)
    with pytest.raises(ModelFileError, match="keep long lists of numbers or strings in NumPy arrays"):
        save(["word"] * 5000, tmp_path / "model.mercer")
    assert os.listdir(tmp_path) == []


# ---- loading


def test_a_model_that_exceeds_the_memory_budget_is_refused(tmp_path):
    path = tmp_path / "model.mercer"
    save(np.zeros(100_000), path)
    with config(memory="100KB"), pytest.raises(MemoryBudgetError, match=r"model\.mercer would take 781\.2 KiB"):
        load(path)


def test_another_version_of_scikit_learn_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.__version__", "1.2.3")
    save(StandardScaler().fit(X), tmp_path / "model.mercer")
    monkeypatch.undo()
    with pytest.warns(MercerWarning, match=r"saved with scikit-learn 1\.2\.3"):
        back = load(tmp_path / "model.mercer")
    assert back.mean_.tolist() == X.mean(axis=0).tolist()


def test_a_parameter_that_the_writing_version_lacked_takes_its_default(tmp_path):
    node = {"kind": "estimator", "class": "sklearn.StandardScaler", "fields": {"copy": True, "with_std": True}}
    table = {"root": [0], "nodes": [node]}
    texts = {"format_version": "1", "mercer_version": "0", "sklearn_version": "1.0", "model": json.dumps(table)}
    container.write(tmp_path / "model.mercer", texts, {})
    with pytest.warns(MercerWarning):
        back = load(tmp_path / "model.mercer")
    assert back.with_mean is True
    assert repr(back) == "StandardScaler()"


# The peak is that of a process, so a fresh one measures it.
MEASURE = """
import resource, sys
from mercer import load, save

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

save([1.0], sys.argv[2])
load(sys.argv[2])
before = peak()
model = load(sys.argv[1])
print(peak() - before - sum(array.nbytes for array in model))
before = peak()
save(model, sys.argv[2])
print(peak() - before)
"""


@pytest.mark.slow
def test_the_arrays_are_held_once(tmp_path):
    save([np.ones((1000, 4000)), np.ones((2800, 2800), np.float32, order="F")], tmp_path / "model.mercer")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "model.mercer"), str(tmp_path / "again.mercer")]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    loading, saving = map(int, result.stdout.split())
    # A second copy of the arrays would take 63 MB, while saving less what loading has left free.
    assert loading < 25_000_000 and saving < 30_000_000


def test_a_name_that_is_too_long_is_a_documented_error(tmp_path):
    for name in ("a" * 300, "a/" * 3000 + "b"):
        with pytest.raises(ModelFileError, match="cannot be written: File name too long"):
            save(RBF(1.0), tmp_path / name)
    assert not list(tmp_path.iterdir())
