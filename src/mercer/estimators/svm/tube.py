"""What the regressions with an epsilon-tube share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from mercer._types import Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats, Words
from mercer.estimators.shared.parameters import require_number
from mercer.estimators.svm.single_expansion import Learned, SingleExpansion, roles


class TubeRegressor(RegressorMixin, SingleExpansion):
    """Base of the regressions by support vectors; the constructor must have ``C``, too."""

    C: Any
    slacks_above_: Vector
    slacks_below_: Vector
    roles_: NDArray[np.str_]
    _fitted = Fitted(
        {
            "slacks_above_": Floats("n", least=0),
            "slacks_below_": Floats("n", least=0),
            "roles_": Words("n", ("outside", "inside", "on")),
        }
    )

    def predict(self, X: Any) -> Vector:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
            In float64.
        """
        return self._values(X)

    def _bound(self, weight: Vector) -> Vector:
        return np.asarray(self.C * weight)

    def _check_C(self) -> None:
        advice = ""
        if isinstance(self.C, float) and np.isposinf(self.C):
            advice = "Take a large C, such as 1e6, for residuals that hardly leave the tube."
        require_number(self, "C", "a finite number above 0", lambda value: 0 < value < np.inf, advice)

    def _describe_tube(self, learned: Learned, width: float, weight: Vector) -> None:
        """Set the slacks and the roles of the rows."""
        self.slacks_above_ = np.maximum(learned.residual - width, 0.0)
        self.slacks_below_ = np.maximum(-learned.residual - width, 0.0)
        self.roles_ = roles(learned.weights, self._bound(weight), self.slacks_above_ + self.slacks_below_)
