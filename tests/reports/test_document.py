"""Reports as values, files and pages."""

from __future__ import annotations

import os
import re
import stat

import pytest

from mercer.reports.document import Figure, Report, Section, Table

EVIL = '<img src=x onerror="alert(1)">'


def made(name: str = EVIL) -> Report:
    table = Table.of(name, ("name", name), [(name, 1.0), ("other", None)])
    picture = Figure(name, "a line", table, lambda ax: ax.plot([0, 1], label=name))
    section = Section("data", "Data", (name,), ((name, name),), (table,), (picture,))
    return Report(name, (name, "b", "c"), (section,))


def test_names_are_text() -> None:
    text = made().to_html()
    assert EVIL not in text and text.count("&lt;img") > 8 and "</svg>" in text


def test_the_page_needs_nothing_and_runs_nothing() -> None:
    text = made().to_html()
    assert "default-src 'none'" in text
    # Names of languages are no addresses.
    text = re.sub(r'xmlns(:xlink)?="http://www.w3.org/[^"]*"', "", text)
    assert not re.search(r"<script|https?://|<link(?! rel=\"icon\" href=\"data:,\")", text)


def test_a_notebook_gets_a_frame_of_its_own() -> None:
    text = made()._repr_html_()
    assert text.startswith("<iframe sandbox") and "<html" not in text and text.count("<") == 2


def test_long_and_strange_text_is_cut() -> None:
    text = made("x" * 5000 + "\u202e").to_html()
    assert "\u202e" not in made("a\u202eb").to_html().partition("<h2")[0]
    assert "x" * 121 not in text.partition("<h2")[0] and "x" * 2001 not in text


def test_parts_are_found_by_name() -> None:
    report = made("a")
    assert report["data"].table("a").column("a") == [1.0, None] and report["data"].fact("a") == "a"
    assert list(report["data"].table("a").frame().columns) == ["name", "a"]
    assert "data" in report and "other" not in report
    with pytest.raises(KeyError, match="no section 'other'; it has data"):
        report["other"]


def test_a_file_is_written_in_one_step(tmp_path) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")
    assert made().save(path) == path and path.read_text(encoding="utf-8") == made().to_html()
    assert os.listdir(tmp_path) == ["r.html"]
    if os.getuid():
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(PermissionError):
            made().save(tmp_path / "s.html")
    with pytest.raises(OSError, match=r"No such"):
        made().save(tmp_path / "none" / "r.html")
