"""How a model reads the columns of a table before it encodes them: numbers in other notations, and dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mercer.data.date_columns import expand_dates
from mercer.data.notation import Notation, read_notations
from mercer.data.schema import Locate
from mercer.data.table import Table


@dataclass(frozen=True)
class Reading:
    """Columns that are not taken as they are.

    Parameters
    ----------
    numbers : dict of str to Notation
        Columns of numbers in other notations.
    dates : dict of str to list of str
        Columns of dates, and the cycles that become columns beside them.
    """

    numbers: Mapping[str, Notation] = field(default_factory=dict)
    dates: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Reading:
        """That of the report in a model file, whose form has been checked."""
        plain = report.get("reading") or {"numbers": {}, "dates": {}}
        return cls({name: Notation(*values) for name, values in plain["numbers"].items()}, plain["dates"])

    def plain(self) -> dict[str, dict[str, list[str]]]:
        """As it stands in a report; the opposite of :meth:`of`.

        >>> Reading({"price": Notation(".", "$")}, {"day": ["year"]}).plain()
        {'numbers': {'price': ['.', '$']}, 'dates': {'day': ['year']}}
        """
        numbers = {name: [notation.decimal, notation.sign] for name, notation in self.numbers.items()}
        return {"numbers": numbers, "dates": {name: list(parts) for name, parts in self.dates.items()}}

    def words(self) -> list[str]:
        """A sentence for each column.

        >>> Reading({"price": Notation(".", "$")}, {"day": ["year", "week"]}).words()
        ["price: read as numbers without '$', with the decimal mark '.'", 'day: a date, read as a number and its place \
in the year and week']
        """
        cycles = {
            name: f" and its place in the {' and '.join(parts)}" if parts else "" for name, parts in self.dates.items()
        }
        return [
            *[f"{name}: read as numbers {notation.describe()}" for name, notation in self.numbers.items()],
            *[f"{name}: a date, read as a number{words}" for name, words in cycles.items()],
        ]

    def frame(self, frame: Any, source: str, locate: Locate) -> Any:
        """Return a data frame as the model reads it.

        Raises
        ------
        DataError
            If an entry is not written as those of the fit.
        """
        return expand_dates(read_notations(frame, self.numbers, source, locate), self.dates, source, locate)

    def table(self, table: Table) -> Table:
        """Return a table as the model reads it."""
        if table.is_sparse or not (self.numbers or self.dates):
            return table
        return replace(table, columns=self.frame(table.columns, table.source, table.locate))
