"""``mercer fit --approximation``: a fit over landmarks to rows that are read in blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer import persistence
from mercer._errors import DataError
from mercer._optional import optional
from mercer.cli.checks import default_output
from mercer.cli.choose import by_leave_one_out, words_of_choice
from mercer.cli.job import Job
from mercer.cli.learners import learner
from mercer.cli.options import FitOptions, parse_settings
from mercer.cli.report import outcome, plan, process_peak
from mercer.cli.scores import scores
from mercer.cli.show import Printer
from mercer.costs.estimate import estimate
from mercer.data.blocks.blocks import Blocks
from mercer.data.feature_table import FeatureTable
from mercer.data.target import Target, known_target, read_target
from mercer.data.words import closest_names
from mercer.engine.memory import describe, track
from mercer.engine.settings import config
from mercer.estimators.table import Prepared, TableModel
from mercer.kernels.convert import NAMES
from mercer.kernels.parse import parse_kernel

# Rows that tell kinds of columns, the task and the encoding, and those from which a penalty is chosen.
_SAMPLE, _CHOICE = 20_000, 2_000
# One of so many rows is held out, by its number.
_HELD_OUT = 10
_MODELS = {"classification": "logistic", "regression": "ridge"}


@dataclass(frozen=True, eq=False)
class Large:
    """A table that is read in blocks: its encoded rows, their targets, and which of them are held out.

    ``step`` is the number of rows of which one is held out, 0 for none.
    """

    blocks: Blocks
    table: FeatureTable
    target: Target
    step: int
    mean: float = 0.0
    scale: float = 1.0

    def held_out(self, first: int, count: int) -> np.ndarray:
        """Which of the rows from a number on are held out."""
        numbers = first + np.arange(count)
        return np.asarray(numbers % self.step == self.step - 1 if self.step else np.zeros(count, dtype=bool))

    def _parts(self, wanted: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        first = 0
        for X, y, _ in self.blocks:
            assert y is not None
            mask = self.held_out(first, len(X)) == wanted
            first += len(X)
            if mask.any():
                yield X[mask], y[mask]

    def training(self) -> Blocks:
        """The other rows, the numbers of their targets standardised."""
        numbers = self.target.task == "regression"

        def read() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for X, y in self._parts(False):
                yield X, (np.asarray(y, dtype=np.float64) - self.mean) / self.scale if numbers else y

        return Blocks.from_function(read, rows_per_block=self.blocks.rows_per_block)

    def scored(self, model: TableModel) -> dict[str, dict[str, float]]:
        """The scores on the held-out rows, block by block, and those of a constant."""
        truth, predicted = [], []
        for X, y in self._parts(True):
            truth.append(y)
            predicted.append(model.estimator_.predict(X))
        if not truth:
            return {}
        task = self.target.task
        y, found = np.concatenate(truth), np.concatenate(predicted)
        if task == "regression":
            y, found, name = y.astype(np.float64), found * self.scale + self.mean, "mean of the target"
            constant: Any = self.mean
        else:
            y = known_target(y, self.target.name, task, model.classes_.tolist(), str)
            labels, counts = np.unique(self.target.values, return_counts=True)
            name, constant = "most frequent class", labels[np.argmax(counts)]
        others = {name: scores(task, y, np.full(len(y), constant))}
        return {type(model.estimator_).__name__: scores(task, y, found), **others}


def fit(options: FitOptions) -> None:
    """Read a sample, encode, fit block by block, score, print, and write the model."""
    start_time = time.perf_counter()
    out = options.out or default_output(options.data)
    printer = Printer(options.quiet, options.json)
    with config(memory=options.memory, n_jobs=options.n_jobs):
        with printer.progress("read"):
            large = _read(options)
        job = _job(large, options)
        report = _plan(large, job, options)
        printer.planned(report)
        estimator, chosen = _estimator(large, job, options)
        training = large.training()
        expected = estimate(estimator, training)
        if options.dry_run:
            printer.estimated(expected)
            return
        printer.say(f"Fitting on {expected.n:,} rows: {expected.way}, {describe(expected.nbytes)} ...", "dim")
        model = TableModel(estimator, target=large.target.name)
        with printer.progress("fit"), track() as account:
            begin = time.perf_counter()
            fitted = estimator.fit(training)
            seconds = time.perf_counter() - begin
            model.take(large.table, fitted, large.mean, large.scale)
            results = large.scored(model)
        n = report["rows"]["all"]
        report["rows"] = {"all": n, "fitted": expected.n, "held_out": n - expected.n}
        report.update(outcome(model, chosen), search=None, scores=results, advice=None, tune=None)
        report.update(peak_bytes=account.peak, seconds={"fit": seconds, "all": time.perf_counter() - start_time})
        report["process_peak_bytes"] = process_peak()
        model.report_ = report
        persistence.save(model, out)
    printer.fitted({**report, "file": str(out), "file_bytes": out.stat().st_size})
    certificate, m = fitted.certificate_, len(fitted.X_fit_)
    printer.say(
        f"{expected.n:,} rows, {m:,} landmarks, {certificate.iterations} passes, {seconds:.1f} s, gap "
        f"{certificate.relative_gap:.1e} of the objective."
    )


def _read(options: FitOptions) -> Large:
    """A sample tells the kinds of the columns, the task, and the encoding."""
    names = Blocks(options.data).columns
    if names is None:
        raise DataError(
            f"{options.data} has no named columns, and --approximation reads tables: CSV, TSV, Parquet or Arrow files."
        )
    target = options.target or names[-1]
    for name in (target, *options.drop):
        if name not in names:
            near = closest_names(name, list(names), 1)
            offer = f"did you mean {near[0]!r}? " if near else ""
            raise DataError(f"{options.data} has no column {name!r}; {offer}it has {', '.join(names[:20])}.")
    columns = [name for name in names if name != target and name not in options.drop]
    frames = Blocks(options.data, target, columns=columns).frames()
    sample = frames.sample(_SAMPLE, random_state=options.seed)
    task = {"ridge": "regression", "logistic": "classification"}.get(options.model or "", options.task)
    read = read_target(sample.y, target, task)
    table = FeatureTable().fit(sample.X)
    blocks = frames.encoded(table)
    numbers = read.values.astype(np.float64) if read.task == "regression" else np.zeros(1)
    mean, scale = float(numbers.mean()), float(numbers.std()) or 1.0
    return Large(blocks, table, read, _HELD_OUT if options.test_size else 0, mean, scale)


def _job(large: Large, options: FitOptions) -> Job:
    """The sample as the job of a report."""
    count = len(large.target.values)
    model = options.model or _MODELS[large.target.task]
    why = "" if options.model else f"the default for a {large.target.task} with --approximation"
    sample = np.arange(count)
    columns = _no_rows(large)
    return Job(columns, large.target, large.table.schema_, None, sample, sample[:0], model, why)


def _no_rows(large: Large) -> Any:
    """Rows without entries, with the columns of the table; gaps are not counted in all files."""
    return optional("pandas", "reading tables").DataFrame({name: [] for name in large.table.names_})


def _plan(large: Large, job: Job, options: FitOptions) -> dict[str, Any]:
    n = large.blocks.n
    report = plan(job, options)
    report["data"] = options.data if Path(options.data).is_dir() else Path(options.data).name
    held_out = n // large.step if large.step else 0
    report["rows"] = {"all": n, "fitted": n - held_out, "held_out": held_out}
    report.update(refitted=False, encoded_columns=large.blocks.d, normalize="model", missing={}, every=large.step)
    return report


def _estimator(large: Large, job: Job, options: FitOptions) -> tuple[Any, str | None]:
    """The learner with its parameters, of which those that are left open are chosen on a sample."""
    parameters = _parameters(options)
    estimator = learner(job.model, large.target.task, parameters, options.seed)
    if job.model != "ridge" or "alpha" in parameters:
        return estimator, None
    first = next(iter(large.training()))
    assert first.y is not None
    X, y = first.X[:_CHOICE], first.y[:_CHOICE]
    width = None if {"kernel", "gamma"} & set(parameters) else X.shape[1]
    alone = learner(job.model, large.target.task, parameters, options.seed)
    alone.set_params(approximation=None, checkpoint=None)
    best = by_leave_one_out(Prepared(large.table, alone, X, y), width)
    return estimator.set_params(**best), words_of_choice(best, "exact leave-one-out", len(X))


def _parameters(options: FitOptions) -> Mapping[str, Any]:
    parameters = {**parse_settings(options.settings), "approximation": options.approximation}
    parameters["random_state"] = options.seed
    if options.kernel is not None:
        named = options.kernel.strip()
        parameters["kernel"] = named if named in NAMES else parse_kernel(named)
    checkpoint = None if options.checkpoint is None else str(options.checkpoint)
    for name, value in (("n_landmarks", options.landmarks), ("checkpoint", checkpoint)):
        if value is not None:
            parameters[name] = value
    if options.n_jobs is not None:
        parameters["n_jobs"] = options.n_jobs
    return parameters
