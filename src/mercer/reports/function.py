"""The fitted function, where one feature shows it whole."""

from __future__ import annotations

from mercer._errors import MercerError
from mercer.plotting.process import ProcessDisplay
from mercer.plotting.tube import TubeDisplay
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material

# Rows of its table.
_SHOWN = 20


def function(material: Material) -> Section | None:
    """Return the picture of a regression with one feature; None for others."""
    subject, judged = material.subject, material.judged
    one = getattr(material.X, "ndim", 1) == 2 and material.X.shape[1] == 1
    if judged is None or judged.task != "regression" or judged.truth.ndim > 1 or not judged.is_finite or not one:
        return None
    display = _display(material)
    if display is None:
        return None
    frame = display.frame()
    shown = frame.iloc[:: max(1, len(frame) // _SHOWN)]
    table = Table.of("Values", tuple(map(str, shown.columns)), shown.itertuples(index=False))
    words = f"Predictions of {subject.name} along its one feature, and the rows."
    return Section("function", "Fitted function", (), (), (), (Figure("Fitted function", words, table, display.plot),))


def _display(material: Material) -> ProcessDisplay | TubeDisplay | None:
    assert material.judged is not None
    model, y = material.subject.model, material.judged.truth
    try:
        return ProcessDisplay.from_estimator(model, material.X, y, n_draws=0)
    except MercerError:
        # Neither a Gaussian process nor quantiles: it may be a tube.
        return _tube(material)


def _tube(material: Material) -> TubeDisplay | None:
    assert material.judged is not None
    try:
        return TubeDisplay.from_estimator(material.subject.model, material.X, material.judged.truth)
    except MercerError:
        # Other regressions have no picture of their own.
        return None
