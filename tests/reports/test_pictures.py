"""Pictures as elements of a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from mercer.reports.document import Figure, Table

EVIL = '<script>alert("1")</script> $x_$ \u202e'
TABLE = Table.of("numbers", ("a",), [(1.0,)])


def _root(draw, title: str = "A picture") -> ET.Element:
    return ET.fromstring(Figure(title, "what it shows", TABLE, draw).svg())


def test_names_are_text_in_the_font_of_the_page() -> None:
    root = _root(lambda ax: ax.set(title=EVIL, xlabel="$y$"))
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$y$" in texts and any("<script>" in (text or "") for text in texts)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert root.get("role") == "img" and root.get("aria-label") == "A picture: what it shows"


def test_colours_are_those_of_the_page() -> None:
    source = Figure("A", "b", TABLE, lambda ax: ax.plot([0, 1], color="#222222")).svg()
    assert "currentColor" in source and "#222222" not in source and "#ffffff" not in source and "<style" not in source


def test_parts_of_two_pictures_have_different_names() -> None:
    ids = [{node.get("id") for node in _root(lambda ax: ax.scatter([0, 1], [0, 1]), title).iter()} for title in "ab"]
    assert ids[0] & ids[1] == {None}


@pytest.mark.parametrize("length", [200, 5000])
def test_long_names_are_cut(length: int) -> None:
    def draw(ax) -> None:
        ax.set_xticks([0, 1], ["x" * length, "y"])
        ax.set_title("z" * length)

    assert max(len(text.text or "") for text in _root(draw).iter("{http://www.w3.org/2000/svg}text")) <= 64


def test_characters_that_svg_cannot_hold_are_escaped() -> None:
    """Classes and files may have names with them."""

    def draw(ax) -> None:
        ax.set_xticks([0, 1], ["yes\x1b[1m", "no\x07"])
        ax.plot([0, 1], [0, 1], label="\x00line")
        ax.legend()
        ax.set_title("a title\x1b[2J")

    texts = " ".join(text.text or "" for text in _root(draw).iter("{http://www.w3.org/2000/svg}text"))
    assert all(name in texts for name in (r"yes\x1b[1m", r"no\x07", r"\x00line", r"a title\x1b[2J"))


def test_powers_are_written_without_formulas() -> None:
    root = _root(lambda ax: (ax.plot([1, 1e6], [1, 1e-6]), ax.set(xscale="log", yscale="log")))
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert "1e+06" in texts and not any("$" in (text or "") for text in texts)
