"""Ordered classes on the scale of one function."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import AnyArray, Vector
from mercer.data.seeds import generator
from mercer.plotting.drawing import Display, legend, line, mark, name_ticks, shown_rows, shown_text, table
from mercer.plotting.palette import INK, colour
from mercer.plotting.rows import codes_of, labels_of
from mercer.selection.layers import require_fitted, rows_for_learner

# How far rows of a class are spread about its line, to be told apart.
_SPREAD = 0.28


@dataclass(eq=False, repr=False)
class OrdinalDisplay(Display):
    """Latent values of rows by their class, between the cut-points of an ordinal regression.

    Rows between the two cut-points of their class are dots, others crosses. Make the display with
    :meth:`from_estimator`.

    Parameters
    ----------
    latent : ndarray of shape (n,)
        Values of the function.
    codes : ndarray of int of shape (n,)
        Classes, as positions in ``classes``.
    classes : ndarray of shape (k,)
        In their order.
    thresholds : ndarray of shape (k - 1,)
        The cut-points; infinite next to classes without rows.
    total : int
        How many rows there are, shown or not.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    inside_, outside_ : matplotlib PathCollection
        Rows between the cut-points of their class, and the others.
    lines_ : list of matplotlib Line2D
        The finite cut-points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelOrdinalRegression
    >>> from mercer.plotting import OrdinalDisplay
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> y = np.digitize(X[:, 0], [1.0, 2.0])
    >>> display = OrdinalDisplay.from_estimator(KernelOrdinalRegression(C=100.0).fit(X, y), X, y).plot()
    >>> len(display.inside_.get_offsets()), len(display.lines_)
    (31, 2)
    """

    latent: Vector
    codes: AnyArray
    classes: AnyArray
    thresholds: Vector
    _: KW_ONLY
    total: int

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, max_points: int = 1000, random_state: Any = 0) -> Self:
        """Compute the latent values of rows.

        Parameters
        ----------
        estimator : KernelOrdinalRegression, GaussianProcessOrdinalRegression, or a pipeline or search of one
            Fitted.
        X : array-like of shape (n, d), or other rows
            Rows.
        y : array-like of shape (n,)
            Their classes.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        OrdinalDisplay

        Raises
        ------
        DataError, ParameterError
            If rows or classes cannot be used, or the estimator is not an ordinal regression.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        if not hasattr(learner, "latent") or not hasattr(learner, "thresholds_"):
            raise ParameterError(
                f"OrdinalDisplay needs a KernelOrdinalRegression or a GaussianProcessOrdinalRegression, but has "
                f"{estimator!r}."
            )
        latent = np.asarray(learner.latent(rows_for_learner(estimator, X)), dtype=np.float64)
        codes = codes_of(labels_of(y, len(latent)), np.asarray(learner.classes_))
        shown = shown_rows(len(latent), max_points, random_state)
        thresholds = np.asarray(learner.thresholds_, dtype=np.float64)
        return cls(latent[shown], codes[shown], np.asarray(learner.classes_), thresholds, total=len(latent))

    @property
    def inside(self) -> AnyArray:
        """Whether each row is between the two cut-points of its class."""
        ends = np.r_[-np.inf, self.thresholds, np.inf]
        return np.asarray((ends[self.codes] <= self.latent) & (self.latent <= ends[self.codes + 1]))

    def plot(self, ax: Any = None) -> Self:
        """Draw rows and cut-points.

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
        # A fixed seed: only to tell rows apart.
        heights = self.codes + generator(0).uniform(-_SPREAD, _SPREAD, len(self.codes))
        inside = self.inside
        inks = np.array([colour(code) for code in self.codes])
        self.inside_ = self.ax_.scatter(self.latent[inside], heights[inside], s=20, c=inks[inside])
        self.outside_ = self.ax_.scatter(self.latent[~inside], heights[~inside], s=34, marker="X", c=inks[~inside])
        self.outside_.set_edgecolor(INK)
        cuts = self.thresholds[np.isfinite(self.thresholds)]
        self.lines_ = [self.ax_.axvline(cut, color=INK, linestyle="--", linewidth=1.0) for cut in cuts]
        name_ticks(self.ax_.yaxis, range(len(self.classes)), self.classes)
        self.ax_.set(xlabel="latent value f(x)", ylabel="class")
        keys = [
            mark(f"between its cut-points: {int(inside.sum())}", "o"),
            mark(f"elsewhere: {int((~inside).sum())}", "X"),
            line("cut-points", "--"),
        ]
        legend(self.ax_, keys, shown_text(len(self.latent), self.total), outside=ax is None)
        return self

    def frame(self) -> Any:
        """Return the rows that are shown.

        Returns
        -------
        pandas.DataFrame
            ``latent``, ``class``, and ``inside``: whether the value is between the cut-points of the class.
        """
        return table(self, {"latent": self.latent, "class": self.classes[self.codes], "inside": self.inside})
