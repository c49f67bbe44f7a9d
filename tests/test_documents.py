"""Documents: links and anchors resolve, files that are named exist, indices are complete, short pages are short."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
ROOMS = ("src", "tests", "benchmarks", "docs", "examples")
SOURCES = [path.as_posix() for room in ROOMS for path in ROOT.glob(f"{room}/**/*.py")]
SOURCES += [path.as_posix() for path in ROOT.glob("*.py")]
WORDS = {"README.md": 500, "docs/architecture.md": 2500}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    """The text of a page less its fenced blocks, formulas and code in lines."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def links(path: Path) -> Iterator[str]:
    """The targets of the links and pictures of a page that lead to files of the project."""
    for target in re.findall(r"\]\(\s*([^)\s]+)[^)]*\)", without_code(path.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    counts: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        counts[slug] = counts.get(slug, -1) + 1
        if counts[slug]:
            counts[f"{slug}-{counts[slug]}"] = 0
    return set(counts)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in links(path):
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        assert page.exists(), f"{name(path)}: there is no {target}"
        if anchor:
            assert anchor in anchors(page), f"{name(path)}: {name(page)} has no heading for #{anchor}"


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading, `code` and (more)\n\n[here](#a-heading-code-and-more) [there](gone.md#x)\n```\n[no](x)\n```\n",
        encoding="utf-8",
    )
    assert list(links(page)) == ["#a-heading-code-and-more", "gone.md#x"]
    assert anchors(page) == {"a-heading-code-and-more"}


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if "decisions" not in p.parts], ids=name)
def test_modules_that_are_named_exist(path: Path) -> None:
    """Decisions are left out: they say what was so when they were made."""
    for module in set(re.findall(r"(?<![\w/.])(?:[\w-]+/)*\w+\.py\b", path.read_text(encoding="utf-8"))):
        assert any(source.endswith(f"/{module}") for source in SOURCES), f"{name(path)}: there is no {module}"


@pytest.mark.parametrize("page", WORDS)
def test_short_pages_are_short(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").split()) <= WORDS[page]


def test_the_readme_begins_with_an_example() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(">>> ") for line in lines[:25])
    # What a machine with Python alone can do.
    assert {"python3 bootstrap.py demo", "python3 bootstrap.py test"} <= set(lines)


def test_the_readme_names_what_can_be_installed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    words = set(re.findall(r"`([a-z]+)`", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert extras.keys() - {"all", "test", "docs", "bench"} <= words


@pytest.mark.parametrize("folder", ["theory", "decisions"])
def test_indices_are_complete(folder: str) -> None:
    pages = {path.name for path in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
    assert pages == set(links(ROOT / "docs" / folder / "README.md")) & pages


def test_decisions_are_numbered_and_dated() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith(f"# {path.name[:4]}. ")
        assert re.fullmatch(r"Date: \d{4}-\d{2}-\d{2}", lines[2])
        assert all(any(line.startswith(f"**{part}.**") for line in lines) for part in ("Question", "Choice"))
