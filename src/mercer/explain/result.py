"""What an explanation is: parts of a row, and what each contributes to a decision value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer._types import Vector
from mercer.engine import memory

Method = Literal["exact", "left out"]

# A symbol as text, as a number and in the form that loops read.
_SYMBOL_BYTES = 16
# Rows of the table that is printed, and characters of a name in it.
_SHOWN, _WIDTH = 10, 44


class Part(NamedTuple):
    """A part of a row.

    Parameters
    ----------
    kind : str
        What it is, as in ``"substring"``, ``"subtree"``, ``"column"``, ``"training row"`` or ``"constant"``.
    name : str
        The substring, the subtree, the name of the column, and so on.
    places : tuple of int, optional
        The positions of symbols or times, the numbers of nodes, columns, members or rows; empty for no place.
    term : str, default=""
        The term of a sum of kernels that sees it; empty if there is one term.

    Examples
    --------
    >>> str(Part("substring", "gram", (3, 4, 5, 6)))
    'gram at 3-6'
    """

    kind: str
    name: str
    places: tuple[int, ...] = ()
    term: str = ""

    @property
    def label(self) -> str:
        """The name as it is printed: spaces of a substring are visible."""
        return self.name.replace(" ", "\N{OPEN BOX}") if self.kind == "substring" else self.name

    def __str__(self) -> str:
        located = self.kind in _LOCATED and self.places
        return f"{self.label} at {runs_of(self.places)}" if located else self.label


# Names of others say where they are.
_LOCATED = {"substring", "word", "subtree", "fragments", "edge", "path", "neighbourhood"}


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What the parts of a row contribute to a decision value; see :func:`contributions`.

    Parameters
    ----------
    parts : tuple of Part
        The parts of the row, in its order.
    values : ndarray of shape (n_parts,)
        What each contributes.
    intercept : float
        What the model adds for every row.
    decision : float
        The decision value of the row, from the model itself.
    method : {"exact", "left out"}
        ``"exact"``: the values and the intercept sum to the decision value. ``"left out"``: a value is the difference
        that leaving the part out makes, and the values need not sum to anything.
    output : str
        What the decision value is for, such as ``"spam"`` against ``"ham"``; empty for a single number.
    item : object
        The string, tree, graph or series in which the places of the parts are, or None.

    Examples
    --------
    >>> explanation = Contributions((Part("column", "age", (0,)),), np.array([0.5]), 0.25, 0.75, "exact", "", None)
    >>> explanation
    decision value 0.75
                0.5  age
               0.25  (intercept)
               0.75  sum, exact
    """

    parts: tuple[Part, ...]
    values: Vector
    intercept: float
    decision: float
    method: Method
    output: str
    item: Any

    @property
    def sum(self) -> float:
        """The values and the intercept together, summed without rounding."""
        return math.fsum([*self.values.tolist(), self.intercept])

    def top(self, n: int) -> list[int]:
        """Return the positions of the parts with the largest absolute values, the largest first.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        list of int
        """
        return [int(i) for i in np.argsort(-np.abs(self.values), kind="stable")[:n]]

    def by_place(self) -> Vector:
        """Return the sum at each place of ``item``: a part is shared equally by its places.

        Returns
        -------
        ndarray of shape (places,)
            A number for each symbol of a string, node of a tree or graph, or time of a series.

        Raises
        ------
        DataError
            If the parts are not places of one object.
        """
        if self.item is None:
            raise DataError(
                "the parts of this row have no common positions, because its kernel compares columns or several "
                "objects; use frame(), which lists the parts."
            )
        totals = np.zeros(count_places(self.item))
        for part, value in zip(self.parts, self.values, strict=True):
            if part.places:
                np.add.at(totals, list(part.places), value / len(part.places))
        return totals

    def frame(self) -> Any:
        """Return the parts as a table.

        Returns
        -------
        pandas.DataFrame
            ``part``, ``kind``, ``places`` (text, such as ``"3-6"``), ``term`` and ``value``.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        columns = {
            "part": [part.name for part in self.parts],
            "kind": [part.kind for part in self.parts],
            "places": [runs_of(part.places) for part in self.parts],
            "term": [part.term for part in self.parts],
            "value": self.values,
        }
        return optional("pandas", "Contributions.frame").DataFrame(columns)

    def __repr__(self) -> str:
        what = f" for {self.output}" if self.output else ""
        lines = [f"decision value {self.decision:.6g}{what}"]
        for i in self.top(_SHOWN):
            lines.append(_line(self.values[i], cut(str(self.parts[i]), _WIDTH)))
        rest = sorted(set(range(len(self.parts))) - set(self.top(_SHOWN)))
        if rest:
            lines.append(_line(math.fsum(self.values[rest].tolist()), f"({len(rest)} other parts)"))
        lines.append(_line(self.intercept, "(intercept)"))
        if self.method == "exact":
            lines.append(_line(self.sum, "sum, exact"))
        else:
            lines.append("each value is the difference that leaving the part out makes; they need not sum")
        return "\n".join(lines)


def _line(value: float, name: str) -> str:
    return f"{value:>15.6g}  {name}"


def require_copies(copies: int, size: int, what: str) -> None:
    """Raise an error unless so many copies of a row of ``size`` symbols or nodes fit the memory budget.

    Raises
    ------
    MemoryBudgetError
        If they do not fit.
    """
    memory.require(
        _SYMBOL_BYTES * copies * size,
        f"{copies} changed copies of a row of {size} {what}",
        'Explain a shorter row or by="rows", or raise the budget with mercer.config(memory=...).',
    )


def count_places(item: Any) -> int:
    """Return the number of places of an object: symbols, nodes, times or members.

    >>> from mercer import Graph
    >>> count_places("abc"), count_places(Graph(n=4)), count_places(np.zeros((7, 2)))
    (3, 4, 7)
    """
    return int(item.n) if hasattr(item, "n") else len(item)


def runs_of(places: Sequence[int]) -> str:
    """Return places as text, consecutive ones as a range.

    >>> runs_of((3, 4, 5)), runs_of((0, 2, 3)), runs_of(())
    ('3-5', '0, 2-3', '')
    """
    ordered = sorted(set(places))
    runs: list[list[int]] = []
    for place in ordered:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def cut(text: str, width: int) -> str:
    """Return text on one line, of at most so many characters.

    >>> cut("a tree with many nodes", 10)
    'a tree ...'
    """
    line = " ".join(text.split()) if "\n" in text else text
    return line if len(line) <= width else line[: width - 3] + "..."
