"""Reports of every estimator, on new rows, on those of the fit and on none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from estimator_table import ALL, RESTRICTED, X


@pytest.mark.parametrize(("model", "y"), [*ALL, *RESTRICTED])
def test_report(model: Any, y: np.ndarray) -> None:
    fitted = clone(model).fit(X[:30], y[:30])
    new = mercer.report(fitted, X[60:], y[60:], X_train=X[:30], y_train=y[:30])
    assert {"data", "certificate", "kernel", "distance", "reproduce"} <= {section.name for section in new.sections}
    assert len(new.verdict) == 3 and all(sentence.endswith(".") for sentence in new.verdict)
    if "scores" in new:
        assert len(new["scores"].table("Scores").rows) == 4
        assert "of its own fit" in mercer.report(fitted, X[:30], y[:30])["data"].fact("judged rows")
    assert "not known" in mercer.report(fitted).verdict[0]
