"""Statements of the fields of a record, read from its annotations."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from mercer.data.statements import Arrays, Count, Each, Either, Flag, Is, Maybe, Number, Statement, Texts, Word


@cache
def annotated(cls: type) -> Mapping[str, Statement]:
    """What the annotations of the parameters of ``cls`` state; without those that state nothing that can be checked.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Line:
    ...     slope: float
    ...     name: str | None
    ...     owner: Any
    >>> annotated(Line)
    {'slope': Number(least=None, most=None, finite=False), 'name': Maybe(inner=Word(among=()))}
    """
    statements = {name: statement_of(hint) for name, hint in field_hints(cls).items()}
    return {name: statement for name, statement in statements.items() if statement is not None}


@cache
def field_hints(cls: type) -> Mapping[str, Any]:
    """The annotations of what the constructor of a record takes; the record keeps each under the same name."""
    hints = get_type_hints(cls if is_dataclass(cls) else vars(cls).get("__init__", cls))
    return {name: hints.get(name, Any) for name in inspect.signature(cls).parameters}


def statement_of(hint: Any) -> Statement | None:
    """What an annotation states of a value; None if it allows anything, or more than the vocabulary can say."""
    hint = _written_out(hint)
    plain: dict[Any, Statement] = {
        bool: Flag(),
        int: Count(least=None),
        float: Number(finite=False),
        str: Word(),
        np.ndarray: Arrays(),
    }
    if hint in plain:
        return plain[hint]
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Literal:
        return Word(arguments)
    if kind is np.ndarray:
        (element,) = get_args(arguments[1])
        return Arrays(kinds=_kinds(element))
    if kind in (Union, types.UnionType):
        return _one_of(arguments)
    if kind in (tuple, list, dict):
        return _items(kind, arguments)
    return Is(hint) if isinstance(hint, type) and hint is not Any else None


def _kinds(element: Any) -> str | None:
    """The letters that NumPy has for a type of elements, and for those that it is the parent of."""
    if not (isinstance(element, type) and issubclass(element, np.generic)):
        return None
    # Of those without a unit: lengths of time are a kind of integers to NumPy.
    plain = [np.dtype(code) for code in np.typecodes["All"] if code not in np.typecodes["Datetime"]]
    return "".join(sorted({dtype.kind for dtype in plain if issubclass(dtype.type, element)}))


def _written_out(hint: Any) -> Any:
    """What an alias stands for; ``NDArray`` is one since NumPy 2.5."""
    alias, arguments = get_origin(hint) or hint, get_args(hint)
    if not hasattr(alias, "__value__"):
        return hint
    return _written_out(alias.__value__[arguments] if arguments else alias.__value__)


def _one_of(hints: tuple[Any, ...]) -> Statement | None:
    choices = [statement_of(hint) for hint in hints if hint is not type(None)]
    values = [choice for choice in choices if choice is not None]
    if len(values) < len(choices):
        return None
    whole = values[0] if len(values) == 1 else Either(*values)
    return Maybe(whole) if type(None) in hints else whole


def _items(kind: Any, arguments: tuple[Any, ...]) -> Statement:
    """What is stated of a container: of its items where all are of one type, and text the keys."""
    inner = statement_of(arguments[-1 if kind is dict else 0])
    if inner is not None and kind is dict and arguments[0] is str:
        return Texts(inner)
    if inner is not None and (kind is list or arguments[-1] is Ellipsis):
        return Each(inner, kinds=(kind,))
    return Is(kind)
