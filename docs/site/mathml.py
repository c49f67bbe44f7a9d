"""Formulas as MathML, which browsers draw themselves: without scripts, and without a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def mathml(formula: str, display: str = "inline") -> str:
    """Return a LaTeX formula as MathML.

    The converter does not know large bars and angles, ``\\arg\\min`` and escaped underscores in words.
    """
    formula = re.sub(r"\\[Bb]ig[lr]\s*(?=\\)", "", formula.strip())
    formula = formula.replace(r"\arg\min", r"\operatorname{argmin}").replace(r"\arg\max", r"\operatorname{argmax}")
    formula = re.sub(r"\\text\{[^}]*\}", lambda words: words.group().replace(r"\_", "_"), formula)
    written = convert(formula, display=display)
    # Bars stand close to what they enclose, and those of a norm do not grow with an exponent.
    written = re.sub(
        '<mo(?: fence="false")?(?: stretchy="false")?>(&#x02016;|&#x0007C;)</mo>',
        r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>',
        written,
    )
    if "\\" in written:
        raise ValueError(f"a command in this formula has no counterpart in MathML: {formula}")
    return written


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
