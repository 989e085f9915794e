"""CPU kernels of gather and scatter (native/indexing.c), prepared for given operand types.

`CPU.prepare` finds their builders in the kernel table; nothing here computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import lib
from .kernels import LABELS, call, kernel, plan, split
from .movement import dense

if TYPE_CHECKING:
    from ._native import CFunction
    from .kernels import Types
    from .native_call import NativeCall


def _rows(name: str, function: CFunction, add: int = 0) -> None:
    """Register the builder of the op `name`, a gather or scatter of whole slices along an axis.

    `function` is its C kernel. `add` is 1 if the kernel adds updates to the existing elements, else
    0.
    """

    @kernel(name)
    def rows(types: Types, results: Types, *, axis: int) -> NativeCall | None:
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


def _elements(name: str, function: CFunction, add: int = 0) -> None:
    """Register the builder of the op `name`, a gather or scatter as in NumPy's take_along_axis.

    The indices may be shorter than the first operand along the other axes. `function` is the C
    kernel. `add` is 1 if it adds updates to the existing elements, else 0.
    """

    @kernel(name)
    def elements(types: Types, results: Types, *, axis: int) -> NativeCall | None:
        x, indices = types[:2]
        ndim = len(indices.shape)
        fits = all(i <= n for k, (i, n) in enumerate(zip(indices.shape, x.shape)) if k != axis)
        if indices.dtype.kind not in "iu" or not 0 < ndim <= 16 or not fits:
            return None
        constants = plan(
            "dg_elements",
            type=x.dtype.index, itemsize=x.dtype.itemsize, index_type=indices.dtype.index,
            ndim=ndim, axis=axis, n=x.shape[axis], total=x.nbytes, add=add,
            shape=indices.shape, stride=dense(x.shape),
        )  # fmt: skip
        return call(name, function, constants, types, results, axis)


@kernel("checked_labels")
def checked_labels(types: Types, results: Types, *, classes: int, owner: str) -> NativeCall | None:
    """Return the prepared call that copies labels and fails if one is not in 0 .. classes - 1.

    `owner` is the name of the op in the error message. Returns None if the labels are not integers.
    """
    (labels,) = types
    if labels.dtype.kind not in "iu":
        return None
    constants = plan(
        "dg_indexing",
        type=labels.dtype.index, itemsize=labels.dtype.itemsize, index_type=labels.dtype.index,
        outer=1, n=classes, inner=1, count=labels.size,
    )  # fmt: skip
    return call(owner, lib.dg_checked_labels, constants, types, results, LABELS)


_rows("gather", lib.dg_gather)
_rows("scatter_set", lib.dg_scatter)  # of duplicate indices the last one wins
_rows("scatter_add", lib.dg_scatter, add=1)  # adds in the order of the indices
_elements("gather_elements", lib.dg_gather_elements)
_elements("scatter_elements_set", lib.dg_scatter_elements)
_elements("scatter_elements_add", lib.dg_scatter_elements, add=1)
