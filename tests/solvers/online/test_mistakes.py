"""The margin that a perceptron reached, and Novikoff's bound on its mistakes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import KernelPerceptron
from mercer._errors import MercerError, MercerWarning
from mercer.engine import memory
from mercer.gram import PrecomputedGram, hold
from mercer.kernels import RBF, Kernel, Linear, NegativeDistance, Polynomial
from mercer.solvers.online.mistakes import MistakeBound, bound_mistakes
from mercer.solvers.online.problem import PerceptronProblem, PerceptronState

X = np.random.default_rng(3).normal(size=(300, 2))
# Off the axes, so that a margin is there.
X = X[np.abs(X).min(axis=1) > 0.3]
SIGNS = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
CORNERS = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)


def _by_hand(model: KernelPerceptron, kernel: Kernel, y: np.ndarray) -> tuple[float, float, float]:
    """Margin, radius and bound, from the definitions."""
    c = float(model.fit_intercept)
    K = np.asarray(kernel(X), dtype=np.float64) + c
    margins = []
    for number, row in enumerate(model.dual_coef_):
        weights = np.zeros(len(X))
        weights[model.support_] = row
        sign = y if len(model.dual_coef_) == 1 else np.where(y == model.classes_[number], 1, -1)
        margins.append(float((sign * (K @ weights)).min()) / math.sqrt(float(weights @ K @ weights)))
    square = float(K.diagonal().max())
    bound = sum((square + 2.0 * model.margin) / m**2 for m in margins) if min(margins) > 0 else math.inf
    return min(margins), math.sqrt(square), bound


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize(("kernel", "y"), [(Polynomial(2), SIGNS), (RBF(1.0), SIGNS), (Linear() + RBF(0.5), CORNERS)])
def test_mistakes_are_within_the_bound(
    kernel: Kernel, y: np.ndarray, margin: float, fit_intercept: bool, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:
        # Rows of the matrix are then made as they are needed.
        monkeypatch.setattr(hold, "_SMALL", 0)
    model = KernelPerceptron(kernel, margin=margin, fit_intercept=fit_intercept, max_iter=2000, random_state=0).fit(
        X, y
    )
    certificate = model.certificate_
    assert certificate.separated and model.mistakes_[-1] == 0
    assert 0 < certificate.mistakes == model.mistakes_.sum() <= certificate.bound < math.inf
    np.testing.assert_allclose(
        (certificate.margin, certificate.radius, certificate.bound), _by_hand(model, kernel, y), rtol=1e-9
    )
    assert 0 < certificate.margin <= certificate.radius * (1 + 1e-12)
    # Of the same rows in any order.
    assert model.set_params(shuffle=False).fit(X, y).mistakes_.sum() <= certificate.bound


def test_a_bound_that_is_reached() -> None:
    model = KernelPerceptron("linear", fit_intercept=False, shuffle=False).fit([[1.0], [-1.0]], [1, 0])
    certificate = model.certificate_
    assert (certificate.radius, certificate.mistakes) == (
        1.0,
        1,
    ) and certificate.margin <= 1.0 <= certificate.bound < 1 + 1e-9


def test_a_margin_of_rounding_is_none() -> None:
    problem = PerceptronProblem(PrecomputedGram(np.eye(2)), np.array([1, 0]), np.array([1]))
    expansion = PerceptronState(np.array([[1.0, -1.0]]), np.zeros((1, 2)))
    for least, separated in ((1e-16, False), (1e-9, True)):
        certificate = bound_mistakes(problem, expansion, np.array([[1.0, -least]]), 2)
        assert certificate is not None and certificate.separated == separated == (certificate.bound < math.inf)


def test_classes_that_are_not_separated() -> None:
    y = np.random.default_rng(0).permutation(SIGNS)
    with pytest.warns(MercerWarning, match="of the 164 training rows are misclassified"):
        certificate = KernelPerceptron("linear", max_iter=5, random_state=0).fit(X, y).certificate_
    assert not certificate.separated and certificate.margin <= 0 and certificate.bound == math.inf
    assert certificate.explain().startswith("Not separated: some training row is up to ")
    assert certificate.as_dict()["separated"] is False


def test_where_there_is_no_bound() -> None:
    indefinite = KernelPerceptron(NegativeDistance(), allow_indefinite=True)
    for model in (KernelPerceptron(budget=20, random_state=0), indefinite):
        assert not hasattr(model.fit(X, SIGNS), "certificate_")
    model = KernelPerceptron(random_state=0).fit(X, SIGNS)
    assert isinstance(model.certificate_, MistakeBound)
    # It does not see the rows before.
    assert not hasattr(model.partial_fit(X[:3], SIGNS[:3]), "certificate_")


def test_no_more_kernel_values_than_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "_SMALL", 0)
    with memory.track() as account:
        model = KernelPerceptron(Polynomial(2), random_state=0).fit(X, SIGNS)
    assert model.certificate_.separated and account.peak < 8 * len(X) ** 2


def test_model_files_hold_it_and_refuse_one_that_cannot_be(tmp_path: Path) -> None:
    model = KernelPerceptron(random_state=0).fit(X, SIGNS)
    mercer.save(model, tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").certificate_ == model.certificate_
    for wrong in ({"mistakes": 1 + model.certificate_.mistakes}, {"bound": 0.5}):
        forged = KernelPerceptron(random_state=0).fit(X, SIGNS)
        forged.certificate_ = dataclasses.replace(model.certificate_, **wrong)
        with pytest.raises(MercerError, match="the certificate has a different count of mistakes"):
            mercer.save(forged, tmp_path / "forged.mercer")
