"""Set functions of `duograph.numpy`: unique elements, intersections and differences.

Users call them as `duograph.numpy.NAME`. The sizes of the results depend on the values of the
operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import ops as _ops
from ..dtype import int32
from ..tensor import Tensor
from .logic import isin
from .operands import TensorLike, pair, tensor_of

__all__ = ["intersect1d", "setdiff1d", "unique"]


if TYPE_CHECKING:

    @overload
    def unique(x: TensorLike, return_inverse: Literal[False] = False) -> Tensor: ...

    @overload
    def unique(x: TensorLike, return_inverse: Literal[True]) -> tuple[Tensor, Tensor]: ...


def unique(x: TensorLike, return_inverse: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """Return the distinct elements in rising order.

    Args:
        x: array-like, which is flattened.
        return_inverse: whether to return for each element its index in the result as well.

    Returns:
        Tensor of one axis; with `return_inverse` a pair of it and an int32 Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> values, index = mnp.unique([3, 1, 3], return_inverse=True)
        >>> print(values, index)
        [1 3] [1 0 1]
    """
    flat = tensor_of(x).reshape(-1)
    if not flat.size:
        return (flat, _ops.zeros((0,), dtype=int32)) if return_inverse else flat
    values = _ops.unique_consecutive(_ops.sort(flat)[0])
    assert isinstance(values, Tensor)
    if not return_inverse:
        return values
    return values, _ops.searchsorted(values, flat).astype(int32)


def setdiff1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> Tensor:
    """Return the elements of one operand that are not in the other.

    Args:
        ar1: array-like, which is flattened.
        ar2: array-like, which is flattened.
        assume_unique: whether the elements are distinct already; then their order stays.

    Returns:
        Tensor of one axis; distinct elements in rising order unless `assume_unique` is set.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.setdiff1d([3, 1, 2, 1], [2]))
        [1 3]
    """
    flat = tensor_of(ar1).reshape(-1)
    values = flat if assume_unique else unique(flat)
    kept: Tensor = values[isin(values, ar2, invert=True)]
    return kept


def intersect1d(
    ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the distinct elements that are in both operands, in rising order.

    Args:
        ar1: array-like, which is flattened.
        ar2: array-like, which is flattened.
        assume_unique: whether the elements of each operand are distinct already.
        return_indices: whether to return their first indices in both operands as well.

    Returns:
        Tensor of one axis; with `return_indices` a tuple of it and two int32 Tensors.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.intersect1d([1, 3, 4, 3], [3, 1, 2, 1]))
        [1 3]
    """
    x, y = pair("intersect1d", ar1, ar2)
    x, y = x.reshape(-1), y.reshape(-1)
    values = _ops.sort(x)[0] if assume_unique and x.size else unique(x)
    common: Tensor = values[isin(values, y)]
    if not return_indices:
        return common
    return common, _first_places(common, x), _first_places(common, y)


def _first_places(values: Tensor, among: Tensor) -> Tensor:
    """Return, for each element of `values`, the index of its first occurrence in `among`.

    The index is 0 for an element that does not occur. Both tensors are 1-d.
    """
    if not among.size:
        return _ops.zeros(values.shape, dtype=int32)
    same = _ops.equal(_ops.expand_dims(values, 1), among)
    return same.astype(int32).argmax(1).astype(int32)
