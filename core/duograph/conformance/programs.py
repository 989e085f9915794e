"""Random programs as source text, for comparing compiled code with line-by-line execution.

Every value is a float32 vector of three elements, or a number; the programs differ in what compilers get wrong: control
flow on tensors and on constants, nested; loops that carry tensors and end early; parameters, attributes and elements
that are assigned; prints, exceptions, random numbers, helper functions, lists and dictionaries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .parity import Program

__all__ = ["programs"]

SIZE = 3
HEAD = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([0.5, -0.25, 1.0]), name="w")
        self.b = Parameter(Tensor([0.125, 0.25, -0.5]), name="b")
        self.n = 1
        self.last = Tensor([0.0, 0.0, 0.0])
        self.log = []

    def construct(self, x):
        return ops.tanh(x * self.w + self.b)

net = Net()
FACTOR = 0.5
WATCH = ("net.w", "net.b", "net.n", "net.last", "net.log")
"""
UNARY = (
    "ops.tanh({a})", "ops.sin({a})", "ops.sigmoid({a})", "ops.relu({a})", "-{a}", "{a} * 0.5", "1 - {a}", "{a}.abs()",
    "{a}[::-1]", "ops.softmax({a}, 0)", "{a} - {a}.mean()", "net({a})", "ops.cos({a} * FACTOR)", "({a} * {a}) * 0.25",
)  # fmt: skip
BINARY = (
    "({a} + {b}) * 0.5", "{a} * {b} * 0.5", "{a} - {b}", "ops.maximum({a}, {b})", "ops.where({a} > 0.1, {a}, {b})",
    "{a} / ({b} * {b} + 1)", "ops.minimum({a}, {b} + 0.5)",
)  # fmt: skip
NUMBERS = ("0.25", "-0.75", "1.5", "2")


class Writer:
    """Draws statements and writes them down; `names` are the vectors in scope."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.count = 0
        self.helpers: list[str] = []
        # features that take part, so that the smallest failing program has few
        self.random = draw(st.booleans())
        self.effects = draw(st.booleans())
        self.raises = draw(st.booleans())
        self.budget = draw(st.integers(2, 14))
        self.branched = False

    def pick(self, *of: str) -> str:
        return self.draw(st.sampled_from(of))

    def maybe(self) -> bool:
        found: bool = self.draw(st.booleans())
        return found

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- expressions --------------------------------------------------------------------------

    def vector(self, names: list[str], depth: int = 2) -> str:
        kind = self.draw(st.integers(0, 9)) if depth else 0
        if kind <= 2:
            return self.pick(*names)
        if kind <= 5:
            return self.pick(*UNARY).format(a=self.atom(names, depth))
        if kind <= 7:
            left, right = self.atom(names, depth), self.atom(names, depth)
            return f"({self.pick(*BINARY).format(a=left, b=right)})"
        if kind == 8:
            if self.helpers and self.maybe():
                return f"{self.pick(*self.helpers)}({self.pick(*names)}, {self.pick(*names)})"
            return self.pick("(net.w * {})", "(net.b + {})", "(net.last + {})", "({} * net.n)").format(
                self.pick(*names)
            )
        condition = self.pick(f"{self.pick(*names)}.sum() > 0", f"{self.pick(*names)}[0] < 0.5", "net.n > 1")
        return f"({self.pick(*names)} if {condition} else {self.pick(*names)})"

    def atom(self, names: list[str], depth: int) -> str:
        """An expression that a method or an operator may follow."""
        text = self.vector(names, depth - 1)
        return text if text.isidentifier() else f"({text})"

    def condition(self, names: list[str], numbers: list[str]) -> str:
        a, b = self.pick(*names), self.pick(*names)
        kinds = [
            f"{a}.sum() > {self.pick(*NUMBERS)}",
            f"{a}[{self.pick('0', '1', '-1')}] < {self.pick(*NUMBERS)}",
            f"{a}.mean() > {b}.mean()",
            f"({a} > {b}).any()",
            f"{a}.max() > 0 and {b}.min() < 0.5",
            f"not {a}.sum() > 0",
            f"{a}.sum() > 0 or {b}.sum() > 0",
            "net.n > 1",
            f"{a}.shape[0] == 3",
            "FACTOR > 1",
        ]
        kinds += [f"{n} % 2 == 0" for n in numbers] + [f"{n} < 2" for n in numbers]
        return self.pick(*kinds)

    # ---- statements ---------------------------------------------------------------------------

    def block(
        self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool
    ) -> bool:
        """Statements; whether the last one leaves the block. `inside`: under a tensor condition or in a tensor loop."""
        names = list(names)
        for _ in range(self.draw(st.integers(1, 3))):  # noqa: SIM110 (a statement is written)
            if self.statement(indent, names, numbers, loop, inside):
                return True
        return False

    def statement(
        self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool
    ) -> bool:
        self.budget -= 1
        simple = [self.assign, self.rebind, self.element]
        nested = [self.branch, self.for_loop, self.while_loop] if self.budget > 0 and indent < 5 else []
        leaving = [self.leave] if self.budget > -8 and indent > 1 else []
        extra = [self.container]
        if self.effects:
            extra += [self.write, self.write, self.say]
        if self.random:
            extra.append(self.noise)
        if self.raises and indent > 1:
            extra.append(self.fail)
        kinds = [*simple, *nested, *nested, *extra, *leaving]
        made: Any = kinds[self.draw(st.integers(0, len(kinds) - 1))]
        return bool(made(indent, names, numbers, loop, inside))

    def assign(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        value = self.vector(names)
        name = self.fresh("v")
        self.put(indent, f"{name} = {value}")
        names.append(name)

    def rebind(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        name = self.pick(*names)
        operator = self.pick("=", "+=", "-=", "*=")
        if operator == "=":
            self.put(indent, f"{name} = {self.vector(names)}")
        else:
            self.put(indent, f"{name} {operator} ops.tanh({self.vector(names)})")

    def element(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        a, b = self.pick(*names), self.pick(*names)
        name = self.fresh("e")  # a tensor of its own: elements of arguments are the business of other tests
        self.put(indent, f"{name} = {a} * 1")
        at = self.pick("0", "-1", "1:", ":2", "::2")
        value = {"0": f"{b}[1]", "-1": "0.5", "1:": f"{b}[:2]", ":2": "0.25", "::2": f"{b}[1:] * 2"}[at]
        self.put(indent, f"{name}[{at}] {self.pick('=', '=', '+=')} {value}")
        names.append(name)

    def container(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        name, out = self.fresh("c"), self.fresh("v")
        a, b, c = self.pick(*names), self.pick(*names), self.pick(*names)
        k = self.draw(st.integers(0, 5))
        if k == 0:
            self.put(indent, f"{name} = [{a}, {b}]")
            self.put(indent, f"{name}.append({self.vector(names)})")
            self.put(indent, f"{name}[0] = {name}[-1] + {c}")
            self.put(indent, f"{out} = ({name}[0] + {name}[1]) * 0.25 * len({name})")
        elif k == 1:
            self.put(indent, f"{name} = {{'a': {a}, 'b': {b}}}")
            self.put(indent, f"{name}['c'] = {self.vector(names)}")
            self.put(indent, f"{out} = {name}['a'] * 0.5 + {name}.get('c') - {name}.pop('b') * 0.5")
        elif k == 2:
            self.put(indent, f"{name} = [t * i for i, t in enumerate(({a}, {b}, {c}))]")
            self.put(indent, f"{out} = sum({name}) * 0.25")
        elif k == 3:
            self.put(indent, f"{name}, {out} = {a} * 0.5, {b} + {c} * 0.25")
            names.append(name)
        elif k == 4:
            self.put(indent, f"{out} = {a} * 0")
            item = self.fresh("t")
            self.put(indent, f"for {item} in ({b}, {c}):")
            self.put(indent + 1, f"{out} = {out} + {item} * 0.5")
        else:
            self.put(indent, f"def {name}(t, k=0.5):")
            self.put(indent + 1, f"return t * k + {a}")
            self.put(indent, f"{out} = {name}({b}) * {name}({c}, k=0.25)")
        names.append(out)

    def write(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        value = self.vector(names)
        kinds = [
            f"ops.assign(net.w, {value})",
            f"ops.assign_add(net.b, ops.tanh({value}))",
            f"net.w[0] = {self.pick(*names)}[1]",
            f"net.w.set_data(ops.tanh({value}))",
            "net.n = net.n + 1",
            f"net.last = {value}",
            "net.n += 2",
        ]
        if not self.branched:  # a list's length may not depend on a tensor
            kinds.append("net.log.append(net.n)")
        self.put(indent, self.pick(*kinds))

    def say(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        value = self.pick(*names, "net.n", "net.w.value()", *[f"{n}.sum()" for n in names[:1]])
        label = self.fresh("p")
        self.put(indent, self.pick(f"print('{label}', {value})", f"print({value})", f"print('{label}')"))

    def noise(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        name = self.fresh("r")
        made = self.pick("ops.standard_normal((3,)) * 0.5", f"ops.dropout({self.pick(*names)}, 0.5)")
        self.put(indent, f"{name} = {made}")
        names.append(name)

    def fail(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        self.branched = True
        self.put(indent, f"if {self.pick(*names)}.sum() > {self.pick('0.5', '2', '5')}:")
        label = self.fresh("e")
        what = self.pick(f"ValueError('{label}')", f"KeyError('{label}', {self.pick(*names)})", "RuntimeError(net.n)")
        self.put(indent + 1, f"raise {what}")

    def leave(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> bool:
        kinds = [f"return {self.vector(names)}"]
        if loop:
            kinds += ["break", "continue", "break"]
        self.put(indent, self.pick(*kinds))
        return True

    # ---- control flow -------------------------------------------------------------------------

    def branch(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> bool:
        self.branched = True
        self.put(indent, f"if {self.condition(names, numbers)}:")
        left = self.block(indent + 1, names, numbers, loop, True)
        if self.maybe():
            if self.budget > 0 and self.maybe():
                self.put(indent, f"elif {self.condition(names, numbers)}:")
                left = self.block(indent + 1, names, numbers, loop, True) and left
            self.put(indent, "else:")
            return self.block(indent + 1, names, numbers, loop, True) and left
        return False

    def for_loop(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        self.branched = True
        i = self.fresh("i")
        if self.maybe():
            self.put(indent, f"for {i} in range({self.draw(st.integers(0, 4))}):")
            inner, counters = names, [*numbers, i]
        else:
            t = self.fresh("t")
            self.put(indent, f"for {i}, {t} in enumerate(({self.pick(*names)}, {self.pick(*names)})):")
            inner, counters = [*names, t], [*numbers, i]
        self.block(indent + 1, inner, counters, "for", inside)
        if self.maybe() and self.budget > 0:
            self.put(indent, "else:")
            self.block(indent + 1, names, numbers, loop, inside)

    def while_loop(self, indent: int, names: list[str], numbers: list[str], loop: str, inside: bool) -> None:
        self.branched = True
        k = self.fresh("k")
        tensor = self.draw(st.integers(0, 2))
        start, step = ("0", "1") if tensor == 0 else ("Tensor(0)", "1")
        self.put(indent, f"{k} = {start}")
        limit = self.draw(st.integers(0, 4))
        more = f" and {self.pick(*names)}.sum() < 4" if self.maybe() else ""
        self.put(indent, f"while {k} < {limit}{more}:")
        self.put(indent + 1, f"{k} = {k} + {step}")
        inside = inside or tensor > 0 or bool(more)
        self.block(indent + 1, names, numbers, "while", inside)

    # ---- the whole ----------------------------------------------------------------------------

    def helper(self) -> None:
        self.branched = True  # where it will be called is not known
        name = self.fresh("helper")
        self.put(0, f"def {name}(a, b):")
        for _ in range(self.draw(st.integers(0, 2))):
            self.statement(1, ["a", "b"], [], "", False)
        self.put(1, f"return {self.vector(['a', 'b'])}")
        self.put(0, "")
        self.helpers.append(name)

    def program(self) -> str:
        for _ in range(self.draw(st.integers(0, 2))):
            self.helper()
        self.branched = False
        self.put(0, "@jit")
        self.put(0, "def f(x, y):")
        names = ["x", "y"]
        for _ in range(self.draw(st.integers(1, 6))):
            if self.statement(1, names, [], "", False):
                break
        else:
            self.put(1, f"return {self.vector(names)} + {' + '.join(names[-4:])}")  # most of it is used
        return HEAD + "\n" + "\n".join(self.lines) + "\n"


_INPUTS = (
    (np.array([0.5, -1.0, 0.75], np.float32), np.array([1.0, 0.25, -0.5], np.float32)),
    (np.array([-0.5, 0.25, -1.5], np.float32), np.array([0.125, 2.0, 0.75], np.float32)),
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs that Python accepts; each with the gradient by its inputs and by its parameters."""
    writer = Writer(draw)
    source = writer.program()
    inputs = draw(st.sampled_from(_INPUTS))
    return Program(source, inputs, (0, 1), "net.trainable_params()", name="fuzz", near=1e-5)
