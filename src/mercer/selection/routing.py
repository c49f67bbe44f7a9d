"""Where the metadata of a search without a grid go: sample weights to fits and scores, groups to the splitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from mercer._errors import ParameterError
from mercer.selection.evaluated import prefix_of
from mercer.selection.search_arguments import scorer_of


@dataclass(frozen=True, eq=False)
class Routed:
    """The metadata of one call of ``fit``.

    Parameters
    ----------
    fit : dict
        Arguments of the estimator's ``fit`` in the fit to all rows.
    weight : array-like or None
        Weights of the learner's fits.
    split : dict
        Arguments of the splitter.
    score_weight : array-like or None
        Weights of held-out rows in the scores.
    """

    fit: dict[str, Any]
    weight: Any
    split: dict[str, Any]
    score_weight: Any


def router_of(search: Any) -> MetadataRouter:
    """Return who asks for metadata of a search: its estimator, its metric and its splitter."""
    router = MetadataRouter(owner=search)
    router.add(estimator=search.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    router.add(
        scorer=scorer_of(search.estimator, search.scoring),
        method_mapping=MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score"),
    )
    router.add(splitter=search.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    return router


def is_routing() -> bool:
    """Whether scikit-learn routes metadata by what estimators request."""
    return bool(sklearn.get_config()["enable_metadata_routing"])


def routed_to_fit(search: Any, params: dict[str, Any]) -> Routed:
    """Return where the arguments of a search's ``fit`` go.

    Without metadata routing, ``groups`` go to the splitter and sample weights to the fits alone.

    Raises
    ------
    ParameterError
        If a fit would need others than ``sample_weight``, or a step of a pipeline before the learner needs some.
    ValueError
        From scikit-learn: metadata that nobody requests, or that are not requested explicitly.
    """
    if not is_routing():
        params = dict(params)
        split = {"groups": params.pop("groups", None)}
        return Routed(params, _weight_among(params, prefix_of(search.estimator)), split, None)
    routed = process_routing(search, "fit", **params)
    fit, split, score = dict(routed.estimator.fit), dict(routed.splitter.split), dict(routed.scorer.score)
    strange = sorted(set(score) - {"sample_weight"})
    if strange:
        raise ParameterError(
            f"the metric requests {', '.join(strange)}, and KernelSearchCV passes it sample_weight alone; use "
            "GridSearchCV."
        )
    return Routed(fit, _weight_of_learner(search.estimator, fit), split, score.get("sample_weight"))


def routed_to_score(search: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the metric in ``score``.

    Raises
    ------
    ParameterError
        If there are any, and metadata routing is not enabled.
    ValueError
        From scikit-learn: metadata that the metric does not request.
    """
    if params and not is_routing():
        raise ParameterError(
            f"score of KernelSearchCV takes {', '.join(sorted(params))} only with metadata routing: call "
            "sklearn.set_config(enable_metadata_routing=True), and set_score_request of the metric or the estimator."
        )
    return dict(process_routing(search, "score", **params).scorer.score)


def _weight_of_learner(estimator: Any, fit: dict[str, Any]) -> Any:
    """The sample weights of the learner among the metadata of the estimator."""
    if not (isinstance(estimator, Pipeline) and fit):
        return _weight_among(fit, "")
    routed = process_routing(estimator, "fit", **fit)
    *before, (last, _) = estimator.steps
    for name, _ in before:
        asked = sorted({key for options in routed[name].values() for key in options}) if name in routed else []
        if asked:
            raise ParameterError(
                f"the step {name!r} of the pipeline requests {', '.join(asked)}, and KernelSearchCV passes metadata to "
                "the last step alone; use GridSearchCV."
            )
    return _weight_among(dict(routed[last].fit), "")


def _weight_among(params: dict[str, Any], prefix: str) -> Any:
    """The sample weights among the arguments of ``fit``; None if there are none."""
    others = sorted(set(params) - {f"{prefix}sample_weight"})
    if others:
        raise ParameterError(
            f"fit of KernelSearchCV takes groups and {prefix}sample_weight besides X and y, but got "
            f"{', '.join(others)}."
        )
    return params.get(f"{prefix}sample_weight")
