"""Audio effects: overdrive, phaser, flanger and dither, as the program SoX defines them.

`dataset.audio` exports them for `Dataset.map`.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from .. import config
from ..rows import Array
from .enums import DensityFunction, Interpolation, Modulation
from .filters import filtered
from .waveforms import AudioTransform, checked_member, checked_number, checked_sample_rate

__all__ = ["Dither", "Flanger", "Overdrive", "Phaser"]


class Overdrive(AudioTransform):
    """Amplifies a waveform and clips it softly (`mindspore.dataset.audio.Overdrive`).

    With ``t = clip(x * gain + color / 200)``, where ``clip(t) = t - t ** 3 / 3`` between -1 and 1
    and 2/3 in size outside: ``y[i] = t[i] - t[i - 1] + 0.995 * y[i - 1]``. The result is ``x / 2 +
    0.75 * y``, between -1 and 1.

    Args:
        gain: amplification in decibels, 0 to 100.
        color: amount of even harmonics, 0 to 100.

    Raises:
        TypeError: an argument is no number.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Overdrive()(np.array([[0.1, -0.1]], np.float32)).round(3).tolist()
        [[0.55, -0.545]]
    """

    def __init__(self, gain: float = 20.0, color: float = 20.0) -> None:
        self.gain = 10 ** (checked_number("Overdrive", "gain", gain, 0, 100) / 20)
        self.offset = checked_number("Overdrive", "color", color, 0, 100) / 200

    def _signal(self, signal: Array) -> Array:
        loud = signal.astype(np.float64) * self.gain + self.offset
        inside = np.clip(loud, -1, 1)
        soft = inside - inside**3 / 3
        high = filtered("Overdrive", soft, (1, -1), (1, -0.995))
        return np.clip(signal * 0.5 + high * 0.75, -1, 1)


def _wave(triangular: bool, size: int, low: float, high: float, phase: float) -> Array:
    """Return one period of a sine or triangle wave between `low` and `high`.

    The wave has `size` samples and starts at `phase`, in radians.
    """
    point = ((np.arange(size) + int(phase / math.tau * size + 0.5)) % size) / size
    if triangular:
        wave = np.abs((point + 0.75) % 1 * 2 - 1)
    else:
        wave = (np.sin(point * math.tau) + 1) / 2
    return wave * (high - low) + low


class Phaser(AudioTransform):
    """Adds an echo whose delay varies (`mindspore.dataset.audio.Phaser`).

    Args:
        sample_rate: samples per second, such as 44100.
        gain_in: factor for the input signal, 0 to 1.
        gain_out: factor for the result, 0 to 1e9; the product is clipped to -1 to 1.
        delay_ms: longest delay in milliseconds, at most 5 and at least half a sample.
        decay: strength of the echo, 0 to 0.99.
        mod_speed: frequency in Hz with which the delay varies, 0.1 to 2.
        sinusoidal: whether the delay varies as a sine; otherwise as a triangle wave.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Phaser(8000)(np.ones((1, 2), np.float32)).round(3).tolist()
        [[0.296, 0.414]]
    """

    def __init__(
        self,
        sample_rate: int,
        gain_in: float = 0.4,
        gain_out: float = 0.74,
        delay_ms: float = 3.0,
        decay: float = 0.4,
        mod_speed: float = 0.5,
        sinusoidal: bool = True,
    ) -> None:
        owner = "Phaser"
        rate = checked_sample_rate(owner, sample_rate)
        self.gain_in = checked_number(owner, "gain_in", gain_in, 0, 1)
        self.gain_out = checked_number(owner, "gain_out", gain_out, 0, 1e9)
        self.decay = checked_number(owner, "decay", decay, 0, 0.99)
        delay = checked_number(owner, "delay_ms", delay_ms, 0, 5)
        speed = checked_number(owner, "mod_speed", mod_speed, 0.1, 2)
        if not isinstance(sinusoidal, bool):
            raise ArgumentError(f"{owner}: got sinusoidal={sinusoidal!r}; wanted True or False")
        self.length = int(delay * 0.001 * rate + 0.5)
        if not self.length:
            raise ArgumentValueError(
                f"{owner}: got delay_ms={delay_ms} of {rate} samples a second; wanted at least "
                "half a sample"
            )
        wave = _wave(not sinusoidal, int(rate / speed + 0.5), 1, self.length, math.pi / 2)
        self.delays = np.trunc(wave + 0.5).astype(np.int64)

    def _signal(self, signal: Array) -> Array:
        out = signal.astype(np.float64) * self.gain_in
        echoes = np.zeros((*signal.shape[:-1], self.length))
        for i in range(signal.shape[-1]):
            delay = self.delays[i % len(self.delays)]
            out[..., i] += echoes[..., (i + delay) % self.length]
            echoes[..., (i + 1) % self.length] = out[..., i] * self.decay
        return np.clip(out * self.gain_out, -1, 1)


class Flanger(AudioTransform):
    """Adds a delayed copy of the signal whose delay varies (`mindspore.dataset.audio.Flanger`).

    The signal is (..., channel, time).

    Args:
        sample_rate: samples per second, such as 44100.
        delay: shortest delay in milliseconds, 0 to 30.
        depth: range in which the delay varies in milliseconds, 0 to 10.
        regen: percentage of the delayed signal that is fed back into the delay, -95 to 95.
        width: percentage of the delayed signal that is added to the result, 0 to 100.
        speed: frequency in Hz with which the delay varies, 0.1 to 10.
        phase: shift between the variations of neighbouring channels, in percent of a period, 0 to
            100.
        modulation: whether the delay varies as a sine or as a triangle wave.
        interpolation: how values between two samples are computed.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the signal has no axis of
            channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Flanger(8000)(np.ones((1, 2), np.float32)).round(3).tolist()
        [[1.0, 1.0]]
    """

    def __init__(
        self,
        sample_rate: int,
        delay: float = 0.0,
        depth: float = 2.0,
        regen: float = 0.0,
        width: float = 71.0,
        speed: float = 0.5,
        phase: float = 25.0,
        modulation: Modulation = Modulation.SINUSOIDAL,
        interpolation: Interpolation = Interpolation.LINEAR,
    ) -> None:
        owner = "Flanger"
        rate = checked_sample_rate(owner, sample_rate)
        least = checked_number(owner, "delay", delay, 0, 30) / 1000
        range_ = checked_number(owner, "depth", depth, 0, 10) / 1000
        self.feedback = checked_number(owner, "regen", regen, -95, 95) / 100
        share = checked_number(owner, "width", width, 0, 100) / 100
        self.phase = checked_number(owner, "phase", phase, 0, 100) / 100
        checked_number(owner, "speed", speed, 0.1, 10)
        triangular = checked_member(owner, "modulation", modulation, Modulation) == "triangular"
        checked_member(owner, "interpolation", interpolation, Interpolation)
        self.quadratic = interpolation is Interpolation.QUADRATIC
        self.gain_in = 1 / (1 + share)
        self.gain_delayed = share / (1 + share) * (1 - abs(self.feedback))
        self.length = int((least + range_) * rate + 0.5) + 2
        self.delays = _wave(
            triangular, int(rate / speed), math.floor(least * rate + 0.5), self.length - 2,
            3 * math.pi / 2,
        ).astype(np.float32)  # fmt: skip

    def _signal(self, signal: Array) -> Array:
        if signal.ndim < 2:
            raise ShapeError(f"Flanger: got shape {signal.shape}; wanted (..., channel, time)")
        channels, period = signal.shape[-2], len(self.delays)
        starts = (np.arange(channels) * period * self.phase + 0.5).astype(np.int64)
        past = np.zeros((*signal.shape[:-1], self.length))
        last = np.zeros(signal.shape[:-1])
        out = np.empty(signal.shape)
        each = np.arange(channels)
        for i in range(signal.shape[-1]):
            at = -(i + 1) % self.length
            past[..., at] = signal[..., i] + last * self.feedback
            delay = self.delays[(i + starts) % period]
            whole = np.floor(delay).astype(np.int64)
            one, two, three = (past[..., each, (at + whole + k) % self.length] for k in range(3))
            fraction = delay - whole
            if self.quadratic:
                bend, slope = three - one, two - one
                last = one + ((bend / 2 - slope) * fraction + slope * 2 - bend / 2) * fraction
            else:
                last = one + (two - one) * fraction
            out[..., i] = signal[..., i] * self.gain_in + last * self.gain_delayed
        return np.clip(out, -1, 1)


_BITS = 16  # of a sample after Dither


class Dither(AudioTransform):
    """Adds noise and rounds to 16 bits (`mindspore.dataset.audio.Dither`).

    The noise is MindSpore's. In units of the last bit it is, for TPDF, a triangle over time that
    rises from 0 to 1 and falls to 0; for RPDF, one number for all samples: a randomly chosen sample
    of the signal minus 1/2; for GPDF, also one number: the sum of seven randomly chosen samples.

    Args:
        density_function: the kind of noise.
        noise_shaping: add the rounding error of each sample to the next one.

    Raises:
        TypeError: an argument has a wrong type.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> (audio.Dither()(np.array([[0.5, 0.5, 0.5]], np.float32)) * 2**15).tolist()
        [[16383.0, 16384.0, 16384.0]]
    """

    def __init__(
        self,
        density_function: DensityFunction = DensityFunction.TPDF,
        noise_shaping: bool = False,
    ) -> None:
        self.density = checked_member(
            "Dither", "density_function", density_function, DensityFunction
        )
        if not isinstance(noise_shaping, bool):
            raise ArgumentError(f"Dither: got noise_shaping={noise_shaping!r}; wanted a bool")
        self.shaping = noise_shaping

    def _signal(self, signal: Array) -> Array:
        if not signal.size:
            return signal
        steps = 2 ** (_BITS - 1)
        rows = signal.astype(np.float64).reshape(-1, signal.shape[-1])
        found = np.round(rows * (steps - 2) + self._noise(rows)) / steps
        if self.shaping:
            found[:, 1:] += (found - rows)[:, :-1]
        return found.reshape(signal.shape)

    def _noise(self, rows: Array) -> Array | float:
        """Return the noise to be added to the samples `rows`, which are (channels, time).

        Its unit is the last bit of the 16-bit samples to which the result is rounded.
        """
        if self.density is DensityFunction.TPDF:
            return np.asarray(np.bartlett(rows.shape[1] + 2)[:-1][: rows.shape[1]])
        drawn = config.random_numbers().integers(rows.shape, size=(7, 2))
        if self.density is DensityFunction.RPDF:
            return float(rows[tuple(drawn[0])]) - 0.5
        return float(sum(rows[tuple(at)] for at in drawn))
