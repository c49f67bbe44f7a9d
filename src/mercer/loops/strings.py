"""Loops over symbols, which come as numbers, one string after the other."""

import numpy as np

from mercer.loops._jit import jit


@jit
def mix(bits):
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit decides about every other."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@jit
def hash_windows(codes, starts, length, out):
    """A hash of every ``length`` symbols in a row, string after string; ``out`` has room for exactly these."""
    at = 0
    for i in range(starts.shape[0] - 1):
        for begin in range(starts[i], starts[i + 1] - length + 1):
            h = np.uint64(length)
            for c in range(begin, begin + length):
                h = mix((h ^ np.uint64(codes[c])) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))
            out[at] = h
            at += 1


@jit
def subsequences(x, xs, rows, z, zs, columns, decay, weights, symmetric, out):
    """Gap-weighted subsequences of every length up to ``len(weights)`` of each pair of strings.

    ``x[xs[i]:xs[i + 1]]`` is string i of the left side. The recursion of Lodhi et al. (2002), section 3, equation 4,
    with the inner sum carried along: three operations for a cell and a length.
    """
    deepest = weights.shape[0]
    longest = 0
    for b in range(columns.shape[0]):
        longest = max(longest, zs[columns[b] + 1] - zs[columns[b]])
    # inner[l, t] is K'_l of the prefix of x so far and the first t symbols of z.
    inner = np.zeros((deepest + 1, longest + 1))
    for a in range(rows.shape[0]):
        for b in range(a if symmetric else 0, columns.shape[0]):
            m = zs[columns[b] + 1] - zs[columns[b]]
            base = zs[columns[b]]
            for level in range(deepest):
                for t in range(m + 1):
                    inner[level, t] = 1.0 if level == 0 else 0.0
            total = 0.0
            for s in range(xs[rows[a]], xs[rows[a] + 1]):
                # From the deepest level down, since each reads the level above from the prefix without this symbol.
                for level in range(deepest - 1, -1, -1):
                    carried = 0.0
                    hit = 0.0
                    for t in range(m):
                        same = x[s] == z[base + t]
                        if same:
                            hit += inner[level, t]
                        carried = decay * carried + (decay * decay * inner[level, t] if same else 0.0)
                        if level + 1 < deepest:
                            inner[level + 1, t + 1] = decay * inner[level + 1, t + 1] + carried
                    total += weights[level] * decay * decay * hit
            out[a, b] = total


@jit
def subsequence_slope(x, xs, rows, z, zs, columns, decay, weights, pulled):
    """``sum_ab pulled[a, b] d k(x_a, z_b) / d decay`` of the kernel above: each recursion with its derivative."""
    deepest = weights.shape[0]
    longest = 0
    for b in range(columns.shape[0]):
        longest = max(longest, zs[columns[b] + 1] - zs[columns[b]])
    inner = np.zeros((deepest + 1, longest + 1))
    slope = np.zeros((deepest + 1, longest + 1))
    square = decay * decay
    result = 0.0
    for a in range(rows.shape[0]):
        for b in range(columns.shape[0]):
            if pulled[a, b] == 0.0:
                continue
            m = zs[columns[b] + 1] - zs[columns[b]]
            base = zs[columns[b]]
            inner[:, : m + 1] = 0.0
            inner[0, : m + 1] = 1.0
            slope[:, : m + 1] = 0.0
            total = 0.0
            for s in range(xs[rows[a]], xs[rows[a] + 1]):
                for level in range(deepest - 1, -1, -1):
                    carried, moved = 0.0, 0.0
                    for t in range(m):
                        moved = carried + decay * moved
                        carried = decay * carried
                        if x[s] == z[base + t]:
                            gained = 2.0 * decay * inner[level, t] + square * slope[level, t]
                            total += weights[level] * gained
                            carried += square * inner[level, t]
                            moved += gained
                        if level + 1 < deepest:
                            slope[level + 1, t + 1] = inner[level + 1, t + 1] + decay * slope[level + 1, t + 1] + moved
                            inner[level + 1, t + 1] = decay * inner[level + 1, t + 1] + carried
            result += pulled[a, b] * total
    return result
