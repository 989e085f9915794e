"""Primitive classes of ops that move, select and create elements, such as `ops.Concat(axis)`.

Users construct them. Each class is made by one call of `_form` below, which names the function to
call, the op whose gradient rules apply, and the constructor's arguments with their defaults. The
functions here only adapt arguments; ops do not belong here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..dtype import DType, int32, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..op import OPS, Op
from ..tensor import Tensor
from . import (
    axis_scattering,
    creation_ranges,
    diagonals,
    gathering,
    indexing,
    inplace_indexing,
    joining,
    movement,
    repeating,
    scattering,
    segments,
    shaping,
    sorting,
    tensor_types,
)
from . import (
    creation_functions as creation,
)
from .arguments import int_of
from .comparison import less
from .division import floor_divide, remainder
from .gather_scatter import gather
from .logic import logical_and, select_by
from .padding import batch_to_space_nd, channel_shuffle, pad, space_to_batch_nd
from .primitive import Primitive, described, is_exported, shown_parameter

__all__: list[str] = []  # filled by _form

_Number: TypeAlias = Tensor | int | float
_Function: TypeAlias = Callable[..., object]  # of any result: a Tensor, a tuple of them, a shape


class _Form(Primitive):
    """Base class of the primitive classes that `_form` defines.

    Calling an instance calls the function of its class, with the arguments of the call and, as
    keyword arguments, the arguments of the constructor.
    """

    _function: _Function

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()
        try:
            bound = type(self).__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        except TypeError as error:
            raise ArgumentError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        self._given = list(bound.arguments)
        for key, value in bound.arguments.items():
            setattr(self, key, value)

    def __call__(self, *args: object, **kwargs: object) -> object:
        given = {key: getattr(self, key) for key in self._given}
        return type(self)._function(*args, **given, **kwargs)


_REQUIRED = inspect.Parameter.empty


def _form(name: str, function: _Function, op: str | None = None, **defaults: object) -> None:
    """Define a primitive class called `name` in this module that calls `function`.

    Args:
        op: name of the op whose gradient rules apply; default that of `function`.
        defaults: the constructor's arguments by name; the value _REQUIRED marks an argument
            without a default.
    """
    parameters = [
        inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v)
        for k, v in defaults.items()
    ]
    constructor = ", ".join(shown_parameter(k, v) for k, v in defaults.items())
    called = "..."
    if not is_exported(function):
        code = inspect.unwrap(function).__code__
        left = [n for n in code.co_varnames[: code.co_argcount] if n not in defaults]
        called = ", ".join(left) or called
    of: Op | None = OPS[op] if op is not None else getattr(function, "op", None)
    globals()[name] = type(
        name,
        (_Form,),
        {
            "op": of,
            "_function": staticmethod(function),
            "__signature__": inspect.Signature(parameters),
            "__doc__": described(function, f"{name}({constructor})({called})"),
            "__module__": __name__,
        },
    )
    __all__.append(name)


# ---- arguments in MindSpore's order -------------------------------------------------------------


def _tensors(function: _Function) -> _Function:
    """Wrap a function of a sequence of tensors so that it also takes them as separate arguments."""

    def several(*tensors: object, **attributes: object) -> object:
        given = (
            tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
        )
        return function(given, **attributes)

    several.__name__ = function.__name__
    return several


def _split(input_x: Tensor, axis: int, output_num: int) -> tuple[Tensor, ...]:
    n = input_x.shape[axis] if input_x.shape else 0
    if int_of("Split", "output_num", output_num) < 1 or n % output_num:
        raise ArgumentValueError(
            f"Split: got output_num={output_num} for an axis of size {n}; wanted a divisor"
        )
    return joining.split(input_x, max(n // output_num, 1), axis)


def _split_v(
    input_x: Tensor, size_splits: Sequence[int], split_dim: int, num_split: int
) -> tuple[Tensor, ...]:
    sizes = list(size_splits)
    if -1 in sizes:
        sizes[sizes.index(-1)] = input_x.shape[split_dim] - sum(n for n in sizes if n != -1)
    if len(sizes) != num_split:
        raise ArgumentError(f"SplitV: got size_splits={size_splits} and num_split={num_split}")
    return joining.split(input_x, sizes, split_dim)


def _top_k(input_x: Tensor, k: Tensor | int, sorted: bool) -> tuple[Tensor, Tensor]:
    return sorting.topk(input_x, k.item() if isinstance(k, Tensor) else k, sorted=sorted)


def _one_hot(indices: Tensor, depth: int, on_value: object, off_value: object, axis: int) -> Tensor:
    return creation.one_hot.public(indices, depth, on_value, off_value, axis)


def _unstack(input_x: Tensor, axis: int, num: int | None) -> tuple[Tensor, ...]:
    if num is not None and num != input_x.shape[axis]:
        raise ShapeError(f"Unstack: got num={num} for axis {axis} of shape {input_x.shape}")
    return joining.unstack(input_x, axis)


def _pad_v3(
    x: Tensor,
    paddings: Tensor | Sequence[int],
    constant_value: int | float | None = None,
    *,
    mode: str,
    paddings_contiguous: bool,
) -> Tensor:
    sizes: list[int] = list(paddings.tolist() if isinstance(paddings, Tensor) else paddings)
    if not paddings_contiguous:
        half = len(sizes) // 2
        sizes = [p for pair in zip(sizes[:half], sizes[half:], strict=True) for p in pair]
    how = {"edge": "replicate"}.get(mode, mode)
    return pad(x, tuple(sizes), how, constant_value if mode == "constant" else None)


def _cast_scalar(input_x: int | float | bool, input_y: object) -> object:
    return tensor_types.scalar_cast(input_x, input_y)


def _flatten(input_x: Tensor) -> Tensor:
    return shaping.flatten(input_x)


def _range(start: _Number, end: _Number | None, step: _Number, maxlen: int) -> Tensor:
    return creation_ranges.range(start, end, step, maxlen)


def _log_space(start: _Number, end: _Number, steps: int, base: int, dtype: DType) -> Tensor:
    return creation_ranges.logspace(start, end, steps, base, dtype=dtype)


def _searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    sorter: Tensor | None = None,
    *,
    dtype: DType,
    right: bool,
) -> Tensor:
    return sorting.searchsorted(
        sorted_sequence, values, out_int32=dtype is int32, right=right, sorter=sorter
    )


def _bound(sorted_x: Tensor, values: Tensor, out_type: DType, right: bool) -> Tensor:
    return sorting.searchsorted(sorted_x, values, out_int32=out_type is int32, right=right)


def _lower_bound(sorted_x: Tensor, values: Tensor, out_type: DType) -> Tensor:
    return _bound(sorted_x, values, out_type, False)


def _upper_bound(sorted_x: Tensor, values: Tensor, out_type: DType) -> Tensor:
    return _bound(sorted_x, values, out_type, True)


def _triangle(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def indices(row: int, col: int, offset: int, dtype: DType) -> Tensor:
        return function(row, col, offset, dtype=dtype)

    indices.__name__ = function.__name__
    return indices


def _inplace(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def rows(x: Tensor, v: Tensor, indices: object) -> Tensor:
        return function(x, v, indices)

    rows.__name__ = function.__name__
    return rows


def _index_add(x: Tensor, indices: object, y: Tensor, axis: int, **flags: bool) -> Tensor:
    return inplace_indexing.index_add(x, indices, y, axis, **flags)


def _index_fill(x: Tensor, dim: Tensor | int, index: object, value: object) -> Tensor:
    return axis_scattering.index_fill(
        x, dim.item() if isinstance(dim, Tensor) else dim, index, value
    )


def _index_put(x1: Tensor, x2: Tensor, indices: Sequence[object], accumulate: int) -> Tensor:
    return indexing.with_item(x1, tuple(indices), x2, bool(accumulate))


def _embedding_lookup(input_params: Tensor, input_indices: object, offset: int) -> Tensor:
    """Look up the rows of `input_params` at `input_indices - offset`.

    An index out of range results in zeros.
    """
    indices = creation.as_index(input_indices) - offset
    n = input_params.shape[0]
    inside = logical_and(less(-1, indices), less(indices, n))
    rows = gather(input_params, select_by(inside, indices, 0), 0)
    shape = (*indices.shape, *[1] * (len(input_params.shape) - 1))
    return select_by(shaping.reshape(inside, shape), rows, 0)


def _gather_v2(input_params: Tensor, input_indices: object, axis: int) -> Tensor:
    return gathering.gather.public(input_params, input_indices, axis)


def _invert_permutation(input_x: Tensor | Sequence[int]) -> Tensor | tuple[int, ...]:
    order = [int(i) for i in (input_x.tolist() if isinstance(input_x, Tensor) else input_x)]
    if sorted(order) != list(range(len(order))):
        raise ArgumentError(f"InvertPermutation: got {input_x}; wanted each of 0 to n - 1 once")
    found = tuple(int(i) for i in np.argsort(order))
    return Tensor(list(found), input_x.dtype) if isinstance(input_x, Tensor) else found


def _list_diff(x: Tensor, y: Tensor, out_idx: DType) -> tuple[Tensor, Tensor]:
    values = x.asnumpy()
    at = np.flatnonzero(~np.isin(values, y.asnumpy()))
    return Tensor(values[at]), Tensor(at.astype(out_idx.np))


def _unravel_index(indices: Tensor, dims: Tensor) -> Tensor:
    out, at = [], creation.as_index(indices)
    for n in reversed(dims.tolist()):
        out.append(remainder(at, n))
        at = floor_divide(at, n)
    return joining.stack(out[::-1], 0)


def identity_n(x: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return a tuple with a tensor of the same value for each tensor; see `ops.identity`."""
    return tuple(movement.identity(t) for t in x)


_form("Flatten", _flatten)
_form("Squeeze", shaping.squeeze, axis=())
_form("Concat", _tensors(joining.concat), "concat", axis=0)
_form("ParallelConcat", _tensors(joining.concat), "concat")
_form("Stack", _tensors(joining.stack), axis=0)
_form("Unstack", _unstack, axis=0, num=None)
_form("Split", _split, axis=0, output_num=1)
_form("SplitV", _split_v, size_splits=_REQUIRED, split_dim=_REQUIRED, num_split=_REQUIRED)
_form("BroadcastTo", repeating.broadcast_to.public, "broadcast_to", shape=_REQUIRED)
_form(
    "Meshgrid",
    _tensors(lambda tensors, indexing: repeating.meshgrid(*tensors, indexing=indexing)),
    indexing="xy",
)
_form("IdentityN", identity_n)
_form("PadV3", _pad_v3, mode="constant", paddings_contiguous=True)
_form(
    "ChannelShuffle",
    lambda x, group: channel_shuffle(x, group),
    "channel_shuffle",
    group=_REQUIRED,
)
_form(
    "SpaceToBatchND",
    lambda x, block_shape, paddings: space_to_batch_nd(x, block_shape, paddings),
    block_shape=_REQUIRED,
    paddings=_REQUIRED,
)
_form("BatchToSpace", lambda x, block_size, crops: batch_to_space_nd(x, block_size, crops),
      block_size=_REQUIRED, crops=_REQUIRED)  # fmt: skip
_form(
    "FillV2", lambda shape, value: creation.full(shape, value, dtype=getattr(value, "dtype", None))
)
_form("OneHot", _one_hot, axis=-1)
_form("LogSpace", _log_space, steps=10, base=10, dtype=creation.float32)
_form("Range", _range, maxlen=1000000)
_form(
    "TrilIndices",
    _triangle(creation.tril_indices),
    row=_REQUIRED,
    col=_REQUIRED,
    offset=0,
    dtype=int32,
)
_form(
    "TriuIndices",
    _triangle(creation.triu_indices),
    row=_REQUIRED,
    col=_REQUIRED,
    offset=0,
    dtype=int32,
)
_form("DynamicShape", lambda x, dtype: tensor_types.dyn_shape(x), dtype=9)
_form("ScalarCast", _cast_scalar)
_form("TensorToTuple", lambda x: tuple(movement.stop_gradient(x).tolist()))
_form("DiagPart", lambda x: diagonals.diagonal(x))
_form("SparseGatherV2", _gather_v2, "gather")
_form("EmbeddingLookup", _embedding_lookup)
for _mode in ("update", "add", "sub", "mul", "div", "max", "min"):
    _word = _mode.capitalize()
    _form(f"TensorScatter{_word}", getattr(scattering, f"tensor_scatter_{_mode}"))
    _locking = _mode == "update"
    _form(f"Scatter{_word}", getattr(inplace_indexing, f"scatter_{_mode}"), use_locking=_locking)
    _form(
        f"ScatterNd{_word}", getattr(inplace_indexing, f"scatter_nd_{_mode}"), use_locking=_locking
    )
_form("ScatterNonAliasingAdd", scattering.tensor_scatter_add)
_form("IndexAdd", _index_add, axis=_REQUIRED, use_lock=True, check_index_bound=True)
_form("IndexFill", _index_fill)
_form("IndexPut", _index_put, accumulate=0)
_form("InplaceUpdate", _inplace(axis_scattering.inplace_update), indices=_REQUIRED)
_form("InplaceUpdateV2", lambda x, indices, v: axis_scattering.inplace_update(x, v, indices))
_form("InplaceAdd", _inplace(axis_scattering.inplace_add), indices=_REQUIRED)
_form("InplaceSub", _inplace(axis_scattering.inplace_sub), indices=_REQUIRED)
for _mode in ("sum", "max", "min", "prod"):
    _form(f"UnsortedSegment{_mode.capitalize()}", getattr(segments, f"unsorted_segment_{_mode}"))
_form("TopK", _top_k, "topk", sorted=True)
_form("SearchSorted", _searchsorted, "searchsorted", dtype=int64, right=False)
_form("LowerBound", _lower_bound, "searchsorted", out_type=int32)
_form("UpperBound", _upper_bound, "searchsorted", out_type=int32)
_form("InvertPermutation", _invert_permutation)
_form("ListDiff", _list_diff, out_idx=int32)
_form("UnravelIndex", _unravel_index)
