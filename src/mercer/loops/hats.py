"""Tiles of products over columns of hat functions, and their slopes; sides as in :mod:`mercer.loops.distances`."""

from mercer.loops._jit import jit


@jit
def products(A, B, rates, weights, multiplier, out):
    """``multiplier * prod_c (1 + weights_c max(0, 1 - rates_c |A_ic - B_cj|))``."""
    zero = out.dtype.type(0)
    one = out.dtype.type(1)
    for i in range(A.shape[0]):
        row = out[i]
        row[:] = multiplier
        for c in range(A.shape[1]):
            x = A[i, c]
            rate = rates[c]
            weight = weights[c]
            other = B[c]
            for j in range(row.shape[0]):
                hat = one - rate * abs(x - other[j])
                row[j] *= one + weight * (hat if hat > zero else zero)


@jit
def pull(A, B, rates, weights, W, by_weight, by_width):
    """Slopes of ``sum_ij w_ij log k_ij`` by each weight, and by the logarithm of each width, with ``W = w``."""
    zero = W.dtype.type(0)
    one = W.dtype.type(1)
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            x = A[i, c]
            rate = rates[c]
            weight = weights[c]
            other = B[c]
            total = zero
            wider = zero
            for j in range(W.shape[1]):
                distance = rate * abs(x - other[j])
                inside = distance < one
                hat = one - distance if inside else zero
                share = W[i, j] / (one + weight * hat)
                total += share * hat
                wider += share * weight * (distance if inside else zero)
            by_weight[c] += total
            by_width[c] += wider
