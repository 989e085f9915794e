"""Activation layers of `duograph.mint.nn`.

`mint/nn/__init__.py` exports them. Each layer holds its arguments and calls one function of
`functional`.
"""

from __future__ import annotations

from ....dtype import DTypeLike, float32
from ....nn import _check
from ....nn.cell import Cell
from ....parameter import Parameter
from ....tensor import Tensor
from ..._arguments import Number
from .. import functional as F

__all__ = [
    "ELU", "GELU", "GLU", "Hardtanh", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "ReLU6", "SELU",
    "SiLU", "Sigmoid", "Softmax", "Tanh", "Threshold",
]  # fmt: skip


class Sigmoid(Cell):
    """``1 / (1 + exp(-x))`` (`mindspore.mint.nn.Sigmoid`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Sigmoid()(Tensor([0.0])))
        [0.5]
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Tanh(Cell):
    """The hyperbolic tangent (`mindspore.mint.nn.Tanh`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Tanh()(Tensor([0.0])))
        [0.]
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class LogSigmoid(Cell):
    """The logarithm of the sigmoid (`mindspore.mint.nn.LogSigmoid`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.LogSigmoid()(Tensor([0.0])))
        [-0.6931472]
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class SELU(Cell):
    """The scaled exponential linear unit (`mindspore.mint.nn.SELU`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.SELU()(Tensor([0.0])))
        [0.]
    """

    def construct(self, input: Tensor) -> Tensor:
        return F.selu(input)


class Mish(Cell):
    """``x * tanh(softplus(x))`` (`mindspore.mint.nn.Mish`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Mish()(Tensor([0.0])))
        [0.]
    """

    def construct(self, input: Tensor) -> Tensor:
        return F.mish(input)


class ReLU6(Cell):
    """Elements limited to the range from 0 to 6 (`mindspore.mint.nn.ReLU6`).

    Args:
        inplace: whether the input itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.ReLU6()(Tensor([-1.0, 3.0, 9.0])))
        [0. 3. 6.]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = _check.boolean("ReLU6", "inplace", inplace)

    def construct(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class SiLU(Cell):
    """``x * sigmoid(x)`` (`mindspore.mint.nn.SiLU`).

    Args:
        inplace: whether the input itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.SiLU()(Tensor([0.0])))
        [0.]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = _check.boolean("SiLU", "inplace", inplace)

    def construct(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class ELU(Cell):
    """Elements; ``alpha * (exp(x) - 1)`` for those below 0 (`mindspore.mint.nn.ELU`).

    Args:
        alpha: factor of the negative part.
        inplace: whether the input itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.ELU()(Tensor([0.0, 1.0])))
        [0. 1.]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = _check.real("ELU", "alpha", alpha)
        self.inplace = _check.boolean("ELU", "inplace", inplace)

    def construct(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class Hardtanh(Cell):
    """Elements limited to the range from `min_val` to `max_val` (`mindspore.mint.nn.Hardtanh`).

    Args:
        min_val, max_val: the bounds.
        inplace: whether the input itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Hardtanh()(Tensor([-3.0, 0.5])))
        [-1.   0.5]
    """

    def __init__(
        self, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False
    ) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = _check.boolean("Hardtanh", "inplace", inplace)

    def construct(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Threshold(Cell):
    """Elements above a threshold; `value` in place of the others (`mindspore.mint.nn.Threshold`).

    Args:
        threshold: the threshold.
        value: what takes the place of elements up to it.
        inplace: whether the input itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Threshold(1, 20)(Tensor([0.5, 2.0])))
        [20.  2.]
    """

    def __init__(self, threshold: Number, value: Number, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = _check.boolean("Threshold", "inplace", inplace)

    def construct(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class GELU(Cell):
    """The Gaussian error linear unit (`mindspore.mint.nn.GELU`).

    Args:
        approximate: ``"none"`` for the error function, or ``"tanh"``.

    Raises:
        ValueError: another `approximate`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.GELU()(Tensor([0.0])))
        [0.]
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = _check.one_of("GELU", "approximate", approximate, ("none", "tanh"))

    def construct(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class GLU(Cell):
    """The first half of an axis times the sigmoid of the second half (`mindspore.mint.nn.GLU`).

    Args:
        dim: axis of an even length.

    Raises:
        ValueError: an input whose axis has an odd length.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.GLU()(Tensor([4.0, 0.0])))
        [2.]
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(Cell):
    """The softmax along an axis (`mindspore.mint.nn.Softmax`).

    Args:
        dim: axis; None is axis 0 of inputs with 0, 1 or 3 axes, and axis 1 of others.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.Softmax()(Tensor([0.0, 0.0])))
        [0.5 0.5]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(Cell):
    """The logarithm of the softmax along an axis (`mindspore.mint.nn.LogSoftmax`).

    Args:
        dim: axis; None is axis 0 of inputs with 0, 1 or 3 axes, and axis 1 of others.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.LogSoftmax()(Tensor([0.0, 0.0])))
        [-0.6931472 -0.6931472]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class PReLU(Cell):
    """Elements, those below 0 times a trained factor (`mindspore.mint.nn.PReLU`).

    Args:
        num_parameters: 1, or the number of channels (axis 1), each with a factor of its own.
        init: initial value of the factors.
        dtype: dtype of the factors; default float32.

    Raises:
        ValueError: fewer than 1 parameter, or an input with another number of channels.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.PReLU()(Tensor([-4.0, 2.0])))
        [-1.  2.]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = _check.positive_int("PReLU", "num_parameters", num_parameters)
        values = [_check.real("PReLU", "init", init)] * num_parameters
        self.weight = Parameter(Tensor(values, float32 if dtype is None else dtype), name="weight")

    def construct(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)
