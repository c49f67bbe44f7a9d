"""The report in a model file, whose values are checked before they are shown."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from mercer._errors import ModelFileError
from mercer.data.words import DATE_FORMS, NORMALIZE, TASKS
from mercer.persistence.look import look

_NUMBER = (int, float)
_SHAPE: dict[str, Any] = {
    "data": str, "columns": str, "left_out": dict, "target": str, "task": str, "why": str, "normalize": str,
    "impute": (str, type(None)), "encoded_columns": int, "roles": dict, "seed": int, "model": str, "kernel": str,
    "parameters": dict, "chosen": (str, type(None)), "classes": list, "certificate": (dict, type(None)),
    "certificate_text": str, "support_vectors": (int, type(None)), "scores": dict, "peak_bytes": _NUMBER,
    "process_peak_bytes": (int, type(None)), "refitted": bool, "missing": dict,
    "model_why": str, "held_out_by": str, "telltale": str, "relevance": dict, "search": (dict, type(None)),
    "calibration": str, "versions": dict, "reading": {"numbers": dict, "dates": dict, "verbatim": (list, type(None))},
    "rows": {"all": int, "fitted": int, "held_out": int},
    "seconds": {"fit": _NUMBER, "all": _NUMBER},
}  # fmt: skip
# What older versions did not write.
_ABSENT: dict[str, Any] = {
    "missing": {}, "relevance": {}, "model_why": "", "held_out_by": "", "telltale": "", "calibration": "",
    "search": None, "versions": {}, "reading": {"numbers": {}, "dates": {}},
}  # fmt: skip
_CERTIFICATE = {
    "status": str, "primal": _NUMBER, "dual": _NUMBER, "gap": _NUMBER, "relative_gap": _NUMBER,
    "kkt_violation": _NUMBER, "iterations": _NUMBER,
}  # fmt: skip
_MAYBE = (int, float, type(None))
_SEARCH = {
    "candidates": int, "folds": int, "table": list, "certified": bool, "sentence": str, "stop": str, "metric": str,
}  # fmt: skip
_CANDIDATE = {"parameters": dict, "score": _MAYBE, "error": _MAYBE, "lower": _MAYBE, "upper": _MAYBE}
_SCHEMA = ("kinds", "categories", "left_out", "width")


def stored_report(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report in the file, and the fields of the schema of its columns.

    Raises
    ------
    ModelFileError
        If its object is not one that ``mercer fit`` writes, or its report has another form.
    """
    paths = [("report_",), *(("encoder_", "schema_", name) for name in _SCHEMA)]
    name, (report, *fields) = look(path, *paths)
    schema = dict(zip(_SCHEMA, fields, strict=True))
    if name != "TableModel" or report is None:
        raise ModelFileError(not_of_fit(path, name))
    if not isinstance(report, dict) or not isinstance(schema["kinds"], dict):
        raise ModelFileError(_strange(path, "report"))
    check_report(report, path)
    if not all(isinstance(values, list) for values in (schema["categories"] or {}).values()):
        raise ModelFileError(_strange(path, "categories"))
    return report, schema


def not_of_fit(path: Path, name: str) -> str:
    """Return the message about a file with an object of another class."""
    return (
        f"{path} holds a {name} that was saved in Python, without the target and the checks of columns that mercer fit "
        "stores beside it. Load it in Python with mercer.load, or make the file with mercer fit."
    )


def check_report(report: dict[str, Any], path: Path) -> None:
    """Raise an error unless a report has every value that is shown.

    Raises
    ------
    ModelFileError
        If a value is missing or invalid; the message names the entry.
    """
    rows = report.get("rows")
    if isinstance(rows, dict) and "all" not in rows:
        _check(rows, {"fitted": int, "held_out": int}, path)
        # Before there was a fit on all rows, the two parts were all that there was.
        rows["all"] = rows["fitted"] + rows["held_out"]
    report.setdefault("refitted", False)
    for name, absent in _ABSENT.items():
        report.setdefault(name, copy.deepcopy(absent))
    _check(report, _SHAPE, path)
    _check_words(report, path)
    _check_reading(report["reading"], path)
    for name, kind in (("missing", int), ("relevance", _NUMBER)):
        if not all(isinstance(value, kind) for value in report[name].values()):
            raise ModelFileError(_strange(path, name))
    if report["certificate"] is not None:
        _check(report["certificate"], _CERTIFICATE, path)
    if report["search"] is not None:
        _check(report["search"], _SEARCH, path)
        _check_scores(report["search"].setdefault("before", {}), path)
        for row in report["search"]["table"]:
            if not isinstance(row, dict):
                raise ModelFileError(_strange(path, "search"))
            _check(row, _CANDIDATE, path)
    _check_scores(report["scores"], path)
    recalls = report.setdefault("recalls", {})
    _check_scores(recalls, path)
    for row in recalls.values():
        _check(row, {"rows": int, "recall": _NUMBER}, path)


def _check_words(report: dict[str, Any], path: Path) -> None:
    """Words are those that are known, names have words, and numbers are in their ranges."""
    texts = [*report["left_out"].values(), *report["roles"].values(), *report["versions"].values()]
    ranges = {
        "task": report["task"] in TASKS,
        "normalize": report["normalize"] in (*NORMALIZE, "model"),
        "left_out": all(isinstance(text, str) for text in texts),
        "seed": 0 <= report["seed"] < 2**32,
        "rows": min(report["rows"].values()) >= 0 and report["rows"]["fitted"] > 0,
        "command": isinstance(report.get("command", ""), str),
        "data_sha256": isinstance(report.get("data_sha256"), (str, type(None))),
        "every": isinstance(report.get("every"), (int, type(None))),
    }
    for name, is_in_range in ranges.items():
        if not is_in_range:
            raise ModelFileError(_strange(path, name))


def _check_reading(reading: dict[str, dict[str, Any]], path: Path) -> None:
    """Columns in other notations have a decimal mark and a sign, and columns of dates have cycles."""
    words = [*reading["numbers"].values(), *reading["dates"].values(), reading["verbatim"] or []]
    texts = all(isinstance(each, list) and all(isinstance(word, str) for word in each) for each in words)
    marked = texts and all(
        len(each) == 2 and (each[0] in (".", ",") or (each[0] == "date" and each[1] in DATE_FORMS))
        for each in reading["numbers"].values()
    )
    if not marked or not all(word in ("year", "week", "day") for each in reading["dates"].values() for word in each):
        raise ModelFileError(_strange(path, "reading"))


def _check_scores(scores: Any, path: Path) -> None:
    if not isinstance(scores, dict):
        raise ModelFileError(_strange(path, "scores"))
    for row in scores.values():
        if not isinstance(row, dict) or not all(isinstance(number, _NUMBER) for number in row.values()):
            raise ModelFileError(_strange(path, "scores"))


def _check(values: dict[str, Any], shape: dict[str, Any], path: Path) -> None:
    for name, kind in shape.items():
        # What may be None may also be absent.
        value = values.setdefault(name, None)
        if not isinstance(value, dict if isinstance(kind, dict) else kind):
            raise ModelFileError(_strange(path, name))
        if isinstance(kind, dict):
            _check(value, kind, path)


def _strange(path: Path, entry: str) -> str:
    return f"{path}: the {entry} of its report do not have the form that mercer fit writes; fit the model again."
