"""Tensors that a condition or loop chooses: writes in place and stores reach the tensor itself.

Each program runs compiled and line by line on the same calls. Values, the outside objects, and
which of them are one object must agree; compiled code that cannot know says so and runs line by
line.
"""

from __future__ import annotations

import itertools
import linecache
import warnings
from typing import Any

import duograph as ms
import pytest
from duograph import Parameter, Tensor, nn

STATE = "y = net.last + 1; z = net.other + 1"
# name: code before the condition, in its branches and after it, the result
CONDITIONS = {
    "two variables": ("", "u = x * 2; v = u", "u = x * 3; v = u", "u[1] = 9.", "v + 0"),
    "two values": ("", "u = x * 2; v = u.copy()", "u = x * 3; v = u.copy()", "u[1] = 9.", "v + 0"),
    "one of two copied": ("", "u = x * 2; v = u.copy()", "u = x * 3; v = u", "u[1] = 9.", "v + 0"),
    "shared in the first branch": (
        "v = x * 5",
        "u = x * 2; v = u",
        "u = x * 3",
        "u[1] = 9.",
        "v + 0",
    ),
    "shared in the second branch": (
        "v = x * 5",
        "u = x * 2",
        "u = x * 3; v = u",
        "u[1] = 9.",
        "v + 0",
    ),
    "with one from before": ("w = x * 2", "u = w", "u = x * 3", "w[1] = 9.", "u + 0"),
    "with a Parameter": ("", "P[0] = 3.; u = P", "u = x * 3", "L.append(u)", "u + 0"),
    "attribute": ("", "net.last = x * 2", "net.last = x * 3", "net.last[1] = 9.", "net.last + 0"),
    "attribute, read before": (
        STATE,
        "net.last = x * 2",
        "net.last = x * 3",
        "net.last[1] = 9.",
        "z",
    ),
    "attribute, by method": (
        STATE,
        "net.last = x * 2",
        "net.last = x * 3",
        "net.last.add_(x)",
        "z",
    ),
    "attribute, from itself": (
        "",
        "net.last = x * 2",
        "net.last += x",
        "net.last[1] = 9.",
        "x + 0",
    ),
    "attribute, written in branch": (
        "",
        "net.last[0] = 5.",
        "net.last = x * 3",
        "net.last[1] = 9.",
        "x + 0",
    ),
    "attribute and variable": (
        STATE,
        "u = x * 2; net.last = u",
        "u = x * 3; net.last = u",
        "u[1] = 9.",
        "z",
    ),
    "attribute in one branch": (
        STATE,
        "u = x * 2; net.last = u",
        "u = x * 3",
        "u[1] = 9.",
        "net.last + 0",
    ),
    "attribute and tuple": (
        STATE,
        "p = (x * 2, 1); net.last = p[0]",
        "p = (x * 3, 1); net.last = p[0]",
        "p[0][1] = 9.",
        "z",
    ),
    "two attributes": (
        STATE,
        "net.last = x * 2; net.other = net.last",
        "net.last = net.other = x * 3",
        "net.last[1] = 9.",
        "net.other + 0",
    ),
    "overwritten": (
        STATE,
        "net.last = net.other = x * 2",
        "net.last = net.other = x * 3",
        "q = net.last; net.last = x * 7; q[1] = 9.",
        "z",
    ),
    "exchanged": (
        STATE,
        "net.last, net.other = net.other, net.last",
        "net.last = x * 3",
        "net.last[1] = 9.",
        "z",
    ),
    "exchanged, kept": (
        STATE,
        "net.last, net.other = net.other, net.last",
        "net.last = x * 3",
        "L.append(net.last)",
        "z",
    ),
    "item of a list": ("y = L[0] + 1", "L[0] = x * 2", "L[0] = x * 3", "L[0][1] = 9.", "L[0] + y"),
    "item of a dict": ("y = D['a'] + 1", "D['a'] = x * 2", "D['a'] = x * 3", "D['a'][1] = 9.", "y"),
    "global name": ("y = G + 1", "G = x * 2", "G = x * 3", "G[1] = 9.", "G + y"),
    "attribute of a Cell": (
        "y = cell.last + 1",
        "cell.last = x * 2",
        "cell.last = x * 3",
        "cell.last[1] = 9.",
        "y",
    ),
    "appended": (
        "y = L[0] + 1",
        "L.append(x * 2)",
        "L.append(x * 3)",
        "L[-1][1] = 9.",
        "L[-1] + y",
    ),
    "appended later": (
        STATE,
        "net.last = x * 2",
        "net.last = x * 3",
        "L.append(net.last); L[-1][1] = 9.",
        "z",
    ),
    "appended before": (
        STATE,
        "net.last = x * 2; L.append(net.last)",
        "net.last = x * 3; L.append(net.last)",
        "net.last[1] = 9.",
        "z",
    ),
    "written under a condition": (
        STATE,
        "net.last = x * 2",
        "net.last = x * 3",
        "if x.sum() > 2: net.last[1] = 9.",
        "z",
    ),
    "nested": (
        STATE,
        "net.last = x * 2 if x.sum() > 2.5 else x * 4",
        "net.last = x * 3",
        "net.last[1] = 9.",
        "z",
    ),
    "gradient": (
        STATE,
        "net.last = ms.grad(lambda t: (t * t).sum())(x)",
        "net.last = x * 3",
        "net.last[1] = 9.",
        "z",
    ),
    "argument kept": ("", "u = x", "u = x * 3", "L.append(u)", "u + 0"),
    "argument kept as attribute": ("", "u = x * 3", "u = x", "net.last = u", "u + 0"),
    "argument or its copy": ("", "u = x", "u = x.copy()", "L.append(u)", "u + 0"),
    "argument or attribute": ("", "u = net.other", "u = x", "net.last = u; L.append(u)", "u + 0"),
    "argument, written before": ("x[0] = 5.", "u = x", "u = x * 3", "L.append(u)", "u + 0"),
    "argument, written in branch": ("", "x[0] = 5.; u = x", "u = x * 3", "L.append(u)", "u + 0"),
    "argument, written after": ("", "u = x", "u = x * 3", "L.append(u); x[1] = 7.", "u + 0"),
    "argument, chosen twice": (
        "",
        "u = x if x.sum() > 2.5 else x * 4",
        "u = x * 3",
        "L.append(u)",
        "u + 0",
    ),
    "argument, kept under a condition": (
        "",
        "u = x",
        "u = x * 3",
        "if x.sum() < 2: L.append(u)",
        "u + 0",
    ),
    "argument, in an expression": (
        "u = x if x.sum() > 0 else x * 3",
        "L.append(u)",
        "pass",
        "pass",
        "u + 0",
    ),
    "present attribute kept": (
        STATE + "; net.last = x * 5",
        "u = net.last",
        "u = x * 3",
        "net.other = u",
        "z",
    ),
    "kept with the original": (
        "v = x * 5",
        "u = v",
        "u = x * 3",
        "L.append(u); L.append(v)",
        "u + 0",
    ),
    "constant kept": (
        "v = Tensor([1., 2., 3.])",
        "u = v",
        "u = x * 3",
        "L.append(u); L.append(v)",
        "u + 0",
    ),
    "constant of the branch": (
        "",
        "u = w = Tensor([1., 2., 3.]); w[0] = 4.",
        "u = w = x * 3",
        "L.append(u); w[0] = 7.",
        "u + 0",
    ),
    "written before it is kept": ("u = x * 1", "u[0] = 5.", "net.last = u", "L.append(u)", "u + 0"),
    "kept before it is written": ("u = x * 1", "net.last = u", "u[0] = 5.", "L.append(u)", "u + 0"),
    "constant, kept or written": (
        "u = Tensor([1., 2., 3.])",
        "net.last = u",
        "u[0] = x[1]",
        "L.append(u)",
        "u + 0",
    ),
    "early return": (
        "",
        "L.append(x)\n    return x * 2",
        "u = x * 3",
        "L.append(u); u[0] = 5.",
        "u + 0",
    ),
}
# name: code before, an iteration of a loop, code after it, the result
LOOPS = {
    "attribute": (STATE, "net.last = x * i", "net.last[1] = 9.", "z"),
    "two names": ("u = v = x * 1", "u = x * i; v = u", "u[1] = 9.", "v + 0"),
    "variable, attribute": (STATE + "; u = y", "u = x * i; net.last = u", "u[1] = 9.", "z"),
    "written inside": (STATE, "net.last = x * i; net.last[1] = 9.", "pass", "z"),
    "written first": (STATE, "net.last[1] = 9.; net.last = x * i", "pass", "z"),
    "exchanged": (STATE, "net.last, net.other = net.other, net.last", "net.last[1] = 9.", "z"),
    "kept with the original": ("u = v = x * 1", "u = x * i", "L.append(u); L.append(v)", "u + 0"),
}
# name: a function, how it is called; the attribute that it sets is written afterwards
FUNCTIONS = {
    "gradient": ("net.last = t * 2\n    return (t * t).sum()", "g = ms.grad(h)(x)"),
    "gradient of a condition": (
        "net.last = t * 2 if t.sum() > 0 else t * 3\n    return (t * t).sum()",
        "g = ms.grad(h)(x)",
    ),
    "recursion": (
        "if t.sum() > 2: return h(t * 0.5)\n    net.last = t * 2\n    return net.last",
        "g = h(x); g[1] = 8.",
    ),
}
PROGRAMS = {
    **{
        name: f"def f(x):\n  global G\n  {before}\n  if x.sum() > 0:\n    {a}\n  else:\n    {b}\n"
        f"  {after}\n  return {result}\n"
        for name, (before, a, b, after, result) in CONDITIONS.items()
    },
    **{
        f"loop: {name}": f"def f(x):\n  {before}\n  i = 0\n  while i < x.sum():\n    {iteration}\n"
        f"    i += 1\n  {after}\n  return {result}\n"
        for name, (before, iteration, after, result) in LOOPS.items()
    },
    **{
        f"function: {name}": f"def f(x):\n  {STATE}\n  def h(t):\n    {body}\n  {call}\n"
        "  net.last[1] = 9.\n  return g + z\n"
        for name, (body, call) in FUNCTIONS.items()
    },
}
CALLS = ([2.0, 0.5, 0.5], [1.0, 0.5, 0.5], [-1.0, 0.0, 0.5], [2.0, 0.5, 0.5])
# what runs line by line, because a graph cannot know which tensor is meant
LINE_BY_LINE = {
    "one of two copied", "shared in the first branch", "shared in the second branch",
    "with one from before", "attribute, written in branch", "attribute in one branch", "exchanged",
    "argument, written after", "argument, chosen twice", "argument, kept under a condition",
    "constant of the branch", "early return",
    "loop: attribute", "loop: two names", "loop: variable, attribute", "loop: written first",
    "loop: exchanged", "loop: kept with the original", "function: gradient",
    "function: gradient of a condition", "function: recursion", "argument, in an expression",
}  # fmt: skip


class Holder:
    """A plain object that holds two tensors."""

    def __init__(self) -> None:
        self.last = Tensor([0.0, 0.0, 0.0])
        self.other = Tensor([1.0, 1.0, 1.0])


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.last = Tensor([0.0, 0.0, 0.0])


def loaded(source: str, space: dict[str, Any]) -> Any:
    """Execute a program whose source `jit` can read; return its function `f`."""
    file = f"<chosen tensors {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)
    return space["f"]


def observed(name: str, compile_it: Any) -> list[Any]:
    """Call a program several times; return what each call did and which objects are one."""
    space = {
        "ms": ms, "Tensor": Tensor, "net": Holder(), "cell": Net(), "L": [Tensor([0.0, 0.0, 0.0])],
        "D": {"a": Tensor([0.0, 0.0, 0.0])}, "G": Tensor([0.0, 0.0, 0.0]),
        "P": Parameter(Tensor([1.0, 2.0, 3.0]), name="p"),
    }  # fmt: skip
    f = compile_it(loaded(PROGRAMS[name], space))
    found = []
    for values in CALLS:
        x = Tensor(values)
        result = f(x).asnumpy().tolist()
        net, cell = space["net"], space["cell"]
        held = [x, net.last, net.other, cell.last, space["D"]["a"], space["G"], space["P"]]
        held += space["L"]
        same = [a is b for a, b in itertools.combinations(held, 2)]
        found.append((result, [t.asnumpy().tolist() for t in held], same))
    return found


@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_line_by_line(name: str, level: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = observed(name, ms.jit(jit_level=level))
    assert got == observed(name, lambda f: f)
    said = [str(w.message) for w in caught if "runs line by line" in str(w.message)]
    assert len(said) == (name in LINE_BY_LINE), said


@pytest.mark.parametrize("name", sorted(LINE_BY_LINE))
def test_strict_refuses(name: str) -> None:
    with pytest.raises((ms.errors.UnsupportedSyntaxError, ms.errors.JoinError)):
        observed(name, ms.jit(jit_syntax_level="STRICT"))


# code of a function that writes in place, and the arguments of its calls
ALIASES = {
    "argument at a location": (
        "x[0] = 9.; r = net.last + 1; net.last = x * 2",
        ["Tensor([1., 1., 1.])", "net.last", "net.last", "net.other", "Tensor([1., 1., 1.])"],
    ),
    "location that is an argument": (
        "net.last[0] = 9.; r = x + 1; net.last = x * 2",
        ["Tensor([1., 1., 1.])", "net.last", "net.last", "net.other", "Tensor([1., 1., 1.])"],
    ),
    "two locations": ("net.last[0] = 9.; r = net.other + 1; net.last = net.other = x * 2", []),
    "two locations, kept": ("net.last[0] = 9.; r = net.other + 1; net.other = net.last", []),
    "location and item": ("net.last[0] = 9.; r = L[0] + 1; net.last = L[0]", []),
    "item and location": ("L[0][0] = 9.; r = net.last + 1; net.last = L[0]", []),
    "exchanged": ("net.last[0] = x[0]; net.last, net.other = net.other, net.last; r = L[0]", []),
    "location that gets a Parameter": ("net.last.add_(x); net.last = P; r = P + x", []),
    "argument kept": (
        "r = net.last + x; net.last = x; x[0] = r[0]",
        ["Tensor([1., 1., 1.])", "net.last", "net.other", "net.last"],
    ),
    "global name and item": ("global G; G.add_(G); r = L[0] + x; L[0] = G; G = G + 1", []),
}


@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("name", ALIASES)
def test_locations_that_hold_one_tensor(name: str, level: str) -> None:
    """Two outside locations, or an argument and one, may become one tensor between calls."""
    code, arguments = ALIASES[name]
    source = f"def f(x):\n  {code.replace('; ', chr(10) + '  ')}\n  return r\n"

    def seen(compile_it: Any) -> list[Any]:
        space = {
            "Tensor": Tensor, "net": Holder(), "L": [Tensor([5.0, 6.0, 7.0])],
            "G": Tensor([2.0, 3.0, 4.0]), "P": Parameter(Tensor([1.0, 2.0, 3.0]), name="p"),
        }  # fmt: skip
        f = compile_it(loaded(source, space))
        found = []
        for text in arguments or ["Tensor([0.5, 0.25, 1.0])"] * 4:
            x = eval(text, space)
            result = f(x).asnumpy().tolist()
            held = [x, space["net"].last, space["net"].other, *space["L"], space["G"], space["P"]]
            same = [a is b for a, b in itertools.combinations(held, 2)]
            found.append((result, [t.asnumpy().tolist() for t in held], same))
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seen(ms.jit(jit_level=level)) == seen(lambda f: f)


@pytest.mark.parametrize("times", [0, 2])
@pytest.mark.parametrize(
    "before, iteration, result",
    [
        ("o = Box(x)", "o = Box(y)", "o.v * 2"),
        ("o = None", "o = Box(y)", "x if o is None else o.v * 2"),
        ("o = Box(x)", "y = y + o.v; o = Box(y)", "y + 0"),
        ("o = Box(x)", "o = Box(y); y = y + o.v", "y + 0"),
        ("o = Box(Box(x))", "o.v = Box(y)", "o.v.v + 0"),
        ("o = [Box(x)]", "o[0] = Box(y)", "o[0].v + 0"),
        ("o = Box(x)", "o = Box(y) if i > 0 else o", "o.v + 0"),
    ],
)
def test_objects_that_a_loop_makes(before: str, iteration: str, result: str, times: int) -> None:
    source = (
        "class Box:\n  def __init__(self, v):\n    self.v = v\n"
        f"def f(x, y):\n  {before}\n  i = Tensor(0)\n  while i < {times}:\n    i = i + 1\n"
        f"    {iteration}\n  return {result}\n"
    )
    f = loaded(source, {"Tensor": Tensor})
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 5.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = ms.jit(f)(x, y).asnumpy().tolist()
    assert got == f(x, y).asnumpy().tolist()
