"""The entry point: identify the model and its coefficients."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from mercer._errors import ParameterError
from mercer.data.vectors import as_vectors
from mercer.engine import memory, threads
from mercer.estimators.shared.given_coefficients import CertifiesCoefficients, GivenCoefficients
from mercer.kernels.convert import rate_of_scale
from mercer.solvers.solution import Certificate

# The package, whose names are loaded when they are first used.
_PACKAGE = importlib.import_module("mercer")
# What says which problem is solved; all else is about how.
_OF_THE_PROBLEM = ("kernel", "gamma", "degree", "coef0", "kernel_params", "C", "epsilon", "nu", "alpha", "class_weight")


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    dual_coef: Any = None,
    intercept: Any = None,
    support: Any = None,
    sample_weight: Any = None,
) -> Certificate:
    r"""Certify how good given coefficients are for the problem of a learner, whatever their origin.

    The primal objective P is evaluated at the function :math:`f(x) = \sum_i a_i k(x_i, x) + b` of the coefficients, and
    the dual objective D at the nearest feasible multipliers. By weak duality the optimal value lies between them,

    .. math:: D \le P^* \le P, \qquad \tfrac{\lambda}{2} \|w - w^*\|^2 \le P - D,

    so that a small ``gap`` proves that the coefficients are good; forged coefficients cannot have one. :math:`\lambda`
    is the factor of half the squared norm in P. For :class:`KernelRidge` the gap is the squared residual of its linear
    system, and the bound on :math:`\|w - w^*\|` is half as large.

    Parameters
    ----------
    model : estimator
        An :class:`SVC` (one pair of classes after the other), :class:`SVR`, :class:`OneClassSVM`, :class:`KernelRidge`,
        :class:`KernelLogisticRegression` or :class:`KernelMachine`, whose parameters state the problem; or
        scikit-learn's ``SVC``, ``SVR``, ``OneClassSVM`` or ``KernelRidge``. If it is fitted, its own coefficients are
        used unless others are given. It is not changed.
    X : array-like or sparse matrix of shape (n, d)
        The training rows, or for ``"precomputed"`` their kernel matrix.
    y : array-like of shape (n,) or (n, n_targets), optional
        The training targets or labels.
    dual_coef : array-like or sparse matrix, optional
        The coefficients a, laid out as the attribute ``dual_coef_`` of the learner: a column for each row of X, or for
        each row that ``support`` names.
    intercept : float or array-like, optional
        The offsets b, as the attribute ``intercept_``. None for those that minimise the primal objective.
    support : array-like of int of shape (n_sv,), optional
        The rows of X that ``dual_coef`` belongs to, as the attribute ``support_``; None for all.
    sample_weight : array-like of shape (n,), optional
        The weights of the fit.

    Returns
    -------
    Certificate
        With the status ``given``. Its ``violations`` contain ``"distance"``, the bound on :math:`\|w - w^*\|` (if the
        penalty is a squared norm), and how far the coefficients are from feasible: ``"box"`` and ``"sum"``. Several
        problems (pairs of classes, targets) share one certificate: objectives are summed, and the worst violation
        counts. With an indefinite kernel ``convex`` is False, and the gap bounds nothing.

    Raises
    ------
    TypeError
        If this learner has no certificate.
    ParameterError
        If a parameter is out of its range, or no coefficients are given and the model is not fitted.
    DataError
        If the shape of the coefficients does not match the problem, they are not finite, or the data cannot be used.

    References
    ----------
    S. Boyd and L. Vandenberghe, "Convex Optimization" (2004), sections 5.5.1 and 9.1.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn import svm
    >>> from mercer import SVC, certify
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] > X[:, 1] ** 2
    >>> peer = svm.SVC(C=1.0, gamma=0.5).fit(X, y)
    >>> certificate = certify(peer, X, y)
    >>> certificate.relative_gap < 1e-3, certificate.violations["box"]
    (True, 0.0)
    >>> forged = certify(SVC(C=1.0, gamma=0.5), X, y, dual_coef=np.where(y, 2.0, -2.0))
    >>> forged.relative_gap > 0.5, forged.violations["box"]
    (True, 1.0)
    """
    start_time = time.perf_counter()
    kind = _learner_class(model)
    given = _given(model, dual_coef, intercept, support)
    learner = _stated(model, kind, X)
    with memory.track() as account, threads.workers(learner.n_jobs):
        certificate = learner.certificate_of(given, X, y, sample_weight)
    return replace(certificate, seconds=time.perf_counter() - start_time, peak_bytes=account.peak)


def _learner_class(model: Any) -> type[CertifiesCoefficients]:
    """The class of the model; for a model of scikit-learn, the class of the same name, which has the same problem."""
    kind = type(model)
    if kind.__module__.partition(".")[0] == "sklearn":
        kind = getattr(_PACKAGE, kind.__name__, kind)
    if not hasattr(kind, "certificate_of"):
        known = [name for name in _PACKAGE.__all__ if hasattr(getattr(_PACKAGE, name), "certificate_of")]
        what = f"the class {model.__name__}" if isinstance(model, type) else f"{model!r}"
        raise TypeError(
            f"certify takes a {', '.join(known)}, or an estimator of scikit-learn with one of these names, but got "
            f"{what}. Mercer's other learners have the certificate of their fit in certificate_."
        )
    return kind


def _given(model: Any, dual_coef: Any, intercept: Any, support: Any) -> GivenCoefficients:
    """The coefficients that were given, else those of the model."""
    if dual_coef is not None:
        return GivenCoefficients(dual_coef, support, intercept)
    if support is not None:
        raise ParameterError("support names the rows of dual_coef, but dual_coef is missing; pass both.")
    if not hasattr(model, "dual_coef_"):
        raise ParameterError(
            f"there are no coefficients to certify: {model!r} is not fitted. Pass dual_coef, or a fitted model."
        )
    own = getattr(model, "intercept_", None) if intercept is None else intercept
    return GivenCoefficients(model.dual_coef_, getattr(model, "support_", None), own)


def _stated(model: Any, kind: type[CertifiesCoefficients], X: Any) -> CertifiesCoefficients:
    """An unfitted learner of Mercer with the problem of the model."""
    params = model.get_params(deep=False)
    if type(model) is kind:
        changes: dict[str, Any] = {"warm_start": False} if "warm_start" in params else {}
        if isinstance(params.get("alpha"), str) and hasattr(model, "alpha_"):
            # The penalty that the fit has chosen.
            changes["alpha"] = model.alpha_
        chosen = [name for name, value in params.items() if isinstance(value, str) and value == "cv"]
        changes |= {name: getattr(model, f"{name}_") for name in chosen if hasattr(model, f"{name}_")}
        return clone(model).set_params(**changes)
    arguments = {name: params[name] for name in _OF_THE_PROBLEM if name in params}
    if arguments.get("gamma") == "scale" and arguments["kernel"] != "precomputed" and not callable(arguments["kernel"]):
        # Scikit-learn takes the variance of the rows whatever their weights are.
        arguments["gamma"] = rate_of_scale(as_vectors(X))
    if hasattr(model, "class_weight_") and "class_weight" in params:
        arguments["class_weight"] = dict(zip(model.classes_.tolist(), model.class_weight_.tolist(), strict=True))
    return kind(**arguments)
