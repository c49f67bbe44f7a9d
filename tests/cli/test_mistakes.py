"""A user's mistakes: exit code 2, one sentence that says what to do, no traceback, and nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import messages, refusal
from mercer.cli import app as app_module
from mercer.cli import fit as fit_module
from mercer.cli import main
from mercer.cli import predict as predict_module
from mercer.cli.files import write_atomically
from mercer.cli.outcome import in_options


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "towns.mercer"
    data = path.with_suffix(".csv")
    frame = pd.DataFrame({"age": range(60), "town": ["Ulm", "Zug"] * 30, "dear": ["yes", "no", "no"] * 20})
    frame.to_csv(data, index=False)
    assert main(["fit", str(data), "-t", "dear", "--model", "svc", "--set", "C=1", "--out", str(path), "--quiet"]) == 0
    return path


def fails(capsys, arguments, *words):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert code == 2 and "Wrote" not in captured.out
    message = refusal(captured.err)
    for word in words:
        assert word in message
    return message


def table(rows, header="x,y"):
    with open("data.csv", "w", encoding="utf-8") as file:
        file.write("\n".join([header, *rows]) + "\n")
    return "data.csv"


GOOD = [f"{i},{'ab'[i % 2]}" for i in range(20)]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["inf,a", *GOOD], ["line 2, column 'x'", "infinite"]),
        ([*GOOD, "twenty,a"], ["line 22, column 'x'", "'twenty' is text", "--drop x"]),
        ([], ["has no rows of data"]),
        (["1,a"], ["there is 1 row"]),
        (["1,a", "2,a", "3,a"], ["'y' is constant", "one class only", "'a'"]),
        (["1,2.5", "2,2.5", "3,2.5"], ["'y' is constant", "same number"]),
        ([*GOOD, "1,"], ["'y' is missing", "line 22"]),
        ([*GOOD, "1,a,3"], ["line 22, column 3", "'3'"]),
        (["1,a", "2,b", "3,c", "4,a", "5,b", "6,c"], ["too few to hold out", "--test-size 0"]),
        (["1,a", "2,b", "3,c"], ["too few to hold out", "--test-size 0"]),
        (["1,0.5", "2,1.5"], ["too few to hold out a share of 0.2"]),
        (["1e200,a", *GOOD], ["line 2, column 'x'", "1e+200", "largest that can be scaled"]),
        (["1,1e200", "2,0.5"], ["'y' is 1e+200 in line 2", "at most 1e+150"]),
        ([f'"1,{i}00",{i % 2}' for i in range(30)], ["line 2, column 'x'", "another notation such as '1,000'"]),
        (
            [f"{i + 1}.1.2020,{i % 2}" for i in range(9)] * 3,
            ["line 2, column 'x'", "dates such as '1.1.2020'", "write dates as in 2026-01-31"],
        ),
    ],
)
def test_data_that_cannot_be_learned(capsys, tmp_path, rows, words):
    fails(capsys, ["fit", table(rows), "--target", "y"], *words)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-t", "yy"], ["no column 'yy' to be the target", "Did you mean 'y'"]),
        ([], ["name it with --target COLUMN", "'x', 'y'"]),
        (["-t", "y", "--kernel", "RBFF(1.0)"], ["column 1", "no kernel 'RBFF'", "did you mean RBF"]),
        (["-t", "y", "--kernel", "rbff"], ["no kernel 'rbff'", "RBF"]),
        (["-t", "y", "--kernel", "RBF(1).on('z')"], ["column 'z'", "'x'"]),
        (
            ["-t", "y", "--kernel", "Sigmoid()", "--set", "allow_indefinite=False"],
            ["SVC needs a positive semi-definite kernel", "Sigmoid", "indefinite"],
        ),
        (["-t", "y", "--set", "C=0"], ["C must be", "above 0", "0"]),
        (["-t", "y", "--set", "C=-1"], ["C must be", "-1"]),
        (["-t", "y", "--set", "c=1"], ["SVC has no parameter 'c'", "did you mean C"]),
        (["-t", "y", "--set", "gama=1"], ["no parameter 'gama'", "did you mean gamma"]),
        (["-t", "y", "--set", "C"], ["--set takes NAME=VALUE", "'C'"]),
        (["-t", "y", "--set", "kernel=rbf"], ["set by --kernel"]),
        (["-t", "y", "--model", "svm"], ["no model 'svm'", "did you mean svr"]),
        (["-t", "y", "--model", "ridge"], ["needs a numeric target", "'y' holds text", "line 2"]),
        (["-t", "x", "--task", "regression", "--model", "svc"], ["svc is for classification"]),
        (["-t", "y", "--task", "ranking"], ["task='ranking'", "classification and regression"]),
        (["-t", "y", "--normalize", "max"], ["normalize='max'", "standard, minmax"]),
        (["-t", "y", "--impute", "zero"], ["impute='zero'", "mean, median"]),
        (["-t", "y", "--drop", "z"], ["no column 'z' to drop"]),
        (["-t", "x", "--drop", "x,y"], ["no column 'x,y' to drop", "one column at a time: --drop x --drop y"]),
        (["-t", "y", "--test-size", "1"], ["--test-size", "is 1"]),
        (["-t", "y", "--test-size", "0.99"], ["too few to hold out"]),
        (["-t", "y", "--memory", "much"], ["memory='much'", "4GiB"]),
        (["-t", "y", "--memory", "100B"], ["memory budget", "100 bytes"]),
        (["-t", "y", "--n-jobs", "0"], ["n_jobs=0"]),
        (["-t", "y", "--out", "no/such/m.mercer"], ["cannot write no/such/m.mercer", "mkdir -p no/such"]),
        (["-t", "y", "--out", "."], ["it is a directory"]),
        (["-t", "y", "--seed", "x"], ["--seed", "valid int"]),
        (["-t", "y", "--seed", "-1"], ["--seed"]),
        (["-t", "y", "--set", "gamma=wide"], ["gamma", "wide"]),
        (["-t", "y", "--set", "class_weight=fair"], ["class_weight", "fair"]),
        (["-t", "y", "--set", "tol=small"], ["tol", "small"]),
        (["-t", "y", "--kernal", "rbf"], ["No such option", "--kernal"]),
        (["-t", "y", "--drop", "y"], ["target 'y' cannot be left out by --drop"]),
        (["-t", "y", "--out", "data.csv"], ["cannot write data.csv", "a file that is read"]),
        (["-t", "y", "--out", "n" * 300], ["File name too long"]),
        (["-t", "y", "--kernel", "Sigmoid()", "--set", "allow_indefinite=False"], ["--set allow_indefinite=True"]),
        (["-t", "x", "--memory", "100B"], ["the budget with --memory"]),
        (["-t", "x", "--test-size", "0.999"], ["too few to hold out a share of 0.999"]),
    ],
)
def test_options_that_make_no_sense(capsys, tmp_path, options, words):
    fails(capsys, ["fit", table(GOOD), *options], *words)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_output_is_checked_before_the_data_are_read(capsys, monkeypatch):
    def refuse(*source, **way):
        raise AssertionError("the data were read")

    monkeypatch.setattr(fit_module, "read_table", refuse)
    fails(capsys, ["fit", "sample:iris", "--out", "no/m.mercer"], "no/m.mercer")


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_only_predict_writes_to_standard_output(capsys, tmp_path, monkeypatch, model_file, option):
    monkeypatch.setattr(app_module, "_work", None)
    message = f"{option} - stands for standard output, to which only mercer predict writes; give the name of a file."
    fails(capsys, ["fit", table(GOOD), "-t", "y", option, "-"], message)
    if option == "--out":
        fails(capsys, ["tune", "data.csv", "-t", "y", "-o", "-"], message)
        fails(capsys, ["report", model_file, "-o", "-"], message)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "missing.csv", "-t", "y"], ["missing.csv does not exist"]),
        (["fit", "sample:irs"], ["no sample 'irs'", "Did you mean iris"]),
        (["fitt", "sample:iris"], ["No such command", "fitt"]),
        (["fit"], ["Missing argument"]),
        (["fit", "-", "-t", "y"], ["standard input, which mercer predict and mercer evaluate alone can read"]),
        (["fit", "sample:iris", "-o", "a", "--report", "./b/../a"], ["--report b/../a is also the model file"]),
        (["tune", "sample:iris", "-o", "a", "--log", "b/../a"], ["--log b/../a is also the model file"]),
        (["tune", "sample:iris", "--log", "r", "--report", "r"], ["--log r is also that of --report"]),
        (["predict", "missing.mercer", "sample:iris"], ["missing.mercer"]),
        (["inspect", "missing.mercer"], ["missing.mercer"]),
    ],
)
def test_what_is_not_there(capsys, tmp_path, arguments, words):
    (tmp_path / "b").mkdir()
    fails(capsys, arguments, *words)


def test_file_that_is_no_model(capsys):
    fails(capsys, ["inspect", table(GOOD)], "not a model file", "Pass a file that mercer fit has written.")


def test_a_lack_of_memory_is_told_in_options():
    told = (
        "the matrix would take 1.2 MiB. Raise the budget with mercer.config(memory=...), or fit on fewer rows. Or pass "
        'approximation="nystroem" and n_landmarks=100 with a number for alpha (859.4 KiB and 40,000 kernel values a '
        'pass; 859.4 KiB with X in mercer.Blocks, which need not fit into memory either) or solver="cg" (1 KiB). '
        "mercer.estimate(model, X) tells the seconds of a model with these parameters, and fits nothing."
    )
    assert in_options(told) == (
        "the matrix would take 1.2 MiB. Raise the budget with --memory, or fit on fewer rows. Or pass --approximation "
        "nystroem --landmarks 100 --set alpha=NUMBER (859.4 KiB and 40,000 kernel values a pass) or --set solver=cg "
        "(1 KiB). With --dry-run the command tells the seconds of a fit, and fits nothing."
    )


def test_a_fit_that_lacks_memory_speaks_of_options_alone(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    frame.assign(y=np.where(frame["a"] > 0, "p", "q")).to_csv("t.csv", index=False)
    # Enough for landmarks, and not for the matrix.
    message = fails(capsys, ["fit", "t.csv", "-t", "y", "--model", "svc", "--set", "C=1", "--memory", "1200KB"])
    assert "--approximation nystroem --landmarks" in message and "--dry-run" in message
    assert not any(word in message for word in ("mercer.", "n_landmarks", "approximation="))


def test_hidden_files_are_not_offered(capsys, tmp_path):
    (tmp_path / ".secret.csv").write_text("x")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    message = fails(capsys, ["fit", "no*.csv", "-t", "y", "--approximation", "nystroem"], "The folder holds 'a.csv'")
    assert "secret" not in message


def test_model_file_of_something_else(capsys):
    mercer.save(mercer.SVC().fit([[0.0], [1.0]], [0, 1]), "svc.mercer")
    fails(
        capsys,
        ["predict", "svc.mercer", table(GOOD)],
        "holds a SVC that was saved in Python",
        "mercer.load",
        "mercer fit",
    )


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        ("Age,town", ["30,Ulm"], ["lacks 1 of the 2 columns", "'age' (did you mean 'Age'"]),
        ("age", ["30"], ["lacks 1 of the 2 columns", "'town'"]),
        ("age,town", ["30,Ulm", "old,Zug"], ["line 3, column 'age'", "a number is expected", "'old'"]),
        ("age,town", ["30,Ulm", ",Zug"], ["missing values", "'age' (1)", "fit it again with --impute"]),
        ("age,town", ["inf,Ulm"], ["line 2, column 'age'", "infinite"]),
    ],
)
def test_new_data_with_other_columns(capsys, model_file, header, rows, words):
    fails(capsys, ["predict", model_file, table(rows, header)], "data.csv", *words)


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        ("age,town,size", "30,Ulm,3", "1 column that the model was not fitted on, which is ignored: 'size'"),
        ("age,town", "30,", "column 'town' holds '(missing)' in 1 row, which the model has not seen in training"),
    ],
)
def test_what_a_model_does_not_know_is_noted(capsys, model_file, header, row, words):
    assert main(["predict", str(model_file), table(["30,Ulm"], "age,town")]) == 0
    reference = capsys.readouterr()
    assert not messages(reference.err)
    assert main(["predict", str(model_file), table([row], header)]) == 0
    captured = capsys.readouterr()
    assert words in captured.err and "\nmercer: note: data.csv" in captured.err
    if header != "age,town":
        assert captured.out == reference.out


def test_dropped_columns_are_remembered(capsys):
    rows = [f"{i},{'ab'[i % 2]},{i % 3}" for i in range(30)]
    assert main(["fit", table(rows, "x,y,z"), "-t", "y", "--drop", "z", "-q"]) == 0
    assert main(["predict", "data.mercer", "data.csv"]) == 0
    captured = capsys.readouterr()
    assert not messages(captured.err) and len(captured.out.splitlines()) == 31
    assert main(["inspect", "data.mercer"]) == 0
    assert "z (--drop)" in capsys.readouterr().out


def test_missing_categories_are_told(capsys):
    rows = [f"{'' if i % 5 == 0 else 'uv'[i % 2]},{'ab'[i % 2]}" for i in range(40)]
    assert main(["fit", table(rows), "-t", "y"]) == 0
    assert "x: 8 rows, a value of its own" in " ".join(capsys.readouterr().out.split())


def test_new_data_for_a_score(capsys, model_file):
    fails(capsys, ["evaluate", model_file, table(["30,Ulm"], "age,town")], "no column 'dear'")
    strange = table(["30,Ulm,maybe"], "age,town,dear")
    fails(capsys, ["evaluate", model_file, strange], "'maybe' in line 2", "'no', 'yes'")


def test_predictions_to_a_place_that_cannot_be(capsys, model_file):
    data = table(["30,Ulm"], "age,town")
    fails(capsys, ["predict", model_file, data, "--out", "no/p.csv"], "the directory no does not exist")
    fails(capsys, ["predict", model_file, data, "--out", "p.xlsx"], ".csv, .tsv, .parquet")


def test_predictions_do_not_replace_their_own_data(capsys, model_file):
    data = table(["30,Ulm"], "age,town")
    fails(capsys, ["predict", model_file, data, "--out", data], "a file that is read")
    with open(data, encoding="utf-8") as file:
        assert file.read() == "age,town\n30,Ulm\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of other systems")
def test_pipes_are_neither_read_nor_replaced(capsys, tmp_path, model_file):
    os.mkfifo(tmp_path / "pipe.csv")
    fails(capsys, ["predict", model_file, "pipe.csv"], "pipe.csv is a pipe or a device")
    fails(capsys, ["fit", table(GOOD), "-t", "y", "--out", "pipe.csv"], "it is a pipe or a device")
    assert (tmp_path / "pipe.csv").is_fifo()


@pytest.mark.parametrize(
    "arguments", [["fit", "missing.csv"], ["fit"], ["fit", "sample:iris", "--set", "C=0"], ["predict", "a", "b"]]
)
def test_failures_are_one_json_object_for_machines(capsys, arguments):
    code = main([*arguments, "--json"])
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (code, report["exit_code"]) == (2, 2) and captured.err == f"mercer: {report['error']}\n"


def test_predictions_that_cannot_be_written_are_one_json_object(capsys, monkeypatch, model_file):
    def refuse(path, write):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(predict_module, "write_atomically", refuse)
    assert main(["predict", str(model_file), table(["30,Ulm"], "age,town"), "--out", "p.csv", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"].startswith("p.csv: No space left on device; check")


def test_unknown_categories_are_noted(capsys, model_file):
    code = main(["predict", str(model_file), table(["30,Rom"], "age,town")])
    captured = capsys.readouterr()
    assert code == 0 and len(captured.out.splitlines()) == 2
    assert "note: data.csv: column 'town' holds 'Rom' in 1 row" in captured.err


def test_our_own_mistakes_end_with_1_and_say_how_to_see_more(capsys, monkeypatch):
    def fail(*arguments, **way):
        raise RuntimeError("a bolt is loose")

    monkeypatch.setattr(fit_module, "read_table", fail)
    assert main(["fit", "sample:iris"]) == 1
    err = capsys.readouterr().err
    assert "RuntimeError: a bolt is loose" in err and "MERCER_DEBUG=1" in err and "Traceback" not in err
    monkeypatch.setenv("MERCER_DEBUG", "1")
    assert main(["fit", "sample:iris"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_write_that_is_broken_off_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "p.csv"
    path.write_text("old")

    def write(draft):
        draft.write_text("ha")
        raise error

    with pytest.raises((KeyboardInterrupt, OSError)):
        write_atomically(path, write)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_full_write_replaces_the_old_file(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("old")
    write_atomically(path, lambda draft: draft.write_text("new"))
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_numbers_with_many_rows_missing_from_a_class_are_not_split_badly(capsys):
    rows = [f"{x},{'a' if i < 30 else 'b'}" for i, x in enumerate(np.linspace(0, 1, 36))]
    assert main(["fit", table(rows), "-t", "y", "--quiet"]) == 0
    assert mercer.load("data.mercer").report_["rows"]["held_out"] == 8
    assert capsys.readouterr().out == ""


def test_the_help_shows_no_default_of_a_flag_that_is_off(capsys):
    assert main(["fit", "--help"]) == 0
    assert "[default: True]" not in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(3))
def test_a_row_that_a_kernel_cannot_compare_is_named_by_its_line(capsys, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0.5, 2.0, size=(40, 2)), columns=["a", "b"])
    frame.loc[29, "b"] = -1.5
    frame.assign(y=frame["a"]).to_csv("sizes.csv", index=False)
    options = ["--model", "ridge", "--kernel", "ChiSquared(1.0)", "--normalize", "none", "--seed", str(seed)]
    assert main(["fit", "sizes.csv", "-t", "y", *options]) == 2
    # The first row is in line 2, and the row may be one of those that are held out.
    assert "X has -1.5 (first in row 29, column 1)" in (message := capsys.readouterr().err)
    assert "In sizes.csv, row 29 is line 31." in " ".join(message.split())


def test_one_target_that_all_predictions_follow_is_named_with_its_line(capsys, tmp_path):
    rows = [f"{i},{i % 7}" for i in range(60)]
    rows[17] = "17,1000000"
    path = table(rows)
    assert main(["fit", str(path), "--target", "y", "--model", "ridge", "-o", str(tmp_path / "m.mercer")]) == 0
    message = " ".join(capsys.readouterr().err.split())
    assert message.count("times as far from the mean of the others") == 1
    assert "the target 'y' is 1e+06 in line 19, " in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "model.mercer", ""], "an argument is empty, as from a variable that is not set"),
        (["predict", "", "rows.csv"], "an argument is empty"),
        (["fit", "rows.csv", "--encoding", ""], "an argument is empty"),
        (["tune", "rows.csv", "-t", "y", "--approximation", "nystroem"], "cannot be combined with mercer tune"),
    ],
)
def test_arguments_that_are_empty_or_of_another_command(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
    assert main(arguments) == 2
    assert words in refusal(capsys.readouterr().err)
