"""Tests of the page of `show`: its data, and clicks on it in headless Chromium."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import re
import shutil

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.compiler.graph_facts import GraphFacts, changes
from duograph.ir.text import parse
from duograph.pages import render

net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
scale = 2.0


@ms.jit
def predict(x, y):
    """Not markup: <b id="bold">&amp;</script>"""
    z = ops.exp(x * scale) + y
    if z.sum() > 0:
        z = z - 1
    return ops.softmax(net(z))


@ms.jit
def chain(x, y):
    z = ops.exp(x * 2.0) + y
    z = z @ y.T
    return ops.softmax(ops.relu(z) @ z).sum()


@ms.jit(jit_level="O0")
def plain(x):
    return (x + 1).astype(ms.int32)


def tensor(*shape: int) -> ms.Tensor:
    return ms.Tensor(np.ones(shape, np.float32))


def data_of(page: object) -> dict:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', str(page), re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def predicted():
    return predict.show(tensor(8, 16), tensor(8, 16))


@pytest.fixture(scope="module")
def chained():
    return chain.show(tensor(8, 16), tensor(8, 16))


# ---- the data ------------------------------------------------------------------------------------


TEXTS = {
    "branch and layers": (predict, (8, 16), (8, 16)),
    "fused": (chain, (8, 16), (8, 16)),
    "level O0": (plain, (3,)),
}


@pytest.mark.parametrize("function, shapes", [(f, s) for f, *s in TEXTS.values()], ids=TEXTS)
def test_the_text_form_has_what_the_page_has(function, shapes, tmp_path):
    """Every value of the page's data is in the text, except those that only pictures use."""
    page = function.show(*[tensor(*shape) for shape in shapes])
    text, data = page.text(), data_of(page)
    for name, written in {"a.txt": text, "a.TXT": text, "a.html": str(page)}.items():
        assert page.save(tmp_path / name).read_text() == written
    wanted = [data["facts"]["name"], data["facts"]["arguments"], data["facts"]["level"]]
    wanted += [line.strip() for part in data["sources"] for line in part["lines"]]
    for capture in data["facts"]["captures"]:
        wanted.append(f"{capture['name']} = {capture['value']}: {capture['guard']}")
    for program in data["programs"]:
        wanted += [program["title"], *program["notes"]]
        wanted += [stage["pass"] for stage in program["stages"]]
        for stage in (program["stages"][0], program["stages"][-1]):
            for head, _, results, *_ in stage["graph"]["n"]:
                op, attributes, types, file, line, *_ = data["heads"][head]
                wanted += [op, attributes, *types, *[f"%{i} = " for i in results if len(types) < 2]]
                wanted += [f"{data['files'][file]}:{line}"] if file >= 0 else []
            wanted += [each["why"] for each in stage.get("fusion", ())]
        for kernel in program["kernels"]:
            wanted += [line.strip() for line in kernel["source"].splitlines()]
        if program["memory"] is not None:
            wanted.append(f"an arena of {program['memory']['arena']} bytes")
            wanted += [f"bytes {block['offset']} to " for block in program["memory"]["blocks"]]
        wanted += [f"{1e6 * seconds:.1f} us" for seconds in program["times"].values()]
    wanted.append(data["gradient"])
    assert [each for each in wanted if each not in text] == []
    titles = [line for line in text.splitlines() if line.startswith("=== ")]
    assert len(titles) == (3 if not data["gradient"] else 1)


def test_explain_tells_all_that_the_page_shows():
    said = chain.explain(tensor(8, 16), tensor(8, 16))
    wanted = chain.show(tensor(8, 16), tensor(8, 16)).text()
    no_times = re.compile(r",? ?#? ?\d+\.\d us|compiled in .*")
    assert no_times.sub("", said.details()) == no_times.sub("", wanted)


def test_explain_of_a_cell(tmp_path):
    layer = nn.Dense(3, 2)
    said = layer.explain(tensor(4, 3))
    assert said.reads == ["weight", "bias"]
    assert all("\n" not in c.value for c in said.facts.captures)
    text = said.details()
    assert "Dense.construct, compiled for" in text and "Gradient: backward" in text
    assert text.splitlines()[0] == layer.show(tensor(4, 3)).text().splitlines()[0]


def test_the_text_names_calls_of_python_loops_and_recursion():
    @ms.jit
    def descend(n, x):
        return x if n < 1 else descend(n - 1, x * 2)

    @ms.jit
    def run(x):
        k = ms.Tensor(0)
        while k < 3:
            k = k + 1
            x = x + 1
        print("said", x)
        return descend(ms.Tensor(2), x)

    text = run.explain(tensor(2)).details()
    line = run.__wrapped__.__code__.co_firstlineno + 6
    assert re.search(rf"print \(\S*test_page.py:{line} in ", text)
    assert "body:" in text and "function descend" in text and "call descend" in text


@pytest.mark.filterwarnings("ignore:.*runs line by line")
def test_the_text_says_why_a_function_runs_line_by_line():
    @ms.jit
    def run(x):
        return x * float(np.asarray(x.asnumpy().sum()).item()) if x.sum() > 0 else np.ones(2)

    text = run.explain(tensor(2)).details()
    assert "runs line by line: " in text and "===" not in text


def test_the_page_has_the_facts_of_explain(predicted):
    found = data_of(predicted)["facts"]
    said = predict.explain(tensor(8, 16), tensor(8, 16))
    assert found == json.loads(json.dumps(dataclasses.asdict(said.facts)))
    for name in ("reads", "writes", "effects", "captures", "kernels"):
        assert name in found
    text = str(said)
    assert all(read in text for read in found["reads"])
    (capture,) = [c for c in found["captures"] if c["name"] == "scale"]
    assert capture["value"] == "2.0" and "same value" in capture["guard"]


def test_each_call_of_python_is_named_with_its_line():
    seen: list[float] = []

    @ms.jit
    def notes(x):
        seen.append(float(x.sum()))
        print("sum", x)
        return ms.Tensor(np.sort(x.asnumpy()))

    first = notes.function.__code__.co_firstlineno
    said = notes.explain(tensor(2))
    for name, line in (("list.append", 2), ("print", 3), ("asnumpy", 4), ("sort", 4)):
        (call,) = [text for text in said.host_calls if text.startswith(f"{name} ")]
        assert f"{pathlib.Path(__file__).name}:{first + line} in" in call
        assert call in str(said) and call in data_of(notes.show(tensor(2)))["facts"]["host_calls"]


def test_user_text_is_no_markup(predicted):
    text = str(predicted)
    assert '<b id="bold">' not in text and text.count("</script>") == 2
    assert any('<b id="bold">&amp;</script>' in line for s in data_of(text)["sources"]
               for line in s["lines"])  # fmt: skip
    assert "http:" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text)
    assert "https:" not in text


def test_stages_kernels_and_memory(chained):
    function, forward, backward = data_of(chained)["programs"]
    assert [s["pass"] for s in function["stages"]][:1] == ["read"]
    assert function["stages"][-1]["pass"] == "fuse"
    heads = data_of(chained)["heads"]
    ops_of = [[heads[n[0]][0] for n in s["graph"]["n"]] for s in function["stages"]]
    assert "exp" in ops_of[0] and "region" not in ops_of[0]
    assert "exp" not in ops_of[-1] and "region" in ops_of[-1]
    assert any("dg_exp_f32" in kernel["source"] for kernel in function["kernels"])
    memory = function["memory"]
    assert memory["blocks"] and memory["arena"] <= memory["total"]
    for block in memory["blocks"]:
        assert block["offset"] + block["bytes"] <= memory["arena"]
        assert 1 <= block["first"] <= block["last"] <= len(memory["steps"]) + 1
    live = [b for b in memory["blocks"] if b["first"] <= 2 <= b["last"]]
    spans = sorted((b["offset"], b["offset"] + b["bytes"]) for b in live)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), (
        "values that live together overlap"
    )
    assert forward["title"] == "Gradient: forward" and backward["stages"][0]["graph"]["n"]


def test_fusion_decisions(chained):
    decisions = data_of(chained)["programs"][0]["stages"][-1]["fusion"]
    by_op = {each["op"]: each for each in decisions}
    assert by_op["exp"]["kernel"] == by_op["mul"]["kernel"] is not None
    assert by_op["exp"]["why"].startswith("fused: one loop over 128 elements")
    assert (
        by_op["transpose"]["why"]
        == "not fused: it is not elementwise and runs in a kernel of its own"
    )


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ("exp(%0)", "exp(%0)", ([], [], [])),
        ("exp(%0)", "relu(%0)", ([0], [], [0])),
        ("exp(%0), neg(%1), neg(%2)", "neg(%0), neg(%1)", ([], [0], [0])),
        ("exp(%0), relu(%1)", "exp(%0), exp(%1), relu(%2)", ([1], [2], [])),
    ],
)
def test_changes_between_two_stages(before, after, expected):
    facts = GraphFacts()

    def graph(text):
        calls = re.findall(r"\w+\(%\d\)", text)
        lines = [f"%{k + 1} = {call} : float32[2]" for k, call in enumerate(calls)]
        return facts.graph(parse("\n".join(
            ["graph(%0: float32[2]) {", *lines, f"return %{len(calls)}", "}"])))  # fmt: skip

    found = changes(graph(before), graph(after))
    assert (found["new"], found["rewired"], found["gone"]) == expected


@pytest.mark.parametrize(
    "shown, said",
    [
        (lambda: plain.show(tensor(3)), "no result consists of floating-point numbers"),
        (lambda: plain.show(ms.Tensor([1, 2])), "no input of floating-point numbers"),
    ],
)
def test_why_there_is_no_gradient(shown, said):
    found = data_of(shown())
    assert said in found["gradient"] and len(found["programs"]) == 1


def test_a_function_that_runs_line_by_line_has_a_page():
    @ms.jit
    def odd(x):
        tensor.__code__ = tensor.__code__
        return x

    with pytest.warns(RuntimeWarning, match="line by line"):
        found = data_of(odd.show(tensor(2)))
    assert "odd" in found["facts"]["name"] and found["facts"]["line_by_line"]
    assert found["programs"] == [] and found["sources"]


def test_a_cell_in_graph_mode(tmp_path):
    page = net.show(tensor(2, 16))
    assert "Dense" in str(data_of(page)["facts"]["captures"])
    assert page.save(tmp_path / "net.html").read_text() == str(page)
    assert "<iframe" in page._repr_html_() and "save(path)" in repr(page)


@pytest.mark.parametrize("compiled", [chain, predict])
def test_kernels_of_pure_functions_are_timed(compiled):
    function = data_of(compiled.show(tensor(8, 16), tensor(8, 16)))["programs"][0]
    graph, heads = (
        function["stages"][-1]["graph"],
        data_of(compiled.show(*[tensor(8, 16)] * 2))["heads"],
    )
    kernels = {at for at, node in enumerate(graph["n"]) if heads[node[0]][7] in ("fused", "kernel")}
    assert kernels and kernels <= set(map(int, function["times"]))
    assert all(0 < seconds < 1 for seconds in function["times"].values())


def test_functions_with_effects_do_not_run():
    @ms.jit
    def says(x):
        print("once", x)
        return x + 1

    @ms.jit
    def counts(x):
        count.set_data(count + 1)
        return x + count

    count = ms.Parameter(tensor(2), name="count")
    assert data_of(says.show(tensor(2)))["programs"][0]["times"] == {}
    counts.show(tensor(2))
    assert count.asnumpy().tolist() == [1, 1]


# ---- in a browser --------------------------------------------------------------------------------

DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; skipped where it is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium drives the browser")
    if DRIVER is None:
        pytest.skip("no chromedriver on the path: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1400,900", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    made.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    yield made
    made.quit()


class Shown:
    """A page in the browser."""

    def __init__(self, browser, page, folder: pathlib.Path) -> None:
        self.browser = browser
        browser.get(page.save(folder / "page.html").as_uri())

    def all(self, selector: str) -> list:
        return self.browser.find_elements("css selector", selector)

    def click(self, selector: str, text: str = "") -> None:
        found = next(e for e in self.all(selector) if text in e.text)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", found)
        found.click()

    def node(self, title: str):
        """Return the box of the first node with a title."""
        for box in self.all("#graph .box"):
            found = box.find_element("css selector", ".title").get_attribute("textContent")
            if found.startswith(title):
                return box
        raise LookupError(title)

    def press(self, element) -> None:
        """Click on an element of the drawing, wherever other elements are."""
        self.browser.execute_script(
            "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", element
        )

    def titles(self) -> list[str]:
        return [e.get_attribute("textContent") for e in self.all("#graph .title")]

    def processor_seconds(self) -> float:
        """Return the processor time of the page's thread since the page was requested."""
        found = self.browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(metric["value"] for metric in found if metric["name"] == "TaskDuration")

    def errors(self) -> list:
        return [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def shown(browser, tmp_path):
    return lambda page: Shown(browser, page, tmp_path)


def test_the_slider_walks_through_the_passes(shown, chained):
    page = shown(chained)
    assert {"exp", "matmul", "x", "y", "result"} <= set(page.titles())
    slider = page.all("#slider")[0]
    last = int(slider.get_attribute("max"))
    assert last == len(data_of(chained)["programs"][0]["stages"]) - 1 > 0
    for _ in range(last):
        slider.send_keys("\ue014")  # arrow right
    assert "fuse" in page.all("#pass-name")[0].text
    assert "exp" not in page.titles()
    assert page.all("#graph .new")
    assert "removed" in page.all("#pass-changes")[0].text
    assert page.errors() == []


def test_a_node_shows_its_types_source_and_decision(shown, chained):
    page = shown(chained)
    page.press(page.node("exp"))
    text = page.all("#detail")[0].text
    assert "float32[8, 16]" in text and "test_page.py" in text
    (line,) = page.all("#source .on")
    assert "ops.exp(x * 2.0)" in line.text
    page.click("#pass-list button", "fuse")
    page.press(page.node("mul"))
    text = page.all("#detail")[0].text
    assert "fused: one loop over 128 elements" in text
    page.click("#detail a", "generated kernel")
    assert "dg_exp_f32" in page.all("#view-kernels")[0].text
    assert page.errors() == []


def test_a_line_shows_its_nodes(shown, chained):
    page = shown(chained)
    page.click("#source .linked", "z @ y.T")
    lit = [e.get_attribute("textContent") for e in page.all("#graph .lit > .title")]
    assert sorted(lit) == ["matmul", "transpose"]


def test_branches_and_kernels_open_and_close(shown, predicted):
    page = shown(predicted)
    assert "sub" in page.titles()  # a small branch is open
    page.press(page.node("switch").find_element("css selector", ".toggle rect"))
    assert "sub" not in page.titles()
    page.press(page.node("switch").find_element("css selector", ".toggle rect"))
    assert "sub" in page.titles()
    page.click("#pass-list button", "fuse")
    page.click("#zoom button", "Expand")
    assert "exp" in page.titles()
    page.click("#zoom button", "Collapse")
    assert "exp" not in page.titles()
    assert page.errors() == []


def test_the_other_views(shown, chained, predicted):
    page = shown(chained)
    page.click("#tabs button", "Memory")
    blocks = page.all("#memory-chart .block")
    assert len(blocks) == len(data_of(chained)["programs"][0]["memory"]["blocks"]) > 1
    page.browser.execute_script("arguments[0].focus()", blocks[0])
    assert "written by step" in page.all("#memory-note")[0].text
    page.click("#tabs button", "Fusion")
    page.click("#view-why td a", "matmul")  # back to the graph, at the node
    assert page.all("#graph .on") and "matmul" in page.all("#detail h2")[0].text
    page.click("#programs button", "Gradient: backward")
    assert "Gradient: backward" in page.all("#detail h2")[0].text
    page.click("#tabs button", "Captures")
    assert "Compiled for" in page.all("#view-guards")[0].text
    page = shown(predicted)
    page.click("#tabs button", "Memory")
    assert page.all("#view-memory")[0].text.count("step by step") == 1
    page.click("#tabs button", "Captures")
    assert "scale" in page.all("#view-guards")[0].text
    assert page.errors() == []


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_wider_than_the_window(width, shown, predicted):
    page = shown(predicted)
    page.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    try:
        for tab in ("Fusion", "Kernels", "Memory", "Captures", "Graph"):
            page.click("#tabs button", tab)
            wide = page.browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, tab
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_two_thousand_nodes_open_in_two_seconds(shown):
    """Loading and drawing, and clicks, with a graph that has long edges as well.

    The time is the processor time of the page, since the machine may run other tests as well.
    """
    lines, n = [], 2000
    for k in range(2, n + 2):
        far = 2 * (k // 4) if k % 7 == 0 else k - 2
        lines.append(f"  %{k} = add(%{k - 1}, %{max(far, 0)}) : float32[8]")
    text = ["graph(%0: float32[8], %1: float32[8]) {", *lines, f"  return %{n + 1}", "}"]
    facts = GraphFacts()
    graph = facts.graph(parse("\n".join(text)), [["float32[8]", "x", "arg"]] * 2)
    found = data_of(chain.show(tensor(8, 16), tensor(8, 16)))
    stages = [{"pass": f"pass_{k}", "graph": graph} for k in range(12)]
    for stage in stages[1:]:
        stage["changes"] = changes(graph, graph)
    program = {**found["programs"][0], "stages": stages, "kernels": [], "memory": None}
    page = shown(render("big", {**found, "heads": facts.heads, "programs": [program]}))
    seconds = page.processor_seconds()
    assert len(page.all("#graph .box")) >= n
    assert seconds < 2, f"{seconds} s"
    page.press(page.all("#graph .box")[n // 2])
    assert page.all("#detail h2")[0].text.startswith("add")
    page.all("#slider")[0].send_keys("\ue014")  # arrow right: the next pass
    assert "pass 1" in page.all("#pass-name")[0].text
    assert page.errors() == []
