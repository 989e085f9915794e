"""LFCC, the cepstral coefficients of a spectrogram in bands of equal width.

`dataset.audio` exports it for use in `Dataset.map`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .enums import NormMode
from .levels import AmplitudeToDB
from .spectra import Spectrogram, create_dct, linear_fbanks
from .waveforms import AudioTransform, checked_number, checked_sample_rate

__all__ = ["LFCC"]


class LFCC(AudioTransform):
    """Computes linear-frequency cepstral coefficients (`mindspore.dataset.audio.LFCC`).

    Args:
        sample_rate: samples per second.
        n_filter: number of bands.
        n_lfcc: number of coefficients, at most `n_filter`.
        f_min, f_max: lowest and highest frequency in Hz; by default up to half of the sample rate.
        dct_type: type of the cosine transform; must be 2.
        norm: normalisation of the cosine transform.
        log_lf: take natural logarithms of the bands instead of decibels.
        speckwargs: dictionary of arguments for `Spectrogram`; ``power`` must not be 0.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> lfcc = audio.LFCC(8000, 4, 2, speckwargs={"n_fft": 8})
        >>> lfcc(np.ones((1, 16), np.float32)).shape
        (1, 2, 5)
    """

    _dtype = np.float32

    def __init__(
        self,
        sample_rate: int = 16000,
        n_filter: int = 128,
        n_lfcc: int = 40,
        f_min: float = 0.0,
        f_max: float | None = None,
        dct_type: int = 2,
        norm: NormMode = NormMode.ORTHO,
        log_lf: bool = False,
        speckwargs: dict[str, Any] | None = None,
    ) -> None:
        owner = "LFCC"
        rate = checked_sample_rate(owner, sample_rate)
        if dct_type != 2:
            raise ArgumentValueError(f"{owner}: got dct_type={dct_type!r}; wanted 2")
        checked_number(owner, "n_filter", n_filter, 1)
        checked_number(owner, "n_lfcc", n_lfcc, 1, n_filter)
        highest = rate // 2 if f_max is None else checked_number(owner, "f_max", f_max, 0)
        checked_number(owner, "f_min", f_min, 0, highest)
        if not isinstance(log_lf, bool):
            raise ArgumentError(f"{owner}: got log_lf={log_lf!r}; wanted True or False")
        if speckwargs is not None and not isinstance(speckwargs, dict):
            raise ArgumentError(f"{owner}: got speckwargs={speckwargs!r}; wanted a dictionary")
        self.spectrogram = Spectrogram(**(speckwargs or {}))
        if not self.spectrogram.power:
            raise ArgumentValueError(f"{owner}: got power=0 in speckwargs; wanted above 0")
        size = self.spectrogram.n_fft
        count = size // 2 + 1 if self.spectrogram.onesided else size
        self.bands = linear_fbanks(count, f_min, highest, n_filter, rate)
        self.dct = create_dct(n_lfcc, n_filter, norm)
        self.log = log_lf

    def _signal(self, signal: Array) -> Array:
        found = np.swapaxes(self.spectrogram._signal(signal), -1, -2) @ self.bands
        found = np.swapaxes(found, -1, -2)
        found = np.log(found + 1e-6) if self.log else AmplitudeToDB()._signal(found)
        return np.swapaxes(np.swapaxes(found, -1, -2) @ self.dct, -1, -2)
