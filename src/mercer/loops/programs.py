"""Kernels as programs on tiles: one call fills tile after tile and uses each while it is in the cache.

A program is a list of steps on a stack of tiles: a statistic of the rows is put on it, functions replace the uppermost
tile, and sums and products join the two uppermost ones. Workers take their share of a block from a counter in memory,
so that each of them needs Python once, and sums have an order that depends on the shape alone.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mercer._types import Array, Integers, Matrix, Vector
from mercer.loops import distances
from mercer.loops._jit import jit_in_order, prefer_wide_vectors
from mercer.loops.addresses import (
    add_shared,
    matrix_at,
    read_double,
    read_int,
    read_shared,
    read_single,
    rest,
    vector_at,
)
from mercer.loops.exponential import exponential_float32, exponential_float64
from mercer.loops.transpose import transpose

# Steps. The first two have the number of a statistic.
STATISTIC, RECALL, CONSTANT, SCALE, SHIFT, EXPONENTIAL, ROOT, RAISE, POWER, DECAY, LOG1P, ADD, MULTIPLY = range(13)
# Statistics: inner products, distances by products or by differences.
DOT, PRODUCTS, DIFFERENCES = range(3)
# What becomes of the tiles.
FILL, PRODUCT, SYMMETRIC = range(3)
# What a job says.
MODE, ROWS, COLUMNS, FIRST_ROW, FIRST_COLUMN, SIDE, CHUNK, STORED, DEPTH, TARGET, STRIDE, MIRROR, CHECK = range(13)
TALL, WIDE = 13, 14
JOB = 15
# What a statistic is: its kind, columns, operands, and the rows as they were given with their places.
(KIND, WIDTH, LEFT, LEFT_SIZES, RIGHT, RIGHT_SIZES, THRESHOLD, MEASURE, GIVEN_WIDTH, WEIGHTS) = range(10)
# Of either side: address, whether it is in float64, addresses of positions or 0, the first row and the step.
GIVEN_LEFT, GIVEN_RIGHT, GIVEN = 10, 15, 5
TABLE = 20
# What workers share: the next task, finished tasks, entries that are not finite, and for each strip its rounds.
NEXT, DONE, NOT_FINITE, ROUNDS = range(4)
_DOUBLE = np.empty(0)


class Code(NamedTuple):
    """A program."""

    steps: Integers
    """(p, 2): codes, and the number of a statistic."""
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


@intrinsic
def _exponential(typing_context, flat):
    """``flat = exp(flat)`` by the loop for its precision."""
    loop = exponential_float32 if flat.dtype.bitwidth == 32 else exponential_float64

    def generate(context, builder, signature, arguments):
        function = context.typing_context.resolve_value_type(loop)
        chosen = function.get_call_type(context.typing_context, signature.args, {})
        call = context.get_function(function, chosen)
        context.add_linking_libs(call.libs)
        return call(builder, arguments)

    return types.none(flat), generate


@jit_in_order
def _scale(x, factor):
    for k in range(x.shape[0]):
        x[k] = x[k] * factor


@jit_in_order
def _shift(x, amount):
    for k in range(x.shape[0]):
        x[k] = x[k] + amount


@jit_in_order
def _add(x, y):
    for k in range(y.shape[0]):
        x[k] = x[k] + y[k]


@jit_in_order
def _multiply(x, y):
    for k in range(y.shape[0]):
        x[k] = x[k] * y[k]


@jit_in_order
def _write(x, value):
    for k in range(x.shape[0]):
        x[k] = value


@jit_in_order
def _copy(x, y, factor):
    for k in range(x.shape[0]):
        y[k] = factor * x[k]


@jit_in_order
def _roots(x, y, highest):
    """``x = min(sqrt(x), highest)`` and ``y = -x``."""
    for k in range(x.shape[0]):
        u = min(math.sqrt(x[k]), highest)
        x[k] = u
        y[k] = -u


@jit_in_order
def _polynomials(x, y, zero, one, two):
    """``x = (zero + one x + two x^2) y``"""
    for k in range(x.shape[0]):
        u = x[k]
        x[k] = (zero + one * u + two * u * u) * y[k]


@jit_in_order
def _raise(x, spare, exponent):
    """``x = x ** exponent`` for a whole exponent of at least 1, by repeated squaring."""
    _copy(x, spare, x.dtype.type(1))
    exponent -= 1
    while exponent > 0:
        if exponent & 1:
            _multiply(x, spare)
        exponent >>= 1
        if exponent:
            _multiply(spare, spare)


@jit_in_order
def _given(statistic, side, positions, first, count, d):
    """Rows as they were given, in float64: of ``first`` and those after it, or those of positions."""
    out = np.empty((count, d))
    address, wide, chosen, start, step = statistic[side : side + GIVEN]
    for i in range(count):
        at = positions[first + i] if positions.shape[0] else first + i
        at = read_int(chosen + 8 * at) if chosen else start + step * at
        for c in range(d):
            place = at * d + c
            out[i, c] = read_double(address + 8 * place) if wide else np.float64(read_single(address + 4 * place))
    return out


@jit_in_order
def _statistic(statistic, factor, rows, columns, tile, spare, lost):
    """Write ``factor * statistic`` for the rows ``(positions, first, count)`` of the left side and columns."""
    positions, first, n = rows
    start, m = columns
    d, kind, size = statistic[WIDTH], statistic[KIND], tile.itemsize
    multiplier = tile.dtype.type(factor)
    picked = positions.shape[0] > 0
    A = matrix_at(spare.ctypes.data if picked else statistic[LEFT] + size * d * first, n, d, tile)
    a = vector_at(statistic[LEFT_SIZES] + size * first, n, tile)
    if picked:
        a = np.empty(n, tile.dtype)
        for i in range(n):
            row = vector_at(statistic[LEFT] + size * d * positions[first + i], d, tile)
            for c in range(d):
                A[i, c] = row[c]
            if kind != DOT:
                a[i] = vector_at(statistic[LEFT_SIZES] + size * positions[first + i], 1, tile)[0]
    B = matrix_at(statistic[RIGHT] + size * d * start, m, d, tile)
    if kind == DIFFERENCES:
        turned = matrix_at(spare.ctypes.data + (size * n * d if picked else 0), d, m, tile)
        for c in range(d):
            for j in range(m):
                turned[c, j] = B[j, c]
        _write(tile.reshape(tile.size), multiplier * 0)
        if statistic[MEASURE] == distances.SQUARED:
            distances.add_squared_differences(A, turned, tile)
        elif statistic[MEASURE] == distances.CHI_SQUARED:
            distances.add_chi_squared(A, turned, tile)
        else:
            distances.add_differences(A, turned, tile)
    else:
        np.dot(A, B.T, tile)
    if kind == DOT:
        if factor != 1.0:
            _scale(tile.reshape(tile.size), multiplier)
        return
    b = vector_at(statistic[RIGHT_SIZES] + size * start, m, tile)
    threshold = tile.dtype.type(1.0 / statistic[THRESHOLD])
    if kind == PRODUCTS:
        distances.finish_squared_distances(tile, a, b, multiplier, threshold, lost)
    else:
        distances.finish_differences(tile, a, b, multiplier, threshold, lost)
    count = 0
    for i in range(n):
        count += lost[i]
    if count:
        d = statistic[GIVEN_WIDTH]
        weights = vector_at(statistic[WEIGHTS], d, _DOUBLE)
        given = _given(statistic, GIVEN_LEFT, positions, first, n, d)
        others = _given(statistic, GIVEN_RIGHT, positions[:0], start, m, d)
        distances.repair_distances(tile, given, others, weights, statistic[MEASURE], factor, lost)


@jit_in_order
def _evaluate(job, code, rows, columns, room, lost):
    """The tile of some rows and columns, (n, m), in the room."""
    steps, factors, statistics = code
    n, m = rows[2], columns[1]
    size, place = n * m, job[TALL] * job[WIDE]
    slots = job[STORED]
    spare = room[(slots + job[DEPTH]) * place :]
    top = slots - 1
    for p in range(steps.shape[0]):
        step, which, factor = steps[p, 0], steps[p, 1], factors[p, 0]
        if step <= CONSTANT:
            # Statistics that several steps need have places of their own, below the stack.
            stored = step == STATISTIC and which < slots
            top += not stored
            at = which if stored else top
            x = room[at * place : at * place + size]
            if step == STATISTIC:
                _statistic(statistics[which], factor, rows, columns, x.reshape(n, m), spare, lost)
            elif step == RECALL:
                _copy(room[which * place : which * place + size], x, room.dtype.type(factor))
            else:
                _write(x, room.dtype.type(factor))
            continue
        x = room[top * place : top * place + size]
        # Above the stack, or below the uppermost tile.
        y = room[(top + 1) * place : (top + 1) * place + size]
        if step == SCALE:
            _scale(x, room.dtype.type(factor))
        elif step == SHIFT:
            _shift(x, room.dtype.type(factor))
        elif step == EXPONENTIAL:
            _exponential(x)
        elif step == ROOT:
            _roots(x, y, room.dtype.type(factor))
        elif step == DECAY:
            _roots(x, y, room.dtype.type(factor))
            _exponential(y)
            _polynomials(
                x, y, room.dtype.type(factors[p, 1]), room.dtype.type(factors[p, 2]), room.dtype.type(factors[p, 3])
            )
        elif step == RAISE:
            _raise(x, y, np.int64(factor))
        elif step == POWER:
            for k in range(size):
                x[k] = x[k] ** room.dtype.type(factor)
        elif step == LOG1P:
            for k in range(size):
                x[k] = math.log1p(x[k])
        else:
            top -= 1
            z = room[top * place : top * place + size]
            if step == ADD:
                _add(z, x)
            else:
                _multiply(z, x)
    return room[top * place : top * place + size].reshape(n, m)


@jit_in_order
def run(job, code, positions, V, out, team, room):
    """One worker's share of a block.

    Parameters
    ----------
    job : ndarray of int64
        By the names above.
    code : Code
    positions : ndarray of int64
        Of the rows; empty for all after the first.
    V : ndarray of shape (m, k)
    out : ndarray of float64, of shape (chunks, n, k)
        Sums; of a symmetric matrix (1, n, k).
    team : Team
    room : ndarray
        Of this worker, in the precision of the tiles.
    """
    prefer_wide_vectors()
    shared, stop = team
    n, m, side, chunk, mode = job[ROWS], job[COLUMNS], job[SIDE], job[CHUNK], job[MODE]
    strips, chunks = (n + side - 1) // side, (m + chunk - 1) // chunk
    tasks = strips * (strips if mode == SYMMETRIC else chunks)
    k = V.shape[1]
    tall, wide = job[TALL], job[WIDE]
    lost = np.empty(tall, np.int64)
    values = np.empty(max(tall, min(wide, side)) * k, room.dtype)
    first_row, first_column = job[FIRST_ROW], job[FIRST_COLUMN]
    mirrored = matrix_at(job[TARGET], m, job[STRIDE], room)
    while stop[0] == 0:
        task = add_shared(shared, NEXT, 1)
        if task >= tasks:
            break
        major, strip = task // strips, task % strips
        begin, end = strip * side, min(strip * side + side, n)
        start, final, other = major * chunk, min(major * chunk + chunk, m), strip
        if mode == SYMMETRIC:
            # In each round a strip meets one other, or itself, so that no two tasks write to the same rows.
            other = (major - strip) % strips
            if other < strip:
                continue
            while min(read_shared(shared, ROUNDS + strip), read_shared(shared, ROUNDS + other)) < major:
                if stop[0] != 0:
                    return
                rest()
            start, final = other * side, min(other * side + side, n)
        elif job[MIRROR]:
            start = max(start, begin // wide * wide)
        for j in range(start, final, wide):
            last = min(j + wide, final)
            if stop[0] != 0:
                break
            for i in range(begin, end, tall):
                stop_row = min(i + tall, end)
                height = stop_row - i
                where = (positions, i if positions.shape[0] else first_row + i, height)
                tile = _evaluate(job, code, where, (first_column + j, last - j), room, lost)
                if mode == FILL:
                    # Of rows with themselves what is above the diagonal, and its mirror image.
                    crosses = job[MIRROR] != 0 and j < begin + side
                    place, stride = job[TARGET] + room.itemsize * (i * job[STRIDE] + j), job[STRIDE]
                    for row in range(height):
                        line = vector_at(place + room.itemsize * row * stride, last - j, room)
                        values_of_row = tile[row]
                        if crosses:
                            for column in range(max(i + row - j, 0), last - j):
                                line[column] = values_of_row[column]
                                mirrored[j + column, i + row] = values_of_row[column]
                        else:
                            for column in range(values_of_row.shape[0]):
                                line[column] = values_of_row[column]
                    if job[CHECK]:
                        total = room.dtype.type(0)
                        for row in range(height):
                            for column in range(last - j):
                                total += tile[row, column] - tile[row, column]
                        if total != 0:
                            add_shared(shared, NOT_FINITE, 1)
                    if job[MIRROR] and j >= begin + side:
                        transpose(tile, mirrored[j:last, i:stop_row])
                    continue
                F = values[: height * k].reshape(height, k)
                np.dot(tile, V[j:last], F)
                sums = out[0 if mode == SYMMETRIC else major]
                for row in range(height):
                    for c in range(k):
                        sums[i + row, c] += F[row, c]
                if mode == SYMMETRIC and other != strip:
                    G = values[: (last - j) * k].reshape(last - j, k)
                    np.dot(tile.T, V[i:stop_row], G)
                    for column in range(last - j):
                        for c in range(k):
                            sums[j + column, c] += G[column, c]
        if mode == SYMMETRIC:
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
        As for :func:`run`. The room also has the strip, (side, m), and its answers.
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
            _write(values.reshape(values.size), 0.0)
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
