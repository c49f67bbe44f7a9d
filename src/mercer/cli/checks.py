"""Checks of a command that do not depend on the data, made before anything is loaded or read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mercer._errors import ParameterError
from mercer._registered import MODELS
from mercer.cli.files import check_output
from mercer.cli.options import (
    PLOTS,
    STANDARD,
    WAYS,
    ExplainOptions,
    FitOptions,
    Means,
    PlotOptions,
    PredictOptions,
    ReportOptions,
    UseOptions,
    parse_settings,
)
from mercer.data.sources import SAMPLE, check_source
from mercer.data.words import check_choices, check_task, closest_names
from mercer.engine.settings import parse_bytes, resolve_jobs
from mercer.persistence.lead import check_begins

PREDICTIONS = (".csv", ".tsv", ".parquet")
"""The formats in which predictions are written."""
EXPLANATIONS = (*PREDICTIONS, ".json")
"""The formats in which contributions of parts are written."""

PICTURES = (".svg", ".png", ".pdf")
"""The formats in which pictures are written."""

OVER_LANDMARKS: dict[str, tuple[str, ...]] = {
    "ridge": ("--landmarks auto", "--certify", "--checkpoint"),
    "logistic": ("--landmarks auto", "--certify", "--checkpoint"),
    "svc": ("--landmarks auto", "--certify"),
    "svr": ("--landmarks auto", "--certify"),
    "gp": (),
    "gpc": (),
}
"""Models that ``--approximation`` fits to rows in blocks, with the options that they take, as a test checks."""


def check_fit(options: FitOptions) -> None:
    """Raise an error if the options of ``mercer fit`` are wrong for any data.

    Raises
    ------
    ParameterError, DataError
        If they are wrong; the message says what to do instead.
    """
    _check_approximation(options)
    out = options.out or default_output(options.data)
    check_output(out, [options.data])
    if options.report is not None:
        check_output(options.report, [options.data], "--report")
    _check_distinct({"--report": options.report, "--log": options.log, "--checkpoint": options.checkpoint}, out)
    if options.model is not None and options.model not in MODELS:
        matches = closest_names(options.model, MODELS, 1)
        offer = f"did you mean {matches[0]}? " if matches else ""
        raise ParameterError(f"there is no model {options.model!r}; {offer}the models are {', '.join(MODELS)}.")
    check_task(options.task)
    if options.model is not None and options.task is not None and options.task not in MODELS[options.model]:
        raise wrong_task(options.model, options.task)
    if not 0 <= options.held_out < 1:
        raise ParameterError(f"--test-size must be at least 0 and below 1, but is {options.held_out:g}.")
    if options.split is not None and options.split[0] not in WAYS:
        raise ParameterError(f"--split is {' or '.join(WAYS)} and a column, but is {' '.join(options.split)!r}.")
    if options.split is not None and not options.held_out:
        raise ParameterError("--split holds rows out, and --test-size 0 holds none out; leave one of them out.")
    if options.test is not None and (options.split is not None or options.test_size is not None):
        raise ParameterError("--test names the rows for the score, as --split and --test-size do; choose one of them.")
    if "kernel" in parse_settings(options.settings):
        raise ParameterError("the kernel is set by --kernel, not by --set.")
    check_choices(options.normalize, options.impute)
    if options.tune is not None:
        _check_search(options)
    both = next((name for name in options.text if name in options.tree), None)
    if both is not None:
        raise ParameterError(f"--tree {both} and --text {both} are mutually exclusive; remove one.")
    target = options.target
    if target is not None and target in options.drop:
        raise ParameterError(f"the target {target!r} cannot be left out by --drop; remove one of them.")
    if target is not None and target in options.roles:
        raise ParameterError(f"the target {target!r} cannot be a --{options.roles[target]} too; remove one of them.")
    _check_means(options)
    if options.approximation is None:
        for data in filter(None, (options.data, options.test)):
            _check_single(data)
            check_source(data)


def _check_distinct(written: Mapping[str, Path | None], model: Path) -> None:
    """Raise if two files that are written are one; the same file may have several names."""
    seen = {os.path.realpath(model): "the model file"}
    for option, path in written.items():
        if path is not None:
            what = seen.setdefault(os.path.realpath(path), f"that of {option}")
            if what != f"that of {option}":
                raise ParameterError(f"{option} {path} is also {what}; choose another name for one of them.")


def _check_approximation(options: FitOptions) -> None:
    """Raise unless the options of fits over landmarks go together."""
    if options.approximation is None:
        given = {"landmarks": options.landmarks, "certify": options.certify, "checkpoint": options.checkpoint}
        for name, value in given.items():
            if value is not None:
                raise ParameterError(
                    f"--{name} is for fits over landmarks; add --approximation nystroem, or leave it out."
                )
        return
    if options.approximation != "nystroem":
        raise ParameterError(f"--approximation must be nystroem, but is {options.approximation!r}.")
    if options.data.startswith(SAMPLE):
        raise ParameterError(
            f"--approximation reads files block by block, and {options.data} is a sample of a few rows: leave the "
            "option out, or name a CSV, TSV, Parquet or Arrow file."
        )
    given = {
        "--tune" if options.time_option == "--tune" else "mercer tune": options.tune is not None,
        "--rows": options.rows is not None,
        "--impute": options.impute is not None,
        "--normalize": options.normalize != "standard",
        "--axes": options.axes is not None,
        "--sheet": options.sheet is not None,
        "--report (mercer report MODEL DATA makes one of a part of the rows)": options.report is not None,
        "--text and --tree": bool(options.roles),
        "--test": options.test is not None,
        "--split": options.split is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise ParameterError(f"--approximation cannot be combined with {name}; leave one of them out.")
    if options.calibrate and not options.held_out:
        raise ParameterError(
            "--calibrate with --approximation learns from the rows held out, and --test-size 0 holds none out; leave "
            "one of them out."
        )
    _check_model_over_landmarks(options)
    if options.checkpoint is not None and options.landmarks == "auto":
        raise ParameterError("--checkpoint keeps one fit, and --landmarks auto makes several; leave one of them out.")
    if str(options.checkpoint) == STANDARD:
        raise ParameterError("--checkpoint must be a file, which is read again, and not standard output (-).")
    if options.checkpoint is not None and (options.checkpoint.is_dir() or not options.checkpoint.parent.is_dir()):
        raise ParameterError(f"--checkpoint {options.checkpoint} must be a file in a folder that exists.")


def _check_model_over_landmarks(options: FitOptions) -> None:
    """Raise unless the model can be fitted to blocks over landmarks, with these options."""
    if options.model is None:
        return
    if options.model not in OVER_LANDMARKS:
        names = ", ".join(OVER_LANDMARKS)
        raise ParameterError(
            f"--approximation reads rows in blocks for the models {names}, and --model is {options.model}; choose one "
            "of these."
        )
    wanted = {
        "--landmarks auto": options.landmarks == "auto",
        "--certify": options.certify is not None,
        "--checkpoint": options.checkpoint is not None,
    }
    for name, is_wanted in wanted.items():
        if is_wanted and name not in OVER_LANDMARKS[options.model]:
            others = [model for model, able in OVER_LANDMARKS.items() if name in able]
            raise ParameterError(
                f"{name} is for the models {', '.join(others)}, and --model is {options.model}; leave it out, or "
                "choose another model."
            )


def is_several(data: str) -> bool:
    """Whether a name is a pattern of files.

    >>> is_several("rows/*.parquet"), is_several("rows.csv")
    (True, False)
    """
    return any(letter in data for letter in "*?[") and not Path(data).exists()


def _check_single(data: str) -> None:
    if is_several(data):
        raise ParameterError(f"{data} is a pattern, and its files are read in blocks: add --approximation nystroem.")


def _check_search(options: FitOptions) -> None:
    if options.model == "auto":
        raise ParameterError(
            "the model auto chooses everything itself; choose a model to search with, such as svc or ridge."
        )
    if options.folds < 2:
        raise ParameterError(f"--folds must be at least 2, but is {options.folds}.")
    if options.log is not None:
        check_output(options.log, [options.data], "--log")


def check_searched(settings: Mapping[str, Any]) -> None:
    """Raise if a parameter that the search chooses is given as a number.

    Raises
    ------
    ParameterError
        The message names it.
    """
    for name, value in settings.items():
        if name in ("C", "alpha", "gamma", "nu", "epsilon", "n_neighbors") and isinstance(value, (int, float)):
            raise ParameterError(
                f"{name} is chosen by the search, and --set {name}={value} gives it; leave one of them out."
            )


def wrong_task(model: str, task: str) -> ParameterError:
    """Return the error for a model of another task."""
    return ParameterError(
        f"the model {model} is for {' or '.join(MODELS[model])}, and the task is {task}; change --model or --task."
    )


def check_use(options: UseOptions) -> None:
    """Raise an error if the options of a command that uses a model are wrong for any files.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        If they are wrong; the message says what to do instead.
    """
    if str(options.model) == STANDARD:
        raise ParameterError("the model must be a file; only DATA can be -, standard input.")
    files = [name for name in options.files if name and name != STANDARD]
    if options.files.count(STANDARD) > 1:
        raise ParameterError("- stands for standard input, which can be read once only; name it once.")
    _check_means(options)
    check_begins(options.model)
    for name in files:
        if not is_several(name):
            check_source(name)


def check_predict(options: PredictOptions) -> None:
    """As :func:`check_use`, for ``mercer predict``.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        If the options are wrong; the message says what to do instead.
    """
    _check_written(options.out, options, PREDICTIONS, "predictions")
    if options.interval is not None and not 0 < options.interval < 1:
        raise ParameterError(
            f"--interval must be between 0 and 1, but is {options.interval:g}; it is the share of new observations "
            "that the intervals are to contain, as in --interval 0.9."
        )
    check_use(options)


def check_report(options: ReportOptions) -> None:
    """As :func:`check_use`, for ``mercer report``.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        If the options are wrong; the message says what to do instead.
    """
    check_output(options.page, [options.model, *filter(None, options.files)])
    _check_one_file(options, "a report is of one; name the one to judge by")
    check_use(options)


def _check_one_file(options: UseOptions, why: str) -> None:
    if is_several(options.data):
        raise ParameterError(f"{options.data} is a pattern of files, and {why}.")


def _check_written(out: Path | None, options: UseOptions, suffixes: tuple[str, ...], what: str) -> None:
    """Raise unless a table can be written to ``out``, where a file is named."""
    if out is None:
        return
    check_output(out, [*(name for name in options.files if name != STANDARD), options.model])
    if out.suffix.lower() not in suffixes:
        raise ParameterError(f"--out {out}: {what} are written as {', '.join(suffixes)}; name such a file.")


def check_plot(options: PlotOptions) -> None:
    """Raise an error if the options of ``mercer plot`` are wrong for any files.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        If they are wrong; the message says what to do instead.
    """
    if not options.what:
        raise ParameterError("--what is missing; choose one of these pictures.")
    if options.what not in PLOTS:
        raise ParameterError(f"--what must be {' or '.join(PLOTS)}, but is {options.what!r}.")
    if options.picture.suffix.lower() not in PICTURES:
        raise ParameterError(
            f"pictures are written as {', '.join(PICTURES)}, but --out is {options.picture}; name a file that ends so."
        )
    if options.columns and options.what != "boundary":
        raise ParameterError(f"--column is for --what boundary, but --what is {options.what}; leave it out.")
    if len(options.columns) > 2:
        raise ParameterError(f"a picture has one or two columns, but --column names {len(options.columns)}.")
    if len(set(options.columns)) < len(options.columns):
        raise ParameterError(
            f"--column names {options.columns[0]!r} twice; name two different columns, or give the option once."
        )
    _check_plotted_row(options)
    check_output(options.picture, [options.model, options.data])
    _check_one_file(options, "a picture is of one; name the one to draw")
    check_use(options)


def _check_plotted_row(options: PlotOptions) -> None:
    if options.what == "contributions":
        if options.row is None:
            raise ParameterError("--what contributions is a picture of one row; name it, as in --row 17.")
        _check_from_1("row", options.row)
        return
    for name, value in (("row", options.row), ("class", options.label)):
        if value is not None:
            raise ParameterError(f"--{name} is for --what contributions, but --what is {options.what}; leave it out.")


def check_explain(options: ExplainOptions) -> None:
    """Raise an error if the options of ``mercer explain`` are wrong for any files.

    Raises
    ------
    ParameterError, DataError, ModelFileError
        If they are wrong; the message says what to do instead.
    """
    _check_from_1("row", options.row)
    _check_from_1("top", options.top)
    if options.by not in ("parts", "rows"):
        raise ParameterError(f"--by must be parts or rows, but is {options.by!r}.")
    if is_several(options.data):
        raise ParameterError(f"{options.data} is a pattern; name the one file that holds the row.")
    _check_written(options.out, options, EXPLANATIONS, "contributions")
    check_use(options)


def default_output(data: str) -> Path:
    """Return the name of the model file if none is given.

    >>> default_output("sample:iris").name, default_output("data/houses.csv.gz").name
    ('iris.mercer', 'houses.mercer')
    """
    stem = data.removeprefix("sample:") if data.startswith("sample:") else Path(data).name.split(".")[0]
    if is_several(data):
        stem = (
            "".join(letter for letter in stem if letter.isalnum() or letter in "-_") or Path(data).resolve().parent.name
        )
    return Path((stem or "model") + ".mercer")


def _check_from_1(name: str, value: int) -> None:
    if value < 1:
        raise ParameterError(f"--{name} must be a whole number of at least 1, but is {value}.")


def _check_means(options: Means) -> None:
    if options.memory is not None:
        parse_bytes(options.memory)
    if options.n_jobs is not None:
        resolve_jobs(options.n_jobs)
