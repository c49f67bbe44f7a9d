"""One certificate for an estimator that solves several problems."""

from __future__ import annotations

from mercer.solvers.solution import Certificate, Status

STOPPED = (Status.iteration_limit, Status.stalled)
"""How a solve ends before its tolerance is met."""


def joined(certificates: list[Certificate]) -> Certificate:
    """Sums of objectives and steps, the worst of violations and of endings.

    Examples
    --------
    >>> one = Certificate(2.0, 1.5, 1e-4, 10, 0.1, 800, Status.converged, {"stationarity": 1e-4})
    >>> both = joined([one, one])
    >>> both.primal, both.gap, both.iterations, both.violations
    (4.0, 1.0, 20, {'stationarity': 0.0001})
    """
    worst = max(certificates, key=lambda c: c.status in STOPPED)
    names = dict.fromkeys(name for c in certificates for name in c.violations)
    return Certificate(
        sum(c.primal for c in certificates),
        sum(c.dual for c in certificates),
        max(c.kkt_violation for c in certificates),
        sum(c.iterations for c in certificates),
        sum(c.seconds for c in certificates),
        max(c.peak_bytes for c in certificates),
        worst.status,
        {name: max(c.violations.get(name, 0.0) for c in certificates) for name in names},
        all(c.convex for c in certificates),
    )
