"""The learners that ``--model`` names, with the parameters of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mercer._errors import ParameterError
from mercer._registered import MODELS, CommandLine, command_line_of, model_class
from mercer.cli.checks import wrong_task
from mercer.data.words import closest_names
from mercer.kernels import RBF


def default_model(task: str) -> str:
    """Return the default model of a task.

    >>> default_model("regression")
    'ridge'
    """
    return next(model for model, tasks in MODELS.items() if task in tasks)


def usage(name: str | None, task: str) -> CommandLine:
    """Return how the command line uses the learner that ``--model``, or by default the task, names.

    Raises
    ------
    ParameterError
        If the model does not fit the task.
    """
    name = name or default_model(task)
    if task not in MODELS[name]:
        raise wrong_task(name, task)
    return command_line_of(model_class(name, task))


def learner(name: str | None, task: str, parameters: Mapping[str, Any], seed: int) -> Any:
    """Return the estimator that ``--model``, or by default the task, names, with its parameters.

    Raises
    ------
    ParameterError
        If the model does not fit the task, or lacks a parameter.
    """
    use = usage(name, task)
    estimator = model_class(name or default_model(task), task)()
    names = [parameter for parameter in estimator.get_params(deep=False) if parameter != "kernel"]
    for parameter in parameters:
        if parameter not in names and parameter != "kernel":
            matches = closest_names(parameter, names, 2)
            offer = f"did you mean {' or '.join(matches)}?" if matches else f"its parameters are {', '.join(names)}."
            raise ParameterError(f"{type(estimator).__name__} has no parameter {parameter!r}; {offer}")
    # KernelRidge alone is linear by default, as in scikit-learn; the comparison with a linear model stands below.
    defaults: dict[str, Any] = {"kernel": 1.0 * RBF(1.0) if use.scaled else "rbf", **use.parameters}
    if use.seeded:
        defaults["random_state"] = seed
    return estimator.set_params(**{**defaults, **parameters})
