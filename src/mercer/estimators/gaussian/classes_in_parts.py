"""Gaussian process classification over landmarks on rows that are read block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.blocks.blocks import Blocks
from mercer.estimators.gaussian.classes_over_landmarks import ClassLandmarkFit
from mercer.estimators.gaussian.in_parts import BlockedCross
from mercer.landmarks.choose import Landmarks
from mercer.solvers.gaussian.inducing_laplace import InducingEvidence


@dataclass(frozen=True, eq=False)
class ClassPartsFit(ClassLandmarkFit):
    """A fit whose rows and classes are those of a sample, but for the mode, which has all rows.

    Parameters
    ----------
    blocks : Blocks
    all_codes : ndarray of shape (n,)
    """

    blocks: Blocks
    all_codes: NDArray[np.intp]

    def run(self) -> None:
        super().run()
        if self.learner.search_ is not None:
            self.learner.search_rows_ = len(self.codes)

    def _choose(self, theta: Any, random: np.random.RandomState) -> Landmarks:
        # Positions would be those in the sample.
        return Landmarks(super()._choose(theta, random).rows, None)

    def _of_all_rows(self, evidence: InducingEvidence) -> InducingEvidence:
        """The same landmarks and parameters, from the mode of the sample on."""
        sample: Any = evidence.problem.covariance
        covariance = BlockedCross(sample.kernel, self.blocks, sample.landmarks, sample.n_jobs)
        return evidence.of(replace(evidence.problem, covariance=covariance, codes=self.all_codes))
