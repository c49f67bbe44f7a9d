"""Factors of the terms of a kernel, learnt by the evidence of a Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mercer import GaussianProcessRegressor
from mercer.kernels import RBF, Spectrum, White

WEIGHED = 200.0


@pytest.mark.parametrize("kind", ["vectors", "strings", "table"])
def test_the_evidence_gives_an_informative_kernel_nearly_all_weight(kind: str) -> None:
    rng = np.random.default_rng(0)
    n = 60
    numbers, others = rng.uniform(-2, 2, n), rng.normal(size=(n, 2))
    texts = ["".join(rng.choice(list("abcd"), 10)) for _ in range(n)]
    rows: Any
    if kind == "strings":
        rows, y = texts, np.array([text.count("a") - text.count("b") for text in texts], dtype=float)
        terms = [Spectrum(1).normalized(), Spectrum(3).normalized(), Spectrum(5).normalized()]
    elif kind == "table":
        rows = pd.DataFrame({"text": texts, "x": numbers, "z": others[:, 0]})
        y = np.sin(2 * numbers)
        terms = [RBF(1.0).on(["x"]), RBF(1.0).on(["z"]), Spectrum(2).normalized().on(["text"])]
    else:
        rows, y = np.c_[numbers, others], np.sin(2 * numbers)
        terms = [RBF(1.0).on([column]) for column in range(3)]
    y = y + 0.1 * rng.standard_normal(n)
    kernel = 1.0 * terms[0].fixed() + 1.0 * terms[1].fixed() + 1.0 * terms[2].fixed() + White(0.1)
    learnt = GaussianProcessRegressor(kernel, normalize_y=True).fit(rows, y).kernel_
    weights = [term.factor for term in learnt.terms[:3]]
    assert weights[0] > WEIGHED * max(weights[1:]) and learnt.terms[3].variance < 0.3
