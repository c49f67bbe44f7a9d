"""Fitted models come back from files, pickle, joblib and copy with the same predictions, bit for bit."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from estimator_table import ONE_EACH
from estimator_table import X as ROWS
from mercer import (
    SVC,
    SVR,
    BayesianLinearRegression,
    ConformalClassifier,
    ConformalRegressor,
    GaussianProcessClassifier,
    GaussianProcessOrdinalRegression,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelOrdinalRegression,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSGDClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load,
    losses,
    save,
)
from mercer._errors import ModelFileError
from mercer.data.feature_table import FeatureTable
from mercer.estimators.table import TableModel
from mercer.kernels import RBF, Laplacian, Linear, Polynomial
from mercer.priors import LogNormal

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
NEW = RNG.standard_normal((17, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = np.array(["no", "yes"])[(X[:, 0] + 0.3 * X[:, 2] > 0).astype(int)]
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.5, 0.5])]
FRAME = pd.DataFrame({"size": X[:, 0], "old": X[:, 1] > 0, "town": np.where(X[:, 2] > 0, "Ulm", "Zug")})
NEW_FRAME = pd.DataFrame({"size": NEW[:, 0], "old": NEW[:, 1] > 0, "town": np.where(NEW[:, 2] > 0, "Ulm", "Zug")})
K, NEW_K = RBF(1.0)(X), RBF(1.0)(NEW, X)
KERNEL = 0.5 * RBF([1.0, 2.0, 3.0]) + Linear()

DATED = FRAME.assign(day=pd.date_range("2026-01-01", periods=40, freq="7h"))


def in_blocks(frame: pd.DataFrame, y: np.ndarray) -> TableModel:
    """What the command line makes of rows in blocks."""
    table = FeatureTable().fit(frame)
    model = KernelRidge(kernel=Laplacian(2.0)).fit(table.transform(frame), y)
    return TableModel(model).take(table, model, 1.0, 2.0)


# name: fitted model, and what it predicts for
MODELS: dict[str, tuple[Callable[[], BaseEstimator], Any]] = {
    "ridge": (lambda: KernelRidge(kernel=KERNEL, alpha=0.1).fit(X, Y), NEW),
    "ridge, float32": (lambda: KernelRidge(kernel=RBF(2.0)).fit(X.astype(np.float32), Y), NEW.astype(np.float32)),
    "ridge, two targets": (lambda: KernelRidge(kernel=KERNEL, alpha=[0.1, 2.0]).fit(X, np.c_[Y, -Y]), NEW),
    "ridge, weighted": (lambda: KernelRidge(kernel=Polynomial(2)).fit(X, Y, sample_weight=np.arange(40) + 1.0), NEW),
    "ridge, precomputed": (lambda: KernelRidge(kernel="precomputed").fit(K, Y), NEW_K),
    "ridge, chosen penalties": (
        lambda: KernelRidge("loo", kernel=KERNEL, alpha_per_target=True).fit(X, np.c_[Y, X[:, 2]]),
        NEW,
    ),
    "ridge, given penalties": (lambda: KernelRidge("gcv", kernel=KERNEL, alphas=[0.1, 1.0]).fit(X, Y), NEW),
    "mean squares": (lambda: mercer.KernelLMS(early_stopping=True, random_state=0).fit(X, np.c_[Y, -Y]), NEW),
    "mean squares, precomputed": (lambda: mercer.KernelLMS("precomputed").fit(K, Y), NEW_K),
    "bayesian linear": (lambda: BayesianLinearRegression(fit_intercept=True).fit(X, Y), NEW),
    "bayesian linear, wide": (lambda: BayesianLinearRegression(2.0).fit(X[:2], Y[:2]), NEW),
    "ridge, centred": (lambda: KernelRidge(kernel=Linear().centered(X[:9])).fit(X, Y), NEW),
    "ridge, scikit-learn's kernel": (
        lambda: KernelRidge(kernel=2.0 * SklearnRBF(1.5) + WhiteKernel(0.1)).fit(X, Y),
        NEW,
    ),
    "svc": (lambda: SVC(C=5.0).fit(X, LABELS), NEW),
    "svc, probabilities": (lambda: SVC(probability=True, random_state=0).fit(X, THREE), NEW),
    "svc, three classes": (lambda: SVC(kernel=KERNEL, decision_function_shape="ovo").fit(X, THREE), NEW),
    "svc, sparse": (lambda: SVC(kernel="linear").fit(sp.csr_matrix(X), THREE), sp.csr_matrix(NEW)),
    "svc, precomputed": (lambda: SVC(kernel="precomputed").fit(K, LABELS), NEW_K),
    "svc, class weights": (lambda: SVC(kernel=Laplacian(2.0), class_weight={"no": 2.0}).fit(X, LABELS), NEW),
    "svc, data frame": (lambda: SVC().fit(FRAME[["size", "old"]], LABELS), NEW_FRAME[["size", "old"]]),
    "svc, hard margin": (lambda: SVC(C=np.inf, gamma=5.0, fit_intercept=False).fit(X, THREE), NEW),
    "nu-svc": (lambda: NuSVC(nu=0.2, class_weight="balanced").fit(sp.csr_matrix(X), LABELS), sp.csr_matrix(NEW)),
    "gaussian process": (
        lambda: GaussianProcessRegressor(KERNEL, alpha=0.01, priors={"left.factor": LogNormal()}).fit(X, Y),
        NEW,
    ),
    "gaussian process, two targets": (
        lambda: GaussianProcessRegressor(
            RBF(1.0),
            noise=0.1,
            noise_bounds=(0.01, 1.0),
            mean="linear",
            normalize_y=True,
            n_restarts_optimizer=1,
            random_state=0,
        ).fit(X, np.c_[Y, -Y]),
        NEW,
    ),
    "gaussian process, standardised": (lambda: GaussianProcessRegressor(alpha=0.1, normalize_y=True).fit(X, Y), NEW),
    "gaussian process, landmarks": (
        lambda: GaussianProcessRegressor(
            KERNEL, noise=0.1, approximation="nystroem", n_landmarks=15, normalize_y=True, random_state=0
        ).fit(X, np.c_[Y, -Y]),
        NEW,
    ),
    "gaussian process, precomputed": (lambda: GaussianProcessRegressor("precomputed", alpha=0.1).fit(K, Y), NEW_K),
    "gaussian process, conditioned": (
        lambda: (
            GaussianProcessRegressor(SklearnRBF(1.5), alpha=0.1, mean="constant", optimizer=None)
            .fit(sp.csr_matrix(X[:30]), Y[:30])
            .condition_on(sp.csr_matrix(X[30:]), Y[30:])
        ),
        sp.csr_matrix(NEW),
    ),
    "tabular, regression": (lambda: mercer.TabularRegressor().fit(FRAME, Y), NEW_FRAME),
    "tabular, classification": (lambda: mercer.TabularClassifier().fit(FRAME, THREE), NEW_FRAME),
    "svr": (lambda: SVR(kernel=KERNEL).fit(X, Y, np.arange(40)), NEW),
    "svr, precomputed": (lambda: SVR(kernel="precomputed", fit_intercept=False).fit(K, Y), NEW_K),
    "machine": (lambda: mercer.KernelMachine(losses.Huber(0.5), losses.Ball(2.0)).fit(X, Y), NEW),
    "machine, classes": (lambda: mercer.KernelMachine("logistic", class_weight="balanced").fit(X, THREE), NEW),
    "machine, precomputed": (lambda: mercer.KernelMachine("quantile", kernel="precomputed").fit(K, Y), NEW_K),
    "quantiles": (lambda: mercer.KernelQuantileRegression([0.9, 0.1, 0.5], C=5.0).fit(X, Y), NEW),
    "nu-svr": (lambda: NuSVR(nu=0.3).fit(sp.csr_matrix(X), Y), sp.csr_matrix(NEW)),
    "ordinal": (
        lambda: KernelOrdinalRegression(link="probit", classes=["oak", "box", "ash", "elm"]).fit(X, THREE),
        NEW,
    ),
    "ordinal, slope": (
        lambda: KernelOrdinalRegression(
            kernel="precomputed", slope="evidence", decision="median", classes=["ash", "elm", "oak"]
        ).fit(K, THREE),
        NEW_K,
    ),
    "gp ordinal": (lambda: GaussianProcessOrdinalRegression(classes=["ash", "elm", "oak"]).fit(X, THREE), NEW),
    "gp ordinal, ties and restarts": (
        lambda: GaussianProcessOrdinalRegression(
            1.0 * RBF(1.0),
            link="logit",
            slope=2.0,
            n_restarts_optimizer=1,
            random_state=0,
            classes=["oak", "box", "ash", "elm"],
        ).fit(X.round(), THREE),
        NEW,
    ),
    "neighbours": (lambda: mercer.KernelNeighborsClassifier(3, kernel=KERNEL).fit(X, THREE), NEW),
    "neighbours, two outputs": (
        lambda: mercer.KernelNeighborsClassifier(weights="distance", kernel=RBF(1.0)).fit(X, np.c_[THREE, LABELS]),
        NEW,
    ),
    "neighbours, numbers": (
        lambda: mercer.KernelNeighborsRegressor(weights="distance").fit(sp.csr_matrix(X), np.c_[Y, -Y]),
        sp.csr_matrix(NEW),
    ),
    "neighbours, precomputed": (lambda: mercer.KernelNeighborsRegressor(kernel="precomputed").fit(K, Y), NEW_K),
    "outlier factor": (lambda: mercer.KernelLocalOutlierFactor(9, kernel=KERNEL).fit(X), NEW),
    "outlier factor, precomputed": (lambda: mercer.KernelLocalOutlierFactor(5, kernel="precomputed").fit(K), NEW_K),
    "one class": (lambda: OneClassSVM(nu=0.3).fit(X), NEW),
    "logistic": (lambda: KernelLogisticRegression(kernel=KERNEL).fit(X, LABELS, np.arange(40)), NEW),
    "logistic, three classes": (
        lambda: KernelLogisticRegression(class_weight="balanced").fit(sp.csr_matrix(X), THREE),
        sp.csr_matrix(NEW),
    ),
    "logistic, precomputed": (lambda: KernelLogisticRegression(kernel="precomputed").fit(K, THREE), NEW_K),
    "gpc": (lambda: GaussianProcessClassifier(KERNEL).fit(X, LABELS), NEW),
    "gpc, three classes": (lambda: GaussianProcessClassifier(kernel=KERNEL).fit(X, THREE), NEW),
    "gpc, one against the rest": (
        lambda: GaussianProcessClassifier(multi_class="one_vs_rest").fit(sp.csr_matrix(X), THREE),
        sp.csr_matrix(NEW),
    ),
    "gpc, expectation propagation": (
        lambda: GaussianProcessClassifier(
            RBF(1.0), approximation="ep", priors={"length_scale": LogNormal()}, warm_start=True
        ).fit(X, LABELS),
        NEW,
    ),
    "gpc, landmarks": (
        lambda: GaussianProcessClassifier(KERNEL, approximation="nystroem", n_landmarks=15, random_state=0).fit(
            X, LABELS
        ),
        NEW,
    ),
    "gpc, three classes over landmarks": (
        lambda: GaussianProcessClassifier(approximation="nystroem", landmarks=X[:9]).fit(X, THREE),
        NEW,
    ),
    "gpc, one against the rest over landmarks": (
        lambda: GaussianProcessClassifier(
            multi_class="one_vs_rest", approximation="nystroem", n_landmarks=9, random_state=0
        ).fit(sp.csr_matrix(X), THREE),
        sp.csr_matrix(NEW),
    ),
    "gpc, precomputed": (lambda: GaussianProcessClassifier("precomputed").fit(K, THREE), NEW_K),
    "perceptron": (lambda: KernelPerceptron(budget=20, random_state=0).fit(X, LABELS), NEW),
    "perceptron, voted": (
        lambda: KernelPerceptron(averaging="voted", random_state=0).fit(sp.csr_matrix(X), THREE),
        sp.csr_matrix(NEW),
    ),
    "perceptron, precomputed": (
        lambda: KernelPerceptron("precomputed", averaging="averaged", random_state=0).fit(K, THREE),
        NEW_K,
    ),
    "online": (lambda: mercer.OnlineKernelLogisticRegression(budget=20, random_state=0).fit(X, THREE), NEW),
    "online, merging": (
        lambda: mercer.OnlineKernelLogisticRegression(budget=9, budget_strategy="merging").partial_fit(
            X, LABELS, ["no", "yes"]
        ),
        NEW,
    ),
    "online, sparse hinge": (
        lambda: mercer.OnlineKernelLogisticRegression("hinge", alpha=0.1, budget=9, budget_strategy="truncation").fit(
            sp.csr_matrix(X), LABELS
        ),
        sp.csr_matrix(NEW),
    ),
    "online, precomputed": (lambda: mercer.OnlineKernelLogisticRegression(kernel="precomputed").fit(K, THREE), NEW_K),
    "online numbers": (lambda: mercer.OnlineKernelRegressor("huber", budget=9).fit(X, np.c_[Y, -Y]), NEW),
    "sgd": (lambda: KernelSGDClassifier(alpha=0.1, random_state=0).fit(X, LABELS, np.arange(40)), NEW),
    "sgd, explicit map": (
        lambda: KernelSGDClassifier(kernel="linear", alpha=0.1, fit_intercept=True, random_state=0).fit(X, THREE),
        NEW,
    ),
    "components": (lambda: KernelPCA(3, kernel=KERNEL).fit(X), NEW),
    "components, inverse": (lambda: KernelPCA(kernel="rbf", fit_inverse_transform=True).fit(X), NEW),
    "components, sparse": (lambda: KernelPCA(2, kernel="poly").fit(sp.csr_matrix(X)), sp.csr_matrix(NEW)),
    "components, precomputed": (lambda: KernelPCA(2, kernel="precomputed").fit(K), NEW_K),
    "clusters": (lambda: KernelKMeans(4, kernel=KERNEL, random_state=0).fit(X), NEW),
    "clusters, linear": (lambda: KernelKMeans(4, kernel="linear", random_state=0).fit(X), NEW),
    "clusters, landmarks": (
        lambda: KernelKMeans(4, approximation="nystroem", n_landmarks=9, random_state=0).fit(sp.csr_matrix(X)),
        sp.csr_matrix(NEW),
    ),
    "clusters, precomputed": (lambda: KernelKMeans(4, kernel="precomputed", random_state=0).fit(K), NEW_K),
    "pipeline": (lambda: make_pipeline(StandardScaler(), SVC(kernel="poly")).fit(X, LABELS), NEW),
    "conformal, numbers": (lambda: ConformalRegressor(SVR(), cv=3).fit(X, Y), NEW),
    "conformal, held out": (lambda: ConformalRegressor(SVR(), cv=0.3).fit(X, Y), NEW),
    "conformal, decision values": (lambda: ConformalClassifier(SVC(), cv=3).fit(X, THREE), NEW),
    "conformal, probabilities": (lambda: ConformalClassifier(KernelLogisticRegression(), cv=3).fit(X, LABELS), NEW),
    "table, calibrated classes": (
        lambda: TableModel(SVC(), target="tree").fit(FRAME, THREE).calibrate(FRAME, THREE),
        NEW_FRAME,
    ),
    "table, calibrated numbers": (lambda: TableModel(SVR()).fit(FRAME, Y).calibrate(FRAME, Y, folds=None), NEW_FRAME),
    "table, gaps": (
        lambda: TableModel(KernelRidge(kernel=RBF(1.0).on(["size"])), impute="mean").fit(
            FRAME.mask(FRAME["size"] > 1.0), Y
        ),
        NEW_FRAME.mask(NEW_FRAME["size"] > 1.0),
    ),
    "table, classes": (lambda: TableModel(SVC(), target="tree").fit(FRAME, THREE), NEW_FRAME),
    "table, numbers": (lambda: TableModel(KernelRidge(kernel=KERNEL.on([0, 1, 2])), "minmax").fit(FRAME, Y), NEW_FRAME),
    "table, imputed": (
        lambda: TableModel(KernelRidge(kernel="rbf"), impute="median").fit(FRAME.mask(FRAME["size"] > 1), Y),
        NEW_FRAME,
    ),
    "table, in blocks": (lambda: in_blocks(DATED, Y), DATED[20:]),
}


MODELS |= {
    str(case.id): (functools.partial(lambda model, y: clone(model).fit(ROWS[:40], y[:40]), *case.values), ROWS[40:57])
    for case in ONE_EACH
}


def by_file(model: Any, directory: Path) -> Any:
    save(model, directory / "model.mercer")
    return load(directory / "model.mercer")


def by_joblib(model: Any, directory: Path) -> Any:
    joblib.dump(model, directory / "model.joblib")
    return joblib.load(directory / "model.joblib")


def by_skops(model: Any, _: Path) -> Any:
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    # What a user has to trust are our own classes, and those of scikit-learn and pandas that a model holds.
    assert {name.partition(".")[0] for name in types} <= {"mercer", "sklearn", "pandas", "numpy", "scipy"}
    return skops.loads(data, trusted=types)


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "file": by_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "joblib": by_joblib,
    "skops": by_skops,
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "copy": lambda model, _: copy.copy(model),
}


def answers(model: Any, rows: Any) -> list[np.ndarray]:
    methods = [name for name in ("predict", "predict_proba", "decision_function", "transform") if hasattr(model, name)]
    results = [getattr(model, name)(rows) for name in methods]
    # With several outputs there is an array of probabilities for each.
    results = [part for answer in results for part in (answer if isinstance(answer, list) else [answer])]
    if isinstance(model, GaussianProcessRegressor) and model.kernel_ is not None:
        results += [*model.predict(rows, return_std=True)]
        results += [] if model.y_train_ is None else [*model.leave_one_out()]
    return results


@functools.cache
def fitted(name: str) -> tuple[Any, list[np.ndarray]]:
    """A model of the table and its answers; no way of keeping it may change it for the others."""
    make, rows = MODELS[name]
    model = make()
    return model, answers(model, rows)


# Each model by a file, and one of each estimator by skops; pickle, joblib and the copies, which share the way in which
# an estimator is taken apart, have the models in turn.
PAIRS = [(name, "file") for name in MODELS] + [(str(case.id), "skops") for case in ONE_EACH]
PAIRS += list(zip(MODELS, itertools.cycle(["pickle", "joblib", "deepcopy", "copy", "skops"]), strict=False))


@pytest.mark.parametrize(("name", "way"), dict.fromkeys(PAIRS))
def test_predictions_are_the_same_bit_for_bit(name, way, tmp_path):
    (model, expected), rows = fitted(name), MODELS[name][1]
    back = WAYS[way](model, tmp_path)
    assert type(back) is type(model)
    assert vars(back).keys() == vars(model).keys()
    for result, reference in zip(answers(back, rows), expected, strict=True):
        assert result.dtype == reference.dtype
        assert result.tolist() == reference.tolist()
    assert repr(back) == repr(model)


@pytest.mark.parametrize("name", ["ridge", "svc", "svc, three classes", "logistic"])
def test_the_certificate_and_the_attributes_come_back(name, tmp_path):
    model = fitted(name)[0]
    back = by_file(model, tmp_path)
    assert back.certificate_ == model.certificate_
    assert back.kernel_ == model.kernel_
    for attribute, value in vars(model).items():
        if isinstance(value, np.ndarray):
            assert getattr(back, attribute).dtype == value.dtype
            assert getattr(back, attribute).tolist() == value.tolist()


def test_a_loaded_model_can_be_fitted_again_and_cloned(tmp_path):
    model = by_file(SVC(C=2.0, kernel=KERNEL).fit(X, LABELS), tmp_path)
    fresh = clone(model).fit(X, LABELS)
    assert fresh.decision_function(NEW).tolist() == model.decision_function(NEW).tolist()
    model.set_params(C=3.0)
    assert model.fit(X, THREE).classes_.tolist() == ["ash", "elm", "oak"]


@pytest.mark.parametrize("model", [SVC(C=3.0), KernelRidge(kernel=KERNEL), TableModel(SVC())], ids=repr)
def test_unfitted_models_come_back(model, tmp_path):
    back = by_file(model, tmp_path)
    assert vars(back).keys() == vars(model).keys()
    assert repr(back) == repr(model)


def test_a_function_as_the_kernel_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"SVC\.kernel is a Python function \(inner\)"):
        save(SVC(kernel=np.inner), tmp_path / "model.mercer")
    with pytest.raises(ModelFileError, match=r"TableModel\.estimator\.kernel\.function is a Python function"):
        save(TableModel(KernelRidge(kernel=RBF().scaled_by(len))), tmp_path / "model.mercer")
    assert list(tmp_path.iterdir()) == []


def test_the_schema_of_a_table_model_comes_back_and_is_checked(tmp_path):
    back = by_file(MODELS["table, classes"][0](), tmp_path)
    assert back.schema_ == MODELS["table, classes"][0]().schema_
    with pytest.raises(mercer._errors.SchemaError, match="size"):
        back.predict(NEW_FRAME.drop(columns="size"))
