"""What all displays share: axes, keys of legends, tables, and the number of rows that a picture shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._optional import optional
from mercer._types import Positions
from mercer.data.objects import short
from mercer.data.seeds import generator
from mercer.data.words import printable, shortened
from mercer.plotting.palette import INK

# Letters of a name in a picture.
_LONGEST = 32


def axes_for(display: object, ax: Any) -> Any:
    """Return the axes to draw into: those given, or new ones.

    Raises
    ------
    MissingDependencyError
        If there are none and matplotlib is not installed.
    """
    if ax is None:
        ax = optional("matplotlib.pyplot", f"{type(display).__name__}.plot").subplots(layout="constrained")[1]
    _as_written(ax.xaxis.label, ax.yaxis.label, ax.title)
    return ax


def name_ticks(axis: Any, places: Any, names: Iterable[Any]) -> None:
    """Label places of an axis with names."""
    axis.set_ticks(places, [str(name) for name in names])
    _as_written(*axis.get_ticklabels())


def colour_bar(ax: Any, artist: Any, label: str) -> Any:
    """Add a bar that shows what colours mean."""
    bar = ax.figure.colorbar(artist, ax=ax, label=label)
    _as_written(bar.ax.xaxis.label, bar.ax.yaxis.label)
    return bar


def fit_texts(figure: Any) -> None:
    """Cut the long names in a figure, which would leave no room for the picture, and escape what files cannot hold."""
    text = optional("matplotlib.text", "pictures").Text
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [label.get_text() for label in axis.get_ticklabels()]
            if any(len(label) > _LONGEST or printable(label) != label for label in labels):
                name_ticks(axis, axis.get_ticklocs(), [shortened(label, _LONGEST) for label in labels])
    for item in figure.findobj(text):
        lines = item.get_text().split("\n")
        if any(len(line) > 2 * _LONGEST or printable(line) != line for line in lines):
            item.set_text("\n".join(shortened(line, 2 * _LONGEST) for line in lines))


def _as_written(*texts: Any) -> None:
    """Names of features and classes may have dollar signs, which would be read as formulas."""
    for text in texts:
        text.set_parse_math(False)


def table(display: object, columns: Mapping[Any, Any]) -> Any:
    """Return columns as a pandas DataFrame.

    >>> table(object(), {"a": [1, 2]}).shape
    (2, 1)
    """
    return optional("pandas", f"{type(display).__name__}.frame").DataFrame(dict(columns))


def mark(label: str, marker: str, colour: str = INK) -> Any:
    """Return the key of a marker in a legend."""
    lines = optional("matplotlib.lines", "a legend")
    return lines.Line2D([], [], linestyle="", marker=marker, color=colour, label=label)


def line(label: str, style: str, colour: str = INK) -> Any:
    """Return the key of a line in a legend."""
    return optional("matplotlib.lines", "a legend").Line2D([], [], linestyle=style, color=colour, label=label)


def legend(
    ax: Any, keys: Sequence[Any] | None = None, title: str = "", *, outside: bool = False, **options: Any
) -> Any:
    """Add a legend of keys, or of all labelled artists; None if there are none.

    A legend outside of the axes covers no rows; only a figure of its own has room for it.
    """
    handles = ax.get_legend_handles_labels()[0] if keys is None else list(keys)
    if not handles and not title:
        return None
    if outside:
        options = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} | options
    drawn = ax.legend(handles=handles, title=title or None, fontsize="small", title_fontsize="small", **options)
    _as_written(drawn.get_title(), *drawn.get_texts())
    return drawn


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``.

    Raises
    ------
    ParameterError
        If it is not one.

    Examples
    --------
    >>> whole("max_points", 5, 1)
    5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, but is {short(value)}.")
    return int(value)


def shown_rows(n: int, most: Any, random_state: Any, name: str = "max_points") -> Positions:
    """Return the positions of at most ``most`` of n rows, ascending, drawn without replacement.

    >>> shown_rows(3, 10, 0).tolist(), len(shown_rows(1000, 10, 0))
    ([0, 1, 2], 10)
    """
    count = whole(name, most, 1)
    if n <= count:
        return np.arange(n)
    return np.sort(generator(random_state).choice(n, count, replace=False)).astype(np.intp)


def shown_text(shown: int, n: int) -> str:
    """Return the sentence for a picture that shows only some of the rows; empty if it shows all.

    >>> shown_text(10, 2000), shown_text(10, 10)
    ('10 of 2000 rows shown', '')
    """
    return "" if shown == n else f"{shown} of {n} rows shown"
