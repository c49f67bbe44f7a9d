"""The programs of ``examples/extending``: they run, the guides show them, and what they define is known everywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import extend
from mercer._errors import IndefiniteKernelError, KernelValueError, ParameterError
from mercer.cli import main
from mercer.kernels import RBF
from mercer.losses import Loss
from mercer.testing import check_kernel

ROOT = Path(__file__).parents[1]
EXAMPLES, GUIDES = ROOT / "examples" / "extending", ROOT / "docs" / "extending"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
SAID = {
    "vector_kernel": ["length scale moved True", "same predictions True"],
    "data_kernel": ["brioche yes", "read again no"],
    "pair_kernel": ["better than a guess True", "3 of them from stored distances or values of their parts"],
    "loss": ["a third of the error True", "relative gap below 1e-6 True", "one row at a time True", "read again True"],
    "solver": [
        "same decision values True",
        "converged relative gap below 1e-4 True",
        "a tube converged True",
        "read again True",
    ],
    "estimator": ["right 0.93", "read again True", "strings [0, 1]"],
}


def _run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, text=True, capture_output=True, timeout=300, env=_environment()
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])}


# What every program stands on is imported, and compiled loops are loaded, once: each runs in a fork, which knows
# nothing of what others register.
_PREPARED = """
import contextlib, io, json, os, runpy, sys
import mercer
from mercer.cli import main
for name in mercer.__all__:
    getattr(mercer, name)
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    assert main(["fit", "sample:iris", "--kernel", "rbf", "--out", "first.mercer"]) == 0
for line in sys.stdin:
    arguments, out, err = json.loads(line)
    child = os.fork()
    if child == 0:
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        if arguments[0] == "mercer":
            sys.exit(main(arguments[1:]))
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Prepared = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run_prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """Run a program, or a command of Mercer, in ``folder``; its exit code, output and errors."""
    if not hasattr(os, "fork"):
        pytest.skip("there are no forks on this system")
    folder = tmp_path_factory.mktemp("programs")
    process = subprocess.Popen(
        [sys.executable, "-c", _PREPARED],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )

    def run(*arguments: str) -> tuple[int, str, str]:
        assert process.stdin is not None and process.stdout is not None
        out, err = folder / "out", folder / "err"
        process.stdin.write(json.dumps([arguments, str(out), str(err)]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        return code, out.read_text(), err.read_text()

    yield run
    process.communicate("", timeout=60)


def test_every_program_is_short_and_shown_in_its_guide_as_it_is() -> None:
    assert set(PROGRAMS) == set(SAID)
    for name in PROGRAMS:
        text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 60
        guide = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
        assert re.findall(r"```python\n(.*?)```", guide, re.S)[0] == text, f"{name}.md shows another text"
        assert f"({name}.md)" in (GUIDES / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_and_say_what_they_should(name: str, run_prepared: Prepared) -> None:
    code, out, err = run_prepared(str(EXAMPLES / f"{name}.py"))
    assert code == 0, err
    assert out.splitlines() == SAID[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vector_kernel", "data_kernel"])
def test_every_learner_takes_the_kernels_and_files_hold_them(name: str, tmp_path: Path) -> None:
    process = _run(str(ROOT / "tests" / "extending_worker.py"), name, folder=tmp_path)
    assert process.returncode == 0, process.stderr
    assert len(process.stdout.splitlines()) >= 22


def test_commands_know_what_a_module_registers(run_prepared: Prepared, tmp_path: Path) -> None:
    model, answers = str(tmp_path / "model.mercer"), tmp_path / "answers.csv"
    fit = ("fit", "sample:iris", "--out", model, "--json")
    code, out, err = run_prepared("mercer", "--import", "vector_kernel", *fit, "--kernel", "2*Cauchy(1.5)")
    assert code == 0 and "Cauchy(1.5)" in out, err
    predict = ("predict", model, "sample:iris", "--out", str(answers))
    code, _, err = run_prepared("mercer", *predict)
    assert code == 2 and "'vector_kernel.Cauchy'" in err and "mercer --import" in err
    code, _, err = run_prepared("mercer", "--import", "vector_kernel", *predict)
    assert code == 0 and len(answers.read_text().splitlines()) == 151, err
    code, out, err = run_prepared("mercer", "--import", "estimator", *fit, "--model", "nearest-mean")
    assert code == 0 and "NearestMean gives none" in out, err


def test_modules_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "needs.py").write_text("import no_such_package\n")
    (tmp_path / "taken.py").write_text(
        "from sklearn.base import BaseEstimator, ClassifierMixin\nfrom mercer.extend import register\n"
        "class Mine(ClassifierMixin, BaseEstimator):\n"
        "    def __init__(self, kernel=None):\n        self.kernel = kernel\n"
        "register(model='svc')(Mine)\n"
    )
    for module, words in (
        ("no_such_module", "--import no_such_module: there is none; give the name"),
        ("broken", "--import broken: ZeroDivisionError: division by zero; give"),
        ("needs", "--import needs: ModuleNotFoundError: No module named 'no_such_package'; give"),
        ("taken", "there is a model 'svc' already, in mercer.estimators.svc; give yours another name."),
    ):
        assert main(["--import", module, "fit", "sample:iris"]) == 2
        message = capsys.readouterr().err
        assert words in message and "Traceback" not in message, message


@dataclass(frozen=True, repr=False)
class Wave(extend.VectorKernel):
    """``cos(<x, z> / period)``: another number than the length scale, and no distance."""

    period: float = extend.parameter(2.0)

    statistic = "inner_product"
    definiteness = "indefinite"

    def value(self, t: Any) -> Any:
        return np.cos(t / self.period)

    def derivative(self, t: Any) -> Any:
        return -np.sin(t / self.period) / self.period

    def slopes(self, t: Any) -> Any:
        return {"period": np.sin(t / self.period) * t / self.period**2}


@dataclass(frozen=True, repr=False)
class Tent(extend.VectorKernel):
    """``exp(-t)`` of the Manhattan distance, which there is as Laplacian."""

    length_scale: float = extend.parameter(1.0, per_column=True)
    statistic = "manhattan_distance"

    def value(self, t: Any) -> Any:
        return np.exp(-t)

    def derivative(self, t: Any) -> Any:
        return -np.exp(-t)


@dataclass(frozen=True, repr=False)
class Agreements(extend.PairKernel):
    """Places at which two texts agree, each worth ``weight``."""

    weight: float = extend.parameter(1.0)
    rows_of = extend.Strings

    def compare(self, x: str, z: str) -> float:
        return self.weight * sum(a == b for a, b in zip(x, z))

    def slopes(self, x: str, z: str) -> list[float]:
        return [self.compare(x, z) / self.weight]


@dataclass(frozen=True, repr=False)
class Later(extend.PairKernel):
    """Not symmetric."""

    rows_of = extend.Strings

    def compare(self, x: str, z: str) -> float:
        return float(len(x)) if x <= z else float(len(z) + 1)


def test_kernels_of_every_kind_keep_the_promises(rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 2))
    check_kernel(Wave(1.5), X)
    for kernel in (Tent(0.7), Tent([0.5, 2.0]), 2.0 * Tent(0.7) + RBF(1.0)):
        check_kernel(kernel, X)
    np.testing.assert_allclose(Tent(0.7)(X), mercer.kernels.Laplacian(0.7)(X), rtol=1e-12)
    check_kernel(Agreements(0.5), extend.Strings.of(["abc", "abd", "xbc", "xyz", "abc"]))


def test_neighbours_are_ranked_by_the_distance_where_the_kernel_says_how() -> None:
    class Said(Tent):
        def squared_distance(self) -> Any:
            return lambda t: -2 * np.expm1(-t)

    rows = np.array([[0.0], [1e-17], [3e-17]])
    model = mercer.KernelNeighborsRegressor(1, kernel=dataclass(frozen=True, repr=False)(Said)(1.0))
    assert model.fit(rows, [0.0, 1.0, 2.0]).predict([[2.6e-17]]).tolist() == [2.0]


def test_what_methods_return_is_checked() -> None:
    @dataclass(frozen=True, repr=False)
    class Bad(Wave):
        def value(self, t: Any) -> Any:
            return 1.0

    @dataclass(frozen=True, repr=False)
    class Text(Agreements):
        def compare(self, x: str, z: str) -> Any:
            return "much"

    with pytest.raises(KernelValueError, match=r"Bad\.value must return a number for each of the \(2, 2\) entries"):
        Bad()(np.eye(2))
    with pytest.raises(KernelValueError, match=r"Text\.compare must return a number, but returned str"):
        Text()(["a", "b"])


def test_features_are_the_same_by_whatever_they_are_named_and_nothing_else_names_them() -> None:
    @dataclass(frozen=True, repr=False)
    class Numbers(extend.FeatureKernel):
        form: Any = None
        rows_of = extend.Strings

        def features(self, row: str) -> Any:
            return self.form(row)

    mixed = Numbers(lambda row: {(1 if row == "a" else np.float64(1.0), "x"): 2, None: 1, b"y": 1, 0.5: 1})
    assert mixed(["a", "b"]).tolist() == [[7.0, 7.0], [7.0, 7.0]]
    for form, words in (
        (lambda row: {object(): 1}, "row 0: a feature is named by object"),
        (lambda row: {frozenset(): 1}, "named by frozenset"),
        (lambda row: {"a": np.nan}, "a count is nan"),
        (lambda row: {"a": "many"}, "could not convert string"),
        (lambda row: ["a"], "has no attribute 'items'"),
    ):
        with pytest.raises(KernelValueError, match=words):
            Numbers(form)(["a"])


def test_slopes_of_comparisons_are_asked_for_where_numbers_are_free_and_checked() -> None:
    @dataclass(frozen=True, repr=False)
    class Without(extend.PairKernel):
        weight: float = extend.parameter(1.0)
        rows_of = extend.Strings

        def compare(self, x: str, z: str) -> float:
            return self.weight * (x == z)

    @dataclass(frozen=True, repr=False)
    class TooMany(Without):
        def slopes(self, x: str, z: str) -> list[float]:
            return [1.0, 2.0]

    words, weights = ["a", "b"], np.ones((2, 2))
    with pytest.raises(KernelValueError, match="has tunable numbers but no slopes"):
        Without().pullback(words, None, weights)
    assert (2.0 * Without().fixed()).pullback(words, None, weights).tolist() == [4.0]
    with pytest.raises(KernelValueError, match="for each of the 1 tunable numbers, but returned 2"):
        TooMany().pullback(words, None, weights)


def test_what_a_kernel_says_of_itself_is_tried() -> None:
    @dataclass(frozen=True, repr=False)
    class Wrong(Wave):
        definiteness = "positive"

        def value(self, t: Any) -> Any:
            return -t

        def derivative(self, t: Any) -> Any:
            return -np.ones_like(t)

    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.arange(30) % 2
    with pytest.warns(Warning, match="indefinite"):
        mercer.SVC(kernel=Wrong()).fit(X, y)
    with pytest.raises(IndefiniteKernelError, match="c'Kc = -"):
        mercer.SVC(kernel=Wrong(), allow_indefinite=False).fit(X, y)


def test_a_comparison_that_is_not_symmetric_fails_the_check() -> None:
    with pytest.raises(AssertionError, match="Later"):
        check_kernel(Later(), extend.Strings.of(["b", "aa", "ccc", "dddd"]))


def test_what_cannot_be_registered() -> None:
    class Plain(Wave):
        pass

    class Abstract(extend.VectorKernel):
        pass

    @dataclass(frozen=True)
    class Nameless(Loss):
        def value(self, y: Any, f: Any) -> Any:
            return np.abs(y - f)

        gradient = curvature = value

    duplicate = dataclass(frozen=True, repr=False)(type("RBF", (Wave,), {}))
    for cls, words in (
        (int, "takes a kernel, a loss, a penalty, a solver, a kind of data or an estimator, but got <class 'int'>"),
        ("Wave", "but got 'Wave'"),
        (Plain, "Plain must be a frozen dataclass"),
        (Abstract, "Abstract cannot be registered: it does not define derivative, value"),
        (Nameless, "Nameless needs an attribute name"),
        (duplicate, "there is a kernel 'RBF' already, in mercer.kernels"),
    ):
        with pytest.raises(ParameterError, match=words):
            extend.register(cls)
    with pytest.raises(ParameterError, match="model= names an estimator, but Wave is not one"):
        extend.register(model="wave")(Wave)
    for name in ("", " wave", 3):
        with pytest.raises(ParameterError, match="model must be the name that mercer fit --model gives, but is"):
            extend.register(model=name)(Wave)
    with pytest.raises(mercer.MercerError, match="there is no kernel 'Wave'"):
        mercer.kernels.parse_kernel("Wave(2.0)")
