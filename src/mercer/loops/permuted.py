"""Inner products of one matrix with another whose rows and columns are permuted."""

from mercer.loops._jit import jit


@jit
def permuted_products(tile, L, rows, columns, orders, out):
    """``out_p = sum_ij tile_ij L[orders_p(rows + i), orders_p(columns + j)]``."""
    for p in range(orders.shape[0]):
        order = orders[p]
        total = 0.0
        for i in range(tile.shape[0]):
            line = L[order[rows + i]]
            part = tile[i]
            for j in range(part.shape[0]):
                total += part[j] * line[order[columns + j]]
        out[p] = total
