"""Signal processing: windows (hann, hamming, ...) and the short-time Fourier transform.

Users call the functions. The windows are constants that the host computes by NumPy; `stft` is made
of other ops and has a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..dtype import DTypeLike, as_dtype, float32, float64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..host_arrays import Array
from ..tensor import Tensor
from .complex_numbers import imag, real
from .creation import cast
from .fourier import as_complex, dft
from .gather_scatter import gather
from .movement import concat_by, pad_by, slice_axis
from .padding import pad
from .primitive import Primitive
from .shape_primitives import reshape_to, transpose_by

__all__ = [
    "STFT", "BartlettWindow", "BlackmanWindow", "HammingWindow", "bartlett_window",
    "blackman_window", "hamming_window", "hann_window", "kaiser_window", "stft",
]  # fmt: skip


def _window(
    name: str,
    length: Tensor | int,
    periodic: bool,
    dtype: DTypeLike | None,
    function: Callable[[Array, int], Array],
) -> Tensor:
    """Check a window function's arguments; return the window as a 1-d tensor of `length`.

    Args:
        name: the user's function in errors.
        periodic: whether to omit the last point of the symmetric window of length + 1 points.
        dtype: dtype of the result; None is float64.
        function: function from the positions 0, 1, ... and the last position to the window.
    """
    if isinstance(length, Tensor) and length.size == 1:
        length = length.item()
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
        raise ArgumentError(f"{name}: got window_length={length!r}; wanted an int")
    if length < 0:
        raise ArgumentValueError(f"{name}: got window_length={length}; wanted 0 or more")
    target = float64 if dtype is None else as_dtype(dtype)
    if not target.is_floating:
        raise DTypeError(f"{name}: got dtype {target.name}; wanted a floating one")
    if length <= 1:
        return cast(Tensor(np.ones(length)), target)
    last = length if periodic else length - 1
    return cast(Tensor(function(np.arange(length, dtype=np.float64), last)), target)


def bartlett_window(
    window_length: Tensor | int, periodic: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return a triangular window (`mindspore.ops.bartlett_window`).

    Args:
        window_length: number of elements, an int or integer Tensor of one element.
        periodic: whether the window is one period of a periodic function; else it is symmetric.
        dtype: floating dtype of the result; default float64.

    Returns:
        Tensor (window_length,).

    Raises:
        TypeError: the length is not an int, or another dtype.
        ValueError: a negative length.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bartlett_window(5, periodic=False))
        [0.  0.5 1.  0.5 0. ]
    """
    return _window(
        "bartlett_window", window_length, periodic, dtype, lambda n, m: 1 - np.abs(2 * n / m - 1)
    )


def blackman_window(
    window_length: Tensor | int, periodic: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return Blackman's window, a sum of two cosines (`mindspore.ops.blackman_window`).

    Args:
        window_length, periodic, dtype: as in `bartlett_window`.

    Returns:
        Tensor (window_length,).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.blackman_window(5, periodic=False).abs().round(decimals=2))
        [0.   0.34 1.   0.34 0.  ]
    """

    def values(n: Array, m: int) -> Array:
        turn = 2 * math.pi * n / m
        return 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn)

    return _window("blackman_window", window_length, periodic, dtype, values)


def hamming_window(
    window_length: Tensor | int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return Hamming's window, alpha - beta cos(2 pi n / N) (`mindspore.ops.hamming_window`).

    Args:
        window_length, periodic, dtype: as in `bartlett_window`.
        alpha, beta: the two coefficients.

    Returns:
        Tensor (window_length,).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hamming_window(5, periodic=False))
        [0.08 0.54 1.   0.54 0.08]
    """
    return _window(
        "hamming_window", window_length, periodic, dtype,
        lambda n, m: alpha - beta * np.cos(2 * math.pi * n / m),
    )  # fmt: skip


def hann_window(
    window_length: Tensor | int, periodic: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return Hann's window, a raised cosine (`mindspore.ops.hann_window`).

    Args:
        window_length, periodic, dtype: as in `bartlett_window`.

    Returns:
        Tensor (window_length,).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hann_window(5, periodic=False))
        [0.  0.5 1.  0.5 0. ]
    """
    return _window(
        "hann_window", window_length, periodic, dtype,
        lambda n, m: 0.5 - 0.5 * np.cos(2 * math.pi * n / m),
    )  # fmt: skip


def kaiser_window(
    window_length: Tensor | int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return Kaiser's window, made of the Bessel function I0 (`mindspore.ops.kaiser_window`).

    Args:
        window_length, periodic, dtype: as in `bartlett_window`.
        beta: shape of the window: the larger, the narrower.

    Returns:
        Tensor (window_length,).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.kaiser_window(3, periodic=False, beta=0.0))
        [1. 1. 1.]
    """

    def values(n: Array, m: int) -> Array:
        inner = beta * np.sqrt(np.maximum(1 - (2 * n / m - 1) ** 2, 0))
        return np.i0(inner) / np.i0(np.float64(beta))

    return _window("kaiser_window", window_length, periodic, dtype, values)


class _Window(Primitive):
    """Base class of the primitives of window functions, with `periodic` and `dtype`."""

    def __init__(self, periodic: bool = True, dtype: DTypeLike = float32) -> None:
        super().__init__()
        self.periodic, self.dtype = periodic, as_dtype(dtype)


class BartlettWindow(_Window):
    """Triangular window: `BartlettWindow(periodic=True, dtype=float32)(window_length)`."""

    def __call__(self, window_length: Tensor | int) -> Tensor:
        """Return the Bartlett (triangular) window of `window_length` elements."""
        return bartlett_window(window_length, self.periodic, dtype=self.dtype)


class BlackmanWindow(_Window):
    """Blackman's window: `BlackmanWindow(periodic=True, dtype=float32)(window_length)`."""

    def __call__(self, window_length: Tensor | int) -> Tensor:
        """Return the Blackman window of `window_length` elements."""
        return blackman_window(window_length, self.periodic, dtype=self.dtype)


class HammingWindow(_Window):
    """Hamming's window.

    `HammingWindow(periodic=True, alpha=0.54, beta=0.46, dtype=float32)(length)`.
    """

    def __init__(
        self,
        periodic: bool = True,
        alpha: float = 0.54,
        beta: float = 0.46,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(periodic, dtype)
        self.alpha, self.beta = float(alpha), float(beta)

    def __call__(self, length: Tensor | int) -> Tensor:
        """Return the Hamming window of `length` elements."""
        return hamming_window(length, self.periodic, self.alpha, self.beta, dtype=self.dtype)


# ---- short-time Fourier transform ----------------------------------------------------------------


def _placed(name: str, x: Tensor, window: Tensor | None, n_fft: int, win_length: int) -> Tensor:
    """Pad a window of `win_length` elements with zeros on both sides to `n_fft` elements.

    If `window` is None, it is all ones. The result has the real dtype of the signal `x`, unless the
    window is complex. `name` is the user's function in errors.
    """
    dtype = real(x).dtype
    if window is None:
        window = cast(Tensor(np.ones(win_length)), dtype)
    if window.shape != (win_length,):
        raise ShapeError(f"{name}: got a window of shape {window.shape}; wanted ({win_length},)")
    low = (n_fft - win_length) // 2
    wide = pad_by(window, (low,), (n_fft - win_length - low,), 0)
    return wide if wide.dtype is dtype or wide.dtype.is_complex else cast(wide, dtype)


def _frames(
    name: str,
    x: Tensor,
    window: Tensor,
    n_fft: int,
    hop: int,
    onesided: bool,
    scale: float,
) -> Tensor:
    """Cut a signal (batch, length) into windowed frames and transform each.

    Returns the spectra, (batch, frequencies, frames).

    Args:
        name: the user's function in errors.
        window: factors of the elements of a frame, (n_fft,).
        n_fft: number of elements of a frame.
        hop: distance between the starts of adjacent frames.
        onesided: whether to return the non-negative frequencies only.
        scale: factor of the results.
    """
    batch, length = x.shape
    if not 0 < n_fft <= length:
        raise ArgumentValueError(f"{name}: got n_fft={n_fft}; wanted 1 to {length}")
    count = (length - n_fft) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(n_fft)
    cut = reshape_to(gather(x, places.reshape(-1), 1), (batch, count, n_fft))
    spectrum = dft(as_complex(name, cut * window), (2,), False, scale)
    if onesided:
        spectrum = slice_axis(spectrum, 2, 0, n_fft // 2 + 1)
    return transpose_by(spectrum, (0, 2, 1))


def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "REFLECT",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Compute the short-time Fourier transform: the spectra of overlapping frames
    (`mindspore.ops.stft`).

    Args:
        x: Tensor (length,) or (batch, length), floating or complex.
        n_fft: number of elements of a frame.
        hop_length: distance from one frame to the next; default n_fft // 4.
        win_length: number of elements of the window, which is in the middle of a frame; default
            n_fft.
        window: Tensor (win_length,); default ones.
        center: whether to pad `x` by n_fft // 2 at both ends, so that frame t is centred at
            t * hop_length.
        pad_mode: mode of this padding, as in `pad`; upper or lower case.
        normalized: whether to divide by the root of n_fft.
        onesided: whether to return the first n_fft // 2 + 1 frequencies only; default True for
            real elements.
        return_complex: whether the result is complex; else its parts are on a last axis of size 2.
            Default True for complex elements.

    Returns:
        Tensor (batch, frequencies, frames) or (batch, frequencies, frames, 2); without `batch` if
        `x` has one axis.

    Raises:
        ValueError: another number of axes, n_fft larger than the padded input, a hop below 1,
            a window of another length, one side of complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.stft(ms.ops.ones((2, 64)), 16).shape
        (2, 9, 17, 2)
    """
    if x.ndim not in (1, 2):
        raise ShapeError(f"stft: got shape {x.shape}; wanted one or two axes")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop < 1 or not 0 < length <= n_fft:
        raise ArgumentValueError(
            f"stft: got hop_length={hop}, win_length={length}; wanted at least 1, and 1 to {n_fft}"
        )
    rows = reshape_to(x, (1, *x.shape)) if x.ndim == 1 else x
    placed = _placed("stft", x, window, n_fft, length)
    is_complex = x.dtype.is_complex or placed.dtype.is_complex
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise ArgumentValueError("stft: got complex elements and onesided=True; wanted False")
    if center:
        side = n_fft // 2
        rows = pad(rows, (side, side), pad_mode.lower())
    scale = 1.0 / math.sqrt(n_fft) if normalized else 1.0
    out = _frames("stft", rows, placed, n_fft, hop, half, scale)
    if not (is_complex if return_complex is None else return_complex):
        parts = [reshape_to(part, (*part.shape, 1)) for part in (real(out), imag(out))]
        out = concat_by(parts, 3)
    return reshape_to(out, out.shape[1:]) if x.ndim == 1 else out


class STFT(Primitive):
    """Short-time Fourier transform.

    `STFT(n_fft, hop_length, win_length, normalized, onesided, return_complex)(x, window)`.

    Examples:
        >>> import duograph as ms
        >>> net = ms.ops.STFT(8, 2, 8, False, True, True)
        >>> net(ms.ops.ones((2, 16)), ms.ops.ones(8)).shape
        (2, 5, 5)
    """

    def __init__(
        self,
        n_fft: int,
        hop_length: int,
        win_length: int,
        normalized: bool,
        onesided: bool,
        return_complex: bool,
    ) -> None:
        super().__init__()
        self.n_fft, self.hop_length, self.win_length = n_fft, hop_length, win_length
        self.normalized, self.onesided, self.return_complex = normalized, onesided, return_complex

    def __call__(self, x: Tensor, window: Tensor) -> Tensor:
        """Return the short-time Fourier transform of `x`, without padding at the ends.

        `window` has the factors of the elements of a frame. The other settings are the arguments of
        the constructor.
        """
        return stft(
            x, self.n_fft, self.hop_length, self.win_length, window, False, "reflect",
            self.normalized, self.onesided, self.return_complex,
        )  # fmt: skip
