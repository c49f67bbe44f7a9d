"""Weights of the lengths of common substrings."""

from __future__ import annotations

from typing import Any

from mercer._errors import ParameterError
from mercer.data.objects import short


def check_weights(kernel: str, weights: Any, count: int) -> None:
    """Raise unless there are no weights, or one for each of ``count`` lengths."""
    if not isinstance(weights, tuple) or len(weights) not in (0, count):
        raise ParameterError(
            f"{kernel}: weights must be one number for each of {count} lengths, but are {short(weights)}."
        )
