"""Losses in prediction space, and penalties of the norm: no X, no kernel."""

from __future__ import annotations

from typing import Any

from mercer._errors import ParameterError
from mercer.losses.check import check_loss
from mercer.losses.loss import Loss, Tube
from mercer.losses.margin import Hinge, Logistic, SquaredHinge
from mercer.losses.own import OwnLoss
from mercer.losses.penalty import Ball, HalfSquare, Norm, NormPower, OwnPenalty, Penalty, as_penalty, check_penalty
from mercer.losses.poisson import Poisson
from mercer.losses.residual import EpsilonInsensitive, Huber, Quantile
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
    "Norm",
    "NormPower",
    "OwnLoss",
    "OwnPenalty",
    "Penalty",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "Tube",
    "as_loss",
    "as_penalty",
    "check_loss",
    "check_penalty",
]

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (Squared, Hinge, SquaredHinge, Logistic, EpsilonInsensitive, Huber, Quantile, Poisson)
}  # fmt: skip
"""By the names that estimators take."""


def as_loss(loss: Any) -> Loss:
    """A loss from its name, from a loss, or from an object of your own; see :class:`OwnLoss`.

    Raises
    ------
    ParameterError
        If there is no loss of that name, or the object is no loss.

    Examples
    --------
    >>> as_loss("huber"), as_loss(Huber(2.0))
    (Huber(delta=1.0), Huber(delta=2.0))
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ParameterError(
                f"there is no loss {loss!r}; the losses are {', '.join(LOSSES)}, and objects with value(y, f) and "
                "gradient(y, f)."
            )
        return LOSSES[loss]()
    if isinstance(loss, type):
        raise ParameterError(f"loss is the class {loss.__name__}; pass an object of it, such as {loss.__name__}().")
    return loss if isinstance(loss, Loss) else OwnLoss(loss)
