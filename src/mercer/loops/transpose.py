"""Transposing a tile by small squares: a plain strided copy misses the cache at every entry."""

from __future__ import annotations

from mercer.loops._jit import jit

# Eight rows of a target with a power of two for its width still fit the sets of the first cache.
_SIDE = 8


@jit
def transpose(tile, out):
    """``out = tile.T``."""
    r, c = tile.shape
    for j in range(0, c, _SIDE):
        for i in range(0, r, _SIDE):
            for a in range(i, min(i + _SIDE, r)):
                for b in range(j, min(j + _SIDE, c)):
                    out[b, a] = tile[a, b]


@jit
def mirror(tile):
    """Below the diagonal of a square tile what is above it."""
    n = tile.shape[0]
    for i in range(0, n, _SIDE):
        for j in range(i, n, _SIDE):
            for a in range(i, min(i + _SIDE, n)):
                for b in range(max(j, a + 1), min(j + _SIDE, n)):
                    tile[b, a] = tile[a, b]
