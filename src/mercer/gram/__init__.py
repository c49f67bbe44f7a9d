"""How K is evaluated: a lazy matrix by tiles, or one that the user computed."""

from mercer.gram.operator import Gram
from mercer.gram.precomputed import PrecomputedGram

__all__ = ["Gram", "PrecomputedGram"]
