"""``mercer report``, and the report that ``mercer fit --report`` writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import MercerWarning
from mercer._optional import optional
from mercer.cli.command import name_of
from mercer.cli.job import Job
from mercer.cli.options import FitOptions, ReportOptions
from mercer.cli.show import Printer
from mercer.cli.use import columns_of, load_model, read_rows, target_in
from mercer.data.table import Table
from mercer.data.target import known_target
from mercer.engine.settings import config
from mercer.estimators.table import TableModel
from mercer.reports.baselines import Baselines, baselines
from mercer.reports.distances import Distances, measured
from mercer.reports.document import Report
from mercer.reports.fingerprint import of_file
from mercer.reports.judged import Judged
from mercer.reports.make import compose
from mercer.reports.material import Material
from mercer.reports.subject import Subject


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What the scored model, fitted to the training part, predicts for the rows held out; None without such rows."""

    judged: Judged | None = None
    baselines: Baselines | None = None
    far: Distances | None = None


def require_packages() -> None:
    """Raise an error if a package that reports need is not installed, before any long work.

    Raises
    ------
    MissingDependencyError
        If one is missing.
    """
    for package in ("jinja2", "matplotlib"):
        optional(package, "a report")


def held_out(model: TableModel, job: Job, seed: int) -> HeldOut:
    """Judge a model, fitted to the training part, by the rows that are held out."""
    if not len(job.test):
        return HeldOut()
    subject, X, y = Subject.of(model), job.rows(job.test), job.target.values
    judged = Judged.of(subject, X, y[job.test], "held out", _places(job.locate, job.test))
    assert judged is not None
    learnt = job.rows(job.train)
    simple_models = baselines(subject, judged, X, (learnt, y[job.train]), seed, most_rows=None)
    # Measured here, and not for the model that is written, which may have been fitted to all rows.
    return HeldOut(judged, simple_models, measured(subject, X, learnt, seed))


def of_fit(model: TableModel, scored: TableModel, job: Job, rows: np.ndarray, options: FitOptions) -> str:
    """Return the page about a fit to ``rows`` of its table; ``scored`` was fitted to the training part of these."""
    results = held_out(scored, job, options.seed)
    material = Material(
        Subject.of(model),
        options.seed,
        X=job.rows(job.test) if len(job.test) else None,
        judged=results.judged,
        train=(job.rows(rows), job.target.values[rows]),
        baselines=results.baselines,
        far=results.far,
        record=model.report_,
        steps=_steps(model.report_),
        target=job.target.name,
        place_of_fit=_places(job.locate, rows),
    )
    return compose(material).to_html()


def report(options: ReportOptions) -> None:
    """Write the report of a model file, with rows to judge it by if there are any."""
    require_packages()
    printer = Printer(options.quiet, options.json)
    model = load_model(options.model)
    with config(memory=options.memory, n_jobs=options.n_jobs), printer.progress("report"):
        made = _of_rows(model, options) if options.data else compose(_alone(model))
        made.save(options.page)
    size = options.page.stat().st_size
    printer.object({"report": str(options.page), "bytes": size, "verdict": list(made.verdict)})
    for sentence in made.verdict:
        printer.say(sentence)
    printer.say(f"Wrote {options.page} ({size / 1024:.0f} KiB).", "bold green")


def _alone(model: TableModel) -> Material:
    record = model.report_
    return Material(Subject.of(model), record["seed"], record=record, steps=_steps(record), target=record["target"])


def _of_rows(model: TableModel, options: ReportOptions) -> Report:
    record, subject = model.report_, Subject.of(model)
    table = read_rows(options, model)
    X, y = columns_of(table, model), target_values(table, model)
    # Checked as for predictions, with the table and its lines in messages.
    model.encoder_.transform(X, source=table.source, locate=table.locate)
    fingerprint = of_file(Path(options.data))
    same = record["data"] == options.data if fingerprint is None else record.get("data_sha256") == fingerprint
    steps = [*_steps(record), ("data of the report", name_of(options.data))]
    if fingerprint is not None:
        steps.append(("SHA-256 of that file", fingerprint))
    seed = record["seed"]
    with warnings.catch_warnings():
        # The warnings about the table have already been given.
        warnings.simplefilter("ignore", MercerWarning)
        judged = None if y is None else Judged.of(subject, X, y, "fit" if same else "new", table.locate)
        simple_models = None if judged is None else baselines(subject, judged, X, None, seed)
        far = None if same else measured(subject, X, None, seed)
        material = Material(
            subject,
            seed,
            X=X,
            judged=judged,
            baselines=simple_models,
            far=far,
            record=record,
            steps=tuple(steps),
            target=record["target"],
        )
        return compose(material)


def target_values(table: Table, model: TableModel) -> Any:
    """The values of the target, or None if the table has none."""
    target, record = target_in(table, model), model.report_
    if not table.has(target):
        return None
    _, values, _ = table.split(target)
    return known_target(values, target, record["task"], record["classes"], table.locate)


def _steps(record: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """How the model was made; files of older versions do not say all of it."""
    steps = [("command", record.get("command") or f"mercer fit {record['data']} --target {record['target']} ...")]
    if record.get("data_sha256"):
        steps.append(("SHA-256 of the data", record["data_sha256"]))
    return (*steps, ("seed of the fit", str(record["seed"])))


def _places(locate: Callable[[int], str], rows: np.ndarray) -> Callable[[int], str]:
    return lambda number: locate(int(rows[number]))
