"""The base of kernels as expressions: immutable values with named parameters that print as they were typed."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Array
from mercer.data.objects import Objects, short
from mercer.engine.tiles import TILE
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.pairs import Pairs, scratch
from mercer.kernels.parameters import Bounds, Parameter, check_bounds, check_number, whole_vector

if TYPE_CHECKING:
    from mercer.kernels.program import Lowering

LinearParts = list[tuple[float, Any]]
Definiteness = Literal["positive", "conditional", "indefinite"]
Searched = Mapping[str, tuple[Any, ...]]
Kind = type[Objects] | Literal["vectors", "table", "anything"]

# Precedence of what a kernel prints as, from loosest to tightest binding.
SUM, PRODUCT, POWER, ATOM = range(4)


def is_overridden(thing: Any, method: str, by: str) -> bool:
    """Whether a class gives another ``method`` than the one that its ``by`` stands for."""
    classes = type(thing).__mro__
    first, second = (next(i for i, one in enumerate(classes) if name in vars(one)) for name in (method, by))
    return first < second


@dataclass(frozen=True, repr=False)
class Expression(abc.ABC):
    """The part of a kernel that knows its parameters and how it prints, and the contract with the engine.

    ``tuning`` holds the settings of ``fixed`` and ``bounded`` for the kernel's own numbers: pairs of a name and
    either None (fixed) or bounds.
    """

    tuning: tuple[tuple[str, Bounds | None], ...] = field(default=(), kw_only=True)

    precedence: ClassVar[int] = ATOM
    on_trust: ClassVar[bool] = False
    """Whether nothing but the user's word says what the kernel's definiteness is."""
    searched: ClassVar[Searched] = {}
    """Values that a search tries for parameters that are not free numbers, the cheapest to evaluate first."""

    def __post_init__(self) -> None:
        for item, info in self._numbers():
            value = check_number(type(self).__name__, item, getattr(self, item), info)
            object.__setattr__(self, item, value)

    # ---- parameters

    @classmethod
    def _numbers(cls) -> list[tuple[str, Mapping[str, Any]]]:
        """Names and descriptions of the tunable fields."""
        return [(f.name, f.metadata["parameter"]) for f in dataclasses.fields(cls) if "parameter" in f.metadata]

    def children(self) -> tuple[tuple[str, Expression], ...]:
        """Names and kernels that this one is made of."""
        return ()

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        """The same composition of other kernels.

        Parameters
        ----------
        kernels : tuple of Kernel
            In the order of :meth:`children`.

        Returns
        -------
        Kernel
        """
        return self

    def _own(self) -> Iterator[Parameter]:
        tuning = dict(self.tuning)
        for name, info in self._numbers():
            value = getattr(self, name)
            if isinstance(value, str):
                # Not known yet, and so nothing that could be tuned; but it may be fixed or bounded.
                yield Parameter(name, math.nan, tuning.get(name) or info["bounds"], info["transform"], False)
                continue
            values = value if isinstance(value, tuple) else (value,)
            for position, v in enumerate(values):
                path = f"{name}[{position}]" if isinstance(value, tuple) else name
                bounds = tuning.get(path, tuning.get(name, info["bounds"]))
                # Zero has no logarithm: a number at zero on a log scale stays there.
                free = bounds is not None and not (info["transform"] == "log" and v <= 0)
                yield Parameter(path, v, bounds or info["bounds"], info["transform"], free)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every number of the kernel and of its parts, in a fixed order."""
        own = tuple(self._own())
        parts = (
            dataclasses.replace(p, name=f"{name}.{p.name}") for name, child in self.children() for p in child.parameters
        )
        return (*own, *parts)

    @property
    def homogeneity(self) -> float | None:
        """The power of ``a b`` that ``k(a x, b z)`` is times ``k(x, z)``, or None.

        With one, cosines do not depend on the lengths of rows.
        """
        return None

    @property
    def needs_data(self) -> bool:
        """Whether a parameter of the kernel, or of a part, is the name of a rule: see ``with_data``."""
        own = any(isinstance(getattr(self, name), str) for name, _ in self._numbers())
        return own or any(child.needs_data for _, child in self.children())

    def _with_data(self, rows: Rows) -> Any:
        """The same kernel with the numbers that its rules take from the rows."""
        own = self._numbers_of(rows) if any(isinstance(getattr(self, name), str) for name, _ in self._numbers()) else {}
        changed = dataclasses.replace(self, **own) if own else self
        if not any(child.needs_data for _, child in self.children()):
            return changed
        inside = self._seen_by_parts(rows)
        return changed.with_children(tuple(child._with_data(inside) for _, child in self.children()))

    def _numbers_of(self, rows: Rows) -> dict[str, Any]:
        """The numbers that stand for the rules that this kernel's parameters name."""
        return {}

    def searched_values(self, rows: Rows) -> dict[str, tuple[Any, ...]]:
        """Values to try for parameters that are not free numbers, such as the length of a substring.

        Parameters
        ----------
        rows : Rows
            Those of a fit, or a sample.

        Returns
        -------
        dict of str to tuple
            By the names of :meth:`get_params`, the cheapest to evaluate first, the present value among them.
        """
        found = {name: _with_own(getattr(self, name), values) for name, values in self._searched(rows).items()}
        parts = self.children()
        inside = self._seen_by_parts(rows) if parts else rows
        for part, child in parts:
            found |= {f"{part}__{name}": values for name, values in child.searched_values(inside).items()}
        return found

    def _searched(self, rows: Rows) -> Searched:
        return self.searched

    def _seen_by_parts(self, rows: Rows) -> Rows:
        """The rows as the kernels that this one is made of see them."""
        return rows

    @property
    def theta(self) -> Array:
        """The free parameters as one flat vector, each on the scale of its transform (log by default)."""
        return np.array([p.theta for p in self.parameters if p.free])

    @property
    def bounds(self) -> Array:
        """Bounds of ``theta``, shape ``(len(theta), 2)``, on the same scale."""
        free = [p for p in self.parameters if p.free]
        rows = [[dataclasses.replace(p, value=b).theta for b in p.bounds] for p in free]
        return np.array(rows).reshape(len(free), 2)

    def with_theta(self, theta: Any) -> Self:
        """The same kernel with other values of its free parameters.

        Parameters
        ----------
        theta : array-like of float
            As ``self.theta``.

        Returns
        -------
        Kernel

        Raises
        ------
        ParameterError
            If ``theta`` has another length than ``self.theta`` or is not finite.
        """
        try:
            theta = np.asarray(theta, dtype=float).ravel()
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(f"theta must be numbers, but is {short(theta)}.") from error
        free = [p for p in self.parameters if p.free]
        if len(theta) != len(free) or not np.isfinite(theta).all():
            names = ", ".join(p.name for p in free) or "none"
            raise ParameterError(f"theta must be {len(free)} finite numbers ({names}), but is {theta.tolist()}.")
        # A value that does not move keeps its digits, which its logarithm would change.
        moved = [(p, t) for p, t in zip(free, theta, strict=True) if t != p.theta]
        with np.errstate(over="ignore"):
            new = {p.name: float(np.exp(t) if p.transform == "log" else t) for p, t in moved}
        return self._with_values(new)

    def _with_values(self, values: Mapping[str, float]) -> Self:
        """Replace numbers by their paths."""
        own: dict[str, Any] = {}
        for name, _ in self._numbers():
            value = getattr(self, name)
            if isinstance(value, tuple):
                own[name] = tuple(values.get(f"{name}[{i}]", v) for i, v in enumerate(value))
            elif name in values:
                own[name] = values[name]
        changed = dataclasses.replace(self, **own) if own else self
        kernels = []
        for name, child in self.children():
            inside = {k[len(name) + 1 :]: v for k, v in values.items() if k.startswith(name + ".")}
            kernels.append(child._with_values(inside) if inside else child)
        return changed.with_children(tuple(kernels)) if kernels else changed

    def fixed(self, *names: str) -> Self:
        """The same kernel with some parameters fixed.

        Parameters
        ----------
        *names : str
            Names of parameters; by default all of them.

        Returns
        -------
        Kernel

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> (2.0 * RBF(3.0)).fixed("factor").theta.round(3).tolist()
        [1.099]
        """
        if not all(isinstance(name, str) for name in names):
            raise ParameterError(f"fixed() takes names of parameters, but got {short(names)}.")
        names = names or tuple(whole_vector(p.name) for p in self.parameters)
        return self._tuned(dict.fromkeys(names))

    def bounded(self, **bounds: Bounds) -> Self:
        """The same kernel with other bounds: ``k.bounded(length_scale=(0.1, 10))``.

        Fixed parameters become free again.

        Parameters
        ----------
        **bounds : (float, float)
            In the parameter's own units. A part's parameter is named by its path:
            ``k.bounded(**{"left.length_scale": (0.1, 10)})``.

        Returns
        -------
        Kernel
        """
        return self._tuned({name: check_bounds(name, pair) for name, pair in bounds.items()})

    def _tuned(self, changes: Mapping[str, Bounds | None]) -> Self:
        for name, bounds in changes.items():
            named = [p for p in self.parameters if name in (p.name, whole_vector(p.name))]
            if not named:
                names = ", ".join(p.name for p in self.parameters) or "none"
                raise ParameterError(f"{self!r} has no parameter {name!r}; it has {names}.")
            if bounds is not None and named[0].transform == "log" and bounds[0] <= 0:
                raise ParameterError(f"bounds of {name} must be above 0, since it is tuned as a logarithm: {bounds!r}.")
        parts = self.children()
        own = {n: b for n, b in changes.items() if not any(n.startswith(part + ".") for part, _ in parts)}
        # A setting for a whole vector replaces the settings of its entries.
        merged = {n: b for n, b in self.tuning if whole_vector(n) not in own} | own
        changed = dataclasses.replace(self, tuning=tuple(sorted(merged.items()))) if own else self
        kernels = []
        for part, child in parts:
            inside = {n[len(part) + 1 :]: b for n, b in changes.items() if n.startswith(part + ".")}
            kernels.append(child._tuned(inside) if inside else child)
        return changed.with_children(tuple(kernels)) if kernels else changed

    def _without_lost_tuning(self) -> Self:
        """Drop the settings of entries that a vector no longer has."""
        names = {name for p in self._own() for name in (p.name, whole_vector(p.name))}
        tuning = tuple(setting for setting in self.tuning if setting[0] in names)
        return self if tuning == self.tuning else dataclasses.replace(self, tuning=tuning)

    # ---- scikit-learn's protocol

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of the parts too, as ``"left__length_scale"``.

        Returns
        -------
        dict
        """
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "tuning"}
        if deep:
            for name, child in self.children():
                own[name] = child
                own.update({f"{name}__{key}": value for key, value in child.get_params().items()})
        return own

    def with_params(self, **params: Any) -> Self:
        """The same kernel with some parameters replaced.

        Parameters
        ----------
        **params : object
            By the names of ``get_params``.

        Returns
        -------
        Kernel
        """
        valid = self.get_params()
        for key in params:
            if key not in valid:
                raise ParameterError(f"{self!r} has no parameter {key!r}; it has {', '.join(valid) or 'none'}.")
        parts = dict(self.children())
        own = {k: v for k, v in params.items() if "__" not in k and k not in parts}
        changed = dataclasses.replace(self, **own)._without_lost_tuning() if own else self
        kernels = []
        for name, child in changed.children():
            child = params.get(name, child)
            inside = {k[len(name) + 2 :]: v for k, v in params.items() if k.startswith(name + "__")}
            kernels.append(child.with_params(**inside) if inside else child)
        return changed.with_children(tuple(kernels)) if kernels else changed

    def set_params(self, **params: Any) -> Self:
        """Same as ``with_params``: kernels never change, so this returns another one.

        Parameters
        ----------
        **params : object
            By the names of ``get_params``.

        Returns
        -------
        Kernel
        """
        return self.with_params(**params)

    def __sklearn_clone__(self) -> Self:
        return self

    # ---- what it compares

    @property
    def chooses_columns(self) -> bool:
        """Whether it looks at chosen columns of its rows only, as each of its parts does."""
        parts = [child for _, child in self.children() if child.kind_of_rows() != "anything"]
        return bool(parts) and all(child.chooses_columns for child in parts)

    def kind_of_rows(self) -> Kind:
        """The kind of objects that a kernel compares; or ``"vectors"``, ``"table"`` for columns of several kinds, or
        ``"anything"`` if only user-defined functions read the rows.

        Raises
        ------
        ParameterError
            If its parts are defined on different things.

        Examples
        --------
        >>> from mercer.kernels import RBF, Spectrum
        >>> (2.0 * Spectrum(3) + 1.0).kind_of_rows(), (RBF(1.0).on([0]) * Spectrum(3).on([1])).kind_of_rows()
        (<class 'mercer.data.strings.Strings'>, 'table')
        """
        if not self.children():
            return "vectors"
        kinds = {child: child.kind_of_rows() for _, child in self.children()}
        definite = {kind: child for child, kind in kinds.items() if kind != "anything"}
        if set(definite) == {"table", "vectors"}:
            of_vectors = [child for child, kind in kinds.items() if kind == "vectors"]
            if all(child.chooses_columns for child in of_vectors):
                return "table"
            definite["vectors"] = next(child for child in of_vectors if not child.chooses_columns)
        if len(definite) > 1:
            (one, first), (other, second) = list(definite.items())[:2]
            raise ParameterError(
                f"{first!r} compares {_called(one)} and {second!r} compares {_called(other)}, so no row suits both; "
                "choose the columns of a table for each, as in mercer.kernels.product_of."
            )
        return next(iter(definite), "anything")

    def squared_distance(self) -> Callable[[Array], Array] | None:
        """For ``k = f(t)`` that falls with a distance t: the function ``2 f(0) - 2 f(t)``, without cancellation.

        Rows are then ranked by t. None where there is no such function.
        """
        return None

    # ---- printing

    def __repr__(self) -> str:
        text = self._expression()
        if self.tuning and self.precedence < ATOM:
            text = f"({text})"
        return text + self._tuning_suffix()

    def _expression(self) -> str:
        """The kernel as one would type it, without its tuning: the first field, then by name what is not default."""
        fields = [f for f in dataclasses.fields(self) if f.name != "tuning"]
        arguments = [_print_value(getattr(self, f.name)) for f in fields[:1]]
        for f in fields[1:]:
            value = getattr(self, f.name)
            if value != f.default:
                arguments.append(f"{f.name}={_print_value(value)}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    def _tuning_suffix(self) -> str:
        """The settings of ``fixed`` and ``bounded``, printed as calls."""
        fixed_names = [repr(name) for name, bounds in self.tuning if bounds is None]
        moved = {name: bounds for name, bounds in self.tuning if bounds is not None}
        text = f".fixed({', '.join(fixed_names)})" if fixed_names else ""
        if moved and all(name.isidentifier() for name in moved):
            return text + f".bounded({', '.join(f'{n}={b}' for n, b in moved.items())})"
        return text + (f".bounded(**{moved})" if moved else "")

    def _inside(self, precedence: int) -> str:
        """The printed form as part of something that binds at ``precedence``."""
        text = repr(self)
        binds = ATOM if self.tuning else self.precedence
        return text if binds >= precedence else f"({text})"

    # ---- the contract with the engine

    @property
    def tile(self) -> int:
        """Rows and columns of the tiles that a block is made by."""
        return min((child.tile for _, child in self.children()), default=TILE)

    @property
    @abc.abstractmethod
    def definiteness(self) -> Definiteness:
        """``"positive"``: every Gram matrix is positive semi-definite; ``"conditional"``: on vectors that sum to 0;
        ``"indefinite"``: neither is known."""

    @abc.abstractmethod
    def _fill(self, pairs: Pairs, out: Array) -> None:
        """Write the values of the pairs into ``out``."""

    @abc.abstractmethod
    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        """Add ``sum weights * d k / d value`` to ``slopes``, an entry for every one of ``parameters``."""

    def _lower(self, program: Lowering) -> bool:
        """Add the steps that put the values on the stack of a program; False if compiled loops do not compute them."""
        return False

    def _pull_sum(self, pairs: Pairs, weights: Array, slopes: Array) -> float:
        """The same, and ``sum weights * k``, which many kernels compute anyway."""
        with scratch(weights) as values:
            self._fill(pairs, values)
            total = float(np.vdot(weights, values))
        self._pull(pairs, weights, slopes)
        return total

    @abc.abstractmethod
    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        """The statistics that the kernel uses, with the maps that are applied before them."""

    def _linear_parts(self, rows: Rows) -> LinearParts | None:
        """Pairs of a weight and a matrix A with ``k(x_i, z_j) = sum of weight * <a_i, b_j>``, where the kernel is such
        a sum and A has about as few columns as the rows; else None."""
        return None

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        """Features F, an array or CSR of shape (n, p), with ``K = F F^T`` for the rows with themselves.

        None where the kernel is not known to have at most ``most`` of them. Those of other rows may be others, since
        counted features are numbered by their first occurrence.
        """
        return None

    def _is_cheap(self, rows: Rows) -> bool:
        """Whether to compute a value of two rows takes less time than to store it and to read it again."""
        return False


def _called(kind: Kind) -> str:
    return kind if isinstance(kind, str) else kind.kind


def _with_own(own: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, which ascend, with the present one in its place."""
    return values if own in values else tuple(sorted((*values, own)))


def _print_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_print_value(v) for v in value) + "]"
    return repr(value)
