"""Transforms of sound for `Dataset.map`, on NumPy and SciPy (`mindspore.dataset.audio`).

Users construct them. A waveform is an array (..., time), a spectrogram (..., frequency, time).
"""

from __future__ import annotations

from .enums import (
    BorderType,
    FadeShape,
    GainType,
    MelType,
    NormMode,
    NormType,
    ResampleMethod,
    ScaleType,
    WindowType,
)
from .filters import (
    AllpassBiquad,
    BandBiquad,
    BandpassBiquad,
    BandrejectBiquad,
    BassBiquad,
    Biquad,
    DeemphBiquad,
    EqualizerBiquad,
    Filtfilt,
    HighpassBiquad,
    LFilter,
    LowpassBiquad,
    RiaaBiquad,
    TrebleBiquad,
)
from .levels import (
    AmplitudeToDB,
    Angle,
    ComplexNorm,
    Contrast,
    DBToAmplitude,
    DCShift,
    Fade,
    FrequencyMasking,
    Gain,
    Magphase,
    MaskAlongAxis,
    MaskAlongAxisIID,
    MuLawDecoding,
    MuLawEncoding,
    TimeMasking,
    Vol,
)
from .spectra import (
    MFCC,
    ComputeDeltas,
    MelScale,
    MelSpectrogram,
    Resample,
    SlidingWindowCmn,
    SpectralCentroid,
    Spectrogram,
    create_dct,
    linear_fbanks,
    melscale_fbanks,
)
