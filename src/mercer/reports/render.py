"""A report as a page: the template, its styles, and how values are written."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from mercer._optional import optional
from mercer.data.words import shortened

# Letters of a name or a value that a page shows.
_LONGEST = 120


def page(report: Any) -> str:
    """Return the page of a report.

    Raises
    ------
    MissingDependencyError
        If jinja2 is not installed.
    """
    return str(_template().render(report=report))


@cache
def _template() -> Any:
    jinja2 = optional("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mercer.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["value"] = value
    styles = files("mercer.reports").joinpath("templates", "report.css").read_text(encoding="utf-8")
    environment.globals["styles"] = styles
    return environment.get_template("report.html")


def value(thing: Any, most: int = _LONGEST) -> str:
    """Return a value as the page shows it: numbers with four digits, text cut after ``most`` letters.

    >>> value(0.123456), value(12345), value(float("nan")), value(None), value("a" * 200)[-3:]
    ('0.1235', '12345', '–', '–', 'aa…')
    """
    if thing is None:
        return "–"
    if isinstance(thing, (bool, np.bool_)):
        return "yes" if thing else "no"
    if isinstance(thing, (int, np.integer)):
        return str(int(thing))
    if isinstance(thing, (float, np.floating)):
        return _decimal(float(thing))
    return shortened(str(thing), most)


def is_number(thing: Any) -> bool:
    """Whether a value stands to the right of its column."""
    return isinstance(thing, (int, float, np.number)) and not isinstance(thing, bool)


def _decimal(number: float) -> str:
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{number:.4g}".replace("-", "−") if abs(number) < 1e4 else f"{number:.6g}".replace("-", "−")
