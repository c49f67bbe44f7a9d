"""Checks of kernels and losses, to run on user-defined ones; Mercer runs them on all of its own.

>>> import numpy as np
>>> from mercer import kernels, testing
>>> X = np.linspace(-1.0, 1.0, 12).reshape(6, 2)
>>> testing.check_kernel(2.0 * kernels.RBF(0.5) + kernels.Linear(), X, X + 0.25)
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mercer import kernels, losses
from mercer._errors import KernelValueError, MercerError
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.kernels.program import Program

__all__ = ["check_kernel", "check_loss", "concrete_kernels"]

# What rounding may do, relative to the largest value: the same sums in another order, and in float32.
_ROUNDING = 1e-7
_SINGLE = 1e-3
# Smallest eigenvalue of a positive semi-definite matrix, relative to the largest.
_EIGENVALUE = 1e-8
# Error of a central difference, relative to the gradient.
_DIFFERENCE = 1e-4
_STEP = 1e-5

# Pairs are evaluated one by one for so many rows of either side.
_PAIRS = 6


def check_kernel(kernel: Kernel, X: Any, Z: Any = None) -> None:
    """Check that a kernel keeps every promise of :class:`mercer.kernels.Kernel` on some data.

    The Gram matrix is symmetric and of the declared definiteness; diagonal, pairs and lazy products agree with it;
    ``pullback`` agrees with finite differences; float32 agrees with float64, and compiled code with Python's; results
    do not depend on the number of threads; the kernel is an immutable value that survives printing, pickling, copying,
    and a round trip through its parameters; and rows that were prepared for it may be used with other values of its
    tunable parameters.

    Parameters
    ----------
    kernel : Kernel
    X : (n, d) array, or other input of the kernel
        Ten to fifty rows are enough.
    Z : the same, optional
        Other rows, for blocks; by default ``X`` in reverse.

    Raises
    ------
    AssertionError
        If a promise is broken; the message names the first one, and by how much.

    Examples
    --------
    >>> from mercer.kernels import from_function
    >>> check_kernel(from_function(lambda X, Z: X @ Z.T - 1.0), np.eye(3))
    Traceback (most recent call last):
        ...
    AssertionError: from_function(<lambda>) is declared positive semi-definite, and its Gram matrix has the \
eigenvalue -2...
    """
    assert isinstance(kernel, Kernel), f"a kernel must derive from mercer.kernels.Kernel, not {kernel!r}"
    Z = _picked(X, slice(None, None, -1)) if Z is None else Z
    _check_value(kernel)
    _check_parameters(kernel)
    _check_printing(kernel)
    _check_gram(kernel, X)
    _check_definiteness(kernel, X)
    _check_pairs(kernel, X, Z)
    _check_engine(kernel, X, Z)
    _check_prepared_rows(kernel, X)
    _check_gradient(kernel, X, None)
    _check_gradient(kernel, X, Z)
    if isinstance(X, np.ndarray) and isinstance(Z, np.ndarray) and X.dtype == Z.dtype == np.float64:
        _check_single_precision(kernel, X, Z)


def check_loss(loss: Any, y: Any = None) -> None:
    """Check that a user-defined loss has the properties that :class:`mercer.KernelMachine` assumes.

    Its methods take and return arrays, row by row, with the same result each time; it is convex; its gradient and its
    optional methods (``curvature``, ``slopes``, ``conjugate``, ``prox``) agree with its values.

    Parameters
    ----------
    loss : str or object
        As for ``KernelMachine(loss=...)``; see :class:`mercer.losses.OwnLoss`.
    y : array-like of shape (n,), optional
        Targets to check it on; by default some that its ``targets`` allow.

    Raises
    ------
    AssertionError
        If a promise is broken; the message names the first one, and where.

    Examples
    --------
    >>> class Absolute:
    ...     def value(self, y, f):
    ...         return np.abs(f - y)
    ...
    ...     def gradient(self, y, f):
    ...         return np.sign(y - f)
    >>> check_loss(Absolute())
    Traceback (most recent call last):
        ...
    AssertionError: Absolute.gradient is not the derivative of its value: ...
    """
    try:
        instance = losses.as_loss(loss)
        examples = {"signs": [-1.0, 1.0], "counts": [0.0, 1.0, 2.0, 7.0], "numbers": np.linspace(-2.0, 3.0, 11)}
        targets = np.asarray(examples[instance.targets] if y is None else y, dtype=np.float64)
        instance.check_targets(targets)
        losses.check_loss(instance, targets)
    except MercerError as error:
        raise AssertionError(str(error)) from error
    for part in ("value", "gradient"):
        once, again = (getattr(instance, part)(targets, 0.5 * targets) for _ in range(2))
        assert np.array_equal(once, again), f"{instance.name}.{part} returns a different value when called again"


def concrete_kernels() -> list[type[Kernel]]:
    """List every kernel class that can be instantiated, including the user-defined ones that exist at the call.

    >>> kernels.RBF in concrete_kernels()
    True
    """

    def below(cls: type) -> Iterator[type[Kernel]]:
        subclasses: Sequence[type[Kernel]] = cls.__subclasses__()
        for derived in subclasses:
            if not inspect.isabstract(derived):
                yield derived
            yield from below(derived)

    return sorted(set(below(Kernel)), key=lambda cls: (cls.__module__, cls.__qualname__))


# ---- helpers


def _picked(X: Any, rows: slice) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _count(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _assert_close(kernel: Kernel, what: str, result: Any, expected: Any, tolerance: float, size: float) -> None:
    """Raise unless ``result`` equals ``expected`` up to ``tolerance * size``."""
    result, expected = np.asarray(result, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert result.shape == expected.shape, f"{kernel!r}: {what}: the shapes are {result.shape} and {expected.shape}"
    assert np.isfinite(result).all(), f"{kernel!r}: {what}: there are NaN or infinities"
    error = np.abs(result - expected).max(initial=0.0)
    assert error <= tolerance * size, (
        f"{kernel!r}: {what}: values of size {size:.3g} differ by {error:.3g}, more than {tolerance:g} of it"
    )


def _rounding(values: np.ndarray) -> float:
    return _SINGLE if values.dtype == np.float32 else _ROUNDING


def _size(values: np.ndarray) -> float:
    return float(np.abs(values).max())


def _parts(kernel: Any) -> Iterator[Any]:
    yield kernel
    for _, child in kernel.children():
        yield from _parts(child)


def _functions(kernel: Kernel) -> list[Callable[..., Any]]:
    """The functions that a kernel and its parts hold."""
    values = (getattr(part, f.name) for part in _parts(kernel) for f in dataclasses.fields(part))
    return [v for v in values if callable(v) and not isinstance(v, Kernel)]


def _can_be_pickled(function: Callable[..., Any]) -> bool:
    try:
        pickle.dumps(function)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False
    return True


# ---- the kernel as a value


def _check_value(kernel: Kernel) -> None:
    for f in dataclasses.fields(kernel):
        try:
            setattr(kernel, f.name, getattr(kernel, f.name))
        except dataclasses.FrozenInstanceError:
            continue
        raise AssertionError(
            f"{kernel!r} can be changed: {f.name} was set. Decorate {type(kernel).__name__} with "
            "@dataclass(frozen=True, repr=False)."
        )
    copies = {"copy": copy.copy(kernel), "deepcopy": copy.deepcopy(kernel)}
    if all(_can_be_pickled(f) for f in _functions(kernel)):
        copies["pickle"] = pickle.loads(pickle.dumps(kernel))
    for how, other in copies.items():
        assert other == kernel and hash(other) == hash(kernel), (
            f"{kernel!r} is not equal to its own {how}, {other!r}; every field must compare and hash by value"
        )


def _check_parameters(kernel: Kernel) -> None:
    params = kernel.get_params()
    again = kernel.with_params(**params)
    assert again == kernel, f"{kernel!r}.with_params(**get_params()) is another kernel, {again!r}"
    theta, free = kernel.theta, [p for p in kernel.parameters if p.free]
    assert theta.shape == (len(free),), f"{kernel!r} has {len(free)} free parameters, and theta is {theta}"
    assert kernel.bounds.shape == (len(free), 2), f"{kernel!r}: bounds have the shape {kernel.bounds.shape}"
    names = [p.name for p in kernel.parameters]
    assert len(set(names)) == len(names), f"{kernel!r}: names of parameters are not distinct: {names}"
    moved = theta + 0.01
    _assert_close(kernel, "with_theta(t).theta beside t", kernel.with_theta(moved).theta, moved, _ROUNDING, 1.0)
    fixed = kernel.fixed() if names else kernel
    assert fixed.theta.size == 0, f"{kernel!r}.fixed() still has the free parameters {fixed.theta}"


def _check_printing(kernel: Kernel) -> None:
    """What a kernel prints builds an equal one; functions without a name cannot be printed."""
    functions = {getattr(f, "__name__", "<unnamed>"): f for f in _functions(kernel)}
    if not all(name.isidentifier() for name in functions):
        return
    classes = {type(part).__name__: type(part) for part in _parts(kernel)}
    copy = eval(repr(kernel), {**vars(kernels), "inf": math.inf, **classes, **functions})  # the kernel's own text
    assert copy == kernel and hash(copy) == hash(kernel), (
        f"what {kernel!r} prints builds another kernel, {copy!r}; print every field that is not at its default"
    )


# ---- values


def _check_gram(kernel: Kernel, X: Any) -> None:
    try:
        K = kernel(X)
    except KernelValueError as error:
        raise AssertionError(str(error)) from error
    n = _count(X)
    assert K.shape == (n, n), f"{kernel!r}: the Gram matrix of {n} rows has the shape {K.shape}"
    _assert_close(kernel, "the Gram matrix beside its transpose", K, K.T, _rounding(K), _size(K))
    diagonal = kernel.diagonal(X)
    _assert_close(kernel, "diagonal(X) beside that of k(X)", diagonal, K.diagonal(), _rounding(K), _size(K))


def _check_definiteness(kernel: Kernel, X: Any) -> None:
    assert kernel.definiteness in ("positive", "conditional", "indefinite"), (
        f'{kernel!r}: definiteness is {kernel.definiteness!r}, and must be "positive", "conditional" or "indefinite"'
    )
    K = kernel(X).astype(np.float64)
    words = "positive semi-definite"
    if kernel.definiteness == "conditional":
        words = "positive semi-definite on vectors that sum to 0"
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    if kernel.definiteness != "indefinite":
        eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
        assert eigenvalues[0] >= -_EIGENVALUE * np.abs(eigenvalues).max(), (
            f"{kernel!r} is declared {words}, and its Gram matrix has the eigenvalue {eigenvalues[0]:.6g}"
        )
    part = kernel.indefinite_part()
    assert (part is None) == (kernel.definiteness == "positive"), (
        f"{kernel!r} is {kernel.definiteness}, and its indefinite part is {part!r}"
    )


def _check_pairs(kernel: Kernel, X: Any, Z: Any) -> None:
    """A block does not depend on which other rows are evaluated with it."""
    block, K = kernel(X, Z), kernel(X)
    assert block.shape == (_count(X), _count(Z)), f"{kernel!r}: the block has the shape {block.shape}"
    few_X, few_Z = min(_PAIRS, _count(X)), min(_PAIRS, _count(Z))
    alone = np.empty((few_X, few_Z))
    for i in range(few_X):
        for j in range(few_Z):
            alone[i, j] = kernel(_picked(X, slice(i, i + 1)), _picked(Z, slice(j, j + 1)))[0, 0]
    part, tolerance = block[:few_X, :few_Z], _rounding(block)
    _assert_close(kernel, "pairs alone beside the block", alone, part, tolerance, _size(block))
    # Off the diagonal a Gram matrix holds what a block holds; on it, a row meets itself.
    off = ~np.eye(_count(X), dtype=bool)
    both = kernel(X, _picked(X, slice(None)))
    _assert_close(kernel, "k(X) beside k(X, X), off the diagonal", K[off], both[off], tolerance, _size(K))


def _check_engine(kernel: Kernel, X: Any, Z: Any) -> None:
    V = np.cos(np.arange(2.0 * _count(Z)).reshape(_count(Z), 2))
    expected = kernel(X, Z)
    product = Gram(kernel, X, Z, n_jobs=1) @ V
    size = _size(np.abs(expected) @ np.abs(V))
    _assert_close(kernel, "Gram @ V beside dense @ V", product, expected @ V, _rounding(expected), size)
    for n_jobs in (1, 2, 3):
        gram = Gram(kernel, X, Z, n_jobs=n_jobs)
        assert np.array_equal(gram.dense(), expected), f"{kernel!r}: {n_jobs} threads change the bits of the block"
        assert np.array_equal(gram @ V, product), f"{kernel!r}: {n_jobs} threads change the bits of Gram @ V"
    if program := Program.of(gram._plan, expected.dtype, least=0):
        compiled = np.empty_like(expected)
        program.dense(compiled, n_jobs=1, checked=False)
        _assert_close(
            kernel,
            "the compiled block beside that of value(t)",
            compiled,
            expected,
            _rounding(expected),
            _size(expected),
        )
    out = np.full(expected.shape, np.nan, expected.dtype)
    returned = kernel.block(X, Z, out=out)
    assert returned is out and np.array_equal(out, expected), f"{kernel!r}: block(X, Z, out=out) does not fill out"


def _check_prepared_rows(kernel: Kernel, X: Any) -> None:
    """Rows that a kernel has prepared give the values of new rows for other values of its parameters."""
    kind = kernel.kind_of_rows()
    if not (isinstance(kind, type) and isinstance(X, kind)):
        return
    low, high = kernel.bounds.T if len(kernel.theta) else (kernel.theta, kernel.theta)
    other = kernel.with_theta(np.clip(kernel.theta + 0.1, low, high))
    # The rows have been used above, and a new container has no prepared ones.
    same = np.array_equal(other(X), other(kind(X.items)))
    assert same, f"{kernel!r}: prepared rows give other values for {other!r}: see prepared_by and the like"


def _check_single_precision(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
    block = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert block.dtype == np.float32, f"{kernel!r}: float32 rows give a block of {block.dtype}"
    expected = kernel(X, Z)
    _assert_close(kernel, "float32 beside float64", block, expected, _SINGLE, _size(expected))


def _check_gradient(kernel: Kernel, X: Any, Z: Any) -> None:
    # Differences of float32 values are noise.
    X, Z = (A.astype(np.float64) if getattr(A, "dtype", None) == np.float32 else A for A in (X, Z))
    shape = kernel(X, Z).shape
    weights = np.sin(1.0 + np.arange(float(np.prod(shape)))).reshape(shape)
    theta = kernel.theta
    gradient = kernel.pullback(X, Z, weights)
    differences = np.empty(len(theta))
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = _STEP
        up, down = kernel.with_theta(theta + step)(X, Z), kernel.with_theta(theta - step)(X, Z)
        differences[i] = (weights * (up.astype(np.float64) - down)).sum() / (2 * _STEP)
    # A gradient that almost vanishes can be no better than the rounding of the values that it sums.
    size = max(np.abs(differences).max(initial=0.0), 1e-3 * np.abs(weights * kernel(X, Z)).sum())
    _assert_close(kernel, "pullback beside finite differences", gradient, differences, _DIFFERENCE, size)
