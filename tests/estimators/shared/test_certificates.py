"""What learners write of their certificates."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import mercer

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
VERBOSE = [
    getattr(mercer, name)
    for name in dir(mercer)
    if inspect.isclass(getattr(mercer, name))
    and hasattr(getattr(mercer, name), "fit")
    and "verbose" in inspect.signature(getattr(mercer, name)).parameters
    and not name.endswith("SearchCV")
]


@pytest.mark.parametrize("learner", VERBOSE, ids=lambda learner: learner.__name__)
def test_a_verbose_learner_writes_a_line_however_few_the_rows(learner: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner(verbose=verbose).fit(X, Y)
        lines = capsys.readouterr().err.splitlines()
        assert any(line.startswith("mercer: ") for line in lines) == verbose, lines


def test_the_line_has_the_figures_of_the_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    model = mercer.SVC(verbose=True).fit(X, Y)
    (line,) = capsys.readouterr().err.splitlines()
    certificate = model.certificate_
    assert line.startswith(f"mercer: SVC: converged, {certificate.iterations} steps in ")
    assert f"objective {certificate.primal:.5g}, relative gap {certificate.relative_gap:.1e}" in line
