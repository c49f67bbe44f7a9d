"""Inner products of matrices with another one whose rows and columns are permuted."""

import numpy as np

from mercer.loops._jit import jit


@jit
def permuted_products(tiles, L, rows, columns, orders, out):
    """``out_vp = sum_ij tiles_vij L[orders_p(rows + i), orders_p(columns + j)]``."""
    entries = np.empty(tiles.shape[2])
    for p in range(orders.shape[0]):
        order = orders[p]
        for v in range(tiles.shape[0]):
            out[v, p] = 0.0
        for i in range(tiles.shape[1]):
            line = L[order[rows + i]]
            # Entries of L lie far apart, and are looked up once for all matrices.
            for j in range(entries.shape[0]):
                entries[j] = line[order[columns + j]]
            for v in range(tiles.shape[0]):
                part = tiles[v, i]
                total = 0.0
                for j in range(entries.shape[0]):
                    total += part[j] * entries[j]
                out[v, p] += total
