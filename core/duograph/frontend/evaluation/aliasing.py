"""Refuses in-place writes to a tensor whose identity is known only when the graph runs.

After `x = y if c else z`, Python's `x[0] = 1` changes y or z. In the graph, x is a third value, the
result of a `switch` node, so the write would change neither y nor z. It is refused while any code
can still reach y or z. These *candidates* of x may exist before the condition or be made in one of
its branches. `host` and `identity` use the same records to refuse to store such an x in an
object from outside the function, or to compare it with `is`. `join`, `branch_ends`, `graph_loops`
and `recursion` record the candidates. The module must never change a tensor.
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


def tensor_behind(ev: Evaluation, value: Value) -> Value:
    """Return the tensor into which a branch wrote the given value in place, else the value itself.

    For example, a branch runs `t[0] = 1`. The value of t at the end of the branch is a new graph
    value; `tensor_behind` of that value is t. The tensors passed to `note_candidates` must be found
    in this way, because it records tensors, not the values written into them.
    """
    origin = ev.origins.get(id(value))
    return value if origin is None else origin[1]


def note_candidates(ev: Evaluation, made: Value, of: Sequence[Value]) -> None:
    """Record that a graph tensor may turn out at run time to be any of the tensors `of`.

    The graph tensor `made` is the result of a `switch`, a loop or a recursive call, for example.
    """
    of = [x for x in of if x is not made]
    if of and isinstance(made, GraphTensor):
        ev.candidates[id(made)] = (made, [*ev.candidates.get(id(made), (made, []))[1], *of])


def check_not_shared(ev: Evaluation, target: Value) -> None:
    """Raise if an in-place change of a tensor could also change another reachable tensor.

    Raises:
        UnsupportedSyntaxError: a condition computed by the graph decides whether they are the same
            tensor.
    """
    if not ev.candidates:
        return
    if reachable_alias(ev, target):
        raise UnsupportedSyntaxError(
            "setitem: got a write in place to one of several Tensors, chosen by a condition on a "
            "Tensor or by a loop inside jit; the write would have to change the original, too",
            construct="setitem",
            remedy="Copy the Tensor before it is written, e.g. x = x.copy()",
        )


def may_have_object(ev: Evaluation, value: Value) -> bool:
    """Return whether Python code may hold a Tensor object of a tensor or of its candidates.

    The candidates are the tensors that `value` may turn out to be at run time. If Python code that
    runs with the graph holds such an object, an in-place write must also change that object.
    """
    return any(_has_object(ev, x) for x in possibilities(ev, value).values())


def _has_object(ev: Evaluation, tensor: Value) -> bool:
    """Return whether Python code holds a Tensor object of this tensor when the graph runs.

    True for arguments, tensors from outside the function, and tensors that a host call received.
    """
    if id(tensor) in ev.host_objects:
        return True
    if isinstance(tensor, GraphTensor):
        arguments = ev.inputs.arguments
        return id(tensor) in ev.inputs.locations or any(x is tensor for x, _, _ in arguments)
    return id(tensor) not in ev.owned.tensors


def reachable_alias(ev: Evaluation, target: Value) -> bool:
    """Return whether code can reach another tensor that may be the same as `target`.

    Two tensors may be the same if one is a candidate of the other, or if both have a candidate in
    common.
    """
    mine = possibilities(ev, target)
    found = {
        id(made): made
        for made, _ in list(ev.candidates.values())
        if not mine.keys().isdisjoint(possibilities(ev, made))
    }
    found.update(mine)
    del found[id(target)]
    return bool(found) and any(id(x) in found for x in _visible_tensors(ev, found))


def possibilities(ev: Evaluation, value: Value) -> dict[int, Value]:
    """Return, by id, a tensor and all tensors that it may turn out to be at run time."""
    found = {id(value): value}
    waiting = [value]
    while waiting:
        for x in ev.candidates.get(id(waiting.pop()), (None, ()))[1]:
            if id(x) not in found:
                found[id(x)] = x
                waiting.append(x)
    return found


def _visible_tensors(ev: Evaluation, found: dict[int, Value]) -> Iterator[Value]:
    """Yield the tensors that evaluated code or Python code outside the function can still reach.

    Args:
        ev: the evaluation.
        found: the tensors of interest by id; other tensors may also be yielded.
    """
    yield from (made for made, _, _ in ev.inputs.arguments)
    for k, x in found.items():
        if k in ev.inputs.locations or (k in ev.host_objects and k not in ev.joined_objects):
            yield x
    for x in found.values():
        if not isinstance(x, GraphTensor) and id(x) not in ev.owned.tensors:
            yield x  # from outside
    yield from _in_frames(ev, set())


def visible_containers(ev: Evaluation) -> set[int]:
    """Return the ids of the lists, dicts and other objects that evaluated code can still reach."""
    done: set[int] = set()
    for _ in _in_frames(ev, done):
        pass
    return done


def _in_frames(ev: Evaluation, done: set[int]) -> Iterator[Value]:
    """Yield the tensors that variables of all running functions and outside objects hold.

    The ids of the containers and objects on the way are added to `done`.
    """
    for frame in ev.calls.frames:
        yield from _in_frame(frame, done)
        yield from _in_values(frame.temporaries, done)
    yield from _in_values(ev.outside.values.values(), done)
    yield from _in_values(ev.copies.copies(), done)


def _in_frame(frame: Frame | None, done: set[int]) -> Iterator[Value]:
    """Yield the tensors in the variables of a function's frame and of enclosing frames.

    `done` holds the ids of the frames and containers already visited.
    """
    while frame is not None and id(frame) not in done:
        done.add(id(frame))
        yield from _in_values(frame.vars.values(), done)
        frame = frame.parent


def _in_values(values: Iterable[Value], done: set[int]) -> Iterator[Value]:
    """Yield the tensors in nested values, in attributes of objects and in defaults of functions.

    `done` holds the ids of the objects already visited.
    """
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
