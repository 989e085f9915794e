"""Joins two branches: computes the value of each variable after both were evaluated.

From the values of a variable at the ends of the two branches, a `Join` makes one *template*: a
value with a `Placeholder` for each result of the `switch` node. `with_results` replaces the
placeholders once that node exists. `branches`, `gradients` and `recursion` use joins. A join must
not evaluate source.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dtype import bool_
from ...errors import JoinError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.control import HostCall, host_call
from ...ir.values import GraphScalar, HostValue, kind_of
from ...ops.creation import fill
from ...tensor import Tensor
from ...types import BOOL, FLOAT, INT, OBJECT, HostType
from ..diagnostics import join_error
from ..libraries import is_framework
from ..state.builder import StagedBuilder
from ..state.captures import same
from ..state.evaluation import Evaluation
from ..state.journal import MISSING, Changes, Location
from ..types import Flag, GraphValue, Value
from ..values.flow import NOTHING, Flow, Maybe, Undefined
from ..values.functions import Choice, Function, same_function
from ..values.nested import tuple_like
from .aliasing import note_candidates, tensor_behind
from .branch_ends import items_at_end
from .host import object_of
from .joined_values import Ends, JoinedDict, JoinedList, Placeholder
from .truth import as_flag, negated

_FILL = {INT: 0, FLOAT: 0.0, BOOL: False, OBJECT: None}


class Exports:
    """Outputs of the sub-graphs of one `switch` node: a table with a column for each sub-graph.

    Row i of the table is result i of the node.

    Attributes:
        builders: the builders of the sub-graphs.
        columns: for each sub-graph, its output values.
        tensors: index of a row -> for each branch, the tensor that has the value in this row.
        objects: index of the row of a tensor -> index of the row of its Python Tensor object.
    """

    def __init__(self, builders: list[StagedBuilder]) -> None:
        self.builders = builders
        self.columns: list[list[Value]] = [[] for _ in builders]
        self.tensors: dict[int, list[Value]] = {}
        self.objects: dict[int, int] = {}
        self._same: dict[Value, int] = {}

    def add_row(self, values: list[Value], tensors: Sequence[Value] = ()) -> Placeholder:
        """Make one value of each sub-graph its output at a common position; return a placeholder.

        If the same values already are outputs, their position is used again.

        Args:
            values: the values, one per sub-graph.
            tensors: the tensors that have these values, if any: two tensors can have one value,
                until one of them is written in place.
        """
        key = (*((id(v._builder), v._id) for v in values), *map(id, tensors))
        found = self._same.get(key)
        if found is None:
            found = self._same[key] = len(self.columns[0])
            for column, v, b in zip(self.columns, values, self.builders, strict=True):
                column.append(b.tensor(v._id))
        return Placeholder(found)


def placeholder_value(builder: StagedBuilder, type_: Value) -> Value:
    """Append a zero, False or None of a given type, for a value that is never read; return it."""
    with builder.current():
        if isinstance(type_, HostType):
            return builder.host(_FILL.get(type_))
        return fill(type_.shape, False if type_.dtype is bool_ else 0, type_.dtype)


def describe(value: Value) -> str:
    """Return a short description of a value of the evaluated code for an error message."""
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


def join_side(value: Value) -> Value:
    """Return what a join error shows for one side: a tensor itself, any other value as text."""
    return value if isinstance(value, Tensor) else describe(value)


def or_line_by_line(error: JoinError, *values: Value) -> Exception:
    """Return the error to raise for values that cannot be joined.

    It is `error`, unless a value is a Python function or object. Then it is an
    UnsupportedSyntaxError, which at syntax level LAX makes the function run uncompiled.
    """
    if any(map(_is_object, values)) or all(isinstance(v, Function) for v in values):
        return line_by_line(error)
    return error


def _is_object(value: Value) -> bool:
    """Return whether a value is a Python object, which the graph cannot join after two branches.

    Such an object exists only at run time, or is an instance of a class of the user or of a library
    whose values a graph cannot hold. A function that needs the join runs uncompiled.
    """
    if isinstance(value, HostValue):
        return value._type is OBJECT
    if value is MISSING or isinstance(value, (Tensor, Function, *_HOSTABLE)):
        return False
    return type(value) not in (tuple, list, dict) and not is_framework(type(value).__module__)


def line_by_line(error: JoinError) -> UnsupportedSyntaxError:
    """Convert a join error to an error that at level LAX makes the function run uncompiled."""
    return UnsupportedSyntaxError(str(error), construct="If", remedy="Compute it with Tensors")


class Join:
    """Joins the values at the ends of branch 0 (else) and branch 1 (then) of a condition.

    The values are graph values of the branches, of graphs around them, or Python objects. The
    joined values hold `Placeholder`s, to be replaced by `with_results`.

    Attributes:
        ev: the evaluation.
        cond: the condition, a bool of the graph.
        exports: the outputs of the branches' sub-graphs.
        names: names of the branches, for messages.
        late: whether a name that only one branch binds may be read after the join, with a check.
        changes: for each branch, the locations that it wrote, with their content at its end.
        joined: for each branch, id of a list or dict at its end -> the templates of joined values
            that it is a part of.
    """

    def __init__(
        self,
        ev: Evaluation,
        cond: Flag,
        builders: list[StagedBuilder],
        names: tuple[str, str],
        late: bool = False,
        changes: Sequence[Changes] = ({}, {}),
    ) -> None:
        self.changes = changes
        self.late = late
        self.ev = ev
        self.cond = cond
        self.exports = Exports(builders)
        self.names = names
        self.joined: list[dict[int, list[JoinedList | JoinedDict]]] = [{} for _ in builders]

    @classmethod
    def of_one(cls, ev: Evaluation, builder: StagedBuilder) -> Join:
        """Return a Join of one sub-graph, such as a loop body, whose values become its outputs.

        Only `from_branch` may be called on it.
        """
        return cls(ev, False, [builder], ("", ""))

    def export(self, a: Value, b: Value) -> Placeholder:
        """Make one value of each branch an output; return the placeholder of the `switch` result.

        Args:
            a: a graph value of the else branch.
            b: a graph value of the same type, of the then branch.
        """
        return self.exports.add_row([a, b])

    def value(self, a: Value, b: Value, what: str) -> Value:
        """Return the value of a variable after two branches, from its value in each of them.

        Equal constants stay constants. Tensors and numbers become results of the `switch`; at
        syntax level LAX so do strings and None. Lists, tuples and dicts of equal length are joined
        item by item. Two callables become a `Choice`.

        Args:
            a, b: the value at the end of the else branch and of the then branch.
            what: the name of the variable for messages.

        Raises:
            JoinError: the values differ and cannot be outputs of the graph.
        """
        if a is b:
            return a
        if isinstance(a, HostValue) and isinstance(b, HostValue) and _equal_id(a, b):
            return a
        if what in ("*brk", "*ret"):  # flags of a loop may be host bools or tensors
            return self.flag(a, b)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return self._tensors(a, b, what)
        if a is NOTHING or b is NOTHING:
            return self.from_branch(b, 1) if a is NOTHING else self.from_branch(a, 0)
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
        of = [v for k, v in enumerate((a, b)) if self._mark_ambiguous(v, k)]
        ends = ((0, a), (1, b))
        known = self._known(ends)
        if known is not None:
            return known
        a, b = self.contents(a, 0), self.contents(b, 1)
        if type(a) is type(b) and is_sequence(a) and len(a) == len(b):
            items = [self.value(x, y, f"{what}[{i}]") for i, (x, y) in enumerate(zip(a, b))]
            if isinstance(a, list):
                return JoinedList(items, self, ends, of)
            return self.ev.owned.represent(tuple_like(a, items))
        if type(a) is type(b) is dict and list(a) == list(b):
            named = {k: self.value(a[k], b[k], f"{what}[{k!r}]") for k in a}
            return JoinedDict(named, self, ends, of)
        if same(a, b) and not isinstance(a, np.ndarray):
            return a
        if isinstance(a, frozenset) and a == b:
            return a
        if same_function(a, b):
            return a
        if all(callable(v) or isinstance(v, Choice) for v in (a, b)):
            return Choice(self.cond, self.from_branch(a, 0), self.from_branch(b, 1))
        if not self.ev.strict and _hostable(a) and _hostable(b):
            return self._host(a, b)
        raise self._refused(a, b, what)

    def _known(self, ends: Ends) -> Value:
        """Return the template of a list or dict that was joined before from the same ends, or None.

        Variables that refer to one object in each branch refer to one object after them.
        """
        k, value = ends[0]
        for template in self.joined[k].get(id(value), ()):
            if [(i, id(v)) for i, v in template.ends] == [(i, id(v)) for i, v in ends]:
                return template
        return None

    def _refused(self, a: Value, b: Value, what: str) -> Exception:
        """Return the error to raise for values of two branches that cannot be joined."""
        where = (f"in the {self.names[1]!r} branch", f"in the {self.names[0]!r} branch")
        if self.names == ("fall-through", "return"):
            where = ("where it returns", "in what follows")
        return or_line_by_line(join_error(what, join_side(b), join_side(a), where=where), a, b)

    def _mark_ambiguous(self, value: Value, k: int) -> bool:
        """Mark a list or dict as ambiguous if it existed before branch k; return whether it did.

        After the join, it is unknown at compile time which object the variable refers to.
        """
        ev = self.ev
        ev.copies.observe(value)
        if type(value) not in (list, dict) or not (
            id(value) in ev.owned.objects or id(value) in ev.copies.originals
        ):
            return False
        if ev.owned.depths.get(id(value), 0) >= self.exports.builders[k].depth:
            return False
        ev.owned.ambiguous[id(value)] = value
        return True

    def contents(self, value: Value, k: int) -> Value:
        """Return the items of a list or dict at the end of branch k, or any other value itself."""
        if type(value) not in (list, dict):
            return value
        found = self.changes[k].get((type(value).__name__, id(value), None))
        if found is not None:
            return found[1]
        depth = self.exports.builders[k].depth
        return items_at_end(self.ev, self.changes[k], value, value, depth, False)

    def _tensors(self, a: Value, b: Value, what: str) -> Value:
        """Join one tensor of each branch; return the placeholder of the `switch` result.

        If both are the same graph value, computed before the branches, a graph tensor of that value
        is returned instead. If their types differ, a JoinError is raised. `what` is the variable's
        name for messages.
        """
        if isinstance(a, GraphTensor) and isinstance(b, GraphTensor) and _equal_id(a, b):
            made = a._builder.tensor(a._id)
            note_candidates(self.ev, made, [tensor_behind(self.ev, a), tensor_behind(self.ev, b)])
            return made
        if a._type.plain is not b._type.plain:
            raise self._refused(a, b, what)
        builders = self.exports.builders
        values = [x.operand(v, None) for x, v in zip(builders, (a, b))]
        return self._export_tensors(values, (a, b))

    def _export_tensors(self, values: list[Value], of: Sequence[Value]) -> Placeholder:
        """Make a tensor of each branch an output; return the placeholder of the `switch` result.

        If Python code holds a Tensor object of one of the tensors, the objects also become outputs.

        Args:
            values: a value per sub-graph.
            of: the tensors that have these values; None for a value that is never read.
        """
        found = self.exports.add_row(values, of)
        tensors = [tensor_behind(self.ev, v) for v in of]
        self.exports.tensors[found.index] = tensors
        if len(of) > 1 and any(id(t) in self.ev.host_objects for t in tensors):
            objects = [self._object(k, t) for k, t in enumerate(tensors)]
            self.exports.objects[found.index] = self.exports.add_row(objects).index
            self.ev.joined_objects.update({id(t): t for t in tensors})
        return found

    def _object(self, k: int, tensor: Value) -> Value:
        """Return the Python Tensor object of a tensor as a graph value of branch k's sub-graph."""
        builder = self.exports.builders[k]
        if tensor is None:
            return placeholder_value(builder, OBJECT)
        with builder.current():
            found = object_of(self.ev, tensor)
            if found is None:  # the tensor is that object
                run = HostCall(lambda: (tensor,), "tensor object")
                found = builder.append(host_call, (), {"run": run, "types": (OBJECT,)})[0]
            return builder.bring(found)

    def _host(self, a: Value, b: Value) -> Value:
        """Join Python numbers or objects of two branches; return the placeholder of the result.

        `a` and `b` are Python constants, or values that Python computes at run time. If their types
        differ, the result has the type of a general Python object.
        """
        found = []
        for builder, v in zip(self.exports.builders, (a, b)):
            with builder.current():
                found.append(builder.host(v))
        if found[0]._type is not found[1]._type:  # their host types differ: pass both as objects
            for k, builder in enumerate(self.exports.builders):
                with builder.current():
                    run = HostCall(lambda x: (x,), "object")
                    found[k] = builder.append(
                        host_call, (found[k],), {"run": run, "types": (OBJECT,)}
                    )[0]
        return self.export(*found)

    def _undefined(self, a: Value, b: Value, what: str) -> Value:
        """Return the `Undefined` marker for a variable that one of two branches does not bind."""
        unbound, where = (a, self.names[0]) if not _defined(a) else (b, self.names[1])
        if isinstance(unbound, Undefined):
            return unbound
        return Undefined(what, where)

    def _maybe(self, a: Value, b: Value, what: str) -> Value:
        """Return the joined value, a `Maybe`, of a variable that a branch may leave unbound.

        Reading the variable appends a check that it is bound.
        """
        if not _defined(a) and not _defined(b):
            return self._undefined(a, b, what)
        bound = [x.bound if isinstance(x, Maybe) else _defined(x) for x in (a, b)]
        values = [x.value if isinstance(x, Maybe) else x for x in (a, b)]
        if all(map(_defined, values)):
            value = self.value(values[0], values[1], what)
        else:
            k = 1 if _defined(values[1]) else 0
            value = self.from_branch(values[k], k)
        return Maybe(what, value, self.flag(bound[0], bound[1]))

    def items(self, value: Value, k: int) -> Value:
        """Return a new list or dict with the given items, each converted by `from_branch`.

        Args:
            value: the items at the end of branch k.
            k: number of the branch.
        """
        if isinstance(value, dict):
            return self.ev.owned.add({n: self.from_branch(v, k) for n, v in value.items()})
        return self.ev.owned.add([self.from_branch(v, k) for v in value])

    def content_from_branch(self, location: Location, value: Value, k: int) -> Value:
        """Return a location's content after two branches, taken from branch `k` alone.

        Args:
            location: the location.
            value: its content at the end of branch k. Its content in the other branch is never
                used.
            k: number of the branch: 0 (else) or 1 (then).
        """
        if location.kind in ("list", "dict"):
            return self.items(value, k)
        if location.kind in ("slot", "tensor"):  # the value is not the tensor object that has it
            return self._result(value, k)
        return self.from_branch(value, k)

    def from_branch(self, value: Value, k: int) -> Value:
        """Return the value of a variable after two branches, of which only branch `k` sets it.

        Graph values in it become results of the `switch`. The other branch outputs zeros for them;
        code that may read them checks first that branch k ran.
        """
        origin = self.ev.origins.get(id(value))
        if origin is not None:  # a tensor from before that the branch wrote in place
            return origin[1]
        if isinstance(value, (GraphTensor, HostValue)):
            return self._result(value, k)
        if isinstance(value, tuple):
            items = [self.from_branch(v, k) for v in value]
            return self.ev.owned.represent(tuple_like(value, items))
        if isinstance(value, (list, dict)):
            if self.ev.owned.depths.get(id(value), 0) < self.exports.builders[k].depth:
                return value  # it existed before; its content is joined by itself
            ends = ((k, value),)
            known = self._known(ends)
            if known is not None:
                return known
            if isinstance(value, dict):
                named = {n: self.from_branch(v, k) for n, v in value.items()}
                return JoinedDict(named, self, ends)
            return JoinedList([self.from_branch(v, k) for v in value], self, ends)
        if isinstance(value, Choice):
            parts = (value.cond, value.orelse, value.then)
            return Choice(*(self.from_branch(v, k) for v in parts))
        if isinstance(value, Maybe):
            return Maybe(
                value.name, self.from_branch(value.value, k), self.from_branch(value.bound, k)
            )
        return value

    def _result(self, value: GraphValue, k: int) -> Value:
        """Make a graph value of branch k a result of the `switch`, and return that result.

        The result is a placeholder: a graph value that stands for the output of the `switch` node
        while the code after the branches is traced. A value of an enclosing graph is returned
        unchanged.
        """
        builders = self.exports.builders
        if value._builder is not builders[k]:
            return value
        values: list[Value] = [placeholder_value(b, value._type) for b in builders]
        values[k] = value
        of: list[Value] = [None] * len(builders)
        of[k] = value
        return (
            self._export_tensors(values, of)
            if isinstance(value, Tensor)
            else (self.exports.add_row(values))
        )

    def note_candidates(self, found: Sequence[Value]) -> None:
        """Record which tensors of the branches, and which object, each `switch` result may be.

        The object is the Python Tensor that Python code holds, if any. `aliasing` reads the
        records.

        Args:
            found: the results of the node.
        """
        for index, of in self.exports.tensors.items():
            made = found[index]
            note_candidates(self.ev, made, [t for t in of if t is not None])
            if len(of) > 1:
                self.ev.choices[id(made)] = (made, self.cond, of)
        for index, made in self.exports.objects.items():
            self.ev.host_objects[id(found[index])] = (found[index], found[made])

    def flag(self, a: Value, b: Value) -> Value:
        """Join a true/false flag of two branches into a Python bool or a bool of the graph."""
        if isinstance(a, bool) and isinstance(b, bool):
            if a is b:
                return a
            return self.cond if b else negated(self.cond)
        values = []
        for builder, v in zip(self.exports.builders, (a, b)):
            with builder.current():
                values.append(as_flag(v))
        return self.export(*values)

    def flow(self, a: Flow, b: Flow, what: str) -> Flow:
        """Join the `Flow`s of two branches: how each ended, and the value that each returns."""
        ret = self.flag(a.ret, b.ret)
        value: Value = None
        if a.ret is not False and b.ret is not False:
            value = self.value(a.value, b.value, what)
        elif a.ret is not False:
            value = self.from_branch(a.value, 0)
        elif b.ret is not False:
            value = self.from_branch(b.value, 1)
        return Flow(ret, self.flag(a.brk, b.brk), self.flag(a.cont, b.cont), value)


def is_sequence(value: Value) -> bool:
    """Return whether a value is a list, tuple or named tuple, which is joined item by item."""
    return type(value) in (list, tuple) or hasattr(type(value), "_fields")


def _equal_id(a: Value, b: Value) -> bool:
    return a._builder is b._builder and a._id == b._id


def _defined(value: Value) -> bool:
    return value is not MISSING and not isinstance(value, Undefined)


_HOSTABLE = (bool, int, float, complex, str, bytes, type(None))


def _hostable(value: Value) -> bool:
    return isinstance(value, (*_HOSTABLE, HostValue))
