"""Build the site into ``build/site/html``: ``python3 bootstrap.py site`` calls this in an environment with ``.[docs]``.

What has not changed since the last build is not built again; ``--fresh`` builds everything.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

# Pictures are drawn without a window, and numerical code leaves the other cores to the other processes.
os.environ["MPLBACKEND"] = "Agg"

from sphinx.cmd.build import main as sphinx

from generated import write_generated
from links import broken_links
from stage import ROOT, stage

BUILD = ROOT / "build" / "site"
# Written by Sphinx and its extensions beside the pages.
MADE = ("api/names", "api/examples", "gallery")


def remove_stale(source: Path, written: set[Path]) -> None:
    """Delete pages of an earlier build that have no source any more."""
    programs = {path.stem for path in (ROOT / "examples" / "gallery").rglob("*.py")}
    for path in source.rglob("*"):
        made = path.relative_to(source).as_posix().startswith(MADE)
        gone = path.stem.startswith("plot_") and path.stem.removesuffix(".codeobj") not in programs
        if path.is_file() and path not in written and (gone or not made):
            path.unlink()


def main(arguments: list[str]) -> int:
    if "--fresh" in arguments:
        shutil.rmtree(BUILD, ignore_errors=True)
    source, html = BUILD / "source", BUILD / "html"
    remove_stale(source, stage(source) | write_generated(source))
    conf = str(Path(__file__).resolve().parent)
    options = ["-j", "auto", "-W", "--keep-going", "-n", "-b", "html", "-c", conf, "-d", str(BUILD / "doctrees")]
    failed = sphinx([*options, str(source), str(html)])
    broken = broken_links(html)
    for line in broken:
        print(line, file=sys.stderr)
    if failed or broken:
        print("the site has faults: see the lines above", file=sys.stderr)
        return 1
    pages = sum(1 for _ in html.rglob("*.html"))
    print(f"{pages} pages, all links between them lead somewhere: {html.relative_to(ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
