"""The path of solutions from which the model was taken."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.data.objects import short
from mercer.data.words import counted
from mercer.estimators.table import TableModel
from mercer.plotting.drawing import legend
from mercer.plotting.palette import INK
from mercer.plotting.path import PathDisplay
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import WORDS_OF_KIND, Material
from mercer.reports.subject import Subject
from mercer.selection.path import Path
from mercer.selection.ridge import RidgePath

# All other quantities are best where they are least.
_GREATEST = "log evidence"
_NOT_CHOSEN_BY = ("support vectors", "relative gap")


def check_path(path: Any, subject: Subject) -> None:
    """Raise an error if a path is not one from which the model may come.

    Raises
    ------
    ParameterError
        If it is not a path, or one of another learner.
    """
    if not isinstance(path, (Path, RidgePath)):
        raise ParameterError(f"path must come from mercer.svm_path or mercer.ridge_path, but is {short(path)}.")
    if type(path[0]) is not type(subject.learner):
        raise ParameterError(
            f"path has models of the class {type(path[0]).__name__}, but the model is {subject.name}; pass the path "
            "that it was taken from, or leave path out."
        )


def refuse_path(model: Any) -> None:
    """Raise an error if a path stands in place of one of its models.

    Raises
    ------
    ParameterError
        If it does.
    """
    if isinstance(model, (Path, RidgePath)):
        one = "path.best()" if isinstance(model, RidgePath) else "path[0]"
        raise ParameterError(
            f"model is a path of {len(model)} models, and a report is of one; choose it, and pass the path beside it: "
            f"mercer.report({one}, X, y, path=path)."
        )


def along_path(material: Material) -> Section | None:
    """Return what changes along the path, and where the model is; None without a path."""
    if material.path is None:
        return None
    display = _display(material)
    own, name = _value(material.subject.learner, display.parameter), display.parameter
    text, facts = _text(material, display), [(f"{name} of this model", own)]
    for quantity, values in display.quantities.items():
        if quantity in _NOT_CHOSEN_BY or not np.isfinite(values).all():
            continue
        losses, which = (-values, "greatest") if quantity == _GREATEST else (values, "least")
        facts.append((f"{name} of the {which} {quantity}", float(display.values[losses.argmin()])))
        if _is_at_an_end(losses):
            text.append(f"The {which} {quantity} is at an end of the path: values of {name} beyond it may be better.")
    return Section("path", "Path", tuple(text), tuple(facts), (), (_figure(display, own),))


def _is_at_an_end(losses: Vector) -> bool:
    """Whether they still fall where the path ends."""
    best = int(losses.argmin())
    inner = {0: 1, len(losses) - 1: -2}.get(best)
    return len(losses) > 1 and inner is not None and bool(losses[best] < losses[inner])


def _display(material: Material) -> PathDisplay:
    """With errors where there are rows that the path has not seen, in the units of its own targets."""
    judged, subject = material.judged, material.subject
    if judged is None or judged.kind == "fit" or isinstance(subject.model, TableModel):
        return PathDisplay.from_path(material.path)
    return PathDisplay.from_path(material.path, subject.seen(material.X), judged.truth)


def _value(learner: Any, parameter: str) -> float | None:
    """The value that the model has; None if it is not one number, such as a penalty for each target."""
    value = getattr(learner, f"{parameter}_", getattr(learner, parameter))
    return float(value) if isinstance(value, Real) else None


def _text(material: Material, display: PathDisplay) -> list[str]:
    text = [f"{str(material.path).splitlines()[0]}."]
    errors = [name for name in ("error rate", "mean squared error") if name in display.quantities]
    if errors and material.judged is not None:
        rows = f"{counted(material.judged.n, 'row')} {WORDS_OF_KIND[material.judged.kind]}"
        text.append(
            f"The {errors[0]} is that on {rows}. The scores on these rows flatter a value that is chosen by it."
        )
    return text


def _figure(display: PathDisplay, own: float | None) -> Figure:
    name, values = display.parameter, display.values
    table = Table.of(
        "Values along the path",
        (name, *display.quantities),
        zip(values.tolist(), *(quantity.tolist() for quantity in display.quantities.values())),
    )

    def draw(ax: Any) -> None:
        display.plot(ax)
        keys = list(display.lines_.values())
        if own is not None:
            keys.append(ax.axvline(own, color=INK, linewidth=1.0, linestyle=":", label="this model"))
        # Above the axes, where no curve of either side can be.
        legend(ax, keys, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)

    steps = f"{counted(len(values), 'value')} of {name} from {values[0]:.4g} to {values[-1]:.4g}"
    return Figure(f"Path along {name}", f"{', '.join(display.quantities)} for {steps}.", table, draw)
