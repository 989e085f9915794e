"""Expressions: one function per kind, and the targets of assignments."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UnsupportedSyntaxError
from ..ir.builder import GraphTensor
from ..ir.values import GraphObject, GraphScalar, NeedsValue, number_of
from ..tensor import Tensor
from ..types import BOOL
from .attributes import delete_attribute, get_attribute, set_attribute
from .branches import as_flag, negated, select, truth
from .calls import call, function_of, native
from .containers import changing_array, delete_item, get_item, set_item
from .diagnostics import unsupported
from .frames import Frame, load, remove, store
from .host import depends_on_graph, run_on_host
from .overloads import overloaded, user_method
from .source import local_names
from .spans import begin, note_place
from .trace import Trace

__all__ = ["evaluate", "condition", "as_bool", "assign", "delete", "evaluate_in_place"]

Run = Callable[[Trace, Frame, Any], Any]
EXPRESSIONS: dict[type, Run] = {}


def expression(*kinds: type) -> Callable[[Run], Run]:
    def enter(function: Run) -> Run:
        for kind in kinds:
            EXPRESSIONS[kind] = function
        return function

    return enter


def evaluate(t: Trace, frame: Frame, node: Any) -> Any:
    """The value of an expression.

    Raises:
        UnsupportedSyntaxError: an expression that compiled functions cannot have.
    """
    try:
        run = EXPRESSIONS.get(type(node))
        if run is None:
            name = type(node).__name__
            remedy = _REMEDIES.get(name, "Move it out of the compiled function")
            raise unsupported(name, None, remedy)
        return run(t, frame, node)
    except Exception as error:
        note_place(t, error, frame, node)
        raise


_REMEDIES = {
    "Yield": "A compiled function cannot be a generator: return a list, or leave the function uncompiled",
    "YieldFrom": "A compiled function cannot be a generator: return a list, or leave the function uncompiled",
    "Await": "Wanted a plain function: await outside the compiled function",
}


@expression(ast.Constant)
def _constant(t: Trace, frame: Frame, node: ast.Constant) -> Any:
    return node.value


@expression(ast.Name)
def _name(t: Trace, frame: Frame, node: ast.Name) -> Any:
    return load(t, frame, node.id)


@expression(ast.NamedExpr)
def _walrus(t: Trace, frame: Frame, node: ast.NamedExpr) -> Any:
    value = evaluate(t, frame, node.value)
    store(t, frame, node.target.id, value)
    return value


@expression(ast.Attribute)
def _attribute(t: Trace, frame: Frame, node: ast.Attribute) -> Any:
    return get_attribute(t, evaluate(t, frame, node.value), mangled(frame, node.attr), node)


def mangled(frame: Frame, name: str) -> str:
    """A private name as Python stores it."""
    owner = frame.source.class_name
    if name.startswith("__") and not name.endswith("__") and owner:
        return f"_{owner.lstrip('_')}{name}"
    return name


@expression(ast.Subscript)
def _subscript(t: Trace, frame: Frame, node: ast.Subscript) -> Any:
    value = evaluate(t, frame, node.value)
    index = evaluate(t, frame, node.slice)
    begin(t, frame, node)
    return get_item(t, value, index)


@expression(ast.Slice)
def _slice(t: Trace, frame: Frame, node: ast.Slice) -> Any:
    parts = (node.lower, node.upper, node.step)
    return slice(*[None if p is None else evaluate(t, frame, p) for p in parts])


# ---- displays -----------------------------------------------------------------------------------


def _items(t: Trace, frame: Frame, nodes: Any) -> list[Any]:
    from .statements import iterate

    found: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = evaluate(t, frame, node.value)
            if not _iterable(value):
                raise TypeError(f"Value after * must be an iterable, not {type(value).__name__}")
            found.extend(iterate(t, value))
        else:
            found.append(evaluate(t, frame, node))
    return found


def _iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")


@expression(ast.Tuple)
def _tuple(t: Trace, frame: Frame, node: ast.Tuple) -> Any:
    return tuple(_items(t, frame, node.elts))


@expression(ast.List)
def _list(t: Trace, frame: Frame, node: ast.List) -> Any:
    return _made(t, _items(t, frame, node.elts))


@expression(ast.Set)
def _set(t: Trace, frame: Frame, node: ast.Set) -> Any:
    return _made(t, set(_items(t, frame, node.elts)))


@expression(ast.Dict)
def _dict(t: Trace, frame: Frame, node: ast.Dict) -> Any:
    made: dict[Any, Any] = {}
    for k, v in zip(node.keys, node.values, strict=True):
        if k is None:
            made.update(evaluate(t, frame, v))
        else:
            key = evaluate(t, frame, k)
            made[key] = evaluate(t, frame, v)
    return _made(t, made)


def _made(t: Trace, value: Any) -> Any:
    return t.note_own(value)


# ---- operators ----------------------------------------------------------------------------------

_BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_IN_PLACE: dict[type, Callable[..., Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
_UNARY: dict[type, Callable[..., Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARE: dict[type, Callable[..., Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


@expression(ast.BinOp)
def _binary(t: Trace, frame: Frame, node: ast.BinOp) -> Any:
    x = evaluate(t, frame, node.left)
    y = evaluate(t, frame, node.right)
    begin(t, frame, node)
    return apply(t, _BINARY[type(node.op)], x, y)


def _formats_object(operands: tuple[Any, ...]) -> bool:
    """Whether this is `"%d" % ...` of something that only Python knows."""
    if not isinstance(operands[0], (str, bytes)) or len(operands) < 2:
        return False
    values = operands[1]
    values = values.values() if isinstance(values, dict) else values
    return isinstance(values, (tuple, type({}.values()))) and any(
        isinstance(v, GraphObject) for v in values
    )


def apply(t: Trace, function: Callable[..., Any], *operands: Any) -> Any:
    """An operator on values of any kind."""
    if any(isinstance(x, GraphObject) for x in operands) or _formats_object(operands):
        return run_on_host(t, function, operands, {}, function.__name__)
    found = overloaded(t, function, operands)
    if found is NotImplemented:
        found = native(t, function, operands, {})
    if isinstance(found, np.ndarray) or (
        type(found) in (list, dict, set) and not any(found is x for x in operands)
    ):
        t.note_own(found, operands)
    return found


def condition(t: Trace, frame: Frame, node: Any) -> Any:
    """The truth of an expression, where only that is wanted: a Python bool, or a bool of the graph."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return negated(condition(t, frame, node.operand))
    if isinstance(node, ast.BoolOp):
        return _conditions(t, frame, node.values, isinstance(node.op, ast.And))
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        left = evaluate(t, frame, node.left)
        return _chained(t, frame, left, list(zip(node.ops, node.comparators, strict=True)))
    value = evaluate(t, frame, node)
    try:
        return truth(t, value)
    except Exception as error:
        note_place(t, error, frame, node)
        raise


def _conditions(t: Trace, frame: Frame, nodes: list[Any], conjunction: bool) -> Any:
    first = condition(t, frame, nodes[0])
    if len(nodes) == 1:
        return first
    if isinstance(first, bool):
        return _conditions(t, frame, nodes[1:], conjunction) if first is conjunction else first

    def rest() -> Any:
        return as_flag(_conditions(t, frame, nodes[1:], conjunction))

    def short() -> Any:
        return as_flag(not conjunction)

    then, orelse = (rest, short) if conjunction else (short, rest)
    return select(t, first, then, orelse, "the condition", late=True)


def _chained(t: Trace, frame: Frame, left: Any, rest: list[Any]) -> Any:
    op, node = rest[0]
    right = evaluate(t, frame, node)
    first = truth(t, _compared(t, op, left, right))
    if len(rest) == 1 or first is False:
        return first
    if first is True:
        return _chained(t, frame, right, rest[1:])
    return select(
        t,
        first,
        lambda: as_flag(_chained(t, frame, right, rest[1:])),
        lambda: as_flag(False),
        "the condition",
        late=True,
    )


def as_bool(t: Trace, flag: Any) -> Any:
    """A truth value as Python's operators give it: a bool, never a Tensor."""
    return number_of(flag, BOOL) if isinstance(flag, GraphTensor) else flag


@expression(ast.UnaryOp)
def _unary(t: Trace, frame: Frame, node: ast.UnaryOp) -> Any:
    if isinstance(node.op, ast.Not):
        return as_bool(t, negated(condition(t, frame, node.operand)))
    x = evaluate(t, frame, node.operand)
    return apply(t, _UNARY[type(node.op)], x)


@expression(ast.BoolOp)
def _bool(t: Trace, frame: Frame, node: ast.BoolOp) -> Any:
    return _chain(t, frame, node.values, isinstance(node.op, ast.And))


def _chain(t: Trace, frame: Frame, nodes: list[Any], conjunction: bool) -> Any:
    value = evaluate(t, frame, nodes[0])
    if len(nodes) == 1:
        return value
    cond = truth(t, value)
    if isinstance(cond, bool):
        return _chain(t, frame, nodes[1:], conjunction) if cond is conjunction else value

    def rest() -> Any:
        return _chain(t, frame, nodes[1:], conjunction)

    def short() -> Any:
        return value

    what = "the value of `and`" if conjunction else "the value of `or`"
    names = ("left", "right") if conjunction else ("right", "left")
    then, orelse = (rest, short) if conjunction else (short, rest)
    return select(t, cond, then, orelse, what, names, late=True)


@expression(ast.IfExp)
def _if_expression(t: Trace, frame: Frame, node: ast.IfExp) -> Any:
    cond = condition(t, frame, node.test)
    if isinstance(cond, bool):
        return evaluate(t, frame, node.body if cond else node.orelse)
    return select(
        t,
        cond,
        lambda: evaluate(t, frame, node.body),
        lambda: evaluate(t, frame, node.orelse),
        "the value",
    )


@expression(ast.Compare)
def _compare(t: Trace, frame: Frame, node: ast.Compare) -> Any:
    left = evaluate(t, frame, node.left)
    return _comparisons(t, frame, left, list(zip(node.ops, node.comparators, strict=True)))


def _comparisons(t: Trace, frame: Frame, left: Any, rest: list[Any]) -> Any:
    op, node = rest[0]
    right = evaluate(t, frame, node)
    found = _compared(t, op, left, right)
    if len(rest) == 1:
        return found
    cond = truth(t, found)
    if isinstance(cond, bool):
        return _comparisons(t, frame, right, rest[1:]) if cond else found
    return select(
        t, cond, lambda: _comparisons(t, frame, right, rest[1:]), lambda: found, "the comparison"
    )


def _compared(t: Trace, op: Any, x: Any, y: Any) -> Any:
    if isinstance(op, ast.Is):
        return _identical(t, x, y)
    if isinstance(op, ast.IsNot):
        return negated(_identical(t, x, y))
    if isinstance(op, (ast.In, ast.NotIn)):
        found = _contained(t, x, y)
        return as_bool(t, negated(found) if isinstance(op, ast.NotIn) else found)
    return apply(t, _COMPARE[type(op)], x, y)


def _identical(t: Trace, x: Any, y: Any) -> Any:
    for a, b in ((x, y), (y, x)):
        if isinstance(a, GraphObject):
            return truth(t, run_on_host(t, operator.is_, (a, b), {}, "is_"))
        if isinstance(a, GraphScalar) and (b is True or b is False):
            return a == b if a._type.name == "bool" else False
    if isinstance(x, GraphTensor) and isinstance(y, GraphTensor):
        return x is y or (x._builder is y._builder and x._id == y._id)
    return x is y


def _contained(t: Trace, x: Any, y: Any) -> Any:
    if isinstance(y, GraphObject) or isinstance(x, GraphObject):
        return truth(t, run_on_host(t, operator.contains, (y, x), {}, "contains"))
    if isinstance(y, (tuple, list)) and (depends_on_graph(x) or depends_on_graph(y)):
        found: Any = False
        from .branches import either

        for item in y:
            if x is item:
                return True
            equal = native(t, operator.eq, (x, item), {})
            if isinstance(equal, Tensor) and equal.size != 1:
                equal = equal.all()
            found = either(found, truth(t, equal))
            if found is True:
                return True
        return found
    if user_method(y, "__contains__") is not None:
        return truth(t, call(t, y.__contains__, (x,), {}))
    return native(t, operator.contains, (y, x), {})


# ---- calls --------------------------------------------------------------------------------------


@expression(ast.Call)
def _call(t: Trace, frame: Frame, node: ast.Call) -> Any:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return _super(t, frame)
    function = evaluate(t, frame, node.func)
    args = _items(t, frame, node.args)
    kwargs: dict[str, Any] = {}
    for k in node.keywords:
        value = evaluate(t, frame, k.value)
        if k.arg is None:
            for name, v in dict(value).items():
                if not isinstance(name, str):
                    raise TypeError("keywords must be strings")
                if name in kwargs:
                    raise TypeError(f"got multiple values for keyword argument {name!r}")
                kwargs[name] = v
        else:
            kwargs[k.arg] = value
    begin(t, frame, node)
    return call(t, function, tuple(args), kwargs)


def _super(t: Trace, frame: Frame) -> Any:
    outer: Frame | None = frame
    while outer is not None and "__class__" not in outer.closure:
        outer = outer.parent
    if outer is None or outer.first is None:
        raise RuntimeError("super(): no arguments")
    return super(outer.closure["__class__"].cell_contents, outer.first)


@expression(ast.Lambda)
def _lambda(t: Trace, frame: Frame, node: ast.Lambda) -> Any:
    return function_of(t, frame, node)


# ---- comprehensions -----------------------------------------------------------------------------


@expression(ast.ListComp, ast.GeneratorExp)
def _list_comprehension(t: Trace, frame: Frame, node: Any) -> Any:
    found: list[Any] = []
    _comprehend(t, frame, node, lambda inner: found.append(evaluate(t, inner, node.elt)))
    return _made(t, found)


@expression(ast.SetComp)
def _set_comprehension(t: Trace, frame: Frame, node: ast.SetComp) -> Any:
    found: set[Any] = set()
    _comprehend(t, frame, node, lambda inner: found.add(evaluate(t, inner, node.elt)))
    return _made(t, found)


@expression(ast.DictComp)
def _dict_comprehension(t: Trace, frame: Frame, node: ast.DictComp) -> Any:
    found: dict[Any, Any] = {}

    def add(inner: Frame) -> None:
        key = evaluate(t, inner, node.key)
        found[key] = evaluate(t, inner, node.value)

    _comprehend(t, frame, node, add)
    return _made(t, found)


def _comprehend(t: Trace, frame: Frame, node: Any, add: Callable[[Frame], None]) -> None:
    names = getattr(node, "_duograph_names", None)
    if names is None:
        names = node._duograph_names = local_names(node)[0]
    _generators(t, frame.inner(names, t.builder.depth), frame, node.generators, add)


def _generators(t: Trace, inner: Frame, source: Frame, generators: Any, add: Any) -> None:
    from .ranges import GraphRange
    from .statements import iterate

    first, *rest = generators
    items = evaluate(t, source, first.iter)
    if isinstance(items, (GraphRange, GraphScalar, GraphObject)):
        raise NeedsValue(
            "comprehension: got a length that is known only when the compiled function runs; wanted a constant"
        )
    for item in iterate(t, items):
        assign(t, inner, first.target, item)
        kept = True
        for test in first.ifs:
            found = condition(t, inner, test)
            if not isinstance(found, bool):
                raise NeedsValue(
                    "comprehension: got a condition on a Tensor; the length of the result would be unknown"
                )
            if not found:
                kept = False
                break
        if not kept:
            continue
        if rest:
            _generators(t, inner, inner, rest, add)
        else:
            add(inner)


# ---- strings ------------------------------------------------------------------------------------


@expression(ast.JoinedStr)
def _joined(t: Trace, frame: Frame, node: ast.JoinedStr) -> Any:
    parts = [evaluate(t, frame, v) for v in node.values]
    if any(isinstance(p, GraphObject) for p in parts):
        return run_on_host(t, lambda *p: "".join(map(str, p)), tuple(parts), {}, "join")
    return "".join(parts)


@expression(ast.FormattedValue)
def _formatted(t: Trace, frame: Frame, node: ast.FormattedValue) -> Any:
    value = evaluate(t, frame, node.value)
    spec = "" if node.format_spec is None else evaluate(t, frame, node.format_spec)
    convert = {-1: None, 115: str, 114: repr, 97: ascii}[node.conversion]

    def text(v: Any, s: str) -> str:
        return format(v if convert is None else convert(v), s)

    if depends_on_graph(value) or depends_on_graph(spec):
        return run_on_host(t, text, (value, spec), {}, "format")
    return native(t, text, (value, spec), {})


@expression(ast.Starred)
def _starred(t: Trace, frame: Frame, node: ast.Starred) -> Any:
    return evaluate(t, frame, node.value)


# ---- targets ------------------------------------------------------------------------------------


def assign(t: Trace, frame: Frame, target: Any, value: Any) -> None:
    """Assign to a name, an attribute, an item, or a pattern of them."""
    if isinstance(target, ast.Name):
        store(t, frame, target.id, value)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(t, frame, target.value)
        set_attribute(t, owner, mangled(frame, target.attr), value)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(t, frame, target.value)
        set_item(t, owner, evaluate(t, frame, target.slice), value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(t, frame, target.elts, value)
    else:
        raise unsupported(f"target {type(target).__name__!r}", None, "Assign to a name")


def _unpack(t: Trace, frame: Frame, targets: list[Any], value: Any) -> None:
    from .statements import iterate

    if isinstance(value, (GraphObject, GraphScalar)):
        raise NeedsValue("unpack: got a value that is known only when the compiled function runs")
    if not _iterable(value):
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object")
    items = list(iterate(t, value))
    stars = [i for i, x in enumerate(targets) if isinstance(x, ast.Starred)]
    if not stars:
        if len(items) > len(targets):
            raise ValueError(f"too many values to unpack (expected {len(targets)})")
        if len(items) < len(targets):
            raise ValueError(
                f"not enough values to unpack (expected {len(targets)}, got {len(items)})"
            )
        for target, item in zip(targets, items, strict=True):
            assign(t, frame, target, item)
        return
    star = stars[0]
    after = len(targets) - star - 1
    if len(items) < len(targets) - 1:
        raise ValueError(
            f"not enough values to unpack (expected at least {len(targets) - 1}, got {len(items)})"
        )
    for target, item in zip(targets[:star], items):
        assign(t, frame, target, item)
    assign(t, frame, targets[star].value, _made(t, items[star : len(items) - after]))
    for target, item in zip(targets[star + 1 :], items[len(items) - after :]):
        assign(t, frame, target, item)


def delete(t: Trace, frame: Frame, target: Any) -> None:
    """`del target`."""
    if isinstance(target, ast.Name):
        remove(t, frame, target.id)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(t, frame, target.value)
        delete_item(t, owner, evaluate(t, frame, target.slice))
    elif isinstance(target, ast.Attribute):
        delete_attribute(t, evaluate(t, frame, target.value), mangled(frame, target.attr))
    else:
        for x in target.elts:
            delete(t, frame, x)


def evaluate_in_place(t: Trace, frame: Frame, node: ast.AugAssign) -> None:
    """`target += value`: a tensor, number or tuple is rebound, a list or a set changes in place."""
    target = node.target
    if isinstance(target, ast.Name):
        old = load(t, frame, target.id)
        store(t, frame, target.id, _augmented(t, node, old, evaluate(t, frame, node.value)))
    elif isinstance(target, ast.Attribute):
        owner = evaluate(t, frame, target.value)
        name = mangled(frame, target.attr)
        old = get_attribute(t, owner, name, target)
        set_attribute(t, owner, name, _augmented(t, node, old, evaluate(t, frame, node.value)))
    else:
        owner = evaluate(t, frame, target.value)
        index = evaluate(t, frame, target.slice)
        old = get_item(t, owner, index)
        set_item(t, owner, index, _augmented(t, node, old, evaluate(t, frame, node.value)))


def _augmented(t: Trace, node: ast.AugAssign, old: Any, value: Any) -> Any:
    kind = type(node.op)
    if isinstance(old, list) and kind is ast.Add:
        call(t, old.extend, (value,), {})
        return old
    if isinstance(old, np.ndarray):
        name = _IN_PLACE[kind].__name__
        changing_array(t, old, name)
        if depends_on_graph(value):
            raise UnsupportedSyntaxError(
                f"{name}: got an array of NumPy that was made while compiling, to change with what is known only when "
                f"the function runs; wanted a Tensor"
            )
    if isinstance(old, (list, dict, set)):
        from .containers import changing

        changing(t, old)
        return _IN_PLACE[kind](old, value)
    if isinstance(old, Tensor) or not hasattr(
        type(old), f"__i{_BINARY[kind].__name__.strip('_')}__"
    ):
        return apply(t, _BINARY[kind], old, value)
    return apply(t, _IN_PLACE[kind], old, value)
