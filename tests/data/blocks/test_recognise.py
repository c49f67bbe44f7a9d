"""The kind of a source, told by its type and suffix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mercer import Blocks
from mercer._errors import DataError, ParameterError

X = np.eye(3)


def generator():
    yield X


@pytest.mark.parametrize(
    ("source", "kind"), [(generator(), "generator"), (iter([X]), "list_iterator"), (map(len, []), "map")]
)
def test_what_can_be_read_only_once(source, kind):
    with pytest.raises(DataError, match=f"a {kind}, which can be read only once.*Pass a function"):
        Blocks(source)
    assert Blocks(generator).shape == (3, 3)


@pytest.mark.parametrize("source", [3, None, {"a": X}, {1, 2}, b"a.csv"])
def test_what_is_no_source(source):
    with pytest.raises(DataError, match=f"rows cannot be read from a {type(source).__name__}"):
        Blocks(source)


def test_arrays_have_no_names():
    with pytest.raises(ParameterError, match=r"columns=.* chooses columns by name, which arrays have not"):
        Blocks(X, columns=["a"])
    labels = ["0", "u", "v"]
    assert Blocks(pd.DataFrame(X), labels).survey().classes.tolist() == labels
    assert Blocks(pd.DataFrame(X), ["0", "1"]).columns == ("2",)
    with pytest.raises(DataError, match="X has 3 rows, but y has shape"):
        Blocks(X, "y")
    with pytest.raises(DataError, match="X has 3 rows, but sample_weight has shape"):
        Blocks(pd.DataFrame(X), sample_weight=[1.0])
    with pytest.raises(DataError, match="has several columns of the name '0'"):
        Blocks(pd.DataFrame(X, columns=[0, 0, 1]))
    with pytest.raises(DataError, match="has no columns other than '0', so there is nothing to learn"):
        Blocks(pd.DataFrame(X[:, :1]), "0")


@pytest.mark.parametrize("source", [X[:0], pd.DataFrame(X[:0])])
def test_sources_without_rows(source):
    with pytest.raises(DataError, match="has no rows"):
        Blocks(source)


def test_suffixes(tmp_path):
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.svm").write_text("1 0:1\n")
    (tmp_path / "c.csv").write_text("x\n1\n")
    for suffixes in (("a.npy", "b.svm"), ("a.npy", "c.csv")):
        with pytest.raises(DataError, match="there must be one kind of"):
            Blocks([tmp_path / name for name in suffixes])
    (tmp_path / "d.xlsx").write_text("x\n1\n")
    with pytest.raises(DataError, match=r"d\.xlsx is not told by the suffix of its files, which is '\.xlsx'"):
        Blocks(tmp_path / "d.xlsx")
    with pytest.raises(DataError, match="one kind of"):
        Blocks(tmp_path)
    with pytest.raises(ParameterError, match="svmlight files is their label"):
        Blocks(tmp_path / "b.svm", "y")
    for name in ("a.npy", "b.svm"):
        with pytest.raises(ParameterError, match="which only tables have"):
            Blocks(tmp_path / name, columns=["a"])
    assert Blocks([X.tolist()[0], X.tolist()[1]]).shape == (2, 3)
