"""The weight vectors of classifiers by pairs of classes, and the widths of their margins."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector
from mercer.estimators.shared.layout import laid_out_as, read_only
from mercer.estimators.shared.primal import PrimalWeights
from mercer.estimators.svm.one_vs_one import JointExpansion, pair_values, squared_norms_of_pairs, sums_of_pairs


class PairWeights(PrimalWeights):
    """Base of the classifiers by pairs: w of each pair, its length, and the width of its margin."""

    support_: NDArray[np.int32]
    support_vectors_: Any
    intercept_: Vector
    margins_: Vector

    @property
    @abstractmethod
    def _expansion(self) -> JointExpansion:
        """The joint expansion, positive for the first class of a pair."""

    @property
    @abstractmethod
    def _sign(self) -> float:
        """The sign of decision values that stand for the first class of a pair."""

    def _expansion_rows(self) -> Any:
        return self.support_vectors_

    def _coefficients(self) -> Vector:
        phi = self.feature_map_
        expansion = replace(self._expansion, intercept=np.zeros(len(self.intercept_)))
        return self._sign * pair_values(self._feature_product(phi), expansion, phi.n_output_features_).T

    def _squared_norms(self, gram: Any) -> tuple[Vector, Vector]:
        return squared_norms_of_pairs(gram, self._expansion)

    def _norms(self, rows: Any) -> Vector:
        return super()._norms(rows) if len(self.support_) else np.zeros(len(self.intercept_))

    def _norms_without_rows(self) -> Vector:
        # Weights that sum to 0, or no offset: a'Ka is the sum of the sizes of the weights times their margins.
        expansion = self._expansion
        terms = np.abs(expansion.dual_coef) * np.atleast_2d(self.margins_)[:, expansion.support]
        return np.sqrt(np.maximum(sums_of_pairs(terms, expansion.n_support), 0.0))

    @property
    def coef_(self) -> Any:
        """w of each pair of classes, (k (k - 1) / 2, p), read-only, for kernels with a finite feature map.

        The p columns belong to the features of ``feature_map_``: the columns of X for the linear kernel.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        return read_only(laid_out_as(self._expansion_rows(), self._coefficients()))

    @property
    def margin_(self) -> Vector:
        """``2 / norm_``: the width of the margin of each pair of classes in feature space, (k (k - 1) / 2,)."""
        return margin_widths(self.norm_)


def margin_widths(norms: Vector) -> Vector:
    """``2 / |w|``: the distance between the hyperplanes f = -1 and f = 1; infinite where w is 0.

    Examples
    --------
    >>> margin_widths(np.array([4.0, 0.0])).tolist()
    [0.5, inf]
    """
    return read_only(np.divide(2.0, norms, out=np.full_like(norms, np.inf), where=norms != 0))
