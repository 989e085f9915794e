"""Data formats (NCHW, NHWC) of primitives: checks of the argument, and transpositions.

The primitive classes of convolution, pooling and normalisation call the functions.
"""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentValueError
from ..tensor import Tensor
from .axes import tuple_of
from .gather_scatter import gather
from .primitive import Primitive
from .shape_primitives import transpose_by

__all__ = ["DataFormatDimMap"]


def wanted_format(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return the data format `value` if it is in `allowed`, else raise ArgumentValueError.

    `name` is the user's class in errors.
    """
    if value not in allowed:
        raise ArgumentValueError(
            f"{name}: got data_format={value!r}; wanted {' or '.join(map(repr, allowed))}"
        )
    return value


def last_to_first(x: Tensor) -> Tensor:
    """Transpose (N, spatial..., C) to (N, C, spatial...)."""
    return transpose_by(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def first_to_last(x: Tensor) -> Tensor:
    """Transpose (N, C, spatial...) to (N, spatial..., C)."""
    return transpose_by(x, (0, *range(2, x.ndim), 1))


def spatial(name: str, what: str, value: object, n: int) -> tuple[int, ...]:
    """Convert an int, n ints, or n + 2 ints in the older form (1, 1, ...) to n ints.

    The older form has an int for the batch and the channels first; these two are ignored. `name`
    and `what` name the user's class and argument in errors.
    """
    if isinstance(value, (tuple, list)) and len(value) == n + 2:
        value = tuple(value)[2:]
    return tuple_of(name, what, value, n)


class DataFormatDimMap(Primitive):
    """Map axis numbers of one data format to another.

    `DataFormatDimMap(src_format="NHWC", dst_format="NCHW")(x)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.DataFormatDimMap()(ms.Tensor([0, 1, 2, 3])))
        [0 3 1 2]
    """

    def __init__(self, src_format: str = "NHWC", dst_format: str = "NCHW") -> None:
        super().__init__()
        self.src_format = wanted_format("DataFormatDimMap", src_format, ("NHWC", "NCHW"))
        self.dst_format = wanted_format("DataFormatDimMap", dst_format, ("NHWC", "NCHW"))

    def __call__(self, x: Tensor) -> Tensor:
        """Translate axis numbers of the destination format to those of the source format.

        Example: from NHWC to NCHW, axis 1 (C of the destination) becomes 3. Negative axes count
        from the end.
        """
        places = np.array([self.src_format.index(c) for c in self.dst_format], x.dtype.np)
        return gather(Tensor(places), x, 0)
