"""Activation functions and dropout of `duograph.mint.nn.functional`.

`functional/__init__.py` exports them, and the layers call them. Every function calls
`duograph.ops`; with `inplace`, the result also becomes the value of the input.
"""

from __future__ import annotations

from .... import ops as _ops
from ....dtype import DTypeLike
from ....tensor import Tensor
from ..._arguments import Number, converted

__all__ = [
    "dropout", "dropout2d", "elu", "elu_", "gelu", "glu", "hardtanh", "hardtanh_", "leaky_relu",
    "log_softmax", "logsigmoid", "relu6", "relu_", "selu", "sigmoid_", "silu", "softmax",
    "softplus", "threshold", "threshold_",
]  # fmt: skip


def _written(input: Tensor, out: Tensor, inplace: bool) -> Tensor:
    """Return `out`; with `inplace`, copy it into `input` and return `input`."""
    return input.copy_(out) if inplace else out


def relu_(input: Tensor) -> Tensor:
    """Set the negative elements of `input` to 0 and return it
    (`mindspore.mint.nn.functional.relu_`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([-1.0, 2.0])
        >>> print(mint.nn.functional.relu_(x), x)
        [0. 2.] [0. 2.]
    """
    return _ops.relu(input, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the elements, limited to the range from 0 to 6
    (`mindspore.mint.nn.functional.relu6`).

    Args:
        input: real Tensor.
        inplace: whether `input` itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.relu6(Tensor([-1.0, 3.0, 9.0])))
        [0. 3. 6.]
    """
    return _written(input, _ops.relu6(input), inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return each element times its sigmoid (`mindspore.mint.nn.functional.silu`).

    Args:
        input: floating Tensor.
        inplace: whether `input` itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.silu(Tensor([0.0, 1.0])))
        [0.        0.7310586]
    """
    return _written(input, _ops.silu(input), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the elements, ``alpha * (exp(x) - 1)`` for those below 0
    (`mindspore.mint.nn.functional.elu`).

    Args:
        input: floating Tensor.
        alpha: factor of the negative part.
        inplace: whether `input` itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.elu(Tensor([0.0, 1.0])))
        [0. 1.]
    """
    return _written(input, _ops.elu(input, alpha), inplace)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Apply `elu` to `input` in place and return it (`mindspore.mint.nn.functional.elu_`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.elu_(Tensor([0.0, 1.0])))
        [0. 1.]
    """
    return elu(input, alpha, True)


def hardtanh(
    input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False
) -> Tensor:
    """Return the elements, limited to the range from `min_val` to `max_val`
    (`mindspore.mint.nn.functional.hardtanh`).

    Args:
        input: real Tensor.
        min_val, max_val: the bounds.
        inplace: whether `input` itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.hardtanh(Tensor([-3.0, 0.5, 3.0])))
        [-1.   0.5  1. ]
    """
    return _written(input, _ops.hardtanh(input, min_val, max_val), inplace)


def hardtanh_(input: Tensor, min_val: Number = -1, max_val: Number = 1) -> Tensor:
    """Apply `hardtanh` to `input` in place and return it
    (`mindspore.mint.nn.functional.hardtanh_`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.hardtanh_(Tensor([-3.0, 0.5])))
        [-1.   0.5]
    """
    return hardtanh(input, min_val, max_val, True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Return the elements, those below 0 times a factor
    (`mindspore.mint.nn.functional.leaky_relu`).

    Args:
        input: real Tensor.
        negative_slope: the factor.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.leaky_relu(Tensor([-100.0, 2.0])))
        [-1.  2.]
    """
    return _ops.leaky_relu(input, negative_slope)


def threshold(input: Tensor, threshold: Number, value: Number, inplace: bool = False) -> Tensor:
    """Return the elements above a threshold, and a value in place of the others
    (`mindspore.mint.nn.functional.threshold`).

    Args:
        input: real Tensor.
        threshold: the threshold.
        value: what takes the place of elements up to the threshold.
        inplace: whether `input` itself is set to the result.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.threshold(Tensor([0.5, 2.0]), 1, 20))
        [20.  2.]
    """
    return _written(input, _ops.threshold(input, threshold, value), inplace)


def threshold_(input: Tensor, threshold: Number, value: Number) -> Tensor:
    """Replace the elements of `input` up to a threshold by a value, and return it
    (`mindspore.mint.nn.functional.threshold_`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.threshold_(Tensor([0.5, 2.0]), 1, 20))
        [20.  2.]
    """
    return _written(input, _ops.threshold(input, threshold, value), True)


def sigmoid_(input: Tensor) -> Tensor:
    """Set `input` to its sigmoid and return it (`mindspore.mint.nn.functional.sigmoid_`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.sigmoid_(Tensor([0.0])))
        [0.5]
    """
    return _written(input, _ops.sigmoid(input), True)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """Return the Gaussian error linear unit of each element
    (`mindspore.mint.nn.functional.gelu`).

    Args:
        input: floating Tensor.
        approximate: ``"none"`` for the error function, or ``"tanh"``.

    Raises:
        ValueError: another `approximate`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.gelu(Tensor([0.0, 1.0])))
        [0.         0.84134475]
    """
    return _ops.gelu(input, approximate)


def selu(input: Tensor) -> Tensor:
    """Return the scaled exponential linear unit of each element
    (`mindspore.mint.nn.functional.selu`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.selu(Tensor([0.0, 1.0])))
        [0.       1.050701]
    """
    return _ops.selu(input)


def logsigmoid(input: Tensor) -> Tensor:
    """Return the logarithm of the sigmoid of each element, without underflow
    (`mindspore.mint.nn.functional.logsigmoid`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.logsigmoid(Tensor([0.0])))
        [-0.6931472]
    """
    return _ops.logsigmoid(input)


def softplus(input: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor:
    """Return ``log(1 + exp(beta * x)) / beta`` for each element
    (`mindspore.mint.nn.functional.softplus`).

    Args:
        input: floating Tensor.
        beta: sharpness of the transition, not 0.
        threshold: above this value of ``beta * x`` the function is linear.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.softplus(Tensor([0.0, 30.0])))
        [ 0.6931472 30.       ]
    """
    return _ops.softplus(input, float(beta), float(threshold))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of an axis times the sigmoid of the second half
    (`mindspore.mint.nn.functional.glu`).

    Args:
        input: floating Tensor.
        dim: axis of an even length.

    Raises:
        ValueError: an axis out of range, or of an odd length.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.glu(Tensor([4.0, 0.0])))
        [2.]
    """
    return _ops.glu(input, dim)


def _softmax_axis(dim: int | None, ndim: int) -> int:
    """Return the axis of a softmax: `dim`, or for None 0 if `ndim` is 0, 1 or 3, else 1."""
    if dim is not None:
        return dim
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the softmax along an axis (`mindspore.mint.nn.functional.softmax`).

    Args:
        input: floating Tensor, unless `dtype` is one.
        dim: axis; None is axis 0 of tensors with 0, 1 or 3 axes, and axis 1 of others.
        dtype: dtype in which to compute.

    Raises:
        TypeError: the elements are not floating.
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.softmax(Tensor([0.0, 0.0]), dim=0))
        [0.5 0.5]
    """
    return _ops.softmax(converted(input, dtype), _softmax_axis(dim, input.ndim))


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return the logarithm of the softmax along an axis
    (`mindspore.mint.nn.functional.log_softmax`).

    Args:
        input: floating Tensor, unless `dtype` is one.
        dim: axis; None is axis 0 of tensors with 0, 1 or 3 axes, and axis 1 of others.
        dtype: dtype in which to compute.

    Raises:
        TypeError: the elements are not floating.
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.log_softmax(Tensor([0.0, 0.0]), dim=0))
        [-0.6931472 -0.6931472]
    """
    return _ops.log_softmax(converted(input, dtype), _softmax_axis(dim, input.ndim))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to 0 with probability `p`, and divide the others by ``1 - p``
    (`mindspore.mint.nn.functional.dropout`).

    Args:
        input: floating Tensor.
        p: probability, from 0 to 1.
        training: if False, the elements stay as they are.
        inplace: whether `input` itself is set to the result.

    Raises:
        ValueError: `p` outside [0, 1].

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.dropout(Tensor([1.0, 2.0]), 0.5, training=False))
        [1. 2.]
    """
    return _written(input, _ops.dropout(input, p, training), inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set whole channels of (N, C, H, W) to 0 with probability `p`, and divide the others by
    ``1 - p`` (`mindspore.mint.nn.functional.dropout2d`).

    Args:
        input: floating Tensor (N, C, H, W) or (N, C, L).
        p: probability, from 0 to 1.
        training: if False, the elements stay as they are.
        inplace: whether `input` itself is set to the result.

    Raises:
        ValueError: `p` outside [0, 1].

    Examples:
        >>> from duograph import mint
        >>> mint.nn.functional.dropout2d(mint.ones((1, 2, 3, 3))).shape
        (1, 2, 3, 3)
    """
    return _written(input, _ops.dropout2d(input, p, training), inplace)
