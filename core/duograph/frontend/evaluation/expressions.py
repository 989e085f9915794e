"""Evaluates expressions: attributes, items, displays, calls, comprehensions and strings.

The functions register in `dispatch.SYNTAX` and are reached through `dispatch.evaluate`. A
comprehension is always unrolled; its length must be known at compile time, because the result is a
Python container.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ...ir.values import GraphObject, GraphScalar, NeedsValue
from ..source import local_names
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Kwargs, Value
from ..values.ranges import GraphRange
from .attributes import get_attribute
from .containers import get_item
from .dispatch import call, evaluate, syntax
from .functions import function_from_syntax
from .host import run_on_host
from .iteration import is_iterable, iterate, iterate_sized, pairs_of
from .keys import as_key
from .laziness import lazily
from .operators import condition
from .outside import special_method
from .spans import begin_node
from .targets import assign, mangled
from .variables import store


@syntax(ast.NamedExpr)
def _walrus(ev: Evaluation, frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(ev, frame, node.value)
    store(ev, frame, node.target.id, value)
    return value


@syntax(ast.Attribute)
def _attribute(ev: Evaluation, frame: Frame, node: ast.Attribute) -> Value:
    return get_attribute(ev, evaluate(ev, frame, node.value), mangled(frame, node.attr), node)


@syntax(ast.Subscript)
def _subscript(ev: Evaluation, frame: Frame, node: ast.Subscript) -> Value:
    value = evaluate(ev, frame, node.value)
    index = evaluate(ev, frame, node.slice)
    begin_node(ev, frame, node)
    return get_item(ev, value, index)


@syntax(ast.Slice)
def _slice(ev: Evaluation, frame: Frame, node: ast.Slice) -> Value:
    parts = (node.lower, node.upper, node.step)
    return slice(*[None if p is None else evaluate(ev, frame, p) for p in parts])


# ---- displays -----------------------------------------------------------------------------------


def evaluate_items(ev: Evaluation, frame: Frame, nodes: Value, sized: bool = True) -> list[Value]:
    """Trace the items of a display or of call arguments; return them as a list.

    An item `*x` is replaced by the items of x. `sized` says whether Python asks x for its length
    there, as it does everywhere but in a set display.
    """
    found: list[Value] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = evaluate(ev, frame, node.value)
            if not is_iterable(ev, value):
                raise TypeError(f"Value after * must be an iterable, not {type(value).__name__}")
            found.extend((iterate_sized if sized else iterate)(ev, value))
        else:
            found.append(evaluate(ev, frame, node))
    return found


@syntax(ast.Tuple)
def _tuple(ev: Evaluation, frame: Frame, node: ast.Tuple) -> Value:
    return tuple(evaluate_items(ev, frame, node.elts))


@syntax(ast.List)
def _list(ev: Evaluation, frame: Frame, node: ast.List) -> Value:
    return ev.owned.add(evaluate_items(ev, frame, node.elts))


@syntax(ast.Set)
def _set(ev: Evaluation, frame: Frame, node: ast.Set) -> Value:
    items = evaluate_items(ev, frame, node.elts, sized=False)
    return ev.owned.add({as_key(ev, v) for v in items})


@syntax(ast.Dict)
def _dict(ev: Evaluation, frame: Frame, node: ast.Dict) -> Value:
    made: dict[Value, Value] = {}
    for k, v in zip(node.keys, node.values, strict=True):
        if k is None:
            made.update(pairs_of(ev, evaluate(ev, frame, v)))
        else:
            key = as_key(ev, evaluate(ev, frame, k))
            made[key] = evaluate(ev, frame, v)
    return ev.owned.add(made)


# ---- calls and functions ------------------------------------------------------------------------


@syntax(ast.Call)
def _call(ev: Evaluation, frame: Frame, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return _super(ev, frame)
    function = evaluate(ev, frame, node.func)
    args = evaluate_items(ev, frame, node.args)
    kwargs: Kwargs = {}
    for k in node.keywords:
        value = evaluate(ev, frame, k.value)
        if k.arg is None:
            for name, v in pairs_of(ev, value).items():
                if not isinstance(name, str):
                    raise TypeError("keywords must be strings")
                if name in kwargs:
                    raise TypeError(f"got multiple values for keyword argument {name!r}")
                kwargs[name] = v
        else:
            kwargs[k.arg] = value
    begin_node(ev, frame, node)
    return call(ev, function, tuple(args), kwargs)


def _super(ev: Evaluation, frame: Frame) -> Value:
    """Return the `super` object of a call `super()` without arguments in a method."""
    outer: Frame | None = frame
    while outer is not None and "__class__" not in outer.closure:
        outer = outer.parent
    if outer is None or outer.first is None:
        raise RuntimeError("super(): no arguments")
    return super(outer.closure["__class__"].cell_contents, outer.first)


@syntax(ast.Lambda)
def _lambda(ev: Evaluation, frame: Frame, node: ast.Lambda) -> Value:
    return function_from_syntax(ev, frame, node)


# ---- comprehensions -----------------------------------------------------------------------------


@syntax(ast.GeneratorExp)
def _generator_expression(ev: Evaluation, frame: Frame, node: ast.GeneratorExp) -> Value:
    inners = _comprehend(ev, frame, node)
    return lazily(ev, (evaluate(ev, inner, node.elt) for inner in inners))


@syntax(ast.ListComp)
def _list_comprehension(ev: Evaluation, frame: Frame, node: ast.ListComp) -> Value:
    found: list[Value] = []
    _each(_comprehend(ev, frame, node), lambda inner: found.append(evaluate(ev, inner, node.elt)))
    return ev.owned.add(found)


@syntax(ast.SetComp)
def _set_comprehension(ev: Evaluation, frame: Frame, node: ast.SetComp) -> Value:
    found: set[Value] = set()

    def add(inner: Frame) -> None:
        found.add(as_key(ev, evaluate(ev, inner, node.elt)))

    _each(_comprehend(ev, frame, node), add)
    return ev.owned.add(found)


@syntax(ast.DictComp)
def _dict_comprehension(ev: Evaluation, frame: Frame, node: ast.DictComp) -> Value:
    found: dict[Value, Value] = {}

    def add(inner: Frame) -> None:
        key = as_key(ev, evaluate(ev, inner, node.key))
        found[key] = evaluate(ev, inner, node.value)

    _each(_comprehend(ev, frame, node), add)
    return ev.owned.add(found)


class _Stopped(RuntimeError):
    """A StopIteration that the code of a comprehension raised; it is the cause.

    Code that iterates over a generator expression gets this RuntimeError, as in Python. A list, set
    or dict comprehension raises the StopIteration itself.
    """


def _each(inners: Iterator[Frame], add: Callable[[Frame], None]) -> None:
    """Call `add` for each frame of a list, set or dict comprehension.

    A StopIteration in the code of the comprehension is raised as it is.
    """
    try:
        for inner in inners:
            add(inner)
    except _Stopped as stopped:
        assert stopped.__cause__ is not None
        raise stopped.__cause__ from None


def _comprehend(ev: Evaluation, frame: Frame, node: Value) -> Iterator[Frame]:
    """Trace a comprehension; return an iterator over the frame of its variables, once per item.

    The outermost iterable is evaluated immediately, everything else when an item is asked for.
    """
    names = getattr(node, "_duograph_names", None)
    if names is None:
        names = node._duograph_names = local_names(node)[0]
    inner = frame.inner(names, ev.builder.depth)
    return _generators(ev, inner, _items(ev, frame, node.generators[0]), node.generators)


def _items(ev: Evaluation, frame: Frame, generator: ast.comprehension) -> Iterator[Value]:
    """Evaluate the iterable of a `for` clause of a comprehension and return its iterator."""
    items = evaluate(ev, frame, generator.iter)
    if isinstance(items, (GraphRange, GraphScalar, GraphObject)):
        raise NeedsValue(
            "comprehension: got a length that is known only when the compiled function runs; "
            "wanted a constant"
        )
    found: Iterator[Value] = iterate(ev, items)
    return found


def _generators(
    ev: Evaluation, inner: Frame, items: Iterator[Value], generators: list[ast.comprehension]
) -> Iterator[Frame]:
    """Trace the `for` and `if` clauses of a comprehension; yield `inner` once per item.

    Args:
        ev: the evaluation.
        inner: the frame with the comprehension's variables.
        items: the items of the outermost clause.
        generators: the clauses, outermost first.
    """
    first, *rest = generators
    try:
        for item in items:
            assign(ev, inner, first.target, item)
            for test in first.ifs:
                if not _is_kept(ev, inner, test):
                    break
            else:
                if rest:
                    yield from _generators(ev, inner, _items(ev, inner, rest[0]), rest)
                else:
                    yield inner
    except StopIteration as error:  # Python would turn it into another RuntimeError here
        raise _Stopped("generator raised StopIteration") from error


def _is_kept(ev: Evaluation, inner: Frame, test: ast.expr) -> bool:
    found = condition(ev, inner, test)
    if not isinstance(found, bool):
        raise NeedsValue(
            "comprehension: got a condition on a Tensor; the length of the result would be unknown"
        )
    return found


# ---- strings ------------------------------------------------------------------------------------


@syntax(ast.JoinedStr)
def _joined(ev: Evaluation, frame: Frame, node: ast.JoinedStr) -> Value:
    parts = [evaluate(ev, frame, v) for v in node.values]
    if any(isinstance(p, GraphObject) for p in parts):
        return run_on_host(ev, lambda *p: "".join(map(str, p)), tuple(parts), {}, "join")
    return "".join(parts)


@syntax(ast.FormattedValue)
def _formatted(ev: Evaluation, frame: Frame, node: ast.FormattedValue) -> Value:
    value = evaluate(ev, frame, node.value)
    spec = "" if node.format_spec is None else evaluate(ev, frame, node.format_spec)
    convert = {-1: None, 115: str, 114: repr, 97: ascii}[node.conversion]
    if convert is not None:
        value = call(ev, convert, (value,), {})
    elif spec == "" and special_method(ev, value, "__format__") is None:
        return call(ev, str, (value,), {})
    return call(ev, format, (value, spec), {})


@syntax(ast.Starred)
def _starred(ev: Evaluation, frame: Frame, node: ast.Starred) -> Value:
    return evaluate(ev, frame, node.value)
