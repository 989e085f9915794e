"""Leaves out copies of transposed, sliced and broadcast operands that kernels can read in place.

`execution.lower` calls this with the instructions of every graph above level O0, after kernel calls
were fused. A kernel declares with `PreparedCall.layouts` what it can read. Nothing here runs a
step.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Sequence

from ..backend.plugin_checks import as_viewing, call_text, error_text
from ..backend.prepared import PreparedCall
from ..backend.program import Choice, Instruction, Loop, Step, slots_read
from ..backend.views import View
from ..errors import BackendError
from ..ir.builder import expand
from ..types import TensorType

__all__ = ["read_in_place"]


def read_in_place(
    instructions: Sequence[Instruction], outputs: Collection[int]
) -> list[Instruction]:
    """Remove each copy instruction whose readers are kernel calls that can read the original.

    A *movement* is an instruction that copies a transposed, sliced or broadcast tensor. Without it,
    the kernel calls read the original buffer as a `View`, with strides. A movement is kept if its
    result is an output, if one reader needs it dense, or if there is a loop, a branch or a copy
    between it and a reader. Two movements, the second of which reads the result of the first,
    become a single view.

    Args:
        instructions: the instructions in order; each slot that a kernel call reads is written once,
            before.
        outputs: slots that are read after the instructions.
    """
    if not _offers(instructions):
        return list(instructions)
    reads = collections.Counter([*slots_read(instructions), *outputs])
    return _block(instructions, reads)


def _offers(instructions: Sequence[Instruction]) -> bool:
    """Return whether some kernel call among instructions can read an operand with strides."""
    for each in instructions:
        if isinstance(each, Loop):
            if _offers(each.body):
                return True
        elif isinstance(each, Choice):
            if any(map(_offers, each.branches)):
                return True
        elif isinstance(each, Step) and each.call.layouts:
            return True
    return False


def _block(
    instructions: Sequence[Instruction], reads: collections.Counter[int]
) -> list[Instruction]:
    """Return the instructions of a program, loop body or branch without unnecessary copies.

    A copy of a transposed, sliced or broadcast tensor is unnecessary if all kernels that read it
    can read the original with strides. `reads` counts the reads of each slot.
    """
    kept: list[Instruction | None] = [_inside(each, reads) for each in instructions]
    # from the last to the first, so that a reader may skip two movements in a row
    for at, each in reversed(list(enumerate(kept))):
        if not (isinstance(each, Step) and each.pure and each.single and len(each.operands) == 1):
            continue
        readers = _readers(kept, at, each.results[0], reads)
        view = _view_of(each) if readers else None
        if view is None:
            continue
        changed = {k: _through(step, each, view) for k, step in readers.items()}
        if all(changed.values()):
            for k, step in changed.items():
                kept[k] = step
            reads[each.operands[0]] += reads[each.results[0]] - 1
            kept[at] = None
    return [each for each in kept if each is not None]


def _inside(each: Instruction, reads: collections.Counter[int]) -> Instruction:
    """Return a loop or branch without unnecessary copies among its inner instructions.

    Copies are unnecessary if all kernels that read them can read the original with strides. Any
    other instruction is returned itself. `reads` counts the reads of each slot.
    """
    if isinstance(each, Loop):
        return dataclasses.replace(each, body=tuple(_block(each.body, reads)))
    if isinstance(each, Choice):
        branches = tuple(tuple(_block(branch, reads)) for branch in each.branches)
        return dataclasses.replace(each, branches=branches)
    return each


def _readers(
    kept: Sequence[Instruction | None], at: int, slot: int, reads: collections.Counter[int]
) -> dict[int, Step]:
    """Return the kernel calls, by position, that read what instruction `at` wrote to a slot.

    The result is empty if something else reads the slot, or if a call can only read it from
    contiguous memory. `kept` are the instructions by position, None where one was removed; `reads`
    counts the reads of each slot.
    """
    found: dict[int, Step] = {}
    missing = reads[slot]
    for k in range(at + 1, len(kept)):
        each = kept[k]
        if missing == 0 or not (each is None or isinstance(each, Step)):
            break
        if each is None or slot not in each.operands:
            continue
        where = [i for i, s in enumerate(each.operands) if s == slot]
        if not all(each.call.layouts.get(i) for i in where):
            return {}
        found[k] = each
        missing -= len(where)
    return {} if missing else found


def _view_of(step: Step) -> View | None:
    """Return the view that a step copies, or None if the step does anything but move data."""
    source, result = step.types[:2] if len(step.types) == 2 else (None, None)
    if step.op is None or not isinstance(source, TensorType) or not isinstance(result, TensorType):
        return None
    if not result.size or source.dtype is not result.dtype:
        return None
    attributes = step.attributes
    if step.op.name != "strided_copy":
        if step.op.decompose_rule is None and step.op.body is None:
            return None
        graph = expand(step.op, (source,), attributes)
        moves = [node for node in graph.nodes if not node.op.alias]
        if len(moves) != 1 or moves[0].op.name != "strided_copy" or len(graph.outputs) != 1:
            return None
        if any(len(node.operands) != 1 for node in graph.nodes):
            return None
        attributes = moves[0].attributes
    shape, strides = tuple(attributes["shape"]), tuple(attributes["strides"])
    return View(shape, strides, attributes["offset"], source.size)


def _through(step: Step, move: Step, view: View) -> Step | None:
    """Return a step that reads the source of `move` through `view` instead of the moved copy.

    The result is None if the kernel cannot read it in this way. If
    several operands of the step are the moved copy, all of them are replaced.
    """
    slot = move.results[0]
    views = dict(step.views)
    operands = list(step.operands)
    for i, s in enumerate(step.operands):
        if s != slot:
            continue
        own = views[i].within(view) if i in views else _shaped(view, step.types[i])
        if own is None or own.layouts.isdisjoint(step.call.layouts[i]):
            return None
        views[i] = own
        operands[i] = move.operands[0]
    call = _viewing(step, views)
    if call is None:
        return None
    return dataclasses.replace(step, call=call, operands=tuple(operands), views=views)


def _shaped(view: View, type_: object) -> View | None:
    """Return a view in the shape of type `type_`, in which a step reads it, or None.

    The shapes can differ because a reshape is not an instruction of its own. The result is None if
    no strides describe the reshaped view.
    """
    if not isinstance(type_, TensorType):
        return None
    if type_.shape == view.shape:
        return view
    strides = _regrouped(view, type_.shape)
    return None if strides is None else View(type_.shape, strides, view.offset, view.size)


def _regrouped(view: View, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides of a view after a reshape to `shape`, or None if there are none."""
    axes = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    strides: list[int] = []
    extent, stride = 1, 0  # the undivided rest of the view's current axis
    for n in reversed(shape):
        if n == 1:
            strides.append(0)
            continue
        if extent == 1:
            extent, stride = axes.pop()
        while extent < n and axes and axes[-1][1] == stride * extent:
            extent *= axes.pop()[0]
        if extent % n:
            return None
        strides.append(stride)
        extent, stride = extent // n, stride * n
    return tuple(reversed(strides))


def _viewing(step: Step, views: dict[int, View]) -> PreparedCall | None:
    """Return the call that reads operands of a step through views, or None if there is none.

    Raises:
        BackendError: the kernel's function `with_views` failed, or returned neither None nor a
            valid call.
    """
    call = step.call
    assert call.with_views is not None  # `as_prepared` has checked it
    try:
        found = as_viewing(call.with_views(views), views)
    except Exception as error:
        said = str(error) if isinstance(error, BackendError) else f"raised {error_text(error)}"
        text = call_text(step.name, step.types[: len(step.operands)])
        raise BackendError(f"{text}: with_views() of its kernel {said}") from error
    if found is None:
        return None
    return dataclasses.replace(
        found,
        layouts=call.layouts,
        with_views=call.with_views,
        owner=call.owner,
        precedes=call.precedes,
    )
