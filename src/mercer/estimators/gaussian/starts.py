"""Where the search for hyper-parameters starts: at what was given, and at the spread of rows and targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import CheckedRows, Matrix, Vector
from mercer.estimators.gaussian.options import NOISE_SHARE, spread
from mercer.estimators.gaussian.periodogram import parts_of, period_starts
from mercer.kernels import Constant, Kernel, White
from mercer.kernels.algebra import Scaled
from mercer.kernels.parameters import Parameter
from mercer.kernels.vector.stationary import StationaryKernel

# Up to so many rows, a search takes a fraction of a second, and there may be a third start.
_SMALL = 500
# Of latent functions of classes: one deviation from 0, a class has the probability 0.12 or 0.88.
_LATENT_VARIANCE = 4.0
# Two ends agree if their log evidence differs by less.
_SAME = 1e-2


def starts_of(
    model: Any, kernel: Kernel | None, X: CheckedRows, parameters: Sequence[Parameter], y: Matrix | None = None
) -> dict[str, Any]:
    """Arguments of ``MultiStart`` by ``n_restarts_optimizer``; y are the targets of regression, None for classes."""
    periods = [] if y is None else period_starts(kernel, X, y, parameters)
    if model.n_restarts_optimizer != "auto":
        return {"restarts": int(model.n_restarts_optimizer), "more": periods}
    if callable(model.optimizer):
        return {"more": periods}
    scale = _LATENT_VARIANCE
    if y is not None:
        scale = float(np.mean(np.square(y if model.mean == "zero" else y - y.mean(axis=0))))
    given = [np.array([p.theta for p in parameters]), *periods]
    return {"more": data_starts(kernel, X, y, scale, parameters, given)[1:], "until": _SAME}


def data_starts(
    kernel: Kernel | None,
    X: CheckedRows,
    y: Matrix | None,
    scale: float,
    parameters: Sequence[Parameter],
    given: Sequence[Vector],
) -> list[Vector]:
    """``given`` and other starts: factors at ``scale``, noise at a tenth, length scales at the median distance of rows.

    Few rows have one before, with a quarter of these length scales and a tenth of the noise: two ends agree most often
    where all is noise, which hides structure of short length. Periods are peaks of a periodogram.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> kernel, X = 1.0 * RBF(1.0) + White(1.0), np.array([[0.0], [300.0], [600.0]])
    >>> for start in data_starts(kernel, X, None, 50.0, kernel.parameters, []):
    ...     print(np.exp(start).round(1).tolist())
    [50.0, 75.0, 0.5]
    [50.0, 300.0, 5.0]
    """
    lengths, variances, noises = _places(kernel, X)
    starts = list(given)
    for length, noise in ((0.25, 0.1), (1.0, 1.0))[X.shape[0] > _SMALL :]:
        values = {name: length * value for name, value in lengths.items()}
        values |= dict.fromkeys(variances, scale) | dict.fromkeys(noises, NOISE_SHARE * noise * scale)
        moved = [
            dataclasses.replace(p, value=float(np.clip(values.get(p.name, p.value), *p.bounds))) for p in parameters
        ]
        periods = [] if y is None else period_starts(kernel, X, y, moved)
        start = periods[0] if periods else np.array([p.theta for p in moved])
        if not any(np.allclose(start, other) for other in starts):
            starts.append(start)
    return starts


def _places(kernel: Kernel | None, X: CheckedRows) -> tuple[dict[str, float], list[str], list[str]]:
    """Names of length scales, with the distances of rows that they see, of other variances, and of those of noise."""
    lengths: dict[str, float] = {}
    variances, noises = [], ["noise"]
    whole = tuple(range(X.shape[1])) if isinstance(X, np.ndarray) or sp.issparse(X) else ()
    for part, path, columns in () if kernel is None else parts_of(kernel, "", whole):
        if isinstance(part, (Scaled, Constant)):
            variances += [path + "factor", path + "value"]
        elif isinstance(part, White):
            noises.append(path + "variance")
        elif isinstance(part, StationaryKernel) and columns and (length := spread(X[:, list(columns)])):
            lengths[path + "length_scale"] = length
            for place, column in enumerate(columns):
                # Together, these make distances of 1 as well.
                own = spread(X[:, [column]])
                lengths[f"{path}length_scale[{place}]"] = own * len(columns) ** 0.5 if own else length
    return lengths, variances, noises
