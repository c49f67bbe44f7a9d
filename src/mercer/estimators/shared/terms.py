"""The terms of a sum of kernels, whose weights a learner learns."""

from __future__ import annotations

from typing import Any

from mercer.kernels import Kernel, as_kernel
from mercer.kernels.algebra import Sum
from mercer.kernels.convert import read_expression


def terms_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """The terms of a sum; the kernel itself if it is not one.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> terms_of(RBF(1.0) + 2.0 * Linear()), terms_of(Linear())
    ((RBF(1.0), 2.0 * Linear()), (Linear(),))
    """
    return tuple(term for term in kernel.terms if isinstance(term, Kernel)) if isinstance(kernel, Sum) else (kernel,)


def is_sum(kernel: Any) -> bool:
    """Whether a parameter ``kernel`` is a sum of kernels: also as text, or as a kernel of scikit-learn.

    Examples
    --------
    >>> is_sum("RBF(1.0) + Linear()"), is_sum("rbf"), is_sum(lambda x, z: x @ z.T)
    (True, False, False)
    """
    kernel = read_expression(kernel)
    if not isinstance(kernel, (str, Kernel, type)) and hasattr(kernel, "get_params"):
        kernel = as_kernel(kernel)
    return isinstance(kernel, Sum)
