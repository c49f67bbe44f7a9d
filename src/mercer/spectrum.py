"""Mercer's theorem on a sample: eigenvalues and eigenfunctions of the integral operator of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer._types import Matrix
from mercer.data.objects import short
from mercer.data.seeds import generator
from mercer.data.vectors import column_names
from mercer.estimators.shared.base import bind_columns
from mercer.estimators.shared.weights import check_sample_weight
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.precomputed import check_square
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.domain import checked_rows
from mercer.kernels.function import rests_on_a_function
from mercer.solvers.solution import Certificate
from mercer.solvers.spectral.eigenpairs import Eigenproblem, solve

__all__ = ["Eigenfunctions", "eigenfunctions"]

# Shares of the largest root of a weight that count for signs, and how near sizes of values are called equal.
_SEEN, _EQUAL = 1e-4, 1e-6


@dataclass(frozen=True, eq=False)
class Eigenfunctions:
    """The leading eigenvalues of a kernel's integral operator, and its eigenfunctions: call the object with rows.

    Parameters
    ----------
    eigenvalues : ndarray of shape (k,)
        Descending and above 0.
    trace : float
        The mean of ``k(x, x)``, which is the sum of all eigenvalues.
    kernel : Kernel or None
        The kernel; None for ``"precomputed"``.
    certificate : Certificate
        The remaining trace, the residuals and orthogonality of the eigenpairs, time and memory.
    _rows, _weights, _n_jobs
        The data that calls need: rows of the sample, their coefficients, and the number of threads.
    """

    eigenvalues: Matrix
    trace: float
    kernel: Kernel | None
    certificate: Certificate
    _rows: Any = field(repr=False)
    _weights: Matrix = field(repr=False)
    _n_jobs: int | None = field(repr=False)

    def __call__(self, X: Any) -> Matrix:
        """Values at the rows of ``X``, shape (m, k); for ``"precomputed"``, at rows of kernel values (m, n).

        Rounding of kernel values is multiplied by the quotient of the largest eigenvalue and that of the function.
        """
        if self.kernel is None:
            K = np.asarray(X)
            if K.ndim != 2 or K.shape[1] != len(self._rows):
                raise DataError(
                    f"kernel values must be of shape (m, {len(self._rows)}), new rows by sample rows, but have the "
                    f"shape {K.shape}."
                )
            return np.asarray(PrecomputedGram(K[:, self._rows], symmetric=False) @ self._weights, dtype=np.float64)
        X = checked_rows(self.kernel, X, "X")
        if getattr(X, "ndim", 0) == 2 and X.shape[1] != self._rows.shape[1]:
            raise DataError(f"X has {X.shape[1]} columns, but the sample has {self._rows.shape[1]}.")
        gram = Gram(self.kernel, X, self._rows, dtype=np.float64, n_jobs=self._n_jobs)
        return np.asarray(gram @ self._weights, dtype=np.float64)


def eigenfunctions(
    kernel: Any,
    X: Any,
    n_components: int = 10,
    *,
    sample_weight: Any = None,
    gamma: Any = "scale",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Eigenfunctions:
    r"""Estimate Mercer's eigenvalues and eigenfunctions of a kernel from a sample of the distribution p of the rows.

    .. math:: \int k(x, z)\, \psi_i(z)\, p(z)\, dz = \lambda_i\, \psi_i(x), \qquad
              \int \psi_i \psi_j\, p = \delta_{ij}, \qquad
              k(x, z) = \sum_i \lambda_i\, \psi_i(x)\, \psi_i(z)

    With the weights :math:`w` of the rows, summing to 1, in place of p, :math:`u_i` an eigenvector of :math:`W^{1/2} K
    W^{1/2}` and :math:`\lambda_i` its eigenvalue,

    .. math:: \psi_i(x) = \frac{1}{\lambda_i} \sum_j \sqrt{w_j}\, u_{ij}\, k(x, x_j)

    With :math:`w_j = 1 / n` the eigenvalues are those of K divided by n. On the sample the functions are orthonormal,
    all of them together reconstruct K, and the value of largest magnitude of each is positive. Nothing is centred;
    :class:`mercer.KernelPCA` is the centred form.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable
        Positive semi-definite; or ``"precomputed"``.
    X : array-like or sparse matrix of shape (n, d), or other input of the kernel
        The sample; for ``"precomputed"``, its kernel matrix (n, n).
    n_components : int, default=10
        The most eigenpairs, from 1 to n; those whose eigenvalue is within rounding of 0 are left out.
    sample_weight : array-like of shape (n,), optional
        How often each row counts, 0 or more; or the weights of a quadrature rule for p.
    gamma : float or {"scale", "auto"}, default="scale"
        For named kernels.
    random_state : int, RandomState or None
        Seed of the start of the iterations, which are used for more than 400 rows.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Returns
    -------
    Eigenfunctions

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        If the sample or a parameter cannot be used, the kernel is not positive, or the problem does not fit in memory.

    References
    ----------
    C. Rasmussen, C. Williams, "Gaussian processes for machine learning" (2006), section 4.3, equations 4.36 to 4.44;
    C. Baker, "The numerical treatment of integral equations" (1977), chapter 3, for the extension to all x.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> x = np.linspace(-1, 1, 200)[:, None]
    >>> psi = eigenfunctions(RBF(0.5), x, 4)
    >>> psi.eigenvalues.round(3).tolist(), round(psi.trace, 9)
    ([0.519, 0.303, 0.127, 0.039], 1.0)
    >>> bool(np.allclose(psi(x).T @ psi(x) / 200, np.eye(4)))
    True
    """
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    mercer_kernel, rows = (None, check_square(X)) if precomputed else _read(kernel, X, gamma)
    share = check_sample_weight(sample_weight, rows)
    support = np.flatnonzero(share)
    scale = np.sqrt(share[support] / share.sum())
    k = _check_count(n_components, len(support))
    gram: Any
    anchors: Any
    if mercer_kernel is None:
        gram, anchors = PrecomputedGram(rows).restrict(support, support), share > 0
    else:
        anchors = rows if len(support) == rows.shape[0] else rows[support]
        gram = Gram(mercer_kernel, anchors, dtype=np.float64, n_jobs=n_jobs)
    solution = solve(
        Eigenproblem(
            gram,
            k,
            random_state=generator(random_state),
            scale=scale,
            positive=mercer_kernel is not None and not rests_on_a_function(mercer_kernel),
        )
    )
    pairs = solution.value
    if len(pairs.negative):
        raise IndefiniteKernelError(
            f"the kernel matrix has a negative eigenvalue, {pairs.negative[0]:.4g} (the largest is "
            f"{pairs.values[0]:.4g}), so Mercer's theorem does not hold; mercer.validity.check says more."
        )
    positive = pairs.values > 0
    values, vectors = pairs.values[positive], pairs.vectors[:, positive]
    vectors = vectors * _signs(vectors, scale)
    trace = float(solution.state.centring.diagonal.sum())
    weights = scale[:, None] * vectors / values
    return Eigenfunctions(values, trace, mercer_kernel, solution.certificate, anchors, weights, n_jobs)


def _read(kernel: Any, X: Any, gamma: Any) -> tuple[Kernel, Any]:
    """The kernel, which must be positive, and the rows in the form that it compares."""
    rows = checked_rows(kernel, X, "X")
    bound = bind_columns(as_kernel(kernel, gamma=gamma, X=rows), column_names(X)).with_data(rows)
    if bound.definiteness != "positive":
        raise IndefiniteKernelError(
            f"{bound.indefinite_part()!r} is not positive semi-definite, so Mercer's theorem does not hold; choose "
            "another kernel" + (", or center it: kernel.centered(X)." if bound.definiteness == "conditional" else ".")
        )
    return bound, rows


def _signs(vectors: NDArray[np.floating], scale: Matrix) -> Matrix:
    """1 or -1 for each eigenvector, so that the largest value of its function on the sample, in size, is positive.

    Values do not depend on whether a row counts twice or is there twice, as entries of the vector do. Of values that
    are equal to rounding the first one counts.
    """
    # In rows of next to no weight values are rounding.
    large = scale >= _SEEN * scale.max()
    values = vectors[large] / scale[large, None]
    sizes = np.abs(values)
    first = (sizes >= (1.0 - _EQUAL) * sizes.max(axis=0)).argmax(axis=0)
    return np.where(values[first, np.arange(values.shape[1])] < 0, -1.0, 1.0)


def _check_count(n_components: Any, n: int) -> int:
    if isinstance(n_components, bool) or not isinstance(n_components, Integral) or not 1 <= int(n_components) <= n:
        raise ParameterError(
            f"n_components must be a whole number from 1 to {n}, the rows of a weight above 0, but is "
            f"{short(n_components)}."
        )
    return int(n_components)
