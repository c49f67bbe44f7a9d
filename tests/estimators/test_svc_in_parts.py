"""SVC over landmarks on blocks and collections of Dask: a problem for each pair of classes, as for arrays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, Blocks, load, save
from mercer._errors import DataError, ParameterError
from mercer.estimators.shared import on_blocks
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
CODES = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=300), [0.0, 1.5])
TWO = np.where(CODES > 0, "yes", "no")
THREE = np.array(["low", "middle", "top"])[CODES]
WEIGHTS = RNG.integers(0, 3, 300).astype(float)


def model(**options: Any) -> SVC:
    defaults = {"kernel": RBF(1.0), "approximation": "nystroem", "landmarks": X[:10], "random_state": 0, "tol": 1e-3}
    return SVC(**{**defaults, **options})


def close(parts: SVC, whole: SVC) -> None:
    """The same answer, as far as the tolerance goes."""
    assert parts.certificate_.status.name == "converged" and parts.classes_.tolist() == whole.classes_.tolist()
    np.testing.assert_allclose(parts.class_weight_, whole.class_weight_)
    for one, other in zip(parts.certificates_, whole.certificates_, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2e-3)
    options = parts.get_params()
    for fitted in (parts, whole):
        fitted.set_params(decision_function_shape="ovo")
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=0.05)
    for fitted in (parts, whole):
        fitted.set_params(decision_function_shape=options["decision_function_shape"])
    assert np.mean(parts.predict(X) == whole.predict(X)) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "options"),
    [
        (TWO, {}),
        (TWO, {"class_weight": "balanced", "C": 3.0}),
        (TWO, {"fit_intercept": False}),
        (THREE, {"class_weight": "balanced", "fit_intercept": False}),
        (CODES, {"decision_function_shape": "ovo", "C": 3.0}),
    ],
    ids=["two", "two, balanced", "two, no offset", "three, balanced", "numbers"],
)
def test_blocks_have_the_answer_of_arrays(y: np.ndarray, options: dict[str, Any]) -> None:
    whole = model(**options).fit(X, y, WEIGHTS)
    parts = model(**options).fit(Blocks(X, y, sample_weight=WEIGHTS, rows_per_block=110))
    close(parts, whole)
    assert parts.landmark_indices_ is None and parts.shape_fit_ == (300, 2) and parts.fit_status_ == 0
    blocks = Blocks(X, y, rows_per_block=111)
    np.testing.assert_array_equal(parts.predict(blocks), parts.predict(X))
    np.testing.assert_allclose(parts.decision_function(blocks), parts.decision_function(X), atol=1e-12)
    assert parts.score(blocks) == pytest.approx(parts.score(X, y))


def test_each_pair_has_its_own_rows_and_its_own_costs(tmp_path: Any) -> None:
    model_ = model(class_weight={"low": 2.0, "top": 0.5})
    parts = model_.fit(Blocks(X, THREE, rows_per_block=110))
    for number, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.isin(CODES, [i, j])
        alone = model(class_weight={0: [2.0, 1.0, 0.5][i], 1: [2.0, 1.0, 0.5][j]})
        alone.fit(X[rows], (CODES[rows] == j).astype(int))
        assert parts.certificates_[number].primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
    save(parts, tmp_path / "m.mercer")
    np.testing.assert_array_equal(load(tmp_path / "m.mercer").decision_function(X), parts.decision_function(X))


@pytest.mark.slow
def test_how_the_rows_are_cut_changes_no_bits() -> None:
    def pieces(sizes: Iterator[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        start = 0
        for size in sizes:
            yield X[start : start + size], THREE[start : start + size]
            start += size
            if start >= len(X):
                return

    expected = model().fit(Blocks(X, THREE, rows_per_block=160))
    found = model().fit(Blocks.from_function(lambda: pieces(iter([0, 250, 0, 7, 50])), rows_per_block=160))
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    close(model().fit(Blocks(sp.csr_matrix(X), THREE)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("y", [CODES > 0, CODES], ids=["two", "three"])
def test_partitions_have_the_answer_of_arrays(y: np.ndarray) -> None:
    da = pytest.importorskip("dask.array")
    rows, labels, weights = (da.from_array(side, chunks=(110, 2)[: side.ndim]) for side in (X, y, WEIGHTS))
    rows, labels, weights = (
        da.concatenate([side[:110], da.zeros((0, *side.shape[1:]), dtype=side.dtype), side[110:]])
        for side in (rows, labels, weights)
    )
    parts = model().fit(rows, labels, weights)
    close(parts, model().fit(X, y, WEIGHTS))
    assert parts.predict(rows).compute().tolist() == parts.predict(X).tolist()
    np.testing.assert_allclose(parts.decision_function(rows).compute(), parts.decision_function(X), atol=1e-12)
    assert parts.score(rows, labels) == pytest.approx(parts.score(X, y))
    with pytest.raises(DataError, match="a partition of sample_weight has negative"):
        model().fit(rows, labels, weights - 1.0)


def test_data_frames_of_dask() -> None:
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    parts = model().fit(dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(CODES), npartitions=3))
    assert parts.feature_names_in_.tolist() == ["a", "b"]
    close(parts, model().fit(frame, CODES))


@pytest.mark.slow
def test_classes_that_the_sample_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_blocks, "_ROWS_FOR_LANDMARKS", 0)
    drawn = Blocks(np.arange(300.0)[:, None]).sample(on_blocks.rows_to_draw(300, 3), random_state=0).X.ravel()
    others = np.setdiff1d(np.arange(300), drawn)
    labels = np.minimum(CODES, 1)
    labels[others[:2]], labels[others[-2:]] = 7, 8
    parts = model(landmarks=X[:3]).fit(Blocks(X, labels, rows_per_block=110))
    close(parts, model(landmarks=X[:3]).fit(X, labels))


def test_a_label_without_weight_is_no_class() -> None:
    labels = np.where(WEIGHTS == 0, "none", TWO)
    parts = model().fit(Blocks(X, labels, sample_weight=WEIGHTS, rows_per_block=110))
    close(parts, model().fit(X, labels, WEIGHTS))
    assert parts.classes_.tolist() == ["no", "yes"]


def test_rows_that_change_between_passes() -> None:
    calls = count()

    def changing() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        # The first two calls are for the layout and the sample.
        yield X + (1e-9 if next(calls) > 5 else 0.0), TWO

    with pytest.raises(DataError, match="same rows"):
        model().fit(Blocks.from_function(changing))


def test_a_fit_that_is_not_converged_says_so() -> None:
    with pytest.warns(UserWarning):
        stopped = model(max_iter=3).fit(Blocks(X, THREE, rows_per_block=110))
    assert stopped.fit_status_ == 1 and (stopped.n_iter_ < 50).all()


def test_what_cannot_be_done_is_said() -> None:
    blocks = Blocks(X, TWO)
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        SVC().fit(blocks)
    with pytest.raises(ParameterError, match="C='cv'"):
        model(C="cv").fit(blocks)
    with pytest.raises(ParameterError, match="C=inf"):
        model(C=np.inf).fit(blocks)
    with pytest.raises(ParameterError, match="probability"):
        model(probability=True).fit(blocks)
    with pytest.raises(DataError, match="no labels of classes"):
        model().fit(Blocks(X, X[:, 0]))
    with pytest.raises(DataError, match="class"):
        model().fit(Blocks(X, np.full(300, "yes")))
    with pytest.raises(DataError, match="leave out y"):
        model().fit(blocks, TWO)
