"""Kernel expressions as text: ``"0.5 * RBF(2.0) + Linear()"`` to a kernel, without ever running code.

The text is parsed by :mod:`ast`, and the tree is walked by a table of allowed nodes: numbers, strings, lists and
tuples, None, True, False; the names of the kernels; ``+``, ``*``, ``**``; a minus sign before a number; ``exp(k)``; and
the methods that make a kernel of a kernel. Everything else raises an error that names its position.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NoReturn

from mercer._errors import KernelSyntaxError, MercerError
from mercer.kernels.algebra import Unary, exp
from mercer.kernels.foreign_names import right_call
from mercer.kernels.kernel import PUBLIC, Kernel

_LONGEST = 50_000
_DEEPEST = 100
# Kernels that + and * join; all are checked again with each that follows.
_MOST_TERMS = 1000

_METHODS = frozenset({"on", "normalized", "fixed", "bounded"})
_TAKES_MORE = {
    "scaled_by": "takes a function",
    "warped": "takes a function",
    "centered": "takes data",
    "from_function": "takes a function",
}
# Fields of kernels that are not parameters, although constructors take them: methods such as fixed() set them.
_INTERNAL = frozenset({"tuning"})
_CONSTANTS = {"inf": float("inf"), "nan": float("nan")}
_SIGNS = {
    ast.Sub: "a difference of kernels is not a kernel",
    ast.Div: "there is no division; multiply by a number instead",
    ast.MatMult: "there is no matrix product of kernels",
}


def parse_kernel(text: str) -> Kernel:
    """The kernel that an expression in the library's own algebra describes.

    Parameters
    ----------
    text : str
        Such as ``"0.5 * RBF(2.0) + Linear()"``; what ``repr`` prints of a kernel that is made without
        functions and data gives an equal kernel.

    Raises
    ------
    KernelSyntaxError
        With the position in the text, the text there, and the nearest names if a name is unknown.

    Examples
    --------
    >>> parse_kernel("0.5*RBF(2.0) + Linear().on([0, 1])")
    0.5 * RBF(2.0) + Linear().on([0, 1])
    >>> parse_kernel("RBFF(2.0)")
    Traceback (most recent call last):
        ...
    mercer._errors.KernelSyntaxError: kernel expression, column 1: there is no kernel 'RBFF'; did you mean RBF?
    """
    if not isinstance(text, str):
        raise KernelSyntaxError(f"a kernel expression is text, not {type(text).__name__}.")
    if len(text) > _LONGEST:
        raise KernelSyntaxError(
            f"the kernel expression has {len(text)} characters, but at most {_LONGEST} are allowed; build it in Python."
        )
    if not text.strip():
        raise KernelSyntaxError("the kernel expression is empty; write for example RBF(2.0).")
    result = _Reader(text.strip()).read()
    if isinstance(result, Kernel):
        return result
    if inspect.isclass(result):
        raise KernelSyntaxError(f"{text.strip()!r} is the name of a kernel, not a kernel; write {text.strip()}().")
    raise KernelSyntaxError(f"{text.strip()[:60]!r} is not a kernel; write for example RBF(2.0).")


def kernel_names() -> dict[str, type[Kernel]]:
    """The kernels that an expression may name; those made from another kernel are written as operators and methods.

    >>> "RBF" in kernel_names()
    True
    """
    return {
        name: member
        for name, member in PUBLIC.items()
        if inspect.isclass(member)
        and issubclass(member, Kernel)
        and not issubclass(member, Unary)
        and not inspect.isabstract(member)
    }


class _Reader:
    """Walks the tree of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names = kernel_names()
        self._depth = 0

    def read(self) -> Any:
        try:
            with warnings.catch_warnings():
                # Python warns of odd literals; those that matter here are errors below.
                warnings.simplefilter("ignore")
                tree = ast.parse(self._text, mode="eval")
        except SyntaxError as error:
            column = error.offset if error.offset and error.offset > 0 else 1
            raise KernelSyntaxError(
                f"kernel expression, column {column}: {error.msg} in {self._excerpt(column - 1)!r}."
            ) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise KernelSyntaxError(
                f"the kernel expression cannot be read ({str(error) or 'it is nested too deeply'}); write it in a "
                "simpler way."
            ) from error
        return self._value(tree.body)

    # ---- places and failures

    def _excerpt(self, position: int) -> str:
        text = self._text
        return text if len(text) <= 40 else text[max(0, position - 20) : position + 20]

    def _fail(self, node: ast.AST, what: str) -> NoReturn:
        # The tree counts bytes of UTF-8, and a reader counts characters.
        line = self._text.encode().split(b"\n")[node.lineno - 1]  # type: ignore[attr-defined]
        column = len(line[: node.col_offset].decode(errors="replace")) + 1  # type: ignore[attr-defined]
        raise KernelSyntaxError(f"kernel expression, column {column}: {what}")

    def _source(self, node: ast.AST) -> str:
        text = ast.get_source_segment(self._text, node) or ""
        return text if len(text) <= 40 else text[:37] + "..."

    # ---- values

    def _value(self, node: ast.expr) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail(node, f"the expression is nested more than {_DEEPEST} levels deep; build it in Python.")
        try:
            reader = _READERS.get(type(node))
            if reader is None:
                self._fail(
                    node,
                    f"{self._source(node)!r} is not allowed here; an expression is made of kernels such as RBF(2.0), "
                    "numbers, +, *, ** and exp().",
                )
            return reader(self, node)
        finally:
            self._depth -= 1

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, (bool, int, float, str)):
            return node.value
        self._fail(node, f"{self._source(node)!r} is neither a number nor a text.")

    def _name(self, node: ast.Name) -> Any:
        if node.id in self._names:
            return self._names[node.id]
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if node.id in _TAKES_MORE:
            self._fail(node, f"{node.id} {_TAKES_MORE[node.id]}, which text cannot hold; build the kernel in Python.")
        names = {name.lower(): name for name in self._names}
        matches = [names[name] for name in get_close_matches(node.id.lower(), names, n=3, cutoff=0.5)]
        if matches:
            self._fail(node, f"there is no kernel {node.id!r}; did you mean {' or '.join(matches)}?")
        self._fail(node, f"there is no kernel {node.id!r}; there are {', '.join(sorted(self._names))}.")

    def _sequence(self, node: ast.List | ast.Tuple) -> Any:
        values = [self._value(item) for item in node.elts]
        for item, value in zip(node.elts, values, strict=True):
            if inspect.isclass(value):
                self._fail(item, f"{self._source(item)} is the name of a kernel; write {self._source(item)}().")
        return values if isinstance(node, ast.List) else tuple(values)

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self._value(node.operand)
        if isinstance(node.op, (ast.USub, ast.UAdd)) and _is_number(value):
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(value, Kernel) and isinstance(node.op, ast.USub):
            self._fail(node, "a kernel with a minus sign is not a kernel.")
        self._fail(node, f"{self._source(node)!r} is not allowed; only numbers take a sign.")

    def _binary(self, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.Pow):
            base, exponent = self._value(node.left), self._value(node.right)
            if not isinstance(base, Kernel) or not _is_number(exponent):
                self._fail(node, f"{self._source(node)!r}: ** takes a kernel on its left and a number on its right.")
            return self._made(node, lambda: base**exponent)
        if not isinstance(node.op, (ast.Add, ast.Mult)):
            why = _SIGNS.get(type(node.op), "the operators are +, * and **")
            self._fail(node, f"{self._source(node)!r}: {why}.")
        # A long sum leans to the left as deep as it has terms; it is walked, not descended into.
        steps = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, (ast.Add, ast.Mult)):
            steps.append(left)
            left = left.left
        if len(steps) >= _MOST_TERMS:
            self._fail(node, f"the expression is a chain of more than {_MOST_TERMS} kernels; build it in Python.")
        value = self._operand(left)
        for step in reversed(steps):
            value = self._joined(step, value, self._operand(step.right))
        return value

    def _operand(self, node: ast.expr) -> Any:
        value = self._value(node)
        if inspect.isclass(value):
            self._fail(node, f"{self._source(node)} is the name of a kernel; write {self._source(node)}().")
        if not isinstance(value, Kernel) and not _is_number(value):
            self._fail(node, f"{self._source(node)!r} is neither a kernel nor a number.")
        return value

    def _joined(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        if isinstance(node.op, ast.Add):
            return self._made(node, lambda: left + right)
        return self._made(node, lambda: left * right)

    # ---- calls

    def _call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "exp":
                return self._exponential(node)
            kernel = self._name(function)
            if not inspect.isclass(kernel):
                self._fail(node, f"{function.id!r} is a number and cannot be called.")
            return self._apply(node, function.id, kernel)
        if isinstance(function, ast.Attribute):
            return self._method(node, function)
        self._fail(node, f"{self._source(node)!r} is not allowed; calls are of kernels, exp() and their methods.")

    def _exponential(self, node: ast.Call) -> Kernel:
        if len(node.args) != 1 or node.keywords:
            self._fail(node, "exp takes one kernel, as in exp(Linear()).")
        kernel = self._value(node.args[0])
        if not isinstance(kernel, Kernel):
            self._fail(node, f"exp takes a kernel, as in exp(Linear()), but got {self._source(node.args[0])!r}.")
        return exp(kernel)

    def _method(self, node: ast.Call, function: ast.Attribute) -> Any:
        owner, name = self._value(function.value), function.attr
        if inspect.isclass(owner):
            constructors = [m for m in dir(owner) if m.startswith("from_") and inspect.ismethod(getattr(owner, m))]
            if name in constructors:
                return self._apply(node, f"{owner.__name__}.{name}", getattr(owner, name))
            offer = (
                f"write {owner.__name__}(...).{name}"
                if name in _METHODS
                else f"it has {', '.join(constructors) or 'none'}"
            )
            self._fail(node, f"{owner.__name__} has no constructor {name!r}; {offer}.")
        if not isinstance(owner, Kernel):
            self._fail(node, f"{self._source(function.value)!r} is not a kernel and has no method {name!r}.")
        if name in _TAKES_MORE:
            self._fail(node, f"{name} {_TAKES_MORE[name]}, which text cannot hold; build the kernel in Python.")
        if name not in _METHODS:
            matches = get_close_matches(name, sorted(_METHODS), n=1)
            offer = f"did you mean {matches[0]}?" if matches else f"there are {', '.join(sorted(_METHODS))}."
            self._fail(node, f"kernels have no method {name!r} here; {offer}")
        return self._apply(node, name, getattr(owner, name))

    def _apply(self, node: ast.Call, name: str, function: Callable[..., Any]) -> Any:
        arguments = [self._value(item) for item in node.args]
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            passed = self._named(keyword.value) if keyword.arg is None else {keyword.arg: self._value(keyword.value)}
            for twice in passed.keys() & keywords.keys():
                self._fail(keyword.value, f"{name}: {twice} is given twice.")
            for internal in passed.keys() & _INTERNAL:
                self._fail(node, f"{name}: {internal} is not a parameter; it takes {_parameters(function)}.")
            keywords.update(passed)
        for item, value in zip(node.args, arguments, strict=True):
            if inspect.isclass(value):
                self._fail(item, f"{self._source(item)} is the name of a kernel; write {self._source(item)}().")
        try:
            inspect.signature(function).bind(*arguments, **keywords)
        except TypeError as error:
            advice = right_call(self._names[name], arguments, keywords) if inspect.isclass(function) else None
            self._fail(node, advice or f"{name}: {error}; it takes {_parameters(function)}.")
        return self._made(node, lambda: function(*arguments, **keywords))

    def _named(self, node: ast.expr) -> dict[str, Any]:
        """Arguments given as ``**{"left.length_scale": (0.1, 10)}``, which is how bounds of parts print."""
        if not isinstance(node, ast.Dict):
            self._fail(node, "** takes names and values in braces, as in bounded(**{'left.factor': (0.1, 10)}).")
        named = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                self._fail(node, "the names in braces after ** must be texts.")
            named[key.value] = self._value(value)
        return named

    def _made(self, node: ast.expr, make: Callable[[], Any]) -> Any:
        """What ``make`` returns; errors in its values are reported with the position in the text."""
        try:
            return make()
        except (MercerError, TypeError, ValueError, OverflowError, IndexError) as error:
            self._fail(node, f"{self._source(node)!r}: {error}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _parameters(function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.items()
    names = [str(p) for n, p in parameters if n not in (*_INTERNAL, "self", "cls")]
    return ", ".join(name.split(":")[0].strip() for name in names) or "nothing"


_READERS: dict[type, Callable[[_Reader, Any], Any]] = {
    ast.Constant: _Reader._constant,
    ast.Name: _Reader._name,
    ast.List: _Reader._sequence,
    ast.Tuple: _Reader._sequence,
    ast.UnaryOp: _Reader._unary,
    ast.BinOp: _Reader._binary,
    ast.Call: _Reader._call,
}
