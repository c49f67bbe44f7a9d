"""The report of a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer._errors import DataError
from mercer._types import AnyArray, RowsLike
from mercer.data.seeds import generator
from mercer.data.words import counted
from mercer.reports import sections
from mercer.reports.baselines import baselines
from mercer.reports.distances import measured
from mercer.reports.document import Report
from mercer.reports.errors import errors
from mercer.reports.far import distance
from mercer.reports.fingerprint import of_rows
from mercer.reports.function import function
from mercer.reports.geometry import geometry
from mercer.reports.influence import influence, relevance
from mercer.reports.judged import Judged
from mercer.reports.material import Material
from mercer.reports.path import along_path, check_path, refuse_path
from mercer.reports.searched import searched
from mercer.reports.subject import Subject
from mercer.reports.verdict import verdict
from mercer.selection.path import Path
from mercer.selection.ridge import RidgePath


def report(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    X_train: RowsLike | None = None,
    y_train: ArrayLike | None = None,
    path: Path | RidgePath | None = None,
    random_state: int = 0,
) -> Report:
    """Report on a fitted model: how well it predicts, how good the solution is, and how to make it again.

    The report is a value: ``report["scores"]`` is a section with numbers, ``report.save("report.html")`` writes one
    page without scripts that loads nothing, and a notebook shows it.

    Parameters
    ----------
    model : estimator
        Fitted; also a search or a pipeline, or what :func:`mercer.load` reads from a file of ``mercer fit``.
    X : array-like of shape (n, d), data frame or other rows, optional
        Rows on which the model is judged, preferably held out from the fit. For rows of the fit, the report
        says that scores flatter the model.
    y : array-like of shape (n,), optional
        Their targets. Without them there are no scores.
    X_train, y_train : as X and y, optional
        The rows of the fit, from which a constant and a linear model learn. Without them these learn from X and y, each
        fifth from the other four.
    path : Path or RidgePath, optional
        From :func:`mercer.svm_path` or :func:`mercer.ridge_path`, if the model was taken from it: the report draws it,
        marks the model, and for held-out rows computes the errors of all its models.
    random_state : int, default=0
        Seed of samples and folds.

    Returns
    -------
    Report

    Raises
    ------
    DataError
        If there are no rows, targets are missing or unknown to the model, only one of ``X_train`` and ``y_train`` is
        given, they have different lengths, or the model was fitted to another number of rows.
    ParameterError
        If the model is not a fitted estimator, the path is not one of the same learner, or ``random_state`` is not a
        seed.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = mercer.SVC(C=10.0).fit(X[:100], y[:100])
    >>> report = mercer.report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100])
    >>> report["scores"].table("Scores").column("model")
    ['SVC', 'gradient boosting', 'logistic regression', 'most frequent class']
    >>> path = mercer.ridge_path(X[:100], X[:100, 0] * X[:100, 1], kernel="rbf")
    >>> report = mercer.report(path.best(), path=path)
    >>> report["path"].fact("alpha of this model") == report["path"].fact("alpha of the least leave-one-out error")
    True
    """
    refuse_path(model)
    subject = Subject.of(model)
    if path is not None:
        check_path(path, subject)
    generator(random_state)
    if (X_train is None) != (y_train is None):
        raise DataError("X_train and y_train belong together; pass both, or neither.")
    if X is None and y is not None:
        raise DataError("y are the targets of the rows X; pass X, too.")
    train = None if X_train is None else (X_train, np.asarray(y_train))
    if train is not None:
        _check_train(subject, *train)
    kind = "new" if X is None else _kind(subject, X, train is not None)
    judged = None if X is None or y is None else Judged.of(subject, X, y, kind)
    far = None if X is None or kind == "fit" else measured(subject, X, X_train, random_state)
    return compose(
        Material(
            subject,
            random_state,
            X=X,
            judged=judged,
            train=train,
            baselines=None if judged is None else baselines(subject, judged, X, train, random_state),
            far=far,
            steps=_steps(subject, X, y, train),
            target=str(getattr(y, "name", None) or "y"),
            path=path,
        )
    )


def _check_train(subject: Subject, X: Any, y: AnyArray) -> None:
    rows = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    if y.ndim == 0 or rows != len(y):
        targets = "one value" if y.ndim == 0 else counted(len(y), "target")
        raise DataError(
            f"X_train has {counted(rows, 'row')}, but y_train has {targets}. Pass one target for each row of the fit."
        )
    fitted = subject.rows_of_fit
    if fitted is not None and rows != fitted:
        raise DataError(
            f"X_train has {counted(rows, 'row')}, but the {subject.name} was fitted on {fitted}. Pass the rows of the "
            "fit, or leave out X_train and y_train."
        )


def compose(material: Material) -> Report:
    """Return the report of what was gathered."""
    # What a reader asks first: how good it is, where it errs, what it has learnt, on which rows not to rely on it.
    parts = [
        sections.scores(material),
        errors(material),
        function(material),
        relevance(material),
        distance(material),
        sections.data(material),
        searched(material),
        along_path(material),
        sections.certificate(material),
    ]
    folded = [geometry(material), influence(material), sections.reproduce(material)]
    parts += [replace(part, is_folded=True) for part in folded if part is not None]
    title = f"{material.subject.name}: {material.target}"
    return Report(title, verdict(material), tuple(part for part in parts if part is not None))


def _kind(subject: Subject, X: Any, has_train: bool) -> str:
    if subject.are_of_the_fit(subject.checked(X)):
        return "fit"
    return "held out" if has_train else "new"


def _steps(subject: Subject, X: Any, y: Any, train: Any) -> tuple[tuple[str, str], ...]:
    steps = [("model", repr(subject.model))]
    if X is not None:
        steps.append(("SHA-256 of the judged rows", of_rows(X, y)))
    if train is not None:
        steps.append(("SHA-256 of the training rows", of_rows(*train)))
    return tuple(steps)
