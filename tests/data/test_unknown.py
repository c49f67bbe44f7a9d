"""The note about categories that a model has not seen in training."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from mercer.data.encoding import TableEncoder
from mercer.data.feature_table import FeatureTable
from mercer.data.unknown import one_note_a_column

TRAINING = pd.DataFrame({"town": ["Ulm", "Zug"] * 6, "size": range(12)})
NEW = pd.DataFrame({"town": ["Rom", "Rom", "Ulm"], "size": [1, 2, 3]})


@pytest.mark.parametrize("encoder", [FeatureTable(), TableEncoder()], ids=["features", "indicators"])
def test_blocks_have_one_note_a_column(encoder: FeatureTable | TableEncoder) -> None:
    encoder.fit(TRAINING)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        for _ in range(2):
            encoder.transform(NEW, source="new.csv")
    assert [str(note.message).partition(", which")[0] for note in notes] == [
        "new.csv: column 'town' holds 'Rom' in 2 rows"
    ] * 2
    with warnings.catch_warnings(record=True) as notes, one_note_a_column():
        warnings.simplefilter("always")
        for _ in range(2):
            with one_note_a_column():
                encoder.transform(NEW, source="new.csv")
    assert [str(note.message).partition(", which")[0] for note in notes] == [
        "new.csv: column 'town' holds categories such as 'Rom'"
    ]
