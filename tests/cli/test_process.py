"""The command as a process of its own: start-up, exit codes, Ctrl-C."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from mercer.cli import main
from mercer.cli.outcome import ending
from mercer.persistence.lead import PREFIX

COMMAND = [sys.executable, "-m", "mercer"]
_HEAVY = ("numpy", "scipy", "sklearn", "pandas", "numba", "matplotlib")


def _run(*arguments, cwd):
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_help_loads_no_numerical_package():
    code = (
        "import sys; from mercer.cli import main; assert main(['--help']) == 0; assert main(['fit', '--help']) == 0; "
        f"sys.stderr.write(','.join(m for m in {_HEAVY!r} if m in sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    for words in ("fit", "predict", "evaluate", "explain", "inspect", "samples", "--kernel", "--impute"):
        assert words in process.stdout


@pytest.mark.parametrize(
    "command", ["fit", "tune", "predict", "evaluate", "explain", "inspect", "plot", "report", "samples"]
)
def test_every_command_shows_examples(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "120")
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"mercer {command}" in text.partition("Examples:")[2]


def _loaded(calls, cwd):
    """Of each call: the exit code, and which heavy packages were imported by then, all in one process."""
    code = (
        "import json, sys; from mercer.cli import main; ends = []\n"
        f"for arguments in {calls!r}:\n"
        f"    ends.append((main(arguments), [m for m in {_HEAVY!r} if m in sys.modules]))\n"
        "sys.stderr.write('|' + json.dumps(ends))"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stderr
    return [tuple(end) for end in json.loads(process.stderr.rpartition("|")[2])]


LISTS = [[], ["--version"], ["samples"], ["samples", "--json"]]
MISTAKES = [
    ["fitt"],
    ["fit"],
    ["fit", "missing.csv"],
    ["fit", "sample:irs"],
    ["fit", "sample:iris", "--model", "svm"],
    ["fit", "sample:iris", "--set", "C"],
    ["fit", "sample:iris", "--set", "kernel=rbf"],
    ["fit", "sample:iris", "--task", "ranking"],
    ["fit", "sample:iris", "--normalize", "max"],
    ["fit", "sample:iris", "--impute", "zero"],
    ["fit", "sample:iris", "--test-size", "1"],
    ["fit", "sample:iris", "--memory", "much"],
    ["fit", "sample:iris", "--n-jobs", "0"],
    ["fit", "sample:iris", "--out", "no/m.mercer"],
    ["fit", "sample:iris", "--drop", "species", "-t", "species"],
    ["predict", "missing.mercer", "sample:iris"],
    ["evaluate", "other.txt", "sample:iris"],
]


def test_mistakes_and_lists_load_no_numerical_package(tmp_path):
    (tmp_path / "other.txt").write_text("this is a letter and not a model")
    expected = [(0, [])] * len(LISTS) + [(2, [])] * len(MISTAKES)
    calls = [*LISTS, *MISTAKES]
    leads = [["inspect", "missing.mercer"], ["inspect", "other.txt"]]
    ends = _loaded([*calls, *leads], tmp_path)
    for call, end, what in zip(calls, ends, expected, strict=False):
        assert end == what, call
    # The lead of a model file is read without NumPy or with it alone.
    assert len(ends[len(calls) :]) == 2
    for code, loaded in ends[len(calls) :]:
        assert code == 2 and loaded in ([], ["numpy"])


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """A folder with a model, ``iris.mercer``."""
    folder = tmp_path_factory.mktemp("iris")
    assert main(["fit", "sample:iris", "-q", "--set", "C=1", "--out", str(folder / "iris.mercer")]) == 0
    return folder


def test_a_model_is_inspected_without_the_classes_that_it_needs(iris):
    calls = [["inspect", "iris.mercer"], ["inspect", "iris.mercer", "--json"]]
    assert _loaded(calls, iris) == [(0, ["numpy"])] * 2


def test_no_command_shows_the_help(tmp_path):
    process = _run(cwd=tmp_path)
    assert process.returncode == 0 and "Usage: mercer" in process.stdout


def test_version(tmp_path):
    process = _run("--version", cwd=tmp_path)
    assert process.returncode == 0 and process.stdout.startswith("mercer ")


def test_a_program_gets_unicode_whatever_the_encoding_of_the_place(tmp_path):
    assert main(["fit", "sample:sinc", "--model", "ridge", "-q", "-o", str(tmp_path / "sinc.mercer")]) == 0
    process = subprocess.run(
        [*COMMAND, "inspect", "sinc.mercer"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    said = "Reading the model sinc.mercer ...\n"
    assert (process.returncode, process.stderr) == (0, said) and "R²" in process.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_without_unicode_is_no_error(tmp_path):
    assert main(["fit", "sample:sinc", "--model", "ridge", "-q", "-o", str(tmp_path / "sinc.mercer")]) == 0
    pty = importlib.import_module("pty")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = subprocess.Popen([*COMMAND, "inspect", "sinc.mercer"], cwd=tmp_path, env=environment, stdout=theirs)
    os.close(theirs)
    shown = b""
    # At the end of the other process, Linux answers with an error instead of an empty text.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert process.wait(60) == 0 and b"R?" in shown


def test_a_mistake(tmp_path):
    process = _run("fit", "sample:iris", "--out", "no/m.mercer", cwd=tmp_path)
    assert (process.returncode, process.stdout) == (2, "") and process.stderr.startswith(
        "mercer: cannot write no/m.mercer"
    )


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(iris):
    # It has left long before the first line comes.
    command = f"{sys.executable} -m mercer predict iris.mercer sample:iris | true; exit ${{PIPESTATUS[0]}}"
    process = subprocess.run(["bash", "-c", command], cwd=iris, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0 and "Error" not in process.stderr


_CLOSED = [
    ["inspect", "iris.mercer"],
    ["inspect", "iris.mercer", "--json"],
    ["predict", "iris.mercer", "sample:iris"],
    ["predict", "iris.mercer", "sample:iris", "--json"],
    ["evaluate", "iris.mercer", "sample:iris"],
    ["explain", "iris.mercer", "sample:iris", "--row", "1"],
    ["samples"],
]


@pytest.mark.parametrize(("closed", "calls"), [(">&-", _CLOSED), (">&- 2>&-", _CLOSED)])
def test_a_result_is_not_lost_in_a_closed_output(iris, closed, calls):
    """One process for several commands: what is closed is closed for each."""
    code = f"import sys; from mercer.cli import main; sys.exit(min([main(call) for call in {calls!r}]))"
    line = f"{sys.executable} -c {shlex.quote(code)} {closed}"
    process = subprocess.run(["bash", "-c", line], cwd=iris, capture_output=True, text=True, timeout=60)
    assert process.returncode == 2
    assert process.stderr.count("mercer: standard output is closed") == (0 if "2>&-" in closed else len(calls))


@pytest.mark.slow
def test_a_closed_output_is_no_error_where_a_file_is_written(iris):
    code = "import sys; from mercer.cli import main; sys.exit(main(sys.argv[1:]))"
    line = f"{sys.executable} -c {shlex.quote(code)} predict iris.mercer sample:iris --out closed.csv >&-"
    process = subprocess.run(["bash", "-c", line], cwd=iris, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0 and len((iris / "closed.csv").read_text().splitlines()) == 151


def test_labels_are_utf8_for_other_programs(iris):
    # 'é' is not in ASCII, the encoding that this process is to use.
    code = "import sys; from mercer.cli.outcome import ending; sys.exit(ending(lambda: print('é,中')))"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run([sys.executable, "-c", code], cwd=iris, capture_output=True, env=environment, timeout=60)
    assert (process.returncode, process.stdout.decode("utf-8").strip()) == (0, "é,中")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "iris.mercer"],
        ["inspect", "iris.mercer", "--json"],
        pytest.param(["predict", "iris.mercer", "sample:iris"], marks=pytest.mark.slow),
        pytest.param(["predict", "iris.mercer", "sample:iris", "--json"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_full_output_is_told_in_one_sentence(iris, arguments):
    command = [*COMMAND, *arguments]
    with open("/dev/full", "w") as full:
        process = subprocess.run(command, cwd=iris, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    last = process.stderr.splitlines()[-1]
    assert process.returncode == 2 and last.startswith("mercer: No space left on device"), process.stderr
    assert "Traceback" not in process.stderr and "Exception" not in process.stderr


@pytest.mark.parametrize("name", ["my model.mercer", "a\"b'c.mercer", "-lead.mercer", "a$b;c.mercer"])
def test_the_next_command_can_be_pasted(capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "sample:iris", "--set", "C=1", "-o", name]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: mercer ")]
    arguments = shlex.split(line.removeprefix("Next: mercer ").replace("NEW_DATA", "sample:iris"))
    assert main(arguments) == 0


def test_the_first_line_comes_before_anything_heavy_is_loaded(tmp_path):
    (tmp_path / "m.mercer").write_bytes(bytes(8) + PREFIX)
    both = "Reading the model m.mercer and the rows of sample:iris ..."
    words = {
        ("fit", "sample:iris"): "Reading sample:iris ...",
        ("predict", "m.mercer", "sample:iris"): both,
        ("evaluate", "m.mercer", "sample:iris"): both,
        ("inspect", "m.mercer"): "Reading the model m.mercer ...",
    }
    calls = [[*call, *silence] for call in words for silence in ([], ["--json"])]
    code = (
        "import sys; from mercer.cli import app, main\n"
        f"def work(module): print([m for m in {_HEAVY!r} if m in sys.modules]); sys.exit(0)\n"
        f"app._work = work\nfor call in {calls!r}:\n"
        "    sys.stderr.write('> ')\n    try: main(call)\n    except SystemExit: sys.stderr.write('<')"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert process.stdout == "[]\n" * len(calls)
    # With --json, nothing is said.
    assert process.stderr == "".join(f"> {line}\n<> <" for line in words.values())


def test_from_data_to_predictions_with_what_is_used_alone_and_out_of_collections(tmp_path, monkeypatch, capsys):
    others = ("sklearn.cluster", "sklearn.gaussian_process", "mercer.solvers.gaussian", "mercer.estimators.kernel_pca")
    code = (
        "import gc, sys; from mercer.cli import main\n"
        "code = main(['fit', 'sample:iris', '--model', 'svc', '--set', 'C=1', '--json'])\n"
        f"loaded = [m for m in {others!r} if m in sys.modules]\n"
        "print(loaded, gc.isenabled(), gc.get_freeze_count() > 100_000, file=sys.stderr); sys.exit(code)"
    )
    fitted = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    # On a machine where no loop is compiled yet, a line says so.
    said = [line for line in fitted.stderr.splitlines() if "compiling loops" not in line]
    assert (fitted.returncode, said, len(fitted.stdout.splitlines())) == (0, ["[] True True"], 1), fitted.stderr
    assert json.loads(fitted.stdout)["scores"]["SVC"]["accuracy"] > 0.9
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "iris.mercer", "sample:iris"]) == 0
    predicted = capsys.readouterr()
    assert predicted.out.startswith("species\nsetosa\n")
    assert predicted.err.splitlines()[-1] == "Predicting species of 150 rows by SVC ..."


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_ends_with_130_and_leaves_no_file(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12_000, 30)).astype(np.float32), rng.integers(0, 2, 12_000)
    np.savez(tmp_path / "noise.npz", X=X, y=y)
    process = subprocess.Popen(
        [*COMMAND, "fit", "noise.npz", "--set", "C=1000"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert any(line.startswith(b"Fitting on") for line in process.stdout)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"interrupted; no further file was written" in err and b"Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["noise.npz"]


def test_without_a_command_there_are_three_to_begin_with(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if "sample:diabetes" in line]
    assert len(lines) == 3 and all(len(line) <= 80 for line in lines) and "docs/guide/command_line.md" in out
    for line in lines:
        assert main([*shlex.split(line.split("   ")[0])[1:], "-q"]) == 0


def test_warnings_for_programmers_are_kept_from_users(capsys):
    def command() -> int:
        for kind in (DeprecationWarning, FutureWarning, UserWarning):
            warnings.warn(f"a {kind.__name__}", kind, stacklevel=1)
        return 0

    assert ending(command) == 0
    assert capsys.readouterr().err == "mercer: note: a UserWarning\n"


def test_an_interrupt_that_a_library_swallows_is_still_one(capsys):
    class Swallows:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def command() -> int:
        Swallows()
        raise RuntimeError("half done")

    assert ending(command) == 130
    assert capsys.readouterr().err == "mercer: interrupted; no further file was written\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_a_library_swallows_ends_a_command_that_goes_on(capsys):
    class Swallows:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def command() -> int:
        Swallows()
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            time.sleep(0.01)
        return 0

    assert ending(command) == 130
    assert capsys.readouterr().err == "mercer: interrupted; no further file was written\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_shell_completes_commands():
    words = {"_MERCER_COMPLETE": "complete_bash", "COMP_WORDS": "mercer pl", "COMP_CWORD": "1"}
    code = "import sys; from mercer.cli import main; sys.exit(main([]))"
    process = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, timeout=60
    )
    assert process.stdout.split() == ["plot"]
