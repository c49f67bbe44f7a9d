"""A pytest plugin that puts Mercer's estimators in the place of scikit-learn's, before tests are collected.

Test modules then import them under their usual names. What Mercer does not have, such as ``LinearSVC``, stays
scikit-learn's.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

import pytest

import mercer

# The variable of the environment that names the file to which results are written.
REPORT = "MERCER_SKLEARN_REPORT"

CLASSES = {
    "sklearn.svm": ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"),
    "sklearn.gaussian_process": ("GaussianProcessRegressor",),
    "sklearn.decomposition": ("KernelPCA",),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.model_selection": ("GridSearchCV", "RandomizedSearchCV"),
}


_passed: list[str] = []
_failed: dict[str, str] = {}


def pytest_configure() -> None:
    """Replace the classes; called by pytest."""
    for module, names in CLASSES.items():
        for name in names:
            setattr(import_module(module), name, getattr(mercer, name))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what became of a test; those that are skipped or expected to fail are left out."""
    name = report.nodeid.rpartition("::")[2]
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _failed[name] = str(report.longrepr if crash is None else crash.message)
    elif report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
        _passed.append(name)


def pytest_sessionfinish() -> None:
    """Write the results: names with parameters, and for failures the messages."""
    text = json.dumps({"passed": [name for name in _passed if name not in _failed], "failed": _failed})
    Path(os.environ[REPORT]).write_text(text, encoding="utf-8")
