"""Audio filters: second-order sections by their published formulas, and general linear filters.

For users, in `Dataset.map`. The formulas are those of R. Bristow-Johnson's audio EQ cookbook. SciPy
runs the filters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import ArgumentValueError
from ..rows import Array
from .waveforms import AudioTransform, checked_number

__all__ = [
    "AllpassBiquad", "BandBiquad", "BandpassBiquad", "BandrejectBiquad", "BassBiquad", "Biquad",
    "DeemphBiquad", "EqualizerBiquad", "Filtfilt", "HighpassBiquad", "LFilter", "LowpassBiquad",
    "RiaaBiquad", "TrebleBiquad",
]  # fmt: skip


def filtered(owner: str, signal: Array, b: Sequence[float], a: Sequence[float]) -> Array:
    """Filter a signal along its last axis by the linear filter with coefficients `b` and `a`.

    `b` is the numerator and `a` the denominator.

    Raises:
        ImportError: SciPy is not installed; `owner` is the transform, for the message.
    """
    try:
        from scipy.signal import lfilter
    except ImportError:
        raise ImportError(
            f"{owner}: needs SciPy; install it with: pip install duograph[data]"
        ) from None
    return lfilter(np.asarray(b, np.float64), np.asarray(a, np.float64), signal, axis=-1)


class _Section(AudioTransform):
    """Base class of second-order filters; a subclass sets the coefficients `_b` and `_a`."""

    _b: Sequence[float]
    _a: Sequence[float]

    def _signal(self, signal: Array) -> Array:
        return np.clip(filtered(type(self).__name__, signal, self._b, self._a), -1, 1)

    def _angle(
        self, sample_rate: float, frequency: float, q: float = 1.0
    ) -> tuple[float, float, float]:
        """Check a filter's arguments; return (cos w, sin w, sin w / (2 q)).

        w is the angle, in radians, by which a wave of the given frequency advances in one sample.
        """
        owner = type(self).__name__
        if checked_number(owner, "sample_rate", sample_rate) == 0:
            raise ArgumentValueError(f"{owner}: got sample_rate=0")
        checked_number(owner, "frequency", frequency)
        if not 0 < checked_number(owner, "Q", q) <= 1:
            raise ArgumentValueError(f"{owner}: got Q={q}; wanted above 0, at most 1")
        w = 2 * math.pi * frequency / sample_rate
        return math.cos(w), math.sin(w), math.sin(w) / 2 / q


class Biquad(_Section):
    """A second-order filter with the given coefficients (`mindspore.dataset.audio.Biquad`).

    Raises:
        ValueError: `a0` is 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Biquad(0.5, 0, 0, 1.0, 0, 0)(np.ones((1, 2), np.float32)).tolist()
        [[0.5, 0.5]]
    """

    def __init__(self, b0: float, b1: float, b2: float, a0: float, a1: float, a2: float) -> None:
        for value in (b0, b1, b2, a0, a1, a2):
            checked_number("Biquad", "coefficient", value)
        if a0 == 0:
            raise ArgumentValueError("Biquad: got a0=0")
        self._b, self._a = (b0, b1, b2), (a0, a1, a2)


class AllpassBiquad(_Section):
    """Shifts the phase of frequencies near `central_freq`
    (`mindspore.dataset.audio.AllpassBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        c, _, alpha = self._angle(sample_rate, central_freq, Q)
        self._b, self._a = (1 - alpha, -2 * c, 1 + alpha), (1 + alpha, -2 * c, 1 - alpha)


class BandBiquad(_Section):
    """Passes a band of frequencies around `central_freq` (`mindspore.dataset.audio.BandBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(
        self, sample_rate: int, central_freq: float, Q: float = 0.707, noise: bool = False
    ) -> None:
        self._angle(sample_rate, central_freq, Q)
        w = 2 * math.pi * central_freq / sample_rate
        a2 = math.exp(-2 * math.pi * central_freq / Q / sample_rate)
        a1 = -4 * a2 / (1 + a2) * math.cos(w)
        b0 = math.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
        if noise:
            mult = math.sqrt(((1 + a2) * (1 + a2) - a1 * a1) * (1 - a2) / (1 + a2)) / b0
            b0 *= mult
        self._b, self._a = (b0, 0.0, 0.0), (1.0, a1, a2)


class BandpassBiquad(_Section):
    """Passes a band of frequencies around `central_freq`
    (`mindspore.dataset.audio.BandpassBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(
        self,
        sample_rate: int,
        central_freq: float,
        Q: float = 0.707,
        const_skirt_gain: bool = False,
    ) -> None:
        c, s, alpha = self._angle(sample_rate, central_freq, Q)
        top = s / 2 if const_skirt_gain else alpha
        self._b, self._a = (top, 0.0, -top), (1 + alpha, -2 * c, 1 - alpha)


class BandrejectBiquad(_Section):
    """Removes a band of frequencies (`mindspore.dataset.audio.BandrejectBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        c, _, alpha = self._angle(sample_rate, central_freq, Q)
        self._b, self._a = (1.0, -2 * c, 1.0), (1 + alpha, -2 * c, 1 - alpha)


class _Shelf(_Section):
    """Base class of filters that amplify either all frequencies below a given one or all above."""

    def _shelf(self, sample_rate: int, gain: float, frequency: float, q: float, sign: int) -> None:
        c, _, alpha = self._angle(sample_rate, frequency, q)
        a = math.exp(checked_number(type(self).__name__, "gain", gain) / 40 * math.log(10))
        root = 2 * math.sqrt(a) * alpha
        more, less = (a + 1) * 1.0, (a - 1) * sign
        self._b = (
            a * (more - less * c + root), 2 * a * sign * ((a - 1) - sign * (a + 1) * c),
            a * (more - less * c - root),
        )  # fmt: skip
        self._a = (
            more + less * c + root, -2 * sign * ((a - 1) + sign * (a + 1) * c),
            more + less * c - root,
        )  # fmt: skip


class BassBiquad(_Shelf):
    """Amplifies or attenuates low frequencies (`mindspore.dataset.audio.BassBiquad`).

    Args:
        sample_rate: samples per second.
        gain: amplification of these frequencies in dB.
        central_freq, Q: frequency in Hz of the transition, and its steepness.

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(
        self, sample_rate: int, gain: float, central_freq: float = 100.0, Q: float = 0.707
    ) -> None:
        self._shelf(sample_rate, gain, central_freq, Q, 1)


class TrebleBiquad(_Shelf):
    """Amplifies or attenuates high frequencies (`mindspore.dataset.audio.TrebleBiquad`).

    Arguments and errors are those of `BassBiquad`.
    """

    def __init__(
        self, sample_rate: int, gain: float, central_freq: float = 3000, Q: float = 0.707
    ) -> None:
        self._shelf(sample_rate, gain, central_freq, Q, -1)


class EqualizerBiquad(_Section):
    """Amplifies or attenuates a band of frequencies (`mindspore.dataset.audio.EqualizerBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(self, sample_rate: int, center_freq: float, gain: float, Q: float = 0.707) -> None:
        c, _, alpha = self._angle(sample_rate, center_freq, Q)
        a = math.exp(checked_number("EqualizerBiquad", "gain", gain) / 40 * math.log(10))
        self._b = (1 + alpha * a, -2 * c, 1 - alpha * a)
        self._a = (1 + alpha / a, -2 * c, 1 - alpha / a)


class HighpassBiquad(_Section):
    """Passes frequencies above `cutoff_freq` (`mindspore.dataset.audio.HighpassBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        c, _, alpha = self._angle(sample_rate, cutoff_freq, Q)
        self._b = ((1 + c) / 2, -1 - c, (1 + c) / 2)
        self._a = (1 + alpha, -2 * c, 1 - alpha)


class LowpassBiquad(_Section):
    """Passes frequencies below `cutoff_freq` (`mindspore.dataset.audio.LowpassBiquad`).

    Raises:
        ValueError: `sample_rate` is 0, or `Q` is not in (0, 1].
    """

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        c, _, alpha = self._angle(sample_rate, cutoff_freq, Q)
        self._b = ((1 - c) / 2, 1 - c, (1 - c) / 2)
        self._a = (1 + alpha, -2 * c, 1 - alpha)


_DEEMPH = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}


class DeemphBiquad(_Shelf):
    """Undoes the pre-emphasis of compact discs (`mindspore.dataset.audio.DeemphBiquad`).

    Args:
        sample_rate: 44100 or 48000.

    Raises:
        ValueError: `sample_rate` is another one.
    """

    def __init__(self, sample_rate: int) -> None:
        if sample_rate not in _DEEMPH:
            raise ArgumentValueError(
                f"DeemphBiquad: got sample_rate={sample_rate!r}; wanted {list(_DEEMPH)}"
            )
        frequency, slope, gain = _DEEMPH[sample_rate]
        a = math.exp(gain / 40 * math.log(10))
        w = 2 * math.pi * frequency / sample_rate
        alpha = math.sin(w) / 2 * math.sqrt((a + 1 / a) * (1 / slope - 1) + 2)
        c, root = math.cos(w), 2 * math.sqrt(a) * alpha
        self._b = (a * ((a + 1) + (a - 1) * c + root), -2 * a * ((a - 1) + (a + 1) * c),
                   a * ((a + 1) + (a - 1) * c - root))  # fmt: skip
        self._a = ((a + 1) - (a - 1) * c + root, 2 * ((a - 1) - (a + 1) * c),
                   (a + 1) - (a - 1) * c - root)  # fmt: skip


_RIAA = {
    44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}


class RiaaBiquad(_Section):
    """Undoes the RIAA equalisation of vinyl records (`mindspore.dataset.audio.RiaaBiquad`).

    Args:
        sample_rate: 44100, 48000, 88200 or 96000.

    Raises:
        ValueError: `sample_rate` is another one.
    """

    def __init__(self, sample_rate: int) -> None:
        if sample_rate not in _RIAA:
            raise ArgumentValueError(
                f"RiaaBiquad: got sample_rate={sample_rate!r}; wanted {list(_RIAA)}"
            )
        zeros, poles = _RIAA[sample_rate]
        b = (1.0, -(zeros[0] + zeros[1]), zeros[0] * zeros[1])
        a = (1.0, -(poles[0] + poles[1]), poles[0] * poles[1])
        y = 2 * math.pi * 1000 / sample_rate  # the gain is 1 at 1 kHz
        z = np.exp(-1j * y * np.arange(3))
        gain = abs(np.dot(a, z)) / abs(np.dot(b, z))
        self._b, self._a = tuple(gain * v for v in b), a


class LFilter(AudioTransform):
    """A linear filter with the given coefficients (`mindspore.dataset.audio.LFilter`).

    Args:
        a_coeffs, b_coeffs: coefficients of the denominator and of the numerator, equally many, the
            one for the lowest delay first.
        clamp: clip the result to -1 to 1.

    Raises:
        ValueError: the lists differ in length or are empty, or the first coefficient of the
            denominator is 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.LFilter([1.0], [0.5])(np.ones((1, 2), np.float32)).tolist()
        [[0.5, 0.5]]
    """

    def __init__(
        self, a_coeffs: Sequence[float], b_coeffs: Sequence[float], clamp: bool = True
    ) -> None:
        owner = type(self).__name__
        if len(a_coeffs) != len(b_coeffs) or not len(a_coeffs) or a_coeffs[0] == 0:
            raise ArgumentValueError(
                f"{owner}: got a_coeffs={a_coeffs!r}, b_coeffs={b_coeffs!r}; wanted one length, "
                "and a first denominator other than 0"
            )
        self._a, self._b, self.clamp = list(a_coeffs), list(b_coeffs), bool(clamp)

    def _signal(self, signal: Array) -> Array:
        found = filtered(type(self).__name__, signal, self._b, self._a)
        return np.clip(found, -1, 1) if self.clamp else found


class Filtfilt(LFilter):
    """A linear filter that runs forwards and then backwards (`mindspore.dataset.audio.Filtfilt`).

    Arguments and errors are those of `LFilter`.
    """

    def _signal(self, signal: Array) -> Array:
        return super()._signal(super()._signal(signal)[..., ::-1])[..., ::-1]
