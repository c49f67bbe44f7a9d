"""The kernel of a model, its matrix and its spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import MercerError
from mercer._types import AnyArray, Matrix
from mercer.data.words import short_expression
from mercer.kernels import Kernel
from mercer.plotting.drawing import shown_rows
from mercer.plotting.gram import GramDisplay
from mercer.plotting.spectrum import SpectrumDisplay
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material

_MOST, _MOST_OBJECTS = 250, 80
# More classes could not be distinguished on an axis.
_MOST_CLASSES = 12
_MOST_VALUES = 30
_TITLE = "Kernel, Gram matrix and spectrum"


def geometry(material: Material) -> Section | None:
    """Return the kernel, its matrix on some rows and the eigenvalues of that; None without a kernel."""
    subject = material.subject
    kernel = subject.kernel
    if kernel is None and not subject.is_precomputed:
        return None
    name = "a matrix that was given" if kernel is None else short_expression(repr(kernel))
    facts: list[tuple[str, Any]] = [("kernel", name)]
    if isinstance(kernel, Kernel):
        facts.append(("definiteness", kernel.definiteness))
        facts += [(f"parameter {name}", _short(value)) for name, value in _parameters(kernel)]
    sample = _matrix(material)
    if sample is None:
        return Section("kernel", _TITLE, (), tuple(facts))
    K, labels, n, which = sample
    ridge = _ridge(subject.learner)
    spectrum = SpectrumDisplay.from_matrix(K, ridge=ridge)
    spectrum.total = n
    facts.append((f"effective dimension of {len(K)} {which}, at ridge {ridge:.3g}", spectrum.effective_dimension))
    negative = int((spectrum.eigenvalues < -1e-9 * abs(spectrum.eigenvalues).max()).sum())
    facts.append(("negative eigenvalues", negative))
    text = f"The matrix of {len(K)} of {n} {which}." if len(K) < n else f"The matrix of all {n} {which}."
    return Section("kernel", _TITLE, (text,), tuple(facts), (), (_gram(K, labels), _spectrum(spectrum)))


def _gram(K: Matrix, labels: AnyArray | None) -> Figure:
    few = labels is not None and len(np.unique(labels)) <= _MOST_CLASSES
    display = GramDisplay.from_matrix(K, labels if few else None, max_rows=len(K))
    off = K[~np.eye(len(K), dtype=bool)] if len(K) > 1 else K.ravel()
    parts = {"k(x, x)": np.diag(K), "k(x, z) of different rows": off}
    if few and labels is not None:
        same = labels[:, None] == labels
        parts |= {"of the same class": K[same & ~np.eye(len(K), dtype=bool)], "of different classes": K[~same]}
    rows = [(name, *_quantiles(values)) for name, values in parts.items() if values.size]
    order = "by class, and within a class" if few else "so that"
    words = f"Kernel values, ordered {order} similar rows stand together."
    table = Table.of("Kernel values", ("values", "smallest", "median", "largest"), rows)
    return Figure("Gram matrix", words, table, display.plot, (5.6, 4.6))


def _spectrum(display: SpectrumDisplay) -> Figure:
    values = display.eigenvalues[:_MOST_VALUES]
    total = float(np.abs(display.eigenvalues).sum()) or 1.0
    shares = np.cumsum(np.abs(values)) / total
    rows = zip(range(1, len(values) + 1), values.tolist(), shares.tolist())
    table = Table.of(f"The {len(values)} largest eigenvalues", ("rank", "eigenvalue", "share up to here"), rows)
    words = f"Eigenvalues by size; the effective dimension is {display.effective_dimension:.3g}."
    return Figure("Spectrum", words, table, display.plot)


def _quantiles(values: AnyArray) -> tuple[float, ...]:
    return float(values.min()), float(np.median(values)), float(values.max())


def _matrix(material: Material) -> tuple[Matrix, AnyArray | None, int, str] | None:
    """Kernel values of some rows with their classes, the number of all rows, and what they are."""
    subject, labels = material.subject, None
    rows, which = subject.kept, "rows that the model keeps"
    if material.rows_of_fit is not None:
        which = "training rows"
        labels = material.truth_of_fit
        rows = subject.checked(material.rows_of_fit)
    if subject.task != "classification":
        labels = None
    if rows is None or not rows.shape[0]:
        return None
    kernel, n = getattr(subject.learner, "kernel_", None), rows.shape[0]
    shown = shown_rows(n, _MOST if len(rows.shape) == 2 and hasattr(rows, "dtype") else _MOST_OBJECTS, material.seed)
    if subject.is_precomputed and rows.shape == (n, n):
        K = np.asarray(rows, dtype=np.float64)[np.ix_(shown, shown)]
    elif isinstance(kernel, Kernel):
        K = np.asarray(kernel(rows[shown]), dtype=np.float64)
    else:
        return None
    if not np.isfinite(K).all():
        return None
    return (K + K.T) / 2, None if labels is None else np.asarray(labels)[shown], n, which


def _ridge(learner: Any) -> float:
    """The ridge of the effective dimension: the penalty or the noise of the model, or 1."""
    for name in ("alpha_", "noise_", "alpha"):
        value = getattr(learner, name, None)
        if isinstance(value, (int, float, np.number)) and 0 < float(value) < np.inf:
            return float(value)
    C = getattr(learner, "C", None)
    return 1.0 / float(C) if isinstance(C, (int, float)) and 0 < C < np.inf else 1.0


def _parameters(kernel: Kernel) -> list[tuple[str, Any]]:
    """The numbers in the kernel, by name."""
    try:
        parameters = kernel.get_params(deep=True) if hasattr(kernel, "get_params") else {}
    except MercerError:
        # A kernel that was built from parts without names.
        return []
    return [(name, value) for name, value in parameters.items() if not isinstance(value, Kernel)][:_MOST_VALUES]


def _short(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"{value.size} values from {value.min():.4g} to {value.max():.4g}"
    if isinstance(value, (tuple, list)) and value and all(isinstance(entry, (int, float)) for entry in value):
        few = ", ".join(f"{entry:.4g}" for entry in value)
        return few if len(value) <= 6 else f"{len(value)} values from {min(value):.4g} to {max(value):.4g}"
    return value if isinstance(value, (int, float)) else str(value)
