"""The rows of a fit over landmarks: in memory, or in blocks that are read anew for each pass."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import get_tags

from mercer._errors import DataError, ParameterError
from mercer._optional import optional
from mercer._types import AnyArray, Matrix, Positions, Vector
from mercer.data.blocks.block import Block
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.survey import Survey
from mercer.data.objects import short
from mercer.engine.settings import interrupts_raise
from mercer.estimators.shared.labels import check_labels, class_factors, require_two_classes
from mercer.estimators.shared.restricted import Restriction, restriction, warn_if_exact_is_faster
from mercer.gram import Gram
from mercer.solvers.restricted import precondition
from mercer.solvers.restricted.blocked import BlockedRows
from mercer.solvers.restricted.journal import Journal
from mercer.solvers.restricted.passes import Passes, StoredRows

# Landmarks are chosen among twice their number and so many rows.
_ROWS_FOR_LANDMARKS = 6000

# From the targets of a block to what a loss takes, (r, t), and a factor of the weight of each row.
Targets = Callable[[Any], tuple[Matrix, Any]]


def check_parts(learner: Any, X: Any) -> None:
    """Raise unless a learner can be fitted to rows that come in parts.

    Raises
    ------
    ParameterError
        If it is not restricted to landmarks.
    """
    if not learner.is_on_landmarks:
        raise ParameterError(
            f"{type(learner).__name__} needs approximation='nystroem' for rows that come in parts, since all of them "
            f"need not fit into memory, and X is a {type(X).__name__}; or pass arrays."
        )


def refuse_sides(learner: Any, y: Any, sample_weight: Any) -> None:
    """Raise if targets or weights are given beside blocks."""
    if y is not None or sample_weight is not None:
        raise DataError(
            f"{type(learner).__name__} takes targets and weights from the blocks, so leave out y and sample_weight: "
            "Blocks(X, target, sample_weight=...)."
        )


def weighted_targets(block: Block, targets: Targets) -> tuple[Matrix, Vector]:
    """What the loss takes of the rows of a block, and their weights times its factors."""
    # Rows without targets need factors as well.
    y, factors = targets(np.zeros(block.rows) if block.y is None else block.y)
    weights = np.ones(len(y)) if block.sample_weight is None else np.asarray(block.sample_weight, dtype=np.float64)
    return y, weights * factors


def weights_of_labels(block: Block) -> tuple[AnyArray, Vector]:
    """The labels of a block, ascending, and the weight of each."""
    labels, where = np.unique(np.asarray(block.y), return_inverse=True)
    return labels, np.bincount(where, block.sample_weight, minlength=len(labels)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Stored:
    """From a block to its kernel values with landmarks, on ``n_jobs`` threads; rows without weight are left out."""

    kernel: Any
    landmarks: Any
    targets: Targets
    n_jobs: int | None

    def __call__(self, block: Block) -> StoredRows:
        return self._of(block, *weighted_targets(block, self.targets))

    def sampled(self, sample: Block, n: int) -> tuple[int, StoredRows]:
        """How many of n rows have a weight, by the share of those in a sample, and these rows of the sample.

        If none of its rows has one, as those of two rare classes, all of them stay: their sums are then 0.
        """
        y, weights = weighted_targets(sample, self.targets)
        used = int(np.count_nonzero(weights))
        if not used:
            gram = Gram(self.kernel, sample.X, self.landmarks, dtype=np.float64, n_jobs=self.n_jobs)
            return n, StoredRows(gram, y, weights, self.n_jobs)
        return max(1, round(n * used / len(weights))), self._of(sample, y, weights)

    def _of(self, block: Block, y: Matrix, weights: Vector) -> StoredRows:
        X = block.X
        if not weights.all():
            used = np.flatnonzero(weights)
            # A kernel needs a row.
            used = used if len(used) else np.zeros(1, np.intp)
            X, y, weights = X[used], y[used], weights[used]
        return StoredRows(
            Gram(self.kernel, X, self.landmarks, dtype=np.float64, n_jobs=self.n_jobs), y, weights, self.n_jobs
        )


def named(X: Any, names: Sequence[str] | None) -> Any:
    """Rows with the names of their columns, without a copy."""
    if names is None or hasattr(X, "toarray"):
        return X
    return optional("pandas", "columns with names").DataFrame(X, columns=list(names), copy=False)


def count_of(learner: Any) -> int:
    """How many landmarks a learner asks for."""
    given = learner.landmarks
    if isinstance(learner.n_landmarks, str):
        raise ParameterError(
            f"n_landmarks={short(learner.n_landmarks)} is no number, and this needs one; pass a number, such as the "
            "one that a fit to a sample of the rows has chosen (landmark_path_.chosen)."
        )
    if isinstance(given, str):
        return int(learner.n_landmarks)
    return int(given.shape[0]) if hasattr(given, "shape") else len(given)


def rows_to_draw(n: int, m: int) -> int:
    """How many of n rows are drawn, for m landmarks and for the preconditioner.

    >>> rows_to_draw(1_000_000, 100)
    6200
    """
    return min(n, max(_ROWS_FOR_LANDMARKS + 2 * m, precondition.sample_size(n, m)))


@dataclass(frozen=True, eq=False)
class RowSource(ABC):
    """The rows of a fit over landmarks, with their targets and weights, wherever they are.

    Parameters
    ----------
    sample : Block
        Rows among which landmarks are chosen, and on which parameters of the kernel depend: all of those in memory, and
        rows drawn uniformly of others.
    names : sequence of str or None
        Of the columns.
    n : int
        The number of all rows.
    """

    sample: Block
    names: Sequence[str] | None
    n: int

    @property
    @abstractmethod
    def classes(self) -> tuple[AnyArray, Vector]:
        """The labels of all rows with a weight, ascending, and the weight of each."""

    @abstractmethod
    def rows(
        self, learner: Any, parts: Restriction, targets: Targets, settings: object
    ) -> AbstractContextManager[Passes]:
        """The rows for a solver, once :meth:`checked` has got those of the sample.

        Parameters
        ----------
        learner : KernelEstimator
        parts : Restriction
        targets : callable
            From the targets of a block to what the loss takes, and factors of the weights.
        settings : object
            What the solution depends on, beside data, kernel and landmarks; JSON can write it.
        """

    def training(self) -> tuple[Any, Any, Any]:
        """The sample, whose columns have their names if they have any."""
        return self.sample._replace(X=named(self.sample.X, self.names))

    def checked(self, X: Any, y: Any, sample_weight: Vector) -> Self:
        """The same with the rows of the sample as a learner has checked them."""
        return replace(self, sample=self.sample._replace(X=X))

    def restriction(self, learner: Any) -> Restriction:
        """Landmarks among the rows of the sample."""
        parts = restriction(learner, self.sample.X, self.sample.sample_weight, _seed(learner))
        # Positions would be those in the sample.
        return replace(parts, landmarks=replace(parts.landmarks, indices=None))

    def classified(self, learner: Any, X: Any, y: Any, sample_weight: Vector) -> Self:
        """As :meth:`checked`, with labels that no one has checked; sets ``classes_`` and ``class_weight_``.

        Raises
        ------
        DataError
            If the targets are not labels, or there are fewer than two classes.
        """
        source = self.checked(X, y, sample_weight)
        # A sample need not have all of them.
        classes, totals = source.classes
        without_weight = isinstance(source, ArrayRows) and source.sample.rows < source.n
        require_two_classes(type(learner).__name__, classes, unused=without_weight)
        learner.classes_ = classes
        learner.class_weight_ = class_factors(learner.class_weight, classes, np.arange(len(classes)), totals)
        return source


@dataclass(frozen=True, eq=False)
class ArrayRows(RowSource):
    """Rows in memory; :meth:`checked` leaves out those of weight 0.

    Parameters
    ----------
    used : ndarray of int
        The positions of the rows with a weight among all.
    """

    used: Positions

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> ArrayRows:
        """Rows that no one has checked."""
        return cls(Block(X, y, sample_weight), None, 0, np.empty(0, np.intp))

    @property
    def classes(self) -> tuple[AnyArray, Vector]:
        return weights_of_labels(self.sample)

    def checked(self, X: Any, y: Any, sample_weight: Vector) -> Self:
        used, rows = np.flatnonzero(sample_weight), Block(X, y, sample_weight)
        return replace(self, sample=rows if len(used) == rows.rows else rows.take(used), n=rows.rows, used=used)

    def classified(self, learner: Any, X: Any, y: Any, sample_weight: Vector) -> Self:
        return super().classified(learner, X, check_labels(type(learner).__name__, y, X.shape[0]), sample_weight)

    def restriction(self, learner: Any) -> Restriction:
        warn_if_exact_is_faster(learner, self.sample.X)
        parts = restriction(learner, self.sample.X, self.sample.sample_weight, learner.random_state)
        return parts.with_positions_in(self.used)

    @contextmanager
    def rows(self, learner: Any, parts: Restriction, targets: Targets, settings: object) -> Iterator[StoredRows]:
        y, weights = weighted_targets(self.sample, targets)
        gram, used = parts.gram, np.flatnonzero(weights)
        if len(used) < len(weights):
            gram, y, weights = gram.restrict(used, None), y[used], weights[used]
        yield StoredRows(gram, y, weights, learner.n_jobs)


@dataclass(frozen=True, eq=False)
class BlockRows(RowSource):
    """Rows that are read block by block.

    Parameters
    ----------
    blocks : Blocks
    survey : Survey
    """

    blocks: Blocks
    survey: Survey

    @classmethod
    def of(cls, learner: Any, blocks: Blocks, y: Any, sample_weight: Any) -> BlockRows:
        """Survey the rows, and draw the sample from which landmarks and the preconditioner come: one pass."""
        check_parts(learner, blocks)
        refuse_sides(learner, y, sample_weight)
        survey = blocks.survey(rows_to_draw(blocks.n, count_of(learner)), random_state=_seed(learner))
        assert survey.sample is not None
        if survey.sample.y is None and get_tags(learner).target_tags.required:
            raise DataError(
                f"{type(learner).__name__} needs targets, and {blocks!r} has none; name them with target=...."
            )
        return cls(survey.sample, blocks.columns, survey.n, blocks, survey)

    @property
    def classes(self) -> tuple[AnyArray, Vector]:
        if self.survey.classes is None or self.survey.class_weight is None:
            raise DataError(
                f"{self.blocks!r} has targets with more than 1000 different values, or with fractions, which are no "
                "labels of classes; choose another target, or a learner for numbers."
            )
        return self.survey.classes, self.survey.class_weight

    @contextmanager
    def rows(self, learner: Any, parts: Restriction, targets: Targets, settings: object) -> Iterator[BlockedRows]:
        """The rows for a solver; when it has ended, a checkpoint is removed."""
        landmarks, kernel = parts.landmarks.rows, learner.kernel_
        stored = Stored(kernel, landmarks, targets, learner.n_jobs)
        n, sample = stored.sampled(self.sample, self.n)

        def read(first: int) -> Iterator[StoredRows]:
            for number, block in enumerate(self.blocks):
                if number >= first:
                    yield stored(block)

        rows = BlockedRows((n, *sample.shape[1:]), read, sample.sample)
        if _checkpoint(learner) is None:
            yield rows
            return
        identity = [
            *(type(learner).__name__, repr(kernel), _digest(landmarks), self.survey.fingerprint),
            *(self.blocks.rows_per_block, settings, np.__version__),
        ]
        journal = Journal(_checkpoint(learner), json.dumps(identity))
        # After Ctrl-C the same fit goes on from the checkpoint, which a function that is kept would end.
        with interrupts_raise():
            yield replace(rows, memory=journal)
        journal.remove()


def require_checkpoint(learner: Any) -> None:
    """Raise unless ``checkpoint`` is None or the path of a file.

    Raises
    ------
    ParameterError
        If it is something else, or the learner makes no passes.
    """
    value = learner.checkpoint
    if value is None:
        return
    if not isinstance(value, (str, Path)) or Path(value).is_dir() or not Path(value).resolve().parent.is_dir():
        raise ParameterError(f"checkpoint must be the path of a file in a folder that exists, but is {value!r}.")
    if not learner.is_on_landmarks:
        raise ParameterError("checkpoint is for fits over landmarks; pass approximation='nystroem', or leave it out.")


def _seed(learner: Any) -> Any:
    """The state of the generator; with a checkpoint the same each time."""
    return 0 if learner.random_state is None and _checkpoint(learner) is not None else learner.random_state


def _checkpoint(learner: Any) -> Any:
    """The parameter, which not all learners have."""
    return getattr(learner, "checkpoint", None)


def _digest(rows: Any) -> str:
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    return hashlib.sha256(np.ascontiguousarray(dense).tobytes()).hexdigest()
