"""The parts of a report, as plain values: sections of sentences, facts, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mercer._optional import optional
from mercer.data.words import significant
from mercer.engine.drafts import written_in_one_stroke
from mercer.reports.pictures import element
from mercer.reports.render import is_number, page, value


@dataclass(frozen=True)
class Table:
    """Rows of values under heads.

    Parameters
    ----------
    title : str
    heads : tuple of str
    rows : tuple of tuples
        Numbers and text as they are, None for what is not known.
    is_long : bool, default=False
        Whether the page folds it away.
    rounded : tuple of str, default=()
        Heads of the columns of which the page shows four digits, however large the numbers are.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_long: bool = False
    rounded: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, heads: Iterable[Any], rows: Iterable[Sequence[Any]], **options: Any) -> Table:
        """Return a table of any sequences, with heads of any kind."""
        return cls(title, tuple(map(str, heads)), tuple(map(tuple, rows)), **options)

    @classmethod
    def of_frame(cls, title: str, frame: Any) -> Table:
        """Return a data frame as a table."""
        return cls.of(title, frame.columns, frame.itertuples(index=False))

    def column(self, head: str) -> list[Any]:
        """Return the values under a head.

        >>> Table("Scores", ("model", "accuracy"), (("SVC", 0.9), ("dummy", 0.5))).column("accuracy")
        [0.9, 0.5]
        """
        place = self.heads.index(head)
        return [row[place] for row in self.rows]

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers, which stand to the right."""
        return any(is_number(row[place]) for row in self.rows)

    def shown(self, row: Sequence[Any]) -> list[str]:
        """Return the values of a row as the page shows them.

        >>> Table("Scores", ("rows", "RMSE"), ((12345, 48213.7),), rounded=("RMSE",)).shown((12345, 48213.7))
        ['12345', '48210']
        """
        return [
            significant(cell).replace("-", "−") if head in self.rounded and _is_finite(cell) else value(cell)
            for head, cell in zip(self.heads, row, strict=True)
        ]

    def frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        return optional("pandas", "Table.frame").DataFrame(list(self.rows), columns=list(self.heads))


def _is_finite(cell: Any) -> bool:
    return is_number(cell) and math.isfinite(cell)


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture with its numbers.

    Parameters
    ----------
    title : str
    words : str
        What it shows, for people who do not see it.
    table : Table
        Its numbers, or as many as are worth reading.
    draw : callable
        Draws on matplotlib's axes, when the page is made.
    size : (float, float), default=(6.4, 3.8)
        In inches.
    """

    title: str
    words: str
    table: Table
    draw: Callable[[Any], object]
    size: tuple[float, float] = (6.4, 3.8)

    def svg(self) -> str:
        """Return the picture as an element of a page.

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        return element(self.title, self.words, self.draw, self.size)


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Parameters
    ----------
    name : str
        Its key, as in ``report["scores"]``.
    title : str
    text : tuple of str
        Paragraphs.
    facts : tuple of (str, value)
    tables : tuple of Table
    figures : tuple of Figure
    is_folded : bool
        Whether it is for a second look: the page shows its title alone until it is opened.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    facts: tuple[tuple[str, Any], ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    is_folded: bool = False

    def fact(self, name: str) -> Any:
        """Return the value of a fact.

        >>> Section("data", "Data", facts=(("rows", 3),)).fact("rows")
        3
        """
        return dict(self.facts)[name]

    def table(self, title: str) -> Table:
        """Return the table, also that of a figure, whose title begins so."""
        tables = [*self.tables, *(figure.table for figure in self.figures)]
        return next(table for table in tables if table.title.startswith(title))


@dataclass(frozen=True)
class Report:
    """A report of a fitted model; see :func:`mercer.report`. It shows itself in a notebook.

    Parameters
    ----------
    title : str
    verdict : tuple of str
        Three sentences: how good the predictions are, how good the solution is, and what to do.
    sections : tuple of Section
    """

    title: str
    verdict: tuple[str, ...]
    sections: tuple[Section, ...]

    def __getitem__(self, name: str) -> Section:
        """Return the section of this name."""
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(f"the report has no section {name!r}; it has {', '.join(s.name for s in self.sections)}")

    def __contains__(self, name: object) -> bool:
        return any(section.name == name for section in self.sections)

    def to_html(self) -> str:
        """Return the report as one page without scripts, which loads nothing.

        Raises
        ------
        MissingDependencyError
            If jinja2 or matplotlib is not installed.
        """
        return page(self)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, in one step, and return its path.

        Parameters
        ----------
        path : str or Path
            Such as ``"report.html"``.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        target, text = Path(path), self.to_html()
        with written_in_one_stroke(target) as (file, _):
            file.write(text.encode("utf-8"))
        return target

    def _repr_html_(self) -> str:
        # A frame, so that neither the styles of the page nor those of the notebook reach the other.
        return (
            f'<iframe sandbox title="{escape(self.title)}" srcdoc="{escape(self.to_html())}" '
            'style="width: 100%; height: 40rem; border: 1px solid #7f7f7f"></iframe>'
        )

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.verdict])
