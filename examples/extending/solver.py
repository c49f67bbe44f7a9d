"""A solver: coordinate descent in place of SMO, in the support vector machines that have no offset."""

from dataclasses import dataclass

import numpy as np

import mercer
from mercer.extend import ParameterError, register
from mercer.solvers import BoxSolver


@register
@dataclass(frozen=True)
class CoordinateDescent(BoxSolver):
    """Move one weight after the other to the best value that its box allows."""

    part: float = 0.1  # of the tolerance, at which a pass over all weights counts as the last

    def improve(self, problem, beta):
        if problem.totals:
            raise ParameterError("CoordinateDescent moves single weights and can keep no sum; set fit_intercept=False.")
        K = problem.gram.block()
        F = problem.linear - K @ beta  # the gradient of the dual objective
        passes, largest = 0, np.inf
        while largest > self.part * self.tol and passes < self.limit:
            passes, largest = passes + 1, 0.0
            for i in np.flatnonzero(K.diagonal() > 0):
                best = beta[i] + F[i] / K[i, i]
                best = np.sign(best) * max(abs(best) - problem.tube / K[i, i], 0.0)
                best = np.clip(best, problem.lower[i], problem.upper[i])
                step, beta[i] = best - beta[i], best
                F -= step * K[i]
                largest = max(largest, abs(step) * K[i, i])
        return beta, passes


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.hypot(*X.T) > 1.2

    mine = CoordinateDescent(tol=1e-4)
    ours = mercer.SVC(C=10.0, fit_intercept=False, solver=mine).fit(X, y)
    smo = mercer.SVC(C=10.0, fit_intercept=False).fit(X, y)
    print("same decision values", np.allclose(ours.decision_function(X), smo.decision_function(X), atol=1e-2))
    # The library computes primal and dual value from the weights alone.
    print(ours.certificate_.status.name, "relative gap below 1e-4", ours.certificate_.relative_gap < 1e-4)

    t = np.sin(2 * X[:, 0])
    tube = mercer.SVR(fit_intercept=False, solver=CoordinateDescent()).fit(X, t)
    print("a tube", tube.certificate_.status.name, np.abs(tube.predict(X) - t).mean() < 0.2)
    mercer.save(ours, "solver.mercer")
    print("read again", mercer.load("solver.mercer").solver == mine)
