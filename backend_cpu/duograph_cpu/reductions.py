"""CPU kernels of reductions, argmax, argmin, cumulative ops, sort and topk.

`CPU.prepare` finds their builders in the kernel table. The kernels are in native/reduce.c, scan.c
and sort.c; nothing here computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._native import lib
from .kernels import call, kernel, plan, split
from .movement import dense

if TYPE_CHECKING:
    from ._native import CFunction
    from .kernels import Types
    from .native_call import NativeCall

OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "all": 4, "any": 5}


def merged(shape: Sequence[int], axis: Sequence[int]) -> list[list[int]]:
    """Merge adjacent axes that are all reduced or all not reduced, and drop axes of size 1.

    `axis` has the reduced axes of `shape`, the shape of a contiguous array.

    Returns:
        [size, stride in elements, whether it is reduced] for each merged axis, outermost first.
    """
    axes: list[list[int]] = []
    for i, (n, stride) in enumerate(zip(shape, dense(shape))):
        if n == 1:
            continue
        reduced = i in axis
        if axes and axes[-1][2] == reduced:
            axes[-1] = [axes[-1][0] * n, stride, reduced]
        else:
            axes.append([n, stride, reduced])
    return axes


def _reduction(name: str) -> None:
    """Register the CPU kernel of one reduction, such as sum or max."""

    @kernel(f"reduce_{name}")
    def reduce(
        types: Types, results: Types, *, axis: Sequence[int], keepdims: bool
    ) -> NativeCall | None:
        """Return a prepared call of the CPU reduction kernel over any set of axes.

        The kernels accumulate float16 and bfloat16 in float32. Returns None for the maximum or
        minimum of complex numbers.
        """
        x = types[0]
        if x.dtype.kind == "c" and name in ("max", "min"):
            return None
        axes = merged(x.shape, axis)
        inner, _, reduced = axes.pop() if axes else (1, 1, True)
        kept = [a for a in axes if not a[2]]
        others = [a for a in axes if a[2]]
        constants = plan(
            "dg_reduction",
            type=x.dtype.index, op=OPS[name], inner=inner, inner_kept=not reduced,
            nk=len(kept), kshape=[a[0] for a in kept], kstride=[a[1] for a in kept],
            nr=len(others) or 1,
            rshape=[a[0] for a in others] or [1], rstride=[a[1] for a in others] or [0],
        )  # fmt: skip
        return call(f"reduce_{name}", lib.dg_reduce, constants, types, results)


for _name in OPS:
    _reduction(_name)


def _arg(
    name: str, function: CFunction, types: Types, results: Types, axis: int
) -> NativeCall | None:
    x = types[0]
    if x.dtype.kind == "c":
        return None
    outer, n, inner = split(x.shape, axis)
    constants = plan("dg_axis", type=x.dtype.index, outer=outer, n=n, inner=inner)
    return call(name, function, constants, types, results)


@kernel("argmax")
def argmax(types: Types, results: Types, *, axis: int) -> NativeCall | None:
    """Return a prepared call of argmax: the index of the first maximum on an axis.

    Returns None if the elements are complex.
    """
    return _arg("argmax", lib.dg_argmax, types, results, axis)


@kernel("argmin")
def argmin(types: Types, results: Types, *, axis: int) -> NativeCall | None:
    """Return a prepared call of argmin: the index of the first minimum on an axis.

    Returns None if the elements are complex.
    """
    return _arg("argmin", lib.dg_argmin, types, results, axis)


def _scan(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> NativeCall | None:
    x = types[0]
    index = results[-1].dtype
    if len(results) == 2 and (x.dtype.kind == "c" or index.name not in ("int32", "int64")):
        return None
    outer, n, inner = split(x.shape, axis) if x.shape else (1, 1, 1)
    constants = plan(
        "dg_scanning",
        type=x.dtype.index, index_type=index.index, outer=outer, n=n, inner=inner,
        exclusive=exclusive, reverse=reverse,
    )  # fmt: skip
    return call(name, function, constants, types, results)


@kernel("cumsum")
def cumsum(
    types: Types, results: Types, *, axis: int, exclusive: bool = False, reverse: bool = False
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of cumulative sums along an axis; never None.

    With `exclusive`, each sum omits its own element; with `reverse`, sums start at the end of the
    axis.
    """
    return _scan("cumsum", lib.dg_cumsum, types, results, axis, exclusive, reverse)


@kernel("cumprod")
def cumprod(
    types: Types, results: Types, *, axis: int, exclusive: bool = False, reverse: bool = False
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of cumulative products along an axis; never None.

    With `exclusive`, each product omits its own element; with `reverse`, products start at the end
    of the axis.
    """
    return _scan("cumprod", lib.dg_cumprod, types, results, axis, exclusive, reverse)


@kernel("cummax")
def cummax(types: Types, results: Types, *, axis: int) -> NativeCall | None:
    """Return a prepared call of cumulative maxima and the last index of each maximum.

    Returns None if the elements are complex, or the indices neither int32 nor int64.
    """
    return _scan("cummax", lib.dg_cummax, types, results, axis)


@kernel("cummin")
def cummin(types: Types, results: Types, *, axis: int) -> NativeCall | None:
    """Return a prepared call of cumulative minima and the last index of each minimum.

    Returns None if the elements are complex, or the indices neither int32 nor int64.
    """
    return _scan("cummin", lib.dg_cummin, types, results, axis)


def _sort(
    name: str, types: Types, results: Types, axis: int, k: int | None, descending: bool
) -> NativeCall | None:
    x = types[0]
    if x.dtype.kind == "c" or results[1].dtype.name != "int64":
        return None
    outer, n, inner = split(x.shape, axis) if x.shape else (1, 1, 1)
    constants = plan(
        "dg_sorting",
        type=x.dtype.index, outer=outer, n=n, inner=inner,
        k=n if k is None else k, descending=descending,
    )  # fmt: skip
    return call(name, lib.dg_sort, constants, types, results)


@kernel("sort")
def sort(types: Types, results: Types, *, axis: int, descending: bool) -> NativeCall | None:
    """Return a prepared call of a stable sort along an axis that also returns the indices.

    NaN sorts last, whether ascending or descending. Returns None if the elements are complex or the
    indices are not int64.
    """
    return _sort("sort", types, results, axis, None, descending)


@kernel("topk")
def topk(types: Types, results: Types, *, k: int, axis: int, largest: bool) -> NativeCall | None:
    """Return a prepared call of topk: the k largest or smallest elements on an axis.

    The kernel also returns their indices. With `largest` the largest elements are returned in
    descending order, otherwise the smallest ones in ascending order. Returns None if the elements
    are complex or the indices are not int64.
    """
    return _sort("topk", types, results, axis, k, largest)
