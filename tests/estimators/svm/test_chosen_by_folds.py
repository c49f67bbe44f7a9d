"""``SVC(C="cv", gamma="cv")`` and SVR: parameters chosen by folds, and everything else as for any estimator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score

import mercer
from mercer import (
    SVC,
    SVR,
    GridSearchCV,
    KernelLogisticRegression,
    KernelMachine,
    MultipleKernelSVC,
    MultipleKernelSVR,
    NuSVC,
    NuSVR,
)
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF
from sklearn_checks import in_turn, not_passed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
LABELS = np.where(np.hypot(*X.T) > 1.1, "out", "in")
NUMBERS = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (SVC(C="cv", gamma="cv"), ["C", "gamma"]),
        (SVC(C="cv", kernel=RBF(1.0)), ["C"]),
        (SVC(C=10.0, gamma="cv"), ["gamma"]),
        (SVR(C="cv", gamma="cv", epsilon="cv"), ["C", "gamma", "epsilon"]),
        (SVR(epsilon="cv"), ["epsilon"]),
        (KernelLogisticRegression(C="cv", kernel=RBF(1.0)), ["C"]),
    ],
    ids=str,
)
def test_what_is_left_open_is_chosen(
    model: Any, names: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(names) > 1:
        # The fits of the folds are most of the time; those of one parameter have all folds.
        monkeypatch.setattr("mercer.estimators.svm.chosen_by_folds._FOLDS", 2)
    model, y = clone(model), LABELS if is_classifier(model) else NUMBERS
    before = model.get_params(deep=False)
    model.fit(X, y)
    assert model.get_params(deep=False) == before
    chosen = {name: getattr(model, f"{name}_") for name in names}
    assert model.search_.best == chosen and list(model.search_.table) == [*names, "score", "lower", "upper"]
    assert [name for name in ("C_", "gamma_", "epsilon_") if hasattr(model, name)] == [f"{name}_" for name in names]
    plain = clone(model).set_params(**chosen).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert not hasattr(plain, "search_")
    # The scores are those of folds, and the best is the best.
    table = model.search_.table
    assert (
        table["score"][0]
        == table["score"].max()
        > cross_val_score(clone(model).set_params(**dict.fromkeys(names, 1e-3)), X, y).mean()
    )
    mercer.save(model, tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.search_.best == chosen and loaded.get_params(deep=False).keys() == before.keys()
    assert mercer.certify(model, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    # A fit with numbers forgets what was chosen.
    model.set_params(**chosen).fit(X, y)
    assert not any(hasattr(model, name) for name in ("C_", "gamma_", "epsilon_", "search_"))


def test_it_is_the_same_each_time_and_works_inside_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.estimators.svm.chosen_by_folds._FOLDS", 2)
    first, second = (SVC(C="cv").fit(X, LABELS) for _ in range(2))
    assert first.search_.table["C"].tolist() == second.search_.table["C"].tolist() and first.C_ == second.C_
    search = GridSearchCV(SVC(C="cv"), {"gamma": [0.1, 1.0]}, cv=2).fit(X, LABELS)
    assert "nothing" in search.sharing_ and search.best_estimator_.C_ > 0
    logistic = GridSearchCV(KernelLogisticRegression(C="cv"), {"gamma": [0.1, 1.0]}, cv=2).fit(X, LABELS)
    assert "nothing" in logistic.sharing_ and logistic.best_estimator_.C_ > 0
    along = SVC(gamma="cv").fit_along("C", [1.0, 10.0], X, LABELS)
    assert [model.C for model in along] == [1.0, 10.0] and all(model.gamma_ > 0 for model in along)
    with pytest.raises(ParameterError, match="C='cv' is chosen by fit; pass the fitted SVC, or a number"):
        mercer.certify(SVC(C="cv"), X, LABELS, dual_coef=np.zeros((1, 60)))
    weighted = SVC(C="cv").fit(X, LABELS, np.where(X[:, 0] > 0, 2.0, 0.0))
    assert weighted.C_ > 0 and not set(weighted.support_) & set(np.flatnonzero(X[:, 0] <= 0))


@pytest.mark.parametrize(
    ("model", "y", "error", "words"),
    [
        (SVC(C="loo"), LABELS, ParameterError, "C='loo' is for KernelRidge.*pass C='cv'"),
        (SVR(epsilon="loo"), NUMBERS, ParameterError, "epsilon='loo' is for KernelRidge"),
        (KernelLogisticRegression(C="loo"), LABELS, ParameterError, "C='loo' is for KernelRidge.*pass C='cv'"),
        (KernelLogisticRegression(C="best"), LABELS, ParameterError, "C must be a finite number above 0, or 'cv', but"),
        (KernelLogisticRegression(C="cv", tol=-1.0), LABELS, ParameterError, "tol must be"),
        (KernelLogisticRegression(C="cv"), ["a"] * 60, DataError, "needs at least two classes"),
        (SVC(C="best"), LABELS, ParameterError, "C must be a number above 0, or inf for a hard margin, or 'cv'"),
        (SVR(C="best"), NUMBERS, ParameterError, "C must be a finite number above 0, or 'cv', but is 'best'"),
        (SVC(gamma="cv", kernel="precomputed"), LABELS, ParameterError, "gamma='cv' needs a kernel with a parameter"),
        (
            SVC(gamma="cv", kernel=RBF(1.0)),
            LABELS,
            ParameterError,
            r"is for kernels given by name.*KernelSearchCV\(SVC",
        ),
        (
            SVC(C="cv"),
            ["a"] * 59 + ["b"],
            DataError,
            "at least 2 rows of each class for folds, but the class 'b' has 1",
        ),
        (SVC(C="cv"), ["a"] * 60, DataError, "needs at least two classes"),
        (SVC(C="cv", tol=-1.0), LABELS, ParameterError, "tol must be"),
        (SVC(C="cv", gamma=-1.0), LABELS, ParameterError, "gamma must be a finite number above 0"),
        (SVC(C="cv"), LABELS[:9], DataError, "one label for each row"),
        (SVR(C="cv"), np.full(60, np.nan), DataError, "Input y contains NaN"),
        (SVR(C="cv"), None, DataError, "the target y is None"),
    ],
)
def test_what_cannot_be_chosen(model: Any, y: Any, error: type[Exception], words: str) -> None:
    rows = X @ X.T if model.kernel == "precomputed" else X
    with pytest.raises(error, match=words):
        clone(model).fit(rows, y)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (NuSVC(nu="cv"), "nu"),
        (NuSVR(C="cv"), "C"),
        (KernelMachine(alpha="cv"), "alpha"),
        (MultipleKernelSVC(C="cv"), "C"),
        (MultipleKernelSVR(C="cv"), "C"),
        (MultipleKernelSVR(epsilon="cv"), "epsilon"),
    ],
)
def test_other_learners_name_the_search(model: Any, name: str) -> None:
    own = type(model).__name__
    with pytest.raises(ParameterError, match=rf"^{name} must be .*KernelSearchCV\({own}\(...\)\) chooses") as caught:
        model.fit(X, LABELS if is_classifier(model) else NUMBERS)
    assert "or 'cv'" not in str(caught.value)
    with pytest.raises(ParameterError, match=r"KernelSearchCV chooses gamma for others"):
        clone(model).set_params(**{name: 0.5}, gamma="cv").fit(X, LABELS if is_classifier(model) else NUMBERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        [SVC(C="cv", gamma="cv"), SVC(C="cv"), SVC(gamma="cv")],
        [SVR(C="cv", epsilon="cv"), SVR(C="cv"), SVR(epsilon="cv")],
        [KernelLogisticRegression(C="cv")],
    ],
    ids=["SVC", "SVR", "KernelLogisticRegression"],
)
def test_scikit_learns_checks(settings: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # The fits of the folds are most of the time, and no check looks at them: two folds, and
    # factors of 10.
    monkeypatch.setattr("mercer.estimators.svm.chosen_by_folds._FOLDS", 2)
    monkeypatch.setattr("mercer.selection.coarse_to_fine.FINEST", math.log(10.0))
    others = not_passed(in_turn(settings, 0))
    # Folds of repeated rows are other folds than those of rows with weights.
    assert set(others) <= {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }


@pytest.mark.parametrize("kernel", ["linear", "cosine", "additive_chi2", "poly"])
def test_kernels_of_which_no_gamma_is_chosen(kernel: str) -> None:
    X, y = np.eye(20), np.arange(20) % 2
    with pytest.raises(ParameterError, match="gamma='cv' needs a kernel whose gamma can be chosen"):
        SVC(kernel=kernel, C="cv", gamma="cv").fit(X, y)


def test_few_targets_have_folds_of_two_rows() -> None:
    X = np.linspace(-1.0, 1.0, 9)[:, None]
    assert np.isfinite(SVR(C="cv").fit(X, X[:, 0]).search_.scores).all()
    assert np.isfinite(SVR(C="cv").fit(X[:4], X[:4, 0]).search_.scores).all()
    with pytest.raises(DataError, match="'cv' needs at least 4 rows for folds, but there are 3"):
        SVR(C="cv").fit(X[:3], X[:3, 0])
