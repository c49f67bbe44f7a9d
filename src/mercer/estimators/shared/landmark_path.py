"""What ``n_landmarks="auto"`` has tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Positions, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats, Whole, Word

FEW_ROWS = 50
"""Of fewer rows all are landmarks, and none are held out."""
_ENDINGS = {
    "no gain": "twice as many landmarks do not lower the held-out loss by more than its standard error and 0.1 %",
    "all rows": "there are no more rows",
    "interrupted": "Ctrl-C ended the fits, and the last complete one is kept, without the rows that were held out",
    "memory": "twice as many landmarks do not fit the memory budget",
}


@dataclass(frozen=True, eq=False)
class LandmarkPath:
    """What ``n_landmarks="auto"`` has tried.

    Parameters
    ----------
    n_landmarks : ndarray of int of shape (p,)
        The numbers of landmarks, ascending.
    losses : ndarray of shape (p,)
        The mean loss of rows that were held out: that of a :class:`~mercer.KernelMachine`, and the pinball loss of
        quantiles, summed over the functions; of other learners the log loss of probabilities, else the share of wrong
        classes, else the squared error, summed over the targets. NaN if none were held out, as of fewer than 50 rows.
    standard_errors : ndarray of shape (p,)
        Of the difference to the loss before; 0 for the first one.
    seconds : ndarray of shape (p,)
        Wall-clock time of each fit.
    ending : {"no gain", "all rows", "memory", "interrupted"}
        Why no more were tried.

    Examples
    --------
    >>> import numpy as np
    >>> path = LandmarkPath(np.array([100, 200]), np.array([0.5, 0.49]), np.array([0.0, 0.02]), np.ones(2), "no gain")
    >>> path.chosen
    100
    >>> print(path)
    landmarks  held-out loss  fall        standard error  seconds
          100            0.5           -               -      1.0  chosen
          200           0.49        0.01            0.02      1.0
    no gain: twice as many landmarks do not lower the held-out loss by more than its standard error and 0.1 %.
    """

    n_landmarks: Positions
    losses: Vector
    standard_errors: Vector
    seconds: Vector
    ending: str
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "n_landmarks": Whole("p", least=1, distinct=True),
            "losses": Floats("p", nan=True),
            "standard_errors": Floats("p", least=0),
            "seconds": Floats("p", least=0),
            "ending": Word(tuple(_ENDINGS)),
        },
        rules=(
            ("a path has no number", lambda path: len(path.n_landmarks) > 0),
            ("a path without a gain has one number", lambda path: path.ending != "no gain" or len(path.losses) > 1),
        ),
    )

    @property
    def chosen(self) -> int:
        """The largest number whose last doubling lowered the loss visibly.

        That of the fit, too, unless it is all rows that were not held out: then the fit has all rows as landmarks.
        """
        return int(self.n_landmarks[-2 if self.ending == "no gain" else -1])

    def __str__(self) -> str:
        lines = ["landmarks  held-out loss  fall        standard error  seconds"]
        for j, m in enumerate(self.n_landmarks):
            loss = f"{self.losses[j]:.5g}" if np.isfinite(self.losses[j]) else "-"
            fall = f"{self.losses[j - 1] - self.losses[j]:.3g}" if j else "-"
            error = f"{self.standard_errors[j]:.3g}" if j else "-"
            mark = "  chosen" if m == self.chosen else ""
            lines.append(f"{m:9d}  {loss:>13}  {fall:>10}  {error:>14}  {self.seconds[j]:7.1f}{mark}")
        if np.isnan(self.losses).all():
            why = f"none were held out, as of fewer than {FEW_ROWS} rows all are landmarks"
        else:
            why = _ENDINGS[self.ending]
        return "\n".join([*lines, f"{self.ending}: {why}."])
