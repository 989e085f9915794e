"""Transforms of sound for `Dataset.map`, on NumPy and SciPy (`mindspore.dataset.audio`).

Users construct them. A waveform is an array (..., time), a spectrogram (..., frequency, time).
"""

from __future__ import annotations

from .effects import Dither, Flanger, Overdrive, Phaser
from .enums import (
    BorderType,
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    MelType,
    Modulation,
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
from .linear_cepstra import LFCC
from .pitch import DetectPitchFrequency
from .reconstruction import GriffinLim, InverseMelScale, InverseSpectrogram
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
from .stretching import PhaseVocoder, PitchShift, TimeStretch
from .voice import Vad
