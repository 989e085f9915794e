"""NumPy's functions on Tensors, with NumPy's signatures (`mindspore.numpy`).

User code imports it. Every function converts its arguments and calls `ops`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeAlias

import numpy as _np
from numpy.typing import ArrayLike

from . import dtype as _dtype
from . import ops as _ops
from .dtype import (
    DType,
    DTypeLike,
    bool_,
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
from .errors import ArgumentError, ArgumentValueError
from .ops.refusals import refusing as _refusing
from .tensor import Tensor

__all__ = [
    "array",
    "asarray",
    "zeros",
    "ones",
    "full",
    "empty",
    "zeros_like",
    "ones_like",
    "full_like",
    "arange",
    "linspace",
    "eye",
    "identity",
    "meshgrid",
    "where",
    "concatenate",
    "stack",
    "hstack",
    "vstack",
    "tile",
    "repeat",
    "reshape",
    "transpose",
    "expand_dims",
    "squeeze",
    "ravel",
    "split",
    "broadcast_to",
    "pad",
    "clip",
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "amax",
    "amin",
    "std",
    "var",
    "argmax",
    "argmin",
    "any",
    "all",
    "cumsum",
    "sqrt",
    "square",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "abs",
    "absolute",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "arctan",
    "floor",
    "ceil",
    "sign",
    "maximum",
    "minimum",
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "matmul",
    "dot",
    "tensordot",
    "outer",
    "isnan",
    "isinf",
    "isfinite",
    "logical_and",
    "logical_or",
    "logical_not",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "flip",
    "roll",
    "swapaxes",
    "moveaxis",
    "triu",
    "tril",
    "diag",
    "pi",
    "inf",
    "nan",
    "newaxis",
    "bool_",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

TensorLike: TypeAlias = "Tensor | ArrayLike"
Ints: TypeAlias = "int | Sequence[int]"

pi, inf, nan, newaxis = math.pi, math.inf, math.nan, None


def _as(dtype: DTypeLike | None) -> DType | None:
    return None if dtype is None else _dtype.as_dtype(dtype)


def _tensor(x: TensorLike) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


def array(
    obj: TensorLike, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0
) -> Tensor:
    """A Tensor of numbers, lists, arrays or Tensors.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.array([1, 2], ndmin=2))
        [[1 2]]
    """
    if isinstance(obj, Tensor) and not copy and dtype is None and obj.ndim >= ndmin:
        return obj
    made = Tensor(obj, _as(dtype))
    if made.ndim < ndmin:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made


def asarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return an array-like as a Tensor; a Tensor of the wanted dtype is returned unchanged."""
    return array(a, dtype, copy=False)


def zeros(shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return a tensor of zeros with the given shape and dtype."""
    return _ops.zeros(shape, _as(dtype))


def ones(shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return a tensor of ones with the given shape and dtype."""
    return _ops.ones(shape, _as(dtype))


def full(shape: Ints, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor with every element `fill_value`."""
    return _ops.full(shape, fill_value, dtype=_as(dtype))


def empty(shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return a tensor of the given shape; its elements are zeros."""
    return zeros(shape, dtype)


def zeros_like(a: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None) -> Tensor:
    """Return zeros with the shape and dtype of `a`, unless overridden."""
    a = _tensor(a)
    return zeros(a.shape if shape is None else shape, dtype or a.dtype)


def ones_like(a: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None) -> Tensor:
    """Return ones with the shape and dtype of `a`, unless overridden."""
    a = _tensor(a)
    return ones(a.shape if shape is None else shape, dtype or a.dtype)


def full_like(
    a: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None
) -> Tensor:
    """Return a tensor with every element `fill_value` and the shape and dtype of `a`."""
    a = _tensor(a)
    return full(a.shape if shape is None else shape, fill_value, dtype or a.dtype)


def arange(
    start: float,
    stop: float | None = None,
    step: float | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return evenly spaced numbers from `start` up to, but not including, `stop`."""
    if stop is None:
        start, stop = 0, start
    return _ops.arange(start, stop, 1 if step is None else step, dtype=_as(dtype))


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """`num` evenly spaced numbers; with `retstep`, also the spacing.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.linspace(0, 1, 5))
        [0.   0.25 0.5  0.75 1.  ]
    """
    begin: Any = start.asnumpy() if isinstance(start, Tensor) else start
    end: Any = stop.asnumpy() if isinstance(stop, Tensor) else stop
    values, step = _np.linspace(begin, end, num, endpoint=endpoint, retstep=True, axis=axis)
    made = Tensor(values, _as(dtype) or float32)
    return (made, step) if retstep else made


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:
    """Return an N by M matrix with ones on the k-th diagonal and zeros elsewhere."""
    return Tensor(_np.eye(N, M, k), _as(dtype))


def identity(n: int, dtype: DTypeLike = float32) -> Tensor:
    """Return the n by n identity matrix."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: TensorLike, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return the coordinate tensors of a grid; with `sparse`, of size 1 along the other axes."""
    dense = _ops.meshgrid(*[_tensor(x) for x in xi], indexing=indexing)
    if not sparse:
        return tuple(dense)
    axes = list(builtins.range(len(dense)))
    if indexing == "xy":
        axes[:2] = reversed(axes[:2])
    return tuple(
        x.reshape(tuple(-1 if k == axis else 1 for k in builtins.range(len(dense))))
        for x, axis in zip([_tensor(x) for x in xi], axes, strict=True)
    )


def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None) -> Any:
    """Return `x` where a condition holds, else `y`; without both, the indices of true elements."""
    condition = _tensor(condition)
    if x is None or y is None:
        if x is not y:
            raise ArgumentValueError("where: got one of x and y; wanted both or none")
        return tuple(_ops.nonzero(condition, as_tuple=True))
    return _ops.where(condition, x, y)


def concatenate(arrays: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """Concatenate tensors along an axis; None flattens them first."""
    tensors = [_tensor(a) for a in arrays]
    if axis is None:
        return _ops.concat([t.reshape(-1) for t in tensors], 0)
    return _ops.concat(tensors, axis)


def stack(arrays: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Stack tensors of equal shape along a new axis."""
    return _ops.stack([_tensor(a) for a in arrays], axis)


def hstack(tup: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along axis 1, or along axis 0 if the tensors have one axis."""
    return _ops.hstack([_tensor(a) for a in tup])


def vstack(tup: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along axis 0; a tensor of one axis counts as one row."""
    return _ops.vstack([_tensor(a) for a in tup])


def tile(a: TensorLike, reps: Ints) -> Tensor:
    """Repeat a tensor as a whole along each axis."""
    return _ops.tile(_tensor(a), (reps,) if isinstance(reps, int) else tuple(reps))


def repeat(a: TensorLike, repeats: Ints, axis: int | None = None) -> Tensor:
    """Repeat each element of a tensor along an axis."""
    return _ops.repeat_interleave(_tensor(a), repeats, axis)


def reshape(x: TensorLike, new_shape: Ints) -> Tensor:
    """Change the shape of a tensor without changing the elements."""
    return _ops.reshape(_tensor(x), new_shape)


def transpose(a: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the axes of a tensor; None reverses the axes."""
    a = _tensor(a)
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(axes)
    return _ops.transpose(a, order)


def expand_dims(a: TensorLike, axis: int) -> Tensor:
    """Insert an axis of length 1 into a tensor's shape."""
    return _ops.expand_dims(_tensor(a), axis)


def squeeze(a: TensorLike, axis: Ints | None = None) -> Tensor:
    """Remove all axes of length 1 from a tensor, or only those given."""
    return _ops.squeeze(_tensor(a), axis)


def ravel(x: TensorLike) -> Tensor:
    """Flatten a tensor to one axis."""
    return _tensor(x).reshape(-1)


def split(x: TensorLike, indices_or_sections: Ints, axis: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into equal parts, or at indices.

    Raises:
        ValueError: the axis is not divisible by the number of parts.
    """
    x = _tensor(x)
    if isinstance(indices_or_sections, int):
        length = x.shape[axis]
        if indices_or_sections < 1 or length % indices_or_sections:
            raise ArgumentValueError(
                f"split: got {indices_or_sections} sections of an axis of {length}; "
                f"wanted a number that divides it"
            )
    return tuple(_ops.tensor_split(x, indices_or_sections, axis))


def broadcast_to(array: TensorLike, shape: Sequence[int]) -> Tensor:
    """Broadcast a tensor to a shape."""
    return _ops.broadcast_to(_tensor(array), tuple(shape))


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def pad(
    arr: TensorLike, pad_width: ArrayLike, mode: str = "constant", constant_values: float = 0
) -> Tensor:
    """Pad a tensor.

    Args:
        arr: Tensor.
        pad_width: an int, a pair, or a pair for each axis.
        mode: ``"constant"``, ``"reflect"``, ``"edge"`` or ``"wrap"``.
        constant_values: the value of ``"constant"``.

    Raises:
        ValueError: another mode.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.pad(mnp.array([1, 2]), 1))
        [0 1 2 0]
    """
    x = _tensor(arr)
    if mode not in _PAD_MODES:
        raise ArgumentValueError(f"pad: got mode={mode!r}; wanted one of {', '.join(_PAD_MODES)}")
    widths = _np.broadcast_to(_np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        flat = [int(n) for pair in reversed(widths) for n in pair]
        return _ops.pad(x, tuple(flat), "constant", constant_values)
    kinds = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    for axis, (low, high) in enumerate(widths):
        if low or high:  # gathering rows works for any mode and number of axes
            rows = _np.pad(_np.arange(x.shape[axis]), (low, high), kinds[mode])  # type: ignore[call-overload]
            x = _ops.gather(x, Tensor(rows), axis)
    return x


def clip(
    x: TensorLike, xmin: TensorLike, xmax: TensorLike, dtype: DTypeLike | None = None
) -> Tensor:
    """Clamp the values of a tensor to [xmin, xmax]."""
    out = _ops.clamp(_tensor(x), xmin, xmax)
    return out if dtype is None else out.astype(_as(dtype))


def _reduction(name: str) -> Callable[..., Tensor]:
    """Return a NumPy-style function that calls a reduction of `duograph.ops`."""
    function = getattr(_ops, name)

    def reduce(
        a: TensorLike, axis: Ints | None = None, keepdims: bool = False, **kwargs: Any
    ) -> Tensor:
        return function(_tensor(a), axis, keepdims, **kwargs)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"`ops.{name}` over `axis` (all axes for None)."
    return reduce


def sum(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Return the sum of a tensor over `axis`, or over all axes for None."""
    out = _ops.sum(_tensor(a), axis, keepdims, dtype=_as(dtype))
    return out if initial is None else out + initial


def mean(
    a: TensorLike, axis: Ints | None = None, keepdims: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the mean of a tensor over `axis`, or over all axes for None.

    Integers are converted to float32.
    """
    a = _tensor(a)
    if a.dtype.kind in "biu":
        a = a.astype(float32)
    out = _ops.mean(a, axis, keepdims)
    return out if dtype is None else out.astype(_as(dtype))


prod, amax, amin = _reduction("prod"), _reduction("amax"), _reduction("amin")
max, min = amax, amin
any, all = _reduction("any"), _reduction("all")


def std(a: TensorLike, axis: Ints | None = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation of a tensor over `axis`, or over all axes for None."""
    return _ops.std(_tensor(a), axis, ddof, keepdims)


def var(a: TensorLike, axis: Ints | None = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the variance of a tensor over `axis`, or over all axes for None."""
    return _ops.var(_tensor(a), axis, ddof, keepdims)


def argmax(a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the index of the largest element along an axis, or of the flattened tensor."""
    return _tensor(a).argmax(axis)


def argmin(a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the index of the smallest element along an axis, or of the flattened tensor."""
    return _tensor(a).argmin(axis)


def cumsum(a: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the cumulative sums along an axis, or of the flattened tensor for None."""
    a = _tensor(a)
    out = _ops.cumsum(a.reshape(-1) if axis is None else a, 0 if axis is None else axis)
    return out if dtype is None else out.astype(_as(dtype))


def _elementwise(name: str, own: str | None = None) -> Callable[..., Tensor]:
    """Return a NumPy-style function that calls an elementwise op of `duograph.ops`."""
    function = getattr(_ops, own or name)

    def call(*xs: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        if not xs:
            raise ArgumentError(f"numpy.{name}: got no operand; wanted a Tensor, number or list")
        operands = (
            xs if builtins.any(isinstance(x, Tensor) for x in xs) else (_tensor(xs[0]), *xs[1:])
        )
        out = function(*operands)
        return out if dtype is None else out.astype(_as(dtype))

    call.__name__ = name
    call.__doc__ = f"`ops.{own or name}`, elementwise; numbers and lists are converted to Tensors."
    return call


sqrt, square, exp, log = (_elementwise(n) for n in ("sqrt", "square", "exp", "log"))
log2, log10, log1p, expm1 = (_elementwise(n) for n in ("log2", "log10", "log1p", "expm1"))
abs = absolute = _elementwise("abs")
sin, cos, tan, tanh = (_elementwise(n) for n in ("sin", "cos", "tan", "tanh"))
sinh, cosh, arctan = _elementwise("sinh"), _elementwise("cosh"), _elementwise("arctan", "atan")
floor, ceil, sign = (_elementwise(n) for n in ("floor", "ceil", "sign"))
maximum, minimum, add = (_elementwise(n) for n in ("maximum", "minimum", "add"))
subtract, multiply = _elementwise("subtract", "sub"), _elementwise("multiply", "mul")
divide, power = _elementwise("divide", "div"), _elementwise("power", "pow")
isnan, isinf, isfinite = (_elementwise(n) for n in ("isnan", "isinf", "isfinite"))
logical_and, logical_or, logical_not = (
    _elementwise(n) for n in ("logical_and", "logical_or", "logical_not")
)
equal, not_equal, greater = (_elementwise(n) for n in ("equal", "not_equal", "greater"))
greater_equal, less, less_equal = (_elementwise(n) for n in ("greater_equal", "less", "less_equal"))
matmul, outer = _elementwise("matmul"), _elementwise("outer")


def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the dot product: the sum over the last axis of `a` and the second to last of `b`."""
    a, b = _tensor(a), _tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return tensordot(a, b, ([a.ndim - 1], [b.ndim - 2 if b.ndim > 1 else 0]))


def tensordot(a: TensorLike, b: TensorLike, axes: int | Sequence[Ints] = 2) -> Tensor:
    """Return the contraction of two tensors: the sum of products over pairs of axes."""
    return _ops.tensor_dot(_tensor(a), _tensor(b), axes)


def flip(m: TensorLike, axis: Ints | None = None) -> Tensor:
    """Reverse the elements of a tensor along axes; None means all axes."""
    m = _tensor(m)
    axes = tuple(range(m.ndim)) if axis is None else axis
    return _ops.flip(m, (axes,) if isinstance(axes, int) else tuple(axes))


def roll(a: TensorLike, shift: Ints, axis: Ints | None = None) -> Tensor:
    """Shift the elements of a tensor cyclically along axes."""
    return _ops.roll(_tensor(a), shift, axis)


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes of a tensor."""
    return _ops.swapaxes(_tensor(x), axis1, axis2)


def moveaxis(a: TensorLike, source: Ints, destination: Ints) -> Tensor:
    """Move axes of a tensor to other positions."""
    return _ops.moveaxis(_tensor(a), source, destination)


def triu(m: TensorLike, k: int = 0) -> Tensor:
    """Return the upper triangle of a matrix: elements below the k-th diagonal become 0."""
    return _ops.triu(_tensor(m), k)


def tril(m: TensorLike, k: int = 0) -> Tensor:
    """Return the lower triangle of a matrix: elements above the k-th diagonal become 0."""
    return _ops.tril(_tensor(m), k)


def diag(v: TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with `v` on its k-th diagonal or, of a matrix, that diagonal."""
    return _tensor(v).diag(k)


for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = _refusing(globals()[_name], __name__)
