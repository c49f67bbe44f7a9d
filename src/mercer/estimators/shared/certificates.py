"""The certificate of an estimator that solves several problems, and the warning if a solve stopped early."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer._errors import warn_user
from mercer.solvers.solution import Certificate, Status
from mercer.solvers.svm.pair_answers import STATUSES, Certificates

STOPPED = (Status.stalled, Status.iteration_limit, Status.interrupted)
"""The statuses of a solve that stopped before its tolerance was met."""

# From the best to the worst.
_ENDINGS = (
    Status.given,
    Status.probable,
    Status.converged,
    Status.direct,
    Status.jittered,
    Status.least_squares,
    Status.stationary,
    *STOPPED,
)


class Certified(Protocol):
    """A fitted learner with a certificate."""

    certificate_: Certificate


def joined(parts: Sequence[Certificate], seconds: float | None = None, peak_bytes: int | None = None) -> Certificate:
    """Join certificates: sums of objectives and steps, the largest violations and the worst status.

    ``seconds`` and ``peak_bytes`` are those of the whole; by default the sum and the largest.

    Examples
    --------
    >>> parts = [Certificate(1.0, 0.5, 0.1, 3, 1.0, 8, Status.converged),
    ...          Certificate(2.0, 1.5, 0.2, 4, 1.0, 8, Status.stalled)]
    >>> one = joined(parts)
    >>> one.primal, one.kkt_violation, one.iterations, one.status.name
    (3.0, 0.2, 7, 'stalled')
    """
    table = parts if isinstance(parts, Certificates) else _table(parts)
    return Certificate(
        primal=float(table.primal.sum()),
        dual=float(table.dual.sum()),
        kkt_violation=float(table.kkt_violation.max()),
        iterations=int(table.iterations.sum()),
        seconds=float(table.seconds.sum()) if seconds is None else seconds,
        peak_bytes=int(table.peak_bytes.max()) if peak_bytes is None else peak_bytes,
        status=max((STATUSES[code] for code in np.unique(table.status)), key=_ENDINGS.index),
        violations={name: float(np.fmax.reduce(values)) for name, values in sorted(table.violations.items())},
        convex=bool(table.convex.all()),
        storage=table[int(table.peak_bytes.argmax())].storage,
    )


def _table(parts: Sequence[Certificate]) -> Certificates:
    table = Certificates.empty(len(parts))
    for number, part in enumerate(parts):
        table.put(number, part)
    return table


def write_result(learner: Certified) -> None:
    """Write a line on the certificate to standard error, if the learner is ``verbose``."""
    if getattr(learner, "verbose", False):
        found = learner.certificate_
        sys.stderr.write(
            f"mercer: {type(learner).__name__}: {found.status.name}, {found.iterations} steps in "
            f"{found.seconds:.1f} s, objective {found.primal:.5g}, relative gap {found.relative_gap:.1e}\n"
        )


def warn_if_stopped(learner: Certified, more: Callable[[], str] = str) -> bool:
    """Warn if the solver stopped before its tolerance was met, with the words of ``more``; return whether it did.

    A learner that is ``verbose`` writes its result first.
    """
    write_result(learner)
    status = learner.certificate_.status
    if status in STOPPED:
        warn_user(" ".join(filter(None, [f"{type(learner).__name__}: {status.value}", more()])), ConvergenceWarning)
    return status in STOPPED
