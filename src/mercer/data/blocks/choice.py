"""Which columns of a table are X, which are the target, and which holds the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from mercer._errors import DataError, ParameterError
from mercer.data.objects import short
from mercer.data.words import closest_names, listing


@dataclass(frozen=True)
class Choice:
    """What a user requests: names of the targets, of the columns of X (None: all others), and of the weights."""

    targets: tuple[str, ...] = ()
    one_target: bool = True
    columns: tuple[str, ...] | None = None
    weight: str | None = None

    @classmethod
    def of(cls, target: Any, columns: Any, sample_weight: Any) -> Choice:
        """From the arguments of a user.

        Raises
        ------
        ParameterError
            If one is not a name or several.
        """
        targets = _names("target", target)
        if sample_weight is not None and not isinstance(sample_weight, str):
            raise ParameterError(f"sample_weight must be the name of a column, but is {sample_weight!r}.")
        chosen = None if columns is None else _names("columns", columns)
        return cls(targets, target is None or isinstance(target, str), chosen, sample_weight)

    def resolve(self, names: Sequence[str], file: str) -> tuple[str, ...]:
        """Return the columns of X among the columns of a file.

        Raises
        ------
        DataError
            If a chosen column does not exist, none is left, or names are not unique.
        """
        twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
        if twice:
            raise DataError(f"{file} has several columns of the name {twice[0]!r}; give each its own name.")
        apart = (*self.targets, *([] if self.weight is None else [self.weight]))
        columns = tuple(name for name in names if name not in apart) if self.columns is None else self.columns
        for name in (*apart, *columns):
            if name not in names:
                near = closest_names(name, names)
                offer = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
                raise DataError(f"{file} has no column {name!r}. {offer}Its columns are {listing(names)}.")
        both = [name for name in columns if name in apart]
        if both:
            raise ParameterError(f"the column {both[0]!r} is both one of the columns of X and target or weight.")
        if not columns:
            raise DataError(f"{file} has no columns other than {listing(apart)}, so there is nothing to learn from.")
        return columns

    def check_same(self, names: Sequence[str], file: str, first: Sequence[str], first_file: str) -> None:
        """Raise unless a file has the columns of the first one; others may come where columns were chosen by name.

        Raises
        ------
        DataError
            If a column is missing or new.
        """
        apart = (*self.targets, *([] if self.weight is None else [self.weight]))
        needed = first if self.columns is None else (*self.columns, *apart)
        missing = [name for name in needed if name not in names]
        if missing:
            raise DataError(
                f"{file} has no column {missing[0]!r}, which {first_file} has. Its columns are {listing(names)}; all "
                "files must have the same ones."
            )
        new = [name for name in names if name not in needed] if self.columns is None else []
        if new:
            raise DataError(
                f"{file} has a column {new[0]!r}, which {first_file} lacks. All files must have the same columns; name "
                "those to read with columns=[...]."
            )


def check_count(what: str, value: Any) -> int:
    """Return a whole number of 1 or more.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ParameterError(f"{what} must be a whole number of 1 or more, but is {short(value)}.")
    return int(value)


def _names(what: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{what} must be the name of a column or a list of names, but is {str(value)[:80]!r}.")
    if len(set(names)) < len(names):
        raise ParameterError(f"{what} names a column twice: {listing(names)}.")
    return tuple(names)
