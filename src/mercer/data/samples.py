"""Sample data sets: those bundled with scikit-learn, and some that are generated from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import datasets

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.sample_text import messages
from mercer.data.table import Table, nearest


@dataclass(frozen=True)
class Sample:
    """A sample data set: its name, task, size, what it is, how to make it, and the roles of its columns."""

    name: str
    task: str
    rows: int
    columns: int
    about: str
    make: Callable[[], Any]
    roles: dict[str, str] = field(default_factory=dict)


def _bundled(loader: Callable[..., Any], target: str) -> Callable[[], Any]:
    def make() -> tuple[np.ndarray, np.ndarray, list[str], str]:
        bunch = loader()
        y = bunch.target
        if (
            "target_names" in bunch
            and bunch.target_names is not None
            and np.asarray(bunch.target_names).dtype.kind == "U"
        ):
            y = np.asarray(bunch.target_names)[y]
        return bunch.data, y, [str(name) for name in bunch.feature_names], target

    return make


def _generated(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str], str]:
    return X, y, [f"x{j}" for j in range(X.shape[1])], "y"


def _messages() -> tuple[Any, np.ndarray, list[str], str]:
    texts, hours, kinds = messages()
    columns = optional("pandas", "loading a sample").DataFrame({"message": texts, "hour": hours})
    return columns, kinds, list(columns.columns), "kind"


def _sinc() -> tuple[np.ndarray, np.ndarray, list[str], str]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-10.0, 10.0, (500, 1))
    return _generated(X, np.sinc(X[:, 0] / np.pi) + 0.1 * generator.standard_normal(500))


_SAMPLES = {
    sample.name: sample
    for sample in (
        Sample("iris", "classification", 150, 4, "species by size of leaves",
               _bundled(datasets.load_iris, "species")),
        Sample("wine", "classification", 178, 13, "cultivars by chemical analysis",
               _bundled(datasets.load_wine, "cultivar")),
        Sample("breast_cancer", "classification", 569, 30, "tumours by their cell nuclei",
               _bundled(datasets.load_breast_cancer, "diagnosis")),
        Sample("digits", "classification", 1797, 64, "handwritten, 8 x 8 pixels",
               _bundled(datasets.load_digits, "digit")),
        Sample("diabetes", "regression", 442, 10, "progress after one year",
               _bundled(datasets.load_diabetes, "progression")),
        Sample("moons", "classification", 500, 2, "generated: two half moons",
               lambda: _generated(*datasets.make_moons(500, noise=0.2, random_state=0))),
        Sample("circles", "classification", 500, 2, "generated: ring round a disc",
               lambda: _generated(*datasets.make_circles(500, noise=0.1, factor=0.5, random_state=0))),
        Sample("friedman1", "regression", 500, 10, "generated: 5 noise columns",
               lambda: _generated(*datasets.make_friedman1(500, noise=1.0, random_state=0))),
        Sample("friedman2", "regression", 500, 4, "generated: impedance",
               lambda: _generated(*datasets.make_friedman2(500, noise=125.0, random_state=0))),
        Sample("sinc", "regression", 500, 1, "generated: noisy sin(x)/x", _sinc),
        Sample("swiss_roll", "regression", 1000, 3, "generated: place on a roll",
               lambda: _generated(*datasets.make_swiss_roll(1000, noise=0.5, random_state=0))),
        Sample("messages", "classification", 240, 2, "generated: text, and its hour", _messages, {"message": "text"}),
    )
}  # fmt: skip


def samples() -> tuple[Sample, ...]:
    """Every sample data set with its task, size and description; nothing is loaded.

    >>> samples()[0].rows
    150
    """
    return tuple(_SAMPLES.values())


def load_sample(name: str) -> Table:
    """The sample data set of that name, as a table with its target as the default.

    Raises
    ------
    DataError
        If there is none of that name; the nearest names are offered.

    Examples
    --------
    >>> load_sample("moons").columns.shape
    (500, 2)
    """
    if name not in _SAMPLES:
        near = nearest(name, _SAMPLES)
        offer = f"Did you mean {' or '.join(near)}? " if near else ""
        raise DataError(f"there is no sample {name!r}. {offer}The samples are {', '.join(_SAMPLES)}.")
    pandas = optional("pandas", "loading a sample")
    X, y, names, target = _SAMPLES[name].make()
    roles = dict(_SAMPLES[name].roles)
    return Table(
        pandas.DataFrame(X, columns=names), f"sample:{name}", {target: np.asarray(y)}, target, roles=roles
    )  # fmt: skip
