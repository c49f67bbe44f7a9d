"""The options of the commands: each a dataclass whose fields say how they are typed and what they mean.

A field without ``typer.Option`` or ``typer.Argument`` is not typed. ``mercer.cli.arguments`` makes the parameters of a
command of the others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from mercer._errors import ParameterError
from mercer._registered import MODELS

STANDARD = "-"
"""Standard input or output in place of a file."""
WAYS = ("time", "group")
"""The ways of ``--split``."""
EXACT = "exact"
"""The word of ``--certify`` for all pairs of rows."""
# Intervals from fewer rows say nothing.
_FEWEST_ROWS = 10

PLOTS = {
    "boundary": "which class is predicted where, over one or two columns",
    "contributions": "what each part of one row (--row 17) adds to its decision",
    "gram": "the kernel values of pairs of rows, as a map",
    "margins": "the decision values of each class",
    "ordinal": "the scale of ordered classes, with its thresholds",
    "relevance": "how much each column counts",
    "spectrum": "the eigenvalues of the kernel matrix",
    "tube": "predictions beside the target, with the tube of a support vector regression",
}
"""The pictures of ``mercer plot``, in words; a test compares them with the module that draws them."""


def certified_rows(text: str) -> int | str:
    """Of how many rows the pairs are evaluated for a certificate, or ``"exact"`` for all.

    Raises
    ------
    ParameterError
        If the text is neither.

    Examples
    --------
    >>> certified_rows("500"), certified_rows("exact")
    (500, 'exact')
    """
    if text == EXACT:
        return text
    if not text.isdecimal() or int(text) < _FEWEST_ROWS:
        raise ParameterError(
            f"--certify must be {EXACT}, for all pairs of rows, or of how many rows the pairs with all others are "
            f"evaluated, at least {_FEWEST_ROWS}, but is {text!r}; --certify 500 is usual."
        )
    return int(text)


def landmark_count(text: str) -> int | str:
    """The number of landmarks, or ``"auto"``.

    Raises
    ------
    ParameterError
        If the text is neither.

    Examples
    --------
    >>> landmark_count("200"), landmark_count("auto")
    (200, 'auto')
    """
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"--landmarks must be a whole number of at least 1, or auto, but is {text!r}.")
    return int(text)


def parse_seconds(text: str, option: str = "--budget") -> float:
    """Return the duration that an option gives in seconds: a number with the unit s, m or h, or none for seconds.

    Raises
    ------
    ParameterError
        If it is not written so, or not above 0.

    Examples
    --------
    >>> parse_seconds("60"), parse_seconds("90s"), parse_seconds("5m"), parse_seconds("1.5h")
    (60.0, 90.0, 300.0, 5400.0)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", text)
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
    if not seconds > 0:
        raise ParameterError(f"{option} takes a time above 0 such as 60s, 5m or 1h, but got {text!r}.")
    return seconds


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Return ``["C=10", "class_weight=balanced"]`` as a dict; values are Python literals, or else text.

    Raises
    ------
    ParameterError
        If an item is not of the form NAME=VALUE, or a name is given twice.

    Examples
    --------
    >>> parse_settings(["C=10", "class_weight=balanced"])
    {'C': 10, 'class_weight': 'balanced'}
    """
    values: dict[str, Any] = {}
    for item in settings:
        name, equals, text = item.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier() or not text.strip():
            raise ParameterError(f"--set takes NAME=VALUE, as in --set C=10, but got {item!r}.")
        if name in values:
            raise ParameterError(f"--set {name} is given twice; give it once.")
        values[name] = _literal(text.strip())
    return values


def _literal(text: str) -> Any:
    if text in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


@dataclass(frozen=True)
class Read:
    """How the text that is typed for an option becomes its value."""

    read: Callable[[str], Any]


# The default needs no words.
_option = partial(typer.Option, show_default=False)
_argument = partial(typer.Argument, show_default=False)
_FILE = (
    "A .csv, .tsv, .xlsx, .parquet, .arrow, .libsvm, .npz, .json or .ts file, a folder of series or graphs, or "
    "sample:NAME."
)
_TASK = (
    "By default worked out from the target: text means classification, and so do whole numbers with few different "
    "values that repeat often (2 values; up to 10, each in 5 rows on average; up to 30, each in 100 rows)."
)
Data = Annotated[str, _argument(metavar="DATA", help=_FILE)]
Drop = Annotated[list[str], _option("--drop", metavar="COLUMN", help="Leave a column out; may be repeated.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object; after a failure with error and exit_code.")]
Model = Annotated[Path, _argument(metavar="MODEL", help="A model file that fit wrote.")]
Label = Annotated[
    str | None,
    _option(
        "--class",
        metavar="LABEL",
        help="Of classes, the one whose value is explained, or a pair of them for svc, as in spam,mail; by default the "
        "predicted one.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Means:
    """How the rows are read, and how the work is done: what commands have in common."""

    axes: Annotated[
        str | None,
        typer.Option(metavar="ntc|nct", help="Of series in a .npz file: rows, times and channels (default), or nct."),
    ] = None
    encoding: Annotated[
        str | None, _option(metavar="NAME", help="Of a text file, such as cp1252; by default UTF-8.")
    ] = None
    sheet: Annotated[
        str | None, _option(metavar="NAME", help="Of a workbook: its name or number; by default the first.")
    ] = None
    memory: Annotated[str | None, _option("--memory", metavar="SIZE", help="Memory budget, such as 4GiB.")] = None
    n_jobs: Annotated[int | None, _option("--n-jobs", metavar="N", help="Worker threads; all cores by default.")] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False
    json: Json = False


@dataclass(frozen=True)
class FitOptions(Means):
    """The options of ``mercer fit``; ``tune`` are the seconds of a search, None for none."""

    data: Data
    target: Annotated[str | None, _option("--target", "-t", metavar="COLUMN", help="The column to predict.")] = None
    task: Annotated[str | None, typer.Option(metavar="classification|regression", help=_TASK)] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="|".join(MODELS),
            help="By default auto for tables, which needs no choice, and else the first other one of the task.",
        ),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", metavar="EXPR", help='rbf, linear, poly, ... or "0.5*RBF(2.0) + Linear()".'),
    ] = None
    kernels: list[str] = field(default_factory=list)
    tune: Annotated[
        float | None,
        Read(partial(parse_seconds, option="--tune")),
        _option(
            metavar="TIME",
            help="Search for penalties and parameters of the kernel for so long, as in 60s or 5m; see mercer tune.",
        ),
    ] = None
    folds: int = 5
    log: Path | None = None
    settings: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the model, as in --set C=10; may be repeated."
        ),
    ] = field(default_factory=list)
    normalize: Annotated[
        str, typer.Option(metavar="standard|minmax|unit|none", help="Scaling of numbers; not for auto.")
    ] = "standard"
    impute: Annotated[
        str | None,
        typer.Option(
            metavar="mean|median|most_frequent",
            help="Fill in missing values, with a column that marks where they were. Auto takes them as they are.",
        ),
    ] = None
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Also learn how sure predictions are, for --proba and --interval of mercer predict with any model: by "
            "five more fits, each without a fifth of the rows; with --no-refit or --approximation by the rows held "
            "out.",
        ),
    ] = False
    parse_numbers: Annotated[
        bool,
        typer.Option(
            "--parse-numbers",
            help="Read columns of numbers such as $5, 1,100, 12 %, 63.7 kg or 63.7k as numbers, and of dates such as "
            "31-Aug-2024 or 14:05 as dates; each column in one notation and unit.",
        ),
    ] = False
    drop: Drop = field(default_factory=list)
    text: Annotated[
        list[str],
        _option("--text", metavar="COLUMN", help="A column to compare as text, letter by letter; may be repeated."),
    ] = field(default_factory=list)
    tree: Annotated[
        list[str], _option("--tree", metavar="COLUMN", help="A column of bracketed trees; may be repeated.")
    ] = field(default_factory=list)
    test_size: Annotated[
        float | None,
        _option(
            metavar="SHARE",
            help="Fraction of the rows held out for the score; 0 for none. By default 0.2, and 0.1 with "
            "--approximation.",
        ),
    ] = None
    test: Annotated[
        str | None, _option("--test", metavar="FILE", help="A table whose rows are held out for the score.")
    ] = None
    split: Annotated[
        tuple[str, str] | None,
        _option(
            metavar="time|group COLUMN",
            help="Hold out the last rows by time, or whole groups, in place of random rows.",
        ),
    ] = None
    refit: Annotated[
        bool,
        _option(
            " /--no-refit",
            help="Write the scored model, fitted on the training part, instead of one fitted on all rows.",
        ),
    ] = True
    rows: Annotated[
        int | None,
        _option(
            min=2,
            metavar="N",
            help="Fit on at most N rows, drawn at random; by default all rows, but at most 20000 for auto and 10000 "
            "for ridge.",
        ),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, max=2**32 - 1, metavar="SEED", help="Seed of the held-out rows, folds and samples."
        ),
    ] = 0
    out: Annotated[
        Path | None, _option("--out", "-o", metavar="FILE", help="The model file; by default named after DATA.")
    ] = None
    approximation: Annotated[
        str | None,
        _option(
            metavar="nystroem",
            help="Fit to all rows over landmarks, in time linear in the number of rows. DATA is read in blocks; it may "
            "be a quoted pattern ('rows/*.parquet') or a folder. A tenth of the rows is held out for the score.",
        ),
    ] = None
    landmarks: Annotated[
        int | str | None,
        Read(landmark_count),
        _option(
            metavar="M|auto",
            help="With --approximation: how many; 1000 by default. With auto the number is doubled from 100 on, until "
            "the loss of rows that are held out of these fits no longer falls.",
        ),
    ] = None
    certify: Annotated[
        int | str | None,
        Read(certified_rows),
        _option(
            metavar="exact|N",
            help="With --approximation: certify how far the fit is from the one to all rows: exact by all pairs of "
            "rows, N by the pairs of N rows with all others, with a confidence of 95 %.",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        _option(
            metavar="FILE",
            help="With --approximation: keep the passes that are done; run again, the same fit goes on from there. The "
            "fit to all rows keeps its own in FILE.all.",
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much memory and time the fit would take, and fit nothing.")
    ] = False
    report: Annotated[
        Path | None,
        _option(
            "--report",
            metavar="FILE",
            help="Also write a report of the fit, one page for a browser; see mercer report.",
        ),
    ] = None
    details: Annotated[
        bool, typer.Option("--details", help="Print the whole certificate, the encoding, and the memory that was used.")
    ] = False

    @property
    def held_out(self) -> float:
        """The share of the rows held out for the score: by default a fifth, and a tenth of rows in blocks."""
        if self.test_size is None:
            return 0.2 if self.approximation is None else 0.1
        return self.test_size

    @property
    def roles(self) -> dict[str, str]:
        """The columns of ``--text`` and ``--tree`` with the names of these options, which are their roles."""
        return {**dict.fromkeys(self.text, "text"), **dict.fromkeys(self.tree, "tree")}

    # The option that gives the time of a search, for messages.
    time_option: ClassVar[str] = "--tune"


@dataclass(frozen=True)
class TuneOptions(FitOptions):
    """The options of ``mercer tune``."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="|".join(name for name in MODELS if name != "auto"),
            help="By default svc for classes and ridge for numbers.",
        ),
    ] = None
    kernel: str | None = None
    kernels: Annotated[
        list[str],
        _option(
            "--kernel",
            "-k",
            metavar="EXPR",
            help="A kernel whose free parameters are searched; may be repeated, to choose among several.",
        ),
    ] = field(default_factory=list)
    tune: Annotated[
        float | None,
        Read(parse_seconds),
        typer.Option("--budget", metavar="TIME", help="How long to search: 60, 60s, 5m or 1h.", show_default="60s"),
    ] = 60.0
    folds: Annotated[int, typer.Option(metavar="N", help="Parts of the rows; each is left out once.")] = 5
    log: Annotated[
        Path | None,
        _option(
            metavar="FILE",
            help="A file with a line of JSON for each candidate. Run again with the same file, the search goes on "
            "where it was stopped.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.kernel is None and self.kernels:
            object.__setattr__(self, "kernel", self.kernels[0])

    time_option: ClassVar[str] = "--budget"


@dataclass(frozen=True)
class UseOptions(Means):
    """The options of ``mercer evaluate``, which all commands have that use a model."""

    model: Model
    data: Data
    drop: Drop = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """All rows that the model is used for, in order."""
        return [self.data]


@dataclass(frozen=True, kw_only=True)
class PredictOptions(UseOptions):
    """The options of ``mercer predict``; ``data`` is one of the files."""

    data: str = ""
    names: Annotated[
        list[str],
        _argument(
            metavar="DATA...", help=_FILE + " Several are predicted one after the other; - is CSV on standard input."
        ),
    ]
    out: Annotated[
        Path | None,
        _option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .csv, .tsv or .parquet file; by default, and with -, the predictions are printed.",
        ),
    ] = None
    keep: Annotated[
        list[str],
        _option(
            metavar="COLUMNS|all",
            help="Columns of DATA that are written before the predictions, as in --keep id,town; may be repeated.",
        ),
    ] = field(default_factory=list)
    interval: Annotated[
        float | None,
        _option(
            metavar="SHARE",
            help="Of numbers, also an interval for each row that contains a new observation with this probability, as "
            "in 0.9; auto, ridge, gp, and all models after --calibrate. Of classes, after it, a set of classes.",
        ),
    ] = None
    deviations: Annotated[
        bool, typer.Option("--std", help="Of numbers, also the standard deviation of each prediction; auto, gp.")
    ] = False
    probabilities: Annotated[
        bool,
        typer.Option(
            "--proba",
            "--probabilities",
            help="Of classes, also the probability of each; auto, logistic, gpc, and all after --calibrate.",
        ),
    ] = False
    decisions: Annotated[bool, typer.Option("--decision", help="Of classes, also the decision values.")] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors only, and without --out the predictions.")
    ] = False

    def __post_init__(self) -> None:
        if str(self.out) == STANDARD:
            object.__setattr__(self, "out", None)

    @property
    def files(self) -> list[str]:
        return self.names


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(UseOptions):
    """The options of ``mercer explain``; ``row`` is counted from 1, and ``label`` is a class or a pair ``a,b``."""

    row: Annotated[int, _option(metavar="N", help="Which row of DATA; the first is 1.")]
    label: Label = None
    by: Annotated[str, typer.Option(metavar="parts|rows", help="Parts of the row, or rows of the fit.")] = "parts"
    top: Annotated[int, typer.Option(metavar="N", help="Parts that are printed, the largest first.")] = 20
    out: Annotated[
        Path | None,
        _option("--out", "-o", metavar="FILE", help="Write all parts to a .csv, .tsv, .parquet or .json file."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(UseOptions):
    """The options of ``mercer report``."""

    data: Annotated[
        str,
        _argument(
            metavar="DATA",
            help="Rows that were not used for the fit, preferably with the target; without them the report describes "
            "the model alone.",
        ),
    ] = ""
    out: Annotated[
        Path | None, _option("--out", "-o", metavar="FILE", help="The page; by default named after MODEL.")
    ] = None

    @property
    def page(self) -> Path:
        """The file that is written."""
        return self.out or Path(f"{self.model.stem}.html")


@dataclass(frozen=True, kw_only=True)
class PlotOptions(UseOptions):
    """The options of ``mercer plot``; ``row`` and ``label`` are as for ``mercer explain``."""

    what: Annotated[
        str,
        _option(
            metavar="|".join(PLOTS), help="Which picture; mercer plot MODEL DATA without it tells what each shows."
        ),
    ] = ""
    out: Annotated[
        Path | None,
        _option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .svg, .png or .pdf file; by default named after MODEL and the picture.",
        ),
    ] = None
    columns: Annotated[
        list[str],
        typer.Option("--column", metavar="COLUMN", help="Of boundary: one column, or two; by default the first two."),
    ] = field(default_factory=list)
    row: Annotated[int | None, _option(metavar="N", help="Of contributions: which row of DATA; the first is 1.")] = None
    label: Label = None

    @property
    def picture(self) -> Path:
        """The file that is written."""
        of_row = "" if self.row is None else f"_{self.row}"
        return self.out or Path(f"{self.model.stem}_{self.what}{of_row}.svg")
