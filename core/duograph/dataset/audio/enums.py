"""Enumerations of audio transforms, such as the kinds of windows and mel scales.

Users pass their members to the transforms of this package.
"""

from __future__ import annotations

import enum

__all__ = [
    "BorderType", "DensityFunction", "FadeShape", "GainType", "Interpolation", "MelType",
    "Modulation", "NormMode", "NormType", "ResampleMethod", "ScaleType", "WindowType",
]  # fmt: skip


class BorderType(str, enum.Enum):
    """How a waveform is continued beyond its first and last samples."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class DensityFunction(str, enum.Enum):
    """Kinds of noise of `Dither`."""

    TPDF = "TPDF"
    RPDF = "RPDF"
    GPDF = "GPDF"


class FadeShape(str, enum.Enum):
    """Shapes of the curves of `Fade`."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"


class GainType(str, enum.Enum):
    """The unit of the gain of `Vol`."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class Interpolation(str, enum.Enum):
    """How `Flanger` computes values between two samples."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class MelType(str, enum.Enum):
    """Mel scales, which convert frequencies to perceived pitches."""

    HTK = "htk"
    SLANEY = "slaney"


class Modulation(str, enum.Enum):
    """The wave with which `Flanger` varies its delay."""

    SINUSOIDAL = "sinusoidal"
    TRIANGULAR = "triangular"


class NormMode(str, enum.Enum):
    """Normalisations of a cosine transform."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(str, enum.Enum):
    """Normalisations of mel filters."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(str, enum.Enum):
    """Windows of the filter of `Resample`."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(str, enum.Enum):
    """Whether `AmplitudeToDB` converts powers or magnitudes."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(str, enum.Enum):
    """Window functions of spectrograms."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"
