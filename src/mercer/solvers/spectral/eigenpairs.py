"""The leading eigenpairs of a centred or scaled kernel matrix: by LAPACK, by blocks of products, or by ARPACK."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer._errors import NumericalError, ParameterError
from mercer._types import Array, Vector
from mercer.engine import decompositions, memory, threads, tiles
from mercer.gram.hold import hold
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.lanczos import RitzPairs, basis_columns, block_lanczos, subspace_iteration
from mercer.solvers.rounding import eigenvalue_rounding
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.spectral.centred import CentredGram, CentredMatrix, Centring
from mercer.solvers.spectral.scaled import ScaledGram, ScaledMatrix

SymmetricMatrix = CentredMatrix | CentredGram | ScaledMatrix | ScaledGram

SOLVERS = ("auto", "dense", "arpack", "randomized")
# Up to this many rows LAPACK takes hundredths of a second; above, it is left to where many pairs are wanted.
_DENSE_UP_TO = 400
_SHARE = 1 / 25
# Residuals in units of the largest eigenvalue that products in float64 reach, and blocks multiplied at the most.
_TOLERANCE, _PRODUCTS = 1e-13, 500
# Blocks of nine vectors that look for a negative eigenvalue where not all are computed.
_LOOKS = 8
# Eigenvalues below this share of the largest are rounding, as scikit-learn has it.
_ROUNDING = 1e-12
# Columns of the eigenvectors that are multiplied with all of them at once.
_STRIP = 64
_LARGEST = float(np.finfo(np.float64).max)
_SCALE = "Scale the columns of X (sklearn.preprocessing.StandardScaler), or multiply the kernel by a small number."
_WAY_OUT = "Ask for few components, raise the budget with mercer.config(memory=...), or use fewer rows."


@dataclass(frozen=True)
class Eigenproblem:
    r"""The k largest eigenvalues and vectors of :math:`HKH`, :math:`H = I - \tfrac1n 1 1^\top`, or of :math:`SKS`.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n), in float64.
    k : int, optional
        None for all that there are.
    solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        ``"auto"`` is LAPACK for few rows or many pairs, else block Lanczos: on the matrix where it fits the memory
        budget, else on K as it is evaluated again and again.
    tol : float, default=0
        Residual of an eigenpair in units of the largest eigenvalue; 0 for what float64 can do.
    max_iter : int, optional
        Products with a block at the most (restarts for ``"arpack"``).
    power : int, optional
        Powers for ``"randomized"``; None for 7 where k is below a tenth of n, else 4.
    random_state : RandomState, optional
        Start of all but LAPACK.
    positive : bool, default=False
        Whether K is known to have no negative eigenvalues, so that none are looked for.
    scale : ndarray of shape (n,), optional
        The diagonal of S; None for the centred matrix.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> Eigenproblem(PrecomputedGram(np.eye(3)), 1).n_wanted
    1
    """

    gram: GramMatrix
    k: int | None = None
    solver: str = "auto"
    tol: float = 0.0
    max_iter: int | None = None
    power: int | None = None
    random_state: np.random.RandomState | None = None
    positive: bool = False
    scale: Vector | None = None

    @property
    def n_wanted(self) -> int:
        """Eigenpairs to be computed."""
        return self.gram.shape[0] if self.k is None else self.k

    @property
    def rng(self) -> np.random.RandomState:
        """Where random starts come from."""
        return np.random.RandomState(0) if self.random_state is None else self.random_state

    def of_array(self, K: Vector) -> SymmetricMatrix:
        """The matrix of the problem, in the place of K."""
        return CentredMatrix(K) if self.scale is None else ScaledMatrix(K, self.scale)

    def of_products(self) -> SymmetricMatrix:
        """The matrix of the problem, by products with K."""
        return CentredGram(self.gram) if self.scale is None else ScaledGram(self.gram, self.scale)


@dataclass(frozen=True)
class Eigenpairs:
    """Values in descending order, rounding set to 0, and unit vectors in columns.

    ``negative`` holds the negative eigenvalues that were found beyond rounding, ascending.
    """

    values: Vector
    vectors: Array
    negative: Vector


@dataclass(frozen=True)
class EigenState:
    """How the pairs were found, what the matrix was centred by, and its diagonal."""

    method: str
    centring: Centring


def solve(problem: Eigenproblem) -> Solution[Eigenpairs, EigenState]:
    """The eigenpairs of the problem; the certificate has the residuals and the variance that they leave.

    ``primal`` is the sum of the other eigenvalues (the squared distance of the rows from the components' span, in
    feature space); ``dual`` is the same for LAPACK, and unknown (minus infinity) otherwise: a residual says that a
    value is an eigenvalue, not that none above it was missed.

    Raises
    ------
    MemoryBudgetError
        If neither the matrix nor a basis for its products fits; before anything is allocated.
    NumericalError
        If kernel values, or what is computed of them, overflow; if ARPACK finds fewer pairs than requested.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> X = np.array([[1.0], [2.0], [6.0]])
    >>> solution = solve(Eigenproblem(PrecomputedGram(X @ X.T), 1))
    >>> solution.value.values.round(9).tolist(), solution.state.method
    ([14.0], 'dense')
    """
    start_time = time.perf_counter()
    n, k = problem.gram.shape[0], problem.n_wanted
    method = method_for(n, k, problem.solver)
    with memory.track() as account, ExitStack() as stack:
        # LAPACK reduces the matrix in its place; beside it are the vectors, or what looks for negative eigenvalues.
        stack.enter_context(memory.reserve(vector_bytes(n, k, method), f"the eigenvectors of {n} rows", _WAY_OUT))
        # The matrix is changed in its place.
        required = _WAY_OUT if method == "dense" else ""
        storage = hold(problem.gram, stack, {np.float64: 0}, copy=True, required=required)
        if storage.array is not None:
            matrix = problem.of_array(np.asarray(storage.array, dtype=np.float64))
        else:
            matrix = problem.of_products()
        _require_range(matrix, problem, method)
        pairs = _pairs(problem, method, matrix)
    if not np.isfinite(pairs.values).all():
        raise NumericalError(f"an eigenvalue of the kernel matrix is not finite. {_SCALE}")
    value = _tidy(pairs, matrix.centring)
    certificate = _certify(pairs, matrix.centring, method, account.peak, time.perf_counter() - start_time)
    certificate = replace(certificate, storage=storage.sentence)
    return Solution(value, certificate.status, certificate, EigenState(method, matrix.centring))


def _require_range(matrix: SymmetricMatrix, problem: Eigenproblem, method: str) -> None:
    """Raise before the search if values of the matrix are not finite, or sums of them, or squares, would not be."""
    n, centring = matrix.shape[0], matrix.centring
    if not np.isfinite(centring.diagonal).all():
        raise NumericalError(
            "kernel values are not finite, or their sums overflow float64: "
            f"|k(x, x)| is up to {centring.largest:.3g}. {_SCALE}"
        )
    # Eigenvalues are at most n times the largest entry. LAPACK scales by itself, the others add up n squares of them.
    size = float(n) * max(centring.largest, float(np.abs(centring.diagonal).max()))
    scales = method == "dense" and (problem.positive or problem.n_wanted == n)
    if size > (_LARGEST if scales else np.sqrt(_LARGEST / n)):
        raise NumericalError(
            f"eigenvalues of {n} rows of a kernel with |k(x, x)| of up to {centring.largest:.3g} would overflow float64"
            f"{'' if scales else ' when they are squared'}. {_SCALE}"
        )


def vector_bytes(n: int, k: int, method: str) -> int:
    """Memory for the k wanted eigenvectors of n rows and what finds them, in bytes; K comes to it.

    >>> vector_bytes(100, 2, "dense") > 0
    True
    """
    columns = max(k + 8, 2 * basis_columns(n, 1)) if method == "dense" else 4 * basis_columns(n, k)
    return 8 * n * columns


def method_for(n: int, k: int, solver: str) -> str:
    """The method for the k largest eigenpairs of n rows.

    Raises
    ------
    ParameterError
        If all pairs are requested from ARPACK.

    Examples
    --------
    >>> method_for(100, 2, "auto"), method_for(5000, 2, "auto")
    ('dense', 'block Lanczos')
    """
    if solver == "arpack" and k >= n:
        raise ParameterError(
            f"ARPACK finds fewer eigenpairs than there are rows, but {k} of {n} were requested; pass "
            "eigen_solver='dense', or a smaller n_components."
        )
    if solver != "auto":
        return solver
    many = k > _SHARE * n or basis_columns(n, k) >= n
    return "dense" if n <= _DENSE_UP_TO or many else "block Lanczos"


def _pairs(problem: Eigenproblem, method: str, matrix: SymmetricMatrix) -> RitzPairs:
    """By the method, whatever the signs of the values."""
    n, k = matrix.shape[0], problem.n_wanted
    floor = float(np.finfo(np.float64).eps) * n * matrix.centring.largest
    if method == "block Lanczos":
        limit = _PRODUCTS if problem.max_iter is None else problem.max_iter
        return block_lanczos(matrix, k, problem.rng, max(problem.tol, _TOLERANCE), floor, limit)
    if method == "randomized":
        steps = (7 if k < 0.1 * n else 4) if problem.power is None else problem.power
        return subspace_iteration(matrix, k, problem.rng, steps)
    lowest = np.inf if problem.positive or k == n else _lowest(matrix)
    if method == "arpack":
        return _arpack(problem, matrix, lowest)
    assert isinstance(matrix, (CentredMatrix, ScaledMatrix))
    threads.checkpoint()
    with threads.blas_threads_for(n):
        values, vectors = decompositions.largest_eigenpairs(matrix.array, k)
    return RitzPairs(values[::-1], vectors[::-1].T, np.zeros(k), min(lowest, float(values[0])), 0, True)


def _lowest(matrix: SymmetricMatrix) -> float:
    """A Rayleigh quotient at the lower end of the spectrum, which Lanczos comes to see with the upper one."""
    return block_lanczos(matrix, 1, np.random.RandomState(0), 0.0, 0.0, _LOOKS).lowest


def _arpack(problem: Eigenproblem, matrix: SymmetricMatrix, lowest: float) -> RitzPairs:
    """SciPy's implicitly restarted Lanczos method, with the start that scikit-learn draws."""
    n, k = matrix.shape[0], problem.n_wanted
    start = problem.rng.uniform(-1, 1, n)
    count = [0]

    def multiply(v: Array) -> Array:
        threads.checkpoint()
        count[0] += 1
        product: Array = matrix @ v.reshape(-1, 1)
        return product.ravel()

    operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
    if not matrix.centring.diagonal.any():
        # ARPACK stops at a matrix of zeros.
        return RitzPairs(np.zeros(k), np.eye(n, k), np.zeros(k), 0.0, 0, True)
    try:
        values, vectors = eigsh(operator, k, which="LA", tol=problem.tol, maxiter=problem.max_iter, v0=start)
    except ArpackNoConvergence as error:
        raise NumericalError(
            f"ARPACK found {len(error.eigenvalues)} of {k} eigenpairs in {count[0]} products; raise max_iter or tol, "
            "or pass eigen_solver='auto'."
        ) from error
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return RitzPairs(values, vectors, residuals, lowest, count[0], True)


def _tidy(pairs: RitzPairs, centring: Centring) -> Eigenpairs:
    """Rounding and negative values set to 0; the negative ones kept apart."""
    values = pairs.values
    size = max(float(np.abs(values).max()), abs(pairs.lowest) if np.isfinite(pairs.lowest) else 0.0)
    noise = _ROUNDING * size + float(np.finfo(np.float64).eps) * len(pairs.vectors) * centring.largest
    eigenvalues = np.array([*values, pairs.lowest])
    negative = np.unique(eigenvalues[eigenvalues < -noise])
    return Eigenpairs(np.where(values > _ROUNDING * size, values, 0.0), pairs.vectors, negative)


def _certify(pairs: RitzPairs, centring: Centring, method: str, peak: int, seconds: float) -> Certificate:
    """What the pairs leave of the trace, and how nearly they are eigenpairs."""
    left = float(centring.diagonal.sum() - pairs.values.sum())
    size = max(float(np.abs(pairs.values).max()), float(np.finfo(np.float64).tiny))
    violations = {
        "eigenpair": float(pairs.residuals.max()) / size,
        "orthogonality": _orthogonality(pairs.vectors),
        "rounding": eigenvalue_rounding(len(pairs.vectors), centring.largest, size),
    }
    direct = method == "dense"
    status = Status.direct if direct else Status.converged if pairs.converged else Status.iteration_limit
    return Certificate(
        left, left if direct else -np.inf, max(violations.values()), pairs.products, seconds, peak, status, violations
    )


def _orthogonality(vectors: Array) -> float:
    """The largest entry of ``|V^T V - I|``, by strips, because V may be as large as K."""
    # For BLAS, NumPy copies all of an array that runs backwards.
    rows = vectors.T[::-1] if vectors.strides[1] < 0 else vectors.T
    largest = 0.0
    for part in tiles.spans(len(rows), _STRIP):
        inner = rows[part] @ rows.T
        inner[:, part] -= np.eye(len(inner))
        largest = max(largest, float(np.abs(inner, out=inner).max()))
    return largest
