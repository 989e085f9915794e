"""Runs the collectives of `duograph.mint.distributed`: checks of arguments, handles to wait for.

`collectives`, `messages` and `objects` of this package, and `communication.comm_func`, call it. A
call that is compiled, or recorded for a gradient, becomes a graph op. Any other asynchronous call
starts the communication and returns a handle, whose `wait` completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ...dtype import DType, float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...op import Op
from ...ops import collective_primitives as primitives
from ...ops import concat, reshape, split
from ...ranks.on_device import DeviceArray, operand
from ...ranks.world import Group, world
from ...runtime_state import thread_state
from ...tensor import Tensor
from ...types import Device, TensorType

if TYPE_CHECKING:
    from ...host_arrays import Array

__all__ = ["Work", "async_flag", "averaged", "check_reduction", "communicated", "fits",
           "host_array", "in_graph", "joined", "members", "part_lengths", "peer_of", "put",
           "put_parts", "tensor_list", "tensor_of", "widened", "with_axis"]  # fmt: skip

_REDUCTIONS = ("sum", "prod", "max", "min", "avg")


class Work:
    """The handle of an asynchronous collective (MindSpore's `CommHandle`).

    Until `wait` has returned, the operands must not be written, and the values of the results are
    undefined. In a compiled function the collective is complete when its call returns.

    Args:
        finish: function that waits for the collective and writes its results; None if it is
            complete.
    """

    def __init__(self, finish: Callable[[], None] | None = None) -> None:
        self._finish = finish

    def wait(self) -> None:
        """Wait until the collective is complete, and write its results.

        Raises:
            RuntimeError: ranks call different collectives, or one does not answer.
        """
        if self._finish is not None:
            self._finish()  # if it raises, the next call raises too
            self._finish = None


# ---- arguments -----------------------------------------------------------------------------------


def members(owner: str, group: str | None) -> Group:
    """Return the named group, of which this rank must be a member; None means all ranks.

    Raises:
        ArgumentError: not a string.
        ArgumentValueError: no such group, or this rank is no member.
    """
    if group is not None and not isinstance(group, str):
        raise ArgumentError(f"{owner}: got group={group!r}; wanted a string or None")
    own = world()
    return own.whole if group is None else own.group(owner, group)


def async_flag(owner: str, async_op: object) -> bool:
    """Return `async_op` if it is a bool; raise an ArgumentError otherwise."""
    if not isinstance(async_op, bool):
        raise ArgumentError(f"{owner}: got async_op={async_op!r}; wanted True or False")
    return async_op


def tensor_of(owner: str, name: str, value: object) -> Tensor:
    """Return a value if it is a Tensor; raise an ArgumentError otherwise."""
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{owner}: got {type(value).__name__} for {name}; wanted a Tensor")
    return value


def tensor_list(owner: str, name: str, values: object, size: int) -> list[Tensor]:
    """Return a list of one Tensor for each of `size` ranks, all of the same dtype.

    Raises:
        ArgumentError: the wrong number or kind of values, or values of several dtypes.
    """
    wanted = f"a list of {size} Tensor{'s' * (size > 1)}"
    if not isinstance(values, (tuple, list)) or len(values) != size:
        found = len(values) if isinstance(values, (tuple, list)) else type(values).__name__
        raise ArgumentError(f"{owner}: got {found} for {name}; wanted {wanted}")
    tensors = [tensor_of(owner, f"{name}[{i}]", x) for i, x in enumerate(values)]
    for i, x in enumerate(tensors):
        if x.dtype is not tensors[0].dtype:
            raise ArgumentError(
                f"{owner}: got {name}[{i}] of {x.dtype.name} and {name}[0] of "
                f"{tensors[0].dtype.name}; wanted one dtype"
            )
    return tensors


def check_reduction(owner: str, op: object, x: Tensor) -> None:
    """Raise an ArgumentError unless `op` names a reduction that the dtype of x supports."""
    if op not in _REDUCTIONS:
        raise ArgumentError(f"{owner}: got op={op!r}; wanted one of {', '.join(_REDUCTIONS)}")
    if op == "avg" and not x.is_floating_point():
        raise ArgumentError(
            f"{owner}: got op='avg' for {x.dtype.name}; wanted a floating-point dtype, or op='sum'"
        )


def fits(
    owner: str, name: str, output: Tensor, shape: Sequence[int], like: Tensor,
    error: type[Exception] = ShapeError,
) -> None:  # fmt: skip
    """Raise an error unless an output tensor has the given shape and the dtype of `like`.

    `owner` and `name` are the function and its argument in the message; `error` is the exception
    class.
    """
    if output.shape != tuple(shape) or output.dtype is not like.dtype:
        raise error(
            f"{owner}: got {name} of {output.dtype.name} {output.shape}; wanted "
            f"{like.dtype.name} {tuple(shape)}"
        )


def peer_of(owner: str, name: str, rank: object, group: Group, other: bool = False) -> int:
    """Return the position in a group of a rank, which is given by its number among all ranks.

    Args:
        owner, name: the function and its argument, for messages.
        rank: the argument, a rank's number among all ranks (the world).
        group: the group.
        other: whether this rank itself is refused.

    Raises:
        ArgumentError: not an int.
        ArgumentValueError: no member of the group, or this rank although `other` is set.
    """
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise ArgumentError(f"{owner}: got {name}={rank!r}; wanted an int")
    if rank not in group.ranks:
        raise ArgumentValueError(
            f"{owner}: got {name}={rank}; wanted {_numbers(group.ranks)}, the ranks of the world "
            f"in {group.name!r}"
        )
    if other and rank == group.world.rank:
        raise ArgumentValueError(f"{owner}: got {name}={rank}, this rank; wanted another one")
    return group.ranks.index(rank)


def _numbers(ranks: Sequence[int]) -> str:
    if len(ranks) > 8 and tuple(ranks) == tuple(range(len(ranks))):
        return f"0 to {len(ranks) - 1}"
    return ", ".join(map(str, ranks))


def put_parts(outputs: Sequence[Tensor], flat: Tensor) -> None:
    """Write consecutive elements of a tensor (n,) into tensors that have n elements in all."""
    sizes = [out.size for out in outputs]
    parts = [flat] if len(sizes) == 1 else split(flat, sizes)
    for out, part in zip(outputs, parts, strict=True):
        put(out, reshape(part, out.shape))


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of several tensors as one tensor (n,)."""
    flat = [reshape(x, (x.size,)) for x in tensors]
    return flat[0] if len(flat) == 1 else concat(flat)


def with_axis(owner: str, name: str, value: object) -> Tensor:
    """Return a Tensor of one axis or more; raise an ArgumentError or ShapeError otherwise."""
    x = tensor_of(owner, name, value)
    if not x.shape:
        raise ShapeError(f"{owner}: got {name} without axes; wanted one axis or more")
    return x


def part_lengths(
    owner: str, name: str, sizes: Sequence[int] | None, rows: int, group: Group, what: str
) -> tuple[int, ...]:
    """Return the lengths of the parts of `rows` rows, one for each rank of a group.

    Args:
        owner, name: the function and its argument, for messages.
        sizes: the argument with the lengths; None or empty for equal lengths.
        rows: number of rows of all parts together.
        group: the group.
        what: the tensor that is divided, such as "an input", for messages.

    Raises:
        ArgumentError: `sizes` holds something other than ints of 0 or more.
        ArgumentValueError: there is not one length per rank, the lengths do not sum to `rows`, or
            `rows` cannot be divided equally.
    """
    size = group.size
    if sizes is None or not len(sizes):
        if rows % size:
            raise ArgumentValueError(
                f"{owner}: got {what} of {rows} rows without {name}; wanted a multiple of {size}, "
                "the number of ranks"
            )
        return (rows // size,) * size
    if not all(type(n) is int and n >= 0 for n in sizes):
        raise ArgumentError(f"{owner}: got {name}={list(sizes)!r}; wanted ints of 0 or more")
    if len(sizes) != size or sum(sizes) != rows:
        raise ArgumentValueError(
            f"{owner}: got {name}={list(sizes)}; wanted {size} lengths, which sum to {rows}"
        )
    return tuple(sizes)


# ---- running -------------------------------------------------------------------------------------

_OF_LISTS = (primitives.all_reduce, primitives.broadcast_from)


def communicated(
    op: Op, x: Tensor, group: Group, finish: Callable[[Tensor], None], async_op: bool = False,
    **attributes: object,
) -> Work | None:  # fmt: skip
    """Run a collective op on a tensor, and call `finish` with the result.

    Args:
        op: a collective op of `ops.collective_primitives`.
        x: the operand.
        group: the ranks that take part; with one rank the result is x.
        finish: function that writes the result to the user's tensors.
        async_op: whether to return a handle; its `wait` calls `finish` if the collective has only
            been started here.
        attributes: attributes of the op, without the name of the group.

    Returns:
        The handle, or None without `async_op`.
    """
    if group.size == 1:
        finish(x)
    elif async_op and not in_graph(x):
        operation = primitives.starts(op, group.name, cast("Array", _array(x, group)), attributes)
        return Work(lambda: finish(_tensor(group.finish(operation))))
    elif op in _OF_LISTS:
        finish(op([x], group=group.name, **attributes)[0])
    else:
        finish(op(x, group=group.name, **attributes))
    return Work() if async_op else None


def in_graph(*tensors: Tensor) -> bool:
    """Return whether a call must be a graph op, because it is compiled or recorded for a gradient.

    `tensors` are the operands of the call.
    """
    if thread_state.builder is not None:
        return True
    types: list[TensorType] = [x._type for x in tensors]
    return any(t.level for t in types)


def _array(x: Tensor, group: Group) -> Array | DeviceArray:
    """Return a tensor as the operand of a collective: an array in device memory or on the host.

    It is in device memory if the engine that communicates for the group can read it there,
    otherwise a NumPy array.
    """
    device = x._type.device
    if device is None:
        return host_array(x)
    return operand(group, (device.name, device.index), x._buf, x._type)


def _tensor(found: Array | DeviceArray) -> Tensor:
    """Return the result of a collective as a Tensor."""
    if not isinstance(found, DeviceArray):
        return Tensor(found)
    return Tensor._make(found.type.on(Device(*found.device)), found.handle)


def host_array(x: Tensor) -> Array:
    """Return the values of a tensor in host memory, C-contiguous."""
    return np.asarray(x.asnumpy(), order="C")


def put(output: Tensor, value: Tensor) -> None:
    """Write a value into a tensor of the same shape and dtype."""
    if value is not output:
        output.copy_(value)


def widened(x: Tensor, op: str) -> Tensor:
    """Return the operand of a reduction: for ``"avg"`` of 16 bits or fewer, x in float32.

    The sum of such numbers may be too large for their dtype, although their average is not.
    """
    return x.astype(float32) if op == "avg" and x.itemsize <= 2 else x


def averaged(x: Tensor, op: str, size: int, dtype: DType) -> Tensor:
    """Return a sum x of `size` ranks in `dtype`, divided by `size` if `op` is ``"avg"``."""
    return (x / size if op == "avg" and size > 1 else x).astype(dtype)
