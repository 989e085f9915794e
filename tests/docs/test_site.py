"""Tests of the documentation site: it builds without warnings, links lead somewhere, pages fit."""

from __future__ import annotations

import html.parser
import pathlib
import posixpath
import re
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


# Attributes whose value a browser loads without a click, on any tag, and what style sheets load.
LOADING = ("src", "srcset", "poster", "data", "background", "xlink:href")
FETCHED = re.compile(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)")


class Page(html.parser.HTMLParser):
    """A page: its anchors, what it loads, and the (file, anchor) that links within the site name.

    Files are relative to the root of the site.
    """

    def __init__(self, root: pathlib.Path, path: pathlib.Path) -> None:
        super().__init__()
        self.folder = str(path.parent.relative_to(root))
        self.name = str(path.relative_to(root))
        self.targets: set[tuple[str, str]] = set()
        self.loaded: list[str] = []  # by the browser, without a click
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name, value in attrs if name in ("id", "name") and value}
        link = given.get("src") or given.get("href")
        self.loaded += [value for name, value in attrs if name in LOADING and value]
        self.loaded += FETCHED.findall(given.get("style") or "")
        if tag == "link" and link and given.get("rel") not in ("next", "prev", "search"):
            self.loaded.append(link)
        if tag not in ("a", "img", "link", "script") or not link:
            return
        parts = urllib.parse.urlsplit(link)
        if not parts.scheme and not parts.netloc:
            path = urllib.parse.unquote(parts.path)
            file = posixpath.normpath(posixpath.join(self.folder, path)) if path else self.name
            self.targets.add((file, urllib.parse.unquote(parts.fragment)))


@pytest.fixture(scope="session")
def pages(site: pathlib.Path) -> dict[str, Page]:
    """Return all pages by their path below the root of the site."""
    found = [Page(site, path) for path in sorted(site.rglob("*.html"))]
    return {page.name: page for page in found}


def test_no_link_is_dead(site: pathlib.Path, pages: dict[str, Page]) -> None:
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    dead = []
    for page in pages.values():
        for file, anchor in page.targets:
            anchors = pages[file].anchors if file in pages else {anchor}
            if file not in files or (anchor and anchor not in anchors):
                dead.append(f"{page.name}: {file}#{anchor}")
    assert not dead


def is_elsewhere(link: str) -> bool:
    """Return whether a browser needs the network for a link."""
    return not link.startswith("data:") and "//" in link


def test_nothing_is_loaded_from_elsewhere(site: pathlib.Path, pages: dict[str, Page]) -> None:
    for page in pages.values():
        assert not list(filter(is_elsewhere, page.loaded)), page.name
    for path in site.rglob("*.css"):
        assert not list(filter(is_elsewhere, FETCHED.findall(path.read_text("utf-8")))), path.name
    for path in site.rglob("*.js"):
        found = re.findall(r"(?:fetch|import|open|src\s*=)\W+https?://[^\"'`\s]+", path.read_text())
        assert not found, path.name


TWO_CLICKS = (
    "install.html", "tutorial.html", "tutorials/gradients.html", "tutorials/compiling.html",
    "tutorials/training.html", "tutorials/from_pytorch.html", "devices.html", "plugins.html",
    "gallery.html", "api/duograph.ops.html#duograph.ops.exp",
    "api/duograph.nn.html#duograph.nn.Dense",
    "api/duograph.mint.html#duograph.mint.cat", "api/duograph.html#duograph.jit",
)  # fmt: skip


@pytest.mark.parametrize("wanted", TWO_CLICKS)
def test_two_clicks_lead_there(pages: dict[str, Page], wanted: str) -> None:
    first = pages["index.html"].targets
    second = [pages[file].targets for file in {file for file, _ in first} if file in pages]
    file, _, anchor = wanted.partition("#")
    assert (file, anchor) in first.union(*second)


def test_every_public_name_is_in_the_reference(pages: dict[str, Page]) -> None:
    command = "import reference, importlib; print(*[n.path for m in reference.MODULES"
    command += " for n in reference.names_of(importlib.import_module(m))])"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT / "docs", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    names = set(done.stdout.split())
    anchors = set().union(*[page.anchors for page in pages.values()])
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
