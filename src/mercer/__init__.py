"""Mercer: kernel methods for Python. Any kernel, any learner, any scale, each answer with its certificate.

Names are loaded when they are first used (PEP 562), so that ``import mercer`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "GaussianProcessClassifier": "mercer.estimators.gaussian_process_classifier",
    "BayesianLinearRegression": "mercer.estimators.bayesian_linear_regression",
    "GaussianProcessRegressor": "mercer.estimators.gaussian_process_regressor",
    "GaussianProcessOrdinalRegression": "mercer.estimators.gaussian_process_ordinal_regression",
    "Gram": "mercer.gram",
    "Graph": "mercer.data.graph",
    "KernelKMeans": "mercer.estimators.kernel_kmeans",
    "KernelLMS": "mercer.estimators.kernel_lms",
    "KernelLogisticRegression": "mercer.estimators.kernel_logistic_regression",
    "KernelMachine": "mercer.estimators.kernel_machine",
    "KernelNeighborsClassifier": "mercer.estimators.kernel_neighbors",
    "KernelNeighborsRegressor": "mercer.estimators.kernel_neighbors",
    "KernelOrdinalRegression": "mercer.estimators.kernel_ordinal_regression",
    "KernelPCA": "mercer.estimators.kernel_pca",
    "KernelPerceptron": "mercer.estimators.kernel_perceptron",
    "KernelQuantileRegression": "mercer.estimators.kernel_quantile_regression",
    "KernelRidge": "mercer.estimators.kernel_ridge",
    "InfeasibleError": "mercer._errors",
    "KernelSGDClassifier": "mercer.estimators.kernel_sgd",
    "MercerError": "mercer._errors",
    "NuSVC": "mercer.estimators.nu_svc",
    "NuSVR": "mercer.estimators.nu_svr",
    "OneClassSVM": "mercer.estimators.one_class_svm",
    "OnlineKernelLogisticRegression": "mercer.estimators.online_kernel_logistic_regression",
    "OnlineKernelRegressor": "mercer.estimators.online_kernel_regressor",
    "PrecomputedGram": "mercer.gram",
    "SVC": "mercer.estimators.svc",
    "SVR": "mercer.estimators.svr",
    "certify": "mercer.certification",
    "config": "mercer.engine.settings",
    "load": "mercer.persistence",
    "on_progress": "mercer.engine.progress",
    "ridge_path": "mercer.selection.ridge",
    "save": "mercer.persistence",
    "svm_path": "mercer.selection.path",
}
# The modules that state what they offer (``__all__``).
_MODULES = (
    "certification",
    "comparison",
    "extend",
    "gram",
    "kernels",
    "losses",
    "maps",
    "persistence",
    "priors",
    "selection",
    "solvers",
    "spectrum",
    "testing",
    "validity",
)

__all__ = ["__version__", *sorted(_HOME), *_MODULES]

if TYPE_CHECKING:
    from mercer import certification as certification
    from mercer import comparison as comparison
    from mercer import extend as extend
    from mercer import gram as gram
    from mercer import kernels as kernels
    from mercer import losses as losses
    from mercer import maps as maps
    from mercer import persistence as persistence
    from mercer import priors as priors
    from mercer import selection as selection
    from mercer import solvers as solvers
    from mercer import spectrum as spectrum
    from mercer import testing as testing
    from mercer import validity as validity
    from mercer._errors import InfeasibleError as InfeasibleError
    from mercer._errors import MercerError as MercerError
    from mercer.certification import certify as certify
    from mercer.data.graph import Graph as Graph
    from mercer.engine.progress import on_progress as on_progress
    from mercer.engine.settings import config as config
    from mercer.estimators.bayesian_linear_regression import BayesianLinearRegression as BayesianLinearRegression
    from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier as GaussianProcessClassifier
    from mercer.estimators.gaussian_process_ordinal_regression import (
        GaussianProcessOrdinalRegression as GaussianProcessOrdinalRegression,
    )
    from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor as GaussianProcessRegressor
    from mercer.estimators.kernel_kmeans import KernelKMeans as KernelKMeans
    from mercer.estimators.kernel_lms import KernelLMS as KernelLMS
    from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression as KernelLogisticRegression
    from mercer.estimators.kernel_machine import KernelMachine as KernelMachine
    from mercer.estimators.kernel_neighbors import KernelNeighborsClassifier as KernelNeighborsClassifier
    from mercer.estimators.kernel_neighbors import KernelNeighborsRegressor as KernelNeighborsRegressor
    from mercer.estimators.kernel_ordinal_regression import KernelOrdinalRegression as KernelOrdinalRegression
    from mercer.estimators.kernel_pca import KernelPCA as KernelPCA
    from mercer.estimators.kernel_perceptron import KernelPerceptron as KernelPerceptron
    from mercer.estimators.kernel_quantile_regression import KernelQuantileRegression as KernelQuantileRegression
    from mercer.estimators.kernel_ridge import KernelRidge as KernelRidge
    from mercer.estimators.kernel_sgd import KernelSGDClassifier as KernelSGDClassifier
    from mercer.estimators.nu_svc import NuSVC as NuSVC
    from mercer.estimators.nu_svr import NuSVR as NuSVR
    from mercer.estimators.one_class_svm import OneClassSVM as OneClassSVM
    from mercer.estimators.online_kernel_logistic_regression import (
        OnlineKernelLogisticRegression as OnlineKernelLogisticRegression,
    )
    from mercer.estimators.online_kernel_regressor import OnlineKernelRegressor as OnlineKernelRegressor
    from mercer.estimators.svc import SVC as SVC
    from mercer.estimators.svr import SVR as SVR
    from mercer.gram import Gram as Gram
    from mercer.gram import PrecomputedGram as PrecomputedGram
    from mercer.persistence import load as load
    from mercer.persistence import save as save
    from mercer.selection.path import svm_path as svm_path
    from mercer.selection.ridge import ridge_path as ridge_path


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"mercer.{name}")
    else:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
