"""`audio.Vad`: what remains of synthetic speech, with the lengths that torchaudio computes.

MindSpore 2.10 is no reference: its detector finds no voice in any signal, whatever the level, and
returns the samples that the search looks at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from duograph import dataset
from duograph.dataset import audio


def speech(rate: int, start: float, seed: int) -> np.ndarray:
    """Return 3 seconds of quiet noise with harmonic syllables of changing pitch from `start` on."""
    random = np.random.default_rng(seed)
    signal = random.standard_normal(3 * rate) * 0.003
    at = int(start * rate)
    while at < len(signal) - rate // 2:
        length = int(rate * random.uniform(0.08, 0.25))
        time = np.arange(length) / rate
        phase = 2 * np.pi * random.uniform(90, 220) * time * (1 + 0.1 * time)
        voice = sum(np.sin(k * phase) / k for k in range(1, 20))
        signal[at : at + length] += random.uniform(0.2, 0.6) * np.hanning(length) * voice
        at += length + int(rate * random.uniform(0.05, 0.3))
    return signal


# rate, start of the voice, options, samples that remain
ROWS: list[tuple[int, float, dict[str, Any], int]] = [
    (8000, 1.0, {}, 16800),
    (8000, 0.6, {}, 20000),
    (4000, 1.0, {}, 8400),
    (11025, 1.2, {}, 20953),
    (16000, 1.5, {"trigger_level": 5.0}, 25600),
    (8000, 1.0, {"trigger_level": 3.0}, 16800),
    (8000, 1.0, {"pre_trigger_time": 0.1}, 17600),
    (8000, 1.5, {"search_time": 0.3, "allowed_gap": 0.1}, 12800),
    (8000, 1.5, {"allowed_gap": 0.0}, 12800),
    (8000, 1.0, {"boot_time": 0.0}, 18000),
    (8000, 1.0, {"measure_freq": 13.0}, 17235),
    (8000, 1.0, {"measure_duration": 0.05}, 16400),
    (8000, 1.0, {"measure_smooth_time": 0.1, "noise_reduction_amount": 1.0}, 21600),
    (8000, 1.0, {"noise_up_time": 0.3, "noise_down_time": 0.05}, 21600),
    (8000, 1.0, {"trigger_time": 0.05}, 16800),
    (
        8000,
        1.0,
        {"hp_filter_freq": 100.0, "lp_filter_freq": 2000.0, "hp_lifter_freq": 100.0},
        16800,
    ),
    (8000, 1.0, {"lp_lifter_freq": 900.0}, 16800),
]


@pytest.mark.parametrize(("rate", "start", "options", "kept"), ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths(rate: int, start: float, options: dict[str, Any], kept: int, dtype: str) -> None:
    signal = speech(rate, start, 3).astype(dtype)
    found = audio.Vad(rate, **options)(signal)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, signal[len(signal) - kept :])


def test_channels_are_trimmed_before_the_first_voice_of_any() -> None:
    signal = np.stack([speech(8000, start, 4) for start in (1.5, 0.8, 2.2)])
    assert audio.Vad(8000)(signal).shape == (3, 22800)
    assert audio.Vad(8000)(signal[::2]).shape == (2, 17200)
    np.testing.assert_array_equal(
        audio.Vad(8000)(signal.reshape(3, 1, -1))[:, 0], audio.Vad(8000)(signal)
    )


# samples, what remains of them without a voice: as much as the search looks at
QUIET = [(1, 1), (10, 10), (800, 800), (8799, 8799), (8801, 8800), (20000, 8800)]


@pytest.mark.parametrize(("count", "kept"), QUIET)
@pytest.mark.parametrize("fill", [0.0, float("nan")])
def test_without_voice_the_end_remains(count: int, kept: int, fill: float) -> None:
    assert audio.Vad(8000)(np.full(count, fill, np.float32)).shape == (kept,)


def test_trigger_at_once_keeps_everything() -> None:
    assert audio.Vad(8000, trigger_level=-1.0)(np.zeros(20000)).shape == (20000,)


@pytest.mark.parametrize("dtype", ["int16", "float16"])
def test_other_dtypes_become_float32(dtype: str) -> None:
    signal = (speech(8000, 1.0, 3) * (8000 if dtype == "int16" else 1)).astype(dtype)
    found = audio.Vad(8000)(signal)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, audio.Vad(8000)(signal.astype(np.float32)))


@pytest.mark.parametrize("workers", [1, 2])
def test_pipeline(workers: int) -> None:
    rows = np.stack([speech(8000, start, 3) for start in (1.0, 0.6)])
    source = dataset.NumpySlicesDataset(rows, ["sound"], shuffle=False)
    data = source.map([audio.Vad(8000)], ["sound"], num_parallel_workers=workers)
    found = [row[0].shape for row in data.create_tuple_iterator(output_numpy=True, num_epochs=1)]
    assert found == [(16800,), (20000,)]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"sample_rate": 0}, ValueError, "sample_rate=0; wanted above 0"),
    ({"sample_rate": 8000.0}, TypeError, "sample_rate=8000.0; wanted an int"),
    ({"trigger_level": "a"}, TypeError, "trigger_level='a'; wanted a number"),
    ({"trigger_level": None}, TypeError, "trigger_level=None"),
    ({"search_time": float("inf")}, ValueError, "search_time=inf"),
    ({"noise_up_time": 0.01, "noise_down_time": 0.1}, ValueError, "noise_up_time=0.01 below"),
    ({"search_time": 0.0}, ValueError, "a search of at least one"),
    ({"measure_freq": 0.0}, ValueError, "measure_freq=0.0"),
    ({"measure_duration": -1.0}, ValueError, "measure_duration=-1.0"),
    ({"hp_filter_freq": 7000.0}, ValueError, "hp_filter_freq=7000.0 .* wanted a wider band"),
    ({"hp_lifter_freq": 3000.0}, ValueError, "hp_lifter_freq=3000.0 .* wanted a wider band"),
    *[
        ({name: -1.0}, ValueError, f"{name}=-1.0")
        for name in ("trigger_time", "search_time", "allowed_gap", "pre_trigger_time", "boot_time",
                     "noise_down_time", "noise_reduction_amount", "measure_smooth_time",
                     "lp_filter_freq", "lp_lifter_freq")
    ],
]  # fmt: skip


@pytest.mark.parametrize(("options", "error", "message"), WRONG, ids=[str(r[0]) for r in WRONG])
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^Vad: got .*{message}"):
        audio.Vad(**{"sample_rate": 8000, **options})


def test_no_samples() -> None:
    with pytest.raises(ValueError, match=r"Vad: got shape \(0,\); wanted at least one sample"):
        audio.Vad(8000)(np.zeros(0))
