"""The kernel table and what kernel builders share: a call allocates its outputs and crosses into C
once.

A builder takes operand types, result types and the op's attributes by keyword, and returns a call,
or None when there is no kernel for this combination:

    @kernel("gather")
    def gather(types, results, *, axis): ...
"""

import functools

from duograph.backend.prepared import Packing
from duograph.errors import IndexRangeError

from . import memory
from ._native import ffi, lib
from .native_program import CALL, Native, NativeCall

KERNELS = {}
# Ops whose kernels give what they have computed to an epilogue, piece by piece.
PRODUCTS = frozenset({"matmul", "conv", "conv_channels_last"})


def kernel(*names):
    """Enter a builder into the table under the names of the ops it serves."""

    def enter(builder):
        for name in names:
            KERNELS[name] = builder
        return builder

    return enter


def fail(name, code, axis=0):
    """Raise what the code that a kernel returned stands for."""
    if code == 1:
        raise memory.no_memory(name)
    if code == 2:
        where = ffi.new("int64_t[2]")
        lib.dg_index_error(where)
        value, size = where
        raise IndexRangeError(
            f"{name}: index {value} is out of range for axis {axis} of size {size}; "
            f"wanted {-size} to {size - 1}"
        )
    raise RuntimeError(f"{name}: the kernel returned code {code}")


def plan(struct, **fields):
    """A C struct of constants for a kernel, owned by the returned pointer."""
    return ffi.new(f"{struct} *", fields)


def call(name, function, constants, types, results, axis=None, overwrites=(), infallible=False):
    """The call `function(constants, *outputs, *operands)`; `axis` is for the message of an
    IndexError.

    A kernel is not run to compute nothing, unless it has indices to check. `overwrites` and
    `infallible`: see `PreparedCall`.
    """
    makers = [memory.maker(r.nbytes, name) for r in results]
    if axis is None and not any(r.size for r in results):
        return NativeCall(_nothing(makers))
    failed = functools.partial(fail, name, axis=axis)
    native = Native(function.__name__, constants, CALL, failed)
    made = _call(name, function, constants, types, makers, axis)
    return NativeCall(made, tuple(overwrites), infallible, native=native)


def packing(name, nbytes, layout, pack, packed, constants, types, results):
    """How a call of two operands takes one of them packed; see `Packing`.

    Args:
        name: of the op.
        nbytes: what is packed.
        layout: see `Packing`.
        pack: function(constants, out, operand).
        packed: function(constants, *outputs, *operands), with one that has an epilogue beside it:
            its name and "_then".
        constants: of both.
        types: of the operands of the call.
        results: their types.
    """
    make = memory.maker(nbytes, name)

    def lay_out(x):
        out = make()
        code = pack(constants, out, x)
        if code:
            fail(name, code)
        return out

    native = Native(pack.__name__, constants, CALL, functools.partial(fail, name))
    with_packed = call(name, packed, constants, types, results)
    return Packing(NativeCall(lay_out, native=native), nbytes, with_packed, (pack.__name__, layout))


def _call(name, function, constants, types, makers, axis):
    if len(makers) > 1:

        def several(*operands):
            outputs = tuple([make() for make in makers])
            code = function(constants, *outputs, *operands)
            if code:
                fail(name, code, axis)
            return outputs

        return several
    make = makers[0]
    if len(types) == 1:

        def unary(x):
            out = make()
            code = function(constants, out, x)
            if code:
                fail(name, code, axis)
            return out

        return unary
    if len(types) == 2:

        def binary(x, y):
            out = make()
            code = function(constants, out, x, y)
            if code:
                fail(name, code, axis)
            return out

        return binary

    def several_operands(*operands):
        out = make()
        code = function(constants, out, *operands)
        if code:
            fail(name, code, axis)
        return out

    return several_operands


def _nothing(makers):
    if len(makers) == 1:
        make = makers[0]
        return lambda *operands: make()
    return lambda *operands: tuple([make() for make in makers])


def product(values):
    """The product of ints, 1 of none."""
    n = 1
    for v in values:
        n *= v
    return n


def split(shape, axis):
    """(outer, n, inner): the sizes before, at and after an axis."""
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])
