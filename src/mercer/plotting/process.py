"""Functions with their uncertainty: Gaussian processes before and after a fit, and curves of quantiles."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.linalg
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Vector
from mercer.data.seeds import generator
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor
from mercer.estimators.kernel_quantile_regression import KernelQuantileRegression
from mercer.plotting.drawing import Display, curves, legend, shown_rows, shown_text, table, whole
from mercer.plotting.palette import COLOURS, INK, QUIET
from mercer.plotting.rows import NamedRows, numbers_of
from mercer.selection.layers import learner_inside

# Standard deviations to either side that hold 95 % of a normal distribution.
_WIDTH = 1.96


class Observed(NamedTuple):
    """Rows that are shown with a curve.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        The feature on the axis, and the target.
    total : int
        How many rows there are, shown or not.
    """

    x: Vector
    y: Vector
    total: int


@dataclass(eq=False, repr=False)
class ProcessDisplay(Display):
    """Mean, bands of 95 % and draws of a Gaussian process, or curves of quantiles, along one feature.

    Make it with :meth:`from_estimator`. The inner band is that of the function, the outer one that of new observations.

    Parameters
    ----------
    grid : ndarray of shape (m,)
        Values of the feature.
    curves : ndarray of shape (m, q)
        The mean (q is 1), or the quantiles.
    labels : tuple of str
        Names of the curves.
    bands : ndarray of shape (m, 2), optional
        Standard deviations of the function and of an observation.
    draws : ndarray of shape (m, s), optional
        Functions drawn from the process.
    points : Observed, optional
        Rows to show.
    names : tuple of str, default=("", "y")
        What the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        The curves.
    bands_ : list of matplotlib PolyCollection
        The band of observations and that of the function; between the outer quantiles the only one.
    draws_ : list of matplotlib Line2D
    points_ : matplotlib PathCollection or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessRegressor
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import ProcessDisplay
    >>> x = np.linspace(0, 3, 20)[:, None]
    >>> prior = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1, optimizer=None)
    >>> len(ProcessDisplay.from_estimator(prior, x, n_draws=2, grid_resolution=30).plot().draws_)
    2
    >>> posterior = ProcessDisplay.from_estimator(prior.fit(x, np.sin(x[:, 0])), x, np.sin(x[:, 0]))
    >>> posterior.frame().columns.tolist()[:4]
    ['feature 0', 'mean', 'std_function', 'std_observation']
    """

    grid: Vector
    curves: Matrix
    labels: tuple[str, ...]
    _: KW_ONLY
    bands: Matrix | None = None
    draws: Matrix | None = None
    points: Observed | None = None
    names: tuple[str, str] = ("", "y")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: int | str = 0,
        n_draws: int = 3,
        grid_resolution: int = 200,
        random_state: Any = 0,
    ) -> Self:
        """Predict along one feature, with the others at their median.

        Parameters
        ----------
        estimator : GaussianProcessRegressor or KernelQuantileRegression
            The first may be unfitted: then the display shows its prior. At most 2000 rows are drawn as points.
        X : array-like or data frame of shape (n, d)
            Rows whose range is shown; for the prior the place where it is shown.
        y : array-like of shape (n,), optional
            Their targets, to be drawn as points.
        feature : int or str, default=0
            The feature on the axis.
        n_draws : int, default=3
            Functions to draw from the process; 0 for none.
        grid_resolution : int, default=200
            Values of the feature.
        random_state : int, RandomState or None, default=0
            Seed of the functions and of the sample of rows.

        Returns
        -------
        ProcessDisplay

        Raises
        ------
        DataError, ParameterError
            If X or y cannot be used, there is no such feature, or there are several targets.
        sklearn.exceptions.NotFittedError
            If a quantile regression is not fitted.
        """
        learner = learner_inside(estimator)
        rows = NamedRows.of(X)
        (grid,), at, (name,), places = rows.over((feature,), grid_resolution)
        count = whole("n_draws", n_draws, 0)
        names = (name, str(getattr(y, "name", None) or "y"))
        points = None
        if y is not None:
            shown = shown_rows(len(rows.values), 2000, random_state)
            points = Observed(places[shown, 0], numbers_of(y, len(rows.values))[shown], len(rows.values))
        if isinstance(learner, KernelQuantileRegression):
            check_is_fitted(estimator)
            values = np.asarray(estimator.predict(at)).reshape(len(grid), -1)
            labels = tuple(f"quantile {level:g}" for level in learner.quantiles_)
            return cls(grid, values, labels, points=points, names=names)
        if not isinstance(learner, GaussianProcessRegressor):
            raise ParameterError(
                "ProcessDisplay needs a GaussianProcessRegressor or a KernelQuantileRegression, but has "
                f"{estimator!r}; for SVR and NuSVR there is TubeDisplay."
            )
        mean, bands, draws = _process(estimator, at, count, random_state)
        label = "mean" if hasattr(learner, "alpha_") else "prior mean"
        return cls(grid, mean[:, None], (label,), bands=bands, draws=draws, points=points, names=names)

    def plot(self, ax: Any = None, *, show_draws: bool = True) -> Self:
        """Draw bands, curves, draws and rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        show_draws : bool, default=True
            Whether functions drawn from the process are shown.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._open(ax)
        self._draw_bands()
        draws = np.empty((len(self.grid), 0)) if self.draws is None or not show_draws else self.draws
        names = ["draws of f", *[""] * draws.shape[1]]
        self.draws_ = curves(self.ax_, self.grid, draws, names, color=QUIET, linewidth=0.8, linestyle="-")
        self.lines_ = curves(self.ax_, self.grid, self.curves, self.labels, color=COLOURS[0])
        self.points_ = None
        title = ""
        if self.points is not None:
            self.points_ = self.ax_.scatter(self.points.x, self.points.y, s=14, color=INK, zorder=3, label="rows")
            title = shown_text(len(self.points.x), self.points.total)
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        legend(self.ax_, title=title)
        return self

    def frame(self) -> Any:
        """Return the curves: a row for each value of the feature.

        Returns
        -------
        pandas.DataFrame
            The feature, the curves, ``std_function`` and ``std_observation`` of a process, and ``draw_0``, ...
        """
        columns: dict[str, Any] = {self.names[0]: self.grid, **dict(zip(self.labels, self.curves.T))}
        if self.bands is not None:
            columns |= {"std_function": self.bands[:, 0], "std_observation": self.bands[:, 1]}
        if self.draws is not None:
            columns |= {f"draw_{number}": draw for number, draw in enumerate(self.draws.T)}
        return table(self, columns)

    def _draw_bands(self) -> None:
        self.bands_: list[Any] = []
        if self.bands is not None:
            mean = self.curves[:, 0]
            for column, alpha, label in ((1, 0.16, "95 % of observations"), (0, 0.34, "95 % of f")):
                half = _WIDTH * self.bands[:, column]
                if column == 1 and np.allclose(self.bands[:, 0], self.bands[:, 1], rtol=1e-6):
                    # Without noise both bands are one.
                    continue
                self.bands_.append(self._fill(mean - half, mean + half, alpha, label))
        elif self.curves.shape[1] > 1:
            self.bands_.append(self._fill(self.curves.min(axis=1), self.curves.max(axis=1), 0.18, ""))

    def _fill(self, low: Vector, high: Vector, alpha: float, label: str) -> Any:
        return self.ax_.fill_between(self.grid, low, high, color=COLOURS[0], alpha=alpha, linewidth=0, label=label)


def _process(estimator: Any, rows: Any, count: int, random_state: Any) -> tuple[Vector, Matrix, Matrix | None]:
    """Mean, standard deviations of the function and of observations, and functions drawn from the process."""
    mean, observed = estimator.predict(rows, return_std=True, observation=True)
    if mean.ndim > 1:
        raise DataError(f"ProcessDisplay shows one target, but this fit has {mean.shape[1]}; fit each of them alone.")
    _, covariance = estimator.predict(rows, return_cov=True, observation=False)
    bands = np.column_stack([np.sqrt(np.maximum(np.diag(covariance), 0.0)), observed])
    if not count:
        return mean, bands, None
    # Of the function, without the noise that White terms would add to each value.
    values, vectors = scipy.linalg.eigh(covariance)
    steps = generator(random_state).standard_normal((len(values), count))
    return mean, bands, mean[:, None] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * steps)
