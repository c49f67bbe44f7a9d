"""The search by which parameters were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer._errors import MercerError
from mercer.plotting.drawing import legend
from mercer.plotting.palette import COLOURS
from mercer.plotting.search import SearchDisplay
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material

_SHOWN = 15
# Of a candidate of ``mercer tune``.
_RECORDED = ("score", "error", "lower", "upper")


def searched(material: Material) -> Section | None:
    """Return the candidates of a search and the numbers of landmarks that were tried; None if nothing was searched."""
    parts = [part for part in (_search(material.subject.search), _recorded(material.record)) if part is not None]
    path = getattr(material.subject.learner, "landmark_path_", None)
    text = [line for lines, _, _ in parts for line in lines]
    tables = [table for _, table, _ in parts]
    figures = [picture for _, _, pictures in parts for picture in pictures]
    if path is not None:
        text.append(str(path).splitlines()[-1])
        figures.append(_landmarks(path))
    if not tables and not figures:
        return None
    return Section("search", "Search", tuple(text), (), tuple(tables), tuple(figures))


_Part = tuple[list[str], Table, list[Figure]]


def _search(search: Any) -> _Part | None:
    if search is None or not hasattr(search, "cv_results_"):
        return None
    results = search.cv_results_
    if "mean_test_score" not in results:
        return None
    names = [name for name in results if name.startswith("param_")]
    scores = np.asarray(results["mean_test_score"], dtype=np.float64)
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:_SHOWN]
    columns = (*names, "mean_test_score", "std_test_score")
    rows = [[_plain(results[name][place]) for name in columns] for place in order]
    heads = (*(name.removeprefix("param_") for name in names), "mean score", "standard deviation")
    count = len(results["mean_test_score"])
    table = Table.of(f"The best {len(rows)} of {count} candidates", heads, rows, is_long=True)
    return [f"{type(search).__name__} over {count} candidates."], table, _picture(search)


def _picture(search: Any) -> list[Figure]:
    try:
        display = SearchDisplay.from_search(search)
    except MercerError:
        # No parameter with numbers varies, so that there is no axis.
        return []
    shown = display.frame().iloc[::-1].head(_SHOWN)
    table = Table.of_frame("Candidates, the best first", shown)
    words = f"Candidates by {' and '.join(display.names)}; the best has the score {display.scores[-1]:.4g}."
    return [Figure("Scores of the candidates", words, table, display.plot, (6.4, 4.2))]


def _recorded(record: Mapping[str, Any] | None) -> _Part | None:
    """The search of ``mercer tune``, as the model file keeps it."""
    if record is None or not record.get("search"):
        return None
    search = record["search"]
    names = list(dict.fromkeys(name for row in search["table"] for name in row["parameters"]))
    rows = [
        (*(_plain(row["parameters"].get(name)) for name in names), *(row[key] for key in _RECORDED))
        for row in search["table"]
    ]
    heads = (*names, search["metric"], "standard error", "if solved exactly, from", "to")
    title = f"The best of {search['candidates']} candidates, by {search['folds']} folds"
    return [search["sentence"], search["stop"]], Table.of(title, heads, rows), []


def _landmarks(path: Any) -> Figure:
    heads = ("landmarks", "held-out loss", "standard error of the fall", "seconds")
    columns = (path.n_landmarks, path.losses, path.standard_errors, path.seconds)
    table = Table.of("Landmarks", heads, zip(*(np.asarray(column).tolist() for column in columns)))

    def draw(ax: Any) -> None:
        ax.errorbar(
            path.n_landmarks, path.losses, path.standard_errors, color=COLOURS[0], marker="o", label="held-out loss"
        )
        ax.set(xlabel="landmarks", ylabel="held-out loss", xscale="log")
        legend(ax)

    return Figure("Loss by landmarks", f"{path.chosen} landmarks were chosen.", table, draw)


def _plain(value: Any) -> Any:
    if value is np.ma.masked or value is None:
        return None
    value = float(value) if isinstance(value, np.number) else value
    return value if isinstance(value, (int, float, str)) else repr(value)
