"""Files with a right checksum in which one field has a value of another kind."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from forgery import forge
from mercer import SVC, GaussianProcessRegressor, KernelRidge, load, save
from mercer._errors import MercerError, ModelFileError
from mercer.estimators.table import TableModel

SIZES = np.arange(1.0, 31.0)
FRAME = pd.DataFrame({"size": SIZES, "town": ["Ulm", "Zug", "Bern"] * 10})
WRONG: list[Any] = ["other", -3, 1e308, None, True, {}]


def table_model(name: str) -> TableModel:
    if name == "ridge":
        model = TableModel(KernelRidge(kernel="rbf"), target="price", impute="median")
        return model.fit(FRAME, SIZES % 7).calibrate(FRAME, SIZES % 7, folds=2)
    if name == "svc":
        return TableModel(SVC(), target="cheap").fit(FRAME, np.where(SIZES % 7 < 3, "yes", "no"))
    return TableModel(GaussianProcessRegressor(optimizer=None), target="price").fit(FRAME, SIZES % 7)


class Saved:
    """A model file, and copies of it with other fields."""

    def __init__(self, model: Any, path: Path) -> None:
        save(model, path)
        raw = path.read_bytes()
        end = 8 + struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:end])
        self.path, self.data, self.texts = path, raw[end:], header.pop("__metadata__")
        self.entries, self.table = header, json.loads(self.texts.pop("model"))

    def write(self, number: int, name: str, value: Any) -> Any:
        """Write the file with one field changed, and load it; an empty dictionary stands for one of an earlier row."""
        nodes = list(self.table["nodes"])
        if value == {}:
            value = next(([n] for n in range(number) if nodes[n]["kind"] == "dict"), "none before")
        nodes[number] = {**nodes[number], "fields": {**nodes[number]["fields"], name: value}}
        texts = {key: text for key, text in self.texts.items() if key not in ("format", "sha256", "bytes")}
        forge(self.path, {**texts, "model": json.dumps({**self.table, "nodes": nodes})}, self.entries, self.data)
        return load(self.path)

    def fields(self) -> list[tuple[int, str, str]]:
        """Row, class and name of every field."""
        nodes = enumerate(self.table["nodes"])
        return [(n, node["class"], name) for n, node in nodes if "fields" in node for name in node["fields"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ridge", "svc", "gp"])
def test_a_field_of_another_kind_is_refused_or_does_no_harm(tmp_path: Path, name: str) -> None:
    saved = Saved(table_model(name), tmp_path / "model.mercer")
    refused = 0
    for turn, (number, _, field) in enumerate(saved.fields()):
        try:
            model = saved.write(number, field, WRONG[turn % len(WRONG)])
        except ModelFileError:
            refused += 1
            continue
        try:
            model.predict(FRAME)
            for answer in ("predict_std", "interval", "decision_function"):
                if hasattr(model, answer):
                    getattr(model, answer)(FRAME)
        except MercerError:
            refused += 1
    assert refused > len(saved.fields()) // 3


@pytest.mark.parametrize("wrong", [{}, "other", None, -1.0])
def test_the_variance_of_observations(tmp_path: Path, wrong: Any) -> None:
    saved = Saved(table_model("gp"), tmp_path / "model.mercer")
    # The fitted one; the first is the unfitted copy.
    number = [n for n, cls, field in saved.fields() if (cls, field) == ("mercer.GaussianProcessRegressor", "alpha")][-1]
    with pytest.raises(ModelFileError, match="alpha is not a variance"):
        saved.write(number, "alpha", wrong)


@pytest.mark.parametrize("wrong", [{}, "other", None, 2])
def test_the_estimator_of_a_table_model(tmp_path: Path, wrong: Any) -> None:
    saved = Saved(table_model("svc"), tmp_path / "model.mercer")
    (number,) = [number for number, cls, field in saved.fields() if (cls, field) == ("mercer.TableModel", "estimator")]
    with pytest.raises(ModelFileError, match=r"TableModel\.estimator must be of the class"):
        saved.write(number, "estimator", wrong)
