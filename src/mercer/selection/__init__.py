"""Choosing among models: searches, solutions along a parameter, and predictions of rows left out."""

from mercer.selection.kernel_search import KernelSearchCV
from mercer.selection.leave_one_out import LeaveOneOut, leave_one_out
from mercer.selection.path import Path, svm_path
from mercer.selection.ridge import RidgePath, ridge_path
from mercer.selection.search import GridSearchCV, RandomizedSearchCV

__all__ = [
    "GridSearchCV",
    "KernelSearchCV",
    "LeaveOneOut",
    "Path",
    "RandomizedSearchCV",
    "RidgePath",
    "leave_one_out",
    "ridge_path",
    "svm_path",
]
