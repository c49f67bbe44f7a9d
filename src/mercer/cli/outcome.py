"""The end of a command: its exit code, and the message on standard error."""

from __future__ import annotations

import _thread
import functools
import io
import os
import re
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from json import dumps
from typing import Any

import typer

from mercer._errors import DataError, MercerError, bounded
from mercer.data.words import printable

OK, OUR_FAULT, USER_FAULT, INTERRUPTED = 0, 1, 2, 130

# Seconds after which a swallowed Ctrl-C is sent again.
_AGAIN = 0.1
_STOPPED = "interrupted; no further file was written"

_OPTIONS = {
    "mercer.config(memory=...)": "--memory",
    'Blocks.from_csv(..., encoding="cp1252")': "--encoding cp1252",
    "allow_indefinite=True": "--set allow_indefinite=True",
    "(sklearn.preprocessing.MinMaxScaler)": "(--normalize minmax)",
    # The way out that programs have, and the command line has not.
    ", use fewer rows, pass float32 data, or multiply by it lazily with mercer.Gram(kernel, X) @ v": (
        " or use fewer rows"
    ),
    "give it other bounds (kernel.bounded) to look further, or fix it (kernel.fixed)": (
        "to look further give other bounds, as in --kernel '1.0 * RBF(1.0).bounded(length_scale=(1e-6, 1e6))'"
    ),
    "ask for at most that many": "ask for at most that many (--set n_neighbors=...)",
    "; pass y as an ordered categorical (pandas.Categorical(y, categories=..., ordered=True))": "",
    'pass classes="sorted"': "pass --set classes=sorted",
    "leave the column out.": "leave the column out with --drop.",
    "(sklearn.preprocessing.StandardScaler)": "(--normalize standard)",
    " (see sklearn.preprocessing.StandardScaler)": " (--normalize standard)",
    "(sklearn.impute.SimpleImputer)": "(--impute median)",
    "subtract it (sklearn.compose.TransformedTargetRegressor(model, transformer=StandardScaler())), add a constant to "
    "the kernel (kernel + mercer.kernels.Constant(c))": (
        "add a constant to the kernel, as in --kernel 'RBF(1.0) + Constant(1.0)'"
    ),
    "Pass X as float64, loosen tol, lower C,": "Loosen tol, lower C (--set NAME=VALUE),",
    ", or mercer.validity.nearest(K)": "",
    "; pass X.toarray().": "; pass a table with all its columns, such as a .csv file.",
    ", or choose by folds that keep copies together, as in KernelSearchCV(..., cv=GroupKFold()) with groups": "",
    "Use a learner with one kernel that decides by such a value (SVC, SVR, OneClassSVM, KernelRidge, "
    "KernelLogisticRegression, GaussianProcessRegressor, ...), or sklearn.inspection.permutation_importance.": (
        "Fit again with a model of one kernel (--model svc, logistic, svr, ridge or gp), or see which columns matter "
        "with mercer plot --what relevance."
    ),
    "Calibrate intervals by folds: ConformalRegressor(TabularRegressor()).fit(X, y).interval(X_new)": (
        "Fit again with --calibrate"
    ),
    " with a number for alpha": " --set alpha=NUMBER",
    'solver="cg"': "--set solver=cg",
    "mercer.estimate(model, X) tells the seconds of a model with these parameters, and fits nothing.": (
        "With --dry-run the command tells the seconds of a fit, and fits nothing."
    ),
    'by="parts"': "--by parts",
    'by="rows"': "--by rows",
    "Pass a file that save() has written.": "Pass a file that mercer fit has written.",
    "Try other kernels (kernels=[...])": "Try other kernels (--kernel)",
    "Pass kernels=[...] to choose among several": "Pass --kernel several times to choose among several",
    "KernelSearchCV was interrupted": "the search was interrupted",
    "KernelSearchCV left out": "the search left out",
}

_ROLE = re.compile(r"""roles=\{['"]?(.*?)['"]?: "(\w+)"\}""")

# What fits of large tables need, with what does so when rows stay in files, as those of the option do.
_LANDMARKS = re.compile(r'approximation="nystroem"(?: and n_landmarks=(\d+))?')
_BLOCKS = re.compile(r"; [^;()]* with X in mercer\.Blocks, which need not fit into memory either")
# Columns to drop in a call that a message shows.
_DROP = re.compile(r"drop=\[('[^']*'(?:, '[^']*')*)\]")
# The classes in a call that a message shows.
_ORDER = re.compile(r"\b\w+\((classes=\[.*?\])\)")

# Of typer's errors only this branch is public under one name in all its versions; its base is what we catch.
_USAGE: Any = typer.BadParameter.__mro__[2]


def ending(command: Callable[[], Any], json: bool = False) -> int:
    """Run a command and turn its outcome into an exit code; with ``json`` a failure is also printed as an object.

    ``MERCER_DEBUG=1`` in the environment shows the traceback of any error.
    """
    # Closed by the caller, as in `mercer fit ... >&-`: what is printed beside the files that are written is not wanted.
    sys.stdout, sys.stderr = (stream or _Nowhere() for stream in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a letter shows a question mark instead. Files and other programs get UTF-8, in which
            # labels are what they were.
            stream.reconfigure(errors="replace", encoding=None if stream.isatty() else "utf-8")
    say = functools.partial(_say, json)
    with _Interrupt() as interrupt:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _Notes()
                # Useful to those who write programs with a library, not to those who run them.
                for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                    warnings.simplefilter("ignore", kind)
                code = command()
            # typer itself turns Ctrl-C into this code.
            return say(_STOPPED, INTERRUPTED) if code == INTERRUPTED else OK
        except (KeyboardInterrupt, typer.Abort):
            return say(_STOPPED, INTERRUPTED)
        except SystemExit as error:
            if isinstance(error.__context__, BrokenPipeError):
                # The reader of our output has left, as in `mercer predict ... | head`; nothing more is written to it.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                return OK
            raise
        except Exception as error:
            return say(*((_STOPPED, INTERRUPTED) if interrupt.seen else _explained(error)))


class _Nowhere(io.StringIO):
    """A stream that discards what is written to it."""

    def write(self, text: str) -> int:
        return len(text)


def require_output() -> None:
    """Raise an error if standard output is closed; for commands whose only result is printed.

    Raises
    ------
    DataError
        If it is closed.
    """
    if isinstance(sys.stdout, _Nowhere):
        raise DataError("standard output is closed, so that the result would be lost; leave it open, or redirect it.")


class _Interrupt:
    """Remembers Ctrl-C while a command runs, also where it falls into a callback of a library that swallows it.

    While numba compiles or loads loops, LLVM calls Python back and drops what is raised there; the command then
    fails with another, unrelated error.
    """

    def __init__(self) -> None:
        self.seen = False
        self._again: threading.Timer | None = None

    def __enter__(self) -> _Interrupt:
        self._handler, self._hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
        # Not where the signal is already handled otherwise: background jobs ignore Ctrl-C.
        self._ours = (
            threading.current_thread() is threading.main_thread() and self._handler is signal.default_int_handler
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._notice)
            sys.unraisablehook = self._dropped
        return self

    def __exit__(self, *_: object) -> None:
        if self._again is not None:
            self._again.cancel()
        if self._ours:
            signal.signal(signal.SIGINT, self._handler)
            sys.unraisablehook = self._hook

    def _notice(self, *_: object) -> None:
        self.seen = True
        raise KeyboardInterrupt

    def _dropped(self, what: Any) -> None:
        if not (self.seen and what.exc_type is KeyboardInterrupt):
            self._hook(what)
            return
        # The command goes on as if nothing had happened, perhaps to its end: send it again after the callback.
        self._again = threading.Timer(_AGAIN, _thread.interrupt_main)
        self._again.daemon = True
        self._again.start()


def _explained(error: Exception) -> tuple[str, int]:
    """The message about an error, and the exit code."""
    if isinstance(error, _USAGE):
        return error.format_message(), USER_FAULT
    if isinstance(error, MercerError):
        return in_options(str(error)), USER_FAULT
    if isinstance(error, MemoryError):
        return "the machine is out of memory; use fewer rows, or set a budget with --memory", USER_FAULT
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror or error}; check the name, its permissions and the free space", USER_FAULT
    return (
        f"internal error ({type(error).__name__}: {error}); run again with MERCER_DEBUG=1 to see where, and "
        "please report it",
        OUR_FAULT,
    )


def in_options(message: str) -> str:
    """Return a message in the terms of the command line instead of those of Python."""
    for python, option in _OPTIONS.items():
        message = message.replace(python, option)
    message = _BLOCKS.sub("", message)
    message = _LANDMARKS.sub(lambda m: "--approximation nystroem" + (f" --landmarks {m[1]}" if m[1] else ""), message)
    message = _ORDER.sub(r'--set "\1"', message)
    message = _DROP.sub(
        lambda match: " ".join(f"--drop {shlex.quote(name)}" for name in re.findall("'([^']*)'", match[1])), message
    )
    return _ROLE.sub(lambda match: f"--{match[2]} {shlex.quote(match[1])}", message)


def _paragraph(text: str) -> str:
    """One paragraph for a terminal, shortened where values of a file have made it long."""
    return bounded(printable(" ".join(text.split("\n"))))


def _say(json: bool, text: str, code: int) -> int:
    text = _paragraph(text)
    if os.environ.get("MERCER_DEBUG", "0") not in ("", "0"):
        traceback.print_exc()
    if json:
        try:
            sys.stdout.write(dumps({"error": text, "exit_code": code}) + "\n")
            sys.stdout.flush()
        except OSError:
            # It may be standard output itself that cannot be written to; Python is not to try again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stderr.write(f"mercer: {text}\n")
    return code


class _Notes:
    """Prints each warning as a note, once: a model is fitted for the score, and again to all rows."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = _paragraph(in_options(str(message)))
        if text not in self._printed:
            self._printed.add(text)
            sys.stderr.write(f"mercer: note: {text}\n")
