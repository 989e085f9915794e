"""Primitive classes of matmuls and bias addition.

Users construct them. They convert MindSpore's constructor arguments to attributes of an op and
compute nothing themselves.
"""

from __future__ import annotations

from ..errors import ArgumentError, ShapeError
from ..tensor import Tensor
from . import linalg
from .data_formats import wanted_format
from .primitive import Primitive

__all__ = ["MatMul", "BatchMatMul", "BiasAdd"]


class MatMul(Primitive):
    """Matmul of two matrices: `MatMul(transpose_a=False, transpose_b=False)(x, y)`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((2, 3))
        >>> ms.ops.MatMul(transpose_b=True)(x, x).shape
        (2, 2)
    """

    op = linalg.matmul_of
    _ndim = 2

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__()
        for key, value in (("transpose_a", transpose_a), ("transpose_b", transpose_b)):
            if not isinstance(value, bool):
                raise ArgumentError(f"{self.name}: got {key}={value!r}; wanted True or False")
        self.transpose_a = transpose_a
        self.transpose_b = transpose_b

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix product of `x` and `y`.

        The constructor's `transpose_a` and `transpose_b` say whether to transpose `x` and `y`
        first.
        """
        if self._ndim == 2 and (x.ndim != 2 or y.ndim != 2):
            raise ShapeError(f"MatMul: got shapes {x.shape} and {y.shape}; wanted two axes each")
        return linalg.matmul_of(x, y, self.transpose_a, self.transpose_b)


class BatchMatMul(MatMul):
    """Batched matmul over the last two axes.

    `BatchMatMul(transpose_a=False, transpose_b=False)(x, y)`; the leading axes broadcast.
    """

    _ndim = 0


class BiasAdd(Primitive):
    """Addition of a bias to each channel: `BiasAdd(data_format="NCHW")(x, b)`."""

    op = linalg.bias_add

    def __init__(self, data_format: str = "NCHW") -> None:
        super().__init__()
        self.data_format = wanted_format("BiasAdd", data_format, ("NCHW", "NHWC", "NCDHW"))

    def __call__(self, x: Tensor, b: Tensor) -> Tensor:
        """Return `x` plus bias `b`, which has one element per channel."""
        return x + b if self.data_format == "NHWC" else linalg.bias_add(x, b)
