"""The rows of the sample data sets that :mod:`mercer.data.samples` lists."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
from sklearn import datasets

from mercer._optional import optional
from mercer.data.sample_text import messages
from mercer.data.samples import find_sample
from mercer.data.table import Table


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


def _table(name: str, target: str) -> Callable[[], Any]:
    """A table of the UCI Machine Learning Repository, licence CC BY 4.0.

    Airfoil self-noise: T. F. Brooks, D. S. Pope and M. A. Marcolini (1989), doi:10.24432/C5VW2C. Cars: R. Quinlan, Auto
    MPG (1993), doi:10.24432/C5859H.
    """

    def make() -> tuple[Any, np.ndarray, list[str], str]:
        with resources.files("mercer.data").joinpath(f"{name}.csv").open("rb") as file:
            table = optional("pandas", "loading a sample").read_csv(file)
        columns = table.drop(columns=target)
        return columns, table[target].to_numpy(), list(columns.columns), target

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


_MAKERS: dict[str, Callable[[], Any]] = {
    "airfoil": _table("airfoil", "sound_db"),
    "cars": _table("cars", "mpg"),
    "iris": _bundled(datasets.load_iris, "species"),
    "wine": _bundled(datasets.load_wine, "cultivar"),
    "breast_cancer": _bundled(datasets.load_breast_cancer, "diagnosis"),
    "digits": _bundled(datasets.load_digits, "digit"),
    "diabetes": _bundled(datasets.load_diabetes, "progression"),
    "moons": lambda: _generated(*datasets.make_moons(500, noise=0.2, random_state=0)),
    "circles": lambda: _generated(*datasets.make_circles(500, noise=0.1, factor=0.5, random_state=0)),
    "friedman1": lambda: _generated(*datasets.make_friedman1(500, noise=1.0, random_state=0)),
    "friedman2": lambda: _generated(*datasets.make_friedman2(500, noise=125.0, random_state=0)),
    "sinc": _sinc,
    "swiss_roll": lambda: _generated(*datasets.make_swiss_roll(1000, noise=0.5, random_state=0)),
    "messages": _messages,
}


def load_sample(name: str) -> Table:
    """Return the sample data set of that name, as a table with its target as the default.

    Raises
    ------
    DataError
        If no data set has that name; the message suggests the closest names.

    Examples
    --------
    >>> load_sample("moons").columns.shape
    (500, 2)
    """
    roles = dict(find_sample(name).roles)
    pandas = optional("pandas", "loading a sample")
    X, y, names, target = _MAKERS[name]()
    columns = pandas.DataFrame(X, columns=names)
    return Table(columns, f"sample:{name}", {target: np.asarray(y)}, target, roles=roles)
