"""Put the pages of the project where Sphinx builds the site from: ``README.md`` becomes ``index.md``, links follow.

The pages in ``docs/`` are written for both readers, those of the repository and those of the site: a link between files
is right in both. Links to what the site makes itself, such as the gallery, lead to its source in the repository.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

# Pages that stand outside docs/, and where they are on the site.
PROJECT = {
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/RESULTS.md": "project/results.md",
}
# Sources in whose place the site has pages of its own.
ELSEWHERE = {
    **PROJECT,
    "README.md": "index.md",
    "examples/gallery/README.md": "gallery/index.rst",
    "src/mercer/__init__.pyi": "api/index.md",
    "src/mercer/cli/app.py": "command_line.md",
}
_LINK = re.compile(r"(\]\(\s*)([^)\s#]+)(#[^)\s]*)?(\s*[^)]*\))")
# In a cell of its own.
_DATE = re.compile(r"(?<=\| )(\d{4})-(\d\d)-(\d\d)(?= \|)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.S | re.M)


def site_path(file: str) -> str:
    """The place on the site of a file of the repository, both relative to their roots."""
    if file in ELSEWHERE:
        return ELSEWHERE[file]
    parts = PurePosixPath(file).parts
    if parts[0] != "docs":
        return str(PurePosixPath("files", *parts))
    inside = PurePosixPath(*parts[1:])
    return str(inside.with_name("index.md") if inside.name == "README.md" else inside)


def relinked(text: str, file: str, used: Callable[[str], None] = lambda target: None) -> str:
    """Return the text of a page with its links to files as they are on the site.

    ``used`` is called with each file outside ``docs/`` that has no page and must be copied.
    """
    here = PurePosixPath(site_path(file)).parent

    def link(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        if re.match(r"[a-z]+:", target):
            return match.group()
        aim = os.path.normpath(PurePosixPath(file).parent / target)
        if (ROOT / aim).is_dir():
            aim = f"{aim}/README.md"
        place = site_path(aim)
        if place.startswith("files/"):
            used(aim)
        return f"{before}{os.path.relpath(place, here)}{anchor or ''}{after}"

    # Code is left alone: what looks like a link there is none.
    pieces, end = [], 0
    for code in _CODE.finditer(text):
        # The words of a link may be code.
        if _inside_link(text, code.end()):
            continue
        pieces += [_LINK.sub(link, text[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*pieces, _LINK.sub(link, text[end:])])


def _inside_link(text: str, position: int) -> bool:
    return re.match(r"[^\[\]\n]*\]\(", text[position:]) is not None


def unbroken_dates(text: str) -> str:
    """Return text whose tables have dates that a narrow column does not break at a hyphen."""
    return _DATE.sub("\\1\N{NON-BREAKING HYPHEN}\\2\N{NON-BREAKING HYPHEN}\\3", text)


def pages_named(text: str, file: str) -> list[str]:
    """The pages of the site that an index links to, in order, without the suffix and without repetitions."""
    here = PurePosixPath(site_path(file)).parent
    found = []
    for target, anchor in re.findall(r"\]\(([^)\s#]+)(#[^)\s]*)?\)", relinked(text, file)):
        place = os.path.normpath(here / target)
        if not anchor and place.endswith((".md", ".rst")) and place != "index.md":
            found.append(os.path.relpath(place.rsplit(".", 1)[0], here))
    return list(dict.fromkeys(found))


def with_contents(text: str, file: str) -> str:
    """Return the text of an index with a hidden table of contents: the pages below it that it links to."""
    here = str(PurePosixPath(site_path(file)).parent)
    below = [page for page in pages_named(text, file) if here == "." or not page.startswith("..")]
    return text + "\n```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(below) + "\n```\n"


def write(path: Path, text: str) -> None:
    """Write a file unless it has this text, so that Sphinx reads again only what changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def stage(folder: Path) -> set[Path]:
    """Write all pages and pictures of the repository into a folder, and return what was written."""
    written: set[Path] = set()

    def copy(file: str) -> None:
        target = folder / site_path(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target)
        written.add(target)

    for file in [*sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")), *PROJECT]:
        text = (ROOT / file).read_text(encoding="utf-8")
        # The blank line that ends a doctest in front of a fence.
        page = re.sub(r"\n\n```$", "\n```", unbroken_dates(relinked(text, file, copy)), flags=re.M)
        target = folder / site_path(file)
        write(target, with_contents(page, file) if target.name == "index.md" else page)
        written.add(target)
    for picture in sorted((DOCS / "pictures").glob("*.png")):
        copy(picture.relative_to(ROOT).as_posix())
    return written
