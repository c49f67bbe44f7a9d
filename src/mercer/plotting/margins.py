"""Margins of rows: how far on the right side of the boundary they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import AnyArray, Vector
from mercer.plotting.drawing import Display, legend, table
from mercer.plotting.palette import INK, QUIET, colour, style
from mercer.plotting.rows import codes_of, labels_of
from mercer.selection.layers import require_fitted


@dataclass(eq=False, repr=False)
class MarginsDisplay(Display):
    """Shares of the rows up to each margin: at 0 the error rate, at 1 the rows within the margin.

    The margin of a row is y f(x) with two classes, and with more the decision value of its class less the largest of
    the others. Make the display with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    margins : dict of str to ndarray of shape (n,)
        By the name of the rows.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to matplotlib Line2D

    Examples
    --------
    >>> from mercer.plotting import MarginsDisplay
    >>> display = MarginsDisplay.from_predictions([0, 0, 1, 1], [-2.0, 0.5, 1.0, 3.0]).plot()
    >>> display.margins["rows"].tolist(), display.error_rates
    ([2.0, -0.5, 1.0, 3.0], {'rows': 0.25})
    """

    margins: dict[str, Vector]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, X_test: Any = None, y_test: Any = None) -> Self:
        """Compute the margins of training rows, and of held-out rows.

        Parameters
        ----------
        estimator : classifier
            Fitted, with a ``decision_function`` of a value for each row or for each class.
        X : array-like of shape (n, d), or other rows
            The training rows.
        y : array-like of shape (n,)
            Their classes.
        X_test, y_test : array-like, optional
            Held-out rows and their classes.

        Returns
        -------
        MarginsDisplay

        Raises
        ------
        DataError, ParameterError
            If the classes cannot be used, or the estimator has no such decision values.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        if not hasattr(estimator, "decision_function") or not hasattr(estimator, "classes_"):
            raise ParameterError(f"MarginsDisplay needs a classifier with decision_function, but has {estimator!r}.")
        if (X_test is None) != (y_test is None):
            raise DataError("held-out rows need both X_test and y_test; pass both, or neither.")
        classes = np.asarray(estimator.classes_)
        # Three classes have as many pairs.
        if len(classes) > 2 and getattr(learner, "decision_function_shape", "") == "ovo":
            raise ParameterError(
                "MarginsDisplay needs a decision value for each class, but has one for each pair; fit with "
                "decision_function_shape='ovr'."
            )
        margins = {"training rows": _margins(estimator.decision_function(X), y, classes)}
        if X_test is not None:
            margins["held-out rows"] = _margins(estimator.decision_function(X_test), y_test, classes)
        return cls(margins)

    @classmethod
    def from_predictions(cls, y_true: Any, decision: Any, *, name: str = "rows", classes: Any = None) -> Self:
        """Compute margins from decision values.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Classes of the rows.
        decision : array-like of shape (n,) or (n, k)
            Decision values: above 0 for the second of two classes, or one for each class, in the sorted order.
        name : str, default="rows"
            What the legend calls the rows.
        classes : array-like of shape (k,), optional
            All classes in sorted order, where not all of them occur among the rows. Default: those that occur.

        Returns
        -------
        MarginsDisplay

        Raises
        ------
        DataError
            If classes and values do not fit together.
        """
        known = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
        return cls({name: _margins(decision, y_true, known)})

    @property
    def error_rates(self) -> dict[str, float]:
        """The share of the rows with a margin below 0."""
        return {name: float(np.mean(values < 0)) for name, values in self.margins.items()}

    def plot(self, ax: Any = None) -> Self:
        """Draw the shares.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._open(ax)
        self.ax_.axvline(0.0, color=INK, linewidth=1.0)
        self.ax_.axvline(1.0, color=QUIET, linewidth=1.0, linestyle=":")
        self.lines_ = {}
        for number, (name, values) in enumerate(self.margins.items()):
            label = f"{name}: {self.error_rates[name]:.1%} below 0"
            self.lines_[name] = self.ax_.ecdf(values, color=colour(number), linestyle=style(number), label=label)
        self.ax_.set(xlabel="margin of the true class", ylabel="share of rows up to it", ylim=(0.0, 1.02))
        legend(self.ax_)
        return self

    def frame(self) -> Any:
        """Return the margins.

        Returns
        -------
        pandas.DataFrame
            ``rows`` and ``margin``.
        """
        names = [name for name, values in self.margins.items() for _ in values]
        return table(self, {"rows": names, "margin": np.concatenate(list(self.margins.values()))})


def _margins(decision: Any, y: Any, classes: Any) -> Vector:
    try:
        values = np.asarray(decision, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"decision values must be numbers, but cannot be read as such: {error}.") from error
    codes = codes_of(labels_of(y, len(values)), classes)
    if not np.isfinite(values).all():
        raise DataError("decision values contain NaN or infinity.")
    k = len(classes)
    if k < 2 or values.shape != ((len(codes),) if values.ndim == 1 and k == 2 else (len(codes), k)):
        raise DataError(
            f"decision values of {k} classes must be of shape (n,) for two classes or (n, {k}), but have the shape "
            f"{values.shape}; for pairs of classes set decision_function_shape='ovr'."
        )
    return margins_of(values, codes)


def margins_of(decision: AnyArray, codes: AnyArray) -> Vector:
    """Return ``y f(x)``, or by how much the decision value of the true class is above all others, (n,)."""
    if decision.ndim == 1:
        return np.where(codes == 1, decision, -decision)
    rows, others = np.arange(len(decision)), decision.copy()
    others[rows, codes] = -np.inf
    return np.asarray(decision[rows, codes] - others.max(axis=1))
