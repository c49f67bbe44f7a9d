"""User-defined kernels, kinds of data, losses, solvers and estimators, and their registration.

A user-defined class works in every learner without registration. Once registered, it can also be saved in model files
and named in kernel expressions and on the command line (``mercer --import my_module fit ...``).

Examples
--------
>>> from dataclasses import dataclass
>>> from mercer.extend import VectorKernel, parameter
>>> @dataclass(frozen=True, repr=False)
... class Triangle(VectorKernel):
...     "1 - t, up to t = 1; positive semi-definite on the line only."
...     length_scale: float = parameter(1.0)
...     statistic = "manhattan_distance"
...     definiteness = "indefinite"
...
...     def value(self, t):
...         return (1 - t).clip(0)
...
...     def derivative(self, t):
...         return -1.0 * (t < 1)
>>> (2 * Triangle(4.0))([[0.0], [1.0]]).tolist()
[[2.0, 1.5], [1.5, 2.0]]

``@register`` above such a class makes it known to ``parse_kernel("2 * Triangle(4.0)")`` and to model files.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from sklearn.base import BaseEstimator, is_classifier, is_regressor

from mercer import _registered, losses
from mercer._errors import DataError, ParameterError
from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.kernels.kernel import PUBLIC, Kernel
from mercer.kernels.own import FeatureKernel, PairKernel, VectorKernel
from mercer.kernels.parameters import number as parameter
from mercer.solvers.svm.solver import BoxSolver

__all__ = [
    "DataError",
    "FeatureKernel",
    "Objects",
    "PairKernel",
    "ParameterError",
    "Strings",
    "VectorKernel",
    "parameter",
    "register",
]

_Class = TypeVar("_Class", bound=type)


@overload
def register(user_class: _Class) -> _Class: ...


@overload
def register(*, model: str) -> Callable[[_Class], _Class]: ...


def register(user_class: Any = None, *, model: str | None = None) -> Any:
    """Make a user-defined class known to model files and the command line, as a decorator or a call.

    The class keeps its name: ``my_module.Cauchy``. A program that loads such a file must register the class first,
    usually by importing the module that defines it. A file never causes an import.

    Parameters
    ----------
    user_class : type
        A :class:`mercer.kernels.Kernel`, a :class:`mercer.losses.Loss` or ``Penalty`` or a
        :class:`mercer.solvers.BoxSolver` (frozen dataclasses, whose fields are stored), a subclass of :class:`Objects`
        for a kind of data, or a scikit-learn-style estimator, whose attributes are stored.
    model : str, optional
        For estimators: the name for ``mercer fit --model``.

    Returns
    -------
    type
        The class itself, unchanged.

    Raises
    ------
    ParameterError
        If the class is not one of these, is abstract, is not a frozen dataclass although it must be, or its name is
        taken.

    Examples
    --------
    >>> register(int)
    Traceback (most recent call last):
        ...
    mercer._errors.ParameterError: register() takes a kernel, a loss, a penalty, a solver, a kind of ...
    """
    if user_class is None:
        return lambda decorated: _register(decorated, model)
    return _register(user_class, model)


def _register(cls: Any, model: str | None) -> Any:
    _check_class(cls)
    name = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
    if model is not None and not (isinstance(model, str) and model and model == model.strip()):
        raise ParameterError(f"model must be the name that mercer fit --model gives, but is {model!r}.")
    tasks = () if model is None else _tasks(cls)
    _check_free(_registered.CLASSES.get(name), cls, f"a class {name!r} is registered")
    if model is not None:
        for task in _registered.MODELS.get(model, ()):
            _check_free(_registered.model_class(model, task), cls, f"there is a model {model!r}")
        _registered.MODELS[model] = dict.fromkeys(tasks, name)
    if issubclass(cls, Kernel):
        _check_free(PUBLIC.get(cls.__name__), cls, f"there is a kernel {cls.__name__!r}")
        PUBLIC[cls.__name__] = cls
    if issubclass(cls, losses.Loss):
        _check_free(losses.loss_named(cls.name), cls, f"there is a loss {cls.name!r}")
        losses.LOSSES[cls.name] = cls
    _registered.CLASSES[name] = cls
    return cls


_BASES = (Kernel, losses.Loss, losses.Penalty, BoxSolver, Objects, BaseEstimator)
_RECORDS = (Kernel, losses.Loss, losses.Penalty, BoxSolver)


def _check_class(cls: Any) -> None:
    known = isinstance(cls, type) and issubclass(cls, _BASES)
    if not known:
        raise ParameterError(
            "register() takes a kernel, a loss, a penalty, a solver, a kind of data or an estimator, "
            f"but got {cls!r}; derive the class from a base of mercer.extend, mercer.losses, mercer.solvers or "
            "sklearn.base."
        )
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise ParameterError(f"{cls.__name__} cannot be registered: it does not define {missing}.")
    own = vars(cls).get("__dataclass_params__")
    if issubclass(cls, _RECORDS) and (own is None or not own.frozen):
        raise ParameterError(
            f"{cls.__name__} must be a frozen dataclass, whose fields a model file holds; write "
            "@dataclass(frozen=True, repr=False) above the class."
        )
    if issubclass(cls, losses.Loss) and not cls.name:
        raise ParameterError(f"{cls.__name__} needs an attribute name, which identifies the loss to learners.")


def _check_free(existing: Any, cls: type, what: str) -> None:
    """Raise if a name is taken by another class; the same class, defined anew, takes its own place."""
    if existing is None or (existing.__module__, existing.__qualname__) == (cls.__module__, cls.__qualname__):
        return
    raise ParameterError(f"{what} already, in {existing.__module__}; give yours another name.")


def _tasks(cls: type) -> tuple[str, ...]:
    """What an estimator learns, as the command line calls it."""
    if not issubclass(cls, BaseEstimator):
        raise ParameterError(f"model= names an estimator, but {cls.__name__} is not one; leave it out.")
    by_task = {"classification": is_classifier(cls()), "regression": is_regressor(cls())}
    tasks = tuple(task for task, learns in by_task.items() if learns)
    if not tasks or "kernel" not in cls().get_params():
        raise ParameterError(
            f"{cls.__name__} cannot be a model of the command line: it must be a classifier or a regressor "
            "(sklearn.base.ClassifierMixin, RegressorMixin) with a parameter kernel."
        )
    return tasks
