"""Every stored attribute of every estimator with another type, shape, length or value: refused, or without effect."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from estimator_table import ONE_EACH
from fuzz.model_cases import CASES as MORE
from fuzz.model_worker import answers, parts
from mercer import __version__
from mercer._errors import ModelFileError
from mercer.data.objects import Objects
from mercer.kernels.base import Expression
from mercer.kernels.centring import FrozenArray
from mercer.persistence import decode
from mercer.persistence import registry as known
from mercer.persistence.decode import Decoder
from mercer.persistence.encode import Encoder
from mercer.persistence.registry import registry

KNOWN = registry()


@pytest.fixture(scope="module", autouse=True)
def _fields_asked_for_once() -> Iterator[None]:
    """What a class allows is the same each time, and to ask for it is most of what a small file takes to read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "record_fields", functools.cache(known.record_fields))
        patch.setattr(decode, "check_attribute", functools.cache(known.check_attribute))
        yield


FIRST = [str(case.id) for case in ONE_EACH]
NOT_NUMBERS = {"text": "forged", "flag": True, "none": None}
VALUES = {"negative": -5, "zero": 0, "huge": 10**30, "huge float": 1e300}
# Of any length: names of conditions, sentences, names of tuned parameters, ascents of a search, steps of a descent,
# labels of rows that are not kept, quantiles of errors, and where the next fit begins, whose width depends on the
# approximation of that one.
ANY_LENGTH = {"violations", "storage", "tuning", "trials", "inertia_history_", "labels_", "_state"}
ANY_LENGTH |= {"residual_quantiles_"}
# Numbers that another model could have as well; their types and signs are checked.
ANY_VALUE = {"slope_", "thresholds_", "phase_", "alpha_", "beta_", "intercept_", "total", "_center", "target_mean_"}
ANY_VALUE |= {"target_scale_", "noise_"}
# What users write themselves, checked by its constructor.
GIVEN = {n for n, cls in KNOWN.records.classes.items() if issubclass(cls, (Expression, Objects, FrozenArray))}


class Unshared(Encoder):
    """Writes what is shared as often as it occurs, so that one attribute can be changed alone."""

    def child(self, value: Any, path: str, depth: int = 0) -> Any:
        self._rows.clear()
        return super().child(value, path, depth)


Change = tuple[str, str, bool, dict[int, Any], dict[str, np.ndarray]]


def changes(encoder: Unshared) -> Iterator[Change]:
    """Class and attribute, what is changed, whether the form is and not just a value, other rows, other arrays."""
    for row, node in enumerate(encoder.nodes):
        for name, value in node["fields"].items() if "fields" in node else ():
            where = f"{node['class']}.{name}"
            for what, other in {**NOT_NUMBERS, **VALUES}.items():
                if type(other) is not type(value) or other != value:
                    form = what in ("text", "flag") and type(other) is not type(value)
                    yield where, what, form, {row: {**node, "fields": {**node["fields"], name: other}}}, {}
            if isinstance(value, list):
                yield from changes_inside(encoder, where, value[0])


def changes_inside(encoder: Unshared, where: str, row: int) -> Iterator[Change]:
    node = encoder.nodes[row]
    if node["kind"] == "float":
        yield where, "nan", False, {row: {**node, "value": "nan"}}, {}
    if node["kind"] in ("list", "tuple", "dict") and node["items"]:
        for what, items in {"fewer": node["items"][:-1], "more": node["items"] + node["items"][:1]}.items():
            yield where, what, True, {row: {**node, "items": items}}, {}
    if node["kind"] != "array":
        return
    array = encoder.arrays[node["data"]]
    array = array.T if node["order"] == "F" else array
    for what, form, other in other_arrays(array):
        yield where, what, form, {row: {**node, "order": "C"}}, {node["data"]: other}


def other_arrays(array: np.ndarray) -> Iterator[tuple[str, bool, np.ndarray]]:
    yield "type", True, array.astype(np.int64) if array.dtype.kind == "f" else np.zeros(array.shape)
    yield "one more axis", True, array[None]
    if array.ndim > 1:
        yield "one axis", True, array.ravel()
    for axis in range(array.ndim if array.size else 0):
        yield f"shorter along {axis}", True, np.delete(array, -1, axis)
        yield f"longer along {axis}", True, np.concatenate([array, np.take(array, [-1], axis)], axis)
    if array.dtype.kind == "f" and array.size:
        for value in (np.nan, np.inf):
            other = array.copy()
            other.flat[0] = value
            yield str(value), False, other


def bits(result: dict[str, Any]) -> dict[str, Any]:
    return {name: [(part.shape, part.tobytes()) for part in parts(answer)] for name, answer in result.items()}


def parameters(cls: str) -> list[str]:
    classes = KNOWN.estimators.classes
    return classes[cls]._get_param_names() if cls in classes and issubclass(classes[cls], BaseEstimator) else []


def outcome(encoder: Unshared, root: Any, change: Change, expected: dict[str, Any], rows: Any) -> str:
    _, _, _, nodes, arrays = change
    table = {"root": root, "nodes": [nodes.get(row, node) for row, node in enumerate(encoder.nodes)]}
    try:
        model = Decoder({**encoder.arrays, **arrays}, __version__, KNOWN).decode(table)
    except ModelFileError:
        return "refused"
    return "same" if bits(answers(model, rows)) == expected else "other"


def accepted(name: str, first: int = 0, step: int = 1) -> list[str]:
    """What is neither refused nor without effect, of every ``step``-th change."""
    make, rows = MORE[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model = make()
        encoder = Unshared()
        try:
            root = encoder.child(model, name)
        except ModelFileError:
            return []
        expected = bits(answers(model, rows))
        assert outcome(encoder, root, ("", "", False, {}, {}), expected, rows) == "same"
        odd = []
        for change in itertools.islice(changes(encoder), first, None, step):
            where, what, form, *_ = change
            cls, _, attribute = where.rpartition(".")
            # What the constructor takes may be set by users at any time; a fit checks it.
            if attribute in parameters(cls) or cls.startswith("sklearn.") or cls in GIVEN:
                continue
            result = outcome(encoder, root, change, expected, rows)
            free = ANY_LENGTH if form else ANY_VALUE
            if attribute not in free and (result == "other" or (form and result == "same")):
                odd.append(f"{where}: {what}")
        return odd


@pytest.mark.parametrize("name", FIRST)
def test_every_stored_attribute_is_checked(name: str) -> None:
    assert accepted(name) == []


OTHERS = [name for name in MORE if name not in FIRST and not name.startswith("kernel ")]


# Models of a class share most of their attributes: each second change of one, and the others of the next.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "first"), [(name, number % 2) for number, name in enumerate(OTHERS)])
def test_stored_attributes_of_more_models(name: str, first: int) -> None:
    assert accepted(name, first, 2) == []
