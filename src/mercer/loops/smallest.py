"""The smallest scores of every row, kept while the tiles of a matrix pass by."""

import numpy as np

from mercer.loops._jit import jit

# Entries of a row that are looked through at once.
_CHUNK = 64


@jit
def _sift(scores, positions, score, position):
    """Put a score in the place of the root of a heap whose root is the largest; of equal scores, the later one."""
    k = scores.shape[0]
    node = 0
    while True:
        child = 2 * node + 1
        if child >= k:
            break
        if child + 1 < k and (
            scores[child + 1] > scores[child]
            or (scores[child + 1] == scores[child] and positions[child + 1] > positions[child])
        ):
            child += 1
        larger = scores[child] > score or (scores[child] == score and positions[child] > position)
        if not larger:
            break
        scores[node] = scores[child]
        positions[node] = positions[child]
        node = child
    scores[node] = score
    positions[node] = position


@jit
def keep_smallest(tile, offset, factor, start, own, scores, positions):
    """Take the columns of a tile into the heaps of its rows; True if a score is NaN.

    The score of a pair is ``offset_j + factor * tile_ij`` and its number ``start + j``; the pair with the number
    ``own_i`` is left out. Columns come in ascending order, so that of equal scores the first ones stay.
    """
    broken = False
    columns = tile.shape[1]
    for i in range(tile.shape[0]):
        row = tile[i]
        heap = scores[i]
        numbers = positions[i]
        skipped = own[i] - start
        for begin in range(0, columns, _CHUNK):
            part, added = row[begin : begin + _CHUNK], offset[begin : begin + _CHUNK]
            limit = heap[0]
            # Most chunks have none below the limit, which a loop without branches tells at once.
            count = 0
            for j in range(part.shape[0]):
                count += not (added[j] + factor * part[j] >= limit)
            if count == 0:
                continue
            for j in range(part.shape[0]):
                score = added[j] + factor * part[j]
                if np.isnan(score):
                    broken = True
                elif score < heap[0] and begin + j != skipped:
                    _sift(heap, numbers, score, start + begin + j)
    return broken


@jit
def sort_heaps(scores, positions):
    """Put every heap in ascending order of its scores, and of the numbers among equal scores."""
    for i in range(scores.shape[0]):
        heap = scores[i]
        numbers = positions[i]
        for last in range(heap.shape[0] - 1, 0, -1):
            score, number = heap[last], numbers[last]
            heap[last], numbers[last] = heap[0], numbers[0]
            _sift(heap[:last], numbers[:last], score, number)
