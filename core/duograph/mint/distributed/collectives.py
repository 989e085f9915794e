"""Collective communication of tensors in `duograph.mint.distributed`, for one process.

`mint/distributed/__init__.py` exports these functions. With one process a reduction leaves its
tensor unchanged and a gather copies it; sending to another process is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...option_checks import check_options
from ...tensor import Tensor
from .process_groups import only_rank, refuse_several, single

__all__ = [
    "P2POp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven",
    "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "gather", "irecv", "isend", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven", "scatter", "send",
]  # fmt: skip

_REDUCTIONS = ("sum", "prod", "max", "min", "avg")


class Work:
    """The handle of an asynchronous collective; with one process the work is done already."""

    def wait(self) -> None:
        """Return at once: the work is done."""


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _tensor(owner: str, name: str, value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{owner}: got {type(value).__name__} for {name}; wanted a Tensor")
    return value


def _only(owner: str, name: str, values: object) -> Tensor:
    """Return the Tensor of a list that has one Tensor per process, and so exactly one here."""
    if not isinstance(values, (tuple, list)) or len(values) != 1:
        found = len(values) if isinstance(values, (tuple, list)) else type(values).__name__
        raise ArgumentError(f"{owner}: got {found} for {name}; wanted a list of 1 Tensor")
    return _tensor(owner, f"{name}[0]", values[0])


def _reduction(owner: str, op: object) -> None:
    if op not in _REDUCTIONS:
        raise ArgumentError(f"{owner}: got op={op!r}; wanted one of {', '.join(_REDUCTIONS)}")


def _copied(owner: str, output: Tensor, input: Tensor) -> None:
    """Write `input` into `output` after checking that both have the same shape and dtype."""
    if output.shape != input.shape or output.dtype is not input.dtype:
        raise ShapeError(
            f"{owner}: got an output of {output.dtype.name} {output.shape} for an input of "
            f"{input.dtype.name} {input.shape}; wanted the same with one process"
        )
    output.copy_(input)


def _split(owner: str, name: str, sizes: Sequence[int] | None, x: Tensor) -> None:
    """Raise an error unless `sizes` is None or [size of axis 0 of x], as one process needs."""
    if sizes is not None and list(sizes) != [x.shape[0]]:
        raise ArgumentValueError(
            f"{owner}: got {name}={list(sizes)}; wanted [{x.shape[0]}] with one process"
        )


def all_reduce(
    tensor: Tensor, op: str = "sum", group: str | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all processes, in place; with one process nothing changes
    (`mindspore.mint.distributed.all_reduce`).

    Args:
        tensor: Tensor.
        op: ``"sum"``, ``"prod"``, ``"max"``, ``"min"`` or ``"avg"``.
        group: name of a group; None for all processes.
        async_op: whether to return a handle with a method `wait`.

    Raises:
        TypeError: not a Tensor, or an unknown `op`.
        ValueError: no such group.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([1.0, 2.0])
        >>> mint.distributed.all_reduce(x)
        >>> print(x)
        [1. 2.]
    """
    single("all_reduce", group)
    _tensor("all_reduce", "tensor", tensor)
    _reduction("all_reduce", op)
    return _done(async_op)


def reduce(
    tensor: Tensor, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all processes at rank `dst`, in place; with one process nothing
    changes (`mindspore.mint.distributed.reduce`). The arguments are those of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([1.0, 2.0])
        >>> mint.distributed.reduce(x, 0)
        >>> print(x)
        [1. 2.]
    """
    only_rank("reduce", "dst", dst)
    single("reduce", group)
    _tensor("reduce", "tensor", tensor)
    _reduction("reduce", op)
    return _done(async_op)


def broadcast(
    tensor: Tensor, src: int, group: str | None = None, async_op: bool = False
) -> Work | None:
    """Copy the tensor of rank `src` to all processes, in place; with one process nothing changes
    (`mindspore.mint.distributed.broadcast`).

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.distributed.broadcast(Tensor([1.0]), 0)
    """
    only_rank("broadcast", "src", src)
    single("broadcast", group)
    _tensor("broadcast", "tensor", tensor)
    return _done(async_op)


def barrier(
    group: str | None = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Wait for all processes of a group: there is none to wait for
    (`mindspore.mint.distributed.barrier`).

    Args:
        group: name of a group; None for all processes.
        async_op: whether to return a handle with a method `wait`.
        device_ids: has no meaning with one process.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.barrier()
    """
    check_options("mint.distributed.barrier", device_ids=device_ids)
    single("barrier", group)
    return _done(async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all processes into a list of tensors
    (`mindspore.mint.distributed.all_gather`).

    Args:
        tensor_list: list of 1 Tensor, which takes the value of `tensor`.
        tensor: Tensor.
        group: name of a group; None for all processes.
        async_op: whether to return a handle with a method `wait`.

    Raises:
        TypeError: another number of Tensors.
        ValueError: another shape or dtype.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = [mint.zeros(2)]
        >>> mint.distributed.all_gather(out, Tensor([1.0, 2.0]))
        >>> print(out[0])
        [1. 2.]
    """
    single("all_gather", group)
    _copied(
        "all_gather", _only("all_gather", "tensor_list", tensor_list),
        _tensor("all_gather", "tensor", tensor),
    )  # fmt: skip
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Work | None:
    """Concatenate the tensors of all processes along axis 0 into a tensor
    (`mindspore.mint.distributed.all_gather_into_tensor`).

    Args:
        output_tensor: Tensor that takes the value, of the shape of `input_tensor`.
        input_tensor: Tensor.
        group: name of a group; None for all processes.
        async_op: whether to return a handle with a method `wait`.

    Raises:
        ValueError: another shape or dtype.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.all_gather_into_tensor(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    return _whole("all_gather_into_tensor", output_tensor, input_tensor, group, async_op)


def _whole(
    owner: str, output: Tensor, input: Tensor, group: str | None, async_op: bool
) -> Work | None:
    """Copy `input` into `output`, which is what a collective of one process does.

    Returns a finished Work if `async_op` is set, else None.
    """
    single(owner, group)
    _copied(owner, _tensor(owner, "output", output), _tensor(owner, "input", input))
    return _done(async_op)


def all_gather_into_tensor_uneven(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Concatenate tensors of different lengths along axis 0
    (`mindspore.mint.distributed.all_gather_into_tensor_uneven`).

    Args:
        output: Tensor that takes the value, of the shape of `input`.
        input: Tensor.
        output_split_sizes: the lengths of the processes: one, that of `input`.
        group: name of a group; None for all processes.
        async_op: whether to return a handle with a method `wait`.

    Raises:
        ValueError: another shape, dtype or split.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.all_gather_into_tensor_uneven(out, Tensor([1.0, 2.0]), [2])
        >>> print(out)
        [1. 2.]
    """
    _split("all_gather_into_tensor_uneven", "output_split_sizes", output_split_sizes, input)
    return _whole("all_gather_into_tensor_uneven", output, input, group, async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors and keep the one of this process
    (`mindspore.mint.distributed.reduce_scatter`).

    Args:
        output: Tensor that takes the value.
        input_list: list of 1 Tensor of the same shape and dtype.
        op, group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.reduce_scatter(out, [Tensor([1.0, 2.0])])
        >>> print(out)
        [1. 2.]
    """
    _reduction("reduce_scatter", op)
    only = _only("reduce_scatter", "input_list", input_list)
    return _whole("reduce_scatter", output, only, group, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine tensors and keep this process's part of axis 0
    (`mindspore.mint.distributed.reduce_scatter_tensor`).

    Args:
        output: Tensor that takes the value.
        input: Tensor of the same shape and dtype.
        op, group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.reduce_scatter_tensor(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    _reduction("reduce_scatter_tensor", op)
    return _whole("reduce_scatter_tensor", output, input, group, async_op)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: Sequence[int] | None = None,
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine tensors and keep this process's part of axis 0, which may be longer than others
    (`mindspore.mint.distributed.reduce_scatter_tensor_uneven`).

    Args:
        output: Tensor that takes the value.
        input: Tensor of the same shape and dtype.
        input_split_sizes: the lengths of the processes: one, that of `input`.
        op, group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.reduce_scatter_tensor_uneven(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    _reduction("reduce_scatter_tensor_uneven", op)
    _split("reduce_scatter_tensor_uneven", "input_split_sizes", input_split_sizes, input)
    return _whole("reduce_scatter_tensor_uneven", output, input, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Exchange tensors among all processes (`mindspore.mint.distributed.all_to_all`).

    Args:
        output_tensor_list: list of 1 Tensor, which takes the value.
        input_tensor_list: list of 1 Tensor of the same shape and dtype.
        group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = [mint.zeros(2)]
        >>> mint.distributed.all_to_all(out, [Tensor([1.0, 2.0])])
        >>> print(out[0])
        [1. 2.]
    """
    output = _only("all_to_all", "output_tensor_list", output_tensor_list)
    only = _only("all_to_all", "input_tensor_list", input_tensor_list)
    return _whole("all_to_all", output, only, group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Exchange parts of axis 0 among all processes
    (`mindspore.mint.distributed.all_to_all_single`).

    Args:
        output: Tensor that takes the value.
        input: Tensor of the same shape and dtype.
        output_split_sizes, input_split_sizes: the lengths of the parts: one, that of `input`.
        group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.all_to_all_single(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    _split("all_to_all_single", "output_split_sizes", output_split_sizes, output)
    _split("all_to_all_single", "input_split_sizes", input_split_sizes, input)
    return _whole("all_to_all_single", output, input, group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor],
    dst: int = 0,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copy the tensors of all processes into a list at rank `dst`
    (`mindspore.mint.distributed.gather`).

    Args:
        tensor: Tensor.
        gather_list: list of 1 Tensor, which takes the value of `tensor`.
        dst: 0, the only rank.
        group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = [mint.zeros(2)]
        >>> mint.distributed.gather(Tensor([1.0, 2.0]), out)
        >>> print(out[0])
        [1. 2.]
    """
    only_rank("gather", "dst", dst)
    return _whole("gather", _only("gather", "gather_list", gather_list), tensor, group, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor],
    src: int = 0,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Take this process's tensor from the list of rank `src`
    (`mindspore.mint.distributed.scatter`).

    Args:
        tensor: Tensor that takes the value.
        scatter_list: list of 1 Tensor of the same shape and dtype.
        src: 0, the only rank.
        group, async_op: as of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.scatter(out, [Tensor([1.0, 2.0])])
        >>> print(out)
        [1. 2.]
    """
    only_rank("scatter", "src", src)
    only = _only("scatter", "scatter_list", scatter_list)
    return _whole("scatter", tensor, only, group, async_op)


def _elsewhere(owner: str, tensor: object, peer: object, group: str | None, tag: int) -> Exception:
    """Check the arguments of a transfer between two processes; return the error to raise.

    There is always one, since there is only one process.
    """
    _tensor(owner, "tensor", tensor)
    single(owner, group)
    if tag != 0:
        return ArgumentValueError(f"{owner}: got tag={tag}; wanted 0")
    if peer == 0:
        return ArgumentValueError(f"{owner}: got rank 0, this process; wanted another one")
    return refuse_several(owner, f"rank {peer}")


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Send a tensor to another process: refused, there is only one
    (`mindspore.mint.distributed.send`).

    Raises:
        ValueError: `dst` is this process.
        NotImplementedError: `dst` is another one.
    """
    raise _elsewhere("send", tensor, dst, group, tag)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive a tensor from another process: refused, there is only one
    (`mindspore.mint.distributed.recv`).

    Raises:
        ValueError: `src` is this process.
        NotImplementedError: `src` is another one.
    """
    raise _elsewhere("recv", tensor, src, group, tag)


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> Work:
    """Send a tensor without waiting: refused, there is only one process
    (`mindspore.mint.distributed.isend`).

    Raises:
        ValueError: `dst` is this process.
        NotImplementedError: `dst` is another one.
    """
    raise _elsewhere("isend", tensor, dst, group, tag)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> Work:
    """Receive a tensor without waiting: refused, there is only one process
    (`mindspore.mint.distributed.irecv`).

    Raises:
        ValueError: `src` is this process.
        NotImplementedError: `src` is another one.
    """
    raise _elsewhere("irecv", tensor, src, group, tag)


class P2POp:
    """One transfer of `batch_isend_irecv` (`mindspore.mint.distributed.P2POp`).

    Args:
        op: ``"isend"``, ``"irecv"``, or one of these functions.
        tensor: Tensor to send, or to receive into.
        peer: rank of the other process.
        group: name of a group; None for all processes.
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
        op: str | Callable[..., Any],
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
        self.tensor = _tensor("P2POp", "tensor", tensor)
        self.peer = peer
        self.group = single("P2POp", group)
        self.tag = tag


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Run several transfers between processes: refused, there is only one process
    (`mindspore.mint.distributed.batch_isend_irecv`).

    Raises:
        TypeError: not a list of `P2POp`.
        ValueError: a transfer with this process.
        NotImplementedError: a transfer with another one.
    """
    if not isinstance(p2p_op_list, list) or not p2p_op_list:
        raise ArgumentError(f"batch_isend_irecv: got {p2p_op_list!r}; wanted a list of P2POp")
    first = p2p_op_list[0]
    if not isinstance(first, P2POp):
        raise ArgumentError(
            f"batch_isend_irecv: got {type(first).__name__}; wanted a list of P2POp"
        )
    raise _elsewhere("batch_isend_irecv", first.tensor, first.peer, first.group, first.tag)
