"""Kernels as text in every learner, and parameters beside a kernel that takes none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from estimator_table import CASES, CLASSES, CLUSTERERS, NEIGHBORS, NUMBERS, TRANSFORMERS, X, assert_same_bits
from mercer import SVC, GaussianProcessRegressor, KernelRidge, kernels
from mercer._errors import KernelSyntaxError, MercerWarning, ParameterError

ALL = [*CASES, *TRANSFORMERS, *CLUSTERERS, *NEIGHBORS]


@pytest.mark.parametrize(("model", "y"), ALL)
def test_an_expression_is_the_kernel_that_it_describes(model: Any, y: np.ndarray) -> None:
    by_text = clone(model).set_params(kernel="0.5*RBF(2.0) + Linear()").fit(X, y)
    built = clone(model).set_params(kernel=0.5 * kernels.RBF(2.0) + kernels.Linear()).fit(X, y)
    assert by_text.kernel_ == built.kernel_ and by_text.kernel == "0.5*RBF(2.0) + Linear()"
    assert_same_bits(by_text, built)


def test_expressions_for_other_rows() -> None:
    words = ["abab", "ab", "cd", "dcd"]
    assert SVC(kernel="Spectrum(2)").fit(words, [0, 0, 1, 1]).predict(["aba", "cdc"]).tolist() == [0, 1]
    assert KernelRidge(kernel="RBF(1.0).on([0])").fit(X, NUMBERS).score(X, NUMBERS) > 0.5
    assert GaussianProcessRegressor("RBF(1.0)", optimizer=None).predict(X[:2]).tolist() == [0.0, 0.0]
    with pytest.raises(KernelSyntaxError, match=r"column 1: there is no kernel 'RBFF'; did you mean RBF\?"):
        SVC(kernel="RBFF(2.0)").fit(X, CLASSES)
    with pytest.raises(ParameterError, match="there is no kernel 'RBF'; did you mean 'rbf'"):
        SVC(kernel="RBF").fit(X, CLASSES)


@pytest.mark.parametrize(("model", "y"), ALL)
@pytest.mark.parametrize(("name", "value"), [("gamma", 5.0), ("degree", 2), ("coef0", 0.75)])
def test_parameters_that_the_kernel_does_not_use(model: Any, y: np.ndarray, name: str, value: float) -> None:
    with pytest.warns(MercerWarning, match=rf"{name}={value} is not used, because kernel=RBF\(1.0\).* is not a name"):
        clone(model).set_params(kernel=kernels.RBF(1.0).fixed(), **{name: value}).fit(X, y)


@pytest.mark.parametrize("kernel", ["RBF(1.0)", kernels.RBF(1.0), lambda A, B: A @ B.T])
def test_defaults_and_names_go_without_a_word(kernel: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC(kernel=kernel).fit(X, CLASSES)
        SVC(kernel="rbf", gamma=5.0, degree=2).fit(X, CLASSES)
        SVC(kernel=kernel, gamma="scale").fit(X, CLASSES)
