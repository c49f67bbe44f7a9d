"""Every display: it is in the page of pictures, names its axes, and returns its numbers as a table."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mercer import plotting

_FILE = Path(__file__).resolve().parents[2] / "examples" / "pictures.py"
_SPEC = importlib.util.spec_from_file_location("pictures", _FILE)
assert _SPEC is not None and _SPEC.loader is not None
pictures = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(pictures)


@pytest.mark.parametrize("make", pictures.PICTURES, ids=lambda make: make.__name__)
def test_a_picture_has_named_axes_and_numbers(make: Callable[[], Any]) -> None:
    display = make()
    assert display.plot() is display
    assert display.ax_.get_xlabel() and display.ax_.get_ylabel()
    assert display.ax_.has_data() and display.figure_ is display.ax_.figure
    table = display.frame()
    assert isinstance(table, pd.DataFrame) and len(table) and table.columns.is_unique


def test_the_page_has_every_display() -> None:
    source = _FILE.read_text(encoding="utf-8")
    assert [name for name in plotting.__all__ if f"plotting.{name}.from_" not in source] == []


def test_pictures_are_written_to_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "PICTURES", (pictures.prior,))
    pictures.main(tmp_path / "new")
    assert (tmp_path / "new" / "prior.png").read_bytes().startswith(b"\x89PNG")


def test_help_prints_the_usage_and_names_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        pictures.folder_of(["--help"])
    assert stop.value.code == 0 and "FOLDER" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        pictures.folder_of([])
    assert stop.value.code == 2 and capsys.readouterr().err.startswith("usage:")
    assert pictures.folder_of(["pictures"]) == Path("pictures")
