"""Input of k-means in feature space: distinct rows, starts, coordinates."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mercer._errors import ParameterError
from mercer._types import CheckedRows, Matrix, Vector
from mercer.data.columns import MixedRows
from mercer.data.distinct import equal_rows
from mercer.data.fitted import Fitted
from mercer.data.objects import Objects
from mercer.data.statements import Count, Floats, Is, Maybe, Number, Whole
from mercer.engine import memory, settings
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.statements import FitRows
from mercer.gram import Gram
from mercer.gram.hold import fits
from mercer.kernels import Kernel
from mercer.kernels.vector.dot import Linear
from mercer.maps.nystroem import NystroemMap
from mercer.solvers.clustering.kmeans import working_bytes
from mercer.solvers.clustering.primal_means import Coordinates, by_parts, squared_norms
from mercer.solvers.clustering.starts import Start
from mercer.solvers.solution import Certificate

Jobs = int | None
_WORDS = ("k-means++", "random")
# Landmarks are chosen among so many rows for each of them, and so many at the least.
_SAMPLE = 20
_LEAST = 2000


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows with a positive weight.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (m, d)
        The rows; for a kernel matrix, the part between them.
    weight : ndarray of shape (m,)
    first : ndarray of shape (m,)
        Their positions among all rows.
    kept : ndarray of bool of shape (n,)
        Which of all rows are represented.
    owner : ndarray of int
        By which distinct row, for each row in ``kept``.
    """

    X: Any
    weight: Vector
    first: NDArray[np.intp]
    kept: NDArray[np.bool_]
    owner: NDArray[np.intp]


def means_are_there(model: KernelEstimator) -> bool:
    """Whether the attributes determine the means, either by weights of rows or as points in a feature space."""
    attributes = vars(model)
    weighs = {"_member", "_part", "_source"} <= attributes.keys()
    rows = {"X_fit_", "_first", "_merged"} & attributes.keys()
    if "cluster_centers_" not in attributes:
        if model.kernel_ is None:
            return weighs and not rows and len(attributes["_member"]) == model.n_features_in_
        return weighs and len(rows) == 3 and bool((attributes["_member"][attributes["_first"]] >= 0).all())
    if rows:
        return False
    width = attributes["cluster_centers_"].shape[1]
    if "map_" in attributes:
        return bool(attributes["map_"].n_output_features_ == width) and attributes.get("_center") is None
    return weighs and bool(model.kernel_ == Linear()) and width == model.n_features_in_


CLUSTERS = Fitted(
    {
        "_squares": Floats("k", least=0),
        "_own": Maybe(Floats("n")),
        "inertia_": Number(),
        "inertia_history_": Floats("steps"),
        "n_iter_": Count(),
        "certificate_": Is(Certificate),
        "labels_": Whole("n", below="k"),
    },
    {
        "_member": Whole("n", below="k", least=-1),
        "_part": Floats("n", least=0),
        "_source": Whole("k", below="k"),
        "_first": Whole("m", below="n"),
        "_merged": Floats("m", least=0),
        "X_fit_": FitRows("n", kept=False),
        "map_": Is(NystroemMap),
        "_center": Maybe(Floats("d")),
        "cluster_centers_": Floats("k, features"),
    },
    rules=(("the means are neither weights of rows nor points", means_are_there),),
)
"""Statements about a fit of KernelKMeans."""


def rows_of(X: CheckedRows, weight: Vector, *, merge: bool, square: bool) -> DistinctRows:
    """Return the rows of weight above 0; with ``merge``, equal ones once, in an order that depends on their contents.

    Examples
    --------
    >>> rows = rows_of(np.array([[1.0], [2.0], [1.0], [3.0]]), np.array([1.0, 1.0, 2.0, 0.0]), merge=True, square=False)
    >>> sorted(zip(rows.X.ravel().tolist(), rows.weight.tolist())), rows.kept.tolist()
    ([(1.0, 3.0), (2.0, 1.0)], [True, True, True, False])
    """
    if not merge:
        mask = weight > 0
        first = np.flatnonzero(mask)
        part = X if mask.all() else X[np.ix_(first, first)] if square else X[first]
        return DistinctRows(part, weight[first], first, mask, np.arange(len(first)))
    first, owner = equal_rows(X)
    total: Vector = np.bincount(owner, weights=weight, minlength=len(first)).astype(np.float64)
    usable = total > 0
    number = np.cumsum(usable) - 1
    mask = usable[owner]
    first = first[usable]
    if isinstance(X, np.ndarray):
        memory.require(X.itemsize * len(first) * X.shape[1], f"a copy of {len(first)} distinct rows")
    return DistinctRows(X[first], total[usable], first, mask, number[owner[mask]])


def check_start(init: Any, k: int, X: CheckedRows, precomputed: bool) -> None:
    """Raise unless ``init`` is a valid start of k clusters for the rows ``X``."""
    if isinstance(init, str):
        if init not in _WORDS:
            raise ParameterError(f"init must be 'k-means++', 'random' or an array, but is {init!r}.")
        return
    try:
        start = np.asarray(init)
    except ValueError:
        start = np.asarray(None)
    n, d = X.shape[0], None if isinstance(X, (Objects, MixedRows)) else X.shape[1]
    if start.ndim == 1 and start.dtype.kind in "iu" and len(start) in (n, k):
        top = (n if len(start) == k else k) - 1
        what = "positions of rows" if len(start) == k else "labels"
        if start.min() < 0 or start.max() > top:
            raise ParameterError(
                f"init holds {what}, which go from 0 to {top}, but reaches from {start.min()} to {start.max()}."
            )
        return
    if start.shape == (k, d) and start.dtype.kind in "iuf" and not precomputed:
        if not np.isfinite(start).all():
            raise ParameterError("init holds points with entries that are not finite; remove these points.")
        return
    points = "" if precomputed or d is None else f", or the coordinates of {k} points, ({k}, {d})"
    raise ParameterError(
        f"init must be 'k-means++', 'random', the positions of n_clusters={k} rows, {n} labels{points}; it is an "
        f"array of {start.dtype} of the shape {start.shape}."
    )


@dataclass(frozen=True, eq=False)
class MeanSpace:
    """How means are represented: as points (rows minus ``center``, or features of ``map``), or as sums of rows."""

    kernel: Kernel | None
    map: NystroemMap | None = None
    center: Vector | None = None
    n_jobs: int | None = None

    @classmethod
    def of(
        cls, kernel: Kernel | None, rows: DistinctRows, landmarks: int | None, random: np.random.RandomState, jobs: Jobs
    ) -> Self:
        """Create the space for a fit to ``rows``, with a map by random ``landmarks`` or (None) without one."""
        if landmarks is not None:
            return cls(kernel, _landmarks(kernel, rows, landmarks, random, jobs), None, jobs)
        if isinstance(kernel, Linear) and not sp.issparse(rows.X):
            return cls(kernel, None, (rows.weight / rows.weight.sum()) @ rows.X, jobs)
        return cls(kernel, n_jobs=jobs)

    def coordinates(self, rows: DistinctRows, k: int, stack: ExitStack) -> tuple[Coordinates | None, Vector | None]:
        """Return coordinates of the rows, if there are any, and ``k(x, x)`` if these are only approximate.

        Memory for features is reserved until ``stack`` closes.
        """
        X, phi, n = rows.X, self.map, rows.X.shape[0]
        if phi is not None:
            d = phi.n_output_features_
            norms = self.diagonal(X)
            nbytes = n * d * X.dtype.itemsize
            if fits(nbytes + nbytes // 4 + working_bytes(n, k, dual=False)):
                with settings.inherited(_settings(self.n_jobs)):
                    features = phi.transform(X)
                stack.enter_context(memory.reserve(nbytes, f"{d} features of {n} rows"))
                return Coordinates(features, (n, d), nbytes=nbytes), norms
            return Coordinates(lambda part: phi.transform(X[part]), (n, d)), norms
        if not isinstance(self.kernel, Linear):
            return None, None
        if self.center is None:
            return Coordinates(X, X.shape), None
        nbytes = 8 * X.size
        if not fits(nbytes + nbytes // 4 + working_bytes(n, k, dual=False)):
            return Coordinates(X, X.shape, self.center), None
        stack.enter_context(memory.reserve(nbytes, "the rows about their mean"))
        about_mean = X.astype(np.float64)
        about_mean -= self.center
        return Coordinates(about_mean, X.shape, nbytes=nbytes), None

    def start(self, init: str | ArrayLike, k: int, X: Any, rows: DistinctRows) -> Start:
        """Return the start of k clusters for ``init``, which has been checked."""
        if isinstance(init, str):
            return Start(init)
        start = np.asarray(init)
        if start.shape == (X.shape[0],) != (k,):
            return Start("labels", start[rows.first])
        if self.kernel is None:
            diagonal = X.diagonal().astype(np.float64)
            inner = X[rows.first][:, start].astype(np.float64)
            return Start("distances", diagonal[rows.first][:, None] - 2 * inner + diagonal[start])
        points = X[start] if start.ndim == 1 else start.astype(X.dtype)
        if sp.issparse(X):
            points = sp.csr_matrix(points)
        mine, theirs = rows.X, points
        if self.center is not None:
            mine, theirs = mine - self.center, theirs - self.center
        gram = Gram(self.kernel, mine, theirs, dtype=np.float64, n_jobs=self.n_jobs)
        own = Gram(self.kernel, mine, n_jobs=self.n_jobs).diagonal()
        return Start("distances", own[:, None] - 2 * gram.dense() + Gram(self.kernel, theirs).diagonal())

    def inner(self, X: CheckedRows, centres: Matrix) -> Matrix:
        """Return the inner products of rows and the means at ``centres`` (k, features)."""
        phi = self.map
        centres = centres if self.center is None else centres - self.center
        source = X if phi is None else lambda part: phi.transform(X[part])
        coordinates = Coordinates(source, (X.shape[0], centres.shape[1]), self.center)
        out = np.empty((X.shape[0], len(centres)))

        def work(part: slice) -> None:
            out[part] = coordinates.take(part) @ centres.T

        by_parts(work, coordinates.shape, self.n_jobs)
        return out

    def diagonal(self, X: Any) -> Vector:
        """Return ``k(x, x)`` of rows in float64, minus the centre if there is one."""
        assert self.kernel is not None
        if self.center is not None:
            return squared_norms(np.asarray(X - self.center, dtype=np.float64))
        return np.asarray(Gram(self.kernel, X, n_jobs=self.n_jobs).diagonal(), dtype=np.float64)


def _landmarks(
    kernel: Kernel | None, rows: DistinctRows, number: int, random: np.random.RandomState, jobs: Jobs
) -> NystroemMap:
    """Return the map to the span of landmarks, chosen from a sample so that memory does not grow with the rows."""
    n, count = rows.X.shape[0], max(_SAMPLE * number, _LEAST)
    candidates = rows.X
    if n > count:
        candidates = rows.X[np.sort(random.choice(n, count, replace=False, p=rows.weight / rows.weight.sum()))]
    seed = int(random.randint(np.iinfo(np.int32).max))
    with settings.inherited(_settings(jobs)):
        return NystroemMap(kernel, number, random_state=seed).fit(candidates)


def _settings(jobs: Jobs) -> settings.Settings:
    """Return the settings with the threads of an estimator, for maps, which have no ``n_jobs``."""
    return replace(settings.current(), n_jobs=settings.resolve_jobs(jobs))
