"""The options of the commands, as plain values."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mercer._errors import ParameterError


@dataclass(frozen=True)
class FitOptions:
    """The options of ``mercer fit`` and ``mercer tune``; ``tune`` are the seconds of a search, None for none.

    ``time_option`` is the option that gives them, for messages.
    """

    data: str
    target: str | None = None
    task: str | None = None
    model: str | None = None
    kernel: str | None = None
    settings: list[str] = field(default_factory=list)
    normalize: str = "standard"
    impute: str | None = None
    calibrate: bool = False
    parse_numbers: bool = False
    drop: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    axes: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    test_size: float | None = None
    test: str | None = None
    split: tuple[str, str] | None = None
    refit: bool = True
    rows: int | None = None
    seed: int = 0
    out: Path | None = None
    memory: str | None = None
    n_jobs: int | None = None
    quiet: bool = False
    json: bool = False
    tune: float | None = None
    folds: int = 5
    log: Path | None = None
    kernels: list[str] = field(default_factory=list)
    time_option: str = "--tune"
    approximation: str | None = None
    landmarks: int | str | None = None
    certify: int | str | None = None
    checkpoint: Path | None = None
    dry_run: bool = False
    report: Path | None = None
    details: bool = False

    @property
    def held_out(self) -> float:
        """The share of the rows held out for the score: by default a fifth, and a tenth of rows in blocks."""
        if self.test_size is None:
            return 0.2 if self.approximation is None else 0.1
        return self.test_size


WAYS = ("time", "group")
"""The ways of ``--split``."""
EXACT = "exact"
"""The word of ``--certify`` for all pairs of rows."""
# Intervals from fewer rows say nothing.
_FEWEST_ROWS = 10


def certified_rows(text: str | None) -> int | str | None:
    """Of how many rows the pairs are evaluated for a certificate, or ``"exact"`` for all.

    Raises
    ------
    ParameterError
        If the text is neither.

    Examples
    --------
    >>> certified_rows("500"), certified_rows("exact"), certified_rows(None)
    (500, 'exact', None)
    """
    if text is None or text == EXACT:
        return text
    if not text.isdecimal() or int(text) < _FEWEST_ROWS:
        raise ParameterError(
            f"--certify must be {EXACT}, for all pairs of rows, or of how many rows the pairs with all others are "
            f"evaluated, at least {_FEWEST_ROWS}, but is {text!r}; --certify 500 is usual."
        )
    return int(text)


def landmark_count(text: str | None) -> int | str | None:
    """The number of landmarks, or ``"auto"``.

    Raises
    ------
    ParameterError
        If the text is neither.

    Examples
    --------
    >>> landmark_count("200"), landmark_count("auto"), landmark_count(None)
    (200, 'auto', None)
    """
    if text is None or text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"--landmarks must be a whole number of at least 1, or auto, but is {text!r}.")
    return int(text)


STANDARD = "-"
"""Standard input or output in place of a file."""


@dataclass(frozen=True)
class UseOptions:
    """The options of ``mercer predict`` and ``mercer evaluate``; ``others`` are the files after the first one."""

    model: Path
    data: str
    drop: list[str] = field(default_factory=list)
    axes: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    out: Path | None = None
    memory: str | None = None
    n_jobs: int | None = None
    quiet: bool = False
    json: bool = False
    others: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    interval: float | None = None
    probabilities: bool = False
    deviations: bool = False
    decisions: bool = False

    @property
    def files(self) -> list[str]:
        """All that is predicted for, in order."""
        return [self.data, *self.others]


@dataclass(frozen=True)
class ReportOptions:
    """The options of ``mercer report``."""

    model: Path
    data: str | None
    out: Path
    drop: list[str] = field(default_factory=list)
    axes: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    memory: str | None = None
    n_jobs: int | None = None
    quiet: bool = False
    json: bool = False


@dataclass(frozen=True)
class PlotOptions:
    """The options of ``mercer plot``; ``row`` and ``label`` are as for ``mercer explain``."""

    model: Path
    data: str
    what: str
    out: Path
    columns: list[str] = field(default_factory=list)
    row: int | None = None
    label: str | None = None
    drop: list[str] = field(default_factory=list)
    axes: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    memory: str | None = None
    n_jobs: int | None = None
    quiet: bool = False
    json: bool = False


@dataclass(frozen=True)
class ExplainOptions(UseOptions):
    """The options of ``mercer explain``; ``row`` is counted from 1, and ``label`` is a class or a pair ``a,b``."""

    row: int = 1
    label: str | None = None
    by: str = "parts"
    top: int = 20


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


def parse_seconds(text: str, option: str = "--budget") -> float:
    """Return the duration that an option gives in seconds: a number with the unit s, m or h, or none for seconds.

    Raises
    ------
    ParameterError
        If it is not written so, or not above 0.

    Examples
    --------
    >>> parse_seconds("60"), parse_seconds("90s"), parse_seconds("5m"), parse_seconds("1.5h")
    (60.0, 90.0, 300.0, 5400.0)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", text)
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
    if not seconds > 0:
        raise ParameterError(f"{option} takes a time above 0 such as 60s, 5m or 1h, but got {text!r}.")
    return seconds


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
