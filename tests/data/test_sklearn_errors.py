"""Errors of scikit-learn's checks say what to do."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn

import mercer
from mercer import SVC, KernelRidge, TabularRegressor
from mercer._errors import DataError, ParameterError
from mercer.data.sklearn_errors import advised


@pytest.mark.parametrize("model", [KernelRidge(), SVC()])
def test_whole_numbers_of_hundreds_of_digits(model: KernelRidge | SVC) -> None:
    rows = np.array([[10**400, 1.0], [2, 3.0], [1, 2]], dtype=object)
    with pytest.raises(DataError, match=r"int too large to convert to float\. .* too many digits"):
        model.fit(rows, [0, 1, 1])
    model.fit(rows[1:], [0, 1])
    with pytest.raises(DataError, match="too many digits"):
        model.predict(rows)
    with pytest.raises(DataError, match="too many digits for a float; divide y"):
        KernelRidge().fit([[1.0], [2.0]], [10**400, 1])


def test_gaps_name_learners_of_mercer_that_take_them() -> None:
    rows, y = np.array([[0.0, np.nan], [1.0, 2.0], [5.0, 6.0], [6.0, 7.0]]), np.array([0, 0, 1, 1])
    for learn in (SVC().fit, SVC().fit(rows[1:], y[1:]).score):
        with pytest.raises(DataError, match=r"contains NaN\. Fill .*SimpleImputer.*TabularClassifier") as error:
            learn(rows, y)
        assert "sklearn.ensemble" not in str(error.value)
    assert mercer.TabularClassifier().fit(rows, y).predict(rows).tolist() == y.tolist()


def test_values_that_take_all_digits_are_fitted() -> None:
    rows = np.array([[10**25, 1.0], [2, 3.0], [1, 2]], dtype=object)
    assert np.isfinite(KernelRidge().fit(rows, [0.0, 1.0, 1.0]).predict(rows)).all()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(C=10**400), "C must be"),
        (SVC(class_weight={0: 10**400, 1: 1}), "class_weight must"),
        (KernelRidge(10**400), "alpha must be"),
        (KernelRidge(tol=10**400), "tol must be"),
    ],
)
def test_parameters_of_hundreds_of_digits(model: KernelRidge | SVC, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        model.fit([[1.0], [2.0]], [0, 1])


def test_they_are_refused_in_tables_scores_and_budgets() -> None:
    # pandas 2 makes no frame of an array with such a number.
    table = pd.DataFrame({"a": pd.Series([10**400, *range(30)], dtype=object), "b": np.arange(31.0)})
    with pytest.raises(DataError, match="inf in row 1, but numbers must be finite"):
        TabularRegressor().fit(table, np.arange(31.0))
    model = KernelRidge().fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(DataError, match="too many digits"):
        model.score([[1.0], [2.0]], [10**400, 1])
    with pytest.raises(ParameterError, match="memory="):
        mercer.config(memory=10**400)


def test_arrays_of_another_library_are_converted_where_scikit_learn_would_keep_them():
    pytest.importorskip("array_api_strict", reason="needs a second library of arrays")
    code = (
        "import numpy as np, sklearn, array_api_strict as xp; from mercer import SVC\n"
        "X = np.random.default_rng(0).normal(size=(20, 3)); y = (X[:, 0] > 0).astype(int)\n"
        "with sklearn.config_context(array_api_dispatch=True):\n"
        "    found = SVC().fit(xp.asarray(X), xp.asarray(y)).predict(xp.asarray(X))\n"
        "print((found == SVC().fit(X, y).predict(X)).all())"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout == "True\n", run.stderr


def test_the_dispatch_of_scikit_learn_is_off_within_checks(monkeypatch):
    monkeypatch.setattr("sklearn.utils._array_api._check_array_api_dispatch", lambda dispatch: None)
    with sklearn.config_context(array_api_dispatch=True):
        with advised():
            assert not sklearn.get_config()["array_api_dispatch"]
        assert sklearn.get_config()["array_api_dispatch"]


class OnDevice:
    """An array of another library in the memory of a device, which cannot become NumPy's unasked."""

    device, dtype = "cuda:0", "float64"

    def __init__(self, values, message):
        self.values, self.message = values, message
        self.shape, self.ndim = values.shape, values.ndim

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        raise TypeError(self.message)

    def cpu(self):
        return self

    def numpy(self):
        return self.values

    get = numpy


@pytest.mark.parametrize(
    ("message", "to_numpy"),
    [
        (
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.",
            lambda tensor: tensor.cpu().numpy(),
        ),
        ("Implicit conversion to a NumPy array is not allowed. Please use `.get()`", lambda array: array.get()),
    ],
    ids=["tensor.cpu().numpy()", "array.get()"],
)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["X", "y", "sample_weight"])
def test_arrays_on_a_device_are_refused_with_what_to_pass(message, to_numpy, place, request):
    arguments = [np.arange(12.0).reshape(6, 2), np.arange(6.0), np.ones(6)]
    expected = KernelRidge().fit(*arguments).dual_coef_
    arguments[place] = OnDevice(arguments[place], message)
    with pytest.raises(TypeError, match="Mercer computes on the processor") as raised:
        KernelRidge().fit(*arguments)
    assert message[:20] in str(raised.value)
    assert any(
        call in str(raised.value) and call in request.node.name for call in ("tensor.cpu().numpy()", "array.get()")
    )
    arguments[place] = to_numpy(arguments[place])
    assert np.array_equal(KernelRidge().fit(*arguments).dual_coef_, expected)
