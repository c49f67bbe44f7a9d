"""Passes over rows that are assigned to the nearest of a few means."""

import numpy as np

from mercer.loops._jit import jit


@jit
def add_moves(matrix, rows, columns, before, after, weight, out):
    """For each of ``rows``: add weighted entries in ``columns`` to the sums of ``after``, take them from ``before``.

    ``before``, ``after`` and ``weight`` belong to the columns; ``out`` has a row for each of ``rows``.
    """
    for r in range(rows.shape[0]):
        line = matrix[rows[r]]
        sums = out[r]
        for j in range(columns.shape[0]):
            value = weight[j] * np.float64(line[columns[j]])
            sums[after[j]] += value
            sums[before[j]] -= value


@jit
def nearest_means(inner, norms, size, squares, own, slack, distances, labels, excess):
    """Distances to the means, and the nearest one; a row stays with its own where no other is nearer beyond rounding.

    ``inner`` holds inner products with the sums of the clusters, ``size`` their weights and ``squares`` the squared
    norms of the means; a cluster without weight has no mean. ``excess`` is by how much, squared, the own mean is
    farther than the nearest.
    """
    k = size.shape[0]
    for i in range(inner.shape[0]):
        best = np.inf
        at = -1
        mine = np.inf
        for c in range(k):
            squared = np.inf
            if size[c] > 0:
                squared = norms[i] - 2 * inner[i, c] / size[c] + squares[c]
            if c == own[i]:
                mine = squared
            if squared < best:
                best = squared
                at = c
            distances[i, c] = np.sqrt(max(squared, 0.0))
        excess[i] = mine - best
        stays = own[i] >= 0 and mine - best <= slack * (abs(norms[i]) + squares[at])
        labels[i] = own[i] if stays else at


@jit
def undecided(distances, version, travelled, labels, slack, out):
    """Which rows may have another nearest mean than their own, now that means have moved.

    ``distances`` of a row are those to the means of its ``version``; ``travelled[t, c]`` is how far mean c came until
    version t. By the triangle inequality no distance has changed by more than its mean moved since.
    """
    last = travelled[travelled.shape[0] - 1]
    k = distances.shape[1]
    for i in range(distances.shape[0]):
        then = travelled[version[i]]
        own = labels[i]
        most = distances[i, own] + (last[own] - then[own]) + slack
        doubtful = False
        for c in range(k):
            doubtful |= (c != own) & (distances[i, c] - (last[c] - then[c]) <= most)
        out[i] = doubtful
