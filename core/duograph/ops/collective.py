"""Primitive classes: collective communication, summaries, and bases of user-defined primitives.

Programs written for several devices call the collectives, which run on one device here: a reduction
returns its operand, and a process that is one of several is refused. The summary classes accept
values and record nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentValueError
from ..launched import refuse_ranks
from ..option_checks import warn_moot
from ..tensor import Tensor
from .movement import identity
from .primitive import Primitive

__all__ = [
    "ReduceOp",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Broadcast",
    "ScalarSummary",
    "TensorSummary",
    "HistogramSummary",
    "ImageSummary",
    "PrimitiveWithInfer",
    "PrimitiveWithCheck",
]

_WORLD = "hccl_world_group"


class ReduceOp:
    """The reductions of `AllReduce` and `ReduceScatter` (`mindspore.ops.ReduceOp`)."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


def _known(name: str, op: object) -> str:
    if op not in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD):
        raise ArgumentValueError(f"{name}: got op={op!r}; wanted 'sum', 'max', 'min' or 'prod'")
    return str(op)


class AllReduce(Primitive):
    """Combine over all devices; the identity on one device.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.AllReduce()(ms.Tensor([1.0])))
        [1.]
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = _WORLD) -> None:
        super().__init__()
        refuse_ranks("ops.AllReduce")
        self.reduce_op = _known("AllReduce", op)
        self.group = group

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the input unchanged: there is only one device."""
        return identity(input_x)


class AllGather(Primitive):
    """Concatenate the tensors of all devices along axis 0; the identity on one device."""

    def __init__(self, group: str = _WORLD) -> None:
        super().__init__()
        refuse_ranks("ops.AllGather")
        self.group = group

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the input unchanged: there is only one device."""
        return identity(input_x)


class ReduceScatter(Primitive):
    """Combine over all devices and return this device's part; the identity on one device."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = _WORLD) -> None:
        super().__init__()
        refuse_ranks("ops.ReduceScatter")
        self.reduce_op = _known("ReduceScatter", op)
        self.group = group

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the input unchanged: there is only one device."""
        return identity(input_x)


class Broadcast(Primitive):
    """The tensors of the root device: `Broadcast(root_rank, group)(tensors)`.

    Raises:
        ValueError: a root other than 0, the only rank.
    """

    def __init__(self, root_rank: int, group: str = _WORLD) -> None:
        super().__init__()
        refuse_ranks("ops.Broadcast")
        if root_rank != 0:
            raise ArgumentValueError(
                f"Broadcast: got root_rank={root_rank}; wanted 0, the only rank"
            )
        self.root_rank = root_rank
        self.group = group

    def __call__(self, input_x: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the input tensors as a tuple, unchanged: the only device is the root."""
        return tuple(identity(x) for x in input_x)


class _Summary(Primitive):
    _owner = ""

    def __call__(self, name: str, value: object) -> None:
        """Check that `name` is a non-empty string, and warn that the value is not recorded."""
        warn_moot(self._owner)
        if not isinstance(name, str) or not name:
            raise ArgumentValueError(f"{self.name}: got name={name!r}; wanted a non-empty string")


class ScalarSummary(_Summary):
    """`ScalarSummary()(name, value)`: accepted; nothing is recorded."""

    _owner = "ops.ScalarSummary"


class TensorSummary(_Summary):
    """`TensorSummary()(name, value)`: accepted; nothing is recorded."""

    _owner = "ops.TensorSummary"


class HistogramSummary(_Summary):
    """`HistogramSummary()(name, value)`: accepted; nothing is recorded."""

    _owner = "ops.HistogramSummary"


class ImageSummary(_Summary):
    """`ImageSummary()(name, value)`: accepted; nothing is recorded."""

    _owner = "ops.ImageSummary"


class PrimitiveWithInfer(Primitive):
    """Base class of user-defined primitives with `infer_shape` and `infer_dtype`
    (`mindspore.ops.PrimitiveWithInfer`).

    A subclass computes in `__call__`; the values that it returns determine shapes and dtypes.
    """


class PrimitiveWithCheck(Primitive):
    """Base class of user-defined primitives with `check_shape` and `check_dtype`
    (`mindspore.ops.PrimitiveWithCheck`).
    """
