"""Prepared calls of the C functions that are generated at run time for fused regions.

A fused region is a group of ops that one kernel computes. `fused_regions` makes one prepared call
for every region. A call allocates its results, then calls C once. The module must not depend on
what the generated function computes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from duograph.backend.prepared import HandleFunction, Packing
from duograph.errors import IndexRangeError
from duograph.types import TensorType

from . import memory
from ._native import ffi, lib
from .convolution_chains import Affine, Stage, join
from .kernels import fail as fail_kernel
from .kernels import plan
from .native_call import LIST, Native, NativeCall, keep, list_call
from .sized_structs import SizedStruct, SizeTable, unsized

if TYPE_CHECKING:
    from duograph.backend.codegen.c_regions import PrintedRegion

    from ._native import CData, CFunction
    from .memory import Maker
    from .toolchain import Library

    Failed: TypeAlias = Callable[[int, tuple[CData, ...]], object]
    Results: TypeAlias = Sequence[TensorType]

# The most operands with an entry point of their own, dg_region0 and so on; more are passed as a
# list.
MOST = 6
# Operands with indices that one call can check.
MOST_INDICES = 16
# Codes of native/common.h.
INDEX, WRONG_INDEX = 2, 16


def make_call(
    function: CData,
    n: int,
    grain: int,
    operand_count: int,
    results: Results,
    name: str,
    failed: Failed | None = None,
    overwrites: Sequence[tuple[int, int]] = (),
    infallible: bool = False,
    table: SizeTable | None = None,
) -> NativeCall:
    """Return the prepared call that allocates its results and runs one generated C function.

    Args:
        function: C function `int f(void **args, int64_t begin, int64_t end)`, where `args` are the
            operands followed by the results.
        n: number of iterations of the function's outer loop, which the thread pool divides.
        grain: number of iterations that makes another thread worthwhile. Results may depend on it,
            but never on the number of threads.
        operand_count: number of operand handles.
        results: types of the results.
        name: name of the function, for messages.
        failed: function of an error code and the operands, whose result the call returns if the C
            function fails; None if the call is to raise an exception.
        overwrites: pairs (position of an operand, position of a result) that may have the same
            memory.
        infallible: whether the function always returns 0.
        table: the sizes that the function reads, or None.
    """
    region = _struct("dg_region", {"f": function, "n": n, "grain": grain}, function)
    if failed is not None:
        return NativeCall(_region_call(region, operand_count, results, name, failed))
    native = Native("dg_region_run", region, LIST, functools.partial(fail, name), table)
    if native.sized:
        return NativeCall(unsized, tuple(overwrites), infallible, native=native)
    run = _region_call(region, operand_count, results, name, lambda code, _: fail(name, code))
    return NativeCall(run, tuple(overwrites), infallible, native=native)


def _struct(struct: str, fields: dict[str, Any], owner: object) -> Any:
    """Return a C struct that keeps `owner` alive; a `SizedStruct` if fields depend on sizes."""
    made = plan(struct, **fields)
    if isinstance(made, SizedStruct):
        made.keep = (*made.keep, owner)
        return made
    return keep(made, owner)


class IndexOperand(NamedTuple):
    """An operand of a fused region that holds indices; a call checks them before it runs.

    Attributes:
        operand: position among the region's operands.
        type: type of the operand.
        op, axis: name of the op and the indexed axis, for messages.
        size: size of the indexed axis.
    """

    operand: int
    type: TensorType
    op: str
    axis: int
    size: int


def make_staged_call(
    library: Library,
    function: PrintedRegion,
    indices: Sequence[IndexOperand],
    operand_count: int,
    results: Results,
    name: str,
    overwrites: Sequence[tuple[int, int]],
    table: SizeTable | None = None,
) -> NativeCall:
    """Return the prepared call that checks indices, then runs one or two generated C functions.

    Args:
        library: the library with the generated C functions. The second function, if there is one,
            runs when the first has finished, and reads the memory that the first has written.
        function: the generated C functions and the ranges for which to call them.
        indices: the operands that hold indices.
        operand_count: number of operand handles.
        results: types of the results.
        name: name of the first function.
        overwrites: pairs (position of an operand, position of a result) that may have the same
            memory.
        table: the sizes that the functions read, or None.
    """
    second = function.second
    wanted = [(x.operand, x.type.dtype.index, x.type.size, x.size) for x in indices]
    staged = _struct(
        "dg_staged",
        {
            "first": (library.function(name), function.n, function.grain),
            "second": (library.function(second[0]), *second[1:]) if second else (ffi.NULL, 0, 0),
            "pointers": operand_count + (table is not None) + len(results),
            "bytes": function.memory, "count": len(wanted), "indices": wanted,
        },
        library,
    )  # fmt: skip

    def failed(code: int) -> NoReturn:
        if code < WRONG_INDEX:
            fail(name, code)
        wrong = indices[code - WRONG_INDEX]
        fail_kernel(wrong.op, INDEX, wrong.axis)

    native = Native("dg_staged_run", staged, LIST, failed, table)
    return NativeCall(list_call(native, results, name), tuple(overwrites), native=native)


class Tail(NamedTuple):
    """A generated elementwise C function that runs on the result of a matmul or convolution.

    Below, "the kernel" is that of the matmul or convolution, and "the call" is the prepared call of
    the kernel together with this function.

    Attributes:
        function: the generated function, whose operands are the kernel's result and those operands
            of the call whose positions are in `reads`.
        printed: source of the function and size of its range.
        operands: positions of the kernel's operands among the operands of the call.
        value: the type of the kernel's result.
        reads: positions of the function's other operands among the operands of the call.
        operand_count: number of operand handles of the call.
        results: types of the call's results, which the function writes.
        name: name of the function, for messages.
        affine: the function as an `Affine` (scale, add, clip), or None if it does not have this
            form.
        table: the sizes that the function reads, or None.
    """

    function: CData
    printed: PrintedRegion
    operands: tuple[int, ...]
    value: TensorType
    reads: tuple[int, ...]
    operand_count: int
    results: tuple[TensorType, ...]
    name: str
    affine: Affine | None = None
    table: SizeTable | None = None


def make_epilogue_call(kernel: NativeCall, tail: Tail) -> NativeCall:
    """Return a prepared call of a matmul or convolution with an elementwise epilogue.

    `kernel` is the prepared call without the epilogue, `tail` the epilogue.
    """
    native = kernel.native
    assert native is not None and native.failed is not None
    results, reads, affine = tail.results, tail.reads, tail.affine
    # The kernel's result is stored in the first result of its size, where the function overwrites
    # each element after it was read. All of it is stored before, so no operand may share that
    # memory.
    nbytes = tail.value.nbytes
    count = tail.operand_count + (tail.table is not None)  # pointers before those of results
    stored = [count + k for k, r in enumerate(results) if r.nbytes == nbytes]
    own = [-1, *reads, *range(tail.operand_count, count + len(results))]
    fused = _struct(
        "dg_fused",
        {
            "product": ffi.cast("void *", ffi.addressof(lib, native.function + "_then")),
            "plan": native.constants,
            "f": tail.function,
            "n": tail.printed.n,
            "grain": tail.printed.grain,
            "bytes": nbytes,
            "left": tail.operands[0],
            "right": tail.operands[1],
            "value": stored[0] if stored else -1,
            "has_affine": affine is not None,
            "affine": affine or (),
            "count": len(own),
            "places": own,
        },
        (native, tail.function),
    )
    overwrites: tuple[tuple[int, int], ...] = ()
    stage = None
    if native.function == "dg_conv_last_packed":
        if affine is not None and affine.more > 0:
            more = reads[affine.more - 1]
            # each element is written once, after the addend there was read
            if more not in tail.operands and lib.dg_conv_last_once(native.constants):
                overwrites = ((more, 0),)
        if [r.nbytes for r in results] == [nbytes]:
            stage = Stage(native, tail.function, tail.operands, reads, tail.operand_count,
                          results[0], tail.name, affine)  # fmt: skip
    packings = {
        tail.operands[k]: functools.partial(_packed_epilogue, offer, tail)
        for k, offer in kernel.packings.items()
        if tail.operands.count(tail.operands[k]) == 1 and tail.operands[k] not in reads
    }
    fuse = functools.partial(join, (stage,)) if stage is not None else None
    whole = Native("dg_fused_run", fused, LIST, native.failed, tail.table)
    run = list_call(whole, results, tail.name)
    return NativeCall(
        run, overwrites, packings=packings, fuse_consumer=fuse, native=whole, stage=stage
    )


def _packed_epilogue(offer: Callable[[], Packing | None], tail: Tail) -> Packing | None:
    """Return the `Packing` of a kernel with an epilogue, given that of the kernel alone.

    A `Packing` says how the kernel takes an operand that was rearranged in advance. `offer` returns
    that of the kernel alone, or None; in the latter case, the result is None too.
    """
    packing = offer()
    if packing is None:
        return None
    assert isinstance(packing.call, NativeCall)
    return dataclasses.replace(packing, call=make_epilogue_call(packing.call, tail))


def _region_call(
    region: CData, operand_count: int, results: Results, name: str, failed: Failed
) -> HandleFunction:
    """Return the Python function that allocates results and runs one generated C function.

    Args:
        region: the C struct `dg_region`, with the C function, the number of iterations of its outer
            loop, and the grain (iterations that make another thread worthwhile).
        operand_count: number of operand handles.
        results: types of the results.
        name: name of the C function, for messages.
        failed: function of an error code and the operands. If the C function fails, the call
            returns the result of `failed`.
    """
    makers = [memory.maker(r.nbytes, name) for r in results]
    if len(results) == 1:
        if operand_count <= MOST:
            return _few(region, operand_count, makers[0], results[0].nbytes, failed)
        return _many(region, makers[0], failed)
    run = lib.dg_region_run

    def several(*operands: CData) -> object:
        outputs = tuple([make() for make in makers])
        code = run(region, operands + outputs)
        if code:
            return failed(code, operands)
        return outputs

    return several


def _few(region: CData, count: int, make: Maker, nbytes: int, failed: Failed) -> HandleFunction:
    """Return the Python function that runs a generated C function of few operands and one result.

    This is the most frequent kind of call, so the function must be as fast as possible.

    Args:
        region: the C struct that describes the C function; see `_region_call`.
        count: number of operands, at most `MOST`.
        make: function that allocates the result.
        nbytes: size of the result.
        failed: function of an error code and the operands. If the C function fails, the call
            returns the result of `failed`.
    """
    function: CFunction = getattr(lib, f"dg_region{count}")
    if nbytes <= memory.SMALL and count in (1, 2):
        new, ctype = memory.new_small, ffi.typeof(f"char[{max(nbytes, 1)}]")
        if count == 1:

            def unary_small(x: CData) -> object:
                out = new(ctype)
                code = function(region, out, x)
                return failed(code, (x,)) if code else out

            return unary_small

        def binary_small(x: CData, y: CData) -> object:
            out = new(ctype)
            code = function(region, out, x, y)
            return failed(code, (x, y)) if code else out

        return binary_small

    def few(*operands: CData) -> object:
        out = make()
        code = function(region, out, *operands)
        return failed(code, operands) if code else out

    return few


def _many(region: CData, make: Maker, failed: Failed) -> HandleFunction:
    """Return the Python function that runs a generated C function of many operands and one result.

    In each call cffi converts the tuple of operands to a new C array, which is safe for threads and
    faster than filling an existing array. `make` allocates the result. If the C function fails, the
    call returns `failed(error code, operands)`.
    """
    run = lib.dg_region_run

    def many(*operands: CData) -> object:
        out = make()
        code = run(region, (*operands, out))
        return failed(code, operands) if code else out

    return many


def fail(name: str, code: int) -> NoReturn:
    """Raise the exception for the error code that a generated C function returned."""
    if code == 1:
        raise memory.no_memory(name)
    if code == 2:
        raise IndexRangeError(f"{name}: an index is out of range")
    raise RuntimeError(f"{name}: the compiled function returned code {code}")
