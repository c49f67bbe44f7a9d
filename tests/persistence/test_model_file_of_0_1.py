"""Model files that version 0.1.0 wrote are read, and the models answer as they did then.

The models were fitted to the first twelve rows of ``estimator_table.X``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn

from estimator_table import X
from mercer import load
from mercer.estimators.table import TableModel
from mercer.persistence import container

WRITTEN = Path(__file__).parent / "written"
ANSWERS = json.loads((WRITTEN / "answers.json").read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("ignore:the model was saved with scikit-learn")
@pytest.mark.parametrize("name", ANSWERS)
def test_models_of_0_1_answer_as_they_did(name: str) -> None:
    path = WRITTEN / f"{name}.mercer"
    ours = name not in ("TableModel", "SVC-calibrated")
    if not ours and container.read(path)[0]["sklearn_version"] != sklearn.__version__:
        pytest.skip("holds objects of another version of scikit-learn")
    model, rows = load(path), X[12:15]
    if isinstance(model, TableModel):
        rows = pd.DataFrame(rows, columns=list("abc")).assign(d=list("uvw"))
    for method, expected in ANSWERS[name].items():
        answer = getattr(model, method)(rows)
        if np.asarray(expected).dtype.kind == "f":
            np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-12)
        else:
            assert answer.tolist() == expected
