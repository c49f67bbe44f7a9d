"""Model files: everything comes back as it was, and nothing half-written is ever left behind."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

from kernel_table import EXAMPLES
from mercer import load, save
from mercer._errors import ModelFileError
from mercer.kernels import RBF, Kernel, Linear
from mercer.persistence.registry import registry
from mercer.solvers.solution import Certificate, Status

RNG = np.random.default_rng(0)
X = RNG.random((12, 3))

FUNCTIONS = {"FromFunction", "FromSklearn", "ScaledBy", "Warped"}


def parts(kernel: Kernel) -> set[type]:
    return {type(kernel)}.union(*(parts(child) for _, child in kernel.children()))


def holds_function(kernel: Kernel) -> bool:
    return not FUNCTIONS.isdisjoint(cls.__name__ for cls in parts(kernel))


KERNELS = [(kernel, data) for kernel, data in EXAMPLES if not holds_function(kernel)]


def round_trip(value, directory: Path):
    path = directory / "model.mercer"
    save(value, path)
    return load(path)


@pytest.mark.parametrize(("kernel", "data"), KERNELS, ids=[repr(kernel) for kernel, _ in KERNELS])
def test_kernels_come_back_equal(kernel, data, tmp_path):
    back = round_trip(kernel, tmp_path)
    assert back == kernel
    assert hash(back) == hash(kernel)
    assert repr(back) == repr(kernel)
    assert back.parameters == kernel.parameters
    assert np.array_equal(back(*data), kernel(*data))


def test_every_kernel_class_is_covered():
    classes = {cls.__name__ for cls in set().union(*(parts(kernel) for kernel, _ in KERNELS))}
    names = {cls.__name__ for cls in registry().records.classes.values() if issubclass(cls, Kernel)}
    bases = {base.__name__ for cls in registry().records.classes.values() for base in cls.__mro__[1:]}
    assert names - classes - bases == FUNCTIONS


@pytest.mark.parametrize("kernel", [k for k, _ in EXAMPLES if holds_function(k)], ids=repr)
def test_kernels_with_functions_are_refused_by_the_path_of_the_function(kernel, tmp_path):
    named = r"\.(function|map) is a Python function|FromSklearn\.theirs is an object of the class"
    with pytest.raises(ModelFileError, match=named):
        save(kernel, tmp_path / "model.mercer")
    assert os.listdir(tmp_path) == []


def test_names_in_files_are_unique():
    for names in (registry().records, registry().estimators):
        assert len(names.classes) == len(names.names)


PLAIN = [
    None,
    True,
    0,
    -(2**80),
    1.5,
    -0.0,
    float("inf"),
    "",
    "é\ud800",
    b"".decode(),
    (),
    [],
    {},
    (1, [2.5, (None,)], {"a": 1, 2: "b", (1, "x"): [3], None: 0}),
    slice(1, None, 2),
    np.float32(0.1),
    np.float64(1 / 3),
    np.int8(-3),
    np.bool_(False),
    np.str_("a"),
    np.float16(0.1),
    np.uint64(2**64 - 1),
    np.dtype("float32"),
    np.dtype("O"),
    np.dtype("<U7"),
    np.float64,
    float,
    Status.converged,
    Certificate(1.5, 1.0, 1e-4, np.int64(10), 0.1, 800, Status.direct),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back_equal(value, tmp_path):
    back = round_trip(value, tmp_path)
    assert type(back) is type(value)
    assert back == value
    assert repr(back) == repr(value)


def test_nan_comes_back(tmp_path):
    back = round_trip({"x": float("nan"), "y": np.float32("nan"), "z": np.array([np.nan, -0.0])}, tmp_path)
    assert type(back["x"]) is float and np.isnan(back["x"])
    assert type(back["y"]) is np.float32 and np.isnan(back["y"])
    assert np.isnan(back["z"][0]) and np.signbit(back["z"][1])


ARRAYS = [
    np.zeros((0, 5)),
    np.array(2.5),
    np.array([True, False]),
    np.array(["a", "bbb", ""]),
    np.array("x"),
    np.empty((2, 0), "<U3"),
    np.array([["α", "\U0001f600"]], dtype=object),
    np.array([], dtype=object),
    np.array([1, None, "x", 2.5], dtype=object).reshape(2, 2),
    np.arange(6, dtype="f2"),
    np.arange(4, dtype=">i4"),
    np.arange(6)[::2],
    np.arange(3, dtype=np.longlong),
    np.ones(3, np.uint8),
]


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_arrays_come_back_equal(array, tmp_path):
    back = round_trip(array, tmp_path)
    assert type(back) is np.ndarray
    assert back.shape == array.shape
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.tolist() == array.tolist()
    assert back.flags.writeable


def test_an_object_array_of_sequences_comes_back(tmp_path):
    array = np.empty(2, dtype=object)
    array[0], array[1] = np.arange(3.0), [1, 2]
    back = round_trip(array, tmp_path)
    assert back.shape == (2,)
    assert back[0].tolist() == [0.0, 1.0, 2.0]
    assert back[1] == [1, 2]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_come_back_equal(kind, tmp_path):
    matrix = kind(sp.random(20, 30, 0.1, random_state=0, dtype=np.float32))
    back = round_trip(matrix, tmp_path)
    assert type(back) is kind
    assert back.dtype == np.float32
    assert (back != matrix).nnz == 0


def test_the_order_in_memory_is_kept(tmp_path):
    back = round_trip([np.asfortranarray(X), X, X.T], tmp_path)
    assert [a.flags.f_contiguous for a in back] == [True, False, True]
    assert all(np.array_equal(a, b) for a, b in zip(back, [X, X, X.T], strict=True))


def test_shared_objects_stay_shared(tmp_path):
    array, kernel, row = X.copy(), RBF(2.0), [1, 2]
    back = round_trip({"a": array, "b": (array, row), "k": kernel, "s": [kernel + Linear(), row]}, tmp_path)
    assert back["a"] is back["b"][0]
    assert back["b"][1] is back["s"][1]
    assert back["k"] is back["s"][0].children()[0][1]


def test_objects_that_exist_only_while_they_are_saved_are_not_taken_for_shared(tmp_path, monkeypatch):
    scalers = [MinMaxScaler() for _ in range(30)]
    original = MinMaxScaler.get_params
    monkeypatch.setattr(
        MinMaxScaler,
        "get_params",
        lambda self, deep=True: {**original(self, deep), "extra": float("inf" if scalers.index(self) % 2 else "-inf")},
    )
    back = round_trip(scalers, tmp_path)
    assert [vars(scaler)["extra"] for scaler in back] == [-np.inf, np.inf] * 15


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(value=json_like)
def test_any_nest_of_plain_values_comes_back(value, tmp_path_factory):
    back = round_trip(value, tmp_path_factory.mktemp("files"))
    assert repr(back) == repr(value)


@settings(max_examples=40, deadline=None)
@given(
    array=hnp.arrays(
        hnp.integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64)) | hnp.unicode_string_dtypes() | st.just("?"),
        hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4),
    )
)
def test_any_array_comes_back(array, tmp_path_factory):
    back = round_trip(array, tmp_path_factory.mktemp("files"))
    assert back.shape == array.shape
    assert back.dtype == array.dtype.newbyteorder("=")
    # Bytes, so that NaN with its payload and negative zero count too.
    assert back.tobytes() == array.astype(back.dtype).tobytes()


# ---- scikit-learn's transformers

FRAME = pd.DataFrame(
    {"age": [1.0, np.nan, 3.0, 9.0], "town": ["Ulm", "Zug", None, "Ulm"], "old": [True, False, True, True]}
)


def test_the_fitted_preprocessing_of_a_table_comes_back(tmp_path):
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median", add_indicator=True), MinMaxScaler()), ["age"]),
            ("words", OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2), ["town"]),
            ("flags", "passthrough", slice(2, 3)),
        ],
        remainder=StandardScaler(),
    ).fit(FRAME)
    pipeline = Pipeline([("columns", columns), ("same", FunctionTransformer()), ("unit", Normalizer())]).fit(FRAME)
    back = round_trip(pipeline, tmp_path)
    assert np.array_equal(back.transform(FRAME), pipeline.transform(FRAME))
    assert repr(back) == repr(pipeline)
    assert back.named_steps["columns"].get_feature_names_out().tolist() == columns.get_feature_names_out().tolist()


def test_transformers_that_keep_data_frames_come_back(tmp_path):
    scaler = StandardScaler().set_output(transform="pandas").fit(FRAME[["age"]])
    back = round_trip(scaler, tmp_path)
    pd.testing.assert_frame_equal(back.transform(FRAME[["age"]]), scaler.transform(FRAME[["age"]]))


def test_labels_and_unfitted_models_come_back(tmp_path):
    labels = LabelEncoder().fit(["b", "a", "b"])
    assert round_trip(labels, tmp_path).transform(["a", "b"]).tolist() == [0, 1]
    assert round_trip(MinMaxScaler((1, 2)), tmp_path).get_params() == MinMaxScaler((1, 2)).get_params()
    kernel = 2.0 * gaussian_process.RBF([1.0, 2.0]) + gaussian_process.WhiteKernel(0.1)
    assert round_trip(kernel, tmp_path) == kernel
