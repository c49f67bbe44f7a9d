"""Scores of a search over one or two parameters, with their intervals."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import AnyArray, Matrix, Vector
from mercer.plotting.drawing import Display, colour_bar, legend, table
from mercer.plotting.palette import ALARM, COLOURS, INK, SEQUENTIAL

# A parameter whose values differ by this factor has a logarithmic axis.
_WIDE = 20.0


@dataclass(eq=False, repr=False)
class SearchDisplay(Display):
    """Candidates of a search at their parameters, coloured by mean score, with those that could be the best marked.

    A ring marks a candidate whose interval reaches the lower end of that of the best: its rank is not certain. Where
    the search has ``bounds_``, intervals are those of the exact solutions on the same folds; where it has not, they
    are one standard error of the mean over the folds to either side. With one parameter, the intervals themselves are
    drawn. Make the display with :meth:`from_search`.

    Parameters
    ----------
    names : tuple of one or two str
        The parameters on the axes.
    values : ndarray of shape (m, 1) or (m, 2)
        Their values.
    scores : ndarray of shape (m,)
        Mean scores.
    intervals : ndarray of shape (m, 2)
        NaN where there is none.
    meaning : str, default=""
        What the intervals are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    candidates_ : matplotlib PathCollection
    open_ : matplotlib PathCollection
        The rings.
    best_ : matplotlib PathCollection
    intervals_ : matplotlib LineCollection or None
        With one parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC, GridSearchCV
    >>> from mercer.plotting import SearchDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, cv=3).fit(X, X[:, 0] > 0)
    >>> display = SearchDisplay.from_search(search).plot()
    >>> display.names, len(display.candidates_.get_offsets())
    (('C', 'gamma'), 6)
    """

    names: tuple[str, ...]
    values: Matrix
    scores: Vector
    intervals: Matrix
    _: KW_ONLY
    meaning: str = ""

    @classmethod
    def from_search(cls, search: Any, *, parameters: Any = None) -> Self:
        """Read the results of a search.

        Parameters
        ----------
        search : KernelSearchCV, GridSearchCV or RandomizedSearchCV
            Fitted; also one of scikit-learn.
        parameters : one or two str, optional
            The parameters on the axes; by default the first two with different numbers. Where candidates differ in
            other parameters, those with the same place overlap, with the best on top.

        Returns
        -------
        SearchDisplay

        Raises
        ------
        DataError, ParameterError
            If no candidate has a score, or the search has no such parameters.
        sklearn.exceptions.NotFittedError
            If the search is not fitted.
        """
        check_is_fitted(search, "cv_results_")
        results = search.cv_results_
        if "mean_test_score" not in results:
            raise DataError(
                "the search has several metrics; SearchDisplay shows searches with one, whose cv_results_ has "
                "'mean_test_score'."
            )
        columns = {name[6:]: _numbers(results[name]) for name in results if name.startswith("param_")}
        names = _chosen(columns, parameters)
        scores = np.asarray(results["mean_test_score"], dtype=np.float64)
        values = np.column_stack([columns[name] for name in names])
        known = np.isfinite(scores) & np.isfinite(values).all(axis=1)
        if not known.any():
            raise DataError(f"no candidate of the search has a score and numbers for {' and '.join(names)}.")
        if hasattr(search, "bounds_"):
            intervals, meaning = np.asarray(search.bounds_), "interval of the exact solution"
        else:
            half = np.asarray(results["std_test_score"]) / np.sqrt(search.n_splits_)
            intervals, meaning = np.column_stack([scores - half, scores + half]), "standard error"
        # The best is drawn last, on top.
        order = np.flatnonzero(known)[np.argsort(scores[known], kind="stable")]
        return cls(names, values[order], scores[order], intervals[order], meaning=meaning)

    @property
    def open(self) -> AnyArray:
        """Whether the interval of each candidate reaches the lower end of that of the best; not the best itself."""
        low = self.intervals[-1, 0]
        reaches = self.intervals[:, 1] >= (low if np.isfinite(low) else self.scores[-1])
        reaches[-1] = False
        return np.asarray(reaches)

    def plot(self, ax: Any = None, *, score_name: str = "mean score") -> Self:
        """Draw the candidates.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        score_name : str, default="mean score"
            The metric, for the scale.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._open(ax)
        one = len(self.names) == 1
        places = np.column_stack([self.values[:, 0], self.scores]) if one else self.values
        self.intervals_ = None
        if one:
            self.intervals_ = self.ax_.vlines(
                self.values[:, 0], *self.intervals.T, color=COLOURS[0], linewidth=1.2, label=self.meaning
            )
            self.candidates_ = self.ax_.scatter(*places.T, s=28, color=COLOURS[0], label="candidates", zorder=2)
            self.ax_.set(xlabel=self.names[0], ylabel=score_name)
        else:
            self.candidates_ = self.ax_.scatter(
                *places.T,
                c=self.scores,
                cmap=SEQUENTIAL,
                marker="s",
                s=90,
                # Seen on any ground, whatever the score.
                edgecolors=INK,
                linewidths=0.6,
                label="candidates",
            )
            colour_bar(self.ax_, self.candidates_, score_name)
            self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        rings = places[self.open]
        self.open_ = self.ax_.scatter(
            *rings.T,
            s=300,
            facecolors="none",
            edgecolors=ALARM,
            linewidths=1.3,
            label=f"may be the best ({self.meaning})" if len(rings) else None,
        )
        self.best_ = self.ax_.scatter(
            *places[-1:].T, s=190, marker="*", color="white", edgecolors=INK, label="best", zorder=3
        )
        self._scale_axes()
        # Above the axes, where no candidate can be.
        legend(self.ax_, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, markerscale=0.55)
        return self

    def frame(self) -> Any:
        """Return the candidates, the best last.

        Returns
        -------
        pandas.DataFrame
            Parameters, ``score``, ``lower``, ``upper``, and ``may_be_best``.
        """
        columns: dict[str, Any] = dict(zip(self.names, self.values.T))
        lower, upper = self.intervals.T
        return table(self, columns | {"score": self.scores, "lower": lower, "upper": upper, "may_be_best": self.open})

    def _scale_axes(self) -> None:
        for name, values in zip("xy", self.values.T):
            if values.min() > 0 and values.max() >= _WIDE * values.min():
                self.ax_.set(**{f"{name}scale": "log"})


def _numbers(column: Any) -> Vector:
    """The values of a parameter, NaN where they are not numbers."""
    mask = np.ma.getmaskarray(column)
    return np.array([np.nan if hidden else _number(value) for value, hidden in zip(np.ma.getdata(column), mask)])


def _number(value: Any) -> float:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    return float(value) if number else np.nan


def _chosen(columns: dict[str, Vector], parameters: Any) -> tuple[str, ...]:
    varied = [name for name, values in columns.items() if len(set(values[np.isfinite(values)].tolist())) > 1]
    names = tuple(varied[:2]) if parameters is None else (parameters,) if isinstance(parameters, str) else parameters
    if len(names) not in (1, 2) or any(name not in columns for name in names):
        raise ParameterError(
            f"parameters must be one or two of those that were searched, {', '.join(columns)}, but are {names!r}. "
            f"Different numbers have been tried for: {', '.join(varied) or 'none'}."
        )
    return tuple(names)
