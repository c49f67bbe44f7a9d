"""Series in .ts files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer._errors import DataError, MercerWarning
from mercer.data.readers import read_table
from mercer.data.target import read_target

TEXT = """# made by hand
@problemName Steps
@timeStamps false
@univariate false
@classLabel true up down

@data
1,2,3:0,0,1:up
# a comment
3,2:1,1:down
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "a.ts"
    path.write_text(text)
    return path


def test_channels_lengths_and_classes(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, TEXT))
    X, y, name = table.split(None)
    assert name == "label" and y.tolist() == ["up", "down"]
    assert [item.tolist() for item in X["series"]] == [[[1, 0], [2, 0], [3, 1]], [[3, 1], [2, 1]]]
    assert table.roles == {"series": "series"} and table.locate(1) == "line 10"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("true up down", "true").replace(":down", ":"),
        TEXT.replace(":down", ":?"),
        "@targetLabel true\n@data\n1,2:0.5\n2,3:?\n",
    ],
)
def test_missing_targets_stop_a_fit_and_no_prediction(tmp_path: Path, text: str) -> None:
    table = read_table(write(tmp_path, text))
    assert table.n_rows == 2
    with pytest.raises(DataError, match=r"'label' is missing .* in 1 of 2 rows, first in line"):
        read_target(table.targets["label"], "label", locate=table.locate)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("@seriesLength 3", "a series has 3 values, but 1 of 2 have not; that in line 11 has 2"),
        ("@dimensions 1", "a series has 1 channel, but 2 of 2 have not; that in line 9 has 2"),
    ],
)
def test_series_that_are_not_as_the_header_says(tmp_path: Path, line: str, words: str) -> None:
    with pytest.warns(MercerWarning, match=words):
        table = read_table(write(tmp_path, TEXT.replace("@univariate", f"{line}\n@univariate")))
    assert [item.shape for item in table.columns["series"]] == [(3, 2), (2, 2)]


def test_numbers_as_targets_and_none(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "@targetLabel true\n@DATA\n1,2:0.5\n2,3:-1e2\n"))
    np.testing.assert_array_equal(table.split(None)[1], [0.5, -100.0])
    table = read_table(write(tmp_path, "@classLabel false\n@data\n1,2\n2,3\n"))
    assert table.default_target is None and table.n_rows == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@problemName x\n1,2:a\n", "line 2: before '@data' a line must begin with '@'"),
        ("@problemName x\n", "no line '@data'"),
        (TEXT.replace("timeStamps false", "timeStamps true"), "line 3: times of the values"),
        (TEXT.replace(":up", ":sideways"), "line 8: 'sideways' is not among the classes of the header, up, down"),
        (TEXT.replace("1,2,3", "1,?,3"), "line 8: a value is missing"),
        (TEXT.replace("1,2,3", "1,2"), "line 8: the channels of a series must have one length, but have 2, 3"),
        (TEXT.replace("3,2:1,1", "3,2"), "line 10: this series has 1 channels, but the first has 2"),
        (TEXT.replace("1,2,3", "1,x,3"), "line 8: could not convert"),
        (TEXT.replace("1,2,3", "1,1e400,3"), "line 8"),
        (TEXT.replace("0,0,1:up", "0,0,1").replace("3:", "3,"), "line 8: a class or a number must follow the series"),
        (TEXT.replace("@classLabel true up down", ""), "the header needs a line such as '@classLabel true a b'"),
        ("@targetLabel true\n@data\n1,2:b\n", "line 3: the target must be a number"),
        ("@classLabel true a\n@data\n", "no rows of data"),
    ],
)
def test_faults_have_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, text))
