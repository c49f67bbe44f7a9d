"""Ordered classes: labels in their order, cut-points between all of them, and the choice of a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.estimators.shared.labels import check_labels, require_two_classes
from mercer.solvers.risk.cumulative_links import Link

DECISIONS = ("mode", "median", "mean")
# Links whose classes may come in either order: the probabilities are the same.
_SYMMETRIC = ("logit", "probit")
# Beyond so many standard deviations a normal distribution has 1e-17 of its mass.
_REACH = 8.5


@dataclass(frozen=True, eq=False)
class OrderedLabels:
    """The classes (k,) in their order, the number of the class of every row (n,), and which classes (k,) are seen.

    ``ranks`` (n,) are the numbers of the rows' classes among those that are seen.
    """

    names: np.ndarray
    codes: NDArray[np.intp]
    seen: NDArray[np.bool_]

    @property
    def ranks(self) -> NDArray[np.intp]:
        return (np.cumsum(self.seen) - 1)[self.codes]

    def all_cuts(self, cuts: Vector) -> Vector:
        """Cut-points between all classes (k - 1,) from those between the seen ones.

        Between the cut-points of a class that is not seen there is nothing; at an end of the scale they are infinite.
        """
        return np.concatenate(([-np.inf], cuts, [np.inf]))[np.cumsum(self.seen)[:-1]]


def ordered_labels(
    learner: str, y: ArrayLike, classes: ArrayLike | None, weight: Vector, link: str = "logit"
) -> OrderedLabels:
    """Labels ``y`` (n,) as numbers of ordered classes; rows of weight zero are not looked at, and get the number 0.

    The order is that of ``classes``, which may say that labels are ``"sorted"``; else that of an ordered categorical of
    pandas, else that of numbers, also where they are written as text. Of other text two classes are sorted, since
    either order gives the same probabilities with a symmetric link; of more the order is not known.

    Raises
    ------
    DataError
        If labels are missing or unknown, or only one class is seen.
    ParameterError
        If ``classes`` are not at least two different labels, or are needed and missing.

    Examples
    --------
    >>> labels = ordered_labels("It", ["low", "high", "low"], ["low", "middle", "high"], np.ones(3))
    >>> labels.codes.tolist(), labels.seen.tolist(), labels.all_cuts(np.array([0.5])).tolist()
    ([0, 2, 0], [True, False, True], [0.5, 0.5])
    """
    dtype = getattr(y, "dtype", None)
    names_in_order = (
        getattr(dtype, "categories", None) if classes is None and getattr(dtype, "ordered", False) else classes
    )
    labels = check_labels(learner, y, len(weight))
    used = np.flatnonzero(weight)
    if names_in_order is None:
        names = _sorted(learner, np.unique(labels[used]), link)
    else:
        names = (
            np.unique(labels[used])
            if isinstance(names_in_order, str) and names_in_order == "sorted"
            else _as_classes(names_in_order)
        )
    codes = class_codes(names, labels, used)
    seen = np.bincount(codes[used], minlength=len(names)) > 0
    require_two_classes(learner, names[seen], unused=len(used) < len(weight))
    return OrderedLabels(names, codes, seen)


def class_codes(names: np.ndarray, labels: np.ndarray, used: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number among ``names`` (k,) of each label (n,); 0 for rows that are not in ``used``.

    Raises
    ------
    DataError
        If the label of a used row is not one of the names.

    Examples
    --------
    >>> class_codes(np.array(["low", "high"]), np.array(["high", "low", "?"]), np.array([0, 1])).tolist()
    [1, 0, 0]
    """
    number = {name: code for code, name in enumerate(names.tolist())}
    codes = np.zeros(len(labels), dtype=np.intp)
    codes[used] = [number.get(label, -1) for label in labels[used].tolist()]
    if codes.min() < 0:
        row = int(codes.argmin())
        raise DataError(
            f"y has the label {labels.tolist()[row]!r} in row {row}, which is not one of the "
            f"classes {names[:20].tolist()}; correct it, or list all classes in order in the parameter classes."
        )
    return codes


def _sorted(learner: str, names: np.ndarray, link: str) -> np.ndarray:
    """Different labels from the lowest to the highest, where that is known."""
    labels = names.tolist()
    if not any(isinstance(label, (str, bytes)) for label in labels):
        return names
    numbers = np.array([_as_number(label) for label in labels])
    if np.isfinite(numbers).all() and len(np.unique(numbers)) == len(numbers):
        return names[np.argsort(numbers)]
    if len(names) < 2 or (len(names) == 2 and link in _SYMMETRIC):
        return names
    example = repr(labels) if len(labels) <= 20 else f"[{', '.join(map(repr, labels[:20]))}, ...]"
    raise ParameterError(
        f"{learner} needs the order of its {len(names)} classes, which text labels do not define. List them from "
        f"the lowest to the highest: {learner}(classes={example}), in their order; pass y as an ordered categorical "
        "(pandas.Categorical(y, categories=..., ordered=True)); or, where the labels sort in their order "
        '("1 low", "2 middle", "3 high"), pass classes="sorted".'
    )


def _as_number(label: Any) -> float:
    try:
        return float(label)
    except (TypeError, ValueError):
        return np.nan


def _as_classes(classes: ArrayLike) -> np.ndarray:
    names = np.asarray(classes) if np.ndim(classes) == 1 else np.empty(0)
    if len(names) < 2 or len(set(names.tolist())) < len(names):
        raise ParameterError(
            'classes must be two or more different labels from the lowest to the highest, or "sorted", but is '
            f"{classes!r}."
        )
    return names


def class_probabilities(link: Link, latent: Vector, cuts: Vector) -> Vector:
    """Probabilities (m, k) of the classes between all ``cuts``, in units of the link, at latent values (m,).

    Cut-points are the same for all rows, (k - 1,), or each row has its own, (m, k - 1). Probabilities sum to one and
    are never negative; each has its digits however small it is. A class without room has none.

    Examples
    --------
    >>> from mercer.solvers.risk.cumulative_links import LINKS
    >>> class_probabilities(LINKS["logit"], np.array([0.0]), np.array([0.0, 0.0, np.inf])).tolist()
    [[0.5, 0.0, 0.5, 0.0]]
    """
    table = np.atleast_2d(cuts)
    ends = np.full((len(table), 1), np.inf)
    padded = np.concatenate([-ends, table, ends], axis=1)
    # Scales of the rows change no order: which classes have room is the same for all.
    room = padded[0, 1:] > padded[0, :-1]
    inner = np.concatenate([-ends, padded[:, 1:][:, room]], axis=1)
    g = latent[:, None]
    gaps = np.broadcast_to(np.diff(inner), (len(latent), inner.shape[1] - 1))
    out = np.zeros((len(latent), len(room)))
    out[:, room] = np.exp(-link.value(inner[:, 1:] - g, inner[:, :-1] - g, gaps))
    return out / out.sum(axis=1, keepdims=True)


def averaged_probabilities(link: Link, mean: Vector, variance: Vector, cuts: Vector) -> Vector:
    """Probabilities (m, k) of the classes where latent values are normal with a ``mean`` (m,) and a ``variance`` (m,).

    In closed form for the normal link; else by the trapezoidal rule over 8.5 standard deviations to either side, whose
    error falls exponentially with its step, which is at most 0.7 deviations and 0.5 on the scale of the link (but 4000
    steps are the most).

    Examples
    --------
    >>> from mercer.solvers.risk.cumulative_links import LINKS
    >>> averaged_probabilities(LINKS["logit"], np.zeros(1), np.full(1, 9.0), np.array([0.0])).round(12).tolist()
    [[0.5, 0.5]]
    """
    if link.name == "probit":
        # A normal latent value and the normal distribution of the link add up: the scale is that of their sum.
        scale = np.sqrt(1.0 + variance)
        return class_probabilities(link, mean / scale, cuts / scale[:, None])
    deviation = np.sqrt(variance)
    widest = float(deviation.max(initial=0.0))
    count = int(np.clip(np.ceil(_REACH / min(0.7, 0.5 / max(widest, 1e-300))), 13, 2000))
    nodes = np.linspace(-_REACH, _REACH, 2 * count + 1)
    weights = np.exp(-0.5 * nodes * nodes)
    total = np.zeros((len(mean), cuts.shape[-1] + 1))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        total += weight * class_probabilities(link, mean + node * deviation, cuts)
    return total


def decide(probabilities: Vector, decision: str) -> NDArray[np.intp]:
    """Numbers of classes (m,) by their probabilities (m, k).

    ``"mode"`` is the most probable class, ``"median"`` the first at which the probability of it and all below reaches
    one half, ``"mean"`` the one whose number is nearest to the expected number.

    Examples
    --------
    >>> p = np.array([[0.45, 0.0, 0.35, 0.2]])
    >>> [decide(p, decision).tolist() for decision in DECISIONS]
    [[0], [2], [1]]
    """
    if decision == "mode":
        return np.asarray(probabilities.argmax(axis=1))
    if decision == "median":
        # The last column is left out: rounding may leave the sum of all below one half of one.
        return np.asarray((np.cumsum(probabilities[:, :-1], axis=1) < 0.5).sum(axis=1))
    return np.rint(probabilities @ np.arange(probabilities.shape[1])).astype(np.intp)
