"""All benchmarks, or some: ``python benchmarks/run.py [--write] [name ...]``, where ``search.ridge`` is one case.

The names are those of the modules beside this file: startup, cores, race, gram, kernel_ridge, ridge_path, ridge_grid,
logistic, ordinal, gp, uci_gp, gpc, golden, svc, svc_hard, svc_predict, svc_probability, svm_growth, svm_path, search,
svr, precomputed, structure, maps, kernel_pca, kernel_kmeans, neighbors, perceptron, strings, online, trees, graphs,
series, images, tables, intervals, scale.
Prints a table for each; with ``--write`` it also takes the place of that benchmark's last table in RESULTS.md and
results.json. Peers come with ``pip install -e '.[bench]'``; data sets are looked for in ``$MERCER_DATA``.
"""

from __future__ import annotations

import datetime
import importlib
import sys

from harness import Section, as_markdown, machine, read_sections, tell, write_sections

ALL = (
    "startup",
    "cores",
    "race",
    "gram",
    "kernel_ridge",
    "ridge_path",
    "ridge_grid",
    "logistic",
    "ordinal",
    "gp",
    "uci_gp",
    "gpc",
    "golden",
    "svc",
    "svc_hard",
    "svc_predict",
    "svc_probability",
    "svm_growth",
    "svm_path",
    "search",
    "svr",
    "precomputed",
    "structure",
    "maps",
    "kernel_pca",
    "kernel_kmeans",
    "neighbors",
    "perceptron",
    "strings",
    "online",
    "trees",
    "graphs",
    "series",
    "images",
    "tables",
    "intervals",
    "scale",
)


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if a demand is not met, 2 if there is no such benchmark."""
    write = "--write" in arguments
    names = [a for a in arguments if not a.startswith("--")] or list(ALL)
    unknown = [n for n in names if n.partition(".")[0] not in ALL]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
        return 2
    all_met = True
    parts = [part for name in names for part in _parts(name)]
    for name in parts:
        tell(name)
        section = _measured(name)
        print(as_markdown(section), flush=True)
        all_met &= all(row.met for row in section.rows)
        # After each, so that what was measured is kept whatever comes next; a benchmark without its data has no rows.
        if write and section.rows:
            sections = read_sections() | {name: section}
            write_sections({key: sections[key] for key in sorted(sections, key=_place)})
    return 0 if all_met else 1


def _parts(name: str) -> list[str]:
    """The cases of a benchmark that has some, each with a table of its own; or its name."""
    cases = [] if "." in name else list(getattr(importlib.import_module(name), "PARTS", ()))
    return [f"{name}.{case}" for case in cases] or [name]


def _place(name: str) -> tuple[int, str]:
    return ALL.index(name.partition(".")[0]), name


def _measured(name: str) -> Section:
    file, _, case = name.partition(".")
    module = importlib.import_module(file)
    rows = module.PARTS[case]() if case else module.run()
    command = f"python benchmarks/run.py {name}"
    return Section(module.TITLE, machine(), str(datetime.date.today()), command, rows)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
