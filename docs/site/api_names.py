"""Docstrings as Sphinx needs them: which members are shown, fitted attributes in types, references to public names."""

from __future__ import annotations

import importlib
import re
from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn and Python define: its pages say it better."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(function, "__module__", None)
    foreign = isinstance(module, str) and module.split(".")[0] != "mercer"
    return True if foreign and what == "class" else None


def _escape(app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    """Keep fitted attributes in plain text, such as ``(n_features_in_,)``, from being read as links."""
    for i, line in enumerate(lines):
        parts = re.split(r"(`+[^`]*`+_?)", line)
        parts[::2] = [re.sub(r"\b([A-Za-z]\w*)_(?=[,.;:)\]\s]|$)", r"\1\\_", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def _exists(name: str) -> bool:
    """Whether a dotted name leads to a module or object of Mercer."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def _resolve(app: Any, env: Any, node: Any, content: nodes.TextElement) -> nodes.Node | None:
    """Find the public name that ends as the reference does; names that exist but have no page stay text."""
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"]
    objects = env.get_domain("py").objects
    last = wanted.rsplit(".", 1)[-1]
    here = node.get("py:class")
    module = node.get("py:module") or "mercer"
    candidates = [f"{module}.{here}.{last}"] if here and "." not in wanted else []
    candidates += [name for name in objects if name == f"mercer.{wanted}" or name.endswith(f".{wanted}")]
    candidates += [name for name in objects if name.rsplit(".", 1)[-1] == last and last[:1].isupper()]
    for name in candidates:
        if name in objects:
            entry = objects[name]
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)
    return content if wanted.startswith("mercer.") and _exists(wanted) else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-skip-member", _skip)
    # After numpydoc, which writes the types.
    app.connect("autodoc-process-docstring", _escape, priority=1000)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
