"""No function has more than seven parameters: those that belong together are one object."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import mercer

SOURCE = Path(mercer.__file__).parent
MOST = 7
# Comparisons of samples, whose parameters are public.
PUBLIC = {"comparison.py": {"mmd", "hsic"}}


def crowded(tree: ast.AST) -> set[str]:
    """Functions with too many parameters, not counting ``self``; those of a class have its name in front."""
    owners = {id(f): node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for f in node.body}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            positional = node.args.posonlyargs + node.args.args
            first = 1 if positional and positional[0].arg in ("self", "cls") else 0
            if len(positional) - first + len(node.args.kwonlyargs) > MOST:
                names.add(f"{owners[id(node)]}.{node.name}" if id(node) in owners else node.name)
    return names


def may_be_crowded(text: str) -> bool:
    """Whether from any ``def`` to the next line that ends in a colon there are enough commas."""
    return any(definition.count(",") >= MOST for definition in re.findall(r"\bdef .*?:\n", text, re.S))


def is_constructor_of_estimator(module: str, name: str) -> bool:
    """Whether scikit-learn reads the parameters of a model from the signature of this function."""
    owner, _, method = name.partition(".")
    known = getattr(importlib.import_module(module), owner, None)
    return method == "__init__" and isinstance(known, type) and issubclass(known, BaseEstimator)


def test_no_function_has_more_than_seven() -> None:
    functions = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(("mercer", *parts)).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        names = crowded(ast.parse(text)) if may_be_crowded(text) else set()
        if names := {name for name in names if not is_constructor_of_estimator(module, name)}:
            functions[path.relative_to(SOURCE).as_posix()] = names
    assert functions == PUBLIC, "group parameters that belong together in a NamedTuple or a dataclass"


@pytest.mark.parametrize(
    "signature",
    ["a, b, c, d, e, f, g", "a, b, c, d, /, e, f, *, g", "self, a, b, c, *, d, e, f, g", "*, a, b, c, d, e, f, g"],
)
def test_they_are_counted(signature: str) -> None:
    assert crowded(ast.parse(f"def work({signature}, **more): ...")) == set()
    assert crowded(ast.parse(f"class A:\n  def work({signature}, h): ...")) == {"A.work"}
    assert may_be_crowded(f"def work({signature}, h) -> None:\n    pass\n")
