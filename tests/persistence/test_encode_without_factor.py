"""Files of Gaussian processes with many rows are without the factor, which is computed when it is first needed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer
from mercer import GaussianProcessRegressor, TabularRegressor
from mercer._errors import MemoryBudgetError
from mercer.estimators.gaussian import predictions
from mercer.kernels import RBF, White

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), RNG.normal(size=(7, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
MODELS = {
    "searched": GaussianProcessRegressor(1.0 * RBF([1.0] * 3), noise=0.1).fit(X, Y),
    "fixed": GaussianProcessRegressor(RBF(0.7) + White(0.3), alpha=1e-3, noise=0.3, optimizer=None).fit(X, Y),
    "a mean function": GaussianProcessRegressor(RBF(0.7), alpha=np.linspace(0.1, 1, 60), mean="linear").fit(X, Y),
    "two targets": GaussianProcessRegressor(alpha=0.1, normalize_y=True).fit(X, np.c_[Y, Y**2]),
    "precomputed": GaussianProcessRegressor("precomputed", alpha=0.1).fit(RBF(1.0)(X), Y),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    singular = GaussianProcessRegressor(RBF(9.0), alpha=0.0, optimizer=None)
    MODELS["jitter"] = singular.fit(np.r_[X, X[:5]], np.r_[Y, Y[:5]])


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "_MOST_STORED", 50)


def from_file(model: Any, folder: Path) -> Any:
    mercer.save(model, folder / "model.mercer")
    return mercer.load(folder / "model.mercer")


@pytest.mark.parametrize("name", MODELS)
def test_all_answers_are_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    back = from_file(model, tmp_path)
    assert "L_" not in vars(back)
    rows = RBF(1.0)(NEW, X) if name == "precomputed" else NEW
    np.testing.assert_array_equal(back.predict(rows), model.predict(rows))
    # Means need no factor.
    assert "L_" not in vars(back)
    np.testing.assert_array_equal(back.L_, model.L_)
    for ours, reference in zip(back.leave_one_out(), model.leave_one_out(), strict=True):
        np.testing.assert_array_equal(ours, reference)
    if name != "precomputed":
        np.testing.assert_array_equal(back.predict(NEW, return_std=True)[1], model.predict(NEW, return_std=True)[1])
    # Once computed it stays, and the next file is without it all the same.
    assert "L_" in vars(back) and "L_" not in vars(from_file(back, tmp_path))


def test_more_rows_after_loading(tmp_path: Path) -> None:
    model = MODELS["searched"].condition_on(NEW, NEW[:, 0])
    back = from_file(model, tmp_path)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    # A factor that grew by rows has other bits than one of all rows.
    np.testing.assert_allclose(back.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1], rtol=1e-9)


def test_the_file_of_a_table_has_its_rows_and_no_square(tmp_path: Path) -> None:
    model = TabularRegressor().fit(np.repeat(X, 5, axis=0), np.repeat(Y, 5))
    back = from_file(model, tmp_path)
    assert (tmp_path / "model.mercer").stat().st_size < 100_000 < 8 * 300**2
    np.testing.assert_array_equal(back.predict_quantiles(NEW), model.predict_quantiles(NEW))


def test_a_factor_that_does_not_fit_the_memory(tmp_path: Path) -> None:
    back = from_file(MODELS["searched"], tmp_path)
    with mercer.config(memory="20 kB"):
        assert np.isfinite(back.predict(NEW)).all()
        with pytest.raises(MemoryBudgetError, match="its factor"):
            back.predict(NEW, return_std=True)


def test_few_rows_keep_their_factor(tmp_path: Path) -> None:
    assert "L_" in vars(from_file(GaussianProcessRegressor(alpha=0.1).fit(X[:50], Y[:50]), tmp_path))
    with pytest.raises(NotFittedError):
        GaussianProcessRegressor().L_  # noqa: B018
