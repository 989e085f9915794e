"""Layers of older MindSpore programs: gamma functions, determinants, diagonals of matrices, LRN.

`nn` exports them. Each calls the op of its formula.
"""

from __future__ import annotations

from ... import ops
from ...tensor import Tensor
from .. import _check
from ..cell import Cell

__all__ = [
    "DiGamma", "IGamma", "LBeta", "LGamma", "LRN", "MatDet", "MatInverse", "MatrixDiag",
    "MatrixDiagPart", "MatrixSetDiag",
]  # fmt: skip


class DiGamma(Cell):
    """Derivative of the logarithm of the gamma function (`mindspore.nn.DiGamma` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.DiGamma()(ms.Tensor([1.0])))
        [-0.5772157]
    """

    def construct(self, x: Tensor) -> Tensor:
        return ops.digamma(x)


class LGamma(Cell):
    """Logarithm of the absolute gamma function (`mindspore.nn.LGamma` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LGamma()(ms.Tensor([1.0, 3.0])))
        [0.        0.6931472]
    """

    def construct(self, x: Tensor) -> Tensor:
        return ops.lgamma(x)


class LBeta(Cell):
    """Logarithm of the beta function of two Tensors (`mindspore.nn.LBeta` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LBeta()(ms.Tensor([1.0]), ms.Tensor([1.0])))
        [0.]
    """

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.lgamma(x) + ops.lgamma(y) - ops.lgamma(x + y)


class IGamma(Cell):
    """Lower regularised incomplete gamma function (`mindspore.nn.IGamma` of older releases).

    Inputs: a and x. Outputs: the integral of the gamma function's integrand up to x, divided by the
    gamma function of a.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.IGamma()(ms.Tensor([1.0]), ms.Tensor([1.0])))
        [0.63212055]
    """

    def construct(self, a: Tensor, x: Tensor) -> Tensor:
        return ops.igamma(a, x)


class MatDet(Cell):
    """Determinants of matrices (..., n, n) (`mindspore.nn.MatDet` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MatDet()(ms.Tensor([[2.0, 0.0], [0.0, 3.0]])))
        6.0
    """

    def construct(self, a: Tensor) -> Tensor:
        return ops.det(a)


class MatInverse(Cell):
    """Inverses of matrices (..., n, n) (`mindspore.nn.MatInverse` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MatInverse()(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
        [[0.5  0.  ]
         [0.   0.25]]
    """

    def construct(self, a: Tensor) -> Tensor:
        return ops.inverse(a)


class MatrixDiag(Cell):
    """Creates matrices (..., n, n) with a Tensor (..., n) in their diagonals
    (`mindspore.nn.MatrixDiag` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MatrixDiag()(ms.Tensor([1.0, 2.0])))
        [[1. 0.]
         [0. 2.]]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.matrix_diag(input_x)


class MatrixDiagPart(Cell):
    """Diagonals of matrices (..., m, n) (`mindspore.nn.MatrixDiagPart` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MatrixDiagPart()(ms.Tensor([[1.0, 2.0], [3.0, 4.0]])))
        [1. 4.]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return ops.matrix_diag_part(input_x)


class MatrixSetDiag(Cell):
    """Replaces diagonals of matrices (..., m, n) (`mindspore.nn.MatrixSetDiag` of older releases).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MatrixSetDiag()(ms.ops.zeros((2, 2), ms.float32), ms.Tensor([1.0, 2.0])))
        [[1. 0.]
         [0. 2.]]
    """

    def construct(self, input_x: Tensor, diagonal: Tensor) -> Tensor:
        return ops.matrix_set_diag(input_x, diagonal)


class LRN(Cell):
    """Local response normalisation over neighbouring channels (Krizhevsky et al., 2012;
    `mindspore.nn.LRN`).

    Args:
        depth_radius: number of channels on each side that are summed.
        bias: number that is added to the sum.
        alpha: factor of the sum of squares.
        beta: exponent of the divisor.
        norm_region: ``"ACROSS_CHANNELS"``.

    Inputs and outputs: (N, C, H, W), floating.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: another region, or another number of axes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LRN(depth_radius=1)(ms.ops.ones((1, 3, 1, 1), ms.float32)).shape)
        (1, 3, 1, 1)
    """

    def __init__(
        self,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        self.depth_radius = _check.non_negative_int("LRN", "depth_radius", depth_radius)
        self.bias, self.alpha, self.beta = (
            _check.real("LRN", name, value)
            for name, value in (("bias", bias), ("alpha", alpha), ("beta", beta))
        )
        self.norm_region = _check.one_of("LRN", "norm_region", norm_region, ("ACROSS_CHANNELS",))

    def construct(self, x: Tensor) -> Tensor:
        return ops.lrn(x, self.depth_radius, self.bias, self.alpha, self.beta)
