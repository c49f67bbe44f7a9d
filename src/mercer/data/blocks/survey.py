"""What one pass over blocks gives: counts, moments, labels, a sample, and the fingerprint."""

from __future__ import annotations

from dataclasses import dataclass

from mercer._types import AnyArray, Vector
from mercer.data.blocks.block import Block


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of all rows, which :meth:`mercer.Blocks.survey` collects in one pass.

    They have the same bits for blocks of any size.

    Attributes
    ----------
    n, d : int
        Numbers of rows and columns.
    weight : float
        Sum of the sample weights; n without weights.
    mean, scale : ndarray of shape (d,)
        Weighted means and standard deviations of the columns of X, with divisor ``weight``.
    target_mean, target_scale : ndarray of shape (t,), or None
        The same of the targets; None if they are text or there are none.
    classes : ndarray of shape (c,), or None
        The different values of the target in ascending order; None if there are more than 1000, or numbers with
        fractions.
    class_weight : ndarray of shape (c,), or None
        Sum of the sample weights of each class.
    fingerprint : str
        As of the blocks.
    sample : Block or None
        The rows that were drawn, if a sample was requested.
    """

    n: int
    d: int
    weight: float
    mean: Vector
    scale: Vector
    target_mean: Vector | None
    target_scale: Vector | None
    classes: AnyArray | None
    class_weight: Vector | None
    fingerprint: str
    sample: Block | None = None
