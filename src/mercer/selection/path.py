"""The solutions of a support vector machine along one of its parameters."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, Self, TypeVar, overload, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._errors import ParameterError
from mercer._types import RowsLike, Vector
from mercer.estimators.shared.layout import dense
from mercer.estimators.svc import SVC
from mercer.solvers.solution import Certificate

M = TypeVar("M")
_LISTS = {"C": "Cs", "nu": "nus", "epsilon": "epsilons"}


@runtime_checkable
class FitsAlong(Protocol):
    """An estimator that can be fitted for several values of a parameter in one call, for :func:`svm_path`."""

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each of the ascending values, and return the copies in their order."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


class Models(Sequence[M]):
    """Fitted models along a parameter."""

    models: tuple[M, ...]

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificate of each model; its seconds are its share of those of the path."""
        models: Sequence[Any] = self.models
        return tuple(model.certificate_ for model in models)

    def __len__(self) -> int:
        return len(self.models)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[M, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.models[index]

    def __iter__(self) -> Iterator[M]:
        return iter(self.models)


@dataclass(frozen=True, repr=False)
class Path(Models[Any]):
    """Fitted models along a parameter, in the order in which its values were given; see :func:`svm_path`.

    Parameters
    ----------
    parameter : str
        ``"C"``, ``"nu"`` or ``"epsilon"``.
    values : tuple of float
        Its values.
    models : tuple of estimators
        ``path[i]`` is the model of ``values[i]``.
    seconds : float
        Wall-clock time of the whole path.
    """

    parameter: str
    values: tuple[float, ...]
    models: tuple[Any, ...]
    seconds: float

    @property
    def coef_path(self) -> Vector:
        """``coef_`` of every model, (values, pairs of classes or 1, p); for kernels with a finite feature map."""
        return np.stack([dense(model.coef_) for model in self.models])

    def __repr__(self) -> str:
        """A table with a line for each value."""
        lines = [f"{type(self.models[0]).__name__} along {self.parameter}: {len(self)} fits in {self.seconds:.3g} s"]
        lines.append(f"{self.parameter:>12} {'SVs':>8} {'objective':>14} {'relative gap':>13}  status")
        for value, model in zip(self.values, self.models):
            c = model.certificate_
            count = np.count_nonzero(np.atleast_2d(dense(model.dual_coef_)).any(axis=0))
            lines.append(f"{value:12.6g} {count:8d} {c.primal:14.7g} {c.relative_gap:13.2e}  {c.status.name}")
        return "\n".join(lines)


def svm_path(
    X: RowsLike,
    y: ArrayLike,
    Cs: Any = None,
    *,
    nus: Any = None,
    epsilons: Any = None,
    estimator: Any = None,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> Path:
    """Fit a support vector machine for every value of C, of nu, or of epsilon, each with its certificate.

    Every model is as accurate as a separate fit: it meets the same stopping rule, and its certificate is computed in
    the same way. The path is faster: from the middle value upwards and downwards, each solve starts from the solution
    of the neighbouring value, whose gradient is known, and common work is done once. For classifiers the data are
    checked once, and the kernel matrix of a small pair of classes is shared by all values.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or (n, n) for ``kernel="precomputed"``
        Training rows.
    y : array of shape (n,)
        Labels or targets; None for ``OneClassSVM``.
    Cs, nus, epsilons : sequence of float
        Exactly one of them: values of a parameter of the estimator, in any order; C above 0 and finite.
    estimator : SVC, NuSVC, SVR, NuSVR or OneClassSVM, optional
        Not changed, and need not be fitted; by default ``SVC()``. With ``stop="gap"`` every relative duality gap is
        at most ``tol``. Other learners with a C that can be fitted along it will do, too.
    sample_weight : array of shape (n,), optional
        As for ``fit``.
    **parameters
        Further parameters of the estimator by name.

    Returns
    -------
    Path
        A sequence of fitted estimators, in the order of the values. The seconds of a classifier's certificate are the
        time of its solver.

    Raises
    ------
    ParameterError
        If none or several lists are given, one is empty or contains a value that is not a number in range, or the
        estimator lacks the parameter.
    DataError, IndefiniteKernelError, MemoryBudgetError
        As ``fit``.

    Notes
    -----
    The method follows DeCoste and Wagstaff (2000), "Alpha seeding for support vector machines". The scaled weights at
    the start follow Chu, Ho, Tsai, Lin and Lin (2015), "Warm start for parameter selection of linear classifiers".

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR, svm_path
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> path = svm_path(X, X[:, 0] > 0.3, [0.1, 1.0, 10.0], kernel="linear")
    >>> [int(model.n_support_.sum()) for model in path]
    [28, 16, 8]
    >>> path.coef_path.shape
    (3, 1, 1)
    >>> tubes = svm_path(X, np.sin(3 * X[:, 0]), epsilons=[0.3, 0.1], estimator=SVR(C=10.0))
    >>> tubes[0].epsilon, max(c.relative_gap for c in tubes.certificates) < 1e-6
    (0.3, True)
    """
    start_time = time.perf_counter()
    parameter, values = _the_list({"C": Cs, "nu": nus, "epsilon": epsilons})
    prototype = _prototype(estimator, parameter, parameters)
    order = sorted(set(values))
    models = prototype.fit_along(parameter, order, X, y, sample_weight)
    by_value = dict(zip(order, models))
    # A value that was given twice has two models.
    fits = tuple(by_value.pop(value, None) or copy.copy(models[order.index(value)]) for value in values)
    return Path(parameter, values, fits, time.perf_counter() - start_time)


def _the_list(lists: dict[str, Any]) -> tuple[str, tuple[float, ...]]:
    """The parameter whose values are given, and these."""
    lists_given = {name: values for name, values in lists.items() if values is not None}
    names = ", ".join(_LISTS[name] for name in lists_given)
    if len(lists_given) != 1:
        raise ParameterError(
            f"exactly one list of values is needed, of Cs, nus and epsilons, and {names or 'none'} "
            f"{'are' if len(lists_given) > 1 else 'is'} given."
        )
    ((name, values),) = lists_given.items()
    numbers = list(values) if np.iterable(values) and not isinstance(values, str) else [values]
    if not numbers:
        raise ParameterError(f"{names} is empty; pass at least one value.")
    for value in numbers:
        if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not np.isfinite(float(value)):
            hard = name == "C" and isinstance(value, Real) and value == np.inf
            advice = " A hard margin, C=inf, needs a separate fit." if hard else ""
            raise ParameterError(f"{names} must hold finite numbers, but holds {value!r}.{advice}")
    return name, tuple(float(value) for value in numbers)


def _prototype(estimator: Any, parameter: str, parameters: dict[str, Any]) -> Any:
    """A new estimator with the parameters, which has the one that is to change."""
    if estimator is None:
        estimator = SVC()
    if not isinstance(estimator, FitsAlong) or not _LISTS.keys() & estimator.get_params(deep=False).keys():
        raise ParameterError(f"estimator must be an SVC, NuSVC, SVR, NuSVR or OneClassSVM, but is {estimator!r}.")
    options = estimator.get_params(deep=False)
    for name in (parameter, *parameters):
        if name not in options and "__" not in name:
            has = ", ".join(name for name in _LISTS if name in options)
            raise ParameterError(
                f"{type(estimator).__name__} has no parameter {name!r}"
                + (f"; a path of it may be along {has}." if name == parameter else ".")
            )
    if parameter in parameters:
        raise ParameterError(f"{parameter}={parameters[parameter]!r} and {_LISTS[parameter]} are given; leave out one.")
    return clone(estimator).set_params(**parameters)
