"""Audio transforms that are compared with what MindSpore computes for the same input."""

from __future__ import annotations

from typing import Any

import numpy as np


def _signal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.9, 0.9, shape).astype(np.float32)


_T = np.arange(2000) * 2 * np.pi / 8000
INPUTS = {
    "mono": _signal(60), "stereo": _signal(2, 60), "batch": _signal(2, 2, 40, seed=1),
    "three": _signal(3, 40, seed=2), "double": _signal(2, 50, seed=3).astype(np.float64),
    "tones": np.stack([np.sin(440 * _T), np.sin(200 * _T) + 0.3 * np.sin(1200 * _T)]).astype("f"),
    "spectrum": _signal(1, 9, 12, 2, seed=4), "spectra": _signal(2, 5, 8, 2, seed=5),
    "full": _signal(1, 16, 12, 2, seed=4), "power": np.abs(_signal(1, 9, 12, seed=6)),
    "long": _signal(1, 900, seed=8),
}  # fmt: skip
NAMES = {f"GROWTH{n}": np.linspace(0, np.pi * 4, n)[:, None].astype(np.float32) for n in (5, 9)}
# MindSpore wants all options of the spectrogram
SPECTROGRAM = (
    "{{'n_fft': 64, 'win_length': {}, 'hop_length': {}, 'pad': {}, 'window': WindowType.{}, "
    "'power': {}, 'normalized': False, 'center': True, 'pad_mode': BorderType.REFLECT, "
    "'onesided': True}}"
)
_QUADRATIC = "Interpolation.QUADRATIC"

# constructor, input
ROWS = [
    ("Overdrive()", "mono"), ("Overdrive(5.0, 60.0)", "batch"), ("Overdrive(0.0, 0.0)", "stereo"),
    ("Overdrive(100.0, 100.0)", "double"),
    ("Phaser(8000)", "mono"), ("Phaser(8000)", "batch"),
    ("Phaser(16000, 0.8, 1.5, 1.0, 0.7, 1.9, False)", "stereo"),
    ("Phaser(8000, delay_ms=5.0, decay=0.99)", "double"),
    ("Flanger(8000)", "stereo"), ("Flanger(8000)", "double"),
    (f"Flanger(8000, 2.0, 5.0, 30.0, 50.0, 3.0, 40.0, Modulation.TRIANGULAR, {_QUADRATIC})",
     "stereo"),
    (f"Flanger(8000, 1.0, 3.0, -40.0, 90.0, 10.0, 0.0, Modulation.SINUSOIDAL, {_QUADRATIC})",
     "batch"),
    ("Flanger(8000, 1.0, 3.0, -40.0, 90.0, 10.0, 75.0, Modulation.TRIANGULAR)", "three"),
    ("Dither(DensityFunction.TPDF)", "mono"), ("Dither(DensityFunction.TPDF, True)", "stereo"),
    ("DetectPitchFrequency(8000)", "tones"),
    ("DetectPitchFrequency(8000, 0.02, 5, 100, 1000)", "tones"),
    ("DetectPitchFrequency(8000, 0.01, 3, 85, 3400)", "long"),
    ("PhaseVocoder(1.3, GROWTH9)", "spectrum"), ("PhaseVocoder(0.7, GROWTH5)", "spectra"),
    ("PhaseVocoder(1.0, GROWTH5)", "spectra"), ("PhaseVocoder(2.0, GROWTH5)", "spectra"),
    ("TimeStretch(4, 9, 1.5)", "spectrum"), ("TimeStretch(4, 9, 0.6)", "spectrum"),
    ("TimeStretch(n_freq=9, fixed_rate=1.2)", "spectrum"), ("TimeStretch(4, 9)", "spectrum"),
    ("PitchShift(8000, 4)", "tones"), ("PitchShift(8000, -3, 12, 64)", "long"),
    ("PitchShift(8000, 5, 24, 64, 32, 8, WindowType.HAMMING)", "long"),
    ("InverseSpectrogram(None, 16)", "spectrum"), ("InverseSpectrogram(200, 16)", "spectrum"),
    ("InverseSpectrogram(40, 16, 12, 4)", "spectrum"),
    ("InverseSpectrogram(50, 16, 16, 8, 3)", "spectrum"),
    ("InverseSpectrogram(30, 16, 16, 4, 0, WindowType.HAMMING, False, False)", "spectrum"),
    ("InverseSpectrogram(None, 16, 16, 4, 0, WindowType.HANN, False, True, BorderType.REFLECT, "
     "False)", "full"),
    # MindSpore remembers `normalized`: no row may follow it in the process that records
    ("InverseSpectrogram(None, 16, 16, 8, 0, WindowType.HAMMING, True, True, BorderType.CONSTANT)",
     "spectrum"),
    ("LFCC(8000, 12, 8, 0.0, None, 2, NormMode.ORTHO, False, "
     f"{SPECTROGRAM.format(64, 32, 0, 'HANN', 2.0)})", "long"),
    ("LFCC(8000, 12, 8, 100.0, 3000.0, 2, NormMode.NONE, True, "
     f"{SPECTROGRAM.format(40, 10, 2, 'HAMMING', 1.0)})", "long"),
    ("GriffinLim(16, 5, rand_init=False)", "power"),
    ("GriffinLim(16, 4, 16, 4, WindowType.HANN, 2.0, 0.5, None, False)", "power"),
]  # fmt: skip


def computed(audio: Any, source: str, name: str) -> np.ndarray:
    """Return what a transform of a module `audio` makes of an input."""
    return np.asarray(eval(source, vars(audio) | NAMES)(INPUTS[name]))


def sampled(found: np.ndarray) -> list[float]:
    """Return 24 to 48 elements, evenly spread."""
    return [float(x) for x in found.ravel()[:: max(found.size // 24, 1)]]
