"""Reports and pictures of every learner of the command line on every kind of rows that it takes."""

from __future__ import annotations

import contextlib
import itertools
import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from mercer._registered import MODELS
from mercer.cli import main
from mercer.cli.checks import PLOTS

N = 40
RNG = np.random.default_rng(0)
KINDS = np.where(np.arange(N) % 2, "one", "two")
SIZES = np.arange(N) % 2 + RNG.normal(scale=0.1, size=N)
ROWS = {
    "numbers": ["numbers.csv"],
    "mixed": ["mixed.csv"],
    "text": ["text.csv"],
    "strings": ["text.csv", "--text", "name"],
    "trees": ["trees.tsv", "--tree", "parse"],
    "series": ["series.npz"],
    "graphs": ["graphs.json"],
    "sparse": ["sparse.libsvm"],
}
# The default model takes tables with columns alone, and other learners leave text out unless it has a role.
OF_DEFAULT, OF_OTHERS = ("numbers", "mixed", "text"), tuple(rows for rows in ROWS if rows != "text")
CASES = [
    pytest.param(model, task, rows, marks=[] if rows == "text" else [pytest.mark.slow])
    for model, tasks in MODELS.items()
    for task, rows in itertools.product(tasks, OF_DEFAULT if model == "auto" else OF_OTHERS)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    level = np.arange(N) % 2 + RNG.normal(scale=0.3, size=N)
    targets = pd.DataFrame({"kind": KINDS, "size": SIZES})
    numbers = targets.assign(level=level, width=RNG.normal(size=N))
    numbers.to_csv(folder / "numbers.csv", index=False)
    days = pd.date_range("2026-01-01", periods=N).astype(str)
    mixed = numbers.assign(town=RNG.choice(["Ulm", "Zug"], N), day=days)
    mixed.to_csv(folder / "mixed.csv", index=False)
    names = [f"{'amc dart' if row % 2 else 'ford torino'} {row}" for row in range(N)]
    targets.assign(level=level, name=names).to_csv(folder / "text.csv", index=False)
    trees = [f"(S (NP {'ab'[row % 2]}) (VP (V x) (NP {row % 5})))" for row in range(N)]
    targets.assign(parse=trees).to_csv(folder / "trees.tsv", sep="\t", index=False)
    waves = np.array([np.sin(np.arange(10.0) * (0.4 if row % 2 else 0.8)) for row in range(N)])[:, :, None]
    np.savez(folder / "series.npz", X=waves + RNG.normal(scale=0.1, size=waves.shape), kind=KINDS, size=SIZES)
    graphs = []
    for row in range(N):
        graph = (nx.cycle_graph if row % 2 else nx.path_graph)(4 + row % 3)
        graph.graph.update(kind=str(KINDS[row]), size=float(SIZES[row]))
        graphs.append(nx.node_link_data(graph))
    (folder / "graphs.json").write_text(json.dumps(graphs))
    return folder


def _write_sparse(path, y):
    path.write_text("".join(f"{value} 1:{value + 0.1 * row} {2 + row % 3}:1\n" for row, value in enumerate(y)))


@pytest.mark.parametrize(("model", "task", "rows"), CASES)
def test_report_and_pictures(folder, capsys, model, task, rows):
    target, other = ("kind", "size") if task == "classification" else ("size", "kind")
    data, *options = ROWS[rows]
    choice = ["-t", target]
    if rows == "sparse":
        _write_sparse(folder / data, np.arange(N) % 2 if task == "classification" else SIZES)
        choice = ["--task", task]
    elif data.endswith(("csv", "tsv")):
        choice += ["--drop", other]
    with contextlib.chdir(folder):
        assert main(["fit", data, *choice, "-m", model, *options, "-q", "-o", "m.mercer", "--report", "m.html"]) == 0
        assert main(["report", "m.mercer", data, "-q", "-o", "r.html"]) == 0
        for what in PLOTS:
            capsys.readouterr()
            row = ["--row", "3"] if what == "contributions" else []
            code = main(["plot", "m.mercer", data, "--what", what, *row, "-q", "-o", "p.png"])
            err = capsys.readouterr().err
            # Pictures that such a model or such rows do not have are refused.
            assert code == 0 or (code == 2 and "--what" in err), (what, err)
