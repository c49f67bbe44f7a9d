"""Where a model errs: confusions or residuals, calibration, and the worst rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import AnyArray, Vector
from mercer.data.squares import root_mean_square, standard_deviation
from mercer.data.strings import Strings
from mercer.data.words import shortened
from mercer.plotting.drawing import legend, line, mark, shown_rows
from mercer.plotting.margins import MarginsDisplay
from mercer.plotting.palette import COLOURS, INK, QUIET
from mercer.reports.document import Figure, Section, Table
from mercer.reports.judged import Judged
from mercer.reports.material import WORDS_OF_KIND, Material
from mercer.reports.render import value

_WORST = 20
# Columns, and letters of a text, that are shown of a bad row.
_COLUMNS, _LETTERS = 5, 80
_MOST_CLASSES = 15
_BINS = 10
_MOST_POINTS = 600


def errors(material: Material) -> Section | None:
    """Return the errors, or None if nothing was judged."""
    judged = material.judged
    if judged is None or not judged.is_finite:
        return None
    title, text = "Errors", f"On {judged.n} rows {WORDS_OF_KIND[judged.kind]}."
    if judged.task == "classification":
        tables, figures = [_confusions(judged)], _of_classes(judged)
    else:
        tables, figures = [*_coverage(judged)], _of_numbers(judged)
    rows = worst(judged, material.X)
    if not rows.rows:
        text = f"{text} No row is wrong."
    return Section("errors", title, (text,), (), (*tables, rows) if rows.rows else tuple(tables), tuple(figures))


def _confusions(judged: Judged) -> Table:
    """How often each class is taken for each; rarer classes together."""
    assert judged.classes is not None
    labels, counts = np.unique(np.concatenate([judged.truth, judged.predicted]), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    names = np.sort(labels[order]).tolist()
    other = len(labels) > len(names)
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(names) + other, len(names) + other), dtype=int)
    for own, guess in zip(judged.truth.tolist(), judged.predicted.tolist()):
        matrix[place.get(own, len(names)), place.get(guess, len(names))] += 1
    heads = [*map(str, names), *(["all others"] if other else [])]
    rows = [[head, *map(int, row)] for head, row in zip(heads, matrix)]
    return Table.of("Confusions (rows: true classes; columns: predicted ones)", ["class", *heads], rows)


def _of_classes(judged: Judged) -> list[Figure]:
    if judged.shares is not None and np.isfinite(judged.shares).all():
        return [_calibration(judged)]
    margins = judged.margins()
    if margins is None:
        return []
    display = MarginsDisplay({WORDS_OF_KIND[judged.kind]: margins})
    levels = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9])
    rows = zip(levels.tolist(), np.quantile(margins, levels).tolist())
    return [
        Figure(
            "Margins",
            f"Shares of the rows up to each margin; {np.mean(margins <= 0):.1%} of the rows are on the wrong side.",
            Table.of("Quantiles of the margins", ("share of the rows", "margin up to"), rows),
            display.plot,
        )
    ]


def _calibration(judged: Judged) -> Figure:
    """Whether predictions are right as often as their probability says."""
    assert judged.shares is not None and judged.classes is not None
    top = judged.shares.max(axis=1)
    right = judged.classes[judged.shares.argmax(axis=1)] == judged.truth
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    bins = np.clip(np.digitize(top, edges) - 1, 0, _BINS - 1)
    rows = []
    for number in np.unique(bins):
        own = bins == number
        name = f"{edges[number]:.1f} to {edges[number + 1]:.1f}"
        rows.append((name, int(own.sum()), float(top[own].mean()), float(right[own].mean())))
    apart = sum(n * abs(probability - share) for _, n, probability, share in rows) / judged.n
    table = Table.of("Calibration", ("probability", "rows", "mean probability", "share that is right"), rows)

    def draw(ax: Any) -> None:
        low = min(row[2] for row in rows)
        ax.plot([low, 1], [low, 1], color=QUIET, linestyle="--", linewidth=1.0)
        sizes = [12 + 150 * row[1] / judged.n for row in rows]
        points = [row[2] for row in rows], [row[3] for row in rows]
        ax.scatter(*points, s=sizes, color=COLOURS[0], edgecolors=INK, zorder=3)
        ax.set(xlabel="probability of the predicted class", ylabel="share that is right")
        legend(ax, [line("perfect calibration", "--", QUIET), mark("rows, larger for more", "o", COLOURS[0])])

    words = f"The probability of a prediction and the share that is right differ by {apart:.1%} on average."
    return Figure("Calibration", words, table, draw)


def _of_numbers(judged: Judged) -> list[Figure]:
    if judged.truth.ndim > 1:
        return []
    residuals = judged.truth - judged.predicted
    shown = shown_rows(judged.n, _MOST_POINTS, 0)
    edges = np.unique(np.quantile(judged.predicted, np.linspace(0, 1, 6)))
    bins = np.clip(np.digitize(judged.predicted, edges[1:-1]), 0, max(len(edges) - 2, 0))
    rows = [_residuals_in(judged.predicted[bins == b], residuals[bins == b]) for b in np.unique(bins)]
    heads = ("predictions", "rows", "mean residual", "standard deviation", "largest")

    def draw(ax: Any) -> None:
        ax.axhline(0.0, color=INK, linewidth=1.0)
        ax.scatter(judged.predicted[shown], residuals[shown], s=14, color=COLOURS[0], alpha=0.6, linewidths=0)
        ax.set(xlabel="prediction", ylabel="target − prediction")
        if len(shown) < judged.n:
            ax.set_title(f"{len(shown)} of {judged.n} rows shown", fontsize="small")

    spread = f"their standard deviation {standard_deviation(residuals):.3g}"
    words = f"Residuals by prediction; their mean is {residuals.mean():.3g}, {spread}."
    return [Figure("Residuals", words, Table.of("Residuals by prediction", heads, rows), draw)]


def _residuals_in(predicted: Vector, residuals: Vector) -> tuple[Any, ...]:
    name = f"{value(predicted.min())} to {value(predicted.max())}"
    largest = float(residuals[np.abs(residuals).argmax()])
    return (name, len(residuals), float(residuals.mean()), standard_deviation(residuals), largest)


def _coverage(judged: Judged) -> list[Table]:
    """How many targets lie in the intervals that should contain them."""
    if not judged.intervals:
        return []
    rows = []
    for share, ends in judged.intervals.items():
        inside = (ends[:, 0] <= judged.truth) & (judged.truth <= ends[:, 1])
        rows.append((float(share), float(inside.mean()), float(np.mean(ends[:, 1] - ends[:, 0]))))
    return [Table.of("Calibration of intervals", ("asked share", "share of targets inside", "mean width"), rows)]


def worst(judged: Judged, X: Any = None) -> Table:
    """Return the rows with the largest errors, where they are, and what they hold if that is text or named columns."""
    order, columns = _ranked(judged)
    named = [str(name) for name in X.columns[:_COLUMNS]] if hasattr(X, "iloc") and hasattr(X, "columns") else []
    has_text = _is_text(X)
    rows = []
    for row in map(int, order[:_WORST]):
        cells = [shortened(X[row], _LETTERS)] if has_text else [X.iloc[row, place] for place in range(len(named))]
        rows.append((judged.locate(row), *(values[row] for values in columns.values()), *cells))
    heads = ("row", *columns, *(["text"] if has_text else named))
    return Table.of(f"The {len(rows)} worst rows", heads, rows, is_long=True)


def _is_text(X: Any) -> bool:
    """Whether rows are pieces of text."""
    return isinstance(X, (list, tuple, np.ndarray, Strings)) and len(X) > 0 and isinstance(X[0], str)


def _ranked(judged: Judged) -> tuple[AnyArray, dict[str, list[Any]]]:
    """The rows, the worst first, and what is shown of all rows."""
    truth, predicted = judged.truth, judged.predicted
    if judged.task == "regression":
        sizes = root_mean_square((truth - predicted).reshape(judged.n, -1).T)
        own = {"target": truth, "prediction": predicted, "residual": truth - predicted}
        shown = own if truth.ndim == 1 else {"root mean squared error": sizes}
        return np.argsort(-sizes, kind="stable"), {head: values.tolist() for head, values in shown.items()}
    columns: dict[str, list[Any]] = {"class": list(map(str, truth)), "prediction": list(map(str, predicted))}
    shares = judged.own_shares()
    if shares is not None:
        return np.argsort(shares, kind="stable"), {**columns, "probability of its class": shares.tolist()}
    wrong, margins = np.flatnonzero(truth != predicted), judged.margins()
    if margins is None:
        return wrong, columns
    return wrong[np.argsort(margins[wrong], kind="stable")], {**columns, "margin": margins.tolist()}
