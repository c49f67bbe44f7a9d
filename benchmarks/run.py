"""All benchmarks, or some: ``python benchmarks/run.py [--write] [gram] [kernel_ridge] [svc] [startup]``.

Prints a table; with ``--write`` it also goes to RESULTS.md and results.json beside this file. Peers come with
``pip install -e '.[bench]'``; data sets are looked for in ``$MERCER_DATA``.
"""

from __future__ import annotations

import datetime
import importlib
import sys

from harness import HERE, as_json, as_markdown, machine

ALL = ("startup", "gram", "kernel_ridge", "svc")


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    names = [a for a in arguments if not a.startswith("--")] or list(ALL)
    unknown = [n for n in names if n not in ALL]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
        return 2
    sections = {}
    for name in names:
        module = importlib.import_module(name)
        sections[module.TITLE] = module.run()
        print(as_markdown(module.TITLE, sections[module.TITLE]), flush=True)
    if write:
        head = (
            "# Results\n\nMedians of runs in turn in one process; a ratio above 1 means that Mercer is faster.\n\n"
            f"- machine: {machine()}\n- date: {datetime.date.today()}\n"
            f"- command: `python benchmarks/run.py {' '.join(arguments)}`\n"
        )
        parts = [head, *(as_markdown(title, rows) for title, rows in sections.items())]
        (HERE / "RESULTS.md").write_text("\n".join(parts), encoding="utf-8")
        (HERE / "results.json").write_text(as_json(sections) + "\n", encoding="utf-8")
    return 0 if all(row.met for rows in sections.values() for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
