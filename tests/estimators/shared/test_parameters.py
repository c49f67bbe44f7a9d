"""Parameters of estimators that make no sense are named, with what was seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer import SVC, SVR, KernelSGDClassifier, NuSVC, OneClassSVM
from mercer._errors import DataError, ParameterError
from mercer.estimators.shared.parameters import is_among

X = np.random.default_rng(0).normal(size=(30, 2))
Y = (X[:, 0] > 0).astype(int)
SEVERAL = np.array(["kkt", "gap"])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(stop=SEVERAL), r"stop must be 'kkt' or 'gap', but is array\(\['kkt', 'gap'\]"),
        (OneClassSVM(stop=["kkt"]), r"stop must be 'kkt' or 'gap', but is \['kkt'\]"),
        (NuSVC(probability=SEVERAL), r"probability must be True, False or 'deprecated', but is array"),
        (SVC(decision_function_shape=["ovr"]), r"decision_function_shape must be 'ovr' or 'ovo', but is \['ovr'\]"),
        (SVC(solver=["smo"]), r"solver must be one of .*but is \['smo'\]"),
        (SVC(fit_intercept="no"), "fit_intercept must be True or False, but is 'no'"),
        (SVR(fit_intercept="no"), "fit_intercept must be True or False, but is 'no'"),
        (SVR(shrinking="x"), "shrinking must be True or False, but is 'x'"),
        (NuSVC(shrinking="x"), "shrinking must be True or False, but is 'x'"),
        (SVC(random_state="x"), "random_state must be a whole number.*but is 'x'"),
        (KernelSGDClassifier(random_state="x"), "random_state must be a whole number.*but is 'x'"),
        (KernelSGDClassifier(["hinge"]), r"value.*gradient.*but \['hinge'\] has no value and no gradient"),
        (KernelSGDClassifier(shuffle=SEVERAL), "shuffle must be True, False or 'uniform', but is array"),
        (KernelSGDClassifier(fit_intercept="no"), "fit_intercept must be True or False, but is 'no'"),
        (SVC(C=np.float64(-1.0)), r"C must be .*, but is -1\.0\."),
        (NuSVC(nu=np.float64(0.99)), r"nu=0\.99 is infeasible"),
        (SVC(gamma=np.float64(-2.0)), r"gamma must be .*, but is -2\.0\."),
        (SVC(cache_size=np.int64(-1)), r"cache_size must be .*, but is -1"),
    ],
)
def test_what_is_no_choice(model: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        model.fit(X, Y)


@pytest.mark.parametrize("learner", [SVC, NuSVC, KernelSGDClassifier])
@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ("bal", "class_weight must be a dict of factors by class, 'balanced' or None, but is 'bal'"),
        ([1, 2], r"class_weight must be a dict .* but is \[1, 2\]"),
        ({5: 1}, r"class_weight must have a number for each class.*is \{5: 1\}; the classes are \[0, 1\]"),
        ({0: "a"}, r"class_weight must have a number for each class.*is \{0: 'a'\}"),
    ],
)
def test_class_weights_that_are_none(learner: Any, class_weight: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        learner(class_weight=class_weight).fit(X, Y)


def test_what_numpy_has_for_a_choice_is_one() -> None:
    assert is_among(np.bool_(True), (True, False)) and is_among(np.str_("gap"), ("kkt", "gap"))
    model = SVC(fit_intercept=np.bool_(False), class_weight={0: 1.0, 1: 2.0, 5: 3.0}).fit(X, Y)
    assert model.intercept_.tolist() == [0.0] and model.class_weight_.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("weight", [None, np.r_[2.0, np.ones(29)]])
def test_gamma_scale_of_what_overflows(weight: np.ndarray | None) -> None:
    with pytest.raises(DataError, match=r"gamma='scale' is 1 / \(d \* variance of X\).*overflows.*reach .*e\+200"):
        SVC().fit(X * 1e200, Y, weight)
