"""The commands and their options.

Nothing here imports SciPy, pandas, numba or scikit-learn, so that ``mercer --help`` and option errors appear at once:
the work of each command is in a separate module, which :func:`_work` imports once the options are checked.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from mercer.cli.arguments import with_options
from mercer.cli.checks import check_explain, check_fit, check_plot, check_predict, check_report, check_use
from mercer.cli.options import (
    PLOTS,
    STANDARD,
    ExplainOptions,
    FitOptions,
    Json,
    Model,
    PlotOptions,
    PredictOptions,
    ReportOptions,
    TuneOptions,
    UseOptions,
)
from mercer.cli.outcome import ending, require_output
from mercer.cli.show import Printer
from mercer.persistence.lead import check_begins

app = typer.Typer(
    help="Kernel methods for tables, text, trees, series and graphs: fit, tune, evaluate and use a model, each answer "
    "with its certificate.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    return ending(lambda: app(args=argv, prog_name="mercer", standalone_mode=False), json="--json" in argv)


def _work(module: str) -> Any:
    """The module that does a command's work: the one place where our own modules are imported late.

    SciPy, numba and scikit-learn make a million objects, all of which stay. To look through them for garbage again
    and again took a fifth of a short command, so the collector waits until they are there and then leaves them out.
    """
    name = f"mercer.cli.{module}"
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def _version(value: bool) -> None:
    if value:
        typer.echo(f"mercer {importlib.metadata.version('mercer')}")
        raise typer.Exit


def _examples(*commands: str) -> str:
    """The end of a command's help; a blank line keeps each command on a line of its own."""
    return "\n\n".join(["Examples:", *commands])


def _command(options: type, *examples: str) -> Callable[[Callable[[Any], None]], Any]:
    """Make a function of some options a command."""
    return lambda function: app.command(epilog=_examples(*examples))(with_options(options)(function))


def _begin(options: UseOptions) -> None:
    files = [name for name in options.files if name]
    rows = f" and the rows of {', '.join('standard input' if name == STANDARD else name for name in files)}"
    Printer(options.quiet, options.json).begin(f"Reading the model {options.model}{rows if files else ''} ...")


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a Python module first (also from the current folder) that registers user-defined kernels, "
            "losses, kinds of data or models (mercer.extend); may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    if modules:
        _work("plugins").import_modules(modules)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        typer.echo(_BEGIN)


_BEGIN = """To begin, with a sample that comes with Mercer:

  mercer fit sample:diabetes                       fit and score a model
  mercer predict diabetes.mercer sample:diabetes   predict with its file
  mercer report diabetes.mercer sample:diabetes    write a page about it

Read on in docs/guide/command_line.md; mercer COMMAND --help shows its options.
"""
"""What follows the list of commands where none is named."""


@_command(
    FitOptions,
    "mercer fit houses.csv --target price",
    "mercer fit houses.csv -t price --tune 60s",
    "mercer fit sms.tsv -t label --text message",
    "mercer fit graphs.json -t label",
    "mercer fit 'rows/*.parquet' -t price --approximation nystroem --landmarks 2000",
    'mercer fit houses.csv -t price --kernel "0.5*RBF(2.0) + Linear()" --set alpha=0.1',
    "mercer fit sample:iris --model svc --calibrate",
)
def fit(options: FitOptions) -> None:
    """Fit a model to a table, score it on held-out rows, and write it to a file."""
    check_fit(options)
    Printer(options.quiet, options.json).begin(f"Reading {options.data} ...")
    _work("fit" if options.approximation is None else "landmarks").fit(options)


@_command(
    TuneOptions,
    "mercer tune houses.csv -t price --model svr --budget 5m",
    "mercer tune sample:digits --kernel rbf --kernel laplacian --log tune.jsonl",
    'mercer tune sms.tsv -t label --text message -k "Spectrum(2)" -k "Spectrum(3)" -k "Spectrum(4)"',
)
def tune(options: TuneOptions) -> None:
    """Search for the best penalties and kernel parameters, then fit, score and write the best model.

    The search sees the training part alone, by folds; the score is that of rows which it never saw. Ranges come from
    the data. Ctrl-C ends the search, and the best candidate so far is fitted and written.
    """
    check_fit(options)
    Printer(options.quiet, options.json).begin(f"Reading {options.data} ...")
    _work("fit").fit(options)


@_command(
    PredictOptions,
    "mercer predict houses.mercer new.csv --out prices.csv",
    "mercer predict houses.mercer new.csv --interval 0.9 --std",
    "mercer predict iris.mercer sample:iris --proba --keep species",
    "mercer predict houses.mercer may.csv june.csv --keep all --out prices.parquet",
    "cat new.csv | mercer predict houses.mercer - | head",
)
def predict(options: PredictOptions) -> None:
    """Predict the target for the rows of tables, and say how sure each prediction is."""
    if options.out is None:
        require_output()
    check_predict(options)
    _begin(options)
    _work("predict").predict(options)


@_command(UseOptions, "mercer evaluate houses.mercer more.csv")
def evaluate(options: UseOptions) -> None:
    """Score a model on a table that also contains the target."""
    require_output()
    check_use(options)
    _begin(options)
    _work("use").evaluate(options)


@_command(
    ExplainOptions, "mercer explain sms.mercer sms.csv --row 17", "mercer explain iris.mercer sample:iris --row 60"
)
def explain(options: ExplainOptions) -> None:
    """Show what the parts of a row, such as substrings or columns, contribute to the decision of a model."""
    if options.out is None:
        require_output()
    check_explain(options)
    _begin(options)
    _work("explain").explain(options)


@_command(ReportOptions, "mercer report houses.mercer", "mercer report houses.mercer more.csv --out houses.html")
def report(options: ReportOptions) -> None:
    """Write a report of a model: one page for a browser, without scripts, that loads nothing."""
    check_report(options)
    _begin(options)
    _work("report_page").report(options)


@_command(
    PlotOptions,
    "mercer plot flowers.mercer flowers.csv --what boundary --out flowers.svg",
    "mercer plot houses.mercer more.csv --what relevance",
    "mercer plot sms.mercer sms.csv --what contributions --row 17",
)
def plot(options: PlotOptions) -> None:
    """Draw a picture of a model and of rows."""
    if not options.what:
        typer.echo("\n".join(f"  --what {name:14}{words}" for name, words in PLOTS.items()), err=True)
    check_plot(options)
    _begin(options)
    _work("plot").plot(options)


@app.command(
    epilog=_examples(
        "mercer inspect houses.mercer", "mercer inspect houses.mercer --command", "mercer inspect houses.mercer --json"
    )
)
def inspect(
    model: Model,
    command: Annotated[bool, typer.Option("--command", help="Print the command that makes the model again.")] = False,
    json: Json = False,
) -> None:
    """Show the contents of a model file: kernel, parameters, columns, certificate."""
    require_output()
    check_begins(model)
    if command:
        _work("describe").command(model, json)
        return
    Printer(json=json).begin(f"Reading the model {model} ...")
    _work("describe").inspect(model, json)


@app.command(epilog=_examples("mercer samples", "mercer fit sample:iris"))
def samples(json: Json = False) -> None:
    """List the sample data sets; use them as sample:NAME."""
    require_output()
    _work("sample_list").samples(json)


@app.command(name="warm-up", epilog=_examples("mercer warm-up", "RUN mercer warm-up    (in a Dockerfile)"))
def warm_up(
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, show_default=False, help="By default as many as there are processors."),
    ] = None,
) -> None:
    """Compile ahead what most first fits and predictions need, so that none of them waits for it.

    The loops are stored by the level of the processor, such as x86-64-v3: a container is warm on all machines of it.
    """
    _work("warm_up").warm_up(processes)
