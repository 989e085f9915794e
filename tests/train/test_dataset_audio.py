"""Tests of audio transforms.

`ROWS` holds what MindSpore 2.10 returned: the shape, and five values at equal distances.
"""

from __future__ import annotations

import numpy as np
import pytest
from duograph import dataset as ds
from duograph.dataset import audio

pytest.importorskip("scipy")
RANDOM = np.random.RandomState(0)
x = RANDOM.uniform(-1, 1, (2, 400)).astype(np.float32)
s = np.abs(RANDOM.randn(2, 21, 9)).astype(np.float32)
c = RANDOM.randn(1, 21, 6, 2).astype(np.float32)

ROWS = [
    ("AllpassBiquad(8000, 200.0)(x)", (2, 400), "0.078177 0.34037 0.205 0.63651 -0.028801"),
    ("AmplitudeToDB()(s)", (2, 21, 9), "-9.3874 -1.0311 -11.273 -1.8897 -3.634"),
    (
        "AmplitudeToDB(audio.ScaleType.MAGNITUDE, 2.0, 1e-8, 20.0)(s)",
        (2, 21, 9),
        "-16.971 -8.0827 -16.971 -9.8001 -13.289",
    ),
    ("Angle()(c)", (1, 21, 6), "2.0816 -1.5321 1.62 -0.16767 0.23092"),
    ("BandBiquad(8000, 200.0)(x)", (2, 400), "0.0037114 -0.099629 -0.22252 0.14542 -0.10335"),
    (
        "BandBiquad(8000, 200.0, 0.7, True)(x)",
        (2, 400),
        "0.012952 -0.35105 -0.7723 0.50822 -0.35181",
    ),
    ("BandpassBiquad(8000, 200.0)(x)", (2, 400), "0.0097248 -0.23577 -0.41727 0.16127 -0.0022064"),
    (
        "BandpassBiquad(8000, 200.0, 0.7, True)(x)",
        (2, 400),
        "0.0068686 -0.16646 -0.29333 0.11233 -0.0024412",
    ),
    ("BandrejectBiquad(8000, 200.0)(x)", (2, 400), "0.087902 0.1046 -0.21227 0.79778 -0.031007"),
    ("BassBiquad(8000, 5.0)(x)", (2, 400), "0.099204 -0.21004 -0.58925 0.99804 -0.089742"),
    (
        "Biquad(0.01, 0.02, 0.13, 1.0, 0.12, 0.3)(x)",
        (2, 400),
        "0.00097627 -0.050949 -0.08864 -0.036726 -0.096713",
    ),
    ("ComplexNorm()(c)", (1, 21, 6), "0.83036 0.8548 1.2607 0.78163 0.98675"),
    ("ComplexNorm(2.0)(c)", (1, 21, 6), "0.6895 0.73069 1.5894 0.61095 0.97367"),
    ("ComputeDeltas(7)(s)", (2, 21, 9), "0.25295 0.021947 -0.2181 -0.0022052 -0.055471"),
    ("Contrast()(x)", (2, 400), "0.20936 -0.27581 -0.79328 0.99597 -0.072823"),
    ("DBToAmplitude(2.0, 0.5)(s)", (2, 21, 9), "2.0267 2.1901 2.0172 2.1547 2.1023"),
    ("DCShift(0.5, 0.02)(x)", (2, 400), "0.59763 0.36883 -0.12954 0.52 0.46679"),
    ("DCShift(0.3)(x)", (2, 400), "0.39763 0.16883 -0.32954 1 0.26679"),
    ("DeemphBiquad(44100)(x)", (2, 400), "0.044943 -0.32308 -0.524 0.41377 -0.14537"),
    ("EqualizerBiquad(8000, 200.0, 3.0)(x)", (2, 400), "0.10106 -0.21436 -0.78886 1 -0.02605"),
    ("Fade(50, 60)(x)", (2, 400), "0 -0.13117 -0 0.95905 -0"),
    ("Fade(50, 60, audio.FadeShape.EXPONENTIAL)(x)", (2, 400), "0 -0.13117 -0 0.95905 -0"),
    (
        "Fade(50, 60, audio.FadeShape.LOGARITHMIC)(x)",
        (2, 400),
        "0 -0.13117 -2.7957e-16 0.95905 -1.475e-17",
    ),
    ("Fade(50, 60, audio.FadeShape.HALF_SINE)(x)", (2, 400), "0 -0.13117 -0 0.95905 -0"),
    (
        "Fade(50, 60, audio.FadeShape.QUARTER_SINE)(x)",
        (2, 400),
        "0 -0.13117 -7.7096e-17 0.95905 -4.0674e-18",
    ),
    (
        "Filtfilt([1.0, 0.1, 0.3], [0.1, 0.2, 0.3])(x)",
        (2, 400),
        "0.03002 -0.072116 -0.037141 0.0758 -0.025103",
    ),
    ("Gain(3.0)(x)", (2, 400), "0.1379 -0.18528 -0.88924 1.3547 -0.046915"),
    ("HighpassBiquad(8000, 200.0)(x)", (2, 400), "0.087361 0.15047 -0.21743 0.80521 0.12062"),
    (
        "LFilter([1.0, 0.1, 0.3], [0.1, 0.2, 0.3])(x)",
        (2, 400),
        "0.0097627 -0.22065 -0.37141 -0.024332 -0.25103",
    ),
    (
        "LowpassBiquad(8000, 200.0)(x)",
        (2, 400),
        "0.00054111 -0.045866 0.0051605 -0.0074304 -0.15163",
    ),
    ("MaskAlongAxis(2, 3, 1.5, 1)(s)", (2, 21, 9), "0.11515 0.78867 0.074586 0.64718 0.43311"),
    ("MaskAlongAxis(2, 3, 1.5, 2)(s)", (2, 21, 9), "0.11515 1.5 0.074586 1.5 0.43311"),
    (
        "FrequencyMasking(False, 3, 2, 1.5)(s)",
        (2, 21, 9),
        "0.11515 0.78867 0.074586 0.64718 0.43311",
    ),
    ("MelScale(8, 8000, 0.0, None, 21)(s)", (2, 8, 9), "0.27292 1.3867 4.1824 2.3452 3.3954"),
    (
        "MelScale(8, 8000, 20.0, 3000.0, 21, audio.NormType.SLANEY, audio.MelType.SLANEY)(s)",
        (2, 8, 9),
        "0.0014134 0.0043774 0.0054555 0.0084419 0.0070126",
    ),
    ("MelSpectrogram(8000, 40, n_mels=8)(x)", (2, 8, 21), "5.2478 19.622 24.048 15.221 12.668"),
    ("MuLawEncoding()(x)", (2, 400), "202 46 11 254 76"),
    (
        "MuLawDecoding()(np.arange(256).reshape(1, -1))",
        (1, 256),
        "-1 -0.060904 -8.6212e-05 0.058145 1",
    ),
    ("Resample(8000, 5000)(x)", (2, 250), "0.15887 -0.58392 -0.858 0.38826 -0.25234"),
    (
        "Resample(8000, 12000, audio.ResampleMethod.KAISER_WINDOW)(x)",
        (2, 600),
        "0.099455 -0.18106 -0.37675 0.60391 0.027122",
    ),
    ("RiaaBiquad(44100)(x)", (2, 400), "0.023241 -0.28577 -0.40318 0.31186 -0.4109"),
    ("SlidingWindowCmn(5, 3)(s)", (2, 21, 9), "-0.094222 -0.037611 -0.6682 0.11745 -0.43979"),
    (
        "SlidingWindowCmn(5, 3, True, True)(s)",
        (2, 21, 9),
        "-0.84226 -0.14474 -0.87403 0.012418 -0.63878",
    ),
    ("SpectralCentroid(8000, 40)(x)", (2, 1, 21), "1730.8 1618.1 2112.6 2057.7 1937.3"),
    ("Spectrogram(40)(x)", (2, 21, 21), "17.241 4.1456 35.182 8.8504 9.1738"),
    (
        "Spectrogram(40, None, None, 0, audio.WindowType.KAISER, 1.0, False, True, audio.BorderType.CONSTANT, False)(x)",  # noqa: E501 (one call)
        (2, 40, 21),
        "1.6167 2.0357 1.8463 0.71684 0.40048",
    ),
    (
        "Spectrogram(40, window=audio.WindowType.BLACKMAN)(x)",
        (2, 21, 21),
        "13.17 3.2551 31.961 6.6341 5.1141",
    ),
    (
        "Spectrogram(40, window=audio.WindowType.BARTLETT)(x)",
        (2, 21, 21),
        "14.025 2.8962 24.275 6.7112 7.3436",
    ),
    ("TrebleBiquad(8000, 5.0)(x)", (2, 400), "0.1137 0.049125 -0.45998 1 0.082937"),
    ("Vol(0.5)(x)", (2, 400), "0.048814 -0.065583 -0.31477 0.47953 -0.016606"),
    ("Vol(3.0, audio.GainType.DB)(x)", (2, 400), "0.1379 -0.18528 -0.88924 1 -0.046915"),
    ("Vol(4.0, audio.GainType.POWER)(x)", (2, 400), "0.19525 -0.26233 -1 1 -0.066426"),
    ("create_dct(5, 8)", (8, 5), "2 -1.4142 1.4142 -1.4142 1.4142"),
    ("create_dct(5, 8, audio.NormMode.ORTHO)", (8, 5), "0.35355 -0.35355 0.35355 -0.35355 0.35355"),
    ("linear_fbanks(21, 0.0, 4000.0, 8, 8000)", (21, 8), "0 0.75 0.5 0.25 0"),
    ("melscale_fbanks(21, 0.0, 4000.0, 8, 8000)", (21, 8), "0 0 0 0 0"),
    (
        "melscale_fbanks(21, 0.0, 4000.0, 8, 8000, audio.NormType.SLANEY, audio.MelType.SLANEY)",
        (21, 8),
        "0 0 0 0 3.1169e-10",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_values_of_mindspore(row):
    call, shape, values = row
    found = eval(f"audio.{call}")
    assert found.shape == shape
    wanted = [float(v) for v in values.split()]
    picked = found.reshape(-1)[np.linspace(0, found.size - 1, 5).astype(int)]
    np.testing.assert_allclose(picked.astype(float), wanted, rtol=1e-3, atol=2e-5)


def test_complex_spectrogram():
    pair = audio.Spectrogram(40, power=0)(x)
    assert pair.shape == (2, 21, 21, 2)
    size, angle = audio.Magphase()(pair)
    np.testing.assert_allclose(size**2, audio.Spectrogram(40)(x), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(angle, audio.Angle()(pair))


def test_cepstra():
    options = {"n_fft": 40, "n_mels": 8}
    mel = audio.AmplitudeToDB()(audio.MelSpectrogram(8000, **options)(x))
    wanted = np.einsum("cmt,mk->ckt", mel, audio.create_dct(6, 8, audio.NormMode.ORTHO))
    found = audio.MFCC(8000, 6, melkwargs=options)(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_random_masks_follow_the_seed():
    def masked(workers):
        ds.config.set_seed(4)
        data = ds.GeneratorDataset([(s,)] * 6, ["x"], shuffle=False)
        data = data.map(audio.TimeMasking(True, 6, mask_value=9.0), "x",
                        num_parallel_workers=workers)  # fmt: skip
        return [row["x"] for row in data.create_dict_iterator(1, True)]

    first = masked(1)
    np.testing.assert_array_equal(first, masked(2))
    assert any((row == 9).any() for row in first) and not all((row == 9).all() for row in first)


ERRORS = {
    "LowpassBiquad(8000, 200.0, 2.0)": (ValueError, "Q=2.0"),
    "BassBiquad(0, 1.0)": (ValueError, "sample_rate=0"),
    "RiaaBiquad(8000)": (ValueError, "44100"),
    "LFilter([1.0], [1.0, 2.0])": (ValueError, "one length"),
    "Spectrogram(40, 50)": (ValueError, "win_length=50"),
    "Spectrogram(400, center=False)(np.ones(100))": (ValueError, "100 samples"),
    "MelScale(8, 8000, 5000.0)": (ValueError, "f_min below"),
    "MelScale(8, 8000)(s)": (ValueError, "201 frequencies"),
    "Vol(-1.0)": (ValueError, "gain=-1.0"),
    "Vol(1.0, 'db')": (TypeError, "GainType"),
    "Fade(500)(x)": (ValueError, "500 and 0 samples of 400"),
    "MaskAlongAxis(0, 1, 0.0, 3)": (ValueError, "axis=3"),
    "Angle()(x)": (ValueError, "(..., 2)"),
    "Gain('1')": (TypeError, "'1'"),
    "Resample(0, 4)": (ValueError, "orig_freq=0"),
    "MFCC(8000, 40, 3)": (ValueError, "dct_type=3"),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors(call):
    kind, pattern = ERRORS[call]
    with pytest.raises(kind, match=pattern.replace("(", r"\(").replace(")", r"\)")):
        eval(f"audio.{call}")
