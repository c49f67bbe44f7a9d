"""Columns as they are written in files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mercer.data.blocks.written import is_written, written_columns


def test_files_are_cut_where_blocks_are(tmp_path: Path) -> None:
    for name, texts in (("a", ["1.0", "NA", "x"]), ("b", ["", "007"]), ("c", [])):
        pd.DataFrame({"id": texts, "more": "z"}).to_csv(tmp_path / f"{name}.csv", index=False)
    parts = [part["id"].tolist() for part in written_columns(tmp_path, ["id"], 2)]
    assert parts == [["1.0", "NA"], ["x", ""], ["007"]]
    (whole,) = written_columns(tmp_path / "*.csv", ["more", "id"])
    assert whole.columns.tolist() == ["more", "id"] and len(whole) == 5


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_whole_numbers_and_truths_with_gaps_have_types(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame(
        {"id": pd.array([2**60 + 1, None], dtype="Int64"), "ok": pd.array([True, None], dtype="boolean")}
    )
    getattr(frame, f"to_{suffix}")(tmp_path / f"a.{suffix}")
    assert is_written(tmp_path / f"a.{suffix}") and not is_written(tmp_path / "a.xlsx")
    (whole,) = written_columns(tmp_path / f"a.{suffix}", ["ok", "id"])
    pd.testing.assert_frame_equal(whole, frame[["ok", "id"]])
