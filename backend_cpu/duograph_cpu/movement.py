"""Builders of the movement kernels: constants, strided copies, slices, concatenation."""

import functools

import numpy as np

from . import memory
from ._native import ffi, lib
from .kernels import call, fail, kernel, plan, product, split
from .native_program import JOIN, Native, NativeCall


def _value(value, dtype):
    """The bytes of a constant."""
    return np.array(value).astype(dtype.np).tobytes()


@kernel("fill")
def fill(types, results, *, shape, value, dtype):
    """All elements the same."""
    constants = plan(
        "dg_filling",
        bytes=results[0].nbytes, itemsize=dtype.itemsize, value=_value(value, dtype),
    )  # fmt: skip
    return _constant(lib.dg_fill, constants, results[0])


@kernel("iota")
def iota(types, results, *, shape, axis, dtype):
    """Counts along one axis; the types without C arithmetic are counted once, by NumPy."""
    if dtype.name in ("bool", "float16", "bfloat16", "complex64", "complex128"):
        counts = np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1))
        array = np.ascontiguousarray(np.broadcast_to(counts.astype(dtype.np), shape))
        make, nbytes = memory.maker(array.nbytes, "iota"), array.nbytes
        bytes_ = ffi.from_buffer(array.reshape(-1).view(np.uint8))

        def copied():
            out = make()
            lib.dg_copy(out, bytes_, nbytes)
            return out

        return copied
    outer, n, inner = split(shape, axis)
    constants = plan("dg_axis", type=dtype.index, outer=outer, n=n, inner=inner)
    return _constant(lib.dg_iota, constants, results[0])


def _constant(function, constants, result):
    make = memory.maker(result.nbytes, "fill")

    def run():
        out = make()
        function(constants, out)
        return out

    return NativeCall(run, infallible=True, native=Native(function.__name__, constants))


def dense(shape):
    """C-order strides, in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def nd(shape, dst, src, itemsize, dst_offset=0, src_offset=0, nbytes=0, value=b""):
    """A `dg_nd`: axes of size 1 dropped, axes that lie behind one another on both sides merged."""
    axes = []
    for n, d, s in zip(shape, dst, src):
        if n == 1:
            continue
        if axes and axes[-1][1] == n * d and axes[-1][2] == n * s:
            axes[-1] = (axes[-1][0] * n, d, s)
        else:
            axes.append((n, d, s))
    if len(axes) > 16:
        return None
    n, d, s = zip(*axes) if axes else ((), (), ())
    return plan(
        "dg_nd",
        ndim=len(axes), itemsize=itemsize, dst_offset=dst_offset, src_offset=src_offset,
        bytes=nbytes, shape=n, dst=d, src=s, value=value,
    )  # fmt: skip


def _copy(name, types, results, strides, offset):
    out = results[0]
    constants = nd(out.shape, dense(out.shape), strides, out.dtype.itemsize, src_offset=offset)
    if constants is None:
        return None
    return call(name, lib.dg_strided_copy, constants, types, results)


@kernel("strided_copy")
def strided_copy(types, results, *, shape, strides, offset):
    """Any view of a dense buffer, made dense."""
    return _copy("strided_copy", types, results, strides, offset)


@kernel("transpose")
def transpose(types, results, *, perm):
    """Axes permuted."""
    strides = dense(types[0].shape)
    return _copy("transpose", types, results, [strides[p] for p in perm], 0)


@kernel("broadcast_to")
def broadcast_to(types, results, *, shape):
    """Axes repeated."""
    x, out = types[0].shape, results[0].shape
    strides = [0 if n == 1 else s for n, s in zip(x, dense(x))]
    return _copy("broadcast_to", types, results, [0] * (len(out) - len(x)) + strides, 0)


@kernel("flip")
def flip(types, results, *, axes):
    """Axes reversed."""
    x = types[0].shape
    strides = list(dense(x))
    offset = sum((x[a] - 1) * strides[a] for a in axes if x[a])
    for a in axes:
        strides[a] = -strides[a]
    return _copy("flip", types, results, strides, offset)


@kernel("strided_slice")
def strided_slice(types, results, *, begin, end, strides):
    """One (begin, end, stride) an axis."""
    steps = dense(types[0].shape)
    offset = sum(b * s for b, s in zip(begin, steps)) if results[0].size else 0
    return _copy("strided_slice", types, results, [t * s for t, s in zip(strides, steps)], offset)


@kernel("slice_update")
def slice_update(types, results, *, begin, end, strides):
    """A copy of x with one slice replaced."""
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
def pad_constant(types, results, *, low, high, value):
    """x in the middle of a constant."""
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
def concat(types, results, *, axis):
    """Operands one behind the other."""
    out = results[0]
    outer, _, inner = split(out.shape, axis)
    step = inner * out.dtype.itemsize
    rows = ffi.new("int64_t[]", [t.shape[axis] * step for t in types])
    constants = plan(
        "dg_joining", count=len(types), outer=outer, total=out.shape[axis] * step, rows=rows
    )
    make = memory.maker(out.nbytes, "concat")
    pointers = ffi.typeof(f"void *[{len(types)}]")

    def run(*operands):
        out, _keep = make(), rows
        code = lib.dg_concat(constants, out, ffi.new(pointers, operands))
        if code:
            fail("concat", code)
        return out

    native = Native("dg_concat", constants, JOIN, functools.partial(fail, "concat"))
    return NativeCall(run, native=native)


__all__ = ["dense", "nd", "product"]
