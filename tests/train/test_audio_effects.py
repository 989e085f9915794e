"""Audio effects, pitch, and waveforms from spectra: values of MindSpore, properties, refusals.

`audio_effects.json` holds what MindSpore 2.10 computed for the rows of `audio_effects_rows.py`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from duograph import dataset
from duograph.dataset import audio
from train import audio_effects_rows as rows

pytest.importorskip("scipy")
EXPECTED = json.loads((pathlib.Path(__file__).parent / "audio_effects.json").read_text())
FLOAT32_PHASES = ("PitchShift", "TimeStretch", "PhaseVocoder", "LFCC")  # MindSpore's are float32


@pytest.mark.parametrize(("source", "name"), rows.ROWS)
def test_values(source: str, name: str) -> None:
    found = rows.computed(audio, source, name)
    shape, dtype, wanted = EXPECTED[f"{source} of {name}"]
    assert list(found.shape) == shape and str(found.dtype) == dtype
    rough = 1e-3 if source.startswith("PitchShift") else 5e-5
    tolerance = rough if source.startswith(FLOAT32_PHASES) else 2e-6
    np.testing.assert_allclose(rows.sampled(found), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rank", [1, 3, 4])
@pytest.mark.parametrize("source", ["Overdrive()", "Phaser(8000)", "Dither()"])
def test_leading_axes(source: str, rank: int) -> None:
    """Rows of a batch are transformed one by one; the dtype stays."""
    transform = eval(source, vars(audio))
    signal = rows._signal(*[2] * (rank - 1), 30).astype(np.float64)
    found = transform(signal)
    assert found.dtype == np.float64 and found.shape == signal.shape
    each = np.stack([transform(s) for s in signal.reshape(-1, 30)]).reshape(signal.shape)
    np.testing.assert_allclose(found, each, atol=1e-12)


# shape of a spectrum, rate, and the shape that MindSpore returns for any hop length and dtype
STRETCHED = [
    ((5, 8, 2), None, (1, 5, 8, 2)), ((5, 8, 2), 1.0, (1, 5, 8, 2)), ((5, 8, 2), 1.3, (5, 7, 2)),
    ((5, 1, 2), None, (1, 5, 1, 2)), ((5, 1, 2), 1.3, (5, 1, 2)), ((3, 5, 8, 2), 1, (3, 5, 8, 2)),
    ((3, 5, 8, 2), 0.5, (3, 5, 16, 2)), ((2, 3, 5, 8, 2), None, (6, 5, 8, 2)),
    ((2, 3, 5, 8, 2), 7.5, (2, 3, 5, 2, 2)), ((2, 3, 5, 8, 2), 100.0, (2, 3, 5, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "rate", "wanted"), STRETCHED)
@pytest.mark.parametrize("hop", [None, 1, 10])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_shapes_of_stretched_spectra(
    shape: tuple[int, ...], rate: float | None, wanted: tuple[int, ...], hop: int | None, dtype: str
) -> None:
    spectrum = (rows._signal(*shape) * 10).astype(dtype)
    found = audio.TimeStretch(hop, 5, rate)(spectrum)
    assert found.shape == wanted
    assert found.dtype == (np.float64 if dtype == "float64" else np.float32)
    if rate in (None, 1):
        np.testing.assert_array_equal(found, spectrum.reshape(wanted))


@pytest.mark.parametrize("density", list(audio.DensityFunction))
@pytest.mark.parametrize("shaping", [False, True])
def test_dither_rounds_to_16_bits(density: audio.DensityFunction, shaping: bool) -> None:
    signal = rows._signal(2, 200, seed=9)
    dataset.config.set_seed(3)
    found = audio.Dither(density, shaping)(signal)
    assert np.abs(found - signal).max() < 12 / 2**15
    if not shaping:
        np.testing.assert_array_equal(found * 2**15, np.round(found * 2**15))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [False, True])
@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize("window", [audio.WindowType.HANN, audio.WindowType.KAISER])
def test_a_spectrum_leads_back_to_its_waveform(
    normalized: bool, onesided: bool, pad: int, window: audio.WindowType
) -> None:
    signal = rows._signal(2, 64).astype(np.float64)
    options: dict[str, Any] = {
        "n_fft": 16, "hop_length": 4, "window": window, "normalized": normalized,
        "onesided": onesided, "pad": pad,
    }  # fmt: skip
    spectrum = audio.Spectrogram(power=0, **options)(signal)
    back = audio.InverseSpectrogram(length=64, **options)(spectrum)
    np.testing.assert_allclose(back, signal, atol=1e-10)


def test_griffin_lim_comes_closer_to_the_sizes() -> None:
    signal = np.sin(np.arange(400) * 0.3)[None]
    sizes = audio.Spectrogram(32, hop_length=8)(signal)
    dataset.config.set_seed(1)
    errors = []
    for steps in (1, 30):
        found = audio.GriffinLim(32, steps, hop_length=8)(sizes)
        assert found.shape == signal.shape
        errors.append(np.abs(audio.Spectrogram(32, hop_length=8)(found) - sizes).mean())
    assert errors[1] < errors[0] / 3
    assert audio.GriffinLim(32, 2, hop_length=8, length=77)(sizes).shape == (1, 77)


@pytest.mark.parametrize(
    "options",
    [{}, {"sgdargs": {"sgd_lr": 0.5, "sgd_momentum": 0.5}}, {"mel_type": audio.MelType.SLANEY},
     {"sgdargs": {"sgd_lr": 0.3}}],
)  # fmt: skip
def test_inverse_mel_scale_has_the_given_bands(options: dict[str, Any]) -> None:
    spectrum = np.abs(rows._signal(2, 17, 3, seed=5)).astype(np.float64)
    scale = {k: v for k, v in options.items() if k == "mel_type"}
    mel = audio.MelScale(4, 8000, n_stft=17, **scale)
    options = {"max_iter": 500, "tolerance_change": 0.0} | options
    found = audio.InverseMelScale(17, 4, 8000, **options)(mel(spectrum))
    assert found.shape == spectrum.shape and (found >= 0).all()
    wanted = mel(spectrum)
    assert np.abs(mel(found) - wanted).mean() < 0.1 * wanted.mean()


def test_inverse_mel_scale_stops() -> None:
    bands = np.ones((1, 4, 2))
    assert audio.InverseMelScale(9, 4, 8000, max_iter=0)(bands).max() <= 1
    early = audio.InverseMelScale(9, 4, 8000, tolerance_loss=1e9)(bands)
    assert early.shape == (1, 9, 2)


def test_in_a_pipeline() -> None:
    data = dataset.NumpySlicesDataset({"x": rows.INPUTS["batch"]}, shuffle=False)
    data = data.map(audio.Flanger(8000)).map(audio.Phaser(8000))
    found = [r["x"] for r in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert [x.shape for x in found] == [(2, 40), (2, 40)]


BANDS = np.ones((1, 5, 3), np.float32)
PAIRS = np.ones((1, 5, 3, 2), np.float32)
WAVE = np.ones((1, 30), np.float32)
WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: audio.Overdrive(101.0), ValueError, "gain=101.0"),
    (lambda: audio.Overdrive(color=-1.0), ValueError, "color=-1.0"),
    (lambda: audio.Overdrive("1"), TypeError, "gain='1'"),
    (lambda: audio.Overdrive()(np.array(1.0)), ValueError, r"shape \(\)"),
    (lambda: audio.Overdrive()(np.array(["a"])), TypeError, "wanted numbers"),
    (lambda: audio.Phaser(0), ValueError, "sample_rate=0"),
    (lambda: audio.Phaser(8000.0), TypeError, "sample_rate=8000.0"),
    (lambda: audio.Phaser(8000, 1.5), ValueError, "gain_in=1.5"),
    (lambda: audio.Phaser(8000, gain_out=-1.0), ValueError, "gain_out=-1.0"),
    (lambda: audio.Phaser(8000, delay_ms=6.0), ValueError, "delay_ms=6.0"),
    (lambda: audio.Phaser(8000, delay_ms=0.0), ValueError, "at least half a sample"),
    (lambda: audio.Phaser(8000, decay=1.0), ValueError, "decay=1.0"),
    (lambda: audio.Phaser(8000, mod_speed=3.0), ValueError, "mod_speed=3.0"),
    (lambda: audio.Phaser(8000, sinusoidal=1), TypeError, "sinusoidal=1"),
    (lambda: audio.Flanger(8000)(WAVE[0]), ValueError, r"wanted \(..., channel, time\)"),
    (lambda: audio.Flanger(8000, 31.0), ValueError, "delay=31.0"),
    (lambda: audio.Flanger(8000, depth=11.0), ValueError, "depth=11.0"),
    (lambda: audio.Flanger(8000, regen=-96.0), ValueError, "regen=-96.0"),
    (lambda: audio.Flanger(8000, width=101.0), ValueError, "width=101.0"),
    (lambda: audio.Flanger(8000, speed=0.0), ValueError, "speed=0.0"),
    (lambda: audio.Flanger(8000, phase=101.0), ValueError, "phase=101.0"),
    (lambda: audio.Flanger(8000, modulation="sinusoidal"), TypeError, "wanted a Modulation"),
    (lambda: audio.Flanger(8000, interpolation=1), TypeError, "wanted a Interpolation"),
    (lambda: audio.Dither("TPDF"), TypeError, "wanted a DensityFunction"),
    (lambda: audio.Dither(noise_shaping=1), TypeError, "noise_shaping=1"),
    (lambda: audio.DetectPitchFrequency(0), ValueError, "sample_rate=0"),
    (lambda: audio.DetectPitchFrequency(8000, 0.0), ValueError, "frame_time=0.0"),
    (lambda: audio.DetectPitchFrequency(8000, win_length=0), ValueError, "win_length=0"),
    (lambda: audio.DetectPitchFrequency(8000, freq_low=0), ValueError, "freq_low=0"),
    (lambda: audio.DetectPitchFrequency(8000, freq_high=90), ValueError, "further apart"),
    (lambda: audio.DetectPitchFrequency(8000)(WAVE), ValueError, "got 1 frames"),
    (lambda: audio.PhaseVocoder(0.0, np.ones((5, 1))), ValueError, "rate=0.0"),
    (lambda: audio.PhaseVocoder(1.0, [1.0]), TypeError, "wanted an array"),
    (lambda: audio.PhaseVocoder(1.0, np.ones(5)), ValueError, r"shape \(5,\)"),
    (lambda: audio.PhaseVocoder(1.0, np.ones((4, 1)))(PAIRS), ValueError, "4 frequencies"),
    (lambda: audio.PhaseVocoder(1.0, np.ones((5, 1)))(BANDS), ValueError, "time, 2"),
    (lambda: audio.TimeStretch(0), ValueError, "hop_length=0"),
    (lambda: audio.TimeStretch(n_freq=0), ValueError, "n_freq=0"),
    (lambda: audio.TimeStretch(fixed_rate=-1.0), ValueError, "fixed_rate=-1.0"),
    (lambda: audio.TimeStretch(fixed_rate=2.0)(PAIRS), ValueError, "wanted n_freq=201"),
    (lambda: audio.TimeStretch()(np.ones((5, 0, 2))), ValueError, "none of them 0"),
    (lambda: audio.TimeStretch()(np.ones((5, 8, 3))), ValueError, r"wanted \(..., frequency, time"),
    (lambda: audio.PitchShift(0, 1), ValueError, "sample_rate=0"),
    (lambda: audio.PitchShift(8000, "1"), TypeError, "n_steps='1'"),
    (lambda: audio.PitchShift(8000, 1, 0), ValueError, "bins_per_octave=0"),
    (lambda: audio.PitchShift(8000, 1, win_length=600), ValueError, "win_length=600"),
    (lambda: audio.PitchShift(8000, 1, hop_length=0), ValueError, "hop_length=0"),
    (lambda: audio.InverseSpectrogram(-1), ValueError, "length=-1"),
    (lambda: audio.InverseSpectrogram(n_fft=0), ValueError, "n_fft=0"),
    (lambda: audio.InverseSpectrogram(pad=-1), ValueError, "pad=-1"),
    (lambda: audio.InverseSpectrogram(onesided=1), TypeError, "onesided=1"),
    (lambda: audio.InverseSpectrogram()(PAIRS), ValueError, "201, time, 2"),
    (lambda: audio.InverseSpectrogram(None, 8, 4, 6)(PAIRS), ValueError, "without weight"),
    (lambda: audio.GriffinLim(8, 0), ValueError, "n_iter=0"),
    (lambda: audio.GriffinLim(power=0.0), ValueError, "power=0.0"),
    (lambda: audio.GriffinLim(momentum=1.0), ValueError, "momentum=1.0"),
    (lambda: audio.GriffinLim(rand_init=1), TypeError, "rand_init=1"),
    (lambda: audio.GriffinLim(8)(np.ones((1, 4, 3))), ValueError, "5, time"),
    (lambda: audio.InverseMelScale(0), ValueError, "n_stft=0"),
    (lambda: audio.InverseMelScale(9, f_min=9000.0), ValueError, "f_min=9000.0"),
    (lambda: audio.InverseMelScale(9, max_iter=-1), ValueError, "max_iter=-1"),
    (lambda: audio.InverseMelScale(9, sgdargs=3), TypeError, "sgdargs=3"),
    (lambda: audio.InverseMelScale(9, sgdargs={"lr": 1.0}), ValueError, "wanted the keys"),
    (lambda: audio.InverseMelScale(9, 4, norm="none"), TypeError, "NormType"),
    (lambda: audio.InverseMelScale(9, 4)(BANDS), ValueError, "4, time"),
    (lambda: audio.LFCC(0), ValueError, "sample_rate=0"),
    (lambda: audio.LFCC(n_lfcc=129), ValueError, "n_lfcc=129"),
    (lambda: audio.LFCC(f_min=9000.0), ValueError, "f_min=9000.0"),
    (lambda: audio.LFCC(dct_type=3), ValueError, "dct_type=3"),
    (lambda: audio.LFCC(norm="ortho"), TypeError, "NormMode"),
    (lambda: audio.LFCC(log_lf=1), TypeError, "log_lf=1"),
    (lambda: audio.LFCC(speckwargs=1), TypeError, "speckwargs=1"),
    (lambda: audio.LFCC(speckwargs={"power": 0}), ValueError, "power=0"),
    (lambda: audio.LFCC(speckwargs={"colour": 0}), TypeError, "colour"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_refusals(call: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
