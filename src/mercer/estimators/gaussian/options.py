"""Parameters of the learners with Gaussian processes: checked, and turned into what the solvers take."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError, ParameterError
from mercer._types import CheckedRows, Matrix, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects, short
from mercer.engine.tiles import spans
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.degenerate import median_distance
from mercer.estimators.shared.parameters import is_among, require_seed, require_whole
from mercer.gram import Gram
from mercer.kernels import RBF, ExpSineSquared, Kernel, Periodic, White
from mercer.kernels.algebra import Scaled
from mercer.kernels.inputs import Rows
from mercer.kernels.modifiers import On, Warped
from mercer.kernels.parameters import Parameter, check_bounds

ALPHA = 1e-10
NOISE_BOUNDS = (1e-8, 1e5)
# Where the search for the noise starts, as a share of the mean square of the targets.
NOISE_SHARE = 0.1
# Rows of which distances are compared.
_DISTANT = 500
# Rows of a block of which the diagonal alone is needed.
_EQUAL_ROWS = 32


def check_search(learner: KernelEstimator, *words: str) -> None:
    """Raise unless ``optimizer``, ``n_restarts_optimizer`` and ``random_state`` make sense.

    ``words`` are allowed in place of a number of restarts.
    """
    if not callable(learner.optimizer) and not is_among(learner.optimizer, ("fmin_l_bfgs_b", None)):
        raise ParameterError(
            f"optimizer must be 'fmin_l_bfgs_b', a function (objective, start, bounds) -> (theta, value), or None to "
            f"keep the hyper-parameters fixed, but is {learner.optimizer!r}."
        )
    if not is_among(learner.n_restarts_optimizer, words):
        allowed = " or ".join(["a whole number of at least 0", *map(repr, words)])
        require_whole(learner, "n_restarts_optimizer", allowed, least=0)
    require_seed(learner)


def row_variances(alpha: Any, n: int) -> Vector:
    """``alpha`` as a variance for each of n rows."""
    try:
        values = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"alpha must be a number or one for each row, but is {short(alpha)}.") from error
    if values.ndim > 1 or values.size not in (1, n):
        raise ParameterError(
            f"alpha must be a scalar or an array with as many entries as y: there are {n} rows, and its shape is "
            f"{values.shape}."
        )
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if wrong.size:
        raise ParameterError(f"alpha must be finite and at least 0, but is {wrong.flat[0]}.")
    return np.broadcast_to(values.ravel(), n).copy() if values.size == 1 else values.copy()


def _are_variances(model: Any) -> bool:
    """Whether ``alpha`` is one variance or several; how many rows a fit over landmarks had is not kept."""
    try:
        row_variances(model.alpha, max(1, np.size(model.alpha)))
    except ParameterError:
        return False
    return True


VARIANCES = ("alpha is not a variance of at least 0, or one for each row", _are_variances)
"""A rule for the fitted object: predictions of observations add ``alpha``."""


def default_kernel(X: CheckedRows) -> Kernel:
    """``1.0 * RBF`` with the median distance of rows as its length scale; bounds are around it.

    >>> default_kernel(np.array([[0.0], [300.0], [600.0]]))
    1.0 * RBF(300.0).bounded(length_scale=(0.003, 30000000.0))
    """
    length = spread(X)
    if length is None:
        return 1.0 * RBF(1.0)
    low, high = RBF(1.0).parameters[0].bounds
    return 1.0 * RBF(length).bounded(length_scale=(length * low, length * high))


def spread(X: CheckedRows) -> float | None:
    """The median distance of two rows; None if it is 0, or there are no rows of numbers.

    >>> spread(np.array([[0.0], [300.0], [600.0]]))
    300.0
    """
    if isinstance(X, (Objects, MixedRows)) or X.shape[0] < 2:
        return None
    # Rows in equal steps, in any order: a table may be sorted.
    length = median_distance(X[:: -(-X.shape[0] // _DISTANT)])
    return length if 0 < length < np.inf else None


def is_bare(kernel: Kernel | None) -> bool:
    """Whether it compares objects, such as strings, and has neither a factor nor noise of its own.

    >>> from mercer.kernels import Spectrum, White
    >>> is_bare(Spectrum(3).normalized()), is_bare(2.0 * Spectrum(3)), is_bare(RBF(1.0))
    (True, False, False)
    """
    if kernel is None or not isinstance(kernel.kind_of_rows(), type):
        return False
    return not has_part(kernel, (Scaled, White))


def has_part(part: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a kernel has a part of one of some classes.

    >>> from mercer.kernels import White
    >>> has_part(RBF(1.0) * White(2.0), (White,)), has_part(RBF(1.0), (White,))
    (True, False)
    """
    return isinstance(part, kinds) or any(has_part(child, kinds) for _, child in part.children())


def scaled(kernel: Kernel, scale: float) -> Kernel:
    """The kernel times a free factor, whose start is ``scale``; bounds are around it."""
    inner: Any = kernel.children()[0][1] if isinstance(kernel, Scaled) else kernel
    low, high = Scaled(inner, 1.0).parameters[0].bounds
    result: Kernel = Scaled(inner, scale).bounded(factor=(scale * low, scale * high))
    return result


def noise_parameter(noise: Any, bounds: Any, scale: float | None = None) -> Parameter | None:
    """The variance of the noise as a hyper-parameter; None if it is not one.

    ``scale`` is the unit of noise that is ``"auto"``; None if it is not learnt.
    """
    if isinstance(noise, str) and noise == "auto":
        if scale is None:
            return None
        if tuple(bounds) == NOISE_BOUNDS:
            bounds = tuple(scale * b for b in NOISE_BOUNDS)
        noise = float(np.clip(NOISE_SHARE * scale, *bounds))
    if noise is None:
        return None
    low, high = check_bounds("noise_bounds", bounds)
    real = isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool)
    if not real or not 0 < noise < np.inf:
        raise ParameterError(
            "noise must be 'auto', None or the positive variance at which the search starts, but is "
            f"{short(noise)}. For a known variance pass alpha."
        )
    if low <= 0:
        raise ParameterError(f"noise_bounds must be above 0, but are {short(bounds)}.")
    return Parameter("noise", float(noise), (low, high), "log", True)


def mean_functions(mean: str, X: CheckedRows, center: Vector | None) -> Matrix | None:
    """The basis functions of the mean in rows of X: none, 1, or 1 and the columns about ``center``."""
    if mean == "zero":
        return None
    ones = np.ones((X.shape[0], 1))
    if mean == "constant":
        return ones
    if sp.issparse(X):
        raise DataError('mean="linear" needs dense rows; pass X.toarray(), or choose mean="constant".')
    if isinstance(X, (Objects, MixedRows)):
        raise DataError('mean="linear" needs rows of numbers, and X holds objects; choose mean="constant".')
    centred = np.asarray(X, dtype=np.float64) - (0.0 if center is None else center)
    return np.concatenate([ones, centred], axis=1)


def targets_and_trend_fit(model: KernelEstimator) -> bool:
    """Whether the means of the targets and the coefficients of the mean function are as many as the parameters say."""
    several, trend = model.alpha_.shape[1:], model._trend
    dense = isinstance(model.X_train_, np.ndarray)
    if model._y_mean.shape != several or (model._center is not None) != (model.mean == "linear"):
        return False
    if (trend is None) != (model.mean == "zero") or trend is None:
        return bool(trend is None and model.mean == "zero")
    count = 1 if model.mean == "constant" else model.n_features_in_ + 1
    columns = several[0] if several else 1
    fits = trend.solved.shape[0] == len(model.alpha_) and trend.coefficients.shape[1] == columns
    return bool(fits and trend.transform.shape[0] == count and (dense or model.mean != "linear"))


TARGETS_AND_TREND = ("the targets, the mean function and its coefficients do not match", targets_and_trend_fit)


def rows_or_landmarks(model: KernelEstimator) -> bool:
    """Whether there are the targets and the noise of all rows, or factors of as many landmarks as coefficients."""
    factors = model._landmark_factors
    if (model.y_train_ is None) != (factors is not None) or (model._variances is None) != (factors is not None):
        return False
    attributes = vars(model).keys()
    if factors is None:
        return not {"landmark_indices_", "log_marginal_likelihood_bounds_"} & attributes
    whole = {"landmark_indices_", "log_marginal_likelihood_bounds_"} <= attributes and "L_" not in attributes
    same = len(factors.landmarks) == len(factors.system) == len(model.alpha_)
    return whole and same and model.kernel_ is not None


ROWS_OR_LANDMARKS = ("there are neither all rows nor landmarks, with all that belongs to them", rows_or_landmarks)


def one_column_kernel(kernel: Kernel, columns: int | None) -> Kernel:
    """The kernel with ``ExpSineSquared`` as ``Periodic`` where it sees one column: there they are the same.

    On one column it is positive semi-definite, which its class cannot say of itself.

    >>> one_column_kernel(2.0 * ExpSineSquared(1.0, period=3.0).on([1]), 4)
    2.0 * Periodic(1.0, period=3.0).on([1])
    """
    if isinstance(kernel, ExpSineSquared) and columns == 1:
        return Periodic(kernel.length_scale, kernel.period, tuning=kernel.tuning)
    inside = len(kernel.columns) if isinstance(kernel, On) else None if isinstance(kernel, Warped) else columns
    parts = tuple(one_column_kernel(child, inside) for _, child in kernel.children())  # type: ignore[arg-type]
    if all(new is old for new, (_, old) in zip(parts, kernel.children(), strict=True)):
        return kernel
    changed: Kernel = kernel.with_children(parts)
    return changed


def require_observation(observation: Any) -> None:
    """Raise ParameterError unless ``observation`` is True, False or None."""
    if observation is not None and not isinstance(observation, (bool, np.bool_)):
        raise ParameterError(
            f"observation must be True (variances of new observations), False (of the function) or None, but is "
            f"{observation!r}."
        )


def function_variance(kernel: Kernel, rows: Rows) -> Vector:
    """``k(x_i, z_i)`` for a row z_i that is equal to x_i and not the same one: ``k(x_i, x_i)`` without ``White`` terms.

    >>> from mercer.kernels import RBF, White
    >>> function_variance(2.0 * RBF(1.0) + White(0.5), Rows(np.zeros((2, 1)))).tolist()
    [2.0, 2.0]
    """
    out = np.empty(rows.n)
    for part in spans(rows.n, _EQUAL_ROWS):
        some = rows.take(part).raw
        out[part] = Gram(kernel, Rows(some), Rows(some), dtype=np.float64, n_jobs=1).dense().diagonal()
    return out
