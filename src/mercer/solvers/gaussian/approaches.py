"""The approximations to the posterior of Gaussian process classification, by name."""

from __future__ import annotations

from typing import Literal

from mercer.solvers.gaussian.classification import SINGLE_FROM, Approach
from mercer.solvers.gaussian.laplace import laplace
from mercer.solvers.gaussian.propagation import expectation_propagation
from mercer.solvers.gaussian.softmax import softmax_laplace

Name = Literal["laplace", "ep"]


def approach(n: int, classes: int, name: Name) -> Approach:
    """The method of that name for n rows of ``classes`` classes, with the memory that it takes.

    Examples
    --------
    >>> approach(100, 2, "laplace").bytes_per_entry, approach(100, 3, "laplace").bytes_per_entry
    (8, 56)
    """
    single = 4 if n >= SINGLE_FROM else 0
    if name == "ep":
        return Approach(expectation_propagation, 8, 1e-7)
    if classes == 2:
        return Approach(laplace, 8 + single, 1e-10)
    return Approach(softmax_laplace, 8 * (classes + 4) + single, 1e-10)
