"""Rules of ONNX's operators on sequences, optional values, strings, signals and boxes.

`running.apply` calls them through the table `model.RULES`. Strings are kept on the host, in NumPy
arrays of Python strings.
"""

from __future__ import annotations

import math
import re
from typing import cast

import numpy as np

from .. import ops
from ..errors import OnnxError
from ..tensor import Tensor
from .model import Array, Dense, Node, Value, onnx_op
from .rules_elementwise import dtype_of

__all__: list[str] = []


def _at(value: Value) -> int:
    """Convert an array or Tensor of one element to an int.

    While a function is being compiled, only NumPy arrays have a known value; a Tensor raises then.
    """
    return int(
        (value if isinstance(value, np.ndarray) else cast("Tensor", value).asnumpy()).reshape(())
    )


# ---- sequences and optional values --------------------------------------------------------------


@onnx_op("SequenceConstruct", host=True)
def _(node: Node, *items: Value) -> list[Value]:
    return list(items)


@onnx_op("SequenceEmpty", host=True)
def _(node: Node) -> list[Value]:
    return []


@onnx_op("SequenceAt", host=True)
def _(node: Node, items: list[Value], at: Value) -> Value:
    return items[_at(at)]


@onnx_op("SequenceLength", host=True)
def _(node: Node, items: list[Value]) -> Array:
    return np.array(len(items), np.int64)


@onnx_op("SequenceInsert", host=True)
def _(node: Node, items: list[Value], item: Value, at: Value = None) -> list[Value]:
    place = len(items) if at is None else _at(at)
    if not -len(items) <= place <= len(items):
        raise OnnxError(f"got position {place} in a sequence of length {len(items)}")
    place = place + len(items) if place < 0 else place
    return [*items[:place], item, *items[place:]]


@onnx_op("SequenceErase", host=True)
def _(node: Node, items: list[Value], at: Value = None) -> list[Value]:
    place = len(items) - 1 if at is None else _at(at) % len(items)
    return [*items[:place], *items[place + 1 :]]


@onnx_op("ConcatFromSequence", host=True)
def _(node: Node, items: list[Dense]) -> Dense:
    axis, new = node.get("axis"), bool(node.get("new_axis", 0))
    if all(isinstance(x, np.ndarray) for x in items):
        return (
            np.stack(cast("list[Array]", items), axis)
            if new
            else np.concatenate(cast("list[Array]", items), axis)
        )
    made = [Tensor(x) if isinstance(x, np.ndarray) else x for x in items]
    return ops.stack(made, axis) if new else ops.concat(made, axis)


@onnx_op("SplitToSequence", host=True)
def _(node: Node, x: Dense, split: Dense | None = None) -> list[Value]:
    axis = node.get("axis", 0) % len(x.shape)
    n = x.shape[axis]
    keep = True
    if split is None:
        sizes, keep = [1] * n, bool(node.get("keepdims", 1))
    else:
        given = split if isinstance(split, np.ndarray) else np.asarray(split.asnumpy())
        if given.ndim:
            sizes = [int(v) for v in given]
        else:
            sizes = [min(int(given), n - i) for i in range(0, n, int(given))]
    parts, first = [], 0
    for size in sizes:
        index = [slice(None)] * len(x.shape)
        index[axis] = slice(first, first + size)
        part = x[tuple(index)]
        if not keep:
            part = part.reshape(tuple(m for i, m in enumerate(x.shape) if i != axis))
        parts.append(part)
        first += size
    return cast("list[Value]", parts)


@onnx_op("Optional", host=True)
def _(node: Node, x: Value = None) -> Value:
    return x


@onnx_op("OptionalHasElement", host=True)
def _(node: Node, x: Value = None) -> Array:
    return np.array(x is not None)


@onnx_op("OptionalGetElement", host=True)
def _(node: Node, x: Value) -> Value:
    if x is None:
        raise OnnxError("got an optional value that is absent")
    return x


# ---- texts --------------------------------------------------------------------------------------


@onnx_op("StringConcat", host=True)
def _(node: Node, x: Array, y: Array) -> Array:
    return np.asarray(x.astype(object) + y.astype(object), object)


@onnx_op("StringSplit", host=True)
def _(node: Node, x: Array) -> tuple[Array, Array]:
    delimiter = node.get("delimiter") or None
    most = node.get("maxsplit")
    rows = [s.split(delimiter, -1 if most is None else most) for s in x.reshape(-1)]
    width = max((len(row) for row in rows), default=0)
    padded = np.array([[*row, *[""] * (width - len(row))] for row in rows], object)
    counts = np.array([len(row) for row in rows], np.int64)
    return padded.reshape(*x.shape, width), counts.reshape(x.shape)


@onnx_op("RegexFullMatch", host=True)
def _(node: Node, x: Array) -> Array:
    pattern = re.compile(node.get("pattern"))
    found = [pattern.fullmatch(s) is not None for s in x.reshape(-1)]
    return np.array(found, np.bool_).reshape(x.shape)


@onnx_op("StringNormalizer", host=True)
def _(node: Node, x: Array) -> Array:
    change = node.get("case_change_action", "NONE")
    exact = bool(node.get("is_case_sensitive", 0))
    stop = node.get("stopwords", [])
    dropped = set(stop) if exact else {s.lower() for s in stop}
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        kept = [s for s in row if (s if exact else s.lower()) not in dropped]
        how = {"LOWER": str.lower, "UPPER": str.upper}.get(change, str)
        rows.append([how(s) for s in kept] or [""])
    return np.array(rows, object).reshape(*x.shape[:-1], -1)


@onnx_op("TfIdfVectorizer", host=True)
def _(node: Node, x: Dense) -> Array:
    array = x if isinstance(x, np.ndarray) else np.asarray(x.asnumpy())
    starts, columns = node.get("ngram_counts"), node.get("ngram_indexes")
    pool = node.get("pool_strings") or node.get("pool_int64s")
    ends = [*starts[1:], len(pool)]
    grams: dict[tuple[object, ...], int] = {}
    k = 0
    for n, (a, b) in enumerate(zip(starts, ends), start=1):
        for i in range(a, b, n):
            grams[tuple(pool[i : i + n])] = k
            k += 1
    counts = np.zeros((array.size // array.shape[-1] if array.ndim else 1, max(columns) + 1),
                      np.float32)  # fmt: skip
    first, last, skips = (
        node.get("min_gram_length"),
        node.get("max_gram_length"),
        node.get("max_skip_count"),
    )
    for r, row in enumerate(array.reshape(counts.shape[0], -1).tolist()):
        for n in range(first, last + 1):
            for step in range(1, (skips + 1 if n > 1 else 1) + 1):
                for i in range(len(row) - (n - 1) * step):
                    gram = tuple(row[i : i + n * step : step][:n])
                    if gram in grams:
                        counts[r, columns[grams[gram]]] += 1
    weights = np.ones(counts.shape[1], np.float32)
    given = node.get("weights")
    if given is not None:
        for i, c in enumerate(columns):
            weights[c] = given[i]
    mode = node.get("mode")
    made = counts if mode == "TF" else (counts > 0) * weights if mode == "IDF" else counts * weights
    return made.astype(np.float32).reshape(*array.shape[:-1], -1)


# ---- signals ------------------------------------------------------------------------------------


@onnx_op("DFT", static=(1, 2))
def _(node: Node, x: Tensor, length: Array | None = None, axis: Array | None = None) -> Tensor:
    at = node.get("axis", 1) if node.opset < 20 else -2 if axis is None else int(axis)
    at = at % x.ndim
    inverse, one_sided = node.get("inverse", 0), node.get("onesided", 0)
    n = x.shape[at] if length is None else int(length)
    if x.shape[-1] == 2:
        z = ops.complex(x[..., 0], x[..., 1])
    else:
        z = x[..., 0]
    if one_sided and inverse:
        return ops.expand_dims(ops.irfft(z, n if length is not None else None, at), -1)
    if one_sided:
        made = ops.rfft(z if x.shape[-1] == 1 else ops.real(z), n, at)
    else:
        made = (ops.ifft if inverse else ops.fft)(z, n, at)
    return ops.stack((ops.real(made), ops.imag(made)), -1)


@onnx_op("STFT", static=(1, 3))
def _(
    node: Node, x: Tensor, hop: Array, window: Tensor | None = None, length: Array | None = None
) -> Tensor:
    if length is not None:
        n = int(length)
    elif window is not None:
        n = window.shape[0]
    else:
        raise OnnxError("got neither window nor frame_length; wanted one of them")
    step = int(hop)
    count = (x.shape[1] - n) // step + 1
    at = np.arange(count)[:, None] * step + np.arange(n)[None, :]
    index = Tensor(at.astype(np.int64))
    signal = ops.complex(x[..., 0], x[..., 1]) if x.ndim == 3 and x.shape[2] == 2 else (
        x[..., 0] if x.ndim == 3 else x
    )  # fmt: skip
    frames = ops.gather(signal, index, 1)
    if window is not None:
        frames = frames * window
    if node.get("onesided", 1):
        made = ops.rfft(ops.real(frames), n, 2)
    else:
        made = ops.fft(frames, n, 2)
    return ops.stack((ops.real(made), ops.imag(made)), -1)


@onnx_op("BlackmanWindow", "HannWindow", "HammingWindow", static=(0,))
def _(node: Node, size: Array) -> Tensor:
    n = int(size)
    i = (
        np.arange(n, dtype=np.float64)
        * 2
        * math.pi
        / max(n if node.get("periodic", 1) else n - 1, 1)
    )
    if node.op_type == "BlackmanWindow":
        made = 0.42 - 0.5 * np.cos(i) + 0.08 * np.cos(2 * i)
    else:
        a = 0.5 if node.op_type == "HannWindow" else 25 / 46
        made = a - (1 - a) * np.cos(i)
    return Tensor(made.astype(dtype_of(node.get("output_datatype", 1))))


@onnx_op("MelWeightMatrix", static=(0, 1, 2, 3, 4))
def _(node: Node, bins: Array, length: Array, rate: Array, low: Array, high: Array) -> Tensor:
    n, size = int(bins), int(length)
    spectrum = size // 2 + 1

    def mel(f: float) -> float:
        return 2595.0 * math.log10(1.0 + f / 700.0)

    edges = np.arange(n + 2) * (mel(float(high)) - mel(float(low))) / (n + 2) + mel(float(low))
    hertz = 700.0 * (np.power(10.0, edges / 2595.0) - 1.0)
    at = ((size + 1) * hertz // int(rate)).astype(int)
    made = np.zeros((spectrum, n))
    for i in range(n):
        first, centre, last = at[i], at[i + 1], at[i + 2]
        if centre == first:
            made[centre, i] = 1
        else:
            rows = np.arange(first, centre + 1)
            made[rows, i] = (rows - first) / (centre - first)
        if last > centre:
            rows = np.arange(centre, last)
            made[rows, i] = (last - rows) / (last - centre)
    return Tensor(made.astype(dtype_of(node.get("output_datatype", 1))))


# ---- detection ----------------------------------------------------------------------------------


@onnx_op("NonMaxSuppression", static=(0, 1, 2, 3, 4))
def _(
    node: Node,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
) -> Tensor:
    limit = 0 if most is None else int(most.reshape(-1)[0])
    threshold = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    rows: list[list[int]] = []
    corners = boxes.astype(np.float64)
    if node.get("center_point_box", 0):
        c = corners
        corners = np.stack([c[..., 1] - c[..., 3] / 2, c[..., 0] - c[..., 2] / 2,
                            c[..., 1] + c[..., 3] / 2, c[..., 0] + c[..., 2] / 2], -1)  # fmt: skip
    top = np.minimum(corners[..., :2], corners[..., 2:])
    bottom = np.maximum(corners[..., :2], corners[..., 2:])
    for b in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            order = np.argsort(-scores[b, label], kind="stable")
            kept: list[int] = []
            for i in order.tolist():
                if least is not None and scores[b, label, i] <= float(least.reshape(-1)[0]):
                    continue
                if len(kept) < limit and all(
                    _overlap(top[b], bottom[b], i, j) <= threshold for j in kept
                ):
                    kept.append(i)
            rows += [[b, label, i] for i in kept]
    return Tensor(np.array(rows, np.int64).reshape(-1, 3))


def _overlap(top: Array, bottom: Array, i: int, j: int) -> float:
    """Return the intersection over union of the boxes number i and j.

    `top` and `bottom` (n, 2) hold the corner of each box with the smallest coordinates, and the one
    with the largest.
    """
    sides = np.maximum(np.minimum(bottom[i], bottom[j]) - np.maximum(top[i], top[j]), 0)
    both = float(np.prod(sides))
    areas = [float(np.prod(bottom[k] - top[k])) for k in (i, j)]
    union = sum(areas) - both
    return both / union if union > 0 else 0.0
