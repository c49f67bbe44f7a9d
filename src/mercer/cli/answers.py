"""What ``mercer predict`` adds to predictions: intervals, deviations, probabilities, decisions, kept columns."""

from __future__ import annotations

import csv
import inspect
import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer._errors import DataError, MercerWarning, ParameterError
from mercer._registered import MODELS, model_class
from mercer.cli.options import PredictOptions
from mercer.data.schema import Locate
from mercer.data.words import closest_names, listing
from mercer.estimators.shared.intervals import Intervals
from mercer.estimators.table import TableModel

ALL = "all"
"""The word for every column in ``--keep``."""


def check_answers(options: PredictOptions, model: TableModel) -> None:
    """Raise an error unless the model can answer all that is requested; called before any rows are read.

    Raises
    ------
    ParameterError
        With the models that can.
    """
    numbers = model.report_["task"] == "regression"
    given = [
        ("--interval", options.interval is not None, None, "interval" if numbers else "predict_set", "intervals"),
        ("--std", options.deviations, True, "predict_std", "standard deviations"),
        ("--proba", options.probabilities, False, "predict_proba", "probabilities"),
        ("--decision", options.decisions, False, "decision_function", "decision values"),
    ]
    for option, is_given, is_of_numbers, method, what in given:
        if not is_given:
            continue
        if is_of_numbers not in (None, numbers):
            instead = "--proba" if is_of_numbers else "--interval 0.9"
            raise ParameterError(
                f"{option} is for models of {'numbers' if is_of_numbers else 'classes'}, and {options.model} predicts "
                f"{'numbers' if numbers else 'classes'}; use {instead}."
            )
        if not hasattr(model, method):
            raise _missing(model, method, what)


def _missing(model: TableModel, method: str, what: str) -> ParameterError:
    """The error for an output that a model does not have, with what to do instead."""
    name, numbers = model.report_["model"], model.report_["task"] == "regression"
    if method == "predict_set":
        return ParameterError(
            f"--interval is for models of numbers, and {name} predicts classes; for sets of classes fit it again with "
            "--calibrate, or use --proba."
        )
    if method == "interval" and getattr(model.estimator_, "approximation", None) is not None:
        return ParameterError(
            f"{name} over landmarks keeps no other rows, and gives no {what}; fit it again with --calibrate."
        )
    calibrate = "--calibrate, or with " if method in ("interval", "predict_proba") else ""
    return ParameterError(
        f"{name} gives no {what}; fit it again with {calibrate}--model {_models_with(method, numbers)}."
    )


_TESTS: Mapping[str, Callable[[Any], bool]] = {
    "interval": lambda learner: hasattr(learner, "interval"),
    "predict_std": lambda learner: "return_std" in inspect.signature(learner.predict).parameters,
    "predict_proba": lambda learner: hasattr(learner, "predict_proba"),
    "decision_function": lambda learner: hasattr(learner, "decision_function"),
}


def _models_with(method: str, numbers: bool) -> str:
    """The names of the models that have it, as a choice."""
    task, has = "regression" if numbers else "classification", _TESTS[method]
    names = [name for name, tasks in MODELS.items() if task in tasks and has(model_class(name, task)())]
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else names[0]


def kept_columns(keep: Sequence[str], names: Sequence[str], source: str) -> list[str]:
    """Return the columns that ``--keep`` names, each once.

    Raises
    ------
    DataError
        If there is no such column.

    Examples
    --------
    >>> kept_columns(["town,id"], ["id", "town", "km"], "a.csv"), kept_columns(["all"], ["id", "km"], "a.csv")
    (['town', 'id'], ['id', 'km'])
    >>> kept_columns(["a,b"], ["a,b", "all"], "a.csv")
    ['a,b']
    """
    kept: dict[str, None] = {}
    for given in keep:
        if given == ALL and given not in names:
            kept |= dict.fromkeys(names)
            continue
        for name in [given] if given in names else [part.strip() for part in given.split(",") if part.strip()]:
            if name not in names:
                matches = closest_names(name, names)
                offer = f"Did you mean {' or '.join(repr(n) for n in matches)}? " if matches else ""
                raise DataError(
                    f"{source} has no column {name!r} to keep. {offer}The columns are {listing(list(names))}."
                )
            kept[name] = None
    return list(kept)


def answers(
    columns: Any, model: TableModel, options: PredictOptions, source: str, locate: Locate
) -> tuple[np.ndarray, dict[str, np.ndarray], str]:
    """Predictions, further columns beside them, and in words how intervals were computed.

    Parameters
    ----------
    columns : data frame or sparse matrix
        What the model predicts from.
    model : TableModel
    options : PredictOptions
    source : str
        The name of the table in messages.
    locate : callable
        From a row to its place.
    """
    answers: dict[str, np.ndarray] = {}
    words = ""
    together = model.predict_together(
        model.encoder_.transform(columns, source=source, locate=locate),
        deviations=options.deviations,
        coverage=options.interval,
        probabilities=options.probabilities,
    )
    with warnings.catch_warnings():
        # The predictions have already warned about the table.
        warnings.simplefilter("ignore", MercerWarning)
        warnings.filterwarnings("always", "intervals of coverage|quantiles from", MercerWarning)
        if options.deviations:
            deviations = together.deviations
            if deviations is None:
                deviations = model.predict_std(columns, source=source, locate=locate)
            answers[f"{model.target} std"] = deviations
        if options.interval is not None:
            more, words = _intervals(columns, model, options.interval, source, locate, together.intervals)
            answers |= more
        if options.probabilities:
            shares = together.probabilities
            if shares is None:
                shares = model.predict_proba(columns, source=source, locate=locate)
            answers |= {f"P({label})": column for label, column in zip(model.classes_, shares.T, strict=True)}
        if options.decisions:
            answers |= _decisions(model, model.decision_function(columns, source=source, locate=locate))
    return together.predicted, answers, words


def _intervals(
    columns: Any, model: TableModel, coverage: float, source: str, locate: Locate, known: Intervals | None
) -> tuple[dict[str, np.ndarray], str]:
    """The ends of intervals, or sets of classes in one text each; and how they were computed."""
    if is_classifier(model):
        sets = model.predict_set(columns, coverage, source=source, locate=locate)
        texts = [joined(labels) for labels in sets.labels()]
        return {f"{model.target} {percentages([coverage])[0]}": np.array(texts, dtype=object)}, sets.explain()
    intervals = known or model.interval(columns, coverage, source=source, locate=locate)
    levels = [0.5 - coverage / 2, 0.5 + coverage / 2]
    names = [f"{model.target} {name}" for name in percentages(levels)]
    return dict(zip(names, (intervals.lower, intervals.upper), strict=True)), intervals.explain()


def joined(labels: Iterable[Any]) -> str:
    """Return a set of classes as text: with bars between them, and in quotation marks where a class has a bar itself.

    >>> joined(["a", "b"]), joined(["a|b", "c"])
    ('a|b', '"a|b"|c')
    """
    text = io.StringIO()
    csv.writer(text, delimiter="|", lineterminator="").writerow(labels)
    return text.getvalue()


def _decisions(model: TableModel, values: np.ndarray) -> dict[str, np.ndarray]:
    """A column of decision values for every class, or one for the second of two."""
    assert is_classifier(model)
    if values.ndim == 1:
        return {f"decision({model.classes_[-1]})": values}
    if values.shape[1] == len(model.classes_):
        return {f"decision({label})": column for label, column in zip(model.classes_, values.T, strict=True)}
    return {f"decision {number}": column for number, column in enumerate(values.T)}


def percentages(levels: Sequence[float]) -> list[str]:
    """Return the levels as percentages that differ, with as few digits as that needs.

    >>> percentages([0.05, 0.95]), percentages([0.4999999995, 0.5000000005])
    (['5%', '95%'], ['49.99999995%', '50.00000005%'])
    """
    short = [f"{100 * level:g}%" for level in np.round(levels, 9)]
    return short if len(set(short)) == len(levels) else [f"{100 * level:.15g}%" for level in levels]
