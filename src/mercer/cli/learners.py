"""The learners that ``--model`` names, with the parameters of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._registered import MODELS, CommandLine, command_line_of, model_class
from mercer.cli.checks import check_searched, wrong_task
from mercer.cli.options import FitOptions, parse_settings
from mercer.data.roles import ROLES
from mercer.data.table import Table
from mercer.data.target import Target, outlier_words, outlying, read_target
from mercer.data.words import closest_names
from mercer.kernels import RBF
from mercer.kernels.convert import NAMES
from mercer.kernels.parse import parse_kernel

AUTO = "auto"
"""The model that reads tables itself."""


def default_model(task: str) -> str:
    """Return the model of a task where ``auto`` is not used.

    >>> default_model("regression")
    'ridge'
    """
    return next(model for model, tasks in MODELS.items() if task in tasks and model != AUTO)


def requested_task(options: FitOptions) -> tuple[str | None, str]:
    """Return the task that ``--task`` or the model asks for, None if neither does, and why it is this one, in words.

    >>> requested_task(FitOptions("a.csv", model="svr"))
    ('regression', 'that is what --model svr learns')
    >>> requested_task(FitOptions("a.csv", model="gp"))
    (None, '')
    """
    if options.task is not None:
        return options.task, "that was asked for"
    tasks = list(MODELS[options.model]) if options.model is not None else []
    return (tasks[0], f"that is what --model {options.model} learns") if len(tasks) == 1 else (None, "")


def target_of(values: Any, name: str, options: FitOptions, locate: Callable[[int], str]) -> Target:
    """Read the target of a fit, and warn of one that all predictions will follow, with its place in the file.

    Raises
    ------
    DataError
        If it cannot be learned.
    """
    task, asked = requested_task(options)
    target = read_target(values, name, task, locate, asked)
    found = outlying(target.values) if target.task == "regression" else None
    if found is not None:
        row, distance = found
        warn_user(
            f"the target {name!r} is {target.values[row]:g} in {locate(row)}, {outlier_words(distance)} Correct it, or "
            "leave that row out.",
            MercerWarning,
        )
    return target


def parameters_of(options: FitOptions) -> dict[str, Any]:
    """Return the parameters of the estimator that the command sets, as far as they can be read without the data."""
    parameters = parse_settings(options.settings)
    if options.tune is not None:
        check_searched(parameters)
    given = {"n_jobs": options.n_jobs, "kernel": None if options.kernel is None else kernel_of(options.kernel)}
    if options.approximation is not None:
        checkpoint = None if options.checkpoint is None else str(options.checkpoint)
        given |= {"approximation": options.approximation, "random_state": options.seed, "checkpoint": checkpoint}
        given["n_landmarks"] = options.landmarks
    return parameters | {name: value for name, value in given.items() if value is not None}


def kernel_of(text: str) -> Any:
    """Return the kernel that ``--kernel`` names: its name, or a kernel."""
    named = text.strip()
    return named if named in NAMES else parse_kernel(named)


def choose_model(options: FitOptions, table: Table, task: str, parameters: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the model for a table and a task, and why, in words; empty if the user chose it.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"age": [20.0, None]}), "a table")
    >>> choose_model(FitOptions("a.csv"), table, "regression", {})
    ('auto', 'the default for a table')
    >>> choose_model(FitOptions("a.csv", kernel="rbf"), table, "regression", {"kernel": "rbf"})
    ('ridge', 'the default for a regression with --kernel')
    """
    if options.model is not None:
        return options.model, ""
    if options.tune is not None:
        return default_model(task), f"the default for a {task} by a search"
    why = _why_not_auto(options, table, task, parameters)
    if not why:
        return AUTO, "the default for a table"
    return default_model(task), f"the default for a {task} {why}"


def _why_not_auto(options: FitOptions, table: Table, task: str, parameters: Mapping[str, Any]) -> str:
    """What ``auto`` cannot use, in words that follow the name of the task; empty if there is nothing."""
    if table.is_sparse:
        return "on numbered columns"
    if table.roles:
        return f"on {' and '.join(dict.fromkeys(ROLES[role].kind for role in table.roles.values()))}"
    given = {
        "kernel": options.kernel is not None,
        "impute": options.impute is not None,
        "normalize": options.normalize != "standard",
    }
    for option, is_given in given.items():
        if is_given:
            return f"with --{option}"
    settings = [name for name in parameters if name != "n_jobs"]
    # Asked last, because it loads the class.
    own = model_class(AUTO, task)().get_params() if settings else ()
    return next((f"with --set {name}" for name in settings if name not in own), "")


def usage(name: str, task: str) -> CommandLine:
    """Return how the command line uses the learner of that name.

    Raises
    ------
    ParameterError
        If the model does not fit the task.
    """
    if task not in MODELS[name]:
        raise wrong_task(name, task)
    return command_line_of(model_class(name, task))


def learner(name: str, task: str, parameters: Mapping[str, Any], seed: int) -> Any:
    """Return the estimator of that name, with its parameters.

    Raises
    ------
    ParameterError
        If the model does not fit the task, or lacks a parameter.
    """
    use = usage(name, task)
    estimator = model_class(name, task)()
    if use.raw and "kernel" in parameters:
        raise ParameterError(
            f"the model {name} learns its kernel itself; leave --kernel out, or choose another model, such as "
            f"--model {default_model(task)}."
        )
    names = [parameter for parameter in estimator.get_params(deep=False) if parameter != "kernel"]
    for parameter in parameters:
        if parameter not in names and parameter != "kernel":
            matches = closest_names(parameter, names, 2)
            offer = f"did you mean {' or '.join(matches)}?" if matches else f"its parameters are {', '.join(names)}."
            raise ParameterError(f"{type(estimator).__name__} has no parameter {parameter!r}; {offer}")
    defaults: dict[str, Any] = dict(use.parameters)
    if not use.raw:
        # KernelRidge alone is linear by default, as in scikit-learn; the comparison with a linear model stands below.
        defaults = {"kernel": 1.0 * RBF(1.0) if use.scaled else "rbf", **defaults}
    if use.seeded:
        defaults["random_state"] = seed
    return estimator.set_params(**{**defaults, **parameters})
