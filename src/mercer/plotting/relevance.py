"""How much each feature counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.inspection import permutation_importance

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.data.vectors import column_names
from mercer.kernels.modifiers import On
from mercer.plotting.drawing import Display, name_ticks, table, whole
from mercer.plotting.palette import COLOURS, INK, QUIET
from mercer.selection.layers import require_fitted


@dataclass(eq=False, repr=False)
class RelevanceDisplay(Display):
    """The relevance of each feature: inverse length scales, the relevance of tables, or permutation importance.

    Make it with :meth:`from_estimator` or :meth:`from_permutation`.

    Parameters
    ----------
    names : tuple of str
        The features.
    values : ndarray of shape (d,)
        Their relevance.
    deviations : ndarray of shape (d,), optional
        Standard deviations of the values.
    meaning : str, default="relevance"
        What the values are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : matplotlib PathCollection
        The features that are shown, the most relevant on top.
    bars_ : matplotlib LineCollection
        From 0 to the values.
    deviations_ : matplotlib LineCollection or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import RelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> display = RelevanceDisplay.from_estimator(KernelRidge(kernel=RBF([1.0, 4.0])).fit(X, X[:, 0])).plot()
    >>> display.values.tolist()
    [1.0, 0.25]
    """

    names: tuple[str, ...]
    values: Vector
    _: KW_ONLY
    deviations: Vector | None = None
    meaning: str = "relevance"

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Read ``relevance_``, or the length scales of the kernel.

        Parameters
        ----------
        estimator : estimator
            A fitted TabularRegressor or TabularClassifier, or a learner whose kernel has one part with a length scale
            for each feature. Length scales count features in their own units: scale them first.

        Returns
        -------
        RelevanceDisplay

        Raises
        ------
        ParameterError
            If the kernel has no length scale for each feature, or several parts with one.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        known, columns = getattr(learner, "feature_names_in_", None), None
        if hasattr(learner, "relevance_"):
            values = np.asarray(learner.relevance_, dtype=np.float64)
            meaning = "change without it / variance of predictions"
        else:
            scales = list(_length_scales(getattr(learner, "kernel_", None)))
            if len(scales) != 1:
                raise ParameterError(
                    f"the kernel of {estimator!r} has {len(scales)} parts with a length scale for each feature, but "
                    "must have one. Use a kernel such as RBF([1.0, 1.0]), or RelevanceDisplay.from_permutation."
                )
            (lengths, columns), meaning = scales[0], "1 / length scale"
            values = 1.0 / np.asarray(lengths)
        columns = tuple(range(len(values))) if columns is None else columns
        return cls(tuple(_name(column, known) for column in columns), values, meaning=meaning)

    @classmethod
    def from_permutation(
        cls, estimator: Any, X: Any, y: Any, *, scoring: Any = None, n_repeats: int = 10, random_state: Any = 0
    ) -> Self:
        """Permute each feature, and take the score that is lost.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like or data frame of shape (n, d)
            Rows, preferably held-out ones.
        y : array-like of shape (n,)
            Their targets.
        scoring : str or callable, optional
            The metric; the ``score`` of the estimator by default.
        n_repeats : int, default=10
            Permutations of each feature.
        random_state : int, RandomState or None, default=0
            Seed of the permutations.

        Returns
        -------
        RelevanceDisplay

        Raises
        ------
        DataError, ParameterError
            If X is not a table, or as ``score``.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        require_fitted(estimator)
        table_of = X if column_names(X) is not None else np.asarray(X)
        if len(table_of.shape) != 2:
            raise DataError(f"X must have two dimensions (rows, columns), but has shape {table_of.shape}.")
        repeats = whole("n_repeats", n_repeats, 1)
        importances = permutation_importance(
            estimator, table_of, y, scoring=scoring, n_repeats=repeats, random_state=random_state
        )
        names = column_names(X) or tuple(f"feature {j}" for j in range(table_of.shape[1]))
        values, deviations = importances["importances_mean"], importances["importances_std"]
        return cls(names, values, deviations=deviations, meaning="score lost by permutation")

    def plot(self, ax: Any = None, *, max_features: int = 30) -> Self:
        """Draw the features, the most relevant on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        max_features : int, default=30
            The most features that are drawn; the title says how many are left out.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If ``max_features`` is not a whole number of at least 1.
        MissingDependencyError
            If matplotlib is not installed.
        """
        shown = np.argsort(-self.values, kind="stable")[: whole("max_features", max_features, 1)][::-1]
        self._open(ax)
        places, values = np.arange(len(shown)), self.values[shown]
        self.bars_ = self.ax_.hlines(places, 0.0, values, color=QUIET, linewidth=1.0)
        self.deviations_ = None
        if self.deviations is not None:
            half = self.deviations[shown]
            self.deviations_ = self.ax_.hlines(
                places, values - half, values + half, color=COLOURS[0], linewidth=3.0, alpha=0.5
            )
        self.points_ = self.ax_.scatter(values, places, s=36, color=COLOURS[0], edgecolors=INK, zorder=3)
        self.ax_.axvline(0.0, color=INK, linewidth=0.8)
        name_ticks(self.ax_.yaxis, places, [self.names[j] for j in shown])
        # Points of the first and the last feature are not cut at the frame.
        self.ax_.set(xlabel=self.meaning, ylabel="feature", ylim=(-0.6, len(shown) - 0.4))
        if len(shown) < len(self.values):
            self.ax_.set_title(f"{len(shown)} of {len(self.values)} features shown", fontsize="small")
        return self

    def frame(self) -> Any:
        """Return the relevance of all features.

        Returns
        -------
        pandas.DataFrame
            ``feature``, ``relevance`` and, where known, ``deviation``.
        """
        columns: dict[str, Any] = {"feature": list(self.names), "relevance": self.values}
        return table(self, columns if self.deviations is None else {**columns, "deviation": self.deviations})


def _name(column: int | str, known: Any) -> str:
    if isinstance(column, str):
        return column
    return f"feature {column}" if known is None else str(known[column])


_Scales = tuple[tuple[float, ...], tuple[int | str, ...] | None]


def _length_scales(kernel: Any, columns: tuple[int | str, ...] | None = None) -> Iterator[_Scales]:
    """Of the parts of a kernel that have one for each feature, and their columns; None for all."""
    scale = getattr(kernel, "length_scale", None)
    if isinstance(scale, tuple):
        yield scale, columns
    columns = kernel.columns if isinstance(kernel, On) else columns
    for _, part in kernel.children() if hasattr(kernel, "children") else ():
        yield from _length_scales(part, columns)
