"""``mercer fit``: from a file to a model file."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from mercer import persistence
from mercer._errors import DataError, MercerError, MercerWarning, ParameterError
from mercer.cli.files import check_output
from mercer.cli.options import MODELS, FitOptions, parse_settings
from mercer.cli.plain_features import features
from mercer.cli.scores import baseline_scores, scores
from mercer.cli.show import Printer
from mercer.data.encoding import TableEncoder
from mercer.data.readers import read_table
from mercer.data.roles import VERBATIM
from mercer.data.schema import Schema
from mercer.data.table import Table, listing, nearest
from mercer.data.target import Target, read_target
from mercer.engine.memory import budget, describe, track
from mercer.engine.settings import config
from mercer.engine.threads import one_blas_thread
from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor
from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression
from mercer.estimators.kernel_neighbors import KernelNeighborsClassifier, KernelNeighborsRegressor
from mercer.estimators.kernel_ordinal_regression import KernelOrdinalRegression
from mercer.estimators.kernel_perceptron import KernelPerceptron
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.nu_svr import NuSVR
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.estimators.table import TableModel
from mercer.estimators.table_kernels import columns_of, default_kernel, place
from mercer.kernels import RBF, Kernel
from mercer.kernels.convert import NAMES
from mercer.kernels.parse import parse_kernel

_MAKERS: dict[str, Any] = {
    "svc": SVC, "nu-svc": NuSVC, "logistic": KernelLogisticRegression, "ordinal": KernelOrdinalRegression,
    "gpc": GaussianProcessClassifier, "perceptron": KernelPerceptron, "ridge": KernelRidge, "svr": SVR,
    "nu-svr": NuSVR,
}  # fmt: skip
# Models for both tasks.
_MAKERS_BY_TASK: dict[str, dict[str, Any]] = {
    "gp": {"classification": GaussianProcessClassifier, "regression": GaussianProcessRegressor},
    "neighbors": {"classification": KernelNeighborsClassifier, "regression": KernelNeighborsRegressor},
}
# Where the search for the variance of the noise starts, of a target whose variance is 1.
_NOISE = 0.1
# Factors of the default gamma = 1 / columns.
_WIDTHS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
_ROWS_FOR_PENALTY = 1000
_MANY_ROWS = 50_000


@dataclass(frozen=True)
class _Job:
    """All that a fit needs, read and checked: the columns, the target, the schema, and the rows of either part.

    ``default_kernel`` is the one for the roles of the columns, where none was asked for.
    """

    columns: Any
    target: Target
    schema: Schema
    default_kernel: Kernel | None
    train: np.ndarray
    test: np.ndarray

    def rows(self, chosen: np.ndarray) -> Any:
        """Some rows of the columns."""
        return self.columns.iloc[chosen] if hasattr(self.columns, "iloc") else self.columns[chosen]


def fit(options: FitOptions) -> None:
    """Read, encode, hold out, fit, score, print, and write the model."""
    begun = time.perf_counter()
    out = options.out or Path(_stem(options.data) + ".mercer")
    check_output(out, [options.data])
    parameters = _parameters(options)
    printer = Printer(options.quiet, options.json)
    with config(memory=options.memory, n_jobs=options.n_jobs):
        table = _read(options)
        job = _prepare(table, options, parameters)
        model = TableModel(
            _estimator(options.model, job.target.task, parameters, options.seed), options.normalize, options.impute,
            job.target.name, job.schema.roles or None,
        )  # fmt: skip
        report = _plan(job, options)
        printer.planned(report)
        printer.say(_announcement(len(job.train)), "dim")
        chosen = _choose_penalty(model, job, parameters, options.seed)
        started = time.perf_counter()
        with track() as account, printer.progress():
            _train(model, job, options)
        seconds = time.perf_counter() - started
        if job.default_kernel is not None:
            said = "the kernel, by default for such columns; or give one by --kernel"
            chosen = said if chosen is None else f"{said}; {chosen}"
        report.update(_outcome(model, chosen))
        report["seconds"] = {"fit": seconds}
        report["peak_bytes"] = account.peak
        report["scores"] = _scores(model, job)
        report["seconds"]["all"] = time.perf_counter() - begun
        report["process_peak_bytes"] = _process_peak()
        model.report_ = report
        persistence.save(model, out)
    printer.fitted({**report, "file": str(out), "file_bytes": out.stat().st_size})


def _train(model: TableModel, job: _Job, options: FitOptions) -> None:
    try:
        model.fit(job.rows(job.train), job.target.values[job.train], schema=job.schema)
    except (TypeError, ValueError) as error:
        # A value of --set that the checks of the estimator do not foresee ends in an error of Python or scikit-learn.
        if isinstance(error, MercerError) or not options.settings:
            raise
        given = ", ".join(options.settings)
        raise ParameterError(f"{type(model.estimator).__name__} cannot be fitted with {given}: {error}") from error


def _announcement(n: int) -> str:
    """What the fit has before it; a matrix that exceeds the budget is worked on in parts, or refused, by the solver."""
    cost = f"Fitting on {n} rows (kernel matrix {describe(8.0 * n * n)}, memory budget {describe(budget())}) ..."
    if n <= _MANY_ROWS:
        return cost
    return f"{cost}\nThe time grows with the square of the rows, or faster, and may be hours; Ctrl-C ends it."


def _stem(data: str) -> str:
    return data.removeprefix("sample:") if data.startswith("sample:") else Path(data).name.split(".")[0] or "model"


def _parameters(options: FitOptions) -> dict[str, Any]:
    """The parameters of the estimator that the command line sets, as far as they can be read without the data."""
    if options.model is not None and options.model not in MODELS:
        near = nearest(options.model, MODELS, 1)
        offer = f"did you mean {near[0]}? " if near else ""
        raise ParameterError(f"there is no model {options.model!r}; {offer}the models are {', '.join(MODELS)}.")
    if not 0 <= options.test_size < 1:
        raise ParameterError(f"--test-size must be a share from 0 up to but not 1, and is {options.test_size:g}.")
    parameters = parse_settings(options.settings)
    if "kernel" in parameters:
        raise ParameterError("the kernel is set by --kernel, not by --set.")
    if options.kernel is not None:
        named = options.kernel.strip()
        parameters["kernel"] = named if named in NAMES else parse_kernel(named)
    if options.n_jobs is not None:
        parameters["n_jobs"] = options.n_jobs
    return parameters


def _estimator(name: str | None, task: str, parameters: Mapping[str, Any], seed: int) -> Any:
    """The estimator that ``--model`` or else the task names, with its parameters.

    Raises
    ------
    ParameterError
        If the model does not fit the task, or has no parameter of a name.
    """
    name = name or next(model for model, tasks in MODELS.items() if task in tasks)
    if task not in MODELS[name]:
        raise ParameterError(
            f"the model {name} is for {' or '.join(MODELS[name])}, and the task is {task}; change --model or --task."
        )
    estimator = (_MAKERS_BY_TASK[name][task] if name in _MAKERS_BY_TASK else _MAKERS[name])()
    known = [parameter for parameter in estimator.get_params(deep=False) if parameter != "kernel"]
    for parameter in parameters:
        if parameter not in known and parameter != "kernel":
            near = nearest(parameter, known, 2)
            offer = f"did you mean {' or '.join(near)}?" if near else f"its parameters are {', '.join(known)}."
            raise ParameterError(f"{type(estimator).__name__} has no parameter {parameter!r}; {offer}")
    # KernelRidge alone is linear by default, as in scikit-learn; the comparison with a linear model stands below.
    # A Gaussian process searches for the width, and for the size of its latent function.
    defaults: dict[str, Any] = {"kernel": 1.0 * RBF(1.0) if name in ("gp", "gpc") else "rbf"}
    if isinstance(estimator, GaussianProcessRegressor):
        # Without noise it would go through every value of the target.
        defaults["noise"] = _NOISE
    if isinstance(estimator, KernelPerceptron):
        # What it learns depends on the order of the rows.
        defaults["random_state"] = seed
    return estimator.set_params(**{**defaults, **parameters})


def _read(options: FitOptions) -> Table:
    """The table, without what is dropped, and with the roles of its columns."""
    given = options.target
    if given is not None and given in options.drop:
        raise ParameterError(f"the target {given!r} cannot be left out by --drop; remove one of the two.")
    if given is not None and given in options.roles:
        raise ParameterError(f"the target {given!r} cannot be a --{options.roles[given]} too; remove one of the two.")
    verbatim = [name for name, role in options.roles.items() if role in VERBATIM]
    return read_table(options.data, verbatim).drop(options.drop).with_roles(options.roles)


def _prepare(table: Table, options: FitOptions, parameters: dict[str, Any]) -> _Job:
    """Check all that was read; the kernel among the parameters is told its columns, or chosen by them."""
    columns, values, name = table.split(options.target)
    task = options.task
    if task is None and options.model is not None and len(MODELS[options.model]) == 1:
        task = MODELS[options.model][0]
    target = read_target(values, name, task, table.locate)
    encoder = TableEncoder(options.normalize, options.impute, table.roles)
    schema = encoder.check(columns, source=table.source, locate=table.locate)
    by_default = None if "kernel" in parameters else default_kernel(schema)
    if by_default is not None:
        parameters["kernel"] = 1.0 * by_default if options.model in ("gp", "gpc") else by_default
    kernel = place(parameters.get("kernel", "rbf"), schema)
    schema = schema.only(columns_of(kernel, schema), "the kernel does not compare it")
    return _Job(columns, target, schema, by_default, *_hold_out(target, options.test_size, options.seed))


def _hold_out(target: Target, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the training and of the held-out part; of every class the same share is held out."""
    n = len(target.values)
    rows = np.arange(n)
    if share == 0:
        return rows, rows[:0]
    if target.task == "regression":
        held = int(np.ceil(share * n))
        if n - held < 2:
            raise DataError(
                f"{n} rows are too few to hold out a share of {share:g} and fit on two or more; add rows, change "
                "--test-size, or pass --test-size 0 for no score."
            )
        train, test = train_test_split(rows, test_size=held, random_state=seed)
        return np.sort(train), np.sort(test)
    _, codes, counts = np.unique(target.values, return_inverse=True, return_counts=True)
    single = counts[codes] == 1
    several, classes = rows[~single], int((counts > 1).sum())
    held = int(np.ceil(share * len(several)))
    if classes == 0 or held < classes or len(several) - held < classes:
        raise DataError(
            f"{n} rows of {len(counts)} classes are too few to hold out a share of {share:g} with every "
            "class in both parts; add rows, change --test-size, or pass --test-size 0 for no score."
        )
    if single.any():
        warnings.warn(
            f"classes of {target.name!r} with one row only stay in the training part: "
            f"{listing(target.values[single])}.",
            MercerWarning,
            stacklevel=2,
        )
    train, test = train_test_split(several, test_size=held, random_state=seed, stratify=codes[several])
    return np.sort(np.concatenate([train, rows[single]])), np.sort(test)


def _choose_penalty(model: TableModel, job: _Job, parameters: Mapping[str, Any], seed: int) -> str | None:
    """Set what the user leaves open of a ridge regression, by exact leave-one-out; says what it did.

    That is the penalty, and the width of the default kernel. For each width one factorisation serves all penalties, so
    that the choice on at most a thousand rows takes about as long as one fit on a few thousand.
    """
    if not isinstance(model.estimator, KernelRidge) or "alpha" in parameters:
        return None
    count = min(_ROWS_FOR_PENALTY, len(job.train))
    some = np.sort(np.random.default_rng(seed).choice(job.train, count, replace=False))
    X, y = job.rows(some), job.target.values[some]
    if np.ptp(y) == 0:
        return None
    widths: list[dict[str, float]] = [{}]
    if not {"kernel", "gamma"} & set(parameters):
        widths = [{"gamma": factor / job.schema.encoded_columns} for factor in _WIDTHS]
    tried: list[tuple[float, dict[str, float]]] = []
    # On matrices this small several threads gain nothing, and on a busy machine they wait for one another.
    with one_blas_thread():
        for width in widths:
            candidate = clone(model)
            candidate.estimator.set_params(alpha="loo", **width)
            found = candidate.fit(X, y, schema=job.schema).estimator_
            tried.append((float(found.path_.loo.min()), {"alpha": found.alpha_, **width}))
    best = min(tried, key=lambda pair: pair[0])[1]
    model.estimator.set_params(**best)
    words = ", ".join(f"{name}={value:.4g}" for name, value in best.items())
    return f"{words} by exact leave-one-out on {count} training rows; or give them by --set"


def _scores(model: TableModel, job: _Job) -> dict[str, dict[str, float]]:
    if not len(job.test):
        return {}
    task, y = job.target.task, job.target.values
    held = job.rows(job.test)
    mine = scores(task, y[job.test], model.predict(held))
    rows = model.encoder_.transform(job.rows(job.train)), model.encoder_.transform(held)
    X, X_test, what = features(*rows)
    return {
        type(model.estimator_).__name__: mine,
        **baseline_scores(task, X, y[job.train], X_test, y[job.test], what),
    }


def _plan(job: _Job, options: FitOptions) -> dict[str, Any]:
    """What was found in the data, as plain values; with the outcome, kept in the model file for ``mercer inspect``."""
    schema = job.schema
    return {
        "data": options.data if options.data.startswith("sample:") else Path(options.data).name,
        "rows": {"fitted": len(job.train), "held_out": len(job.test)},
        "columns": schema.describe(),
        "left_out": dict(schema.left_out),
        "target": job.target.name,
        "task": job.target.task,
        "why": job.target.why,
        "normalize": options.normalize,
        "impute": options.impute,
        "encoded_columns": schema.encoded_columns,
        "roles": schema.roles,
        "seed": options.seed,
        "versions": {"mercer": importlib.metadata.version("mercer"), "python": platform.python_version()},
    }


def _outcome(model: TableModel, chosen: str | None) -> dict[str, Any]:
    """What the fit came to, as plain values."""
    estimator = model.estimator_
    given = {k: v for k, v in estimator.get_params(deep=False).items() if k not in ("kernel", "n_jobs")}
    if isinstance(given.get("alpha"), str):
        chosen = f"alpha={estimator.alpha_:.4g} by {given['alpha']} on all training rows"
    if isinstance(estimator, GaussianProcessRegressor) and estimator.noise_ is not None:
        chosen = f"kernel, and noise={estimator.noise_:.4g} of the target's variance, by the evidence"
    if isinstance(estimator, KernelOrdinalRegression):
        order = " < ".join(map(str, estimator.classes_.tolist()))
        chosen = f"the order {order}, which is that of sorting" if estimator.classes is None else f"the order {order}"
    support = getattr(estimator, "support_", None)
    certificate = getattr(estimator, "certificate_", None)
    return {
        "model": type(estimator).__name__,
        "kernel": repr(model.kernel_),
        "parameters": {name: _plain(value) for name, value in given.items()},
        "chosen": chosen,
        "classes": [_plain(label) for label in getattr(model, "classes_", [])],
        "certificate": None if certificate is None else certificate.as_dict(),
        "certificate_text": _without_certificate(estimator) if certificate is None else certificate.explain(),
        "support_vectors": None if support is None else len(support),
    }


def _without_certificate(estimator: Any) -> str:
    """What stands in the place of a certificate where nothing was minimised."""
    if isinstance(estimator, KernelPerceptron):
        made = estimator.mistakes_
        return (
            f"{made.sum()} updates in {len(made)} passes, {made[-1]} of them in the last; a perceptron minimises "
            "nothing, so there is no gap to report."
        )
    return "The nearest rows are found exactly; nothing is minimised, so there is no gap to report."


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else repr(value)


def _process_peak() -> int | None:
    """The most memory that the process has held, in bytes, where the system tells."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024
