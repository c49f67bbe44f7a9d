"""Learners that need all rows at once: their errors for blocks and for collections of Dask."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np
from sklearn.base import is_classifier, is_regressor

from mercer._errors import DataError, ParameterError
from mercer._types import AnyArray, Vector
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask

Method = TypeVar("Method", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def takes_parts(method: Method) -> Method:
    """Mark a method that takes rows in parts itself."""
    method._takes_parts = True  # type: ignore[attr-defined]
    return method


def refuse_parts(cls: Class) -> Class:
    """Let public methods of a class that take rows ``X`` raise ParameterError for rows in parts; returns the class.

    Methods that :func:`takes_parts` has marked stay as they are. ``score`` takes rows in parts where ``predict`` does.
    """
    score: Any = getattr(cls, "score", None)
    if hasattr(getattr(cls, "predict", None), "_answers_parts") and not hasattr(score, "_takes_parts"):
        cls.score = takes_parts(_scoring(score))  # type: ignore[attr-defined]
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if name.startswith("_") or not inspect.isfunction(method) or hasattr(method, "_takes_parts"):
            continue
        own = name in vars(cls) or method.__module__.partition(".")[0] == __name__.partition(".")[0]
        if own and "X" in inspect.signature(method).parameters:
            setattr(cls, name, takes_parts(_refusing(method)))
    return cls


def answers_parts(method: Method) -> Method:
    """Mark a method that has an answer for each row of rows in parts."""
    method._answers_parts = True  # type: ignore[attr-defined]
    return takes_parts(method)


def _scoring(method: Callable[..., Any]) -> Callable[..., Any]:
    """A score that reads targets and weights from blocks, which have their own, and from collections of Dask."""

    @functools.wraps(method)
    def score(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        if isinstance(X, Blocks) and y is None:
            y, sample_weight = _targets_of(type(self).__name__, X)
        if not is_dask(X):
            try:
                return method(self, X, y, sample_weight)
            except OverflowError as error:
                raise DataError(
                    "y or sample_weight holds a whole number with too many digits for a float; divide it by a number."
                ) from error
        sides: tuple[Any, Any] = (y, sample_weight)
        y, sample_weight = (np.asarray(side.compute()) if is_dask(side) else side for side in sides)
        answers, answered = self.predict(X).compute(), copy.copy(self)
        # The rows stay where they are.
        answered.predict = lambda rows: answers
        return method(answered, X, y, sample_weight)

    return score


def _targets_of(name: str, blocks: Blocks) -> tuple[AnyArray, Vector | None]:
    """The targets and the weights of all rows, in one pass."""
    sides = [(y, sample_weight) for _, y, sample_weight in blocks]
    y, weights = ([part for part in side if part is not None] for side in zip(*sides, strict=True))
    if not y:
        raise DataError(f"{name}.score needs targets, and {blocks!r} has none; name them with target=..., or pass y.")
    return np.concatenate(y), np.concatenate(weights) if weights else None


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    # Before the arguments are bound: blocks have targets of their own, so that y may be left out.
    @functools.wraps(method)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        X = arguments[1] if len(arguments) > 1 else options.get("X")
        if isinstance(X, Blocks) or is_dask(X):
            _refuse(arguments[0], method.__name__, X)
        return method(*arguments, **options)

    return wrapper


def _refuse(learner: Any, method: str, X: Any) -> NoReturn:
    name, blocks = type(learner).__name__, isinstance(X, Blocks)
    what = repr(X) if blocks else f"a {type(X).__name__} of Dask"
    own = "blocks" if blocks else "mercer.Blocks.from_dask(X, y)"
    if method.startswith(("fit", "partial_fit", "certificate")):
        ways = [f"a sample of the rows (X, y, sample_weight = {own}.sample(10_000))"]
        if hasattr(learner, "partial_fit"):
            ways.append(f"one block after the other (model.partial_fit(X, y) for X, y, sample_weight in {own})")
        other = "KernelLogisticRegression" if is_classifier(learner) else "KernelRidge" if is_regressor(learner) else ""
        instead = f'; or use mercer.{other}(approximation="nystroem"), which reads rows in parts' if other else ""
        raise ParameterError(
            f"{name}.{method} needs arrays, but X is {what}, whose rows come in parts. "
            f"Pass {' or '.join(ways)}{instead}."
        )
    raise ParameterError(
        f"{name}.{method} needs arrays, but X is {what}, whose rows come in parts. Call it for one block after the "
        f"other: [model.{method}(X) for X, y, sample_weight in {own}]."
    )
