"""Moving elements: reshape, transpose, broadcast, slices, concatenation, padding, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType, size_of

__all__ = ["reshape", "identity", "stop_gradient"]


@op(name="reshape", composite=False)
def reshape_to(input: Tensor, shape: Sequence[int]):
    """Primitive: the same elements under another shape of the same size. Shares the buffer."""


@reshape_to.infer
def _(x, shape):
    if size_of(shape) != x.size:
        raise ShapeError(f"reshape: got shape {x.shape} of {x.size} elements; wanted {tuple(shape)}")
    return TensorType.of(tuple(shape), x.dtype)


@reshape_to.reference
def _(x, shape):
    return np.reshape(x, shape)


@reshape_to.bprop
def _(x, out, dout, shape):
    return (reshape_to(dout, x.shape),)


def reshape(input: Tensor, shape: Sequence[int] | int) -> Tensor:
    """The same elements, in row-major order, under another shape (`mindspore.ops.reshape`).

    Args:
        input: Tensor of any shape and dtype.
        shape: ints; one of them may be -1 and is then worked out from the size.

    Returns:
        Tensor of that shape, sharing the buffer.

    Raises:
        ValueError: the sizes differ, or more than one -1.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.reshape(ms.Tensor([1, 2, 3, 4]), (2, -1))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    wanted = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    return reshape_to(input, resolve_shape(input.shape, wanted))  # type: ignore[no-any-return]


def resolve_shape(have: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """`wanted` with its -1 worked out.

    Raises:
        ShapeError: more than one -1, or a size that does not divide.
    """
    if -1 not in wanted:
        return tuple(wanted)
    rest = size_of([n for n in wanted if n != -1])
    total = size_of(have)
    if list(wanted).count(-1) > 1 or (rest == 0 and total != 0) or (rest and total % rest):
        raise ShapeError(
            f"reshape: got shape {tuple(have)} of {total} elements and the wanted shape "
            f"{tuple(wanted)}; wanted at most one -1 and a size that divides"
        )
    return tuple((total // rest if rest else 0) if n == -1 else n for n in wanted)


@op(name="identity", primitive="Identity", composite=False)
def identity(x: Tensor):
    """A tensor of the same value (`mindspore.ops.identity`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.identity(ms.Tensor([1, 2]))
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """


@identity.infer
def _(x):
    return x


@identity.reference
def _(x):
    return np.array(x)


@identity.bprop
def _(x, out, dout):
    return (dout,)


@op(name="stop_gradient", primitive="StopGradient", composite=False, differentiable=False)
def stop_gradient(value: Tensor):
    """The same value, through which no gradient flows (`mindspore.ops.stop_gradient`).

    Examples:
        >>> import duograph as ms
        >>> ms.grad(lambda x: x * ms.ops.stop_gradient(x))(ms.Tensor(3.0))
        Tensor(shape=[], dtype=Float32, value= 3.0)
    """


@stop_gradient.infer
def _(x):
    return x


@stop_gradient.reference
def _(x):
    return np.array(x)
