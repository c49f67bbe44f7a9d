"""User-defined kernels of scikit-learn's Gaussian processes, with their hyper-parameters and gradients."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._errors import KernelValueError, ParameterError
from mercer._types import Array
from mercer.engine.tiles import spans
from mercer.kernels.base import Definiteness, Kind
from mercer.kernels.inputs import Frame, Operand, Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import Parameter
from mercer.kernels.plan import check_finite
from mercer.kernels.statistics import Statistic

# Rows and columns of a tile of objects, where such kernels loop in Python.
_SIDE = 64
# Rows whose gradient is computed at a time where only the diagonal is needed.
_DIAGONAL_STEP = 32
# What a hyper-parameter that is fixed may move between once it is freed.
_BOUNDS = (1e-5, 1e5)


class _Side:
    """Some of the rows of one side, as scikit-learn's kernels take them."""

    def __init__(self, rows: Any, index: NDArray[np.intp]) -> None:
        self.rows, self.index = rows, index

    def __getitem__(self, positions: Any) -> _Side:
        return _Side(self.rows, self.index[positions])

    @property
    def data(self) -> Any:
        return self.rows[self.index] if isinstance(self.rows, np.ndarray) else [self.rows[i] for i in self.index]

    def same(self, other: _Side) -> bool:
        """Whether both are the same rows in the same order."""
        return self.rows is other.rows and np.array_equal(self.index, other.index)

    def joined(self, other: _Side) -> Any:
        """The rows of both, one after the other."""
        one, two = self.data, other.data
        return np.concatenate([one, two]) if isinstance(one, np.ndarray) else one + two


@dataclass(frozen=True)
class _Evaluated(Statistic):
    """The values of the kernel."""

    kernel: FromSklearn

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        kernel = self.kernel
        rows = side.hold(("rows for scikit-learn", kernel.takes_vectors), lambda: kernel.rows_of(side))
        return (_Side(rows, np.arange(side.n)),)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        (one,), (other,) = left, right
        theirs = self.kernel.theirs
        out[...] = theirs(one.data) if one.same(other) else theirs(one.data, other.data)
        if one.rows is other.rows and not one.same(other):
            # A row with itself may have noise, which the kernel adds only where it is given one set of rows.
            _, i, j = np.intersect1d(one.index, other.index, return_indices=True)
            if len(i):
                out[i, j] = theirs.diag(one[i].data)
        out *= out.dtype.type(multiplier)
        check_finite(out, self.kernel)

    def diagonal(self, operand: Operand) -> Array:
        values = np.array(self.kernel.theirs.diag(operand[0].data), dtype=np.float64)
        check_finite(values, self.kernel)
        return values

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        (one,), (other,) = left, right
        n = len(one.index)
        if one.same(other):
            slopes = self.kernel.slopes(one.data)
        else:
            # Their gradients are those of one set of rows with itself.
            slopes = self.kernel.slopes(one.joined(other))[:n, n:]
        return np.einsum("ij,ijp->p", weights, slopes)

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        (rows,) = operand
        parts = [
            weights[part] @ np.einsum("iip->ip", self.kernel.slopes(rows[part].data))
            for part in spans(len(weights), _DIAGONAL_STEP)
        ]
        return np.sum(parts, axis=0)


@dataclass(frozen=True, repr=False)
class FromSklearn(Kernel):
    """A user-defined subclass of ``sklearn.gaussian_process.kernels.Kernel``; see :func:`mercer.kernels.from_sklearn`.

    Its hyper-parameters, bounds and gradient are those that the class defines. It is called on blocks of rows, or on
    one set of rows for a block of rows with themselves.

    Parameters
    ----------
    theirs : sklearn.gaussian_process.kernels.Kernel
        A copy is stored.
    """

    theirs: Any = field(hash=False)

    on_trust: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "theirs", copy.deepcopy(self.theirs))

    def _expression(self) -> str:
        return f"from_sklearn({self.theirs!r})"

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    @property
    def tile(self) -> int:
        return super().tile if self.takes_vectors else _SIDE

    @property
    def takes_vectors(self) -> bool:
        """Whether the class compares vectors, and not sequences or other objects."""
        return bool(self.theirs.requires_vector_input)

    def kind_of_rows(self) -> Kind:
        return "vectors" if self.takes_vectors else "anything"

    def rows_of(self, side: Rows) -> Any:
        """The rows as an array, or as a list of objects."""
        if self.takes_vectors:
            X: Any = side.vectors
            return X.toarray() if sp.issparse(X) else X
        return side.raw if isinstance(side.raw, np.ndarray) else [side.raw[i] for i in range(side.n)]

    # ---- parameters

    def _entries(self) -> Iterator[tuple[str, str, int | None, float, tuple[float, float] | None]]:
        """Path, name and position of every number, with its value and bounds; None where the class fixes it."""
        values = self.theirs.get_params()
        for hyper in self.theirs.hyperparameters:
            entries = np.atleast_1d(np.asarray(values[hyper.name], dtype=np.float64))
            bounds = None if hyper.fixed else np.broadcast_to(np.atleast_2d(hyper.bounds), (len(entries), 2))
            for i, value in enumerate(entries):
                own = None if bounds is None else (float(bounds[i, 0]), float(bounds[i, 1]))
                alone = np.ndim(values[hyper.name]) == 0
                yield hyper.name if alone else f"{hyper.name}[{i}]", hyper.name, None if alone else i, float(value), own

    def _own(self) -> Iterator[Parameter]:
        tuning = dict(self.tuning)
        for path, name, _, value, bounds in self._entries():
            pair = tuning.get(path, tuning.get(name, bounds))
            yield Parameter(path, value, pair or bounds or _BOUNDS, "log", pair is not None and value > 0)

    def _with_values(self, values: Mapping[str, float]) -> Self:
        changed: dict[str, Any] = {}
        for path, name, position, _, _ in self._entries():
            if path in values and position is None:
                changed[name] = values[path]
            elif path in values:
                # A copy, since the array belongs to the kernel that stays.
                vector = changed.setdefault(name, np.array(self.theirs.get_params()[name], dtype=np.float64))
                vector[position] = values[path]
        if not changed:
            return self
        return type(self)(copy.deepcopy(self.theirs).set_params(**changed), tuning=self.tuning)

    # ---- values and gradients

    def slopes(self, rows: Any) -> NDArray[np.float64]:
        """Derivatives of the matrix of ``rows`` by every number, (n, n, p); 0 for numbers that the class fixes.

        Raises
        ------
        ParameterError
            If the class has hyper-parameters and no gradient.
        KernelValueError
            If the gradient is of another shape.
        """
        signature = inspect.signature(type(self.theirs).__call__).parameters
        if "eval_gradient" not in signature and not any(p.kind is p.VAR_KEYWORD for p in signature.values()):
            raise ParameterError(
                f"{type(self.theirs).__name__}.__call__ has no eval_gradient, so its hyper-parameters cannot be "
                "optimised; add it as in sklearn.gaussian_process.kernels.Kernel, or pass optimizer=None."
            )
        _, by_theta = self.theirs(rows, eval_gradient=True)
        entries = list(self._entries())
        free = [number for number, entry in enumerate(entries) if entry[4] is not None]
        if np.shape(by_theta) != (len(rows), len(rows), len(free)):
            raise KernelValueError(
                f"{self!r} returned a gradient of shape {np.shape(by_theta)} for {len(rows)} rows; it must be "
                f"({len(rows)}, {len(rows)}, {len(free)}), with an entry for each hyper-parameter that is not fixed."
            )
        out = np.zeros((len(rows), len(rows), len(entries)))
        for position, number in enumerate(free):
            # Theirs are by the logarithm.
            out[:, :, number] = by_theta[:, :, position] / entries[number][3]
        return out

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Evaluated(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if slopes.size:
            slopes += pairs.pull(_Evaluated(self), weights)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Evaluated(self)
