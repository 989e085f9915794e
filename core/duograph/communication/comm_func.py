"""Functions that communicate tensors among ranks (`mindspore.communication.comm_func`).

They are for users and work in eager code and in compiled functions. Most of them return new
tensors, where those of `mint.distributed` write into tensors that the caller passes; arguments are
checked as in that module. A rank in an argument is a rank of the world, not a position in the
group. In a compiled function an asynchronous collective is complete when its call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtype import DType
from ..errors import ArgumentError, ArgumentValueError
from ..mint.distributed import barrier as _barrier
from ..mint.distributed.calls import (
    Work,
    async_flag,
    check_reduction,
    communicated,
    in_graph,
    members,
    part_lengths,
    peer_of,
    tensor_list,
    tensor_of,
    with_axis,
)
from ..mint.distributed.collectives import all_to_all as _all_to_all
from ..mint.distributed.collectives import all_to_all_single as _all_to_all_single
from ..mint.distributed.messages import Message, check_messages, exchanged
from ..op import Op
from ..ops import collective_primitives as primitives
from ..ops import concat, identity, reshape, zeros
from ..ranks.world import Group
from ..tensor import Tensor
from . import HCCL_WORLD_COMM_GROUP as WORLD

__all__ = [
    "P2POp", "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape",
    "all_to_all_v_c", "all_to_all_with_output_shape", "barrier", "batch_isend_irecv", "broadcast",
    "gather_into_tensor", "irecv", "isend", "recv", "reduce", "reduce_scatter_tensor",
    "scatter_tensor", "send",
]  # fmt: skip


def _returned(
    op: Op, x: Tensor, group: Group, shape: Sequence[int], async_op: bool = False,
    **attributes: object,
) -> tuple[Tensor, Work | None]:  # fmt: skip
    """Run a collective op on `x`; return its result, reshaped to `shape`, and a handle.

    If `async_op` is True, the result is valid after `wait` of the handle has returned. If it is
    False, the handle is None. `attributes` are those of the op.
    """
    if group.size > 1 and async_op and not in_graph(x):
        out = zeros(tuple(shape), x.dtype)
        return out, communicated(op, x, group, out.copy_, True, **attributes)
    found: list[Tensor] = []
    handle = communicated(op, x, group, found.append, async_op, **attributes)
    return reshape(identity(found[0]), tuple(shape)), handle


def _plain(owner: str, op: object, x: Tensor) -> str:
    """Return `op`, the name of a reduction, if it is "sum", "prod", "max" or "min".

    `owner` is the name of the user's function, and `x` the tensor to reduce.

    Raises:
        ArgumentError: `op` is something else.
    """
    if op == "avg":
        raise ArgumentError(f"{owner}: got op='avg'; wanted one of sum, prod, max, min")
    check_reduction(owner, op, x)
    return str(op)


def all_reduce(
    tensor: Tensor, op: str = "sum", group: str = WORLD, async_op: bool = False
) -> tuple[Tensor, Work | None]:
    """Combine tensors of all ranks (`mindspore.communication.comm_func.all_reduce`).

    Args:
        tensor: Tensor of any shape, the same on all ranks.
        op: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: name of the group.
        async_op: return a handle immediately; the result is valid after the handle's `wait`.

    Returns:
        (Tensor, handle): the handle is None unless `async_op`.

    Raises:
        TypeError: `tensor` is no Tensor, or `op` is unknown.
        ValueError: no such group, or this rank is no member.
        RuntimeError: the ranks call different collectives, or a rank does not answer.

    Examples:
        >>> import duograph as ms
        >>> from duograph.communication.comm_func import all_reduce
        >>> print(all_reduce(ms.Tensor([1.0, 2.0]))[0])
        [1. 2.]
    """
    found = members("all_reduce", group)
    tensor_of("all_reduce", "tensor", tensor)
    return _returned(
        primitives.all_reduce, tensor, found, tensor.shape, async_flag("all_reduce", async_op),
        reduction=_plain("all_reduce", op, tensor), size=found.size,
    )  # fmt: skip


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "sum", group: str = WORLD, async_op: bool = False
) -> tuple[Tensor, Work | None]:
    """Combine tensors (size * n, ...) of all ranks and return this rank's part (n, ...)
    (`mindspore.communication.comm_func.reduce_scatter_tensor`).

    Arguments, result and errors are those of `all_reduce`; a ValueError is also raised if the
    number of ranks does not divide axis 0.

    Examples:
        >>> import duograph as ms
        >>> from duograph.communication.comm_func import reduce_scatter_tensor
        >>> print(reduce_scatter_tensor(ms.Tensor([1.0, 2.0]))[0])
        [1. 2.]
    """
    owner = "reduce_scatter_tensor"
    found = members(owner, group)
    x = with_axis(owner, "tensor", tensor)
    rows = part_lengths(owner, "equal parts", None, x.shape[0], found, "a tensor")[0]
    return _returned(
        primitives.reduce_scatter, x, found, (rows, *x.shape[1:]), async_flag(owner, async_op),
        reduction=_plain(owner, op, x), size=found.size,
    )  # fmt: skip


def all_gather_into_tensor(
    tensor: Tensor, group: str = WORLD, async_op: bool = False
) -> tuple[Tensor, Work | None]:
    """Concatenate the tensors (n, ...) of all ranks to (size * n, ...)
    (`mindspore.communication.comm_func.all_gather_into_tensor`).

    Arguments, result and errors are those of `all_reduce`, without `op`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.communication.comm_func import all_gather_into_tensor
        >>> print(all_gather_into_tensor(ms.Tensor([1.0, 2.0]))[0])
        [1. 2.]
    """
    owner = "all_gather_into_tensor"
    found = members(owner, group)
    x = with_axis(owner, "tensor", tensor)
    return _returned(
        primitives.all_gather, x, found, (x.shape[0] * found.size, *x.shape[1:]),
        async_flag(owner, async_op), size=found.size,
    )  # fmt: skip


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str = WORLD) -> Tensor:
    """Combine tensors of all ranks at rank `dst` (`mindspore.communication.comm_func.reduce`).

    `dst` is a rank of the world; the other arguments are those of `all_reduce`.

    Returns:
        Tensor: the reduction at rank `dst`; on other ranks a Tensor (1,) without a meaning.

    Raises:
        TypeError: `tensor` is no Tensor, or `op` is unknown.
        ValueError: no such group, or `dst` is no member.
    """
    found = members("reduce", group)
    root = peer_of("reduce", "dst", dst, found)
    tensor_of("reduce", "tensor", tensor)
    reduction = _plain("reduce", op, tensor)
    here = found.rank == root
    return _returned(
        primitives.reduce_to, tensor, found, tensor.shape if here else (1,), root=root, here=here,
        reduction=reduction,
    )[0]  # fmt: skip


def broadcast(tensor: Tensor, src: int = 0, group: str = WORLD) -> Tensor:
    """Return the tensor of rank `src` (`mindspore.communication.comm_func.broadcast`).

    `src` is a rank of the world. All ranks of the group pass a `tensor` of the same shape and
    dtype; its values count only on rank `src`.

    Raises:
        TypeError: `tensor` is no Tensor.
        ValueError: no such group, or `src` is no member.
    """
    found = members("broadcast", group)
    root = peer_of("broadcast", "src", src, found)
    tensor_of("broadcast", "tensor", tensor)
    return _returned(primitives.broadcast_from, tensor, found, tensor.shape, root=root)[0]


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = WORLD) -> Tensor:
    """Concatenate the tensors (n, ...) of all ranks at rank `dst`
    (`mindspore.communication.comm_func.gather_into_tensor`).

    `dst` is a rank of the world.

    Returns:
        Tensor (size * n, ...) at rank `dst`, with `size` the number of ranks; on other ranks a
        Tensor (1,) without a meaning.

    Raises:
        TypeError: `tensor` is no Tensor.
        ValueError: no such group, or `dst` is no member.
    """
    owner = "gather_into_tensor"
    found = members(owner, group)
    root = peer_of(owner, "dst", dst, found)
    x = with_axis(owner, "tensor", tensor)
    n = x.shape[0]
    here = found.rank == root
    out, _ = _returned(
        primitives.all_to_all, x, found, (n * found.size if here else 0, *x.shape[1:]),
        lengths=tuple(n if r == root else 0 for r in range(found.size)),
        received=(n if here else 0,) * found.size,
    )  # fmt: skip
    if here:
        return out
    # depends on the collective, so that its gradient is asked for on every rank
    return concat([reshape(out, (0,)), zeros((1,), x.dtype)])


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = WORLD) -> Tensor:
    """Return this rank's part (n, ...) of the tensor (size * n, ...) of rank `src`
    (`mindspore.communication.comm_func.scatter_tensor`).

    Args:
        tensor: Tensor, of the same shape and dtype on all ranks; its values count only on rank
            `src`.
        src: rank of the world that sends.
        group: name of the group.

    Raises:
        TypeError: `tensor` is no Tensor.
        ValueError: no such group, `src` is no member, or the number of ranks does not divide axis
            0.
    """
    owner = "scatter_tensor"
    found = members(owner, group)
    root = peer_of(owner, "src", src, found)
    x = with_axis(owner, "tensor", tensor)
    n = part_lengths(owner, "equal parts", None, x.shape[0], found, "a tensor")[0]
    here = found.rank == root
    sent = x if here else x[:0]
    return _returned(
        primitives.all_to_all, sent, found, (n, *x.shape[1:]),
        lengths=(n if here else 0,) * found.size,
        received=tuple(n if r == root else 0 for r in range(found.size)),
    )[0]  # fmt: skip


def barrier(group: str = WORLD) -> None:
    """Wait until all ranks of a group have called this function
    (`mindspore.communication.comm_func.barrier`).

    Raises:
        TypeError: `group` is no string.
        ValueError: no such group, or this rank is no member.
    """
    _barrier(group)


# ---- exchanging ----------------------------------------------------------------------------------


def all_to_all_with_output_shape(
    output_shape_list: Sequence[Tensor | Sequence[int]],
    input_tensor_list: Sequence[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> tuple[tuple[Tensor, ...], Work | None]:
    """Exchange tensors among all ranks
    (`mindspore.communication.comm_func.all_to_all_with_output_shape`).

    Args:
        output_shape_list: for each rank the shape of the Tensor that it sends to this rank, or a
            Tensor of that shape.
        input_tensor_list: the Tensor to send to each rank; all have the same dtype.
        group: name of a group; None for all ranks.
        async_op: return a handle immediately; the results are valid after the handle's `wait`.

    Returns:
        (tuple of Tensors, handle): the handle is None unless `async_op`.

    Raises:
        TypeError: not one Tensor per rank, or several dtypes.
    """
    owner = "all_to_all_with_output_shape"
    found = members(owner, group)
    inputs = tensor_list(owner, "input_tensor_list", input_tensor_list, found.size)
    outputs = [_blank(owner, shape, inputs[0].dtype) for shape in output_shape_list]
    return tuple(outputs), _all_to_all(outputs, inputs, group, async_op)


def _blank(owner: str, shape: Tensor | Sequence[int], dtype: DType) -> Tensor:
    """Return a new Tensor of zeros; `shape` is a tuple of ints, or a Tensor whose shape is taken.

    `owner` is the name of the user's function, for an error about `shape`.
    """
    if not isinstance(shape, (Tensor, tuple, list)):
        raise ArgumentError(f"{owner}: got {shape!r} for a shape; wanted ints or a Tensor")
    return zeros(tuple(shape.shape if isinstance(shape, Tensor) else shape), dtype)


def all_to_all_single_with_output_shape(
    output_shape: Tensor | Sequence[int],
    tensor: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> tuple[Tensor, Work | None]:
    """Exchange parts of axis 0 among all ranks
    (`mindspore.communication.comm_func.all_to_all_single_with_output_shape`).

    Args:
        output_shape: shape of the result, or a Tensor of that shape.
        tensor: Tensor of the parts for all ranks; the part for rank 0 comes first.
        output_split_sizes: length of the part from each rank; None: equal lengths.
        input_split_sizes: length of the part for each rank; None: equal lengths.
        group: name of a group; None for all ranks.
        async_op: return a handle immediately; the result is valid after the handle's `wait`.

    Returns:
        (Tensor, handle): the handle is None unless `async_op`.

    Raises:
        ValueError: the lengths do not fit the shapes.
    """
    owner = "all_to_all_single_with_output_shape"
    out = _blank(owner, output_shape, tensor_of(owner, "tensor", tensor).dtype)
    sizes = output_split_sizes, input_split_sizes
    return out, _all_to_all_single(out, tensor, *sizes, group, async_op)


def all_to_all_v_c(
    output: Tensor,
    input: Tensor,
    send_count_matrix: list[int],
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank its part of `input` along axis 0, and write the received parts into `output`.

    A matrix gives the lengths of all parts (`mindspore.communication.comm_func.all_to_all_v_c`).

    Args:
        output: Tensor that is overwritten with the parts from all ranks; the part from rank 0 comes
            first.
        input: Tensor of the parts for all ranks; the part for rank 0 comes first.
        send_count_matrix: size * size ints, where size is the number of ranks in the group; number
            i * size + j is the length of the part that rank i of the group sends to rank j.
        group: name of a group; None for all ranks.
        async_op: return a handle immediately; `output` is valid after the handle's `wait`.

    Raises:
        TypeError: `send_count_matrix` is not a list of size * size ints.
        ValueError: the lengths do not fit the shapes.
    """
    owner = "all_to_all_v_c"
    found = members(owner, group)
    n, counts = found.size, send_count_matrix
    if not isinstance(counts, list) or not all(type(c) is int for c in counts):
        raise ArgumentError(f"{owner}: got send_count_matrix={counts!r}; wanted a list of ints")
    if len(counts) != n * n:
        raise ArgumentError(
            f"{owner}: got a send_count_matrix of {len(counts)} ints; wanted {n * n}, the square "
            f"of the {n} ranks"
        )
    sent = counts[found.rank * n : (found.rank + 1) * n]
    return _all_to_all_single(output, input, counts[found.rank :: n], sent, group, async_op)


# ---- messages ------------------------------------------------------------------------------------


def send(tensor: Tensor, dst: int = 0, group: str = WORLD, tag: int = 0) -> None:
    """Send a tensor to another rank (`mindspore.communication.comm_func.send`).

    Args:
        tensor: the Tensor to send.
        dst: rank of the world that receives.
        group: name of the group.
        tag: number that identifies the message; the receiver passes the same number.

    Raises:
        TypeError: `tensor` is no Tensor, or `dst` is no int.
        ValueError: `dst` is this rank or no member of the group.
    """
    exchanged([Message("send", True, tensor, dst, group, tag)]).wait()


def isend(tensor: Tensor, dst: int = 0, group: str = WORLD, tag: int = 0) -> Work:
    """Start sending a tensor; return a handle with `wait`.

    Arguments and errors are those of `send`.
    """
    return exchanged([Message("isend", True, tensor, dst, group, tag)])


def recv(tensor: Tensor, src: int = 0, group: str = WORLD, tag: int = 0) -> Tensor:
    """Return the tensor that another rank sends (`mindspore.communication.comm_func.recv`).

    Args:
        tensor: Tensor with the shape and dtype of the one that is sent; it is not changed.
        src: rank of the world that sends.
        group, tag: see `send`.

    Raises:
        TypeError: `tensor` is no Tensor, or `src` is no int.
        ValueError: `src` is this rank or no member of the group.
        RuntimeError: the tensor that is sent has another shape or dtype.
    """
    out, handle = irecv(tensor, src, group, tag)
    handle.wait()
    return out


def irecv(tensor: Tensor, src: int = 0, group: str = WORLD, tag: int = 0) -> tuple[Tensor, Work]:
    """Start receiving a tensor; return the tensor and a handle.

    The tensor is valid after the handle's `wait`. Arguments and errors are those of `recv`.
    """
    tensor_of("irecv", "tensor", tensor)
    out = zeros(tensor.shape, tensor.dtype)
    return out, exchanged([Message("irecv", False, out, src, group, tag)])


class P2POp:
    """One message of `batch_isend_irecv` (`mindspore.communication.comm_func.P2POp`).

    Args:
        op: ``"isend"``, ``"irecv"``, or one of these functions.
        tensor: the Tensor to send, or a Tensor with the shape and dtype to receive, or the shape to
            receive.
        peer: rank of the world that receives or sends.
        group: name of a group; None for all ranks.
        tag: must be 0.
        recv_dtype: dtype to receive if `tensor` is a shape.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: `op` is neither of these.
        NotImplementedError: `tag` is not 0.

    Examples:
        >>> import duograph as ms
        >>> ms.communication.comm_func.P2POp("irecv", (2, 3), 1, recv_dtype=ms.float32).peer
        1
    """

    def __init__(
        self,
        op: str | Callable[..., object],
        tensor: Tensor | tuple[int, ...],
        peer: int,
        group: str | None = None,
        tag: int = 0,
        recv_dtype: DType | None = None,
    ) -> None:
        name = op if isinstance(op, str) else getattr(op, "__name__", "")
        if name not in ("isend", "irecv"):
            raise ArgumentValueError(f"P2POp: got op={op!r}; wanted 'isend' or 'irecv'")
        if not isinstance(tensor, (Tensor, tuple)):
            raise ArgumentError(f"P2POp: got {type(tensor).__name__}; wanted a Tensor or a shape")
        if isinstance(tensor, tuple) and (name == "isend" or not isinstance(recv_dtype, DType)):
            raise ArgumentError(
                f"P2POp: got the shape {tensor} and recv_dtype={recv_dtype!r} for {name!r}; wanted "
                "a Tensor to send, or a shape and a dtype to receive"
            )
        if isinstance(peer, bool) or not isinstance(peer, int):
            raise ArgumentError(f"P2POp: got peer={peer!r}; wanted an int")
        if tag != 0:
            raise NotImplementedError(f"P2POp: got tag={tag}; wanted 0")
        self.op, self.tensor, self.peer = op, tensor, peer
        self.group, self.tag, self.recv_dtype = group, tag, recv_dtype

    def message(self) -> Message:
        """Return the message with checked arguments; one to receive has a new Tensor of zeros."""
        sends = (self.op if isinstance(self.op, str) else self.op.__name__) == "isend"
        x = self.tensor
        if isinstance(x, tuple):
            x = zeros(x, self.recv_dtype)
        elif not sends:
            x = zeros(x.shape, x.dtype)
        return Message("batch_isend_irecv", sends, x, self.peer, self.group, self.tag)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> tuple[Tensor, ...]:
    """Send and receive several messages together
    (`mindspore.communication.comm_func.batch_isend_irecv`).

    Args:
        p2p_op_list: messages of one group, in any order.

    Returns:
        Tuple with one Tensor per message: the Tensor received, or a meaningless 0-d Tensor for one
        that was sent.

    Raises:
        TypeError: not a list of `P2POp`, or messages of several groups.
        ValueError: the peer of a message is this rank or no member of the group.
    """
    owner = "batch_isend_irecv"
    check_messages(owner, p2p_op_list, P2POp)
    messages = [each.message() for each in p2p_op_list]
    if any(m.group is not messages[0].group for m in messages):
        raise ArgumentError(f"{owner}: got messages of several groups; wanted one")
    exchanged(messages).wait()
    return tuple(zeros((), m.tensor.dtype) if m.sends else m.tensor for m in messages)
