"""Gram matrices: lazy ones, evaluated by tiles, and those that the user computed."""

from mercer.gram.operator import Gram
from mercer.gram.precomputed import PrecomputedGram

__all__ = ["Gram", "PrecomputedGram"]
