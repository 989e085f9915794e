"""ONNX's control flow and its loops over sequences: If, Loop, Scan, SequenceMap.

`running.run_nodes` calls these functions with the node, its inputs, the values of the enclosing
graph by name (`env`), and the function that runs a graph (`run`). In a compiled function, the front
end may translate their Python source: an `if` whose condition is a Tensor becomes a branch of the
graph, and such a `while` a loop. They are therefore plain Python, and must not read values of
Tensors in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from .. import ops
from ..errors import OnnxError
from ..tensor import Tensor
from .model import Array, Dense, Graph, Node, Value

__all__ = ["CONTROL"]

# Loops of at most this many iterations are written out in a compiled function.
_MOST_UNROLLED = 64

Run = Callable[[Graph, Sequence[Value], Mapping[str, Value]], "list[Value]"]


def run_if(node: Node, inputs: Sequence[Value], env: Mapping[str, Value], run: Run) -> list[Value]:
    """Run ONNX's If: execute the branch that the condition selects; return its results."""
    condition = cast("Dense", inputs[0]).reshape(())
    if isinstance(condition, np.ndarray):
        name = "then_branch" if condition else "else_branch"
        return run(node.attributes[name], [], env)
    if condition:  # both branches must leave values of one kind
        found = _tensors(run(node.attributes["then_branch"], [], env))
    else:
        found = _tensors(run(node.attributes["else_branch"], [], env))
    return found


def _tensors(values: Sequence[Value]) -> list[Value]:
    """Return the values with each NumPy array of numbers converted to a Tensor."""
    return [Tensor(v) if isinstance(v, np.ndarray) and v.dtype.kind != "O" else v for v in values]


def run_loop(
    node: Node, inputs: Sequence[Value], env: Mapping[str, Value], run: Run
) -> list[Value]:
    """Run ONNX's Loop.

    Return the final carried values and the stacked results of all iterations.
    """
    body = node.attributes["body"]
    carried = list(inputs[2:])
    n = len(carried)
    limit, condition = inputs[0], inputs[1]
    if len(body.outputs) == n + 1:
        return _while(body, limit, condition, carried, env, run)
    most = None if limit is None else int(cast("Dense", limit))
    going = True if condition is None else bool(condition)
    stacked: list[list[Value]] = [[] for _ in body.outputs[n + 1 :]]
    i = 0
    while going and (most is None or i < most):
        found = run(body, [np.array(i, np.int64), np.array(True), *carried], env)
        going = bool(found[0])
        carried = found[1 : n + 1]
        for k, value in enumerate(found[n + 1 :]):
            stacked[k].append(value)
        i = i + 1
    return [*carried, *[joined(rows) for rows in stacked]]


def _while(
    body: Graph,
    limit: Value,
    condition: Value,
    carried: list[Value],
    env: Mapping[str, Value],
    run: Run,
) -> list[Value]:
    """Run an ONNX Loop that returns only its carried values; return their final values.

    If the limit is None, or a NumPy number that is not too large to unroll (`_MOST_UNROLLED`), the
    iterations run here in Python, and are thus unrolled in a compiled function, for as long as the
    condition is a NumPy value or True. The other iterations are left to `_at_run_time`.

    Args:
        limit: maximum number of iterations, or None for no limit.
        condition: whether the first iteration runs, or None for True.
        env: values of the outer graph by name.
        run: function that runs the body's nodes.
    """
    going: object = True if condition is None else cast("Dense", condition).reshape(())
    fixed = limit is None or (isinstance(limit, np.ndarray) and int(limit) <= _MOST_UNROLLED)
    if fixed and (isinstance(going, np.ndarray) or going is True):
        most = None if limit is None else int(cast("Dense", limit))
        i = 0
        while bool(going) and (most is None or i < most):
            found = run(body, [np.array(i, np.int64), np.array(True), *carried], env)
            going, carried = cast("Dense", found[0]).reshape(()), found[1:]
            i = i + 1
            if not isinstance(going, np.ndarray) and (most is None or i < most):
                return _at_run_time(body, limit, going, carried, env, run, i)
        return carried
    return _at_run_time(body, limit, cast("Value", going), carried, env, run, 0)


def _at_run_time(
    body: Graph,
    limit: Value,
    going: Value,
    carried: list[Value],
    env: Mapping[str, Value],
    run: Run,
    first: int,
) -> list[Value]:
    """Run an ONNX Loop whose end is known only at run time, from iteration number `first` on.

    `going` is the condition for the first of these iterations. In a compiled function, the Python
    `while` here becomes a loop of the graph. Returns the final carried values.
    """
    values = _tensors(carried)
    i = ops.add(Tensor(np.array(first, np.int64)), 0)
    more = ops.logical_and(_truth(going), i < (2**62 if limit is None else _number(limit)))
    while more:
        found = run(body, [i, np.array(True), *values], env)
        i = i + 1
        values = _tensors(found[1:])
        inside = i < (2**62 if limit is None else _number(limit))
        more = ops.logical_and(_truth(found[0]), inside)
    return values


def _truth(value: object) -> Tensor:
    """Convert a condition to a 0-d Tensor: True, or an array or a Tensor of one element."""
    if value is True:
        return Tensor(np.array(True))
    return (
        Tensor(value.reshape(()))
        if isinstance(value, np.ndarray)
        else cast("Tensor", value).reshape(())
    )


def _number(value: Value) -> int | Tensor:
    """Return the iteration limit of a loop: an int if it is a NumPy array, else a 0-d Tensor."""
    return int(value) if isinstance(value, np.ndarray) else cast("Tensor", value).reshape(())


def joined(rows: Sequence[Value]) -> Value:
    """Stack the values of all iterations along a new first axis.

    Raises:
        OnnxError: there was no iteration, so that the shape is unknown.
    """
    if not rows:
        raise OnnxError("a loop without iterations stacks its results, whose shape is unknown")
    if all(isinstance(row, np.ndarray) for row in rows):
        return np.stack(cast("Sequence[Array]", rows))
    return ops.stack(
        [Tensor(r) if isinstance(r, np.ndarray) else cast("Tensor", r) for r in rows], 0
    )


def run_scan(
    node: Node, inputs: Sequence[Value], env: Mapping[str, Value], run: Run
) -> list[Value]:
    """Run ONNX's Scan: call the body for each slice of the scanned inputs; return its results."""
    if node.opset < 9:
        return _scan_of_batches(node, inputs, env, run)
    return _scan(node, list(inputs), env, run)


def _scan_of_batches(
    node: Node, inputs: Sequence[Value], env: Mapping[str, Value], run: Run
) -> list[Value]:
    """Run ONNX's Scan of operator set 8, whose values have the batch as their first axis.

    It scans each item of the batch and stacks the results.
    """
    if inputs[0] is not None:
        raise OnnxError("Scan: got sequence_lens; wanted sequences of one length")
    rows = []
    for b in range(cast("Dense", inputs[1]).shape[0]):
        rows.append(_scan(node, [x[b] for x in cast("Sequence[Dense]", inputs[1:])], env, run))
    return [joined([row[k] for row in rows]) for k in range(len(rows[0]))]


def _scan(node: Node, inputs: list[Value], env: Mapping[str, Value], run: Run) -> list[Value]:
    """Run ONNX's Scan: call the body on each slice of the scanned inputs.

    Returns the final states and, for each other output of the body, the outputs of all iterations
    stacked.
    """
    body = node.attributes["body"]
    m = node.attributes["num_scan_inputs"]
    n = len(inputs) - m
    states, scanned = inputs[:n], inputs[n:]
    backwards = node.get("scan_input_directions", node.get("directions", [0] * m))
    axes = node.get("scan_input_axes", [0] * m)
    moved = [_axis_first(x, axis) for x, axis in zip(scanned, axes)]
    length = moved[0].shape[0]
    k = len(body.outputs) - n
    stacked: list[list[Value]] = [[] for _ in range(k)]
    for t in range(length):
        slices = [x[length - 1 - t] if back else x[t] for x, back in zip(moved, backwards)]
        found = run(body, [*states, *slices], env)
        states = found[:n]
        for row, value in zip(stacked, found[n:]):
            row.append(value)
    directions = node.get("scan_output_directions", [0] * k)
    out_axes = node.get("scan_output_axes", [0] * k)
    results = []
    for row, back, axis in zip(stacked, directions, out_axes):
        made = joined(row[::-1] if back else row)
        results.append(_axis_to(made, axis))
    return [*states, *results]


def _axis_first(x: Value, axis: int) -> Dense:
    return np.moveaxis(x, axis, 0) if isinstance(x, np.ndarray) else ops.movedim(x, axis, 0)


def _axis_to(x: Value, axis: int) -> Dense:
    return np.moveaxis(x, 0, axis) if isinstance(x, np.ndarray) else ops.movedim(x, 0, axis)


def run_sequence_map(
    node: Node, inputs: Sequence[Value], env: Mapping[str, Value], run: Run
) -> list[Value]:
    """Run ONNX's SequenceMap: call the body for each item of a sequence; return its results."""
    body = node.attributes["body"]
    results: list[list[Value]] = [[] for _ in body.outputs]
    for i in range(len(cast("list[Value]", inputs[0]))):
        items = [x[i] if isinstance(x, list) else x for x in inputs]
        for row, value in zip(results, run(body, items, env)):
            row.append(value)
    return list(results)


CONTROL = {
    "If": run_if,
    "Loop": run_loop,
    "Scan": run_scan,
    "SequenceMap": run_sequence_map,
}
