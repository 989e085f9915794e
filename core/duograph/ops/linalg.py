"""Matrix multiplication: the primitive `matmul`, and MindSpore's functions that are made of it.

Users, layers, losses and normalisation call it. Backends have kernels for `matmul`, which must
accumulate 16-bit floats in float32; all other functions here are made of other ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..call_cache import cached_call
from ..dtype import NUMERIC, float32
from ..errors import ArgumentError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType, broadcast_shapes
from .creation import cast_to
from .methods import tensor_method
from .pointwise import conjugate
from .shape_primitives import reduce_sum, reshape_to

__all__ = [
    "matmul", "mm", "bmm", "outer", "ger", "mv", "vdot", "addmm", "addbmm", "baddbmm", "addmv",
    "addr", "dense", "bias_add",
]  # fmt: skip

_Factor: TypeAlias = int | float | Tensor


@op(name="matmul", dtypes=NUMERIC, promote="common")
def matmul_of(input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False):
    """Primitive op: product of the matrices in the last two axes; leading axes broadcast.

    Both operands have at least two axes. `transpose_a` and `transpose_b` exchange the last two axes
    of the first and second operand before the product.
    """


def _matrix_sizes(shape: Sequence[int], transpose: bool) -> tuple[int, int]:
    return (shape[-1], shape[-2]) if transpose else (shape[-2], shape[-1])


@matmul_of.infer
def _(x, y, transpose_a, transpose_b):
    if x.ndim < 2 or y.ndim < 2:
        raise ShapeError(
            f"matmul: got shapes {x.shape} and {y.shape}; wanted at least two axes each"
        )
    m, k = _matrix_sizes(x.shape, transpose_a)
    k2, n = _matrix_sizes(y.shape, transpose_b)
    if k != k2:
        axes = ("last axis", "last axis but one")
        turned = f"; `.swapaxes(-1, -2)` on the second makes it {n}" if k == n else ""
        raise ShapeError(
            f"matmul: got shapes {x.shape} and {y.shape}; wanted the {axes[transpose_a]} of the "
            f"first ({k}) to equal the {axes[not transpose_b]} of the second ({k2}){turned}"
        )
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if batch is None:
        raise ShapeError(
            f"matmul: got shapes {x.shape} and {y.shape}, whose leading axes {x.shape[:-2]} and "
            f"{y.shape[:-2]} do not broadcast"
        )
    return TensorType.of((*batch, m, n), x.dtype)


@matmul_of.reference
def _(x, y, transpose_a, transpose_b):
    dtype = x.dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":  # 16-bit floats are summed in float32
        x, y = x.astype(np.float32), y.astype(np.float32)
    x = np.swapaxes(x, -1, -2) if transpose_a else x
    y = np.swapaxes(y, -1, -2) if transpose_b else y
    return np.matmul(x, y).astype(dtype)


def _fold(grad: Tensor, shape: Sequence[int]) -> Tensor:
    """Sum the gradient of a matmul operand over the batch axes along which it was broadcast.

    `shape` is the operand's shape, which the result has.
    """
    if grad.shape == tuple(shape):
        return grad
    lead = grad.ndim - len(shape)
    axes = tuple(
        i for i in range(grad.ndim - 2)
        if i < lead or (shape[i - lead] == 1 and grad.shape[i] != 1)
    )  # fmt: skip
    return reshape_to(reduce_sum(grad, axes, False), tuple(shape))


@matmul_of.bprop
def _(x, y, out, dout, transpose_a, transpose_b):
    xc, yc = conjugate(x), conjugate(y)
    if transpose_a:
        dx = matmul_of(yc, dout, transpose_b, True)
    else:
        dx = matmul_of(dout, yc, False, not transpose_b)
    if transpose_b:
        dy = matmul_of(dout, xc, True, transpose_a)
    else:
        dy = matmul_of(xc, dout, not transpose_a, False)
    return _fold(dx, x.shape), _fold(dy, y.shape)


def _as_tensor(name: str, x: object) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (np.ndarray, list, tuple)):
        return Tensor(x)
    raise ArgumentError(
        f"{name}: got {type(x).__name__} for an operand; wanted a Tensor"
        + (f" (multiply by a number with `* {x}`)" if isinstance(x, (int, float)) else "")
    )


def _want_ndim(name: str, x: Tensor, what: str, ndim: int) -> None:
    if x.ndim != ndim:
        batches = " (bmm and matmul multiply batches of matrices)"
        raise ShapeError(
            f"{name}: got {what} of shape {x.shape}; wanted {ndim} axes"
            + (batches if name == "mm" and x.ndim > 2 else "")
        )


@tensor_method("matmul", "__matmul__")
@cached_call
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Multiply matrices by the rules of `numpy.matmul` (`mindspore.ops.matmul`; `@`).

    Args:
        input: Tensor of at least one axis.
        other: Tensor of at least one axis. An operand with one axis is a row on the left or a
            column on the right, and that axis is removed from the result; leading axes broadcast,
            dtypes are promoted.

    Returns:
        Tensor of shape (batch..., m, n) for (..., m, k) and (..., k, n).

    Raises:
        ValueError: inner sizes differ, leading axes do not broadcast, or an operand is 0-d.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> print(ms.ops.matmul(x, ms.Tensor([1.0, 1.0])))
        [3. 7.]
    """
    try:
        if len(input._type.shape) >= 2 and len(other._type.shape) >= 2:
            return matmul_of(input, other)
    except AttributeError:
        pass
    x, y = _as_tensor("matmul", input), _as_tensor("matmul", other)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(
            f"matmul: got shapes {x.shape} and {y.shape}; wanted at least one axis each (a number "
            f"multiplies with *)"
        )
    left, right = x.ndim == 1, y.ndim == 1
    if left:
        x = reshape_to(x, (1, x.shape[0]))
    if right:
        y = reshape_to(y, (y.shape[0], 1))
    out = matmul_of(x, y)
    if left or right:
        shape = out.shape
        shape = (*shape[:-2], *(() if left else shape[-2:-1]), *(() if right else shape[-1:]))
        out = reshape_to(out, shape)
    return out


@tensor_method("__rmatmul__")
def _rmatmul(input: Tensor, other: Tensor) -> Tensor:
    return matmul(other, input)


@tensor_method("mm")
@cached_call
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices (`mindspore.ops.mm`).

    Args:
        input: Tensor (m, k).
        mat2: Tensor (k, n).

    Returns:
        Tensor (m, n).

    Raises:
        ValueError: not two axes each, or inner sizes that differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.mm(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])))
        [[11.]]
    """
    _want_ndim("mm", input, "a first operand", 2)
    _want_ndim("mm", mat2, "a second operand", 2)
    return matmul_of(input, mat2)


@tensor_method("bmm")
@cached_call
def bmm(input_x: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of matrices, batch by batch (`mindspore.ops.bmm`).

    Args:
        input_x: Tensor (..., m, k), at least two axes.
        mat2: Tensor (..., k, n) of the same leading axes.

    Returns:
        Tensor (..., m, n).

    Raises:
        ValueError: fewer than two axes, other leading axes, or inner sizes that differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bmm(ms.ops.ones((2, 1, 3)), ms.ops.ones((2, 3, 1))).shape)
        (2, 1, 1)
    """
    if input_x.ndim < 2 or mat2.ndim < 2 or input_x.shape[:-2] != mat2.shape[:-2]:
        raise ShapeError(
            f"bmm: got shapes {input_x.shape} and {mat2.shape}; wanted at least two axes each "
            f"and the same leading ones"
        )
    return matmul_of(input_x, mat2)


@tensor_method("outer")
@cached_call
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the outer product of two vectors (`mindspore.ops.outer`).

    Args:
        input: Tensor of n elements; one of another shape is flattened.
        vec2: Tensor of m elements.

    Returns:
        Tensor (n, m).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.outer(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        [[3. 4.]
         [6. 8.]]
    """
    return reshape_to(input, (input.size, 1)) * reshape_to(vec2, (1, vec2.size))


@tensor_method("ger")
@cached_call
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the outer product of two vectors, by its BLAS name (`mindspore.ops.ger`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ger(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0])))
        [[3.]
         [6.]]
    """
    _want_ndim("ger", input, "input", 1)
    _want_ndim("ger", vec2, "vec2", 1)
    return outer(input, vec2)


@tensor_method("mv")
@cached_call
def mv(mat: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix (m, k) and a vector (k,) (`mindspore.ops.mv`).

    Raises:
        ValueError: other numbers of axes, or sizes that differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.mv(ms.Tensor([[1.0, 2.0]]), ms.Tensor([3.0, 4.0])))
        [11.]
    """
    _want_ndim("mv", mat, "mat", 2)
    _want_ndim("mv", vec, "vec", 1)
    return matmul(mat, vec)


@cached_call
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return the dot product of two vectors, the first of which is conjugated.

    Raises:
        ValueError: not one axis each, or sizes that differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.vdot(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])))
        11.0
    """
    _want_ndim("vdot", input, "input", 1)
    _want_ndim("vdot", other, "other", 1)
    return matmul(conjugate(input), other)


def _scaled(x: Tensor, factor: _Factor) -> Tensor:
    return x if factor.__class__ in (int, float) and factor == 1 else x * factor


@tensor_method("addmm")
@cached_call
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _Factor = 1, alpha: _Factor = 1
) -> Tensor:
    """Return beta * input + alpha * (mat1 @ mat2) (`mindspore.ops.addmm`).

    Args:
        input: Tensor that broadcasts to (m, n).
        mat1, mat2: Tensors (m, k) and (k, n).
        beta, alpha: numbers.

    Returns:
        Tensor (m, n).

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> one = ms.ops.ones((2, 2))
        >>> print(ms.ops.addmm(one, one, one, beta=3))
        [[5. 5.]
         [5. 5.]]
    """
    return _scaled(input, beta) + _scaled(mm(mat1, mat2), alpha)


@tensor_method("addbmm")
@cached_call
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Factor = 1, alpha: _Factor = 1
) -> Tensor:
    """Return beta * input + alpha * (sum over the batch of batch1 @ batch2)
    (`mindspore.ops.addbmm`).

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> a, b = ms.ops.ones((2, 1, 3)), ms.ops.ones((2, 3, 1))
        >>> print(ms.ops.addbmm(ms.ops.ones((1, 1)), a, b))
        [[7.]]
    """
    product = reduce_sum(bmm(batch1, batch2), (0,), False)
    return _scaled(input, beta) + _scaled(product, alpha)


@tensor_method("baddbmm")
@cached_call
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, beta: _Factor = 1, alpha: _Factor = 1
) -> Tensor:
    """Return beta * input + alpha * (batch1 @ batch2), batch by batch (`mindspore.ops.baddbmm`).

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((2, 1, 1))
        >>> print(ms.ops.baddbmm(x, ms.ops.ones((2, 1, 3)), ms.ops.ones((2, 3, 1))).shape)
        (2, 1, 1)
    """
    return _scaled(input, beta) + _scaled(bmm(batch1, batch2), alpha)


@cached_call
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: _Factor = 1, alpha: _Factor = 1
) -> Tensor:
    """Return beta * input + alpha * (mat @ vec) (`mindspore.ops.addmv`).

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.addmv(ms.ops.ones((2,)), ms.ops.ones((2, 3)), ms.ops.ones((3,))))
        [4. 4.]
    """
    return _scaled(input, beta) + _scaled(mv(mat, vec), alpha)


@tensor_method("addmv")
@cached_call
def _tensor_addmv(
    self: Tensor, mat: Tensor, vec: Tensor, beta: _Factor = 1, alpha: _Factor = 1
) -> Tensor:
    """Return beta * self + alpha * (mat @ vec); see `ops.addmv`."""
    return addmv(self, mat, vec, beta=beta, alpha=alpha)


@tensor_method("addr")
@cached_call
def addr(x: Tensor, vec1: Tensor, vec2: Tensor, beta: _Factor = 1, alpha: _Factor = 1) -> Tensor:
    """Return beta * x + alpha * outer(vec1, vec2) (`mindspore.ops.addr`).

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.addr(ms.ops.ones((1, 2)), ms.ops.ones((1,)), ms.Tensor([2.0, 3.0])))
        [[3. 4.]]
    """
    return _scaled(x, beta) + _scaled(outer(vec1, vec2), alpha)


# ---- layers -------------------------------------------------------------------------------------


@op()
def dense(input: Tensor, weight: Tensor, bias: Tensor | None):
    """Return a fully connected layer: input @ weight.T + bias (`mindspore.ops.dense`).

    Args:
        input: Tensor (..., in).
        weight: Tensor (out, in), or (in,).
        bias: Tensor (out,), or 0-d.

    Returns:
        Tensor (..., out); (...) when `weight` has one axis.

    Raises:
        ValueError: the sizes do not match.

    Examples:
        >>> import duograph as ms
        >>> x, w = ms.ops.ones((2, 3)), ms.ops.ones((4, 3))
        >>> print(ms.ops.dense(x, w, ms.ops.ones((4,))))
        [[4. 4. 4. 4.]
         [4. 4. 4. 4.]]
    """
    lead = input.shape[:-1]
    x = input if input.ndim == 2 else reshape_to(input, (math.prod(lead), input.shape[-1]))
    out = matmul_of(x, weight, False, True)
    if bias is not None:
        out = out + bias
    return out if input.ndim == 2 else reshape_to(out, (*lead, weight.shape[0]))


def _wanted_weight(input: Sequence[int], weight: Sequence[int]) -> str:
    """Return the part of an error message of `dense` that says which shapes were wanted.

    `input` and `weight` are the shapes that do not fit.
    """
    if not input or len(weight) != 2:
        return "wanted an input of (..., in) and a weight of (out, in)"
    turned = weight[0] == input[-1]
    return (
        f"wanted {weight[1]} on the last axis of the input (input.shape[-1] == weight.shape[1])"
        + (f", or a weight of (out, in), {(weight[1], weight[0])}" if turned else "")
    )


@dense.normaliser
def _(input: Tensor, weight: Tensor, bias: Tensor | None = None):
    if weight.ndim == 1:
        out = matmul(input, weight)
        return out if bias is None else out + bias
    if input.ndim == 0 or weight.ndim != 2 or input.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"dense: got input of shape {input.shape} and weight of shape {weight.shape}; "
            + _wanted_weight(input.shape, weight.shape)
        )
    if bias is not None and bias.shape not in ((weight.shape[0],), (1,), ()):
        raise ShapeError(
            f"dense: got bias of shape {bias.shape}; wanted {(weight.shape[0],)}, one number "
            f"per output"
        )
    return (input, weight, bias)


@op(name="bias_add", promote="common")
def bias_add(input_x: Tensor, bias: Tensor):
    """Add a bias to each channel, axis 1 (`mindspore.ops.bias_add`).

    Args:
        input_x: Tensor (N, C, ...).
        bias: Tensor (C,).

    Returns:
        Tensor of the shape of `input_x`.

    Raises:
        ValueError: the sizes do not match.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bias_add(ms.ops.ones((1, 2)), ms.Tensor([1.0, 2.0])))
        [[2. 3.]]
    """
    if bias.ndim != 1 or input_x.ndim < 2 or input_x.shape[1] != bias.shape[0]:
        raise ShapeError(
            f"bias_add: got input of shape {input_x.shape} and bias of shape {bias.shape}; "
            f"wanted a bias of the size of axis 1"
        )
    return input_x + reshape_to(bias, (bias.shape[0], *[1] * (input_x.ndim - 2)))


def widened(x: Tensor) -> Tensor:
    """Convert 16-bit floats to float32, in which sums are computed; return others unchanged."""
    return cast_to(x, float32) if x.dtype.is_floating and x.dtype.itemsize == 2 else x
