"""The parameter ``solver`` of the support vector machines, and those that it goes with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mercer._errors import ParameterError
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.parameters import is_among, require_choice, require_flags, require_positive, require_whole
from mercer.estimators.shared.restricted import NO_WARM_START, OWN_SOLVER, Beside
from mercer.solvers.svm.projected import ProjectedGradient
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import BoxSolver

_NAMED: dict[str, Callable[..., BoxSolver]] = {
    "smo": SMO,
    "projected-gradient": ProjectedGradient,
    "accelerated-projected-gradient": partial(ProjectedGradient, accelerated=True),
}


def check_solver(model: KernelEstimator) -> None:
    """Raise unless ``solver`` and the parameters of a named one make sense.

    Raises
    ------
    ParameterError
        With the parameter and its value.
    """
    require_positive(model, "tol", "cache_size")
    require_whole(model, "max_iter", "a whole number, -1 for no limit", least=-1)
    require_choice(model, "stop", ("kkt", "gap"))
    require_flags(model, "shrinking", "warm_start")
    if not (isinstance(model.solver, BoxSolver) or is_among(model.solver, _NAMED)):
        raise ParameterError(
            f"solver must be one of {', '.join(map(repr, _NAMED))} or a solver such as mercer.solvers.SMO(), "
            f"but is {model.solver!r}."
        )


def solver_of(model: KernelEstimator) -> BoxSolver:
    """The model's ``solver``, or the named one with the model's own tolerance, limits and threads."""
    if isinstance(model.solver, BoxSolver):
        return model.solver
    limits = {"cache_bytes": int(model.cache_size * 2**20)} if model.solver == "smo" else {}
    return _NAMED[model.solver](
        tol=model.tol,
        stop=model.stop,
        max_iter=model.max_iter,
        n_jobs=model.n_jobs,
        verbose=bool(model.verbose),
        **limits,
    )


BESIDE_LANDMARKS = NO_WARM_START, Beside("solver", "smo", OWN_SOLVER)
"""What parameters of a machine must be with an approximation."""
