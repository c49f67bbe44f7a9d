"""Kernels as programs on tiles: one call fills tile after tile and uses each while it is in the cache.

A program is a list of steps on a stack of tiles: a statistic of the rows is put on it, functions replace the uppermost
tile, and sums and products join the two uppermost ones. Steps are called by their addresses (``mercer.loops.steps``).
Workers take their share of a block from a counter in memory, so that each of them needs Python once, and sums have an
order that depends on the shape alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Integers, Matrix, Vector
from mercer.loops._jit import jit_in_order, prefer_wide_vectors
from mercer.loops.addresses import add_shared, call_at, matrix_at, read_shared, rest, vector_at
from mercer.loops.distances import NormedRows
from mercer.loops.transpose import transpose

# What a step does: it puts a statistic, a multiple of a stored one or a constant on the stack, replaces the uppermost
# tile, or joins it with the one below. The first two have the number of a statistic.
STATISTIC, RECALL, PUSH, REPLACE, JOIN = range(5)
# What becomes of products: of two sides, or of rows with themselves.
PRODUCT, SYMMETRIC = range(2)
# What a job says.
MODE, ROWS, COLUMNS, FIRST_ROW, FIRST_COLUMN, SIDE, CHUNK, STORED, DEPTH, TARGET, STRIDE, MIRROR, CHECK = range(13)
TALL, WIDE = 13, 14
JOB = 15
# What a statistic is: addresses of its loop and of the one that repairs entries or 0, columns, operands and their sizes
# or 0, and 1 / threshold.
LOOP, REPAIR, WIDTH, LEFT, LEFT_SIZES, RIGHT, RIGHT_SIZES, THRESHOLD, GIVEN_WIDTH, WEIGHTS = range(10)
# Both sides as they were given, and the measure (``mercer.loops.steps.repair``).
GIVEN, MEASURE = 10, 20
TABLE = 21
# What workers share: the next task, finished tasks, entries that are not finite, and for each strip its rounds.
NEXT, DONE, NOT_FINITE, ROUNDS = range(4)
_DOUBLE = np.empty(0)


class Code(NamedTuple):
    """A program."""

    steps: Integers
    """(p, 3): what a step does, the number of a statistic, and the address of a function."""
    factors: Array
    """(p, 4)"""
    statistics: Integers
    """(s, TABLE): those that are stored come first."""


class Team(NamedTuple):
    """What workers share."""

    shared: Integers
    """Whole numbers, by the names above, with zeros at first."""
    stop: NDArray[np.uint8]
    """Ends the work once its first byte is not 0."""


class Weighted(NamedTuple):
    """Targets of a pass."""

    targets: Matrix
    """(n, t), in float64."""
    weights: Vector
    """(n,)"""


class Sums(NamedTuple):
    """What the groups of strips add up."""

    products: Array
    """(groups, t, m)"""
    squares: Array
    """(groups, t)"""


@jit_in_order
def _statistic(table, factor, rows, columns, tile, spare, lost):
    """Write ``factor * statistic`` for the rows ``(positions, first, count)`` of the left side and columns."""
    positions, first, n = rows
    start, m = columns
    d, size = table[WIDTH], tile.itemsize
    A = matrix_at(table[LEFT] + size * d * first, n, d, tile)
    a = vector_at(table[LEFT_SIZES] + size * first, n, tile)
    if positions.shape[0]:
        A = matrix_at(spare.ctypes.data, n, d, tile)
        a = vector_at(spare.ctypes.data + size * n * d, n, tile)
        spare = spare[n * (d + 1) :]
        for i in range(n):
            at = positions[first + i]
            row, target = vector_at(table[LEFT] + size * d * at, d, tile), A[i]
            for c in range(row.shape[0]):
                target[c] = row[c]
            if table[LEFT_SIZES]:
                a[i] = vector_at(table[LEFT_SIZES] + size * at, 1, tile)[0]
    left = NormedRows(A, a)
    right = NormedRows(
        matrix_at(table[RIGHT] + size * d * start, m, d, tile), vector_at(table[RIGHT_SIZES] + size * start, m, tile)
    )
    factors = np.empty(2)
    factors[0], factors[1] = factor, 1.0 / table[THRESHOLD]
    call_at(table[LOOP], (left, right, factors, tile, spare, lost))
    if table[REPAIR]:
        count = 0
        for i in range(n):
            count += lost[i]
        if count:
            weights = vector_at(table[WEIGHTS], table[GIVEN_WIDTH], _DOUBLE)
            call_at(table[REPAIR], (table[GIVEN:], weights, (first, start), positions, factor, tile, lost))


@jit_in_order
def _evaluate(job, code, rows, columns, room, lost):
    """The tile of some rows and columns, (n, m), in the room."""
    n, m = rows[2], columns[1]
    size, place = n * m, job[TALL] * job[WIDE]
    slots = job[STORED]
    spare = room[(slots + job[DEPTH]) * place :]
    top = slots - 1
    for p in range(code.steps.shape[0]):
        step, which = code.steps[p, 0], code.steps[p, 1]
        # Statistics that several steps need have places of their own, below the stack.
        stored = step == STATISTIC and which < slots
        top += step <= PUSH and not stored
        top -= step == JOIN
        at = which if stored else top
        x = vector_at(room.ctypes.data + room.itemsize * place * at, size, room)
        if step == STATISTIC:
            _statistic(code.statistics[which], code.factors[p, 0], rows, columns, x.reshape(n, m), spare, lost)
            continue
        # Stored, or above the tile.
        other = which if step == RECALL else top + 1
        y = vector_at(room.ctypes.data + room.itemsize * place * other, size, room)
        if call_at(code.steps[p, 2], (x, y, code.factors[p])) != 0:
            # A user's function raised an error, and entries after it were not computed.
            for k in range(size):
                x[k] = np.nan
    return matrix_at(room.ctypes.data + room.itemsize * place * top, n, m, room)


@jit_in_order
def fill(job, code, positions, team, room):
    """One worker's share of a block that is written.

    Parameters
    ----------
    job : ndarray of int64
        By the names above.
    code : Code
    positions : ndarray of int64
        Of the rows; empty for all after the first.
    team : Team
    room : ndarray
        Of this worker, in the precision of the tiles.
    """
    prefer_wide_vectors()
    shared, stop = team
    n, m, side, chunk = job[ROWS], job[COLUMNS], job[SIDE], job[CHUNK]
    strips = (n + side - 1) // side
    tasks = strips * ((m + chunk - 1) // chunk)
    tall, wide, stride = job[TALL], job[WIDE], job[STRIDE]
    lost = np.empty(tall, np.int64)
    mirrored = matrix_at(job[TARGET], m, stride, room)
    while stop[0] == 0:
        task = add_shared(shared, NEXT, 1)
        if task >= tasks:
            break
        begin, start = task % strips * side, task // strips * chunk
        end, final = min(begin + side, n), min(start + chunk, m)
        if job[MIRROR]:
            start = max(start, begin // wide * wide)
        for j in range(start, final, wide):
            last = min(j + wide, final)
            if stop[0] != 0:
                break
            for i in range(begin, end, tall):
                height = min(i + tall, end) - i
                where = (positions, i if positions.shape[0] else job[FIRST_ROW] + i, height)
                tile = _evaluate(job, code, where, (job[FIRST_COLUMN] + j, last - j), room, lost)
                # Of rows with themselves what is above the diagonal, and its mirror image.
                crosses = job[MIRROR] != 0 and j < begin + side
                place = job[TARGET] + room.itemsize * (i * stride + j)
                total = room.dtype.type(0)
                for row in range(height):
                    line = vector_at(place + room.itemsize * row * stride, last - j, room)
                    values = tile[row]
                    if crosses:
                        for column in range(max(i + row - j, 0), last - j):
                            line[column] = values[column]
                            mirrored[j + column, i + row] = values[column]
                    else:
                        for column in range(values.shape[0]):
                            line[column] = values[column]
                    if job[CHECK]:
                        for column in range(values.shape[0]):
                            total += values[column] - values[column]
                if total != 0:
                    add_shared(shared, NOT_FINITE, 1)
                if job[MIRROR] and not crosses:
                    transpose(tile, mirrored[j:last, i : i + height])
        add_shared(shared, DONE, 1)


@jit_in_order
def multiply(job, code, V, out, team, room):
    """One worker's share of a product.

    Parameters
    ----------
    job, code, team, room
        As for :func:`fill`.
    V : ndarray of shape (m, k)
    out : ndarray of float64, of shape (chunks, n, k)
        Sums; of a symmetric matrix (1, n, k).
    """
    prefer_wide_vectors()
    shared, stop = team
    n, m, side, chunk, symmetric = job[ROWS], job[COLUMNS], job[SIDE], job[CHUNK], job[MODE] == SYMMETRIC
    strips = (n + side - 1) // side
    tasks = strips * (strips if symmetric else (m + chunk - 1) // chunk)
    k = V.shape[1]
    tall, wide = job[TALL], job[WIDE]
    lost, none = np.empty(tall, np.int64), np.empty(0, np.int64)
    values = np.empty(max(tall, min(wide, side)) * k, room.dtype)
    while stop[0] == 0:
        task = add_shared(shared, NEXT, 1)
        if task >= tasks:
            break
        major, strip = task // strips, task % strips
        begin, end = strip * side, min(strip * side + side, n)
        start, final, other = major * chunk, min(major * chunk + chunk, m), strip
        if symmetric:
            # In each round a strip meets one other, or itself, so that no two tasks write to the same rows.
            other = (major - strip) % strips
            if other < strip:
                continue
            while min(read_shared(shared, ROUNDS + strip), read_shared(shared, ROUNDS + other)) < major:
                if stop[0] != 0:
                    return
                rest()
            start, final, major = other * side, min(other * side + side, n), 0
        sums = out[major]
        for j in range(start, final, wide):
            last = min(j + wide, final)
            if stop[0] != 0:
                break
            for i in range(begin, end, tall):
                height = min(i + tall, end) - i
                tile = _evaluate(job, code, (none, i, height), (j, last - j), room, lost)
                F = values[: height * k].reshape(height, k)
                np.dot(tile, V[j:last], F)
                for row in range(height):
                    for c in range(k):
                        sums[i + row, c] += F[row, c]
                if other != strip:
                    G = values[: (last - j) * k].reshape(last - j, k)
                    np.dot(tile.T, V[i : i + height], G)
                    for column in range(last - j):
                        for c in range(k):
                            sums[j + column, c] += G[column, c]
        if symmetric:
            add_shared(shared, ROUNDS + strip, 1)
            if other != strip:
                add_shared(shared, ROUNDS + other, 1)
        add_shared(shared, DONE, 1)


@jit_in_order
def sweep(job, code, V, weighted, totals, team, room):
    """One worker's share of a pass that uses each entry twice: ``K^T U`` for ``U = weights * (targets - K V)``.

    Where V has fewer columns than there are targets, the prediction of the others is 0.

    Parameters
    ----------
    job, code, team, room
        As for :func:`fill`. The room also has the strip, (side, m), and its answers.
    V : ndarray of shape (m, k)
    weighted : Weighted
    totals : Sums
    """
    prefer_wide_vectors()
    (targets, weights), (products, sums), (shared, stop) = weighted, totals, team
    n, m, side = job[ROWS], job[COLUMNS], job[SIDE]
    k, t, groups = V.shape[1], targets.shape[1], products.shape[0]
    strips = (n + side - 1) // side
    tall, wide = job[TALL], job[WIDE]
    lost, none = np.empty(tall, np.int64), np.empty(0, np.int64)
    stored, answers = room[room.size - side * (m + t) : room.size - side * t], room[room.size - side * t :]
    values = np.empty((side, t))
    left = np.empty((side, t))
    F, G = np.empty(tall * k, room.dtype), np.empty(t * m, room.dtype).reshape(t, m)
    while stop[0] == 0:
        group = add_shared(shared, NEXT, 1)
        if group >= groups:
            break
        for strip in range(group, strips, groups):
            begin, end = strip * side, min(strip * side + side, n)
            height = end - begin
            K = stored[: height * m].reshape(height, m)
            for row in range(side):
                for c in range(t):
                    values[row, c] = 0.0
            for j in range(0, m, wide):
                if stop[0] != 0:
                    return
                last = min(j + wide, m)
                for i in range(begin, end, tall):
                    rows = min(i + tall, end) - i
                    tile = _evaluate(job, code, (none, i, rows), (j, last - j), room, lost)
                    for row in range(rows):
                        line, entries = K[i - begin + row], tile[row]
                        for column in range(entries.shape[0]):
                            line[j + column] = entries[column]
                    part = F[: rows * k].reshape(rows, k)
                    np.dot(tile, V[j:last], part)
                    for row in range(rows):
                        for c in range(k):
                            values[i - begin + row, c] += part[row, c]
            size = 0.0
            for row in range(height):
                for c in range(t):
                    rest = targets[begin + row, c] - values[row, c]
                    left[row, c] = weights[begin + row] * rest
                    sums[group, c] += left[row, c] * rest
                    size = max(size, abs(left[row, c]))
            # Within the range of the precision, and rounded alike in all units.
            unit = size if room.itemsize == 4 and 0.0 < size < np.inf else 1.0
            U = answers[: t * height].reshape(t, height)
            for row in range(height):
                for c in range(t):
                    U[c, row] = left[row, c] / unit
            np.dot(U, K, G)
            for c in range(t):
                for column in range(m):
                    products[group, c, column] += unit * G[c, column]
            add_shared(shared, DONE, 1)
