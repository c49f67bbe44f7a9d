"""A table that is read in blocks: which of its rows are held out, the others for a fit, and scores block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer.cli.hold_out import Draw
from mercer.cli.reading import Reading
from mercer.data.blocks.blocks import Blocks
from mercer.data.schema import Locate
from mercer.data.table import row_place, shifted
from mercer.data.target import Target, known_target
from mercer.estimators.table import TableModel
from mercer.reports.scores import probability_scores, scores

# A part of a table: a data frame, and its targets.
Part = tuple[Any, np.ndarray]


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Rows in blocks of data frames, of which some are held out.

    Parameters
    ----------
    frames : Blocks
        Of data frames, with targets.
    target : str
        Name of the target.
    reading : Reading
        Columns that are not taken as they are.
    draw : Draw or None
        Which rows are held out; none for None.
    """

    frames: Blocks
    target: str
    reading: Reading
    draw: Draw | None

    def parts(self, held_out: bool) -> Iterator[Part]:
        """The rows held out, or the others, block by block."""
        masks, first = None if self.draw is None else self.draw.masks(), 0
        for X, raw, _ in self.frames:
            X, y = self._read(X, raw, first)
            first += len(X)
            mask = np.zeros(len(X), dtype=bool) if masks is None else masks.next(y)
            chosen = mask == held_out
            if chosen.any():
                yield X[chosen], y[chosen]

    def training(self, mean: float | None = None, scale: float = 1.0, *, classes: bool = False) -> Blocks:
        """The rows that are not held out; targets as they are, whole as ``classes``, or ``(y - mean) / scale``."""

        def training_rows() -> Iterator[Part]:
            for X, y in self.parts(False):
                if mean is not None:
                    y = (np.asarray(y, dtype=np.float64) - mean) / scale
                # Numbers of CSV files are floats, and classes 1.0 and 2.0 would not be those of the file.
                elif classes and y.dtype.kind == "f" and (y == np.round(y)).all():
                    y = y.astype(np.int64)
                yield X, y

        return Blocks.from_function(training_rows, rows_per_block=self.frames.rows_per_block)

    def _read(self, X: Any, y: Any, first: int) -> Part:
        if not self.reading.numbers:
            return X, y
        whole = self.reading.frame(X.assign(**{self.target: y}), str(self.frames), shifted(row_place, first))
        return whole.drop(columns=self.target), whole[self.target].to_numpy()


def compared(model: TableModel, parts: Iterable[Part], target: Target, source: str) -> dict[str, dict[str, float]]:
    """Scores of a model on rows in blocks, and those of a constant; none without rows.

    Parameters
    ----------
    model : TableModel
        Fitted.
    parts : iterable of (frame, targets)
    target : Target
        Of a sample of training, for the constant.
    source : str
        The table, in messages.
    """
    predicted = Predicted.of(model, parts, source)
    if predicted is None:
        return {}
    name, constant = predicted.constant(model, target)
    return {type(model.estimator_).__name__: predicted.scores(), name: constant.scores()}


def calibrate(model: TableModel, parts: Iterable[Part], source: str) -> int:
    """Learn from rows in blocks, which the fit has not seen, how sure predictions are; returns their number.

    Raises
    ------
    DataError
        If there are none.
    """
    task = "regression" if getattr(model, "classes_", None) is None else "classification"
    labels = [] if task == "regression" else model.classes_.tolist()

    def encoded() -> Iterator[tuple[Any, np.ndarray]]:
        for frame, y in parts:
            rows = model.encoder_.transform(frame, source=source, locate=row_place)
            yield rows, known_target(y, model.target, task, labels, row_place)

    encoded_rows = encoded()
    first = next(encoded_rows, None)
    if first is None:
        raise DataError(f"{source} has too few rows to hold some out, by which --calibrate learns; leave it out.")
    return len(model.calibrate_on(chain([first], encoded_rows)).calibration_.parts)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Targets of rows and what a model predicts for them; probabilities (n, k) of ``classes`` where it has them."""

    task: str
    truth: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray | None = None
    shares: np.ndarray | None = None

    @classmethod
    def of(cls, model: TableModel, parts: Iterable[Part], source: str, locate: Locate = row_place) -> Predicted | None:
        """Predict block by block; None without rows."""
        classes = getattr(model, "classes_", None)
        truth, predicted, shares, first = [], [], [], 0
        for frame, y in parts:
            rows = model.encoder_.transform(frame, source=source, locate=shifted(locate, first))
            first += len(y)
            truth.append(y)
            has_shares = classes is not None and hasattr(model, "predict_proba")
            together = model.predict_together(rows, probabilities=has_shares)
            predicted.append(together.predicted)
            if has_shares:
                its = together.probabilities
                shares.append(model.predict_proba_encoded(rows) if its is None else its)
        if not truth:
            return None
        task, labels = ("regression", []) if classes is None else ("classification", classes.tolist())
        y = known_target(np.concatenate(truth), model.target, task, labels, locate)
        return cls(task, y, np.concatenate(predicted), classes, np.concatenate(shares) if shares else None)

    def scores(self) -> dict[str, float]:
        """Those of the task, and those of the probabilities."""
        values = scores(self.task, self.truth, self.predicted)
        if self.shares is not None and self.classes is not None:
            values.update(probability_scores(self.truth, self.shares, self.classes))
        return values

    def constant(self, model: TableModel, target: Target) -> tuple[str, Predicted]:
        """The same rows with a constant prediction from a sample: the mean, or the most frequent class."""
        n = len(self.truth)
        if self.classes is None:
            return "mean of the target", Predicted(self.task, self.truth, np.full(n, model.target_mean_))
        # In the form of the classes: text of digits alone is a number to whoever reads the sample.
        values = known_target(target.values, model.target, self.task, self.classes.tolist(), row_place)
        labels, counts = np.unique(values, return_counts=True)
        shares = np.array([dict(zip(labels, counts)).get(label, 0) for label in self.classes], dtype=np.float64)
        frequent = np.full(n, labels[np.argmax(counts)])
        constant = None if self.shares is None else np.tile(shares / shares.sum(), (n, 1))
        return "most frequent class", Predicted(self.task, self.truth, frequent, self.classes, constant)
