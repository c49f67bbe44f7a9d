"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mercer.data.words import printable


def notebook_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as HTML, in the colours of the page around it; what stands in it is text.

    Parameters
    ----------
    title : str
    heads : sequence of str
        Of the columns; empty for none.
    rows : iterable of sequences

    Examples
    --------
    >>> notebook_table("RBF(1.0)", ["name"], [["<b>"]]).count("&lt;b&gt;")
    1
    """
    lines = [_line("th", heads)] if heads else []
    lines += [_line("td", row) for row in rows]
    caption = f'<caption style="text-align: left"><code>{_text(title)}</code></caption>'
    return f"<table>{caption}{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[object]) -> str:
    start, end = f'<{tag} style="text-align: left">', f"</{tag}>"
    return f"<tr>{''.join(start + _text(cell) + end for cell in cells)}</tr>"


def _text(value: object) -> str:
    return escape(printable(f"{value:.6g}" if isinstance(value, float) else str(value)))
