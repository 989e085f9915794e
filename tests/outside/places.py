"""Where an outside object is held, where it is changed, and the program that results."""

from __future__ import annotations

import dataclasses
import textwrap

from .parts import Cell
from .questions import RETURNS

__all__ = ["LOCATIONS", "WHERE", "Location", "applies", "source"]


@dataclasses.dataclass(frozen=True)
class Location:
    """A way for a function to reach an outside object.

    Attributes:
        inner: the object in the function.
        outer: the object outside the function, after the definitions.
        holder: statements that hold the object before the function is defined.
        declare: statement at the start of a function that assigns to the object.
        parameters: of the function, after the tensor.
        bind: statements outside the function that hold another object; "" is an assignment.
        arguments: of a call, after the tensor.
        method: the function is a method of this class, and called on this object.
        constant: a function cannot assign to it.
    """

    inner: str
    outer: str
    holder: str
    declare: str = ""
    parameters: str = ""
    bind: str = ""
    arguments: str = ""
    method: tuple[str, str] | None = None
    constant: bool = False


LOCATIONS = {
    "global": Location("O", "O", "O = FIRST", declare="global O"),
    "closure": Location("o", "get()", "o = FIRST", declare="nonlocal o", bind="put({})"),
    "default": Location(
        "o", "plain.__defaults__[0]", "", parameters=", o=FIRST", constant=True,
        bind="plain.__defaults__ = ({},)",
    ),
    "keyword default": Location(
        "o", 'plain.__kwdefaults__["o"]', "", parameters=", *, o=FIRST", constant=True,
        bind='plain.__kwdefaults__ = {{"o": {}}}',
    ),
    "attribute": Location("H.o", "H.o", "H = types.SimpleNamespace(o=FIRST)"),
    "class attribute": Location("H.o", "H.o", "class H:\n    o = FIRST"),
    "shadowed": Location(
        "H.o", "H.o", "class Held:\n    o = FIRST\nH = Held()",
    ),
    "list item": Location("L[0]", "L[0]", "L = [FIRST]"),
    "dict item": Location('D["o"]', 'D["o"]', 'D = {"o": FIRST}'),
    "tuple item": Location("L[0]", "L[0]", "L = (FIRST,)", bind="L = ({},)", constant=True),
    "module": Location("M.o", "M.o", 'M = types.ModuleType("M")\nM.o = FIRST'),
    "method": Location(
        "self.o", "H.o", "", method=("class Held:", "H"),
    ),
    "Cell": Location(
        "self.o", "H.o", "", method=("class Held(nn.Cell):", "H"),
    ),
    "argument": Location(
        "o", "O", "O = FIRST", parameters=", o", arguments=", O", constant=True, bind="O = {}",
    ),
}  # fmt: skip

# Between calls by this thread or another; in the function, through a local name, in a function that
# it calls, under a condition on a tensor, or in a loop over a tensor's condition.
WHERE = ("outside", "thread", "inside", "alias", "helper", "branch", "loop")
BETWEEN = ("outside", "thread")


def applies(cell: Cell) -> bool:
    """Return whether the parts of a cell make a program that means something."""
    location, change, where = LOCATIONS[cell.location], cell.change, cell.where
    between = where in BETWEEN
    if change.only and (change.only == "outside") != between:
        return False
    if where == "alias" and change.rebinds:
        return False
    if not between and change.rebinds and location.constant:
        return False
    if cell.location == "closure" and change.rebinds and between and change.name != "rebound":
        return False
    if (
        change.rebinds
        and change.name != "rebound"
        and cell.location in ("default", "keyword default", "tuple item")
    ):
        return False
    if where == "helper" and change.rebinds and cell.location in ("closure", "method", "Cell"):
        return False  # the helper would need the receiver, or a declaration of its own
    if where == "helper" and location.constant and cell.location != "tuple item":
        return False  # only the function itself can reach the object
    return not (cell.question.split(":")[0] in RETURNS and cell.config.gradient != "none")


def _ask(cell: Cell, name: str) -> str:
    """The question's statements, with the answer in the variable `name`."""
    code = cell.code.format(o=LOCATIONS[cell.location].inner)
    if name != "k":
        code = f"{code}\n{name} = k"
    return code


def _body(cell: Cell) -> str:
    """The statements of the function."""
    location, change = LOCATIONS[cell.location], cell.change
    returns = cell.question.split(":")[0] in RETURNS
    if cell.where in BETWEEN:
        return f"{_ask(cell, 'k')}\n" + ("return k, a * 2.0" if returns else "return a * k")
    declare = f"{location.declare}\n" if change.rebinds and location.declare else ""
    target = "p" if cell.where == "alias" else location.inner
    code = change.code.format(o=target, n="7.0")
    if cell.where == "alias":
        code = f"p = {location.inner}\n{code}"
    elif cell.where == "helper":
        declare = ""
        code = "helper(self, a)" if location.method else "helper(a)"
    elif cell.where == "branch":
        code = f"if a.sum() > 0:\n{textwrap.indent(code, '    ')}"
    elif cell.where == "loop":
        code = textwrap.indent(code, "    ")
        code = f"t = a.sum() * 0.0 + 2.0\nwhile t > 0:\n{code}\n    t = t - 1.0"
    result = "return j, k, a * 2.0" if returns else "return a * j + k"
    return f"{declare}{_ask(cell, 'j')}\n{code}\n{_ask(cell, 'k')}\n{result}"


def source(cell: Cell) -> str:
    """The program of a cell: defines `call(a)`, `change(n)` and `roots()`."""
    kind, location = cell.kind, LOCATIONS[cell.location]
    lines = [kind.setup, f"def make(n):\n    return {kind.make}", "FIRST = make(2.0)"]
    if "BY_OBJECT" in cell.code:
        lines.append("BY_OBJECT = {FIRST: 3.0}")
    if "total(" in cell.code:
        lines.append("def total(*args, **named):\n    return sum([*args, *named.values()])")
    held = [location.holder]
    if cell.where == "helper":
        code = cell.change.code.format(o=location.inner, n="7.0")
        declare = f"{location.declare}\n" if cell.change.rebinds and location.declare else ""
        parameters = "self, a" if location.method else "a"
        held.append(f"def helper({parameters}):\n{textwrap.indent(declare + code, '    ')}")
    inside = cell.config.gradient == "inside"
    body = textwrap.indent(_body(cell), "    ")
    decorator = "" if inside else "@jit\n"
    if location.method:
        name = "construct" if location.method[0].endswith("(nn.Cell):") else "f"
        init = "def __init__(self):\n"
        if name == "construct":
            init += "    super().__init__()\n"
        init += "    self.o = FIRST"
        method = f"{decorator}def {name}(self, a):\n{body}"
        held.append(f"{location.method[0]}\n{textwrap.indent(init + chr(10) + method, '    ')}")
        held.append(f"{location.method[1]} = Held()")
        function = "H" if name == "construct" else "H.f"
    else:
        function = "f"
        held.append(f"def plain(a{location.parameters}):\n{body}")
        held.append("f = plain" if inside else "f = jit(plain)")
    if cell.config.gradient == "outside":
        held.append(
            f"def call(a):\n    return ms.value_and_grad({function})(a{location.arguments})"
        )
    elif inside:
        held.append(
            f"@jit\ndef call(a):\n    return ms.value_and_grad({function})(a{location.arguments})"
        )
    else:
        held.append(f"def call(a):\n    return {function}(a{location.arguments})")
    text = "\n".join(x for x in held if x)
    if cell.location == "closure":
        ends = "def put(value):\n    nonlocal o\n    o = value\nreturn call, lambda: o, put"
        body = textwrap.indent(f"{text}\n{ends}", "    ")
        text = f"def build():\n{body}\ncall, get, put = build()"
    lines.append(text)
    if cell.where in BETWEEN:
        change = cell.change
        if change.name == "rebound" and location.bind:
            code = location.bind.format("make(n)")
        else:
            code = change.code.format(o=location.outer, n="n")
        declare = "global O, L\n" if change.rebinds else ""
        lines.append(f"def change(n):\n{textwrap.indent(declare + code, '    ')}")
    roots = ", ".join([location.outer, "FIRST", *kind.roots])
    lines.append(f"def roots():\n    return [{roots}]")
    return "\n".join(x for x in lines if x) + "\n"
