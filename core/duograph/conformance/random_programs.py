"""Writes random Python programs, for comparing compiled code with line-by-line execution.

`fuzz` runs them. The programs combine features that compilers easily get wrong: nested control flow
on tensors and on constants; loops that carry tensors and end early; writes to Parameters,
attributes, globals, elements of tensors and items of containers; prints, exceptions, random
numbers; helper functions, closures, recursion, Cells; and gradients. The value of a name keeps its
dtype and shape, because compiled branches and iterations must not change them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .program_runs import Program
from .program_templates import BPROP, CELL, CHANGES, HEAD, INDEX, ITEMS, REFUSED, RETURNS
from .random_expressions import ExpressionWriter, Scope

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["program"]


class ProgramWriter(ExpressionWriter):
    """Writes the random statements of a test program that runs compiled and eagerly."""

    # ---- statements ---------------------------------------------------------------------------

    def block(self, scope: Scope) -> bool:
        """Append one to three random statements to the generated test program.

        Returns:
            Whether the last statement leaves the block, as `return` or `break` does.
        """
        return any(self.statement(scope) for _ in range(1 + self.choose(3)))

    def statement(self, scope: Scope) -> bool:
        self.budget -= 1
        kinds: list[Callable[..., object]] = [
            self.assign,
            self.rebind,
            self.element,
            self.container,
            self.change_container,
        ]
        if self.budget > 0 and scope.indent < 5:
            kinds += [self.branch, self.for_loop, self.while_loop] * 2 + [self.closure]
        if self.budget > -8 and scope.indent > 1:
            kinds.append(self.leave)
        for feature, found in (
            ("effects", [self.write, self.write, self.print_statement]),
            ("items", [self.write_item, self.write_item]),
            ("random", [self.random_vector]),
            ("raises", [self.raise_statement]),
            ("host", [self.python_number, self.python_number]),
            ("python", [self.python_feature, self.python_feature, self.object]),
        ):
            if feature in self.on and (feature != "raises" or scope.indent > 1):
                kinds += found
        return bool(self.pick(kinds)(scope))

    def bind(self, scope: Scope, kind: str, value: str, prefix: str = "") -> str:
        name = self.fresh(prefix or kind)
        self.put(scope, f"{name} = {value}")
        scope.names.setdefault(kind, []).append(name)
        return name

    def assign(self, scope: Scope) -> None:
        kind = str(self.pick("vvvsmuzhib")) if "kinds" in self.on else "v"
        self.bind(scope, kind, self.expr(kind, scope))

    def rebind(self, scope: Scope) -> None:
        kind = str(self.pick([k for k in scope.names if scope.names[k]]))
        name = self.pick(scope.names[kind])
        operator = self.pick(("=", "+=", "-=", "*="))
        if operator == "=" or kind == "b":
            self.put(scope, f"{name} = {self.expr(kind, scope)}")
        elif kind == "i":
            self.put(scope, f"{name} {operator} {self.expr('i', scope)} % 2")
        else:
            self.put(scope, f"{name} {operator} ops.tanh({self.expr(kind, scope)})")

    def element(self, scope: Scope) -> None:
        """Append an assignment to a random element or slice of a tensor to the test program."""
        name = self.pick(scope.names["v"])
        if self.maybe():
            name = self.bind(scope, "v", f"{name} * 1", "e")
        at = self.pick(INDEX)
        value = self.fill(self.pick(ITEMS[at]), scope)
        # the number of elements that a mask selects is unknown when compiling, so there is no
        # gradient through reading them
        operator = "=" if at == "{b}" else self.pick(("=", "=", "+=", "*="))
        self.put(scope, f"{name}[{self.fill(at, scope, 0)}] {operator} {value}")

    def container(self, scope: Scope) -> None:
        """Append to the test program statements that create and use a list, dict or tuple."""
        name = self.fresh("c")
        k = self.choose(9)
        fill = self.fill
        if k == 0:
            self.put(scope, fill(f"{name} = [{{v}}, {{v}}]", scope))
            scope.lists[name] = 2
        elif k == 1:
            self.put(scope, fill(f"{name} = {{{{'a': {{v}}, 'b': {{v}}}}}}", scope))
            scope.dicts.append(name)
        elif k == 2:
            self.put(
                scope, fill(f"{name} = [t * i for i, t in enumerate(({{v}}, {{v}}, {{v}}))]", scope)
            )
            scope.lists[name] = 3
        elif k == 3:
            other = self.fresh("v")
            self.put(scope, fill(f"{name}, {other} = {{v}}, {{v}}", scope))
            scope.names["v"] += [name, other]
        elif k == 4:
            self.bind(scope, "v", fill("{v} * 0", scope))
            item, out = self.fresh("t"), scope.names["v"][-1]
            self.put(scope, fill(f"for {item} in ({{v}}, {{v}}):", scope))
            self.put(scope, f"{out} = {out} + {item} * 0.5", 1)
        elif k == 5:
            head, rest = self.fresh("v"), self.fresh("c")
            self.put(scope, fill(f"{head}, *{rest} = {{v}}, {{v}}, {{v}}", scope))
            scope.names["v"].append(head)
            scope.lists[rest] = 2
        elif k == 6:
            self.put(
                scope,
                fill(
                    f"{name} = {{{{k: t * 0.5 for k, t in zip(('a', 'b'), ({{v}}, {{v}}))}}}}",
                    scope,
                ),
            )
            scope.dicts.append(name)
        elif k == 7 and (scope.lists or scope.dicts):
            self.copy_container(scope, name)
        else:
            self.put(
                scope, fill(f"{name} = {{{{'a': [{{v}}, {{v}}], 'b': ({{v}}, {{n}})}}}}", scope)
            )
            self.put(scope, fill(f"{name}['a'][{{j}}] = {{v}}", scope))
            self.bind(
                scope, "v", f"{name}['a'][0] + {name}['a'][1] * {name}['b'][0] * {name}['b'][1]"
            )

    def copy_container(self, scope: Scope, name: str) -> None:
        """Append to the test program an assignment of a list or dict, or of its copy, to `name`."""
        if scope.lists and (self.maybe() or not scope.dicts):
            old = self.pick(list(scope.lists))
            alike = [o for o, length in scope.lists.items() if length == scope.lists[old]]
            self.put(
                scope,
                self.pick(
                    (
                        f"{name} = {old}",
                        f"{name} = list({old})",
                        f"{name} = {old}[:]",
                        self.fill(f"{name} = {old} if {{c}} else {self.pick(alike)}[:]", scope),
                    )
                ),
            )
            scope.lists[name] = scope.lists[old]
        else:
            old = self.pick(scope.dicts)
            self.put(
                scope,
                self.pick((f"{name} = {old}", f"{name} = dict({old})", f"{name} = {{**{old}}}")),
            )
            scope.dicts.append(name)

    def change_container(self, scope: Scope) -> None:
        """Append to the test program a random change of a list or dict of known length.

        Its length does not depend on the value of a tensor.
        """
        if not scope.lists and not scope.dicts:
            self.container(scope)
            return
        if scope.lists and (self.maybe() or not scope.dicts):
            name = self.pick(list(scope.lists))
            options = [
                f"{name}[{{j}}] = {{v}}",
                f"{name}.reverse()",
                f"{name}[0], {name}[-1] = {name}[-1], {name}[0]",
                f"{name}[{{j}}][{{j}}] = {{s}}",
                f"{name}[0] += {{v}}",
                f"{name}.insert(1, {name}.pop())",
                f"{name}[:1] = [{{v}}]",
            ]
            if scope.lists[name] > 0:
                self.put(scope, self.fill(self.pick(options), scope))
            return
        name = self.pick(scope.dicts)
        options = [
            f"{name}['a'] = {{v}}",
            f"{name}['b'] += {{v}}",
            f"{name}.update(a={{v}}, b={{v}})",
            f"{name}['a'], {name}['b'] = {name}['b'], {name}['a']",
            f"{name}['a'][{{j}}] = {{s}}",
            f"{name}['b'] = {name}.pop('b') * 0.5",
            f"{name}.setdefault('a', {{v}})",
        ]
        self.put(scope, self.fill(self.pick(options), scope))

    def closure(self, scope: Scope) -> None:
        """Append to the test program an inner function that reads or rebinds outer variables."""
        self.branched = True
        name = self.fresh("g")
        inner = scope.inner(loop="", returns="{v}", main=False)
        form = self.choose(3)
        if form == 0:
            self.put(scope, self.fill(f"{name} = lambda t, k=0.5: t * k + {{v}}", scope))
        else:
            self.put(scope, f"def {name}(t, k=0.5):")
            if form == 2 and self.own_vectors(scope):
                around = self.pick(self.own_vectors(scope))
                self.put(inner, f"nonlocal {around}")
                self.put(inner, self.fill(f"{around} = {around} * 0.5 + {{v}}", inner, 0))
            own = inner.inner(indent=inner.indent)
            # the function binds only its own names, since an assignment makes a name local
            own.names = {"v": ["t"]}
            own.lists, own.dicts, own.numbers = {}, [], []
            if form == 2 and self.maybe():
                self.block(own)
            own.names["v"] += scope.names["v"] if not own.names["v"][1:] else []
            bound = set(
                re.findall(r"^\s*(\w+)(?:\[.*\])? (?:[-+*]?=) ", "\n".join(self.lines[-8:]), re.M)
            )
            own.names["v"] = [
                n for n in own.names["v"] if n == "t" or n not in bound or n in scope.names["v"]
            ]
            self.put(own, self.fill("return t * k + {v}", own))
        scope.functions.append(name)

    def own_vectors(self, scope: Scope) -> list[str]:
        """Return the names of vector variables in `scope` that an inner function may rebind."""
        return [n for n in scope.names["v"] if scope.main and n not in ("a", "b", "t")]

    def write(self, scope: Scope) -> None:
        options = [
            "ops.assign(net.w, {v})",
            "ops.assign_add(net.b, ops.tanh({v}))",
            "net.w[0] = {s}",
            "net.n = net.n + 1",
            "net.w.set_data(ops.tanh({v}))",
            "net.last = {v}",
            "net.n += 2",
            "net.last[{j}] = {s}",
            "net.last += {v}",
            "box.value = {v}",
            "box.add({v})",
            "box.count -= 1",
            "unit.k += 1",
            "unit.extra = 0.75",
        ]
        if not self.branched:  # a list's length may not depend on a tensor
            options += ["net.log.append(net.n)", "net.log.append({v})", "unit.kinds['b'] = net.n"]
        if scope.main:
            options += ["count += 1", "count = net.n + count"]
        self.put(scope, self.fill(self.pick(options), scope))

    def write_item(self, scope: Scope) -> None:
        """Append to the test program an assignment to an item of a list or dict of the Cell."""
        options = [
            "net.items[{j}] = {v}",
            "net.table['a'] = {v}",
            "net.table['k'] = net.table['k'] + 1",
            "net.items[0], net.items[1] = net.items[1], net.items[0]",
            "net.items[{j}][{j}] = {s}",
            "net.items[{j}] = net.items[{j}] * 0.5 + {v}",
            "box.value[{j}] = {s}",
        ]
        self.put(scope, self.fill(self.pick(options), scope))

    def print_statement(self, scope: Scope) -> None:
        values = (
            "{v}",
            "net.n",
            "net.w.value()",
            "{s}",
            "{b}",
            "{n}",
            "({v}, {n})",
            "box.value",
            "{i}",
            "{z}",
        )
        value = self.fill(self.pick(values), scope, 0)
        label = self.fresh("p")
        texts = (
            f"print('{label}', {value})",
            f"print({value})",
            f"print('{label}')",
            f"print(f'{label} {{net.n}}')",
        )
        self.put(scope, self.pick(texts))

    def random_vector(self, scope: Scope) -> None:
        made = self.pick(
            (
                "ops.standard_normal((3,)) * 0.5",
                "ops.dropout({v}, 0.5)",
                "ops.randint(0, 4, (3,)) * {v}",
                "ops.uniform((3,), Tensor(0.0), Tensor(1.0))",
            )
        )
        self.bind(scope, "v", self.fill(made, scope), "r")

    def raise_statement(self, scope: Scope) -> None:
        self.branched = True
        label = self.fresh("e")
        if self.choose(3) == 0:
            self.put(
                scope,
                self.fill(f"assert {{v}}.sum() < {self.pick(('0.5', '2', '5'))}, '{label}'", scope),
            )
            return
        self.put(scope, self.fill(f"if {{v}}.sum() > {self.pick(('0.5', '2', '5'))}:", scope))
        what = self.pick(
            (
                f"ValueError('{label}')",
                f"KeyError('{label}', {{v}})",
                "RuntimeError(net.n)",
                "IndexError({s}, {n})",
            )
        )
        self.put(scope, f"raise {self.fill(what, scope)}", 1)

    def python_number(self, scope: Scope) -> None:
        """Append to the test program a statement that creates or changes a Python number.

        The number may be read from a tensor.
        """
        ints = [n for n in scope.numbers if n.startswith("n")]
        if ints and self.maybe():
            name = self.pick(ints)
            self.put(
                scope,
                self.pick(
                    (
                        f"{name} += 1",
                        f"{name} = {name} * 2 % 5",
                        f"{name} = {name} - net.n",
                        f"{name} = max({name}, 2)",
                        f"{name} = -{name} // 2",
                    )
                ),
            )
            return
        name = self.fresh("n")
        made = self.pick(
            (
                "int(ops.tanh({s}) * 4)",
                "int({i}.sum())",
                "({i}.max()).item()",
                "int({s} > 0)",
                "3",
                "net.n + 1",
                "len({v})",
                "{i}[0].item()",
                "abs(int(ops.tanh({s}) * 3))",
            )
        )
        self.put(scope, f"{name} = {self.fill(made, scope)}")
        scope.numbers.append(name)

    def python_feature(self, scope: Scope) -> None:
        """Append a random use of a feature such as try, match or lambda to the test program."""
        k = self.choose(9)
        name = self.fresh("v")
        fill = self.fill
        if k == 0:
            self.put(scope, fill(f"{name} = sum([{{v}}, {{v}}]) * 0.5", scope))
        elif k == 1:
            self.put(
                scope,
                fill(
                    f"{name} = [t for t in map(lambda r: r * {{v}}, ({{v}}, {{v}}))][{{j}}]", scope
                ),
            )
        elif k == 2:
            self.put(scope, fill(f"if ({name} := {{v}}).sum() > {{q}}:", scope))
            self.put(scope, f"{name} = {name} * 0.5", 1)
        elif k == 3:
            self.put(scope, "try:")
            self.put(scope, fill(f"{name} = {{v}}", scope), 1)
            self.put(scope, "finally:")
            self.put(scope, "pass", 1)
        elif k == 4:
            self.put(scope, "try:")
            self.put(scope, fill(f"{name} = net.table['b'] * {{v}}", scope), 1)
            self.put(scope, "except KeyError:")
            self.put(scope, fill(f"{name} = {{v}}", scope), 1)
        elif k == 5:
            self.put(scope, fill("match {n}:", scope))
            self.put(scope, "case 2:", 1)
            self.put(scope, fill(f"{name} = {{v}}", scope), 2)
            self.put(scope, "case _:", 1)
            self.put(scope, fill(f"{name} = {{v}}", scope), 2)
        elif k == 6:
            item = self.fresh("r")
            self.put(scope, fill(f"{name} = {{v}} * 0", scope))
            self.put(scope, fill(f"for {item} in {{m}}:", scope))
            self.put(scope, f"{name} = {name} + {item}", 1)
        elif k == 7:
            self.put(scope, fill(f"{name} = {{v}}", scope))
            self.put(scope, "for cell in net.cells:")
            self.put(scope, f"{name} = cell({name})", 1)
        else:
            self.put(
                scope,
                fill(f"{name} = (lambda *a, **k: a[{{j}}] * k['s'])({{v}}, {{v}}, s={{s}})", scope),
            )
        scope.names["v"].append(name)

    def object(self, scope: Scope) -> None:
        """Append to the test program a statement that creates or changes a `Box` object.

        `Box` is a class that every generated program defines.
        """
        if not scope.objects or self.choose(3) == 0:
            scope.objects.append(self.fresh("o"))
            self.put(scope, f"{scope.objects[-1]} = Box()")
            return
        name = self.pick(scope.objects)
        options = (
            f"{name}.value = {{v}}",
            f"{name}.count += 2",
            f"{name}.add({{v}})",
            f"{name}.value[{{j}}] = {{s}}",
            f"{name}.value = {name}.value * {name}.count + {{v}}",
        )
        self.put(scope, self.fill(self.pick(options), scope))

    def leave(self, scope: Scope) -> bool:
        kinds = [f"return {self.fill(scope.returns, scope)}"]
        if scope.loop:
            kinds += ["break", "continue", "break"]
        self.put(scope, self.pick(kinds))
        return True

    # ---- control flow -------------------------------------------------------------------------

    def branch(self, scope: Scope) -> bool:
        self.branched = True
        self.put(scope, f"if {self.condition(scope)}:")
        left = self.block(scope.inner(staged=True))
        if self.maybe():
            if self.budget > 0 and self.maybe():
                self.put(scope, f"elif {self.condition(scope)}:")
                left = self.block(scope.inner(staged=True)) and left
            self.put(scope, "else:")
            return self.block(scope.inner(staged=True)) and left
        return False

    def for_loop(self, scope: Scope) -> None:
        self.branched = True
        i = self.fresh("i")
        inner = scope.inner(loop="for")
        k = self.choose(6)
        unknown = [n for n in scope.numbers if n.startswith("n")]
        if k == 0 and unknown:
            self.put(scope, f"for {i} in range({self.pick(unknown)} % 4):")
            inner.numbers.append(i)
        elif k <= 2:
            self.put(scope, f"for {i} in range({self.choose(5)}):")
            inner.numbers.append(i)
        elif k == 3 and scope.lists:
            self.put(scope, f"for {i} in list({self.pick(list(scope.lists))}):")
            inner.names["v"].append(i)
        elif k == 4 and scope.dicts:
            t = self.fresh("t")
            self.put(scope, f"for {i}, {t} in {self.pick(scope.dicts)}.copy().items():")
            inner.names["v"].append(t)
        else:
            t = self.fresh("t")
            self.put(scope, self.fill(f"for {i}, {t} in enumerate(({{v}}, {{v}})):", scope, 1))
            inner.names["v"].append(t)
            inner.numbers.append(i)
        self.block(inner)
        self.loop_else(scope)

    def while_loop(self, scope: Scope) -> None:
        self.branched = True
        k = self.fresh("k")
        form = self.choose(4)
        more = f" and {self.pick(scope.names['v'])}.sum() < 4" if self.maybe() else ""
        limit = self.choose(5)
        self.put(scope, f"{k} = {('0', 'Tensor(0)', 'Tensor(0)', '0')[form]}")
        inner = scope.inner(loop="while", staged=scope.staged or form in (1, 2) or bool(more))
        if form == 3:  # it ends by a break
            self.put(scope, "while True:")
            self.put(inner, f"{k} = {k} + 1")
            self.put(inner, f"if {k} > {limit}{more.replace(' and', ' or').replace('<', '>')}:")
            self.put(inner, "break", 1)
        else:
            self.put(scope, f"while {k} < {limit}{more}:")
            self.put(inner, f"{k} = {k} + 1")
        if form in (0, 3):
            inner.numbers.append(k)
        self.block(inner)
        self.loop_else(scope)

    def loop_else(self, scope: Scope) -> None:
        """Append an `else` block to the loop that was just written, or, at random, nothing."""
        if self.budget > 0 and self.choose(3) == 0:
            self.put(scope, "else:")
            self.block(scope.inner())

    # ---- the program ----------------------------------------------------------------------------

    def helper(self) -> None:
        self.branched = True  # its call sites are unknown here
        name = self.fresh("helper")
        scope = Scope("{v}")
        scope.names = {"v": ["a", "b"]}
        if self.choose(6) == 0:
            self.put(scope, "@jit", -1)
        self.put(scope, f"def {name}(a, b):", -1)
        if self.choose(4) == 0:  # it is recursive, and has no side effects
            on, helpers, self.helpers, self.on = self.on, self.helpers, [], self.on & {"kinds"}
            self.put(scope, f"if a.sum() > {self.pick(('1', '2.5'))}:")
            self.put(scope, self.fill(f"return {name}(ops.tanh(a) * 0.75, {{v}})", scope), 1)
            self.put(scope, f"return {self.expr('v', scope)}")
            self.on, self.helpers = on, helpers
        else:
            for _ in range(self.choose(3)):
                if self.statement(scope):
                    break
            else:
                self.put(scope, f"return {self.expr('v', scope)}")
        self.put(scope, "", -1)
        self.helpers.append(name)

    def program(self) -> str:
        for _ in range(self.choose(3)):
            self.helper()
        self.branched = False
        scope = Scope(str(self.pick(RETURNS)) if "kinds" in self.on else "{v}")
        scope.names = {"v": ["x", "y"]}
        scope.main = True
        if self.cell:
            self.put(scope, "def body(x, y):", -1)
        else:
            self.put(scope, "@jit", -1)
            self.put(scope, "def f(x, y):", -1)
        self.put(scope, "global count")
        for _ in range(1 + self.choose(6)):
            if self.statement(scope):
                break
        else:
            out = self.fill(scope.returns, scope)
            if scope.returns != "{v}":
                self.put(scope, f"return {out}")
            else:
                self.put(
                    scope, f"return {out} + {' + '.join(scope.names['v'][-4:])}"
                )  # most of it is used
        return HEAD + "\n" + "\n".join(self.lines) + "\n" + (CELL if self.cell else "")


NUMBERS = (0.5, -1.0, 0.75, 0.0, 1.0, -0.25, 0.125, 2.0, -1.5, 0.25, 3.0, -0.5)


def program(choose: Callable[[int], int]) -> Program:
    """Return a random valid test program, with its inputs.

    Args:
        choose: function that makes all decisions; it returns a number from 0 to its argument - 1.
    """
    writer = ProgramWriter(choose)
    source = writer.program()
    if choose(3) == 0:  # a printed word shows how often a `bprop` runs, and in which order
        source = source.replace(BPROP, f'print("bprop")\n        {BPROP}')

    def inputs() -> tuple[Array, ...]:
        drawn = [[NUMBERS[choose(len(NUMBERS))] for _ in range(3)] for _ in range(2)]
        return tuple(np.array(v, np.float32) for v in drawn)

    given, again = inputs(), inputs()
    drawn = [CHANGES[choose(len(CHANGES))] for _ in range(choose(4))]
    return Program(
        source, given, (0, 1), "net.trainable_params()", name="fuzz", near=1e-5, again=again,
        changes=tuple(drawn), calls=max(2, 1 + len(drawn)),
        rounded=writer.gradients > 0, refused=REFUSED, mode="graph mode" if writer.cell else "jit",
    )  # fmt: skip
