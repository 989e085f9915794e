"""Enumerations of audio transforms, such as the kinds of windows and mel scales.

Users pass the members to the transforms of this package.
"""

from __future__ import annotations

import enum

__all__ = [
    "BorderType", "FadeShape", "GainType", "MelType", "NormMode", "NormType", "ResampleMethod",
    "ScaleType", "WindowType",
]  # fmt: skip


class BorderType(str, enum.Enum):
    """How a waveform is continued at its ends."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class FadeShape(str, enum.Enum):
    """The curves of `Fade`."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"


class GainType(str, enum.Enum):
    """What the gain of `Vol` is."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class MelType(str, enum.Enum):
    """The scales of mel filters."""

    HTK = "htk"
    SLANEY = "slaney"


class NormMode(str, enum.Enum):
    """How a cosine transform is normalised."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(str, enum.Enum):
    """How mel filters are normalised."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(str, enum.Enum):
    """The windows of `Resample`."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(str, enum.Enum):
    """What `AmplitudeToDB` converts."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(str, enum.Enum):
    """The windows of spectrograms."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"
