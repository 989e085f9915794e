"""Random programs that use the sizes of their arguments, each called with many sizes.

The compiler makes the sizes symbolic when it compiles a function for the third shape; the compiled
program then serves several sizes. The random programs compute with sizes, compare them, print them,
store them outside the function, and use them as shapes, slice bounds, indices and numbers. `fuzz`
runs the programs; it counts a program that cannot be compiled, and runs line by line, as refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from .program_runs import Program

__all__ = ["program"]

HEAD = """
import math

class Box:
    def __init__(self):
        self.n = 0
        self.total = 1

    def add(self, k):
        self.total = self.total + k
        return self.total

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([0.5, -0.25, 0.75]), name="w")
        self.scale = 2

    def construct(self, x, y):
        return body(x, y)

net, box, seen = Net(), Box(), []
WATCH = ("net.w", "net.scale", "box.n", "box.total", "seen")

def half(a):
    return a[: len(a) // 2]

def centred(a):
    return a - a.sum(0) / max(len(a), 1)

def rows(a):
    return a.shape[0]
"""
# Kinds of values: r is (n, 3), t (m, 3), c (n,), g (3, n), w (3,), s 0-d, p some rows of 3; z is an
# int that depends on sizes, k a condition on sizes, q a condition on Tensors, v any Tensor.
TEMPLATES: dict[str, Sequence[str]] = {
    "r": (
        "{r} + {r}", "{r} * {r}", "ops.tanh({r})", "{r} * {w}", "{r} + {c}.reshape(-1, 1)",
        "{g}.T", "{r} - {r}.mean(0)", "ops.softmax({r}, 0)", "{r}.cumsum(0)",
        "ops.flip({r}, (0,))", "ops.cat([{r}[1:], {r}[:1]])", "ops.cat([{r}, {t}])[: x.shape[0]]",
        "ops.roll({r}, 1, 0)", "ops.where({r} > 0, {r}, {r} * 0.5)",
        "ops.matmul(ops.matmul({r}, {g}), {r}) * 0.1", "{r} / (1 + {z})", "{r} * {z}",
        "ops.ones((x.shape[0], 3)) * {s}", "{r} + {s}", "ops.zeros_like({r}) + {w}",
        "ops.arange(x.shape[0]).reshape(-1, 1) * {r}", "centred({r})",
        "ops.gather({r}, ops.arange(len(x) - 1, -1, -1), 0)", "{r}.reshape(-1).reshape(x.shape)",
        "ops.transpose({r}.reshape(3, -1), (1, 0))", "ops.broadcast_to({w}, x.shape)",
        "ops.tile({w}.reshape(1, 3), (x.shape[0], 1))", "ops.pad({r}, (0, 0, 1, 1))[1:-1]",
        "ops.stack([{r}, {r}]).sum(0)", "ops.masked_fill({r}, {r} > 0.5, 0.25)", "ops.relu({r})",
        "ops.dropout({r}, 0.5)", "ops.standard_normal(x.shape)", "ops.ones_like({r}) * {z}",
        "ops.full(x.shape, {z}, dtype=ms.float32)", "({r} if {k} else {r})",
        "ms.grad(lambda a: (a * a * {z}).sum())({r})", "ms.grad(lambda a: centred(a).sum())({r})",
        "ms.vmap(lambda a: a * 2 + {w})({r})", "ops.layer_norm({r}, (3,), {w}, {w}, 1e-5)",
        "ops.sort({r}, 0)[0]", "{r}.reshape(x.shape[0], 1, 3)[:, 0]",
        "ops.repeat_elements({r}, 2, 0)[::2]", "ops.outer({c}, {w})",
        "{r} * ops.eye(x.shape[0])[:, :1]", "ops.tril({r})",
        "ops.concat((x.view(-1)[:3].reshape(1, -1), {r}))[1:]", "{r}.expand_dims(0).squeeze(0)",
    ),
    "t": (
        "y", "{t} * 0.5", "{t} - {t}.mean(0)", "ops.tanh({t})", "{t} + {w}", "{t} * {z}",
        "centred({t})",
    ),
    "c": (
        "{r}.sum(1)", "{r}[:, 0]", "{c} * {c}", "ops.arange(x.shape[0]) * 0.5", "{c} - {c}.mean()",
        "ops.ones(x.shape[0]) * {s}", "ops.cumsum({c}, 0)", "ops.matmul({r}, {w})", "{c}[::-1]",
        "ops.linspace(0.0, 1.0, x.shape[0]) if x.shape[0] > 1 else {c}", "{g}.mean(0)",
        "ops.matmul({r}, {g}).diagonal()",
    ),
    "g": (
        "{r}.T", "{g} * 2", "{g} + {c}", "ops.transpose({r}, (1, 0))", "ops.softmax({g}, -1)",
    ),
    "w": (
        "{r}.sum(0)", "{r}.mean(0)", "{p}.sum(0)", "{t}.sum(0) * 0.1", "ops.tanh({w})",
        "{w} + {w}", "{w} * {z}", "net.w", "net.w * {w}", "ops.matmul({g}, {r}).sum(0)",
        "{r}[len(x) // 2]", "{r}[-1]", "{p}.sum(0) * net.scale", "{t}[0]", "ops.matmul({g}, {c})",
    ),
    "p": (
        "{r}[:{z}]", "{r}[{z}:]", "{r}[-{z}:]", "{r}[::2]", "{r}[1:-1]", "half({r})", "{t}[:{z}]",
        "ops.cat([{r}, {t}])", "{r}[{z} // 2 : {z}]", "ops.cat([{p}, {p}])", "{r}[-3:]",
        "{r}[::-2]", "ops.tile({r}, (2, 1))", "ops.split({r}, 2)[0]", "ops.chunk({r}, 2)[0]",
        "{r}[len(x) // 3 :: 3]", "{r}.reshape(-1, 3)", "ops.pad({r}, (0, 0, 0, {z}))",
        "ops.diff({r}, axis=0)", "ops.narrow({r}, 0, 0, 2)",
    ),
    "s": (
        "{r}.sum()", "{c}.mean()", "{w}[0]", "{w}.sum()", "{p}.sum()", "{r}.max()",
        "{t}.mean() * 0.5", "Tensor(0.5) * {z}", "(x.shape[0] * {w}).sum()",
    ),
    "z": (
        "x.shape[0]", "y.shape[0]", "len(x)", "x.shape[0] // 2", "x.shape[0] % 3", "{z} + {z}",
        "rows({p})", "min(x.shape[0], y.shape[0])", "max(x.shape[0], 4)", "(x.shape[0] - 1)",
        "x.size", "{r}.shape[0]", "abs({z} - {z})", "-(-x.shape[0] // 2)", "{z} * 2",
        "({z} if {k} else {z})", "2", "3", "x.ndim", "x.shape[0] & 3", "(x.shape[0] >> 1)",
        "divmod(len(x), 3)[1]", "{p}.shape[0]", "x.shape[-2]", "int(x.shape[0] / 2)",
        "sum(x.shape)", "[*x.shape, {z}][0]", "net.scale", "{p}.size // 3",
    ),
    "k": (
        "x.shape[0] > 4", "x.shape[0] == y.shape[0]", "x.shape[0] % 2 == 0", "len(x) < 6",
        "x.shape == y.shape", "x.shape[0] in (5, 7)", "2 < x.shape[0] <= 6",
        "x.shape[0] and y.shape[0]", "not len(x) % 3", "{z} > {z}", "isinstance({z}, int)",
        "{z} != {z}", "rows({p}) >= 3", "x.shape[0] * 2 > y.shape[0] + 1",
    ),
    "q": (
        "{s} > 0.5", "{w}.sum() < 1", "({r} > 2).any()", "{c}.sum() > {z}",
    ),
    "v": (
        "{r}", "{r}", "{w}", "{s}", "{c}", "{p}", "{t}", "{g}",
    ),
}  # fmt: skip
# Expressions without holes, at which a deep expression ends.
ENDS = {"r": "x", "t": "y", "c": "x[:, 1]", "g": "x.T", "w": "net.w", "p": "x[:2]", "s": "x.sum()",
        "z": "x.shape[0]", "k": "x.shape[0] > 4", "q": "x.sum() > 0.5", "v": "x"}  # fmt: skip
WRITES = (
    "[0] = {w}", "[-1] = {w}", "[len(x) // 2] = {w}", "[:2] = {w}", "[1:] = {s}", "[::2] = {w}",
    "[-2:] += {w}", "[:, 1] = {c}", "[:{z}] = {s}", "[{z}:] *= 0.5", "[...] = {r}",
)  # fmt: skip
EFFECTS = (
    "seen.append({z})", "box.n = {z}", "box.add({z})", "ops.assign(net.w, ops.tanh({w}))",
    "seen.append({v})", "net.scale = {z} % 3 + 1", "box.total += {z}", "print('at', {z})",
    "print({w} + 0)", "print(f'{{len(x)}} rows')", "seen[:] = [x.shape]", "net.w[0] = {s}",
)  # fmt: skip
RETURNS = (
    "{r}", "({r}, {z})", "{v} * {z}", "[{v}, {v}, {z}]", "{{'a': {r}, 'n': {z}}}", "{s}", "{p}",
    "({w}, x.shape)", "({p}, {k})",
)  # fmt: skip
LOOPS = ("range({z} % 4)", "range(3)", "({r}, {r})", "{p}", "range(2, {z} // 2)")
NUMBERS = (5, 6, 7, 8, 9, 4, 3, 2, 10, 12, 1, 0)
VALUES = (0.5, -1.0, 0.75, 0.0, 1.0, -0.25, 0.125, 2.0, -1.5, 0.25, 3.0, -0.5)
# Fallbacks say why.
REFUSED = "runs line by line|[Cc]annot join"
HOLE = re.compile(r"\{(\w)\}")


class _Writer:
    """Writes the statements of one program."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.names: dict[str, list[str]] = {"r": ["x"], "t": ["y"]}
        self.count = 0
        self.depth = 0
        self.staged = False

    def pick(self, options: Sequence[str]) -> str:
        return options[self.choose(len(options))]

    def expr(self, kind: str, depth: int) -> str:
        """Return the source of a random expression, nested at most `depth` levels deep.

        `kind` is a key of `TEMPLATES`, which lists the forms of expressions of each kind.
        """
        known = self.names.get(kind, [])
        if known and self.choose(3) == 0:
            return self.pick(known)
        if depth <= 0:
            return self.pick(known) if known else ENDS[kind]
        return self.fill(self.pick(TEMPLATES[kind]), depth - 1)

    def fill(self, template: str, depth: int = 2) -> str:
        """Return a source template with each placeholder such as ``{z}`` replaced by an expression.

        The letter in the placeholder is the kind of the expression; see `expr`.
        """

        def hole(found: re.Match[str]) -> str:
            text = self.expr(found[1], depth)
            return f"({text})" if " " in text else text

        return HOLE.sub(hole, template).replace("{{", "{").replace("}}", "}")

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def block(self) -> list[str]:
        """Return the indented source lines of a random block.

        Later expressions do not use the names that the block binds.
        """
        names = {k: list(v) for k, v in self.names.items()}
        self.depth += 1
        lines = [line for _ in range(1 + self.choose(2)) for line in self.statement()]
        self.depth -= 1
        self.names = names
        return ["    " + line for line in lines]

    def statement(self) -> list[str]:
        """Return the source lines of one random statement."""
        form = self.choose(12 if self.depth < 2 else 7)
        if form < 3:
            kind = self.pick("rrwzzcpst")
            value, name = self.expr(kind, 2), self.fresh(kind)
            self.names.setdefault(kind, []).append(name)
            return [f"{name} = {value}"]
        if form == 3:
            kind = self.pick([k for k in self.names if self.names[k] and k != "p"])
            operator = self.pick(("=", "+=", "*="))
            return [f"{self.pick(self.names[kind])} {operator} {self.expr(kind, 2)}"]
        if form == 4:
            value, name = self.expr("r", 1), self.fresh("r")
            self.names["r"].append(name)
            return [f"{name} = {value} * 1", self.fill(f"{name}{self.pick(WRITES)}", 1)]
        if form < 7:
            return [self.fill(self.pick(EFFECTS))]
        return self.nested(form)

    def nested(self, form: int) -> list[str]:
        """Return the source lines of an `if`, `for` or `while` statement, which `form` selects."""
        if form < 10:
            self.staged |= form == 9
            lines = [f"if {self.expr('q' if form == 9 else 'k', 1)}:", *self.block()]
            if form != 9 and self.choose(5) == 0:
                lines.append(f"    return {self.fill(self.pick(RETURNS))}")
            elif self.choose(2):
                lines += ["else:", *self.block()]
            return lines
        name = self.fresh("i")
        if form == 10:
            over = self.pick(
                ("range({z} % 4)", "range(3)", "({r}, {r})", "{p}", "range(2, {z} // 2)")
            )
            return [f"for {name} in {self.fill(over, 1)}:", *self.block()]
        self.staged = True
        more = self.fill(" and {q}", 1) if self.choose(2) else ""
        return [
            f"{name} = Tensor(0)",
            f"while {name} < 3{more}:",
            f"    {name} = {name} + 1",
            *self.block(),
        ]

    def program(self, cell: bool) -> str:
        lines = [line for _ in range(1 + self.choose(5)) for line in self.statement()]
        lines.append(f"return {self.fill(self.pick(RETURNS))}")
        head = ["def body(x, y):"] if cell else ["@jit", "def f(x, y):"]
        body = "\n".join([*head, *("    " + line for line in lines)])
        return f"{HEAD}\n{body}\n" + ("f = net\n" if cell else "")


def program(choose: Callable[[int], int]) -> Program:
    """Return a random program that uses its arguments' sizes, with inputs of several shapes.

    Args:
        choose: function that returns an int from 0 to its argument - 1. It makes all decisions, so
            that equal results of `choose` give equal programs.
    """
    cell = choose(5) == 4
    writer = _Writer(choose)
    source = writer.program(cell)
    alike, few = choose(2) == 0, choose(3)
    # Compiling raises an op's error in a branch that is not taken too, such as x[-1] of no rows.
    numbers = NUMBERS if few == 0 and not writer.staged else NUMBERS[:9]

    def array(rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        start = choose(len(VALUES))
        return np.resize(np.array(VALUES[start:] + VALUES[:start], np.float32), (rows, 3))

    series = []
    for _ in range(5 + choose(2)):
        n = numbers[choose(len(numbers))]
        series.append((array(n), array(n if alike else numbers[choose(len(numbers))])))
    return Program(
        source, positions=(0, 1), weights="net.trainable_params()", name="sizes", near=1e-5,
        series=tuple(series), calls=len(series), rounded="grad(" in source, refused=REFUSED,
        mode="graph mode" if cell else "jit",
    )  # fmt: skip
