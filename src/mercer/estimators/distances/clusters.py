"""What k-means in feature space makes of its input: distinct rows, starts, coordinates."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mercer._errors import ParameterError
from mercer._types import CheckedRows, Vector
from mercer.data.columns import MixedRows
from mercer.data.fitted import Fitted
from mercer.data.objects import Objects
from mercer.data.statements import Count, Floats, Is, Maybe, Number, Whole
from mercer.engine import memory, settings
from mercer.estimators.distances.diagonal import diagonal_of_new
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.distinct import equal_rows
from mercer.estimators.shared.statements import FitRows
from mercer.gram import Gram
from mercer.gram.hold import fits
from mercer.kernels.vector.dot import Linear
from mercer.maps.nystroem import NystroemMap
from mercer.solvers.clustering.kmeans import working_bytes
from mercer.solvers.clustering.primal_means import Coordinates, by_parts, squared_norms
from mercer.solvers.clustering.starts import Start
from mercer.solvers.solution import Certificate

_WORDS = ("k-means++", "random")
# Landmarks are chosen among so many rows for each of them, and so many at the least.
_SAMPLE = 20
_LEAST = 2000
# The share of the budget that features may take; else they are made anew for every look at them.
_SHARE = 0.8


@dataclass(frozen=True)
class DistinctRows:
    """Rows that count, equal ones once.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (m, d)
        For a matrix, its part.
    weight : ndarray of shape (m,)
    first : ndarray of shape (m,)
        Where they are among all rows.
    kept : ndarray of bool of shape (n,)
        Which of all rows are one of them.
    owner : ndarray of int
        Which one, for those kept.
    """

    X: Any
    weight: Vector
    first: NDArray[np.intp]
    kept: NDArray[np.bool_]
    owner: NDArray[np.intp]


def means_are_there(model: KernelEstimator) -> bool:
    """Whether the means are given, by weights of rows or as points of the space that ``predict`` measures in."""
    there = vars(model)
    weighs = {"_member", "_part", "_source"} <= there.keys()
    rows = {"X_fit_", "_first", "_merged"} & there.keys()
    if "cluster_centers_" not in there:
        if model.kernel_ is None:
            return weighs and not rows and len(there["_member"]) == model.n_features_in_
        return weighs and len(rows) == 3 and bool((there["_member"][there["_first"]] >= 0).all())
    if rows:
        return False
    width = there["cluster_centers_"].shape[1]
    if "map_" in there:
        return bool(there["map_"].n_output_features_ == width) and there.get("_center") is None
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
"""What KernelKMeans states of a fit."""


def rows_of(X: CheckedRows, weight: Vector, *, merge: bool, square: bool) -> DistinctRows:
    """Rows of weight above 0; equal ones are merged, in an order that comes from their contents, if asked for.

    Examples
    --------
    >>> rows = rows_of(np.array([[1.0], [2.0], [1.0], [3.0]]), np.array([1.0, 1.0, 2.0, 0.0]), merge=True, square=False)
    >>> sorted(zip(rows.X.ravel().tolist(), rows.weight.tolist())), rows.kept.tolist()
    ([(1.0, 3.0), (2.0, 1.0)], [True, True, True, False])
    """
    if not merge:
        kept = weight > 0
        first = np.flatnonzero(kept)
        part = X if kept.all() else X[np.ix_(first, first)] if square else X[first]
        return DistinctRows(part, weight[first], first, kept, np.arange(len(first)))
    first, owner = equal_rows(X)
    total: Vector = np.bincount(owner, weights=weight, minlength=len(first)).astype(np.float64)
    usable = total > 0
    number = np.cumsum(usable) - 1
    kept = usable[owner]
    first = first[usable]
    if isinstance(X, np.ndarray):
        memory.require(X.itemsize * len(first) * X.shape[1], f"a copy of {len(first)} distinct rows")
    return DistinctRows(X[first], total[usable], first, kept, number[owner[kept]])


def check_start(init: Any, k: int, X: CheckedRows, precomputed: bool) -> None:
    """Raise if ``init`` is no start of k clusters of the rows ``X``."""
    if isinstance(init, str):
        if init not in _WORDS:
            raise ParameterError(f"init must be 'k-means++', 'random' or an array, but is {init!r}.")
        return
    try:
        given = np.asarray(init)
    except ValueError:
        given = np.asarray(None)
    n, d = X.shape[0], None if isinstance(X, (Objects, MixedRows)) else X.shape[1]
    if given.ndim == 1 and given.dtype.kind in "iu" and len(given) in (n, k):
        top = (n if len(given) == k else k) - 1
        what = "positions of rows" if len(given) == k else "labels"
        if given.min() < 0 or given.max() > top:
            raise ParameterError(
                f"init holds {what}, which go from 0 to {top}, but reaches from {given.min()} to {given.max()}."
            )
        return
    if given.shape == (k, d) and given.dtype.kind in "iuf" and not precomputed:
        if not np.isfinite(given).all():
            raise ParameterError("init holds points with entries that are not finite; remove these points.")
        return
    points = "" if precomputed or d is None else f", or the coordinates of {k} points, ({k}, {d})"
    raise ParameterError(
        f"init must be 'k-means++', 'random', the positions of n_clusters={k} rows, {n} labels{points}; it is an "
        f"array of {given.dtype} of the shape {given.shape}."
    )


def start_of(model: KernelEstimator, X: Any, rows: DistinctRows) -> Start:
    """The start that ``model.init`` stands for, checked before."""
    if isinstance(model.init, str):
        return Start(model.init)
    given = np.asarray(model.init)
    if given.shape == (X.shape[0],) != (model.n_clusters,):
        return Start("labels", given[rows.first])
    if model.kernel_ is None:
        diagonal = X.diagonal().astype(np.float64)
        inner = X[rows.first][:, given].astype(np.float64)
        return Start("distances", diagonal[rows.first][:, None] - 2 * inner + diagonal[given])
    points = X[given] if given.ndim == 1 else given.astype(X.dtype)
    if sp.issparse(X):
        points = sp.csr_matrix(points)
    mine, theirs = rows.X, points
    centre = getattr(model, "_center", None)
    if centre is not None:
        mine, theirs = mine - centre, theirs - centre
    gram = Gram(model.kernel_, mine, theirs, dtype=np.float64, n_jobs=model.n_jobs)
    own = Gram(model.kernel_, mine, n_jobs=model.n_jobs).diagonal()
    return Start("distances", own[:, None] - 2 * gram.dense() + Gram(model.kernel_, theirs).diagonal())


def coordinates_of(
    model: KernelEstimator, rows: DistinctRows, random: np.random.RandomState, held: ExitStack
) -> tuple[Coordinates | None, Vector | None]:
    """Coordinates in feature space where there are any, and ``k(x, x)`` if these leave out a part of it.

    Sets ``model.map_`` or ``model._center``. What is held of the features is reserved until ``held`` is closed.
    """
    if model.approximation == "nystroem":
        model.map_ = _landmarks(model, rows, random)
        n, d = rows.X.shape[0], model.map_.n_output_features_
        assert model.kernel_ is not None
        norms = np.asarray(Gram(model.kernel_, rows.X, n_jobs=model.n_jobs).diagonal(), dtype=np.float64)
        nbytes = n * d * rows.X.dtype.itemsize
        if fits(nbytes + nbytes // 4 + working_bytes(n, int(model.n_clusters), dual=False)):
            with settings.inherited(_jobs(model)):
                features = model.map_.transform(rows.X)
            held.enter_context(memory.reserve(nbytes, f"{d} features of {n} rows"))
            return Coordinates(features, (n, d), nbytes=nbytes), norms
        return Coordinates(lambda part: model.map_.transform(rows.X[part]), (n, d)), norms
    if not isinstance(model.kernel_, Linear):
        return None, None
    if sp.issparse(rows.X):
        return Coordinates(rows.X, rows.X.shape), None
    model._center = (rows.weight / rows.weight.sum()) @ rows.X
    nbytes = 8 * rows.X.size
    if not fits(nbytes + nbytes // 4 + working_bytes(len(rows.X), int(model.n_clusters), dual=False)):
        return Coordinates(rows.X, rows.X.shape, model._center), None
    held.enter_context(memory.reserve(nbytes, "the rows about their mean"))
    about_mean = rows.X.astype(np.float64)
    about_mean -= model._center
    return Coordinates(about_mean, rows.X.shape, nbytes=nbytes), None


def _landmarks(model: KernelEstimator, rows: DistinctRows, random: np.random.RandomState) -> NystroemMap:
    """The map to the span of some rows, chosen among a sample, so that it takes no more room with more rows."""
    n, count = rows.X.shape[0], max(_SAMPLE * int(model.n_landmarks), _LEAST)
    chosen = rows.X
    if n > count:
        chosen = rows.X[np.sort(random.choice(n, count, replace=False, p=rows.weight / rows.weight.sum()))]
    seed = int(random.randint(np.iinfo(np.int32).max))
    with settings.inherited(_jobs(model)):
        return NystroemMap(model.kernel_, int(model.n_landmarks), random_state=seed).fit(chosen)


def _jobs(model: KernelEstimator) -> settings.Settings:
    """The settings with the threads of the estimator, for maps, which have none of their own."""
    return replace(settings.current(), n_jobs=settings.resolve_jobs(model.n_jobs))


def inner_of(model: KernelEstimator, X: CheckedRows) -> Vector:
    """Inner products of rows with the means that ``model.cluster_centers_`` holds."""
    mapped = hasattr(model, "map_")
    centre = getattr(model, "_center", None)
    centres = model.cluster_centers_ if centre is None else model.cluster_centers_ - centre
    width = centres.shape[1]
    source = (lambda part: model.map_.transform(X[part])) if mapped else X
    coordinates = Coordinates(source, (X.shape[0], width), centre)
    out = np.empty((X.shape[0], len(centres)))

    def work(part: slice) -> None:
        out[part] = coordinates.take(part) @ centres.T

    by_parts(work, coordinates.shape, model.n_jobs)
    return out


def new_diagonal(model: KernelEstimator, X: Any, own: Vector | None, diagonal: ArrayLike | None) -> Vector:
    """``k(x, x)`` of rows; for a matrix, given, or the same as that of all training rows."""
    if model.kernel_ is not None:
        if diagonal is not None:
            raise ParameterError("diagonal applies only to kernel='precomputed'; leave it out.")
        centre = getattr(model, "_center", None)
        if centre is not None:
            return squared_norms(np.asarray(X - centre, dtype=np.float64))
        return np.asarray(Gram(model.kernel_, X, n_jobs=model.n_jobs).diagonal(), dtype=np.float64)
    assert own is not None
    return diagonal_of_new(diagonal, own, len(X), X.dtype, "compute the nearest means without distances (predict)")
