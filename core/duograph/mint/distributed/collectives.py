"""Collectives of `duograph.mint.distributed` that move tensors: broadcasts, gathers, exchanges.

`mint/distributed/__init__.py` exports these functions. All ranks of a group must call the same
functions in the same order. Results are written into tensors of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError, ArgumentValueError
from ...ops import collective_primitives as primitives
from ...ops import reshape, zeros
from ...option_checks import check_options
from ...tensor import Tensor
from .calls import (
    Work,
    async_flag,
    communicated,
    fits,
    in_graph,
    joined,
    members,
    part_lengths,
    peer_of,
    put,
    put_parts,
    tensor_list,
    tensor_of,
    with_axis,
)

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "gather", "scatter",
]  # fmt: skip


def broadcast(
    tensor: Tensor, src: int, group: str | None = None, async_op: bool = False
) -> Work | None:
    """Copy the tensor of rank `src` of the world to all ranks, in place
    (`mindspore.mint.distributed.broadcast`).

    The other arguments, result and errors are those of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.distributed.broadcast(Tensor([1.0]), 0)
    """
    found = members("broadcast", group)
    root = peer_of("broadcast", "src", src, found)
    tensor_of("broadcast", "tensor", tensor)
    return communicated(
        primitives.broadcast_from, tensor, found, lambda out: put(tensor, out),
        async_flag("broadcast", async_op), root=root,
    )  # fmt: skip


def barrier(
    group: str | None = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Wait until all ranks of a group have called this (`mindspore.mint.distributed.barrier`).

    Args:
        group: name of a group; None for all ranks.
        async_op: whether to return a handle immediately; its `wait` waits for the ranks.
        device_ids: has no meaning here.

    Raises:
        ValueError: no such group, or this rank is no member.
        RuntimeError: ranks call different collectives, or one does not answer.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.barrier()
    """
    check_options("mint.distributed.barrier", device_ids=device_ids)
    found = members("barrier", group)
    if async_flag("barrier", async_op) and found.size > 1 and not in_graph():
        operation = found.start_barrier()
        return Work(lambda: found.finish(operation))
    if found.size > 1:
        primitives.barrier(group=found.name)
    return Work() if async_op else None


# ---- gathering -----------------------------------------------------------------------------------


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all ranks into a list of tensors
    (`mindspore.mint.distributed.all_gather`).

    Args:
        tensor_list: one Tensor per rank, which receives that rank's tensor. The shapes in the list
            may differ, but every rank must pass the same ones.
        tensor: Tensor that this rank contributes.
        group: name of a group; None for all ranks.
        async_op: whether to return a handle immediately; the results are valid after its `wait`.

    Raises:
        TypeError: another number of Tensors, another shape or dtype.
        ValueError: no such group, or this rank is no member.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = [mint.zeros(2)]
        >>> mint.distributed.all_gather(out, Tensor([1.0, 2.0]))
        >>> print(out[0])
        [1. 2.]
    """
    owner = "all_gather"
    found = members(owner, group)
    outputs = _list(owner, "tensor_list", tensor_list, found.size)
    tensor_of(owner, "tensor", tensor)
    fits(owner, "tensor", tensor, outputs[found.rank].shape, outputs[0], ArgumentError)
    lengths = tuple(out.size for out in outputs)
    return communicated(
        primitives.all_gather_rows, reshape(tensor, (tensor.size,)), found,
        lambda flat: put_parts(outputs, flat), async_flag(owner, async_op), lengths=lengths,
    )  # fmt: skip


_list = tensor_list  # `all_gather` has a parameter of this name


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Work | None:
    """Concatenate the tensors of all ranks along axis 0 into a tensor
    (`mindspore.mint.distributed.all_gather_into_tensor`).

    Args:
        output_tensor: Tensor (size * n, ...) that receives the result.
        input_tensor: Tensor (n, ...), of the same shape on all ranks.
        group: name of a group; None for all ranks.
        async_op: whether to return a handle immediately; the result is valid after its `wait`.

    Raises:
        ValueError: another shape or dtype; no such group, or this rank is no member.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.all_gather_into_tensor(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    owner = "all_gather_into_tensor"
    found = members(owner, group)
    x = with_axis(owner, "input_tensor", input_tensor)
    out = tensor_of(owner, "output_tensor", output_tensor)
    fits(owner, "output_tensor", out, (x.shape[0] * found.size, *x.shape[1:]), x)
    return communicated(
        primitives.all_gather, x, found, lambda whole: put(out, whole),
        async_flag(owner, async_op), size=found.size,
    )  # fmt: skip


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
        output: Tensor that receives the result.
        input: Tensor (output_split_sizes[rank], ...).
        output_split_sizes: lengths of the tensors of all ranks; None for equal lengths.
        group: name of a group; None for all ranks.
        async_op: whether to return a handle immediately; the result is valid after its `wait`.

    Raises:
        ValueError: another shape, dtype or split; no such group, or this rank is no member.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.all_gather_into_tensor_uneven(out, Tensor([1.0, 2.0]), [2])
        >>> print(out)
        [1. 2.]
    """
    owner = "all_gather_into_tensor_uneven"
    found = members(owner, group)
    x, out = with_axis(owner, "input", input), with_axis(owner, "output", output)
    lengths = part_lengths(owner, "output_split_sizes", output_split_sizes, out.shape[0], found,
                       "an output")  # fmt: skip
    fits(owner, "input", x, (lengths[found.rank], *out.shape[1:]), out)
    return communicated(
        primitives.all_gather_rows, x, found, lambda whole: put(out, whole),
        async_flag(owner, async_op), lengths=lengths,
    )  # fmt: skip


def gather(
    tensor: Tensor,
    gather_list: list[Tensor],
    dst: int = 0,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copy the tensors of all ranks into a list at rank `dst` of the world
    (`mindspore.mint.distributed.gather`).

    Args:
        tensor: Tensor, of the same shape on all ranks.
        gather_list: at rank `dst` one Tensor per rank, which receives that rank's tensor; not used
            on other ranks.
        dst: rank of the world that receives.
        group, async_op: as for `all_reduce`.

    Raises:
        TypeError: another number of Tensors, another shape or dtype.
        ValueError: `dst` is no member.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = [mint.zeros(2)]
        >>> mint.distributed.gather(Tensor([1.0, 2.0]), out)
        >>> print(out[0])
        [1. 2.]
    """
    owner = "gather"
    found = members(owner, group)
    root = peer_of(owner, "dst", dst, found)
    tensor_of(owner, "tensor", tensor)
    outputs: list[Tensor] = []
    if found.rank == root:
        outputs = tensor_list(owner, "gather_list", gather_list, found.size)
        for i, out in enumerate(outputs):
            fits(owner, f"gather_list[{i}]", out, tensor.shape, tensor, ArgumentError)
    n = tensor.size
    lengths = tuple(n if r == root else 0 for r in range(found.size))
    return communicated(
        primitives.all_to_all, reshape(tensor, (n,)), found,
        lambda flat: put_parts(outputs, flat) if outputs else None, async_flag(owner, async_op),
        lengths=lengths, received=(n if found.rank == root else 0,) * found.size,
    )  # fmt: skip


# ---- scattering ----------------------------------------------------------------------------------


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor],
    src: int = 0,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Take this rank's tensor from the list of rank `src` of the world
    (`mindspore.mint.distributed.scatter`).

    Args:
        tensor: Tensor that receives the result.
        scatter_list: at rank `src` one Tensor per rank, of the shape and dtype of `tensor`; not
            used on other ranks.
        src: rank of the world that sends.
        group, async_op: as for `all_reduce`.

    Raises:
        TypeError: another number of Tensors, another shape or dtype.
        ValueError: `src` is no member.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.scatter(out, [Tensor([1.0, 2.0])])
        >>> print(out)
        [1. 2.]
    """
    owner = "scatter"
    found = members(owner, group)
    root = peer_of(owner, "src", src, found)
    tensor_of(owner, "tensor", tensor)
    n = tensor.size
    if found.rank == root:
        inputs = tensor_list(owner, "scatter_list", scatter_list, found.size)
        for i, x in enumerate(inputs):
            fits(owner, f"scatter_list[{i}]", x, tensor.shape, tensor, ArgumentError)
        flat = joined(inputs)
    else:
        flat = zeros((0,), tensor.dtype)
    return communicated(
        primitives.all_to_all, flat, found, lambda part: put(tensor, reshape(part, tensor.shape)),
        async_flag(owner, async_op), lengths=(n if found.rank == root else 0,) * found.size,
        received=tuple(n if r == root else 0 for r in range(found.size)),
    )  # fmt: skip


# ---- exchanging ----------------------------------------------------------------------------------


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Exchange tensors among all ranks (`mindspore.mint.distributed.all_to_all`).

    Args:
        output_tensor_list: one Tensor per rank, which receives what that rank sends.
        input_tensor_list: one Tensor to send to each rank, of any shape.
        group, async_op: as for `all_reduce`.

    Raises:
        TypeError: another number of Tensors, or several dtypes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = [mint.zeros(2)]
        >>> mint.distributed.all_to_all(out, [Tensor([1.0, 2.0])])
        >>> print(out[0])
        [1. 2.]
    """
    owner = "all_to_all"
    found = members(owner, group)
    outputs = tensor_list(owner, "output_tensor_list", output_tensor_list, found.size)
    inputs = tensor_list(owner, "input_tensor_list", input_tensor_list, found.size)
    fits(owner, "output_tensor_list[0]", outputs[0], outputs[0].shape, inputs[0], ArgumentError)
    own = found.rank
    fits(owner, f"output_tensor_list[{own}]", outputs[own], inputs[own].shape, inputs[0],
         ArgumentError)  # fmt: skip
    return communicated(
        primitives.all_to_all, joined(inputs), found, lambda flat: put_parts(outputs, flat),
        async_flag(owner, async_op), lengths=tuple(x.size for x in inputs),
        received=tuple(x.size for x in outputs),
    )  # fmt: skip


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Exchange parts of axis 0 among all ranks
    (`mindspore.mint.distributed.all_to_all_single`).

    Args:
        output: Tensor that receives the parts from all ranks, that from rank 0 first.
        input: Tensor of the parts for all ranks, that for rank 0 first.
        output_split_sizes: lengths of the parts from each rank; None for equal lengths.
        input_split_sizes: lengths of the parts for each rank; None for equal lengths.
        group, async_op: as for `all_reduce`.

    Raises:
        ValueError: another shape, dtype or split.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.all_to_all_single(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    owner = "all_to_all_single"
    found = members(owner, group)
    x, out = with_axis(owner, "input", input), with_axis(owner, "output", output)
    lengths = part_lengths(owner, "input_split_sizes", input_split_sizes, x.shape[0], found,
                       "an input")  # fmt: skip
    received = part_lengths(owner, "output_split_sizes", output_split_sizes, out.shape[0], found,
                        "an output")  # fmt: skip
    fits(owner, "output", out, (out.shape[0], *x.shape[1:]), x)
    if lengths[found.rank] != received[found.rank]:
        raise ArgumentValueError(
            f"{owner}: got {lengths[found.rank]} rows for this rank in input_split_sizes and "
            f"{received[found.rank]} from it in output_split_sizes; wanted the same"
        )
    return communicated(
        primitives.all_to_all, x, found, lambda whole: put(out, whole),
        async_flag(owner, async_op), lengths=lengths, received=received,
    )  # fmt: skip
