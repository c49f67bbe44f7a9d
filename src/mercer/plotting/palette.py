"""Colours, markers and line styles of all displays, in one place.

The colours are those of M. Okabe and K. Ito, "Color universal design" (2008), which people with the common forms of
colour blindness can tell apart. Whatever matters without colour has a marker or a line style, too.
"""

from __future__ import annotations

import numpy as np

from mercer._types import Matrix

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F")
"""Of classes, clusters and curves; from the ninth on they are repeated."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLES = ("-", "--", "-.", ":")
INK, QUIET = "#222222", "#7F7F7F"
"""Of lines that divide, and of what stands in the background."""
ALARM = "#D55E00"
"""Of what is wrong or outside."""
SEQUENTIAL, DIVERGING = "cividis", "PuOr"
"""Colour maps of values, and of values about 0."""

ROLE_MARKERS = {"zero": ".", "free": "o", "bounded": "X"}
"""Of rows of a support vector machine: without a weight, with one between the bounds, and with one at its bound."""
ROLE_SIZES = {"zero": 28.0, "free": 46.0, "bounded": 46.0}


def colour(number: int) -> str:
    """Return the colour of a class, cluster or curve.

    >>> colour(0), colour(8) == colour(0)
    ('#0072B2', True)
    """
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> str:
    """Return the marker of a class, cluster or curve.

    >>> marker(1)
    's'
    """
    return MARKERS[number % len(MARKERS)]


def style(number: int) -> str:
    """Return the line style of a curve.

    >>> style(1)
    '--'
    """
    return STYLES[number % len(STYLES)]


def pale(number: int, share: float = 0.28) -> Matrix:
    """Return red, green and blue from 0 to 1 of a colour mixed with white, for regions behind points.

    >>> pale(0, share=0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    text = colour(number)
    values = np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.asarray(1.0 - share * (1.0 - values))
