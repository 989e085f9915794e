"""Descriptions of C-like languages for code generators: `C`, `OPENCL` and their base classes.

A backend passes a dialect to the code generators; the dialect contains everything that differs
between the languages. Other languages, such as CUDA C, are `GridDialect` objects in their backends.
A dialect must not decide anything about loops or memory.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Sequence

from ...dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from .header_pruning import pruned
from .header_replacing import replaced

__all__ = ["C", "OPENCL", "Dialect", "GridDialect", "HEADERS", "SUFFIX"]

_HERE = pathlib.Path(__file__).parent

# The name of a dtype in the headers: its type, and the suffix of functions on it.
SUFFIX: dict[DType, str] = {
    bool_: "b8", int8: "i8", int16: "i16", int32: "i32", int64: "i64", uint8: "u8",
    uint16: "u16", uint32: "u32", uint64: "u64", float16: "f16", bfloat16: "bf16",
    float32: "f32", float64: "f64", complex64: "c64", complex128: "c128",
}  # fmt: skip

# Headers of every dialect, in this order, after its own prelude.
HEADERS = ("floating.h", "integer.h", "complex.h")


@functools.cache
def _digest(prelude_file: str) -> str:
    """Return a hash of the source of a dialect's prelude file and of the shared headers."""
    texts = [(_HERE / name).read_bytes() for name in (prelude_file, *HEADERS)]
    try:
        from _blake2 import blake2b  # hashlib's import takes longer than a warm start may
    except ImportError:
        from hashlib import blake2b
    return blake2b(b"\0".join(texts), digest_size=16).hexdigest()


@dataclasses.dataclass(eq=False, repr=False)  # generating these would dominate the import time
class Dialect:
    """Describes a C-like language for code generators: keywords, qualifiers and prelude.

    Attributes:
        name: name of the language in messages and comments.
        prelude_file: header that defines types and primitive functions.
        function: qualifiers of an inlined function.
        int64_suffix, uint64_suffix: suffixes of 64-bit integer literals.
        kernel: qualifiers of a function that the host calls.
        independent: macro on the line before a loop whose iterations are independent.
        stream: name of the function that copies a block to memory, bypassing the caches; "" if
            there is none.
        fetch: name of the function that prefetches memory; "" if there is none.
        memory: address space qualifier of device memory; "" if there is one address space.
        narrow: float32 operators and functions that have a faster form for values that are rounded
            to 16 bits: ``dg_exp_narrow_f32`` for "exp", ``dg_divide_narrow_f32`` for "/".
    """

    name: str
    prelude_file: str
    function: str = "DG_FN"
    int64_suffix: str = "ll"
    uint64_suffix: str = "ull"
    kernel: str = "DG_KERNEL"
    independent: str = "DG_INDEPENDENT"
    stream: str = "dg_stream"
    fetch: str = "dg_fetch"
    memory: str = ""
    narrow: frozenset[str] = frozenset()

    def prelude(self) -> str:
        """Return the source before generated functions: the language's own and shared headers."""
        return "\n".join((_HERE / name).read_text() for name in (self.prelude_file, *HEADERS))

    def version(self) -> str:
        """Return a hash that changes whenever the source of the dialect's prelude changes."""
        return _digest(self.prelude_file)

    def prelude_for(self, text: str) -> str:
        """Return the dialect's prelude, with only those shared functions that a kernel uses.

        `text` is the source of the kernel.
        """
        headers = "\n".join((_HERE / name).read_text() for name in HEADERS)
        return self.own_prelude() + pruned(headers, text)

    def own_prelude(self) -> str:
        """Return the source of the dialect's own prelude file, without the shared headers."""
        return (_HERE / self.prelude_file).read_text()

    def reduction(self, plus: Sequence[str], greatest: Sequence[str], bits: Sequence[str]) -> str:
        """Return the source line that precedes a loop whose reductions may run in any order.

        The arguments name the loop's accumulators: sums in `plus`, maxima in `greatest`, and flags
        that are combined with OR in `bits`.
        """
        kinds = (("+", plus), ("max", greatest), ("|", bits))
        clauses = [f"reduction({kind}:{', '.join(names)})" for kind, names in kinds if names]
        return f"#pragma omp simd {' '.join(clauses)}"

    def accumulate(self, name: str, text: str) -> str:
        """Return the source line that adds the value `text` to the accumulator `name` of a loop."""
        return f"{name} += {text};"

    def load(self, dtype: DType, text: str) -> str:
        """Return source that converts a stored element to the dtype in which kernels compute.

        `text` is the element's source, `dtype` its stored dtype. float16 and bfloat16 are converted
        to float32; for other dtypes `text` is returned unchanged.
        """
        return f"dg_from_{SUFFIX[dtype]}({text})" if dtype in (float16, bfloat16) else text

    def store(self, dtype: DType, text: str, rounded: bool = False) -> str:
        """Return source that rounds a computed element to the dtype in which it is stored.

        `text` is the element's source. It is returned unchanged unless `dtype` is float16 or
        bfloat16. `rounded` says whether the value is known to need no rounding.
        """
        if rounded and dtype is bfloat16:
            return f"dg_upper_half_f32({text})"
        return f"dg_to_{SUFFIX[dtype]}({text})" if dtype in (float16, bfloat16) else text


@dataclasses.dataclass(eq=False, repr=False)  # generating these would dominate the import time
class GridDialect(Dialect):
    """A dialect for devices that run a kernel once for each work item of a grid, as GPUs do.

    Its prelude defines macros for kernels, address spaces, work item ids, barriers and atomic
    additions: DG_KERNEL, DG_GLOBAL, DG_SHARED, DG_ITEM ... (`prelude_opencl.h`).

    Attributes:
        shuffles: whether the 32 work items of a warp can exchange registers. DG_SHUFFLE(x, bits) is
            the value of x in the work item whose lane number is this one's XOR `bits`;
            DG_OF_FIRST(x, lanes) is the value of x in the first work item of each run of `lanes`
            work items.
        subgroups: whether the work items of a subgroup, whose size is any power of two, can
            exchange registers by the macros DG_SUBGROUP... (`prelude_opencl.h`).
        single: whether float32 functions must compute without float64; functions of
            `floating_single.h` then replace those of `floating.h`.
        bounds: format string of the qualifier that tells the compiler how many work items a group
            has; "" if the language has none.
    """

    stream: str = ""
    fetch: str = ""
    memory: str = "DG_GLOBAL"
    shuffles: bool = False
    subgroups: bool = False
    single: bool = False
    bounds: str = ""

    def prelude_for(self, text: str) -> str:
        if not self.single:
            return super().prelude_for(text)
        return self.own_prelude() + pruned(_single_headers(), text)

    def definition(self, name: str, lanes: int = 0) -> str:
        """Return the first part of a kernel's definition: qualifiers, ``void`` and its name.

        `lanes` is the number of work items in each group if it is always the same, else 0.
        """
        bounds = f" {self.bounds.format(lanes)}" if lanes and self.bounds else ""
        return f"{self.kernel} void{bounds} {name}"

    def reduction(self, plus: Sequence[str], greatest: Sequence[str], bits: Sequence[str]) -> str:
        """Return the macro call that precedes a loop whose reductions may run in any order.

        The arguments, the names of the loop's accumulators, are not used.
        """
        return "DG_ANY_ORDER"

    def accumulate(self, name: str, text: str) -> str:
        """Return the macro call that adds the value `text` to the accumulator `name` of a loop."""
        return f"DG_ADD_TO({name}, {text})"


@functools.cache
def _single_headers() -> str:
    """Return the source of the shared headers for devices without float64."""
    floating, *others = ((_HERE / name).read_text() for name in HEADERS)
    single = (_HERE / "floating_single.h").read_text()
    return "\n".join((replaced(floating, single), *others))


C = Dialect(name="C", prelude_file="prelude_c.h")
OPENCL = GridDialect(
    name="OpenCL C",
    prelude_file="prelude_opencl.h",
    int64_suffix="l",
    uint64_suffix="ul",
    independent="DG_REGION_LOOP",
)
