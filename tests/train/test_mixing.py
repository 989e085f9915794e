"""Eager calls of MixUp, MixUpBatch and CutMixBatch: labels, weights, dtypes, refusals.

What is asserted was observed with MindSpore 2.10: which images are mixed, that labels get the
weights of the images, and the dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from duograph import Tensor, dataset
from duograph.dataset import vision

LEVELS = np.array([10.0, 20.0, 40.0, 80.0])
IMAGES = (LEVELS[:, None, None, None] * np.ones((4, 6, 6, 3))).astype(np.float32)
ONE_HOT = np.eye(4)
ROWS = np.stack([ONE_HOT, ONE_HOT[::-1]], 1)


@pytest.fixture(autouse=True)
def seeded(restored: None) -> None:
    dataset.config.set_seed(3)


def levels(images: np.ndarray) -> np.ndarray:
    """Return the one value that all elements of each image have."""
    found = images[:, 0, 0, 0]
    np.testing.assert_allclose(images, np.broadcast_to(found[:, None, None, None], images.shape))
    return found


@pytest.mark.parametrize("images", [IMAGES, IMAGES.astype(np.uint8), Tensor(IMAGES)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "uint8", "bool"])
def test_mixup_with_the_next_image(images: Any, dtype: str) -> None:
    mixed, labels = vision.MixUp(4, 1.0)(images, ONE_HOT.astype(dtype))
    assert mixed.dtype == labels.dtype == np.float64
    np.testing.assert_allclose(levels(mixed), labels @ LEVELS, rtol=1e-6)
    weights = np.diagonal(labels)
    assert len(set(weights)) == 4
    np.testing.assert_allclose(
        labels, np.diag(weights) + np.roll(np.diag(1 - weights), 1, 1), atol=1e-12
    )


def test_mixup_of_size_1_mixes_with_the_first_image() -> None:
    mixed, labels = vision.MixUp(1, 1.0)(IMAGES, ONE_HOT)
    weight = labels[1, 1]
    wanted = weight * ONE_HOT + (1 - weight) * ONE_HOT[:1]
    np.testing.assert_allclose(labels, wanted, atol=1e-12)
    np.testing.assert_allclose(levels(mixed), labels @ LEVELS, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 4])
def test_labels_of_several_rows(size: int) -> None:
    mixed, labels = vision.MixUp(size, 1.0)(IMAGES, ROWS)
    assert labels.shape == (4, 2, 4)
    np.testing.assert_allclose(labels.sum(2), 1)
    np.testing.assert_allclose(levels(mixed), labels[:, 0] @ LEVELS, rtol=1e-6)


def test_mixup_of_batches_mixes_with_the_previous_result() -> None:
    mix = vision.MixUp(4, 1.0, is_single=False)
    first = mix(IMAGES, ONE_HOT)
    np.testing.assert_array_equal(first[0], IMAGES)
    np.testing.assert_array_equal(first[1], ONE_HOT)
    before = ONE_HOT
    for turned in (ONE_HOT[::-1], ONE_HOT, np.roll(ONE_HOT, 1, 0)):
        mixed, labels = mix((turned @ LEVELS)[:, None, None, None] * np.ones((1, 6, 6, 3)), turned)
        np.testing.assert_allclose(levels(mixed), labels @ LEVELS)
        for found, new, old in zip(labels, turned, before, strict=True):
            weight = (found - old) @ (new - old) / max((new - old) @ (new - old), 1e-12)
            assert -1e-9 <= weight <= 1 + 1e-9
            np.testing.assert_allclose(found, weight * new + (1 - weight) * old, atol=1e-9)
        before = labels


def test_one_image_counts_as_a_batch_of_equal_ones() -> None:
    mix = vision.MixUp(2, 0.2, is_single=False)
    for _ in range(2):
        mixed, labels = mix(IMAGES[0], ONE_HOT[:1])
        assert mixed.shape == (2, 6, 6, 3) and labels.shape == (2, 4)
        np.testing.assert_allclose(labels, np.repeat(ONE_HOT[:1], 2, 0))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("labels", [ONE_HOT, ONE_HOT.astype(bool), ONE_HOT.astype("i8"), ROWS])
def test_mixup_batch_has_one_weight_and_rounds(dtype: str, labels: np.ndarray) -> None:
    images = IMAGES.astype(dtype)
    for _ in range(5):
        mixed, found = vision.MixUpBatch(1.0)(images, labels)
        assert mixed.dtype == dtype and found.dtype == np.float32 and found.shape == labels.shape
        first = found if found.ndim == 2 else found[:, 0]
        exact = first.astype(np.float64) @ LEVELS
        tolerance = 0.5001 if images.dtype.kind in "iu" else 1e-4
        assert np.abs(levels(mixed) - exact).max() <= tolerance


@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize("labels", [ONE_HOT, ONE_HOT.astype(bool), ROWS])
def test_cut_mix_labels_follow_areas(channels_first: bool, labels: np.ndarray) -> None:
    form = vision.ImageBatchFormat.NCHW if channels_first else vision.ImageBatchFormat.NHWC
    images = np.moveaxis(IMAGES, 3, 1).copy() if channels_first else IMAGES
    for _ in range(5):
        made, found = vision.CutMixBatch(form)(images, labels)
        assert made.dtype == images.dtype and found.dtype == np.float32
        plane = made[:, 0] if channels_first else made[..., 0]
        share = np.stack([(plane == level).mean((1, 2)) for level in LEVELS], 1)
        np.testing.assert_allclose(found if found.ndim == 2 else found[:, 0], share, atol=1e-6)


@pytest.mark.parametrize("transform", [vision.MixUpBatch(), vision.MixUp(2, 1.0)])
def test_pipeline(transform: Any) -> None:
    source = dataset.NumpySlicesDataset((IMAGES, ONE_HOT), ["image", "label"], shuffle=False)
    data = source.batch(2).map(transform, ["image", "label"])
    for image, label in data.create_tuple_iterator(output_numpy=True, num_epochs=1):
        assert image.shape == (2, 6, 6, 3)
        np.testing.assert_allclose(label.sum(1), 1, rtol=1e-6)
        np.testing.assert_allclose(levels(image), label @ LEVELS, rtol=1e-5)


NHWC = vision.ImageBatchFormat.NHWC
WRONG = [
    (vision.MixUp(4, 1.0), IMAGES, np.arange(4), r"labels of shape \(4,\); .* one-hot"),
    (vision.MixUp(1, 1.0), IMAGES, np.float32(1), r"labels of shape \(\)"),
    (vision.MixUp(4, 1.0), IMAGES[0], ONE_HOT, r"images of shape \(6, 6, 3\)"),
    (vision.MixUp(3, 1.0), IMAGES, ONE_HOT, "4 images and 4 labels; wanted 3"),
    (vision.MixUp(1, 1.0), IMAGES, ONE_HOT[:2], "4 images and 2 labels; wanted as many"),
    (vision.MixUp(3, 1.0, False), IMAGES, ONE_HOT, "4 images and 4 labels; wanted 3"),
    (vision.MixUpBatch(), IMAGES, np.arange(4), "one-hot"),
    (vision.MixUpBatch(), IMAGES, ONE_HOT[:2], "one-hot"),
    (vision.MixUpBatch(), IMAGES, ONE_HOT.astype(str), "labels of <U"),
    (vision.CutMixBatch(NHWC), IMAGES, np.arange(4), "one-hot"),
    (vision.CutMixBatch(NHWC), IMAGES[0], ONE_HOT, "one-hot"),
]


@pytest.mark.parametrize(("transform", "images", "labels", "message"), WRONG)
def test_wrong_batches(transform: Any, images: Any, labels: Any, message: str) -> None:
    with pytest.raises(
        (ValueError, TypeError), match=f"{type(transform).__name__}: got .*{message}"
    ):
        transform(images, labels)


def test_batches_of_another_size_than_the_previous() -> None:
    mix = vision.MixUp(1, 1.0, is_single=False)
    mix(IMAGES, ONE_HOT)
    with pytest.raises(ValueError, match=r"MixUp: got shape \(3, 6, 6, 3\) after \(4, 6, 6, 3\)"):
        mix(IMAGES[:3], ONE_HOT[:3])
