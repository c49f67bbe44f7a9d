"""The layers of a fitted model: searches, pipelines and models of tables, and the learner inside them."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError
from mercer.data.objects import short
from mercer.estimators.table import TableModel


def require_fitted(model: Any, name: str = "estimator") -> Any:
    """Return the learner inside a fitted model.

    Parameters
    ----------
    model : estimator
    name : str, default="estimator"
        What messages call it.

    Raises
    ------
    ParameterError
        If it is a class, or not an estimator.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from mercer import SVC
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> require_fitted(make_pipeline(StandardScaler(), SVC(C=2.0)).fit([[0.0], [1.0]], [0, 1]))
    SVC(C=2.0)
    """
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise ParameterError(f"{name} must be a fitted estimator, but is {short(model)}.")
    check_is_fitted(model)
    return learner_inside(model)


def layers_of(model: Any) -> list[Any]:
    """Return the model itself, what is inside it, and so on to the learner."""
    layers = [model]
    while (inner := _inside(layers[-1])) is not None:
        layers.append(inner)
    return layers


def learner_inside(model: Any) -> Any:
    """Return the learner inside searches, pipelines and models of tables."""
    return layers_of(model)[-1]


def rows_for_learner(model: Any, X: Any) -> Any:
    """Return rows as the learner inside searches, pipelines and models of tables gets them."""
    for layer in layers_of(model)[:-1]:
        if isinstance(layer, TableModel):
            X = layer.encoder_.transform(X)
        elif hasattr(layer, "steps"):
            for _, step in layer.steps[:-1]:
                X = X if step is None or step == "passthrough" else step.transform(X)
    return X


def _inside(layer: Any) -> Any:
    if hasattr(layer, "best_estimator_"):
        return layer.best_estimator_
    if isinstance(layer, TableModel):
        return layer.estimator_
    return layer.steps[-1][1] if hasattr(layer, "steps") else None
