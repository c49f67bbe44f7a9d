"""Ordered classes: rows are inside or outside the cut-points of their class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, GaussianProcessOrdinalRegression, KernelOrdinalRegression
from mercer._errors import ParameterError
from mercer.kernels import RBF
from mercer.plotting import OrdinalDisplay
from mercer.selection import GridSearchCV

X = np.random.default_rng(0).uniform(0, 3, (50, 1))
NAMES = np.array(["low", "middle", "high"])
GRADES = NAMES[np.digitize(X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=50), [1.0, 2.0])]
MODELS = [
    KernelOrdinalRegression(C=10.0, classes=NAMES),
    GaussianProcessOrdinalRegression(RBF(1.0), classes=NAMES, optimizer=None),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_rows_and_cut_points(model: KernelOrdinalRegression | GaussianProcessOrdinalRegression) -> None:
    model.fit(X, GRADES)
    display = OrdinalDisplay.from_estimator(model, X, GRADES).plot()
    place = np.searchsorted(model.thresholds_, model.latent(X))
    right = NAMES[place] == GRADES
    assert 0 < (~right).sum() < 50
    np.testing.assert_array_equal(display.inside_.get_offsets()[:, 0], model.latent(X)[right])
    np.testing.assert_array_equal(display.outside_.get_offsets()[:, 0], model.latent(X)[~right])
    assert [line.get_xdata()[0] for line in display.lines_] == model.thresholds_.tolist()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == NAMES.tolist()
    assert display.frame()["inside"].tolist() == right.tolist()


def test_many_rows_and_what_is_refused() -> None:
    model = MODELS[0].fit(X, GRADES)
    display = OrdinalDisplay.from_estimator(model, X, GRADES, max_points=10).plot()
    assert display.ax_.get_legend().get_title().get_text() == "10 of 50 rows shown"
    with pytest.raises(NotFittedError):
        OrdinalDisplay.from_estimator(KernelOrdinalRegression(), X, GRADES)
    with pytest.raises(ParameterError, match="needs a KernelOrdinalRegression"):
        OrdinalDisplay.from_estimator(SVC().fit(X, GRADES), X, GRADES)


def test_pipelines_and_searches() -> None:
    model = make_pipeline(StandardScaler(), "passthrough", KernelOrdinalRegression(C=10.0, classes=NAMES))
    model.fit(X, GRADES)
    display = OrdinalDisplay.from_estimator(model, X, GRADES)
    np.testing.assert_allclose(display.latent, model[-1].latent(model[0].transform(X)))
    search = GridSearchCV(model, {"kernelordinalregression__C": [1.0, 10.0]}, cv=2).fit(X, GRADES)
    frame = OrdinalDisplay.from_estimator(search, X, GRADES).frame()
    place = np.array([NAMES.tolist().index(name) for name in search.predict(X)])
    assert frame["inside"].tolist() == (NAMES[place] == GRADES).tolist()
