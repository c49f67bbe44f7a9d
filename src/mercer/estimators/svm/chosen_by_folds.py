"""Parameters of a learner that are ``"cv"``: chosen by a search over folds before the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from mercer._errors import DataError, ParameterError
from mercer._registered import search_without_grid
from mercer._types import Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Each, Flag, Floats, Is, Number, Word
from mercer.data.words import shown
from mercer.estimators.shared.base import adopt
from mercer.kernels.convert import is_named

_FOLDS = 5
# Kernels by name of which a search chooses no gamma; of these powers it does with a coef0.
_WITHOUT_GAMMA, _POLYNOMIAL = ("linear", "cosine", "additive_chi2"), ("poly", "polynomial")
# Values of the constructors, where the search begins.
_STARTS = {"C": 1.0, "gamma": "scale", "epsilon": 0.1}


@dataclass(frozen=True, eq=False)
class FoldSearch:
    """The candidates of a search over folds, the chosen one first.

    Parameters
    ----------
    names : tuple of str
        The parameters that were chosen.
    values : ndarray of shape (m, p)
        Their values in each candidate.
    scores, lower, upper : ndarray of shape (m,)
        Mean scores of the folds, and the interval of each, NaN where it is not known.
    certified : bool
        Whether no other candidate can have a higher score.
    stop : str
        Why the search ended.

    Examples
    --------
    >>> search = FoldSearch(("C",), np.array([[10.0], [1.0]]), *np.array([[0.9, 0.8]] * 3), True, "done")
    >>> search.best, search.table["C"].tolist()
    ({'C': 10.0}, [10.0, 1.0])
    """

    names: tuple[str, ...]
    values: Matrix
    scores: Vector
    lower: Vector
    upper: Vector
    certified: bool
    stop: str
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "names": Each(Word(tuple(_STARTS)), "p"),
            "values": Floats("m, p"),
            "scores": Floats("m", nan=True),
            "lower": Floats("m", nan=True),
            "upper": Floats("m", nan=True),
            "certified": Flag(),
            "stop": Word(),
        },
        rules=(("a search has no candidate", lambda search: len(search.values) > 0),),
    )

    @property
    def best(self) -> dict[str, float]:
        """The chosen values."""
        return dict(zip(self.names, self.values[0].tolist()))

    @property
    def table(self) -> dict[str, Vector]:
        """A column for each parameter, and the scores with their bounds."""
        columns = dict(zip(self.names, self.values.T))
        return {**columns, "score": self.scores, "lower": self.lower, "upper": self.upper}


CHOICE = Fitted(
    {}, {"C_": Number(least=0), "gamma_": Number(least=0), "epsilon_": Number(least=0), "search_": Is(FoldSearch)}
)
"""What a fit with ``"cv"`` leaves beside the attributes of any other."""


@dataclass(frozen=True)
class FoldChoice:
    """The parameters ``names`` of a machine may be ``"cv"``; the first argument of each method is the machine.

    The machine raises in ``_check_data`` what its fit would raise for parameters and data.
    """

    names: tuple[str, ...]

    def left_open(self, model: Any) -> tuple[str, ...]:
        """The parameters that are ``"cv"``."""
        values = {name: getattr(model, name) for name in self.names}
        return tuple(name for name, value in values.items() if isinstance(value, str) and value == "cv")

    def or_word(self, model: Any, name: str) -> str:
        """The end of what a parameter must be, where it is text and may be ``"cv"``."""
        return ", or 'cv'" if name in self.names and isinstance(getattr(model, name), str) else ""

    def require_values(self, model: Any) -> None:
        """Raise where a problem is to be stated without a fit that chooses its parameters."""
        for name in self.left_open(model):
            raise ParameterError(
                f"{name}='cv' is chosen by fit; pass the fitted {type(model).__name__}, or a number for {name}."
            )

    def refuse_on_landmarks(self, model: Any) -> None:
        """Raise where a machine over landmarks leaves parameters to be chosen."""
        for name in self.left_open(model):
            raise ParameterError(
                f"approximation=\"nystroem\" cannot be combined with {name}='cv'. Pass a number; "
                f"KernelSearchCV({type(model).__name__}(...)) chooses {name} by folds."
            )

    def refuse_loo(self, model: Any) -> None:
        """Raise for ``"loo"``, which is KernelRidge's."""
        for name in self.names:
            if isinstance(getattr(model, name), str) and getattr(model, name) == "loo":
                raise ParameterError(
                    f"{name}='loo' is for KernelRidge, whose leave-one-out errors have a closed form; for "
                    f"{type(model).__name__} pass {name}='cv', which chooses it by five folds."
                )

    def forget(self, model: Any) -> None:
        """Remove what an earlier fit chose."""
        for name in CHOICE.sometimes:
            vars(model).pop(name, None)

    def fit(self, model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        """Choose, fit a copy with the values, and give its attributes to the machine, which is returned."""
        names = self.left_open(model)
        _check_left_open(model, names)
        copied = clone(model).set_params(**{name: _STARTS[name] for name in names})
        clone(copied)._check_data(X, y, sample_weight)
        # Targets in a column; the check has warned of that.
        y = np.asarray(y).ravel()
        searching = search_without_grid()(
            copied, cv=_folds(copied, y), random_state=0, refit=False, n_jobs=copied.n_jobs, parameters=list(names)
        )
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        searching.fit(X, y, **weights)
        chosen = _summary(searching, names)
        copied.set_params(**chosen.best).fit(X, y, **weights)
        adopt(model, copied)
        for name, value in chosen.best.items():
            setattr(model, f"{name}_", value)
        model.search_ = chosen
        return model


def _check_left_open(model: Any, names: tuple[str, ...]) -> None:
    if "gamma" not in names:
        return
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise ParameterError("gamma='cv' needs a kernel with a parameter, and kernel is 'precomputed'.")
    if not is_named(model.kernel):
        raise ParameterError(
            f"gamma='cv' is for kernels given by name, but kernel={model.kernel!r} has its own parameters; leave "
            f"gamma out and search them with KernelSearchCV({type(model).__name__}(kernel=...))."
        )
    if model.kernel in _WITHOUT_GAMMA or (model.kernel in _POLYNOMIAL and not model.coef0):
        why = "in which gamma is a factor as C is, unless coef0 differs from 0" if model.kernel in _POLYNOMIAL else ""
        raise ParameterError(
            f"gamma='cv' needs a kernel whose gamma can be chosen, and kernel is {model.kernel!r}"
            f"{f', {why}' if why else ', which has none'}; leave gamma out."
        )


def _folds(model: Any, y: Any) -> Any:
    """Folds in random order, which is the same each time; fewer than five for few rows of a class or few targets."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        return _FOLDS
    if not is_classifier(model):
        # R^2 needs two held-out rows.
        if len(labels) < 4:
            raise DataError(
                f"'cv' needs at least 4 rows for folds, but there are {len(labels)} sample(s); give a number."
            )
        return KFold(min(_FOLDS, len(labels) // 2), shuffle=True, random_state=0)
    values, counts = np.unique(labels, return_counts=True)
    if len(values) > 1 and counts.min() < 2:
        raise DataError(
            f"'cv' needs at least 2 rows of each class for folds, but the class {shown(values[counts.argmin()])} has "
            "1; add rows of it, leave it out, or give numbers in place of 'cv'."
        )
    return StratifiedKFold(min(_FOLDS, int(counts.min())) if len(values) > 1 else 2, shuffle=True, random_state=0)


def _summary(searching: Any, names: tuple[str, ...]) -> FoldSearch:
    results = searching.cv_results_
    ranked = np.argsort(results["rank_test_score"], kind="stable")
    order = np.array([searching.best_index_, *(n for n in ranked if n != searching.best_index_)])
    values = np.array([[float(results["params"][n][name]) for name in names] for n in order])
    scores, lower, upper = (results[f"{what}_test_score"][order] for what in ("mean", "lower", "upper"))
    return FoldSearch(names, values, scores, lower, upper, bool(searching.certified_), searching.stop_reason_)
