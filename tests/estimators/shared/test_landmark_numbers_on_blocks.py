"""``n_landmarks="auto"`` on blocks: rows held out in one pass, and a fit to all rows with the number chosen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, Blocks, KernelLogisticRegression, KernelRidge, config
from mercer._errors import DataError, ParameterError
from mercer.estimators.shared import landmark_numbers
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=400)
HERE: dict[str, Any] = {
    "kernel": RBF(0.7),
    "approximation": "nystroem",
    "n_landmarks": "auto",
    "random_state": 0,
    "tol": 1e-2,
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landmark_numbers, "_FIRST", 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [KernelRidge(0.1, **HERE), KernelRidge("gcv", **HERE), SVR(**HERE), SVC(**HERE), KernelLogisticRegression(**HERE)],
    ids=repr,
)
def test_the_number_is_chosen_and_the_fit_is_that_of_all_rows(model: Any) -> None:
    y = Y if isinstance(model, (KernelRidge, SVR)) else np.where(Y > 0, "high", "low")
    model.fit(Blocks(X, y, rows_per_block=110))
    path = model.landmark_path_
    m = path.n_landmarks
    np.testing.assert_array_equal(m[1:], 2 * m[:-1])
    falls = path.losses[:-1] - path.losses[1:]
    enough = falls > np.maximum(path.standard_errors[1:], 1e-3 * path.losses[1:])
    assert path.ending == "no gain" and enough[:-1].all() and not enough[-1]
    rows = model.X_fit_ if hasattr(model, "X_fit_") else model.support_vectors_
    assert len(rows) == path.chosen >= 20 and model.n_landmarks == "auto" and model.landmark_indices_ is None
    # The landmarks are those of the fit in memory, and so is the function, which the certificate knows.
    whole = clone(model).set_params(n_landmarks=len(rows), landmarks=rows).fit(X, y)
    assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=0.03)
    assert model.score(X, y) > 0.9


def test_how_the_rows_are_cut_changes_no_bits() -> None:
    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, 400, 53):
            yield X[start : start + 53], Y[start : start + 53]

    one = KernelRidge(0.1, **HERE).fit(Blocks(X, Y, rows_per_block=110))
    other = KernelRidge(0.1, **HERE).fit(Blocks.from_function(pieces, rows_per_block=110))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.landmark_path_.losses, other.landmark_path_.losses)


def test_names_weights_and_rows_without_weight() -> None:
    pd = pytest.importorskip("pandas")
    weights = (np.arange(400) % 3).astype(float)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y, w=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelRidge(0.1, **HERE).fit(Blocks(frame, "y", sample_weight="w", rows_per_block=110))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    few = KernelRidge(0.1, **HERE).fit(Blocks(X[:30], Y[:30]))
    assert few.landmark_path_.ending == "all rows" and few.X_fit_.shape == (30, 2)


def test_rows_that_change_between_passes() -> None:
    calls = [0]

    def changing() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        calls[0] += 1
        yield X + (1e-9 if calls[0] > 9 else 0.0), Y

    with pytest.raises(DataError, match="same rows"):
        KernelRidge(0.1, **HERE).fit(Blocks.from_function(changing))


def test_a_warning_of_all_fits_is_given_once() -> None:
    model = KernelLogisticRegression(**{**HERE, "tol": 1e-14}, max_iter=1)
    for rows in ((Blocks(X, Y > 0),), (X, Y > 0)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*rows)
        found = [one for one in caught if issubclass(one.category, ConvergenceWarning)]
        assert len(found) == 1 and len(model.landmark_path_.n_landmarks) > 1
        assert found[0].filename == __file__


def test_an_interrupted_number_keeps_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, numbers = KernelRidge._fit_on_landmarks, []

    def interrupted(self: Any, *arguments: Any) -> Any:
        numbers.append(self.n_landmarks)
        if len(numbers) == 3:
            raise KeyboardInterrupt
        return fit(self, *arguments)

    monkeypatch.setattr(KernelRidge, "_fit_on_landmarks", interrupted)
    with config(on_interrupt="keep"), pytest.warns(ConvergenceWarning, match="Ctrl-C"):
        model = KernelRidge(0.1, **HERE).fit(Blocks(X, Y))
    assert model.landmark_path_.ending == "interrupted" and model.X_fit_.shape == (20, 2)
    numbers.clear()
    with pytest.raises(KeyboardInterrupt):
        KernelRidge(0.1, **HERE).fit(Blocks(X, Y))


def test_collections_of_dask_are_refused() -> None:
    da = pytest.importorskip("dask.array")
    rows, targets = da.from_array(X, chunks=(200, 2)), da.from_array(Y, chunks=200)
    with pytest.raises(ParameterError, match="from_dask"):
        KernelRidge(0.1, **HERE).fit(rows, targets)
    assert KernelRidge(0.1, **HERE).fit(Blocks.from_dask(rows, targets)).score(X, Y) > 0.9
