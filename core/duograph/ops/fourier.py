"""Discrete Fourier transforms: fft, rfft, hfft, their inverses and several axes, fftshift, fftfreq.

Users, `numpy.fft` and `mint.fft` call the functions. All of them are made of one op, `dft`, which
runs on the host for every device. No other code here may compute a transform, so that one kernel
suffices for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..dtype import COMPLEX, DTypeLike, as_dtype, complex64, complex128, float32, float64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..op import op
from ..op_signature import Axes
from ..tensor import Tensor
from .axes import axis_of
from .complex_numbers import conj, real
from .creation import cast
from .movement import pad_by, slice_axis
from .rolling import roll

__all__ = [
    "fft", "fftfreq", "fftshift", "hfft", "ifft", "ifftshift", "ihfft", "irfft", "rfft", "rfftfreq",
]  # fmt: skip

Sizes = int | Sequence[int] | None


@op(name="dft", dtypes=COMPLEX, host_fallback=True)
def dft(input: Tensor, axes: Axes, inverse: bool, scale: float):
    """Primitive op: the discrete Fourier transform over the given axes, times `scale`.

    The result at k is the sum of input[j] * exp(-2 pi i j k / n) over j, where i is the imaginary
    unit; with `inverse`, the exponent is positive. There is no other normalisation than `scale`.
    """


@dft.infer
def _(x, axes, inverse, scale):
    if any(x.shape[a] < 1 for a in axes):
        raise ShapeError(f"dft: got shape {x.shape}; wanted no empty axis among {axes}")
    return x


@dft.reference
def _(x, axes, inverse, scale):
    if not axes or not x.size:
        return x * x.dtype.type(scale)
    found = np.fft.ifftn(x, axes=axes, norm="forward") if inverse else np.fft.fftn(x, axes=axes)
    return found.astype(x.dtype) * x.dtype.type(scale)


@dft.bprop
def _(x, out, dout, axes, inverse, scale):
    return (dft(dout, axes, not inverse, scale),)


# ---- arguments -----------------------------------------------------------------------------------


def as_complex(name: str, x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name}: got {type(x).__name__}; wanted a Tensor")
    if x.dtype.is_complex:
        return x
    return cast(x, complex128 if x.dtype is float64 else complex64)


def scale_of(name: str, norm: str | None, count: int, inverse: bool) -> float:
    """Return the factor of a transform of `count` elements for the normalisation `norm`.

    "ortho" is 1 / sqrt(count). "forward" is 1 / count for a forward transform and 1 for an inverse
    one; "backward" and None are the reverse. `name` is the user's function in errors.
    """
    if norm not in (None, "backward", "forward", "ortho"):
        raise ArgumentValueError(
            f"{name}: got norm={norm!r}; wanted 'backward', 'forward' or 'ortho'"
        )
    if norm == "ortho":
        return 1.0 / math.sqrt(count) if count else 1.0
    normalised = (norm == "forward") is not inverse
    return 1.0 / count if normalised and count else 1.0


def _resized(x: Tensor, axis: int, size: int) -> Tensor:
    """Truncate an axis of `x` to `size` elements, or append zeros up to that size."""
    have = x.shape[axis]
    if size <= have:
        return slice_axis(x, axis, 0, size)
    pads = tuple(size - have if i == axis else 0 for i in range(x.ndim))
    return pad_by(x, (0,) * x.ndim, pads, 0)


def _ints(name: str, what: str, value: Sizes) -> tuple[int, ...] | None:
    if value is None:
        return None
    items = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in items):
        raise ArgumentError(f"{name}: got {what}={value!r}; wanted ints")
    return tuple(int(v) for v in items)


def _plan(
    name: str, x: Tensor, s: Sizes, dim: Sizes
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Check the arguments `s` (sizes) and `dim` (axes) of a transform; return (axes, sizes).

    The axes are non-negative. A size of None stands for the axis's own size. `name` is the user's
    function in errors.
    """
    sizes, dims = _ints(name, "s", s), _ints(name, "dim", dim)
    if dims is None:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ArgumentValueError(f"{name}: got s={s!r} for a tensor of shape {x.shape}")
        dims = tuple(range(x.ndim - count, x.ndim))
    if x.ndim == 0 and dims:
        raise ShapeError(f"{name}: got a 0-d tensor; wanted at least one axis")
    axes = tuple(axis_of(name, d, x.ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise ArgumentValueError(f"{name}: got dim={dim!r}, which names an axis twice")
    if sizes is None:
        return axes, (None,) * len(axes)
    if len(sizes) != len(axes):
        raise ArgumentValueError(f"{name}: got s={s!r} and dim={dim!r}; wanted equal lengths")
    if any(n < 1 for n in sizes):
        raise ArgumentValueError(f"{name}: got s={s!r}; wanted sizes of at least 1")
    return axes, sizes


def _count(shape: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(shape[a] for a in axes)


def complex_transform(
    name: str, x: Tensor, s: Sizes, dim: Sizes, norm: str | None, inverse: bool
) -> Tensor:
    x = as_complex(name, x)
    axes, sizes = _plan(name, x, s, dim)
    for axis, n in zip(axes, sizes):
        x = x if n is None else _resized(x, axis, n)
    return dft(x, axes, inverse, scale_of(name, norm, _count(x.shape, axes), inverse))


def of_real(
    name: str, x: Tensor, s: Sizes, dim: Sizes, norm: str | None, inverse: bool = False
) -> Tensor:
    """Transform real elements; return the first half of the result along the last axis of `dim`.

    The other half, which would be the mirrored conjugate, is left out. `s`, `dim` and `norm` are
    the user's arguments, `name` the user's function in errors. If `inverse` is True, the exponent
    has the sign of an inverse transform.
    """
    if x.dtype.is_complex:
        raise DTypeError(f"{name}: got {x.dtype.name}; wanted real elements")
    axes, _ = _plan(name, x, s, dim)
    if not axes:
        raise ArgumentValueError(f"{name}: got no axis; wanted at least one")
    out = complex_transform(name, x, s, dim, norm, inverse)
    last = axes[-1]
    return slice_axis(out, last, 0, out.shape[last] // 2 + 1)


def to_real(
    name: str, x: Tensor, s: Sizes, dim: Sizes, norm: str | None, inverse: bool = True
) -> Tensor:
    """Return the real tensor whose transform is `x`, given its first half along the last axis.

    The other half is the mirrored conjugate. `s`, `dim` and `norm` are the user's arguments, `name`
    the user's function in errors. Without `inverse`, the exponent has the sign of a forward
    transform.
    """
    x = as_complex(name, x)
    axes, sizes = _plan(name, x, s, dim)
    if not axes:
        raise ArgumentValueError(f"{name}: got no axis; wanted at least one")
    last, size = axes[-1], sizes[-1]
    n = 2 * (x.shape[last] - 1) if size is None else size
    if n < 1:
        raise ArgumentValueError(f"{name}: got {n} elements for the result; wanted at least 1")
    for axis, count in zip(axes[:-1], sizes[:-1]):
        x = x if count is None else _resized(x, axis, count)
    half = n // 2 + 1
    # the second half is the conjugate of the first: adding it doubles what both have
    weights = np.full(n, 0.0)
    weights[:half] = 2.0
    weights[0] = 1.0
    if n % 2 == 0:
        weights[n // 2] = 1.0
    x = _resized(_resized(x, last, half), last, n)
    shape = [1] * x.ndim
    shape[last] = n
    x = x * cast(Tensor(weights.reshape(shape)), x.dtype)
    return real(dft(x, axes, inverse, scale_of(name, norm, _count(x.shape, axes), inverse)))


_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def swapped(name: str, norm: str | None) -> str:
    """Return the normalisation that exchanges the factors of the forward and inverse transform.

    "forward" becomes "backward"; "backward" and None become "forward"; "ortho" stays. `name` is the
    user's function in errors.
    """
    scale_of(name, norm, 1, False)
    return _SWAPPED[norm]


def _one(name: str, n: int | None, dim: int) -> tuple[Sizes, Sizes]:
    """Convert a one-axis transform's `n` and `dim` to the tuples (s, dim) that `_plan` takes.

    `name` is the user's function in errors.
    """
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        raise ArgumentError(f"{name}: got dim={dim!r}; wanted an int")
    return (None if n is None else (n,)), (dim,)


# ---- one axis ------------------------------------------------------------------------------------


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the discrete Fourier transform along an axis (`mindspore.ops.fft`).

    Args:
        input: Tensor; real elements are converted to complex64, float64 to complex128.
        n: length of the axis; a longer axis is truncated, a shorter one padded with zeros; None
            keeps it.
        dim: the axis.
        norm: factor 1/count of the inverse (``"backward"``, the default) or of this transform
            (``"forward"``), or its root in both (``"ortho"``).

    Returns:
        Complex Tensor.

    Raises:
        ValueError: n below 1, an axis out of range, or another norm.
        TypeError: n or dim is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.fft(ms.Tensor([1.0, 0.0, 0.0])))
        [1.+0.j 1.+0.j 1.+0.j]
    """
    return complex_transform("fft", input, *_one("fft", n, dim), norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the inverse of `fft` (`mindspore.ops.ifft`).

    Args:
        input: Tensor; real elements are converted to complex64, float64 to complex128.
        n: length of the axis; a longer axis is truncated, a shorter one padded with zeros; None
            keeps it.
        dim: the axis.
        norm: as in `fft`.

    Returns:
        Complex Tensor.

    Raises:
        ValueError: n below 1, an axis out of range, or another norm.
        TypeError: n or dim is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ifft(ms.Tensor([3.0, 0.0, 0.0])))
        [1.+0.j 1.+0.j 1.+0.j]
    """
    return complex_transform("ifft", input, *_one("ifft", n, dim), norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the Fourier transform of real elements, without the redundant half
    (`mindspore.ops.rfft`).

    Args:
        input: Tensor of real elements; float64 gives complex128, others complex64.
        n: length of the axis; a longer axis is truncated, a shorter one padded with zeros; None
            keeps it.
        dim: the axis.
        norm: as in `fft`.

    Returns:
        Complex Tensor; the (last) axis has n // 2 + 1 elements.

    Raises:
        ValueError: n below 1, an axis out of range, or another norm.
        TypeError: complex elements, or n is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.rfft(ms.Tensor([1.0, 0.0, 0.0])))
        [1.+0.j 1.+0.j]
    """
    return of_real("rfft", input, *_one("rfft", n, dim), norm)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the inverse of `rfft`, which is real (`mindspore.ops.irfft`).

    Args:
        input: Tensor: the first half of a spectrum whose other half is its mirrored conjugate.
        n: length of the result along the axis; default 2 * (length - 1).
        dim: the axis.
        norm: as in `fft`.

    Returns:
        Real Tensor.

    Raises:
        ValueError: n below 1, an axis out of range, or another norm.
        TypeError: n or dim is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.irfft(ms.Tensor([4.0, 0.0, 0.0])))
        [1. 1. 1. 1.]
    """
    return to_real("irfft", input, *_one("irfft", n, dim), norm)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the Fourier transform, which is real, of a signal with Hermitian symmetry
    (`mindspore.ops.hfft`).

    Args:
        input: Tensor: the first half of a signal whose other half is its mirrored conjugate.
        n: length of the result along the axis; default 2 * (length - 1).
        dim: the axis.
        norm: as in `fft`.

    Returns:
        Real Tensor.

    Raises:
        ValueError: n below 1, an axis out of range, or another norm.
        TypeError: n or dim is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hfft(ms.Tensor([1.0, 0.0, 0.0])))
        [1. 1. 1. 1.]
    """
    return to_real(
        "hfft", conj(as_complex("hfft", input)), *_one("hfft", n, dim), swapped("hfft", norm)
    )


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the inverse of `hfft` (`mindspore.ops.ihfft`).

    Args:
        input: Tensor of real elements; float64 gives complex128, others complex64.
        n: length of the axis; a longer axis is truncated, a shorter one padded with zeros; None
            keeps it.
        dim: the axis.
        norm: as in `fft`.

    Returns:
        Complex Tensor; the (last) axis has n // 2 + 1 elements.

    Raises:
        ValueError: n below 1, an axis out of range, or another norm.
        TypeError: complex elements, or n is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ihfft(ms.Tensor([4.0, 4.0, 4.0, 4.0])).real())
        [4. 0. 0.]
    """
    return conj(of_real("ihfft", input, *_one("ihfft", n, dim), swapped("ihfft", norm)))


# ---- order of frequencies ------------------------------------------------------------------------


def _shifted(name: str, x: Tensor, dim: Sizes, sign: int) -> Tensor:
    dims = _ints(name, "dim", dim)
    axes = range(x.ndim) if dims is None else [axis_of(name, d, x.ndim) for d in dims]
    steps = [(x.shape[a] // 2) if sign > 0 else -(x.shape[a] // 2) for a in axes]
    return roll(x, tuple(steps), tuple(axes)) if steps else x


def fftshift(input: Tensor, dim: Sizes = None) -> Tensor:
    """Move the zero frequency to the middle of each axis (`mindspore.ops.fftshift`).

    Args:
        input: Tensor of any shape and dtype.
        dim: int or tuple of ints; default all axes.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.fftshift(ms.Tensor([0, 1, 2, -2, -1])))
        [-2 -1  0  1  2]
    """
    return _shifted("fftshift", input, dim, 1)


def ifftshift(input: Tensor, dim: Sizes = None) -> Tensor:
    """Undo `fftshift` (`mindspore.ops.ifftshift`).

    Args:
        input, dim: the arguments of `fftshift`.

    Returns:
        Tensor of the shape and dtype of `input`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ifftshift(ms.Tensor([-2, -1, 0, 1, 2])))
        [ 0  1  2 -2 -1]
    """
    return _shifted("ifftshift", input, dim, -1)


def _frequencies(name: str, n: int, d: float, dtype: DTypeLike | None, half: bool) -> Tensor:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ArgumentError(f"{name}: got n={n!r}; wanted an int")
    if n < 1:
        raise ArgumentValueError(f"{name}: got n={n}; wanted at least 1")
    target = float32 if dtype is None else as_dtype(dtype)
    counts = np.arange(n // 2 + 1) if half else np.fft.ifftshift(np.arange(-(n // 2), (n + 1) // 2))
    if target.kind in "biu":
        raise DTypeError(f"{name}: got dtype {target.name}; wanted a floating or complex one")
    return cast(Tensor(counts / (n * float(d))), target)


def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the frequencies of the elements of `fft` (`mindspore.ops.fftfreq`).

    Args:
        n: number of elements.
        d: time from one sample to the next.
        dtype: dtype of the result; default float32.

    Returns:
        Tensor (n,).

    Raises:
        ValueError: n below 1.
        TypeError: n is not an int, or an integer dtype.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.fftfreq(4, 0.5))
        [ 0.   0.5 -1.  -0.5]
    """
    return _frequencies("fftfreq", n, d, dtype, False)


def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the frequencies of the elements of `rfft` (`mindspore.ops.rfftfreq`).

    Args:
        n, d, dtype: as in `fftfreq`.

    Returns:
        Tensor (n // 2 + 1,).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.rfftfreq(4, 0.5))
        [0.  0.5 1. ]
    """
    return _frequencies("rfftfreq", n, d, dtype, True)
