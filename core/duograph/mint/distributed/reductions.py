"""Collectives of `duograph.mint.distributed` that combine the tensors of ranks, such as sums.

`mint/distributed/__init__.py` exports these functions. All ranks of a group must call the same
functions in the same order. Results are written into tensors of the caller. Floating-point sums
have a fixed order, unless ``set_context(engine_sums=True)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError
from ...ops import collective_primitives as primitives
from ...ops import reshape
from ...ranks.world import Group
from ...tensor import Tensor
from .calls import (
    Work,
    async_flag,
    averaged,
    check_reduction,
    communicated,
    fits,
    joined,
    members,
    part_lengths,
    peer_of,
    put,
    tensor_list,
    tensor_of,
    widened,
    with_axis,
)

__all__ = ["all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor",
           "reduce_scatter_tensor_uneven"]  # fmt: skip


def all_reduce(
    tensor: Tensor, op: str = "sum", group: str | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all ranks, in place (`mindspore.mint.distributed.all_reduce`).

    Args:
        tensor: Tensor, of the same shape and dtype on all ranks.
        op: ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, or ``"avg"``: the sum divided by the
            number of ranks, of floating-point tensors.
        group: name of a group; None for all ranks.
        async_op: whether to return a handle immediately; `tensor` is valid after its `wait`.

    Returns:
        The handle, or None.

    Raises:
        TypeError: not a Tensor, or an unknown `op`.
        ValueError: no such group, or this rank is no member.
        RuntimeError: ranks call different collectives, or one does not answer.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([1.0, 2.0])
        >>> mint.distributed.all_reduce(x)
        >>> print(x)
        [1. 2.]
    """
    found = members("all_reduce", group)
    tensor_of("all_reduce", "tensor", tensor)
    check_reduction("all_reduce", op, tensor)
    return communicated(
        primitives.all_reduce, widened(tensor, op), found,
        lambda out: put(tensor, averaged(out, op, found.size, tensor.dtype)),
        async_flag("all_reduce", async_op), reduction=_reduction(op), size=found.size,
    )  # fmt: skip


def _reduction(op: str) -> str:
    return "sum" if op == "avg" else op


def reduce(
    tensor: Tensor, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all ranks at rank `dst` of the world, in place
    (`mindspore.mint.distributed.reduce`). Other ranks keep their tensors.

    The other arguments, result and errors are those of `all_reduce`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([1.0, 2.0])
        >>> mint.distributed.reduce(x, 0)
        >>> print(x)
        [1. 2.]
    """
    found = members("reduce", group)
    root = peer_of("reduce", "dst", dst, found)
    tensor_of("reduce", "tensor", tensor)
    check_reduction("reduce", op, tensor)

    def finish(out: Tensor) -> None:
        if found.rank == root:
            put(tensor, averaged(out, op, found.size, tensor.dtype))

    return communicated(
        primitives.reduce_to, widened(tensor, op), found, finish, async_flag("reduce", async_op),
        root=root, here=found.rank == root, reduction=_reduction(op),
    )  # fmt: skip


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors over the ranks, item by item, and keep the item of this rank
    (`mindspore.mint.distributed.reduce_scatter`).

    Args:
        output: Tensor that receives the result.
        input_list: one Tensor per rank. The shapes in the list may differ, but every rank must pass
            the same ones.
        op, group, async_op: as for `all_reduce`.

    Raises:
        TypeError: another number of Tensors, another shape or dtype, or an unknown `op`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.reduce_scatter(out, [Tensor([1.0, 2.0])])
        >>> print(out)
        [1. 2.]
    """
    owner = "reduce_scatter"
    found = members(owner, group)
    tensor_of(owner, "output", output)
    inputs = tensor_list(owner, "input_list", input_list, found.size)
    check_reduction(owner, op, output)
    fits(owner, "output", output, inputs[found.rank].shape, inputs[0], ArgumentError)
    lengths = tuple(x.size for x in inputs)
    return _scattered(owner, joined(inputs), output, lengths, op, found, async_op)


def _scattered(
    owner: str, x: Tensor, output: Tensor, lengths: tuple[int, ...], op: str, group: Group,
    async_op: bool,
) -> Work | None:  # fmt: skip
    """Reduce `x` elementwise over the ranks; write this rank's rows of the result into `output`.

    Rank i gets `lengths[i]` consecutive rows, in the order of the ranks. `op` names the reduction,
    such as "sum". Returns a handle with `async_op`, else None. `owner` is the calling function, for
    messages.
    """

    def finish(part: Tensor) -> None:
        put(output, reshape(averaged(part, op, group.size, output.dtype), output.shape))

    return communicated(
        primitives.reduce_scatter_rows, widened(x, op), group, finish, async_flag(owner, async_op),
        lengths=lengths, rows=lengths[group.rank], reduction=_reduction(op),
    )  # fmt: skip


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all ranks and keep this rank's part of axis 0
    (`mindspore.mint.distributed.reduce_scatter_tensor`).

    Args:
        output: Tensor (n, ...) that receives the result.
        input: Tensor (size * n, ...), of the same shape on all ranks.
        op, group, async_op: as for `all_reduce`.

    Raises:
        TypeError: an unknown `op`.
        ValueError: another shape or dtype.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.reduce_scatter_tensor(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    return _parts_of_one("reduce_scatter_tensor", output, input, None, op, group, async_op)


def _parts_of_one(
    owner: str, output: Tensor, input: Tensor, sizes: Sequence[int] | None, op: str,
    group: str | None, async_op: bool,
) -> Work | None:  # fmt: skip
    found = members(owner, group)
    x, out = with_axis(owner, "input", input), tensor_of(owner, "output", output)
    check_reduction(owner, op, x)
    lengths = part_lengths(owner, "input_split_sizes", sizes, x.shape[0], found, "an input")
    fits(owner, "output", out, (lengths[found.rank], *x.shape[1:]), x)
    return _scattered(owner, x, out, lengths, op, found, async_op)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: Sequence[int] | None = None,
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all ranks and keep this rank's part of axis 0, of any length
    (`mindspore.mint.distributed.reduce_scatter_tensor_uneven`).

    Args:
        output: Tensor (input_split_sizes[rank], ...) that receives the result.
        input: Tensor, of the same shape on all ranks.
        input_split_sizes: lengths of the parts of all ranks; None for equal lengths.
        op, group, async_op: as for `all_reduce`.

    Raises:
        TypeError: an unknown `op`.
        ValueError: another shape, dtype or split.

    Examples:
        >>> from duograph import Tensor, mint
        >>> out = mint.zeros(2)
        >>> mint.distributed.reduce_scatter_tensor_uneven(out, Tensor([1.0, 2.0]))
        >>> print(out)
        [1. 2.]
    """
    owner = "reduce_scatter_tensor_uneven"
    return _parts_of_one(owner, output, input, input_split_sizes, op, group, async_op)
