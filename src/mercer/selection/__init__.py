"""Choosing among models: solutions along a parameter."""

from mercer.selection.path import Path, svm_path
from mercer.selection.ridge import RidgePath, ridge_path

__all__ = ["Path", "RidgePath", "ridge_path", "svm_path"]
