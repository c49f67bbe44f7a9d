"""The correct call for users who know a kernel's parameters by their names in other libraries."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from mercer._errors import UnknownParameterError
from mercer.data.objects import short
from mercer.kernels.kernel import Kernel

# What other libraries and textbooks call a parameter, and what it is called here where the kernel has it.
_SAME = {
    "alpha": "scale",
    "c": "offset",
    "coef0": "offset",
    "constant_value": "value",
    "ell": "length_scale",
    "gamma": "scale",
    "length": "length_scale",
    "lengthscale": "length_scale",
    "lengthscales": "length_scale",
    "noise_level": "variance",
    "periodicity": "period",
    "power": "degree",
    "r": "offset",
    "sigma": "length_scale",
    "slope": "scale",
    "tau": "length_scale",
}


def _inverse(value: Any) -> str:
    try:
        return repr(1.0 / float(value))
    except (TypeError, ValueError, ZeroDivisionError):
        return f"1 / {short(value)}"


# Parameters that are another function of ours: the call, and the formula that it gives.
_OTHER: dict[tuple[str, str], Callable[[Any], tuple[str, str]]] = {
    ("RBF", "gamma"): lambda v: (f"RBF.from_gamma({short(v)})", "exp(-gamma |x - z|^2)"),
    ("RBF", "variance"): lambda v: (f"RBF.from_variance({short(v)})", "exp(-|x - z|^2 / (2 variance))"),
    ("RBF", "sigma2"): lambda v: (f"RBF.from_variance({short(v)})", "exp(-|x - z|^2 / (2 variance))"),
    ("RBF", "width"): lambda v: (f"RBF.from_width({short(v)})", "exp(-|x - z|^2 / width^2)"),
    ("RBF", "bandwidth"): lambda v: (f"RBF({short(v)})", "exp(-|x - z|^2 / (2 length_scale^2))"),
    ("RBF", "sigma"): lambda v: (f"RBF({short(v)})", "exp(-|x - z|^2 / (2 length_scale^2))"),
    ("Laplacian", "gamma"): lambda v: (f"Laplacian({_inverse(v)})", "exp(-gamma |x - z|_1)"),
}


def right_call(kernel: type[Kernel], arguments: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """What to write instead of parameters that a kernel does not have; None if it has them all.

    >>> from mercer.kernels import RBF, Polynomial
    >>> right_call(RBF, [], {"gamma": 0.5})
    'RBF has no parameter gamma; for exp(-gamma |x - z|^2) write RBF.from_gamma(0.5).'
    >>> right_call(Polynomial, [3], {"coef0": 1})
    'Polynomial has no parameter coef0; it is called offset here: Polynomial(3, offset=1).'
    """
    fields = [f.name for f in dataclasses.fields(kernel) if f.init]
    unknown = next((name for name in named if name not in fields), None)
    if unknown is None:
        return None
    name = kernel.__name__
    begin = f"{name} has no parameter {unknown}; "
    if (name, unknown) in _OTHER:
        call, formula = _OTHER[name, unknown](named[unknown])
        return f"{begin}for {formula} write {call}."
    names = {keyword: _known_as(keyword, fields) for keyword in named}
    if names[unknown] is None:
        return f"{begin}it has {', '.join(f for f in fields if f != 'tuning') or 'none'}."
    parts = [
        *map(short, arguments),
        *(f"{names[keyword]}={short(value)}" for keyword, value in named.items() if names[keyword]),
    ]
    return f"{begin}it is called {names[unknown]} here: {name}({', '.join(parts)})."


def _known_as(keyword: str, fields: list[str]) -> str | None:
    """The field that a name stands for."""
    if keyword in fields:
        return keyword
    same = _SAME.get(keyword)
    return same if same in fields else next(iter(get_close_matches(keyword, fields, n=1)), None)


def explain_calls(kernel: type[Kernel]) -> None:
    """Make the constructor of a kernel class answer unknown parameter names with the correct call."""
    constructor = kernel.__init__

    @functools.wraps(constructor)
    def explained(self: Kernel, *arguments: Any, **named: Any) -> None:
        try:
            constructor(self, *arguments, **named)
        except TypeError as error:
            advice = right_call(kernel, arguments, named)
            if advice is None:
                raise
            raise UnknownParameterError(advice) from error

    setattr(kernel, "__init__", explained)  # noqa: B010
