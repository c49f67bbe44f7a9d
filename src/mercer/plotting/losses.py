"""Losses and their conjugates."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Matrix, Vector
from mercer.data.objects import short
from mercer.losses import Loss, as_loss
from mercer.plotting.drawing import Display, curves, legend, table

# The target at which losses of each kind are shown.
_TARGETS = {"signs": 1.0, "numbers": 0.0, "counts": 1.0}
_RESOLUTION = 301


@dataclass(eq=False, repr=False)
class LossDisplay(Display):
    """Losses as functions of the prediction, or their conjugates as functions of the dual value.

    Make it with :meth:`from_losses`.

    Parameters
    ----------
    labels : tuple of str
        Names of the losses.
    grid : ndarray of shape (m,)
        Predictions, which are also the dual values.
    values, conjugates : ndarray of shape (m, k)
        Losses at the predictions and conjugates at the dual values; infinite where a dual value is not a slope.
    targets : tuple of float
        The target of each loss.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> from mercer.plotting import LossDisplay
    >>> display = LossDisplay.from_losses(["hinge", "logistic"]).plot()
    >>> display.targets, display.frame().columns.tolist()
    ((1.0, 1.0), ['f', 'hinge', 'logistic', 'hinge conjugate', 'logistic conjugate'])
    """

    labels: tuple[str, ...]
    grid: Vector
    values: Matrix
    conjugates: Matrix
    _: KW_ONLY
    targets: tuple[float, ...]

    @classmethod
    def from_losses(cls, losses: Any, *, target: float | None = None, limit: float = 3.0) -> Self:
        """Evaluate losses and their conjugates.

        Parameters
        ----------
        losses : str, Loss, object or list of these
            As in :func:`mercer.losses.as_loss`.
        target : float, optional
            The target y; by default 1 for labels and counts, and 0 for numbers.
        limit : float, default=3.0
            Predictions go from -limit to limit.

        Returns
        -------
        LossDisplay

        Raises
        ------
        DataError, ParameterError
            If a loss is unknown or not defined at the target, or the limit is not above 0.
        """
        if not 0 < limit < np.inf:
            raise ParameterError(f"limit must be a number above 0, but is {short(limit)}.")
        given = [losses] if isinstance(losses, (str, Loss)) or not np.iterable(losses) else list(losses)
        if not given:
            raise ParameterError("losses is empty; pass at least one loss.")
        known = [as_loss(loss) for loss in given]
        targets = tuple(_TARGETS[loss.targets] if target is None else float(target) for loss in known)
        grid = np.linspace(-limit, limit, _RESOLUTION)
        values, conjugates = [], []
        for loss, own in zip(known, targets):
            y = np.full(_RESOLUTION, own)
            loss.check_targets(y)
            values.append(loss.value(y, grid))
            conjugates.append(loss.conjugate(y, grid))
        # Two objects of one class differ in their parameters, which their text has.
        names = [loss.name if loss == as_loss(loss.name) else repr(loss) for loss in known]
        labels = tuple(name if names.count(name) == 1 else f"{name} {i + 1}" for i, name in enumerate(names))
        return cls(labels, grid, np.column_stack(values), np.column_stack(conjugates), targets=targets)

    def plot(self, ax: Any = None, *, conjugate: bool = False) -> Self:
        """Draw the losses or the conjugates.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        conjugate : bool, default=False
            Whether conjugates are drawn, where they are finite.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._open(ax)
        shown = np.where(np.isfinite(self.conjugates), self.conjugates, np.nan) if conjugate else self.values
        labels = [f"{label}, y = {target:g}" for label, target in zip(self.labels, self.targets)]
        self.lines_ = curves(self.ax_, self.grid, shown, labels)
        names = ("dual value u", "conjugate loss") if conjugate else ("prediction f", "loss")
        self.ax_.set(xlabel=names[0], ylabel=names[1])
        legend(self.ax_)
        return self

    def frame(self) -> Any:
        """Return losses and conjugates: a row for each prediction, which is also the dual value.

        Returns
        -------
        pandas.DataFrame
        """
        columns = {"f": self.grid, **dict(zip(self.labels, self.values.T))}
        return table(self, columns | {f"{name} conjugate": u for name, u in zip(self.labels, self.conjugates.T)})
