"""Fits over landmarks of objects are compared with exact fits by their estimated costs."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mercer import SVC, KernelLogisticRegression, KernelRidge, estimate
from mercer._errors import MercerWarning
from mercer.data.strings import Strings
from mercer.estimators.shared import restricted
from mercer.kernels import Spectrum, Subsequence

TEXTS = ["ab" * (2 + n % 3) + "c" * (n % 5) for n in range(60)]
LABELS = np.arange(60) % 2


@pytest.mark.parametrize("learner", [SVC, KernelLogisticRegression, KernelRidge])
@pytest.mark.parametrize(("exact", "warns"), [(1.0, True), (6.0, False)])
def test_a_fit_that_takes_longer_than_the_exact_one_warns(
    learner: Any, exact: float, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimated(model: Any, X: Any) -> Any:
        return replace(estimate(model, X), seconds=exact if model.approximation is None else 10.0)

    monkeypatch.setattr(restricted, "_MANY", 0)
    monkeypatch.setattr(restricted, "estimate_of", estimated)
    model = learner(kernel=Spectrum(2).normalized(), approximation="nystroem", n_landmarks=10, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MercerWarning)
        model.fit(TEXTS, LABELS)
    assert any("the exact fit about 1 s" in str(one.message) for one in caught) == warns


def test_values_of_objects_over_landmarks_are_estimated_once() -> None:
    model = SVC(kernel=Subsequence(2).normalized(), approximation="nystroem", n_landmarks=10)
    assert estimate(model, Strings.of(TEXTS)).passes == 1
