"""Metadata of KernelSearchCV: requested ones go where scikit-learn's GridSearchCV sends them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn import model_selection
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from mercer import SVC, KernelSearchCV
from mercer._errors import ParameterError
from mercer.selection.routing import routed_to_fit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] + RNG.normal(size=40) > 0).astype(int)
WEIGHT = np.linspace(0.1, 3.0, 40)
GROUPS = np.arange(40) % 4


@pytest.fixture
def _routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def weighted(fit: bool = True, score: bool = True, **options: Any) -> KernelSearchCV:
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=score)
    estimator = SVC().set_fit_request(sample_weight=fit)
    options = {"cv": 3, "parameters": ["C"], "random_state": 0, **options}
    return KernelSearchCV(estimator, scoring=scorer, time_budget=20, **options)


@pytest.mark.usefixtures("_routing")
@pytest.mark.parametrize(("fit", "score"), [(True, True), (True, False), (False, True)])
def test_weights_go_where_they_are_requested(fit: bool, score: bool) -> None:
    search = weighted(fit, score).fit(X, Y, sample_weight=WEIGHT)
    best = {name: [value] for name, value in search.best_params_.items()}
    peer = model_selection.GridSearchCV(search.estimator, best, scoring=search.scoring, cv=3)
    peer.fit(X, Y, sample_weight=WEIGHT)
    assert search.best_score_ == pytest.approx(peer.best_score_)
    assert search.best_estimator_.dual_coef_.tolist() == peer.best_estimator_.dual_coef_.tolist()
    assert (search.bounds_reason_ == "no bound is known for weighted scores") == score
    options = {"sample_weight": WEIGHT} if score else {}
    assert search.score(X, Y, **options) == peer.score(X, Y, **options)


@pytest.mark.usefixtures("_routing")
def test_the_score_of_the_estimator_is_weighted_as_well() -> None:
    estimator = SVC().set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
    search = KernelSearchCV(estimator, cv=3, parameters=["C"], random_state=0).fit(X, Y)
    wrong = 1.0 + 9.0 * (search.predict(X) != Y)
    assert (search.predict(X) != Y).any()
    assert search.score(X, Y, sample_weight=wrong) < search.score(X, Y) - 0.1


@pytest.mark.usefixtures("_routing")
def test_groups_go_to_the_splitter_and_through_other_searches() -> None:
    search = weighted(cv=GroupKFold(2)).fit(X, Y, sample_weight=WEIGHT, groups=GROUPS)
    assert search.n_splits_ == 2
    routing = get_routing_for_object(search)
    assert routing.consumes("fit", {"groups", "sample_weight", "other"}) == {"groups", "sample_weight"}
    outer = weighted(cv=GroupKFold(2), parameters=["C"], refit=True)
    params = {"sample_weight": WEIGHT, "groups": GROUPS}
    scores = cross_validate(outer, X, Y, cv=GroupKFold(4), params=params, scoring=outer.scoring, error_score="raise")
    assert len(scores["test_score"]) == 4


@pytest.mark.usefixtures("_routing")
def test_what_is_not_requested_raises() -> None:
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        KernelSearchCV(SVC(), cv=3).fit(X, Y, sample_weight=WEIGHT)
    with pytest.raises(TypeError, match="unexpected argument"):
        weighted().fit(X, Y, sample_weight=WEIGHT, other=WEIGHT)
    with pytest.raises(TypeError, match="unexpected argument"):
        weighted(score=False).fit(X, Y).score(X, Y, other=WEIGHT)


@pytest.mark.usefixtures("_routing")
def test_pipelines_pass_weights_to_their_last_step_alone() -> None:
    learner = SVC().set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    scorer = get_scorer("accuracy").set_score_request(sample_weight=False)
    pipeline = make_pipeline(scaler, learner)
    options: dict[str, Any] = {"cv": 3, "parameters": ["C"], "scoring": scorer, "random_state": 0}
    search = KernelSearchCV(pipeline, **options).fit(X, Y, sample_weight=WEIGHT)
    with sklearn.config_context(enable_metadata_routing=False):
        other = KernelSearchCV(make_pipeline(StandardScaler(), SVC()), **options)
        other.fit(X, Y, svc__sample_weight=WEIGHT)
    assert search.cv_results_["mean_test_score"].tolist() == other.cv_results_["mean_test_score"].tolist()
    assert search.predict(X).tolist() == other.predict(X).tolist()
    asking = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), learner)
    with pytest.raises(ParameterError, match="the step 'standardscaler' of the pipeline requests sample_weight"):
        routed_to_fit(KernelSearchCV(asking, **options), {"sample_weight": WEIGHT})


@pytest.mark.usefixtures("_routing")
def test_a_name_of_its_own_for_the_weights() -> None:
    estimator = SVC().set_fit_request(sample_weight="rows")
    routed = routed_to_fit(KernelSearchCV(estimator), {"rows": WEIGHT})
    assert routed.weight is WEIGHT and routed.fit == {"sample_weight": WEIGHT} and routed.score_weight is None


def test_without_routing_score_takes_no_weights() -> None:
    search = KernelSearchCV(SVC(), cv=3, parameters=["C"], random_state=0).fit(X, Y, sample_weight=WEIGHT)
    with pytest.raises(ParameterError, match="takes sample_weight only with metadata routing"):
        search.score(X, Y, sample_weight=WEIGHT)
    assert search.score(X, Y) == np.mean(search.predict(X) == Y)
