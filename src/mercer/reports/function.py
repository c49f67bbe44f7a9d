"""The fitted function: whole where there is one feature, else its effects, the means along single columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import MercerError
from mercer.plotting.palette import COLOURS
from mercer.plotting.process import ProcessDisplay
from mercer.plotting.tube import TubeDisplay
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material

# Rows of its table.
_SHOWN = 20
# Columns whose effects are shown, and at how many values, for how many rows.
_EFFECTS, _VALUES, _ROWS = 3, 15, 50
# A column with fewer values is no axis.
_FEWEST = 5


def function(material: Material) -> Section | None:
    """Return the picture of a regression with one feature, or the effects of the most relevant columns of numbers."""
    subject, judged = material.subject, material.judged
    one = getattr(material.X, "ndim", 1) == 2 and material.X.shape[1] == 1
    if judged is None or judged.truth.ndim > 1 or not judged.is_finite:
        return None
    display = _display(material) if one and judged.task == "regression" else None
    if display is None:
        return _effects(material)
    frame = display.frame()
    shown = frame.iloc[:: max(1, len(frame) // _SHOWN)]
    table = Table.of_frame("Values", shown)
    words = f"Predictions of {subject.name} along its one feature, and the rows."
    return Section("function", "Fitted function", (), (), (), (Figure("Fitted function", words, table, display.plot),))


def _display(material: Material) -> ProcessDisplay | TubeDisplay | None:
    assert material.judged is not None
    model, y = material.subject.model, material.judged.truth
    try:
        return ProcessDisplay.from_estimator(model, material.X, y, n_draws=0)
    except MercerError:
        # Neither a Gaussian process nor quantiles: it may be a tube.
        return _tube(material)


def _tube(material: Material) -> TubeDisplay | None:
    assert material.judged is not None
    try:
        return TubeDisplay.from_estimator(material.subject.model, material.X, material.judged.truth)
    except MercerError:
        # Other regressions have no picture of their own.
        return None


def _effects(material: Material) -> Section | None:
    """Means of the predictions over rows in which one column is set to a value, for the most relevant columns."""
    judged, model = material.judged, material.subject.model
    relevance = getattr(material.subject.learner, "relevance_", None)
    assert judged is not None
    frame = material.X if hasattr(material.X, "iloc") and hasattr(material.X, "select_dtypes") else None
    if frame is None or relevance is None or len(relevance) != frame.shape[1]:
        return None
    if judged.task == "regression":
        what, value = "mean prediction", model.predict
    elif judged.classes is not None and len(judged.classes) == 2 and hasattr(model, "predict_proba"):
        what, value = f"mean probability of {judged.classes[1]}", lambda rows: model.predict_proba(rows)[:, 1]
    else:
        return None
    rows = frame.iloc[np.unique(np.linspace(0, len(frame) - 1, _ROWS).astype(int))]
    numbers = frame.select_dtypes("number")
    names = [frame.columns[place] for place in np.argsort(-relevance, kind="stable") if relevance[place] > 0]
    names = [name for name in names if name in numbers and numbers[name].nunique() >= _FEWEST][:_EFFECTS]
    figures = []
    for name in names:
        values = np.unique(np.nanquantile(numbers[name].to_numpy(dtype=np.float64), np.linspace(0.02, 0.98, _VALUES)))
        means = []
        for at in values:
            changed = rows.copy()
            changed[name] = at
            means.append(float(np.mean(value(changed))))
        table = Table.of(f"Effect of {name}", (str(name), what), zip(values.tolist(), means, strict=True))
        words = f"The {what} where {name} is set to a value, from {min(means):.4g} to {max(means):.4g}."
        figures.append(Figure(f"Effect of {name}", words, table, _curve(str(name), what, values, means), (6.4, 2.6)))
    if not figures:
        return None
    text = (
        f"The {what} over {len(rows)} rows in which one column is set to each value in turn, and the others stay as "
        "they are. Where columns go together, some of these rows cannot occur."
    )
    return Section("function", "Effects of columns", (text,), (), (), tuple(figures))


def _curve(name: str, what: str, values: Any, means: Any) -> Any:
    def draw(ax: Any) -> None:
        ax.plot(values, means, color=COLOURS[0], marker="o", markersize=3.5)
        ax.set(xlabel=name, ylabel=what)

    return draw
