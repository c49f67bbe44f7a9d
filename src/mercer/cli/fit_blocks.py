"""``mercer fit --approximation``: a fit over landmarks to rows that are read in blocks."""

from __future__ import annotations

import importlib
import inspect
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import persistence
from mercer._errors import DataError
from mercer._optional import optional
from mercer.cli.checks import default_output
from mercer.cli.choose_blocks import Choice, FoundTable, Sample, choose
from mercer.cli.compare import advice_beside_constant
from mercer.cli.job import Job
from mercer.cli.large import SplitRows, calibrate, compared
from mercer.cli.learners import learner, requested_task
from mercer.cli.options import FitOptions, parse_settings
from mercer.cli.report import outcome, plan, process_peak
from mercer.cli.show import Printer
from mercer.costs.estimate import Estimate, estimate
from mercer.data.blocks.blocks import Blocks
from mercer.data.rank_table import RankTable
from mercer.data.target import Target, read_target
from mercer.data.unknown import one_note_a_column
from mercer.data.words import closest_names, counted, listing
from mercer.engine.memory import describe, track
from mercer.engine.settings import config
from mercer.estimators.shared.landmark_numbers import AUTO
from mercer.estimators.table import TableModel
from mercer.kernels.convert import NAMES
from mercer.kernels.parse import parse_kernel

# Rows that determine kinds of columns, the task, the encoding, the kernel and the penalty.
_SAMPLE = 40_000
# One of so many rows is held out, by its number.
_HELD_OUT = 10
_MODELS = {"classification": "logistic", "regression": "ridge"}


@dataclass(frozen=True, eq=False)
class Large:
    """A table that is read in blocks: its rows, a sample of those that are not held out, and what fits the sample."""

    rows: SplitRows
    sample: Sample
    choice: Choice
    model: str

    @property
    def target(self) -> Target:
        """That of the sample."""
        return self.sample.target

    def training(self) -> Blocks:
        """The encoded rows that are not held out, the numbers of their targets standardised."""
        numbers = self.target.task == "regression"
        rows = self.rows.training(self.sample.mean, self.sample.scale) if numbers else self.rows.training()
        return rows.encoded(self.choice.table)


def fit(options: FitOptions) -> None:
    """Read a sample, choose what is left open, fit block by block, score, print, and write the model."""
    start_time = time.perf_counter()
    out = options.out or default_output(options.data)
    printer = Printer(options.quiet, options.json)
    with config(memory=options.memory, n_jobs=options.n_jobs), one_note_a_column():
        with printer.progress("read"):
            large = _read(options)
        training = large.training()
        report = _plan(large, training.d, options)
        printer.planned(report)
        parameters = {**_parameters(options), **large.choice.parameters}
        estimator = learner(large.model, large.target.task, parameters, options.seed)
        expected = _estimated(estimator, training)
        if options.dry_run:
            printer.estimated(expected)
            return
        more = f" ({expected.note})" if _is_open(estimator) else ""
        printer.say(f"Fitting on {expected.n:,} rows: {expected.way}, {describe(expected.nbytes)}{more} ...", "dim")
        model = TableModel(estimator, target=large.target.name)
        with printer.progress("fit"), track() as account:
            begin = time.perf_counter()
            fitted = estimator.fit(training)
            seconds = time.perf_counter() - begin
            model.take(large.choice.table, fitted, large.sample.mean, large.sample.scale)
            results = compared(model, large.rows.parts(True), large.target, options.data)
            if options.calibrate:
                report["calibration"] = _calibrated(model, large, options)
        n = report["rows"]["all"]
        report["rows"] = {"all": n, "fitted": expected.n, "held_out": n - expected.n}
        report.update(
            outcome(model, _words_of(large.choice)),
            landmarks=_landmarks(fitted),
            distance=_distance(fitted, training, large, options),
            search=None,
            scores=results,
            advice=advice_beside_constant(results, options),
            tune=None,
        )
        report.update(peak_bytes=account.peak, seconds={"fit": seconds, "all": time.perf_counter() - start_time})
        report["process_peak_bytes"] = process_peak()
        model.report_ = report
        persistence.save(model, out)
    printer.fitted({**report, "file": str(out), "file_bytes": out.stat().st_size})
    if _is_open(fitted):
        printer.say(str(fitted.landmark_path_))
    certificate, m = fitted.certificate_, _count(fitted)
    printer.say(
        f"{expected.n:,} rows, {m:,} landmarks, {certificate.iterations} passes, {seconds:.1f} s, gap "
        f"{certificate.relative_gap:.1e} of the objective."
    )


def _calibrated(model: TableModel, large: Large, options: FitOptions) -> str:
    """Learn from the held-out rows how sure predictions are; returns how, in words."""
    count = calibrate(model, large.rows.parts(True), options.data)
    return f"split conformal prediction by the {counted(count, 'row')} held out"


def _is_open(estimator: Any) -> bool:
    return bool(estimator.n_landmarks == AUTO)


def _estimated(estimator: Any, training: Blocks) -> Estimate:
    """What the fit costs; if the number of landmarks is left open, with the default number."""
    if not _is_open(estimator):
        return estimate(estimator, training)
    m = inspect.signature(type(estimator)).parameters["n_landmarks"].default
    expected = estimate(clone(estimator).set_params(n_landmarks=m), training)
    note = f"auto chooses the number of landmarks; these figures are those of {m:,}"
    return replace(expected, note=note)


def _landmarks(fitted: Any) -> dict[str, Any]:
    """The number of landmarks of the fit, and the numbers that were tried if it was left open."""
    landmarks: dict[str, Any] = {"number": _count(fitted)}
    if _is_open(fitted):
        path = fitted.landmark_path_
        # JSON has no number for NaN, which is the loss where no rows were held out.
        losses = [float(loss) if np.isfinite(loss) else None for loss in path.losses]
        landmarks.update(tried=path.n_landmarks.tolist(), losses=losses, ending=path.ending)
    return landmarks


def _count(fitted: Any) -> int:
    name = next(name for name in ("X_fit_", "X_train_", "support_vectors_") if hasattr(fitted, name))
    return int(getattr(fitted, name).shape[0])


def _distance(fitted: Any, training: Blocks, large: Large, options: FitOptions) -> dict[str, Any] | None:
    """How far the fit is from the one to all rows, if that is requested; the module is loaded only then."""
    if options.certify is None:
        return None
    distance: dict[str, Any] = importlib.import_module("mercer.cli.landmark_distance").distance_from_exact(
        fitted, training, options.certify, large.sample.scale, options.seed
    )
    return distance


def _read(options: FitOptions) -> Large:
    """Read a sample of the other rows, for the kinds of the columns, the task, and what is left open."""
    names = Blocks(options.data, encoding=options.encoding).columns
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
    rows = SplitRows(
        Blocks(options.data, target, columns=columns, encoding=options.encoding).frames(),
        _HELD_OUT if options.test_size else 0,
    )
    drawn = rows.training().frames().sample(_SAMPLE, random_state=options.seed)
    task, asked = requested_task(options)
    sample = Sample(drawn.X, read_target(drawn.y, target, task, asked=asked), options.seed)
    model = options.model or _MODELS[sample.target.task]
    choice = choose(sample, model, _parameters(options))
    _require_no_text(choice.table, options)
    return Large(rows, sample, choice, model)


def _require_no_text(table: FoundTable, options: FitOptions) -> None:
    """Raise ``DataError`` if a column holds text other than categories."""
    texts = [table.names_[place] for place in getattr(table, "texts_", ())]
    if texts:
        drop = " ".join(f"--drop {shlex.quote(name)}" for name in texts[:4])
        raise DataError(
            f"{options.data}: {listing(texts, 4)} {'holds' if len(texts) == 1 else 'hold'} text, which "
            f"--approximation {options.approximation} does not read. Leave text out with {drop}, or fit fewer rows "
            "without --approximation and --kernel: --model auto compares texts, too."
        )


def _plan(large: Large, features: int, options: FitOptions) -> dict[str, Any]:
    """The report before the fit; gaps are not counted in all files."""
    table, count = large.choice.table, len(large.target.values)
    why = "" if options.model else f"the default for a {large.target.task} with --approximation"
    sample = np.arange(count)
    columns = optional("pandas", "reading tables").DataFrame({name: [] for name in table.names_})
    report = plan(Job(columns, large.target, table.schema_, None, sample, sample[:0], large.model, why), options)
    n, step = large.rows.frames.n, large.rows.step
    held_out = n // step if step else 0
    report["data"] = options.data if Path(options.data).is_dir() else Path(options.data).name
    report["rows"] = {"all": n, "fitted": n - held_out, "held_out": held_out}
    report.update(refitted=False, encoded_columns=features, missing={}, every=step)
    report["normalize"] = "ranks" if isinstance(table, RankTable) else "model"
    return report


def _words_of(choice: Choice) -> str | None:
    """The numbers that were chosen, and how; the kernel is reported anyway."""
    if choice.words is None:
        return None
    numbers = [f"{name}={value:.4g}" for name, value in choice.parameters.items() if name != "kernel"]
    return f"{', '.join(numbers)} by {choice.words}"


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
