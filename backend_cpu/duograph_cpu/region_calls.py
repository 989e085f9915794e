"""Calls of functions that were compiled at run time: what a fused region of a graph runs as."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from duograph.errors import IndexRangeError

from . import memory
from ._native import ffi, lib
from .convolution_chains import Stage, join
from .kernels import fail as fail_kernel
from .native_program import LIST, Native, NativeCall, keep

if TYPE_CHECKING:
    from duograph.backend.codegen.c_regions import PrintedRegion
    from duograph.backend.prepared import HandleFunction, Packing, PreparedCall
    from duograph.types import TensorType

    from ._native import CData
    from .convolution_chains import Affine
    from .kernels import Types
    from .memory import Maker
    from .toolchain import Library

    Failed = Callable[[int, tuple[CData, ...]], Any]
    # operand, its type, and op, axis and size of what it counts
    Index = tuple[int, TensorType, str, int, int]

# Up to so many operands have an entry point of their own, dg_region0 ...; more go as a list.
MOST = 6
# Operands with indices that one call can check.
MOST_INDICES = 16
# Codes of native/common.h.
INDEX, WRONG_INDEX = 2, 16


def make_call(
    address: int,
    n: int,
    grain: int,
    operand_count: int,
    results: Types,
    name: str,
    failed: Failed | None = None,
    overwrites: Iterable[tuple[int, int]] = (),
    infallible: bool = False,
) -> NativeCall:
    """A call from operand handles to a result handle, or to a tuple of handles when there are
    several results.

    Args:
        address: of an `int f(void **args, int64_t begin, int64_t end)`; args: operands, then
            results.
        n: turns of its outer loop, which the pool splits.
        grain: turns that are worth a thread. A result may depend on it, never on the number of
            threads.
        operand_count: how many handles the call takes.
        results: types of the results.
        name: for messages.
        failed: called with the code that is not 0 and the operands, and its value returned; None
            raises.
        overwrites: pairs (operand, result) that may share memory.
        infallible: whether the function always returns 0.
    """
    region = ffi.new("dg_region *", (ffi.cast("dg_generated", address), n, grain))
    makers = [memory.maker(r.nbytes, name) for r in results]
    if failed is not None:
        return NativeCall(_call(region, operand_count, results, makers, failed))
    native = Native("dg_region_run", region, LIST, functools.partial(fail, name))
    made = _call(region, operand_count, results, makers, lambda code, operands: fail(name, code))
    return NativeCall(made, tuple(overwrites), infallible, native=native)


def make_staged_call(
    library: Library,
    function: PrintedRegion,
    indices: Sequence[Index],
    operand_count: int,
    results: Types,
    name: str,
    overwrites: Iterable[tuple[int, int]],
) -> NativeCall:
    """A call of a generated function that reads through indices, or has a second one after it.

    Args:
        library: in which they are.
        function: its `PrintedRegion`.
        indices: for each operand with indices its place, its type, and op, axis and size of what it
            counts.
        operand_count: how many handles the call takes.
        results: types of the results.
        name: of the function.
        overwrites: pairs (operand, result) that may share memory.
    """

    def generated(symbol: str) -> CData:
        return ffi.cast("dg_generated", library.address(symbol))

    second = function.second
    wanted = [(place, type_.dtype.index, type_.size, n) for place, type_, _, _, n in indices]
    staged = ffi.new(
        "dg_staged *",
        {
            "first": (generated(name), function.n, function.grain),
            "second": (generated(second[0]), *second[1:]) if second else (ffi.NULL, 0, 0),
            "pointers": operand_count + len(results), "bytes": function.memory,
            "count": len(wanted), "indices": wanted,
        },
    )  # fmt: skip

    def failed(code: int) -> NoReturn:
        if code < WRONG_INDEX:
            fail(name, code)
        _, _, op, axis, _ = indices[code - WRONG_INDEX]
        fail_kernel(op, INDEX, axis)

    makers = [memory.maker(r.nbytes, name) for r in results]
    run, single = lib.dg_staged_run, len(results) == 1

    def call(*handles: CData) -> Any:
        outputs = tuple([make() for make in makers])
        code = run(staged, (*handles, *outputs))
        if code:
            failed(code)
        return outputs[0] if single else outputs

    native = Native("dg_staged_run", staged, LIST, failed)
    return NativeCall(call, tuple(overwrites), native=native)


def make_product_call(
    address: int,
    function: PrintedRegion,
    product: NativeCall,
    operands: Sequence[int],
    value: TensorType,
    reads: Sequence[int],
    operand_count: int,
    results: Types,
    name: str,
    affine: Affine | None = None,
) -> NativeCall:
    """A call of a product and what follows it element by element: a generated function like those
    of `make_call`.

    Args:
        address: of the generated function, whose operands are the product's value and those at
            `reads`.
        function: its `PrintedRegion`.
        product: the prepared call of the product.
        operands: where the product finds its operands among those of the call.
        value: the type of what the product computes.
        reads: where the function finds its other operands among those of the call.
        operand_count: how many handles the call takes.
        results: types of the results.
        name: for messages.
        affine: the fields of `dg_affine` when the function is one, its operands those of the
            function.
    """
    # The value lies in the first result of its size, each element until the function has read it:
    # so no operand may share memory with a result, since all of the value is there before.
    places = [operand_count + k for k, r in enumerate(results) if r.nbytes == value.nbytes]
    own = [-1, *reads, *range(operand_count, operand_count + len(results))]
    native = product.native
    assert native is not None and native.failed is not None  # of contractions
    symbol = ffi.addressof(lib, native.function + "_then")
    fused = ffi.new(
        "dg_fused *",
        {
            "product": ffi.cast("void *", symbol),
            "plan": native.constants,
            "f": ffi.cast("dg_generated", address),
            "n": function.n,
            "grain": function.grain,
            "bytes": value.nbytes,
            "left": operands[0],
            "right": operands[1],
            "value": places[0] if places else -1,
            "has_affine": affine is not None,
            "affine": affine or (),
            "count": len(own),
            "places": own,
        },
    )
    fused = keep(fused, native)
    makers = [memory.maker(r.nbytes, name) for r in results]
    failed = native.failed
    run, single = lib.dg_fused_run, len(results) == 1

    def again(other: PreparedCall) -> NativeCall:
        assert isinstance(other, NativeCall)
        return make_product_call(
            address, function, other, operands, value, reads, operand_count, results, name, affine
        )

    def call(*handles: CData) -> Any:
        outputs = tuple([make() for make in makers])
        code = run(fused, (*handles, *outputs))
        if code:
            failed(code)
        return outputs[0] if single else outputs

    over: tuple[tuple[int, int], ...] = ()
    if affine is not None and affine[2] > 0 and native.function == "dg_conv_last_packed":
        more = reads[affine[2] - 1]
        # each element is written once, when what is added to it was read
        if more not in operands and lib.dg_conv_last_once(native.constants):
            over = ((more, 0),)
    stage = None
    if native.function == "dg_conv_last_packed" and [r.nbytes for r in results] == [value.nbytes]:
        stage = Stage(
            native,
            address,
            (operands[0], operands[1]),
            tuple(reads),
            operand_count,
            results[0],
            name,
            affine,
        )
    packings = {
        operands[k]: functools.partial(_fused_packing, offer, again)
        for k, offer in product.packings.items()
        if operands.count(operands[k]) == 1 and operands[k] not in reads
    }
    fuse = functools.partial(join, (stage,)) if stage is not None else None
    native = Native("dg_fused_run", fused, LIST, failed)
    return NativeCall(call, over, packings=packings, fuse_consumer=fuse, native=native, stage=stage)


def _fused_packing(
    offer: Callable[[], Packing | None], again: Callable[[PreparedCall], NativeCall]
) -> Packing | None:
    """The packing of a product, for the call of the product and what follows it."""
    packing = offer()
    return packing and dataclasses.replace(packing, call=again(packing.call))


def _call(
    region: CData, operand_count: int, results: Types, makers: Sequence[Maker], failed: Failed
) -> HandleFunction:
    if len(results) == 1:
        if operand_count <= MOST:
            nbytes = results[0].nbytes
            return _few(region, operand_count, makers[0], nbytes, failed)
        return _many(region, makers[0], failed)
    run = lib.dg_region_run

    def several(*operands: CData) -> Any:
        outputs = tuple([make() for make in makers])
        code = run(region, operands + outputs)
        if code:
            return failed(code, operands)
        return outputs

    return several


def _few(region: CData, count: int, make: Maker, nbytes: int, failed: Failed) -> HandleFunction:
    """The calls that happen most: no step that they do not need."""
    function = getattr(lib, f"dg_region{count}")
    if nbytes <= memory.SMALL and count in (1, 2):
        new, ctype = memory.new_small, ffi.typeof(f"char[{max(nbytes, 1)}]")
        if count == 1:

            def unary_small(x: CData) -> Any:
                out = new(ctype)
                code = function(region, out, x)
                return failed(code, (x,)) if code else out

            return unary_small

        def binary_small(x: CData, y: CData) -> Any:
            out = new(ctype)
            code = function(region, out, x, y)
            return failed(code, (x, y)) if code else out

        return binary_small

    def few(*operands: CData) -> Any:
        out = make()
        code = function(region, out, *operands)
        return failed(code, operands) if code else out

    return few


def _many(region: CData, make: Maker, failed: Failed) -> HandleFunction:
    """cffi makes a C array of the tuple in each call: safe for threads, and cheaper than to fill
    one that is kept.
    """
    run = lib.dg_region_run

    def many(*operands: CData) -> Any:
        out = make()
        code = run(region, (*operands, out))
        return failed(code, operands) if code else out

    return many


def fail(name: str, code: int) -> NoReturn:
    """Raise what a code stands for."""
    if code == 1:
        raise memory.no_memory(name)
    if code == 2:
        raise IndexRangeError(f"{name}: an index is out of range")
    raise RuntimeError(f"{name}: the compiled function returned code {code}")
