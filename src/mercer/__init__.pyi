"""The public names: the one list of them, for type checkers and for the package itself."""

from mercer import certification as certification
from mercer import comparison as comparison
from mercer import explain as explain
from mercer import extend as extend
from mercer import gram as gram
from mercer import kernels as kernels
from mercer import losses as losses
from mercer import maps as maps
from mercer import persistence as persistence
from mercer import plotting as plotting
from mercer import priors as priors
from mercer import selection as selection
from mercer import solvers as solvers
from mercer import spectrum as spectrum
from mercer import testing as testing
from mercer import validity as validity
from mercer._errors import InfeasibleError as InfeasibleError
from mercer._errors import MercerError as MercerError
from mercer.certification import certify as certify
from mercer.certification import certify_landmarks as certify_landmarks
from mercer.costs.estimate import estimate as estimate
from mercer.data.blocks.blocks import Blocks as Blocks
from mercer.data.blocks.sink import write_blocks as write_blocks
from mercer.data.graph import Graph as Graph
from mercer.engine.progress import on_progress as on_progress
from mercer.engine.settings import config as config
from mercer.estimators.bayesian_linear_regression import BayesianLinearRegression as BayesianLinearRegression
from mercer.estimators.conformal_classifier import ConformalClassifier as ConformalClassifier
from mercer.estimators.conformal_regressor import ConformalRegressor as ConformalRegressor
from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier as GaussianProcessClassifier
from mercer.estimators.gaussian_process_ordinal_regression import (
    GaussianProcessOrdinalRegression as GaussianProcessOrdinalRegression,
)
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor as GaussianProcessRegressor
from mercer.estimators.kernel_kmeans import KernelKMeans as KernelKMeans
from mercer.estimators.kernel_lms import KernelLMS as KernelLMS
from mercer.estimators.kernel_local_outlier_factor import KernelLocalOutlierFactor as KernelLocalOutlierFactor
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
from mercer.estimators.multiple_kernel_ridge import MultipleKernelRidge as MultipleKernelRidge
from mercer.estimators.multiple_kernel_svc import MultipleKernelSVC as MultipleKernelSVC
from mercer.estimators.multiple_kernel_svr import MultipleKernelSVR as MultipleKernelSVR
from mercer.estimators.nu_svc import NuSVC as NuSVC
from mercer.estimators.nu_svr import NuSVR as NuSVR
from mercer.estimators.one_class_svm import OneClassSVM as OneClassSVM
from mercer.estimators.online_kernel_logistic_regression import (
    OnlineKernelLogisticRegression as OnlineKernelLogisticRegression,
)
from mercer.estimators.online_kernel_regressor import OnlineKernelRegressor as OnlineKernelRegressor
from mercer.estimators.svc import SVC as SVC
from mercer.estimators.svr import SVR as SVR
from mercer.estimators.tabular_classifier import TabularClassifier as TabularClassifier
from mercer.estimators.tabular_regressor import TabularRegressor as TabularRegressor
from mercer.gram import Gram as Gram
from mercer.gram import PrecomputedGram as PrecomputedGram
from mercer.persistence import load as load
from mercer.persistence import save as save
from mercer.reports.make import report as report
from mercer.selection.kernel_search import KernelSearchCV as KernelSearchCV
from mercer.selection.path import svm_path as svm_path
from mercer.selection.ridge import ridge_path as ridge_path
from mercer.selection.search import GridSearchCV as GridSearchCV
from mercer.selection.search import RandomizedSearchCV as RandomizedSearchCV

__version__: str
__all__: list[str]
