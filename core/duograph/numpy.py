"""NumPy's names over Tensors (`mindspore.numpy`): the functions that model code uses, with NumPy's
signatures.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as _np

from . import dtype as _dtype
from . import ops as _ops
from .dtype import (
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
from .errors import ArgumentValueError
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

pi, inf, nan, newaxis = math.pi, math.inf, math.nan, None


def _as(dtype: Any) -> Any:
    return None if dtype is None else _dtype.as_dtype(dtype)


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
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


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """A Tensor; the same one when nothing has to change."""
    return array(a, dtype, copy=False)


def zeros(shape: Any, dtype: Any = float32) -> Tensor:
    """Zeros."""
    return _ops.zeros(shape, _as(dtype))


def ones(shape: Any, dtype: Any = float32) -> Tensor:
    """Ones."""
    return _ops.ones(shape, _as(dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor with every element `fill_value`."""
    return _ops.full(shape, fill_value, dtype=_as(dtype))


def empty(shape: Any, dtype: Any = float32) -> Tensor:
    """A tensor of a shape; its values are zeros."""
    return zeros(shape, dtype)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Zeros of the shape and dtype of `a` unless others are given."""
    a = _tensor(a)
    return zeros(a.shape if shape is None else shape, dtype or a.dtype)


def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Ones of the shape and dtype of `a` unless others are given."""
    a = _tensor(a)
    return ones(a.shape if shape is None else shape, dtype or a.dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """`fill_value` in the shape and dtype of `a` unless others are given."""
    a = _tensor(a)
    return full(a.shape if shape is None else shape, fill_value, dtype or a.dtype)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """Numbers from `start` below `stop`, as NumPy counts them."""
    if stop is None:
        start, stop = 0, start
    return _ops.arange(start, stop, 1 if step is None else step, dtype=_as(dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` numbers at equal distances; with `retstep` also the distance.

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


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float32) -> Tensor:
    """Ones on the k-th diagonal."""
    return Tensor(_np.eye(N, M, k), _as(dtype))


def identity(n: int, dtype: Any = float32) -> Tensor:
    """The n by n identity."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate tensors of coordinate vectors."""
    if sparse:
        raise ArgumentValueError("meshgrid: got sparse=True; wanted False, the dense form")
    return tuple(_ops.meshgrid(*[_tensor(x) for x in xi], indexing=indexing))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition holds, else `y`; without both, the indices where it holds."""
    condition = _tensor(condition)
    if x is None or y is None:
        if x is not y:
            raise ArgumentValueError("where: got one of x and y; wanted both or none")
        return tuple(_ops.nonzero(condition, as_tuple=True))
    return _ops.where(condition, x, y)


def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Tensors one after another along an axis; flattened first for axis None."""
    tensors = [_tensor(a) for a in arrays]
    if axis is None:
        return _ops.concat([t.reshape(-1) for t in tensors], 0)
    return _ops.concat(tensors, axis)


def stack(arrays: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors along a new axis."""
    return _ops.stack([_tensor(a) for a in arrays], axis)


def hstack(tup: Sequence[Any]) -> Tensor:
    """Tensors side by side."""
    return _ops.hstack([_tensor(a) for a in tup])


def vstack(tup: Sequence[Any]) -> Tensor:
    """Tensors one below another."""
    return _ops.vstack([_tensor(a) for a in tup])


def tile(a: Any, reps: Any) -> Tensor:
    """Copies of `a` along each axis."""
    return _ops.tile(_tensor(a), (reps,) if isinstance(reps, int) else tuple(reps))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element several times."""
    return _ops.repeat_interleave(_tensor(a), repeats, axis)


def reshape(x: Any, new_shape: Any) -> Tensor:
    """The same elements under another shape."""
    return _ops.reshape(_tensor(x), new_shape)


def transpose(a: Any, axes: Any = None) -> Tensor:
    """Axes in another order; reversed for None."""
    a = _tensor(a)
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(axes)
    return _ops.transpose(a, order)


def expand_dims(a: Any, axis: int) -> Tensor:
    """A new axis of length 1."""
    return _ops.expand_dims(_tensor(a), axis)


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Without the axes of length 1, or those named."""
    return _ops.squeeze(_tensor(a), axis)


def ravel(x: Any) -> Tensor:
    """All elements along one axis."""
    return _tensor(x).reshape(-1)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: a number of equal ones, or cut at these indices.

    Raises:
        ValueError: the axis does not divide.
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


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Repeated along axes of length 1 to a shape."""
    return _ops.broadcast_to(_tensor(array), tuple(shape))


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def pad(arr: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """Elements around a tensor.

    Args:
        arr: Tensor.
        pad_width: an int, a pair, or a pair for each axis.
        mode: ``"constant"``, ``"reflect"``, ``"edge"`` or ``"wrap"``.
        constant_values: what ``"constant"`` puts there.

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
        if low or high:  # rows by their numbers: any mode on any number of axes
            rows = _np.pad(_np.arange(x.shape[axis]), (low, high), kinds[mode])  # type: ignore[call-overload]
            x = _ops.gather(x, Tensor(rows), axis)
    return x


def clip(x: Any, xmin: Any, xmax: Any, dtype: Any = None) -> Tensor:
    """Values moved into [xmin, xmax]."""
    out = _ops.clamp(_tensor(x), xmin, xmax)
    return out if dtype is None else out.astype(_as(dtype))


def _reduction(name: str) -> Any:
    function = getattr(_ops, name)

    def reduce(a: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Tensor:
        return function(_tensor(a), axis, keepdims, **kwargs)

    reduce.__name__ = name
    reduce.__doc__ = f"`ops.{name}` over `axis` (all axes for None)."
    return reduce


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None
) -> Tensor:
    """Sum over `axis`, all axes for None."""
    out = _ops.sum(_tensor(a), axis, keepdims, dtype=_as(dtype))
    return out if initial is None else out + initial


def mean(a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """Mean over `axis`, all axes for None; integers give float32."""
    a = _tensor(a)
    if a.dtype.kind in "biu":
        a = a.astype(float32)
    out = _ops.mean(a, axis, keepdims)
    return out if dtype is None else out.astype(_as(dtype))


prod, amax, amin = _reduction("prod"), _reduction("amax"), _reduction("amin")
max, min = amax, amin
any, all = _reduction("any"), _reduction("all")


def std(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Standard deviation."""
    return _ops.std(_tensor(a), axis, ddof, keepdims)


def var(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Variance."""
    return _ops.var(_tensor(a), axis, ddof, keepdims)


def argmax(a: Any, axis: int | None = None) -> Tensor:
    """Place of the largest element."""
    return _tensor(a).argmax(axis)


def argmin(a: Any, axis: int | None = None) -> Tensor:
    """Place of the smallest element."""
    return _tensor(a).argmin(axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running sums."""
    a = _tensor(a)
    out = _ops.cumsum(a.reshape(-1) if axis is None else a, 0 if axis is None else axis)
    return out if dtype is None else out.astype(_as(dtype))


def _elementwise(name: str, own: str | None = None) -> Any:
    function = getattr(_ops, own or name)

    def call(*xs: Any, dtype: Any = None) -> Tensor:
        given = xs if builtins.any(isinstance(x, Tensor) for x in xs) else (_tensor(xs[0]), *xs[1:])
        out = function(*given)
        return out if dtype is None else out.astype(_as(dtype))

    call.__name__ = name
    call.__doc__ = f"`ops.{own or name}`, elementwise; numbers and lists are made Tensors."
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


def dot(a: Any, b: Any) -> Tensor:
    """Dot product as NumPy's: sum over the last axis of `a` and the second to last of `b`."""
    a, b = _tensor(a), _tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return tensordot(a, b, ([a.ndim - 1], [b.ndim - 2 if b.ndim > 1 else 0]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Sum over pairs of axes."""
    return _ops.tensor_dot(_tensor(a), _tensor(b), axes)


def flip(m: Any, axis: Any = None) -> Tensor:
    """Reversed along axes, all of them for None."""
    m = _tensor(m)
    axes = tuple(range(m.ndim)) if axis is None else axis
    return _ops.flip(m, (axes,) if isinstance(axes, int) else tuple(axes))


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Moved along axes, what falls off coming back at the other end."""
    return _ops.roll(_tensor(a), shift, axis)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes in each other's place."""
    return _ops.swapaxes(_tensor(x), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes at other places."""
    return _ops.moveaxis(_tensor(a), source, destination)


def triu(m: Any, k: int = 0) -> Tensor:
    """On and above the k-th diagonal, zeros below."""
    return _ops.triu(_tensor(m), k)


def tril(m: Any, k: int = 0) -> Tensor:
    """On and below the k-th diagonal, zeros above."""
    return _ops.tril(_tensor(m), k)


def diag(v: Any, k: int = 0) -> Tensor:
    """A matrix with `v` on its k-th diagonal, or that diagonal of a matrix."""
    return _tensor(v).diag(k)
