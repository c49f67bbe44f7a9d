"""The parts of a string, tree, graph or row of columns that made a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._optional import optional
from mercer._types import Vector
from mercer.data.graph import Graph
from mercer.explain import Contributions, contributions
from mercer.explain.result import count_places, cut
from mercer.explain.trees import LabelledTree
from mercer.plotting.drawing import Display, name_ticks, whole
from mercer.plotting.layouts import Places, of_graph, of_tree
from mercer.plotting.palette import DIVERGING, INK, QUIET

_NAME = 36
# Beyond this many, symbols and labels of nodes cannot be read.
_MOST_SYMBOLS, _MOST_NODES = 2000, 150
# The height of a cell of a symbol by its width, and inches of a line and of what stands around the lines.
_TALL, _LINE, _AROUND = 1.5, 0.32, 1.7
# Every so many positions of a line have a number.
_MARKED = 5


@dataclass(eq=False, repr=False)
class ContributionsDisplay(Display):
    """What the parts of a row contribute to a decision value; see :func:`mercer.explain.contributions`.

    A string is coloured by position, a tree or graph has coloured nodes, and of other rows, such as numbers in columns,
    the largest values are bars. Make it with :meth:`from_estimator` or :meth:`from_contributions`.

    Parameters
    ----------
    contributions : Contributions
        The parts and their values.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer or None
        Of the parts that are shown, the largest on top.
    cells_ : matplotlib QuadMesh or None
        Of the symbols of a string, line by line.
    nodes_ : matplotlib PathCollection or None
        Of a tree or graph.
    texts_ : list of matplotlib Text
        The symbols, or the labels of nodes.
    colorbar_ : matplotlib Colorbar or None

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.kernels import Spectrum
    >>> from mercer.plotting import ContributionsDisplay
    >>> model = SVC(kernel=Spectrum(2)).fit(["abab", "abba", "cdcd", "ddcc"], [1, 1, 0, 0])
    >>> display = ContributionsDisplay.from_estimator(model, "abcd").plot()
    >>> [text.get_text() for text in display.texts_]
    ['a', 'b', 'c', 'd']
    """

    contributions: Contributions

    @classmethod
    def from_estimator(cls, estimator: Any, row: Any, *, output: Any = None, by: Any = "parts") -> Self:
        """Compute the contributions of the parts of a row.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        row : object
            One row.
        output, by
            As for :func:`mercer.explain.contributions`.

        Returns
        -------
        ContributionsDisplay

        Raises
        ------
        DataError, ParameterError
            As :func:`mercer.explain.contributions`.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        return cls(contributions(estimator, row, output=output, by=by))

    @classmethod
    def from_contributions(cls, contributions: Contributions) -> Self:
        """Show given contributions.

        Parameters
        ----------
        contributions : Contributions

        Returns
        -------
        ContributionsDisplay

        Raises
        ------
        ParameterError
            If it is something else.
        """
        if not isinstance(contributions, Contributions):
            raise ParameterError(
                f"contributions must be the result of mercer.explain.contributions, but is {contributions!r}."
            )
        return cls(contributions)

    def plot(self, ax: Any = None, *, kind: str = "auto", max_parts: int = 20, width: int = 30) -> Self:
        """Draw the object with coloured places, or bars of the largest parts.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        kind : {"auto", "places", "bars"}, default="auto"
            ``"places"`` colours the symbols of a string or the nodes of a tree or graph by the sum over the parts that
            contain them, each shared equally by its places. ``"bars"`` draws parts. ``"auto"`` draws places for
            strings of up to 2000 symbols and trees and graphs of up to 150 nodes, and bars for other rows.
        max_parts : int, default=20
            The most bars; the title says how many parts are left out.
        width : int, default=30
            Symbols in a line.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If ``kind`` is not one of these, there are no places to colour, or a number is not a whole one of at least
            1.
        MissingDependencyError
            If matplotlib is not installed.
        """
        most, columns = whole("max_parts", max_parts, 1), whole("width", width, 1)
        item = self.contributions.item
        drawn = _can_be_drawn(item)
        if kind not in ("auto", "places", "bars"):
            raise ParameterError(f"kind must be 'auto', 'places' or 'bars', but is {kind!r}.")
        if kind == "places" and not drawn:
            raise ParameterError("kind='places' needs the parts of a string, a tree or a graph; use kind='bars'.")
        self._open(ax)
        self.bars_: Any = None
        self.cells_: Any = None
        self.nodes_: Any = None
        self.colorbar_: Any = None
        self.texts_: list[Any] = []
        if kind == "bars" or not (drawn and (kind == "places" or _is_small(item))):
            self._draw_bars(most)
        elif isinstance(item, str):
            self._draw_text(item, columns)
            if ax is None:
                self.figure_.set_figheight(_AROUND + _LINE * len(self.ax_.get_yticks()))
        else:
            is_graph = isinstance(item, Graph)
            self._draw_nodes(of_graph(item) if is_graph else of_tree(item.labels, item.parents))
            if is_graph:
                self.ax_.set_aspect("equal")
        return self

    def frame(self) -> Any:
        """Return all parts.

        Returns
        -------
        pandas.DataFrame
            As of :meth:`mercer.explain.Contributions.frame`.
        """
        return self.contributions.frame()

    @property
    def _meaning(self) -> str:
        explanation = self.contributions
        what = f" for {explanation.output}" if explanation.output else ""
        return f"decision value {explanation.decision:.4g}{what}"

    @property
    def _value(self) -> str:
        return "contribution" if self.contributions.method == "exact" else "lost if it is left out"

    def _draw_bars(self, most: int) -> None:
        explanation = self.contributions
        shown = explanation.top(most)[::-1]
        values, places = explanation.values[shown], np.arange(len(shown))
        self.bars_ = self.ax_.barh(places, values, color=_colours(values), edgecolor=INK, linewidth=0.6)
        self.ax_.axvline(0.0, color=INK, linewidth=0.8)
        name_ticks(self.ax_.yaxis, places, [cut(str(explanation.parts[i]), _NAME) for i in shown])
        self.ax_.set(xlabel=self._value, ylabel="part")
        left = len(explanation.parts) - len(shown)
        more = f", {len(shown)} of {len(explanation.parts)} parts shown" if left else ""
        # Two short lines: long ones are cut in files.
        self.ax_.set_title(f"{self._meaning}\nintercept {explanation.intercept:.4g}{more}", fontsize="small")

    def _draw_text(self, item: str, width: int) -> None:
        values = self.contributions.by_place()
        width = max(min(width, len(item)), 1)
        lines = max(-(-len(item) // width), 1)
        cells = np.full(lines * width, np.nan)
        cells[: len(item)] = values
        grid = np.ma.masked_invalid(cells.reshape(lines, width))
        norm = _symmetric(values)
        self.cells_ = self.ax_.pcolormesh(grid, cmap=DIVERGING, norm=norm)
        for at, symbol in enumerate(item):
            line, column = divmod(at, width)
            self.texts_.append(
                self.ax_.text(
                    column + 0.5,
                    line + 0.5,
                    symbol if symbol.isprintable() else "\N{REPLACEMENT CHARACTER}",
                    ha="center",
                    va="center",
                    family="monospace",
                    fontsize=_text_size(width),
                    color=_on(self.cells_.cmap(norm(values[at]))),
                )
            )
        marked = np.arange(0, width, _MARKED)
        self.ax_.set_xticks(marked + 0.5, [str(column) for column in marked])
        self.ax_.set_yticks(np.arange(lines) + 0.5, [str(line * width) for line in range(lines)])
        self.ax_.set(xlabel="position in the line", ylabel="first position", ylim=(lines, 0), aspect=_TALL)
        self.ax_.set_title(self._meaning, fontsize="small")
        self._add_colours(self.cells_, orientation="horizontal")

    def _draw_nodes(self, places: Places) -> None:
        values, (xs, ys) = self.contributions.by_place(), places.points.T
        for one, other in places.edges:
            self.ax_.plot(xs[[one, other]], ys[[one, other]], color=QUIET, linewidth=1.2, zorder=1)
        norm = _symmetric(values)
        self.nodes_ = self.ax_.scatter(
            xs, ys, c=values, cmap=DIVERGING, norm=norm, s=places.size, edgecolors=INK, linewidths=0.8, zorder=2
        )
        for x, y, label, value in zip(xs, ys, places.labels, values):
            colour = _on(self.nodes_.cmap(norm(value)))
            text = self.ax_.text(
                x, y, label, ha="center", va="center", fontsize=8, color=colour, zorder=3, parse_math=False
            )
            if len(label) > 3:
                # Wider than the node: beside it, on its colour.
                text.set_bbox(
                    {"boxstyle": "round,pad=0.2", "facecolor": self.nodes_.cmap(norm(value)), "linewidth": 0.6}
                )
            self.texts_.append(text)
        self.ax_.set(xticks=[], yticks=[], xlabel=places.xlabel, ylabel=places.ylabel)
        self.ax_.margins(0.12)
        self.ax_.set_title(self._meaning, fontsize="small")
        self._add_colours(self.nodes_)

    def _add_colours(self, drawn: Any, **options: Any) -> None:
        self.colorbar_ = self.figure_.colorbar(drawn, ax=self.ax_, label=f"{self._value}, by place", **options)


def _can_be_drawn(item: Any) -> bool:
    return (isinstance(item, str) and len(item) > 0) or (isinstance(item, (LabelledTree, Graph)) and item.n > 0)


def _is_small(item: Any) -> bool:
    return count_places(item) <= (_MOST_SYMBOLS if isinstance(item, str) else _MOST_NODES)


def _symmetric(values: Vector) -> Any:
    """Colours about 0, as far to either side."""
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    return optional("matplotlib.colors", "ContributionsDisplay.plot").Normalize(-most, most)


def _colours(values: Vector) -> Any:
    colours = optional("matplotlib", "ContributionsDisplay.plot").colormaps[DIVERGING]
    return colours(_symmetric(values)(values))


def _on(colour: Any) -> str:
    """The colour of a text that can be read on this one."""
    red, green, blue = colour[:3]
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def _text_size(width: int) -> float:
    return float(np.clip(360.0 / width, 5.0, 12.0))
