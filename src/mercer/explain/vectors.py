"""Parts of vectors, series, bags and images: columns, times, members and cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Vector
from mercer.data.images import Images
from mercer.data.series import Series
from mercer.engine.tiles import spans
from mercer.explain.result import Part
from mercer.explain.split import Columns, Sides, Split, split
from mercer.gram import Gram
from mercer.kernels import (
    AdditiveChiSquared,
    AllSubsets,
    Elementwise,
    Hamming,
    HistogramIntersection,
    Linear,
    NegativeDistance,
    Polynomial,
    SpatialPyramid,
)
from mercer.kernels.algebra import Power, Product
from mercer.kernels.bag import MeanKernel
from mercer.kernels.inputs import Rows
from mercer.kernels.kernel import Kernel
from mercer.maps._finite import Features, features_of

MOST_FEATURES = 10_000
"""Kernels with more features than this are explained by leaving columns out."""
# Features that are made at once.
_ENTRIES = 2**21


def column(columns: Columns, j: int) -> Part:
    """Return column j of those that a kernel sees.

    >>> column(Columns((4,), ("age",)), 0)
    Part(kind='column', name='age', places=(4,), term='')
    """
    return Part("column", columns.names[j], (columns.positions[j],))


@split.register
def _linear(kernel: Linear, sides: Sides) -> Split:
    x: Any = sides.x.vectors
    w = np.asarray(sides.Z.vectors.T @ sides.weights).ravel()
    used = x.indices if sp.issparse(x) else np.arange(x.shape[1])
    entries = x.data if sp.issparse(x) else x[0]
    return Split([column(sides.columns, int(j)) for j in used], np.asarray(entries * w[used], dtype=np.float64))


@split.register(HistogramIntersection)
@split.register(AdditiveChiSquared)
@split.register(Hamming)
@split.register(NegativeDistance)
def _additive(kernel: Kernel, sides: Sides) -> Split | None:
    """A sum over the columns; for the fraction of columns that agree, divided by their number."""
    if isinstance(kernel, NegativeDistance) and kernel.exponent != 2:
        return None
    d = sides.x.vectors.shape[1]
    values = np.array([_on_one(sides, j).value(kernel) for j in range(d)])
    return Split([column(sides.columns, j) for j in range(d)], values / d if isinstance(kernel, Hamming) else values)


def _on_one(sides: Sides, j: int) -> Sides:
    return sides.seen(lambda rows: rows.on((j,)))


@split.register(Polynomial)
@split.register(AllSubsets)
@split.register(Product)
@split.register(Power)
def _finite(kernel: Kernel, sides: Sides) -> Split | None:
    """A sum over explicit features, such as monomials, if there are few."""
    if kernel.kind_of_rows() not in ("vectors", "anything"):
        return None
    x: Any = sides.x.vectors
    row = np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64)
    features = features_of(kernel, row)
    if features is None or features.count > MOST_FEATURES:
        return None
    values = _dense(features.values(row))[0] * _coefficients(features, sides)
    names = features.names(list(sides.columns.names))
    places = _columns_of(features, row.shape[1])
    parts = [
        Part("feature", name, tuple(sides.columns.positions[j] for j in at))
        if len(at)
        else Part("constant", "constant")
        for name, at in zip(names, places, strict=True)
    ]
    return Split(parts, values)


def _dense(features: Any) -> Any:
    return np.asarray(features.toarray() if sp.issparse(features) else features)


def _coefficients(features: Features, sides: Sides) -> Vector:
    """``sum_i a_i phi(z_i)``, block by block."""
    Z: Any = sides.Z.vectors
    total = np.zeros(features.count)
    for block in spans(Z.shape[0], max(1, _ENTRIES // features.count)):
        total += np.asarray(features.values(Z[block].astype(np.float64)).T @ sides.weights[block]).ravel()
    return total


def _columns_of(features: Features, d: int) -> list[list[int]]:
    """The columns that each feature depends on: at a row of ones, those whose change changes it."""
    probes = np.vstack([np.ones((1, d)), np.ones((d, d)) + np.eye(d)])
    at = _dense(features.values(probes))
    changed = at[1:] != at[0]
    return [np.flatnonzero(changed[:, f]).tolist() for f in range(features.count)]


@split.register
def _elementwise(kernel: Elementwise, sides: Sides) -> Split | None:
    """By times: a series of one length is a vector, one time after the other."""
    item = sides.x.objects(Series)[0]
    channels = item.shape[1]
    of = [f"time {at // channels}" + (f", channel {at % channels}" if channels > 1 else "") for at in range(item.size)]
    inner = split(kernel.kernel, sides.seen(kernel._seen_by_parts, Columns.numbered(tuple(of))))
    if inner is None:
        return None
    parts = [
        part._replace(
            kind="time" if part.kind == "column" else part.kind,
            places=tuple(sorted({place // channels for place in part.places})),
        )
        for part in inner.parts
    ]
    return Split(parts, inner.values, item)


@split.register
def _members(kernel: MeanKernel, sides: Sides) -> Split:
    """A mean over the members of x, of their means with those of each row."""
    own, others = kernel._bags(sides.x), kernel._bags(sides.Z)
    sizes = np.diff(others.starts)
    weights = np.repeat(sides.weights / sizes, sizes)
    count = int(own.starts[-1])
    values = np.asarray(Gram(kernel._inner, Rows(own.rows), Rows(others.rows), dtype=np.float64) @ weights) / count
    if isinstance(sides.x.raw, Images) or kernel.rows_of is Images:
        return Split(_patches(kernel, sides.x.objects(Images)[0]), values)
    return Split([Part("member", f"member {i}", (i,)) for i in range(count)], values)


def _patches(kernel: Any, image: Any) -> list[Part]:
    down, right = (pixels - kernel.size + 1 for pixels in image.shape[:2])
    return [Part("patch", f"patch at row {i}, column {j}") for i in range(down) for j in range(right)]


@split.register
def _cells(kernel: SpatialPyramid, sides: Sides) -> Split:
    """A sum over the cells of all levels, of the intersections of their histograms."""
    own, others = (kernel.histograms(side.objects(Images)) for side in (sides.x, sides.Z))
    common = np.minimum(others, own).T @ sides.weights
    parts, values, at = [], [], 0
    each = len(common) // sum(4**level for level in range(kernel.levels + 1))
    for level in range(kernel.levels, -1, -1):
        side = 2**level
        for cell in range(side * side):
            parts.append(Part("cell", f"level {level}, cell {cell // side}, {cell % side} of {side} x {side}"))
            values.append(float(common[at : at + each].sum()))
            at += each
    return Split(parts, np.array(values))
