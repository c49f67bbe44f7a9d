"""One sentence on a certificate."""

from __future__ import annotations

import math

from mercer.solvers.solution import Certificate, Status

SMALL_GAP = 0.01
"""A relative gap up to this needs no attention."""
_ROUNDING = 1e-10
_WHOLE = (Status.converged, Status.direct, Status.given)


def ended_early(certificate: Certificate) -> bool:
    """Whether a fit that goes on may come closer to the optimum."""
    return certificate.status in (Status.iteration_limit, Status.stalled, Status.interrupted)


def solution_words(certificate: Certificate) -> str:
    """Return how good the solution is."""
    if not certificate.convex or certificate.status is Status.stationary:
        return "The kernel is indefinite: the fit is a stationary point, and nothing bounds its distance to the best."
    if not math.isfinite(certificate.gap):
        return f"The certificate does not bound what could still be gained; the fit ended as {_name(certificate)}."
    if certificate.relative_gap <= _ROUNDING and certificate.status in _WHOLE:
        return "The solution is certified: it is optimal up to rounding."
    share = f"at most {100 * max(certificate.relative_gap, 0.0):.2g} % of the objective could still be gained"
    if certificate.status in _WHOLE:
        if certificate.relative_gap > SMALL_GAP:
            return f"The certificate is wide: {share}."
        return f"The solution is certified: {share}."
    words = certificate.status.value.split(". ")[0].rstrip(".")
    return f"The fit ended early ({_name(certificate)}), and {share}: {words[0].lower()}{words[1:]}."


def _name(certificate: Certificate) -> str:
    return certificate.status.name.replace("_", " ")
