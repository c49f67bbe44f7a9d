"""What holds for every feature map: scikit-learn's contract, model files, copies, bad input."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mercer import load, maps, save
from mercer._errors import DataError
from mercer.kernels import ArcCosine, Kernel, Laplacian, Linear, Matern, Polynomial
from mercer.maps import (
    AllSubsetsMap,
    CountSketchMap,
    ExplicitMap,
    GaussianSeriesMap,
    NystroemMap,
    PolynomialMap,
    RandomFourierMap,
)

X = np.random.default_rng(0).normal(size=(40, 3))
CASES = [
    PolynomialMap(),
    PolynomialMap(3, 0.5, 0.0),
    AllSubsetsMap(),
    GaussianSeriesMap(),
    GaussianSeriesMap((1.0, 2.0, 3.0), 2),
    RandomFourierMap(random_state=0),
    RandomFourierMap(Matern(2.0), 50, orthogonal=True, random_state=0),
    RandomFourierMap(Laplacian(), 21, random_state=0),
    RandomFourierMap(ArcCosine(1), 31, random_state=0),
    ExplicitMap(),
    ExplicitMap(2.0 * Linear() + Polynomial(2) + 0.5),
    ExplicitMap((Linear() ** 2).normalized()),
    CountSketchMap(random_state=0),
    CountSketchMap(3, 0.5, 0.0, 30, random_state=0),
    *(NystroemMap(method=m, random_state=0) for m in ("uniform", "kmeans", "leverage", "rpcholesky")),
]
every_map = pytest.mark.parametrize("phi", CASES, ids=repr)


def same(a: Any, b: Any) -> bool:
    return (a.toarray() if sp.issparse(a) else a).tolist() == (b.toarray() if sp.issparse(b) else b).tolist()


def test_the_list_is_complete() -> None:
    assert set(maps.__all__) == {type(phi).__name__ for phi in CASES}


# The first of each class: others have parameters for rows of other numbers of columns, and the same methods.
@pytest.mark.parametrize("phi", {type(phi): phi for phi in reversed(CASES)}.values(), ids=repr)
def test_scikit_learns_own_checks(phi: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(clone(phi), on_skip=None, on_fail=None)
    others = {r["check_name"]: str(r["exception"]) for r in results if r["status"] != "passed"}
    # The one check that scikit-learn itself leaves out unless SciPy is told to take arrays of other libraries.
    others.pop("check_array_api_input", None)
    assert len(results) > 40 and others == {}


@every_map
def test_the_kernel(phi: Any) -> None:
    fitted = clone(phi).fit(X)
    assert isinstance(fitted.kernel_, Kernel) and fitted.kernel_.definiteness == "positive"
    assert fitted.kernel == phi.kernel
    if isinstance(fitted.kernel, Kernel):
        assert fitted.kernel == fitted.kernel_


@every_map
def test_model_files_and_copies(phi: Any, tmp_path: Any) -> None:
    fitted = make_pipeline(StandardScaler(), clone(phi)).fit(X)
    save(fitted, tmp_path / "map.mercer")
    for back in (load(tmp_path / "map.mercer"), pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert same(back.transform(X), fitted.transform(X))
        assert back[-1].kernel == fitted[-1].kernel
        assert back[-1].get_feature_names_out().tolist() == fitted[-1].get_feature_names_out().tolist()


@every_map
def test_tables_in_and_out(phi: Any) -> None:
    table = pd.DataFrame(X, columns=["age", "size", "mass"])
    fitted = clone(phi).fit(table).set_output(transform="pandas")
    out = fitted.transform(table)
    assert list(out.columns) == fitted.get_feature_names_out().tolist()
    assert len(set(out.columns)) == fitted.n_output_features_
    assert same(out.to_numpy(), clone(phi).fit(X).transform(X))
    with pytest.raises(DataError, match=r"(?s)names should match.*feature_names_in_"):
        fitted.transform(table.rename(columns={"mass": "weight"}))


@every_map
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.where(X > 1, np.nan, X), "Input X contains NaN"),
        (np.where(X > 1, np.inf, X), r"Input X contains infinity.*Drop those rows or replace"),
        (sp.csr_matrix(np.where(X > 1, np.nan, X)), "Input X contains NaN"),
        (np.empty((0, 3)), r"0 sample\(s\).*needs rows and columns"),
        (np.empty((40, 0)), r"0 feature\(s\).*needs rows and columns"),
        (X[:, 0], r"Expected 2D array.*reshape"),
        (X + 1j, "Complex data not supported"),
    ],
)
def test_rows_that_cannot_be_used(phi: Any, rows: Any, words: str) -> None:
    with pytest.raises(DataError, match=f"(?s){words}"):
        clone(phi).fit(rows)


@every_map
def test_other_columns_at_transform(phi: Any) -> None:
    with pytest.raises(DataError, match=r"X has 2 features.*expecting 3"):
        clone(phi).fit(X).transform(X[:, :2])


@every_map
@pytest.mark.parametrize("rows", [X[:1], np.zeros((4, 3)), np.repeat(X[:2], 3, axis=0)])
def test_few_constant_and_repeated_rows(phi: Any, rows: np.ndarray) -> None:
    features = clone(phi).fit(rows).transform(rows)
    assert len(features) == len(rows) and np.isfinite(features).all()
    same_row = (rows == rows[0]).all(axis=1)
    np.testing.assert_allclose(features[same_row], features[[0] * same_row.sum()], rtol=1e-12, atol=1e-14)
