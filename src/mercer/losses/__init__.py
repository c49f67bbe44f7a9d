"""Losses in prediction space, and penalties of the norm: no X, no kernel."""

from __future__ import annotations

from typing import Any, get_args

from mercer._errors import ParameterError
from mercer.losses.check import check_loss
from mercer.losses.loss import Loss, Targets, Tube
from mercer.losses.margin import Hinge, Logistic, ModifiedHuber, SquaredHinge
from mercer.losses.own import OwnLoss
from mercer.losses.penalty import Ball, HalfSquare, Norm, NormPower, OwnPenalty, Penalty, as_penalty, check_penalty
from mercer.losses.poisson import Poisson
from mercer.losses.residual import EpsilonInsensitive, Huber, Quantile
from mercer.losses.softmax import Softmax
from mercer.losses.squared import Squared

__all__ = [
    "LOSSES",
    "Ball",
    "EpsilonInsensitive",
    "HalfSquare",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "ModifiedHuber",
    "Norm",
    "NormPower",
    "OwnLoss",
    "OwnPenalty",
    "Penalty",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Tube",
    "as_loss",
    "as_penalty",
    "check_loss",
    "check_own_loss",
    "check_penalty",
    "is_logistic",
    "loss_named",
]

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (Squared, Hinge, SquaredHinge, Logistic, ModifiedHuber, EpsilonInsensitive, Huber, Quantile, Poisson)
}
"""By the names that estimators take; aliases are those of scikit-learn."""
_KINDS = {"signs": "labels", "numbers": "numbers", "counts": "counts"}


def loss_named(name: str) -> type[Loss] | None:
    """Return the loss class with a given name or alias.

    Parameters
    ----------
    name : str

    Returns
    -------
    type or None
        The class; None if no loss has that name.

    Examples
    --------
    >>> loss_named("log_loss") is loss_named("logistic") is Logistic
    True
    """
    for loss in LOSSES.values():
        if name == loss.name or name in loss.aliases:
            return loss
    return None


def as_loss(loss: Any, *targets: Targets) -> Loss:
    """Return a loss from its name, a loss, or a user-defined object; see :class:`OwnLoss`.

    Parameters
    ----------
    loss : str, Loss or object
    *targets : {"signs", "numbers", "counts"}
        Kinds of targets that the loss may have; any kind if none is given.

    Raises
    ------
    ParameterError
        If no loss has that name, the object is not a loss, or it is for other targets.

    Examples
    --------
    >>> as_loss("huber"), as_loss(Huber(2.0))
    (Huber(delta=1.0), Huber(delta=2.0))
    """
    targets = targets or get_args(Targets)
    if isinstance(loss, type):
        raise ParameterError(f"loss is the class {loss.__name__}; pass an object of it, such as {loss.__name__}().")
    if isinstance(loss, str):
        cls = loss_named(loss)
        if cls is None or cls.targets not in targets:
            names = [entry.name for entry in LOSSES.values() if entry.targets in targets]
            raise ParameterError(
                f"there is no loss {loss!r}{'' if cls is None else ' here'}; the losses are {', '.join(names)}, and "
                "objects with value(y, f) and gradient(y, f)."
            )
        return cls()
    result = loss if isinstance(loss, Loss) else OwnLoss(loss)
    if result.targets not in targets:
        kinds = " or ".join(_KINDS[kind] for kind in targets)
        raise ParameterError(
            f"the loss {result.name!r} is for {_KINDS[result.targets]}, but the targets here are {kinds}; pass a loss "
            f"whose attribute targets is {' or '.join(repr(kind) for kind in targets)}."
        )
    return result


def is_logistic(loss: Any) -> bool:
    """Whether a learner's loss is the logistic loss, whose predictions are log-odds.

    Parameters
    ----------
    loss : str, Loss or object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_logistic("log_loss"), is_logistic(Logistic()), is_logistic("hinge")
    (True, True, False)
    """
    return loss_named(loss) is Logistic if isinstance(loss, str) else isinstance(loss, Logistic)


def check_own_loss(loss: Loss, y: Any = (-1.0, 1.0)) -> None:
    """Raise an error if samples show that a user-defined loss is not valid for targets ``y``; see :func:`check_loss`.

    Parameters
    ----------
    loss : Loss
        Losses that are not user-defined always pass.
    y : array-like of float, default=(-1.0, 1.0)
        Targets.

    Examples
    --------
    >>> check_own_loss(Hinge())
    """
    if isinstance(loss, OwnLoss):
        check_loss(loss, y)
