"""Builders of matrix products and convolutions."""

import dataclasses
import functools

from duograph.dtype import float32

from ._native import ffi, lib
from .blas import open_blas
from .kernels import call, kernel, packing, plan, product

# Outputs of a group, from which on vectors of them are full enough.
NARROW = 16


@kernel("matmul")
def matmul(types, results, *, transpose_a=False, transpose_b=False):
    """Batched products; a batch of rows against one matrix becomes one product."""
    x, y = types
    m, n = results[0].shape[-2:]
    k = x.shape[-2] if transpose_a else x.shape[-1]
    batch = results[0].shape[:-2]
    ones = len(batch)
    a_shape = (1,) * (ones - len(x.shape) + 2) + x.shape[:-2]
    b_shape = (1,) * (ones - len(y.shape) + 2) + y.shape[:-2]
    if product(b_shape) == 1 and not transpose_a:
        m, batch, a_shape, b_shape = m * product(batch), (), (), ()
    # on AVX-512 our own kernels are ahead of it but for vectors; opening it takes 7 ms and some MB
    if lib.dg_isa() < 2 or m == 1 or n == 1 or x.dtype.kind == "c":
        open_blas()
    constants = plan(
        "dg_product",
        type=x.dtype.index, ta=bool(transpose_a), tb=bool(transpose_b), m=m, n=n, k=k,
        ndim=len(batch), batches=product(batch), shape=batch,
        a_stride=_strides(a_shape), b_stride=_strides(b_shape),
    )  # fmt: skip
    made = call("matmul", lib.dg_matmul, constants, types, results)
    sides = (
        (lib.dg_matmul_pack0, lib.dg_matmul_packed0, (x.dtype, m, k)),
        (lib.dg_matmul_pack1, lib.dg_matmul_packed1, (x.dtype, bool(transpose_b), n, k)),
    )
    packings = {}
    for operand, (pack, packed, layout) in enumerate(sides):
        nbytes = lib.dg_matmul_packs(constants, operand)
        if nbytes:
            packings[operand] = functools.partial(
                packing, "matmul", nbytes, layout, pack, packed, constants, types, results
            )
    return dataclasses.replace(made, packings=packings)


def _strides(shape):
    """Strides of batch axes in whole matrices, 0 where an axis is broadcast."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(0 if n == 1 else step)
        step *= n
    return strides[::-1]


def _convolution(name, function, types, results, x, w, y, stride, padding, dilation, groups):
    """x, w, y: the types of input, weights and output, whichever of them is computed."""
    if x.dtype.kind != "f" or not 1 <= len(x.shape) - 2 <= 3:
        return None
    if (
        lib.dg_isa() < 2
    ):  # convolutions of kernels of one are products; it decides whether these pack weights
        open_blas()
    constants = _geometry(
        x, w, x.shape[2:], w.shape[2:], y.shape[2:], stride, padding, dilation, groups
    )
    if name == "conv":
        packs = lib.dg_conv_packs, lib.dg_conv_pack, lib.dg_conv_packed
        return _with_packed_weights(name, (function, *packs), constants, types, results)
    return call(name, function, constants, types, results)


def _geometry(x, w, size, kernel, out_size, stride, padding, dilation, groups):
    """The constants of a convolution of inputs of type x with weights of type w."""
    lead = (1,) * (5 - len(x.shape))
    return plan(
        "dg_convolution",
        type=x.dtype.index, batch=x.shape[0], groups=groups,
        **{"in": w.shape[1], "out": w.shape[0] // groups},
        size=lead + size, kernel=lead + kernel, out_size=lead + out_size,
        stride=lead + tuple(stride), dilation=lead + tuple(dilation),
        pad=(0,) * len(lead) + tuple(low for low, high in padding),
    )  # fmt: skip


def _with_packed_weights(name, functions, constants, types, results):
    """A convolution and how it takes packed weights; functions: it, their bytes, packing, it with
    them.
    """
    function, packs, pack, packed = functions
    made = call(name, function, constants, types, results)
    nbytes = packs(constants)
    if nbytes:
        layout = bytes(ffi.buffer(constants))
        offer = functools.partial(
            packing, name, nbytes, layout, pack, packed, constants, types, results
        )
        made = dataclasses.replace(made, packings={1: offer})
    return made


@kernel("conv")
def conv(types, results, *, stride, padding, dilation, groups):
    """Convolution of 1 to 3 spatial axes."""
    x, w = types
    return _convolution(
        "conv", lib.dg_conv, types, results, x, w, results[0], stride, padding, dilation, groups
    )


@kernel("conv_input_grad")
def conv_input_grad(types, results, *, input_shape, stride, padding, dilation, groups):
    """The gradient of conv with respect to its input; also the transposed convolution."""
    y, w = types
    return _convolution(
        "conv_input_grad",
        lib.dg_conv_input_grad,
        types,
        results,
        results[0],
        w,
        y,
        stride,
        padding,
        dilation,
        groups,
    )


@kernel("conv_weight_grad")
def conv_weight_grad(types, results, *, weight_shape, stride, padding, dilation, groups):
    """The gradient of conv with respect to its weights."""
    x, y = types
    return _convolution(
        "conv_weight_grad",
        lib.dg_conv_weight_grad,
        types,
        results,
        x,
        results[0],
        y,
        stride,
        padding,
        dilation,
        groups,
    )


@kernel("conv_channels_last")
def conv_channels_last(types, results, *, stride, padding, dilation, groups):
    """Convolution of float32 whose channels lie innermost."""
    x, w = types
    if x.dtype is not float32 or not 1 <= len(x.shape) - 2 <= 3:
        return None
    if groups > 1 and w.shape[0] // groups < NARROW and w.shape[:2] != (groups, 1):
        return None
    functions = (
        lib.dg_conv_last,
        lib.dg_conv_last_packs,
        lib.dg_conv_last_pack,
        lib.dg_conv_last_packed,
    )
    sizes = x.shape[1:-1], w.shape[2:], results[0].shape[1:-1]
    constants = _geometry(x, w, *sizes, stride, padding, dilation, groups)
    return _with_packed_weights("conv_channels_last", functions, constants, types, results)
