"""The options of the commands, as plain values."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mercer._errors import ParameterError


@dataclass(frozen=True)
class FitOptions:
    """The options of ``mercer fit``."""

    data: str
    target: str | None = None
    task: str | None = None
    model: str | None = None
    kernel: str | None = None
    settings: list[str] = field(default_factory=list)
    normalize: str = "standard"
    impute: str | None = None
    drop: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    axes: str | None = None
    test_size: float = 0.2
    refit: bool = True
    rows: int | None = None
    seed: int = 0
    out: Path | None = None
    memory: str | None = None
    n_jobs: int | None = None
    quiet: bool = False
    json: bool = False


@dataclass(frozen=True)
class UseOptions:
    """The options of ``mercer predict`` and ``mercer evaluate``."""

    model: Path
    data: str
    drop: list[str] = field(default_factory=list)
    axes: str | None = None
    out: Path | None = None
    memory: str | None = None
    n_jobs: int | None = None
    quiet: bool = False
    json: bool = False
    interval: float | None = None
    probabilities: bool = False


def roles_of_columns(**columns: list[str] | None) -> dict[str, str]:
    """Return ``text=["message"]`` as ``{"message": "text"}``, for every role that an option names.

    Raises
    ------
    ParameterError
        If a column is given two roles.

    Examples
    --------
    >>> roles_of_columns(text=["title", "body"], tree=None)
    {'title': 'text', 'body': 'text'}
    """
    roles: dict[str, str] = {}
    for role, names in columns.items():
        for name in names or []:
            if roles.setdefault(name, role) != role:
                raise ParameterError(f"--{role} {name} and --{roles[name]} {name} are mutually exclusive; remove one.")
    return roles


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Return ``["C=10", "class_weight=balanced"]`` as a dict; values are Python literals, or else text.

    Raises
    ------
    ParameterError
        If an item is not of the form NAME=VALUE, or a name is given twice.

    Examples
    --------
    >>> parse_settings(["C=10", "class_weight=balanced"])
    {'C': 10, 'class_weight': 'balanced'}
    """
    values: dict[str, Any] = {}
    for item in settings:
        name, equals, text = item.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier() or not text.strip():
            raise ParameterError(f"--set takes NAME=VALUE, as in --set C=10, but got {item!r}.")
        if name in values:
            raise ParameterError(f"--set {name} is given twice; give it once.")
        values[name] = _literal(text.strip())
    return values


def _literal(text: str) -> Any:
    if text in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
