"""Every learner with a user-defined kernel, and its model file; in a process of its own, since classes stay registered.

Called with the name of a module in ``examples/extending``; prints ``ok`` for each learner.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import mercer

ROWS = np.random.default_rng(0)


def rows_and_kernel(name: str) -> tuple[Any, Any]:
    module = importlib.import_module(name)
    if name == "vector_kernel":
        return ROWS.normal(size=(40, 3)), 2.0 * module.Cauchy(1.5)
    names = ["flour", "water", "salt", "sugar", "butter", "eggs", "oil"]
    recipes = [dict(zip(names, ROWS.integers(0, 300, 7).tolist(), strict=True)) for _ in range(40)]
    return module.Recipes.of(recipes), module.SharedIngredients().normalized()


def main(name: str) -> None:
    warnings.simplefilter("ignore")
    X, kernel = rows_and_kernel(name)
    classes, numbers = ROWS.permutation(np.arange(40) % 2), ROWS.normal(size=40)
    for learner in mercer.__all__:
        cls = getattr(mercer, learner)
        if not hasattr(cls, "fit") or "kernel" not in inspect.signature(cls).parameters:
            continue
        model = cls(kernel=kernel)
        if "optimizer" in model.get_params():
            model.set_params(optimizer=None)
        model.fit(X, classes if is_classifier(model) or "Ordinal" in learner else numbers)
        path = Path(tempfile.mkdtemp()) / "model.mercer"
        mercer.save(model, path)
        again = mercer.load(path)
        answer = "predict" if hasattr(model, "predict") else "transform"
        assert np.array_equal(getattr(again, answer)(X), getattr(model, answer)(X)), learner
        print("ok", learner)


if __name__ == "__main__":
    main(sys.argv[1])
