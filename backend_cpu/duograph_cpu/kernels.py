"""The kernel table of the CPU backend, and functions that all kernel builders use.

`backend.CPU.prepare` looks builders up by op name. A builder takes operand types, result types and
the op's attributes by keyword. It returns a prepared call, or None if it has no kernel for these
types::

    @kernel("gather")
    def gather(types, results, *, axis): ...

A prepared call allocates its results and calls one C function. It must not convert or copy
operands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from duograph.backend.prepared import Packing
from duograph.errors import ArgumentValueError, IndexRangeError, LabelRangeError

from . import memory
from ._native import ffi, lib
from .native_call import CALL, Native, NativeCall
from .signals import raise_stopped
from .sized_structs import SizedStruct, has_sizes, hinted

if TYPE_CHECKING:
    from duograph.backend.prepared import HandleFunction
    from duograph.types import TensorType

    from ._native import CData, CFunction
    from .memory import Maker

    Types = tuple[TensorType, ...]
    Padding = Sequence[tuple[int, int]]
    Builder = Callable[..., NativeCall | None]

B = TypeVar("B", bound="Builder")

KERNELS: dict[str, Builder] = {}
# Stands for the axis of an index that is a label; negative labels do not count from the end.
LABELS = -1
# Ops whose kernels run an element-wise epilogue on each part of the result that is complete.
EPILOGUE_OPS = frozenset({"matmul", "conv", "conv_channels_last"})


def kernel(*names: str) -> Callable[[B], B]:
    """Return a decorator that registers a CPU kernel builder under the names of its ops."""

    def enter(builder: B) -> B:
        for name in names:
            KERNELS[name] = builder
        return builder

    return enter


def fail(name: str, code: int, axis: int | None = 0) -> NoReturn:
    """Raise the exception for the error code that a C kernel returned (native/common.h).

    `name` is the op's name. `axis` is the axis to name in the error of a wrong index, or LABELS for
    a wrong label.
    """
    if code == 1:
        raise memory.no_memory(name)
    if code == 5:
        raise_stopped()
    if code == 2:
        where = ffi.new("int64_t[2]")
        lib.dg_index_error(where)
        value, size = where
        if axis == LABELS:
            raise LabelRangeError.of(name, value, size)
        raise IndexRangeError.of_axis(name, value, axis, size)
    raise RuntimeError(f"{name}: the kernel returned code {code}")


def plan(struct: str, **fields: object) -> Any:
    """Allocate a C struct `struct` with the given fields; return the pointer that owns it.

    If some fields are computed from symbolic sizes, the result is a `SizedStruct`.

    Raises:
        ArgumentValueError: a field is an int of more than 64 bits.
    """
    if any(map(has_sizes, fields.values())):
        return SizedStruct(struct, fields)
    try:
        return ffi.new(f"{struct} *", fields)
    except OverflowError:
        shown = ", ".join(f"{name}={value}" for name, value in fields.items())
        raise ArgumentValueError(f"got {shown}; wanted numbers of 64 bits at most") from None


def call(
    name: str,
    function: CFunction,
    constants: CData,
    types: Types,
    results: Types,
    axis: int | None = None,
    overwrites: Iterable[tuple[int, int]] = (),
    infallible: bool = False,
) -> NativeCall:
    """Return the prepared call of the C function `function(constants, *results, *operands)`.

    Args:
        name: name of the op, for messages.
        constants: the C struct that is the function's first argument.
        types, results: operand types and result types.
        axis: the indexed axis, for the error of a wrong index; None if the kernel reads no indices.
            A kernel that reads no indices is not run if its results have no elements.
        overwrites, infallible: see `PreparedCall`.
    """
    makers = [memory.maker(r.nbytes, name) for r in results]
    if axis is None and not any(r.size for r in results):
        return NativeCall(_nothing(makers))
    failed = functools.partial(fail, name, axis=axis)
    native = Native(function.__name__, constants, CALL, failed)
    made = _call(name, function, constants, types, makers, axis)
    return NativeCall(made, tuple(overwrites), infallible, native=native)


def packing(
    name: str,
    nbytes: int,
    layout: Hashable,
    pack: CFunction,
    packed: CFunction,
    constants: CData,
    types: Types,
    results: Types,
) -> Packing:
    """Return a `Packing`: how a kernel takes one of its two operands packed in advance.

    To pack an operand is to rearrange it into the order in which the kernel reads it.

    Args:
        name: name of the op, for error messages.
        nbytes: size of the packed operand.
        layout: key of the packed format, equal for packings with the same bytes; see `Packing`.
        pack: C function (constants, packed, operand) that packs the operand.
        packed: C function (constants, *results, *operands) that computes with the packed operand.
            The C module must have another function whose name is this one's plus "_then", which
            runs an epilogue too.
        constants: first argument of both functions. If it has numbers that are computed from
            sizes, packing must not depend on these.
        types: operand types of the call.
        results: result types of the call.
    """
    make, for_packing = memory.maker(nbytes, name), hinted(constants)

    def pack_operand(x: CData) -> CData:
        out = make()
        code = pack(for_packing, out, x)
        if code:
            fail(name, code)
        return out

    native = Native(pack.__name__, for_packing, CALL, functools.partial(fail, name))
    with_packed = call(name, packed, constants, types, results)
    return Packing(
        NativeCall(pack_operand, native=native), nbytes, with_packed, (pack.__name__, layout)
    )


def _call(
    name: str,
    function: CFunction,
    constants: CData,
    types: Types,
    makers: Sequence[Maker],
    axis: int | None,
) -> HandleFunction:
    """Return the Python function that allocates results and runs a C kernel.

    There is one variant per operand count, because eager execution spends most of its time here.
    `makers` allocate the results; `axis` is the indexed axis for errors, or None.
    """
    if len(makers) > 1:

        def several(*operands: CData) -> tuple[CData, ...]:
            outputs = tuple([make() for make in makers])
            code = function(constants, *outputs, *operands)
            if code:
                fail(name, code, axis)
            return outputs

        return several
    make = makers[0]
    if len(types) == 1:

        def unary(x: CData) -> CData:
            out = make()
            code = function(constants, out, x)
            if code:
                fail(name, code, axis)
            return out

        return unary
    if len(types) == 2:

        def binary(x: CData, y: CData) -> CData:
            out = make()
            code = function(constants, out, x, y)
            if code:
                fail(name, code, axis)
            return out

        return binary

    def several_operands(*operands: CData) -> CData:
        out = make()
        code = function(constants, out, *operands)
        if code:
            fail(name, code, axis)
        return out

    return several_operands


def _nothing(makers: Sequence[Maker]) -> HandleFunction:
    """Return a function of any operands that runs no kernel and returns new empty results."""
    if len(makers) == 1:
        make = makers[0]
        return lambda *operands: make()
    return lambda *operands: tuple([make() for make in makers])


def product(values: Iterable[int]) -> int:
    """Return the product of integers; 1 if there are none."""
    n = 1
    for v in values:
        n *= v
    return n


def split(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return (outer, n, inner): the products of a shape's sizes before, at and after an axis."""
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])
