"""The fitted attributes of one-vs-one classifiers: statements, margins and roles of rows, the last weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer._types import Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Either, Flag, Floats, Is, Labels, Lengths, Maybe, Whole, Word
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.layout import dense, read_only
from mercer.estimators.shared.restricted_risk import one_form
from mercer.estimators.shared.statements import Coefficients, SupportRows, training_shape
from mercer.estimators.svm.class_rows import ClassRows
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.pair_answers import Certificates, PairAnswers

_ROLES = np.array(["outside", "free", "bounded"])


def _of_rows(k: int, n: int) -> tuple[int, ...]:
    """Return the shape of values for training rows: one each for two classes, else one against each other class."""
    return (n,) if k == 2 else (k - 1, n)


def _has_rows_of_its_form(model: Any) -> bool:
    """Whether there is a row of coefficients for each pair over landmarks, else for each other class."""
    k = len(model.classes_)
    rows = k * (k - 1) // 2 if "landmark_indices_" in vars(model) else k - 1
    return bool(model.dual_coef_.shape[0] == rows)


PAIRS = Fitted(
    {
        "classes_": Labels("k", least=2),
        "class_weight_": Floats("k", least=0),
        "shape_fit_": Lengths(training_shape),
        "support_vectors_": SupportRows("s"),
        "intercept_": Floats("pairs"),
        "dual_coef_": Either(Coefficients("others, s"), Floats("pairs, s")),
        "certificates_": Is(Certificates),
        "n_iter_": Whole("pairs"),
        "certificate_": Is(Certificate),
        "fit_status_": Count(most=1),
        "_probA": Floats("sigmoids"),
        "_probB": Floats("sigmoids"),
    },
    {
        "support_": Whole("s", below="n"),
        "n_support_": Whole("k", total="s"),
        "margins_": Floats(_of_rows, nan=True),
        "_role_codes": Whole(_of_rows, below=3),
        "landmark_indices_": Maybe(Whole("s", below="n", distinct=True)),
    },
    derived={"others": lambda k: k - 1, "pairs": lambda k: k * (k - 1) // 2},
    parameters={"decision_function_shape": Word(("ovr", "ovo")), "break_ties": Flag()},
    rules=(
        ("there is not one certificate for each pair", lambda m: len(m.certificates_) == len(m.intercept_)),
        ("there is not one sigmoid for each pair", lambda m: len(m._probA) in (0, len(m.intercept_))),
        one_form("support_", "n_support_", "margins_", "_role_codes"),
        ("dual_coef_ does not have the rows of its form", _has_rows_of_its_form),
        ("break_ties is for 'ovr'", lambda m: not m.break_ties or m.decision_function_shape == "ovr"),
    ),
)
"""Statements about a fit of a one-vs-one classifier."""


def margins_and_roles(n: int, data: ClassRows, answers: PairAnswers, bounds: Vector) -> tuple[Matrix, NDArray[np.int8]]:
    """Return the margins (NaN for rows without a weight) and the roles of n training rows, (k - 1, n) each.

    The roles are 0 for a weight of 0, 1 for one between the bounds, and 2 for one at its bound.
    """
    residual = answers.gradient - answers.layout.spread(answers.offsets)
    # Against later classes, a row belongs to the first class of the pair.
    signs = np.where(np.arange(len(residual))[:, None] >= data.codes, 1.0, -1.0)
    margins = np.full((len(residual), n), np.nan)
    margins[:, data.rows] = 1.0 - signs * residual
    states = np.abs(answers.state)
    codes = np.zeros(margins.shape, dtype=np.int8)
    codes[:, data.rows] = (states > 0).astype(np.int8) + (states >= bounds * (1.0 - 1e-12))
    return margins, codes


def margin_of(model: KernelEstimator) -> Vector:
    """``2 / norm_``: the width of the margin of each pair of classes in feature space, (k (k - 1) / 2,)."""
    widths: Vector = read_only(margin_widths(model.norm_))
    return widths


def margin_widths(norms: Vector) -> Vector:
    """``2 / |w|``: the distance between the hyperplanes f = -1 and f = 1; infinite where w is 0.

    Examples
    --------
    >>> margin_widths(np.array([4.0, 0.0])).tolist()
    [0.5, inf]
    """
    return np.divide(2.0, norms, out=np.full_like(norms, np.inf), where=norms != 0)


def slacks_of(model: KernelEstimator) -> Vector:
    """``max(0, 1 - margins_)``: how far each training row is on the wrong side of its margin."""
    check_is_fitted(model)
    return np.maximum(0.0, 1.0 - model.margins_)


def roles_of(model: KernelEstimator) -> np.ndarray:
    """``"outside"`` (weight 0), ``"free"`` (between the bounds) or ``"bounded"`` (at C); shaped as ``margins_``."""
    check_is_fitted(model)
    return np.asarray(_ROLES[model._role_codes])


def last_weights(model: KernelEstimator, data: ClassRows, n: int) -> Matrix | None:
    """Return the weights of the last fit in the layout of ``PairLayout``; None if a fit to ``data`` cannot use them."""
    if "support_" not in vars(model) or model.shape_fit_[0] != n or not np.array_equal(model.classes_, data.names):
        return None
    codes = np.full(n, -1)
    codes[data.rows] = data.codes
    if not np.array_equal(codes[model.support_], np.repeat(np.arange(len(data.names)), model.n_support_)):
        return None
    weights = np.zeros((len(data.names) - 1, n))
    weights[:, model.support_] = model._sign * dense(model.dual_coef_)
    return np.asarray(weights[:, data.rows])
