"""Parameters of a kernel by the exact leave-one-out error of ridge regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._errors import ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.estimators.gaussian.covariance import KernelCovariance
from mercer.kernels import Kernel
from mercer.kernels.inputs import Rows
from mercer.kernels.parameters import whole_vector
from mercer.solvers.gaussian.left_out_gradient import LeftOutObjective, LeftOutProblem
from mercer.solvers.gaussian.search import FAILURES, MultiStart, Search
from mercer.solvers.linear.penalty_curves import HIGHEST, LOWEST

# Of many rows, starts are chosen on so many of them, and the search goes from there to its end on more, before all rows
# are used: an evaluation takes time by the cube of their number.
_START_ROWS, _SAMPLE_ROWS = 400, 1000
# Multiples of the length scales and penalties, in units of the mean of the diagonal of K, that starts are chosen among,
# and how many of the multiples are.
_MULTIPLES = (1.0, 1 / 16, 1 / 4, 4.0, 16.0)
_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_STARTS = 2
# A length scale that is so many times from the distances of the rows is in another unit: multiples of these are
# candidates, too.
_FAR = 20.0
_DATA_MULTIPLES = (1.0, 1 / 4, 4.0)
# Steps that lower the mean squared error by a smaller share are not worth their time: data tell far less. The second
# one is for many rows, whose steps are expensive.
_TOLERANCE, _ROUGH_TOLERANCE = 1e-5, 1e-4


@dataclass(frozen=True, eq=False)
class LeftOutKernel:
    """A search for the free parameters of a kernel, and for the penalty if it is not given.

    Parameters
    ----------
    kernel : Kernel
        Its parameters are the start.
    rows : Rows
        n rows.
    targets : ndarray of shape (n, t)
    weights : ndarray of shape (n,)
        Positive.
    shift : float, optional
        The penalty; None if it is free.
    n_jobs : int, optional
    """

    kernel: Kernel
    rows: Rows
    targets: Matrix
    weights: Vector
    shift: float | None = None
    n_jobs: int | None = None

    def search(self) -> tuple[Kernel, Search]:
        """The kernel with the parameters of the least leave-one-out error, and the search on all rows.

        The error may have several local minima. The search starts from two common multiples of the length scales,
        each with its best penalty, that have the least errors on a sample of the rows. If some length scale is far
        from the distances of the rows, multiples of these distances are among the candidates. It goes downhill from
        both on a larger sample, and from the better result on all rows.

        Raises
        ------
        MercerError
            What was raised at the start, if the error cannot be computed there.
        """
        n = self.rows.n
        sample = self._sample(_SAMPLE_ROWS)
        tolerance = _TOLERANCE if len(sample) == n else _ROUGH_TOLERANCE
        ascents = [self._descend(sample, start, tolerance) for start in self._starts()]
        search = max(ascents, key=lambda ascent: ascent.value)
        if len(sample) < n:
            search = self._descend(np.arange(n), search.theta, _ROUGH_TOLERANCE)
        return self.kernel.with_theta(search.theta[: len(self.kernel.theta)]), search

    @property
    def bounds(self) -> Matrix:
        """Of the parameters, and then of the logarithm of the penalty if it is free, (p, 2)."""
        # The range that a penalty is chosen from for a given kernel.
        penalty = np.log(self._size * self.rows.n * np.array([[LOWEST, HIGHEST]]))
        return np.asarray(np.vstack([self.kernel.bounds, penalty[: 0 if self.shift is not None else 1]]))

    @property
    def _size(self) -> float:
        """The mean of the diagonal of K at the start."""
        size = float(np.mean(self.kernel.diagonal(self.rows.raw)))
        return size if 0 < size < np.inf else 1.0

    def _descend(self, positions: Positions, theta: Vector, tolerance: float) -> Search:
        objective = self._objective(positions)
        return MultiStart(
            n_jobs=self.n_jobs, bytes_each=objective.bytes_each, what="leave-one-out search", tolerance=tolerance
        ).maximise(objective, theta, self.bounds)

    def _objective(self, positions: Positions) -> LeftOutObjective:
        some = self.rows if len(positions) == self.rows.n else Rows(self.rows.take(positions).raw)
        covariance = KernelCovariance(self.kernel, some, self.n_jobs)
        problem = LeftOutProblem(covariance, self.targets[positions], self.weights[positions], self.shift)
        return LeftOutObjective(problem, self.n_jobs)

    def _sample(self, count: int) -> Positions:
        n = self.rows.n
        if n <= count:
            return np.arange(n)
        return np.sort(np.random.default_rng(0).choice(n, count, replace=False))

    def _starts(self) -> list[Vector]:
        """The best candidates on a sample of the rows, one for each multiple; the given point if all fail."""
        objective = self._objective(self._sample(_START_ROWS))
        best: list[tuple[float, Vector]] = []
        for candidates in self._candidates():
            values = [(_value_or_least(objective, theta), theta) for theta in candidates]
            best.append(max(values, key=lambda pair: pair[0]))
        # The first of equals comes first.
        best.sort(key=lambda pair: -pair[0])
        return [theta for value, theta in best[:_STARTS] if value > -np.inf] or [best[0][1]]

    def _candidates(self) -> list[list[Vector]]:
        """Points inside the bounds: a list for each multiple of the length scales, with all penalties."""
        is_length = self._are_lengths("length_scale", "gamma")
        low, high = self.bounds.T
        penalties = np.log(self._size * np.array(_PENALTIES))[:, None] if self.shift is None else np.empty((1, 0))
        multiples = _MULTIPLES if is_length.any() else (1.0,)
        own = [self.kernel.theta + np.log(multiple) * is_length for multiple in multiples]
        own += self._of_distances()
        return [[np.clip(np.r_[theta, penalty], low, high) for penalty in penalties] for theta in own]

    def _are_lengths(self, *names: str) -> NDArray[np.bool_]:
        """Which of the free parameters have one of these names, and are searched by their logarithm."""
        free = [p for p in self.kernel.parameters if p.free]
        return np.array([p.transform == "log" and _last(p.name) in names for p in free])

    def _of_distances(self) -> list[Vector]:
        """Parameters with length scales from the distances of the rows; none if their own are not far from these."""
        X = self.rows.raw
        if not isinstance(X, np.ndarray) or X.ndim != 2 or self.rows.n < 2:
            return []
        apart = _distances(X[self._sample(_START_ROWS)])
        theta, far, moved = self.kernel.theta.copy(), False, self._are_lengths("length_scale")
        whole = [whole_vector(p.name) for p in self.kernel.parameters if p.free]
        for place in np.flatnonzero(moved):
            group = [other for other, name in enumerate(whole) if name == whole[place]]
            # One for each column, or one for all.
            by_column = len(group) == X.shape[1]
            scale = apart[group.index(int(place))] if by_column else float(np.linalg.norm(apart))
            scale *= np.sqrt(X.shape[1]) if by_column else 1.0
            if scale > 0:
                far = far or abs(theta[place] - np.log(scale)) > np.log(_FAR)
                theta[place] = np.log(scale)
        return [theta + np.log(multiple) * moved for multiple in _DATA_MULTIPLES] if far else []


def _distances(X: Matrix) -> Vector:
    """The median distance of two rows in each column, (d,), among those that differ; 0 in columns that are constant."""
    half = len(X) // 2
    apart = np.abs(np.asarray(X[:half], dtype=np.float64) - X[half : 2 * half])
    return np.array([float(np.median(column[column > 0])) if (column > 0).any() else 0.0 for column in apart.T])


def _value_or_least(objective: LeftOutObjective, theta: Vector) -> float:
    """The value, and minus infinity where it cannot be computed."""
    try:
        return objective.value(theta)
    except FAILURES:
        return -np.inf


def _last(name: str) -> str:
    """The name of a parameter in its own part of the kernel, without the number of the column."""
    return whole_vector(name).rpartition(".")[2]


def free_gamma(kernel: Kernel, name: str) -> Kernel:
    """The kernel of a name with the parameter free that ``gamma`` sets, and all others fixed.

    Raises
    ------
    ParameterError
        If it has no such parameter.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> free_gamma(Polynomial(2, scale=0.5), "poly")
    Polynomial(2, scale=0.5).fixed('offset')
    """
    if not kernel.theta.size:
        raise ParameterError(f"gamma='loo' needs a kernel that has a gamma, such as 'rbf', but kernel is {name!r}.")
    others = [p.name for p in kernel.parameters if p.free and p.name not in ("length_scale", "gamma", "scale")]
    return kernel.fixed(*others) if others else kernel
