"""The check of every object of a model file once it is rebuilt, against what its class states.

Mercer's classes state it beside themselves (``_fitted``), those of other packages in :mod:`mercer.persistence.foreign`.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator

from mercer._errors import DataError
from mercer.data.fitted import Statements, check_fitted, statements
from mercer.data.objects import Objects
from mercer.persistence.container import malformed
from mercer.persistence.foreign import stated_elsewhere


def check_state(value: Any) -> None:
    """Raise unless an estimator, a container or a record is what its class states.

    Raises
    ------
    ModelFileError
        With the attribute at fault.
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
            # Of a row that is made up there is nothing to tell.
            warnings.simplefilter("ignore")
            check_fitted(value, schema)
    except DataError as error:
        malformed(str(error))


def _check_names(model: BaseEstimator, schema: Statements) -> None:
    """Raise if there is an attribute that is not stated and that code may look at; notes of a user are not."""
    cls = type(model)
    for name in vars(model).keys() - schema.attributes - model.get_params(deep=False).keys():
        if name.startswith("_") or name.endswith("_") or hasattr(cls, name):
            raise DataError(f"{cls.__name__} has no attribute {name[:60]!r}")


def _check_items(rows: Objects) -> None:
    """Raise unless every row is in the form that reading it gives, which is what loops rely on."""
    for number, item in enumerate(rows.items.tolist() if rows.items.ndim == 1 else []):
        read = rows.read(item)
        if read is not item and (type(read) is not type(item) or rows.fingerprint(read) != rows.fingerprint(item)):
            raise DataError(f"row {number} of {rows.kind} is not in the form in which such rows are stored")
    if rows.items.ndim != 1:
        raise DataError(f"the {rows.kind} are not a list of rows")
