"""Primitive classes of collective communication, and summary classes that record nothing.

Users call them. The collectives call the ops of `collective_primitives`; in a group of one rank
they return their operands. The summary classes accept values for compatibility only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import DTypeLike, as_dtype
from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import warn_moot
from ..ranks.world import group as world_group
from ..tensor import Tensor
from . import collective_primitives as primitives
from .joining import concat, split, stack
from .movement import identity
from .primitive import Primitive

__all__ = [
    "ReduceOp",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Broadcast",
    "AlltoAll",
    "Send",
    "Receive",
    "ScalarSummary",
    "TensorSummary",
    "HistogramSummary",
    "ImageSummary",
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
    """Combine the tensors of all ranks of a group, on all of them (`mindspore.ops.AllReduce`).

    Floating-point sums over ranks have a fixed order, unless ``set_context(engine_sums=True)``.

    Args:
        op: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``; see `ReduceOp`.
        group: name of the group; default all ranks.

    Inputs:
        input_x: Tensor of any shape, the same on all ranks.

    Outputs:
        Tensor of the shape and dtype of `input_x`; equal to it in a group of one rank.

    Raises:
        ValueError: another `op`; no such group.
        RuntimeError: ranks call different collectives, or one does not answer.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.AllReduce()(ms.Tensor([1.0])))
        [1.]
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = _WORLD) -> None:
        super().__init__()
        self.reduce_op = _known("AllReduce", op)
        self.group = _group_name("AllReduce", group)

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the elementwise reduction (the constructor's `op`) of the tensors of all ranks."""
        (out,) = reduced("AllReduce", [input_x], self.reduce_op, self.group)
        return out


class AllGather(Primitive):
    """Concatenate the tensors of all ranks of a group along axis 0 (`mindspore.ops.AllGather`).

    Args:
        group: name of the group; default all ranks.

    Inputs:
        input_x: Tensor (n, ...), of the same shape on all ranks.

    Outputs:
        Tensor (size * n, ...) for a group of `size` ranks; the part of rank 0 comes first.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.AllGather()(ms.Tensor([1.0])))
        [1.]
    """

    def __init__(self, group: str = _WORLD) -> None:
        super().__init__()
        self.group = _group_name("AllGather", group)

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the tensors of all ranks, concatenated along axis 0 in the order of the ranks."""
        members = world_group("AllGather", self.group)
        _tensor("AllGather", input_x)
        if members.size == 1:
            return identity(input_x)
        return primitives.all_gather(input_x, group=self.group, size=members.size)


class ReduceScatter(Primitive):
    """Combine the ranks' tensors, and return this rank's part of axis 0.

    See `mindspore.ops.ReduceScatter`.

    Args:
        op: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``; see `ReduceOp`.
        group: name of the group; default all ranks.

    Inputs:
        input_x: Tensor (size * n, ...), of the same shape on all ranks.

    Outputs:
        Tensor (n, ...).

    Raises:
        ValueError: axis 0 is not divisible by the number of ranks.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ReduceScatter()(ms.Tensor([1.0, 2.0])))
        [1. 2.]
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = _WORLD) -> None:
        super().__init__()
        self.reduce_op = _known("ReduceScatter", op)
        self.group = _group_name("ReduceScatter", group)

    def __call__(self, input_x: Tensor) -> Tensor:
        """Reduce the tensors of all ranks elementwise; return this rank's part along axis 0.

        The reduction is the constructor's `op`.
        """
        members = world_group("ReduceScatter", self.group)
        _tensor("ReduceScatter", input_x)
        if members.size == 1:
            return identity(input_x)
        return primitives.reduce_scatter(
            input_x, reduction=self.reduce_op, group=self.group, size=members.size
        )


class Broadcast(Primitive):
    """Return the tensors of one rank on all ranks: `Broadcast(root_rank, group)(tensors)`
    (`mindspore.ops.Broadcast`).

    Args:
        root_rank: rank in the group whose tensors are returned.
        group: name of the group; default all ranks.

    Inputs:
        input_x: tuple of Tensors, of the same shapes on all ranks.

    Outputs:
        Tuple of Tensors. Gradients reach the inputs of every rank unchanged, as in MindSpore.

    Raises:
        ValueError: no such rank.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.Broadcast(0)((ms.Tensor([1.0]),))[0])
        [1.]
    """

    def __init__(self, root_rank: int, group: str = _WORLD) -> None:
        super().__init__()
        self.group = _group_name("Broadcast", group)
        _member("Broadcast", "root_rank", root_rank, self.group)
        self.root_rank = root_rank

    def __call__(self, input_x: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the tensors that the root rank passed, on every rank of the group.

        The root is the rank `root_rank` of the constructor.
        """
        members = world_group("Broadcast", self.group)
        for x in input_x:
            _tensor("Broadcast", x)
        if members.size == 1:
            return tuple(identity(x) for x in input_x)
        found = primitives.broadcast_from(list(input_x), root=self.root_rank, group=self.group)
        return tuple(found)


class AlltoAll(Primitive):
    """Send a part of a tensor to each rank, and join the parts received (`mindspore.ops.AlltoAll`).

    Args:
        split_count: number of parts: the number of ranks of the group.
        split_dim: axis that is split.
        concat_dim: axis along which the received parts are joined.
        group: name of the group; default all ranks.

    Inputs:
        input_x: Tensor of the same shape on all ranks.

    Outputs:
        Tensor whose axis `split_dim` is divided by `split_count`, and `concat_dim` multiplied by
            it.

    Raises:
        ValueError: `split_count` is not the number of ranks, or does not divide the axis.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.AlltoAll(1, 0, 1)(ms.Tensor([[1.0, 2.0]])))
        [[1. 2.]]
    """

    def __init__(
        self, split_count: int, split_dim: int, concat_dim: int, group: str = _WORLD
    ) -> None:
        super().__init__()
        self.group = _group_name("AlltoAll", group)
        self.split_count, self.split_dim, self.concat_dim = split_count, split_dim, concat_dim

    def __call__(self, input_x: Tensor) -> Tensor:
        """Send a part of `input_x`, cut along `split_dim`, to each rank; return the received parts.

        The received parts are joined along `concat_dim`, in the order of the ranks. Both axes are
        arguments of the constructor.
        """
        size = world_group("AlltoAll", self.group).size
        _tensor("AlltoAll", input_x)
        if self.split_count != size:
            raise ArgumentValueError(
                f"AlltoAll: got split_count={self.split_count}; wanted {size}, the number of ranks "
                f"of {self.group!r}"
            )
        if size == 1:
            return identity(input_x)
        if input_x.shape[self.split_dim] % size:
            raise ArgumentValueError(
                f"AlltoAll: got a tensor of shape {input_x.shape} with split_dim={self.split_dim}; "
                f"wanted an axis divisible by {size}"
            )
        parts = split(input_x, input_x.shape[self.split_dim] // size, self.split_dim)
        ones = (1,) * size
        found = primitives.all_to_all(stack(parts), lengths=ones, received=ones, group=self.group)
        return concat([found[i] for i in range(size)], self.concat_dim)


class Send(Primitive):
    """Send a tensor to another rank: `Send(sr_tag, dest_rank)(x)` (`mindspore.ops.Send`).

    Args:
        sr_tag: number of the message; `Receive` must have the same.
        dest_rank: rank in the group that receives.
        group: name of the group; default all ranks.
        group_back: name of a group for the gradients; ignored, since messages have no gradient.

    Outputs:
        The tensor that was sent.

    Raises:
        ValueError: no such rank.
    """

    def __init__(
        self, sr_tag: int, dest_rank: int, group: str = _WORLD, group_back: str = _WORLD
    ) -> None:
        super().__init__()
        self.group, self.group_back = _group_name("Send", group), _group_name("Send", group_back)
        self.tag, self.dest_rank = sr_tag, _other("Send", "dest_rank", dest_rank, self.group)

    def __call__(self, input_x: Tensor) -> Tensor:
        """Send a tensor, and return it."""
        _tensor("Send", input_x)
        return primitives.send(input_x, to=self.dest_rank, tag=self.tag, group=self.group)


class Receive(Primitive):
    """Receive a tensor of another rank: `Receive(sr_tag, src_rank, shape, dtype)()`
    (`mindspore.ops.Receive`).

    Args:
        sr_tag: number of the message; `Send` must have the same.
        src_rank: rank in the group that sends.
        shape, dtype: shape and dtype of the tensor.
        group: name of the group; default all ranks.
        group_back: name of a group for the gradients; ignored, since messages have no gradient.

    Raises:
        ValueError: no such rank.
        RuntimeError: a tensor of another shape or dtype is sent.
    """

    def __init__(
        self, sr_tag: int, src_rank: int, shape: Sequence[int], dtype: DTypeLike,
        group: str = _WORLD, group_back: str = _WORLD,
    ) -> None:  # fmt: skip
        super().__init__()
        self.group = _group_name("Receive", group)
        self.group_back = _group_name("Receive", group_back)
        self.tag, self.rank = sr_tag, _other("Receive", "src_rank", src_rank, self.group)
        self.shape, self.dtype = tuple(shape), as_dtype(dtype)

    def __call__(self, x: object = None) -> Tensor:
        """Wait for the tensor that the other rank sends, and return it; `x` is ignored."""
        return primitives.receive(
            shape=self.shape, dtype=self.dtype, source=self.rank, tag=self.tag, group=self.group
        )


def reduced(owner: str, tensors: Sequence[Tensor], op: str, group: str) -> tuple[Tensor, ...]:
    """Reduce each tensor over the ranks of a group; return the results in the same order.

    `op` is the reduction, such as ``"sum"``; `owner` is the function that the user called.

    Raises:
        ArgumentError: an item is not a Tensor.
    """
    members = world_group(owner, group)
    for x in tensors:
        _tensor(owner, x)
    if members.size == 1:
        return tuple(identity(x) for x in tensors)
    return tuple(primitives.all_reduce(list(tensors), reduction=op, group=group, size=members.size))


def _tensor(owner: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{owner}: got {type(x).__name__}; wanted a Tensor")


def _group_name(owner: str, group: object) -> str:
    if not isinstance(group, str):
        raise ArgumentError(f"{owner}: got group={group!r}; wanted the name of a group")
    world_group(owner, group)
    return group


def _member(owner: str, name: str, rank: object, group: str) -> int:
    size = world_group(owner, group).size
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < size:
        raise ArgumentValueError(
            f"{owner}: got {name}={rank!r}; wanted a rank of {group!r}, from 0 to {size - 1}"
        )
    return rank


def _other(owner: str, name: str, rank: object, group: str) -> int:
    if _member(owner, name, rank, group) == world_group(owner, group).rank:
        raise ArgumentValueError(f"{owner}: got {name}={rank}, this rank; wanted another one")
    return int(rank)  # type: ignore[call-overload]


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
