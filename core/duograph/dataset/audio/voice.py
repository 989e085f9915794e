"""`Vad`: trims what precedes the voice in a recording.

`dataset.audio` exports it for use in `Dataset.map`. The detector is the one of SoX's effect `vad`:
it compares the cepstral power of short windows, which voiced sound concentrates at its pitch, with
a threshold, after an estimate of the stationary noise is subtracted from their spectra.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import ArgumentValueError, ShapeError
from ..rows import Array
from .waveforms import AudioTransform, checked_number, checked_sample_rate

__all__ = ["Vad"]

# what SoX adds to the logarithm of the cepstral power, so that levels are about 0 to 20
_OFFSET = 21.0
_MOST = 16777216.0
_LEAST = float(np.nextafter(0, 1))


def _decay(seconds: float, frequency: float) -> float:
    """Return the share of the old value that remains after one measurement; 0 for 0 seconds."""
    return math.exp(-1 / (seconds * frequency)) if seconds else 0.0


class Vad(AudioTransform):
    """Trims silence and quiet background from the start of a recording of speech
    (`mindspore.dataset.audio.Vad`).

    The waveform is (..., time). Its channels are trimmed together, before the first voice in any of
    them; reverse the waveform to trim its end. Where no voice is found, the last samples remain, as
    many as the search looks at: ``search_time + pre_trigger_time + measure_duration``. That is all
    that MindSpore 2.10 returns, whose detector finds no voice in any signal.

    Args:
        sample_rate: samples per second.
        trigger_level: level of a measurement that counts as voice.
        trigger_time: time constant of the mean that must reach the level; ignores short bursts.
        search_time: how far before the trigger quieter or shorter bursts are looked for.
        allowed_gap: the longest gap between such bursts.
        pre_trigger_time: how much to keep before what was found.
        boot_time: time for the first estimate of the noise.
        noise_up_time: time constant of the estimate while the noise grows; at least
            `noise_down_time`.
        noise_down_time: time constant of the estimate while the noise falls.
        noise_reduction_amount: factor of the noise that is subtracted.
        measure_freq: measurements per second, above 0.
        measure_duration: length of the measured windows; by default two measurement periods.
        measure_smooth_time: time constant of the mean of the spectra.
        hp_filter_freq, lp_filter_freq: the lowest and the highest frequency of the measured
            spectrum, above 0.
        hp_lifter_freq, lp_lifter_freq: the lowest and the highest pitch, above 0.

    All times are seconds and at least 0, all frequencies Hz.

    Raises:
        TypeError: an argument is no number.
        ValueError: an argument is outside its range, or leaves nothing to measure; when called:
            there are no samples.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import audio
        >>> audio.Vad(sample_rate=600)(np.zeros(1000)).shape
        (660,)
    """

    def __init__(
        self,
        sample_rate: int,
        trigger_level: float = 7.0,
        trigger_time: float = 0.25,
        search_time: float = 1.0,
        allowed_gap: float = 0.25,
        pre_trigger_time: float = 0.0,
        boot_time: float = 0.35,
        noise_up_time: float = 0.1,
        noise_down_time: float = 0.01,
        noise_reduction_amount: float = 1.35,
        measure_freq: float = 20.0,
        measure_duration: float | None = None,
        measure_smooth_time: float = 0.4,
        hp_filter_freq: float = 50.0,
        lp_filter_freq: float = 6000.0,
        hp_lifter_freq: float = 150.0,
        lp_lifter_freq: float = 2000.0,
    ) -> None:
        rate = checked_sample_rate("Vad", sample_rate)
        duration = 0.0 if measure_duration is None else measure_duration
        for name, value in {
            "trigger_time": trigger_time, "search_time": search_time, "allowed_gap": allowed_gap,
            "pre_trigger_time": pre_trigger_time, "boot_time": boot_time,
            "noise_up_time": noise_up_time, "noise_down_time": noise_down_time,
            "noise_reduction_amount": noise_reduction_amount, "measure_duration": duration,
            "measure_smooth_time": measure_smooth_time,
        }.items():  # fmt: skip
            checked_number("Vad", name, value, 0, _MOST)
        for name, value in {
            "measure_freq": measure_freq, "hp_filter_freq": hp_filter_freq,
            "lp_filter_freq": lp_filter_freq, "hp_lifter_freq": hp_lifter_freq,
            "lp_lifter_freq": lp_lifter_freq,
        }.items():  # fmt: skip
            checked_number("Vad", name, value, _LEAST, _MOST)
        if noise_up_time < noise_down_time:
            raise ArgumentValueError(
                f"Vad: got noise_up_time={noise_up_time} below noise_down_time={noise_down_time}; "
                "wanted at least that"
            )
        self.level = checked_number("Vad", "trigger_level", trigger_level, -_MOST, _MOST)
        self.reduction = noise_reduction_amount
        self.noise_up = _decay(noise_up_time, measure_freq)
        self.noise_down = _decay(noise_down_time, measure_freq)
        self.smooth = _decay(measure_smooth_time, measure_freq)
        self.mean = _decay(trigger_time, measure_freq)
        self.boot = int(boot_time * measure_freq - 0.5)

        # lengths in samples, counts in measurements
        self.length = int(rate * (duration or 2 / measure_freq) + 0.5)
        self.period = int(rate / measure_freq + 0.5)
        self.count = math.ceil(search_time * measure_freq)
        self.gap = int(allowed_gap * measure_freq + 0.5)
        self.kept = int(pre_trigger_time * rate + 0.5)
        if not (self.length and self.period and self.count):
            raise ArgumentValueError(
                f"Vad: got sample_rate={sample_rate}, measure_freq={measure_freq}, "
                f"measure_duration={measure_duration} and search_time={search_time}; wanted a "
                "window, a period and a search of at least one sample and measurement"
            )
        self._set_bands(rate, (hp_filter_freq, lp_filter_freq), (hp_lifter_freq, lp_lifter_freq))

    def _set_bands(
        self, rate: int, filters: tuple[float, float], lifters: tuple[float, float]
    ) -> None:
        """Set the bins of spectrum and cepstrum that are measured, and the windows of both."""
        self.size = max(16, 1 << (self.length - 1).bit_length())
        low = max(int(filters[0] / rate * self.size + 0.5), 1)
        high = min(int(filters[1] / rate * self.size + 0.5), self.size // 2)
        first = math.ceil(rate * 0.5 / lifters[1])
        last = min(math.floor(rate * 0.5 / lifters[0]), self.size // 4)
        for what, one, two, given in (
            ("filter", low, high, filters), ("lifter", first, last, lifters)
        ):  # fmt: skip
            if one >= two:
                raise ArgumentValueError(
                    f"Vad: got hp_{what}_freq={given[0]} and lp_{what}_freq={given[1]}, between "
                    f"which there is no bin of {self.size} samples at {rate} Hz; wanted a wider "
                    "band"
                )
        self.band, self.pitches = slice(low, high), slice(first, last)
        self.window, self.lifter = (
            2 / math.sqrt(n) * (0.5 - 0.5 * np.cos(math.tau * np.arange(n) / n))
            for n in (self.length, high - low)
        )

    def _signal(self, signal: Array) -> Array:
        if not signal.size:
            raise ShapeError(f"Vad: got shape {signal.shape}; wanted at least one sample")
        channels = signal.reshape(-1, signal.shape[-1])
        end, flushed = self._trigger(channels.astype(np.float64))
        start = end - (self.kept + self.count * self.period + self.length) + flushed
        return signal[..., max(start, 0) :].copy()

    def _trigger(self, channels: Array) -> tuple[int, int]:
        """Return how many samples were read until voice was found, and how many of them to skip.

        `channels` is (channels, time). Without voice, all samples are read and none is skipped.
        """
        count, time = channels.shape
        spectrum = np.zeros((count, self.band.stop - self.band.start))
        noise = np.zeros_like(spectrum)
        measures = np.zeros((count, self.count))
        means = np.zeros(count)
        for k, end in enumerate(range(self.length, time + 1, self.period)):
            share = self.smooth if k > self.boot else k / (k + 1)
            found = self._measured(
                channels[:, end - self.length : end], spectrum, noise, share, k <= self.boot
            )
            measures[:, k % self.count] = found
            means = means * self.mean + found * (1 - self.mean)
            if (means >= self.level).any():
                first = int(np.argmax(means >= self.level))
                kept = max(self._bursts(row, k % self.count) for row in measures[first:])
                return end, (self.count - kept) * self.period
        return time, 0

    def _measured(
        self, samples: Array, spectrum: Array, noise: Array, share: float, booting: bool
    ) -> Array:
        """Return the level of a window of each channel; update `spectrum` and `noise` in place.

        Args:
            samples: the windows, (channels, length).
            spectrum: running mean of the magnitudes, (channels, bins).
            noise: estimate of the power of the noise, (channels, bins).
            share: how much of the old mean is kept.
            booting: whether the estimate of the noise just follows the spectrum.
        """
        found = np.abs(np.fft.rfft(samples * self.window, self.size))[:, self.band]
        spectrum *= share
        spectrum += found * (1 - share)
        power = spectrum**2
        old = 0.0 if booting else np.where(power > noise, self.noise_up, self.noise_down)
        noise[:] = noise * old + power * (1 - old)
        clean = np.sqrt(np.maximum(power - self.reduction * noise, 0))
        wide = np.zeros((len(samples), self.size // 2))
        wide[:, self.band] = clean * self.lifter
        cepstrum = np.abs(np.fft.rfft(wide))[:, self.pitches] ** 2
        total = cepstrum.sum(1) / (self.pitches.stop - self.pitches.start)
        with np.errstate(divide="ignore"):
            return np.maximum(_OFFSET + np.log(total), 0)

    def _bursts(self, measures: Array, newest: int) -> int:
        """Return how many measurements before the trigger belong to the voice.

        `measures` is a ring of the last levels of a channel; `newest` is the index of the last one.
        """
        n = len(measures)
        loud = silent = n
        for back in range(n):
            level = measures[(newest - back) % n]
            if level >= self.level and back <= loud + self.gap:
                loud = silent = back
            elif level == 0 and loud >= silent:
                silent = back
        return min(n - 1, silent)
