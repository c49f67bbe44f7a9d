"""Private names: those of scikit-learn are imported in one module only, those of estimators are not used above them."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import validation

import mercer
from mercer import _sklearn

SOURCES = sorted(Path(mercer.__file__).parent.rglob("*.py"))


def private_names(tree: ast.AST) -> list[str]:
    """Names of scikit-learn with a leading underscore that a module imports, or takes from what it imported."""
    uses, modules = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sklearn":
            uses += [f"{node.module}.{a.name}" for a in node.names]
            modules |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Import):
            names = [a for a in node.names if a.name.partition(".")[0] == "sklearn"]
            uses += [a.name for a in names]
            modules |= {a.asname or "sklearn" for a in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            uses.append(f"{node.value.id}.{node.attr}")
    return [n for n in uses if any(p.startswith("_") and not p.startswith("__") for p in n.split("."))]


def test_no_other_module_imports_them() -> None:
    assert len(SOURCES) > 300
    texts = {path.name: path.read_text(encoding="utf-8") for path in SOURCES}
    uses = {name: private_names(ast.parse(text)) for name, text in texts.items() if "sklearn" in text}
    assert len(uses) > 100
    assert {name: names for name, names in uses.items() if names} == {}
    # In that one module they are looked up by name, so that a version without them is no error.
    assert "getattr(validation, name, own)" in Path(_sklearn.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn.utils.validation import check_array, _check_y",
        "from sklearn.utils import _tags as tags",
        "import sklearn.utils._param_validation",
        "import sklearn.utils.validation as v\nv._check_y(1)",
        "from sklearn.linear_model._base import LinearModel",
    ],
)
def test_they_are_recognised(source: str) -> None:
    assert private_names(ast.parse(source))
    assert private_names(ast.parse("from sklearn.base import clone\nclone(1).__class__")) == []


def outcome(function: Any, *arguments: Any, **options: Any) -> Any:
    """The result, or the kind of error."""
    try:
        return function(*arguments, **options)
    except (ValueError, TypeError) as error:
        return ValueError if isinstance(error, ValueError) else TypeError


def assert_alike(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        np.testing.assert_array_equal(ours, theirs, strict=isinstance(theirs, np.ndarray))


TARGETS = [
    [1.0, 2.0],
    np.array([1, 2]),
    [[1.0], [2.0]],
    [[1.0, 2.0], [3.0, 4.0]],
    [1.0, np.nan],
    [1.0, np.inf],
    ["1", "b"],
    np.array([1, 2.5], object),
    np.array(["1", 2.5], object),
    [1j, 2.0],
    [],
    3.0,
    None,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("y", TARGETS, ids=repr)
@pytest.mark.parametrize("several", [False, True])
def test_targets(y: Any, several: bool) -> None:
    options: dict[str, Any] = {"multi_output": several, "y_numeric": True}
    assert_alike(outcome(_sklearn._own_check_y, y, **options), outcome(validation._check_y, y, **options))


@pytest.mark.parametrize("weight", [None, 2, 0.5, [1, 2], [1.0], [1.0, np.nan], [[1.0], [2.0]], ["a", "b"]], ids=repr)
def test_weights(weight: Any) -> None:
    X = np.ones((2, 3))
    ours, theirs = (
        outcome(check, weight, X, dtype=np.float64)
        for check in (_sklearn._own_check_sample_weight, validation._check_sample_weight)
    )
    assert_alike(ours, theirs)


@pytest.mark.parametrize("reset", [True, False])
def test_numbers_of_columns(reset: bool) -> None:
    for known in ({}, {"n_features_in_": 3}, {"n_features_in_": 2}):
        learners = SimpleNamespace(**known), SimpleNamespace(**known)
        X = np.ones((2, 3))
        assert_alike(
            outcome(_sklearn._own_check_n_features, learners[0], X, reset),
            outcome(validation._check_n_features, learners[1], X, reset),
        )
        assert vars(learners[0]) == vars(learners[1])


def test_names_of_columns() -> None:
    fitted, other = mercer.SVC(), mercer.SVC()
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    _sklearn._own_check_feature_names(fitted, table, reset=True)
    validation._check_feature_names(other, table, reset=True)
    assert fitted.feature_names_in_.tolist() == other.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        _sklearn._own_check_feature_names(fitted, table[["b", "a"]], reset=False)
    for given in (None, ["a", "b"], ["b", "a"], ["a"]):
        for names in ({}, {"feature_names_in_": np.array(["a", "b"], object)}):
            learner = SimpleNamespace(n_features_in_=2, **names)
            assert_alike(
                outcome(_sklearn._own_check_feature_names_in, learner, given),
                outcome(validation._check_feature_names_in, learner, given),
            )


def test_the_stand_ins_serve_where_a_name_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(validation, "_check_y")
    assert _sklearn._scikit_learns("_check_y", _sklearn._own_check_y) is _sklearn._own_check_y


@pytest.mark.parametrize("room", ["certification", "plotting", "selection"])
def test_rooms_above_the_estimators_call_their_public_methods_only(room: str) -> None:
    uses = []
    for path in (Path(mercer.__file__).parent / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                uses += [] if own else [f"{path.name}: {ast.unparse(node)}"]
    assert uses == []
