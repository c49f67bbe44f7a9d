"""What the command line knows of estimators before it loads them, and what users have registered.

Estimators state in their class (``_command_line``) how the command line uses them. ``MODELS`` is the index of them, so
that a list of the models loads none of them; a test compares the two. :func:`mercer.extend.register` adds
user-defined classes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

CLASSES: dict[str, type] = {}
"""User-defined classes by the name that a model file gives them: top-level package and class."""

_CLASSIFICATION, _REGRESSION = "classification", "regression"
MODELS: dict[str, dict[str, str]] = {
    "auto": {_CLASSIFICATION: "mercer.TabularClassifier", _REGRESSION: "mercer.TabularRegressor"},
    "svc": {_CLASSIFICATION: "mercer.SVC"},
    "nu-svc": {_CLASSIFICATION: "mercer.NuSVC"},
    "logistic": {_CLASSIFICATION: "mercer.KernelLogisticRegression"},
    "ordinal": {_CLASSIFICATION: "mercer.KernelOrdinalRegression"},
    "gpc": {_CLASSIFICATION: "mercer.GaussianProcessClassifier"},
    "perceptron": {_CLASSIFICATION: "mercer.KernelPerceptron"},
    "ridge": {_REGRESSION: "mercer.KernelRidge"},
    "svr": {_REGRESSION: "mercer.SVR"},
    "nu-svr": {_REGRESSION: "mercer.NuSVR"},
    "gp": {_REGRESSION: "mercer.GaussianProcessRegressor", _CLASSIFICATION: "mercer.GaussianProcessClassifier"},
    "neighbors": {_REGRESSION: "mercer.KernelNeighborsRegressor", _CLASSIFICATION: "mercer.KernelNeighborsClassifier"},
}
"""Estimators by the name that ``--model`` gives them and the task.

``auto`` is the default for tables of numbers, categories, dates and text; for other data, and where an option is given
that ``auto`` does not have, it is the first other model of the task.
"""


@dataclass(frozen=True)
class CommandLine:
    """How the command line uses an estimator, stated as the class attribute ``_command_line``.

    Parameters
    ----------
    models : str
        Its names for ``--model``.
    parameters : dict, optional
        Defaults of the command line that are not those of the constructor.
    seeded : bool, default=False
        Whether ``random_state`` is the seed of the command.
    scaled : bool, default=False
        Whether the default kernel gets a factor, since the fit searches for it.
    left_open : {"C", "alpha"}, optional
        The parameter that is chosen from the data if it is not given, C by folds and alpha by leave-one-out.
    pair_bytes : int, optional
        Memory for each pair of rows; None for learners that work on parts of the kernel matrix.
    most_rows : int, optional
        With more rows the learner, chosen by default, takes a sample.
    frugal : str, default=""
        The model for the same task whose memory does not grow with the square of the rows, for learners with
        ``pair_bytes`` that do not take a sample by themselves.
    low_rank : bool, default=False
        Whether a linear kernel in few columns needs no kernel matrix.
    advised : bool, default=True
        Whether advice of a simpler kernel keeps the learner.
    raw : bool, default=False
        Whether the learner encodes the columns of a table itself, whose kinds are its parameter ``kinds``.
    choice : callable, optional
        What the fit chose, in words; None for nothing.
    without_certificate : callable, optional
        What is reported in place of a certificate where nothing was minimised.
    """

    models: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    scaled: bool = False
    left_open: Literal["C", "alpha"] | None = None
    pair_bytes: int | None = None
    most_rows: int | None = None
    frugal: str = ""
    low_rank: bool = False
    advised: bool = True
    raw: bool = False
    choice: Callable[[Any], str | None] = lambda _: None
    without_certificate: Callable[[Any], str] = lambda model: (
        f"{type(model).__name__} gives none: it has no attribute certificate_."
    )


def model_class(model: str, task: str) -> Any:
    """The estimator that a model stands for; its module is loaded, and no other one."""
    name = MODELS[model][task]
    return CLASSES.get(name) or getattr(importlib.import_module("mercer"), name.removeprefix("mercer."))


def search_without_grid() -> Any:
    """The class :class:`~mercer.KernelSearchCV`, loaded now.

    Learners whose parameter is ``"cv"`` call the search, which stands on them, by its public name.
    """
    return importlib.import_module("mercer").KernelSearchCV


def estimate_of(model: Any, X: Any) -> Any:
    """What :func:`mercer.estimate` returns, which stands on the learners."""
    return importlib.import_module("mercer").estimate(model, X)


def command_line_of(cls: type) -> CommandLine:
    """What an estimator states of its use on the command line."""
    command_line: CommandLine = getattr(cls, "_command_line", CommandLine())
    return command_line
