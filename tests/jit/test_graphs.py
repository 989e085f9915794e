"""From source to graph: the graph, the errors, and the reports about compilation."""

from __future__ import annotations

import re

import duograph as ms
import numpy as np
import pytest
from duograph import passes
from duograph.errors import JoinError, UnsupportedSyntaxError
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify


def t(*values):
    return ms.Tensor(list(values), ms.float32)


def ops_of(graph):
    return [node.op.name for node in graph.nodes]


# ---- the graph
# ----------------------------------------------------------------------------------------


def test_source_becomes_a_graph(load):
    """Parameters, constants, calls; functions are values while the source is read.

    F01: source to AST to functional graph
    F02: types and shapes are inferred on it, constants folded
    """
    f = load(
        """
        def twice(g, x):
            return g(g(x))

        @ms.jit
        def f(x, y):
            k = len(x.shape) + 1            # known while compiling
            return twice(lambda v: ops.matmul(v, y), x) * k
        """
    )["f"]
    graph = f.graph(ms.Tensor(np.ones((2, 3), np.float32)), ms.Tensor(np.ones((3, 3), np.float32)))
    assert to_text(parse(to_text(verify(graph)))) == (
        "graph(%0: float32[2, 3], %1: float32[3, 3]) {\n"
        "  %2 = matmul(%0, %1, transpose_a=False, transpose_b=False) : float32[2, 3]\n"
        "  %3 = matmul(%2, %1, transpose_a=False, transpose_b=False) : float32[2, 3]\n"
        "  %4 = fill(shape=(), value=3, dtype=float32) : float32[]\n"
        "  %5 = mul(%3, %4) : float32[2, 3]\n"
        "  return %5,\n"
        "}"
    )


PASSES = {
    "arithmetic": ("x * 1 + ops.reshape(x, x.shape)", ["add"]),
    "constants": ("x + (2 + 3) * 4", ["fill", "add"]),
    "equal calls": ("ops.exp(x) + ops.exp(x)", ["exp", "add"]),
    "dead code": ("(ops.exp(x), x + x)[1]", ["add"]),
    "dead branch": ("x + x if x.shape == (2,) else ops.exp(x)", ["add"]),
    "transposes": ("ops.transpose(ops.transpose(x.reshape((1, 2)), (1, 0)), (1, 0)) + 0 * 1", None),
}


@pytest.mark.parametrize("name", PASSES)
def test_passes_simplify_a_function(name, load):
    """F04: simplification, folding, inlining, merging, dead code and branches; `tests/ir` has each
    as text.
    """
    source, want = PASSES[name]
    f = load(f"@ms.jit\ndef f(x):\n    return {source}")["f"]
    graph = passes.run(f.graph(t(1, 2)))
    if want is None:
        assert "transpose" not in ops_of(graph)
    else:
        assert ops_of(graph) == want
    assert ops_of(passes.run(graph)) == ops_of(graph)  # the fixed point


def test_a_switch_over_functions(load):
    """F07: control flow is a switch over functions; G01: both branches are compiled, one runs."""
    f = load(
        """
        @ms.jit
        def f(x):
            if x.sum() > 10:
                y = ops.exp(x)
            elif x.sum() > 0:
                print("middle")
                y = ops.sin(x)
            else:
                y = ops.cos(x)
            return y
        """
    )["f"]
    graph = f.graph(t(1, 2))
    (switch,) = [node for node in graph.nodes if node.op.name == "switch"]
    text = str(graph)
    assert len(switch.graphs) == 2 and all(f"{name}(" in text for name in ("exp", "sin", "cos"))


def test_one_branch_runs(load, capsys):
    """G01: if / elif / else with tensor condition, both branches compiled, one run."""
    f = load(
        """
        @ms.jit
        def f(x):
            if x.sum() > 10:
                print("large")
                return x * 2
            elif x.sum() > 0:
                print("middle")
                return x * 3
            else:
                print("small")
                return x * 4
        """
    )["f"]
    for value, word, factor in (
        (11, "large", 2),
        (1, "middle", 3),
        (-1, "small", 4),
        (20, "large", 2),
    ):
        assert f(t(value)).asnumpy().tolist() == [value * factor]
        assert capsys.readouterr().out == word + "\n"
    assert f.cache_info().misses == 1


FUNCTIONS = {
    "closures made in a loop": (
        """
        def f(x):
            made = []
            for i in range(3):
                def g(v, k=i):
                    return v * k
                made.append(g)
            return [g(x) for g in made]
        """
    ),
    "the two closures of the manual": (
        """
        def closure():
            y = 0
            def first():
                return y + 4
            y = 1
            def second():
                return y + 4
            return first, second
        def f(x):
            first, second = closure()
            return x + first(), x + second()
        """
    ),
    "fibonacci": (
        """
        def fib(n):
            if n < 2:
                return n
            return fib(n - 1) + fib(n - 2)
        def f(x):
            return fib(x[0]) , fib(10)
        """
    ),
    "a function that returns functions": (
        """
        def compose(*gs):
            def run(x):
                for g in gs:
                    x = g(x)
                return x
            return run
        def f(x):
            return compose(ops.exp, lambda v: v + 1, ops.log)(x)
        """
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_values(name, agree):
    """F06: higher-order functions, closures, recursion."""
    agree(FUNCTIONS[name], np.array([7.0, 2.0], np.float32))


# ---- control flow
# -------------------------------------------------------------------------------------

FLOW = {
    "while": "def f(x):\n    n = 0\n    while x.sum() < 50:\n        x = x * 2\n        n += 1\n"
    "    return x, n",
    "for over everything": """
        def f(x):
            total = x * 0
            for a in (x, x + 1):
                total = total + a
            for a in [x, 2]:
                total = total * a
            for i in range(1, 7, 2):
                total = total + i
            for row in ops.stack((x, x * 2)):
                total = total + row
            for i, a in enumerate([x, x]):
                total = total + i * a
            for a, b in zip((x, x), (1, 2)):
                total = total - a * b
            return total
        """,
    "break": """
        def f(x):
            while True:
                x = x * 2
                if x.sum() > 40:
                    break
            return x
        """,
    "continue": """
        def f(x):
            n = x.sum() * 0
            while n < 6:
                n = n + 1
                if n % 2 == 0:
                    continue
                x = x + n
            return x
        """,
    "early return": """
        def f(x):
            for i in range(10):
                x = x + i
                if x.sum() > 20:
                    return x, i
            return x * 0, 99
        """,
    "with": """
        @ms.jit_class
        class Scope:
            def __init__(self):
                self.log = []
            def __enter__(self):
                self.log.append("in")
                return self
            def __exit__(self, *what):
                self.log.append("out")
        def f(x):
            with Scope() as scope:
                x = x * 2
                scope.log.append("mid")
            return x, scope.log
        """,
    "with a Cell": """
        class Scope(nn.Cell):
            def __enter__(self):
                return 3
            def __exit__(self, *what):
                return None
        scope = Scope()
        def f(x):
            with scope as k:
                x = x * k
            return x
        """,
    "dicts": """
        def f(x):
            d = {"a": x, "b": x * 2}
            first = d.pop("a")
            gone = d.pop("nothing", 7)
            made = d.setdefault("c", x * 3)
            same = d.setdefault("b", 0)
            last = d.popitem()
            return first, gone, made, same, last, d
        """,
}


@pytest.mark.parametrize("name", FLOW)
def test_control_flow(name, agree):
    """As Python says.

    G02: while with tensor condition
    G03: for over tuple, list, range, Tensor rows, enumerate, zip
    G05: break, continue, early return inside tensor-conditioned loops
    G11: with statement on jit_class and Cell objects
    G13: dict pop, setdefault, popitem
    """
    agree(FLOW[name], np.array([1.0, 2.0], np.float32))


# ---- attributes
# ---------------------------------------------------------------------------------------

ATTRIBUTES = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.zeros(2, np.float32)), name="w")
        self.m = 1

    def construct(self, x):
        self.w = x
        {more}
        return x + self.w
net = Net()
"""


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_parameter_is_assigned_through_its_name(fullgraph, load):
    """F21: `self.param = x` of a Parameter at STRICT."""
    net = load(ATTRIBUTES.format(more=""))["net"]
    held = net.w
    f = ms.jit(net.construct, fullgraph=fullgraph)
    for x in (t(1, 2), t(3, 4)):
        assert f(x).asnumpy().tolist() == (2 * x.asnumpy()).tolist()
        assert net.w is held and net.w.asnumpy().tolist() == x.asnumpy().tolist()
    assert isinstance(net.w, ms.Parameter)


def test_any_attribute_at_lax(load):
    """F21: any attribute at LAX: `m` becomes 3, a new one 4."""
    net = load(ATTRIBUTES.format(more="self.m = 3; self.new = 4; self.last = x * 5"))["net"]
    ms.jit(net.construct)(t(1, 2))
    assert (net.m, net.new) == (3, 4) and net.last.asnumpy().tolist() == [5, 10]


# ---- errors
# -------------------------------------------------------------------------------------------


def text_of(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


JOINS = {
    "dtype": ("y = x * 2", "y = x.astype(ms.float16)", "Float32", "Float16", "cast one side"),
    "shape": ("y = x * 2", "y = ops.concat((x, x))", "(2,)", "(4,)", "same shape"),
    "kind": ("y = x * 2", "y = 'two'", "Tensor of shape (2,)", "'two'", "one type"),
}


@pytest.mark.parametrize("name", JOINS)
def test_join_error_shows_both_sides(name, load):
    """The message names the variable, both values, both lines and a remedy.

    F03: joins of branches are checked: same type, shape, dtype; the message shows both sides and
        both lines
    O08: a join error is explained by both branch values, with a suggestion that may be a cast
    """
    one, other, first, second, remedy = JOINS[name]
    f = load(
        f"@ms.jit\ndef f(x):\n    if x.sum() > 0:\n        {one}\n    else:\n        {other}\n    "
        "return y"
    )["f"]
    with pytest.raises(JoinError) as caught:
        f(t(1, 2))
    text = text_of(caught.value)
    for part in (
        "'y'",
        first,
        second,
        remedy,
        f"line 4: {one}",
        f"line 6: {other}",
        "if x.sum() > 0:",
    ):
        assert part in text, text


def test_name_bound_by_one_branch(load):
    """G14: the error for a variable that one branch leaves undefined names both."""
    f = load("@ms.jit\ndef f(x):\n    if x.sum() > 0:\n        found = x\n    return found")["f"]
    with pytest.raises(UnboundLocalError) as caught:
        f(t(1, 2))
    text = text_of(caught.value)
    assert "'found'" in text and "'else' branch" in text and "return found" in text


def test_a_compile_error_shows_the_users_program(load):
    """File, line, column, source line, caret, the user's call chain, the construct, a rewrite;
    nothing of ours.

    F11: file, line, column, source line, caret, call chain
    F12: the construct is named and a rewrite suggested
    N13: the text is that of the user's source line
    """
    space = load(
        """
        def inner(x):
            def count():
                yield x
            return sum(count())

        def outer(x):
            return inner(x) + 1

        @ms.jit(fullgraph=True)
        def f(x):
            return outer(x)
        """
    )
    with pytest.raises(UnsupportedSyntaxError) as caught:
        space["f"](t(1, 2))
    lines = text_of(caught.value).splitlines()
    assert len(lines) <= 15
    text = "\n".join(lines)
    assert "yield" in text.lower() and "duograph" not in text
    places = re.findall(r"<test \d+>:(\d+) in (\w+)", text)
    assert [name for _, name in places][:3] == ["f", "outer", "inner"]
    carets = [i for i, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"}]
    assert carets and lines[carets[-1] - 1].strip()
    marked = lines[carets[-1] - 1][lines[carets[-1]].index("^") :]
    assert marked.strip()
    assert len(lines) > carets[-1] + 1  # the remedy


# ---- what is told
# -------------------------------------------------------------------------------------


def test_explain_reports_effects(load):
    """O09: a report per function: what it reads, writes, prints, and whether it draws random
    numbers.
    """
    space = load(
        """
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = ms.Parameter(ms.Tensor(np.zeros(2, np.float32)), name="w")
                self.calls = 0

            @ms.jit
            def construct(self, x):
                self.calls += 1
                print("x", x)
                ops.assign(self.w, x)
                return ops.dropout(x, p=0.5) * 2

        net = Net()

        @ms.jit
        def pure(x):
            return x * 2
        """
    )
    net = space["net"]
    found = type(net).construct.explain(net, t(1, 2))
    assert "w" in found.writes and any("calls" in name for name in found.writes)
    assert found.effects == ["io", "random"]
    assert found.line_by_line == ""
    nothing = space["pure"].explain(t(1, 2))
    assert (nothing.reads, nothing.writes, nothing.effects, nothing.captures) == ([], [], [], [])
    assert "reads: nothing" in str(nothing)


def test_fallbacks_and_recompilations_are_counted(load, warned):
    """O04: every fallback and recompilation is countable from Python, with its reason."""
    space = load(
        """
        k = 2
        def count(x):
            yield x

        @ms.jit
        def counted_broken(x):
            return sum([v for v in count(x)])

        @ms.jit
        def counted(x):
            return x * k
        """
    )
    before = ms.jit_stats()
    ms.set_context(stale_captures="recompile")
    space["counted_broken"](t(1, 2)), space["counted_broken"](t(1, 2))
    space["counted"](t(1, 2)), space["counted"](t(1, 2)), space["counted"](t(1, 2, 3))
    space["k"] = 3
    assert space["counted"](t(1, 2)).asnumpy().tolist() == [3, 6]
    after = ms.jit_stats()
    assert after["fallbacks"] - before["fallbacks"] == 2
    assert after["compiles"] - before["compiles"] == 3
    assert after["hits"] - before["hits"] == 1
    (fallen,) = after["reasons"]["counted_broken"]
    assert fallen.startswith("runs line by line")
    one, two, three = after["reasons"]["counted"]
    assert "argument x was float32[2]" in one and "recompiled" in two and "k" in two
    assert "one program for shapes (s0)" in three
    assert len([w for w in warned if "line by line" in str(w.message)]) == 1


def test_fallbacks_are_calls_that_ran_line_by_line(load, warned):
    """Compiling counts nothing; each call counts once, also under a derivative or of a Cell."""
    space = load(
        """
        def items(x):
            yield x

        @ms.jit
        def broken(x):
            return sum([v for v in items(x)])

        @ms.jit
        def masked(x, m):
            return (x[m] * 2).sum()

        class Broken(ms.nn.Cell):
            def construct(self, x):
                return sum([v for v in items(x)])
        """
    )
    broken, masked, cell = space["broken"], space["masked"], ms.jit(space["Broken"]())
    before = ms.jit_stats()["fallbacks"]
    broken.explain(t(1, 2)), broken.compile(t(1, 2))
    assert broken.cache_info().fallbacks == 0
    broken(t(1, 2)), broken(t(1, 2)), broken(t(1, 2, 3))
    ms.set_context(jit=False)
    broken(t(1, 2))  # not asked to be compiled
    ms.set_context(jit=True)
    assert broken.cache_info().fallbacks == 3 and broken.cache_info().misses == 0

    x, m = ms.Tensor([1.0, 2.0]), ms.Tensor([True, False])
    masked(x, m), ms.grad(masked)(x, m), ms.grad(masked)(x, m)
    assert masked.cache_info().fallbacks == 2
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(UnsupportedSyntaxError):
        ms.grad(masked)(x, m)
    ms.set_context(jit_syntax_level=ms.LAX)
    assert masked.cache_info().fallbacks == 2

    assert cell(t(1, 2)).asnumpy().tolist() == cell(t(1, 2)).asnumpy().tolist() == [1, 2]
    assert ms.jit_stats()["fallbacks"] - before == 7


def test_functions_of_one_name_keep_their_reasons(load):
    """O04: a function's reasons are not lost because another one has its name."""
    one, two = (load("@ms.jit\ndef namesake(x):\n    return x * 2")["namesake"] for _ in range(2))
    one(t(1)), one(t(1, 2)), two(t(1)), two(t(1, 2, 3))
    told = " ".join(ms.jit_stats()["reasons"]["namesake"])
    assert "float32[2]" in told and "float32[3]" in told


def test_the_policy_of_stale_captures(load, warned):
    """N01: recompile when a captured value changes; O03: or warn and keep, raise, ignore."""
    space = load("k = 2\n@ms.jit\ndef f(x):\n    return x * k")
    f = space["f"]
    assert str(f(t(1))) == "[2.]"
    space["k"] = 3
    ms.set_context(stale_captures="ignore")
    assert str(f(t(1))) == "[2.]" and not warned
    ms.set_context(stale_captures="warn")
    assert str(f(t(1))) == "[2.]" and len(warned) == 1
    ms.set_context(stale_captures="error")
    with pytest.raises(RuntimeError, match=r"k was 2 .* is 3"):
        f(t(1))
    ms.set_context(stale_captures="recompile")
    assert str(f(t(1))) == "[3.]"
