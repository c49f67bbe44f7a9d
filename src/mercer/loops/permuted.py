"""Inner products of matrices with the powers of another one whose rows and columns are permuted."""

import numpy as np

from mercer.loops._jit import jit


@jit
def permuted_products(tiles, L, rows, columns, orders, out):
    """``out_wvp = sum_ij tiles_vij L[orders_p(rows + i), orders_p(columns + j)]^(4^w)``."""
    entries = np.empty(tiles.shape[2])
    for w in range(out.shape[0]):
        for v in range(out.shape[1]):
            for p in range(out.shape[2]):
                out[w, v, p] = 0.0
    for p in range(orders.shape[0]):
        order = orders[p, columns : columns + entries.shape[0]]
        for i in range(tiles.shape[1]):
            line = L[orders[p, rows + i]]
            # Entries of L lie far apart, and are looked up once for all matrices and powers.
            for j in range(entries.shape[0]):
                entries[j] = line[order[j]]
            for w in range(out.shape[0]):
                if w > 0:
                    for j in range(entries.shape[0]):
                        square = entries[j] * entries[j]
                        entries[j] = square * square
                for v in range(tiles.shape[0]):
                    part = tiles[v, i]
                    total = 0.0
                    for j in range(entries.shape[0]):
                        total += part[j] * entries[j]
                    out[w, v, p] += total
