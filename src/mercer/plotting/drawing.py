"""What all displays share: axes, keys of legends, tables, and the number of rows that a picture shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._optional import optional
from mercer._types import AnyArray, Matrix, Positions, Vector
from mercer.data.objects import short
from mercer.data.seeds import generator
from mercer.data.words import printable, shortened
from mercer.plotting.palette import INK, colour, marker, style

# Letters of a name in a picture.
_LONGEST = 32


class Display:
    """What all displays are: dataclasses of the numbers that their ``plot`` draws into axes."""

    ax_: Any
    figure_: Any

    def _open(self, ax: Any) -> None:
        """Keep the axes to draw into: those given, or new ones."""
        if ax is None:
            ax = optional("matplotlib.pyplot", f"{type(self).__name__}.plot").subplots(layout="constrained")[1]
        _as_written(ax.xaxis.label, ax.yaxis.label, ax.title)
        self.ax_, self.figure_ = ax, ax.figure


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


def groups(ax: Any, places: Matrix, codes: AnyArray, labels: Iterable[Any], **options: Any) -> dict[int, Any]:
    """Draw rows (n, 2) by their group: a colour and a marker for each group that has rows."""
    return {
        number: ax.scatter(
            *places[codes == number].T,
            marker=marker(number),
            color=colour(number),
            edgecolors=INK,
            zorder=2,
            label=str(label),
            **options,
        )
        for number, label in enumerate(labels)
        if (codes == number).any()
    }


def curves(ax: Any, x: Vector, values: Matrix, labels: Iterable[str], **options: Any) -> list[Any]:
    """Draw columns (m, k) over x (m,), told apart by colour and style."""
    return [
        ax.plot(x, column, **{"color": colour(i), "linestyle": style(i), "label": label, **options})[0]
        for i, (column, label) in enumerate(zip(values.T, labels))
    ]


def sides(
    x: Vector, values: Mapping[str, Vector], *parts: tuple[Any, Sequence[str]], markers: Sequence[str]
) -> dict[str, Any]:
    """Draw values by their names: each part has axes, on one side of a picture, and the names of what they show."""
    lines = {}
    for ax, names in parts:
        for name in names:
            i = list(values).index(name)
            lines[name] = curves(
                ax,
                x,
                values[name][:, None],
                [name],
                color=colour(i),
                linestyle=style(i),
                marker=markers[i % len(markers)],
                markersize=4,
            )[0]
        if names:
            ax.set_ylabel(", ".join(names))
    return lines


def mark(label: str, shape: str, ink: str = INK) -> Any:
    """Return the key of a marker in a legend."""
    return line(label, "", ink, marker=shape)


def line(label: str, dashes: str, ink: str = INK, **options: Any) -> Any:
    """Return the key of a line in a legend."""
    lines = optional("matplotlib.lines", "a legend")
    return lines.Line2D([], [], linestyle=dashes, color=ink, label=label, **options)


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
