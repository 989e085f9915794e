"""Discrete Fourier transforms with NumPy's signatures (`mindspore.numpy.fft`).

User code imports it. Each function calls the transform of `duograph.ops` of the same name; the
module must not compute anything itself.
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

_NORM = """norm: which results are divided by the number of points: those of inverse transforms for
            ``"backward"`` or None, those of the others for ``"forward"``. For ``"ortho"``, all are
            divided by its square root."""
_ONE = """{summary}

    Args:
        a: array-like.
        n: {points}
        axis: axis that is transformed.
        {norm}

    Returns:
        {result} Tensor.

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
        s: {points}
        axes: axes that are transformed, in the order of `s`{default}.
        {norm}

    Returns:
        {result} Tensor.

    Raises:
        ValueError: an axis is out of range, or a number of points is less than 1.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fft.{name}({example}).shape)
        {shape}
    """


# What the docstrings say of `n`, the argument of transforms along one axis, and of `s`, that of
# transforms along several. Transforms with real results (`hfft`, and the inverse of `rfft`) take
# one half of the points and return all of them.
_POINTS = """number of points that are transformed; None means the size of the axis. A longer axis
            is cut, a shorter one is padded with zeros."""
_REAL_POINTS = """number of points of the result along the axis; None means 2 * (size - 1) for an
            input axis of that size. An axis longer than n // 2 + 1 is cut, a shorter one is padded
            with zeros."""
_SIZES = """number of points that are transformed, for each of the axes; None means the sizes of the
            axes. A longer axis is cut, a shorter one is padded with zeros."""
_REAL_SIZES = """size of the result, for each of the axes; None means the input's sizes, but
            2 * (size - 1) for the last of the axes."""


def _is_real(name: str) -> bool:
    """Return whether the transform `name` has real results."""
    return name.startswith(("irfft", "hfft"))


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
        _ONE.format(
            summary=summary,
            points=_REAL_POINTS if _is_real(name) else _POINTS,
            norm=_NORM,
            result="Real" if _is_real(name) else "Complex",
            name=name,
            example=example,
            shape=f"({size},)",
        ),
    )


def _text_of_several(name: str, summary: str, size: int, default: str) -> str:
    return _SEVERAL.format(
        summary=summary,
        points=_REAL_SIZES if _is_real(name) else _SIZES,
        norm=_NORM,
        result="Real" if _is_real(name) else "Complex",
        name=name,
        example="mnp.ones((3, 4))",
        shape=f"(3, {size})",
        default=default,
    )


def _two(name: str, summary: str, size: int) -> Callable[..., Tensor]:
    """Create NumPy's function `name`, a transform along two axes, from the op of that name.

    `summary` and `size` are for its docstring: `size` is that of the last axis of the result, for
    an example of shape (3, 4).
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

    `summary` and `size` are for its docstring: `size` is that of the last axis of the result, for
    an example of shape (3, 4).
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

    return _named(
        call,
        name,
        _text_of_several(
            name,
            summary,
            size,
            "; None means all,\n            or with `s` as many of the last axes as `s` has items",
        ),
    )


fft = _one("fft", "Return the discrete Fourier transform along one axis.", 4)
ifft = _one("ifft", "Return the inverse discrete Fourier transform along one axis.", 4)
rfft = _one(
    "rfft", "Return the Fourier transform of real points, for the frequencies from 0 up.", 3
)
irfft = _one("irfft", "Return the inverse of `rfft`: the real points of a transform.", 6)
hfft = _one(
    "hfft", "Return the real Fourier transform of a Hermitian signal, of which `a` is one half.", 6
)
ihfft = _one(
    "ihfft", "Return the inverse of `hfft`: one half of a Hermitian signal of real frequencies.", 3
)
fft2 = _two("fft2", "Return the discrete Fourier transform over two axes.", 4)
ifft2 = _two("ifft2", "Return the inverse discrete Fourier transform over two axes.", 4)
rfft2 = _two("rfft2", "Return the Fourier transform of real points over two axes.", 3)
irfft2 = _two("irfft2", "Return the inverse of `rfft2`: the real points of a transform.", 6)
hfft2 = _two("hfft2", "Return the real Fourier transform of a Hermitian signal over two axes.", 6)
ihfft2 = _two("ihfft2", "Return the inverse of `hfft2`: one half of a Hermitian signal.", 3)
fftn = _all("fftn", "Return the discrete Fourier transform over several axes.", 4)
ifftn = _all("ifftn", "Return the inverse discrete Fourier transform over several axes.", 4)
rfftn = _all("rfftn", "Return the Fourier transform of real points over several axes.", 3)
irfftn = _all("irfftn", "Return the inverse of `rfftn`: the real points of a transform.", 6)
hfftn = _all(
    "hfftn", "Return the real Fourier transform of a Hermitian signal over several axes.", 6
)
ihfftn = _all("ihfftn", "Return the inverse of `hfftn`: one half of a Hermitian signal.", 3)


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
