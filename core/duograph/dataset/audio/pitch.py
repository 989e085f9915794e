"""DetectPitchFrequency, which estimates the pitch of a signal from its autocorrelation.

`dataset.audio` exports it for use in `Dataset.map`.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import ArgumentValueError
from ..rows import Array
from .waveforms import AudioTransform, checked_number, checked_sample_rate

__all__ = ["DetectPitchFrequency"]

_EPSILON = 1e-9
_PREFERRED = 0.99  # a shorter lag is taken if its correlation is more than this share of the best


class DetectPitchFrequency(AudioTransform):
    """Estimates the pitch in Hz, frame by frame (`mindspore.dataset.audio.DetectPitchFrequency`).

    The pitch follows from the lag at which a frame correlates most with the signal; these lags are
    smoothed by a median over frames.

    Args:
        sample_rate: samples per second, such as 44100.
        frame_time: length of a frame in seconds, above 0.
        win_length: number of frames of the median, above 0.
        freq_low: lowest frequency in Hz that can be found, above 0.
        freq_high: highest frequency in Hz that can be found, above 0.

    Returns:
        (..., n), when called: one frequency for each frame that has enough frames after it.

    Raises:
        TypeError: an argument is no number.
        ValueError: an argument is outside its range; when called: the signal is too short.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> wave = np.sin(np.arange(1600) * 2 * np.pi * 200 / 8000)
        >>> audio.DetectPitchFrequency(8000, win_length=3)(wave)[:2].round().tolist()
        [200.0, 200.0]
    """

    _dtype = np.float32

    def __init__(
        self,
        sample_rate: int,
        frame_time: float = 0.01,
        win_length: int = 30,
        freq_low: int = 85,
        freq_high: int = 3400,
    ) -> None:
        owner = "DetectPitchFrequency"
        self.rate = checked_sample_rate(owner, sample_rate)
        least = np.nextafter(0, 1)
        self.frame = math.ceil(
            self.rate * float(checked_number(owner, "frame_time", frame_time, least))
        )
        self.window = int(checked_number(owner, "win_length", win_length, 1))
        self.lags = math.ceil(self.rate / checked_number(owner, "freq_low", freq_low, least))
        self.first = math.ceil(self.rate / checked_number(owner, "freq_high", freq_high, least))
        if self.first >= self.lags // 2:
            raise ArgumentValueError(
                f"{owner}: got freq_low={freq_low} and freq_high={freq_high} at {self.rate} "
                "samples a second; wanted them further apart"
            )

    def _signal(self, signal: Array) -> Array:
        frames = math.ceil(signal.shape[-1] / self.frame)
        before = (self.window - 1) // 2
        if frames <= before or frames + before < self.window:
            raise ArgumentValueError(
                f"DetectPitchFrequency: got {frames} frames; wanted {self.window - before} or more "
                f"for win_length={self.window}"
            )
        lags = self._best_lags(self._correlations(signal, frames))
        wide = np.concatenate([np.repeat(lags[..., :1], before, -1), lags], -1)
        several = np.sort(np.lib.stride_tricks.sliding_window_view(wide, self.window, -1), -1)
        return self.rate / (_EPSILON + several[..., (self.window - 1) // 2])

    def _correlations(self, signal: Array, frames: int) -> Array:
        """Return the normalised correlation of each frame with the signal some samples later.

        The result is (..., `frames`, lags): the delay in samples is 1, 2, ... up to `self.lags`.
        `frames` is the number of frames (consecutive parts of `self.frame` samples).
        """
        end = self.lags + frames * self.frame - signal.shape[-1]
        sides = [(0, 0)] * (signal.ndim - 1)
        wide = np.pad(signal.astype(np.float64), [*sides, (0, end)])

        def framed(start: int) -> Array:
            part = wide[..., start : start + frames * self.frame]
            return part.reshape(*signal.shape[:-1], frames, self.frame)

        def size(x: Array) -> Array:
            return np.square(_EPSILON + np.sqrt(np.square(x).sum(-1)))

        first = framed(0)
        found = [
            (first * other).sum(-1) / size(first) / size(other)
            for other in map(framed, range(1, self.lags + 1))
        ]
        return np.stack(found, -1)

    def _best_lags(self, correlations: Array) -> Array:
        """Return, for each frame, the lag of its greatest correlation.

        The first `self.first` lags are not considered. A lag in the shorter half is preferred if
        its correlation is almost as great, because multiples of the true lag correlate well too.
        """
        half = correlations[..., self.first : correlations.shape[-1] // 2]
        whole = correlations[..., self.first :]
        short = half.max(-1) > _PREFERRED * whole.max(-1)
        return np.where(short, half.argmax(-1), whole.argmax(-1)) + self.first + 1
