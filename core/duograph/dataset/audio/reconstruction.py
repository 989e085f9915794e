"""Audio transforms from spectra back to waveforms, and from mel bands back to spectra.

`dataset.audio` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from .. import config
from ..rows import Array
from .enums import BorderType, MelType, NormType, WindowType
from .spectra import Spectrogram, melscale_fbanks
from .waveforms import AudioTransform, checked_number, checked_sample_rate

__all__ = ["GriffinLim", "InverseMelScale", "InverseSpectrogram", "inverse"]

_LEAST_WEIGHT = 1e-11  # of windows that overlap: below it a sample cannot be recovered


def inverse(spectrum: Array, of: Spectrogram, length: int | None) -> Array:
    """Return the waveform of a complex spectrum (..., frequency, time).

    The inverse transforms of the frames are weighted with the window, added where they overlap, and
    divided by the sum of the squared windows.

    Args:
        spectrum: complex numbers, as `of` would return them with ``power=0``.
        of: the Spectrogram that made the spectrum.
        length: number of samples of the result, which is cut or padded with zeros; None for all.

    Raises:
        ArgumentValueError: at some sample the sum of the squared windows is almost 0.
    """
    half = np.swapaxes(spectrum, -1, -2)[..., : of.n_fft // 2 + 1]  # the others are its mirror
    frames = np.fft.irfft(half, of.n_fft, axis=-1) * of.window
    if of.normalized:
        frames = frames * np.sqrt(np.square(of.window).sum())
    count, size = frames.shape[-2:]
    total = size + of.hop * (count - 1)
    wave, weight = np.zeros((*frames.shape[:-2], total)), np.zeros(total)
    for i in range(count):
        part = slice(i * of.hop, i * of.hop + size)
        wave[..., part] += frames[..., i, :]
        weight[part] += np.square(of.window)
    start = size // 2 if of.center else 0
    end = total - start if length is None else min(start + length, total)
    weight = weight[start:end]
    if (weight < _LEAST_WEIGHT).any():
        raise ArgumentValueError(
            f"{type(of).__name__}: the windows leave samples without weight; wanted a shorter "
            "hop_length, another window or center=True"
        )
    wave = wave[..., start:end] / weight
    missing = 0 if length is None else length - wave.shape[-1]
    return np.pad(wave, [(0, 0)] * (wave.ndim - 1) + [(0, missing)])


class InverseSpectrogram(Spectrogram):
    """Computes the waveform of a complex spectrum (`mindspore.dataset.audio.InverseSpectrogram`).

    The spectrum is (..., frequency, time, 2), as ``Spectrogram(power=0)`` returns it.

    Args:
        length: number of samples of the waveform; None for all.
        n_fft, win_length, hop_length, pad, window, normalized, center, pad_mode, onesided: the
            arguments of the `Spectrogram` that made the spectrum. `pad_mode` has no effect.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the sizes do not fit, or the
            windows leave samples without weight.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> wave = np.arange(16, dtype=np.float32)[None]
        >>> spectrum = audio.Spectrogram(8, power=0)(wave)
        >>> audio.InverseSpectrogram(n_fft=8)(spectrum).round(3)[0, :3].tolist()
        [0.0, 1.0, 2.0]
    """

    _axes = 3

    def __init__(
        self,
        length: int | None = None,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, pad, window, 0.0, normalized, center,
                         pad_mode, onesided)  # fmt: skip
        self.length = None if length is None else checked_number(
            "InverseSpectrogram", "length", length, 0
        )  # fmt: skip

    def _signal(self, signal: Array) -> Array:
        wanted = self.n_fft // 2 + 1 if self.onesided else self.n_fft
        if signal.shape[-1] != 2 or signal.shape[-3] != wanted:
            raise ShapeError(
                f"InverseSpectrogram: got shape {signal.shape}; wanted (..., {wanted}, time, 2)"
            )
        length = None if self.length is None else self.length + 2 * self.pad
        wave = inverse(signal[..., 0] + 1j * signal[..., 1], self, length)
        return wave[..., self.pad : wave.shape[-1] - self.pad]


class GriffinLim(AudioTransform):
    """Computes a waveform with a given spectrogram (`mindspore.dataset.audio.GriffinLim`).

    A spectrogram has no phases; they are found iteratively, with momentum (Perraudin et al., 2013).

    Args:
        n_fft: number of samples of one Fourier transform.
        n_iter: number of iterations.
        win_length: number of samples of the window; by default `n_fft`.
        hop_length: samples from one transform to the next; by default half of the window.
        window_type: the window function.
        power: exponent of the magnitudes in the spectrogram, above 0.
        momentum: momentum of the iteration, 0 or more and below 1.
        length: number of samples of the waveform; None for all.
        rand_init: begin with random phases instead of zeros.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the number of frequencies is
            wrong.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.GriffinLim(8, 2)(np.ones((1, 5, 6), np.float32)).shape
        (1, 20)
    """

    _axes = 2

    def __init__(
        self,
        n_fft: int = 400,
        n_iter: int = 32,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_type: WindowType = WindowType.HANN,
        power: float = 2.0,
        momentum: float = 0.99,
        length: int | None = None,
        rand_init: bool = True,
    ) -> None:
        owner = "GriffinLim"
        self.steps = checked_number(owner, "n_iter", n_iter, 1)
        self.power = checked_number(owner, "power", power, np.nextafter(0, 1))
        checked_number(owner, "momentum", momentum, 0, np.nextafter(1, 0))
        self.momentum = momentum / (1 + momentum)
        self.length = None if length is None else checked_number(owner, "length", length, 0)
        if not isinstance(rand_init, bool):
            raise ArgumentError(f"{owner}: got rand_init={rand_init!r}; wanted True or False")
        self.random = rand_init
        self.spectrum = Spectrogram(n_fft, win_length, hop_length, 0, window_type, 0.0)

    def _signal(self, signal: Array) -> Array:
        wanted = self.spectrum.n_fft // 2 + 1
        if signal.shape[-2] != wanted:
            raise ShapeError(f"GriffinLim: got shape {signal.shape}; wanted (..., {wanted}, time)")
        sizes = np.power(signal.astype(np.float64), 1 / self.power)
        phases: Array = np.ones(sizes.shape, np.complex128)
        if self.random:
            drawn = config.random_numbers().random((2, *sizes.shape))
            phases = drawn[0] + 1j * drawn[1]
        before: Array = np.zeros(sizes.shape, np.complex128)
        for _ in range(self.steps):
            pairs = self.spectrum._signal(inverse(sizes * phases, self.spectrum, None))
            rebuilt = pairs[..., 0] + 1j * pairs[..., 1]
            phases = rebuilt + self.momentum * (rebuilt - before)
            phases = phases / (np.abs(phases) + 1e-16)
            before = rebuilt
        return inverse(sizes * phases, self.spectrum, self.length)


class InverseMelScale(AudioTransform):
    """Computes a spectrogram with given mel bands (`mindspore.dataset.audio.InverseMelScale`).

    It minimises the squared difference of the bands by gradient descent with momentum, starting
    from random numbers in [0, 1). Negative numbers in the result become 0.

    Args:
        n_stft: number of frequencies of the spectrogram.
        n_mels: number of mel bands.
        sample_rate: samples per second.
        f_min, f_max: lowest and highest frequency in Hz; by default up to half of the sample rate.
        max_iter: largest number of steps.
        tolerance_loss: stop at this loss.
        tolerance_change: stop if the loss changes by less.
        sgdargs: learning rate and momentum; by default ``{"sgd_lr": 0.1, "sgd_momentum": 0.9}``.
        norm: normalisation of the mel filters.
        mel_type: the mel scale, HTK's or Slaney's.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the number of bands is wrong.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.InverseMelScale(9, 3, 8000)(np.ones((1, 3, 2), np.float32)).shape
        (1, 9, 2)
    """

    _axes = 2

    def __init__(
        self,
        n_stft: int,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        max_iter: int = 100000,
        tolerance_loss: float = 1e-5,
        tolerance_change: float = 1e-8,
        sgdargs: dict[str, float] | None = None,
        norm: NormType = NormType.NONE,
        mel_type: MelType = MelType.HTK,
    ) -> None:
        owner = "InverseMelScale"
        rate = checked_sample_rate(owner, sample_rate)
        highest = rate // 2 if f_max is None else checked_number(owner, "f_max", f_max, 0)
        checked_number(owner, "f_min", f_min, 0, np.nextafter(highest, 0))
        for name, value in (("n_stft", n_stft), ("n_mels", n_mels)):
            checked_number(owner, name, value, 1)
        self.steps = checked_number(owner, "max_iter", max_iter, 0)
        self.loss = checked_number(owner, "tolerance_loss", tolerance_loss, 0)
        self.change = checked_number(owner, "tolerance_change", tolerance_change, 0)
        self.rate, self.momentum = _descent(owner, sgdargs)
        self.bands = melscale_fbanks(n_stft, f_min, highest, n_mels, rate, norm, mel_type)

    def _signal(self, signal: Array) -> Array:
        if signal.shape[-2] != self.bands.shape[1]:
            raise ShapeError(
                f"InverseMelScale: got shape {signal.shape}; wanted (..., {self.bands.shape[1]}, "
                "time)"
            )
        rows = np.swapaxes(signal, -1, -2).reshape(-1, signal.shape[-1], signal.shape[-2])
        found = config.random_numbers().random((*rows.shape[:2], len(self.bands)))
        speed, last = np.zeros_like(found), np.inf
        for _ in range(self.steps):
            difference = rows - found @ self.bands
            loss = float(np.square(difference).sum(-1).mean())
            slope = -2 / (rows.shape[0] * rows.shape[1]) * (difference @ self.bands.T)
            speed = self.momentum * speed + slope
            found = found - self.rate * speed
            if loss < self.loss or abs(last - loss) < self.change:
                break
            last = loss
        found = np.swapaxes(np.maximum(found, 0), -1, -2)
        return found.reshape(*signal.shape[:-2], *found.shape[-2:])


def _descent(owner: str, given: object) -> tuple[float, float]:
    """Return (learning rate, momentum) from an argument `sgdargs`; raise if it is invalid.

    `given` is a dictionary that may have the keys "sgd_lr" (default 0.1) and "sgd_momentum"
    (default 0.9), or None for both defaults.
    """
    if given is not None and not isinstance(given, dict):
        raise ArgumentError(f"{owner}: got sgdargs={given!r}; wanted a dictionary")
    options: dict[str, float] = {"sgd_lr": 0.1, "sgd_momentum": 0.9} | (given or {})
    if len(options) > 2:
        raise ArgumentValueError(
            f"{owner}: got sgdargs={given!r}; wanted the keys 'sgd_lr' and 'sgd_momentum'"
        )
    return (
        checked_number(owner, "sgd_lr", options["sgd_lr"], 0),
        checked_number(owner, "sgd_momentum", options["sgd_momentum"], 0),
    )
