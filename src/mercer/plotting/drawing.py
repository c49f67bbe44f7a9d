"""What all displays share: axes, keys of legends, tables, and the number of rows that a picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._optional import optional
from mercer._types import Positions
from mercer.data.seeds import generator
from mercer.plotting.palette import INK


def axes_for(display: object, ax: Any) -> Any:
    """Return the axes to draw into: those given, or new ones.

    Raises
    ------
    MissingDependencyError
        If there are none and matplotlib is not installed.
    """
    if ax is not None:
        return ax
    pyplot = optional("matplotlib.pyplot", f"{type(display).__name__}.plot")
    return pyplot.subplots(layout="constrained")[1]


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


def legend(ax: Any, keys: Sequence[Any] | None = None, title: str = "", **options: Any) -> Any:
    """Add a legend of keys, or of all labelled artists; None if there are none."""
    handles = ax.get_legend_handles_labels()[0] if keys is None else list(keys)
    if not handles and not title:
        return None
    return ax.legend(handles=handles, title=title or None, fontsize="small", title_fontsize="small", **options)


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``.

    Raises
    ------
    ParameterError
        If it is none.

    Examples
    --------
    >>> whole("max_points", 5, 1)
    5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, but is {value!r}.")
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
    """Return the sentence that says that a picture has not all rows; empty if it has.

    >>> shown_text(10, 2000), shown_text(10, 10)
    ('10 of 2000 rows shown', '')
    """
    return "" if shown == n else f"{shown} of {n} rows shown"
