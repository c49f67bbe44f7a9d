"""The learners that ``--model`` names, with the parameters of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mercer
from mercer._errors import ParameterError
from mercer._registered import MODELS as REGISTERED
from mercer.cli.checks import wrong_task
from mercer.cli.options import MODELS
from mercer.data.words import closest_names
from mercer.kernels import RBF

# Looked up in the package when they are needed, so that a command loads the module of its own learner alone.
_CLASSES = {
    "svc": "SVC", "nu-svc": "NuSVC", "logistic": "KernelLogisticRegression", "ordinal": "KernelOrdinalRegression",
    "gpc": "GaussianProcessClassifier", "perceptron": "KernelPerceptron", "ridge": "KernelRidge", "svr": "SVR",
    "nu-svr": "NuSVR",
}  # fmt: skip
# Models for both tasks.
_CLASSES_BY_TASK = {
    "gp": {"classification": "GaussianProcessClassifier", "regression": "GaussianProcessRegressor"},
    "neighbors": {"classification": "KernelNeighborsClassifier", "regression": "KernelNeighborsRegressor"},
}
# Where the search for the variance of the noise starts, of a target whose variance is 1.
_NOISE = 0.1


def default_model(task: str) -> str:
    """The model of a task where none is named.

    >>> default_model("regression")
    'ridge'
    """
    return next(model for model, tasks in MODELS.items() if task in tasks)


def learner(name: str | None, task: str, parameters: Mapping[str, Any], seed: int) -> Any:
    """The estimator that ``--model`` or else the task names, with its parameters.

    Raises
    ------
    ParameterError
        If the model does not fit the task, or has no parameter of a name.
    """
    name = name or default_model(task)
    if task not in MODELS[name]:
        raise wrong_task(name, task)
    if name in REGISTERED:
        estimator = REGISTERED[name][0]()
    else:
        estimator = getattr(mercer, _CLASSES_BY_TASK[name][task] if name in _CLASSES_BY_TASK else _CLASSES[name])()
    known = [parameter for parameter in estimator.get_params(deep=False) if parameter != "kernel"]
    for parameter in parameters:
        if parameter not in known and parameter != "kernel":
            near = closest_names(parameter, known, 2)
            offer = f"did you mean {' or '.join(near)}?" if near else f"its parameters are {', '.join(known)}."
            raise ParameterError(f"{type(estimator).__name__} has no parameter {parameter!r}; {offer}")
    # KernelRidge alone is linear by default, as in scikit-learn; the comparison with a linear model stands below.
    # A Gaussian process searches for the width, and for the size of its latent function.
    defaults: dict[str, Any] = {"kernel": 1.0 * RBF(1.0) if name in ("gp", "gpc") else "rbf"}
    if type(estimator).__name__ == "GaussianProcessRegressor":
        # Without noise it would go through every value of the target.
        defaults["noise"] = _NOISE
    if name == "perceptron":
        # What it learns depends on the order of the rows.
        defaults["random_state"] = seed
    return estimator.set_params(**{**defaults, **parameters})
