"""Measure how fast the page of `show` opens, and reacts to clicks, in headless Chromium.

Usage: pages.py [--nodes N] [--repeats N] [--picture FILE]

The page is about a compiled network of so many nodes (2,000 by default), with its passes, kernels,
memory and gradients. "open" is the time from the request to the drawn graph, as the browser
measures it; on a busy machine, the processor time of the page's thread says more. The others are
the times from a click to the next frame. It needs selenium, chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import statistics
import tempfile
import time

import duograph as ms
import numpy as np
from duograph import ops
from duograph.pages import Page
from selenium import webdriver

# JavaScript: runs a statement and answers with the milliseconds until the frame after it is drawn.
TIMED = """
const done = arguments[arguments.length - 1], begin = performance.now();
%s;
requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
"""
ACTIONS = {
    "a click on a node": "document.querySelector('#graph .box').dispatchEvent("
    "new MouseEvent('click', {bubbles: true}))",
    "the next pass": "const s = document.getElementById('slider'); s.value = Number(s.value) + 1; "
    "s.dispatchEvent(new Event('input', {bubbles: true}))",
    "a view, the memory": "[...document.querySelectorAll('#tabs button')].find("
    "b => b.textContent.includes('Memory')).click()",
    "back to the graph": "[...document.querySelectorAll('#tabs button')].find("
    "b => b.textContent.includes('Graph')).click()",
}


def network(nodes: int) -> Page:
    """Return the page of a function whose graph has about so many nodes."""
    layers = max(1, nodes // 5)

    @ms.jit
    def deep(x: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
        for _ in range(layers):
            x = ops.tanh(x * 0.5 + 1.0) @ w - x
        return x.sum()

    random = np.random.default_rng(0)
    x, w = (ms.Tensor(random.standard_normal((16, 16)).astype(np.float32)) for _ in range(2))
    return deep.show(x, w)


def browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1400,900", "--disable-gpu"):
        options.add_argument(argument)
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def processor_ms(driver: webdriver.Chrome) -> float:
    """Return the processor time that the page's thread has used since the page was requested."""
    found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(m["value"] for m in found if m["name"] == "TaskDuration") * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--picture", type=pathlib.Path, help="write a picture of the window")
    args = parser.parse_args()
    ms.set_context(device_target="CPU")
    begin = time.perf_counter()
    page = network(args.nodes)
    made = time.perf_counter() - begin
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        address = page.save(pathlib.Path(folder) / "page.html").resolve().as_uri()
        driver = browser()
        try:
            driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            for _ in range(args.repeats):
                driver.get(address)
                ready = driver.execute_script("return document.body.dataset.ready")
                times.setdefault("open", []).append(float(ready))
                times.setdefault("its processor time", []).append(processor_ms(driver))
                boxes = len(driver.find_elements("css selector", "#graph .box"))
                for name, action in ACTIONS.items():
                    took = driver.execute_async_script(TIMED % action)
                    times.setdefault(name, []).append(float(took))
            if args.picture:
                driver.save_screenshot(str(args.picture))
        finally:
            driver.quit()
    size = len(str(page)) / 2**20
    print(f"{boxes} boxes are drawn; the page has {size:.1f} MiB, and was made in {made:.1f} s")
    for name, found in times.items():
        print(f"{name:<20} {statistics.median(found):8.0f} ms, at most {max(found):.0f}")


if __name__ == "__main__":
    main()
