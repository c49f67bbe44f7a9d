"""``mercer explain``: what each part of a row contributes to the decision of a model."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from shlex import quote
from typing import Any

from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.cli.files import write_atomically
from mercer.cli.options import ExplainOptions
from mercer.cli.predict import writer_of
from mercer.cli.show import Printer
from mercer.cli.use import columns_of, load_model, read_rows
from mercer.data.table import Table
from mercer.data.words import counted, listing
from mercer.engine.settings import config
from mercer.estimators.table import TableModel
from mercer.explain import Contributions, contributions
from mercer.explain.models import has_decision_value, outputs_of
from mercer.explain.result import runs_of
from mercer.selection.layers import learner_inside


def explain(options: ExplainOptions) -> None:
    """Explain one row of a table; print the largest contributions, and write all of them where a file is named."""
    printer = Printer(options.quiet, options.json)
    as_json = options.out is not None and options.out.suffix.lower() == ".json"
    writer = None if as_json else writer_of(options.out)
    model = load_model(options.model)
    with config(memory=options.memory, n_jobs=options.n_jobs):
        table = read_rows(options, model)
        row = row_of(table, model, options.row)
        output = output_of(options.label, model, options.model)
        with printer.progress("explain"), warnings.catch_warnings():
            # The warnings about the row have already been given.
            warnings.simplefilter("ignore", MercerWarning)
            explanation = contributions(model, row, output=output, by="rows" if options.by == "rows" else "parts")
    result = _result(options, model, explanation)
    if options.out is not None:
        if writer is None:
            write_atomically(options.out, lambda draft: _write_json(result, draft))
        else:
            keep = writer
            write_atomically(options.out, lambda draft: keep(explanation.frame(), draft))
    printer.object(result)
    _print(printer, options, model, explanation, table.locate(options.row - 1))


def row_of(table: Table, model: TableModel, number: int) -> Any:
    """Return one row of a table as a table, with the columns to predict from, checked as for predictions.

    Parameters
    ----------
    table : Table
    model : TableModel
    number : int
        Of the row; the first is 1.

    Raises
    ------
    DataError
        If the table has fewer rows.
    SchemaError
        If columns are missing or renamed, or an entry of the row is not of the kind of its column.

    Warns
    -----
    MercerWarning
        If categories or columns are unknown to the model.
    """
    columns = columns_of(table, model)
    n = columns.shape[0]
    if number > n:
        raise DataError(f"--row {number}: {table.source} has {counted(n, 'row')}; choose a number from 1 to {n}.")
    one = slice(number - 1, number)
    row = columns.iloc[one] if hasattr(columns, "iloc") else columns[one]
    # Messages name the file and the place of the row in it.
    model.encoder_.transform(row, source=table.source, locate=lambda _: table.locate(number - 1))
    return row


def output_of(label: str | None, model: TableModel, file: Path) -> Any:
    """Return the class of the text of ``--class``, or a pair of them; None without the option, or a decision value.

    Parameters
    ----------
    label : str or None
        A class, or two as in ``spam,mail``.
    model : TableModel
    file : Path
        Of the model, for messages.

    Raises
    ------
    ParameterError
        If the model has no such class, decides by pairs and is given one class or the other way round, or has one
        decision value for all classes.
    """
    if label is None:
        return None
    if model.report_["task"] == "regression":
        raise ParameterError(f"--class is for models of classes, and {file} predicts numbers; leave it out.")
    learner = learner_inside(model)
    if not has_decision_value(learner):
        # There is nothing to explain, whatever the class: contributions() raises an error that says so.
        return None
    outputs, name = outputs_of(learner), type(learner).__name__
    if outputs == "values":
        raise ParameterError(f"--class {label}: {name} has one decision value for all classes; leave out --class.")
    known = {str(own): own for own in model.classes_.tolist()}
    if outputs == "classes" and label in known:
        return known[label]
    if outputs == "pairs":
        # A label may hold a comma itself.
        for one in known:
            other = label.removeprefix(f"{one},")
            if other not in (label, one) and other in known:
                return known[one], known[other]
    first, second = [*known][:2]
    instead = (
        f"{name} decides between pairs of classes, so name a pair such as --class {quote(f'{first},{second}')}"
        if outputs == "pairs"
        else f"name one of them, as in --class {quote(first)}"
    )
    raise ParameterError(f"--class {label}: the classes are {listing(known)}; {instead}.")


def _result(options: ExplainOptions, model: TableModel, explanation: Contributions) -> dict[str, Any]:
    return {
        "model": str(options.model),
        "data": options.data,
        "row": options.row,
        "target": model.target,
        "output": explanation.output or None,
        "decision": explanation.decision,
        "intercept": explanation.intercept,
        "sum": explanation.sum,
        "method": explanation.method,
        "parts": [
            {**part._asdict(), "places": list(part.places), "value": float(value)}
            for part, value in zip(explanation.parts, explanation.values, strict=True)
        ],
    }


def _write_json(result: dict[str, Any], draft: Path) -> None:
    draft.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _print(
    printer: Printer, options: ExplainOptions, model: TableModel, explanation: Contributions, place: str
) -> None:
    shown = explanation.top(options.top)
    several = any(part.term for part in explanation.parts)
    rows = [
        [f"{explanation.values[i]:+.4g}", explanation.parts[i].label, runs_of(explanation.parts[i].places)]
        + ([explanation.parts[i].term] if several else [])
        for i in shown
    ]
    empty = [""] * (1 + several)
    hidden = len(explanation.parts) - len(shown)
    if hidden:
        rest = sum(float(value) for value in explanation.values) - sum(float(explanation.values[i]) for i in shown)
        rows.append([f"{rest:+.4g}", f"({hidden} other parts)", *empty])
    rows.append([f"{explanation.intercept:+.4g}", "(intercept)", *empty])
    if explanation.method == "exact":
        rows.append([f"{explanation.sum:+.4g}", "(sum)", *empty])
    about = f", {explanation.output}" if explanation.output else ""
    # Every regression of the command line predicts its decision value.
    name = "prediction" if model.report_["task"] == "regression" else "decision value"
    title = f"{model.target} of {place}{about}: {name} {explanation.decision:.6g}"
    printer.listed(title, ["value", "part", "places", *(["term"] if several else [])], rows)
    if explanation.method == "exact":
        printer.say(f"The contributions and the intercept sum to the {name}.", "dim")
    else:
        words = f"Each value is what the {name} loses without the part; the values need not sum to it."
        printer.say(words, "dim")
    if options.out is not None:
        printer.say(f"Wrote {counted(len(explanation.parts), 'part')} to {options.out}.", "bold green")
