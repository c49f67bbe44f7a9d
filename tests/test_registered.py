"""The index of models is what the estimators say of themselves, and no list of them loads an estimator."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import pytest
from sklearn.base import is_classifier

import mercer
from mercer._registered import MODELS, command_line_of, model_class


def test_the_index_of_models_is_what_the_classes_say() -> None:
    stated: dict[str, dict[str, str]] = defaultdict(dict)
    for name in mercer.__all__:
        cls = getattr(mercer, name)
        for model in command_line_of(cls).models.split() if isinstance(cls, type) else ():
            stated[model]["classification" if is_classifier(cls()) else "regression"] = f"mercer.{name}"
    own = {
        model: tasks for model, tasks in MODELS.items() if any(name.startswith("mercer.") for name in tasks.values())
    }
    assert own == stated


@pytest.mark.parametrize("model", [model for model in MODELS if model in "svc ridge gp gpc neighbors"])
def test_what_a_class_says_of_itself_holds(model: str) -> None:
    for task in MODELS[model]:
        cls = model_class(model, task)
        use = command_line_of(cls)
        parameters = cls().get_params()
        assert {*use.parameters, *([use.left_open] if use.left_open else []), "kernel"} <= parameters.keys()
        assert not use.seeded or "random_state" in parameters
        # Advice to use another model names one for the same task.
        assert not use.pair_bytes or task in MODELS[use.frugal]


def test_the_list_of_models_loads_no_estimator() -> None:
    code = "import sys, mercer.cli.app; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(process.stdout.split())
    assert "mercer._registered" in loaded
    assert not loaded & {"sklearn", "numba", "scipy", "mercer.estimators"}
