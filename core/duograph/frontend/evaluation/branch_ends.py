"""Returns values as they are at the end of a branch, including what the branch wrote in place.

`branches` undoes the writes of a branch to everything that existed before it. `join` then needs the
tensors and containers as they were with these writes. Nothing here evaluates source or changes a
value.
"""

from __future__ import annotations

from ...ir.builder import GraphTensor
from ...tensor import Tensor
from ..state.builder import StagedBuilder
from ..state.evaluation import Evaluation
from ..state.journal import Changes, Location
from ..types import Value
from ..values.flow import Flow
from ..values.nested import tuple_like
from .aliasing import note_candidates


def value_at_end(
    ev: Evaluation, changes: Changes, value: Value, depth: int, deep: bool = False
) -> Value:
    """Return the value that a variable with value `value` has at the end of a branch.

    In-place changes by the branch are included: a tensor that the branch wrote in place is replaced
    by its new value. Lists and dicts that existed before the branch stay the same objects unless
    `deep`: their content is joined separately.

    Args:
        ev: the evaluation.
        changes: the locations that the branch wrote, with their content at its end.
        value: the value.
        depth: the nesting depth of the branch's graph.
        deep: whether lists and dicts that existed before the branch are also rebuilt.
    """
    if isinstance(value, GraphTensor):
        found = changes.get(("tensor", id(value), None))
        return value if found is None else _note_origin(ev, found[1], value)
    if isinstance(value, Tensor):
        slot = ev.inputs.slots.get(id(value))
        if slot is None:
            return value
        found = changes.get(("slot", id(slot), None))
        if found is None and slot.fresh and slot.written:  # made and written in the branch
            now = ev.builder.tensor(ev.builder.bring(slot.current)._id)
            note_candidates(ev, now, [value])
            return now
        return value if found is None else _note_origin(ev, found[1], value)
    if isinstance(value, Flow):
        inner = value_at_end(ev, changes, value.value, depth, deep)
        if inner is value.value:
            return value
        return Flow(value.ret, value.brk, value.cont, inner, value.dead)
    kind = type(value)
    if kind in (list, dict):
        if not deep and ev.owned.depths.get(id(value), 0) < depth:
            return value
        found = changes.get((kind.__name__, id(value), None))
        content = value if found is None else found[1]
        return items_at_end(ev, changes, content, value, depth, deep)
    if kind is tuple or hasattr(kind, "_fields"):
        return items_at_end(ev, changes, value, value, depth, deep)
    return value


def _note_origin(ev: Evaluation, now: Value, tensor: Tensor) -> Value:
    """Record which eager tensor a branch wrote a graph value into; return the graph value.

    `aliasing.tensor_behind` looks the tensor up.
    """
    ev.origins[id(now)] = (now, tensor)
    return now


def items_at_end(
    ev: Evaluation, changes: Changes, content: Value, value: Value, depth: int, deep: bool
) -> Value:
    """Return a list, tuple or dict with its tensors' values as they are at the end of a branch.

    Returns `value` itself if the rebuilt items would be its present items, in the same order.

    Args:
        ev: the evaluation.
        changes: the locations that the branch wrote, with their content at its end.
        content: the items of the container at the end of the branch.
        value: the container.
        depth: the nesting depth of the branch's graph.
        deep: whether to rebuild also lists and dicts inside it that existed before the branch;
            otherwise they stay the same objects.
    """
    if isinstance(content, dict):
        made = {k: value_at_end(ev, changes, v, depth, deep) for k, v in content.items()}
        alike = list(made) == list(value) and all(made[k] is value[k] for k in made)
        return value if alike else ev.owned.add(made)
    items = [value_at_end(ev, changes, v, depth, deep) for v in content]
    if len(items) == len(value) and all(a is b for a, b in zip(items, value)):
        return value
    if isinstance(value, list):
        return ev.owned.add(items)
    return tuple_like(value, items)


def content_at_end(
    ev: Evaluation, changes: Changes, location: Location, value: Value, child: StagedBuilder
) -> Value:
    """Return the content of a location at the end of a branch, including in-place changes.

    For example, the branch appends a tensor t to a list and then writes t in place. The content of
    the list then has the new value of t.

    Args:
        ev: the evaluation.
        changes: the locations that the branch wrote, with their content at its end.
        location: a location that the branch wrote.
        value: its content at the end of the branch, without the in-place changes.
        child: the builder of the branch's graph.
    """
    if location.kind in ("list", "dict"):
        return items_at_end(ev, changes, value, value, child.depth, False)
    return value_at_end(ev, changes, value, child.depth)
