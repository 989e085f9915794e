"""Tests of the documentation site: it builds without warnings, links lead somewhere, pages fit."""

from __future__ import annotations

import html.parser
import pathlib
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Build the whole site; the tutorials are executed."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, ROOT / "docs", out], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return out


class Page(html.parser.HTMLParser):
    """The links of a page, and the anchors that it has."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []  # by the browser, without a click
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name, value in attrs if name in ("id", "name") and value}
        for name in ("href", "src"):
            if given.get(name) and tag in ("a", "img", "link", "script"):
                self.links.append(str(given[name]))
        loads = tag in ("img", "script") or given.get("rel") in ("stylesheet", "icon")
        if loads:
            self.loaded.append(str(given.get("src") or given.get("href") or ""))


@pytest.fixture(scope="session")
def pages(site: pathlib.Path) -> dict[pathlib.Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def target(path: pathlib.Path, link: str) -> tuple[pathlib.Path, str] | None:
    """Return the file and the anchor that a link leads to; None if it leaves the site."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    file = path if not parts.path else (path.parent / urllib.parse.unquote(parts.path)).resolve()
    return file, urllib.parse.unquote(parts.fragment)


def test_no_link_is_dead(pages: dict[pathlib.Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            found = target(path, link)
            if found is None:
                continue
            file, anchor = found
            anchors = pages[file].anchors if file in pages else {anchor}
            if not file.is_file() or (anchor and anchor not in anchors):
                dead.append(f"{path.name}: {link}")
    assert not dead


def test_nothing_is_loaded_from_elsewhere(pages: dict[pathlib.Path, Page]) -> None:
    for path, page in pages.items():
        assert not [x for x in page.loaded if "//" in x], path


TWO_CLICKS = (
    "install.html", "tutorial.html", "tutorials/gradients.html", "tutorials/compiling.html",
    "tutorials/training.html", "tutorials/from_pytorch.html", "devices.html", "plugins.html",
    "gallery.html", "api/duograph.ops.html#duograph.ops.exp",
    "api/duograph.nn.html#duograph.nn.Dense",
    "api/duograph.mint.html#duograph.mint.cat", "api/duograph.html#duograph.jit",
)  # fmt: skip


@pytest.mark.parametrize("wanted", TWO_CLICKS)
def test_two_clicks_lead_there(
    site: pathlib.Path, pages: dict[pathlib.Path, Page], wanted: str
) -> None:
    def after_a_click(starts: set[pathlib.Path]) -> set[tuple[pathlib.Path, str]]:
        links = [(path, link) for path in starts if path in pages for link in pages[path].links]
        return {found for path, link in links if (found := target(path, link))}

    first = after_a_click({site / "index.html"})
    second = after_a_click({file for file, _ in first})
    file, _, anchor = wanted.partition("#")
    assert ((site / file), anchor) in first | second


def test_every_public_name_is_in_the_reference(pages: dict[pathlib.Path, Page]) -> None:
    command = "import reference, importlib; print(*[n.path for m in reference.MODULES"
    command += " for n in reference.names_of(importlib.import_module(m))])"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT / "docs", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    names = set(done.stdout.split())
    anchors = set().union(*[page.anchors for path, page in pages.items()])
    assert len(names) > 2500 and not names - anchors


# ---- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
    ):
        options.add_argument(argument)
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


SEARCHES = {
    "Tensor": "duograph.Tensor", "jit": "duograph.jit", "nn.Dense": "duograph.nn.Dense",
    "detect_anomaly": "duograph.detect_anomaly",
}  # fmt: skip


@pytest.mark.parametrize("word", SEARCHES)
def test_search_finds(site: pathlib.Path, browser: Any, word: str) -> None:
    browser.get(f"{(site / 'search.html').as_uri()}?q={word}")
    wanted = f"#{SEARCHES[word]}"

    def links(driver: Any) -> list[str]:
        found = driver.find_elements(By.CSS_SELECTOR, "#search-results li a")
        return [a.get_attribute("href") for a in found]

    WebDriverWait(browser, 60).until(lambda d: any(x.endswith(wanted) for x in links(d)))


FITTING = (
    "index", "install", "tutorial", "tutorials/gradients", "tutorials/compiling",
    "tutorials/training", "tutorials/from_pytorch", "devices", "plugins", "gallery", "compile",
    "options", "performance", "architecture", "differences", "api/index", "api/duograph",
    "api/duograph.nn", "api/duograph.train",
)  # fmt: skip


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", FITTING)
def test_pages_fit(site: pathlib.Path, browser: Any, name: str, width: int) -> None:
    """No page is wider than the window; wide tables and code move within themselves."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((site / f"{name}.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
