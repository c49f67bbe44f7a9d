"""The data and the outcome of a fit as plain values, printed and stored in the model file for ``mercer inspect``."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from mercer._registered import command_line_of
from mercer.cli.command import command_of, name_of
from mercer.cli.job import Job
from mercer.cli.learners import usage
from mercer.cli.options import FitOptions
from mercer.data.schema import NO_VALUE
from mercer.estimators.table import TableModel
from mercer.reports.fingerprint import of_file
from mercer.reports.solution_words import solution_words
from mercer.solvers.solution import Certificate


def plan(job: Job, options: FitOptions) -> dict[str, Any]:
    """Return a description of the data as plain values, stored with the outcome in the model file."""
    schema, use = job.schema, usage(job.model, job.target.task)
    return {
        "data": " and ".join(map(name_of, filter(None, (options.data, options.test)))),
        "command": command_of(options),
        "data_sha256": of_file(Path(options.data)),
        "rows": {"all": len(job.target.values), "fitted": len(job.train), "held_out": len(job.test)},
        "refitted": options.refit and len(job.test) > 0,
        "columns": schema.describe(),
        "left_out": dict(schema.left_out),
        "missing": _missing(job),
        "target": job.target.name,
        "task": job.target.task,
        "why": job.target.why,
        "model_why": job.why,
        "normalize": "model" if use.raw else options.normalize,
        "impute": options.impute,
        "encoded_columns": schema.encoded_columns,
        "roles": schema.roles,
        "seed": options.seed,
        "held_out_by": job.how,
        "versions": {"mercer": importlib.metadata.version("mercer"), "python": platform.python_version()},
    }


def _missing(job: Job) -> dict[str, int]:
    """How many entries are missing in each column that may have gaps."""
    raw = usage(job.model, job.target.task).raw
    names = job.schema.kinds if raw else [n for n, its in job.schema.categories.items() if NO_VALUE in its]
    counts = {name: int(job.columns[name].isna().sum()) for name in names}
    return {name: count for name, count in counts.items() if count}


def outcome(model: TableModel, chosen: str | None) -> dict[str, Any]:
    """Return the outcome of the fit as plain values."""
    estimator = model.estimator_
    use = command_line_of(type(estimator))
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in ("kernel", "n_jobs")}
    if isinstance(parameters.get("alpha"), str):
        chosen = f"alpha={estimator.alpha_:.4g} by {parameters['alpha']} on all training rows"
    chosen = use.choice(estimator) or chosen
    support = getattr(estimator, "support_", None)
    # Several classes may have one each.
    kernels = model.kernel_ if isinstance(model.kernel_, tuple) else (model.kernel_,)
    record = getattr(estimator, "certificate_", None)
    certificate = record if isinstance(record, Certificate) else None
    return {
        "model": type(estimator).__name__,
        "kernel": " and ".join(dict.fromkeys(map(repr, kernels))),
        "relevance": _relevance(model),
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "chosen": chosen,
        "classes": [_plain(label) for label in getattr(model, "classes_", [])],
        "certificate": None if certificate is None else certificate.as_dict(),
        "solution": None if certificate is None else solution_words(certificate),
        "certificate_text": use.without_certificate(estimator) if certificate is None else certificate.explain(),
        "support_vectors": None if support is None else len(support),
    }


def _relevance(model: TableModel) -> dict[str, float]:
    """The columns in the order of their relevance, if the learner has one."""
    relevance = getattr(model.estimator_, "relevance_", None)
    if relevance is None:
        return {}
    order = np.argsort(-relevance, kind="stable")
    return {model.encoder_.feature_names_[place]: float(relevance[place]) for place in order}


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else repr(value)


def process_peak() -> int | None:
    """Return the peak memory of the process in bytes, if the system reports it."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024
