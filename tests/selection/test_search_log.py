"""The log of a search: what is in the file is not evaluated again, and the file is that of one search alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, KernelRidge
from mercer._errors import DataError, ParameterError
from mercer.data.strings import Strings
from mercer.engine.locks import lock
from mercer.kernels import RBF, Spectrum
from mercer.selection.evaluated import Evaluator
from mercer.selection.kernel_search import KernelSearchCV
from mercer.selection.search_log import SearchLog, digest

X = np.random.default_rng(0).normal(size=(24, 2))
Y = X[:, 0] + 0.1 * X[:, 1] ** 2


def search(path, X=X, estimator=None, **options):
    learner = KernelRidge(kernel="rbf") if estimator is None else estimator
    return KernelSearchCV(learner, cv=2, random_state=0, log=path, **options).fit(X, Y)


@pytest.fixture
def evaluated(monkeypatch):
    """The numbers of candidates that were evaluated and not read."""
    counts = []
    evaluate = Evaluator.evaluate

    def counted(self, parameters, *more):
        counts.append(len(parameters))
        return evaluate(self, parameters, *more)

    monkeypatch.setattr(Evaluator, "evaluate", counted)
    return counts


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished search, and what its log holds."""
    path = tmp_path_factory.mktemp("search") / "tune.jsonl"
    return search(path), path.read_bytes()


@pytest.fixture
def log(done, tmp_path):
    path = tmp_path / "tune.jsonl"
    path.write_bytes(done[1])
    return path


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_and_ends_as_it_would_have(done, log, tmp_path, evaluated):
    whole, lines = done[0], log.read_bytes().splitlines(keepends=True)
    every = len(lines) - 1
    assert len(lines) == 1 + len(whole.cv_results_["params"]) and json.loads(lines[0])["version"] == 1
    # At the end, between two lines, inside of one, inside of the first, and before it.
    for kept in (lines, lines[:9], [*lines[:9], lines[9][:20]], [lines[0][:30]], []):
        (tmp_path / "some.jsonl").write_bytes(b"".join(kept))
        evaluated.clear()
        again = search(tmp_path / "some.jsonl")
        assert again.best_params_ == whole.best_params_ and again.best_score_ == whole.best_score_
        np.testing.assert_array_equal(again.cv_results_["split0_test_score"], whole.cv_results_["split0_test_score"])
        assert sum(evaluated) == (0 if kept == lines else pytest.approx(every - max(len(kept) - 2, 0), abs=12))
        names = [json.loads(line)["parameters"] for line in (tmp_path / "some.jsonl").read_text().splitlines()[1:]]
        assert names == [json.loads(line)["parameters"] for line in lines[1:]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"X": X + 1}, "rows differ"),
        ({"estimator": KernelRidge(kernel="laplacian")}, "kernel was 'rbf' and is 'laplacian'"),
        ({"estimator": make_pipeline(StandardScaler(), KernelRidge())}, "estimator was KernelRidge and is Pipeline"),
        ({"scoring": "r2"}, "scoring was None and is 'r2'"),
        ({"kernels": [RBF(2.0)]}, r"kernels was None and is \[RBF\(2.0\)\]"),
    ],
)
def test_the_log_of_another_search_is_left_alone(log, options, words):
    before = log.read_bytes()
    with pytest.raises(ParameterError, match=f"another search: {words}.*Name another file"):
        search(log, **options)
    assert log.read_bytes() == before


def test_another_budget_goes_on(log, evaluated):
    search(log, time_budget=5)
    assert not evaluated


@pytest.mark.parametrize("content", [b"x,y\n1,2\n", b"{}\n", b"no end of line", b'{"format": "other"}\n'])
def test_other_files_are_left_as_they_are(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not the log of a search"):
        search(path)
    assert path.read_bytes() == content


def test_a_damaged_line_is_named(log):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], b'{"tol": 1}\n', *lines[3:]]))
    with pytest.raises(DataError, match=r"line 4 of the log .* is damaged"):
        search(log)
    later = json.loads(lines[0]) | {"version": 99}
    log.write_bytes(json.dumps(later).encode() + b"\n")
    with pytest.raises(DataError, match=r"version 99 of its format.*upgrade"):
        search(log)
    # Without a look at it, the zeros of a device would be read until memory is full.
    for path in (log.parent, Path(os.devnull)):
        with pytest.raises(DataError, match="is not a file, but a folder, a pipe or a device"):
            search(path)
    with pytest.raises(DataError, match="cannot be read and written"):
        search(log.parent / "missing" / "log")


def test_digests_tell_rows_of_every_kind_apart():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})
    kinds = [X, X[:, ::-1], X.astype(np.float32), X[:9], Strings.of(["ab", "c"]), Strings.of(["a", "bc"]), frame]
    kinds += [frame.rename(columns={"a": "c"}), ["ab", "c"], ["a", "bc"], None]
    assert len({digest(kind) for kind in kinds}) == len(kinds)
    assert digest(frame) == digest(frame.copy()) and digest(np.asfortranarray(X)) == digest(X)


def test_a_classifier_with_kernels_of_text(tmp_path):
    texts = Strings.of(["ab" * (1 + i % 4) if i % 2 else "ba" * (2 + i % 3) + "c" for i in range(24)])
    y = np.arange(24) % 2
    options = {"kernels": [Spectrum(1), Spectrum(2)], "cv": 2, "log": tmp_path / "t.jsonl"}
    first, second = (KernelSearchCV(SVC(kernel=Spectrum(1)), **options).fit(texts, y) for _ in range(2))
    assert first.best_params_ == second.best_params_


@pytest.mark.parametrize(
    "change",
    [
        {"scores": ["x"]},
        {"scores": [[1.0]]},
        {"scores": 1.0},
        {"lower": [0.5]},
        {"why": None},
        {"error": 3},
        {"scores": [5.0] * 3},
    ],
    ids=str,
)
def test_a_line_with_other_values_is_damaged(log, change):
    lines = log.read_bytes().splitlines(keepends=True)
    lines[2] = json.dumps(json.loads(lines[2]) | change).encode() + b"\n"
    log.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=r"line 3 of the log .* is damaged"):
        search(log)


def test_a_log_is_used_by_one_search_at_a_time(log, tmp_path):
    before = log.read_bytes()
    program = (
        "import sys, time; from mercer.engine.locks import lock; file = open(sys.argv[1], 'ab'); "
        "print(lock(file), flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", program, str(log)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "True\n"
        with pytest.raises(DataError, match="is in use by another search; wait until that ends, or name another file"):
            search(log)
        assert log.read_bytes() == before
    finally:
        # The lock ends with the process that has it, as after kill -9.
        other.kill()
        other.communicate()
    search(log)


def test_a_search_that_ends_releases_its_log(log, monkeypatch):
    def in_use():
        with log.open("ab") as file:
            return not lock(file)

    seen = []
    find = SearchLog.find
    monkeypatch.setattr(SearchLog, "find", lambda *arguments: seen.append(in_use()) or find(*arguments))
    search(log)
    assert seen and all(seen) and not in_use()
    # So does one that cannot begin.
    with pytest.raises(ParameterError, match="is that of another search"):
        search(log, X=X + 1)
    assert not in_use()
