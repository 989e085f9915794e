"""Transforms of arrays of any kind, such as Compose, OneHot and TypeCast.

`dataset.transforms` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ...call_errors import explaining
from ...dtype import DTypeLike, as_dtype, bool_
from ...errors import ArgumentError, ArgumentValueError
from .. import config
from ..rows import Array, padded

__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "RandomApply",
    "RandomChoice", "RandomOrder", "Relational", "Slice", "TypeCast", "Unique", "not_random",
]  # fmt: skip

T = TypeVar("T")


@explaining
class TypeCast:
    """Casts an array to a dtype (`mindspore.dataset.transforms.TypeCast`).

    Examples:
        >>> import numpy as np
        >>> import duograph as ms
        >>> from duograph.dataset import transforms
        >>> transforms.TypeCast(ms.int32)(np.array([1.5])).dtype
        dtype('int32')
    """

    def __init__(self, data_type: DTypeLike) -> None:
        self.data_type = as_dtype(data_type)

    def __call__(self, data: ArrayLike) -> Array:
        return np.asarray(data).astype(self.data_type.np)


@explaining
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

    def __init__(self, transforms: Sequence[Callable[..., object]]) -> None:
        self.transforms = list(transforms)
        if not self.transforms:
            raise ArgumentValueError("Compose: got no transforms; wanted at least one")
        for t in self.transforms:
            if not callable(t):
                raise ArgumentError(f"Compose: got {type(t).__name__}; wanted functions")

    def __call__(self, *args: object) -> Any:
        for t in self.transforms:
            found = t(*args)
            args = found if isinstance(found, tuple) else (found,)
        return args if len(args) > 1 else args[0]


@explaining
class OneHot:
    """One-hot encoding of labels (`mindspore.dataset.transforms.OneHot`).

    Raises:
        ValueError: `num_classes` is below 1, or a label is no whole number in [0, num_classes).

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
        if label.dtype.kind not in "iub" and (label != np.floor(label)).any():
            raise ArgumentValueError(f"OneHot: got {label}; wanted whole numbers")
        if label.ndim == 2 and label.shape[1] == 1:
            label = label[:, 0]
        rows = np.eye(self.num_classes, dtype=label.dtype)[label.astype(np.int64)]
        if self.smoothing_rate:
            rows = (1 - self.smoothing_rate) * rows + self.smoothing_rate / self.num_classes
        return rows


@explaining
class Fill:
    """Sets every element to a value (`mindspore.dataset.transforms.Fill`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Fill(3)(np.array([1, 2]))
        array([3, 3])
    """

    def __init__(self, fill_value: object) -> None:
        if not isinstance(fill_value, (str, bytes, int, float, np.number)):
            raise ArgumentError(f"Fill: got {fill_value!r}; wanted a number or a string")
        self.fill_value = fill_value

    def __call__(self, data: ArrayLike) -> Array:
        array = np.asarray(data)
        text = array.dtype.kind in "SU"
        if text != isinstance(self.fill_value, (str, bytes)):
            raise ArgumentError(f"Fill: got {self.fill_value!r} for an array of {array.dtype}")
        return np.full(array.shape, self.fill_value, None if text else array.dtype)


@explaining
class Concatenate:
    """Concatenates an array with `prepend` before and `append` after it

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


@explaining
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


@explaining
class RandomApply:
    """Applies all of some transforms with probability `prob`, and none of them otherwise
    (`mindspore.dataset.transforms.RandomApply`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.RandomApply([abs], 1.0)(np.array(-1))
        np.int64(1)
    """

    def __init__(self, transforms: Sequence[Callable[..., object]], prob: float = 0.5) -> None:
        self.transforms, self.prob = Compose(transforms), prob

    def __call__(self, *args: object) -> Any:
        if config.random_numbers().random() < self.prob:
            return self.transforms(*args)
        return args if len(args) > 1 else args[0]


@explaining
class RandomChoice:
    """Applies one of several transforms, chosen at random
    (`mindspore.dataset.transforms.RandomChoice`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.RandomChoice([abs])(np.array(-1))
        np.int64(1)
    """

    def __init__(self, transforms: Sequence[Callable[..., object]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, *args: object) -> Any:
        return self.transforms[int(config.random_numbers().integers(len(self.transforms)))](*args)


@explaining
class RandomOrder:
    """Applies all transforms in random order (`mindspore.dataset.transforms.RandomOrder`).

    Raises:
        TypeError: a transform is not a function.
        ValueError: the list is empty.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.RandomOrder([abs, np.sqrt])(np.array(4.0))
        np.float64(2.0)
    """

    def __init__(self, transforms: Sequence[Callable[..., object]]) -> None:
        self.transforms = Compose(transforms).transforms

    def __call__(self, *args: object) -> Any:
        order = config.random_numbers().permutation(len(self.transforms))
        return Compose([self.transforms[i] for i in order])(*args)


class Relational(enum.IntEnum):
    """Comparison operators of `Mask` (`mindspore.dataset.transforms.Relational`)."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARE: dict[Relational, Callable[..., Array]] = {
    Relational.EQ: np.equal, Relational.NE: np.not_equal, Relational.GT: np.greater,
    Relational.GE: np.greater_equal, Relational.LT: np.less, Relational.LE: np.less_equal,
}  # fmt: skip


@explaining
class Mask:
    """Compares every element with a constant (`mindspore.dataset.transforms.Mask`).

    Args:
        operator: the comparison, a Relational.
        constant: the number or string to compare with.
        dtype: dtype of the result.

    Raises:
        TypeError: an argument has a wrong type.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Mask(transforms.Relational.GT, 2)(np.array([1, 3])).tolist()
        [False, True]
    """

    def __init__(self, operator: Relational, constant: object, dtype: DTypeLike = bool_) -> None:
        if not isinstance(operator, Relational):
            raise ArgumentError(f"Mask: got operator={operator!r}; wanted a Relational")
        if not isinstance(constant, (str, bytes, int, float, np.number)):
            raise ArgumentError(f"Mask: got constant={constant!r}; wanted a number or a string")
        self.operator, self.constant, self.dtype = operator, constant, as_dtype(dtype).np

    def __call__(self, data: ArrayLike) -> Array:
        return _COMPARE[self.operator](np.asarray(data), self.constant).astype(self.dtype)


@explaining
class PadEnd:
    """Pads or cuts an array at the end of each axis (`mindspore.dataset.transforms.PadEnd`).

    Args:
        pad_shape: size of each axis; None keeps it.
        pad_value: value of added elements; by default 0, or the empty string.

    Raises:
        TypeError: a size is no int.
        ValueError: a size is below 1; when called: the number of axes differs.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.PadEnd([4], 9)(np.array([1, 2, 3])).tolist()
        [1, 2, 3, 9]
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: object = None) -> None:
        if not isinstance(pad_shape, (list, tuple)):
            raise ArgumentError(f"PadEnd: got pad_shape={pad_shape!r}; wanted a list")
        for n in pad_shape:
            if n is not None and (isinstance(n, bool) or not isinstance(n, int)):
                raise ArgumentError(f"PadEnd: got pad_shape={pad_shape!r}; wanted ints")
            if n is not None and n < 1:
                raise ArgumentValueError(f"PadEnd: got pad_shape={pad_shape!r}; wanted 1 or more")
        self.pad_shape, self.pad_value = list(pad_shape), pad_value

    def __call__(self, data: ArrayLike) -> Array:
        return padded([np.asarray(data)], self.pad_shape, self.pad_value)[0]


@explaining
class Slice:
    """Takes a part of an array (`mindspore.dataset.transforms.Slice`).

    Args:
        slices: for each axis an int, a list of ints, a slice, or None or True for the whole axis;
            ``...`` stands for all remaining axes. The result has as many axes as the array.

    Raises:
        TypeError: an argument is something else.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> transforms.Slice([0, 2])(np.array([1, 2, 3])).tolist()
        [1, 3]
    """

    def __init__(self, *slices: object) -> None:
        for s in slices:
            ints = s if isinstance(s, (list, tuple)) else [s]
            if not (s is None or s is True or s is ... or isinstance(s, slice)) and any(
                isinstance(i, bool) or not isinstance(i, int) for i in ints
            ):
                raise ArgumentError(f"Slice: got {s!r}; wanted an int, a list, a slice or None")
        self.slices = slices

    def __call__(self, data: ArrayLike) -> Array:
        array = np.asarray(data)
        parts = list(self.slices)
        if ... in parts:
            at = parts.index(...)
            parts[at : at + 1] = [None] * (array.ndim - len(parts) + 1)
        if len(parts) > array.ndim:
            raise ArgumentValueError(
                f"Slice: got {len(parts)} slices for an array of shape {array.shape}"
            )
        for axis, s in enumerate(parts):
            if isinstance(s, slice):
                array = array[(slice(None),) * axis + (s,)]
            elif s is not None and s is not True:
                array = np.take(array, np.atleast_1d(cast("int | Sequence[int]", s)), axis)
        return array


@explaining
class Unique:
    """Returns the distinct elements of an array, with their positions and counts
    (`mindspore.dataset.transforms.Unique`).

    Returns:
        When called: the elements (n,), in the order of their first occurrence; for each position of
        the array the index of its element among them, (size,) int32; and the number of occurrences
        of each element, (n,) int32.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import transforms
        >>> [a.tolist() for a in transforms.Unique()(np.array([3, 1, 3]))]
        [[3, 1], [0, 1, 0], [2, 1]]
    """

    def __call__(self, data: ArrayLike) -> tuple[Array, Array, Array]:
        found, first, places, counts = np.unique(
            np.asarray(data).ravel(), return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return found[order], rank[places].astype(np.int32), counts[order].astype(np.int32)


def not_random(function: T) -> T:
    """Mark a function or class as one without random numbers (`mindspore.dataset.transforms`).

    Examples:
        >>> from duograph.dataset import transforms
        >>> transforms.not_random(abs)(-1)
        1
    """
    try:
        function.random = False  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        return function  # built-in functions have no attributes
    return function
