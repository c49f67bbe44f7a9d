"""The arguments and options that commands have in common, each defined once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli.checks import PLOTS
from mercer.cli.options import (
    ExplainOptions,
    FitOptions,
    PlotOptions,
    UseOptions,
    certified_rows,
    landmark_count,
    roles_of_columns,
)

_FILE = (
    "A .csv, .tsv, .xlsx, .parquet, .arrow, .libsvm, .npz, .json or .ts file, a folder of series or graphs, or "
    "sample:NAME."
)

_TASK = (
    "By default worked out from the target: text means classification, and so do whole numbers with few different "
    "values that repeat often (2 values; up to 10, each in 5 rows on average; up to 30, each in 100 rows)."
)

Data = Annotated[str, typer.Argument(metavar="DATA", help=_FILE, show_default=False)]
DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help=_FILE + " Several are predicted one after the other; - is CSV on standard input.",
        show_default=False,
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.", show_default=False)]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Leave a column out; may be repeated.", show_default=False),
]
Axes = Annotated[
    str | None,
    typer.Option(metavar="ntc|nct", help="Of series in a .npz file: rows, times and channels (default), or nct."),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", show_default=False, help="Of a text file, such as cp1252; by default UTF-8."),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", show_default=False, help="Of a workbook: its name or number; by default the first."),
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Memory budget, such as 4GiB.", show_default=False)
]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", metavar="N", help="Worker threads; all cores by default.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
QuietPredict = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only, and without --out the predictions.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object; after a failure with error and exit_code.")]


Target = Annotated[
    str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.", show_default=False)
]
Task = Annotated[str | None, typer.Option(metavar="classification|regression", help=_TASK)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model, as in --set C=10; may be repeated."),
]
Normalize = Annotated[str, typer.Option(metavar="standard|minmax|unit|none", help="Scaling of numbers; not for auto.")]
Impute = Annotated[
    str | None,
    typer.Option(
        metavar="mean|median|most_frequent",
        help="Fill in missing values, with a column that marks where they were. Auto takes them as they are.",
    ),
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Also learn how sure predictions are, for --proba and --interval of mercer predict with any model: by "
        "five more fits, each without a fifth of the rows; with --no-refit or --approximation by the rows held out.",
    ),
]
ParseNumbers = Annotated[
    bool,
    typer.Option(
        "--parse-numbers",
        help="Read columns of numbers such as $5, 1,100, 12 %, 63.7 kg or 63.7k as numbers, and of dates such as "
        "31-Aug-2024 or 14:05 as dates; each column in one notation and unit.",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="A column to compare as text, letter by letter; may be repeated.",
        show_default=False,
    ),
]
TreeColumns = Annotated[
    list[str] | None,
    typer.Option("--tree", metavar="COLUMN", help="A column of bracketed trees; may be repeated.", show_default=False),
]
TestSize = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        show_default=False,
        help="Fraction of the rows held out for the score; 0 for none. By default 0.2, and 0.1 with --approximation.",
    ),
]
TestFile = Annotated[
    str | None,
    typer.Option("--test", metavar="FILE", show_default=False, help="A table whose rows are held out for the score."),
]
Split = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="time|group COLUMN",
        show_default=False,
        help="Hold out the last rows by time, or whole groups, in place of random rows.",
    ),
]
Refit = Annotated[
    bool,
    typer.Option(
        " /--no-refit",
        show_default=False,
        help="Write the scored model, fitted on the training part, instead of one fitted on all rows.",
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        show_default=False,
        help="Fit on at most N rows, drawn at random; by default all rows, but at most 20000 for auto and 10000 "
        "for ridge.",
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**32 - 1, metavar="SEED", help="Seed of the held-out rows, folds and samples."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="The model file; by default named after DATA.", show_default=False
    ),
]

Approximation = Annotated[
    str | None,
    typer.Option(
        metavar="nystroem",
        show_default=False,
        help="Fit to all rows over landmarks, in time linear in the number of rows. DATA is read in blocks; it may be "
        "a quoted pattern ('rows/*.parquet') or a folder. A tenth of the rows is held out for the score.",
    ),
]
Landmarks = Annotated[
    str | None,
    typer.Option(
        metavar="M|auto",
        show_default=False,
        help="With --approximation: how many; 1000 by default. With auto the number is doubled from 100 on, until the "
        "loss of rows that are held out of these fits no longer falls.",
    ),
]
Certify = Annotated[
    str | None,
    typer.Option(
        metavar="exact|N",
        show_default=False,
        help="With --approximation: certify how far the fit is from the one to all rows: exact by all pairs of rows, "
        "N by the pairs of N rows with all others, with a confidence of 95 %.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="With --approximation: keep the passes that are done; run again, the same fit goes on from there. The fit "
        "to all rows keeps its own in FILE.all.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        show_default=False,
        help="Also write a report of the fit, one page for a browser; see mercer report.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how much memory and time the fit would take, and fit nothing.")
]

Details = Annotated[
    bool, typer.Option("--details", help="Print the whole certificate, the encoding, and the memory that was used.")
]


def fit_options(
    data: Data,
    target: Target = None,
    task: Task = None,
    settings: Settings = None,
    normalize: Normalize = "standard",
    impute: Impute = None,
    calibrate: Calibrate = False,
    parse_numbers: ParseNumbers = False,
    drop: Drop = None,
    text: TextColumns = None,
    tree: TreeColumns = None,
    axes: Axes = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    test_size: TestSize = None,
    test: TestFile = None,
    split: Split = None,
    refit: Refit = True,
    rows: Rows = None,
    seed: Seed = 0,
    out: Out = None,
    approximation: Approximation = None,
    landmarks: Landmarks = None,
    certify: Certify = None,
    checkpoint: Checkpoint = None,
    dry_run: DryRun = False,
    report: Report = None,
    details: Details = False,
    memory: Memory = None,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> FitOptions:
    """Return the options that ``mercer fit`` and ``mercer tune`` have in common."""
    return FitOptions(
        data,
        target,
        task,
        settings=settings or [],
        normalize=normalize,
        impute=impute,
        calibrate=calibrate,
        parse_numbers=parse_numbers,
        drop=drop or [],
        roles=roles_of_columns(text=text, tree=tree),
        axes=axes,
        encoding=encoding,
        sheet=sheet,
        test_size=test_size,
        test=test,
        split=split,
        refit=refit,
        rows=rows,
        seed=seed,
        out=out,
        approximation=approximation,
        landmarks=landmark_count(landmarks),
        certify=certified_rows(certify),
        checkpoint=checkpoint,
        dry_run=dry_run,
        report=report,
        details=details,
        memory=memory,
        n_jobs=n_jobs,
        quiet=quiet,
        json=json,
    )


def use_options(
    model: Model,
    data: Data,
    drop: Drop = None,
    axes: Axes = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    memory: Memory = None,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> UseOptions:
    """Return the options that ``mercer predict`` and ``mercer evaluate`` have in common."""
    rows = UseOptions(model, data, drop or [], axes, encoding, sheet)
    return replace(rows, memory=memory, n_jobs=n_jobs, quiet=quiet, json=json)


Row = Annotated[int, typer.Option(metavar="N", help="Which row of DATA; the first is 1.", show_default=False)]
Label = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="LABEL",
        show_default=False,
        help="Of classes, the one whose value is explained, or a pair of them for svc, as in spam,mail; by default the "
        "predicted one.",
    ),
]
By = Annotated[str, typer.Option(metavar="parts|rows", help="Parts of the row, or rows of the fit.")]
Top = Annotated[int, typer.Option(metavar="N", help="Parts that are printed, the largest first.")]
PartsFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write all parts to a .csv, .tsv, .parquet or .json file.",
        show_default=False,
    ),
]


def means_options(
    axes: Axes = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    memory: Memory = None,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> dict[str, Any]:
    """Return the options of ``mercer report`` that say how the work is done."""
    way = {"axes": axes, "encoding": encoding, "sheet": sheet}
    return {**way, "memory": memory, "n_jobs": n_jobs, "quiet": quiet, "json": json}


def predict_options(
    model: Model,
    data: DataFiles,
    drop: Drop = None,
    axes: Axes = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    memory: Memory = None,
    n_jobs: Jobs = None,
    quiet: QuietPredict = False,
    json: Json = False,
) -> UseOptions:
    """Return the options of ``mercer predict`` that do not say what is predicted."""
    first = use_options(model, data[0], drop, axes, encoding, sheet, memory, n_jobs, quiet, json)
    return replace(first, others=data[1:])


def with_options(options: Callable[..., Any], before: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the parameters of a function beside its own; its first parameter is what the function returns.

    Parameters
    ----------
    options : callable
        Such as :func:`fit_options`.
    before : str
        Its parameter before which those of the command stand, in the help.

    Returns
    -------
    callable
        A decorator of commands.
    """
    shared = list(inspect.signature(options, eval_str=True).parameters.values())
    place = next(number for number, parameter in enumerate(shared) if parameter.name == before)

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def run(**given: Any) -> Any:
            common = options(**{parameter.name: given.pop(parameter.name) for parameter in shared})
            return command(common, **given)

        parameters = [*shared[:place], *own, *shared[place:]]
        # Typer reads the one, and for the names of types the other.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return give


@with_options(use_options, before="drop")
def explain_options(
    common: UseOptions, row: Row, label: Label = None, by: By = "parts", top: Top = 20, out: PartsFile = None
) -> ExplainOptions:
    """Return the options of ``mercer explain``: a command of its own, and those of the others that use a model."""
    return ExplainOptions(**{**vars(common), "out": out}, row=row, label=label, by=by, top=top)


@with_options(means_options, before="axes")
def drawn_options(
    means: dict[str, Any],
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="COLUMN", help="Of boundary: one column, or two; by default the first two."),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of contributions: which row of DATA; the first is 1.", show_default=False),
    ] = None,
    label: Label = None,
    drop: Drop = None,
) -> dict[str, Any]:
    """Return the options of ``mercer plot`` that say what of the rows is drawn, and how the work is done."""
    return {"columns": column or [], "row": row, "label": label, "drop": drop or [], **means}


@with_options(drawn_options, before="column")
def plot_options(
    drawn: dict[str, Any],
    model: Model,
    data: Data,
    what: Annotated[
        str,
        typer.Option(
            metavar="|".join(PLOTS),
            help="Which picture; mercer plot MODEL DATA without it tells what each shows.",
            show_default=False,
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .svg, .png or .pdf file; by default named after MODEL and the picture.",
            show_default=False,
        ),
    ] = None,
) -> PlotOptions:
    """Return the options of ``mercer plot``."""
    of_row = "" if drawn["row"] is None else f"_{drawn['row']}"
    return PlotOptions(model, data, what, out or Path(f"{model.stem}_{what}{of_row}.svg"), **drawn)
