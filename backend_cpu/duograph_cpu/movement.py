"""CPU kernels that move data (fill, strided copy, slice, concat), prepared for operand types.

`CPU.prepare` finds their builders in the kernel table. The kernels are in native/movement.c; they
move bytes and must not interpret them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from duograph.backend.sizes import is_symbolic

from . import memory
from ._native import ffi, lib
from .kernels import call, fail, kernel, plan, split
from .native_call import VARIADIC, Native, NativeCall
from .sized_structs import WORD, Element, SizedStruct, has_sizes

if TYPE_CHECKING:
    from duograph.dtype import DType
    from duograph.types import Shape, TensorType

    from ._native import CData, CFunction
    from .kernels import Types


def _value(value: float, dtype: DType) -> bytes | Element:
    """Convert a number to a dtype; return the bytes of one element.

    If the number is symbolic, they are computed for each assignment of sizes.
    """
    if is_symbolic(value) and dtype.itemsize <= WORD:
        return Element(value, dtype)
    return np.array(value).astype(dtype.np).tobytes()


@kernel("fill")
def fill(
    types: Types, results: Types, *, shape: Shape, value: float, dtype: DType
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that fills a new tensor with a value; never None."""
    constants = plan(
        "dg_filling",
        bytes=results[0].nbytes, itemsize=dtype.itemsize, value=_value(value, dtype),
    )  # fmt: skip
    return _constant(lib.dg_fill, constants, results[0])


@kernel("iota")
def iota(
    types: Types, results: Types, *, shape: Shape, axis: int, dtype: DType
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that makes a tensor of indices along one axis.

    For bool, 16-bit floating-point and complex dtypes, NumPy computes the tensor once and each call
    copies it. The result is never None.
    """
    if dtype.name in ("bool", "float16", "bfloat16", "complex64", "complex128"):
        counts = np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1))
        array = np.ascontiguousarray(np.broadcast_to(counts.astype(dtype.np), shape))
        make, nbytes = memory.maker(array.nbytes, "iota"), array.nbytes
        bytes_ = ffi.from_buffer(array.reshape(-1).view(np.uint8))

        def copy() -> CData:
            out = make()
            lib.dg_copy(out, bytes_, nbytes)
            return out

        return NativeCall(copy)
    outer, n, inner = split(shape, axis)
    constants = plan("dg_axis", type=dtype.index, outer=outer, n=n, inner=inner)
    return _constant(lib.dg_iota, constants, results[0])


def _constant(function: CFunction, constants: CData, result: TensorType) -> NativeCall:
    make = memory.maker(result.nbytes, "fill")

    def run() -> CData:
        out = make()
        function(constants, out)
        return out

    return NativeCall(run, infallible=True, native=Native(function.__name__, constants))


def dense(shape: Sequence[int]) -> Shape:
    """Return the C-order strides of a shape, in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def nd(
    shape: Sequence[int],
    dst: Sequence[int],
    src: Sequence[int],
    itemsize: int,
    dst_offset: int = 0,
    src_offset: int = 0,
    nbytes: int = 0,
    value: bytes | Element = b"",
) -> CData | None:
    """Return the C struct `dg_nd` of a strided copy; None if it has more than 16 axes.

    Axes of size 1 are dropped, and axes that are contiguous on both sides are merged.

    Args:
        shape: shape of the copied elements.
        dst, src: strides of the target and the source, in elements.
        itemsize: bytes of an element.
        dst_offset, src_offset: positions of the first element, in elements.
        nbytes: bytes of the whole target, for kernels that also copy or fill it.
        value: bytes of the element that fills the target, for padding.
    """
    axes: list[tuple[int, int, int]] = []
    for n, d, s in zip(shape, dst, src):
        if n == 1:
            continue
        if axes and axes[-1][1] == n * d and axes[-1][2] == n * s:
            axes[-1] = (axes[-1][0] * n, d, s)
        else:
            axes.append((n, d, s))
    if len(axes) > 16:
        return None
    return plan(
        "dg_nd",
        ndim=len(axes), itemsize=itemsize, dst_offset=dst_offset, src_offset=src_offset,
        bytes=nbytes, shape=[a[0] for a in axes], dst=[a[1] for a in axes],
        src=[a[2] for a in axes], value=value,
    )  # fmt: skip


def _copy(
    name: str, types: Types, results: Types, strides: Sequence[int], offset: int
) -> NativeCall | None:
    out = results[0]
    constants = nd(out.shape, dense(out.shape), strides, out.dtype.itemsize, src_offset=offset)
    if constants is None:
        return None
    return call(name, lib.dg_strided_copy, constants, types, results)


@kernel("strided_copy")
def strided_copy(
    types: Types, results: Types, *, shape: Shape, strides: Sequence[int], offset: int
) -> NativeCall | None:
    """Return a prepared call that copies a strided view of a buffer to a dense tensor.

    `strides` and `offset` are in elements of the buffer. Returns None if the copy needs a loop nest
    of more than 16 axes (see `nd`).
    """
    return _copy("strided_copy", types, results, strides, offset)


@kernel("transpose")
def transpose(types: Types, results: Types, *, perm: Sequence[int]) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that permutes a tensor's axes.

    Axis i of the result is axis ``perm[i]`` of the operand. Returns None if the copy needs a loop
    nest of more than 16 axes (see `nd`).
    """
    strides = dense(types[0].shape)
    return _copy("transpose", types, results, [strides[p] for p in perm], 0)


@kernel("broadcast_to")
def broadcast_to(types: Types, results: Types, *, shape: Shape) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that broadcasts a tensor to a larger shape.

    Returns None if the copy needs a loop nest of more than 16 axes (see `nd`).
    """
    x, out = types[0].shape, results[0].shape
    strides = [0 if n == 1 else s for n, s in zip(x, dense(x))]
    return _copy("broadcast_to", types, results, [0] * (len(out) - len(x)) + strides, 0)


@kernel("flip")
def flip(types: Types, results: Types, *, axes: Sequence[int]) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that reverses a tensor along some axes.

    Returns None if the copy needs a loop nest of more than 16 axes (see `nd`).
    """
    x = types[0].shape
    strides = list(dense(x))
    offset = sum((x[a] - 1) * strides[a] for a in axes if x[a])
    for a in axes:
        strides[a] = -strides[a]
    return _copy("flip", types, results, strides, offset)


@kernel("strided_slice")
def strided_slice(
    types: Types,
    results: Types,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
) -> NativeCall | None:
    """Return a prepared call that copies a slice of a tensor, ``begin:end:stride`` on each axis.

    `begin` must not be negative. Returns None if the copy needs a loop nest of more than 16 axes
    (see `nd`).
    """
    steps = dense(types[0].shape)
    offset = sum(b * s for b, s in zip(begin, steps)) if results[0].size else 0
    return _copy("strided_slice", types, results, [t * s for t, s in zip(strides, steps)], offset)


@kernel("slice_update")
def slice_update(
    types: Types,
    results: Types,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
) -> NativeCall | None:
    """Return the prepared call that copies x and replaces a slice of the copy by v.

    The operands are x and v. The slice is ``begin:end:stride`` along each axis, and has v's shape.
    Returns None if the copy needs a loop nest of more than 16 axes (see `nd`).
    """
    x, v = types
    steps = dense(x.shape)
    constants = nd(
        v.shape, [t * s for t, s in zip(strides, steps)], dense(v.shape), x.dtype.itemsize,
        dst_offset=sum(b * s for b, s in zip(begin, steps)) if v.size else 0, nbytes=x.nbytes,
    )  # fmt: skip
    if constants is None:
        return None
    return call("slice_update", lib.dg_slice_update, constants, types, results)


@kernel("pad_constant")
def pad_constant(
    types: Types, results: Types, *, low: Sequence[int], high: Sequence[int], value: float
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that pads a tensor with a constant.

    `low` and `high` are the numbers of elements added before and after each axis. Returns None if
    the copy needs a loop nest of more than 16 axes (see `nd`).
    """
    x, out = types[0], results[0]
    steps = dense(out.shape)
    constants = nd(
        x.shape, steps, dense(x.shape), x.dtype.itemsize,
        dst_offset=sum(b * s for b, s in zip(low, steps)) if x.size else 0,
        nbytes=out.nbytes, value=_value(value, x.dtype),
    )  # fmt: skip
    if constants is None:
        return None
    return call("pad_constant", lib.dg_pad, constants, types, results)


@kernel("concat")
def concat(types: Types, results: Types, *, axis: int) -> NativeCall | None:
    """Return a prepared call of the CPU kernel that concatenates tensors on an axis; never None."""
    out = results[0]
    outer, _, inner = split(out.shape, axis)
    step = inner * out.dtype.itemsize
    each = [t.shape[axis] * step for t in types]
    rows: CData | SizedStruct
    if has_sizes(each):
        rows = SizedStruct(f"int64_t[{len(each)}]", each)
    else:
        rows = ffi.new("int64_t[]", each)
    constants = plan(
        "dg_joining", count=len(types), outer=outer, total=out.shape[axis] * step, rows=rows
    )
    make = memory.maker(out.nbytes, "concat")
    pointers = ffi.typeof(f"void *[{len(types)}]")

    def run(*operands: CData) -> CData:
        out, _keep = make(), rows
        code = lib.dg_concat(constants, out, ffi.new(pointers, operands))
        if code:
            fail("concat", code)
        return out

    native = Native("dg_concat", constants, VARIADIC, functools.partial(fail, "concat"))
    return NativeCall(run, native=native)
