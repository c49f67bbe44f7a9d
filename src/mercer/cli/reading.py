"""How a model reads the columns of a table before it encodes them: as text, as numbers in other notations, as dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mercer.data.date_columns import DateForm, expand_dates
from mercer.data.notation import Notation, read_notations
from mercer.data.roles import VERBATIM
from mercer.data.schema import Locate
from mercer.data.table import Table
from mercer.estimators.table import TableModel

_DATES = "date"
"""What stands in place of a decimal mark for a column of dates."""


@dataclass(frozen=True)
class Reading:
    """Columns that are not taken as they are.

    Parameters
    ----------
    numbers : dict of str to Notation or DateForm
        Columns of numbers and dates in other notations.
    dates : dict of str to list of str
        Columns of dates, and the cycles that become columns beside them.
    verbatim : list of str, optional
        Columns of text that are kept character by character; None in model files that do not say.
    """

    numbers: Mapping[str, Notation | DateForm] = field(default_factory=dict)
    dates: Mapping[str, list[str]] = field(default_factory=dict)
    verbatim: Sequence[str] | None = None

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Reading:
        """That of the report in a model file, whose form has been checked."""
        plain = report.get("reading") or {"numbers": {}, "dates": {}}
        numbers = {name: _notation(*values) for name, values in plain["numbers"].items()}
        return cls(numbers, plain["dates"], plain.get("verbatim"))

    def plain(self) -> dict[str, Any]:
        """As it stands in a report; the opposite of :meth:`of`.

        >>> Reading({"price": Notation(".", "$")}, {"day": ["year"]}).plain()
        {'numbers': {'price': ['.', '$']}, 'dates': {'day': ['year']}, 'verbatim': None}
        """
        numbers = {
            name: [_DATES, form.order] if isinstance(form, DateForm) else [form.decimal, form.sign]
            for name, form in self.numbers.items()
        }
        dates = {name: list(parts) for name, parts in self.dates.items()}
        return {"numbers": numbers, "dates": dates, "verbatim": None if self.verbatim is None else list(self.verbatim)}

    def columns(self, model: TableModel) -> tuple[list[str], list[str]]:
        """Return the columns of a file that are kept character by character, and others that are read as text.

        The kinds of the columns decide this, and not what their entries look like in one file: a category ``1.10`` is
        the same alone and beside others, and so is a number in another notation.
        """
        kinds = model.schema_.kinds
        roles = [name for name, role in model.schema_.roles.items() if role in VERBATIM]
        verbatim = roles if self.verbatim is None else list(self.verbatim)
        texts = [*(name for name, kind in kinds.items() if kind != "number"), *self.numbers, *self.dates]
        if all(isinstance(label, str) for label in getattr(model, "classes_", [0])):
            texts.append(model.target)
        return verbatim, [name for name in texts if name not in verbatim]

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
            *[f"{name}: read as {notation.entries} {notation.describe()}" for name, notation in self.numbers.items()],
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


def _notation(mark: str, sign: str) -> Notation | DateForm:
    return DateForm(sign) if mark == _DATES else Notation(mark, sign)
