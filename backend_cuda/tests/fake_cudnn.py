"""A package `cudnn` that computes on the host, for tests.

It accepts what cuDNN's frontend accepts, and computes with NumPy from nothing but the graph that it
was given: shapes, steps, numbers of tensors and settings. `calls` lists the methods that ran.
"""

from __future__ import annotations

import ctypes
import enum
import types

import ml_dtypes
import numpy as np

DTYPES = {"FLOAT": np.float32, "HALF": np.float16, "BFLOAT16": ml_dtypes.bfloat16}
HANDLE = object()


class cudnnGraphNotSupportedError(Exception):
    """What cuDNN raises for a graph that it has no algorithm for."""


def _enum(name, *members):
    return enum.Enum(name, members)


class Tensor:
    def __init__(self, dim=None, stride=None, data_type=None, uid=None, name=""):
        self.dim, self.stride, self.data_type, self.uid = dim, stride, data_type, uid
        self.output = False

    def set_output(self, value):
        self.output = value
        return self

    def set_data_type(self, value):
        self.data_type = value
        return self

    def set_uid(self, value):
        self.uid = value
        return self

    def set_dim(self, value):
        self.dim = value
        return self

    def set_stride(self, value):
        self.stride = value
        return self

    def at(self, pointer):
        """View the memory at a pointer as this tensor."""
        assert len(self.dim) == len(self.stride)
        dtype = np.dtype(DTYPES[self.data_type.name])
        assert pointer % 16 == 0, "cuDNN's kernels read 16 bytes at once"
        count = sum((n - 1) * step for n, step in zip(self.dim, self.stride)) + 1
        raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
        flat = np.frombuffer(raw, dtype)
        steps = [step * dtype.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(flat, self.dim, steps, writeable=True)


class Graph:
    """The part of `cudnn.pygraph` that the backend uses."""

    def __init__(self, module, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert compute_data_type is intermediate_data_type is module.data_type.FLOAT
        assert handle is HANDLE
        self.module, self.stage, self.node, self.io = module, 0, None, io_data_type

    def tensor(self, **settings):
        return Tensor(**settings)

    def _node(self, method, inputs, results, settings):
        self.node = (method, inputs, results, settings)
        return results[0] if len(results) == 1 else results

    def conv_fprop(self, image, weight, **window):
        return self._node("conv_fprop", (image, weight), [Tensor()], window)

    def conv_dgrad(self, loss, filter, **window):
        return self._node("conv_dgrad", (loss, filter), [Tensor()], window)

    def conv_wgrad(self, image, loss, **window):
        return self._node("conv_wgrad", (image, loss), [Tensor()], window)

    def sdpa(self, q, k, v, generate_stats, **settings):
        assert generate_stats
        return self._node("sdpa", (q, k, v), [Tensor(), Tensor()], settings)

    def sdpa_backward(self, q, k, v, o, dO, stats, use_deterministic_algorithm, **settings):
        assert use_deterministic_algorithm
        made = [Tensor() for _ in range(3)]
        return self._node("sdpa_backward", (q, k, v, o, dO, stats), made, settings)

    def _advance(self, stage):
        assert self.stage == stage - 1, "the steps of building have an order"
        self.stage = stage

    def validate(self):
        self._advance(1)
        _, inputs, results, _ = self.node
        numbers = [t.uid for t in (*inputs, *results)]
        assert len({*numbers}) == len(numbers)
        assert all(t.output and t.dim and t.stride for t in results)
        assert inputs[0].data_type is self.io

    def build_operation_graph(self):
        self._advance(2)

    def create_execution_plans(self, modes):
        self._advance(3)
        assert [m.name for m in modes] == ["A", "FALLBACK"]

    def deselect_numeric_notes(self, notes):
        assert self.stage == 3
        self.notes = {note.name for note in notes}

    def deselect_workspace_greater_than(self, nbytes):
        assert self.stage == 3

    def check_support(self):
        self._advance(4)
        self.module.built.append((self.node[0], self.notes))
        tensors = (*self.node[1], *self.node[2])
        self.module.steps += [list(zip(t.dim, t.stride, strict=True)) for t in tensors]
        if self.module.refuses:
            raise cudnnGraphNotSupportedError("no engine")

    def get_execution_plan_count(self):
        return len(self.module.plans)

    def get_plan_name_at_index(self, index):
        return self.module.plans[index]

    def build_plan_at_index(self, index):
        assert self.stage >= 4
        if self.module.plans[index].startswith("barred"):
            raise cudnnGraphNotSupportedError("Deselecting execution plan")
        self.stage, self.plan = 5, self.module.plans[index]

    def get_workspace_size(self):
        assert self.stage == 5
        return 640

    def execute(self, pointers, workspace, handle):
        assert self.stage == 5 and handle is HANDLE and workspace
        if self.module.fails:
            raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED\nmore")
        method, inputs, results, settings = self.node
        assert set(pointers) == {t.uid for t in (*inputs, *results)}
        plan = self.plan

        def compute():
            ctypes.memset(workspace, 0x5A, 640)
            read = [t.at(pointers[t.uid]).astype(np.float64) for t in inputs]
            into = [t.at(pointers[t.uid]) for t in results]
            COMPUTE[method](read, into, **settings)
            self.module.calls.append(method)
            self.module.ran.append(plan)

        self.module.put(compute)


# ---- convolution --------------------------------------------------------------------------------


def _taps(x, w_shape, y_shape, pre_padding, post_padding, stride, dilation):
    """Yield, per kernel element, its index and the view of padded images that it meets."""
    count = len(stride)
    assert len(x.shape) == count + 2 >= 4
    widths = [(0, 0), (0, 0), *zip(pre_padding, post_padding)]
    wide = np.pad(x, widths)
    for tap in np.ndindex(*w_shape[2:]):
        places = [
            slice(t * d, t * d + s * (n - 1) + 1, s)
            for t, d, s, n in zip(tap, dilation, stride, y_shape[2:])
        ]
        yield tap, wide, (slice(None), slice(None), *places)


def _grouped(x, groups):
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:])


def _fprop(read, into, **window):
    (x, w), (y,) = read, into
    groups = x.shape[1] // w.shape[1]
    total = np.zeros(_grouped(y, groups).shape)
    filters = w.reshape(groups, -1, *w.shape[1:])
    for tap, wide, at in _taps(x, w.shape, y.shape, **window):
        total += np.einsum("ngc...,gfc->ngf...", _grouped(wide[at], groups), filters[(..., *tap)])
    y[...] = total.reshape(y.shape).astype(y.dtype)


def _dgrad(read, into, **window):
    (y, w), (x,) = read, into
    groups = x.shape[1] // w.shape[1]
    filters = w.reshape(groups, -1, *w.shape[1:])
    zeros = np.zeros(x.shape)
    wide = None
    for tap, padded, at in _taps(zeros, w.shape, y.shape, **window):
        wide = padded * 0 if wide is None else wide
        part = np.einsum("ngf...,gfc->ngc...", _grouped(y, groups), filters[(..., *tap)])
        wide[at] += part.reshape(wide[at].shape)
    inner = [slice(low, low + n) for low, n in zip(window["pre_padding"], x.shape[2:])]
    x[...] = wide[(slice(None), slice(None), *inner)].astype(x.dtype)


def _wgrad(read, into, **window):
    (x, y), (w,) = read, into
    groups = x.shape[1] // w.shape[1]
    dy = _grouped(y, groups)
    for tap, wide, at in _taps(x, w.shape, y.shape, **window):
        met = _grouped(wide[at], groups)
        part = np.einsum("ngfp,ngcp->gfc", *[v.reshape(*v.shape[:3], -1) for v in (dy, met)])
        w[(..., *tap)] = part.reshape(w.shape[:2]).astype(w.dtype)


# ---- attention ----------------------------------------------------------------------------------


def _weights(q, k, attn_scale, log_sum=None, **band):
    """Return the weights of the keys, and the logarithms of the sums of the softmax."""
    left = band.get("diagonal_band_left_bound")
    right = band.get("diagonal_band_right_bound")
    if left is not None or right is not None:
        assert band["diagonal_alignment"].name == "TOP_LEFT"
    scores = attn_scale * q @ k.swapaxes(2, 3)
    row, column = np.indices(scores.shape[2:])
    if left is not None:
        assert left >= 1
        scores = np.where(column + left > row, scores, -np.inf)
    if right is not None:
        assert right >= 0
        scores = np.where(column <= row + right, scores, -np.inf)
    if log_sum is None:
        top = scores.max(3, keepdims=True)
        log_sum = top + np.log(np.exp(scores - top).sum(3, keepdims=True))
    return np.exp(scores - log_sum), log_sum


def _shared(x, heads):
    """Repeat the heads of keys or values for the query heads that share them."""
    return np.repeat(x, heads // x.shape[1], axis=1)


def _sdpa(read, into, **settings):
    (q, k, v), (o, stats) = read, into
    heads = q.shape[1]
    weights, log_sum = _weights(q, _shared(k, heads), **settings)
    o[...] = (weights @ _shared(v, heads)).astype(o.dtype)
    stats[...] = log_sum


def _sdpa_backward(read, into, **settings):
    q, k, v, o, do, stats = read
    heads, own = q.shape[1], k.shape[1]
    wide_k, wide_v = _shared(k, heads), _shared(v, heads)
    weights, _ = _weights(q, wide_k, log_sum=stats, **settings)
    rows = (do * o).sum(3, keepdims=True)
    dscores = weights * (do @ wide_v.swapaxes(2, 3) - rows) * settings["attn_scale"]
    made = [dscores @ wide_k, dscores.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ do]
    for x, out, count in zip(made, into, (heads, own, own)):
        joined = x.reshape(x.shape[0], count, -1, *x.shape[2:]).sum(2)
        out[...] = joined.astype(out.dtype)


COMPUTE = {
    "conv_fprop": _fprop,
    "conv_dgrad": _dgrad,
    "conv_wgrad": _wgrad,
    "sdpa": _sdpa,
    "sdpa_backward": _sdpa_backward,
}


def make(version=91900, starts=True):
    """Return a new package `cudnn`, with lists of what was built and called.

    `steps`: for each tensor of each graph, in order, the length and step of each of its axes.
    `put`: function that receives each call as a function, to run it now or later. `refuses`: no
    graph has an algorithm; `fails`: no call succeeds; `plans`: names of algorithms; `ran`: those
    that ran.
    """
    module = types.ModuleType("cudnn")

    def create_handle():
        if not starts:
            raise RuntimeError("cudnnHandle Create failed\nmore")
        return HANDLE

    def pygraph(**settings):
        return Graph(module, **settings)

    module.__dict__.update(
        cudnnGraphNotSupportedError=cudnnGraphNotSupportedError,
        backend_version=lambda: version,
        backend_version_string=lambda: f"{version // 10000}.{version % 10000 // 100}.0",
        create_handle=create_handle,
        set_stream=lambda handle, stream: module.streams.append((handle, stream)),
        pygraph=pygraph,
        data_type=_enum("data_type", *DTYPES),
        heur_mode=_enum("heur_mode", "A", "B", "FALLBACK"),
        diagonal_alignment=_enum("diagonal_alignment", "TOP_LEFT", "BOTTOM_RIGHT"),
        numerical_note=_enum(
            "numerical_note", "TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION",
            "FFT", "NONDETERMINISTIC", "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6",
            "WINOGRAD_TILE_13x13",
        ),
        put=lambda compute: compute(), refuses=False, fails=False,
        calls=[], built=[], steps=[], streams=[], ran=[],
        plans=["barred_0", "eng_1", "eng_2", "eng_1"],
    )  # fmt: skip
    return module
