"""Steps of iterative solvers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.engine.trace import Trace
from mercer.plotting.drawing import Display, legend, sides, table
from mercer.plotting.palette import COLOURS
from mercer.selection.layers import require_fitted

# Values that fall to zero, which only a logarithmic axis shows.
_FALLING = ("violation", "residual")
_UNITS = ("iteration", "seconds")
# From so many times the first step on, steps are shown by their logarithm.
_WIDE = 50


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Objectives, and what is left of the optimality conditions, by iteration or second.

    The primal objective falls to the dual one; between them, shaded, is the gap. A fit has a problem for each pair of
    classes, quantile or hyper-parameter, of which one is shown. Make the display with :meth:`from_estimator`.

    Parameters
    ----------
    work : str
        What the solver did at a step.
    iterations, seconds : ndarray of shape (m,)
        Of each step; seconds count from the start of the fit.
    values : dict of str to ndarray of shape (m,)
        What the solver knew there, as "primal", "dual" or "violation".
    problem, problems : int, default=0 and 1
        Which problem of the fit it is, of how many.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    right_ax_ : matplotlib Axes or None
        The axis on the right, with violations and residuals.
    lines_ : dict of str to matplotlib Line2D
    gap_ : matplotlib PolyCollection or None
        The area between the objectives.

    Examples
    --------
    >>> import mercer
    >>> from mercer.plotting import ConvergenceDisplay
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> with mercer.config(trace=True):
    ...     model = mercer.KernelLogisticRegression().fit(X, [0, 0, 1, 1])
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> display.work, list(display.values)
    ('Newton steps', ['primal', 'dual', 'violation'])
    """

    work: str
    iterations: Vector
    seconds: Vector
    values: dict[str, Vector]
    _: KW_ONLY
    problem: int = 0
    problems: int = 1

    @classmethod
    def from_estimator(cls, estimator: Any, *, problem: int | None = None) -> Self:
        """Read the steps of a fit.

        Parameters
        ----------
        estimator : estimator
            Fitted within ``mercer.config(trace=True)``; a pipeline or a search of one as well.
        problem : int, optional
            Which problem of the fit; the one with the most steps by default.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        DataError
            If the fit kept no steps.
        ParameterError
            If there is no such problem.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        trace = getattr(learner, "trace_", None)
        if trace is None:
            raise DataError(
                f"{type(learner).__name__} has no trace_: fit it within 'with mercer.config(trace=True):' to keep the "
                "steps of its solver."
            )
        if not len(trace):
            raise DataError(f"{type(learner).__name__} was fitted without steps: its solver is direct, not iterative.")
        return cls.from_trace(trace, problem=problem)

    @classmethod
    def from_trace(cls, trace: Trace, *, problem: int | None = None) -> Self:
        """Read the steps of a trace.

        Parameters
        ----------
        trace : Trace
            With at least one step.
        problem : int, optional
            Which problem; the one with the most steps by default.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        DataError
            If it is not a trace, or has no steps.
        ParameterError
            If there is no such problem.
        """
        if not isinstance(trace, Trace) or not len(trace):
            raise DataError(f"a trace with steps is needed, but this is {trace!r}.")
        numbers = [step.problem for step in trace]
        present, counts = np.unique(numbers, return_counts=True)
        if problem is None:
            problem = int(present[counts.argmax()])
        if problem not in present:
            raise ParameterError(f"there is no problem {problem!r}; there are {present.tolist()[:20]}.")
        part = Trace([step for step in trace if step.problem == problem])
        values = {name: np.array(part.column(name)) for name in part.names}
        iterations, seconds = np.array([(float(step.iteration), step.seconds) for step in part]).T
        return cls(
            part.steps[0].work, iterations, seconds, values, problem=int(problem), problems=int(present.max()) + 1
        )

    def plot(self, ax: Any = None, *, x: str = "iteration") -> Self:
        """Draw the values along the steps.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        x : {"iteration", "seconds"}, default="iteration"
            What is on the horizontal axis.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If x is neither.
        MissingDependencyError
            If matplotlib is not installed.
        """
        if x not in _UNITS:
            raise ParameterError(f"x must be 'iteration' or 'seconds', but is {x!r}.")
        at = self.iterations if x == "iteration" else self.seconds
        falling = [name for name in self.values if name in _FALLING]
        others = [name for name in self.values if name not in _FALLING]
        self._open(ax)
        right: Any = self.ax_.twinx() if others and falling else self.ax_
        self.right_ax_ = right if falling else None
        self.lines_ = sides(at, self.values, (self.ax_, others), (right, falling), markers=".")
        if falling and any((self.values[name] > 0).any() for name in falling):
            right.set_yscale("log")
        self.gap_ = None
        if {"primal", "dual"} <= self.values.keys():
            low, high = self.values["dual"], self.values["primal"]
            self.gap_ = self.ax_.fill_between(at, low, high, color=COLOURS[0], alpha=0.12, linewidth=0)
        if at.min() > 0 and at.max() > _WIDE * at.min():
            self.ax_.set_xscale("log")
        elif x == "iteration":
            self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlabel(self.work if x == "iteration" else "seconds")
        title = "" if self.problems == 1 else f"problem {self.problem + 1} of {self.problems}"
        legend(self.ax_, list(self.lines_.values()), title)
        return self

    def frame(self) -> Any:
        """Return the steps: iteration, seconds and values.

        Returns
        -------
        pandas.DataFrame
        """
        return table(self, {"iteration": self.iterations.astype(int), "seconds": self.seconds, **self.values})
