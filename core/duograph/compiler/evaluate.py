"""Compiling a function: a call of it is evaluated into a graph, and that becomes a program."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..errors import UnsupportedSyntaxError
from ..frontend.diagnostics import located
from ..frontend.evaluation.dispatch import Dead
from ..frontend.evaluation.evaluator import Evaluator
from ..frontend.evaluation.spans import error_spans
from ..frontend.state.outside import Restart
from ..nn.cell import Cell
from ..placement import commit
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor
from ..types import Device, HostType
from .arguments import entering
from .compiled_program import CompiledProgram
from .results import ArgumentContainer, template_of

__all__ = ["compile_program"]

# Evaluations of one call: each starts over with one more thing known that it writes.
_RESTARTS = 50


def compile_program(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    strict: bool,
    device: Device,
    name: str,
    level: str = "O0",
    shared: Mapping[int, int | None] | None = None,
) -> CompiledProgram:
    """Evaluate a call of `target` into a graph, and make it runnable at this level
    (`runtime.lower`).

    Args:
        shared: see `CompiledProgram.shared`.

    Raises:
        UnsupportedSyntaxError: something that compiled code cannot have.
    """
    start = time.perf_counter()
    written: set[Any] = set()
    keep: list[Any] = []
    for _ in range(_RESTARTS):
        ev = Evaluator(strict, written)
        ev.keep.append(keep)
        runtime_state.enter_staging()
        before = thread_state.builder
        thread_state.builder = ev.root
        try:
            program = _evaluate(ev, target, args, kwargs, device, name, level, shared or {})
            program.seconds = time.perf_counter() - start
            return program
        except Restart:
            keep += ev.keep
            continue
        except RecursionError as error:
            raise _too_deep(error) from None
        except Exception as error:
            located(error, error_spans(error))
            raise
        finally:
            thread_state.builder = before
            runtime_state.leave_staging()
    raise UnsupportedSyntaxError(
        f"{name}: the evaluation started over {_RESTARTS} times because of what it writes",
        construct="setattr",
        remedy="Write fewer attributes of different objects",
    )


def _too_deep(error: RecursionError) -> RecursionError:
    chain = error_spans(error)
    if "maximum recursion depth" in str(error):  # Python's own
        error = RecursionError(
            "Exceed function call depth limit: the function calls itself without end, or too deep"
        )
    return located(error, chain)


def _evaluate(
    ev: Evaluator,
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: Device,
    name: str,
    level: str,
    shared: Mapping[int, int | None],
) -> CompiledProgram:
    root = ev.root
    leaves: list[Any] = []
    containers: list[Any] = []
    count = [0]

    def tensor(value: Tensor) -> Any:
        first = shared.get(len(leaves), -1)
        if first is None:
            leaves.append((value, None))
            return value
        if first >= 0:
            leaves.append(leaves[first])
            return leaves[first][0]
        made = root.parameter(value._type.plain)
        ev.inputs.entries.append(("arg", len(leaves)))
        ev.inputs.arguments.append((made, made._id, len(leaves)))
        leaves.append((made, made._id))
        return made

    def number(kind: HostType) -> Any:
        made = root.parameter(kind)
        ev.inputs.entries.append(("number", count[0]))
        count[0] += 1
        return made

    def container(value: Any) -> Any:
        copy: Any = [] if isinstance(value, list) else {}
        ev.owned.objects[id(copy)] = copy
        ev.copies.originals[id(copy)] = ArgumentContainer(ev, len(containers))
        ev.keep.append(copy)
        containers.append(copy)
        return copy

    enter = entering(tensor, number, container)
    given = tuple(enter(v) for v in args)
    named = {k: enter(v) for k, v in kwargs.items()}
    outputs: list[Any] = []
    index: dict[int, int] = {}

    def put(value: Any) -> int:
        found = root.value(value)
        k = index.get(found._id)
        if k is None:
            k = index[found._id] = len(outputs)
            outputs.append(root.tensor(found._id))
        return k

    if args and isinstance(args[0], Cell):  # the receiver of a compiled method
        ev.captures.members(args[0])
    try:
        result = ev.call(target, given, named)
        template = template_of(ev, result, put, leaves, containers, 0)
    except Dead:
        template = None
    writes: list[tuple[str, Any, int]] = []
    for i, (made, first) in enumerate(leaves):
        if i not in shared and made._id != first:
            writes.append(("arg", i, put(made)))
    for slot in ev.inputs.slots.values():
        if not slot.fresh and slot.current._id != slot.incoming._id:
            writes.append(("state", slot.tensor, put(slot.current)))
    for owner in ev.outside.changed_containers.values():
        for capture in ev.captures.items.values():
            if capture.owner is owner:
                capture.exact = True
    graph = root.whole(outputs)
    written = {id(v) for kind, v, _ in writes if kind == "state"}
    for tensor_ in [v for kind, v in ev.inputs.entries if kind == "state"]:
        if tensor_._type.device is None:
            commit(tensor_, device, own=id(tensor_) in written)
    thread_state.builder = None
    runtime_state.leave_staging()
    try:
        return CompiledProgram(
            graph, ev.inputs.entries, template, writes, ev, device, name, level, bool(shared)
        )
    finally:
        runtime_state.enter_staging()
