"""Links, pictures and scripts of built pages lead to files and anchors that exist, none of them elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := given.get(name)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        elif tag in ("img", "script") and given.get("src"):
            self.loaded.append(given["src"] or "")
        elif tag == "link" and given.get("href"):
            self.loaded.append(given["href"] or "")


def broken_links(folder: Path) -> list[str]:
    """Return a line for each fault of the pages in a folder."""
    pages: dict[Path, _Page] = {}
    for path in sorted(folder.rglob("*.html")):
        if "_static" in path.parts:
            # Parts of the theme that are not pages.
            continue
        pages[path.resolve()] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    faults = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for target in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if target in page.loaded:
                    faults.append(f"{name} loads {target}, which is not there without a network")
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not aim.is_file():
                faults.append(f"{name}: there is no {target}")
            elif parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].anchors:
                faults.append(f"{name}: there is no anchor {target}")
    return faults
