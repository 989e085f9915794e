"""Audio transforms: spectrograms, mel scales, cepstra and resampling.

`dataset.audio` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .enums import BorderType, MelType, NormMode, NormType, ResampleMethod, WindowType
from .levels import AmplitudeToDB
from .waveforms import AudioTransform, checked_member, checked_number

__all__ = [
    "ComputeDeltas", "MFCC", "MelScale", "MelSpectrogram", "Resample", "SlidingWindowCmn",
    "SpectralCentroid", "Spectrogram", "create_dct", "linear_fbanks", "melscale_fbanks",
]  # fmt: skip

_PadMode: TypeAlias = Literal["constant", "edge", "reflect", "symmetric"]  # of numpy.pad


def _window(kind: WindowType, n: int) -> Array:
    """Return the periodic window function `kind`, such as HANN, as an array of n samples."""
    make: dict[WindowType, Callable[[int], Array]] = {
        WindowType.HANN: np.hanning, WindowType.HAMMING: np.hamming,
        WindowType.BLACKMAN: np.blackman, WindowType.BARTLETT: np.bartlett,
        WindowType.KAISER: lambda m: np.kaiser(m, 12.0),
    }  # fmt: skip
    return make[kind](n + 1)[:-1]


class Spectrogram(AudioTransform):
    """Computes the short-time Fourier transform of a waveform
    (`mindspore.dataset.audio.Spectrogram`).

    Args:
        n_fft: number of samples of one Fourier transform.
        win_length: number of samples of the window; by default `n_fft`.
        hop_length: samples from one transform to the next; by default half of the window.
        pad: number of zeros to add at both ends of the waveform.
        window: the window function.
        power: exponent of the magnitude; 0 returns complex numbers (..., 2).
        normalized: divide by the norm of the window.
        center, pad_mode: whether to extend the waveform by half a transform at both ends, and how.
        onesided: omit negative frequencies, which mirror the positive ones.

    Returns:
        (..., frequency, time), when called.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: there are too few samples.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Spectrogram(8)(np.ones((1, 16), np.float32)).shape
        (1, 5, 5)
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
    ) -> None:
        owner = type(self).__name__
        self.n_fft = checked_number(owner, "n_fft", n_fft, 1)
        self.win = checked_number(owner, "win_length", n_fft if win_length is None else win_length,
                                  1, n_fft)  # fmt: skip
        self.hop = checked_number(
            owner, "hop_length", self.win // 2 if hop_length is None else hop_length, 1
        )
        self.pad = checked_number(owner, "pad", pad, 0)
        checked_member(owner, "window", window, WindowType)
        self.power = checked_number(owner, "power", power, 0)
        for name, flag in (("normalized", normalized), ("center", center), ("onesided", onesided)):
            if not isinstance(flag, bool):
                raise ArgumentError(f"{owner}: got {name}={flag!r}; wanted True or False")
        self.normalized, self.center, self.onesided = normalized, center, onesided
        checked_member(owner, "pad_mode", pad_mode, BorderType)
        self.mode: _PadMode = pad_mode.value
        before = (n_fft - self.win) // 2
        self.window = np.zeros(n_fft)
        self.window[before : before + self.win] = _window(window, self.win)

    def _signal(self, signal: Array) -> Array:
        sides = [(0, 0)] * (signal.ndim - 1)
        wide = np.pad(signal.astype(np.float64), [*sides, (self.pad, self.pad)])
        if self.center:
            half = self.n_fft // 2
            wide = np.pad(wide, [*sides, (half, half)], self.mode)
        if wide.shape[-1] < self.n_fft:
            raise ArgumentValueError(
                f"{type(self).__name__}: got {signal.shape[-1]} samples; wanted {self.n_fft}"
            )
        frames = np.lib.stride_tricks.sliding_window_view(wide, self.n_fft, -1)[..., :: self.hop, :]
        transform = np.fft.rfft if self.onesided else np.fft.fft
        found = np.swapaxes(transform(frames * self.window, axis=-1), -1, -2)
        if self.normalized:
            found = found / math.sqrt(float(np.square(self.window).sum()))
        if not self.power:
            return np.stack([found.real, found.imag], -1)
        return np.abs(found) ** self.power


def _to_mel(frequency: ArrayLike, kind: MelType) -> Array:
    """Convert frequencies from Hertz to the mel scale `kind` (HTK's or Slaney's)."""
    frequency = np.asarray(frequency, np.float64)
    if kind == MelType.HTK:
        return 2595.0 * np.log10(1.0 + frequency / 700.0)
    step = math.log(6.4) / 27.0
    return np.where(
        frequency >= 1000, 15 + np.log(np.maximum(frequency, 1e-9) / 1000) / step,
        frequency * 3 / 200,
    )  # fmt: skip


def _to_hertz(mel: ArrayLike, kind: MelType) -> Array:
    """Convert frequencies from the mel scale `kind` (HTK's or Slaney's) to Hertz."""
    mel = np.asarray(mel, np.float64)
    if kind == MelType.HTK:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    step = math.log(6.4) / 27.0
    return np.where(mel >= 15, 1000 * np.exp(step * (mel - 15)), mel * 200 / 3)


def _triangles(frequencies: Array, points: Array) -> Array:
    """Return triangular filters, (frequencies, filters), over the given frequencies.

    Filter i rises from points[i] to 1 at points[i + 1] and falls to 0 at points[i + 2].
    """
    width = np.diff(points)
    slopes = points[None] - frequencies[:, None]
    down, up = -slopes[:, :-2] / width[:-1], slopes[:, 2:] / width[1:]
    return np.maximum(0, np.minimum(down, up))


def _band(owner: str, f_min: float, f_max: float | None, sample_rate: int) -> tuple[float, float]:
    """Check the frequency limits of a filter bank; return (f_min, f_max).

    `f_max` None means half of the sample rate.
    """
    checked_number(owner, "f_min", f_min)
    top = sample_rate // 2 if f_max is None else checked_number(owner, "f_max", f_max)
    if f_min >= top:
        raise ArgumentValueError(f"{owner}: got f_min={f_min} and f_max={top}; wanted f_min below")
    return f_min, top


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: NormType = NormType.NONE,
    mel_type: MelType = MelType.HTK,
) -> Array:
    """Return mel filters (n_freqs, n_mels), float32 (`mindspore.dataset.audio.melscale_fbanks`).

    Raises:
        ValueError: a number is below 1, or `f_min` is not below `f_max`.

    Examples:
        >>> from duograph.dataset import audio
        >>> audio.melscale_fbanks(5, 0.0, 4000.0, 3, 8000).shape
        (5, 3)
    """
    owner = "melscale_fbanks"
    checked_number(owner, "n_freqs", n_freqs, 1)
    checked_number(owner, "n_mels", n_mels, 1)
    checked_member(owner, "norm", norm, NormType)
    checked_member(owner, "mel_type", mel_type, MelType)
    low, high = _band(owner, f_min, f_max, sample_rate)
    ends = _to_mel([low, high], mel_type)
    points = _to_hertz(np.linspace(ends[0], ends[1], n_mels + 2), mel_type)
    found = _triangles(np.linspace(0, sample_rate // 2, n_freqs), points)
    if norm == NormType.SLANEY:
        found = found * (2.0 / (points[2:] - points[:-2]))
    return found.astype(np.float32)


def linear_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int
) -> Array:
    """Return linear filters (n_freqs, n_filter), float32
    (`mindspore.dataset.audio.linear_fbanks`).

    Raises:
        ValueError: a number is below 1, or `f_min` is not below `f_max`.

    Examples:
        >>> from duograph.dataset import audio
        >>> audio.linear_fbanks(5, 0.0, 4000.0, 3, 8000).shape
        (5, 3)
    """
    checked_number("linear_fbanks", "n_freqs", n_freqs, 1)
    checked_number("linear_fbanks", "n_filter", n_filter, 1)
    low, high = _band("linear_fbanks", f_min, f_max, sample_rate)
    points = np.linspace(low, high, n_filter + 2)
    return _triangles(np.linspace(0, sample_rate // 2, n_freqs), points).astype(np.float32)


def create_dct(n_mfcc: int, n_mels: int, norm: NormMode = NormMode.NONE) -> Array:
    """Return the matrix (n_mels, n_mfcc) of a cosine transform, float32
    (`mindspore.dataset.audio.create_dct`).

    Raises:
        ValueError: a number is below 1.

    Examples:
        >>> from duograph.dataset import audio
        >>> audio.create_dct(2, 3).shape
        (3, 2)
    """
    checked_number("create_dct", "n_mfcc", n_mfcc, 1)
    checked_number("create_dct", "n_mels", n_mels, 1)
    checked_member("create_dct", "norm", norm, NormMode)
    found = np.cos(math.pi / n_mels * (np.arange(n_mels) + 0.5) * np.arange(n_mfcc)[:, None])
    if norm == NormMode.ORTHO:
        found[0] /= math.sqrt(2.0)
        found *= math.sqrt(2.0 / n_mels)
    else:
        found *= 2.0
    return found.T.astype(np.float32)


class MelScale(AudioTransform):
    """Converts a spectrogram to mel bands (`mindspore.dataset.audio.MelScale`).

    Args:
        n_mels: number of bands.
        sample_rate: samples per second.
        f_min, f_max: lowest and highest frequency in Hz; by default 0 and half of the sample rate.
        n_stft: number of frequencies of the spectrogram.
        norm: whether the area of each filter is normalised to 1.
        mel_type: the mel scale, HTK's or Slaney's.

    Returns:
        (..., n_mels, time), when called with (..., n_stft, time).

    Raises:
        ValueError: an argument is outside its range; when called: the number of frequencies is
            wrong.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.MelScale(2, 8000, n_stft=5)(np.ones((1, 5, 3), np.float32)).shape
        (1, 2, 3)
    """

    _axes = 2

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: NormType = NormType.NONE,
        mel_type: MelType = MelType.HTK,
    ) -> None:
        low, high = _band("MelScale", f_min, f_max, sample_rate)
        self.bank = melscale_fbanks(n_stft, low, high, n_mels, sample_rate, norm, mel_type)

    def _signal(self, signal: Array) -> Array:
        if signal.shape[-2] != len(self.bank):
            raise ArgumentValueError(
                f"MelScale: got shape {signal.shape}; wanted {len(self.bank)} frequencies"
            )
        return np.swapaxes(np.swapaxes(signal, -1, -2) @ self.bank, -1, -2)


class MelSpectrogram(AudioTransform):
    """Applies `Spectrogram`, then `MelScale` (`mindspore.dataset.audio.MelSpectrogram`).

    The arguments and errors are those of these two classes.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.MelSpectrogram(8000, 8, n_mels=2)(np.ones((1, 16), np.float32)).shape
        (1, 2, 5)
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window: WindowType = WindowType.HANN,
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
        norm: NormType = NormType.NONE,
        mel_scale: MelType = MelType.HTK,
    ) -> None:
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, power,
                                       normalized, center, pad_mode, onesided)  # fmt: skip
        if not power:
            raise ArgumentValueError("MelSpectrogram: got power=0; wanted above 0")
        count = n_fft // 2 + 1 if onesided else n_fft
        self.mel = MelScale(n_mels, sample_rate, f_min, f_max, count, norm, mel_scale)

    def _signal(self, signal: Array) -> Array:
        return self.mel._signal(self.spectrogram._signal(signal))


class MFCC(AudioTransform):
    """Computes mel-frequency cepstral coefficients (`mindspore.dataset.audio.MFCC`).

    Args:
        sample_rate: samples per second.
        n_mfcc: number of coefficients.
        dct_type: type of the cosine transform; must be 2.
        norm: normalisation of the cosine transform.
        log_mels: take natural logarithms of the mel bands instead of decibels.
        melkwargs: dictionary of further arguments for `MelSpectrogram`.

    Raises:
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> mfcc = audio.MFCC(8000, 2, melkwargs={"n_fft": 8, "n_mels": 3})
        >>> mfcc(np.ones((1, 16), np.float32)).shape
        (1, 2, 5)
    """

    _dtype = np.float32

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        dct_type: int = 2,
        norm: NormMode = NormMode.ORTHO,
        log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:
        if dct_type != 2:
            raise ArgumentValueError(f"MFCC: got dct_type={dct_type!r}; wanted 2")
        options = {"n_mels": 128, **(melkwargs or {})}
        if n_mfcc > options["n_mels"]:
            raise ArgumentValueError(f"MFCC: got n_mfcc={n_mfcc} of {options['n_mels']} bands")
        self.mel = MelSpectrogram(sample_rate, **options)
        self.dct = create_dct(n_mfcc, options["n_mels"], norm)
        self.log = bool(log_mels)

    def _signal(self, signal: Array) -> Array:
        found = self.mel._signal(signal)
        found = np.log(found + 1e-6) if self.log else AmplitudeToDB()._signal(found)
        return np.swapaxes(np.swapaxes(found, -1, -2) @ self.dct, -1, -2)


class ComputeDeltas(AudioTransform):
    """Computes the slope of a spectrogram over time (`mindspore.dataset.audio.ComputeDeltas`).

    Args:
        win_length: number of neighbouring times over which the slope is fitted, 3 or more.
        pad_mode: how the signal is continued at both ends.

    Raises:
        ValueError: `win_length` is below 3.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.ComputeDeltas(3)(np.arange(4.0).reshape(1, 1, 4)).tolist()
        [[[0.5, 1.0, 1.0, 0.5]]]
    """

    def __init__(self, win_length: int = 5, pad_mode: BorderType = BorderType.EDGE) -> None:
        checked_number("ComputeDeltas", "win_length", win_length, 3)
        self.n = (win_length - 1) // 2
        self.mode = checked_member("ComputeDeltas", "pad_mode", pad_mode, BorderType).value

    def _signal(self, signal: Array) -> Array:
        sides = [(0, 0)] * (signal.ndim - 1) + [(self.n, self.n)]
        wide = np.pad(signal.astype(np.float64), sides, mode=cast("_PadMode", self.mode))
        weights = np.arange(-self.n, self.n + 1)
        windows = np.lib.stride_tricks.sliding_window_view(wide, len(weights), -1)
        return windows @ weights / float(np.square(weights).sum())


class SpectralCentroid(AudioTransform):
    """Computes the mean frequency, weighted by magnitude, at each time
    (`mindspore.dataset.audio.SpectralCentroid`).

    Args:
        sample_rate: samples per second.
        n_fft, win_length, hop_length, pad, window: see `Spectrogram`.

    Returns:
        (..., 1, time), when called.

    Raises:
        ValueError: an argument is outside its range.
    """

    def __init__(
        self,
        sample_rate: int,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
    ) -> None:
        checked_number("SpectralCentroid", "sample_rate", sample_rate, 1)
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, 1.0)
        self.frequencies = np.linspace(0, sample_rate // 2, n_fft // 2 + 1)[:, None]

    def _signal(self, signal: Array) -> Array:
        found = self.spectrogram._signal(signal)
        with np.errstate(invalid="ignore"):
            return (found * self.frequencies).sum(-2, keepdims=True) / found.sum(-2, keepdims=True)


class SlidingWindowCmn(AudioTransform):
    """Subtracts the mean over a window of times (`mindspore.dataset.audio.SlidingWindowCmn`).

    Args:
        cmn_window: number of times in the window; without `center`, number of times before the
            present one, which is in the window as well.
        min_cmn_window: smallest number of times in the window at the start; used without `center`.
        center: whether the window is centred.
        norm_vars: also divide by the standard deviation.

    As in MindSpore, the axis of time is the second to last one.

    Raises:
        ValueError: a number is below 0.
    """

    _axes = 2

    def __init__(
        self,
        cmn_window: int = 600,
        min_cmn_window: int = 100,
        center: bool = False,
        norm_vars: bool = False,
    ) -> None:
        self.window = checked_number("SlidingWindowCmn", "cmn_window", cmn_window, 1)
        self.least = checked_number("SlidingWindowCmn", "min_cmn_window", min_cmn_window, 0)
        self.center, self.norm = bool(center), bool(norm_vars)

    def _span(self, t: int, count: int) -> tuple[int, int]:
        """Return the window of times whose mean is subtracted at time `t`: (start, exclusive end).

        `count` is the number of times in the signal.
        """
        if self.center:
            start, end = t - self.window // 2, t - self.window // 2 + self.window
        else:
            start, end = t - self.window, t + 1
        if start < 0:
            end, start = end - start, 0
        if not self.center:
            end = min(end, max(t + 1, self.least)) if end > t else end
        if end > count:
            start, end = max(start - (end - count), 0), count
        return start, end

    def _signal(self, signal: Array) -> Array:
        wide = signal.astype(np.float64)
        made = np.empty_like(wide)
        for t in range(signal.shape[-2]):
            start, end = self._span(t, signal.shape[-2])
            part = wide[..., start:end, :]
            found = wide[..., t, :] - part.mean(-2)
            if self.norm:
                count = end - start
                if count == 1:
                    found = np.zeros_like(found)
                else:
                    found = found / np.sqrt(part.var(-2))
            made[..., t, :] = found
        return made


class Resample(AudioTransform):
    """Changes the sampling rate (`mindspore.dataset.audio.Resample`).

    Args:
        orig_freq, new_freq: the old and the new sampling rate.
        resample_method: the window of the sinc filter.
        lowpass_filter_width: number of zero crossings of the filter on each side.
        rolloff: cut-off frequency as a part of the highest possible one, 0 to 1.
        beta: shape of the Kaiser window; by default 14.769656459379492.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Resample(8000, 4000)(np.ones((1, 16), np.float32)).shape
        (1, 8)
    """

    def __init__(
        self,
        orig_freq: float = 16000,
        new_freq: float = 16000,
        resample_method: ResampleMethod = ResampleMethod.SINC_INTERPOLATION,
        lowpass_filter_width: int = 6,
        rolloff: float = 0.99,
        beta: float | None = None,
    ) -> None:
        for name, value in (("orig_freq", orig_freq), ("new_freq", new_freq)):
            checked_number("Resample", name, value, 1)
        checked_member("Resample", "resample_method", resample_method, ResampleMethod)
        checked_number("Resample", "lowpass_filter_width", lowpass_filter_width, 1)
        checked_number("Resample", "rolloff", rolloff, 1e-12, 1)
        common = math.gcd(int(orig_freq), int(new_freq))
        self.old, self.new = int(orig_freq) // common, int(new_freq) // common
        base = min(self.old, self.new) * rolloff
        self.width = math.ceil(lowpass_filter_width * self.old / base)
        self.window = (resample_method, lowpass_filter_width, beta)
        self.base = base / self.old

    def _kernels(self, count: int) -> tuple[Array, Array]:
        """Return the filters of the first results, and the first sample that each filter reads.

        There are `self.new` filters, or `count`, the number of results, if that is less. The
        filters repeat after `self.new` results. `self.new` and `self.old` are the sampling rates
        divided by their greatest common divisor.
        """
        method, half, beta = self.window
        at = np.arange(min(self.new, count)) * self.old / self.new
        first = np.floor(at).astype(np.int64) - self.width
        t = (first[:, None] + np.arange(2 * self.width + 2) - at[:, None]) * self.base
        t = np.clip(t, -half, half)
        if method == ResampleMethod.SINC_INTERPOLATION:
            window = np.cos(t * math.pi / half / 2) ** 2
        else:
            shape = 14.769656459379492 if beta is None else float(beta)
            window = np.i0(shape * np.sqrt(1 - (t / half) ** 2)) / np.i0(shape)
        return np.sinc(t) * window * self.base, first

    def _signal(self, signal: Array) -> Array:
        if self.old == self.new:
            return signal
        n = signal.shape[-1]
        count = math.ceil(self.new * n / self.old)
        flat = signal.reshape(-1, n).astype(np.float64)
        wide = np.pad(flat, [(0, 0), (self.width, self.width + self.old + 2)])
        windows = np.lib.stride_tricks.sliding_window_view(wide, 2 * self.width + 2, -1)
        found = np.empty((len(flat), count))
        for phase, (kernel, first) in enumerate(zip(*self._kernels(count), strict=True)):
            start = int(first) + self.width
            part = found[:, phase :: self.new]
            part[...] = windows[:, start :: self.old][:, : part.shape[1]] @ kernel
        return found.reshape(*signal.shape[:-1], count)
