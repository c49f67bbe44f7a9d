"""Sharing the weight of a row among its copies."""

from mercer.loops._jit import jit

# What is left within this part of a bound is rounding: as a weight of its own it would count as free.
_ROUNDING = 1e-12


@jit
def share_in_turn(left, owner, lower, upper, shares):
    """Fill copies one after the other: each takes what is ``left`` (m,) of its ``owner``'s weight, inside its box.

    ``owner`` (n,) numbers the rows that the copies stand for; ``left`` is overwritten, ``shares`` (n,) is the answer.
    """
    for i in range(owner.shape[0]):
        rest = left[owner[i]]
        bound = upper[i] if rest > 0 else lower[i]
        share = min(rest, bound) if rest > 0 else max(rest, bound)
        if abs(share) <= _ROUNDING * abs(bound):
            share = 0.0
        elif abs(bound - share) <= _ROUNDING * abs(bound):
            share = bound
        shares[i] = share
        left[owner[i]] = rest - share
