"""What a parameter ``random_state`` stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer._errors import ParameterError
from mercer.data.objects import short


def generator(random_state: Any) -> np.random.RandomState:
    """The generator that a parameter ``random_state`` stands for.

    Raises
    ------
    ParameterError
        If it stands for none.
    """
    try:
        rng: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ParameterError(
            f"random_state must be a whole number of 0 or more, a numpy RandomState or None, but is "
            f"{short(random_state)}."
        ) from error
    return rng
