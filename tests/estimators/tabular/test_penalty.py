"""The choice of C against a search with an estimator of its own for each fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from mercer import KernelLogisticRegression
from mercer.estimators.tabular.penalty import _COSTS, _FOLDS, _folds, choose_cost
from mercer.kernels import RBF


def rows(n: int, classes: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(n, 2))
    score = X[:, 0] + noise * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.1, 2.0])
def test_it_is_the_best_of_the_costs_on_these_folds(classes: int, noise: float) -> None:
    X, codes = rows(120, classes, noise)
    K, folds = RBF(1.0)(X), _folds(codes)
    losses = []
    for cost in _COSTS:
        P = np.empty((len(codes), classes))
        for fold in range(_FOLDS):
            out = folds == fold
            model = KernelLogisticRegression(C=cost, kernel="precomputed").fit(K[~out][:, ~out], codes[~out])
            P[out] = model.predict_proba(K[out][:, ~out])
        losses.append(log_loss(codes, P))
    chosen = choose_cost(K, codes)
    assert losses[_COSTS.index(chosen)] == pytest.approx(min(losses), rel=1e-3)


def test_folds_have_all_classes_in_their_shares() -> None:
    codes = np.repeat([0, 1, 2], [50, 23, 3])
    folds = _folds(codes)
    assert (folds[codes == 2] == -1).all()
    for code, count in ((0, 10), (1, 4)):
        assert np.bincount(folds[codes == code], minlength=_FOLDS).min() >= count


def test_classes_that_no_row_can_be_spared_of() -> None:
    assert choose_cost(np.eye(4), np.array([0, 1, 0, 1])) == 10.0
