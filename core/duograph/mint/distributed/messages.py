"""Messages between two ranks in `duograph.mint.distributed`, in eager and compiled code.

`mint/distributed/__init__.py` exports these functions. A rank in an argument is its number among
all ranks (the world). Messages of one sender, receiver, group and tag arrive in the order in which
they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import ArgumentError, ArgumentValueError
from ...ops import collective_primitives as primitives
from ...ranks.operations import Operation
from ...ranks.world import Group
from ...tensor import Tensor
from .calls import Work, host_array, in_graph, members, peer_of, put, tensor_of

__all__ = [
    "Message", "P2POp", "batch_isend_irecv", "check_messages", "exchanged", "irecv", "isend",
    "recv", "send",
]  # fmt: skip


class Message:
    """A message that this rank sends or receives, with checked arguments.

    Attributes:
        sends: whether this rank sends the message, rather than receives it.
        tensor: the Tensor to send, or to receive into.
        peer: position of the other rank in the group.
        group: the group of both ranks.
        tag: number that distinguishes messages between the same ranks.
    """

    def __init__(
        self, owner: str, sends: bool, tensor: object, peer: object, group: str | None, tag: object
    ) -> None:
        self.sends, self.tensor = sends, tensor_of(owner, "tensor", tensor)
        self.group: Group = members(owner, group)
        name = "dst" if sends else "src"
        self.peer = peer_of(owner, name, peer, self.group, other=True)
        if isinstance(tag, bool) or not isinstance(tag, int):
            raise ArgumentError(f"{owner}: got tag={tag!r}; wanted an int")
        if not 0 <= tag < 32000:
            raise ArgumentValueError(f"{owner}: got tag={tag}; wanted 0 to 31999")
        self.tag = tag

    def start(self) -> Operation:
        """Start to send or receive the message without waiting; return the running operation."""
        start = self.group.start_send if self.sends else self.group.start_receive
        return start(host_array(self.tensor), self.peer, self.tag)


def exchanged(messages: Sequence[Message]) -> Work:
    """Start messages, all of the same group; return the handle that waits for them.

    Its `wait` writes what was received into the tensors of the messages.
    """
    if in_graph(*[m.tensor for m in messages]):
        return _in_graph(messages)
    started = [m.start() for m in messages]

    def finish() -> None:
        for message, operation in zip(messages, started, strict=True):
            value = message.group.finish(operation)
            if not message.sends:
                put(message.tensor, Tensor(value))

    return Work(finish)


def _in_graph(messages: Sequence[Message]) -> Work:
    """Exchange messages as `exchanged` does, but by ops of a graph; return the handle.

    A first op starts to send copies of tensors; a second op, at the `wait` of the handle, receives.
    So a program that starts to receive before it sends does not block.
    """
    for m in messages:
        if m.sends:
            primitives.start_send(m.tensor, to=m.peer, tag=m.tag, group=m.group.name)
    awaited = [m for m in messages if not m.sends]

    def finish() -> None:
        received = primitives.receive_all(
            [m.tensor for m in awaited], sources=tuple(m.peer for m in awaited),
            tags=tuple(m.tag for m in awaited), group=awaited[0].group.name,
        )  # fmt: skip
        for message, value in zip(awaited, received, strict=True):
            put(message.tensor, value)

    return Work(finish if awaited else None)


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send a tensor to another rank, and wait until it may be written again
    (`mindspore.mint.distributed.send`).

    Args:
        tensor: Tensor.
        dst: rank of the world that receives.
        group: name of a group; None for all ranks.
        tag: number of the message; the receiver must give the same one.

    Raises:
        TypeError: not a Tensor, or `dst` is no int.
        ValueError: `dst` is this rank or no member of the group.
        RuntimeError: the other rank does not answer.
    """
    exchanged([Message("send", True, tensor, dst, group, tag)]).wait()


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive a tensor from another rank, in place (`mindspore.mint.distributed.recv`).

    Args:
        tensor: Tensor that receives the value; the sender's has the same shape and dtype.
        src: rank of the world that sends.
        group, tag: as for `send`.

    Returns:
        0.

    Raises:
        TypeError: not a Tensor, or `src` is no int.
        ValueError: `src` is this rank or no member of the group.
        RuntimeError: a tensor of another shape or dtype is sent, or the rank does not answer.
    """
    exchanged([Message("recv", False, tensor, src, group, tag)]).wait()
    return 0


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> Work:
    """Start sending a tensor; the arguments and errors are those of `send`
    (`mindspore.mint.distributed.isend`).

    Returns:
        A handle; the tensor may be written after its `wait`.
    """
    return exchanged([Message("isend", True, tensor, dst, group, tag)])


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> Work:
    """Start receiving a tensor; the arguments and errors are those of `recv`
    (`mindspore.mint.distributed.irecv`).

    Returns:
        A handle; the tensor has the value after its `wait`.
    """
    return exchanged([Message("irecv", False, tensor, src, group, tag)])


class P2POp:
    """One message of `batch_isend_irecv` (`mindspore.mint.distributed.P2POp`).

    Args:
        op: ``"isend"``, ``"irecv"``, or one of these functions.
        tensor: Tensor to send, or to receive into.
        peer: rank of the world that receives or sends.
        group: name of a group; None for all ranks.
        tag: only 0.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: another tag.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.distributed.P2POp("isend", Tensor([1.0]), 1).op
        'isend'
    """

    def __init__(
        self,
        op: str | Callable[..., object],
        tensor: Tensor,
        peer: int,
        group: str | None = None,
        tag: int = 0,
    ) -> None:
        name = op if isinstance(op, str) else getattr(op, "__name__", "")
        if name not in ("isend", "irecv"):
            raise ArgumentError(f"P2POp: got op={op!r}; wanted 'isend' or 'irecv'")
        if isinstance(peer, bool) or not isinstance(peer, int):
            raise ArgumentError(f"P2POp: got peer={peer!r}; wanted an int")
        if tag != 0:
            raise ArgumentValueError(f"P2POp: got tag={tag}; wanted 0")
        self.op = name
        self.tensor = tensor_of("P2POp", "tensor", tensor)
        self.peer = peer
        self.group = members("P2POp", group).name
        self.tag = tag


def check_messages(owner: str, messages: object, kind: type) -> None:
    """Raise ArgumentError unless `messages` is a non-empty list of objects of the class `kind`.

    `kind` is a class named P2POp.
    """
    if not isinstance(messages, list) or not messages:
        raise ArgumentError(f"{owner}: got {messages!r}; wanted a list of P2POp")
    for each in messages:
        if not isinstance(each, kind):
            raise ArgumentError(f"{owner}: got {type(each).__name__}; wanted a list of P2POp")


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages together (`mindspore.mint.distributed.batch_isend_irecv`).

    Args:
        p2p_op_list: messages of one group, in any order.

    Returns:
        List of one handle for all of them.

    Raises:
        TypeError: not a list of `P2POp`, or messages of several groups.
        ValueError: a message to this rank, or to one that is no member.
    """
    owner = "batch_isend_irecv"
    check_messages(owner, p2p_op_list, P2POp)
    for each in p2p_op_list:
        if each.group != p2p_op_list[0].group:
            raise ArgumentError(
                f"{owner}: got the groups {p2p_op_list[0].group!r} and {each.group!r}; wanted one"
            )
    return [exchanged([
        Message(owner, each.op == "isend", each.tensor, each.peer, each.group, 0)
        for each in p2p_op_list
    ])]  # fmt: skip
