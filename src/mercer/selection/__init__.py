"""Choosing among models: solutions along a parameter."""

from mercer.selection.path import Path, svm_path

__all__ = ["Path", "svm_path"]
