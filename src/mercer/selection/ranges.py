"""The parameters that a search without a grid tries: their ranges come from the rows and the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import is_regressor

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.data.objects import Objects
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.convert import is_named, read_expression
from mercer.kernels.inputs import Rows
from mercer.kernels.parameters import whole_vector

Point = tuple[float, ...]
"""A value for each axis, as natural logarithms in units of the axis."""

# Spacing at which the search ends, as a factor of the parameter.
FINEST = math.log(2.0)
# Rows from which length scales and sizes of the kernel are taken.
SAMPLE_ROWS = 400
# Length scales reach from the 0.1 quantile of the distances divided by this to the 0.9 quantile times this.
_WIDER = 4.0
# How far a range may be extended where the best value lies at its edge.
_EXTENSION = 64.0
# Distances below this, or squares of them, have lost digits, and their inverses overflow.
_LEAST = 1e-290
_DISTANCES = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
_SCALES = ("length_scale", "gamma")
_LENGTH_VALUES = 4
# Up to so many axes of a kernel on objects are combined with each other from the start.
_COMBINED = 2
# Distance of the neighbours of a single value, and the digits of logarithms.
_APART = math.log(4.0)
_DIGITS = 5
# Parameters that are whole numbers.
_WHOLE = ("n_neighbors",)


@dataclass(frozen=True)
class Axis:
    """One parameter in logarithms: the values to begin with, ascending, and the limits of all others.

    ``main`` axes are combined with each other from the start; the others stay at their middle value until the best
    values of these are known. A parameter with ``values`` of its own, the cheapest first, has their positions times
    ``FINEST`` in place of logarithms, so that no spacing is halved. ``own`` is the value to begin with alone.
    """

    name: str
    start: tuple[float, ...]
    low: float
    high: float
    spacing: float
    main: bool = True
    values: tuple[Any, ...] = ()
    own: float | None = None

    @classmethod
    def of_values(cls, name: str, values: Sequence[Any], own: Any, main: bool) -> Axis:
        """Return the axis of a parameter that has some values only, of which the kernel has ``own``."""
        start = tuple(n * FINEST for n in range(len(values)))
        return cls(name, start, 0.0, start[-1], FINEST, main, tuple(values), start[list(values).index(own)])

    def at(self, value: float) -> Any:
        """The one of ``values`` at a point."""
        return self.values[round(value / FINEST)]

    @classmethod
    def even(
        cls, name: str, first: float, spacing: float, count: int, limits: tuple[float, float], main: bool = True
    ) -> Axis:
        """Return an axis with equidistant values, rounded so that they and their quarter steps have few digits."""
        first, spacing = round(first, _DIGITS), round(spacing, _DIGITS)
        return cls(name, tuple(first + n * spacing for n in range(count)), *limits, spacing, main)

    @property
    def middle(self) -> float:
        """The value to begin with alone."""
        return self.start[(len(self.start) - 1) // 2] if self.own is None else self.own


@dataclass(frozen=True)
class Penalty:
    """A penalty of a learner: its coarse values, in units that data give, and how it depends on the size of k(x, x).

    The parameter is ``value * unit * size ** power``.
    """

    name: str
    start: tuple[float, ...]
    low: float
    high: float
    unit: float = 1.0
    power: float = 0.0
    main: bool = True

    @property
    def axis(self) -> Axis:
        first, count = math.log(self.start[0]), len(self.start)
        spacing = (math.log(self.start[-1]) - first) / (count - 1) if count > 1 else _APART
        return Axis.even(self.name, first, spacing, count, (math.log(self.low), math.log(self.high)), self.main)


@dataclass(frozen=True, eq=False)
class Space:
    """What is searched with one kernel.

    Parameters
    ----------
    prefix : str
        Of the learner's parameters, in a pipeline.
    kernel : object
        The ``kernel`` of the learner.
    named : bool
        Whether ``kernel`` itself is a parameter, as one of several.
    penalties : tuple of Penalty
    scales : tuple of Axis
        Of the kernel.
    rows : object or None
        A sample of the rows.
    options : dict
        ``gamma``, ``degree`` and ``coef0`` of the learner.
    fixed : dict
        Parameters that all candidates have.
    """

    prefix: str
    kernel: Any
    named: bool
    penalties: tuple[Penalty, ...]
    scales: tuple[Axis, ...]
    rows: Any
    options: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Of the kernel first, then of the learner."""
        return (*self.scales, *(penalty.axis for penalty in self.penalties))

    def parameters(self, point: Point) -> dict[str, Any]:
        """Return the parameters of the estimator at a point.

        Parameters
        ----------
        point : tuple of float

        Returns
        -------
        dict
            Numbers have four digits.
        """
        own, penalties = point[: len(self.scales)], point[len(self.scales) :]
        chosen: dict[str, Any] = {"kernel": self.kernel} if self.named else {}
        kernel = self.kernel
        if self.scales and is_named(self.kernel):
            chosen["gamma"] = _rounded(math.exp(own[0]))
        elif self.scales:
            chosen["kernel"] = kernel = _moved(self._as_kernel({}), self.scales, own)
        size = self._size(kernel, chosen) if any(penalty.power for penalty in self.penalties) else 1.0
        for penalty, value in zip(self.penalties, penalties):
            number = math.exp(value) * penalty.unit * size**penalty.power
            chosen[penalty.name] = round(number) if penalty.name in _WHOLE else _rounded(number)
        return {self.prefix + name: value for name, value in {**chosen, **self.fixed}.items()}

    def _as_kernel(self, options: Mapping[str, Any]) -> Kernel:
        return as_kernel(self.kernel, **{**self.options, **options}, X=self.rows)

    def _size(self, kernel: Any, chosen: Mapping[str, Any]) -> float:
        """The mean of k(x, x); 1 where that cannot be computed."""
        if self.rows is None:
            return 1.0
        try:
            size = float(np.mean(self._diagonal(kernel, chosen)))
        except Exception:  # A user-defined kernel may raise anything. The fits meet it again, and report it.
            return 1.0
        return size if 0 < size < np.inf else 1.0

    def _diagonal(self, kernel: Any, chosen: Mapping[str, Any]) -> Vector:
        if isinstance(kernel, str) and kernel == "precomputed":
            return np.diagonal(np.asarray(self.rows))
        gamma = {"gamma": chosen["gamma"]} if "gamma" in chosen else {}
        made = kernel if isinstance(kernel, Kernel) else self._as_kernel(gamma)
        return np.asarray(made.with_data(self.rows).diagonal(self.rows))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def by_rows(kernel: Any, rows: Any) -> Any:
    """A kernel on objects with the numbers that its rules take from the rows of a sample; anything else as it is.

    All folds then have the same kernel, and so share its matrix.
    """
    read = read_expression(kernel)
    if isinstance(read, Kernel) and read.needs_data and isinstance(rows, Objects):
        return read.with_data(rows)
    return kernel


def scale_axes(kernel: Any, rows: Any, options: Mapping[str, Any], whole: bool = True) -> tuple[Axis, ...]:
    """Return the axes of a kernel over the rows of a sample.

    Parameters
    ----------
    kernel : str, Kernel or callable
    rows : ndarray of shape (n, d), other rows, or None
        For None, nothing of the kernel is searched.
    options : dict
        ``gamma``, ``degree`` and ``coef0``.
    whole : bool, default=True
        Whether to search the whole numbers of a kernel on objects, such as the length of a substring.

    Returns
    -------
    tuple of Axis

    Examples
    --------
    >>> [axis.name for axis in scale_axes("rbf", np.eye(4), {})]
    ['gamma']
    >>> from mercer.kernels import RBF, Constant
    >>> [axis.name for axis in scale_axes(Constant(2.0) * RBF([1.0, 3.0]), np.eye(4)[:, :2], {})]
    ['length scale', 'factor', 'kernel.length_scale[0]', 'kernel.length_scale[1]']
    """
    kernel = read_expression(kernel)
    vectors = isinstance(rows, np.ndarray) and rows.ndim == 2
    if rows is None or not len(rows) or not (vectors or isinstance(kernel, Kernel)):
        return ()
    if is_named(kernel):
        return _axis_of_name(kernel, rows, options)
    if not isinstance(kernel, Kernel):
        return ()
    axes = _axes_of_kernel(kernel, rows)
    return axes if vectors else _of_objects(kernel, axes, rows, whole)


def _of_objects(kernel: Kernel, axes: Sequence[Axis], rows: Any, whole: bool) -> tuple[Axis, ...]:
    """The axes of a kernel on objects, with those of its whole numbers; a few are all combined from the start."""
    params = kernel.get_params()
    valid = {
        name: [value for value in values if _is_valid(kernel, name, value)]
        for name, values in (kernel.searched_values(Rows(rows)) if whole else {}).items()
    }
    tried = {name: values for name, values in valid.items() if len(values) > 1}
    main = len(axes) + len(tried) <= _COMBINED
    wider = [
        replace(axis, start=tuple(v for v in (-_APART, 0.0, _APART) if axis.low <= v <= axis.high), main=True, own=0.0)
        if main and not axis.main
        else axis
        for axis in axes
    ]
    return (
        *(Axis.of_values(name.replace("__", "."), values, params[name], main) for name, values in tried.items()),
        *wider,
    )


def _is_valid(kernel: Kernel, name: str, value: Any) -> bool:
    """Whether a kernel may have a value of a parameter beside its others."""
    try:
        kernel.with_params(**{name: value})
    except ParameterError:
        return False
    return True


def _axis_of_name(name: str, rows: np.ndarray, options: Mapping[str, Any]) -> tuple[Axis, ...]:
    if name == "precomputed" or name in ("linear", "cosine", "additive_chi2"):
        return ()
    if name in _DISTANCES:
        low, high = _quantiles(_distances(rows, _DISTANCES[name]))
        # exp(-gamma d) of the distances d: for the square of a distance, the factors are squared.
        wider = _WIDER**2 if name == "rbf" else _WIDER
        return (_spread("gamma", 0.5 / (high * wider), 0.5 * wider / low),)
    if name == "chi2":
        return (_spread("gamma", 1.0 / 16.0, 16.0),)
    if name in ("poly", "polynomial") and not options.get("coef0"):
        # A factor of the kernel, as the penalty is.
        return ()
    middle = 1.0 / _positive(float(np.mean(np.einsum("ij,ij->i", rows, rows))))
    return (_spread("gamma", middle / 8.0, middle * 8.0),)


def _axes_of_kernel(kernel: Kernel, rows: np.ndarray) -> tuple[Axis, ...]:
    free = [parameter for parameter in kernel.parameters if parameter.free]
    lengths = [p for p in free if p.transform == "log" and _last(p.name) in _SCALES]
    axes = []
    if lengths:
        low, high = _multiples([p.value for p in lengths], lengths[0].name, lengths[-1].name, rows)
        axes.append(_spread("length scale", low, high))
    if len(free) == 1 and lengths:
        return tuple(axes)
    several = len(lengths) != len(free) or len(lengths) > 1
    for parameter in free if several else []:
        low, high = parameter.bounds
        if parameter.transform == "log":
            low, high = math.log(low / parameter.value), math.log(high / parameter.value)
            axes.append(Axis.even(parameter.name, 0.0, _APART, 1, (min(low, 0.0), max(high, 0.0)), main=False))
    return tuple(axes)


def _multiples(values: Sequence[float], first: str, last: str, rows: np.ndarray) -> tuple[float, float]:
    """The range of a factor of all length scales."""
    vectors = isinstance(rows, np.ndarray) and rows.ndim == 2
    one = vectors and whole_vector(first) == whole_vector(last) and len(values) in (1, rows.shape[1])
    if not one or _last(first) == "gamma":
        return 1.0 / 16.0, 16.0
    low, high = _quantiles(_distances(rows / np.array(values), "euclidean"))
    return low / _WIDER, high * _WIDER


def _spread(name: str, low: float, high: float) -> Axis:
    """An axis whose coarse values lie evenly between two values, these included."""
    first, last, beyond = math.log(low), math.log(high), math.log(_EXTENSION)
    spacing = (last - first) / (_LENGTH_VALUES - 1)
    return Axis.even(name, first, spacing, _LENGTH_VALUES, (first - beyond, last + beyond))


def _distances(rows: np.ndarray, metric: str) -> Vector:
    """The distances of all pairs of rows; raises if they leave the range of float64."""
    with np.errstate(over="ignore"):
        distances = np.asarray(pdist(rows, metric))
    largest = float(distances.max(initial=0.0))
    if not largest < np.inf or (largest < _LEAST and (rows != rows[0]).any()):
        raise DataError(
            f"distances between the rows of X leave the range of float64: its entries reach {np.abs(rows).max():.3g}. "
            "Scale the columns (sklearn.preprocessing.StandardScaler)."
        )
    return distances


def _quantiles(distances: Vector) -> tuple[float, float]:
    """The 0.1 and 0.9 quantiles of the distances that are not 0."""
    some = distances[np.isfinite(distances) & (distances > 0)]
    if not len(some):
        return 1.0, 1.0
    low, high = np.quantile(some, [0.1, 0.9])
    # Where a few rows are far from all others, the range would have no end.
    return max(float(low), 1e-4 * float(high)), float(high)


def _moved(kernel: Kernel, scales: Sequence[Axis], point: Sequence[float]) -> Kernel:
    """The kernel with its free parameters multiplied by the factors of a point."""
    free = [parameter for parameter in kernel.parameters if parameter.free]
    factor = {axis.name: value for axis, value in zip(scales, point) if not axis.values}
    shared = factor.pop("length scale", 0.0)
    values: dict[str, list[float]] = {}
    for parameter in kernel.parameters:
        step = factor.get(parameter.name, 0.0)
        if parameter in free and parameter.transform == "log" and _last(parameter.name) in _SCALES:
            step += -shared if _last(parameter.name) == "gamma" else shared
        moved = _rounded(parameter.value * math.exp(step)) if step else parameter.value
        values.setdefault(whole_vector(parameter.name), []).append(moved)
    # What no axis changes stays as it is, such as the name of a rule.
    kept = values.keys() - {whole_vector(parameter.name) for parameter in free}
    # Names of the entries of a vector end in a number; a name without one is that of a single number.
    vectors = {whole_vector(p.name) for p in kernel.parameters if whole_vector(p.name) != p.name}
    new = {
        name.replace(".", "__"): tuple(several) if name in vectors else several[0]
        for name, several in values.items()
        if name not in kept
    }
    for axis, value in zip(scales, point):
        if axis.values:
            new[axis.name.replace(".", "__")] = axis.at(value)
    return kernel.with_params(**new)


def _last(name: str) -> str:
    """The name of a parameter in its own part of the kernel, without the number of the column."""
    return whole_vector(name).rpartition(".")[2]


def _positive(value: float) -> float:
    return value if 0 < value < np.inf else 1.0


def penalties_of(learner: Any, y: Any, weight: Vector | None, rows: int) -> tuple[Penalty, ...]:
    """Return the penalties of a learner that are numbers, in units of the targets and weights.

    Parameters
    ----------
    learner : estimator
    y : array or None
        Targets.
    weight : ndarray or None
        Of the rows.
    rows : int
        Of the smallest fit.

    Returns
    -------
    tuple of Penalty

    Examples
    --------
    >>> from mercer import SVR, KernelRidge
    >>> [(penalty.name, penalty.unit) for penalty in penalties_of(SVR(), np.array([0.0, 4.0]), None, 2)]
    [('C', 2.0), ('epsilon', 2.0)]
    >>> penalties_of(KernelRidge(alpha="loo"), np.array([0.0, 4.0]), None, 2)
    ()
    """
    numbers = {name: value for name, value in learner.get_params(deep=False).items() if _is_number(value)}
    spread = _spread_of(y)
    heavy = 1.0 if weight is None else _positive(float(np.mean(weight)))
    penalties = []
    if "C" in numbers:
        # Coefficients of regressions are in units of the targets, and C is their bound.
        unit = spread if is_regressor(learner) else 1.0
        penalties.append(Penalty("C", (0.1, 1.0, 10.0, 100.0, 1000.0), 1e-4, 1e6, unit / heavy, -1.0))
    if "alpha" in numbers:
        penalties.append(Penalty("alpha", (1e-4, 1e-3, 1e-2, 1e-1, 1.0), 1e-10, 1e4, heavy, 1.0))
    if "nu" in numbers:
        most = _largest_nu(y) if "C" not in numbers else 0.9
        start = tuple(most * share for share in (0.1, 0.2, 0.4, 0.8))
        penalties.append(
            Penalty("nu", start if "C" not in numbers else (0.4,), 0.005 * most, most, main="C" not in numbers)
        )
    if "epsilon" in numbers and "C" in numbers:
        penalties.append(Penalty("epsilon", (0.1,), 1e-4, 1.0, spread, main=False))
    if "n_neighbors" in numbers:
        most = min(256.0, rows)
        start = tuple(value for value in (2.0, 4.0, 8.0, 16.0, 32.0) if value <= most) or (1.0,)
        penalties.append(Penalty("n_neighbors", start, 1.0, most))
    return tuple(penalties)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _spread_of(y: Any) -> float:
    """The standard deviation of targets; 1 for labels, and where all are equal."""
    values = np.asarray(y)
    if values.dtype.kind not in "iuf" or not values.size:
        return 1.0
    spread = np.asarray(values, dtype=np.float64).std(axis=0)
    return _positive(float(np.mean(spread)))


def _largest_nu(y: Any) -> float:
    """The largest nu for which every pair of classes has a solution, with room for folds."""
    labels = np.asarray(y)
    counts = np.unique(labels, return_counts=True)[1] if labels.ndim == 1 and labels.size else np.array([1, 1])
    if len(counts) < 2:
        return 0.9
    return 0.9 * 2.0 * float(counts.min()) / float(counts.min() + counts.max())
