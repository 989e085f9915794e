"""Translates ops to PyTorch functions, for single kernels and for whole graphs.

`backend` and `whole_graphs` call `translated`, which looks up an op by its name in one table.
PyTorch has hardly any arithmetic of uint32, so uint32 values must be stored as int64 and reduced
modulo 2**32 after arithmetic.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import duograph.dtype as dt
import torch
from duograph.errors import IndexRangeError, LabelRangeError
from duograph.op import Op
from duograph.types import TensorType
from torch import Tensor
from torch.nn import functional

__all__ = ["DTYPES", "TORCH_DTYPES", "Translated", "WrongIndex", "translated"]

TORCH_DTYPES: dict[dt.DType, torch.dtype] = {
    dt.bool_: torch.bool, dt.uint8: torch.uint8, dt.int8: torch.int8, dt.int16: torch.int16,
    dt.int32: torch.int32, dt.int64: torch.int64, dt.uint32: torch.int64,
    dt.float16: torch.float16, dt.bfloat16: torch.bfloat16, dt.float32: torch.float32,
    dt.float64: torch.float64, dt.complex64: torch.complex64, dt.complex128: torch.complex128,
}  # fmt: skip
DTYPES = tuple(TORCH_DTYPES)
_MAX_UINT32 = 0xFFFFFFFF

# Makes the error for an index that is out of range.
WrongIndex: TypeAlias = Callable[[int], Exception]
# Reports wrong indices: how to make the error, the indices, and which of them are wrong.
Check: TypeAlias = Callable[[WrongIndex, Tensor, Tensor], None]


@dataclasses.dataclass(frozen=True)
class Translated:
    """An op for operands of given types, as a callable on PyTorch tensors.

    Attributes:
        function: function of (this object, check, *operands) that computes the op; `check` is as in
            `__call__`.
        attributes: the op's attributes.
        types: types of the operands; None for an absent operand.
        results: types of the results.
        single: whether the op returns one value rather than a tuple.
    """

    function: Callable[..., Any]
    attributes: Mapping[str, Any]
    types: tuple[TensorType | None, ...]
    results: tuple[TensorType, ...]
    single: bool

    def __call__(self, operands: Sequence[Tensor | None], check: Check) -> tuple[Tensor, ...]:
        """Compute the op on tensors that have exactly the shapes of `types`; return its results.

        For the indices that the op reads, it calls `check` with (function of a wrong index that
        returns the exception, the indices, a mask of those out of range).
        """
        found = self.function(self, check, *operands)
        return (found,) if self.single else tuple(found)


@dataclasses.dataclass(frozen=True)
class _Entry:
    function: Callable[..., Any]
    kinds: str  # the kinds of `DType` that the operands and results may have
    wide: bool  # whether 16-bit floats are left to the decomposition of the op
    condition: Callable[[Translated], bool] | None


_TABLE: dict[str, _Entry] = {}


def translated(
    op: Op, types: tuple[TensorType | None, ...], attributes: Mapping[str, Any]
) -> Translated | None:
    """Return an op as a callable on PyTorch tensors; None if there is no translation for it."""
    entry = _TABLE.get(op.name)
    if entry is None:
        return None
    results = tuple(op.infer_types(types, attributes))
    single = isinstance(op.result_types(types, attributes), TensorType)
    for t in (*types, *results):
        if t is not None and (
            t.dtype not in TORCH_DTYPES
            or t.dtype.kind not in entry.kinds
            or (entry.wide and t.dtype in (dt.float16, dt.bfloat16))
        ):
            return None
    made = Translated(entry.function, attributes, types, results, single)
    return made if entry.condition is None or entry.condition(made) else None


def _translation(
    *names: str,
    kinds: str = "biufc",
    wide: bool = False,
    when: Callable[[Translated], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _TABLE[name] = _Entry(function, kinds, wide, when)
        return function

    return register


def _elementwise(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a translation that applies an elementwise PyTorch function to the operands."""
    return lambda op, check, *operands: _modulo(op, function(*operands))


def _modulo(op: Translated, value: Tensor) -> Tensor:
    """Return a result reduced modulo 2**32 if the op's dtype is uint32, else unchanged."""
    return value & _MAX_UINT32 if op.results[0].dtype is dt.uint32 else value


def _is_floating(op: Translated) -> bool:
    return op.results[0].dtype.kind in "fc"


# ---- element-wise ops ----------------------------------------------------------------------------

_ANY = "biufc"
for _name, _function, _kinds in (
    ("mul", torch.mul, _ANY), ("equal", torch.eq, _ANY),
    ("not_equal", torch.ne, _ANY), ("less", torch.lt, "biuf"), ("less_equal", torch.le, "biuf"),
    ("greater", torch.gt, "biuf"), ("greater_equal", torch.ge, "biuf"),
    ("maximum", torch.maximum, "biuf"), ("minimum", torch.minimum, "biuf"),
    ("bitwise_and", torch.bitwise_and, "biu"), ("bitwise_or", torch.bitwise_or, "biu"),
    ("bitwise_xor", torch.bitwise_xor, "biu"), ("logical_not", torch.logical_not, _ANY),
    ("logical_and", torch.logical_and, "b"), ("logical_or", torch.logical_or, "b"),
    ("neg", torch.neg, "iufc"), ("square", torch.square, "iufc"), ("relu", torch.relu, "if"),
    ("select", torch.where, _ANY), ("identity", torch.clone, _ANY),
    ("stop_gradient", torch.clone, _ANY), ("isnan", torch.isnan, "bf"),
    ("isinf", torch.isinf, "bf"), ("isfinite", torch.isfinite, "bf"),
    ("ceil", torch.ceil, "f"), ("round", torch.round, "f"), ("trunc", torch.trunc, "f"),
):  # fmt: skip
    _translation(_name, kinds=_kinds)(_elementwise(_function))

for _name in ("log", "sin", "sqrt"):
    _translation(_name, kinds="fc")(_elementwise(getattr(torch, _name)))

for _name in (
    "abs", "exp2", "log2", "log10", "rsqrt", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "expm1", "log1p", "reciprocal", "sigmoid",
    "atan2", "hypot", "copysign", "fmax", "fmin", "pow",
):  # fmt: skip
    _translation(_name, kinds="f", wide=True)(_elementwise(getattr(torch, _name)))


@_translation("exp", kinds="fc")
def _exp(op: Translated, check: Check, x: Tensor) -> Tensor:
    if not x.is_complex():
        return torch.exp(x)
    size = torch.exp(x.real)
    real = (x.imag == 0) | (size == 0)  # as in C, also if `size` or the angle is infinite
    return torch.complex(
        torch.where(real, size, size * torch.cos(x.imag)),
        torch.where(real, 0, size * torch.sin(x.imag)),
    )


@_translation("add")
def _add(op: Translated, check: Check, x: Tensor, y: Tensor) -> Tensor:
    if x.is_complex():  # PyTorch multiplies `y` by 1 + 0j, which is NaN for infinite parts
        return torch.complex(x.real + y.real, x.imag + y.imag)
    return _modulo(op, x + y)


@_translation("sub")
def _sub(op: Translated, check: Check, x: Tensor, y: Tensor) -> Tensor:
    if x.is_complex():
        return torch.complex(x.real - y.real, x.imag - y.imag)
    return x ^ y if op.results[0].dtype is dt.bool_ else _modulo(op, x - y)


@_translation("div", kinds="fc")
def _div(op: Translated, check: Check, x: Tensor, y: Tensor) -> Tensor:
    return _complex_quotient(x, y) if x.is_complex() else x / y


def _complex_quotient(x: Tensor, y: Tensor) -> Tensor:
    """Return x / y of complex tensors by the method of Smith (1962).

    Unlike PyTorch's division, it does not overflow if the result is in range.
    """
    x, y = torch.broadcast_tensors(x, y)
    flat = y.real.abs() >= y.imag.abs()
    large, small = torch.where(flat, y.real, y.imag), torch.where(flat, y.imag, y.real)
    zero = large == 0
    ratio = torch.where(zero, 0, small / large)
    scale = 1 / (large + small * ratio)
    a, b = torch.where(flat, x.real, x.imag), torch.where(flat, x.imag, x.real)
    imaginary = (b - a * ratio) * scale
    return torch.complex((a + b * ratio) * scale, torch.where(flat, imaginary, -imaginary))


@_translation("floor", kinds="biuf")
def _floor(op: Translated, check: Check, x: Tensor) -> Tensor:
    return torch.floor(x) if _is_floating(op) else x.clone()


@_translation("imag", kinds="fc")
def _imag(op: Translated, check: Check, x: Tensor) -> Tensor:
    return x.imag.clone() if x.is_complex() else torch.zeros_like(x)


@_translation("real", kinds="fc")
def _real(op: Translated, check: Check, x: Tensor) -> Tensor:
    return x.real.clone()


@_translation("complex", kinds="fc", wide=True)
def _complex(op: Translated, check: Check, x: Tensor, y: Tensor) -> Tensor:
    return torch.complex(*torch.broadcast_tensors(x, y))


def _shifted(shift: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return the translation of a bit shift, defined for any number of bits.

    For a number of bits that is negative or not below the dtype's width, the result is 0 or, in a
    right shift of signed integers, 0 or -1 by the sign.
    """

    def translate(op: Translated, check: Check, x: Tensor, y: Tensor) -> Tensor:
        bits = 8 * op.results[0].dtype.itemsize
        inside = (y >= 0) & (y < bits)
        rest = x >> (bits - 1) if shift is torch.bitwise_right_shift else torch.zeros_like(x)
        if op.results[0].dtype.kind == "u":
            rest = torch.zeros_like(x)
        return _modulo(op, torch.where(inside, shift(x, torch.where(inside, y, 0)), rest))

    return translate


_translation("shift_left", kinds="iu")(_shifted(torch.bitwise_left_shift))
_translation("shift_right", kinds="iu")(_shifted(torch.bitwise_right_shift))


@_translation("cast")
def _cast(op: Translated, check: Check, x: Tensor) -> Tensor:
    to = op.attributes["dtype"]
    if to is dt.bool_:
        return x != 0
    if x.is_complex() and to.kind != "c":
        x = x.real
    if x.is_floating_point() and to.is_integer:
        x = x.to(torch.int64)
    return _modulo(op, x.to(TORCH_DTYPES[to], copy=True))


# ---- making and moving ---------------------------------------------------------------------------


@_translation("fill")
def _fill(op: Translated, check: Check) -> Tensor:
    (result,) = op.results
    return torch.full(result.shape, op.attributes["value"], dtype=TORCH_DTYPES[result.dtype])


@_translation("constant")
def _constant(op: Translated, check: Check) -> Tensor:
    (result,) = op.results
    array = op.attributes["value"].array
    if result.dtype is dt.bfloat16:
        array = array.astype("float32")
    values = torch.tensor(array.astype("int64") if result.dtype is dt.uint32 else array)
    return values.to(TORCH_DTYPES[result.dtype])


@_translation("iota")
def _iota(op: Translated, check: Check) -> Tensor:
    (result,) = op.results
    axis = op.attributes["axis"]
    lead = [n if k == axis else 1 for k, n in enumerate(result.shape)]
    count = torch.arange(result.shape[axis]).to(TORCH_DTYPES[result.dtype])
    return _modulo(op, count).reshape(lead).expand(result.shape).contiguous()


@_translation("random_bits", kinds="u")
def _random_bits(op: Translated, check: Check, state: Tensor) -> Tensor:
    """Return the words of the generator Philox 4x32-10 (Salmon et al., 2011)."""
    (result,) = op.results
    count = math.prod(result.shape)
    key0, key1, low, high = state.unbind()
    block = torch.arange(-(-count // 4))
    c = [block & _MAX_UINT32, block >> 32, low.expand_as(block), high.expand_as(block)]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57  # modulo 2**64, as int64
        c = [
            (b >> 32 & _MAX_UINT32) ^ c[1] ^ key0, b & _MAX_UINT32,
            (a >> 32 & _MAX_UINT32) ^ c[3] ^ key1, a & _MAX_UINT32,
        ]  # fmt: skip
        key0, key1 = (key0 + 0x9E3779B9) & _MAX_UINT32, (key1 + 0xBB67AE85) & _MAX_UINT32
    return torch.stack(c, 1).reshape(-1)[:count].reshape(result.shape)


@_translation("concat")
def _concat(op: Translated, check: Check, *xs: Tensor) -> Tensor:
    return torch.cat(xs, op.attributes["axis"])


@_translation("reshape")
def _reshape(op: Translated, check: Check, x: Tensor) -> Tensor:
    return x.reshape(op.results[0].shape)


@_translation("transpose")
def _transpose(op: Translated, check: Check, x: Tensor) -> Tensor:
    return x.permute(op.attributes["perm"])


@_translation("broadcast_to")
def _broadcast_to(op: Translated, check: Check, x: Tensor) -> Tensor:
    return x.expand(op.results[0].shape)


@_translation("flip")
def _flip(op: Translated, check: Check, x: Tensor) -> Tensor:
    return x.flip(op.attributes["axes"])


def _goes_up(op: Translated) -> bool:
    return min(op.attributes["strides"], default=1) > 0


@_translation("strided_slice", when=_goes_up)
def _strided_slice(op: Translated, check: Check, x: Tensor) -> Tensor:
    a = op.attributes
    return x[tuple(map(slice, a["begin"], a["end"], a["strides"]))]


@_translation("strided_copy")
def _strided_copy(op: Translated, check: Check, x: Tensor) -> Tensor:
    shape, strides = op.attributes["shape"], op.attributes["strides"]
    offset = op.attributes["offset"]
    if 0 in shape:
        return x.new_empty(shape)
    down = [k for k, step in enumerate(strides) if step < 0]  # PyTorch has no negative strides
    dense = x.contiguous()
    first = dense.storage_offset() + offset + sum(strides[k] * (shape[k] - 1) for k in down)
    view = torch.as_strided(dense, shape, [abs(s) for s in strides], first)
    return view.flip(down) if down else view.clone(memory_format=torch.contiguous_format)


# ---- reductions and matmul -----------------------------------------------------------------------


@_translation("reduce_sum")
def _reduce_sum(op: Translated, check: Check, x: Tensor) -> Tensor:
    axis, keep = op.attributes["axis"], op.attributes["keepdims"]
    if not axis:
        return x.clone()
    if op.results[0].dtype is dt.bool_:
        return torch.amax(x, axis, keep) if x.numel() else _zeros(op)
    return _modulo(op, torch.sum(x, axis, keep, dtype=x.dtype))


def _zeros(op: Translated) -> Tensor:
    (result,) = op.results
    return torch.zeros(result.shape, dtype=TORCH_DTYPES[result.dtype])


def _reduction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def translate(op: Translated, check: Check, x: Tensor) -> Tensor:
        axis, keep = op.attributes["axis"], op.attributes["keepdims"]
        if not axis:
            return x.clone()
        return function(x, axis, keep) if x.numel() else _zeros(op)

    return translate


_translation("reduce_max", kinds="biuf")(_reduction(torch.amax))
_translation("reduce_min", kinds="biuf")(_reduction(torch.amin))


@_translation("matmul")
def _matmul(op: Translated, check: Check, x: Tensor, y: Tensor) -> Tensor:
    x = x.mT if op.attributes["transpose_a"] else x
    y = y.mT if op.attributes["transpose_b"] else y
    if x.dtype is torch.bool:
        return (x.to(torch.int32) @ y.to(torch.int32)) != 0
    return _modulo(op, x @ y)


@_translation("softmax", kinds="f", wide=True)
def _softmax(op: Translated, check: Check, x: Tensor) -> Tensor:
    return torch.softmax(x, op.attributes["axis"])


@_translation("log_softmax", kinds="f", wide=True)
def _log_softmax(op: Translated, check: Check, x: Tensor) -> Tensor:
    return torch.log_softmax(x, op.attributes["axis"])


@_translation("layer_norm_core", kinds="f", wide=True)
def _layer_norm(op: Translated, check: Check, x: Tensor, gamma: Tensor, beta: Tensor) -> Any:
    shape = x.shape[op.attributes["axis"] :]
    return torch.native_layer_norm(x, shape, gamma, beta, op.attributes["eps"])


def _has_elements(op: Translated) -> bool:
    return all(0 not in t.shape for t in (*op.types, *op.results) if t is not None)


@_translation("conv", kinds="f", wide=True, when=_has_elements)
def _conv(op: Translated, check: Check, x: Tensor, w: Tensor) -> Tensor:
    a = op.attributes
    x = functional.pad(x, [n for pair in reversed(a["padding"]) for n in pair])
    function = (functional.conv1d, functional.conv2d, functional.conv3d)[x.ndim - 3]
    return function(x, w, None, a["stride"], 0, a["dilation"], a["groups"])


def _conv_gradients(
    op: Translated, dout: Tensor, x: Tensor, w: Tensor, wanted: list[bool]
) -> tuple[Tensor, ...]:
    """Return a convolution's gradients with respect to (input, weights, bias).

    `x` is the input, already padded. `wanted` says which of the three gradients to compute; the
    others are None.
    """
    a = op.attributes
    n = x.ndim - 2
    found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
        dout, x, w, None, list(a["stride"]), [0] * n, list(a["dilation"]), False, [0] * n,
        a["groups"], wanted,
    )  # fmt: skip
    return found


@_translation("conv_input_grad", kinds="f", wide=True, when=_has_elements)
def _conv_input_grad(op: Translated, check: Check, dout: Tensor, w: Tensor) -> Tensor:
    shape, padding = op.attributes["input_shape"], op.attributes["padding"]
    sizes = [n + low + high for n, (low, high) in zip(shape[2:], padding, strict=True)]
    x = dout.new_zeros((*shape[:2], *sizes))
    dx, *_ = _conv_gradients(op, dout, x, w, [True, False, False])
    inside = [slice(low, low + n) for n, (low, _) in zip(shape[2:], padding, strict=True)]
    return dx[(slice(None), slice(None), *inside)]


@_translation("conv_weight_grad", kinds="f", wide=True, when=_has_elements)
def _conv_weight_grad(op: Translated, check: Check, x: Tensor, dout: Tensor) -> Tensor:
    x = functional.pad(x, [n for pair in reversed(op.attributes["padding"]) for n in pair])
    w = x.new_zeros(op.attributes["weight_shape"])
    return _conv_gradients(op, dout, x, w, [False, True, False])[1]


@_translation("cumsum", kinds="if", wide=True)
def _cumsum(op: Translated, check: Check, x: Tensor) -> Tensor:
    axis = op.attributes["axis"]
    x = x.flip(axis) if op.attributes["reverse"] else x
    found = torch.cumsum(x, axis, dtype=x.dtype)
    if op.attributes["exclusive"]:
        first = torch.zeros_like(x.narrow(axis, 0, min(1, x.shape[axis])))
        found = torch.cat([first, found], axis).narrow(axis, 0, x.shape[axis])
    return found.flip(axis) if op.attributes["reverse"] else found


@_translation("sort", kinds="if", when=lambda op: not op.attributes["descending"])
def _sort(op: Translated, check: Check, x: Tensor) -> Any:
    return torch.sort(x, dim=op.attributes["axis"], stable=True)


# ---- indices -------------------------------------------------------------------------------------


def _rows(name: str, op: Translated, check: Check, indices: Tensor, size: int) -> Tensor:
    """Return the indices along an axis of length `size` as a flat int64 tensor, counted from 0.

    Indices out of range are passed to `check`, for an error of the op `name`, and replaced by 0.
    """
    axis = op.attributes["axis"]
    bad = (indices < -size) | (indices >= size)
    check(lambda i: IndexRangeError.of_axis(name, i, axis, size), indices, bad)
    flat = indices.to(torch.int64).reshape(-1)
    return torch.where(bad.reshape(-1), 0, torch.where(flat < 0, flat + size, flat))


@_translation("gather")
def _gather(op: Translated, check: Check, x: Tensor, indices: Tensor) -> Tensor:
    axis = op.attributes["axis"]
    rows = _rows("gather", op, check, indices, x.shape[axis])
    if not x.numel():
        return _zeros(op)
    return torch.index_select(x, axis, rows).reshape(op.results[0].shape)


@_translation("checked_labels", kinds="iu")
def _checked_labels(op: Translated, check: Check, labels: Tensor) -> Tensor:
    classes, owner = op.attributes["classes"], op.attributes["owner"]
    bad = (labels < 0) | (labels >= classes)
    check(lambda i: LabelRangeError.of(owner, i, classes), labels, bad)
    return labels.clone()


def _updates(op: Translated, x: Tensor, updates: Tensor) -> Tensor:
    """Return the updates of a scatter, with the axes of the indices merged into one axis."""
    axis = op.attributes["axis"]
    assert op.types[1] is not None
    count = math.prod(op.types[1].shape)
    return updates.reshape((*x.shape[:axis], count, *x.shape[axis + 1 :]))


@_translation("scatter_add")
def _scatter_add(op: Translated, check: Check, x: Tensor, indices: Tensor, new: Tensor) -> Tensor:
    axis = op.attributes["axis"]
    rows = _rows("scatter_add", op, check, indices, x.shape[axis])
    if not x.numel() or not new.numel():
        return x.clone()
    return _modulo(op, torch.index_add(x, axis, rows, _updates(op, x, new)))


@_translation("scatter_set")
def _scatter_set(op: Translated, check: Check, x: Tensor, indices: Tensor, new: Tensor) -> Tensor:
    axis = op.attributes["axis"]
    rows = _rows("scatter_set", op, check, indices, x.shape[axis])
    if not x.numel() or not new.numel():
        return x.clone()
    # Of several updates of one row the last one wins: PyTorch does not promise that.
    last = torch.full((x.shape[axis],), -1).scatter_reduce(
        0, rows, torch.arange(rows.numel()), "amax"
    )
    chosen = torch.index_select(_updates(op, x, new), axis, last.clamp(min=0))
    written = (last >= 0).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    return torch.where(written, chosen, x)
