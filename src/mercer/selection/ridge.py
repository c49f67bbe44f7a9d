"""Kernel ridge regression for many penalties, from one factorisation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._errors import ParameterError
from mercer._types import RowsLike, Vector
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.selection.path import Models
from mercer.solvers.linear.penalty_curves import PenaltyCurves
from mercer.solvers.linear.penalty_path import CRITERIA, Criterion


@dataclass(frozen=True, repr=False)
class RidgePath(Models[KernelRidge]):
    """Fitted ridge regressions, in the order of the given penalties; see :func:`ridge_path`.

    Parameters
    ----------
    alphas : tuple of float
        The penalties.
    models : tuple of KernelRidge
        ``path[i]`` is the model of ``alphas[i]``.
    curves : PenaltyCurves
        The criteria for the penalties, which are in ascending order without repetitions.
    seconds : float
        Wall-clock time of the whole path.
    """

    alphas: tuple[float, ...]
    models: tuple[KernelRidge, ...]
    curves: PenaltyCurves
    seconds: float

    @property
    def loo(self) -> Vector:
        """Mean squared error of leave-one-out predictions, (penalties,) or (penalties, targets)."""
        return self._in_order("loo")

    @property
    def gcv(self) -> Vector:
        """Generalised cross-validation, (penalties,) or (penalties, targets)."""
        return self._in_order("gcv")

    @property
    def evidence(self) -> Vector:
        """Log evidence at the best noise variance, (penalties,) or (penalties, targets)."""
        return self._in_order("evidence")

    @property
    def dual_coef_path(self) -> Vector:
        """``dual_coef_`` of every model, (penalties, n) or (penalties, n, targets)."""
        return np.stack([model.dual_coef_ for model in self.models])

    def best(self, criterion: Criterion = "loo") -> KernelRidge:
        """Return the model that is best by a criterion, summed over the targets.

        Parameters
        ----------
        criterion : {"loo", "gcv", "evidence"}, default="loo"

        Returns
        -------
        KernelRidge

        Raises
        ------
        ParameterError
            If the criterion is unknown.
        """
        if criterion not in CRITERIA:
            raise ParameterError(f"criterion must be 'loo', 'gcv' or 'evidence', but is {criterion!r}.")
        values = self._in_order(criterion).reshape(len(self), -1).sum(axis=1)
        return self.models[int((-values if criterion == "evidence" else values).argmin())]

    def _in_order(self, criterion: Criterion) -> Vector:
        return np.asarray(self.curves.of(criterion))[np.searchsorted(self.curves.alphas, self.alphas)]

    def __repr__(self) -> str:
        """A table with a line for each penalty; criteria are summed over the targets."""
        lines = [f"KernelRidge along alpha: {len(self)} fits in {self.seconds:.3g} s"]
        lines.append(f"{'alpha':>12} {'leave-one-out':>14} {'gcv':>14} {'evidence':>14} {'residual':>10}")
        columns = [getattr(self, name).reshape(len(self), -1).sum(axis=1) for name in CRITERIA]
        for alpha, model, *values in zip(self.alphas, self.models, *columns):
            figures = " ".join(f"{value:14.7g}" for value in values)
            lines.append(f"{alpha:12.6g} {figures} {model.certificate_.kkt_violation:10.1e}")
        return "\n".join(lines)


def ridge_path(
    X: RowsLike,
    y: ArrayLike,
    alphas: Any = None,
    *,
    estimator: KernelRidge | None = None,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> RidgePath:
    """Fit kernel ridge regression for every penalty, with the curves for choosing among them.

    The kernel matrix is evaluated and reduced once, which takes about ten times as long as one fit; each penalty then
    takes a fifth of a fit. Every model has the float64 residual and the certificate of a separate fit.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or (n, n) for ``kernel="precomputed"``
        Training rows.
    y : array of shape (n,) or (n, n_targets)
        Targets.
    alphas : sequence of float, optional
        Penalties of 0 or above, in any order; by default two per decade, from 1e-9 to 10 times the sum of the
        eigenvalues of the kernel matrix.
    estimator : KernelRidge, optional
        Not changed, and need not be fitted; its ``alpha`` is ignored. By default ``KernelRidge()``.
    sample_weight : array of shape (n,), optional
        Weights with the meaning of repetition, also in the curves.
    **parameters
        Further parameters of the estimator by name.

    Returns
    -------
    RidgePath
        A sequence of fitted estimators, in the order of the penalties, with the curves ``loo``, ``gcv`` and
        ``evidence``.

    Raises
    ------
    ParameterError
        If ``alphas`` is empty or contains a value that is not a penalty, or the estimator lacks a parameter.
    DataError, IndefiniteKernelError, MemoryBudgetError
        As ``fit``.

    See Also
    --------
    mercer.solvers.linear.penalty_path.PenaltyPath : The formulas, their sources, and its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ridge_path
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = np.sin(3 * X[:, 0]) + 0.2 * np.cos(50 * X[:, 0])
    >>> path = ridge_path(X, y, [1e-4, 1e-2, 1.0, 100.0], kernel="rbf")
    >>> path.loo.round(3).tolist()
    [0.034, 0.029, 0.079, 0.461]
    >>> path.best("loo").alpha, path.best("evidence").alpha
    (0.01, 0.01)
    >>> max(c.kkt_violation for c in path.certificates) < 1e-12
    True
    """
    start_time = time.perf_counter()
    model = _prototype(estimator, parameters)
    models, curves = model.fit_penalties(X, y, alphas, sample_weight)
    values = [float(fitted.alpha) for fitted in models]
    return RidgePath(tuple(values), tuple(models), curves, time.perf_counter() - start_time)


def _prototype(estimator: Any, parameters: dict[str, Any]) -> KernelRidge:
    """A new estimator with the parameters, all but the penalty."""
    estimator = KernelRidge() if estimator is None else estimator
    if not isinstance(estimator, KernelRidge):
        raise ParameterError(f"estimator must be a KernelRidge, but is {estimator!r}.")
    options = estimator.get_params(deep=False)
    for name in parameters:
        if name not in options and "__" not in name:
            raise ParameterError(f"KernelRidge has no parameter {name!r}.")
    if "alpha" in parameters:
        raise ParameterError(f"alpha={parameters['alpha']!r} is given; the path takes alphas, as its third argument.")
    model: KernelRidge = clone(estimator).set_params(**parameters)
    return model
