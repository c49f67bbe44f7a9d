"""What the regressor and the classifier of tables share: reading the table, choosing rows, learning the kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from mercer._documentation import documented
from mercer._errors import DataError, MercerWarning, warn_user
from mercer._registered import CommandLine
from mercer._sklearn import check_feature_names, check_n_features
from mercer._types import Matrix, Positions, RowsLike, Vector
from mercer.data.column_encoder import ColumnEncoder
from mercer.data.column_entries import read_columns
from mercer.data.column_features import FARTHEST
from mercer.data.fitted import Fitted
from mercer.data.graph import Graph, is_networkx
from mercer.data.objects import short
from mercer.data.seeds import generator
from mercer.data.sklearn_errors import advised
from mercer.data.statements import Count, Floats, Is, Labels, Number
from mercer.data.vectors import refuse_unreal
from mercer.engine import memory
from mercer.engine.threads import OneBlasThread
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.shared.parameters import require_flags, require_whole
from mercer.estimators.shared.statements import Jobs
from mercer.estimators.shared.weights import check_sample_weight
from mercer.estimators.shared.whole_rows import refuse_parts
from mercer.estimators.tabular.mixture import MOST_SCALES, Learned, Mixture, RowNoise, learn, relevance, strata
from mercer.estimators.tabular.new_gaps import NewGaps
from mercer.estimators.tabular.penalty import way_of_choice
from mercer.estimators.tabular.repeats import merged
from mercer.kernels import Kernel
from mercer.kernels.kinds import are_objects
from mercer.solvers.gaussian.search import Search
from mercer.solvers.solution import Certificate

# Matrices of n x n in float64 that a fit and its checks hold at once, and rows beyond which it takes minutes.
_MATRICES, _MOST_ROWS = 3, 20_000


def _chosen(model: Any) -> str:
    rows = min(model.n_rows_, model.search_rows)
    cost = f", C={model.model_.C:.4g} by {way_of_choice(rows)}" if hasattr(model.model_, "C") else ""
    return f"the kernel by the evidence on {rows} rows, {model.search_.evaluations} evaluations{cost}"


@documented
class TabularModel(BaseEstimator, OneBlasThread):
    """Base of the estimators that choose everything for a table themselves.

    Needs the constructor parameters ``kinds, search_rows, max_rows, warm_start, random_state, n_jobs``.
    """

    kinds: Any
    search_rows: Any
    max_rows: Any
    warm_start: Any
    random_state: Any
    n_jobs: Any
    model_: Any
    certificate_: Certificate

    # The model that is fitted to all rows after the score starts where the scored one ended.
    _command_line: ClassVar[CommandLine] = CommandLine(
        "auto",
        parameters={"warm_start": True},
        seeded=True,
        pair_bytes=8 * _MATRICES,
        most_rows=_MOST_ROWS,
        raw=True,
        choice=_chosen,
    )
    # How far the length scales of a term may differ, as ``Mixture.deviation``.
    _deviation: ClassVar[float]
    # The least variance of the noise in the search, as a share of that of the targets.
    _least_noise: ClassVar[float] = 0.0
    # With fewer rows all parameters have a prior.
    _few_rows: ClassVar[int] = 0

    _fitted = Fitted(
        {
            "n_features_in_": Count("d", least=1),
            "encoder_": Is(ColumnEncoder),
            "n_rows_": Count(least=1),
            "relevance_": Floats("d", least=0),
            "noise_": Number(least=0),
            "gap_noise_": Floats("g", least=0),
            "search_": Is(Search),
            "certificate_": Is(Certificate),
        },
        {"feature_names_in_": Labels("d", texts=True)},
        parameters={"n_jobs": Jobs()},
        rules=(
            (
                "the encoding has other features than the model",
                lambda m: len(m.encoder_.sources_) + len(m.encoder_.texts_) == m.model_.n_features_in_,
            ),
            ("the encoding has other columns", lambda m: len(m.encoder_.columns_) == m.n_features_in_),
            ("the encoding has other gaps than the noise", lambda m: len(m.encoder_.gaps_) == len(m.gap_noise_)),
        ),
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_parts(cls)

    def _check_parameters(self) -> None:
        require_flags(self, "warm_start")
        require_whole(self, "search_rows", "a whole number of rows, at least 10", least=10)
        if self.max_rows is not None:
            require_whole(self, "max_rows", "None or a whole number of rows, at least 10", least=10)

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        """The table, checked as scikit-learn does; a data frame stays one."""
        if hasattr(X, "columns"):
            # What scikit-learn's checks would convert, or would not name the column of.
            for _ in read_columns(X):
                continue
        else:
            refuse_unreal(X, "X")
            if are_objects(X):
                raise DataError(_no_table(type(self).__name__, X[0]))
        with advised():
            # check_array first needs a common type of the columns, which a data frame without columns does not have.
            given = np.empty((len(X), 0)) if hasattr(X, "columns") and not len(X.columns) else X
            if hasattr(X, "select_dtypes") and len(X.columns):
                # Dates and differences of time have no common type with numbers.
                times = X.select_dtypes(["datetime", "datetimetz", "timedelta"]).columns
                given = X.astype(dict.fromkeys(times, object))
            checked = check_array(given, dtype=None, ensure_all_finite="allow-nan", estimator=self, input_name="X")
            check_feature_names(self, X, reset=reset)
            check_n_features(self, checked, reset=reset)
        return X if hasattr(X, "columns") else checked

    def _encoded(self, X: RowsLike) -> tuple[Any, NewGaps | None]:
        """New rows as features, and those with a gap where there was none in training."""
        check_is_fitted(self, "encoder_")
        X = self._check_table(X, reset=False)
        features = self.encoder_.transform(X)
        # Columns of text come last, and have no gaps.
        sources = np.concatenate([self.encoder_.sources_, np.asarray(self.encoder_.texts_, dtype=np.intp)])
        return features, NewGaps.of(self.encoder_.new_gaps(X), features, sources, self._training_features)

    @property
    def _training_features(self) -> Any:
        """The rows that were learnt from, as features."""
        raise NotImplementedError

    @property
    def _expansion(self) -> KernelExpansion:
        """The functions that decide, of rows as features, in the units of predictions or decision values."""
        raise NotImplementedError

    @property
    def _places(self) -> list[Positions]:
        """The positions of the features of each column; none for one that says nothing."""
        sources, texts = self.encoder_.sources_, self.encoder_.texts_
        places = [np.flatnonzero(sources == column) for column in range(self.n_features_in_)]
        for number, column in enumerate(texts):
            places[column] = np.append(places[column], len(sources) + number)
        return places

    def _kept_rows(self, n: int, codes: Positions | None) -> tuple[Positions, np.random.RandomState]:
        """The rows that are learnt from: all that ``max_rows`` or the memory allow, in random order."""
        random = generator(self.random_state)
        most = min(n, _MOST_ROWS if self.max_rows is None else int(self.max_rows))
        if self.max_rows is None:
            most = memory.fitting(lambda rows: _MATRICES * 8 * rows * rows, most, min(n, 10))
        rows = random.permutation(n)
        if codes is not None:
            rows = rows[_fair_order(codes[rows])]
        if most < n:
            why = "is max_rows" if self.max_rows is not None else "the memory and a time of minutes allow"
            warn_user(
                f"{type(self).__name__} learns from {most:,} of the {n:,} rows, chosen at random, which {why}. Raise "
                "max_rows, or the memory budget with mercer.config(memory=...), to learn from more.",
                MercerWarning,
            )
        return rows[:most], random

    def _with_weights(self, X: Any, y: np.ndarray, sample_weight: ArrayLike | None) -> tuple[Any, Any, Vector | None]:
        """The rows that have a weight, their targets and weights; None for equal weights of 1."""
        if sample_weight is None:
            return X, y, None
        weights = check_sample_weight(sample_weight, np.empty((len(y), 1)))
        used = np.flatnonzero(weights)
        if len(used) < len(y):
            X, y, weights = (X.iloc[used] if hasattr(X, "iloc") else X[used]), y[used], weights[used]
        return X, y, weights

    def _encode(
        self, X: Any, y: np.ndarray, weights: Vector | None, *, numbers: bool = False, farthest: float = FARTHEST
    ) -> tuple[Any, np.ndarray, Vector | None, Positions]:
        """Fit the encoding; return the different rows, their targets and weights, and their positions in X.

        The encoding has also ``numbers`` as they are, and normal scores that are cut off beyond ``farthest``.
        """
        self.encoder_ = ColumnEncoder(self.kinds, numbers=numbers, farthest=farthest).fit(X, sample_weight=weights)
        features = self.encoder_.transform(X)
        rows, weights = merged(features, y, weights)
        return (features, y, weights, rows) if len(rows) == len(y) else (features[rows], y[rows], weights, rows)

    def _learn(self, features: Any, targets: Matrix, rows: Positions, weights: Vector | None) -> Learned:
        """The kernel, by at most ``search_rows`` of the rows; sets what is reported of it."""
        encoder = self.encoder_
        few = np.sort(rows[: self.search_rows])
        chosen, counts, groups = features[few], None if weights is None else weights[few], encoder.groups_
        shared = strata(chosen, groups, targets[few], counts) if groups[-1] >= MOST_SCALES else None
        texts, gaps, numbers = len(encoder.texts_), len(encoder.gaps_), len(encoder.numbers_)
        mixture = Mixture.of(groups, texts, self._deviation, gaps, numbers, shared)
        if (len(few) if counts is None else counts.sum()) < self._few_rows:
            mixture = dataclasses.replace(mixture, anchored=True)
        start = mixture.start
        previous = vars(self).get("search_") if self.warm_start else None
        # Other rows may have other categories, and with them other groups of features.
        if previous is not None and len(previous.theta) == len(start):
            start = previous.theta
        noise = RowNoise(counts, encoder.missing(chosen), self._least_noise)
        learned = learn(mixture, start, chosen, targets[few], noise, self.n_jobs)
        self.n_rows_, self.search_ = len(rows), learned.search
        self.noise_, self.gap_noise_ = learned.noise, learned.gap_noise
        return learned

    def _relevance(self, function: Callable[[Any], Vector], features: Any, random: np.random.RandomState) -> Vector:
        """That of each column for values of the fitted function."""
        return relevance(function, features, self._places, random)

    def _certified(self, n: int, seconds: float, peak: int) -> Certificate:
        """That of the model, with the whole work and, where rows were left out, how many."""
        inner: Certificate = self.model_.certificate_
        sentence = inner.storage
        if self.n_rows_ < n:
            sentence = f"{sentence}; {self.n_rows_} of {n} rows".removeprefix("; ")
        return dataclasses.replace(
            inner,
            iterations=inner.iterations + self.search_.evaluations,
            seconds=seconds,
            peak_bytes=max(peak, inner.peak_bytes),
            storage=sentence,
        )

    @property
    def kinds_(self) -> dict[str, str]:
        """What each column was taken for, by its name: number, category, date or text."""
        check_is_fitted(self, "encoder_")
        return self.encoder_.kinds_

    @property
    def kernel_(self) -> Kernel:
        """The learnt kernel, on the features that ``encoder_`` makes of a table."""
        check_is_fitted(self, "model_")
        kernel: Kernel = self.model_.kernel_
        return kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _fair_order(codes: Positions) -> Positions:
    """An order of rows in random order, of which each beginning has all classes in their shares, but one of each."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    place = np.empty(len(codes))
    place[order] = rank / np.repeat(counts, counts)
    return np.argsort(place, kind="stable")


def _no_table(learner: str, row: Any) -> str:
    """What to do with rows that are objects."""
    if isinstance(row, str):
        remedy = 'For a column of text, pass pandas.DataFrame({"text": X}).'
    elif isinstance(row, Graph) or is_networkx(row):
        remedy = "For graphs, use mercer.SVC or mercer.SVR with kernel=mercer.kernels.WeisfeilerLehman(3).normalized()."
    else:
        remedy = "For other objects, use mercer.SVC or mercer.SVR with a kernel of mercer.kernels that compares them."
    return f"{learner} takes tables of numbers, text and categories, but row 0 of X is {short(row)}. {remedy}"
