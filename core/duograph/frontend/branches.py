"""An `if` on a tensor: both branches are evaluated apart, and what they leave behind is joined by a
`switch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import bool_
from ..errors import JoinError, UnsupportedSyntaxError
from ..ir.builder import GraphTensor
from ..ir.control import host_call, switch, to_tensor
from ..ir.values import GraphObject, GraphScalar, HostValue, kind_of
from ..ops.comparison import not_equal
from ..ops.creation import fill
from ..ops.logic import logical_not, logical_or
from ..ops.shape_primitives import reshape_to
from ..runtime_state import thread_state
from ..tensor import Tensor
from ..types import BOOL, FLOAT, INT, OBJECT, HostType
from .aliases import note_one_of, older
from .captures import same
from .diagnostics import join_error
from .frames import same_function
from .host import constant_call
from .trace import MISSING, Trace
from .values import NOTHING, Choice, Flow, Maybe, Undefined, Unjoined

__all__ = ["select", "truth", "negated", "as_flag", "Exports", "describe", "side", "filler"]

_FILL = {INT: 0, FLOAT: 0.0, BOOL: False, OBJECT: None}


# ---- truth --------------------------------------------------------------------------------------


def truth(t: Trace, value: Any) -> Any:
    """`bool(value)`: a Python bool when it is known, else a 0-d bool tensor or a host bool."""
    if value is True or value is False:
        return value
    if isinstance(value, Tensor):
        if not isinstance(value, GraphTensor):
            if id(value) in t.fresh and id(value) not in t.slots:
                return bool(value)
            value = t.builder.bring(t.state_value(value))
        return one_bool(value)
    if isinstance(value, GraphScalar):
        return value if value._type is BOOL else value.apply("bool", value)
    if isinstance(value, GraphObject):
        return t.builder.append(
            host_call,
            (t.builder.bring(value),),
            {"run": constant_call(lambda x: (bool(x),), "bool"), "types": (BOOL,)},
        )[0]
    if type(value).__module__ != "builtins":
        from .calls import call
        from .overloads import user_method

        for name in ("__bool__", "__len__"):
            if user_method(value, name) is not None:
                return truth(t, call(t, getattr(value, name), (), {}))
    return bool(value)


def one_bool(x: Any) -> Any:
    """The truth of a graph tensor of one element, 0-d."""
    if x.size != 1:
        from ..errors import ArgumentValueError

        raise ArgumentValueError(
            f"bool: got a tensor of shape {x.shape}; the truth of several elements is ambiguous, "
            f"wanted one element (use .any(), .all() or an index)"
        )
    if x.shape:
        x = reshape_to(x, ())
    return x if x.dtype is bool_ else not_equal(x, 0)


def negated(flag: Any) -> Any:
    """`not flag`."""
    if flag is True or flag is False:
        return not flag
    if isinstance(flag, GraphScalar):
        return flag.apply("not", flag)
    return logical_not(flag)


def either(a: Any, b: Any) -> Any:
    """`a or b` of flags."""
    if a is True or b is True:
        return True
    if a is False:
        return b
    if b is False:
        return a
    if isinstance(a, GraphScalar) and isinstance(b, GraphScalar):
        return a.apply("or", a, b)
    return logical_or(as_flag(a), as_flag(b))


def as_flag(flag: Any) -> Any:
    """A flag as a 0-d bool tensor of the current graph."""
    builder: Any = thread_state.builder
    if isinstance(flag, bool):
        return builder.constant(flag, bool_)
    if isinstance(flag, GraphScalar):
        return builder.append(to_tensor, (builder.host(flag),), {"dtype": bool_})
    return builder.bring(flag)


# ---- joining ------------------------------------------------------------------------------------


class Placeholder:
    """Stands for result `index` of the switch that is being made."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Exports:
    """The values that leave several sub-graphs side by side: one column per sub-graph."""

    def __init__(self, builders: list[Any]) -> None:
        self.builders = builders
        self.columns: list[list[Any]] = [[] for _ in builders]
        self.of: dict[
            int, list[Any]
        ] = {}  # tensors from before, of which one may leave as such a column
        self._same: dict[Any, int] = {}

    def put(self, values: list[Any]) -> Placeholder:
        key = tuple((id(v._builder), v._id) for v in values)
        found = self._same.get(key)
        if found is None:
            found = self._same[key] = len(self.columns[0])
            for column, v, b in zip(self.columns, values, self.builders, strict=True):
                column.append(b.tensor(v._id))
        return Placeholder(found)


def filler(builder: Any, type_: Any) -> Any:
    """A value of a type that nobody will read."""
    with builder.current():
        if isinstance(type_, HostType):
            return builder.host(_FILL.get(type_))
        return fill(type_.shape, False if type_.dtype is bool_ else 0, type_.dtype)


def describe(value: Any) -> str:
    """A value as an error message names it."""
    if value is MISSING or isinstance(value, Undefined):
        return "nothing"
    if isinstance(value, Tensor):
        return f"a Tensor of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, HostValue):
        return {"object": "an object"}.get(value._type.name, f"a Python {value._type.name}")
    if isinstance(value, (bool, int, float, str)) or value is None:
        return f"{type(value).__name__} {value!r}" if value is not None else "None"
    if isinstance(value, (tuple, list, dict)):
        return f"a {type(value).__name__} of {len(value)} items"
    return f"a {type(value).__name__}"


def side(value: Any) -> Any:
    """What `join_error` is told about a value."""
    return value if isinstance(value, Tensor) else describe(value)


def or_python(error: JoinError, *values: Any) -> Exception:
    """The error of a join; where one side is known to Python alone, one that makes LAX run line by
    line.
    """
    if any(isinstance(v, HostValue) and v._type is OBJECT for v in values):
        return UnsupportedSyntaxError(str(error), construct="If", remedy="Compute it with Tensors")
    return error


class Join:
    """Joins values of branch 0 (else) and branch 1 (then)."""

    def __init__(
        self,
        t: Trace,
        cond: Any,
        builders: list[Any],
        names: tuple[str, str],
        late: bool = False,
        changes: Sequence[dict[Any, tuple[Any, Any]]] = ({}, {}),
    ) -> None:
        self.changes = changes  # of the branches
        self.late = late  # whether a name that only one branch binds may be read after it
        self.t = t
        self.cond = cond
        self.exports = Exports(builders)
        self.names = names

    # values are graph values of the children, of graphs around them, or Python objects

    def pair(self, a: Any, b: Any) -> Any:
        return self.exports.put([a, b])

    def value(self, a: Any, b: Any, what: str) -> Any:
        if a is b:
            return a
        if isinstance(a, HostValue) and isinstance(b, HostValue) and _equal_id(a, b):
            return a
        if what in ("*brk", "*ret"):  # flags of a loop: host bools and tensors mix
            return self.flag(a, b)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return self._tensors(a, b, what)
        if a is NOTHING or b is NOTHING:
            return self.only(b, 1) if a is NOTHING else self.only(a, 0)
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            return self._maybe(a, b, what)
        if not _defined(a) or not _defined(b):
            return self._maybe(a, b, what) if self.late else self._undefined(a, b, what)
        ka, kb = kind_of(a), kind_of(b)
        if ka is not None and kb is not None and ka is kb:
            if (
                not isinstance(a, GraphScalar)
                and not isinstance(b, GraphScalar)
                and repr(a) == repr(b)
            ):
                return a
            return self._host(a, b)
        two = self._freeze(a, 0) | self._freeze(b, 1)
        a, b = self.contents(a, 0), self.contents(b, 1)
        if type(a) is type(b) and isinstance(a, (tuple, list)) and len(a) == len(b):
            items = [self.value(x, y, f"{what}[{i}]") for i, (x, y) in enumerate(zip(a, b))]
            if isinstance(a, list):
                return _ListOfTwo(items) if two else items
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
            named = {k: self.value(a[k], b[k], f"{what}[{k!r}]") for k in a}
            return _DictOfTwo(named) if two else named
        if same(a, b):
            return a
        if isinstance(a, (set, frozenset)) and a == b:
            return a
        if same_function(a, b):
            return a
        if all(callable(v) or isinstance(v, Choice) for v in (a, b)):
            return Choice(self.cond, self.only(a, 0), self.only(b, 1))
        if not self.t.strict and _hostable(a) and _hostable(b):
            return self._host(a, b)
        raise self._refused(a, b, what)

    def _refused(self, a: Any, b: Any, what: str) -> Exception:
        where = (f"in the {self.names[1]!r} branch", f"in the {self.names[0]!r} branch")
        if self.names == ("fall-through", "return"):
            where = ("where it returns", "in what follows")
        return or_python(join_error(what, side(b), side(a), where=where), a, b)

    def _freeze(self, value: Any, k: int) -> bool:
        """Whether a list or dict was there before the branch; which one a name means is then not
        known any more.
        """
        t = self.t
        if type(value) not in (list, dict) or not (id(value) in t.own or id(value) in t.shadow_of):
            return False
        if t.born.get(id(value), 0) >= self.exports.builders[k].depth:
            return False
        t.frozen[id(value)] = value
        return True

    def contents(self, value: Any, k: int) -> Any:
        """What a list or dict holds at the end of branch k."""
        found = self.changes[k].get((type(value).__name__, id(value), None))
        return value if found is None else found[1]

    def _tensors(self, a: Any, b: Any, what: str) -> Any:
        if isinstance(a, GraphTensor) and isinstance(b, GraphTensor) and _equal_id(a, b):
            return a
        if a._type.plain is not b._type.plain:
            raise self._refused(a, b, what)
        builders = self.exports.builders
        found = self.pair(*[x.operand(v, None) for x, v in zip(builders, (a, b))])
        for v, builder in zip((a, b), builders):
            self.exports.of.setdefault(found.index, []).extend(older(self.t, v, builder))
        return found

    def _host(self, a: Any, b: Any) -> Any:
        found = []
        for builder, v in zip(self.exports.builders, (a, b)):
            with builder.current():
                found.append(builder.host(v))
        if found[0]._type is not found[1]._type:  # as objects
            for k, builder in enumerate(self.exports.builders):
                with builder.current():
                    run = constant_call(lambda x: (x,), "object")
                    found[k] = builder.append(
                        host_call, (found[k],), {"run": run, "types": (OBJECT,)}
                    )[0]
        return self.pair(*found)

    def _undefined(self, a: Any, b: Any, what: str) -> Any:
        lost, where = (a, self.names[0]) if not _defined(a) else (b, self.names[1])
        if isinstance(lost, Undefined):
            return lost
        return Undefined(what, where)

    def _maybe(self, a: Any, b: Any, what: str) -> Any:
        """A name that may not be bound: reading it checks that when the graph runs."""
        if not _defined(a) and not _defined(b):
            return self._undefined(a, b, what)
        bound = [x.bound if isinstance(x, Maybe) else _defined(x) for x in (a, b)]
        values = [x.value if isinstance(x, Maybe) else x for x in (a, b)]
        if all(map(_defined, values)):
            value = self.value(values[0], values[1], what)
        else:
            k = 1 if _defined(values[1]) else 0
            value = self.only(values[k], k)
        return Maybe(what, value, self.flag(bound[0], bound[1]))

    def items(self, value: Any, k: int) -> Any:
        """A new list or dict of what one holds in branch k."""
        if isinstance(value, dict):
            return {n: self.only(v, k) for n, v in value.items()}
        return [self.only(v, k) for v in value]

    def left(self, location: Any, value: Any, k: int) -> Any:
        """What a location holds at the end of branch k, when the other one does not come to its
        end.
        """
        return self.items(value, k) if location[0] in ("list", "dict") else self.only(value, k)

    def only(self, value: Any, k: int) -> Any:
        """A value of branch k; nobody reads it when the other one ran."""
        if isinstance(value, (GraphTensor, HostValue)):
            builders = self.exports.builders
            if value._builder is not builders[k]:
                return value
            values = [filler(b, value._type) for b in builders]
            values[k] = value
            return self.exports.put(values)
        if isinstance(value, tuple):
            items = [self.only(v, k) for v in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, (list, dict)):
            if self.t.born.get(id(value), 0) < self.exports.builders[k].depth:
                return value  # it was there before: what it holds is a change of its own
            return self.items(value, k)
        if isinstance(value, Choice):
            parts = (value.cond, value.orelse, value.then)
            return Choice(*(self.only(v, k) for v in parts))
        if isinstance(value, Maybe):
            return Maybe(value.name, self.only(value.value, k), self.only(value.bound, k))
        return value

    def flag(self, a: Any, b: Any) -> Any:
        """A flag of branch 0 and of branch 1."""
        if isinstance(a, bool) and isinstance(b, bool):
            if a is b:
                return a
            return self.cond if b else negated(self.cond)
        values = []
        for builder, v in zip(self.exports.builders, (a, b)):
            with builder.current():
                values.append(as_flag(v))
        return self.pair(*values)

    def flow(self, a: Flow, b: Flow, what: str) -> Flow:
        ret = self.flag(a.ret, b.ret)
        value: Any = None
        if a.ret is not False and b.ret is not False:
            value = self.value(a.value, b.value, what)
        elif a.ret is not False:
            value = self.only(a.value, 0)
        elif b.ret is not False:
            value = self.only(b.value, 1)
        return Flow(ret, self.flag(a.brk, b.brk), self.flag(a.cont, b.cont), value)


def _equal_id(a: Any, b: Any) -> bool:
    return a._builder is b._builder and a._id == b._id


def _defined(value: Any) -> bool:
    return value is not MISSING and not isinstance(value, Undefined)


def _hostable(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, str, bytes, type(None), HostValue))


class _OneOfTwo:
    """Mixed into a template of a list or dict: the branches leave different ones, of which one
    lives on elsewhere.
    """


class _ListOfTwo(_OneOfTwo, list[Any]):
    pass


class _DictOfTwo(_OneOfTwo, dict[Any, Any]):
    pass


def _made(template: Any, value: Any) -> Any:
    """A list or dict that a join makes."""
    builder: Any = thread_state.builder
    builder.trace.note_own(value)
    if isinstance(template, _OneOfTwo):
        builder.trace.frozen[id(value)] = value
    return value


def fill_in(template: Any, results: Any) -> Any:
    """A joined value with the results of the switch in it; a list or dict that holds none of them
    is itself.
    """
    if isinstance(template, Placeholder):
        return results[template.index]
    if isinstance(template, (list, tuple)):
        items = [fill_in(v, results) for v in template]
        if not isinstance(template, _OneOfTwo) and all(a is b for a, b in zip(items, template)):
            return template
        if isinstance(template, list):
            return _made(template, items)
        return type(template)(*items) if hasattr(template, "_fields") else tuple(items)
    if isinstance(template, dict):
        named = {k: fill_in(v, results) for k, v in template.items()}
        same_items = all(named[k] is v for k, v in template.items())
        if same_items and not isinstance(template, _OneOfTwo):
            return template
        return _made(template, named)
    if isinstance(template, Choice):
        parts = (template.cond, template.orelse, template.then)
        return Choice(*(fill_in(v, results) for v in parts))
    if isinstance(template, Maybe):
        value, bound = fill_in(template.value, results), fill_in(template.bound, results)
        return Maybe(template.name, value, bound)
    if isinstance(template, Flow):
        ret, brk, cont, value = (
            fill_in(v, results) for v in (template.ret, template.brk, template.cont, template.value)
        )
        return Flow(ret, brk, cont, value, template.dead)
    return template


def select(
    t: Trace,
    cond: Any,
    then: Callable[[], Any],
    orelse: Callable[[], Any],
    what: str,
    names: tuple[str, str] = ("else", "if"),
    own: Any = None,
    late: bool = False,
) -> Any:
    """Evaluate both branches apart and join their results and what they wrote.

    Args:
        cond: 0-d bool tensor, or host bool.
        then, orelse: return a value, or both a `Flow`.
        what: names the result in messages.
        own: the variables of the function that evaluates this; a branch that returns from it leaves
            them behind.
        late: reading a name that one branch binds is checked when the graph runs (a walrus in an
            expression).
    """
    branches = [t.apart(lambda: _reached(orelse)), t.apart(lambda: _reached(then))]
    builders = [b[0] for b in branches]
    results = [b[1] for b in branches]
    changes = [b[2] for b in branches]
    join = Join(t, cond, builders, names, late, changes)
    gone = [isinstance(r, Flow) and r.dead for r in results]
    left = [isinstance(r, Flow) and r.ret is True for r in results]
    if all(gone):
        template: Any = results[0]
    elif any(gone):
        k = gone.index(False)
        r = results[k]
        if isinstance(r, Flow):
            template = Flow(*(join.only(v, k) for v in (r.ret, r.brk, r.cont, r.value)))
        else:
            template = join.only(r, k)
    elif isinstance(results[0], Flow):
        template = join.flow(results[0], results[1], what)
    else:
        template = join.value(results[0], results[1], what)
    written: list[tuple[Any, Any]] = []
    for key in {**changes[0], **changes[1]}:
        location = (changes[0].get(key) or changes[1][key])[0]
        before = _present(location)
        values = [
            c[key][1] if key in c else t.settled(c, before, b.depth)
            for c, b in zip(changes, builders)
        ]
        away = [
            g or (le and location[0] == "item" and location[1] is own) for g, le in zip(gone, left)
        ]
        if all(away):
            continue
        label = label_of(t, location)
        if any(away):
            k = away.index(False)
            made = join.left(location, values[k], k)
        else:
            try:
                made = join.value(values[0], values[1], label)
            except JoinError as error:
                local = location[0] == "item" and any(location[1] is f.vars for f in t.frames)
                if not local or not _made_alike(t, values[0], values[1]):
                    raise
                made = Unjoined(label, error)
        written.append((location, made))
    found = _append(t, cond, builders, join.exports.columns)
    for index, of in join.exports.of.items():
        note_one_of(t, found[index], of)
    for location, made in written:
        t.put(location, fill_in(made, found))
    return fill_in(template, found)


def _made_alike(t: Trace, a: Any, b: Any) -> bool:
    """Whether both are objects of one class of the user's that the function itself made."""
    a, b = (x.value if isinstance(x, Maybe) else x for x in (a, b))
    return type(a) is type(b) and id(a) in t.own and id(b) in t.own and hasattr(a, "__dict__")


def _reached(run: Callable[[], Any]) -> Any:
    """The result of a branch; one that always raises is dead."""
    from .calls import Dead

    try:
        return run()
    except Dead:
        return Flow(dead=True)


def _append(t: Trace, cond: Any, builders: list[Any], columns: list[list[Any]]) -> Any:
    outer = list(dict.fromkeys(i for b in builders for i in b.outer))
    if not columns[0] and not any(b.nodes for b in builders):
        return ()
    graphs = tuple(b.closed(c, outer) for b, c in zip(builders, columns, strict=True))
    parent = t.builder
    if not columns[0] and not any(g.effects for g in graphs):
        return ()
    index = parent.bring(cond)
    operands = (index, *(parent.tensor(i) for i in outer))
    return parent.append(switch, operands, {"branches": graphs})


def _present(location: Any) -> Any:
    from .trace import read_location

    return read_location(*location)


def label_of(t: Trace, location: Any) -> str:
    """A location as a message names it."""
    kind, owner, name = location
    if kind in ("item", "attribute"):
        label = str(name[1] if isinstance(name, tuple) else name)
        return "the result of the loop" if label == "*value" else label
    if kind == "slot":
        return str(getattr(owner.tensor, "name", "a Tensor"))
    for variable, value in t.frames[-1].vars.items() if t.frames else ():
        if value is owner:
            return str(variable)
    return {"tensor": "the Tensor", "list": "the list", "dict": "the dict", "set": "the set"}[kind]
