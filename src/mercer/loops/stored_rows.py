"""The gradient update from rows of K that are stored."""

from mercer.loops._jit import jit

_COLUMNS = 2048


@jit
def subtract_rows(F, rows, index, weights):
    """``F -= sum_s weights[s] * rows[index[s]]``, summed in float64 over columns that stay in the cache.

    Four rows at a time: one pass over F for the four, and four streams from memory side by side.
    """
    fours = index.shape[0] - index.shape[0] % 4
    for begin in range(0, F.shape[0], _COLUMNS):
        end = min(begin + _COLUMNS, F.shape[0])
        target = F[begin:end]
        for s in range(0, fours, 4):
            a, b = rows[index[s], begin:end], rows[index[s + 1], begin:end]
            c, d = rows[index[s + 2], begin:end], rows[index[s + 3], begin:end]
            u, v, x, y = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
            for k in range(end - begin):
                target[k] -= (u * a[k] + v * b[k]) + (x * c[k] + y * d[k])
        for s in range(fours, index.shape[0]):
            row = rows[index[s], begin:end]
            weight = weights[s]
            for k in range(end - begin):
                target[k] -= weight * row[k]


@jit
def copy_rows(tile, targets, rows):
    """``rows[targets[s]] = tile[s]`` for as many rows of the tile as there are targets."""
    for s in range(targets.shape[0]):
        row = rows[targets[s]]
        source = tile[s]
        for k in range(source.shape[0]):
            row[k] = source[k]
