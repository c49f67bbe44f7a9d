"""Lines about certificates, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Line = tuple[str, str]


def certificate_lines(report: Mapping[str, Any]) -> list[Line]:
    """Names and texts about the certificate of the problem that was solved."""
    certificate = report["certificate"]
    if certificate is None:
        return [("none", report["certificate_text"])]
    return [
        ("status", certificate["status"]),
        ("objective", f"primal {certificate['primal']:.8g}, dual {certificate['dual']:.8g}"),
        ("gap", _gap(certificate)),
        ("KKT violation", f"{certificate['kkt_violation']:.3g}"),
        ("iterations", str(certificate["iterations"])),
    ]


def distance_lines(distance: Mapping[str, Any]) -> list[Line]:
    """Names and texts about the certificate for the problem of all rows.

    >>> distance = {"primal": 2.0, "dual": 1.9, "gap": 0.1, "relative_gap": 0.05, "gap_interval": [0.08, 0.1]}
    >>> distance |= {"rows": 500, "all_rows": 9000, "confidence": 0.95, "prediction_error": None}
    >>> for line in distance_lines(distance):
    ...     print(*line, sep=": ")
    proof: none: the pairs of 500 of 9,000 rows with all others tell the gap with a confidence of 95 %
    objective: 2 over the landmarks, and at least 1.9 over all rows
    gap: between 0.08 and 0.1 (at most 5.00e-02 of the objective)
    """
    n = distance["all_rows"]
    low, high = distance["gap_interval"]
    if distance["confidence"] == 1.0:
        proof = f"all pairs of {n:,} rows were evaluated"
        gap = _gap(distance)
    else:
        proof = (
            f"none: the pairs of {distance['rows']:,} of {n:,} rows with all others tell the gap with a confidence of "
            f"{distance['confidence']:.0%}".replace("%", " %")
        )
        gap = f"between {low:.3g} and {high:.3g} (at most {distance['relative_gap']:.2e} of the objective)"
    lines = [
        ("proof", proof),
        (
            "objective",
            f"{distance['primal']:.8g} over the landmarks, and at least {distance['dual']:.8g} over all rows",
        ),
        ("gap", gap),
    ]
    error = distance["prediction_error"]
    if error is not None:
        lines.append(
            ("predictions", f"within {error:.3g} of those of the exact learner, by the root mean square at these rows")
        )
    return lines


def _gap(certificate: Mapping[str, Any]) -> str:
    if not certificate["gap"]:
        return "0"
    return f"{certificate['gap']:.3g} ({certificate['relative_gap']:.2e} of the objective)"
