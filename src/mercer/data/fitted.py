"""What a class states about its fitted objects, and the check of an object against these statements.

The statements are a class attribute ``_fitted``, written in the vocabulary of
:mod:`mercer.data.statements`. Model files are checked against them before anything in a file is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mercer._errors import DataError
from mercer.data.statements import Context, Statement

Rule = tuple[str, Callable[[Any], bool]]


@dataclass(frozen=True)
class Fitted:
    """What a class states about its fitted objects.

    Parameters
    ----------
    always : dict of str to Statement
        Attributes that every fitted object has, in the order in which sizes become known.
    sometimes : dict of str to Statement
        Attributes that some fitted objects have.
    parameters : dict of str to Statement
        Parameters of the constructor that are used after the fit.
    derived : dict of str to callable
        Sizes that follow from others, which the parameters of the function name.
    rules : tuple of (str, callable)
        Further conditions on the object, as the text of an error and a function that tests the object.
    """

    always: Mapping[str, Statement] = field(default_factory=dict)
    sometimes: Mapping[str, Statement] = field(default_factory=dict)
    parameters: Mapping[str, Statement] = field(default_factory=dict)
    derived: Mapping[str, Callable[..., int]] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Entry:
    """The statement about one attribute."""

    statement: Statement
    required: bool
    parameter: bool = False


@dataclass(frozen=True)
class Statements:
    """The statements of a class and its bases, the bases first."""

    entries: Mapping[str, Entry]
    derived: Mapping[str, Callable[..., int]]
    rules: tuple[Rule, ...]

    @property
    def attributes(self) -> set[str]:
        """Names of the attributes, without the parameters of the constructor."""
        return {name for name, entry in self.entries.items() if not entry.parameter}


@cache
def statements(cls: type) -> Statements | None:
    """Return the statements of a class and its bases together; None if there are none.

    A statement of the class about an attribute replaces that of a base.
    """
    parts: list[Fitted] = [vars(base)["_fitted"] for base in reversed(cls.__mro__) if "_fitted" in vars(base)]
    return combined(parts) if parts else None


def combined(parts: Sequence[Fitted]) -> Statements:
    """Return several statements as one; the last statement about an attribute counts."""
    entries: dict[str, Entry] = {}
    for part in parts:
        entries |= {name: Entry(statement, True) for name, statement in part.always.items()}
        entries |= {name: Entry(statement, False) for name, statement in part.sometimes.items()}
        entries |= {name: Entry(statement, False, True) for name, statement in part.parameters.items()}
    derived = {name: size for part in parts for name, size in part.derived.items()}
    return Statements(entries, derived, tuple(rule for part in parts for rule in part.rules))


def check_fitted(model: Any, stated: Statements | None = None) -> None:
    """Raise unless a fitted object is as its class states; an object that is not fitted passes.

    Raises
    ------
    DataError
        The message has the attribute, its value, and the requirement.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data.statements import Floats, Whole
    >>> class Line:
    ...     _fitted = Fitted({"slope_": Floats("d"), "support_": Whole("s", below="d")})
    >>> line = Line()
    >>> check_fitted(line)
    >>> line.slope_, line.support_ = np.ones(3), np.array([0, 3])
    >>> check_fitted(line)
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: Line.support_ must be at most 2, but is 3
    """
    cls: type = type(model)
    stated = statements(cls) if stated is None else stated
    attributes, name = vars(model), cls.__name__
    if stated is None or (stated.attributes and not stated.attributes & attributes.keys()):
        return
    missing = [key for key, entry in stated.entries.items() if entry.required and key not in attributes]
    if missing:
        raise DataError(f"{name} lacks {', '.join(missing)}")
    context = Context(model, {}, dict(stated.derived))
    for key, entry in stated.entries.items():
        if key in attributes:
            entry.statement.check(attributes[key], f"{name}.{key}", context)
    for words, holds in stated.rules:
        if not holds(model):
            raise DataError(f"{name}: {words}")
