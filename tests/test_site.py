"""The site: links of staged pages, pages of reference that name everything, and the check of the built pages."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from functools import partial
from pathlib import Path

import pytest

import mercer
from mercer import _documentation, plotting
from mercer.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site"))

import generated  # noqa: E402
import links  # noqa: E402
import stage  # noqa: E402


@pytest.mark.parametrize(
    "file, target, place",
    [
        ("docs/guide/trust.md", "../theory/certificates.md#gaps", "../theory/certificates.md#gaps"),
        ("docs/guide/trust.md", "README.md", "index.md"),
        ("docs/guide/trust.md", "../pictures/svc.png", "../pictures/svc.png"),
        ("docs/theory/README.md", "../../benchmarks/RESULTS.md", "../project/results.md"),
        ("docs/README.md", "../src/mercer/cli/app.py", "command_line.md"),
        ("CONTRIBUTING.md", "docs/architecture.md#rooms", "../architecture.md#rooms"),
        ("docs/extending/loss.md", "../../examples/extending/loss.py", "../files/examples/extending/loss.py"),
        ("docs/start.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/start.md", "#install", "#install"),
    ],
)
def test_links_follow_pages_to_the_site(file: str, target: str, place: str) -> None:
    assert (
        stage.relinked(f"a [link]({target}) and [`code`]({target})", file) == f"a [link]({place}) and [`code`]({place})"
    )


def test_code_is_no_link() -> None:
    text = "`x[0](README.md)`\n\n```\n[a](README.md)\n```\n"
    assert stage.relinked(text, "docs/start.md") == text


def test_dates_in_tables_stay_whole() -> None:
    table = "| 0001 | 2026-11-21 | on 2026-11-21 |"
    assert (
        stage.unbroken_dates(table)
        == "| 0001 | 2026\N{NON-BREAKING HYPHEN}11\N{NON-BREAKING HYPHEN}21 | on 2026-11-21 |"
    )


def test_files_without_a_page_are_copied(tmp_path: Path) -> None:
    written = stage.stage(tmp_path)
    copied = {path.relative_to(tmp_path).as_posix() for path in written if "files" in path.parts}
    assert "files/examples/extending/loss.py" in copied
    assert all(path.is_file() for path in written)


def test_every_page_of_the_documents_is_in_a_table_of_contents(tmp_path: Path) -> None:
    written = stage.stage(tmp_path)
    indices = [path for path in written if path.name == "index.md"]
    listed = set()
    for index in indices:
        contents = index.read_text(encoding="utf-8").rsplit("```{toctree}", 1)[1]
        for page in re.findall(r"^(?!:|```)(\S+)$", contents, flags=re.M):
            listed.add((index.parent / page).resolve())
    pages = {path.with_suffix("").resolve() for path in written if path.suffix == ".md"}
    assert pages - listed == {(tmp_path / "index").resolve()}


def test_the_reference_has_every_public_name() -> None:
    listed = {module.__name__: generated.module_page(module) for module in generated.modules()}
    for name in mercer.__all__:
        value = getattr(mercer, name)
        if inspect.ismodule(value):
            assert f"mercer.{name}" in listed
        elif name != "__version__":
            assert f"\n   {name}\n" in listed["mercer"], name
    assert "\n   RBF\n" in listed["mercer.kernels"]
    # One page for each name.
    assert "\n   GridSearchCV\n" not in listed["mercer.selection"]


def test_estimators_link_to_pages_of_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _documentation._BUILT == stage.ROOT / "build" / "site" / "html"
    monkeypatch.setenv("MERCER_DOCS", "https://example.org")
    for module in (mercer, mercer.maps):
        # Names have pages of their own in a folder beside that of the module.
        page = generated.module_page(module)
        assert "   :toctree: names\n" in page
        estimators = [cls for cls in map(partial(getattr, module), module.__all__) if hasattr(cls, "_get_doc_link")]
        assert len(estimators) > 5
        for cls in estimators:
            assert f"\n   {cls.__name__}\n" in page
            address = cls.__new__(cls)._get_doc_link()
            assert address == f"https://example.org/api/names/{module.__name__}.{cls.__name__}.html"


def test_the_page_of_the_command_line_has_every_command_and_option() -> None:
    page = generated.command_line()
    for command in app.registered_commands:
        assert f"## mercer {command.name or command.callback.__name__}" in page
    assert "`--landmarks`" in page and "mercer fit houses.csv --target price" in page


def test_faults_of_built_pages_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#x"></a><a href="gone.html"></a><a href="#top"></a>'
        '<a href="https://example.org"></a><script src="https://example.org/x.js"></script>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="y"></p><img src="c.png">', encoding="utf-8")
    assert links.broken_links(tmp_path) == [
        "a.html: there is no anchor b.html#x",
        "a.html: there is no gone.html",
        "a.html loads https://example.org/x.js, which is not there without a network",
        "b.html: there is no c.png",
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "gallery").rglob("*.py")), ids=lambda path: path.stem)
def test_programs_of_the_gallery_have_a_title_and_a_picture(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    title, line = text.splitlines()[1:3]
    assert path.stem.startswith("plot_") and set(line) == {"="} and len(line) == len(title)
    assert "plt.show()" in text or ".plot()" in text


def test_the_gallery_is_large_and_each_part_has_a_heading() -> None:
    gallery = ROOT / "examples" / "gallery"
    assert len(list(gallery.rglob("plot_*.py"))) >= 20
    assert all(
        (folder / "GALLERY_HEADER.rst").is_file()
        for folder in [gallery, *sorted({path.parent for path in gallery.rglob("plot_*.py")})]
    )


def test_the_gallery_shows_every_display() -> None:
    programs = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "examples" / "gallery").rglob("plot_*.py"))
    assert [name for name in plotting.__all__ if f"{name}.from_" not in programs] == []


def test_formulas_are_written_for_browsers() -> None:
    pytest.importorskip("latex2mathml")
    mathml = importlib.import_module("mathml").mathml
    norm = mathml(r"\Bigl\| w \Bigr\|^2")
    assert norm.count('<mo stretchy="false" lspace="0" rspace="0">&#x02016;</mo>') == 2
    assert "class_weight" in mathml(r"\text{class\_weight}_i")
    with pytest.raises(ValueError, match="no counterpart in MathML"):
        mathml(r"\unheard{x}")
