"""Hashes of data."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mercer.reports.fingerprint import of_file, of_rows

X = np.arange(6.0).reshape(3, 2)
FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", None]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X + 1e-9),
        (X, X.reshape(2, 3)),
        (X, X.astype(np.float32)),
        (sp.csr_matrix(X), sp.csr_matrix(X[::-1])),
        (["a", "b"], ["ab", ""]),
        ([[1.0], [2.0, 3.0]], [[1.0, 2.0], [3.0]]),
        (FRAME, FRAME.rename(columns={"a": "c"})),
        (FRAME, FRAME.assign(b=["x", "None"])),
    ],
)
def test_data_that_differ_have_other_hashes(one, other) -> None:
    assert of_rows(one) == of_rows(one) and of_rows(one) != of_rows(other)


def test_files(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n")
    assert of_file(path) == hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    assert of_file(tmp_path) is None
