"""``mercer fit``: from a file to a model file."""

from __future__ import annotations

import copy
import importlib
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier

from mercer import persistence
from mercer._errors import DataError, MercerError, MercerWarning, ParameterError, warn_user
from mercer.cli.bad_rows import naming_lines
from mercer.cli.checks import default_output
from mercer.cli.choose import choose
from mercer.cli.command import name_of
from mercer.cli.compare import advice, tuning
from mercer.cli.hold_out import hold_out, split_by
from mercer.cli.job import Job
from mercer.cli.learners import choose_model, kernel_of, learner, parameters_of, target_of, usage
from mercer.cli.options import FitOptions, parse_settings
from mercer.cli.reading import Reading
from mercer.cli.report import outcome, plan, process_peak
from mercer.cli.show import Printer
from mercer.cli.size import choose_size
from mercer.data.column_entries import kind_of, read_columns
from mercer.data.date_columns import DateForm, expand_dates, find_dates
from mercer.data.notation import Notation, parse_numbers
from mercer.data.raw_table import RawTable
from mercer.data.readers import read_table
from mercer.data.roles import VERBATIM
from mercer.data.schema import are_trees, quantities
from mercer.data.table import Table
from mercer.data.target import Target
from mercer.data.words import counted, listing, shortened
from mercer.engine.drafts import written_in_one_stroke
from mercer.engine.memory import track
from mercer.engine.settings import config
from mercer.estimators.table import TableModel
from mercer.estimators.table_kernels import columns_of, default_kernel, place
from mercer.reports.plain_features import features, features_of_columns
from mercer.reports.scores import baseline_scores, by_class, scores_of

# The least number of rows that max_rows of a learner of tables may be.
_FEWEST = 10
# Parts of the rows that are left out for --calibrate.
_FOLDS = 5
# At most so many held-out rows are counted that lie in their intervals of this coverage.
_JUDGED, _COVERAGE = 500, 0.9
# Rows on which an estimate looks at the kernel.
_TIMED = 2000
# An estimate takes half a second itself: with fewer rows there is none, and one of fewer seconds is not printed.
_MANY, _SHORT = 1000, 10.0


def fit(options: FitOptions) -> None:
    """Read, encode, hold out, fit, score, print, and write the model."""
    start_time = time.perf_counter()
    if options.test is not None:
        # All rows of the table are learnt from already.
        options = replace(options, refit=False)
    out = options.out or default_output(options.data)
    page: Any = None if options.report is None else importlib.import_module("mercer.cli.report_page")
    if page is not None:
        page.require_packages()
    parameters = parameters_of(options)
    printer = Printer(options.quiet, options.json)
    with config(memory=options.memory, n_jobs=options.n_jobs), warnings.catch_warnings():
        # Such a target is named with its place in the file.
        warnings.filterwarnings("ignore", "one target, in row", MercerWarning)
        table, numbers = _read(options)
        job = _prepare(table, options, parameters, numbers)
        model = table_model(job, options, parameters)
        report = plan(job, options)
        report["reading"] = job.reading.plain()
        printer.planned(report, options.details)
        for words in job.reading.words():
            printer.say(words, "dim")
        if options.dry_run:
            printer.estimated(_estimated(model, job, options))
            return
        size = choose_size(options, job)
        # The rows that are not held out have as large a sample as all rows have.
        report["refitted"] = report["refitted"] and (size.most is None or size.most > len(job.train))
        printer.say(size.words, "dim")
        expected = _expected(model, job, options, report["refitted"])
        if expected:
            printer.say(expected, "dim")
        with (
            naming_lines(model, job),
            printer.progress("fit" if options.tune is None else "tune", options.tune is not None),
            track() as account,
        ):
            search = None if options.tune is None else _search(model, job, options, size.most)
            if search is not None:
                search["before"] = _before(job, options, parameters, size.most)
            choice = choose(model, job, parameters, options.seed) if search is None else _words_of_search(model, search)
            rows = job.sample(job.train, size.most, options.seed)
            seconds = _train(model, job, rows, options)
            predicted = _predicted(model, job)
            results, recalls, predictions = _scores(model, job, predicted)
            shown = _examples(model, job, predicted)
            scored = None if page is None else _copied(model)
            if report["refitted"]:
                rows = job.sample(np.arange(len(job.target.values)), size.most, options.seed)
                _train(model, job, rows, options)
            # A model that cannot predict, such as one of five neighbours among three rows, is not written.
            model.predict(job.rows(rows[:1]))
            if options.calibrate:
                report["calibration"] = _calibrated(model, job, rows, options, report["refitted"])
        report["rows"]["fitted"] = len(rows)
        report.update(outcome(model, _words(job, choice)), search=search)
        report.update(
            scores=results,
            recalls=recalls,
            telltale=_telltale(job, results),
            advice=advice(results, predictions, options, job, _trial),
            tune=tuning(options, job),
            peak_bytes=account.peak,
        )
        report["seconds"] = {"fit": seconds, "all": time.perf_counter() - start_time}
        report["process_peak_bytes"] = process_peak()
        model.report_ = report
        _write(model, out, options, None if page is None else lambda: page.of_fit(model, scored, job, rows, options))
    more = {"file": str(out), "file_bytes": out.stat().st_size, "examples": shown}
    printer.fitted({**report, **more, **({} if page is None else {"report": str(options.report)})}, options.details)


def _write(model: TableModel, out: Path, options: FitOptions, page: Callable[[], str] | None) -> None:
    """Write the model, and then the page of its report: whatever happens to the page, the work of the fit is kept."""
    persistence.save(model, out)
    if page is None or options.report is None:
        return
    try:
        text = page()
    except BaseException:
        Printer(options.quiet, options.json).begin(f"Wrote {out}, but not its report.")
        raise
    with written_in_one_stroke(options.report) as (file, _):
        file.write(text.encode("utf-8"))


def _copied(model: TableModel) -> TableModel:
    """A copy that stays as it is when the model is fitted again, also by ``warm_start``, which keeps the estimator."""
    scored = copy.copy(model)
    scored.estimator_ = copy.copy(model.estimator_)
    return scored


def _estimated(model: TableModel, job: Job, options: FitOptions) -> Any:
    """What the fit to the rows that it would take costs."""
    n = len(job.target.values if options.refit else job.train)
    rows = job.sample(np.arange(len(job.target.values)), min(n, options.rows or n, _TIMED), options.seed)
    prepared = model.prepared(job.rows(rows), job.target.values[rows], schema=job.schema)
    # A learner of tables takes a sample where others do not fit.
    most = choose_size(options, job).most if usage(job.model, job.target.task).raw else options.rows
    counted_rows = min(n, most or n)
    return importlib.import_module("mercer.costs.estimate").estimate_for(
        prepared.estimator, prepared.rows, prepared.target, counted_rows
    )


def _expected(model: TableModel, job: Job, options: FitOptions, refitted: bool) -> str:
    """How long all fits take together, if the learner needs no choice and that is not short."""
    if not usage(job.model, job.target.task).raw or len(job.train) < _MANY or options.tune is not None:
        return ""
    expected = _estimated(model, job, options)
    again = _FOLDS if options.calibrate and (refitted or not len(job.test)) else 0
    seconds = (expected.seconds or 0.0) * (1 + refitted + again)
    if seconds < _SHORT:
        return ""
    words = importlib.import_module("mercer.costs.estimate").in_words(seconds)
    return (
        f"It takes about {words} on {counted(expected.threads, 'free thread')}; for less, use --rows with fewer rows."
    )


def _search(model: TableModel, job: Job, options: FitOptions, most: int | None) -> dict[str, Any]:
    """Search for parameters on the training part; the module is loaded here, because it takes a while."""
    rows = job.sample(job.train, most, options.seed)
    outcome: dict[str, Any] = importlib.import_module("mercer.cli.tune").search(model, job, options, rows)
    return outcome


def _before(
    job: Job, options: FitOptions, parameters: Mapping[str, Any], most: int | None
) -> dict[str, dict[str, float]]:
    """The scores on the held-out rows of the learner as it is without a search."""
    if not len(job.test):
        return {}
    model = table_model(job, options, parameters)
    with warnings.catch_warnings():
        # It is only a yardstick: its warnings are not about the model that is written.
        warnings.simplefilter("ignore")
        _train(model, job, job.sample(job.train, most, options.seed), options)
        name = f"{type(model.estimator_).__name__} without a search"
        return {name: scores_of(job.target.task, job.target.values[job.test], model, job.rows(job.test))}


def _trial(options: FitOptions) -> np.ndarray:
    """What another fit predicts for the rows that it holds out, which are the same for the same target and seed."""
    parameters = parameters_of(options)
    table, numbers = _read(options)
    job = _prepare(table, options, parameters, numbers)
    model, size = table_model(job, options, parameters), choose_size(options, job)
    with warnings.catch_warnings():
        # They are about a fit that has not been asked for.
        warnings.simplefilter("ignore")
        _train(model, job, job.sample(job.train, size.most, options.seed), options)
        return model.predict(job.rows(job.test))


def _words_of_search(model: TableModel, search: Mapping[str, Any]) -> str:
    values = [
        f"{name}={value:.4g}" if isinstance(value, (int, float)) else f"{name} {value}"
        for name, value in search["table"][0]["parameters"].items()
    ]
    return f"{', '.join(values)} by a search of {counted(search['candidates'], 'candidate')}, {search['folds']} folds"


def table_model(job: Job, options: FitOptions, parameters: Mapping[str, Any]) -> TableModel:
    """Return the unfitted model of a job."""
    estimator = learner(job.model, job.target.task, parameters, options.seed)
    if usage(job.model, job.target.task).raw and options.rows is not None and options.rows >= _FEWEST:
        # More than it takes by default.
        estimator.set_params(max_rows=options.rows)
    return TableModel(estimator, options.normalize, options.impute, job.target.name, job.schema.roles or None)


def _train(model: TableModel, job: Job, rows: np.ndarray, options: FitOptions) -> float:
    """Fit to some rows; returns the seconds that it took."""
    start_time = time.perf_counter()
    try:
        model.fit(job.rows(rows), job.target.values[rows], schema=job.schema)
    except (TypeError, ValueError) as error:
        # A value of --set that the checks of the estimator do not foresee ends in an error of Python or scikit-learn.
        if isinstance(error, MercerError) or not options.settings:
            raise
        settings = ", ".join(options.settings)
        raise ParameterError(f"{type(model.estimator).__name__} cannot be fitted with {settings}: {error}") from error
    return time.perf_counter() - start_time


def _calibrated(model: TableModel, job: Job, rows: np.ndarray, options: FitOptions, refitted: bool) -> str:
    """Learn how sure predictions are; returns how, in words."""
    if not refitted and len(job.test):
        model.calibrate(job.rows(job.test), job.target.values[job.test], folds=None)
        return f"split conformal prediction by the {counted(len(job.test), 'row')} held out"
    with warnings.catch_warnings():
        # The fit to all rows has already warned about the data.
        warnings.simplefilter("ignore")
        model.calibrate(job.rows(rows), job.target.values[rows], folds=_FOLDS, random_state=options.seed)
    return f"CV+ of {_FOLDS} folds of {counted(len(rows), 'row')}"


def _words(job: Job, choice: str | None) -> str | None:
    """What was chosen, with the kernel where the columns did that."""
    if job.default_kernel is None:
        return choice
    kernel = "the kernel, by default for such columns; choose another with --kernel"
    return kernel if choice is None else f"{kernel}; {choice}"


def _read(options: FitOptions) -> tuple[Table, dict[str, Notation | DateForm]]:
    """The table, without what is dropped, with the roles of its columns; and columns in other notations of numbers.

    A text that is the only column has that role, unless the user says how columns are compared.
    """
    way = {"encoding": options.encoding, "sheet": options.sheet}
    table = read_table(options.data, _verbatim(options.roles), options.axes, _texts(options), **way)
    if options.test is not None:
        other = read_table(options.test, _verbatim(options.roles), options.axes, _texts(options), **way)
        table = table.drop(options.drop).followed_by(other)
    kept = options.drop if options.test is not None else () if options.split is None else options.split[1:]
    table = table.drop([name for name in options.drop if name not in kept]).with_roles(options.roles)
    numbers: dict[str, Notation | DateForm] = {}
    if options.parse_numbers and not table.is_sparse:
        written = None if table.written is None else table.written()
        columns, numbers = parse_numbers(table.columns, table.source, [*table.roles, *_texts(options)], written)
        table = replace(table, columns=columns)
    rest = table.drop([name for name in options.drop if name in table.names])
    text = None if _says_how(options) else _only_text(rest, options.target)
    return (table, numbers) if text is None else _read(replace(options, text=[text]))


def _says_how(options: FitOptions) -> bool:
    """Whether the user says how columns are compared."""
    settings = set(parse_settings(options.settings)) - {"n_jobs"}
    return any((options.model, options.kernel, options.kernels, options.roles, settings))


def _only_text(table: Table, target: str | None) -> str | None:
    """The name of the only column, if it is text without gaps, neither trees nor numbers; None for other tables."""
    if table.is_sparse or table.roles:
        return None
    columns = table.split(target)[0]
    if columns.shape[1] != 1:
        return None
    column = next(read_columns(columns))
    if column.missing.any() or kind_of(column) != "text":
        return None
    entries = [str(entry) for entry in column.entries]
    return None if are_trees(entries) or quantities(entries) is not None else column.name


def _verbatim(roles: Mapping[str, str]) -> list[str]:
    return [name for name, role in roles.items() if role in VERBATIM]


def _texts(options: FitOptions) -> list[str]:
    """The columns that --set kinds=... takes for something else than numbers."""
    kinds = parse_settings(options.settings).get("kinds")
    return [str(name) for name, kind in kinds.items() if kind != "number"] if isinstance(kinds, Mapping) else []


def _prepare(table: Table, options: FitOptions, parameters: dict[str, Any], numbers: Mapping[str, Any]) -> Job:
    """Check the data; the kernel among the parameters gets its columns, or is chosen by them."""
    by = None
    if options.split is not None:
        if table.is_sparse:
            raise DataError(f"{table.source} has no named columns, so there is none to split by; leave out --split.")
        if options.split[1] == (options.target or table.default_target):
            raise DataError(f"--split by the target {options.split[1]!r} leaves out what is to be learnt.")
        if options.split[1] not in table.names:
            raise DataError(f"{table.source} has no column {options.split[1]!r}; it has {listing(table.names)}.")
        by = table.columns[options.split[1]]
        table = table.drop([name for name in options.drop if name == options.split[1]])
    columns, values, name = table.split(options.target)
    if not table.is_sparse:
        # A file with thousands of columns is read into as many blocks, and a copy has one for each type.
        columns = columns.copy()
    target = target_of(values, name, options, table.locate)
    model, why = choose_model(options, table, target.task, parameters)
    use, by_default = usage(model, target.task), None
    cycles = {} if use.raw or table.is_sparse else find_dates(columns, list(table.roles))
    if cycles:
        columns = expand_dates(columns, cycles, table.source, table.locate)
    trial = TableModel(learner(model, target.task, parameters, options.seed), options.normalize, options.impute)
    trial.roles = table.roles
    schema = trial.encoder().check(columns, source=table.source, locate=table.locate)
    kernels: list[Any] = []
    if not use.raw:
        by_default = None if "kernel" in parameters else default_kernel(schema)
        if by_default is not None:
            parameters["kernel"] = 1.0 * by_default if use.scaled else by_default
        kernels = [place(kernel_of(text), schema) for text in options.kernels]
        kernels = kernels or [place(parameters.get("kernel", "rbf"), schema)]
        used = {name for kernel in kernels for name in columns_of(kernel, schema)}
        schema = schema.only(used, "the kernel does not compare it")
    n, how = len(target.values), ""
    if options.test is not None:
        parts, how = (np.arange(n - table.last), np.arange(n - table.last, n)), f"those of {name_of(options.test)}"
    elif options.split is not None:
        parts = split_by(options.split[0], by, target, options.held_out, options.seed, table.locate)
        what = "the last ones by" if options.split[0] == "time" else "whole groups of"
        how = f"{what} {options.split[1]}"
    else:
        parts = hold_out(target, options.held_out, options.seed)
    _note_new_classes(target, *parts)
    # Remembered, so that new tables may have these columns too.
    schema = replace(schema, left_out={**schema.left_out, **dict.fromkeys(options.drop, "--drop")})
    return Job(
        columns,
        target,
        schema,
        by_default,
        *parts,
        model,
        why,
        tuple(kernels),
        table.locate,
        Reading(numbers, cycles, _verbatim(table.roles)),
        table.source,
        how,
    )


def _note_new_classes(target: Target, train: np.ndarray, test: np.ndarray) -> None:
    """Warn of held-out rows whose class no other row has."""
    new = target.values[test][~np.isin(target.values[test], target.values[train])]
    if target.task == "classification" and len(new):
        warn_user(
            f"{counted(len(new), 'held-out row')} of the classes {listing(np.unique(new))} cannot be predicted: no row "
            "to learn from has them.",
            MercerWarning,
        )


def _predicted(model: TableModel, job: Job) -> np.ndarray:
    """What the model predicts for the held-out rows, (m,)."""
    return model.predict(job.rows(job.test)) if len(job.test) else job.target.values[:0]


def _scores(
    model: TableModel, job: Job, predicted: np.ndarray
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]], dict[str, np.ndarray]]:
    """On the held-out rows: scores of the model and of others, the recall of each class, and what each predicts."""
    if not len(job.test):
        return {}, {}, {}
    task, y = job.target.task, job.target.values
    test_rows = job.rows(job.test)
    mine = scores_of(task, y[job.test], model, test_rows, predicted)
    rows = model.encoder_.transform(job.rows(job.train)), model.encoder_.transform(test_rows)
    is_raw = isinstance(model.encoder_, RawTable)
    simple = features_of_columns(model.estimator_.encoder_, *rows) if is_raw else features(*rows)
    classes = by_class(y[job.test], predicted) if task == "classification" else {}
    others, predictions = baseline_scores(task, simple, y[job.train], y[job.test])
    name = type(model.estimator_).__name__
    recalls = {label: {"rows": its["rows"], "recall": its["recall"]} for label, its in classes.items()}
    return {name: mine, **others}, recalls, {name: predicted, **predictions}


def _examples(model: TableModel, job: Job, predicted: np.ndarray) -> dict[str, Any] | None:
    """Some held-out rows with truth, prediction and how sure it is; None if the model is never sure of anything.

    A row is called by its first text, if there is any. With intervals, how many rows lie in theirs is counted, too.
    """
    is_numeric, rows = job.target.task == "regression", job.test[:_JUDGED]
    if not len(rows) or not hasattr(model, "interval" if is_numeric else "predict_proba"):
        return None
    places = np.unique([0, len(rows) // 2, len(rows) - 1])
    truth, texts = job.target.values[rows], [name for name, kind in job.schema.kinds.items() if kind == "text"]
    columns: dict[str, list[Any]] = {
        "row": [
            shortened(str(job.columns[texts[0]].iloc[row]), 40)
            if texts and job.columns[texts[0]].notna().iloc[row]
            else job.locate(row)
            for row in rows[places]
        ],
        "truth": truth[places].tolist(),
        "predicted": predicted[places].tolist(),
    }
    if not is_numeric:
        return {**columns, "probability": model.predict_proba(job.rows(rows[places])).max(axis=1).tolist()}
    try:
        with warnings.catch_warnings():
            # Few rows cannot tell the tails; this is said where intervals are asked for.
            warnings.simplefilter("ignore")
            ends = model.interval(job.rows(rows), _COVERAGE)
    except MercerError:
        return None
    inside = int(((ends.lower <= truth) & (truth <= ends.upper)).sum())
    columns |= {"lower": ends.lower[places].tolist(), "upper": ends.upper[places].tolist()}
    return {**columns, "coverage": _COVERAGE, "inside": inside, "of": len(rows)}


def _telltale(job: Job, results: Mapping[str, Mapping[str, float]]) -> str:
    """A column that alone gives the targets of all held-out rows, which may not be known before they are."""
    own, y, is_classes = next(iter(results.values()), {}), job.target.values, job.target.task == "classification"
    perfect = own.get("accuracy", 0.0) == 1.0 or own.get("r2", 0.0) > 0.9999
    if not perfect or len(job.test) < _FEWEST or not hasattr(job.columns, "iloc") or job.columns.shape[1] < 2:
        return ""
    for name in job.columns:
        column = job.columns[name]
        is_number = column.dtype.kind in "iufb"
        codes = (
            column.to_numpy(np.float64, na_value=np.nan) if is_number else column.astype(str).factorize(sort=True)[0]
        )
        # Ranks are the same for trees, which read numbers in float32.
        codes = rankdata(codes, method="dense", nan_policy="omit")
        if not is_classes:
            ranks = rankdata(y, method="dense")
            if np.array_equal(codes, ranks) or np.array_equal(codes.max() + 1 - codes, ranks):
                return str(name)
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * len(np.unique(y))).fit(codes[job.train, None], y[job.train])
        if (tree.predict(codes[job.test, None]) == y[job.test]).all():
            return str(name)
    return ""
