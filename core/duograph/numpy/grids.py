"""Functions of `duograph.numpy` that make indices, coordinates of grids, and windows.

Users call them as `duograph.numpy.NAME`. The results depend on sizes and host numbers alone, except
those of `meshgrid` and `ix_`, which reshape their operands.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as _np

from .. import ops as _ops
from ..dtype import DTypeLike, as_dtype, float32, int32
from ..errors import ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .creation import arange, linspace
from .operands import TensorLike, promoted, tensor_of

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = [
    "bartlett", "blackman", "diag_indices", "hamming", "hanning", "indices", "ix_", "meshgrid",
    "mgrid", "ogrid", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
]  # fmt: skip


def _pair_of(positions: tuple[object, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(p, int32) for p in positions)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Return the indices of the lower triangle of a matrix.

    Args:
        n: number of rows.
        k: number of the diagonal that bounds the triangle; 0 is the main one, positive numbers are
            above it.
        m: number of columns; None is `n`.

    Returns:
        Two int32 Tensors: rows and columns.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.tril_indices(2)
        >>> print(rows, columns)
        [0 1 1] [0 0 1]
    """
    return _pair_of(_np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Return the indices of the upper triangle of a matrix.

    Args:
        n: number of rows.
        k: number of the diagonal that bounds the triangle; 0 is the main one, positive numbers are
            above it.
        m: number of columns; None is `n`.

    Returns:
        Two int32 Tensors: rows and columns.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.triu_indices(2)
        >>> print(rows, columns)
        [0 0 1] [0 1 1]
    """
    return _pair_of(_np.triu_indices(n, k, m))


def _matrix_sizes(name: str, arr: TensorLike) -> tuple[int, ...]:
    shape = tensor_of(arr).shape
    if len(shape) != 2:
        raise ArgumentValueError(f"{name}: got shape {shape}; wanted two axes")
    return shape


def tril_indices_from(arr: TensorLike, k: int = 0) -> tuple[Tensor, ...]:
    """Return the indices of the lower triangle of a matrix like `arr`.

    Args:
        arr: array-like of two axes.
        k: number of the diagonal that bounds the triangle; 0 is the main one, positive numbers are
            above it.

    Returns:
        Two int32 Tensors: rows and columns.

    Raises:
        ValueError: `arr` has another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.tril_indices_from(mnp.ones((2, 2)))
        >>> print(rows, columns)
        [0 1 1] [0 0 1]
    """
    rows, columns = _matrix_sizes("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: TensorLike, k: int = 0) -> tuple[Tensor, ...]:
    """Return the indices of the upper triangle of a matrix like `arr`.

    Args:
        arr: array-like of two axes.
        k: number of the diagonal that bounds the triangle; 0 is the main one, positive numbers are
            above it.

    Returns:
        Two int32 Tensors: rows and columns.

    Raises:
        ValueError: `arr` has another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.triu_indices_from(mnp.ones((2, 2)))
        >>> print(rows, columns)
        [0 0 1] [0 1 1]
    """
    rows, columns = _matrix_sizes("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Return the indices of the main diagonal of a tensor of `ndim` axes of size `n`.

    Args:
        n: size of each axis.
        ndim: number of axes.

    Returns:
        `ndim` int32 Tensors.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.diag_indices(3)
        >>> print(rows, columns)
        [0 1 2] [0 1 2]
    """
    return tuple(arange(n) for _ in builtins.range(ndim))


def indices(
    dimensions: Sequence[int], dtype: DTypeLike = int32, sparse: bool = False
) -> list[Tensor]:
    """Return the index along each axis of every element of a tensor.

    Args:
        dimensions: shape of the tensor.
        dtype: element type.
        sparse: whether each result has size 1 along the other axes.

    Returns:
        List of Tensors, one for each axis.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.indices((2, 2), sparse=True)
        >>> print(rows.shape, columns.shape)
        (2, 1) (1, 2)
    """
    axes = [_ops.arange(0, n, 1, dtype=as_dtype(dtype)) for n in shape_tuple(dimensions)]
    return list(meshgrid(*axes, sparse=sparse, indexing="ij")) if axes else []


def meshgrid(*xi: TensorLike, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return the coordinate tensors of a grid.

    Args:
        xi: array-likes of at most one axis, the coordinates along each axis.
        sparse: whether each result has size 1 along the other axes.
        indexing: ``"xy"`` exchanges the first two axes of the results, ``"ij"`` does not.

    Returns:
        Tuple of Tensors, one for each operand.

    Raises:
        ValueError: another `indexing`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> x, y = mnp.meshgrid([1, 2], [3, 4, 5], sparse=True)
        >>> print(x.shape, y.shape)
        (1, 2) (3, 1)
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentValueError(f"meshgrid: got indexing={indexing!r}; wanted 'xy' or 'ij'")
    flat = [tensor_of(x).reshape(-1) for x in xi]
    axes = list(builtins.range(len(flat)))
    if indexing == "xy":
        axes[:2] = reversed(axes[:2])
    made = [
        x.reshape(tuple(-1 if k == axis else 1 for k in builtins.range(len(flat))))
        for x, axis in zip(flat, axes, strict=True)
    ]
    if sparse:
        return tuple(made)
    shape = [0] * len(flat)
    for x, axis in zip(flat, axes, strict=True):
        shape[axis] = x.size
    return tuple(_ops.broadcast_to(x, tuple(shape)) for x in made)


def ix_(*args: TensorLike) -> tuple[Tensor, ...]:
    """Return index tensors that select the product of several sequences of indices.

    Args:
        args: array-likes of one axis.

    Returns:
        Tuple of Tensors, one for each operand; each has size 1 along the axes of the others.

    Raises:
        ValueError: an operand has another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> rows, columns = mnp.ix_([0, 1], [2, 4])
        >>> print(rows.shape, columns.shape)
        (2, 1) (1, 2)
    """
    flat = [tensor_of(a) for a in args]
    for x in flat:
        if x.ndim != 1:
            raise ArgumentValueError(f"ix_: got shape {x.shape}; wanted one axis")
    return meshgrid(*flat, sparse=True, indexing="ij")


class _Grid:
    """Class of `mgrid` and `ogrid`: indexing an instance by slices returns a coordinate grid.

    Example: ``mgrid[0:3, 0:1:5j]``. With `sparse` (`ogrid`), the grid is a list with one tensor per
    slice, whose size is 1 along all axes but one, so that the tensors broadcast.
    """

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, keys: slice | tuple[slice, ...]) -> Any:
        if isinstance(keys, slice):
            return _range_of(keys)
        axes = promoted([_range_of(k) for k in keys])
        made = meshgrid(*axes, sparse=self._sparse, indexing="ij")
        return list(made) if self._sparse else _ops.stack(list(made))


def _range_of(key: slice) -> Tensor:
    """Return the numbers start, start + step, ... of a slice as a Tensor.

    An imaginary step such as 5j is a number of samples, the end included.
    """
    start = 0 if key.start is None else key.start
    if isinstance(key.step, complex):
        made: Tensor = linspace(start, key.stop, int(builtins.abs(key.step)))
        return made
    return arange(start, key.stop, key.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


# ---- windows ------------------------------------------------------------------------------------


def _window(name: str, values: Callable[[int], Array], example: str) -> Callable[[int], Tensor]:
    """Create the function `name`, such as `hanning`, that returns a window of M samples.

    `values` computes the window; `example` is the output shown in the docstring of the function.
    """

    def call(M: int) -> Tensor:
        if isinstance(M, bool) or not isinstance(M, int):
            raise ArgumentValueError(f"{name}: got M={M!r}; wanted an int")
        return Tensor(values(M), float32)

    title = name.capitalize()
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Return the {title} window, which tapers a signal of M samples at both ends.

    Args:
        M: number of samples; for less than 1 the window is empty.

    Returns:
        float32 Tensor of shape (M,).

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.{name}(5)[1:4])
        {example}
    """
    return call


bartlett = _window("bartlett", _np.bartlett, "[0.5 1.  0.5]")
blackman = _window("blackman", _np.blackman, "[0.34 1.   0.34]")
hamming = _window("hamming", _np.hamming, "[0.54 1.   0.54]")
hanning = _window("hanning", _np.hanning, "[0.5 1.  0.5]")
