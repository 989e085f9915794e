"""Transforms that mix the images of a batch and their labels: mixup and CutMix.

`dataset.vision` exports them for use in `Dataset.map` after `batch`.

Reference: Zhang et al., "mixup: Beyond Empirical Risk Minimization" (2018); Yun et al., "CutMix"
(2019).
"""

from __future__ import annotations

import numpy as np

from ...errors import ArgumentError, ShapeError
from ..rows import Array
from .enums import ImageBatchFormat
from .images import checked_member, checked_number, checked_probability, random_numbers

__all__ = ["CutMixBatch", "MixUp", "MixUpBatch"]


def _one_hot(owner: str, image: object, label: object) -> tuple[Array, Array]:
    """Check a batch of images and of their one-hot labels; return both as arrays.

    Images are (N, H, W, C) or (N, C, H, W). Labels are (N, classes) or (N, rows, classes).

    Raises:
        ShapeError: the shapes are others, or the batch sizes N differ.
        ArgumentError: the labels are no numbers.
    """
    images, labels = np.asarray(image), np.asarray(label)
    if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
        raise ShapeError(
            f"{owner}: got images of shape {images.shape} and labels of shape {labels.shape}; "
            "wanted (N, H, W, C) or (N, C, H, W), and one-hot labels (N, classes)"
        )
    if labels.dtype.kind not in "buif":
        raise ArgumentError(f"{owner}: got labels of {labels.dtype}; wanted numbers")
    return images, labels


class MixUpBatch:
    """Mixes each image of a batch, and its one-hot label, with another
    (`mindspore.dataset.vision.MixUpBatch`).

    Args:
        alpha: parameter of the Beta distribution of the weights, above 0.

    Returns:
        Mixed images (N, ...) of the same dtype, rounded for integers, and mixed labels, float32,
        when called with images and labels.

    Raises:
        ValueError: `alpha` is not above 0; when called: the labels are not one-hot.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> x, y = vision.MixUpBatch()(np.ones((2, 4, 4, 3), np.uint8), np.eye(2))
        >>> x.shape, y.sum(1).tolist()
        ((2, 4, 4, 3), [1.0, 1.0])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = checked_number("MixUpBatch", "alpha", alpha, 1e-12)

    def __call__(self, image: object, label: object) -> tuple[Array, Array]:
        images, labels = _one_hot("MixUpBatch", image, label)
        random = random_numbers()
        weight = float(random.beta(self.alpha, self.alpha))
        order = random.permutation(len(images))
        mixed = weight * images + (1 - weight) * images[order]
        if images.dtype.kind in "iu":
            mixed = np.rint(mixed)
        found = (weight * labels + (1 - weight) * labels[order]).astype(np.float32)
        return mixed.astype(images.dtype), found


class CutMixBatch:
    """Replaces a rectangle in each image of a batch by one of another image, and mixes their labels
    (`mindspore.dataset.vision.CutMixBatch`).

    Args:
        image_batch_format: whether the channels are the last or the second axis.
        alpha: parameter of the Beta distribution of the areas, above 0.
        prob: probability with which an image is changed.

    Returns:
        Images (N, ...), and mixed labels, float32, when called with images and labels.

    Raises:
        TypeError: `image_batch_format` is no ImageBatchFormat.
        ValueError: an argument is outside its range; when called: the labels are not one-hot.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> cut = vision.CutMixBatch(vision.ImageBatchFormat.NHWC)
        >>> x, y = cut(np.ones((2, 4, 4, 3), np.uint8), np.eye(2))
        >>> x.shape, y.sum(1).tolist()
        ((2, 4, 4, 3), [1.0, 1.0])
    """

    def __init__(
        self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0
    ) -> None:
        self.format = checked_member(
            "CutMixBatch", "image_batch_format", image_batch_format, ImageBatchFormat
        )
        self.alpha = checked_number("CutMixBatch", "alpha", alpha, 1e-12)
        self.prob = checked_probability("CutMixBatch", prob)

    def __call__(self, image: object, label: object) -> tuple[Array, Array]:
        images, labels = _one_hot("CutMixBatch", image, label)
        made, found = images.copy(), labels.astype(np.float32)
        first = 1 if self.format == ImageBatchFormat.NHWC else 2
        height, width = images.shape[first : first + 2]
        random = random_numbers()
        order = random.permutation(len(images))
        for i, j in enumerate(order):
            if random.random() >= self.prob:
                continue
            side = np.sqrt(1 - random.beta(self.alpha, self.alpha))
            cy, cx = random.integers(height), random.integers(width)
            h, w = int(height * side), int(width * side)
            rows = slice(max(cy - h // 2, 0), min(cy + h // 2, height))
            columns = slice(max(cx - w // 2, 0), min(cx + w // 2, width))
            at = (rows, columns) if first == 1 else (slice(None), rows, columns)
            made[i][at] = images[j][at]
            area = (rows.stop - rows.start) * (columns.stop - columns.start)
            weight = 1 - area / (height * width)
            found[i] = weight * labels[i] + (1 - weight) * labels[j]
        return made, found


class MixUp:
    """Mixes the images of a batch, and their one-hot labels, with others
    (`mindspore.dataset.vision.MixUp`).

    Args:
        batch_size: number of images in a batch, each of which gets its own weight; with 1, a batch
            has any number of images, which get one weight.
        alpha: parameter of the Beta distribution of the weights, above 0.
        is_single: mix each image with the next one of the batch, the last with the first, or, if
            `batch_size` is 1, each with the first. Otherwise mix a batch with the result of the
            previous call; the first call returns its batch, and one image (H, W, C) or label
            (1, classes) counts as `batch_size` equal ones.

    Returns:
        Mixed images and labels, float64, when called with images (N, H, W, C) or (N, C, H, W) and
        labels (N, classes) or (N, rows, classes).

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: wrong numbers of images or
            labels, or labels that are not one-hot.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> x, y = vision.MixUp(2, 1.0)(np.ones((2, 4, 4, 3)), np.eye(2))
        >>> x.shape, y.shape
        ((2, 4, 4, 3), (2, 2))
    """

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        checked_number("MixUp", "batch_size", batch_size, 1)
        self.batch_size, self.alpha = batch_size, checked_number("MixUp", "alpha", alpha, 1e-12)
        if not isinstance(is_single, bool):
            raise ArgumentError(f"MixUp: got is_single={is_single!r}; wanted True or False")
        self.is_single = is_single
        self._before: tuple[Array, Array] | None = None

    def __call__(self, image: object, label: object) -> tuple[Array, Array]:
        images, labels = self._checked(np.asarray(image), np.asarray(label))
        weights = random_numbers().beta(self.alpha, self.alpha, self.batch_size)
        if self.is_single:
            count = len(images)
            order = np.zeros(count, int) if self.batch_size == 1 else np.roll(np.arange(count), -1)
            others = images[order], labels[order]
        elif self._before is None:
            others, weights = (images, labels), np.ones(self.batch_size)
        else:
            others = self._before
        mixed = self._mixed(weights, images, others[0]), self._mixed(weights, labels, others[1])
        if not self.is_single:
            self._before = mixed
        return mixed

    def _checked(self, images: Array, labels: Array) -> tuple[Array, Array]:
        """Return images with an axis of the batch, and labels; refuse other shapes."""
        if images.ndim == 3 and not self.is_single:
            images = images[None]
        if images.ndim != 4 or labels.ndim not in (2, 3):
            raise ShapeError(
                f"MixUp: got images of shape {images.shape} and labels of shape {labels.shape}; "
                "wanted (N, H, W, C) or (N, C, H, W), and one-hot labels (N, classes)"
            )
        counts = {len(images), len(labels)}
        if not self.is_single:
            counts.discard(1)
        if len(counts) > 1 or (self.batch_size > 1 and counts - {self.batch_size}):
            wanted = self.batch_size if self.batch_size > 1 else "as many of both"
            raise ShapeError(
                f"MixUp: got {len(images)} images and {len(labels)} labels; wanted {wanted}"
            )
        return images, labels

    def _mixed(self, weights: Array, values: Array, others: Array) -> Array:
        """Return the weighted mean of two arrays, with a weight for each index of axis 0."""
        weight = weights.reshape(-1, *[1] * (values.ndim - 1))
        try:
            return np.asarray(weight * values + (1 - weight) * others)
        except ValueError:
            raise ShapeError(
                f"MixUp: got shape {values.shape} after {others.shape}; wanted the shape of the "
                "previous batch (is_single=False mixes with it)"
            ) from None
