"""What annotations state, however they are written."""

from __future__ import annotations

import types
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from mercer._types import Array, Integers, Vector
from mercer.data.annotations import statement_of
from mercer.data.statements import Arrays, Maybe, Number

_Scalar = TypeVar("_Scalar", bound=np.generic)
# As ``type NDArray[T] = ...`` of Python 3.12 makes them.
_ALIAS = types.SimpleNamespace(__value__=np.ndarray[Any, np.dtype[_Scalar]])
_PLAIN = types.SimpleNamespace(__value__=float)


@pytest.mark.parametrize(
    ("hint", "statement"),
    [
        (Vector, Arrays(kinds="f")),
        (NDArray[np.int8], Arrays(kinds="i")),
        (NDArray[np.bool_] | None, Maybe(Arrays(kinds="b"))),
        (NDArray[Any], Arrays(kinds=None)),
        (Array, Arrays(kinds="f")),
        (Integers, Arrays(kinds="iu")),
        (types.GenericAlias(_ALIAS, (np.float64,)), Arrays(kinds="f")),
        (types.GenericAlias(_ALIAS, (np.intp,)), Arrays(kinds="i")),
        (_PLAIN, Number(finite=False)),
    ],
)
def test_elements_of_arrays_are_stated(hint: Any, statement: Any) -> None:
    assert statement_of(hint) == statement
