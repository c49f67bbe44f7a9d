"""Passes over rows that are assigned to the nearest of a few means."""

from typing import NamedTuple

import numpy as np

from mercer._types import Vector
from mercer.loops._jit import jit


class Means(NamedTuple):
    """What distances from means need beside the inner products of sums and rows; no mean where there is no weight."""

    size: Vector
    """The weights of the clusters."""
    squares: Vector
    """The squared norms of the means."""


@jit
def add_moves(matrix, rows, before, after, weight, out):
    """Add weighted rows of a matrix to the sums (k, n) of the clusters they went to, take them from where they were."""
    for r in range(rows.shape[0]):
        line = matrix[rows[r]]
        w = weight[r]
        gains = out[after[r]]
        loses = out[before[r]]
        for j in range(line.shape[0]):
            value = w * np.float64(line[j])
            gains[j] += value
            loses[j] -= value


@jit
def nearest_sums(inner, norms, means, own, slack, out):
    """The nearest mean of each row; a row stays with its own where no other is nearer beyond rounding.

    ``inner`` (k, n) holds inner products of sums and rows. Of ``out``, ``squared`` is the squared distance from the
    mean of ``labels``, and ``excess`` by how much that from the mean of ``own`` is larger than the smallest.
    """
    size, squares = means
    labels, nearest, excess = out.labels, out.squared, out.excess
    for i in range(norms.shape[0]):
        nearest[i] = np.inf
        labels[i] = 0
        excess[i] = np.inf
    for c in range(size.shape[0]):
        if not size[c] > 0:
            continue
        line = inner[c]
        factor = 2 / size[c]
        square = squares[c]
        for i in range(norms.shape[0]):
            squared = square - factor * line[i]
            closer = squared < nearest[i]
            nearest[i] = squared if closer else nearest[i]
            labels[i] = c if closer else labels[i]
            excess[i] = squared if own[i] == c else excess[i]
    for i in range(norms.shape[0]):
        more = excess[i] - nearest[i]
        if more <= slack * (abs(norms[i]) + squares[labels[i]]):
            labels[i] = own[i]
            nearest[i] = excess[i]
        nearest[i] += norms[i]
        excess[i] = more


@jit
def all_distances(inner, norms, means, out):
    """Distances (n, k) of rows from means, from the inner products (k, n) of sums and rows."""
    size, squares = means
    for c in range(size.shape[0]):
        for i in range(norms.shape[0]):
            squared = norms[i] - 2 * inner[c, i] / size[c] + squares[c] if size[c] > 0 else np.inf
            out[i, c] = np.sqrt(max(squared, 0.0))


@jit
def undecided(distances, version, travelled, labels, slack, out):
    """Which rows may have another nearest mean than their own, now that means have moved.

    ``distances`` of a row are those from the means of its ``version``; ``travelled[t, c]`` is how far mean c came until
    version t. By the triangle inequality no distance has changed by more than its mean moved since. ``slack``, squared,
    is what rounding may have done to a squared distance.
    """
    last = travelled[travelled.shape[0] - 1]
    k = distances.shape[1]
    least = np.sqrt(slack)
    for i in range(distances.shape[0]):
        then = travelled[version[i]]
        own = labels[i]
        nearest = distances[i, own]
        most = nearest + (last[own] - then[own]) + slack / max(nearest, least)
        doubtful = False
        for c in range(k):
            doubtful |= (c != own) & (distances[i, c] - (last[c] - then[c]) <= most)
        out[i] = doubtful
