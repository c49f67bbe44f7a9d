"""``mercer explain``: what each part of a row contributes to the decision of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mercer._errors import DataError, ParameterError
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
from mercer.explain.result import runs_of


def explain(options: ExplainOptions) -> None:
    """Explain one row of a table; print the largest contributions, and write all of them where a file is named."""
    printer = Printer(options.quiet, options.json)
    as_json = options.out is not None and options.out.suffix.lower() == ".json"
    writer = None if as_json else writer_of(options.out)
    model = load_model(options.model)
    with config(memory=options.memory, n_jobs=options.n_jobs):
        table = read_rows(options, model)
        row = row_of(table, model, options.row)
        with printer.progress("explain"):
            explanation = contributions(
                model,
                row,
                output=output_of(options.label, model, options.model),
                by="rows" if options.by == "rows" else "parts",
            )
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
    """Return one row of a table as a table, with the columns to predict from.

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
    """
    columns = columns_of(table, model)
    n = columns.shape[0]
    if number > n:
        raise DataError(f"--row {number}: {table.source} has {counted(n, 'row')}; choose a number from 1 to {n}.")
    one = slice(number - 1, number)
    return columns.iloc[one] if hasattr(columns, "iloc") else columns[one]


def output_of(label: str | None, model: TableModel, file: Path) -> Any:
    """Return the class of the text of ``--class``, or a pair of them; None without the option.

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
        If the model has no such class.
    """
    if label is None:
        return None
    if model.report_["task"] == "regression":
        raise ParameterError(f"--class is for models of classes, and {file} predicts numbers; leave it out.")
    known = {str(name): name for name in model.classes_.tolist()}
    if label in known:
        return known[label]
    # A label may hold a comma itself.
    for one in known:
        other = label.removeprefix(f"{one},")
        if other not in (label, one) and other in known:
            return known[one], known[other]
    pair = ",".join([*known][:2])
    raise ParameterError(f"--class {label}: the classes are {listing(known)}; name one, or a pair such as {pair}.")


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
