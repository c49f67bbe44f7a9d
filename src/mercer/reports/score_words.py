"""Names and values of scores as people read them; it imports nothing heavy."""

from __future__ import annotations

import math

from mercer.data.words import significant

_NAMES = {"r2": "R²", "rmse": "RMSE", "mae": "MAE", "auc": "AUC"}
TREES = "gradient boosting"
"""The name of the strongest of the models that a fit is compared with; the others are simple."""
IN_UNITS = ("rmse", "mae")
"""Scores in the unit of the target, which may be of any size."""


def score_name(metric: str) -> str:
    """Return the name of a score.

    >>> score_name("rmse"), score_name("balanced_accuracy")
    ('RMSE', 'balanced accuracy')
    """
    return _NAMES.get(metric, metric.replace("_", " "))


def score_text(metric: str, value: float) -> str:
    """Return the value of a score: four decimals, or four significant digits if it is in the unit of the target.

    >>> score_text("r2", -1e-9), score_text("rmse", 3.5e-9), score_text("mae", float("nan"))
    ('0.0000', '3.500e-09', '-')
    """
    if math.isnan(value):
        return "-"
    if metric in IN_UNITS:
        return significant(value)
    # Adding zero removes the sign of -0.0.
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 1000 else f"{value:.6g}"


def with_article(model: str) -> str:
    """Return the name of a model that a fit is compared with, as it stands in a sentence.

    >>> with_article("mean of the target"), with_article("gradient boosting")
    ('the mean of the target', 'gradient boosting')
    """
    return model if model == TREES else f"the {model}"
