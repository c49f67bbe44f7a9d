"""``mercer plot``: a picture of a model and of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from mercer._errors import DataError, MercerWarning, ParameterError
from mercer._optional import optional
from mercer.cli.explain import output_of, row_of
from mercer.cli.files import write_atomically
from mercer.cli.options import PlotOptions
from mercer.cli.report_page import target_values
from mercer.cli.show import Printer
from mercer.cli.use import columns_of, load_model, read_rows
from mercer.data.words import closest_names, listing
from mercer.engine.settings import config
from mercer.estimators.table import TableModel
from mercer.explain.models import has_decision_value
from mercer.plotting.boundary import BoundaryDisplay
from mercer.plotting.contributions import ContributionsDisplay
from mercer.plotting.drawing import fit_texts
from mercer.plotting.gram import GramDisplay
from mercer.plotting.margins import MarginsDisplay
from mercer.plotting.ordinal import OrdinalDisplay
from mercer.plotting.relevance import RelevanceDisplay
from mercer.plotting.spectrum import SpectrumDisplay
from mercer.plotting.tube import TubeDisplay
from mercer.reports.subject import Subject

_MOST_CLASSES = 30


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A model, and rows with their target, or None if the table has none or one row is drawn."""

    model: TableModel
    X: Any
    y: Any
    features: tuple[str, ...]
    seed: int
    # The class, or the pair of classes, of the contributions.
    output: Any = None

    @property
    def learner(self) -> Any:
        return Subject.of(self.model).learner

    @property
    def kernel(self) -> Any:
        """The kernel of the encoded rows."""
        return getattr(self.learner, "kernel_", None)

    @property
    def encoded(self) -> Any:
        """The rows as the kernel gets them."""
        return Subject.of(self.model).checked(self.X)

    @property
    def classes(self) -> Any:
        """The target, if it has few values to sort rows by."""
        few = self.y is not None and is_classifier(self.learner) and len(np.unique(self.y)) <= _MOST_CLASSES
        return self.y if few else None

    def targets(self, what: str) -> Any:
        """The target, which this picture needs."""
        if self.y is None:
            raise DataError(f"--what {what} compares with the target {self.model.target!r}, which DATA does not have.")
        return self.y


def plot(options: PlotOptions) -> None:
    """Draw a picture of a model file and of rows, and write it."""
    pyplot = optional("matplotlib.pyplot", "mercer plot")
    printer = Printer(options.quiet, options.json)
    model = load_model(options.model)
    with config(memory=options.memory, n_jobs=options.n_jobs), printer.progress("plot"):
        drawn = _read(options, model)
        display = _made(options.what, drawn).plot()
    write_atomically(options.picture, lambda draft: _save(display.figure_, draft, options.picture.suffix))
    pyplot.close(display.figure_)
    of = {"rows": int(drawn.X.shape[0])} if options.row is None else {"row": options.row}
    printer.object({"picture": str(options.picture), "what": options.what, **of})
    printer.say(f"Wrote {options.picture}.", "bold green")


def _save(figure: Any, draft: Path, suffix: str) -> None:
    fit_texts(figure)
    # Without the time of the day, the same picture is the same file.
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with optional("matplotlib", "mercer plot").rc_context({"svg.hashsalt": "mercer"}):
        figure.savefig(draft, format=suffix.removeprefix("."), metadata=dates.get(suffix.lower()), dpi=150)


def _read(options: PlotOptions, model: TableModel) -> _Drawn:
    """The rows of a picture, or the one of its contributions."""
    table = read_rows(options, model)
    seed = model.report_["seed"]
    if options.row is not None:
        output = output_of(options.label, model, options.model)
        return _Drawn(model, row_of(table, model, options.row), None, (), seed, output)
    X, y = columns_of(table, model), target_values(table, model)
    # Checked as for predictions, with the table and its lines in messages.
    model.encoder_.transform(X, source=table.source, locate=table.locate)
    if not sp.issparse(X):
        # Others are not part of the model, and a picture would show that they do nothing.
        X = X[[name for name in X.columns if name in model.schema_.kinds]]
    return _Drawn(model, X, y, tuple(options.columns), seed)


def _boundary(drawn: _Drawn) -> Any:
    X = drawn.X
    if sp.issparse(X) or not all(kind == "number" for kind in drawn.model.schema_.kinds.values()):
        raise DataError(
            "--what boundary moves along columns of numbers, and needs a table of numbers alone. Other pictures, "
            "such as --what margins or gram, take any rows."
        )
    for name in drawn.features:
        if name not in X.columns:
            matches = closest_names(name, X.columns)
            offer = f"Did you mean {' or '.join(map(repr, matches))}? " if matches else ""
            raise ParameterError(
                f"--column {name}: the model has no such column. {offer}The columns are {listing(X.columns)}."
            )
    chosen = drawn.features or tuple(X.columns[:2])
    return BoundaryDisplay.from_estimator(drawn.model, X, drawn.y, features=list(chosen), random_state=drawn.seed)


def _margins(drawn: _Drawn) -> Any:
    return MarginsDisplay.from_predictions(
        drawn.targets("margins"), drawn.model.decision_function(drawn.X), classes=drawn.model.classes_
    )


def _ordinal(drawn: _Drawn) -> Any:
    rows = Subject.of(drawn.model).seen(drawn.X)
    return OrdinalDisplay.from_estimator(drawn.learner, rows, drawn.targets("ordinal"), random_state=drawn.seed)


def _tube(drawn: _Drawn) -> Any:
    y = np.asarray(drawn.targets("tube"), dtype=np.float64)
    # The learner has the target in units of its deviation.
    half = float(drawn.learner.epsilon) * float(getattr(drawn.model, "target_scale_", 1.0))
    return TubeDisplay.from_predictions(y, drawn.model.predict(drawn.X), epsilon=half, random_state=drawn.seed)


def _gram(drawn: _Drawn) -> Any:
    return GramDisplay.from_kernel(drawn.kernel, drawn.encoded, drawn.classes, random_state=drawn.seed)


def _spectrum(drawn: _Drawn) -> Any:
    return SpectrumDisplay.from_kernel(drawn.kernel, drawn.encoded, random_state=drawn.seed)


def _relevance(drawn: _Drawn) -> Any:
    if Subject.of(drawn.model).is_tabular:
        return RelevanceDisplay.from_estimator(drawn.learner)
    y = drawn.targets("relevance")
    if sp.issparse(drawn.X):
        raise DataError("--what relevance permutes named columns, which a libsvm file does not have.")
    return RelevanceDisplay.from_permutation(drawn.model, drawn.X, y, random_state=drawn.seed)


def _contributions(drawn: _Drawn) -> Any:
    with warnings.catch_warnings():
        # The warnings about the row have already been given.
        warnings.simplefilter("ignore", MercerWarning)
        return ContributionsDisplay.from_estimator(drawn.model, drawn.X, output=drawn.output)


@dataclass(frozen=True)
class _Kind:
    """How a picture is made, and which models have it, as a test and in words."""

    make: Callable[[_Drawn], Any]
    fits: Callable[[_Drawn], bool] = lambda drawn: True
    needed: str = ""


_KINDS = {
    "boundary": _Kind(_boundary, lambda drawn: is_classifier(drawn.learner), "a classifier"),
    "contributions": _Kind(
        _contributions,
        lambda drawn: has_decision_value(drawn.learner),
        "a model with one kernel that decides by a sum over rows",
    ),
    "gram": _Kind(_gram, lambda drawn: drawn.kernel is not None, "a model with one kernel"),
    "margins": _Kind(_margins, lambda drawn: hasattr(drawn.model, "decision_function"), "decision values"),
    "ordinal": _Kind(_ordinal, lambda drawn: hasattr(drawn.learner, "latent"), "ordered classes (--model ordinal)"),
    "relevance": _Kind(_relevance),
    "spectrum": _Kind(_spectrum, lambda drawn: drawn.kernel is not None, "a model with one kernel"),
    "tube": _Kind(
        _tube,
        lambda drawn: hasattr(drawn.learner, "epsilon") and not is_classifier(drawn.learner),
        "a support vector regression (--model svr)",
    ),
}


def _made(what: str, drawn: _Drawn) -> Any:
    """The display of that name.

    Raises
    ------
    ParameterError
        If the model has no such picture; the message lists those that it has.
    """
    kind = _KINDS[what]
    if not kind.fits(drawn):
        others = ", ".join(name for name, other in _KINDS.items() if other.fits(drawn))
        raise ParameterError(
            f"--what {what} needs {kind.needed}, but the model is {type(drawn.learner).__name__}; it has the pictures "
            f"{others}."
        )
    return kind.make(drawn)
