"""Labels that are missing, and whose line a warning names."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mercer import (
    SVC,
    SVR,
    BayesianLinearRegression,
    GaussianProcessRegressor,
    KernelMachine,
    KernelRidge,
    KernelSGDClassifier,
    NuSVC,
    TabularRegressor,
    svm_path,
)
from mercer._errors import DataError, MercerWarning

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


@pytest.mark.parametrize("learner", [SVC, NuSVC, KernelSGDClassifier])
@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(["a", np.nan, "b", "a"]),
        pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        np.array(["a", None, "b", "a"], dtype=object),
        [1.0, np.nan, 2.0, 1.0],
    ],
    ids=range(5),
)
def test_missing_labels_are_named_by_their_row(learner: Any, labels: Any) -> None:
    with pytest.raises(DataError, match=r"y contains NaN.*1 labels are missing, the first \(.*\) in row 1; drop"):
        learner().fit(X[:4], labels)


@pytest.mark.parametrize(
    ("learner", "bad", "words"),
    [
        (SVR, np.nan, r"y contains NaN\. The targets of 2 of 60 rows are not finite, first nan in row 4; drop"),
        (SVR, np.inf, r"y contains infinity .*\. The targets of 2 of 60 rows are not finite, first inf in row 4; drop"),
        (SVC, -np.inf, r"y contains infinity .* first -inf in row 4; drop"),
    ],
)
def test_targets_that_are_not_finite_are_named_by_their_row(learner: Any, bad: float, words: str) -> None:
    targets = Y.astype(float)
    targets[[4, 9]] = bad
    with pytest.raises(DataError, match=words):
        learner().fit(X, targets)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    "fit",
    [
        lambda: SVC(max_iter=2).fit(X, Y),
        lambda: svm_path(X, Y, [1.0], max_iter=2),
        lambda: svm_path(X, X[:, 0], [1.0], estimator=SVR(max_iter=2)),
        lambda: SVR().fit(X, np.ones(60)),
        lambda: KernelSGDClassifier(max_iter=1).fit(X, Y),
        lambda: NuSVC(nu=0.1, kernel="linear").fit(np.r_[X, X, X], np.r_[Y, 1 - Y, Y + 1]),
    ],
    ids=range(6),
)
def test_warnings_name_the_line_of_the_user(fit: Any) -> None:
    with pytest.warns(Warning) as caught:
        fit()
    assert {warning.filename for warning in caught} == {__file__}


def test_without_a_margin_every_pair_is_named() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NuSVC(nu=0.1, kernel="linear").fit(np.r_[X, X, X], np.repeat(["a", "b", "c"], 60))
    messages = [str(warning.message) for warning in caught if warning.category is MercerWarning]
    assert len(messages) == 3 and all("so small" in text for text in messages)
    assert "'a' and 'b'" in messages[0] and "'b' and 'c'" in messages[2]


def test_one_target_that_all_predictions_follow_is_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.sin(X[:, 0])
    spoilt = y.copy()
    spoilt[17] = 1e6
    learners = (
        KernelRidge(1.0),
        GaussianProcessRegressor(alpha=0.1, optimizer=None),
        BayesianLinearRegression(),
        TabularRegressor(random_state=0),
    )
    for learner in learners:
        with pytest.warns(MercerWarning, match="one target, in row 17, is 1.53e.06 times as far") as seen:
            learner.fit(X, spoilt)
        assert len([one for one in seen if "one target" in str(one.message)]) == 1
    calls = re.findall(r"\w+\([^()]*\)", str(seen[0].message))
    assert len(calls) == 2
    others = np.arange(100) != 17
    for call in calls:
        # What is recommended is not moved by it.
        learner = eval(call, {"SVR": SVR, "KernelMachine": KernelMachine})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            predicted = learner.fit(X, spoilt).predict(X)
        assert np.abs(predicted - y)[others].mean() < 0.2
