"""Reports in a browser without a window: accessible in light and dark, inert, without requests, narrow enough."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install 'mercer[test]'")
from selenium.webdriver.chrome.service import Service  # noqa: E402 - after it is known to be there

AXE = Path(os.environ.get("MERCER_AXE", Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"))
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = [name for name, found in (("chromium", CHROMIUM), ("chromedriver", DRIVER)) if found is None] + (
    [] if AXE.is_file() else [f"{AXE} (npm install axe-core)"]
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"reports are not looked at in a browser without {MISSING}"),
]

EVIL = "<img src=x onerror=\"document.title='ran'\">"
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def binary() -> mercer.reports.document.Report:
    """Two classes, one of them with a name that is a tag, like a column."""
    X = pd.DataFrame(RNG.normal(size=(120, 3)), columns=[EVIL, "b" * 300, "c $x$"])
    y = np.where(X.iloc[:, 0] * X.iloc[:, 1] > 0, EVIL, "other")
    return mercer.report(mercer.SVC(C=10.0).fit(X[:80], y[:80]), X[80:], y[80:], X_train=X[:80], y_train=y[:80])


def ten_classes() -> mercer.reports.document.Report:
    X = RNG.normal(size=(200, 2))
    y = np.arange(200) % 10
    X[:, 0] += y
    search = mercer.GridSearchCV(mercer.KernelLogisticRegression(), {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}, cv=3)
    return mercer.report(search.fit(X[:100], y[:100]), X[100:], y[100:])


def process() -> mercer.reports.document.Report:
    X = RNG.normal(size=(60, 1))
    model = mercer.GaussianProcessRegressor(1.0 * mercer.kernels.RBF(1.0), noise=0.1).fit(X, np.sin(X[:, 0]))
    return mercer.report(model, X[::2] + 0.1, np.sin(X[::2, 0]), X_train=X, y_train=np.sin(X[:, 0]))


def strings() -> mercer.reports.document.Report:
    texts = [f"{word} {number}" for number in range(20) for word in ("free cash", "see you", EVIL)]
    y = np.array(["spam", "ham", EVIL] * 20)
    model = mercer.SVC(kernel=mercer.kernels.Spectrum(3).normalized()).fit(texts[:45], y[:45])
    return mercer.report(model, texts[45:], y[45:])


@functools.cache
def page_of(made: Any, folder: Path) -> str:
    return made().save(folder / f"{made.__name__}.html").as_uri()


def _show(browser: Any, made: Any, folder: Path, width: int = 1000, theme: str = "light") -> None:
    uri = page_of(made, folder)
    browser.get_log("browser"), browser.get_log("performance")
    media = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(uri)
    browser.execute_script("document.querySelectorAll('details').forEach(part => { part.open = true })")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


MADE = [binary, ten_classes, process, strings]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("made", MADE)
def test_it_is_accessible(browser: Any, folder: Path, made: Any, theme: str) -> None:
    _show(browser, made, folder, theme=theme)
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script("axe.run(document).then(arguments[0], arguments[0])")
    assert found["passes"]
    assert [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found["violations"]] == []


@pytest.mark.parametrize("made", MADE)
def test_it_loads_nothing_and_has_no_errors(browser: Any, folder: Path, made: Any) -> None:
    _show(browser, made, folder)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in sent if not url.startswith("data:")] == [page_of(made, folder)]
    assert browser.get_log("browser") == []


def test_the_policy_forbids_scripts_and_the_network(browser: Any, folder: Path) -> None:
    _show(browser, process, folder)
    browser.execute_script(
        "const script = document.createElement('script'); script.textContent = 'document.title = \"ran\"';"
        "const image = document.createElement('img'); image.src = 'https://example.org/a.png';"
        "document.body.append(script, image)"
    )
    assert browser.title == "GaussianProcessRegressor: y"
    messages = " ".join(entry["message"] for entry in browser.get_log("browser"))
    assert messages.count("Content Security Policy") >= 2


@pytest.mark.parametrize("made", [binary, strings])
def test_names_are_inert(browser: Any, folder: Path, made: Any) -> None:
    _show(browser, made, folder)
    assert browser.title == "SVC: y"
    assert browser.execute_script("return document.querySelectorAll('img, script, [onerror]').length") == 0
    assert EVIL in browser.execute_script("return document.body.textContent")


@pytest.mark.parametrize("made", MADE)
def test_nothing_scrolls_sideways_on_a_narrow_screen(browser: Any, folder: Path, made: Any) -> None:
    _show(browser, made, folder, width=320)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 320


def test_a_notebook_shows_the_page_in_a_frame(browser: Any, folder: Path) -> None:
    path = folder / "notebook.html"
    frame = binary()._repr_html_()
    path.write_text(f"<!doctype html><meta charset='utf-8'><title>n</title>{frame}", encoding="utf-8")
    browser.get(path.as_uri())
    browser.switch_to.frame(0)
    assert "SVC" in browser.execute_script("return document.querySelector('h1').textContent")
    assert browser.execute_script("return document.querySelectorAll('svg').length") > 3
    browser.switch_to.default_content()
