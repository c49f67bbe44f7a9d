"""Every sample data set is what its listing says."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import DataError
from mercer.data.readers import read_table
from mercer.data.sample_rows import load_sample
from mercer.data.samples import samples
from mercer.data.target import read_target


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_sample_is_what_the_listing_says(sample):
    table = read_table(f"sample:{sample.name}")
    columns, values, name = table.split(None)
    assert columns.shape == (sample.rows, sample.columns)
    numbers = columns.drop(columns=list(table.roles)).select_dtypes("number")
    gaps = {"horsepower": 6} if sample.name == "cars" else {}
    assert numbers.isna().sum()[lambda its: its > 0].to_dict() == gaps and not np.isinf(numbers.to_numpy()).any()
    assert all(columns[name].map(len).min() > 0 for name in table.roles)
    assert read_target(values, name).task == sample.task


def test_samples_are_the_same_every_time():
    first, second = load_sample("sinc"), load_sample("sinc")
    assert first.columns.equals(second.columns)
    assert np.array_equal(first.targets["y"], second.targets["y"])


def test_unknown_sample_offers_the_nearest():
    with pytest.raises(DataError, match=r"no sample 'irs'. Did you mean iris"):
        load_sample("irs")
