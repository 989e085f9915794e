"""In-place methods such as ``x.add_(y)``, made from the functions that compute a new tensor.

Users call the methods, which this module installs on Tensor. A method must never overwrite a
buffer: it binds the Tensor to a new one, so that values saved for a gradient remain valid.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import DTypeError, ShapeError
from ..tensor import Tensor
from . import (
    activation,
    combinations,
    division,
    elementwise,
    exponential,
    hyperbolic,
    linalg,
    logic,
    powers,
    rectifiers,
    rounding,
    special,
    trigonometry,
)
from .creation import cast
from .creation_functions import full_like
from .linalg import _Factor
from .methods import tensor_method

__all__ = ["clamp_", "erfinv_", "tanh_", "zero_"]

_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def write(target: Tensor, value: Tensor, what: str) -> Tensor:
    """Assign `value` to the tensor `target` in place, cast to its dtype; return `target`.

    Shape and dtype of the target do not change. `what` is the user's method in errors.

    Raises:
        ShapeError: the value has another shape.
        DTypeError: the value has a higher kind of dtype, such as floating for an integer target.
    """
    if value.shape != target.shape:
        raise ShapeError(
            f"{what}: the result has shape {value.shape}; wanted {target.shape}, that of the "
            "tensor (for another shape make a new Tensor instead)"
        )
    if _RANK[value.dtype.kind] > _RANK[target.dtype.kind]:
        raise DTypeError(
            f"{what}: the result has dtype {value.dtype.name}; wanted one that fits into "
            f"{target.dtype.name}, that of the tensor"
        )
    target._rebind(cast(value, target.dtype))
    return target


def _in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Create a Tensor method called `name`, such as ``add_``, from a function, such as `add`.

    The method writes the function's result to the tensor and returns the tensor. It is marked with
    `tensor_method`, so that it is installed on the class Tensor.
    """

    def method(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        return write(self, function(self, *args, **kwargs), name)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"Write the result of `{name[:-1]}` to this tensor, in place; return the tensor.\n\n"
        "The result is cast to the tensor's dtype; it must have the tensor's shape."
    )
    return tensor_method(name)(method)


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "add_": elementwise._tensor_add,
    "sub_": elementwise._tensor_sub,
    "mul_": elementwise.mul,
    "div_": division.div,
    "floor_divide_": division.floor_divide,
    "remainder_": division.remainder,
    "pow_": powers.pow,
    "neg_": elementwise.neg,
    "abs_": elementwise.abs,
    "square_": elementwise.square,
    "reciprocal_": elementwise.reciprocal,
    "clip_": combinations.clamp.public,
    "addcmul_": combinations.addcmul.public,
    "addcdiv_": combinations.addcdiv.public,
    "floor_": rounding.floor,
    "ceil_": rounding.ceil,
    "trunc_": rounding.trunc,
    "round_": rounding.round,
    "sign_": elementwise.sign,
    "exp_": exponential.exp,
    "log_": exponential.log,
    "sqrt_": powers.sqrt,
    "rsqrt_": powers.rsqrt,
    "sin_": trigonometry.sin,
    "cos_": trigonometry.cos,
    "sigmoid_": activation.sigmoid,
    "relu_": rectifiers.relu,
    "masked_fill_": logic.masked_fill,
    "bitwise_and_": logic.bitwise_and,
    "bitwise_or_": logic.bitwise_or,
    "bitwise_xor_": logic.bitwise_xor,
}
globals().update({f"_tensor_{n}": _in_place(n, f) for n, f in _FUNCTIONS.items()})


@tensor_method("zero_")
def zero_(input: Tensor) -> Tensor:
    """Set every element to 0, in place; returns the tensor."""
    return write(input, full_like(input, 0, input.dtype), "zero_")


@tensor_method("fill_")
def _tensor_fill_(self: Tensor, value: Tensor | int | float | bool) -> Tensor:
    """Set every element to `value`, a number or 0-d tensor, in place; returns the tensor."""
    return write(self, full_like.public(self, value), "fill_")


@tensor_method("copy_")
def _tensor_copy_(self: Tensor, src: object, non_blocking: bool = False) -> Tensor:
    """Assign the elements of `src`, broadcast and cast to this tensor's type; return the tensor."""
    value = cast(src, self.dtype)
    if value.shape != self.shape:
        value = value.broadcast_to(self.shape)
    return write(self, value, "copy_")


@tensor_method("addmm_")
def _tensor_addmm_(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _Factor = 1, alpha: _Factor = 1
) -> Tensor:
    """Replace this matrix by ``beta * self + alpha * (mat1 @ mat2)``, in place; return the tensor.

    See `ops.addmm`.
    """
    return write(self, linalg.addmm(self, mat1, mat2, beta=beta, alpha=alpha), "addmm_")


@tensor_method("clamp_")
def clamp_(
    input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None
) -> Tensor:
    """Limit every element to [min, max], in place; returns the tensor.

    A bound of None means no bound.

    Raises:
        ValueError: both bounds are None, or one would broadcast the tensor to another shape.
        TypeError: the tensor is complex, or a bound is of a higher kind of dtype, such as a
            floating one for an integer tensor.
    """
    return write(input, combinations.clamp.public(input, min, max), "clamp_")


@tensor_method("erfinv_")
def erfinv_(input: Tensor) -> Tensor:
    """Replace every element by its inverse error function, in place; returns the tensor."""
    return write(input, special.erfinv(input), "erfinv_")


@tensor_method("tanh_")
def tanh_(input: Tensor) -> Tensor:
    """Replace every element by its hyperbolic tangent, in place; returns the tensor."""
    return write(input, hyperbolic.tanh(input), "tanh_")
