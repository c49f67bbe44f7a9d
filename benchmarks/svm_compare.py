"""Support vector machines of Mercer and of its peers on the same rows: seconds, objectives.

Mercer and scikit-learn-intelex are timed in float64 and in float32, and stand with the faster of the two; scikit-learn
works in float64 whatever it is given. Objectives are computed here, in float64, from the coefficients of the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from harness import in_turn, tell
from mercer import Gram, kernels
from svm_data import some_rows

DTYPES = {
    "Mercer": ("float64", "float32"),
    "scikit-learn": ("float64",),
    "scikit-learn-intelex": ("float64", "float32"),
}
# How much worse than the peer's the dual objective may be, relative to its size.
WORSE = 1e-5
_WARM_UP_ROWS = 5000


@dataclass(frozen=True)
class Comparison:
    """Seconds and what was made, by name and dtype as in ``"Mercer, float32"``."""

    seconds: dict[str, float]
    made: dict[str, Any]

    def best(self, name: str) -> str:
        """The label of the faster dtype of one contender."""
        return min((label for label in self.seconds if label.split(", ")[0] == name), key=self.seconds.__getitem__)

    @property
    def peer(self) -> str:
        """The label of the fastest that is not Mercer."""
        others = (label for label in self.seconds if not label.startswith("Mercer"))
        return min(others, key=self.seconds.__getitem__)


def labels(kinds: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Name and dtype by label."""
    return {f"{name}, {dtype}": (name, dtype) for name in kinds for dtype in DTYPES[name]}


def compare_fits(kinds: dict[str, Any], options: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Comparison:
    """Fit each of ``kinds``, estimators by the name of their library, in turn: medians of 3, or one run if slow."""
    rows = {dtype: X.astype(dtype, copy=False) for dtype in ("float64", "float32")}
    few = some_rows(len(X), _WARM_UP_ROWS)
    models: dict[str, Any] = {}

    def fit(label: str) -> None:
        name, dtype = labels(kinds)[label]
        models[label] = kinds[name](**options).fit(rows[dtype], y)
        tell(f"  {label}")

    def warm_up(label: str) -> None:
        name, dtype = labels(kinds)[label]
        kinds[name](**options).fit(rows[dtype][few], y[few])

    seconds = in_turn({label: lambda label=label: fit(label) for label in labels(kinds)}, repeats=3, warm_up=warm_up)
    return Comparison(seconds, models)


def classifier_objective(model: Any, gamma: float) -> float:
    """Sum over the pairs of classes of ``sum_i alpha_i - beta' K beta / 2``, block of classes by block of classes."""
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    support = np.asarray(model.support_vectors_, dtype=np.float64)
    coefficients = np.asarray(model.dual_coef_, dtype=np.float64)
    parts = [slice(begin, end) for begin, end in pairwise(ends)]
    value = float(np.abs(coefficients).sum())
    for part in parts:
        own = coefficients[:, part].T
        value -= 0.5 * float(np.einsum("ij,ij->", own, _block(support[part], support[part], gamma) @ own))
    # Rows of class a against class b > a have their coefficients in line b - 1, those of b against a in line a.
    for a, b in combinations(range(len(parts)), 2):
        of_a, of_b = coefficients[b - 1, parts[a]], coefficients[a, parts[b]]
        value -= float(of_a @ (_block(support[parts[a]], support[parts[b]], gamma) @ of_b))
    return value


def expansion_objective(model: Any, gamma: float, linear: np.ndarray | None = None, tube: float = 0.0) -> float:
    """``c'beta - tube |beta|_1 - beta' K beta / 2`` of a model with one expansion; c is given for all training rows."""
    support = np.asarray(model.support_vectors_, dtype=np.float64)
    beta = np.asarray(model.dual_coef_, dtype=np.float64).ravel()
    gain = 0.0 if linear is None else float(linear[model.support_] @ beta)
    return gain - tube * float(np.abs(beta).sum()) - 0.5 * float(beta @ (_block(support, support, gamma) @ beta))


def _block(X: np.ndarray, Z: np.ndarray, gamma: float) -> Gram:
    return Gram(kernels.RBF.from_gamma(gamma), X, Z, dtype=np.float64)


def relative_difference(ours: float, theirs: float) -> float:
    """By how much our dual objective is better than theirs (below 0: worse), relative to its size."""
    return (ours - theirs) / abs(theirs)


def geometric_mean(values: list[float]) -> float:
    """``exp`` of the mean of the logarithms."""
    return float(np.exp(np.mean(np.log(values))))
