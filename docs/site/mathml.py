"""Formulas as MathML, which browsers draw themselves: without scripts, and without a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    formula = node.astext().strip()
    # Lines with alignment marks are LaTeX's ``aligned`` in all but name.
    if "\\\\" in formula and "\\begin" not in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    translator.body.append(f'<div class="math">{convert(formula, display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
