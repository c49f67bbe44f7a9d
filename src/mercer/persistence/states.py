"""The check of every rebuilt object of a model file against the statements of its class.

Mercer's classes have statements as an attribute (``_fitted``); those for other packages are in
:mod:`mercer.persistence.foreign`.
"""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator

from mercer._errors import DataError
from mercer._sklearn import check_parameters
from mercer.data.fitted import Statements, check_fitted, statements
from mercer.data.objects import Objects
from mercer.persistence.container import malformed
from mercer.persistence.foreign import stated_elsewhere


def check_state(value: Any) -> None:
    """Raise unless an estimator, a container or a record is as its class states.

    Raises
    ------
    ModelFileError
        The message names the attribute.
    """
    try:
        if isinstance(value, Objects):
            _check_items(value)
        cls: type = type(value)
        foreign = stated_elsewhere(cls)
        schema = statements(cls) if foreign is None else foreign
        if schema is None:
            return
        if isinstance(value, BaseEstimator) and foreign is None:
            _check_names(value, schema)
        with warnings.catch_warnings():
            # Warnings about an invented row would mean nothing.
            warnings.simplefilter("ignore")
            check_fitted(value, schema)
        if isinstance(value, BaseEstimator) and foreign is not None:
            _check_parameters(value)
    except DataError as error:
        malformed(str(error))


def _check_names(model: BaseEstimator, schema: Statements) -> None:
    """Raise if an attribute that code may read is not stated; other attributes that users add are allowed."""
    cls = type(model)
    for name in vars(model).keys() - schema.attributes - model.get_params(deep=False).keys():
        if name.startswith("_") or name.endswith("_") or hasattr(cls, name):
            raise DataError(f"{cls.__name__} has no attribute {name[:60]!r}")


def _check_parameters(model: BaseEstimator) -> None:
    """Raise if scikit-learn would refuse a parameter, which it checks before a fit only."""
    cls = type(model)
    parameters = {name: value for name, value in vars(model).items() if name in signature(cls).parameters}
    try:
        check_parameters(cls, parameters)
    except ValueError as error:
        raise DataError(str(error).removesuffix(".")) from None


def _check_items(rows: Objects) -> None:
    """Raise unless every row has the form that ``read`` returns, on which the loops rely."""
    for number, item in enumerate(rows.items.tolist() if rows.items.ndim == 1 else []):
        read = rows.read(item)
        if read is not item and (type(read) is not type(item) or rows.fingerprint(read) != rows.fingerprint(item)):
            raise DataError(f"row {number} of {rows.kind} is not in the form in which such rows are stored")
    if rows.items.ndim != 1:
        raise DataError(f"the {rows.kind} are not a list of rows")
