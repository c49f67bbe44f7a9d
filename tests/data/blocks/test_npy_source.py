"""Arrays in ``.npy`` files."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Blocks
from mercer._errors import DataError

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": X[:, 0]}, r"X\.npy must hold an array of two dimensions \(rows, columns\), but has shape \(6,\)"),
        ({"X": X.astype(str)}, r"X\.npy holds <U32, but numbers are needed"),
        ({"X": X[:0]}, "has no rows"),
        ({"X": X, "y": X[:5, 0]}, r"X\.npy has 6 rows, but y has shape \(5,\)"),
        ({"X": X, "y": np.full(6, np.nan)}, r"row 1: the target y is missing"),
        ({"X": np.where(X == 5, np.nan, X)}, r"X\.npy, row 3, column 1: a value is missing"),
        ({"X": X, "w": X[:, 0] - 3}, r"row 1: the sample weight sample_weight is -3"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, arrays, words):
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    y, weights = (tmp_path / f"{name}.npy" if name in arrays else None for name in "yw")
    with pytest.raises(DataError, match=words):
        list(Blocks(tmp_path / "X.npy", y, sample_weight=weights))


def test_several_files_must_match(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :1])
    with pytest.raises(DataError, match=r"b\.npy has 1 columns, but .*a\.npy has 2"):
        Blocks([tmp_path / "a.npy", tmp_path / "b.npy"])
    with pytest.raises(DataError, match="there are 2 files of X, but 1 of y"):
        Blocks([tmp_path / "a.npy", tmp_path / "b.npy"], tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0])
    with pytest.raises(DataError, match=r"b\.npy, row 1: y is of shape \(n, 2\) from here on, but of shape \(n,\)"):
        list(Blocks([tmp_path / "a.npy", tmp_path / "b.npy"], [tmp_path / "y.npy", tmp_path / "a.npy"]))
    np.save(tmp_path / "b.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(DataError, match=r"b\.npy cannot be read as a NumPy array"):
        Blocks(tmp_path / "b.npy")
    np.savez(tmp_path / "c.npz", X=X)
    (tmp_path / "c.npz").rename(tmp_path / "c.npy")
    with pytest.raises(DataError, match="holds several arrays"):
        Blocks(tmp_path / "c.npy")


def test_targets_of_every_type(tmp_path):
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    for y, dtype in [(np.arange(6, dtype=np.uint8), np.int64), (np.array(list("abcdef")), object), (X > 3, np.bool_)]:
        np.save(tmp_path / "y.npy", y)
        (block,) = Blocks(tmp_path / "X.npy", tmp_path / "y.npy")
        assert block.y.dtype == dtype and block.y.tolist() == y.tolist()
        # In memory, not in the file.
        assert block.X.flags.c_contiguous and type(block.X) is np.ndarray and block.X.tolist() == X.tolist()
