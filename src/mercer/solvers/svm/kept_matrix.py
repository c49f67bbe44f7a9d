"""The whole matrix of a problem, kept for all its rounds and for other problems over the same rows."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from mercer._types import Array
from mercer.gram.hold import reserve_whole
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.block import padded


class KeptMatrix:
    """A whole matrix in one precision, which is made when a solver finds that it needs most of it.

    Parameters
    ----------
    stack : ExitStack
        Keeps its memory reserved until it is closed.

    Attributes
    ----------
    square : ndarray of shape (n, n) or (n + 1, n + 1), or None
        The matrix as :func:`mercer.solvers.svm.block.padded` lays it out, once it is made.
    nbytes : int
        Its size.
    sentence : str
        Where it is, for the certificate.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> with ExitStack() as stack:
    ...     kept = KeptMatrix(stack)
    ...     print(kept.make(PrecomputedGram(np.eye(2)), pad=True), kept.square.tolist())
    True [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.square: Array | None = None
        self.nbytes, self.sentence = 0, ""

    def make(self, gram: GramMatrix, pad: bool) -> bool:
        """Compute it, if its memory and as much again are free; return whether it is there."""
        size = gram.shape[0] + pad
        nbytes = size**2 * np.dtype(gram.dtype).itemsize
        dtype, sentence = reserve_whole((size, size), self._stack, {gram.dtype: nbytes})
        if dtype is None:
            return False
        self.square, inside = padded(gram.shape[0], pad, np.empty(size**2, gram.dtype))
        gram.block(None, None, out=inside)
        self.nbytes, self.sentence = nbytes, sentence
        return True

    def fits(self, gram: GramMatrix, pad: bool) -> bool:
        """Whether it is there in the precision and with the padding of a problem."""
        size = gram.shape[0] + pad
        return self.square is not None and self.square.dtype == gram.dtype and len(self.square) == size
