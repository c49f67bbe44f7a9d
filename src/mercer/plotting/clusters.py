"""Regions of clusters in feature space."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import AnyArray, Vector
from mercer.plotting.drawing import Display, groups, legend, shown_rows, shown_text, table
from mercer.plotting.regions import borders, fill
from mercer.plotting.rows import NamedRows, Points
from mercer.selection.layers import require_fitted


@dataclass(eq=False, repr=False)
class ClustersDisplay(Display):
    """The regions that kernel k-means puts into each cluster, and the rows by cluster.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : tuple of one or two ndarrays of shape (r,)
        Values of the features on the axes.
    codes : ndarray of int of shape (r, r), or (r,) for one feature
        The cluster; the first axis is that of the second feature.
    n_clusters : int
        Their number.
    points : Points
        The rows, with their clusters.
    names : tuple of str
        What the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    regions_ : matplotlib AxesImage
    lines_ : list
        Between the regions.
    points_ : dict of int to matplotlib PathCollection
        By cluster; each has a marker of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelKMeans
    >>> from mercer.plotting import ClustersDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = KernelKMeans(3, random_state=0).fit(X)
    >>> len(ClustersDisplay.from_estimator(model, X, grid_resolution=20).plot().points_)
    3
    """

    grid: tuple[Vector, ...]
    codes: AnyArray
    n_clusters: int
    points: Points
    _: KW_ONLY
    names: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Any = (0, 1),
        grid_resolution: int = 150,
        max_points: int = 1000,
        random_state: Any = 0,
    ) -> Self:
        """Assign a grid over one or two features, with the others at their median, and the rows.

        Parameters
        ----------
        estimator : KernelKMeans
            Fitted, or another clustering with ``predict`` and ``n_clusters``; also a pipeline.
        X : array-like or data frame of shape (n, d)
            Rows of numbers.
        features : pair of int or str, or one of them, default=(0, 1)
            The features on the axes. With one, the second axis shows the cluster.
        grid_resolution : int, default=150
            Values of each feature.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        ClustersDisplay

        Raises
        ------
        DataError, ParameterError
            If X cannot be used, there is no such feature, or the estimator is not such a clustering.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        if not hasattr(learner, "n_clusters") or not hasattr(estimator, "predict"):
            raise ParameterError(f"ClustersDisplay needs a KernelKMeans, but has {estimator!r}.")
        rows = NamedRows.of(X)
        grid = rows.over(features, grid_resolution)
        codes = grid.shaped(np.asarray(estimator.predict(grid.rows)))
        shown = shown_rows(len(rows.values), max_points, random_state)
        own = np.asarray(estimator.predict(rows.given))
        one = len(grid.axes) == 1
        places = np.column_stack([grid.places, own]) if one else grid.places
        names = (*grid.names, "cluster") if one else grid.names
        points = Points(places[shown], own[shown], None, len(rows.values))
        return cls(grid.axes, codes, int(learner.n_clusters), points, names=names)

    def plot(self, ax: Any = None) -> Self:
        """Draw the regions and the rows.

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
        self.regions_ = fill(self.ax_, self.grid, self.codes, self.n_clusters, (-0.5, self.n_clusters - 0.5))
        self.lines_ = [] if len(self.grid) == 1 else borders(self.ax_, self.grid, self.codes, self.n_clusters)
        if len(self.grid) == 1:
            self.ax_.set_yticks(range(self.n_clusters))
        codes: Any = self.points.codes
        labels = [f"cluster {number}: {int((codes == number).sum())} rows" for number in range(self.n_clusters)]
        self.points_ = groups(self.ax_, self.points.values, codes, labels, s=30, linewidths=0.6)
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        legend(self.ax_, title=shown_text(len(self.points.values), self.points.total), outside=ax is None)
        return self

    def frame(self) -> Any:
        """Return the rows that are shown: their place and cluster.

        Returns
        -------
        pandas.DataFrame
        """
        columns = {name: self.points.values[:, axis] for axis, name in enumerate(self.names)}
        return table(self, {**columns, "cluster": self.points.codes})
