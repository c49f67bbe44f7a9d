"""A search on disk: one line of JSON for each candidate, so that a search that was killed goes on where it stopped.

The first line identifies the search. Each line is written at once and as a whole; a last line that is not complete is
cut off when the file is opened again. The file is locked while a search uses it. A search asks for the same candidates
again and gets those of the file, so that it decides as it did before.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.engine.locks import lock
from mercer.selection.evaluated import DEFERRED, Evaluated
from mercer.selection.fold_rows import SearchData
from mercer.selection.shared_fits import SharedFits

FORMAT, VERSION = "mercer-search-log", 1
# Of scores beside their bounds.
_ROUNDING = 1e-9
_PER_FOLD = ("scores", "lower", "upper", "seconds", "score_seconds")
# Parameters that change how fast a search is, and no score.
_WITHOUT_EFFECT = ("n_jobs", "verbose", "memory", "cache_size")


class Evaluates(Protocol):
    """What fits and scores candidates: :class:`~mercer.selection.evaluated.Evaluator`."""

    @property
    def fits(self) -> SharedFits:
        """The fits and what they share."""

    def groups(self, parameters: Sequence[Mapping[str, Any]], tol: float | None) -> list[list[int]]:
        """Positions of candidates that are fitted together."""

    def evaluate(
        self, parameters: Sequence[Mapping[str, Any]], tol: float | None, bounded: bool = True
    ) -> list[Evaluated]:
        """Fit and score candidates."""


def identity(estimator: Any, data: SearchData, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what the candidates and their scores depend on, each part as a short text.

    Parameters
    ----------
    estimator : estimator
    data : SearchData
    settings : dict
        Further arguments of the search, such as ``scoring``.

    Returns
    -------
    dict of str to str
        Two searches with equal parts have equal scores.
    """
    folds = [part for fold in data.folds for part in (fold.train, fold.test)]
    return {
        "rows": digest(data.X),
        "targets": digest(data.y),
        "sample_weight": digest(data.weight),
        **({} if data.score_weight is None else {"score_weight": digest(data.score_weight)}),
        "folds": digest(folds),
        **_parameters(estimator),
        **{name: _text(value) for name, value in settings.items()},
    }


def _parameters(estimator: Any) -> dict[str, str]:
    """The class of an estimator and of its steps, and all parameters that may change a score, by name."""
    texts = {"estimator": type(estimator).__name__}
    for name, value in estimator.get_params(deep=True).items():
        if name.rpartition("__")[2] not in _WITHOUT_EFFECT:
            texts[name] = type(value).__name__ if isinstance(value, BaseEstimator) else _text(value)
    return texts


def digest(value: Any) -> str:
    """Return a short text that is the same for equal rows, targets or lists of these, and else another one.

    >>> digest(np.arange(3.0)) == digest(np.arange(3.0)), digest(np.arange(3.0)) == digest(np.arange(3))
    (True, False)
    """
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()[:24]


def _feed(sha: Any, value: Any) -> None:
    """Feed the bytes of a value to the digest, each part after a label that distinguishes it from others."""
    if sp.issparse(value):
        matrix = sp.csr_matrix(value)
        _feed(sha, [np.array(matrix.shape), matrix.data, matrix.indices, matrix.indptr])
    elif isinstance(value, Objects):
        _feed(sha, [type(value).__name__, *value.fingerprints()])
    elif isinstance(value, MixedRows):
        _feed(sha, list(value.columns))
    elif hasattr(value, "columns") and hasattr(value, "dtypes"):
        _feed(sha, [[str(name), value[name].to_numpy()] for name in value.columns])
    elif isinstance(value, np.ndarray) and value.dtype != object:
        sha.update(f"array {value.dtype.str} {value.shape} ".encode())
        sha.update(np.ascontiguousarray(value).tobytes())
    elif hasattr(value, "to_numpy"):
        _feed(sha, value.to_numpy())
    elif isinstance(value, (list, tuple, np.ndarray)):
        sha.update(f"list {len(value)} ".encode())
        for item in value:
            _feed(sha, item)
    else:
        text = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        sha.update(b"%s %d " % (type(value).__name__.encode(), len(text)) + text)


def _text(value: Any) -> str:
    """A value in words, the same for equal values; kernels print as typed."""
    if isinstance(value, BaseEstimator):
        return f"{type(value).__name__}({', '.join(f'{k}={v}' for k, v in _parameters(value).items())})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, np.ndarray):
        return f"array {digest(value)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _key(parameters: Mapping[str, Any], tol: float | None) -> str:
    """A candidate at a tolerance in words; kernels print as typed."""
    values = {name: _text(value) for name, value in sorted(parameters.items())}
    return json.dumps({"parameters": values, "tol": tol}, sort_keys=True)


@dataclass(eq=False)
class SearchLog:
    """The candidates that a file holds, and the file to which further ones are appended.

    Parameters
    ----------
    path : Path
    known : dict of str to dict
        Lines of the file by candidate and tolerance.
    file : binary file, optional
        Open for appending, and locked: two searches that append to one file would hide their candidates from each
        other.
    """

    path: Path
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    file: FileIO | None = None

    @classmethod
    def open(cls, path: str | Path, own: Mapping[str, str]) -> SearchLog:
        """Open a file for a search, and read what an earlier run of the same search left there.

        Parameters
        ----------
        path : str or Path
        own : dict of str to str
            The :func:`identity` of the search.

        Raises
        ------
        DataError
            If the file cannot be written, is in use, is not the log of a search, or is damaged before its last line.
        ParameterError
            If it is the log of another search; the message names what differs.
        """
        log = cls(Path(path))
        if log.path.exists() and not log.path.is_file():
            raise DataError(f"the log {path} is not a file, but a folder, a pipe or a device; name a file.")
        try:
            log.load_lines(own)
        except OSError as error:
            log.close()
            raise DataError(f"the log {path} cannot be read and written: {error.strerror or error}.") from error
        except BaseException:
            log.close()
            raise
        return log

    def load_lines(self, own: Mapping[str, str]) -> None:
        """Open and lock the file, read its lines, and cut off what a kill left of the last one."""
        self.file = file = self.path.open("a+b", buffering=0)
        if not lock(file):
            raise DataError(
                f"the log {self.path} is in use by another search; wait until that ends, or name another file."
            )
        file.seek(0)
        content = file.readall()
        whole = content[: content.rfind(b"\n") + 1]
        lines = [line for line in whole.split(b"\n") if line]
        if not lines and content and not _head(own).startswith(content):
            raise _strange(self.path)
        if lines:
            _compare(self.path, lines[0], own)
            for number, line in enumerate(lines[1:], start=2):
                self.read(line, number)
        file.truncate(len(whole))
        if not lines:
            file.write(_head(own))

    def read(self, line: bytes, number: int) -> None:
        """Take the candidate of a line of the file."""
        try:
            entry = json.loads(line)
            key = json.dumps({"parameters": entry["parameters"], "tol": entry["tol"]}, sort_keys=True)
            if not isinstance(entry["why"], str) or not isinstance(entry["error"], str):
                raise ValueError("a reason is not text")
            entry |= {name: _floats(entry[name]) for name in _PER_FOLD}
            if len({len(entry[name]) for name in _PER_FOLD}) > 1:
                raise ValueError("a score is missing")
            _check_bounds(*(entry[name] for name in ("scores", "lower", "upper")))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"line {number} of the log {self.path} is damaged ({error}). Delete this line, and the candidate is "
                "evaluated again; or name another file."
            ) from error
        self.known[key] = entry

    def find(self, parameters: Mapping[str, Any], tol: float | None, folds: int) -> Evaluated | None:
        """Return a candidate as it was logged; None if it was not."""
        entry = self.known.get(_key(parameters, tol))
        if entry is None or len(entry["scores"]) != folds:
            return None
        return Evaluated(parameters, tol, **{name: entry[name] for name in (*_PER_FOLD, "why", "error")})

    def write(self, one: Evaluated) -> None:
        """Append a candidate; after the call it survives the end of this process.

        Raises
        ------
        DataError
            If the file cannot be written, as on a full disk.
        """
        entry = json.loads(_key(one.parameters, one.tol))
        entry |= {name: _numbers(getattr(one, name)) for name in _PER_FOLD}
        entry |= {"why": one.why, "error": one.error}
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        assert self.file is not None
        try:
            self.file.write(line)
        except OSError as error:
            raise DataError(f"the log {self.path} cannot be written: {error.strerror or error}.") from error

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()


def _head(own: Mapping[str, str]) -> bytes:
    return json.dumps({"format": FORMAT, "version": VERSION, "search": dict(own)}).encode() + b"\n"


def _compare(path: str | Path, line: bytes, own: Mapping[str, str]) -> None:
    """Raise unless the first line is that of the same search."""
    try:
        head = json.loads(line)
        if head["format"] != FORMAT or not isinstance(head["search"], dict):
            raise ValueError("it has another format")
        version = int(head["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise _strange(path) from error
    if version > VERSION:
        raise DataError(
            f"the log {path} has version {version} of its format, and this version of Mercer reads up to {VERSION}; "
            "upgrade Mercer, or name another file."
        )
    written = head["search"]
    differ = [name for name in {**own, **written} if own.get(name) != written.get(name)]
    if differ:
        rows = ("rows", "targets", "sample_weight", "folds")
        parts = [
            f"{name} differ" if name in rows else f"{name} was {written.get(name)} and is {own.get(name)}"
            for name in differ
        ]
        raise ParameterError(
            f"the log {path} is that of another search: {'; '.join(parts)}. Name another file, or delete this one to "
            "begin anew."
        )


def _strange(path: str | Path) -> DataError:
    return DataError(f"{path} is not the log of a search, and is left as it is; name another file.")


def _numbers(values: Vector) -> list[float | str | None]:
    """JSON has no NaN and no infinity: None, and the text of the number."""
    return [None if math.isnan(value) else value if math.isfinite(value) else str(value) for value in values.tolist()]


def _check_bounds(scores: list[float], lower: list[float], upper: list[float]) -> None:
    """Raise if a score is outside of its bounds by more than rounding. Unknown bounds are NaN, and exclude nothing."""
    for score, low, high in zip(scores, lower, upper):
        slack = _ROUNDING * (1.0 + abs(score))
        if low > score + slack or score - slack > high:
            raise ValueError(f"the score {score:g} is not between its bounds, {low:g} and {high:g}")


def _floats(values: Sequence[Any]) -> Vector:
    return np.array([math.nan if value is None else float(value) for value in values])


@dataclass(eq=False)
class LoggedEvaluator:
    """An evaluator that takes candidates from a log, and adds to it what it has to evaluate.

    Parameters
    ----------
    inner : Evaluator
    log : SearchLog
    folds : int
    """

    inner: Evaluates
    log: SearchLog
    folds: int

    @property
    def fits(self) -> SharedFits:
        """Those of the evaluator."""
        return self.inner.fits

    def groups(self, parameters: Sequence[Mapping[str, Any]], tol: float | None) -> list[list[int]]:
        """As the evaluator's."""
        return self.inner.groups(parameters, tol)

    def evaluate(
        self, parameters: Sequence[Mapping[str, Any]], tol: float | None, bounded: bool = True
    ) -> list[Evaluated]:
        """Return candidates from the log; where one of them is missing, all are evaluated.

        Candidates that are fitted together start from one another's solutions, so that a part of them alone might have
        other digits.
        """
        logged = [self.log.find(one, tol, self.folds) for one in parameters]
        known = [None if bounded and one is not None and one.why == DEFERRED else one for one in logged]
        there = [one for one in known if one is not None]
        if len(there) == len(parameters):
            return there
        evaluated = self.inner.evaluate(parameters, tol, bounded)
        for before, one in zip(known, evaluated):
            if before is None:
                self.log.write(one)
        return [one if before is None else before for before, one in zip(known, evaluated)]
