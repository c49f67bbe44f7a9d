"""Solvers: a problem in, a solution out. They see a kernel matrix, never a kernel or data.

This module has the solvers that support vector machines take as ``solver=``, and the base of user-defined solvers (see
``docs/extending/solver.md``). Each name is loaded on first use.

Examples
--------
>>> from mercer import SVC
>>> from mercer.solvers import SMO
>>> model = SVC(kernel="linear", solver=SMO(tol=1e-6)).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
>>> model.certificate_.kkt_violation <= 1e-6
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "BoxQP": "mercer.solvers.svm.box_qp",
    "BoxSolver": "mercer.solvers.svm.solver",
    "ProjectedGradient": "mercer.solvers.svm.projected",
    "SMO": "mercer.solvers.svm.smo",
    "Start": "mercer.solvers.svm.solver",
}

__all__ = ["SMO", "BoxQP", "BoxSolver", "ProjectedGradient", "Start"]

if TYPE_CHECKING:
    from mercer.solvers.svm.box_qp import BoxQP as BoxQP
    from mercer.solvers.svm.projected import ProjectedGradient as ProjectedGradient
    from mercer.solvers.svm.smo import SMO as SMO
    from mercer.solvers.svm.solver import BoxSolver as BoxSolver
    from mercer.solvers.svm.solver import Start as Start


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mercer.solvers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
