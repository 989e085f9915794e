"""Transforms of arrays of any kind, for `Dataset.map` (`mindspore.dataset.transforms`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..dtype import DTypeLike, as_dtype
from ..errors import ArgumentError, ArgumentValueError
from . import config
from .rows import Array

__all__ = [
    "TypeCast",
    "Compose",
    "OneHot",
    "Fill",
    "Concatenate",
    "Duplicate",
    "RandomApply",
    "RandomChoice",
]

T = TypeVar("T")


class TypeCast:
    """Casts to a dtype (`mindspore.dataset.transforms.TypeCast`).

    Examples:
        >>> import numpy as np
        >>> import duograph as ms
        >>> from duograph.dataset import transforms
        >>> transforms.TypeCast(ms.int32)(np.array([1.5])).dtype
        dtype('int32')
    """

    def __init__(self, output_type: DTypeLike) -> None:
        self.output_type = as_dtype(output_type)

    def __call__(self, data: ArrayLike) -> Array:
        return np.asarray(data).astype(self.output_type.np)


class Compose:
    """Applies transforms one after the other (`mindspore.dataset.transforms.Compose`).

    Raises:
        TypeError: a transform is not a function.
        ValueError: the list is empty.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Compose([abs])(np.array(-1))
        np.int64(1)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = list(transforms)
        if not self.transforms:
            raise ArgumentValueError("Compose: got no transforms; wanted at least one")
        for t in self.transforms:
            if not callable(t):
                raise ArgumentError(f"Compose: got {type(t).__name__}; wanted functions")

    def __call__(self, *args: Any) -> Any:
        for t in self.transforms:
            found = t(*args)
            args = found if isinstance(found, tuple) else (found,)
        return args if len(args) > 1 else args[0]


class OneHot:
    """One-hot encoding of labels (`mindspore.dataset.transforms.OneHot`).

    Raises:
        ValueError: `num_classes` is below 1, or a label is not in [0, num_classes).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.OneHot(3)(np.array(1))
        array([0, 1, 0])
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 1:
            raise ArgumentValueError(f"OneHot: got num_classes={num_classes!r}; wanted 1 or more")
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def __call__(self, label: ArrayLike) -> Array:
        label = np.asarray(label)
        if label.size and (label.min() < 0 or label.max() >= self.num_classes):
            raise ArgumentValueError(f"OneHot: got {label} for {self.num_classes} classes")
        rows = np.eye(self.num_classes, dtype=label.dtype)[label.astype(np.int64)]
        if self.smoothing_rate:
            rows = (1 - self.smoothing_rate) * rows + self.smoothing_rate / self.num_classes
        return rows


class Fill:
    """Sets every element to a value (`mindspore.dataset.transforms.Fill`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Fill(3)(np.array([1, 2]))
        array([3, 3])
    """

    def __init__(self, fill_value: float) -> None:
        self.fill_value = fill_value

    def __call__(self, data: ArrayLike) -> Array:
        return np.full_like(np.asarray(data), self.fill_value)


class Concatenate:
    """Concatenates arrays before and after (`mindspore.dataset.transforms.Concatenate`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Concatenate(0, [1])(np.array([2]))
        array([1, 2])
    """

    def __init__(
        self, axis: int = 0, prepend: ArrayLike | None = None, append: ArrayLike | None = None
    ) -> None:
        self.axis, self.prepend, self.append = axis, prepend, append

    def __call__(self, data: ArrayLike) -> Array:
        parts = [p for p in (self.prepend, data, self.append) if p is not None]
        return np.concatenate(parts, axis=self.axis)


class Duplicate:
    """Returns an array twice, as two columns (`mindspore.dataset.transforms.Duplicate`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Duplicate()(np.array([2]))
        (array([2]), array([2]))
    """

    def __call__(self, data: T) -> tuple[T, T]:
        return data, data


class RandomApply:
    """Applies all transforms with a probability, else none
    (`mindspore.dataset.transforms.RandomApply`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.RandomApply([abs], 1.0)(np.array(-1))
        np.int64(1)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], prob: float = 0.5) -> None:
        self.transforms, self.prob = Compose(transforms), prob

    def __call__(self, *args: Any) -> Any:
        if config.random_numbers().random() < self.prob:
            return self.transforms(*args)
        return args if len(args) > 1 else args[0]


class RandomChoice:
    """Applies one of several transforms, chosen at random
    (`mindspore.dataset.transforms.RandomChoice`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.RandomChoice([abs])(np.array(-1))
        np.int64(1)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, *args: Any) -> Any:
        return self.transforms[int(config.random_numbers().integers(len(self.transforms)))](*args)
