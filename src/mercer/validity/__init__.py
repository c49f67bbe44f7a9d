"""Is it a kernel? The spectrum of a Gram matrix, a witness if it is not one, and a nearby matrix that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import AnyArray
from mercer.data.objects import short
from mercer.engine.memory import budget, require
from mercer.validity import eigenvalues
from mercer.validity.eigenvalues import Spectrum
from mercer.validity.nearest_psd import NearestMatrix, nearest
from mercer.validity.operand import Asymmetry, Operand, worst_asymmetry
from mercer.validity.report import ValidityReport, Verdict

__all__ = ["NearestMatrix", "ValidityReport", "Verdict", "check", "nearest"]

# Up to the first number of rows Lanczos is never used; up to the second it is slower than all eigenvalues (measured).
_FEW, _QUICKER = 64, 8000


@dataclass(frozen=True)
class _Findings:
    """The result of either method for the spectrum; ``check`` turns it into the report."""

    asymmetry: Asymmetry
    symmetric: bool
    spectrum: Spectrum
    tolerance: tuple[float, str]
    witness: tuple[float, AnyArray] | None
    conditional: tuple[float, AnyArray] | None
    notes: tuple[str, ...]
    # Fields of the report, by name.
    others: dict[str, Any]


def check(
    kernel_or_gram: Any,
    X: Any = None,
    *,
    tolerance: float | None = None,
    ridge: float = 1.0,
    full_spectrum_up_to: int | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> ValidityReport:
    """Check whether a Gram matrix is symmetric and positive semi-definite, and describe its spectrum.

    A symmetric function ``k`` is a kernel if ``c'Kc >= 0`` for every ``c`` and the Gram matrix ``K`` of any rows
    (Mercer's condition on a finite set). A sample of rows can refute this, by a witness ``c`` with ``c'Kc < 0``; it
    cannot prove it for other rows.

    All eigenvalues are computed if that is faster than Lanczos and fits the memory budget. Otherwise Lanczos finds both
    ends of the spectrum from products ``K @ v`` alone: a witness is then just as certain, but a positive verdict only
    means that no negative direction was found.

    Parameters
    ----------
    kernel_or_gram : Kernel, Gram, PrecomputedGram, or (n, n) array
        A kernel, in any form that the estimators take (also a name, a scikit-learn kernel or a function), needs ``X``.
    X : (n, d) array or other input of the kernel, optional
        The rows, for a kernel.
    tolerance : float, optional
        Eigenvalues no further than this from 0 count as 0. Default: ``n * eps * largest |eigenvalue|`` with the ``eps``
        of the precision of ``K``: the most by which rounding of the entries can move them (Weyl's theorem).
    ridge : float, default 1.0
        The ``lambda`` of the effective dimension ``sum_i s_i / (s_i + lambda)``.
    full_spectrum_up_to : int, optional
        The most rows for which all eigenvalues are computed. None means up to 8000, where this takes about as long as
        Lanczos, provided that four matrices in float64 fit the memory budget.
    random_state : int, default 0
        Seed of the starting vectors of Lanczos.
    verbose : bool, default False
        Show progress on standard error.

    Returns
    -------
    ValidityReport
        Its ``print`` is a readable summary.

    Raises
    ------
    DataError
        If the matrix is not square, non-empty, real and finite, or ``X`` is missing.
    ParameterError
        If ``ridge`` or ``tolerance`` is not a positive number.
    MemoryBudgetError
        If the whole matrix is needed and does not fit the memory budget.

    References
    ----------
    Mercer (1909); Schoelkopf & Smola (2002), *Learning with Kernels*, sections 2.2 and 2.4.

    Examples
    --------
    >>> from mercer import kernels, validity
    >>> validity.check(kernels.RBF(1.0), [[0.0], [1.0], [3.0]]).verdict.name
    'definite'
    >>> report = validity.check([[1.0, 2.0], [2.0, 1.0]])
    >>> report.verdict.name, round(report.witness_value, 12), report.valid
    ('indefinite', -1.0, False)
    """
    for name, value in (("ridge", ridge), ("tolerance", tolerance)):
        if value is not None and not 0 < value < np.inf:
            raise ParameterError(f"{name} must be a number above 0, but is {short(value)}.")
    operand = Operand.of(kernel_or_gram, X)
    rng = np.random.default_rng(random_state)
    if _takes_all(operand.n, full_spectrum_up_to):
        findings = _by_full_spectrum(operand, tolerance, ridge)
    else:
        findings = _by_lanczos(operand, tolerance, ridge, rng, verbose)
    return _report(operand, findings, ridge)


def _takes_all(n: int, most: int | None) -> bool:
    """Whether all eigenvalues are computed."""
    # Lanczos needs a few rows to make a Krylov space of, whatever the limit says.
    if n <= _FEW:
        return True
    return n <= _QUICKER and _matrices(n) <= budget() if most is None else n <= most


def _matrices(n: int) -> int:
    """Bytes of the matrix, its symmetric part, and what LAPACK needs beside them."""
    return 4 * 8 * n * n


def _by_full_spectrum(operand: Operand, tolerance: float | None, ridge: float) -> _Findings:
    n = operand.n
    require(_matrices(n), f"the eigenvalues of a {n} x {n} matrix", "Use fewer rows, or lower full_spectrum_up_to.")
    K = operand.dense()
    asymmetry = worst_asymmetry(K)
    symmetric = bool(asymmetry.worst <= _rounding(operand) * max(K.max(), -K.min()))
    S = K if asymmetry.worst == 0 else (K + K.T) / 2
    del K
    spectrum, values = eigenvalues.full(S)
    limit = _tolerance(operand, spectrum, tolerance)
    witness = conditional = None
    if spectrum.smallest < -limit[0]:
        c = eigenvalues.lowest(S)
        witness = eigenvalues.quadratic(S, c), c
        if n > 1:
            c = _summing_to_zero(eigenvalues.lowest(eigenvalues.off_constants(S, spectrum.scale)))
            conditional = eigenvalues.quadratic(S, c), c
    positive, sizes = np.maximum(values, 0.0), np.abs(values)
    others = {
        "method": "full spectrum",
        "rank": int((sizes > limit[0]).sum()),
        "condition_number": float(sizes.max() / sizes.min()) if sizes.min() > limit[0] else float("inf"),
        "effective_dimension": float((positive / (positive + ridge)).sum()),
        "effective_dimension_error": 0.0,
    }
    return _Findings(asymmetry, symmetric, spectrum, limit, witness, conditional, (), others)


def _by_lanczos(
    operand: Operand, tolerance: float | None, ridge: float, rng: np.random.Generator, verbose: bool
) -> _Findings:
    asymmetry = operand.asymmetry(rng)
    operator = operand.operator(symmetric=asymmetry.worst == 0, verbose=verbose)
    spectrum, c = eigenvalues.ends(operator, rng)
    # The largest entry of a positive semi-definite matrix stands on its diagonal.
    largest_entry = max(float(np.abs(operand.gram.diagonal()).max()), spectrum.scale / operand.n)
    symmetric = bool(asymmetry.worst <= _rounding(operand) * largest_entry)
    limit = _tolerance(operand, spectrum, tolerance)
    notes = ["the numerical rank is not computed: it needs all eigenvalues; raise full_spectrum_up_to to have it."]
    if asymmetry.sampled:
        notes.append("symmetry was tested on a random sample of the rows.")
    witness = conditional = condition = dimension = None
    error = 0.0
    if spectrum.smallest < -limit[0]:
        witness = spectrum.smallest, c
        c = _summing_to_zero(eigenvalues.lowest_off_constants(operator, rng))
        conditional = eigenvalues.quadratic(operator, c), c
        notes.append("condition number and effective dimension are computed for positive matrices only.")
    else:
        dimension, error = eigenvalues.effective_dimension(operator, ridge, rng)
        notes.append(
            "no negative direction was found by Lanczos, which is evidence, not a proof; there is an eigenvalue "
            f"within {spectrum.residual:.2g} of the smallest one found."
        )
        if spectrum.smallest - spectrum.residual > limit[0]:
            condition = spectrum.scale / spectrum.smallest
        elif spectrum.smallest + spectrum.residual <= limit[0]:
            condition = float("inf")
    others = {
        "method": "Lanczos",
        "rank": None,
        "condition_number": condition,
        "effective_dimension": dimension,
        "effective_dimension_error": error,
    }
    return _Findings(asymmetry, symmetric, spectrum, limit, witness, conditional, tuple(notes), others)


def _rounding(operand: Operand) -> float:
    return operand.n * float(np.finfo(operand.dtype).eps)


def _tolerance(operand: Operand, spectrum: Spectrum, tolerance: float | None) -> tuple[float, str]:
    if tolerance is not None:
        return float(tolerance), "as given"
    limit = _rounding(operand) * spectrum.scale
    return limit, f"n * eps({operand.dtype}) * largest |eigenvalue|: as far as rounding of the entries can move one"


def _summing_to_zero(c: AnyArray) -> AnyArray:
    c = c - c.mean()
    return c / np.linalg.norm(c)


def _report(operand: Operand, findings: _Findings, ridge: float) -> ValidityReport:
    spectrum, (limit, reason) = findings.spectrum, findings.tolerance
    value, witness = findings.witness or (None, None)
    low, off = findings.conditional or (None, None)
    conditionally = low is None or low >= -limit
    verdict = _verdict(findings, conditionally)
    return ValidityReport(
        n=operand.n,
        dtype=str(operand.dtype),
        verdict=verdict,
        symmetric=findings.symmetric,
        asymmetry=findings.asymmetry.worst,
        asymmetry_at=findings.asymmetry.at,
        smallest=spectrum.smallest,
        largest=spectrum.largest,
        tolerance=limit,
        tolerance_reason=reason,
        witness=witness,
        witness_value=value,
        conditionally_positive=conditionally,
        conditional_smallest=low,
        conditional_witness=None if conditionally else off,
        ridge=float(ridge),
        declared=operand.declared,
        notes=(*findings.notes, *_remarks(operand.declared, verdict)),
        **findings.others,
    )


def _verdict(findings: _Findings, conditionally: bool) -> Verdict:
    if not findings.symmetric:
        return Verdict.asymmetric
    if findings.witness is None:
        surely = findings.spectrum.smallest - findings.spectrum.residual > findings.tolerance[0]
        return Verdict.definite if surely else Verdict.semidefinite
    return Verdict.conditional if conditionally else Verdict.indefinite


def _remarks(declared: str | None, verdict: Verdict) -> tuple[str, ...]:
    """What the verdict says about the kernel's own declaration."""
    if declared is None:
        return ()
    valid = verdict in (Verdict.definite, Verdict.semidefinite)
    if (declared == "positive" and not valid) or (declared == "conditional" and verdict is Verdict.indefinite):
        return (f"the kernel declares itself {declared!r}, but these rows refute it.",)
    if declared != "positive" and valid:
        return ("these rows do not refute that the kernel is positive; others may.",)
    return ()
