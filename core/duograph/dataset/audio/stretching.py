"""Audio transforms of the speed of spectra without a change of pitch, and of the pitch alone.

`dataset.audio` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ..rows import Array
from .enums import WindowType
from .reconstruction import inverse
from .spectra import Resample, Spectrogram
from .waveforms import AudioTransform, checked_number, checked_sample_rate, checked_signal

__all__ = ["PhaseVocoder", "PitchShift", "TimeStretch"]


def _at_other_speed(spectrum: Array, rate: float, advance: Array) -> Array:
    """Resample a complex spectrum (..., frequency, time) at times that are `rate` steps apart.

    Magnitudes are interpolated. The phase grows from time to time as it does between the two
    neighbouring times of the original.

    Args:
        spectrum: the spectrum.
        rate: distance of the new times, above 0.
        advance: the expected growth of the phase in one step, (frequency, 1).
    """
    steps = np.arange(0, spectrum.shape[-1], rate)
    whole = steps.astype(np.int64)
    wide = np.pad(spectrum, [(0, 0)] * (spectrum.ndim - 1) + [(0, 2)])
    one, two = wide[..., whole], wide[..., whole + 1]
    growth = np.angle(two) - np.angle(one) - advance
    growth = growth - math.tau * np.round(growth / math.tau) + advance
    phase = np.cumsum(np.concatenate([np.angle(spectrum[..., :1]), growth[..., :-1]], -1), -1)
    share = steps - whole
    return np.asarray((share * np.abs(two) + (1 - share) * np.abs(one)) * np.exp(1j * phase))


class _SpectrumTransform(AudioTransform):
    """Base class of transforms of complex spectra, stored as (..., frequency, time, 2) reals."""

    _axes = 3

    def __call__(self, waveform: object) -> Array:
        array = checked_signal(type(self).__name__, waveform, self._axes)
        if array.shape[-1] != 2 or not array.size:
            raise ShapeError(
                f"{type(self).__name__}: got shape {array.shape}; wanted (..., frequency, time, 2)"
                ", none of them 0"
            )
        return super().__call__(array)


def _pairs(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


class PhaseVocoder(_SpectrumTransform):
    """Speeds a spectrum up by a factor without a change of pitch
    (`mindspore.dataset.audio.PhaseVocoder`).

    The spectrum is (..., frequency, time, 2), as ``Spectrogram(power=0)`` returns it.

    Args:
        rate: factor of the speed, above 0.
        phase_advance: array (frequency, 1) with the expected growth of the phase from one time to
            the next.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: the rate is not above 0; when called: the sizes do not fit.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> faster = audio.PhaseVocoder(2.0, np.zeros((5, 1), np.float32))
        >>> faster(np.ones((5, 8, 2), np.float32)).shape
        (5, 4, 2)
    """

    def __init__(self, rate: float, phase_advance: Array) -> None:
        owner = "PhaseVocoder"
        self.rate = checked_number(owner, "rate", rate, np.nextafter(0, 1))
        if not isinstance(phase_advance, np.ndarray):
            raise ArgumentError(
                f"{owner}: got phase_advance of {type(phase_advance).__name__}; wanted an array"
            )
        if phase_advance.ndim != 2 or phase_advance.shape[1] != 1:
            raise ShapeError(
                f"{owner}: got phase_advance of shape {phase_advance.shape}; wanted (frequency, 1)"
            )
        self.advance = phase_advance

    def _signal(self, signal: Array) -> Array:
        if signal.shape[-3] != len(self.advance):
            raise ShapeError(
                f"PhaseVocoder: got shape {signal.shape}; wanted {len(self.advance)} frequencies"
            )
        spectrum = signal[..., 0] + 1j * signal[..., 1]
        return _pairs(_at_other_speed(spectrum, self.rate, self.advance))


class TimeStretch(_SpectrumTransform):
    """Speeds a spectrum up by a fixed factor (`mindspore.dataset.audio.TimeStretch`).

    The spectrum is (..., n_freq, time, 2), as ``Spectrogram(power=0)`` returns it. At a rate of 1
    the result has one leading axis, as in MindSpore: (N, n_freq, time, 2).

    Args:
        hop_length: samples from one transform to the next; by default ``n_freq - 1``.
        n_freq: number of frequencies of the spectrum.
        fixed_rate: factor of the speed, above 0; None keeps the speed.

    Raises:
        TypeError: an argument is no number.
        ValueError: an argument is not above 0; when called: the sizes do not fit.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.TimeStretch(n_freq=5, fixed_rate=0.5)(np.ones((5, 8, 2), np.float32)).shape
        (5, 16, 2)
    """

    def __init__(
        self,
        hop_length: int | None = None,
        n_freq: int = 201,
        fixed_rate: float | None = None,
    ) -> None:
        owner = "TimeStretch"
        count = checked_number(owner, "n_freq", n_freq, 1)
        hop = count - 1 if hop_length is None else checked_number(owner, "hop_length", hop_length,
                                                                  1)  # fmt: skip
        rate = 1.0 if fixed_rate is None else fixed_rate
        self.rate = checked_number(owner, "fixed_rate", rate, np.nextafter(0, 1))
        self.advance = np.linspace(0, math.pi * hop, count)[:, None]

    def _signal(self, signal: Array) -> Array:
        if self.rate == 1:
            return signal.reshape(-1, *signal.shape[-3:]).copy()
        if signal.shape[-3] != len(self.advance):
            raise ShapeError(
                f"TimeStretch: got shape {signal.shape}; wanted n_freq={len(self.advance)} "
                "frequencies"
            )
        spectrum = signal[..., 0] + 1j * signal[..., 1]
        return _pairs(_at_other_speed(spectrum, self.rate, self.advance))


class PitchShift(AudioTransform):
    """Shifts the pitch of a waveform (`mindspore.dataset.audio.PitchShift`).

    Args:
        sample_rate: samples per second.
        n_steps: number of steps to shift by, negative for a lower pitch.
        bins_per_octave: number of steps in an octave, not 0.
        n_fft: number of samples of one Fourier transform.
        win_length: number of samples of the window; by default `n_fft`.
        hop_length: samples from one transform to the next; by default a quarter of the window.
        window: the window function.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.PitchShift(8000, 2, n_fft=16)(np.ones((1, 64), np.float32)).shape
        (1, 64)
    """

    def __init__(
        self,
        sample_rate: int,
        n_steps: int,
        bins_per_octave: int = 12,
        n_fft: int = 512,
        win_length: int | None = None,
        hop_length: int | None = None,
        window: WindowType = WindowType.HANN,
    ) -> None:
        owner = "PitchShift"
        rate = checked_sample_rate(owner, sample_rate)
        checked_number(owner, "n_steps", n_steps)
        if not checked_number(owner, "bins_per_octave", bins_per_octave):
            raise ArgumentValueError(f"{owner}: got bins_per_octave=0; wanted another number")
        checked_number(owner, "n_fft", n_fft, 1)
        width = n_fft if win_length is None else win_length
        checked_number(owner, "win_length", width, 1, n_fft)
        hop = max(width // 4, 1) if hop_length is None else hop_length
        self.spectrum = Spectrogram(n_fft, width, hop, 0, window, 0.0)
        self.speed = 2.0 ** (-n_steps / bins_per_octave)
        self.advance = np.linspace(0, math.pi * hop, n_fft // 2 + 1)[:, None]
        self.resample = Resample(int(rate / self.speed), rate)

    def _signal(self, signal: Array) -> Array:
        pairs = self.spectrum._signal(signal)
        spectrum = _at_other_speed(pairs[..., 0] + 1j * pairs[..., 1], self.speed, self.advance)
        count = signal.shape[-1]
        slow = inverse(spectrum, self.spectrum, round(count / self.speed))
        found = self.resample._signal(slow)[..., :count]
        return np.pad(found, [(0, 0)] * (found.ndim - 1) + [(0, count - found.shape[-1])])
