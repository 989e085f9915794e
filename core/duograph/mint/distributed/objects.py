"""Collective communication of Python objects in `duograph.mint.distributed`.

`mint/distributed/__init__.py` exports these functions. Objects are sent as pickles, so all ranks
must trust each other. In a group of one rank, objects are put into the lists of results without
pickling.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, UnsupportedSyntaxError
from ...option_checks import check_options
from ...ranks.world import Group
from .calls import in_graph, members, peer_of

if TYPE_CHECKING:
    from ...host_arrays import Array

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip


def _members(owner: str, group: str | None) -> Group:
    """Return the named group; raise UnsupportedSyntaxError if the call is being compiled.

    `owner` is the calling function.
    """
    if in_graph():
        raise UnsupportedSyntaxError(
            f"{owner} cannot be compiled: objects are no values of a graph. Call it outside the "
            "compiled function"
        )
    return members(owner, group)


def _list(owner: str, name: str, value: object, length: int | None = None) -> list[object]:
    """Return `value` if it is a non-empty list, of `length` items if given; raise otherwise."""
    if not isinstance(value, list) or not value or (length is not None and len(value) != length):
        wanted = "a list" if length is None else f"a list of {length}"
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted {wanted}")
    return value


def _pickles(objects: list[object]) -> tuple[Array, Array]:
    """Return the pickles of objects, joined to one array of uint8, and their lengths as int64."""
    found = [pickle.dumps(x) for x in objects]
    return np.frombuffer(b"".join(found), np.uint8), np.array([len(f) for f in found], np.int64)


def _objects(data: Array, lengths: Array) -> list[object]:
    ends = np.cumsum(lengths)
    return [pickle.loads(data[e - n : e].tobytes()) for e, n in zip(ends, lengths, strict=True)]


def all_gather_object(object_list: list[Any], obj: object, group: str | None = None) -> None:
    """Put the objects of all ranks into a list (`mindspore.mint.distributed.all_gather_object`).

    Args:
        object_list: list of one element per rank; all are replaced.
        obj: the object of this rank; it must be picklable.
        group: name of a group; None for all ranks.

    Raises:
        TypeError: a list of another length.
        ValueError: no such group, or this rank is no member.

    Examples:
        >>> from duograph import mint
        >>> out = [None]
        >>> mint.distributed.all_gather_object(out, {"a": 1})
        >>> out
        [{'a': 1}]
    """
    owner = "all_gather_object"
    found = _members(owner, group)
    outputs = _list(owner, "object_list", object_list, found.size)
    if found.size == 1:
        outputs[0] = obj
        return
    outputs[:] = map(pickle.loads, found.gather_bytes(pickle.dumps(obj), owner))


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: str | None = None, device: str | None = None
) -> None:
    """Copy the objects of rank `src` of the world to all ranks
    (`mindspore.mint.distributed.broadcast_object_list`).

    Args:
        object_list: list of objects, of the same length on all ranks; ranks other than `src` get
            new elements.
        src: rank of the world that sends.
        group: name of a group; None for all ranks.
        device: has no meaning here.

    Raises:
        TypeError: no list, or an empty one.
        ValueError: `src` is no member.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.broadcast_object_list([1, "two"])
    """
    owner = "broadcast_object_list"
    check_options(f"mint.distributed.{owner}", device=device)
    found = _members(owner, group)
    root = peer_of(owner, "src", src, found)
    objects = _list(owner, "object_list", object_list)
    if found.size == 1:
        return
    sends = found.rank == root
    data, lengths = _pickles(objects) if sends else (None, np.zeros(len(objects), np.int64))
    lengths = found.broadcast(lengths, root)
    data = found.broadcast(np.empty(int(lengths.sum()), np.uint8) if data is None else data, root)
    if not sends:
        objects[:] = _objects(data, lengths)


def gather_object(
    obj: object,
    object_gather_list: list[Any] | None = None,
    dst: int = 0,
    group: str | None = None,
) -> None:
    """Put the objects of all ranks into a list at rank `dst` of the world
    (`mindspore.mint.distributed.gather_object`).

    Args:
        obj: the object of this rank; it must be picklable.
        object_gather_list: at rank `dst` a list of one element per rank; all are replaced. Not used
            on other ranks.
        dst: rank of the world that receives.
        group: name of a group; None for all ranks.

    Raises:
        TypeError: at rank `dst` a list of another length.
        ValueError: `dst` is no member.

    Examples:
        >>> from duograph import mint
        >>> out = [None]
        >>> mint.distributed.gather_object("a", out)
        >>> out
        ['a']
    """
    owner = "gather_object"
    found = _members(owner, group)
    root = peer_of(owner, "dst", dst, found)
    outputs: list[object] = []
    if found.rank == root:
        outputs = _list(owner, "object_gather_list", object_gather_list, found.size)
    if found.size == 1:
        outputs[0] = obj
        return
    data, lengths = _pickles([obj])
    sizes = found.all_gather(lengths)
    counts = [len(data) if r == root else 0 for r in range(found.size)]
    received = sizes.tolist() if outputs else [0] * found.size
    whole = found.all_to_all(data, counts, received)
    if outputs:
        outputs[:] = _objects(whole, sizes)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[object],
    src: int = 0,
    group: str | None = None,
) -> None:
    """Take this rank's object from the list of rank `src` of the world
    (`mindspore.mint.distributed.scatter_object_list`).

    Args:
        scatter_object_output_list: list whose first element is replaced.
        scatter_object_input_list: at rank `src` a list of one object per rank; not used on other
            ranks.
        src: rank of the world that sends.
        group: name of a group; None for all ranks.

    Raises:
        TypeError: an empty list, or at rank `src` a list of another length.
        ValueError: `src` is no member.

    Examples:
        >>> from duograph import mint
        >>> out = [None]
        >>> mint.distributed.scatter_object_list(out, ["a"])
        >>> out
        ['a']
    """
    owner = "scatter_object_list"
    found = _members(owner, group)
    root = peer_of(owner, "src", src, found)
    outputs = _list(owner, "scatter_object_output_list", scatter_object_output_list)
    sends = found.rank == root
    objects: list[object] = []
    if sends:
        objects = _list(owner, "scatter_object_input_list", scatter_object_input_list, found.size)
    if found.size == 1:
        outputs[0] = objects[0]
        return
    nothing = np.zeros(0, np.uint8), np.zeros(found.size, np.int64)
    data, sizes = _pickles(objects) if sends else nothing
    sizes = found.broadcast(sizes, root)
    own = int(sizes[found.rank])
    received = [own if r == root else 0 for r in range(found.size)]
    part = found.all_to_all(data, sizes.tolist() if sends else [0] * found.size, received)
    outputs[0] = pickle.loads(part.tobytes())


def send_object_list(
    object_list: list[Any], dst: int, group: str | None = None, device: str | None = None
) -> None:
    """Send objects to another rank (`mindspore.mint.distributed.send_object_list`).

    Args:
        object_list: list of picklable objects.
        dst: rank of the world that receives.
        group: name of a group; None for all ranks.
        device: has no meaning here.

    Raises:
        TypeError: no list, or an empty one.
        ValueError: `dst` is this rank or no member.
    """
    owner = "send_object_list"
    check_options(f"mint.distributed.{owner}", device=device)
    found = _members(owner, group)
    objects = _list(owner, "object_list", object_list)
    to = peer_of(owner, "dst", dst, found, other=True)
    data, lengths = _pickles(objects)
    found.send(lengths, to)
    found.send(data, to)


def recv_object_list(
    object_list: list[Any],
    src: int = 0,
    group: str | None = None,
    device: str | None = None,
) -> int:
    """Receive objects from another rank (`mindspore.mint.distributed.recv_object_list`).

    Args:
        object_list: list of as many elements as are sent; all are replaced.
        src: rank of the world that sends.
        group: name of a group; None for all ranks.
        device: has no meaning here.

    Returns:
        0.

    Raises:
        TypeError: no list, or an empty one.
        ValueError: `src` is this rank or no member.
        RuntimeError: another number of objects is sent, or the rank does not answer.
    """
    owner = "recv_object_list"
    check_options(f"mint.distributed.{owner}", device=device)
    found = _members(owner, group)
    objects = _list(owner, "object_list", object_list)
    source = peer_of(owner, "src", src, found, other=True)
    lengths = found.receive(np.zeros(len(objects), np.int64), source)
    data = found.receive(np.empty(int(lengths.sum()), np.uint8), source)
    objects[:] = _objects(data, lengths)
    return 0
