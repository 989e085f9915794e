"""Activation layers, and `get_activation`, which finds one by name.

Each layer calls public ops; none of them has kernels of its own.
"""

from __future__ import annotations

from ... import ops
from ...advice import meant
from ...call_errors import explaining
from ...common.initializer import initializer
from ...dtype import float32
from ...errors import ArgumentError, UnknownNameError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from ..cell import Cell
from .softmax import LogSoftmax, Softmax, Softmax2d, Softmin

__all__ = [
    "ReLU",
    "ReLU6",
    "LeakyReLU",
    "PReLU",
    "RReLU",
    "ELU",
    "CELU",
    "SeLU",
    "GELU",
    "FastGelu",
    "SiLU",
    "Sigmoid",
    "LogSigmoid",
    "Tanh",
    "Tanhshrink",
    "Hardtanh",
    "Softplus",
    "Softsign",
    "SoftShrink",
    "HShrink",
    "HSwish",
    "HSigmoid",
    "Mish",
    "Threshold",
    "GLU",
    "get_activation",
]


class ReLU(Cell):
    """`max(x, 0)` (`mindspore.nn.ReLU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ReLU()(ms.Tensor([-1.0, 2.0])))
        [0. 2.]
    """

    relu = Operator("ReLU")

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(x)


class ReLU6(Cell):
    """`min(max(x, 0), 6)` (`mindspore.nn.ReLU6`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ReLU6()(ms.Tensor([-1.0, 2.0])))
        [0. 2.]
    """

    relu6 = Operator("ReLU6")

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu6(x)


class LeakyReLU(Cell):
    """`x` where positive, else `alpha * x`; alpha 0.2 by default (`mindspore.nn.LeakyReLU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LeakyReLU()(ms.Tensor([-1.0, 2.0])))
        [-0.2  2. ]
    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = _check.real("LeakyReLU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        return ops.leaky_relu(x, self.alpha)


class PReLU(Cell):
    """`x` where positive, else `w * x` with a trained `w` (`mindspore.nn.PReLU`).

    Args:
        channel: 1, or the number of channels (axis 1).
        w: initial value: a number, a list or a Tensor.

    Raises:
        ValueError: `channel` below 1, or a Tensor `w` of another length.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.PReLU()(ms.Tensor([-1.0, 2.0])))
        [-0.25  2.  ]
    """

    prelu = Operator("PReLU")

    def __init__(self, channel: int = 1, w: float | list[float] | Tensor = 0.25) -> None:
        super().__init__()
        _check.positive_int("PReLU", "channel", channel)
        if isinstance(w, (int, float)):
            value = initializer(float(w), (channel,))
        else:
            value = w if isinstance(w, Tensor) else Tensor(w, float32)
            value = initializer(value, (channel,))
        self.w = Parameter(value, name="a")

    def construct(self, x: Tensor) -> Tensor:
        return ops.prelu(x, self.w)

    def extend_repr(self) -> str:
        return f"a={self.w}"


class RReLU(Cell):
    """Leaky ReLU with a random negative slope for every element (`mindspore.nn.RReLU`).

    The slope is uniform in [lower, upper). As in MindSpore, it is random outside training too.

    Raises:
        ValueError: `lower` above `upper`.

    Examples:
        >>> import duograph as ms
        >>> y = ms.nn.RReLU(0.5, 1.0)(ms.Tensor([-1.0, 2.0]))
        >>> bool(-1 <= y[0] <= -0.5)
        True
    """

    sign = Operator("Sign")

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower = _check.real("RReLU", "lower", lower)
        self.upper = _check.in_range("RReLU", "upper", upper, lower)

    def construct(self, x: Tensor) -> Tensor:
        slope = ops.rand(x.shape, dtype=x.dtype) * (self.upper - self.lower) + self.lower
        return ops.where(x >= 0, x, x * slope)


class ELU(Cell):
    """`x` where positive, else `alpha * (exp(x) - 1)` (`mindspore.nn.ELU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ELU()(ms.Tensor([-1.0, 2.0])))
        [-0.63212055  2.        ]
    """

    elu = Operator("Elu", lambda c: {"alpha": c.alpha})

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = _check.real("ELU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        return ops.elu(x, self.alpha)


class CELU(Cell):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))` (`mindspore.nn.CELU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.CELU()(ms.Tensor([-1.0, 2.0])))
        [-0.63212055  2.        ]
    """

    celu = Operator("CeLU", lambda c: {"alpha": c.alpha})

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = _check.real("CELU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        return ops.celu(x, self.alpha)


class SeLU(Cell):
    """Scaled ELU (`mindspore.nn.SeLU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.SeLU()(ms.Tensor([-1.0, 2.0])))
        [-1.1113307  2.101402 ]
    """

    selu = Operator("SeLU")

    def construct(self, x: Tensor) -> Tensor:
        return ops.selu(x)


class GELU(Cell):
    """`x * Phi(x)`, by default in the tanh approximation (`mindspore.nn.GELU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.GELU()(ms.Tensor([1.0])))
        [0.841192]
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = _check.boolean("GELU", "approximate", approximate)

    def construct(self, x: Tensor) -> Tensor:
        return ops.gelu(x, "tanh" if self.approximate else "none")


class FastGelu(Cell):
    """`x / (1 + exp(-1.702 |x|)) * exp(0.851 (x - |x|))` (`mindspore.nn.FastGelu`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.FastGelu()(ms.Tensor([-1.0, 2.0])))
        [-0.15420423  1.9356586 ]
    """

    fast_gelu = Operator("FastGeLU")

    def construct(self, x: Tensor) -> Tensor:
        size = ops.abs(x)
        return x / (1.0 + ops.exp(-1.702 * size)) * ops.exp(0.851 * (x - size))


class SiLU(Cell):
    """`x * sigmoid(x)` (`mindspore.nn.SiLU`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.SiLU()(ms.Tensor([-1.0, 2.0])).round(decimals=4))
        [-0.2689  1.7616]
    """

    def construct(self, x: Tensor) -> Tensor:
        return ops.silu(x)


class Sigmoid(Cell):
    """`1 / (1 + exp(-x))` (`mindspore.nn.Sigmoid`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Sigmoid()(ms.Tensor([-1.0, 2.0])).round(decimals=4))
        [0.2689 0.8808]
    """

    sigmoid = Operator("Sigmoid")

    def construct(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)


class LogSigmoid(Cell):
    """`log(sigmoid(x))`, without overflow (`mindspore.nn.LogSigmoid`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LogSigmoid()(ms.Tensor([-1.0, 2.0])).round(decimals=4))
        [-1.3133 -0.1269]
    """

    mul = Operator("Mul")
    exp = Operator("Exp")
    add = Operator("Add")
    rec = Operator("Reciprocal")
    log = Operator("Log")

    def construct(self, x: Tensor) -> Tensor:
        return -ops.softplus(-x)


class Tanh(Cell):
    """Hyperbolic tangent (`mindspore.nn.Tanh`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Tanh()(ms.Tensor([-1.0, 2.0])))
        [-0.7615942  0.9640276]
    """

    tanh = Operator("Tanh")

    def construct(self, x: Tensor) -> Tensor:
        return ops.tanh(x)


class Tanhshrink(Cell):
    """`x - tanh(x)` (`mindspore.nn.Tanhshrink`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Tanhshrink()(ms.Tensor([-1.0, 2.0])))
        [-0.23840582  1.0359724 ]
    """

    def construct(self, x: Tensor) -> Tensor:
        return x - ops.tanh(x)


class Hardtanh(Cell):
    """`x` clamped to [min_val, max_val] (`mindspore.nn.Hardtanh`).

    Raises:
        ValueError: `min_val` is not below `max_val`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Hardtanh()(ms.Tensor([-1.0, 2.0])))
        [-1.  1.]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = _check.real("Hardtanh", "min_val", min_val)
        self.max_val = _check.in_range("Hardtanh", "max_val", max_val, min_val, open_low=True)

    def construct(self, x: Tensor) -> Tensor:
        return ops.clamp(x, self.min_val, self.max_val)


class Softplus(Cell):
    """`log(1 + exp(x))` (`mindspore.ops.softplus` as a layer).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Softplus()(ms.Tensor([-1.0, 2.0])).round(decimals=4))
        [0.3133 2.1269]
    """

    def construct(self, x: Tensor) -> Tensor:
        return ops.softplus(x)


class Softsign(Cell):
    """`x / (1 + |x|)` (`mindspore.nn.Softsign`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Softsign()(ms.Tensor([-1.0, 2.0])))
        [-0.5        0.6666667]
    """

    softsign = Operator("Softsign")

    def construct(self, x: Tensor) -> Tensor:
        return x / (ops.abs(x) + 1.0)


class SoftShrink(Cell):
    """Soft thresholding: `sign(x) * max(|x| - lambd, 0)` (`mindspore.nn.SoftShrink`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.SoftShrink()(ms.Tensor([-1.0, 2.0])))
        [-0.5  1.5]
    """

    softshrink = Operator("SoftShrink", lambda c: {"lambd": c.lambd})

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = _check.in_range("SoftShrink", "lambd", lambd, 0)

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(x - self.lambd) - ops.relu(-x - self.lambd)


class HShrink(Cell):
    """`x` where `|x| > lambd`, else 0 (`mindspore.nn.HShrink`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.HShrink()(ms.Tensor([-1.0, 2.0])))
        [-1.  2.]
    """

    hshrink = Operator("HShrink", lambda c: {"lambd": c.lambd})

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = _check.real("HShrink", "lambd", lambd)

    def construct(self, x: Tensor) -> Tensor:
        return ops.where(ops.abs(x) > self.lambd, x, ops.zeros_like(x))


class HSwish(Cell):
    """`x * relu6(x + 3) / 6` (`mindspore.nn.HSwish`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.HSwish()(ms.Tensor([-1.0, 2.0])))
        [-0.33333334  1.6666666 ]
    """

    hswish = Operator("HSwish")

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        return ops.hardswish(x)


class HSigmoid(Cell):
    """`relu6(x + 3) / 6` (`mindspore.nn.HSigmoid`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.HSigmoid()(ms.Tensor([-1.0, 2.0])))
        [0.3333333 0.8333334]
    """

    hsigmoid = Operator("HSigmoid")

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        return ops.hardsigmoid(x)


class Mish(Cell):
    """`x * tanh(softplus(x))` (`mindspore.nn.Mish`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Mish()(ms.Tensor([-1.0, 2.0])).round(decimals=4))
        [-0.3034  1.944 ]
    """

    mish = Operator("Mish")

    def construct(self, x: Tensor) -> Tensor:
        return x * ops.tanh(ops.softplus(x))


class Threshold(Cell):
    """`x` where it is above `threshold`, else `value` (`mindspore.nn.Threshold`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Threshold(0.5, 9.0)(ms.Tensor([-1.0, 2.0])))
        [9. 2.]
    """

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = _check.real("Threshold", "threshold", threshold)
        self.value = _check.real("Threshold", "value", value)

    def construct(self, x: Tensor) -> Tensor:
        return ops.where(x > self.threshold, x, ops.full_like(x, self.value))


class GLU(Cell):
    """First half of an axis times the sigmoid of the second (`mindspore.nn.GLU`).

    Raises:
        ValueError: the axis does not exist, or its size is odd.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.GLU()(ms.Tensor([1.0, 0.0])))
        [0.5]
    """

    sigmoid = Operator("Sigmoid")
    spilt = Operator("Split", lambda c: {"axis": c.axis, "output_num": 2})

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return ops.glu(x, self.axis)


_ACTIVATIONS: dict[str, type[Cell]] = {
    "softmin": Softmin,
    "softmax": Softmax,
    "softmax2d": Softmax2d,
    "logsoftmax": LogSoftmax,
    "relu": ReLU,
    "relu6": ReLU6,
    "rrelu": RReLU,
    "silu": SiLU,
    "tanh": Tanh,
    "tanhshrink": Tanhshrink,
    "hardtanh": Hardtanh,
    "gelu": GELU,
    "fast_gelu": FastGelu,
    "elu": ELU,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "prelu": PReLU,
    "leakyrelu": LeakyReLU,
    "hswish": HSwish,
    "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink,
    "hshrink": HShrink,
    "threshold": Threshold,
    "mish": Mish,
}


@explaining
def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Return a new activation layer by its name; None for None (`mindspore.nn.get_activation`).

    `prim_name` is the caller's name for error messages.

    Raises:
        KeyError: no activation has that name.
        TypeError: `name` is not a string.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.get_activation("relu")
        ReLU()
    """
    if name is None:
        return None
    owner = prim_name or "get_activation"
    if not isinstance(name, str):
        raise ArgumentError(f"{owner}: got activation {name!r}; wanted a name")
    if name not in _ACTIVATIONS:
        raise UnknownNameError(f"{owner}: got activation={name!r}; {meant(name, [*_ACTIVATIONS])}")
    return _ACTIVATIONS[name]()
