"""Strings compared by the number of edits that turn one into the other."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.engine import threads
from mercer.kernels.base import Definiteness
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number
from mercer.kernels.string.pairs import pairs_of_symbols, side
from mercer.loops.edits import edit_distances


@dataclass(frozen=True, repr=False)
class EditDistance(PairKernel):
    """``k(x, z) = exp(-gamma d(x, z))`` with the edit distance d of Levenshtein.

    ``d`` is the smallest number of insertions, deletions and substitutions of symbols that turn x into z.

    Parameters
    ----------
    gamma : float, default=0.1
        How fast the kernel falls with the distance.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``gamma`` is not above 0.
    DataError
        When evaluated, if a row is not a string.

    Notes
    -----
    The distance is not a squared distance of points in any space, so the kernel is indefinite for small ``gamma``
    (Cortes, Haffner and Mohri, 2004, "Rational kernels: theory and algorithms"): see ``mercer.validity`` for remedies.
    The kernel is that of Li and Jiang (2005), "A class of edit kernels for SVMs to predict translation initiation sites
    in eukaryotic mRNAs". A pair takes
    ``len(x) * len(z) / 64`` steps.

    Examples
    --------
    >>> EditDistance(0.5)(["kitten", "sitting"]).round(4).tolist()  # exp(-0.5 * 3)
    [[1.0, 0.2231], [0.2231, 1.0]]
    """

    gamma: float = number(0.1)

    rows_of: ClassVar[type[Objects]] = Strings
    side: ClassVar[int] = 64

    @property
    def definiteness(self) -> Definiteness:
        return "indefinite"

    def _packing(self) -> Hashable:
        return "codes"

    def _pack(self, objects: Strings) -> tuple[np.ndarray, np.ndarray]:
        return objects.codes()

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._distances(left, right, symmetric, out)
        # What is below the diagonal may never have been written.
        values = np.triu(out) if symmetric else out
        np.exp(np.multiply(values, -self.gamma, out=values), out=out)

    def _distances(self, left: Packed, right: Packed, symmetric: bool, out: Array) -> None:
        arguments = side(left), side(right), symmetric, out
        threads.interruptible(edit_distances, arguments, pairs_of_symbols(left, right) / 16)

    def _compare_self(self, rows: Packed) -> Array:
        return np.ones(len(rows))

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        distances = np.empty(weights.shape)
        self._distances(left, right, False, distances)
        return np.array([-np.vdot(weights, distances * np.exp(-self.gamma * distances))])

    def _pull_self(self, rows: Packed, weights: Array) -> Array:
        return np.zeros(1)
