"""Builders of gather and scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import lib
from .kernels import call, kernel, plan, split
from .movement import dense

if TYPE_CHECKING:
    from duograph.backend.protocol import Call

    from ._native import CFunction
    from .kernels import Types


def _rows(
    name: str, function: CFunction, types: Types, results: Types, axis: int, add: int = 0
) -> Call | None:
    x, indices = types[:2]
    if indices.dtype.kind not in "iu":
        return None
    outer, n, inner = split(x.shape, axis)
    constants = plan(
        "dg_indexing",
        type=x.dtype.index, itemsize=x.dtype.itemsize, index_type=indices.dtype.index,
        outer=outer, n=n, inner=inner, count=indices.size, add=add,
    )  # fmt: skip
    return call(name, function, constants, types, results, axis)


@kernel("gather")
def gather(types: Types, results: Types, *, axis: int) -> Call | None:
    """Rows along an axis."""
    return _rows("gather", lib.dg_gather, types, results, axis)


@kernel("scatter_set")
def scatter_set(types: Types, results: Types, *, axis: int) -> Call | None:
    """Rows replaced; the last of duplicates stays."""
    return _rows("scatter_set", lib.dg_scatter, types, results, axis)


@kernel("scatter_add")
def scatter_add(types: Types, results: Types, *, axis: int) -> Call | None:
    """Rows added to, in the order of the indices."""
    return _rows("scatter_add", lib.dg_scatter, types, results, axis, add=1)


def _elements(
    name: str, function: CFunction, types: Types, results: Types, axis: int, add: int = 0
) -> Call | None:
    x, indices = types[:2]
    ndim = len(indices.shape)
    fits = all(i <= n for k, (i, n) in enumerate(zip(indices.shape, x.shape)) if k != axis)
    if indices.dtype.kind not in "iu" or not 0 < ndim <= 16 or not fits:
        return None
    constants = plan(
        "dg_elements",
        type=x.dtype.index,
        itemsize=x.dtype.itemsize,
        index_type=indices.dtype.index,
        ndim=ndim,
        axis=axis,
        n=x.shape[axis],
        total=x.nbytes,
        add=add,
        shape=indices.shape,
        stride=dense(x.shape),
    )
    return call(name, function, constants, types, results, axis)


@kernel("gather_elements")
def gather_elements(types: Types, results: Types, *, axis: int) -> Call | None:
    """NumPy's take_along_axis; the indices may be shorter than x along other axes."""
    return _elements("gather_elements", lib.dg_gather_elements, types, results, axis)


@kernel("scatter_elements_set")
def scatter_elements_set(types: Types, results: Types, *, axis: int) -> Call | None:
    """NumPy's put_along_axis."""
    return _elements("scatter_elements_set", lib.dg_scatter_elements, types, results, axis)


@kernel("scatter_elements_add")
def scatter_elements_add(types: Types, results: Types, *, axis: int) -> Call | None:
    """As scatter_elements_set, adding."""
    return _elements("scatter_elements_add", lib.dg_scatter_elements, types, results, axis, add=1)
