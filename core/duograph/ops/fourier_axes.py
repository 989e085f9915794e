"""Discrete Fourier transforms over several axes: fft2, fftn, rfftn, hfftn and their inverses.

Users, `numpy.fft` and `mint.fft` call the functions. They pass their arguments on to `fourier`,
which computes the transforms; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from .complex_numbers import conj
from .complex_numbers import real as real_part
from .fourier import Sizes, as_complex, complex_transform, of_real, scale_of, swapped, to_real
from .primitive import Primitive

__all__ = [
    "FFTWithSize", "fft2", "fftn", "hfft2", "hfftn", "ifft2", "ifftn", "ihfft2", "ihfftn", "irfft2",
    "irfftn", "rfft2", "rfftn",
]  # fmt: skip


def fft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute `fft` over two axes (`mindspore.ops.fft2`).

    Args:
        input: as in `fft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default the last two.
        norm: as in `fft`.

    Returns:
        Complex Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.fft2(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return complex_transform("fft2", input, s, dim, norm, False)


def ifft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute `ifft` over two axes (`mindspore.ops.ifft2`).

    Args:
        input: as in `ifft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default the last two.
        norm: as in `fft`.

    Returns:
        Complex Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ifft2(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return complex_transform("ifft2", input, s, dim, norm, True)


def rfft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute `rfft` over two axes (`mindspore.ops.rfft2`).

    Args:
        input: as in `rfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default the last two.
        norm: as in `fft`.

    Returns:
        Complex Tensor; the (last) axis has n // 2 + 1 elements.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.rfft2(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return of_real("rfft2", input, s, dim, norm)


def irfft2(
    input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Compute `irfft` over two axes (`mindspore.ops.irfft2`).

    Args:
        input: as in `irfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default the last two.
        norm: as in `fft`.

    Returns:
        Real Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.irfft2(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return to_real("irfft2", input, s, dim, norm)


def hfft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute `hfft` over two axes (`mindspore.ops.hfft2`).

    Args:
        input: as in `hfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default the last two.
        norm: as in `fft`.

    Returns:
        Real Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hfft2(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return to_real("hfft2", conj(as_complex("hfft2", input)), s, dim, swapped("hfft2", norm))


def ihfft2(
    input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Compute `ihfft` over two axes (`mindspore.ops.ihfft2`).

    Args:
        input: as in `ihfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default the last two.
        norm: as in `fft`.

    Returns:
        Complex Tensor; the (last) axis has n // 2 + 1 elements.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ihfft2(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return conj(of_real("ihfft2", input, s, dim, swapped("ihfft2", norm)))


def fftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
    """Compute `fft` over several axes (`mindspore.ops.fftn`).

    Args:
        input: as in `fft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default all, or as many of the last as there are sizes.
        norm: as in `fft`.

    Returns:
        Complex Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.fftn(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return complex_transform("fftn", input, s, dim, norm, False)


def ifftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
    """Compute `ifft` over several axes (`mindspore.ops.ifftn`).

    Args:
        input: as in `ifft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default all, or as many of the last as there are sizes.
        norm: as in `fft`.

    Returns:
        Complex Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ifftn(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return complex_transform("ifftn", input, s, dim, norm, True)


def rfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
    """Compute `rfft` over several axes (`mindspore.ops.rfftn`).

    Args:
        input: as in `rfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default all, or as many of the last as there are sizes.
        norm: as in `fft`.

    Returns:
        Complex Tensor; the (last) axis has n // 2 + 1 elements.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.rfftn(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return of_real("rfftn", input, s, dim, norm)


def irfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
    """Compute `irfft` over several axes (`mindspore.ops.irfftn`).

    Args:
        input: as in `irfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default all, or as many of the last as there are sizes.
        norm: as in `fft`.

    Returns:
        Real Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.irfftn(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return to_real("irfftn", input, s, dim, norm)


def hfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
    """Compute `hfft` over several axes (`mindspore.ops.hfftn`).

    Args:
        input: as in `hfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default all, or as many of the last as there are sizes.
        norm: as in `fft`.

    Returns:
        Real Tensor.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hfftn(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return to_real("hfftn", conj(as_complex("hfftn", input)), s, dim, swapped("hfftn", norm))


def ihfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
    """Compute `ihfft` over several axes (`mindspore.ops.ihfftn`).

    Args:
        input: as in `ihfft`.
        s: sizes along the axes; a longer axis is truncated, a shorter one padded with zeros.
        dim: the axes; default all, or as many of the last as there are sizes.
        norm: as in `fft`.

    Returns:
        Complex Tensor; the (last) axis has n // 2 + 1 elements.

    Raises:
        ValueError: sizes below 1 or of another number, or an axis out of range or twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ihfftn(ms.ops.ones((2, 2))).shape)
        (2, 2)
    """
    return conj(of_real("ihfftn", input, s, dim, swapped("ihfftn", norm)))


# ---- primitive class -----------------------------------------------------------------------------


class FFTWithSize(Primitive):
    """Fourier transforms of the last 1 to 3 axes, chosen by flags (`mindspore.ops.FFTWithSize`).

    Args:
        signal_ndim: number of axes, 1 to 3.
        inverse: whether to compute the inverse transform.
        real: whether the elements are real (for an inverse transform, those of the result).
        norm: as in `fft`.
        onesided: whether the transform of real elements has the first half only.
        signal_sizes: sizes of the result along the axes, for an inverse real transform.

    Raises:
        ValueError: another number of axes or norm.

    Examples:
        >>> import duograph as ms
        >>> net = ms.ops.FFTWithSize(1, inverse=False, real=True)
        >>> net(ms.Tensor([1.0, 2.0, 3.0])).shape
        (2,)
    """

    def __init__(
        self,
        signal_ndim: int,
        inverse: bool,
        real: bool,
        norm: str = "backward",
        onesided: bool = True,
        signal_sizes: Sequence[int] = (),
    ) -> None:
        super().__init__()
        if signal_ndim not in (1, 2, 3):
            raise ArgumentValueError(
                f"FFTWithSize: got signal_ndim={signal_ndim!r}; wanted 1, 2 or 3"
            )
        scale_of("FFTWithSize", norm, 1, False)
        self.signal_ndim, self.inverse, self.real = signal_ndim, inverse, real
        self.norm, self.onesided, self.signal_sizes = norm, onesided, tuple(signal_sizes)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the Fourier transform over the last `signal_ndim` axes.

        The constructor's settings choose a complex or real, forward or inverse transform.
        """
        if x.ndim < self.signal_ndim:
            raise ShapeError(
                f"FFTWithSize: got shape {x.shape}; wanted at least {self.signal_ndim} axes"
            )
        dim = tuple(range(-self.signal_ndim, 0))
        if self.real and self.inverse:
            if not self.onesided:
                return real_part(ifftn(x, self.signal_sizes or None, dim, self.norm))
            return irfftn(x, self.signal_sizes or None, dim, self.norm)
        if self.real and self.onesided:
            return rfftn(x, None, dim, self.norm)
        return (ifftn if self.inverse else fftn)(x, None, dim, self.norm)
