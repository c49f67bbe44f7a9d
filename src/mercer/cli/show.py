"""The output of the commands: tables for people, or one JSON object for machines."""

from __future__ import annotations

import functools
import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from mercer.cli.certificate_lines import certificate_lines, distance_lines
from mercer.data.words import counted, printable, short_expression, short_numbers, significant
from mercer.engine.memory import describe
from mercer.engine.progress import Progress as Work
from mercer.engine.progress import watched
from mercer.reports.score_words import score_name, score_text


class Printer:
    """Prints for people, for machines (``json``), or not at all (``quiet``)."""

    def __init__(self, quiet: bool = False, json: bool = False) -> None:
        self._people = not quiet and not json
        self._machines = json
        # What users name (columns, files, classes) may hold brackets, which must not be read as markup.
        self._console = Console(markup=False, highlight=False, emoji=False)
        self._errors = Console(markup=False, highlight=False, emoji=False, stderr=True)

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a line for people."""
        if self._people:
            self._console.print(_text(text, style or ""))

    def begin(self, text: str) -> None:
        """Print a line about the work that begins on standard error, because standard output may carry the result."""
        if self._people:
            self._errors.print(_text(text, "dim"), soft_wrap=True)

    @contextmanager
    def progress(self, name: str, lines: bool = False) -> Iterator[None]:
        """Show progress bars for the steps of the block on standard error if it is a terminal; then remove them.

        With ``lines``, another standard error gets a plain line every few seconds.
        """
        if not self._people or not (lines or self._errors.is_terminal):
            yield
            return
        if not self._errors.is_terminal:
            with watched(_Lines(self.begin)):
                yield
            return
        bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._errors,
            transient=True,
        )
        tasks: dict[str, TaskID] = {}

        def show(work: Work) -> None:
            if work.what not in tasks:
                # A later total=None would leave the 100 steps that a bar has by default.
                tasks[work.what] = bars.add_task(work.what, total=work.total, count="")
            bars.update(tasks[work.what], completed=work.done, total=work.total, count=work.count)

        # Not all work counts its steps; the clock of this line shows that it goes on.
        bars.add_task(name, total=None, count="")
        with bars, watched(show):
            yield

    def object(self, value: Mapping[str, Any]) -> None:
        """Print the one JSON object for machines; numbers that JSON lacks (NaN, infinity) become null."""
        if self._machines:
            sys.stdout.write(json.dumps(_finite(value), allow_nan=False) + "\n")

    def fitted(self, report: Mapping[str, Any], details: bool = False) -> None:
        """Print the outcome of a fit; with ``details`` all that is known of its solution and cost."""
        self.object(report)
        self._model(report)
        self._scores(report)
        self._examples(report.get("examples"))
        self._advice(report)
        self._search(report)
        if details:
            self._facts("Certificate", certificate_lines(report))
            self._distance(report)
            self._facts("Size and cost", _cost(report))
        else:
            self.say(f"{report.get('solution') or report['certificate_text']} More: --details.")
            self._distance(report)
        wrote = f"Wrote {report['file']} ({describe(report['file_bytes'])}), {_fitted_on(report)}"
        self.say(f"{wrote}, in {report['seconds']['all']:.1f} s.", "bold green")
        if "report" in report:
            self.say(f"Wrote {report['report']}, the report on this fit: open it in a browser.", "bold green")
        self.say(_next(report), "dim")

    def _examples(self, examples: Mapping[str, Any] | None) -> None:
        """Some held-out rows with their predictions, and how many lie in their intervals."""
        if examples is None:
            return
        columns = [examples["row"]]
        if "probability" in examples:
            heads = ["held-out row", "truth", "predicted", "probability"]
            columns += [map(str, examples["truth"]), map(str, examples["predicted"])]
            columns.append(f"{share:.2f}" for share in examples["probability"])
        else:
            heads = ["held-out row", "truth", "predicted", f"{examples['coverage']:.0%} interval"]
            columns += [map(significant, examples[name]) for name in ("truth", "predicted")]
            ends = zip(examples["lower"], examples["upper"], strict=True)
            columns.append(f"{significant(low)} to {significant(high)}" for low, high in ends)
        self._table(None, heads, [list(row) for row in zip(*columns, strict=True)])
        if "inside" in examples:
            self.say(f"{examples['inside']} of {examples['of']} held-out rows lie in their intervals.", "dim")

    def estimated(self, expected: Any) -> None:
        """Print what a fit would cost, an :class:`mercer.costs.estimate.Estimate`."""
        self.object({**asdict(expected), "fits": expected.fits, "kernel_values": expected.kernel_values})
        self.say(f"\n{expected!r}\nNothing was fitted.")

    def inspected(self, report: Mapping[str, Any], columns: Mapping[str, str]) -> None:
        """Print the contents of a model file; ``columns`` are the names and the descriptions of its columns."""
        self.object({**report, "schema": dict(columns)})
        self.say(f"{report['file']} ({describe(report['file_bytes'])})", "bold")
        self.planned(report)
        self._model(report)
        rows = [(name, _value(value)) for name, value in report["parameters"].items()]
        self._facts("Parameters", rows)
        first = list(columns.items())[:30]
        more = [("", f"and {len(columns) - 30} more")] if len(columns) > 30 else []
        self._facts("Columns", [*first, *more])
        if report["classes"]:
            self._facts("Classes", [(str(len(report["classes"])), ", ".join(map(str, report["classes"][:30])))])
        self._scores(report)
        self._search(report)
        self._facts(None, [("in the file", f"the model {_fitted_on(report)}")])
        in_words = [("in words", report["certificate_text"])] if report["certificate"] else []
        self._facts("Certificate", [*certificate_lines(report), *in_words])
        self._distance(report)
        self._facts("Size and cost", _cost(report))

    def evaluated(self, result: Mapping[str, Any]) -> None:
        """Print the scores of a model on a table."""
        self.object(result)
        self.say(
            f"{result['model']} from {result['file']} on {result['data']}, {counted(result['rows'], 'row')}", "bold"
        )
        self._table(
            f"Scores for {result['target']}",
            ["", *map(score_name, result["scores"])],
            [[result["model"], *_texts(result["scores"])]],
        )
        if result["classes"]:
            rows = [
                [str(label), str(row["rows"]), *(score_text(name, row[name]) for name in ("precision", "recall"))]
                for label, row in result["classes"].items()
            ]
            self._table("By class", ["class", "rows", "precision", "recall"], rows)

    def listed(self, title: str, heads: list[str], rows: list[list[str]]) -> None:
        """Print a table."""
        self._table(title, heads, rows, numbers_from=None)

    def planned(self, report: Mapping[str, Any], details: bool = True) -> None:
        """Print a description of the data before the fit begins."""
        rows = report["rows"]
        facts = [
            ("data", f"{report['data']}: {counted(rows['all'], 'row')}, {report['columns']}"),
            ("target", f"{report['target']}: {report['task']}, because {report['why']}"),
            *[("left out", f"{name} ({why}{_hint(name, why, report)})") for name, why in report["left_out"].items()],
            *[("missing", _gaps(name, n, report)) for name, n in _first(report["missing"])],
            *([("encoding", _encoding(report))] if details else []),
        ]
        self._facts(None, facts)

    def _model(self, report: Mapping[str, Any]) -> None:
        # The parameters that decide most are shown: how strong the penalty is, and the kernel.
        parameters = report["parameters"]
        penalties = [f", {name}={parameters[name]}" for name in ("C", "alpha") if name in parameters]
        why = f", {report['model_why']}" if report["model_why"] else ""
        facts = [("model", f"{report['model']}{''.join(penalties)}{why}")]
        # With a term for every column it is long, and the relevance of the columns says more.
        facts += [] if report["relevance"] else [("kernel", short_expression(report["kernel"]))]
        if report["chosen"]:
            facts.append(("chosen", report["chosen"]))
        facts += [("calibrated", "by " + report["calibration"])] if report.get("calibration") else []
        if report["relevance"]:
            shares = [f"{name} {share:.2f}" for name, share in _first(report["relevance"])]
            more = len(report["relevance"]) - len(shares)
            facts.append(("relevance", ", ".join(shares) + (f" and {more} more columns" if more else "")))
        self._facts(None, facts)

    def _scores(self, report: Mapping[str, Any]) -> None:
        scores, rows = report["scores"], report["rows"]
        if not scores:
            self.say("\nNo rows were held out, so there is no score.", "yellow")
            return
        how = "" if report["task"] == "regression" else "stratified, "
        by = f"every {report['every']}th row" if report.get("every") else f"{how}seed {report['seed']}"
        title = f"Score on {counted(rows['held_out'], 'row')} held out ({report.get('held_out_by') or by})"
        (first, own), *others = scores.items()
        before = (report["search"] or {}).get("before", {})
        # A model without probabilities lacks the scores of these.
        metrics = list(dict.fromkeys(metric for its in scores.values() for metric in its))
        lines = [
            [name, *(score_text(metric, its.get(metric, float("nan"))) for metric in metrics)]
            for name, its in [(first, own), *before.items(), *others]
        ]
        self._table(title, ["model", *map(score_name, metrics)], lines, best=0)
        # The rarest first.
        by_class = dict(sorted(report.get("recalls", {}).items(), key=lambda pair: pair[1]["rows"]))
        if by_class:
            words = [f"{label} {its['recall']:.0%} of {its['rows']}" for label, its in _first(by_class)]
            more = len(by_class) - len(words)
            self.say(f"Recall: {', '.join(words)}{f' and {more} more classes' if more else ''}.", "dim")

        if report.get("telltale"):
            name, target = report["telltale"], report["target"]
            hint = f"The column {name!r} alone gives {target!r} in all held-out rows. If it is not known before "
            self.say(f"{hint}{target!r} is, leave it out: --drop {shlex.quote(name)}.", "bold yellow")

    def _search(self, report: Mapping[str, Any]) -> None:
        """The best candidates of a search, and how sure it is which one is the best."""
        search = report["search"]
        if search is None:
            return
        maybe = functools.partial(_maybe, search["metric"])
        names = list(dict.fromkeys(name for row in search["table"] for name in row["parameters"]))
        rows = [
            [
                *(_short(row["parameters"].get(name, "")) for name in names),
                f"{maybe(row['score'])} ± {maybe(row['error'])}",
                "not known" if _is_vacuous(row) else f"{maybe(row['lower'])} to {maybe(row['upper'])}",
            ]
            for row in search["table"]
        ]
        title = f"The best of {counted(search['candidates'], 'candidate')}, by {search['folds']} folds"
        heads = [*names, score_name(search["metric"]), "if solved exactly"]
        self._table(title, heads, rows, best=0, numbers_from=len(names))
        self.say(search["sentence"])
        whole = search["stop"].startswith(("done", "certified"))
        self.say(f"The search is {search['stop']}" if whole else search["stop"], "dim")

    def _distance(self, report: Mapping[str, Any]) -> None:
        """How far a fit over landmarks is from the one to all rows; reports of other fits, and older ones, lack it."""
        distance = report.get("distance")
        if distance is not None:
            self._facts("Certificate for the problem of all rows", distance_lines(distance))

    def _advice(self, report: Mapping[str, Any]) -> None:
        """Where a simpler model did better; the command is left whole, so that it can be copied."""
        advice = report["advice"]
        if advice is None or not self._people:
            return
        self._console.print(_text(advice["text"], "bold yellow"))
        if advice["command"]:
            self._console.print(_text(f"  {advice['command']}"), soft_wrap=True)

    def _table(
        self,
        title: str | None,
        heads: list[str],
        rows: list[list[str]],
        best: int | None = None,
        numbers_from: int | None = 1,
    ) -> None:
        if not self._people:
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for position, head in enumerate(heads):
            right = numbers_from is not None and position >= numbers_from
            table.add_column(_text(head), justify="right" if right else "left", overflow="fold")
        for position, row in enumerate(rows):
            table.add_row(*map(_text, row), style="bold" if position == best else None)
        self._console.print()
        if title is not None:
            self._console.print(_text(title, "bold"))
        self._console.print(table)

    def _facts(self, title: str | None, facts: Iterable[tuple[str, str]]) -> None:
        if not self._people:
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="cyan", no_wrap=True, min_width=8, max_width=28, overflow="ellipsis")
        grid.add_column(overflow="fold")
        for name, value in facts:
            grid.add_row(_text(name), _text(value))
        if title is not None:
            self._console.print()
            self._console.print(_text(title, "bold"))
        self._console.print(grid)


def _text(text: str, style: str = "") -> Text:
    """Text for the terminal; what stands in files may hold characters that it would obey."""
    return Text(printable(text), style=style)


def _hint(name: str, why: str, report: Mapping[str, Any]) -> str:
    if report.get("approximation"):
        return "; to compare it, fit without --approximation" if why.startswith(("text,", "trees,")) else ""
    if why.startswith("trees,"):
        return f"; to compare it as a tree: --tree {shlex.quote(name)}"
    return f"; to compare it letter by letter: --text {shlex.quote(name)}" if why.startswith("text,") else ""


class _Lines:
    """Prints the standing of a search in plain lines, at most one in five seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._start, self._last = say, time.monotonic(), -math.inf

    def __call__(self, work: Work) -> None:
        now = time.monotonic()
        if work.what == "search" and now - self._last >= 5.0:
            self._last = now
            self._say(f"{work.what}: {work.count}, {now - self._start:.0f} s")


def _short(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:.4g}" if is_number else short_numbers(str(value))


def _is_vacuous(row: Mapping[str, Any]) -> bool:
    """Whether nothing is known of the score of the exact solution: no bounds, or all that an accuracy can be."""
    return row["lower"] is None or (row["lower"] <= 0.0 and row["upper"] >= 1.0)


def _maybe(metric: str, value: float | None) -> str:
    return "-" if value is None else score_text(metric, value)


def _texts(scores: Mapping[str, float]) -> list[str]:
    return [score_text(name, value) for name, value in scores.items()]


def _next(report: Mapping[str, Any]) -> str:
    """The command that comes next."""
    by_itself, classes = (
        report["normalize"] == "model" and not report.get("approximation"),
        report["task"] == "classification",
    )
    more = " --probabilities" if report["normalize"] == "model" and classes else ""
    if report.get("calibration") or "inside" in (report.get("examples") or {}) or (by_itself and not classes):
        # What was calibrated: intervals of numbers, or sets of classes.
        more += " --interval 0.9"
    return f"Next: mercer predict {_argument(report['file'])} NEW_DATA{more}" + (
        f"\nTo search for better parameters: {report['tune']}" if report.get("tune") else ""
    )


def _first(values: Mapping[str, Any], most: int = 8) -> list[tuple[str, Any]]:
    return list(values.items())[:most]


def _gaps(name: str, count: int, report: Mapping[str, Any]) -> str:
    what = "value" if report["normalize"] == "model" else "category"
    return f"{name}: {counted(count, 'row')}, a {what} of its own"


def _fitted_on(report: Mapping[str, Any]) -> str:
    """Which rows the model in the file was fitted to."""
    rows = report["rows"]
    part = rows["all"] if report["refitted"] or not rows["held_out"] else rows["all"] - rows["held_out"]
    some = f"all {counted(part, 'row')}" if part == rows["all"] else f"the {counted(part, 'row')} of the training part"
    if rows["fitted"] < part:
        some = f"{rows['fitted']} of {some}, drawn at random"
    return f"fitted on {some}" + (" after the score" if report["refitted"] else "")


def _encoding(report: Mapping[str, Any]) -> str:
    if report["normalize"] == "model":
        return "by the model: normal scores of numbers, indicators of categories and gaps, parts of dates"
    words = {
        "standard": "numbers to mean 0 and variance 1",
        "minmax": "numbers to the range [0, 1]",
        "unit": "rows of numbers to length 1",
        "none": "numbers as they are",
    }[report["normalize"]]
    filled = f", missing values by {report['impute']} with a column for gaps" if report["impute"] else ""
    count = report["encoded_columns"]
    roles = sorted(set(report.get("roles", {}).values()))
    if roles and len(report["roles"]) == count:
        return f"{' and '.join(roles)} as it is"
    if roles:
        words += f", {' and '.join(roles)} as it is"
    return f"{words}{filled}; {counted(count, 'encoded column')}"


def _cost(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts, fitted = [], report["rows"]["fitted"]
    if report["support_vectors"] is not None:
        count = report["support_vectors"]
        facts.append(("support vectors", f"{count} of {fitted} rows ({count / fitted:.0%})"))
    seconds = report["seconds"]
    facts.append(("time", f"{seconds['fit']:.2f} s to fit, {seconds['all']:.2f} s in all"))
    memory = f"{describe(report['peak_bytes'])} by the fit"
    if report["process_peak_bytes"] is not None:
        memory += f", {describe(report['process_peak_bytes'])} by the whole process"
    facts.append(("memory", memory))
    return facts


def _value(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _argument(name: str) -> str:
    """A file's name as it is typed after a command: in quotation marks where a shell needs them, and no option.

    >>> print(_argument("a.mercer"), _argument("my model"), _argument("-q"))
    a.mercer 'my model' ./-q
    """
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
