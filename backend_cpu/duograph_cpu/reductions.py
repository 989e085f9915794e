"""Builders of reductions, argmax and argmin, scans, sort and topk."""

from ._native import lib
from .kernels import call, kernel, plan, split
from .movement import dense

OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "all": 4, "any": 5}


def merged(shape, axis):
    """[size, stride, reduced] of the axes, neighbours of one kind merged and sizes of 1 dropped."""
    axes = []
    for i, (n, stride) in enumerate(zip(shape, dense(shape))):
        if n == 1:
            continue
        reduced = i in axis
        if axes and axes[-1][2] == reduced:
            axes[-1] = [axes[-1][0] * n, stride, reduced]
        else:
            axes.append([n, stride, reduced])
    return axes


def _reduction(name):
    @kernel(f"reduce_{name}")
    def reduce(types, results, *, axis, keepdims):
        """Any axes; float16 and bfloat16 accumulate in float32."""
        x = types[0]
        if x.dtype.kind == "c" and name in ("max", "min"):
            return None
        axes = merged(x.shape, axis)
        inner, _, reduced = axes.pop() if axes else (1, 1, True)
        kept = [a for a in axes if not a[2]]
        rest = [a for a in axes if a[2]]
        constants = plan(
            "dg_reduction",
            type=x.dtype.index,
            op=OPS[name],
            inner=inner,
            inner_kept=not reduced,
            nk=len(kept),
            kshape=[a[0] for a in kept],
            kstride=[a[1] for a in kept],
            nr=len(rest) or 1,
            rshape=[a[0] for a in rest] or [1],
            rstride=[a[1] for a in rest] or [0],
        )
        return call(f"reduce_{name}", lib.dg_reduce, constants, types, results)

    return reduce


for _name in OPS:
    _reduction(_name)


@kernel("argmax")
def argmax(types, results, *, axis):
    """Index of the first largest element."""
    return _arg("argmax", lib.dg_argmax, types, results, axis)


@kernel("argmin")
def argmin(types, results, *, axis):
    """Index of the first smallest element."""
    return _arg("argmin", lib.dg_argmin, types, results, axis)


def _arg(name, function, types, results, axis):
    x = types[0]
    if x.dtype.kind == "c":
        return None
    outer, n, inner = split(x.shape, axis)
    constants = plan("dg_axis", type=x.dtype.index, outer=outer, n=n, inner=inner)
    return call(name, function, constants, types, results)


def _scan(name, function, types, results, axis, exclusive=False, reverse=False):
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
def cumsum(types, results, *, axis, exclusive=False, reverse=False):
    """Running sums."""
    return _scan("cumsum", lib.dg_cumsum, types, results, axis, exclusive, reverse)


@kernel("cumprod")
def cumprod(types, results, *, axis, exclusive=False, reverse=False):
    """Running products."""
    return _scan("cumprod", lib.dg_cumprod, types, results, axis, exclusive, reverse)


@kernel("cummax")
def cummax(types, results, *, axis):
    """Running maxima and the last index that each was seen at."""
    return _scan("cummax", lib.dg_cummax, types, results, axis)


@kernel("cummin")
def cummin(types, results, *, axis):
    """Running minima and the last index that each was seen at."""
    return _scan("cummin", lib.dg_cummin, types, results, axis)


def _sort(name, types, results, axis, k, descending):
    x = types[0]
    if x.dtype.kind == "c" or results[1].dtype.name != "int64":
        return None
    outer, n, inner = split(x.shape, axis) if x.shape else (1, 1, 1)
    constants = plan(
        "dg_sorting",
        type=x.dtype.index,
        outer=outer,
        n=n,
        inner=inner,
        k=n if k is None else k,
        descending=descending,
    )
    return call(name, lib.dg_sort, constants, types, results)


@kernel("sort")
def sort(types, results, *, axis, descending):
    """Stable, with indices; NaN last."""
    return _sort("sort", types, results, axis, None, descending)


@kernel("topk")
def topk(types, results, *, k, axis, largest):
    """The first k of the sorted axis."""
    return _sort("topk", types, results, axis, k, largest)
