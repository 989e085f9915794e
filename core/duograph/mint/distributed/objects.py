"""Collective communication of Python objects in `duograph.mint.distributed`, for one process.

`mint/distributed/__init__.py` exports these functions. The objects are put into the lists as they
are; nothing is pickled.
"""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, ArgumentValueError
from ...option_checks import check_options
from .process_groups import only_rank, refuse_several, single

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip


def _list(owner: str, name: str, value: object, length: int | None = None) -> list[Any]:
    """Return `value` if it is a non-empty list, of `length` items if given; raise otherwise."""
    if not isinstance(value, list) or not value or (length is not None and len(value) != length):
        wanted = "a list" if length is None else f"a list of {length}"
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted {wanted}")
    return value


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Put the objects of all processes into a list
    (`mindspore.mint.distributed.all_gather_object`).

    Args:
        object_list: list of 1 element, which is replaced.
        obj: the object of this process.
        group: name of a group; None for all processes.

    Raises:
        TypeError: a list of another length.

    Examples:
        >>> from duograph import mint
        >>> out = [None]
        >>> mint.distributed.all_gather_object(out, {"a": 1})
        >>> out
        [{'a': 1}]
    """
    single("all_gather_object", group)
    _list("all_gather_object", "object_list", object_list, 1)[0] = obj


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: str | None = None, device: str | None = None
) -> None:
    """Copy the objects of rank `src` to all processes; with one process nothing changes
    (`mindspore.mint.distributed.broadcast_object_list`).

    Args:
        object_list: list of objects.
        src: 0, the only rank.
        group: name of a group; None for all processes.
        device: has no meaning with one process.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.broadcast_object_list([1, "two"])
    """
    check_options("mint.distributed.broadcast_object_list", device=device)
    only_rank("broadcast_object_list", "src", src)
    single("broadcast_object_list", group)
    _list("broadcast_object_list", "object_list", object_list)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int = 0,
    group: str | None = None,
) -> None:
    """Put the objects of all processes into a list at rank `dst`
    (`mindspore.mint.distributed.gather_object`).

    Args:
        obj: the object of this process.
        object_gather_list: list of 1 element, which is replaced.
        dst: 0, the only rank.
        group: name of a group; None for all processes.

    Raises:
        TypeError: a list of another length.

    Examples:
        >>> from duograph import mint
        >>> out = [None]
        >>> mint.distributed.gather_object("a", out)
        >>> out
        ['a']
    """
    only_rank("gather_object", "dst", dst)
    single("gather_object", group)
    _list("gather_object", "object_gather_list", object_gather_list, 1)[0] = obj


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any],
    src: int = 0,
    group: str | None = None,
) -> None:
    """Take this process's object from the list of rank `src`
    (`mindspore.mint.distributed.scatter_object_list`).

    Args:
        scatter_object_output_list: list whose first element is replaced.
        scatter_object_input_list: list of 1 object.
        src: 0, the only rank.
        group: name of a group; None for all processes.

    Raises:
        TypeError: a list of another length.

    Examples:
        >>> from duograph import mint
        >>> out = [None]
        >>> mint.distributed.scatter_object_list(out, ["a"])
        >>> out
        ['a']
    """
    only_rank("scatter_object_list", "src", src)
    single("scatter_object_list", group)
    owner = "scatter_object_list"
    found = _list(owner, "scatter_object_input_list", scatter_object_input_list, 1)[0]
    _list(owner, "scatter_object_output_list", scatter_object_output_list)[0] = found


def _elsewhere(owner: str, values: list[Any], peer: int, group: str | None) -> Exception:
    """Check the arguments of a transfer between two processes; return the error to raise.

    There is always one, since there is only one process.
    """
    single(owner, group)
    _list(owner, "object_list", values)
    if peer == 0:
        return ArgumentValueError(f"{owner}: got rank 0, this process; wanted another one")
    return refuse_several(owner, f"rank {peer}")


def send_object_list(
    object_list: list[Any], dst: int, group: str | None = None, device: str | None = None
) -> None:
    """Send objects to another process: refused, there is only one
    (`mindspore.mint.distributed.send_object_list`).

    Raises:
        ValueError: `dst` is this process.
        NotImplementedError: `dst` is another one.
    """
    raise _elsewhere("send_object_list", object_list, dst, group)


def recv_object_list(
    object_list: list[Any],
    src: int = 0,
    group: str | None = None,
    device: str | None = None,
) -> int:
    """Receive objects from another process: refused, there is only one
    (`mindspore.mint.distributed.recv_object_list`).

    Raises:
        ValueError: `src` is this process.
        NotImplementedError: `src` is another one.
    """
    raise _elsewhere("recv_object_list", object_list, src, group)
