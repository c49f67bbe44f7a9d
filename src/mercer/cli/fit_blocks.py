"""``mercer fit --approximation``: a fit over landmarks to rows that are read in blocks."""

from __future__ import annotations

import importlib
import inspect
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
from mercer.cli.choose_blocks import Choice, Sample, choose
from mercer.cli.compare import advice_beside_constant
from mercer.cli.hold_out import Draw, warn_of_single
from mercer.cli.job import Job
from mercer.cli.large import SplitRows, calibrate, compared
from mercer.cli.learners import learner, requested_task
from mercer.cli.options import FitOptions, parse_settings
from mercer.cli.reading import Reading
from mercer.cli.report import outcome, plan, process_peak
from mercer.cli.show import Printer
from mercer.costs.estimate import Estimate, estimate
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.moments import Labels
from mercer.data.blocks.reservoir import Reservoir
from mercer.data.date_columns import DateForm
from mercer.data.notation import Notation, parse_numbers
from mercer.data.rank_table import RankTable
from mercer.data.raw_table import RawTable
from mercer.data.schema import Schema, categories_of
from mercer.data.seeds import generator
from mercer.data.target import Target, read_target
from mercer.data.text_columns import are_too_many
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
        return self._encoded(self.rows)

    def whole(self) -> Blocks:
        """All rows, encoded."""
        return self._encoded(replace(self.rows, draw=None))

    def _encoded(self, rows: SplitRows) -> Blocks:
        numbers = self.target.task == "regression"
        blocks = rows.training(self.sample.mean, self.sample.scale) if numbers else rows.training(classes=True)
        return blocks.encoded(self.choice.table)


def fit(options: FitOptions) -> None:
    """Read a sample, choose what is left open, fit block by block, score, print, and write the model."""
    start_time = time.perf_counter()
    out = options.out or default_output(options.data)
    printer = Printer(options.quiet, options.json)
    with config(memory=options.memory, n_jobs=options.n_jobs), one_note_a_column():
        with printer.progress("read"):
            large = _read(options)
        training = large.training()
        report = _plan(large, training, options)
        printer.planned(report, options.details)
        for words in large.rows.reading.words():
            printer.say(words, "dim")
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
            seconds = _fitted(model, large, training)
            first = model.estimator_
            results = compared(model, large.rows.parts(True), large.target, options.data)
            if options.calibrate:
                report["calibration"] = _calibrated(model, large, options)
            elif report["refitted"]:
                training = large.whole()
                _fitted(model, large, training)
        report["rows"]["fitted"] = training.n
        report.update(
            outcome(model, _words_of(large.choice)),
            landmarks=_landmarks(first),
            distance=_distance(model.estimator_, training, large, options),
            search=None,
            scores=results,
            advice=advice_beside_constant(results, options),
            tune=None,
        )
        report.update(peak_bytes=account.peak, seconds={"fit": seconds, "all": time.perf_counter() - start_time})
        report["process_peak_bytes"] = process_peak()
        model.report_ = report
        persistence.save(model, out)
    printer.fitted({**report, "file": str(out), "file_bytes": out.stat().st_size}, options.details)
    if _is_open(first):
        printer.say(str(first.landmark_path_))
    certificate, m = model.estimator_.certificate_, _count(model.estimator_)
    printer.say(
        f"{training.n:,} rows, {m:,} landmarks, {certificate.iterations} passes, {seconds:.1f} s, gap "
        f"{certificate.relative_gap:.1e} of the objective."
    )


def _fitted(model: TableModel, large: Large, rows: Blocks) -> float:
    """Fit the model to encoded rows, and return the seconds that it took; a second fit is to all rows."""
    begin, estimator = time.perf_counter(), clone(model.estimator)
    before = vars(model).get("estimator_")
    if before is not None and _is_open(before):
        estimator.set_params(n_landmarks=_count(before))
    if before is not None and getattr(before, "checkpoint", None) is not None:
        # The file of the first fit is that of other rows.
        estimator.set_params(checkpoint=f"{before.checkpoint}.all")
    model.take(large.choice.table, estimator.fit(rows), large.sample.mean, large.sample.scale)
    return time.perf_counter() - begin


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
    """Read a sample of the rows that are not held out, for the kinds of the columns, and what is left open."""
    names = Blocks(options.data, encoding=options.encoding).columns
    if names is None:
        raise DataError(
            f"{options.data} has no named columns, and --approximation reads tables: CSV, TSV, Parquet or Arrow files."
        )
    name = options.target or names[-1]
    for each in (name, *options.drop):
        if each not in names:
            near = closest_names(each, list(names), 1)
            offer = f"did you mean {near[0]!r}? " if near else ""
            raise DataError(f"{options.data} has no column {each!r}; {offer}it has {', '.join(names[:20])}.")
    columns = [each for each in names if each != name and each not in options.drop]
    target, notation = _task(options, name, columns)
    draw = Draw(options.held_out, target.task == "classification", options.seed) if options.held_out else None
    blocks = Blocks(options.data, name, columns=columns, encoding=options.encoding)
    rows = SplitRows(blocks.frames(), name, Reading(notation), draw)
    drawn = rows.training().frames().sample(_SAMPLE, random_state=options.seed)
    if options.parse_numbers:
        frame, numbers = parse_numbers(drawn.X, options.data)
        drawn, rows = drawn._replace(X=frame), replace(rows, reading=Reading({**notation, **numbers}))
    learned = replace(read_target(drawn.y, name, target.task), why=target.why)
    sample = Sample(drawn.X, learned, _schema(drawn.X, options), options.seed)
    model = options.model or _MODELS[learned.task]
    return Large(rows, sample, choose(sample, model, _parameters(options)), model)


def _task(options: FitOptions, name: str, columns: list[str]) -> tuple[Target, dict[str, Notation | DateForm]]:
    """The target of a sample of all rows, and its notation if that is not the usual one; one pass over the targets."""
    reservoir, labels = Reservoir(_SAMPLE, generator(options.seed)), Labels()
    for block in Blocks(options.data, name, columns=columns[:1], encoding=options.encoding).frames():
        assert block.y is not None
        reservoir.add(block)
        labels.add(block.y, np.ones(block.rows))
    assert reservoir.sample is not None and reservoir.sample.y is not None
    values, notation = reservoir.sample.y, dict[str, Notation | DateForm]()
    if options.parse_numbers:
        frame = optional("pandas", "reading tables").DataFrame({name: values})
        frame, notation = parse_numbers(frame, options.data)
        values = frame[name].to_numpy()
    task, asked = requested_task(options)
    target = read_target(values, name, task, asked=asked)
    classes, counts = labels.result(reservoir.sample.y.dtype)
    if target.task == "classification" and options.held_out and classes is not None and counts is not None:
        single = classes[counts == 1]
        if len(single):
            warn_of_single(name, single)
    return target, notation


def _schema(frame: Any, options: FitOptions) -> Schema:
    """The columns of a sample; text is left out unless its values are few enough for categories.

    Raises
    ------
    DataError
        If no column is left.
    """
    table = RawTable()
    schema = table.check(frame, source=options.data, locate=lambda row: f"row {row + 1} of a sample")
    values = {name: len(categories_of(frame[name])) for name in schema.of_kind("text")}
    texts = {
        name: f"text, {count} different values in {len(frame)} rows"
        for name, count in values.items()
        if are_too_many(count, len(frame))
    }
    if len(texts) == len(schema.kinds):
        raise DataError(
            f"{options.data}: {listing(list(texts), 4)} {'holds' if len(texts) == 1 else 'hold'} text, which "
            f"--approximation {options.approximation} does not compare, and there is no other column to learn from. "
            "Fit without --approximation and --kernel: --model auto compares texts."
        )
    sentences = [name for name in values if name not in texts]
    if sentences:
        schema = RawTable(dict.fromkeys(sentences, "category")).check(frame, source=options.data)
    kept = schema.only([name for name in schema.kinds if name not in texts], "")
    return replace(kept, left_out={**kept.left_out, **texts, **dict.fromkeys(options.drop, "--drop")})


def _plan(large: Large, training: Blocks, options: FitOptions) -> dict[str, Any]:
    """The report before the fit; gaps are not counted in all files."""
    table, count = large.choice.table, len(large.target.values)
    why = "" if options.model else f"the default for a {large.target.task} with --approximation"
    sample = np.arange(count)
    columns = optional("pandas", "reading tables").DataFrame({name: [] for name in table.names_})
    report = plan(Job(columns, large.target, table.schema_, None, sample, sample[:0], large.model, why), options)
    n = large.rows.frames.n
    held_out = n - training.n
    report["data"] = options.data if Path(options.data).is_dir() else Path(options.data).name
    report["rows"] = {"all": n, "fitted": training.n, "held_out": held_out}
    report.update(
        refitted=options.refit and held_out > 0 and not options.calibrate,
        encoded_columns=training.d,
        missing={},
        approximation=options.approximation,
        reading=large.rows.reading.plain(),
    )
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
