"""Elementwise arithmetic and math."""

from __future__ import annotations

import numpy as np

from ..op import op
from ..tensor import Tensor
from .broadcasting import elementwise_type, unbroadcast

__all__ = ["add", "mul"]


@op(
    method="add", operators=["__add__"], reflected=["__radd__"], primitive="Add", promote="common",
    composite=False,
)  # fmt: skip
def add(input: Tensor, other: Tensor):
    """Sum of two tensors, or of a tensor and a number, elementwise with broadcasting (`mindspore.ops.add`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.add(ms.Tensor([1.0, 2.0]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  3.00000000e+00])
    """


@add.infer
def _(x, y):
    return elementwise_type("add", x, y)


@add.reference
def _(x, y):
    return np.add(x, y)


@add.scalar
def _(s, x, y):
    return x + y


@add.bprop
def _(x, y, out, dout):
    return unbroadcast(dout, x), unbroadcast(dout, y)


@op(
    method="mul", operators=["__mul__"], reflected=["__rmul__"], primitive="Mul", promote="common",
    composite=False,
)  # fmt: skip
def mul(input: Tensor, other: Tensor):
    """Product of two tensors, or of a tensor and a number, elementwise with broadcasting (`mindspore.ops.mul`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.mul(ms.Tensor([1.0, 2.0]), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  6.00000000e+00])
    """


@mul.infer
def _(x, y):
    return elementwise_type("mul", x, y)


@mul.reference
def _(x, y):
    return np.multiply(x, y)


@mul.scalar
def _(s, x, y):
    return x * y


@mul.bprop
def _(x, y, out, dout):
    return unbroadcast(mul(dout, y), x), unbroadcast(mul(dout, x), y)
