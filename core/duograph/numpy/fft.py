"""Discrete Fourier transforms with NumPy's signatures (`mindspore.numpy.fft`).

User code imports it. Each function is a row of a table that names the transform of `duograph.ops`;
nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType

from .. import ops as _ops
from ..dtype import DTypeLike
from ..ops.refusals import refusing as _refusing
from ..tensor import Tensor
from .operands import Ints, TensorLike, tensor_of

# fmt: off
__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]
# fmt: on

_NORM = """norm: ``"backward"`` (None) divides the inverse by the number of points,
            ``"forward"`` the transform, ``"ortho"`` each by its square root."""
_ONE = """{summary}

    Args:
        a: array-like.
        n: number of points along the axis; None takes its size. Other sizes are cut or padded.
        axis: the axis.
        {norm}

    Returns:
        Tensor.

    Raises:
        ValueError: the axis is out of range, or `n` is less than 1.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.{name}({example}).shape)
        {shape}
    """
_SEVERAL = """{summary}

    Args:
        a: array-like.
        s: numbers of points along the axes; None takes their sizes.
        axes: the axes{default}.
        {norm}

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range, or a number of points is less than 1.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.{name}({example}).shape)
        {shape}
    """


def _named(call: Callable[..., Tensor], name: str, text: str) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = text
    return call


def _one(name: str, summary: str, size: int) -> Callable[..., Tensor]:
    """Create NumPy's function `name`, a transform along one axis, from the op of that name.

    `size` is for the example in its docstring: the result's size for four points.
    """
    transform = getattr(_ops, name)

    def call(
        a: TensorLike, n: int | None = None, axis: int = -1, norm: str | None = None
    ) -> Tensor:
        out: Tensor = transform(tensor_of(a), n, axis, norm)
        return out

    example = "[1.0, 2.0, 3.0, 4.0]"
    return _named(
        call,
        name,
        _ONE.format(summary=summary, norm=_NORM, name=name, example=example, shape=f"({size},)"),
    )


def _text_of_several(name: str, summary: str, size: int, default: str) -> str:
    return _SEVERAL.format(
        summary=summary,
        norm=_NORM,
        name=name,
        example="mnp.ones((3, 4))",
        shape=f"(3, {size})",
        default=default,
    )


def _two(name: str, summary: str, size: int) -> Callable[..., Tensor]:
    """Create NumPy's function `name`, a transform along two axes, from the op of that name.

    `size` is for the example: the result's last size for a shape of (3, 4).
    """
    transform = getattr(_ops, name)

    def call(
        a: TensorLike,
        s: Sequence[int] | None = None,
        axes: Ints = (-2, -1),
        norm: str | None = None,
    ) -> Tensor:
        out: Tensor = transform(tensor_of(a), s, axes, norm)
        return out

    return _named(call, name, _text_of_several(name, summary, size, ""))


def _all(name: str, summary: str, size: int) -> Callable[..., Tensor]:
    """Create NumPy's function `name`, a transform along all axes, from the op of that name.

    `size` is for the example: the result's last size for a shape of (3, 4).
    """
    transform = getattr(_ops, name)

    def call(
        a: TensorLike,
        s: Sequence[int] | None = None,
        axes: Ints | None = None,
        norm: str | None = None,
    ) -> Tensor:
        out: Tensor = transform(tensor_of(a), s, axes, norm)
        return out

    return _named(call, name, _text_of_several(name, summary, size, "; None is all"))


fft = _one("fft", "Return the discrete Fourier transform.", 4)
ifft = _one("ifft", "Return the inverse of `fft`.", 4)
rfft = _one("rfft", "Return the transform of real points: the frequencies from 0 up.", 3)
irfft = _one("irfft", "Return the inverse of `rfft`: real points.", 6)
hfft = _one("hfft", "Return the real transform of points with Hermitian symmetry.", 6)
ihfft = _one("ihfft", "Return the inverse of `hfft`.", 3)
fft2 = _two("fft2", "Return the discrete Fourier transform over two axes.", 4)
ifft2 = _two("ifft2", "Return the inverse of `fft2`.", 4)
rfft2 = _two("rfft2", "Return the transform of real points over two axes.", 3)
irfft2 = _two("irfft2", "Return the inverse of `rfft2`: real points.", 6)
hfft2 = _two("hfft2", "Return the real transform of Hermitian points over two axes.", 6)
ihfft2 = _two("ihfft2", "Return the inverse of `hfft2`.", 3)
fftn = _all("fftn", "Return the discrete Fourier transform over several axes.", 4)
ifftn = _all("ifftn", "Return the inverse of `fftn`.", 4)
rfftn = _all("rfftn", "Return the transform of real points over several axes.", 3)
irfftn = _all("irfftn", "Return the inverse of `rfftn`: real points.", 6)
hfftn = _all("hfftn", "Return the real transform of Hermitian points over several axes.", 6)
ihfftn = _all("ihfftn", "Return the inverse of `hfftn`.", 3)


def fftshift(x: TensorLike, axes: Ints | None = None) -> Tensor:
    """Move frequency 0 to the middle of the axes.

    Args:
        x: array-like.
        axes: the axes; None is all.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.fftshift([0, 1, 2, -2, -1]))
        [-2 -1  0  1  2]
    """
    return _ops.fftshift(tensor_of(x), axes)


def ifftshift(x: TensorLike, axes: Ints | None = None) -> Tensor:
    """Move frequency 0 from the middle of the axes to their start: the inverse of `fftshift`.

    Args:
        x: array-like.
        axes: the axes; None is all.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.ifftshift([-2, -1, 0, 1, 2]))
        [ 0  1  2 -2 -1]
    """
    return _ops.ifftshift(tensor_of(x), axes)


def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the frequencies of the results of `fft`.

    Args:
        n: number of points.
        d: distance of the points.
        dtype: element type; None is float32.

    Returns:
        Tensor of shape (n,).

    Raises:
        ValueError: `n` is less than 1.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.fftfreq(4))
        [ 0.    0.25 -0.5  -0.25]
    """
    return _ops.fftfreq(n, d, dtype)


def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the frequencies of the results of `rfft`.

    Args:
        n: number of points.
        d: distance of the points.
        dtype: element type; None is float32.

    Returns:
        Tensor of shape (n // 2 + 1,).

    Raises:
        ValueError: `n` is less than 1.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.rfftfreq(4))
        [0.   0.25 0.5 ]
    """
    return _ops.rfftfreq(n, d, dtype)


for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = _refusing(globals()[_name], __name__)
