"""CPU kernels of softmax, layer_norm, batch_norm and their gradients (native/normalise.c).

`CPU.prepare` finds their builders in the kernel table; nothing here computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import lib
from .kernels import call, kernel, plan, product, split

if TYPE_CHECKING:
    from duograph.types import TensorType

    from ._native import CFunction
    from .kernels import Types
    from .native_call import NativeCall


def _softmax(name: str, function: CFunction) -> None:
    """Register the CPU kernel of the op `name`: softmax, log_softmax or one of their gradients."""

    @kernel(name)
    def along_axis(types: Types, results: Types, *, axis: int) -> NativeCall | None:
        x = types[0]
        if x.dtype.kind != "f":
            return None
        outer, n, inner = split(x.shape, axis % len(x.shape)) if x.shape else (1, 1, 1)
        constants = plan("dg_axis", type=x.dtype.index, outer=outer, n=n, inner=inner)
        return call(name, function, constants, types, results)


_softmax("softmax", lib.dg_softmax)
_softmax("log_softmax", lib.dg_log_softmax)
_softmax("softmax_grad", lib.dg_softmax_grad)
_softmax("log_softmax_grad", lib.dg_log_softmax_grad)


def _normalise(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    stat: TensorType,
    shape: tuple[int, int, int],
    eps: float = 0.0,
) -> NativeCall | None:
    """Return the prepared call of layer_norm or batch_norm, or of one of their gradients.

    The first two operands are x and gamma. Returns None unless all operands are floating-point,
    rows (or the channel axis) have elements, and gamma and the third of three operands (beta) have
    the same dtype.

    Args:
        name: name of the op, for messages.
        function: C kernel of the op.
        stat: type of the mean.
        shape: for layer_norm (number of rows, elements of a row, 1); for batch_norm the sizes
            before, of and after the channel axis.
        eps: number added to the variance.
    """
    outer, n, inner = shape
    if any(t is None or t.dtype.kind != "f" for t in types) or n == 0:
        return None
    x, gamma = types[:2]
    if (
        len(types) == 3 and types[2].dtype is not gamma.dtype
    ):  # the kernel reads beta in gamma's dtype
        return None
    constants = plan(
        "dg_normalisation",
        type=x.dtype.index, weight_type=gamma.dtype.index, stat_type=stat.dtype.index,
        outer=outer, n=n, inner=inner, eps=eps,
    )  # fmt: skip
    return call(name, function, constants, types, results)


def _rows(x: TensorType, axis: int) -> tuple[int, int, int]:
    """Return (number of rows, elements per row, 1), where a row spans the axes from `axis` on."""
    return product(x.shape[:axis]), product(x.shape[axis:]), 1


@kernel("layer_norm_core")
def layer_norm_core(types: Types, results: Types, *, axis: int, eps: float) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of layer_norm over the axes from `axis` on.

    The results are the normalised tensor and, for the gradient, the mean and the reciprocal
    standard deviation. Returns None if the operands are not floating-point, rows have no elements,
    or gamma and beta differ in dtype.
    """
    function, shape = lib.dg_layer_norm, _rows(types[0], axis)
    return _normalise("layer_norm", function, types, results, results[1], shape, eps)


@kernel("layer_norm_grad")
def layer_norm_grad(types: Types, results: Types, *, axis: int) -> NativeCall | None:
    """Return a prepared call of layer_norm's gradients with respect to x, gamma and beta.

    Returns None if an operand is not floating-point or rows have no elements.
    """
    function, shape = lib.dg_layer_norm_grad, _rows(types[0], axis)
    return _normalise("layer_norm_grad", function, types, results, types[2], shape)


@kernel("batch_norm_train")
def batch_norm_train(types: Types, results: Types, *, eps: float) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of batch_norm in training, with channel axis 1.

    The results are the normalised tensor, and the mean and the biased variance of the batch for
    each channel. Returns None if the operands are not floating-point, there are no channels, or
    gamma and beta differ in dtype.
    """
    function, shape = lib.dg_batch_norm, split(types[0].shape, 1)
    return _normalise("batch_norm", function, types, results, results[1], shape, eps)


@kernel("batch_norm_grad")
def batch_norm_grad(types: Types, results: Types, *, eps: float) -> NativeCall | None:
    """Return a prepared call of batch_norm's gradients with respect to x, gamma and beta.

    Returns None if an operand is not floating-point or there are no channels.
    """
    function, shape = lib.dg_batch_norm_grad, split(types[0].shape, 1)
    return _normalise("batch_norm_grad", function, types, results, types[2], shape, eps)
