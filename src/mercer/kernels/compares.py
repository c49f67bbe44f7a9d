"""Whether a kernel can compare given rows, tested by comparing them with one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.kernels.kernel import Kernel

# Objects are compared if the product of their sizes in bytes is at most this: alignments take that many steps.
_STEPS = 2**24


def compares(kernel: Kernel, rows: Any) -> bool:
    """Whether ``rows`` are of the kind that the kernel compares, and its values with one of them are finite numbers.

    Of vectors the first one is compared with all others; of objects the shortest one, unless that would take too long.

    Raises
    ------
    DataError
        If the kernel itself reports what is wrong with the rows, such as the number of their columns.

    Examples
    --------
    >>> from mercer.kernels import RBF, Spectrum
    >>> compares(RBF(1.0), np.eye(2)), compares(Spectrum(2), np.eye(2))
    (True, False)
    """
    kind = kernel.kind_of_rows()
    if isinstance(kind, type):
        fits = isinstance(rows, kind)
    elif kind == "table":
        fits = isinstance(rows, MixedRows)
    elif kind == "vectors":
        fits = isinstance(rows, np.ndarray) or sp.issparse(rows)
    else:
        fits = True
    if not fits or not rows.shape[0]:
        return fits
    if isinstance(rows, Objects):
        return _compares_objects(kernel, rows)
    return bool(np.isfinite(kernel.block(rows[:1], rows)).all())


def _compares_objects(kernel: Kernel, rows: Objects) -> bool:
    sizes = [len(fingerprint) for fingerprint in rows.fingerprints()]
    shortest = rows[[int(np.argmin(sizes))]]
    if min(sizes) ** 2 > _STEPS:
        return True
    others = rows if min(sizes) * sum(sizes) <= _STEPS else shortest
    return bool(np.isfinite(kernel.block(shortest, others)).all())
