"""The two forms of a model that stochastic descent learns: features and w, or kernel rows and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_is_fitted

from mercer._errors import ParameterError
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.distinct import behind, places_among, stacked
from mercer.data.fitted import Fitted
from mercer.data.sklearn_errors import advised
from mercer.data.statements import Count, Flag, Floats, Is, Labels, Whole
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import is_usable
from mercer.estimators.shared.expansion import (
    KernelExpansion,
    coef_of,
    feature_map_of,
    norm_of,
    of_support,
    unless_stored,
)
from mercer.estimators.shared.layout import read_only
from mercer.estimators.shared.statements import SupportRows, form_is_whole, outputs
from mercer.estimators.shared.weights import fit_weighted_kernel
from mercer.kernels.vector.dot import Linear
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.stochastic_rows import STATE_TABLE, DescentState, FeatureRows, KernelRows, StochasticRows


@dataclass
class Training:
    """Rows to learn from, the walk over them, and what its coefficients belong to.

    In the kernel form ``vectors`` are the p rows of the expansion and ``positions`` (p,) where they are in X, -1 for
    those that are not there; both are None in the primal form.
    """

    rows: StochasticRows
    walk: DescentState
    vectors: Any = None
    positions: NDArray[np.intp] | None = None


class SGDForms(KernelEstimator):
    """Base of the classifier: what its parameters ``feature_map``, ``fit_intercept`` and ``kernel`` come to.

    ``_walk`` holds the fields of the walk so far; its coefficients belong to the features, or to
    ``support_vectors_``.
    """

    feature_map: Any
    fit_intercept: Any
    average: Any
    classes_: np.ndarray
    support_: NDArray[np.intp]
    support_vectors_: Any
    dual_coef_: Vector
    _fitted = Fitted(
        {
            "classes_": Labels("k", least=2),
            "_primal": Flag(),
            "intercept_": Floats("outputs"),
            "t_": Count(),
            "n_iter_": Count(),
            "_walk": STATE_TABLE,
        },
        {
            "support_": Whole("s"),
            "support_vectors_": SupportRows("s"),
            "dual_coef_": Floats("outputs, s"),
            "coef_": Floats("outputs, features"),
            "feature_map_": Is(BaseEstimator),
            "certificate_": Is(Certificate),
            "_convex": Flag(),
        },
        derived={"outputs": outputs},
        rules=(("the form is neither that of a kernel nor that of features", form_is_whole),),
    )

    # The primal form stores w, and the map if one was given.
    coef_ = unless_stored(coef_of)
    feature_map_ = unless_stored(feature_map_of)

    @property
    def norm_(self) -> Vector:
        """The length of w of each function, (outputs,), in the feature space of any kernel."""
        check_is_fitted(self, "classes_")
        return read_only(np.linalg.norm(self.coef_, axis=1)) if self._primal else norm_of(self)

    @property
    def _expansion(self) -> KernelExpansion:
        if self._primal:
            # In this form only the map is used.
            return KernelExpansion(Linear(), np.empty((0, self.n_features_in_)), np.empty((len(self.coef_), 0)))
        return of_support(self)

    def _check_X(self, X: RowsLike, *, reset: bool) -> Any:
        X = super()._check_X(X, reset=reset)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    @property
    def _needs_no_kernel(self) -> bool:
        return self._is_precomputed or bool(getattr(self, "_primal", False))

    @property
    def _outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _begin(self, X: CheckedRows, rows: NDArray[np.intp], weight: Vector) -> Any:
        """Choose the form, fit the kernel or the map to ``X[rows]``, and forget what was learned.

        These rows as one side of matrices, or None where there is a map.
        """
        for name in ("_walk", "coef_", "dual_coef_", "support_", "support_vectors_", "certificate_", "feature_map_"):
            self.__dict__.pop(name, None)
        named = isinstance(self.feature_map, str)
        if self.feature_map is not None and not (named and self.feature_map == "auto"):
            if self._is_precomputed:
                raise ParameterError(
                    f'feature_map={self.feature_map!r} maps rows, and kernel="precomputed" has none; leave out one.'
                )
            self._primal, self.kernel_ = True, None
            if not named:
                self.feature_map_ = clone(self.feature_map).fit(X[rows])
            return None
        learned_from = X if self._is_precomputed else X[rows]
        fit_weighted_kernel(self, learned_from, weight, intercept=False)
        inputs = self._rows(learned_from)
        if self.kernel_ is not None and not self._is_taken_on_trust():
            self._convex = is_usable(self.kernel_, intercept=False)
        else:
            positions = np.arange(X.shape[0]) if self._is_precomputed else rows
            self._convex = self._is_convex(self._gram(inputs), positions, X.dtype, intercept=False)
        self._primal = self.feature_map is not None and self.kernel_ == Linear()
        return inputs

    def _training(self, X: CheckedRows, rows: NDArray[np.intp], inputs: Any = None) -> Training:
        """The rows ``X[rows]`` in the form of the model, with the walk so far carried over to them.

        ``inputs`` is what ``_begin`` returned, if it was called.
        """
        if self._primal:
            features = self._mapped(X[rows])
            if self.fit_intercept:
                ones = np.ones((features.shape[0], 1), dtype=features.dtype)
                features = (
                    sp.hstack([features, ones], format="csr") if sp.issparse(features) else np.hstack([features, ones])
                )
            return Training(FeatureRows(features), self._carried(features.shape[1], None))
        if self.kernel_ is None:
            places, others = self._places_among(rows)
            union = np.concatenate([rows, self.support_[others]]) if len(others) else rows
            gram, vectors, positions = self._gram(X[np.ix_(union, union)]), None, union
        else:
            vectors = X[rows]
            places, others = self._places_of_equals(vectors)
            if len(others):
                vectors = stacked(vectors, self.support_vectors_[others])
            gram = self._gram(vectors if inputs is None or len(others) else inputs)
            positions = np.concatenate([rows, np.full(len(others), -1)])
        constant = 1.0 if self.fit_intercept else 0.0
        operand = KernelRows(gram, len(rows), constant)
        return Training(operand, self._carried(operand.shape[1], places), vectors, positions)

    def _carried(self, p: int, places: NDArray[np.intp] | None) -> DescentState:
        """The walk so far with its coefficients at ``places`` of p; one that has not begun if there is none."""
        before = getattr(self, "_walk", None)
        if before is None:
            zeros = np.zeros((self._outputs, p))
            return DescentState(zeros, zeros.copy(), float(self.alpha))
        walk = DescentState(**before)
        if places is None:
            walk.theta, walk.lagged = walk.theta.copy(), walk.lagged.copy()
            return walk
        for name in ("theta", "lagged"):
            moved = np.zeros((self._outputs, p))
            moved[:, places] = before[name]
            setattr(walk, name, moved)
        return walk

    def _places_among(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the support vectors of a precomputed matrix go: to their places in ``rows``, the others behind."""
        support = getattr(self, "support_", np.empty(0, dtype=np.intp))
        place = np.full(max(rows.max(), support.max(initial=0)) + 1, -1)
        place[rows] = np.arange(len(rows))
        return behind(place[support], len(rows))

    def _places_of_equals(self, vectors: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the support vectors so far go: to rows equal to them, the others behind."""
        if not hasattr(self, "support_vectors_"):
            return behind(np.empty(0, dtype=np.intp), vectors.shape[0])
        return places_among(vectors, self.support_vectors_)

    def _mapped(self, X: CheckedRows) -> Any:
        """The features of the primal form, without the constant one."""
        if "feature_map_" not in vars(self):
            return X
        with advised():
            return check_array(
                self.feature_map_.transform(X),
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                input_name="the output of feature_map",
            )

    def _keep(self, training: Training, *, sort: bool) -> None:
        """Set the attributes that hold what was learned; ``sort`` the support vectors by their places in X."""
        walk = training.walk
        coefficients = walk.mean() if self.average else walk.last()
        if training.positions is None:
            p = coefficients.shape[1] - int(self.fit_intercept)
            self.coef_ = coefficients[:, :p]
            self.intercept_ = coefficients[:, p] if self.fit_intercept else np.zeros(self._outputs)
        else:
            support = np.flatnonzero(walk.theta.any(axis=0) | walk.lagged.any(axis=0))
            if sort:
                support = support[np.argsort(training.positions[support], kind="stable")]
                self.support_ = training.positions[support]
            elif hasattr(self, "support_"):
                del self.support_
            self.support_vectors_ = np.empty((0, 0)) if training.vectors is None else training.vectors[support]
            self.dual_coef_ = coefficients[:, support]
            self.intercept_ = self.dual_coef_.sum(axis=1) * float(bool(self.fit_intercept))
            walk.theta, walk.lagged = walk.theta[:, support], walk.lagged[:, support]
        self._walk = dict(vars(walk))
        self.t_ = walk.steps
