"""Metrics of surfaces, translations, confusion matrices and occlusion against MindSpore's values.

`metric_values.json` holds what MindSpore 2.10 computed for the calls that `CASES` lists.
"""

from __future__ import annotations

import json
import pathlib

import duograph as ms
import numpy as np
import pytest
from duograph import train

EXPECTED = json.loads((pathlib.Path(__file__).parent / "metric_values.json").read_text())

RNG = np.random.default_rng(5)
A, B = RNG.integers(0, 3, (7, 8)), RNG.integers(0, 3, (7, 8))
C, D = np.zeros((9, 9), int), np.zeros((9, 9), int)
C[2:6, 3:8] = 1
D[4:8, 1:5] = 1
E, F = np.zeros((5, 5, 5), int), np.zeros((5, 5, 5), int)
E[1:4, 1:3, 2:5] = 1
F[2:5, 2:4, 1:4] = 1
P, Q = ((RNG.random((4, 3, 6)) > 0.5).astype(int) for _ in range(2))
WORDS = [["the", "cat", "is", "on", "the", "mat"], ["a", "dog", "ran", "off"]]
REFERENCES = [
    [["there", "is", "a", "cat", "on", "the", "mat"], ["the", "cat", "sits", "on", "the", "mat"]],
    [["a", "dog", "ran", "away"]],
]
# the last word of a case -> inputs
INPUTS = {"ab": (A, B, 1), "ab0": (A, B, 0), "cd": (C, D, 1), "ef": (E, F, 1)}


def inputs_of(case):
    """Return the inputs of a case of `metric_values.json`."""
    if case.startswith("ConfusionMatrix"):
        return P, Q
    return (WORDS, REFERENCES) if case.startswith("Bleu") else INPUTS[case.rsplit(" ", 1)[1]]


@pytest.mark.parametrize("case", EXPECTED)
def test_values_are_mindspores(case):
    call = case if case.endswith(")") else case.rsplit(" ", 1)[0]
    metric = eval(call, vars(train))
    metric.update(*inputs_of(case))
    np.testing.assert_allclose(metric.eval(), EXPECTED[case], rtol=1e-9)


@pytest.mark.parametrize("kind", ["euclidean", "chessboard", "taxicab"])
def test_root_mean_square_of_one_direction(kind):
    """It is a root: with masks of one point each it is their distance."""
    x, y = np.zeros((5, 6), int), np.zeros((5, 6), int)
    x[1, 1] = y[4, 5] = 1
    metric = train.RootMeanSquareDistance(distance_metric=kind)
    metric.update(ms.Tensor(x), y, 1)
    assert metric.eval() == {"euclidean": 5.0, "chessboard": 4.0, "taxicab": 7.0}[kind]


@pytest.mark.parametrize(
    "name", ["HausdorffDistance", "MeanSurfaceDistance", "RootMeanSquareDistance"]
)
def test_a_surface_that_is_missing_is_infinitely_far(name):
    metric = getattr(train, name)()
    metric.update(np.ones((3, 3), int), np.zeros((3, 3), int), 1)
    assert metric.eval() == np.inf
    metric.update(np.zeros((3, 3), int), np.ones((3, 3), int), 1)
    assert metric.eval() == np.inf
    metric.clear()
    with pytest.raises(RuntimeError, match="no batch"):
        metric.eval()


def test_confusion_metric_adds_batches_up():
    whole = train.ConfusionMatrixMetric(metric_name="f1 score")
    parts = train.ConfusionMatrixMetric(metric_name="f1")
    whole.update(P, Q)
    for n in range(4):
        parts.update(ms.Tensor(P[n : n + 1]), Q[n : n + 1])
    assert whole.eval() == parts.eval()
    every = train.ConfusionMatrixMetric(False)
    every.update(P[:, 1:], Q[:, 1:])
    skipped = train.ConfusionMatrixMetric(True)
    skipped.update(P, Q)
    assert every.eval() == skipped.eval()


class Peak(ms.nn.Cell):
    """Scores of two classes: the largest element, and its negative."""

    def construct(self, x):
        top = x.reshape(x.shape[0], -1).max(axis=1)
        return ms.ops.stack([top, -top], 1)


@pytest.mark.parametrize("n_batch", [1, 4, 128])
@pytest.mark.parametrize("label", [0, 1])
def test_occlusion(n_batch, label):
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    metric = train.OcclusionSensitivity(pad_val=-1.0, margin=1, n_batch=n_batch)
    metric.update(Peak(), ms.Tensor(image), np.array([label]))
    wanted = np.zeros((3, 4))
    # the box at the last position covers 6, 7, 10 and 11, so that 9 remains
    wanted[2, 3] = 2 if label == 0 else -2
    np.testing.assert_array_equal(metric.eval(), wanted)
    metric = train.OcclusionSensitivity(margin=[1, 2], b_box=[2, -1, 2, 3])
    metric.update(Peak(), image, np.array([0]))
    np.testing.assert_array_equal(metric.eval(), [8.0, 3.0])


WRONG = [
    (lambda: train.HausdorffDistance("round"), ValueError, "round"),
    (lambda: train.HausdorffDistance(percentile=101.0), ValueError, "percentile"),
    (lambda: train.HausdorffDistance().update(A, B), ValueError, "2 inputs"),
    (lambda: train.HausdorffDistance().update(A, B, 9), ValueError, "class 9"),
    (lambda: train.HausdorffDistance().update(A, B, "x"), TypeError, "'x'"),
    (lambda: train.MeanSurfaceDistance().update(A, C, 1), ValueError, "shapes"),
    (lambda: train.MeanSurfaceDistance(1), TypeError, "symmetric"),
    (lambda: train.BleuScore(5), ValueError, "n_gram"),
    (lambda: train.BleuScore().update(WORDS, REFERENCES[:1]), ValueError, "2 translations"),
    (lambda: train.BleuScore().eval(), RuntimeError, "no batch"),
    (lambda: train.ConfusionMatrixMetric(metric_name="luck"), NotImplementedError, "luck"),
    (lambda: train.ConfusionMatrixMetric(decrease="least"), ValueError, "least"),
    (lambda: train.ConfusionMatrixMetric().update(P, Q + 1), ValueError, "0 or 1"),
    (lambda: train.ConfusionMatrixMetric().update(P, Q[:2]), ValueError, "shapes"),
    (lambda: train.OcclusionSensitivity().update(Peak(), np.ones((2, 3)), 0), RuntimeError, "2, 3"),
    (lambda: train.OcclusionSensitivity(b_box=[0, 9]).update(Peak(), np.ones((1, 3)), 0),
     ValueError, "b_box"),
    (lambda: train.OcclusionSensitivity().update(3, np.ones((1, 3)), 0), TypeError, "model"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_inputs_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
