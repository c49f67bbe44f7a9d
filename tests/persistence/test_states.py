"""Files with a right checksum whose fitted attributes do not fit together are refused, with the attribute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer
from mercer import load, save
from mercer._errors import ModelFileError
from mercer.data.fitted import statements
from mercer.kernels import RBF, Spectrum
from mercer.persistence import container
from mercer.persistence.foreign import stated_elsewhere
from mercer.persistence.registry import registry
from mercer.persistence.states import check_state

X = np.random.default_rng(0).normal(size=(30, 3))
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.5, 0.5])]
Y = np.sin(X[:, 0])


def test_forged_counts_of_support_vectors_are_refused(tmp_path):
    """They told a compiled loop where the support vectors of a class end, which read what is not ours."""
    path = tmp_path / "model.mercer"
    model = mercer.SVC().fit(X, THREE)
    save(model, path)
    texts, arrays = container.read(path)
    (name,) = (n for n, a in arrays.items() if a.dtype == np.int32 and a.tolist() == model.n_support_.tolist())
    for forged in ([10**6, 5, 5], [-3, 20, 13], [int(model.n_support_.sum()), 0, 1]):
        container.write(path, texts, {**arrays, name: np.array(forged, np.int32)})
        with pytest.raises(ModelFileError, match="n_support_"):
            load(path)


LIES: dict[str, tuple[Any, str, Any, str]] = {
    "position": (mercer.SVC().fit(X, THREE), "support_", lambda a: a + 1000, "support_ must be at most 29"),
    "negative position": (mercer.SVR().fit(X, Y), "support_", lambda a: a - 50, "support_ must be at least 0"),
    "length": (mercer.SVR().fit(X, Y), "dual_coef_", lambda a: a[:, 1:], "dual_coef_ has"),
    "type": (mercer.SVR().fit(X, Y), "dual_coef_", lambda a: a.astype(np.float32), "must be an array of f8"),
    "nan": (mercer.KernelRidge().fit(X, Y), "dual_coef_", lambda a: a * np.nan, "dual_coef_ must be finite"),
    "rows": (mercer.KernelRidge().fit(X, Y), "X_fit_", lambda a: a[:, :2], "X_fit_ has 2 where 3 are expected"),
    "codes": (mercer.KernelNeighborsClassifier().fit(X, THREE), "_targets", lambda a: a + 1, "beyond the classes"),
    "diagonal": (
        mercer.KernelNeighborsRegressor(kernel="precomputed").fit(X @ X.T, Y),
        "_own",
        lambda a: a + 1,
        "the diagonal of the kernel matrix and the kernel do not agree",
    ),
    "steps": (mercer.SVR().fit(X, Y), "n_iter_", lambda n: "many", "n_iter_ must be a whole number"),
    "shape": (mercer.SVR().fit(X, Y), "shape_fit_", lambda s: (30, 4), "shape_fit_ has 4 where 3 are expected"),
    "noise": (mercer.GaussianProcessRegressor().fit(X, Y), "noise_", lambda _: -1.0, "noise_ must be at least 0"),
    "factor": (mercer.GaussianProcessRegressor().fit(X, Y), "L_", lambda a: 0 * a, "zero on its diagonal"),
    "kernel": (mercer.KernelRidge().fit(X, Y), "kernel_", lambda _: Spectrum(2), "does not compare the rows"),
    "scales": (mercer.KernelRidge(kernel="rbf").fit(X, Y), "kernel_", lambda _: RBF([1.0, 2.0]), "length scales"),
    "unknown": (mercer.SVR().fit(X, Y), "secret_", None, "has no attribute 'secret_'"),
    "missing": (mercer.SVR().fit(X, Y), "intercept_", "gone", "SVR lacks intercept_"),
    "deviation": (StandardScaler().fit(X), "scale_", lambda a: 0 * a, "scale_ must be at least"),
    "hash": (mercer.maps.CountSketchMap().fit(X), "places_", lambda a: a + 100, "places_ must be at most 99"),
}


@pytest.mark.parametrize("name", LIES)
def test_attributes_that_do_not_fit_are_named(name, tmp_path):
    model, attribute, lie, message = LIES[name]
    check_state(model)
    honest = vars(model).get(attribute)
    try:
        if lie == "gone":
            delattr(model, attribute)
        else:
            setattr(model, attribute, 1 if lie is None else lie(honest))
        with pytest.raises(ModelFileError, match=message):
            save(model, tmp_path / "model.mercer")
    finally:
        if lie is None:
            delattr(model, attribute)
        else:
            setattr(model, attribute, honest)
    assert list(tmp_path.iterdir()) == []


def test_more_neighbours_than_rows_are_named(tmp_path):
    model = mercer.KernelNeighborsClassifier(n_neighbors=7).fit(np.arange(5.0)[:, None], [0, 1, 0, 1, 0])
    with pytest.raises(ModelFileError, match=r"n_neighbors must be at most 5, but is 7\.") as caught:
        save(model, tmp_path / "m.mercer")
    # The model at hand is no file that was tampered with.
    assert "tampered" not in str(caught.value) and not (tmp_path / "m.mercer").exists()
    save(model.set_params(n_neighbors=5), tmp_path / "m.mercer")
    texts, arrays = container.read(tmp_path / "m.mercer")
    texts["model"] = texts["model"].replace('"n_neighbors":5', '"n_neighbors":6')
    container.write(tmp_path / "m.mercer", texts, arrays)
    with pytest.raises(ModelFileError, match="n_neighbors must be at most 5, but is 6"):
        load(tmp_path / "m.mercer")


def test_updates_of_a_voted_perceptron_stay_within_its_rows():
    model = mercer.KernelPerceptron(averaging="voted", random_state=0).fit(X, THREE)
    check_state(model)
    for column, value in ((1, len(model.support_vectors_)), (1, -1), (2, 3), (3, 5)):
        updates = model._walk["updates"].copy()
        updates[-1, column] = value
        forged = mercer.KernelPerceptron(averaging="voted")
        vars(forged).update(vars(model) | {"_walk": model._walk | {"updates": updates}})
        with pytest.raises(ModelFileError, match="updates"):
            check_state(forged)


def test_rows_that_were_not_read_are_refused():
    from_file = mercer.data.strings.Strings(["ab", 3.5])
    with pytest.raises(ModelFileError, match="tokens"):
        check_state(from_file)


def test_searches_are_in_no_file():
    assert mercer.GridSearchCV.__name__ == "GridSearchCV"
    assert not {name for name in registry().estimators.classes if name.endswith("SearchCV") or "HeldOut" in name}


def test_every_class_of_estimators_states_what_a_fit_leaves():
    silent = {
        name
        for name, cls in registry().estimators.classes.items()
        if statements(cls) is None and stated_elsewhere(cls) is None
    }
    # Kernels of scikit-learn learn nothing: they are what their constructors say.
    assert {name for name in silent if not name.startswith("sklearn.")} == set()
    assert silent & {"sklearn.StandardScaler", "mercer.SVC"} == set()


def test_a_note_of_a_user_is_saved_but_no_attribute_that_code_may_look_at(tmp_path: Path):
    model = mercer.SVR().fit(X, Y)
    model.note = "mine"
    save(model, tmp_path / "model.mercer")
    assert load(tmp_path / "model.mercer").note == "mine"
    model._warm_starts = 3
    with pytest.raises(ModelFileError, match="has no attribute '_warm_starts'"):
        save(model, tmp_path / "model.mercer")


CATEGORIES = np.array([["a", "x"], ["b", "y"], ["c", "x"]] * 10, dtype=object)


@pytest.mark.parametrize("settings", [{}, {"drop": "first"}, {"min_frequency": 12, "handle_unknown": "ignore"}])
@pytest.mark.parametrize("dense", [True, False])
def test_encoders_come_back_and_encode_what_is_unknown(settings, dense, tmp_path):
    encoder = OneHotEncoder(**settings, sparse_output=not dense).fit(CATEGORIES)
    if dense:
        encoder.set_output(transform="pandas")
    save(encoder, tmp_path / "model.mercer")
    back, expected = load(tmp_path / "model.mercer").transform(CATEGORIES), encoder.transform(CATEGORIES)
    assert (np.asarray(back) == np.asarray(expected)).all() if dense else (back != expected).nnz == 0


@pytest.mark.parametrize(
    ("attribute", "lie"),
    [
        ("_n_features_outs", [3, 0]),
        ("_n_features_outs", [0, 0]),
        ("_n_features_outs", [-1000, 3]),
        ("categories_", [np.array(["a", "b", "c"]), np.array(["x", "y", "z"])]),
        ("_drop_idx_after_grouping", np.array([1, 9], dtype=object)),
    ],
)
def test_categories_without_a_column_are_refused(attribute, lie, tmp_path):
    """Scikit-learn wrote their ones beyond the end of its matrix, which ended the process."""
    drop = "first" if attribute.startswith("_drop") else None
    encoder = OneHotEncoder(drop=drop, sparse_output=False).fit(CATEGORIES)
    setattr(encoder, attribute, lie)
    with pytest.raises(ModelFileError, match="a category has no column"):
        save(encoder, tmp_path / "model.mercer")


def test_unsorted_numbers_as_categories_are_refused(tmp_path):
    encoder = OneHotEncoder(sparse_output=False).fit([[1.0], [2.0], [np.nan]])
    save(encoder, tmp_path / "model.mercer")
    encoder.categories_[0][:2] = [2.0, 1.0]
    with pytest.raises(ModelFileError, match="a category has no column"):
        save(encoder, tmp_path / "model.mercer")


@pytest.mark.parametrize(
    ("model", "parameter", "lie"),
    [
        (mercer.SVC().calibrated(cv=3).fit(X, THREE), "estimator", 0),
        (OneHotEncoder().fit(CATEGORIES), "handle_unknown", "maybe"),
        (
            make_pipeline(StandardScaler(), mercer.SVC()).fit(X, THREE),
            "steps",
            [("svc", mercer.SVC().fit(X, THREE))] * 2,
        ),
        (FeatureUnion([("a", StandardScaler())]).fit(X), "transformer_weights", 1),
        (FeatureUnion([("a", StandardScaler())]).fit(X), "transformer_list", [("a", mercer.SVC().fit(X, THREE))]),
    ],
    ids=["calibrated", "encoder", "pipeline", "weights", "union"],
)
def test_parameters_that_scikit_learn_checks_before_a_fit_only_are_checked(model, parameter, lie, tmp_path):
    save(model, tmp_path / "model.mercer")
    setattr(model, parameter, lie)
    with pytest.raises(ModelFileError):
        save(model, tmp_path / "model.mercer")
