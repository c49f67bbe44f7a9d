"""Errors of scikit-learn's checks say what to do."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SVC, KernelRidge
from mercer._errors import DataError


@pytest.mark.parametrize("model", [KernelRidge(), SVC()])
def test_whole_numbers_of_hundreds_of_digits(model: KernelRidge | SVC) -> None:
    rows = np.array([[10**400, 1.0], [2, 3.0], [1, 2]], dtype=object)
    with pytest.raises(DataError, match=r"int too large to convert to float\. .* give its logarithm"):
        model.fit(rows, [0, 1, 1])
    model.fit(rows[1:], [0, 1])
    with pytest.raises(DataError, match="too many digits"):
        model.predict(rows)
    with pytest.raises(DataError, match="too many digits for a float; divide y"):
        KernelRidge().fit([[1.0], [2.0]], [10**400, 1])


def test_values_that_take_all_digits_are_fitted() -> None:
    rows = np.array([[10**25, 1.0], [2, 3.0], [1, 2]], dtype=object)
    assert np.isfinite(KernelRidge().fit(rows, [0.0, 1.0, 1.0]).predict(rows)).all()
