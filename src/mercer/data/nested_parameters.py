"""Parameters of what a parameter holds, by scikit-learn's names: ``kernel__length_scale``, ``loss__delta``.

Kernels, losses and solvers are values that never change, so their parameters are set by a changed copy in their place.
The functions are methods of estimators and maps.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from mercer._errors import ParameterError

_EXAMPLES = {"kernel": "mercer.kernels.RBF(1.0)", "solver": "mercer.solvers.SMO()", "loss": "mercer.losses.Huber(1.0)"}


Model = TypeVar("Model", bound=BaseEstimator)


def get_params(self: BaseEstimator, deep: bool = True) -> dict[str, Any]:
    """Return parameters by name.

    Parameters
    ----------
    deep : bool, default=True
        Whether to return those of the kernel, the loss and the solver too, as ``"kernel__length_scale"``.

    Returns
    -------
    dict
    """
    params = dict(BaseEstimator.get_params(self, deep))
    for name, value in list(params.items()) if deep else ():
        params.update({f"{name}__{key}": part for key, part in _fields(value).items()})
    return params


def set_params(self: Model, **params: Any) -> Model:
    """Set parameters.

    Parameters
    ----------
    **params : dict
        By name; ``kernel__NAME`` replaces the kernel by one with another ``NAME``, and ``loss__NAME`` or
        ``solver__NAME`` the loss or the solver, if it is an object.

    Returns
    -------
    self
    """
    known = BaseEstimator.get_params(self, deep=False)
    inside: dict[str, dict[str, Any]] = {}
    for key in list(params):
        name, separator, rest = key.partition("__")
        if separator and name in known:
            inside.setdefault(name, {})[rest] = params.pop(key)
    BaseEstimator.set_params(self, **params)
    for name, changes in inside.items():
        setattr(self, name, _changed(name, getattr(self, name), changes))
    return self


def _fields(value: Any) -> dict[str, Any]:
    """Parameters of a frozen dataclass by name; nothing for what names its own, such as kernels."""
    if isinstance(value, type) or hasattr(value, "get_params") or not dataclasses.is_dataclass(value):
        return {}
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}


def _changed(name: str, value: Any, changes: dict[str, Any]) -> Any:
    """The value of the parameter ``name`` with some of its own parameters replaced.

    ``set_params`` of a kernel returns another kernel; scikit-learn's objects change in place and return themselves.
    """
    if hasattr(value, "set_params") and not isinstance(value, type):
        return value.set_params(**changes)
    known = _fields(value)
    unknown = next((key for key in changes if key not in known), None)
    if unknown is None:
        return dataclasses.replace(value, **changes)
    if known:
        raise ParameterError(f"{value!r} has no parameter {unknown!r}; it has {', '.join(known)}.")
    example = f" such as {_EXAMPLES[name]}" if name in _EXAMPLES else ""
    raise ParameterError(
        f"{name}__{unknown} names a parameter of the {name}, but {name}={value!r} has none; pass a {name} "
        f"object{example}."
    )
