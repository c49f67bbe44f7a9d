"""The tube of a support vector regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import AnyArray, Vector
from mercer.data.objects import short
from mercer.estimators.nu_svr import NuSVR
from mercer.estimators.svr import SVR
from mercer.plotting.drawing import Display, legend, shown_rows, shown_text, table
from mercer.plotting.palette import ALARM, COLOURS, INK, QUIET, ROLE_MARKERS, ROLE_SIZES
from mercer.plotting.rows import NamedRows, numbers_of, roles_of
from mercer.selection.layers import require_fitted

_WORDS = {"zero": "inside the tube", "free": "on its edge", "bounded": "outside"}
_COLOURS = {"zero": QUIET, "free": COLOURS[0], "bounded": ALARM}
_RESOLUTION = 200
# A residual this near to epsilon, as a share of it, is on the edge.
_EDGE = 1e-3


class TubeRows(NamedTuple):
    """Rows about a tube.

    Parameters
    ----------
    x, y, predicted : ndarray of shape (n,)
        Their place on the axis, their target, and its prediction.
    roles : ndarray of str of shape (n,)
        ``"zero"`` inside the tube, ``"free"`` on its edge, ``"bounded"`` outside.
    total : int
        How many rows there are, shown or not.
    """

    x: Vector
    y: Vector
    predicted: Vector
    roles: AnyArray
    total: int


@dataclass(eq=False, repr=False)
class TubeDisplay(Display):
    """The tube of a support vector regression, with the rows inside, on its edge and outside, told apart by shape.

    With one feature the tube goes along it. With several, the axis is the prediction, and the tube goes along the
    diagonal: a row is inside if its target is within epsilon of its prediction. Make it with :meth:`from_estimator` or
    :meth:`from_predictions`.

    Parameters
    ----------
    grid, centre : ndarray of shape (m,)
        The middle of the tube.
    epsilon : float
        Half its width, in units of y.
    points : TubeRows
        The rows.
    names : tuple of str, default=("prediction", "y")
        What the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The prediction.
    tube_ : matplotlib PolyCollection
    edges_ : list of matplotlib Line2D
    points_ : dict of str to matplotlib PathCollection
        By role.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> from mercer.plotting import TubeDisplay
    >>> x = np.linspace(0, 3, 30)[:, None]
    >>> display = TubeDisplay.from_estimator(SVR(C=10.0).fit(x, np.sin(2 * x[:, 0])), x, np.sin(2 * x[:, 0])).plot()
    >>> display.epsilon, sum(len(drawn.get_offsets()) for drawn in display.points_.values())
    (0.1, 30)
    """

    grid: Vector
    centre: Vector
    epsilon: float
    points: TubeRows
    _: KW_ONLY
    names: tuple[str, str] = ("prediction", "y")

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, max_points: int = 1000, random_state: Any = 0) -> Self:
        """Predict rows, and with one feature a grid along it.

        Parameters
        ----------
        estimator : SVR or NuSVR
            Fitted; also a pipeline or a search.
        X : array-like or data frame of shape (n, d)
            Rows of numbers. Those of the fit have the roles of the fit, others are judged by their residual.
        y : array-like of shape (n,)
            Their targets.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        TubeDisplay

        Raises
        ------
        DataError, ParameterError
            If X or y cannot be used, or the estimator is neither of the two.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        if not isinstance(learner, (SVR, NuSVR)):
            raise ParameterError(
                f"TubeDisplay needs an SVR or a NuSVR, but has {learner!r}; for other regressions pass their "
                "predictions: TubeDisplay.from_predictions(y, predictions, epsilon=...)."
            )
        rows = NamedRows.of(X)
        targets = numbers_of(y, len(rows.values))
        name = str(getattr(y, "name", None) or "y")
        # What folds or nu have chosen, else the parameter.
        epsilon = float(getattr(learner, "epsilon_", None) or learner.get_params(deep=False).get("epsilon", 0.0))
        predicted = np.asarray(estimator.predict(rows.given), dtype=np.float64)
        shown = shown_rows(len(targets), max_points, random_state)
        roles = roles_of(estimator, rows)
        roles = _judge(targets - predicted, epsilon) if roles is None else roles
        if rows.values.shape[1] > 1:
            points = TubeRows(predicted[shown], targets[shown], predicted[shown], roles[shown], len(targets))
            ends = np.array([predicted.min(), predicted.max()])
            return cls(ends, ends, epsilon, points, names=("prediction", name))
        (grid,), at, _, _ = rows.over((0,), _RESOLUTION)
        centre = np.asarray(estimator.predict(at), dtype=np.float64)
        points = TubeRows(rows.values[shown, 0], targets[shown], predicted[shown], roles[shown], len(targets))
        return cls(grid, centre, epsilon, points, names=(rows.names[0], name))

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, epsilon: float, max_points: int = 1000, random_state: Any = 0
    ) -> Self:
        """Compare targets with predictions of any regression, by a tube about the diagonal.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            Targets and predictions.
        epsilon : float
            Half the width of the tube, 0 or more.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        TubeDisplay

        Raises
        ------
        DataError, ParameterError
            If the numbers do not fit together, or epsilon is negative.
        """
        if not epsilon >= 0:
            raise ParameterError(f"epsilon must be a number of 0 or more, but is {short(epsilon)}.")
        n = len(np.asarray(y_true))
        targets, predicted = numbers_of(y_true, n), numbers_of(y_pred, n)
        shown = shown_rows(n, max_points, random_state)
        roles = _judge(targets - predicted, float(epsilon))
        points = TubeRows(predicted[shown], targets[shown], predicted[shown], roles[shown], n)
        ends = np.array([predicted.min(), predicted.max()])
        return cls(ends, ends, float(epsilon), points)

    def plot(self, ax: Any = None) -> Self:
        """Draw the tube and the rows.

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
        low, high = self.centre - self.epsilon, self.centre + self.epsilon
        label = f"tube, epsilon = {self.epsilon:.3g}"
        self.tube_ = self.ax_.fill_between(self.grid, low, high, color=COLOURS[0], alpha=0.15, linewidth=0, label=label)
        self.edges_ = [
            self.ax_.plot(self.grid, edge, color=COLOURS[0], linewidth=0.9, linestyle="--")[0] for edge in (low, high)
        ]
        (self.line_,) = self.ax_.plot(self.grid, self.centre, color=COLOURS[0], label="prediction")
        self.points_ = {}
        for role, words in _WORDS.items():
            chosen = self.points.roles == role
            self.points_[role] = self.ax_.scatter(
                self.points.x[chosen],
                self.points.y[chosen],
                s=ROLE_SIZES[role],
                marker=ROLE_MARKERS[role],
                color=_COLOURS[role],
                edgecolors=_COLOURS[role] if role == "zero" else INK,
                linewidths=0.6,
                zorder=2,
                label=f"{words}: {int(chosen.sum())}",
            )
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        legend(self.ax_, title=shown_text(len(self.points.x), self.points.total))
        return self

    def frame(self) -> Any:
        """Return the rows that are shown.

        Returns
        -------
        pandas.DataFrame
            Their place, target, prediction and role.
        """
        x, y, predicted, roles, _ = self.points
        return table(
            self, {self.names[0]: x, self.names[1]: y, "prediction": predicted, "role": [_WORDS[r] for r in roles]}
        )


def _judge(residuals: Vector, epsilon: float) -> AnyArray:
    """The roles that follow from the residuals alone."""
    excess = np.abs(residuals) - epsilon
    edge = _EDGE * epsilon
    return np.where(excess > edge, "bounded", np.where(excess >= -edge, "free", "zero"))
