"""What learners answer on one set of rows in each form, beside numbers that are stored with the tests.

They guard changes of the structure: a new way to the same fit gives the same function and the same certificate, within
the tolerance of the fit. ``python tests/test_golden.py`` writes the numbers anew, where a change of them is meant.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mercer
from estimator_table import ALL, RESTRICTED, X

STORED = Path(__file__).with_name("golden.json")
WEIGHTS = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
FORMS = ("float64", "float32", "sparse", "weights", "blocks")
ROWS = X[:8]


def answers(model: Any, y: np.ndarray, form: str) -> dict[str, Any] | None:
    """Numbers of a fit to rows in a form, or None where the learner refuses the form."""
    model, options = clone(model), {}
    rows: Any = X
    if form == "float32":
        rows = X.astype(np.float32)
    elif form == "sparse":
        rows = sp.csr_matrix(X)
    elif form == "weights":
        if "sample_weight" not in inspect.signature(model.fit).parameters:
            return None
        options["sample_weight"] = WEIGHTS
    elif form == "blocks":
        rows, y = mercer.Blocks(X, y, rows_per_block=25), None  # type: ignore[assignment]
    try:
        model.fit(rows, y, **options) if y is not None else model.fit(rows)
    except (mercer.MercerError, TypeError, ValueError):
        return None
    certificate = getattr(model, "certificate_", None)
    methods = ("transform", "decision_function", "predict_proba", "predict", "score_samples")
    values = np.asarray(next(getattr(model, name) for name in methods if hasattr(model, name))(ROWS))
    found: dict[str, Any] = {"values": values.astype(float if values.dtype.kind == "f" else str).tolist()}
    if hasattr(certificate, "primal"):
        found |= {"primal": certificate.primal, "status": str(certificate.status.name)}
    return found


CASES = [(case.id, form) for case in [*ALL, *RESTRICTED] for form in FORMS]
MODELS = {case.id: case.values for case in [*ALL, *RESTRICTED]}


@pytest.mark.parametrize(("name", "form"), CASES)
def test_answers_are_those_that_are_stored(name: str, form: str) -> None:
    expected = json.loads(STORED.read_text())[f"{name} on {form}"]
    found = answers(*MODELS[name], form)
    assert (found is None) == (expected is None)
    if found is None or expected is None:
        return
    one, other = np.array(found["values"]), np.array(expected["values"])
    if one.dtype.kind == "U":
        assert (one == other).mean() > 0.85
    else:
        np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=0, atol=0.02 * np.abs(other).max())
    assert found.get("status") == expected.get("status")
    if "primal" in expected:
        np.testing.assert_allclose(found["primal"], expected["primal"], rtol=5e-3, atol=1e-9)


def write() -> None:
    """Store what the learners answer now."""
    lines = {f"{name} on {form}": answers(*MODELS[name], form) for name, form in CASES}
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in lines.items())
    STORED.write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    write()
