"""Functions that communicate tensors (`mindspore.communication.comm_func`), for one process.

Users call them. They check their arguments with the functions of `mint.distributed`, and return new
tensors where those write into tensors that they are given.
"""

from __future__ import annotations

from ..mint.distributed import P2POp, barrier, batch_isend_irecv, irecv, isend, recv, send
from ..mint.distributed import all_reduce as _all_reduce
from ..mint.distributed import broadcast as _broadcast
from ..mint.distributed import reduce as _reduce
from ..mint.distributed.collectives import Work
from ..ops import identity
from ..tensor import Tensor
from . import HCCL_WORLD_COMM_GROUP as WORLD

__all__ = [
    "P2POp", "all_gather_into_tensor", "all_reduce", "barrier", "batch_isend_irecv", "broadcast",
    "gather_into_tensor", "irecv", "isend", "recv", "reduce", "reduce_scatter_tensor",
    "scatter_tensor", "send",
]  # fmt: skip


def all_reduce(
    tensor: Tensor, op: str = "sum", group: str = WORLD, async_op: bool = False
) -> tuple[Tensor, Work | None]:
    """Combine tensors of all processes (`mindspore.communication.comm_func.all_reduce`).

    Args:
        tensor: Tensor of any shape.
        op: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: the group of processes.
        async_op: return a handle to wait for.

    Returns:
        (Tensor, handle): with one process the values of `tensor`; the handle is None unless
        `async_op`.

    Raises:
        TypeError: no Tensor, or an unknown `op`.
        ValueError: no such group.

    Examples:
        >>> import duograph as ms
        >>> from duograph.communication.comm_func import all_reduce
        >>> print(all_reduce(ms.Tensor([1.0, 2.0]))[0])
        [1. 2.]
    """
    handle = _all_reduce(tensor, op, group, async_op)
    return identity(tensor), handle


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "sum", group: str = WORLD, async_op: bool = False
) -> tuple[Tensor, Work | None]:
    """Combine tensors and give each process a slice, with one process all of it.

    Arguments, result and errors as `all_reduce`
    (`mindspore.communication.comm_func.reduce_scatter_tensor`).
    """
    return all_reduce(tensor, op, group, async_op)


def all_gather_into_tensor(
    tensor: Tensor, group: str = WORLD, async_op: bool = False
) -> tuple[Tensor, Work | None]:
    """Concatenate the tensors of all processes along axis 0, with one process that of this one.

    Arguments, result and errors as `all_reduce`
    (`mindspore.communication.comm_func.all_gather_into_tensor`).
    """
    return all_reduce(tensor, "sum", group, async_op)


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str = WORLD) -> Tensor:
    """Combine tensors of all processes in process `dst` (`mindspore.communication.comm_func`).

    Returns:
        The combined Tensor; with one process the values of `tensor`.

    Raises:
        TypeError: no Tensor, or an unknown `op`.
        ValueError: no such group, or another `dst` than 0.
    """
    _reduce(tensor, dst, op, group)
    return identity(tensor)


def broadcast(tensor: Tensor, src: int = 0, group: str = WORLD) -> Tensor:
    """Return the tensor of process `src` (`mindspore.communication.comm_func.broadcast`).

    Raises:
        TypeError: no Tensor.
        ValueError: no such group, or another `src` than 0.
    """
    _broadcast(tensor, src, group)
    return identity(tensor)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = WORLD) -> Tensor:
    """Concatenate the tensors of all processes in process `dst`. Raises as `broadcast`."""
    return broadcast(tensor, dst, group)


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = WORLD) -> Tensor:
    """Return this process's slice of the tensor of process `src`. Raises as `broadcast`."""
    return broadcast(tensor, src, group)
