"""Audio transforms of the level of a signal, sample by sample, and masks of bands.

`dataset.audio` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ...option_checks import warn_unused
from .. import config
from ..rows import Array
from .enums import FadeShape, GainType, ScaleType
from .waveforms import AudioTransform, checked_member, checked_number, checked_signal

__all__ = [
    "AmplitudeToDB", "Angle", "ComplexNorm", "Contrast", "DBToAmplitude", "DCShift", "Fade",
    "FrequencyMasking", "Gain", "Magphase", "MaskAlongAxis", "MaskAlongAxisIID", "MuLawDecoding",
    "MuLawEncoding", "TimeMasking", "Vol",
]  # fmt: skip


class AmplitudeToDB(AudioTransform):
    """Converts powers or magnitudes to decibels (`mindspore.dataset.audio.AmplitudeToDB`).

    Args:
        stype: whether the signal is a power or a magnitude.
        ref_value: the value that becomes 0 dB.
        amin: smaller values are replaced by this one.
        top_db: values that are more than this below the largest are raised to that limit.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: `amin` is not above 0, or `top_db` is below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.AmplitudeToDB()(np.array([[1.0, 10.0]])).tolist()
        [[0.0, 10.0]]
    """

    _axes = 2

    def __init__(
        self,
        stype: ScaleType = ScaleType.POWER,
        ref_value: float = 1.0,
        amin: float = 1e-10,
        top_db: float = 80.0,
    ) -> None:
        checked_member("AmplitudeToDB", "stype", stype, ScaleType)
        self.factor = 10.0 if stype == ScaleType.POWER else 20.0
        self.amin = checked_number("AmplitudeToDB", "amin", amin, 1e-300)
        self.ref = checked_number("AmplitudeToDB", "ref_value", ref_value, 1e-300)
        self.top = checked_number("AmplitudeToDB", "top_db", top_db, 0)

    def _signal(self, signal: Array) -> Array:
        found = self.factor * np.log10(np.maximum(signal, self.amin))
        found = found - self.factor * math.log10(max(self.amin, self.ref))
        axes = tuple(range(max(signal.ndim - 3, 0), signal.ndim))
        return np.maximum(found, found.max(axes, keepdims=True) - self.top)


class DBToAmplitude(AudioTransform):
    """Converts decibels x to ``ref * (10 ** (0.1 * x)) ** power``
    (`mindspore.dataset.audio.DBToAmplitude`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.DBToAmplitude(1.0, 1.0)(np.array([[10.0]])).tolist()
        [[10.0]]
    """

    def __init__(self, ref: float, power: float) -> None:
        self.ref = checked_number("DBToAmplitude", "ref", ref)
        self.power = checked_number("DBToAmplitude", "power", power)

    def _signal(self, signal: Array) -> Array:
        return self.ref * np.power(np.power(10.0, 0.1 * signal), self.power)


class _Complex(AudioTransform):
    """Base class of transforms of complex numbers, stored as pairs (..., 2) of two reals."""

    def __call__(self, waveform: object) -> Array:
        array = checked_signal(type(self).__name__, waveform, 2)
        if array.shape[-1] != 2:
            raise ArgumentValueError(f"{type(self).__name__}: got shape {array.shape}; wanted "
                                     "(..., 2)")  # fmt: skip
        return super().__call__(array)


class Angle(_Complex):
    """The angle of complex numbers (..., 2) (`mindspore.dataset.audio.Angle`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Angle()(np.array([[0.0, 2.0]])).round(4).tolist()
        [1.5708]
    """

    def _signal(self, signal: Array) -> Array:
        return np.arctan2(signal[..., 1], signal[..., 0])


class ComplexNorm(_Complex):
    """A power of the magnitude of complex numbers (..., 2) (`mindspore.dataset.audio.ComplexNorm`).

    Raises:
        ValueError: `power` is negative.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.ComplexNorm()(np.array([[3.0, 4.0]])).tolist()
        [5.0]
    """

    def __init__(self, power: float = 1.0) -> None:
        self.power = checked_number("ComplexNorm", "power", power, 0)

    def _signal(self, signal: Array) -> Array:
        return np.power(np.square(signal).sum(-1), self.power / 2)


class Magphase:
    """A power of the magnitude, and the angle, of complex numbers (..., 2)
    (`mindspore.dataset.audio.Magphase`).

    Raises:
        ValueError: `power` is negative.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Magphase(2.0)(np.array([[3.0, 4.0]]))[0].tolist()
        [25.0]
    """

    def __init__(self, power: float = 1.0) -> None:
        self.norm = ComplexNorm(power)

    def __call__(self, waveform: object) -> tuple[Array, Array]:
        return self.norm(waveform), Angle()(waveform)


class Contrast(AudioTransform):
    """Makes a signal louder without changing its peaks (`mindspore.dataset.audio.Contrast`).

    Args:
        enhancement_amount: strength of the effect, 0 to 100.

    Raises:
        ValueError: the argument is outside the range.
    """

    def __init__(self, enhancement_amount: float = 75.0) -> None:
        amount = checked_number("Contrast", "enhancement_amount", enhancement_amount, 0, 100)
        self.amount = amount / 750.0

    def _signal(self, signal: Array) -> Array:
        angle = signal * (math.pi / 2)
        return np.sin(angle + self.amount * np.sin(angle * 4))


class DCShift(AudioTransform):
    """Adds a constant to a signal; `limiter_gain` limits values near the peak
    (`mindspore.dataset.audio.DCShift`).

    Raises:
        ValueError: `shift` is not in [-2, 2].
    """

    def __init__(self, shift: float, limiter_gain: float | None = None) -> None:
        self.shift = checked_number("DCShift", "shift", shift, -2, 2)
        self.limit = None if limiter_gain is None else checked_number("DCShift", "limiter_gain",
                                                                      limiter_gain)  # fmt: skip

    def _signal(self, signal: Array) -> Array:
        if self.limit is None:
            return np.clip(signal + self.shift, -1, 1)
        threshold = 1.0 - (abs(self.shift) - self.limit)
        sign = 1 if self.shift > 0 else -1
        over = signal * sign > threshold
        rest = (signal * sign - threshold) * self.limit / (1.0 - threshold)
        limited = sign * np.minimum(rest + threshold + abs(self.shift), threshold)
        return np.clip(np.where(over, limited, signal + self.shift), -1, 1)


class Gain(AudioTransform):
    """Amplifies a waveform by `gain_db` decibels (`mindspore.dataset.audio.Gain`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Gain(20.0)(np.array([0.01])).round(3).tolist()
        [0.1]
    """

    def __init__(self, gain_db: float = 1.0) -> None:
        self.ratio = 10 ** (checked_number("Gain", "gain_db", gain_db) / 20)

    def _signal(self, signal: Array) -> Array:
        return signal * self.ratio


class Vol(AudioTransform):
    """Amplifies a waveform and clips it to -1 to 1 (`mindspore.dataset.audio.Vol`).

    Args:
        gain: the amplification, as a factor of amplitude or power or in decibels.
        gain_type: the unit of `gain`.

    Raises:
        ValueError: an amplitude is below 0, or a power is not above 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Vol(2.0)(np.array([0.2, 0.7])).tolist()
        [0.4, 1.0]
    """

    def __init__(self, gain: float, gain_type: GainType = GainType.AMPLITUDE) -> None:
        checked_member("Vol", "gain_type", gain_type, GainType)
        checked_number("Vol", "gain", gain, -np.inf if gain_type == GainType.DB else 0)
        if gain_type == GainType.POWER and gain == 0:
            raise ArgumentValueError("Vol: got a power of 0; wanted above 0")
        self.ratio = (
            gain if gain_type == GainType.AMPLITUDE else 10 ** (gain / 20)
            if gain_type == GainType.DB else math.sqrt(gain)
        )  # fmt: skip

    def _signal(self, signal: Array) -> Array:
        return np.clip(signal * self.ratio, -1, 1)


class Fade(AudioTransform):
    """Fades a signal in at its start and out at its end (`mindspore.dataset.audio.Fade`).

    Args:
        fade_in_len, fade_out_len: numbers of samples over which to fade.
        fade_shape: shape of the curve of factors.

    Raises:
        ValueError: a number is negative; when called: the signal has fewer samples than that.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Fade(3, 0)(np.ones((1, 4))).tolist()
        [[0.0, 0.5, 1.0, 1.0]]
    """

    def __init__(
        self,
        fade_in_len: int = 0,
        fade_out_len: int = 0,
        fade_shape: FadeShape = FadeShape.LINEAR,
    ) -> None:
        self.lengths = (
            checked_number("Fade", "fade_in_len", fade_in_len, 0),
            checked_number("Fade", "fade_out_len", fade_out_len, 0),
        )
        self.shape = checked_member("Fade", "fade_shape", fade_shape, FadeShape)

    def _curve(self, n: int) -> Array:
        """Return the factors of a fade-in over n samples, which rise in the chosen shape."""
        t = np.linspace(0, 1, n)
        if self.shape == FadeShape.EXPONENTIAL:
            return np.power(2.0, t - 1) * t
        if self.shape == FadeShape.LOGARITHMIC:
            return np.log10(0.1 + t) + 1
        if self.shape == FadeShape.QUARTER_SINE:
            return np.sin(t * math.pi / 2)
        if self.shape == FadeShape.HALF_SINE:
            return np.sin(t * math.pi - math.pi / 2) / 2 + 0.5
        return t

    def _signal(self, signal: Array) -> Array:
        n, (first, last) = signal.shape[-1], self.lengths
        if max(first, last) > n:
            raise ArgumentValueError(f"Fade: got {first} and {last} samples of {n}")
        scale = np.ones(n)
        scale[:first] *= self._curve(first)
        if last:
            scale[-last:] *= self._curve(last)[::-1]
        return signal * scale


class MuLawEncoding:
    """Encodes a signal in [-1, 1] by mu-law as int32 levels
    (`mindspore.dataset.audio.MuLawEncoding`).

    Raises:
        ValueError: `quantization_channels` is below 2.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.MuLawEncoding()(np.array([[-1.0, 0.0, 1.0]])).tolist()
        [[0, 128, 255]]
    """

    def __init__(self, quantization_channels: int = 256) -> None:
        checked_number("MuLawEncoding", "quantization_channels", quantization_channels, 2)
        self.mu = quantization_channels - 1.0

    def __call__(self, waveform: object) -> Array:
        signal = checked_signal("MuLawEncoding", waveform)
        found = np.sign(signal) * np.log1p(self.mu * np.abs(signal)) / math.log1p(self.mu)
        return ((found + 1) / 2 * self.mu + 0.5).astype(np.int32)


class MuLawDecoding:
    """Decodes levels of `MuLawEncoding` to a signal (`mindspore.dataset.audio.MuLawDecoding`).

    Raises:
        ValueError: `quantization_channels` is below 2.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.MuLawDecoding()(np.array([[0, 255]])).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, quantization_channels: int = 256) -> None:
        checked_number("MuLawDecoding", "quantization_channels", quantization_channels, 2)
        self.mu = quantization_channels - 1.0

    def __call__(self, waveform: object) -> Array:
        signal = checked_signal("MuLawDecoding", waveform)
        at = signal / self.mu * 2 - 1.0
        found = np.sign(at) * (np.exp(np.abs(at) * math.log1p(self.mu)) - 1.0) / self.mu
        return found.astype(signal.dtype)


class MaskAlongAxis(AudioTransform):
    """Sets a band of frequencies (axis 1) or times (axis 2) to a value
    (`mindspore.dataset.audio.MaskAlongAxis`).

    Args:
        mask_start, mask_width: first index and size of the band.
        mask_value: the value to write.
        axis: 1 for frequencies, 2 for times, of a signal (..., frequency, time).

    Raises:
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.MaskAlongAxis(0, 1, 5.0, 2)(np.ones((1, 1, 2))).tolist()
        [[[5.0, 1.0]]]
    """

    _axes = 2

    def __init__(self, mask_start: int, mask_width: int, mask_value: float, axis: int) -> None:
        self.start = checked_number("MaskAlongAxis", "mask_start", mask_start, 0)
        self.width = checked_number("MaskAlongAxis", "mask_width", mask_width, 1)
        self.value = checked_number("MaskAlongAxis", "mask_value", mask_value)
        if axis not in (1, 2):
            raise ArgumentValueError(f"MaskAlongAxis: got axis={axis!r}; wanted 1 or 2")
        self.axis = axis

    def _signal(self, signal: Array) -> Array:
        made = signal.copy()
        band = slice(self.start, self.start + self.width)
        if self.axis == 2:
            made[..., band] = self.value
        else:
            made[..., band, :] = self.value
        return made


class MaskAlongAxisIID(AudioTransform):
    """Sets a random band of each channel to a value
    (`mindspore.dataset.audio.MaskAlongAxisIID`).

    Args:
        mask_param: upper bound, exclusive, of the random width of the band.
        mask_value: the value to write.
        axis: 1 for frequencies, 2 for times, of a signal (..., frequency, time).

    Raises:
        ValueError: an argument is outside its range.
    """

    _axes = 2

    def __init__(self, mask_param: int, mask_value: float, axis: int) -> None:
        self.param = checked_number("MaskAlongAxisIID", "mask_param", mask_param, 0)
        self.value = checked_number("MaskAlongAxisIID", "mask_value", mask_value)
        if axis not in (1, 2):
            raise ArgumentValueError(f"MaskAlongAxisIID: got axis={axis!r}; wanted 1 or 2")
        self.axis = axis

    def _signal(self, signal: Array) -> Array:
        flat = signal.reshape(-1, *signal.shape[-2:])
        random = config.random_numbers()
        made = []
        for channel in flat:
            width = int(random.uniform(0, self.param))
            start = int(random.uniform(0, max(channel.shape[self.axis - 1] - width, 1)))
            if width:
                channel = MaskAlongAxis(start, width, self.value, self.axis)._signal(channel)
            made.append(channel)
        return np.stack(made).reshape(signal.shape) if made else signal


class _Masking(AudioTransform):
    """Base class of transforms that overwrite a band of frequencies or times with a value.

    The band begins at `mask_start` or, with `iid_masks`, is chosen at random for each channel. A
    subclass sets `_axis`.
    """

    _axes = 2
    _axis = 1

    def __init__(self, iid_masks: bool, param: int, mask_start: int, mask_value: float) -> None:
        owner = type(self).__name__
        if not isinstance(iid_masks, bool):
            raise ArgumentError(f"{owner}: got iid_masks={iid_masks!r}; wanted True or False")
        checked_number(owner, "mask_param", param, 0)
        checked_number(owner, "mask_start", mask_start, 0)
        checked_number(owner, "mask_value", mask_value)
        if iid_masks and mask_start:
            warn_unused(owner, "mask_start", "has no effect: with iid_masks=True it is random")
        self.iid, self.param, self.start, self.value = iid_masks, param, mask_start, mask_value

    def _signal(self, signal: Array) -> Array:
        if self.iid:
            return MaskAlongAxisIID(self.param, self.value, self._axis)._signal(signal)
        if not self.param:
            return signal
        return MaskAlongAxis(self.start, self.param, self.value, self._axis)._signal(signal)


class FrequencyMasking(_Masking):
    """Sets a band of frequencies to a value (`mindspore.dataset.audio.FrequencyMasking`).

    Args:
        iid_masks: choose a random band for each channel.
        freq_mask_param: width of the band; with `iid_masks`, an upper bound of it.
        mask_start: first frequency of the band; has no effect with `iid_masks`, which warns once.
        mask_value: the value to write.

    Raises:
        ValueError: an argument is outside its range.
    """

    def __init__(
        self,
        iid_masks: bool = False,
        freq_mask_param: int = 0,
        mask_start: int = 0,
        mask_value: float = 0.0,
    ) -> None:
        super().__init__(iid_masks, freq_mask_param, mask_start, mask_value)


class TimeMasking(_Masking):
    """Sets a span of time to a value (`mindspore.dataset.audio.TimeMasking`).

    Args:
        iid_masks: choose a random span for each channel.
        time_mask_param: width of the span; with `iid_masks`, an upper bound of it.
        mask_start: first time of the span; has no effect with `iid_masks`, which warns once.
        mask_value: the value to write.

    Raises:
        ValueError: an argument is outside its range.
    """

    _axis = 2

    def __init__(
        self,
        iid_masks: bool = False,
        time_mask_param: int = 0,
        mask_start: int = 0,
        mask_value: float = 0.0,
    ) -> None:
        super().__init__(iid_masks, time_mask_param, mask_start, mask_value)
