"""Pictures of a report: drawn with matplotlib, and put into the page as elements that follow its colours."""

from __future__ import annotations

import io
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from mercer._optional import optional
from mercer.data.words import shortened
from mercer.plotting.drawing import fit_texts
from mercer.plotting.palette import COLOURS, INK

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# What takes the colours of the page instead, dark or light.
_COLOURS = {
    COLOURS[0].lower(): "var(--blue)",
    INK: "currentColor",
    "#000000": "currentColor",
    "#ffffff": "var(--paper)",
}
_STYLE = {
    # Text stays text, in the font of the page; a $ in a name is a dollar.
    "svg.fonttype": "none",
    "svg.hashsalt": "mercer",
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.facecolor": "#ffffff",
    "legend.framealpha": 0.85,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 10.0,
}


def element(title: str, words: str, draw: Callable[[Any], object], size: tuple[float, float]) -> str:
    """Return a picture as an element to put into a page.

    Parameters
    ----------
    title : str
        Different from those of the other pictures of the page.
    words : str
        What it shows, for people who do not see it.
    draw : callable
        Draws on the axes that it gets.
    size : (float, float)
        In inches of 72 points.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    matplotlib = optional("matplotlib", "the pictures of a report")
    figures = optional("matplotlib.figure", "the pictures of a report")
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser has letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph|.*constrained_layout", UserWarning)
        drawing = figures.Figure(figsize=size, layout="constrained")
        axes = drawing.subplots()
        draw(axes)
        _plain_powers(drawing)
        fit_texts(drawing)
        file = io.StringIO()
        drawing.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=0.06)
    return _element(file.getvalue(), title, words)


def _plain_powers(drawing: Any) -> None:
    """Write the numbers of logarithmic axes without formulas, which are text here."""
    ticker = optional("matplotlib.ticker", "the pictures of a report")
    for axes in drawing.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter(ticker.FuncFormatter(lambda number, _: f"{number:g}"))
                axis.set_minor_formatter(ticker.NullFormatter())


def _element(source: str, title: str, words: str) -> str:
    """The picture as an element: with a name and a description, and colours and names that fit into any page."""
    root = ET.fromstring(source[source.index("<svg") :])
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    # Names of parts are unique in a page: two figures have different titles.
    mark = f"f{hash_of(title):x}-"
    for node in root.iter():
        for name, value in node.attrib.items():
            node.set(name, _fitted(name, value, mark))
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", shortened(f"{title}: {words}", 400))
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return ET.tostring(root, encoding="unicode")


def hash_of(text: str) -> int:
    """Return a number for a text that is the same in every process.

    >>> hash_of("a")
    97
    """
    value = 0
    for letter in text.encode("utf-8", "surrogatepass"):
        value = (value * 31 + letter) % 2**32
    return value


def _fitted(name: str, value: str, mark: str) -> str:
    if name == "id":
        return mark + value
    if name == f"{{{_XLINK}}}href" and value.startswith("#"):
        return f"#{mark}{value[1:]}"
    if name not in ("style", "clip-path", "fill", "stroke"):
        return value
    value = value.replace("url(#", f"url(#{mark}")
    for old, new in _COLOURS.items():
        value = value.replace(old, new)
    return value.replace("'DejaVu Sans', 'Bitstream Vera Sans'", "system-ui, 'DejaVu Sans'")
