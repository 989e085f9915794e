"""`x[index]` and `x[index] = value` in all forms of NumPy's basic and advanced indexing.

The Tensor methods and `inplace_indexing.py` call it. Ints, slices, None and Ellipsis are attributes
of the op, so that a common index needs one lookup of a prepared call. Index arrays are operands. A
bool mask is converted to index arrays, which reads its values, except for `x[mask] = scalar`, which
becomes an elementwise select. No result is a view: a write binds the Tensor to a new buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from ..dtype import bool_
from ..errors import ArgumentError, DTypeError, IndexKindError, IndexRangeError, ShapeError
from ..host_arrays import Array
from ..ir.builder import GraphTensor
from ..op import op
from ..op_calls import numbers
from ..runtime_state import runtime_state, thread_state
from ..sizes import size_like
from ..tensor import Tensor
from ..types import broadcast_shapes, size_of
from . import elementwise
from .comparison import equal
from .creation import cast_to
from .creation_functions import as_index
from .gather_scatter import gather, gathered_shape, normal_indices, scatter_add_by, scatter_set_by
from .gathering import linear_index
from .index_plan import ARRAY, NEW_ARRAY, Items, Plan, axes_consumed, plan_of
from .logic import select_by
from .methods import tensor_method
from .movement import identity, slice_by, slice_shape, update_by
from .shape_primitives import broadcast_to, reshape_to, transpose_by
from .value_sizes import nonzero_by

__all__: list[str] = []


def _sliced(x: Tensor, plan: Plan) -> Tensor:
    """Apply the slices and the reshape of an index plan to `x`; the caller does the gather."""
    out = x if plan.whole(x.shape) else slice_by(x, plan.begin, plan.end, plan.strides)
    return out if out.shape == plan.middle else reshape_to(out, plan.middle)


def _order(plan: Plan) -> tuple[int, ...]:
    """Return the axis permutation that makes the axes to be gathered adjacent.

    Their place is `plan.position`.
    """
    rest = [a for a in range(len(plan.middle)) if a not in plan.axes]
    return (*rest[: plan.position], *plan.axes, *rest[plan.position :])


def _merged(x: Tensor, plan: Plan) -> Tensor:
    """Merge the axes of `x` that index arrays select from into one, axis number `plan.position`.

    If the axes are not adjacent there, a transpose moves them first.
    """
    order = _order(plan)
    moved = x if order == tuple(range(len(order))) else transpose_by(x, order)
    k = len(plan.axes)
    shape = moved.shape
    p = plan.position
    return reshape_to(moved, (*shape[:p], size_of(shape[p : p + k]), *shape[p + k :]))


def _positions(arrays: Sequence[Tensor], plan: Plan) -> Tensor:
    """Combine index arrays, one for each of `plan.axes`, into one array of merged indices.

    The result indexes the axis that `_merged` makes.
    """
    shape = broadcast_shapes(*(a.shape for a in arrays))
    if shape is None:
        raise IndexRangeError(
            f"index: got index arrays of shapes {', '.join(str(a.shape) for a in arrays)}; "
            f"wanted shapes "
            f"that broadcast"
        )
    at = linear_index(arrays, tuple([plan.middle[a] for a in plan.axes]))
    return at if at.shape == shape else broadcast_to(at, shape)


@op(name="getitem")
def getitem_by(tensors: Sequence[Tensor], index: Items):
    """Composite op of `x[index]`: tensors[0] is x, the other tensors are the index arrays.

    `index` has a marker for each index array (see `index_plan.plan_of`).
    """
    x, *arrays = tensors
    plan = plan_of(x.shape, index)
    out = _sliced(x, plan)
    if not arrays:
        return identity(out) if out is x else out
    return gather(_merged(out, plan), _positions(arrays, plan), plan.position)


@op(name="setitem")
def setitem_by(tensors: Sequence[Tensor], index: Items, add: bool):
    """Composite op of `x[index] = value`, which returns a changed copy of x.

    tensors[0] is x, tensors[1] the value, and the others are the index arrays. With `add`, the
    value is added instead, once for every occurrence of an element in the index.
    """
    x, value, *arrays = tensors
    plan = plan_of(x.shape, index)
    if value.dtype is not x.dtype:
        if value.dtype.is_complex:
            raise DTypeError(
                f"setitem: got a {value.dtype.name} value for a {x.dtype.name} tensor; wanted "
                f"a real one"
            )
        value = cast_to(value, x.dtype)
    part = slice_shape(plan.begin, plan.end, plan.strides)
    if arrays:
        inside = _sliced(x, plan)
        merged = _merged(inside, plan)
        at = _positions(arrays, plan)
        new = _fitted(value, gathered_shape(merged.shape, at.shape, plan.position))
        out = (scatter_add_by if add else scatter_set_by)(merged, at, new, plan.position)
        order = _order(plan)
        out = reshape_to(out, [plan.middle[a] for a in order])
        if order != tuple(range(len(order))):
            out = transpose_by(out, tuple(sorted(range(len(order)), key=lambda i: order[i])))
        new = out if out.shape == part else reshape_to(out, part)
    else:
        new = _fitted(value, plan.middle)
        new = elementwise.add(_sliced(x, plan), new) if add else new
        new = new if new.shape == part else reshape_to(new, part)
    if plan.whole(x.shape):
        return identity(new) if new is value else new
    return update_by(x, new, plan.begin, plan.end, plan.strides)


def _fitted(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Broadcast the value of ``x[index] = value`` to `shape`, the shape of the indexed part.

    Extra leading axes of size 1 are dropped first.
    """
    have = value.shape
    while len(have) > len(shape) and have[0] == 1:
        have = have[1:]
    if broadcast_shapes(have, shape) != shape:
        raise ShapeError(
            f"setitem: got a value of shape {value.shape} for a part of shape {shape}; "
            "wanted a shape that broadcasts to it"
        )
    value = value if have == value.shape else reshape_to(value, have)
    return value if have == shape else broadcast_to(value, shape)


# ---- parsing of indices -------------------------------------------------------------------------


def _simple(item: Any) -> object:
    """Convert one item of an index to a hashable: int, None, Ellipsis, or a slice's three numbers.

    Returns NotImplemented for any other item, such as an array.
    """
    kind = item.__class__
    if kind is int or item is None or item is Ellipsis:
        return item
    if kind is slice:
        start, stop, step = item.start, item.stop, item.step
        if (
            (start is None or start.__class__ is int)
            and (stop is None or stop.__class__ is int)
            and (step is None or step.__class__ is int)
        ):
            return (start, stop, step)
    return NotImplemented


def _key(index: object) -> Items | None:
    """Convert an index to a hashable tuple, the key of the table of prepared calls.

    Returns None if an item is not an int, slice, None or Ellipsis.
    """
    if index.__class__ is int:
        return (index,)
    if index.__class__ is not tuple:
        found = _simple(index)
        return None if found is NotImplemented else (found,)
    items = tuple([_simple(i) for i in index])
    return None if NotImplemented in items else items


def _bound(value: SupportsIndex | None) -> int | None:
    if value is None:
        return None
    try:
        return size_like(value)
    except TypeError:
        raise IndexKindError(
            f"index: got {value!r} as a bound of a slice; wanted an int or None"
        ) from None


def _parse(index: object) -> tuple[list[object], list[Tensor | Array]]:
    """Split an index into its items, and convert each to the form that the op takes.

    Returns (all items, those of them that are Tensors or NumPy arrays). Lists become arrays.

    Raises:
        IndexKindError: an item cannot be an index.
    """
    items: list[object] = []
    for item in index if isinstance(index, tuple) else (index,):
        found = _simple(item)
        if found is not NotImplemented:
            items.append(found)
        elif isinstance(item, (bool, np.bool_)):
            items.append(np.array(bool(item)))
        elif isinstance(item, np.integer):
            items.append(int(item))
        elif isinstance(item, slice):
            items.append((_bound(item.start), _bound(item.stop), _bound(item.step)))
        elif isinstance(item, Tensor):
            items.append(item)
        elif isinstance(item, (np.ndarray, list, tuple, range)):
            items.append(_host_index(item))
        else:
            hint = "; `//` divides to an int" if isinstance(item, float) else ""
            raise IndexKindError(
                f"index: got {item!r}; wanted an int, slice, None, Ellipsis, bool, or an integer "
                f"or bool Tensor, array or list{hint}"
            )
    return items, [i for i in items if isinstance(i, (Tensor, np.ndarray))]


def _host_index(item: object) -> Array:
    if isinstance(item, (list, tuple)):
        item = _values(item)
    array = np.asarray(item)
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise IndexKindError(f"index: got an array of {array.dtype}; wanted integers or bools")
    return array


def _values(item: object) -> object:
    if isinstance(item, (list, tuple)):
        return [_values(i) for i in item]
    if isinstance(item, Tensor):
        return item.asnumpy()
    if isinstance(item, slice) or item is None or item is Ellipsis:
        raise IndexKindError(f"index: got {item!r} inside a list; wanted a tuple around it")
    return item


def _arrays(shape: Sequence[int], items: Sequence[object]) -> tuple[Items, list[Tensor | Array]]:
    """Separate the items of a parsed index into a hashable part and index arrays.

    Returns (items, arrays). In `items`, a marker stands for each array: NEW_ARRAY for that of a 0-d
    bool mask, ARRAY for any other. Bool masks are converted to arrays of integers. `shape` is the
    shape of the indexed tensor.
    """
    used = sum(_axes_of(i) for i in items)
    axis = 0
    index: list[object] = []
    arrays: list[Tensor | Array] = []
    for item in items:
        if item is Ellipsis:
            axis += max(len(shape) - used, 0)
            index.append(item)
        elif not isinstance(item, (Tensor, np.ndarray)):
            axis += item is not None
            index.append(item)
        elif _is_mask(item):
            found = _mask_arrays(item, shape[axis : axis + len(item.shape)], axis)
            arrays += found
            index += [ARRAY] * len(found) if item.shape else [NEW_ARRAY]
            axis += len(item.shape)
        else:
            arrays.append(_index_array(item, shape, axis))
            index.append(ARRAY)
            axis += 1
    return tuple(index), arrays


def _axes_of(item: object) -> int:
    if isinstance(item, (Tensor, np.ndarray)):
        return len(item.shape) if _is_mask(item) else 1
    return axes_consumed(item)


def _is_mask(item: Tensor | Array) -> bool:
    if isinstance(item, Tensor):
        return item.dtype is bool_
    return item.dtype.kind == "b"


def _index_array(item: Tensor | Array, shape: Sequence[int], axis: int) -> Tensor | Array:
    if isinstance(item, Tensor):
        if not item.dtype.is_integer:
            raise IndexKindError(
                f"index: got a Tensor of dtype {item.dtype.name}; wanted integers or bools"
            )
        return as_index(item)
    at = item.astype(np.int64)
    return normal_indices("index", at, shape[axis], axis) if axis < len(shape) else at


def _mask_arrays(mask: Tensor | Array, shape: Sequence[int], axis: int) -> Sequence[Tensor | Array]:
    """Convert a bool mask to one array of integer indices per axis of the mask.

    A 0-d mask becomes one array of 1 (True) or 0 (False) zeros, for a new axis of size 1.

    Args:
        shape: the sizes of the axes that the mask selects from; the mask must have this shape.
        axis: the first of these axes, for messages.
    """
    if not mask.shape:
        value = mask if isinstance(mask, np.ndarray) else mask.asnumpy()
        return [np.zeros(1 if value else 0, np.int64)]
    if tuple(mask.shape) != tuple(shape):
        one = len(shape) == 1
        place = f"axis {axis}" if one else f"the axes {axis} to {axis + len(shape) - 1}"
        raise IndexRangeError(
            f"index: got a mask of shape {tuple(mask.shape)} for {place} of size"
            f"{'' if one else 's'} {shape[0] if one else tuple(shape)}; wanted a mask of shape "
            f"{tuple(shape)}"
        )
    if isinstance(mask, np.ndarray):
        return [a.astype(np.int64) for a in np.nonzero(mask)]
    rows = nonzero_by(mask)
    if len(mask.shape) == 1:
        return [reshape_to(rows, (rows.size,))]
    return [reshape_to(c, (rows.shape[0],)) for c in _columns(rows)]


def _columns(rows: Tensor) -> list[Tensor]:
    """Split a matrix (n, k) into its k columns, each a matrix (n, 1)."""
    return [slice_by(rows, (0, k), (rows.shape[0], k + 1), (1, 1)) for k in range(rows.shape[1])]


def _explain(shape: Sequence[int], index: Items, arrays: Sequence[Tensor | Array]) -> None:
    """Raise IndexRangeError about the index array that has a value out of range.

    It is called after a kernel reported such a value. The error names the value, the axis and its
    size. `shape` is the shape of the indexed tensor, `index` has a marker for each array.
    """
    axis, k = 0, 0
    used = sum(axes_consumed(i) for i in index)
    for item in index:
        if item is Ellipsis:
            axis += len(shape) - used
        elif item in (ARRAY, NEW_ARRAY):
            if item == ARRAY:
                array = arrays[k]
                values = array.asnumpy() if isinstance(array, Tensor) else array
                normal_indices("index", values, shape[axis], axis)
                axis += 1
            k += 1
        else:
            axis += item is not None


_table = getitem_by.table
_set_table = setitem_by.table
_ONE_ARRAY = (ARRAY,)
# Once more indices than this are prepared, the next int is read by gather, which is prepared once
# for all ints. A loop over the rows of a long tensor needs it.
MANY = 256


def _runs_now(x: Tensor) -> bool:
    return x._type.device is not None and thread_state.builder is None


@tensor_method("__getitem__")
def _getitem(self: Tensor, index: object) -> Tensor:
    """Implement `x[index]` by NumPy's rules; the result is a copy, never a view."""
    type_ = self._type
    key = _key(index)
    if runtime_state.staging:
        return _read(self, index, key)
    if key is not None:
        call = _table.get((type_, key))
        if call is not None:
            return call(self)
        if index.__class__ is int and len(_table) > MANY and _runs_now(self):
            plan_of(type_.shape[:1], key)
            return gather(self, Tensor(index), 0)
        return getitem_by((self,), key)
    if index.__class__ is Tensor:
        call = _table.get((type_, index._type, _ONE_ARRAY))
        if call is not None:
            try:
                return call(self, index)
            except IndexError:
                _explain(type_.shape, _ONE_ARRAY, [index])
                raise
    return _read(self, index, None)


def _read(self: Tensor, index: object, key: Items | None) -> Tensor:
    """Compute `x[index]` through the op `getitem`.

    `_getitem` calls it for indices without a prepared call. `key` is the hashable form of the
    index, or None if the index has arrays.
    """
    if key is not None:
        return getitem_by((self,), key)
    items, _ = _parse(index)
    key, arrays = _arrays(self.shape, items)
    try:
        return getitem_by((self, *arrays), key)
    except IndexError:
        if not any(isinstance(a, GraphTensor) for a in (self, *arrays)):
            _explain(self.shape, key, arrays)
        raise


@tensor_method("__setitem__")
def _setitem(self: Tensor, index: object, value: object) -> None:
    """Implement `x[index] = value` by NumPy's rules; bind the tensor to a new buffer."""
    key = _key(index)
    if key is not None and not runtime_state.staging:
        known: Tensor | None
        kind = value.__class__
        known = None
        if isinstance(value, Tensor) and kind is Tensor:
            known = value
        elif kind is float or kind is int or kind is bool:  # cached once this type was used
            known = numbers.get((self._type, kind, value))
        if known is not None:
            call = _set_table.get((self._type, known._type, key, False))
            if call is not None:
                self._rebind(call(self, known))
                return
    self._rebind(with_item(self, index, value))


def with_item(self: Tensor, index: object, value: object, add: bool = False) -> Tensor:
    """Return a copy of a tensor after `x[index] = value` or, with `add`, `x[index] += value`.

    With `add`, an element that occurs several times in the index gets each of its values.
    """
    if not isinstance(value, (Tensor, int, float, complex, np.generic)):
        if value is None or isinstance(value, (str, bytes, dict, set)):
            raise DTypeError(
                f"setitem: got {value!r} for a value; wanted a number, Tensor, array or list"
            )
        value = Tensor(value)
    if isinstance(value, (complex, np.complexfloating)) and not self.dtype.is_complex:
        raise DTypeError(
            f"setitem: got a complex number for a {self.dtype.name} tensor; wanted a real one"
        )
    key = _key(index)
    if key is not None:
        return setitem_by((self, value), key, add)
    items, tensors = _parse(index)
    if not add and len(tensors) == 1 and isinstance(tensors[0], Tensor) and _is_mask(tensors[0]):
        found = _masked(self, items, tensors[0], value)
        if found is not None:
            return found
    key, arrays = _arrays(self.shape, items)
    try:
        return setitem_by((self, value, *arrays), key, add)
    except IndexError:
        if not any(isinstance(a, GraphTensor) for a in (self, *arrays)):
            _explain(self.shape, key, arrays)
        raise


@op(name="setitem_masked")
def masked_by(tensors: Sequence[Tensor]):
    """Composite op of `x[mask] = value`: tensors are x, mask and value; returns a changed copy.

    The mask has the leading axes of x, and broadcasts along the others.
    """
    x, mask, value = tensors
    rest = len(x.shape) - len(mask.shape)
    value = value if value.dtype is x.dtype else cast_to(value, x.dtype)
    return select_by(reshape_to(mask, (*mask.shape, *[1] * rest)), value, x)


def _masked(x: Tensor, items: Sequence[object], mask: Tensor, value: object) -> Tensor | None:
    """Compute the result of `x[mask] = value` as an elementwise select, or return None.

    The result is None, and the caller must take another way, unless the index `items` consists of
    the mask alone and the value broadcasts to the axes of `x` that the mask does not have. It is
    None for a complex value and a real `x`, too.
    """
    plain = items[0] is mask and all(i is Ellipsis or i == (None, None, None) for i in items[1:])
    if not plain or not mask.shape or mask.shape != x.shape[: len(mask.shape)]:
        return None
    if isinstance(value, Tensor):
        if len(value.shape) > len(x.shape) - len(mask.shape):
            return None
        if value.dtype.is_complex and not x.dtype.is_complex:
            return None
        if broadcast_shapes(value.shape, x.shape) != x.shape:
            return None
    elif isinstance(value, (complex, np.complexfloating)):
        return None
    return masked_by((x, mask, value))


@tensor_method("__delitem__")
def _delitem(self: Tensor, index: object) -> None:
    """Raise ArgumentError: elements of a tensor cannot be deleted."""
    raise ArgumentError(
        f"del: got {index!r}; elements of a tensor cannot be deleted, index those to keep instead"
    )


@tensor_method("__contains__")
def _contains(self: Tensor, value: object) -> bool:
    """Implement `value in x`: return whether some element equals the value."""
    return bool(equal(self, value).asnumpy().any())


@tensor_method("itemset")
def _itemset(self: Tensor, *args: object) -> Tensor:
    """Return a copy with one element replaced.

    Call forms: ``itemset(value)`` for a tensor with one element, or ``itemset(index, value)`` with
    an int into the flattened tensor or a tuple of ints.
    """
    if len(args) not in (1, 2):
        raise IndexKindError(
            f"itemset: got {len(args)} arguments; wanted value, or index and value"
        )
    flat = reshape_to(self, (self.size,))
    if len(args) == 1:
        if self.size != 1:
            raise ShapeError(f"itemset: got shape {self.shape} and no index; wanted one element")
        return reshape_to(with_item(flat, 0, args[0]), self.shape)
    index, value = args
    if isinstance(index, tuple):
        return with_item(self, index, value)
    return reshape_to(with_item(flat, index, value), self.shape)


@tensor_method("select")
def _tensor_select(
    self: Tensor,
    *args: Any,
    dim: int | None = None,
    index: object = None,
    condition: Tensor | None = None,
    y: object = None,
) -> Tensor:
    """Select one slice by ``x.select(dim, index)``, or elements by ``x.select(condition, y)``.

    The first form drops the axis; see `ops.where` for the second.
    """
    given = list(args)
    if condition is not None or (
        given and isinstance(given[0], Tensor) and given[0].dtype is bool_
    ):
        found = condition if condition is not None else given.pop(0)
        return select_by(found, self, given[0] if given else y)
    axis = dim if dim is not None else given.pop(0)
    at = index if index is not None else given.pop(0)
    axis = axis + len(self.shape) if axis < 0 else axis
    return _getitem(self, (*[slice(None)] * axis, at))
