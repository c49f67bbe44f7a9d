"""The picture of the fitted function."""

from __future__ import annotations

import numpy as np
import pytest

import mercer

X = np.linspace(0, 6, 50)[:, None]
Y = np.sin(X[:, 0])


@pytest.mark.parametrize(
    ("model", "column"),
    [
        (mercer.GaussianProcessRegressor(mercer.kernels.RBF(1.0), noise=0.1, optimizer=None), "mean"),
        (mercer.SVR(C=10.0), "prediction"),
    ],
    ids=["process", "tube"],
)
def test_one_feature_is_shown_whole(model, column: str) -> None:
    report = mercer.report(model.fit(X, Y), X, Y)
    table = report["function"].table("Values")
    assert 20 <= len(table.rows) <= 40 and column in table.heads
    assert ">Fitted function</figcaption>" in report.to_html()


def test_others_have_no_such_picture() -> None:
    assert "function" not in mercer.report(mercer.KernelRidge(kernel="rbf").fit(X, Y), X, Y)
    two = np.column_stack([X, X**2])
    assert "function" not in mercer.report(mercer.SVR().fit(two, Y), two, Y)
    assert "function" not in mercer.report(mercer.SVC().fit(X, Y > 0), X, Y > 0)
