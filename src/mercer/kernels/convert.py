"""Conversion to kernels: from names, scikit-learn's kernels for Gaussian processes, and functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer.data.column_statistics import variance_of_entries
from mercer.data.objects import short
from mercer.kernels.algebra import Constant
from mercer.kernels.foreign import FromSklearn
from mercer.kernels.function import from_function, takes_single_rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.parse import parse_kernel
from mercer.kernels.vector.columnwise import AdditiveChiSquared, ChiSquared, White
from mercer.kernels.vector.dot import Linear, Polynomial, Sigmoid
from mercer.kernels.vector.periodic import ExpSineSquared
from mercer.kernels.vector.stationary import RBF, Laplacian, Matern, RationalQuadratic

NAMES = ("linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "chi2", "additive_chi2", "cosine")


# A kernel, a name or expression, or what is called on rows: functions and the kernels of scikit-learn.
KernelLike = Kernel | str | Callable[..., Any]


def as_kernel(
    kernel: Any, *, gamma: float | str | None = None, degree: int = 3, coef0: float = 0.0, X: Any = None
) -> Kernel:
    """A Mercer kernel from a kernel, a name or expression, a scikit-learn kernel, or a function of rows.

    Parameters
    ----------
    kernel : Kernel, str, sklearn.gaussian_process.kernels.Kernel or callable
        Text is an expression such as ``"0.5 * RBF(2.0) + Linear()"`` (:func:`mercer.kernels.parse_kernel`) or a name:
        one of ``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ``"laplacian"``, ``"chi2"``,
        ``"additive_chi2"``, ``"cosine"``.
    gamma : float, {"scale", "auto"} or None
        For names: ``"scale"`` is ``1 / (d * variance of X)``, ``"auto"`` and None are ``1 / d``.
    degree, coef0 : int, float
        For ``"poly"`` and ``"sigmoid"``.
    X : array or sparse matrix, optional
        The data that a relative ``gamma`` refers to.

    Raises
    ------
    ParameterError
        If there is no such kernel (the nearest names are offered), or a parameter is invalid, whether the kernel uses
        it or not.

    Examples
    --------
    >>> as_kernel("rbf", gamma=0.5)
    RBF(1.0)
    """
    check_rates(gamma, degree, coef0)
    kernel = read_expression(kernel)
    if isinstance(kernel, Kernel):
        return kernel
    if _is_from_sklearn(kernel):
        return from_sklearn(kernel)
    if isinstance(kernel, str):
        return _named(kernel, gamma, degree, coef0, X)
    if isinstance(kernel, type):
        raise ParameterError(f"kernel is the class {kernel.__name__}; pass a kernel, such as {kernel.__name__}().")
    if callable(kernel):
        return from_function(kernel, pairwise=X is not None and takes_single_rows(kernel, X))
    raise ParameterError(
        f"kernel must be a name, a kernel or a function of two blocks of rows, but is {kernel!r}; "
        f"names are {', '.join(NAMES)}."
    )


def read_expression(kernel: Any) -> Any:
    """The kernel that text such as ``"0.5 * RBF(2.0) + Linear()"`` stands for; anything else, a name too, as it is.

    >>> read_expression("0.5*RBF(2.0) + Linear()"), read_expression("rbf")
    (0.5 * RBF(2.0) + Linear(), 'rbf')
    """
    return parse_kernel(kernel) if isinstance(kernel, str) and "(" in kernel else kernel


def is_named(kernel: Any) -> bool:
    """Whether ``gamma``, ``degree`` and ``coef0`` belong to the kernel: if it is a plain name."""
    return isinstance(kernel, str) and "(" not in kernel


WITHOUT_RATE = ("linear", "cosine", "additive_chi2")
"""Names of kernels for which ``gamma`` means nothing."""


def _named(name: str, gamma: Any, degree: int, coef0: float, X: Any) -> Kernel:
    if name not in NAMES:
        matches = difflib.get_close_matches(name.lower(), NAMES, n=3, cutoff=0.5)
        offer = f"did you mean {' or '.join(map(repr, matches))}?" if matches else f"names are {', '.join(NAMES)}."
        raise ParameterError(f"there is no kernel {name!r}; {offer}")
    if name == "linear":
        return Linear()
    if name == "cosine":
        return Linear().normalized()
    if name == "additive_chi2":
        return AdditiveChiSquared()
    if name == "chi2" and gamma is None:
        gamma = 1.0
    rate = _gamma(gamma, X)
    if name in ("poly", "polynomial"):
        return Polynomial(degree, scale=rate, offset=float(coef0))
    makers: dict[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBF.from_gamma(rate),
        "sigmoid": lambda: Sigmoid(rate, offset=float(coef0)),
        "laplacian": lambda: Laplacian(1.0 / rate),
        "chi2": lambda: ChiSquared(rate),
    }
    return makers[name]()


def check_rates(gamma: Any, degree: Any, coef0: Any) -> None:
    """Raise if ``gamma, degree, coef0`` are invalid for every named kernel, as scikit-learn does.

    Raises
    ------
    ParameterError
        With the expected range and the value.
    """
    if isinstance(gamma, str) and gamma not in ("scale", "auto"):
        way_out = " SVC and SVR alone have gamma='cv'; KernelSearchCV chooses gamma for others." * (gamma == "cv")
        raise ParameterError(f"gamma must be a number, 'scale' or 'auto', but is {short(gamma)}.{way_out}")
    # Kernels that have a gamma raise an error for 0.
    if not (gamma is None or isinstance(gamma, str) or (_is_finite(gamma) and gamma >= 0)):
        raise ParameterError(f"gamma must be a finite number above 0, 'scale' or 'auto', but is {short(gamma)}.")
    if not (_is_finite(degree) and degree >= 0):
        raise ParameterError(f"degree must be a finite number of 0 or more, but is {short(degree)}.")
    if not _is_finite(coef0):
        raise ParameterError(f"coef0 must be a finite number, but is {short(coef0)}.")


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and -np.inf < float(value) < np.inf


def _gamma(gamma: Any, X: Any) -> float:
    if gamma is None or isinstance(gamma, str):
        if X is None:
            raise ParameterError(f"gamma={short(gamma)} depends on the data, but there are none; pass a number.")
        if gamma != "scale":
            return 1.0 / X.shape[1]
        return rate_of_scale(X)
    if not gamma > 0:
        raise ParameterError(f"gamma must be a finite number above 0, 'scale' or 'auto', but is {short(gamma)}.")
    return float(gamma)


def rate_of_scale(X: Any, variance: float | None = None) -> float:
    """What ``gamma="scale"`` stands for, ``1 / (d * variance)`` of all entries of ``X`` (n, d); 1 if all are equal.

    Raises
    ------
    DataError
        If the variance overflows.
    """
    if variance is None:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = variance_of_entries(X)
    if not np.isfinite(X.shape[1] * variance):
        raise DataError(
            f"gamma='scale' is 1 / (d * variance of X), and the variance overflows {X.dtype}: entries of X reach "
            f"{float(abs(X).max()):.3g}. Scale the columns (sklearn.preprocessing.StandardScaler), or pass gamma as a "
            "number."
        )
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _tuned(kernel: Kernel, names: dict[str, Any]) -> Kernel:
    """Copy scikit-learn's bounds and fixed parameters."""
    for name, bounds in names.items():
        if isinstance(bounds, str):
            kernel = kernel.fixed(name)
            continue
        pairs = np.atleast_2d(np.asarray(bounds, dtype=float))
        if not (pairs == (1e-5, 1e5)).all():
            names_of = [name] if len(pairs) == 1 else [f"{name}[{i}]" for i in range(len(pairs))]
            by_name = {n: (float(low), float(high)) for n, (low, high) in zip(names_of, pairs, strict=True)}
            kernel = kernel.bounded(**by_name)
    return kernel


def _offset(k: Any) -> Kernel:
    """The constant in a DotProduct, whose bounds are those of its square root."""
    bounds = k.sigma_0_bounds
    if not isinstance(bounds, str):
        bounds = np.ravel(bounds) ** 2
    return _tuned(Constant(float(k.sigma_0) ** 2), {"value": bounds})


def _pairwise(k: Any) -> Kernel:
    """By a name, with gamma as the one free parameter, whose bounds become those of the corresponding parameter."""
    if not isinstance(k.metric, str) or k.metric not in NAMES:
        raise ParameterError(
            f"PairwiseKernel(metric={k.metric!r}) has no equivalent here; "
            "wrap it as from_function(lambda X, Z: kernel(X, Z))."
        )
    more = k.pairwise_kernels_kwargs or {}
    kernel = _named(k.metric, float(k.gamma), more.get("degree", 3), more.get("coef0", 1.0), None)
    part, change = _STANDS_FOR_GAMMA.get(k.metric, (None, None))
    if part is None or change is None:
        return kernel
    if k.metric in ("poly", "polynomial", "sigmoid"):
        kernel = kernel.fixed("offset")
    if isinstance(k.gamma_bounds, str):
        return kernel.fixed(part)
    low, high = sorted(change(float(bound)) for bound in np.ravel(k.gamma_bounds))
    return kernel.bounded(**{part: (low, high)})


_STANDS_FOR_GAMMA: dict[str, tuple[str, Callable[[float], float]]] = {
    "rbf": ("length_scale", lambda gamma: (2.0 * gamma) ** -0.5),
    "laplacian": ("length_scale", lambda gamma: 1.0 / gamma),
    "poly": ("scale", float),
    "polynomial": ("scale", float),
    "sigmoid": ("scale", float),
    "chi2": ("gamma", float),
}


def _scale(length_scale: Any) -> Any:
    return float(length_scale) if np.ndim(length_scale) == 0 else [float(v) for v in length_scale]


def _is_from_sklearn(kernel: Any) -> bool:
    """Decided by the names of its classes: importing scikit-learn's kernels only for this test would take a second."""
    return any(kind.__module__ == "sklearn.gaussian_process.kernels" for kind in type(kernel).__mro__)


def from_sklearn(kernel: Any) -> Kernel:
    """The Mercer kernel equal to a kernel of ``sklearn.gaussian_process.kernels``.

    ``DotProduct(s)`` becomes ``Linear() + s^2``, and ``PairwiseKernel`` the kernel of its metric, such as
    ``RBF((2 gamma)^(-1/2))``. Bounds and fixed parameters are kept.

    A user-defined subclass of ``Kernel``, also of one of scikit-learn's own kernels, is wrapped: its values, its
    hyper-parameters with their bounds, and its gradient are those that the class defines.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Returns
    -------
    Kernel

    Raises
    ------
    ParameterError
        For a class of scikit-learn that has no equivalent here.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from_sklearn(2.0 * RBF(0.5) + WhiteKernel(0.1))
    2.0 * RBF(0.5) + White(0.1)
    """
    if not _is_from_sklearn(kernel):
        raise ParameterError(f"not a kernel of scikit-learn: {kernel!r}.")
    name = type(kernel).__name__
    if type(kernel).__module__ != "sklearn.gaussian_process.kernels":
        return FromSklearn(kernel)
    if name not in _CONVERTERS:
        raise ParameterError(
            f"{name} has no equivalent here (known: {', '.join(_CONVERTERS)}); "
            "wrap it as from_function(lambda X, Z: kernel(X, Z))."
        )
    return _CONVERTERS[name](kernel)


# By class name, so that scikit-learn's Gaussian processes are loaded by those who use them only.
_CONVERTERS: dict[str, Callable[[Any], Kernel]] = {
    "Sum": lambda k: from_sklearn(k.k1) + from_sklearn(k.k2),
    "Product": lambda k: from_sklearn(k.k1) * from_sklearn(k.k2),
    "Exponentiation": lambda k: from_sklearn(k.kernel) ** k.exponent,
    "ConstantKernel": lambda k: _tuned(Constant(float(k.constant_value)), {"value": k.constant_value_bounds}),
    "WhiteKernel": lambda k: _tuned(White(float(k.noise_level)), {"variance": k.noise_level_bounds}),
    "RBF": lambda k: _tuned(RBF(_scale(k.length_scale)), {"length_scale": k.length_scale_bounds}),
    "Matern": lambda k: _tuned(Matern(_scale(k.length_scale), nu=float(k.nu)), {"length_scale": k.length_scale_bounds}),
    "RationalQuadratic": lambda k: _tuned(
        RationalQuadratic(float(k.length_scale), alpha=float(k.alpha)),
        {"length_scale": k.length_scale_bounds, "alpha": k.alpha_bounds},
    ),
    "ExpSineSquared": lambda k: _tuned(
        ExpSineSquared(float(k.length_scale), period=float(k.periodicity)),
        {"length_scale": k.length_scale_bounds, "period": k.periodicity_bounds},
    ),
    "PairwiseKernel": _pairwise,
    "DotProduct": lambda k: Linear() + _offset(k) if k.sigma_0 > 0 else Linear(),
}
