"""Links of estimators in notebooks: which page they lead to, and what an address may be."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, ConformalRegressor, GridSearchCV, KernelRidge, KernelSearchCV, TabularRegressor, _documentation
from mercer._errors import MercerWarning
from mercer.estimators.table import TableModel
from mercer.maps import NystroemMap

SITE = "https://example.org/docs"


def public_estimators() -> dict[str, type]:
    """All that have a page, by the name of it."""
    found: dict[str, type] = {}
    for name in mercer.__all__:
        value = getattr(mercer, name)
        module = importlib.import_module(f"mercer.{name}") if inspect.ismodule(value) else mercer
        names = module.__all__ if inspect.ismodule(value) else [name]
        for own in names:
            cls = getattr(module, own)
            if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and cls not in found.values():
                found[f"{'mercer' if own in mercer.__all__ else module.__name__}.{own}"] = cls
    return found


class Addresses(HTMLParser):
    """The addresses of all links of a page, and the names of its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.elements: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.found += [value or "" for name, value in attrs if name == "href"]


def pages(estimator: Any) -> set[str]:
    """The pages that the representation of an estimator leads to, without places on them."""
    return {re.sub("#.*", "", address) for address in Addresses(estimator._repr_html_()).found}


@pytest.fixture(autouse=True)
def _no_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MERCER_DOCS", raising=False)
    monkeypatch.setattr(_documentation, "_BUILT", tmp_path / "not built")


def test_every_public_estimator_has_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERCER_DOCS", SITE)
    estimators = public_estimators()
    assert len(estimators) > 35 and {"mercer.SVC", "mercer.maps.NystroemMap"} <= estimators.keys()
    for name, cls in estimators.items():
        assert cls.__new__(cls)._get_doc_link() == f"{SITE}/api/names/{name}.html"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        KernelRidge(kernel="rbf"),
        TabularRegressor(),
        NystroemMap(),
        ConformalRegressor(SVC()),
        KernelSearchCV(SVC()),
        GridSearchCV(SVC(), {"C": [1.0]}),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_page_is_shown(monkeypatch: pytest.MonkeyPatch, estimator: Any) -> None:
    names = {type(part).__name__ for part in (estimator, getattr(estimator, "estimator", None)) if part is not None}
    own = {f"mercer.maps.{name}" if name == "NystroemMap" else f"mercer.{name}" for name in names - {"Pipeline"}}
    expected = {f"{SITE}/api/names/{name}.html" for name in own or {"mercer.SVC"}}
    assert not expected & pages(estimator)
    # With a stroke, or the first page, at the end it is the same site.
    for address in (SITE, f"{SITE}/", f"{SITE}/index.html"):
        monkeypatch.setenv("MERCER_DOCS", address)
        assert expected <= pages(estimator)


def test_the_site_of_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = tmp_path / 'a "site" & {more}'
    monkeypatch.setattr(_documentation, "_BUILT", site)
    assert SVC()._get_doc_link() == ""
    page = site / "api" / "names" / "mercer.SVC.html"
    page.parent.mkdir(parents=True)
    page.write_text("", encoding="utf-8")
    assert SVC()._get_doc_link() == page.as_uri() and page.as_uri() in pages(SVC())
    # A page that this build of the site does not have yet.
    assert KernelRidge()._get_doc_link() == ""
    monkeypatch.setenv("MERCER_DOCS", SITE)
    assert SVC()._get_doc_link().startswith(SITE)


def test_what_has_no_page_has_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(SVC):
        pass

    monkeypatch.setenv("MERCER_DOCS", SITE)
    assert Own()._get_doc_link() == ""
    # Not a public name.
    assert SITE not in TableModel(StandardScaler())._repr_html_()


def test_an_address_cannot_leave_its_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Addresses(SVC()._repr_html_()).elements
    monkeypatch.setenv("MERCER_DOCS", "https://example.org/\"><script>alert(1)</script>'{0}&quot;\n")
    shown = Addresses(SVC()._repr_html_())
    assert shown.elements.count("script") == plain.count("script")
    assert all(re.fullmatch(r"[^\"'<>&{}\s]*", address) for address in shown.found) and shown.found


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("javascript:alert(1)", "does not begin with"),
        ("data:text/html,a", "does not begin with"),
        ("example.org/docs", "does not begin with"),
        ("//example.org", "does not begin with"),
        ("https:///docs", "has no host"),
        ("https://example.org/?page=", "has a query"),
        ("file:docs", "has no absolute path"),
        ("http://[docs", "is not an address"),
    ],
)
def test_other_addresses_are_warned_about(monkeypatch: pytest.MonkeyPatch, address: str, fault: str) -> None:
    monkeypatch.setenv("MERCER_DOCS", address)
    with pytest.warns(MercerWarning, match=f"{fault}.*such as https://"):
        assert SVC()._get_doc_link() == ""
    monkeypatch.setenv("MERCER_DOCS", "file:///home/me/c#/html")
    with warnings.catch_warnings(action="error"):
        assert SVC()._get_doc_link() == "file:///home/me/c%23/html/api/names/mercer.SVC.html"
