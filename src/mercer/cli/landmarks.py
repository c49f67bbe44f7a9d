"""``mercer fit --approximation``: a fit over landmarks to rows that are read in blocks."""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import persistence
from mercer._errors import DataError
from mercer._optional import optional
from mercer.cli.checks import default_output
from mercer.cli.choose import choose_over_landmarks
from mercer.cli.compare import advice_beside_constant
from mercer.cli.hold_out import hold_out
from mercer.cli.job import Job
from mercer.cli.learners import learner, parameters_of, target_of
from mercer.cli.options import FitOptions
from mercer.cli.reading import Reading
from mercer.cli.report import outcome, plan, process_peak
from mercer.cli.show import Printer
from mercer.cli.use import Part, Predicted
from mercer.costs.estimate import Estimate, estimate
from mercer.data.blocks.blocks import Blocks
from mercer.data.date_columns import DateForm
from mercer.data.feature_table import FeatureTable
from mercer.data.notation import Notation, parse_numbers
from mercer.data.raw_table import RawTable
from mercer.data.schema import Locate, Schema, categories_of
from mercer.data.table import Table, row_place, shifted
from mercer.data.text_columns import are_too_many
from mercer.data.unknown import one_note_a_column
from mercer.data.words import counted, listing
from mercer.engine import memory
from mercer.engine.memory import describe, track
from mercer.engine.settings import config
from mercer.estimators.shared.landmark_numbers import AUTO
from mercer.estimators.table import TableModel

# Rows that determine kinds of columns, the encoding, the kernel and the penalty.
_SAMPLE = 40_000
_MODELS = {"classification": "logistic", "regression": "ridge"}


@dataclass(frozen=True, eq=False)
class Large:
    """A table that is read in blocks.

    Parameters
    ----------
    frames : Blocks
        The columns, as data frames.
    job : Job
        All targets, the rows that are held out, and the first rows of a sample as its columns.
    table : FeatureTable
        The encoding, fitted to a sample of the rows to learn from.
    """

    frames: Blocks
    job: Job
    table: FeatureTable

    @property
    def learned(self) -> np.ndarray:
        """The targets of the rows to learn from, (n,)."""
        return self.job.target.values[self.job.train]

    @property
    def unit(self) -> tuple[float, float]:
        """Mean and standard deviation of numbers; 0 and 1 for classes."""
        if self.job.target.task == "classification":
            return 0.0, 1.0
        return float(self.learned.mean()), float(self.learned.std()) or 1.0

    def parts(self, chosen: np.ndarray) -> Iterator[Part]:
        """Some of the rows, in their order, block by block."""
        mask = np.zeros(len(self.job.target.values), dtype=bool)
        mask[chosen] = True
        first = 0
        for X, _, _ in self.frames:
            here = slice(first, first + len(X))
            if mask[here].any():
                whole = self.job.reading.frame(X, self.job.source, shifted(row_place, first))
                yield whole[mask[here]], self.job.target.values[here][mask[here]]
            first = here.stop

    def locate(self, chosen: np.ndarray) -> Locate:
        """The places in the files of some of the rows, by their numbers among these."""
        return lambda row: row_place(int(np.sort(chosen)[row]))

    def encoded(self, chosen: np.ndarray) -> Blocks:
        """Some of the rows, encoded, with their targets, of which numbers are standardised."""
        (mean, scale), numbers = self.unit, self.job.target.task == "regression"

        def some_rows() -> Iterator[Part]:
            for X, y in self.transformed(chosen):
                yield X, (y - mean) / scale if numbers else y

        return Blocks.from_function(some_rows, rows_per_block=self.frames.rows_per_block)

    def transformed(self, chosen: np.ndarray) -> Iterator[Part]:
        """Some of the rows, encoded, with their targets."""
        locate, first = self.locate(chosen), 0
        for X, y in self.parts(chosen):
            yield self.table.transform(X, source=self.job.source, locate=shifted(locate, first)), y
            first += len(y)


def fit(options: FitOptions) -> None:
    """Read a sample, choose what is left open, fit block by block, score, print, and write the model."""
    start_time, out = time.perf_counter(), options.out or default_output(options.data)
    printer, parameters = Printer(options.quiet, options.json), parameters_of(options)
    with config(memory=options.memory, n_jobs=options.n_jobs), one_note_a_column():
        with printer.progress("read"):
            large, chosen, words = _read(options, parameters)
        job, task = large.job, large.job.target.task
        training, everything = large.encoded(job.train), np.arange(len(job.target.values))
        report = plan(job, options)
        report.update(
            refitted=report["refitted"] and not options.calibrate,
            encoded_columns=training.d,
            # Gaps are not counted in all files.
            missing={},
            approximation=options.approximation,
            reading=job.reading.plain(),
            normalize="model",
        )
        printer.planned(report, options.details)
        for sentence in job.reading.words():
            printer.say(sentence, "dim")
        estimator = learner(job.model, task, {**parameters, **chosen}, options.seed)
        expected = _estimated(estimator, training)
        if options.dry_run:
            printer.estimated(expected)
            return
        more = f" ({expected.note})" if _is_open(estimator) else ""
        printer.say(f"Fitting on {expected.n:,} rows: {expected.way}, {describe(expected.nbytes)}{more} ...", "dim")
        model = TableModel(estimator, target=job.target.name)
        with printer.progress("fit"), track() as account:
            seconds = _fitted(model, large, training)
            first = model.estimator_
            place = large.locate(job.test)
            predicted, results = Predicted.of(model, large.parts(job.test), options.data, place), {}
            if predicted is not None:
                name, constant = predicted.constant(large.learned)
                results = {type(first).__name__: predicted.scores(), name: constant.scores()}
            if options.calibrate:
                model.calibrate_on(large.transformed(job.test))
                report["calibration"] = f"split conformal prediction by the {counted(len(job.test), 'row')} held out"
            elif report["refitted"]:
                training = large.encoded(everything)
                _fitted(model, large, training)
        report["rows"]["fitted"] = training.n
        report.update(
            outcome(model, words),
            landmarks=_landmarks(first),
            distance=_distance(model.estimator_, training, large.unit[1], options),
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
    model.take(large.table, estimator.fit(rows), *large.unit)
    return time.perf_counter() - begin


def _is_open(estimator: Any) -> bool:
    return bool(estimator.n_landmarks == AUTO)


def _estimated(estimator: Any, training: Blocks) -> Estimate:
    """What the fit costs; if the number of landmarks is left open, with the default number."""
    if not _is_open(estimator):
        return estimate(estimator, training)
    m = inspect.signature(type(estimator)).parameters["n_landmarks"].default
    expected = estimate(clone(estimator).set_params(n_landmarks=m), training)
    return replace(expected, note=f"auto chooses the number of landmarks; these figures are those of {m:,}")


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
    names = "X_fit_", "X_train_", "support_vectors_"
    return next(int(getattr(fitted, name).shape[0]) for name in names if hasattr(fitted, name))


def _distance(fitted: Any, training: Blocks, scale: float, options: FitOptions) -> dict[str, Any] | None:
    """How far the fit is from the one to all rows, if that is requested; the module is loaded only then."""
    if options.certify is None:
        return None
    module = importlib.import_module("mercer.cli.landmark_distance")
    return dict(module.distance_from_exact(fitted, training, options.certify, scale, options.seed))


def _read(options: FitOptions, parameters: Mapping[str, Any]) -> tuple[Large, dict[str, Any], str | None]:
    """Read all targets and a sample of the rows to learn from; also what is left open, chosen by it, and how."""
    blocks, pandas = Blocks(options.data, encoding=options.encoding), optional("pandas", "reading tables")
    if blocks.columns is None:
        raise DataError(
            f"{options.data} has no named columns, and --approximation reads tables: CSV, TSV, Parquet or Arrow files."
        )
    # As of a table in memory, with the same messages about names.
    whole = Table(pandas.DataFrame(columns=blocks.columns), options.data).drop(options.drop)
    rest, _, name = whole.split(options.target)
    values = _targets(Blocks(options.data, name, columns=list(rest)[:1], encoding=options.encoding), options.data)
    numbers: dict[str, Notation | DateForm] = {}
    if options.parse_numbers:
        frame, numbers = parse_numbers(pandas.DataFrame({name: values}), options.data)
        values = frame[name].to_numpy()
    target = target_of(values, name, options, row_place)
    train, test = hold_out(target, options.held_out, options.seed)
    frames = Blocks(options.data, columns=list(rest), encoding=options.encoding).frames()
    why = "" if options.model else f"the default for a {target.task} with --approximation"
    job = Job(
        rest, target, Schema(), None, train, test, options.model or _MODELS[target.task], why, source=options.data
    )
    drawn = np.sort(np.random.default_rng(options.seed).permutation(train)[:_SAMPLE])
    plain = Large(frames, job, FeatureTable())
    with memory.reserve(2 * 8 * len(drawn) * rest.shape[1], f"a sample of {len(drawn):,} rows"):
        parts, labels = zip(*plain.parts(drawn), strict=True)
        sample = pandas.concat(parts, ignore_index=True)
    if options.parse_numbers:
        sample, of_columns = parse_numbers(sample, options.data)
        numbers = {**numbers, **of_columns}
    schema = _schema(sample, options, plain.locate(drawn))
    table = FeatureTable().fit(sample, schema=schema)
    some = replace(
        job, columns=sample, target=replace(target, values=np.concatenate(labels)), train=np.arange(len(sample))
    )
    chosen, words = choose_over_landmarks(table, some, parameters, options.seed)
    job = replace(job, columns=sample.iloc[:0].copy(), schema=table.schema_, reading=Reading(numbers))
    return Large(frames, job, table), chosen, words


def _targets(blocks: Blocks, source: str) -> np.ndarray:
    """All targets, (n,)."""
    targets, nbytes = [], 0
    for _, y, _ in blocks.frames():
        assert y is not None
        nbytes += y.nbytes
        memory.require(2 * nbytes, f"the targets of {source}")
        targets.append(y)
    return np.concatenate(targets)


def _schema(frame: Any, options: FitOptions, locate: Locate) -> Schema:
    """The columns of a sample; text is left out unless its values are few enough for categories.

    Raises
    ------
    DataError
        If no column is left.
    """
    table = RawTable()
    schema = table.check(frame, source=options.data, locate=locate)
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
