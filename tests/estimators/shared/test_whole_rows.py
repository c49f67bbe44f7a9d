"""Rows in parts, and learners that need all rows at once."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import mercer
from mercer import SVC, Blocks, ConformalClassifier, ConformalRegressor, KernelRidge
from mercer._errors import DataError, ParameterError

ROWS = np.random.default_rng(0).normal(size=(40, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)
# Those that are fitted to blocks, but not without an approximation.
_IN_PARTS = (
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelRidge",
    "KernelLogisticRegression",
    "KernelMachine",
    "KernelPCA",
    "KernelQuantileRegression",
    "SVC",
    "SVR",
)


def _estimators() -> list[str]:
    found = {name: getattr(mercer, name) for name in dir(mercer)}
    learners = {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) and hasattr(value, "fit") and value.__module__.startswith("mercer.estimators")
    }
    # The last two take another estimator, whose rows are theirs.
    return sorted(set(learners) - {"TableModel", "ConformalClassifier", "ConformalRegressor"})


ESTIMATORS = _estimators()


def test_there_are_estimators() -> None:
    assert len(ESTIMATORS) >= 23 and {"SVC", "BayesianLinearRegression", "TabularClassifier"} <= set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_to_blocks_says_what_would_work(name: str) -> None:
    model = getattr(mercer, name)()
    with pytest.raises(ParameterError) as caught:
        model.fit(Blocks(ROWS, LABELS))
    message = str(caught.value)
    if name in _IN_PARTS:
        assert "approximation='nystroem'" in message
        return
    assert message.startswith(f"{name}.fit needs arrays, but X is Blocks(an array of shape (40, 2)")
    assert "blocks.sample(10_000)" in message
    instead = "KernelLogisticRegression" if is_classifier(model) else "KernelRidge" if is_regressor(model) else None
    assert (f'mercer.{instead}(approximation="nystroem")' in message) == (instead is not None)
    assert ("model.partial_fit(X, y)" in message) == hasattr(model, "partial_fit")


def test_new_rows_in_blocks() -> None:
    model = mercer.OneClassSVM().fit(ROWS)
    with pytest.raises(
        ParameterError, match=r"OneClassSVM.predict needs arrays.*\[model.predict\(X\) for X, y, sample_weight"
    ):
        model.predict(X=Blocks(ROWS))


def test_what_a_refusal_names_works() -> None:
    blocks = Blocks(ROWS, LABELS, rows_per_block=15)
    X, y, sample_weight = blocks.sample(10_000)
    assert mercer.SVC().fit(X, y, sample_weight).score(ROWS, LABELS) > 0.9
    online: Any = mercer.OnlineKernelLogisticRegression(random_state=0)
    for X, y, _ in blocks:
        online.partial_fit(X, y, classes=[0, 1])
    assert online.score(ROWS, LABELS) > 0.8


def test_a_collection_of_dask() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(ParameterError, match=r"NuSVR.fit needs arrays, but X is a Array of Dask.*from_dask\(X, y\)"):
        mercer.NuSVR().fit(da.from_array(ROWS, chunks=(10, 2)), LABELS)


def test_logarithms_of_probabilities_of_blocks() -> None:
    model = mercer.KernelLogisticRegression().fit(ROWS, LABELS)
    found = model.predict_log_proba(Blocks(ROWS, rows_per_block=7))
    np.testing.assert_allclose(found, model.predict_log_proba(ROWS), rtol=1e-9)


WEIGHTS = np.arange(40) % 3 + 0.5


@pytest.mark.parametrize(
    "model",
    [
        mercer.SVC(),
        mercer.NuSVC(),
        mercer.SVR(),
        mercer.KernelRidge(),
        mercer.KernelMachine("squared"),
        mercer.KernelQuantileRegression([0.2, 0.8]),
        mercer.KernelLogisticRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scores_of_rows_in_parts(model: Any) -> None:
    y = LABELS if is_classifier(model) else ROWS[:, 0]
    model.fit(ROWS, y)
    expected, weighted = model.score(ROWS, y), model.score(ROWS, y, WEIGHTS)
    assert weighted != expected or is_classifier(model)
    assert model.score(Blocks(ROWS, y, rows_per_block=7)) == pytest.approx(expected)
    assert model.score(Blocks(ROWS, y, sample_weight=WEIGHTS, rows_per_block=7)) == pytest.approx(weighted)
    assert model.score(Blocks(ROWS, rows_per_block=7), y, WEIGHTS) == pytest.approx(weighted)
    with pytest.raises(DataError, match="score needs targets"):
        model.score(Blocks(ROWS))
    da = pytest.importorskip("dask.array")
    rows, targets, weights = (da.from_array(side, chunks=(11, 2)[: side.ndim]) for side in (ROWS, y, WEIGHTS))
    assert model.score(rows, targets, weights) == pytest.approx(weighted)
    dd = pytest.importorskip("dask.dataframe")
    frame, plain = dd.from_dask_array(rows, columns=["a", "b"]), pytest.importorskip("pandas").DataFrame(ROWS)
    named = model.fit(plain.set_axis(["a", "b"], axis=1), y)
    assert named.score(frame, targets) == pytest.approx(expected)


@pytest.mark.parametrize("model", [ConformalClassifier(SVC()), ConformalRegressor(KernelRidge())])
def test_intervals_by_folds_need_arrays(model: Any) -> None:
    with pytest.raises(ParameterError, match=r"Conformal\w+.fit needs arrays, but X is Blocks"):
        model.fit(Blocks(ROWS, LABELS), LABELS)
