"""Roles, weights and relevance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
LABELS = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "a", "b")


def test_roles_and_weights_are_those_of_the_model() -> None:
    model = mercer.SVC(C=1.0).fit(X, LABELS)
    section = mercer.report(model, X, LABELS)["rows"]
    assert section.fact("rows with a weight") == len(model.support_)
    counts = dict(section.table("Roles").rows)
    names, numbers = np.unique(model.roles_, return_counts=True)
    assert sorted(counts.values()) == sorted(numbers.tolist()) and len(counts) == len(names)
    first = section.table("The rows with").rows[0]
    largest = int(model.support_[np.abs(model.dual_coef_[0]).argmax()])
    assert first[:3] == (f"row {largest + 1}", LABELS[largest], pytest.approx(np.abs(model.dual_coef_).max()))


@pytest.mark.parametrize(
    "model",
    [
        mercer.KernelRidge(kernel=RBF([1.0, 4.0])),
        mercer.GaussianProcessRegressor(RBF([1.0, 4.0]), noise=0.1, optimizer=None),
        mercer.SVR(kernel=RBF([1.0, 4.0])),
    ],
    ids=lambda model: type(model).__name__,
)
def test_length_scales_and_weights_of_regressions(model) -> None:
    report = mercer.report(model.fit(X, X[:, 0]), X, X[:, 0])
    assert report["relevance"].table("Relevance").rows == (("feature 0", 1.0), ("feature 1", 0.25))
    shares = report["rows"].table("The rows with").column("share of all weights")
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1


def test_features_without_length_scales_are_permuted() -> None:
    frame = pd.DataFrame({"noise": X[:, 1], "signal": X[:, 0]})
    model = mercer.KernelRidge(kernel="rbf").fit(frame[:50], X[:50, 0])
    table = mercer.report(model, frame[50:], X[50:, 0])["relevance"].table("Relevance")
    assert table.column("feature") == ["signal", "noise"]


def test_landmarks_have_no_row_of_their_own() -> None:
    model = mercer.KernelRidge(kernel="rbf", approximation="nystroem", n_landmarks=10, random_state=0).fit(X, X[:, 0])
    table = mercer.report(model, X, X[:, 0])["rows"].table("The rows with")
    assert len(table.rows) == 10 and table.column("row of the fit")[0].startswith(("row", "landmark"))
