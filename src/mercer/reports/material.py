"""What the sections of a report are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from mercer._types import AnyArray
from mercer.data.table import row_place
from mercer.reports.baselines import Baselines
from mercer.reports.distances import Distances
from mercer.reports.judged import Judged
from mercer.reports.subject import Subject


@dataclass(frozen=True, eq=False)
class Material:
    """A fitted model, the rows on which it is judged, and where they come from.

    Parameters
    ----------
    subject : Subject
    seed : int
        Of samples and folds.
    X : rows, optional
        The rows on which the model is judged, as it takes them.
    judged : Judged, optional
        Their targets and predictions.
    train : (rows, targets), optional
        Those of the fit.
    baselines : Baselines, optional
        The models to compare with.
    far : Distances, optional
        How far the rows are from those of the fit.
    record : dict, optional
        What ``mercer fit`` wrote into the model file.
    steps : tuple of (str, str), optional
        How to make the model again, and hashes of the data.
    target : str, default="y"
    path : Path or RidgePath, optional
        From which the model was taken.
    place_of_fit : callable
        Maps the number of a training row to a description of its place.
    """

    subject: Subject
    seed: int
    _: KW_ONLY
    X: Any = None
    judged: Judged | None = None
    train: tuple[Any, AnyArray] | None = None
    baselines: Baselines | None = None
    far: Distances | None = None
    record: Mapping[str, Any] | None = None
    steps: tuple[tuple[str, str], ...] = ()
    target: str = "y"
    path: Any = None
    place_of_fit: Callable[[int], str] = field(default=row_place)

    @property
    def rows_of_fit(self) -> Any:
        """The rows of the fit as the model takes them, or None if they are not known."""
        if self.train is not None:
            return self.train[0]
        return self.X if self.judged is not None and self.judged.kind == "fit" else None

    @property
    def truth_of_fit(self) -> AnyArray | None:
        """The targets of these rows, or None."""
        if self.train is not None:
            return self.train[1]
        return self.judged.truth if self.judged is not None and self.judged.kind == "fit" else None


WORDS_OF_KIND = {"held out": "held out from the fit", "new": "given to the report", "fit": "of its own fit"}
"""What the judged rows are, in a sentence."""
