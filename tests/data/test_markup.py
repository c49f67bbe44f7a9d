"""Kernels and certificates in notebooks."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from mercer import SVC
from mercer.data.markup import notebook_table
from mercer.kernels import RBF, Linear
from mercer.kernels.kernel import Kernel

EVIL = "<img src=x onerror=alert(1)>\u202e"


def _texts(html: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(html).iter() if node.text]


def test_cells_are_text() -> None:
    html = notebook_table(EVIL, [EVIL], [[EVIL, 1 / 3, None]])
    assert "<img" not in html and "\u202e" not in html
    assert _texts(html)[-2:] == ["0.333333", "None"]


def test_a_kernel_shows_its_parameters() -> None:
    kernel: Kernel = 0.5 * RBF([1.0, 3.0]) + Linear()
    texts = _texts(kernel._repr_html_())
    assert repr(kernel) in texts[0] and "positive" in texts[0]
    assert {p.name for p in kernel.parameters} <= set(texts)
    assert _texts(Linear()._repr_html_())


def test_a_certificate_shows_its_figures() -> None:
    model = SVC().fit(np.array([[0.0], [1.0], [2.0]]), [0, 1, 1])
    texts = _texts(model.certificate_._repr_html_())
    assert texts[0] == "Certificate" and f"{model.certificate_.primal:.6g}" in texts
    assert any(text.startswith("converged: ") for text in texts)
