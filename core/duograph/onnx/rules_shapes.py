"""Rules of ONNX's operators that move elements: shapes, slices, gathers, scatters, constants.

`running.apply` calls them through the table `model.RULES`. Shapes, axes and bounds of slices are
static inputs, which arrive as NumPy arrays, so that a compiled function has fixed shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import ops
from ..dtype import int64
from ..errors import OnnxError
from ..ops.gather_scatter import gather, gather_elements_by
from ..ops.movement import pad_by
from ..tensor import Tensor
from .model import Array, Dense, Node, Value, onnx_op
from .rules_elementwise import dtype_of

__all__ = ["axes_of", "pad_edges"]


def axes_of(node: Node, given: Array | None, name: str = "axes") -> list[int] | None:
    """Return the axes of an operator: from the input `given`, or from an attribute if that is None.

    Older operator sets have the attribute. The result is None if there is neither.
    """
    found = node.get(name) if given is None else given.reshape(-1).tolist()
    return None if found is None else [int(a) for a in found]


@onnx_op("Reshape", static=(1,))
def _(node: Node, x: Tensor, shape: Array | None = None) -> Tensor:
    wanted = [int(n) for n in (node.get("shape") if shape is None else shape)]
    if not node.get("allowzero", 0):
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    if -1 in wanted and not x.size:
        rest = math.prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = 0 if not rest else x.size // rest
    return ops.reshape(x, tuple(wanted))


@onnx_op("Flatten")
def _(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return ops.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@onnx_op("Squeeze", static=(1,))
def _(node: Node, x: Tensor, axes: Array | None = None) -> Tensor:
    found = axes_of(node, axes)
    gone = [i for i, n in enumerate(x.shape) if n == 1] if found is None else [
        a % x.ndim for a in found
    ]  # fmt: skip
    if any(x.shape[a] != 1 for a in gone):
        raise OnnxError(f"got shape {x.shape} and axes {gone}; wanted axes of size 1")
    return ops.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in gone))


@onnx_op("Unsqueeze", static=(1,))
def _(node: Node, x: Tensor, axes: Array | None = None) -> Tensor:
    found = axes_of(node, axes) or []
    rank = x.ndim + len(found)
    new = [a % rank for a in found]
    sizes = iter(x.shape)
    return ops.reshape(x, tuple(1 if i in new else next(sizes) for i in range(rank)))


@onnx_op("Transpose")
def _(node: Node, x: Tensor) -> Tensor:
    return ops.transpose(x, tuple(node.get("perm", range(x.ndim)[::-1])))


@onnx_op("Expand", static=(1,))
def _(node: Node, x: Tensor, shape: Array) -> Tensor:
    return ops.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


@onnx_op("Concat")
def _(node: Node, *xs: Tensor) -> Tensor:
    return ops.concat(xs, node.get("axis", 1))


@onnx_op("Split", static=(1,))
def _(node: Node, x: Tensor, split: Array | None = None) -> tuple[Tensor, ...]:
    axis = node.get("axis", 0) % x.ndim
    n = node.get("num_outputs", len(node.outputs))
    sizes = node.get("split") if split is None else split.tolist()
    if sizes is None:
        size = -(-x.shape[axis] // n)
        sizes = [size] * (n - 1) + [x.shape[axis] - size * (n - 1)]
    return _sections(x, sizes, axis)


def _sections(x: Tensor, sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    """Split an axis into slices of the given lengths, whose sum must be the size of the axis."""
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        raise OnnxError(f"got parts of lengths {list(sizes)} of an axis of size {x.shape[axis]}")
    ends = np.cumsum(sizes).tolist()
    return tuple([ops.narrow(x, axis, e - n, n) for e, n in zip(ends, sizes)])


@onnx_op("Slice", static=(1, 2, 3, 4))
def _(
    node: Node,
    x: Tensor,
    starts: Array | None = None,
    ends: Array | None = None,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Tensor:
    first = node.get("starts") if starts is None else starts.tolist()
    last = node.get("ends") if ends is None else ends.tolist()
    at = axes_of(node, axes)
    at = list(range(len(first))) if at is None else at
    step = [1] * len(first) if steps is None else steps.tolist()
    index = [slice(None)] * x.ndim
    for a, b, e, s in zip(at, first, last, step, strict=True):
        index[a % x.ndim] = slice(b, None if s < 0 and e < -x.shape[a] else e, s)
    return x[tuple(index)] if index else ops.identity(x)


@onnx_op("Tile", static=(1, 2))
def _(node: Node, x: Tensor, repeats: Array, axis: Array | None = None) -> Tensor:
    if axis is not None:
        counts = [1] * x.ndim
        counts[int(axis)] = int(repeats)
        return ops.tile(x, tuple(counts))
    return ops.tile(x, tuple(repeats.tolist())) if repeats.size else ops.identity(x)


@onnx_op("Pad", static=(1, 2, 3))
def _(
    node: Node,
    x: Tensor,
    pads: Array | None = None,
    value: Array | None = None,
    axes: Array | None = None,
) -> Tensor:
    given = node.get("pads", node.get("paddings")) if pads is None else pads.tolist()
    at = range(x.ndim) if axes is None else [a % x.ndim for a in axes.tolist()]
    low, high = [0] * x.ndim, [0] * x.ndim
    for k, a in enumerate(at):
        low[a], high[a] = int(given[k]), int(given[k + len(given) // 2])
    x, low, high = _cropped(x, low, high)
    mode = node.get("mode", "constant")
    if mode != "constant":
        return pad_edges(x, low, high, mode)
    fill: object = node.get("value", 0.0) if value is None else value.reshape(-1)[0].item()
    return pad_by(x, low, high, bool(fill) if x.dtype.kind == "b" else fill)


def _cropped(x: Tensor, low: list[int], high: list[int]) -> tuple[Tensor, list[int], list[int]]:
    """Remove the elements that negative padding widths stand for.

    Returns (cropped tensor, low widths, high widths), in which negative widths are replaced by 0.
    """
    for a in range(x.ndim):
        first, last = max(-low[a], 0), max(-high[a], 0)
        if first or last:
            x = ops.narrow(x, a, first, x.shape[a] - first - last)
    return x, [max(n, 0) for n in low], [max(n, 0) for n in high]


def pad_edges(x: Tensor, low: Sequence[int], high: Sequence[int], mode: str) -> Tensor:
    """Pad a tensor with its own elements; `mode` is "edge", "reflect" or "wrap", as in NumPy.

    `low` and `high` are the padding widths at the start and end of each axis.
    """
    names = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}
    if mode not in names:
        raise OnnxError(f"got mode {mode!r}; wanted constant, edge, reflect or wrap")
    for a, (before, after) in enumerate(zip(low, high)):
        if before or after:
            at = np.pad(np.arange(x.shape[a]), (before, after), mode=mode)  # type: ignore[call-overload]
            x = gather(x, Tensor(at.astype(np.int64)), a)
    return x


# ---- sizes and constants ------------------------------------------------------------------------


@onnx_op("Shape", host=True)
def _(node: Node, x: Dense) -> Array:
    rank = len(x.shape)
    start, end = node.get("start", 0), node.get("end", rank)
    return np.array(x.shape[slice(start, end)], np.int64)


@onnx_op("Size", host=True)
def _(node: Node, x: Dense) -> Array:
    return np.array(math.prod(x.shape), np.int64)


@onnx_op("Constant", host=True)
def _(node: Node) -> Array:
    for name, dtype in (("value", None), ("sparse_value", None), ("value_float", np.float32),
                        ("value_int", np.int64), ("value_floats", np.float32),
                        ("value_ints", np.int64), ("value_string", object),
                        ("value_strings", object)):  # fmt: skip
        if name in node.attributes:
            value = node.attributes[name]
            return value if dtype is None else np.array(value, dtype)
    raise OnnxError("got a Constant without a value")


@onnx_op("ConstantOfShape", host=True)
def _(node: Node, shape: Dense) -> Value:
    value = node.get("value", np.zeros(1, np.float32))
    sizes = shape if isinstance(shape, np.ndarray) else np.asarray(shape.asnumpy())
    return np.full(tuple(sizes.tolist()), value.reshape(-1)[0], value.dtype)


@onnx_op("Range", static=(0, 1, 2))
def _(node: Node, start: Array, limit: Array, delta: Array) -> Tensor:
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    steps = np.arange(count).astype(start.dtype) * delta.astype(start.dtype)
    return Tensor((start + steps).astype(start.dtype))


@onnx_op("EyeLike", host=True)
def _(node: Node, x: Dense) -> Value:
    own = x.dtype.np if isinstance(x, Tensor) else x.dtype
    dtype = dtype_of(node.get("dtype")) if node.get("dtype") else own
    return np.eye(x.shape[0], x.shape[1], node.get("k", 0)).astype(dtype)


@onnx_op("OneHot", static=(1, 2))
def _(node: Node, index: Tensor, depth: Array, values: Array) -> Tensor:
    n = int(depth.reshape(-1)[0])
    axis = node.get("axis", -1) % (index.ndim + 1)
    whole = ops.cast(index, int64)
    whole = ops.where(whole < 0, whole + n, whole)
    classes = np.arange(n).reshape([-1 if i == axis else 1 for i in range(index.ndim + 1)])
    hit = ops.equal(ops.expand_dims(whole, axis), Tensor(classes.astype(np.int64)))
    off, on = [Tensor(np.array(v)) for v in values]
    return ops.where(hit, on, off)


@onnx_op("Trilu", static=(1,))
def _(node: Node, x: Tensor, k: Array | None = None) -> Tensor:
    offset = 0 if k is None else int(k)
    return ops.triu(x, offset) if node.get("upper", 1) else ops.tril(x, offset)


# ---- gather and scatter -------------------------------------------------------------------------


def _positions(index: Tensor, size: int) -> Tensor:
    """Convert indices to int64, and add `size`, the size of the axis, to negative ones."""
    whole = ops.cast(index, int64)
    return ops.where(whole < 0, whole + size, whole)


@onnx_op("Gather")
def _(node: Node, x: Tensor, index: Tensor) -> Tensor:
    axis = node.get("axis", 0) % x.ndim
    return gather(x, ops.cast(index, int64), axis)


@onnx_op("GatherElements")
def _(node: Node, x: Tensor, index: Tensor) -> Tensor:
    axis = node.get("axis", 0) % x.ndim
    at = _positions(index, x.shape[axis])
    for a in range(x.ndim):  # the index may be shorter along other axes
        if a != axis and index.shape[a] != x.shape[a]:
            x = ops.narrow(x, a, 0, index.shape[a])
    return gather_elements_by(x, at, axis)


@onnx_op("GatherND")
def _(node: Node, x: Tensor, index: Tensor) -> Tensor:
    batch = node.get("batch_dims", 0)
    depth = index.shape[-1]
    flat, inner = _flat_positions(x.shape, index, batch, depth)
    table = ops.reshape(x, (-1, *x.shape[batch + depth :]))
    return ops.reshape(gather(table, flat, 0), (*index.shape[:-1], *inner))


def _flat_positions(
    shape: Sequence[int], index: Tensor, batch: int, depth: int
) -> tuple[Tensor, tuple[int, ...]]:
    """Convert the index tuples of GatherND or ScatterND to indices into flattened axes.

    The first `batch + depth` axes of `shape` are flattened. Returns (1-d indices, sizes of the
    other axes).
    """
    lead = shape[: batch + depth]
    steps = [math.prod(lead[i + 1 :]) for i in range(len(lead))]
    whole = ops.cast(index, int64)
    sizes = Tensor(np.array(lead[batch:], np.int64))
    whole = ops.where(whole < 0, whole + sizes, whole)
    at = ops.sum(whole * Tensor(np.array(steps[batch:], np.int64)), -1)
    if batch:
        count = math.prod(lead[:batch])
        first = np.arange(count).reshape(lead[:batch]) * math.prod(lead[batch:])
        rest = [1] * (index.ndim - 1 - batch)
        at = at + Tensor(first.reshape(*lead[:batch], *rest).astype(np.int64))
    return ops.reshape(at, (-1,)), tuple(shape[batch + depth :])


@onnx_op("ScatterElements", "Scatter")
def _(node: Node, x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    axis = node.get("axis", 0) % x.ndim
    steps = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    at = _positions(index, x.shape[axis]) * steps[axis]
    for a in range(x.ndim):
        if a != axis:
            along = np.arange(index.shape[a]) * steps[a]
            shape = [-1 if i == a else 1 for i in range(x.ndim)]
            at = at + Tensor(along.reshape(shape).astype(np.int64))
    made = _scattered(
        ops.reshape(x, (-1,)), ops.reshape(at, (-1,)), ops.reshape(updates, (-1,)),
        node.get("reduction", "none"),
    )  # fmt: skip
    return ops.reshape(made, x.shape)


@onnx_op("ScatterND")
def _(node: Node, x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    depth = index.shape[-1]
    flat, inner = _flat_positions(x.shape, index, 0, depth)
    table = ops.reshape(x, (-1, *inner))
    rows = ops.reshape(updates, (-1, *inner))
    return ops.reshape(_scattered(table, flat, rows, node.get("reduction", "none")), x.shape)


def _scattered(x: Tensor, at: Tensor, rows: Tensor, reduction: str) -> Tensor:
    """Return a copy of `x` with `rows` written at the indices `at` of axis 0.

    With `reduction` "add", "mul", "max" or "min", the rows are combined with those of `x` instead.
    """
    at = ops.reshape(at, (-1, 1))
    functions = {"none": ops.tensor_scatter_update, "add": ops.tensor_scatter_add,
                 "mul": ops.tensor_scatter_mul, "max": ops.tensor_scatter_max,
                 "min": ops.tensor_scatter_min}  # fmt: skip
    if reduction not in functions:
        raise OnnxError(f"got reduction {reduction!r}; wanted one of {', '.join(functions)}")
    return functions[reduction](x, at, rows)


@onnx_op("TensorScatter", static=(2,))
def _(node: Node, cache: Tensor, update: Tensor, first: Array | None = None) -> Tensor:
    axis = node.get("axis", -2) % cache.ndim
    n, size = update.shape[axis], cache.shape[axis]
    starts = np.zeros(cache.shape[0], np.int64) if first is None else first
    rows = []
    for b in range(cache.shape[0]):
        at = (int(starts[b]) + np.arange(n)) % size if node.get("mode") == "circular" else (
            int(starts[b]) + np.arange(n)
        )  # fmt: skip
        row = ops.movedim(cache[b], axis - 1, 0)
        new = ops.movedim(update[b], axis - 1, 0)
        put = ops.tensor_scatter_update(row, Tensor(at.reshape(-1, 1).astype(np.int64)), new)
        rows.append(ops.movedim(put, 0, axis - 1))
    return ops.stack(rows, 0)


@onnx_op("NonZero")
def _(node: Node, x: Tensor) -> Tensor:
    if not x.ndim:
        return ops.transpose(ops.nonzero(ops.reshape(x, (1,))), (1, 0))
    return ops.transpose(ops.nonzero(x), (1, 0))


@onnx_op("Compress", static=(1,))
def _(node: Node, x: Tensor, condition: Array) -> Tensor:
    axis = node.get("axis")
    if axis is None:
        x, axis = ops.reshape(x, (-1,)), 0
    at = np.flatnonzero(condition.reshape(-1)).astype(np.int64)
    return gather(x, Tensor(at), axis % x.ndim)


@onnx_op("Unique", static=(0,))
def _(node: Node, x: Array) -> tuple[Tensor, ...]:
    axis = node.get("axis")
    found, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not node.get("sorted", 1):
        order = np.argsort(first)
        back = np.argsort(order)
        found = np.take(found, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], back[inverse]
    made = (found, *[v.astype(np.int64) for v in (first, inverse, counts)])
    return tuple([Tensor(v) for v in made])


@onnx_op("ReverseSequence", static=(1,))
def _(node: Node, x: Tensor, lengths: Array) -> Tensor:
    batch, time = node.get("batch_axis", 1), node.get("time_axis", 0)
    at = np.broadcast_to(np.arange(x.shape[time]), (x.shape[batch], x.shape[time])).copy()
    for b, n in enumerate(lengths.tolist()):
        at[b, :n] = at[b, :n][::-1]
    y = ops.movedim(x, (batch, time), (0, 1))
    shape = (*at.shape, *[1] * (x.ndim - 2))
    index = np.broadcast_to(at.reshape(shape), y.shape).astype(np.int64)
    return ops.movedim(gather_elements_by(y, Tensor(index), 1), (0, 1), (batch, time))


@onnx_op("DepthToSpace")
def _(node: Node, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        y = ops.transpose(ops.reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        y = ops.transpose(ops.reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return ops.reshape(y, (n, c // b**2, h * b, w * b))


@onnx_op("SpaceToDepth")
def _(node: Node, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    order = (0, 3, 5, 1, 2, 4) if node.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    y = ops.transpose(ops.reshape(x, (n, c, h // b, b, w // b, b)), order)
    return ops.reshape(y, (n, c * b * b, h // b, w // b))
