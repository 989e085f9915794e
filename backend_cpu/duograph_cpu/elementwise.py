"""Prepared calls of the CPU's elementwise kernels, whose C code `build.py` has generated.

`CPU.prepare` calls `prepare_elementwise` for ops without a builder of their own. A C kernel
computes a row, which is a range of elements along the last axis. The builder merges axes and fills
a C struct of constants once for given operand types, so that a call only allocates its result and
calls the C function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from duograph.backend.codegen.scalar_kernels import (
    collapse,
    grain_of,
    kernel_name,
    parameter_names,
)

from . import memory
from ._native import ffi, lib
from .kernels import plan
from .native_call import Native, NativeCall
from .sized_structs import has_sizes, unsized

if TYPE_CHECKING:
    from duograph.backend.prepared import HandleFunction
    from duograph.ir.graph import Attributes
    from duograph.op import Op
    from duograph.types import TensorType

    from ._native import CData
    from .kernels import Types

MAX_OPERANDS = 5


def prepare_plan(
    row: CData, heavy: int, types: Types, result: TensorType, parameters: Iterable[float]
) -> CData:
    """Return the C struct `dg_elementwise_plan`: sizes and strides for an elementwise kernel call.

    Args:
        row: the C function that computes the elements along the last axis.
        heavy: 1 if an element costs much more than plain arithmetic, else 0.
        types: operand types.
        result: result type.
        parameters: values of the op's float attributes.
    """
    sizes, steps = collapse(result.shape, [t.shape for t in types])
    if result.size == 0 or not sizes:
        sizes, steps = [result.size], [[1 if result.size == 0 else 0] for _ in types]
        if result.size == 1:
            steps = [[1] for _ in types]
    return plan(
        "dg_elementwise_plan",
        row=row, n=result.size, row_length=sizes[-1], grain=grain_of(bool(heavy)),
        moving=sum((s[-1] != 0) << k for k, s in enumerate(steps)),
        operands=len(types), outer=len(sizes) - 1,
        itemsizes=[t.dtype.itemsize for t in (*types, result)], sizes=sizes[:-1],
        steps=[
            [step * t.dtype.itemsize for step in own[:-1]] for own, t in zip(steps, types)
        ],
        parameters=list(parameters),
    )  # fmt: skip


def prepare_elementwise(
    op: Op, types: Types, result: TensorType, attributes: Attributes
) -> NativeCall | None:
    """Return the prepared call of an op's elementwise kernel, or None if there is none."""
    if None in types or len(types) > MAX_OPERANDS:
        return None
    name = kernel_name(op, [t.dtype for t in types], attributes)
    if name is None:
        return None
    heavy = ffi.new("int *")
    row = lib.dg_elementwise_find(name.encode(), heavy)
    if row == ffi.NULL:
        return None
    values = [attributes[p] for p in parameter_names(op)]
    constants = prepare_plan(row, heavy[0], types, result, values)
    same = [
        k
        for k, t in enumerate(types)
        if t.shape == result.shape and t.dtype.itemsize == result.dtype.itemsize
    ]
    native = Native(f"dg_elementwise{len(types)}", constants)
    run = unsized if has_sizes(constants) else _call(op.name, constants, types, result)
    return NativeCall(run, tuple((k, 0) for k in same), True, native=native)


def _call(name: str, plan: CData, types: Types, result: TensorType) -> HandleFunction:
    """Return the Python function that allocates the result and runs an elementwise kernel.

    Eager execution spends most of its time in these functions, so there are faster variants for one
    and two operands.
    """
    make = memory.maker(result.nbytes, name)
    small = result.nbytes <= memory.SMALL
    function = getattr(lib, f"dg_elementwise{len(types)}")
    if small and len(types) <= 2:
        # the most frequent calls: allocate directly
        new, ctype = memory.new_small, ffi.typeof(f"char[{max(result.nbytes, 1)}]")
        if len(types) == 1:

            def unary_small(x: CData) -> CData:
                out = new(ctype)
                function(plan, out, x)
                return out

            return unary_small

        def binary_small(x: CData, y: CData) -> CData:
            out = new(ctype)
            function(plan, out, x, y)
            return out

        return binary_small
    if len(types) == 1:

        def unary(x: CData) -> CData:
            out = make()
            function(plan, out, x)
            return out

        return unary
    if len(types) == 2:

        def binary(x: CData, y: CData) -> CData:
            out = make()
            function(plan, out, x, y)
            return out

        return binary

    def several(*operands: CData) -> CData:
        out = make()
        function(plan, out, *operands)
        return out

    return several
