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


@pytest.mark.parametrize(("classes", "noise"), [(2, 2.0), pytest.param(3, 0.1, marks=pytest.mark.slow)])
def test_it_is_the_best_of_the_costs_on_these_folds(classes: int, noise: float) -> None:
    X, codes = rows(40 * classes, classes, noise)
    K, folds = RBF(1.0)(X), _folds(codes)
    losses = []
    for cost in _COSTS:
        P = np.empty((len(codes), classes))
        for fold in range(_FOLDS):
            out = folds == fold
            model = KernelLogisticRegression(C=cost, kernel="precomputed", tol=1e-4).fit(K[~out][:, ~out], codes[~out])
            P[out] = model.predict_proba(K[out][:, ~out])
        losses.append(log_loss(codes, P))
    chosen, loss = choose_cost(K, codes)
    assert losses[_COSTS.index(chosen)] == pytest.approx(min(losses), rel=1e-3)
    assert loss / len(codes) == pytest.approx(min(losses), rel=1e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_folds_have_all_classes_in_their_shares(seed: int) -> None:
    codes = np.repeat([0, 1, 2, 3], [50, 23, 3, 1])
    folds = _folds(codes, seed)
    assert (folds[codes == 3] == -1).all()
    assert np.bincount(folds[codes == 2], minlength=_FOLDS).max() == 1
    for code, count in ((0, 10), (1, 4)):
        assert np.bincount(folds[codes == code], minlength=_FOLDS).min() >= count


def test_with_one_row_of_each_class_it_is_what_the_evidence_expects() -> None:
    for variance, cost in ((1e-4, 0.1), (0.25, 1.0), (1e4, 10.0)):
        assert choose_cost(np.eye(2), np.array([0, 1]), variance=variance)[0] == pytest.approx(cost)


def test_the_evidence_has_no_say_where_classes_have_many_rows() -> None:
    X, codes = rows(120, 2, 1.0)
    K = RBF(1.0)(X)
    assert choose_cost(K, codes, variance=1e-4) == choose_cost(K, codes, variance=1e4)
    few = np.r_[np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)[:4]]
    K, codes = K[np.ix_(few, few)], codes[few]
    assert choose_cost(K, codes, variance=1e-4)[0] < choose_cost(K, codes, variance=1e4)[0]


def test_rows_of_a_rare_class_are_left_out() -> None:
    """Else the least loss is that of a model which is certain of the other class."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [97, 3])
    assert choose_cost(RBF(1.0)(rng.normal(size=(100, 4))), codes, variance=0.01)[0] <= 1.0
