"""Intervals of held-out scores, from the duality gap of a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.selection.evaluated import Bound
from mercer.selection.fold_rows import Fold


def bound_of_scores(scorer: Any) -> Callable[[Any, Callable[[Any], Any], Fold, Any], Bound]:
    """Return the function that bounds the scores of fitted learners.

    Parameters
    ----------
    scorer : callable
        As scikit-learn's.

    Returns
    -------
    callable
    """

    def bound(model: Any, rows: Callable[[Any], Any], fold: Fold, y: Any) -> Bound:
        return Bound(why=f"no bound is known for {type(model).__name__}")

    return bound
