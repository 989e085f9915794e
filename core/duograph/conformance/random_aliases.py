"""Writes random programs in which several names, containers and objects refer to the same Tensors.

Every program writes to such Tensors in place, rebinds and stores them, under conditions and in
loops that depend on Tensors. After each call, the compiled and the eager run must agree in the
values and in which references are to the same object. `fuzz` runs the programs; it counts a program
that falls back to line-by-line execution as refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .program_runs import Program

__all__ = ["program"]

HEAD = """
class Box:
    def __init__(self, v):
        self.v = v

    def set(self, v):
        self.v = v
        return v

    def write(self, k):
        self.v[0] = k
        return self.v

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.v = Tensor([0.25, 0.5])

net, box = Net(), Box(Tensor([1.0, -1.0]))
G = Tensor([2.0, 3.0])
LIST, DICT = [Tensor([4.0, 5.0]), G], {"a": Tensor([6.0, 7.0])}
P = Parameter(Tensor([8.0, 9.0]), name="p")
WATCH = ("box.v", "net.v", "G", "LIST", "DICT", "P", "SAME()")

def SAME():
    held = [box.v, net.v, G, *LIST, *DICT.values(), P]
    return [a is b for a in held for b in held]

def half(a):
    return a * 0.5

def keep(a):
    net.v = a * 2
    return (a * net.v).sum()
"""
# Tensors that a name, a container or an outside object holds.
HELD = (
    "x", "y", "u", "v", "c[0]", "c[1]", "d['k']", "o.v", "t[0]", "box.v", "net.v", "LIST[0]",
    "LIST[-1]", "DICT['a']", "G", "P",
)  # fmt: skip
TARGETS = (
    "u", "v", "x", "c[0]", "c[1]", "d['k']", "o.v", "box.v", "net.v", "LIST[0]", "LIST[1]",
    "DICT['a']", "G",
)  # fmt: skip
COMPUTED = (
    "{h} * 2", "{h} + {h}", "{h}.copy()", "-{h}", "half({h})", "Tensor([1.0, 2.0])", "{h}[0] + {h}",
)  # fmt: skip
CHANGES = (
    "c.reverse()", "c.append({value})", "LIST.append({value})", "LIST.reverse()", "e = c",
    "c[0], c[1] = c[1], c[0]", "u, v = v, u", "box.v, net.v = net.v, box.v", "c = list(c)",
    "c = [*c, {value}]", "d = {{**d}}", "o = Box(c[0])", "t = ({value}, {value})",
    "c = [{value}, {value}]", "u = helper({h}, {h})", "u = {value} if {test} else {value}",
    "u = box.set({value})", "o.set({value})", "u = box.write(3.0)", "o.write({h}[1])",
    "inner({value})",
    "u = ms.grad(lambda q: (q * {h}).sum())({h})", "u = ms.grad(keep)({h})", "del c[0]",
    "c[0:1] = [{value}]", "(w := {h}).add_({h})", "u = c.pop()", "d.update(k={value})",
    "v = d.setdefault('k', {value})", "c.insert(0, {value})", "u = [{value} for q in c][0]",
)  # fmt: skip
HELPERS = (
    "return a", "a[0] = 7.0\n    return b", "box.v = a\n    return a + b",
    "if a.sum() > 1:\n        return a\n    return b",
    "if b.sum() > 1:\n        b[1] = 2.0\n    return b",
)  # fmt: skip
RETURNS = ("u, v", "c[0] + u", "[u, v, o.v]", "u", "box.v * u", "t", "c, d['k']")
NUMBERS = (0.5, 0.75, 2.75, -2.0, 1.0, 3.0, -1.0, 0.25)
# Fallbacks say why; containers of different lengths after a condition are refused.
REFUSED = "runs line by line|Cannot join "


class _Writer:
    """Writes the random statements of one program; `choose(n)` makes each decision."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.depth = 0
        self.loops = 0

    def of(self, options: tuple[str, ...]) -> str:
        """Return one of several source templates, with its placeholders filled in."""
        text = options[self.choose(len(options))]
        while "{h}" in text:
            text = text.replace("{h}", HELD[self.choose(len(HELD))], 1)
        while "{value}" in text:
            text = text.replace("{value}", self.value(), 1)
        if "{test}" in text:
            text = text.replace("{test}", self.test())
        return text.replace("{{", "{").replace("}}", "}")

    def value(self) -> str:
        """Return an expression for an existing Tensor or for a computed one, chosen at random."""
        return self.of(COMPUTED) if self.choose(5) > 2 else self.of(HELD)

    def test(self) -> str:
        """Return the source of a random condition on a Tensor."""
        held = ("x", "y", "u", "c[0]", "box.v", "net.v")[self.choose(6)]
        return f"{held}.sum() {'<>'[self.choose(2)]} {(0, 1, 3)[self.choose(3)]}"

    def block(self) -> list[str]:
        """Return the indented source lines of a nested block of random statements."""
        self.depth += 1
        lines = [line for _ in range(1 + self.choose(3)) for line in self.statement()]
        self.depth -= 1
        return ["    " + line for line in lines]

    def statement(self) -> list[str]:
        """Return the source lines of one random statement."""
        kind = self.choose(21)
        if kind < 6:
            return [f"{self.of(TARGETS)} = {self.value()}"]
        if kind < 10:
            target = self.of(HELD[:-1])
            index = ("0", "1", ":", "-1")[self.choose(4)]
            if self.choose(2):
                return [f"{target}.add_({self.of(HELD)})"]
            value = "5.0" if self.choose(2) else f"{self.of(HELD)}[1]"
            return [f"{target}[{index}] = {value}"]
        if kind < 13:
            return [self.of(CHANGES)]
        if kind < 14 or self.depth > 1:
            operand = "2" if self.choose(2) else self.of(HELD)
            return [f"{self.of(TARGETS)} {'+*'[self.choose(2)]}= {operand}"]
        if kind < 18:
            lines = [f"if {self.test()}:", *self.block()]
            return [*lines, "else:", *self.block()] if self.choose(3) else lines
        if kind < 19:
            self.loops += 1
            name = f"i{self.loops}"
            return [
                f"{name} = Tensor(0)",
                f"while {name} < 2:",
                *self.block(),
                f"    {name} = {name} + 1",
            ]
        return [f"if {self.test()}:", f"    return {self.value()}, c"]


def program(choose: Callable[[int], int]) -> Program:
    """Return a random program with several references to the same Tensors, and its inputs.

    Args:
        choose: function that makes all decisions; it returns a number from 0 to its argument - 1.
    """
    writer = _Writer(choose)
    lines = [line for _ in range(2 + choose(4)) for line in writer.statement()]
    body = "\n    ".join(lines)
    source = f"""{HEAD}
def helper(a, b):
    {HELPERS[choose(len(HELPERS))]}

@jit
def f(x, y):
    global G
    u, v = x, y * 1
    c, d, o, t = [x, v], {{"k": u}}, Box(y), (x, y)
    e = c

    def inner(q):
        nonlocal u
        u = q
        q[0] = 6.0

    {body}
    return {RETURNS[choose(len(RETURNS))]}
"""
    drawn = [[NUMBERS[choose(len(NUMBERS))] for _ in range(2)] for _ in range(4)]
    a, b, c, d = [np.array(v, np.float32) for v in drawn]
    return Program(
        source, (a, b), (0, 1) if choose(3) == 0 else (), name="aliases", near=1e-5, calls=3,
        again=(c, d), refused=REFUSED,
    )  # fmt: skip
