"""Refuses to write in place, or to tell apart, tensors that a graph condition chose among several.

After `x = y if c else z`, Python's `x[0] = 1` changes y or z, and `x is y` depends on c. In a graph
x is a third value, so the write is refused while y or z is still reachable, and the comparison
always. `evaluator`, `branches`, `graph_loops` and `operators` call this module; it never changes a
tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...tensor import Tensor
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.flow import Maybe
from ..values.functions import Function


def tensor_behind(ev: Evaluation, value: Value) -> list[Value]:
    """Return the tensor that a value at the end of a branch stands for; [] for other values.

    For a graph value that the branch wrote in place into a tensor, that is the tensor.
    """
    if not isinstance(value, Tensor):
        return []
    return [ev.origins.get(id(value), (value, value))[1]]


def note_candidates(ev: Evaluation, made: Value, of: Sequence[Value]) -> None:
    """Record that a graph tensor may turn out at run time to be any of the tensors `of`."""
    if of and isinstance(made, GraphTensor):
        ev.candidates[id(made)] = (made, [*ev.candidates.get(id(made), (made, []))[1], *of])


def may_be(ev: Evaluation, value: Value) -> list[Value]:
    """Return the tensors of which a tensor is one at run time: often only the tensor itself."""
    found = {id(value): value}
    waiting = [value]
    while waiting:
        for x in ev.candidates.get(id(waiting.pop()), (None, ()))[1]:
            if id(x) not in found:
                found[id(x)] = x
                waiting.append(x)
    return [*found.values()]


def check_not_shared(ev: Evaluation, target: Value) -> None:
    """Raise if an in-place change of a tensor could also change another visible tensor.

    Raises:
        UnsupportedSyntaxError: a graph condition decides whether the two are one tensor.
    """
    if not ev.candidates:
        return
    links: dict[int, list[Value]] = {}
    for made, of in ev.candidates.values():
        for x in of:
            links.setdefault(id(made), []).append(x)
            links.setdefault(id(x), []).append(made)
    found = {id(target): target}
    waiting = [target]
    while waiting:
        for x in links.get(id(waiting.pop()), ()):
            if id(x) not in found:
                found[id(x)] = x
                waiting.append(x)
    del found[id(target)]
    if found and any(id(x) in found for x in _visible_tensors(ev, found)):
        raise UnsupportedSyntaxError(
            "setitem: got a write in place to one of several Tensors, chosen by a condition on a "
            "Tensor or by a loop inside jit; the write would have to change the original, too",
            construct="setitem",
            remedy="Copy the Tensor before it is written, e.g. x = x.copy()",
        )


def _visible_tensors(ev: Evaluation, found: dict[int, Value]) -> Iterator[Value]:
    """Yield the tensors that the evaluated program or outside code can still reach."""
    yield from (made for made, _, _ in ev.inputs.arguments)
    yield from (x for k, x in found.items() if k in ev.host_objects or k in ev.inputs.locations)
    for x in found.values():
        if not isinstance(x, GraphTensor) and id(x) not in ev.owned.tensors:
            yield x  # from outside
    done: set[int] = set()
    for frame in ev.calls.frames:
        yield from _in_frame(frame, done)
    yield from _in_values(ev.outside.values.values(), done)
    yield from _in_values(ev.copies.copies(), done)


def _in_frame(frame: Frame | None, done: set[int]) -> Iterator[Value]:
    """Yield the tensors in the variables of a function's frame and of enclosing frames."""
    while frame is not None and id(frame) not in done:
        done.add(id(frame))
        yield from _in_values(frame.vars.values(), done)
        frame = frame.parent


def _in_values(values: Iterable[Value], done: set[int]) -> Iterator[Value]:
    """Yield the tensors in nested values, in attributes of objects and in function defaults."""
    for v in values:
        if isinstance(v, Tensor):
            yield v
            continue
        if id(v) in done:
            continue
        if isinstance(v, (list, tuple, set)):
            done.add(id(v))
            yield from _in_values(v, done)
        elif isinstance(v, dict):
            done.add(id(v))
            yield from _in_values(v.values(), done)
        elif isinstance(v, Function):
            done.add(id(v))
            yield from _in_values(v.defaults, done)
            yield from _in_frame(v.parent, done)
        elif isinstance(v, Maybe):
            yield from _in_values((v.value,), done)
        elif hasattr(v, "__dict__") and not isinstance(v, type) and not callable(v):
            done.add(id(v))
            yield from _in_values(list(vars(v).values()), done)
