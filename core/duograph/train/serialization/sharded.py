"""Sharded checkpoints, which all ranks write together and any number of ranks can load.

A checkpoint is one safetensors file per rank, with its shards of the optimiser state and some of
the replicated values, and a layout: a JSON index of the file and offset of each value. The layout
is written last, when all other files are on disk. Files without a layout are ignored, so that a
checkpoint that a killed program left half written is never loaded.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

import numpy as np

from ...call_errors import explaining
from ...dtype import as_dtype
from ...errors import ArgumentError, CheckpointError
from ...nn.cell import Cell
from ...parameter import Parameter
from ...ranks.buckets import part_length
from ...ranks.world import world
from ...tensor import Tensor
from .. import _checkpoint_file
from .._atomic_file import replace_file
from .files import _entries, _problem, _saved, _write

if TYPE_CHECKING:
    from ...host_arrays import Array

__all__ = ["latest_sharded_checkpoint", "load_sharded_checkpoint", "save_sharded_checkpoint"]

VERSION = 1
_LAYOUT = re.compile(r"step-(\d+)\.json")
_FILE = re.compile(r"step-\d+\.[0-9a-f]{16}\.\d+-of-\d+\.safetensors")


if TYPE_CHECKING:

    class _Told(TypedDict):
        """What one rank wrote: its file, and (name, dtype, shape, start, count) of each piece."""

        step: int
        names: int  # checksum of the names of all values, in order
        count: int  # of these values
        file: str
        bytes: int
        pieces: list[tuple[str, str, tuple[int, ...], int, int]]

    class _Value(TypedDict):
        """A value of a layout; a piece is the number of its file, and the elements it holds."""

        dtype: str
        shape: Sequence[int]
        pieces: list[Any]  # dict[str, int], with the keys file, start and count

    class _File(TypedDict):
        """A file of a layout."""

        name: str
        bytes: int

    class _Layout(TypedDict):
        """The layout of a checkpoint: where the pieces of its values are."""

        version: int
        step: int
        values: dict[str, _Value]
        files: list[_File]


class _Piece(NamedTuple):
    """Consecutive elements of a value, in C order, which one rank writes as an entry of its file.

    `start` is the offset of the first one in the flat unsharded value.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]  # of the unsharded value
    start: int
    array: Array


@explaining
def save_sharded_checkpoint(
    save_obj: Cell | Mapping[str, object],
    directory: str | os.PathLike[str],
    step: int,
    append_dict: Mapping[str, object] | None = None,
    keep: int = 0,
) -> str:
    """Write a sharded checkpoint; every rank calls it.

    Each rank writes its shards of the optimiser state (`enable_parallel_optimizer`). Replicated
    values are written once: each trainable Parameter by one of the ranks, all other values by rank
    0.

    Args:
        save_obj: Cell, such as a TrainOneStepCell, or dictionary from names to Tensors.
        directory: folder that all ranks can read and write. It must hold the checkpoints of only
            one program.
        step: number of the checkpoint, 0 or more. An earlier checkpoint with this number is
            replaced.
        append_dict: additional entries, which rank 0 writes: numbers, strings, Tensors.
        keep: number of newest checkpoints to keep in the folder; 0 keeps all.

    Returns:
        Path of the layout, the index of the checkpoint. When the call returns, the checkpoint is
        complete on disk.

    Raises:
        TypeError: an entry has a type that cannot be saved, or `step` is no int.
        ValueError: two entries have one name; the ranks save different values.

    Examples:
        >>> import duograph as ms
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> net = ms.nn.Dense(2, 1)
        >>> _ = ms.train.save_sharded_checkpoint(net, folder, 10, {"epoch": 3})
        >>> ms.train.load_sharded_checkpoint(folder, net)
        {'epoch': 3}
    """
    for name, value in (("step", step), ("keep", keep)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ArgumentError(
                f"save_sharded_checkpoint: got {name}={value!r}; wanted an int of 0 or more"
            )
    own = world().whole
    folder = os.path.abspath(os.fspath(directory))
    os.makedirs(folder, exist_ok=True)
    token = own.gather_bytes(os.urandom(8), "naming a checkpoint")[0].hex()
    pieces = list(_pieces(save_obj, append_dict or {}, own.rank, own.size))
    file = f"step-{step}.{token}.{own.rank}-of-{own.size}.safetensors"
    _checkpoint_file.write(os.path.join(folder, file), {p.name: p.array for p in pieces}, True)
    names = [name for name, _ in _entries(save_obj)] + list(append_dict or {})
    told: _Told = {
        "step": step, "names": zlib.crc32("\n".join(names).encode()), "count": len(names),
        "file": file, "bytes": os.path.getsize(os.path.join(folder, file)),
        "pieces": [(p.name, p.dtype, p.shape, p.start, p.array.size) for p in pieces],
    }  # fmt: skip
    found = own.gather_bytes(json.dumps(told).encode(), "a checkpoint of all ranks")
    path, problem = os.path.join(folder, f"step-{step}.json"), ""
    if own.rank == 0:
        layout, problem = _joined([json.loads(f) for f in found])
        if not problem:
            replace_file(path, [_as_json(layout)])
            _forget(folder, keep)
    problem = own.gather_bytes(problem.encode(), "a checkpoint that is complete")[0].decode()
    if problem:
        raise CheckpointError(
            f"save_sharded_checkpoint: {problem}; wanted the same step, names and shapes on all "
            "ranks. No checkpoint was written"
        )
    return path


def _pieces(save_obj: object, more: Mapping[str, object], rank: int, size: int) -> Iterator[_Piece]:
    """Yield the pieces of the values of `save_obj` and `more` that this rank has to write.

    `save_obj` is a Cell, a dictionary or a list of dicts; `more` holds the additional entries. Each
    rank computes from `rank`, its own number, and `size`, the number of ranks, what it has to
    write, so that every element is written once.
    """
    names: set[str] = set()
    written = [0] * size  # bytes of trainable Parameters by rank
    for name, value in [*_entries(save_obj), *more.items()]:
        if name in names:
            raise ArgumentError(
                f"save_sharded_checkpoint: got two entries named {name!r}; wanted unique names"
            )
        names.add(name)
        part = value.part if isinstance(value, Parameter) else None
        writer = 0
        if part is not None:
            writer = rank
        elif isinstance(value, Parameter) and value.requires_grad:
            writer = written.index(min(written))
            written[writer] += value.size * value.itemsize
        if writer != rank:
            continue
        array = _saved(name, value)
        if isinstance(array, str):
            array = np.frombuffer(json.dumps(array).encode(), np.uint8)
            yield _Piece(name, "text", array.shape, 0, array)
        elif part is None:
            number = isinstance(value, (bool, int, float))
            dtype = "number" if number else as_dtype(array.dtype).name
            yield _Piece(name, dtype, array.shape, 0, array)
        else:
            start = min(part.rank * len(array), math.prod(part.shape))
            array = array[: math.prod(part.shape) - start]
            yield _Piece(name, as_dtype(array.dtype).name, part.shape, start, array)


def _joined(told: list[_Told]) -> tuple[_Layout, str]:
    """Return the layout of a checkpoint, and "" or in what the ranks do not fit together.

    `told` has a dictionary per rank with its step, the name and size of its file and the pieces in
    it. The pieces of a value must hold each of its elements once.
    """
    values: dict[str, _Value] = {}
    problem = ""
    steps = [each["step"] for each in told]
    if len(set(steps)) > 1:
        problem = f"the ranks save the steps {', '.join(map(str, steps))}"
    if len({each["names"] for each in told}) > 1:
        counts = ", ".join(str(each["count"]) for each in told)
        problem = problem or f"the ranks save {counts} values, of different names"
    for number, each in enumerate(told):
        for name, dtype, shape, start, count in each["pieces"]:
            value = values.setdefault(name, {"dtype": dtype, "shape": shape, "pieces": []})
            value["pieces"].append({"file": number, "start": start, "count": count})
            if (dtype, shape) != (value["dtype"], value["shape"]):
                problem = problem or (
                    f"{name} is {value['dtype']} {tuple(value['shape'])} on one rank and {dtype} "
                    f"{tuple(shape)} on rank {number}"
                )
    for name, value in values.items():
        end, size = 0, math.prod(value["shape"])
        pieces = sorted((p["start"], p["start"] + p["count"]) for p in value["pieces"])
        for start, stop in pieces:
            end = stop if start == end else -1
        if end != size:
            ranges = ", ".join(f"{start} to {stop}" for start, stop in pieces)
            problem = problem or f"the ranks hold the elements {ranges} of {name}, which has {size}"
    files: list[_File] = [{"name": each["file"], "bytes": each["bytes"]} for each in told]
    return {"version": VERSION, "step": steps[0], "values": values, "files": files}, problem


def _as_json(layout: _Layout) -> bytes:
    """Return the content of a layout file."""
    text = json.dumps(layout, indent=1)
    return json.dumps({"crc32": zlib.crc32(text.encode()), "layout": text}).encode()


def _forget(folder: str, keep: int) -> None:
    """Remove old checkpoints from a folder: keep the newest `keep` layouts and the files they name.

    With `keep` 0, all layouts are kept. Files that no layout names are removed, too. If a remaining
    layout cannot be read, files other than layouts are not removed.
    """
    steps = _steps(folder)
    for step in steps[: len(steps) - keep] if keep else ():
        os.remove(os.path.join(folder, f"step-{step}.json"))
    named: set[str] = set()
    for step in _steps(folder):
        try:
            named.update(file["name"] for file in _read_layout(folder, step)["files"])
        except CheckpointError:
            return  # it may name any of them
    for name in os.listdir(folder):
        if _FILE.fullmatch(name) and name not in named:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(folder, name))


def _steps(folder: str) -> list[int]:
    """Return the steps of the layouts in a folder, in ascending order."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(int(m[1]) for name in names if (m := _LAYOUT.fullmatch(name)))


def _read_layout(folder: str, step: int) -> _Layout:
    """Return the layout of the checkpoint of step `step` in a folder.

    All files of the checkpoint are checked to be complete.

    Raises:
        CheckpointError: the layout is missing, damaged or of another version, or one of its files
            is missing or truncated.
    """
    path = os.path.join(folder, f"step-{step}.json")
    try:
        with open(path, encoding="utf-8") as f:
            outer = json.load(f)
        text = outer["layout"]
        if zlib.crc32(text.encode()) != outer["crc32"]:
            raise ValueError("it does not match its checksum")
        found: _Layout = json.loads(text)
    except FileNotFoundError:
        raise CheckpointError(
            f"load_sharded_checkpoint: got step {step}; there is no {path!r}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"load_sharded_checkpoint: {path!r} is damaged ({error})") from None
    if found["version"] != VERSION:
        raise CheckpointError(
            f"load_sharded_checkpoint: {path!r} has version {found['version']}; wanted {VERSION}"
        )
    for file in found["files"]:
        try:
            nbytes = os.path.getsize(os.path.join(folder, file["name"]))
        except FileNotFoundError:
            nbytes = -1
        if nbytes != file["bytes"]:
            state = "is missing" if nbytes < 0 else f"has {nbytes} of {file['bytes']} bytes"
            raise CheckpointError(
                f"load_sharded_checkpoint: {file['name']} of {path!r} {state}; nothing was loaded"
            )
    return found


@explaining
def latest_sharded_checkpoint(directory: str | os.PathLike[str]) -> int | None:
    """Return the step of the newest complete checkpoint in a folder; None if there is none.

    Examples:
        >>> import duograph as ms
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> ms.train.latest_sharded_checkpoint(folder)
        >>> _ = ms.train.save_sharded_checkpoint(ms.nn.Dense(2, 1), folder, 10)
        >>> ms.train.latest_sharded_checkpoint(folder)
        10
    """
    folder = os.path.abspath(os.fspath(directory))
    for step in reversed(_steps(folder)):
        try:
            _read_layout(folder, step)
        except CheckpointError:
            continue
        return step
    return None


@explaining
def load_sharded_checkpoint(
    directory: str | os.PathLike[str], net: Cell, step: int | None = None
) -> dict[str, object]:
    """Load a checkpoint of `save_sharded_checkpoint` into a Cell, on any number of ranks.

    Values are resharded for the ranks of this program: a rank reads the files one by one, and keeps
    what its shards need. If a value is missing or does not fit, `net` is not changed.

    Args:
        directory: the folder of checkpoints.
        net: Cell whose Parameters have the names and unsharded shapes of those that were saved.
        step: number of the checkpoint; None: the newest complete one.

    Returns:
        The entries that are no Parameters or buffers of `net`, by name: numbers, strings, Tensors.

    Raises:
        ValueError: there is no complete checkpoint, it lacks a Parameter of `net`, or a Parameter
            has another shape or dtype.
    """
    folder = os.path.abspath(os.fspath(directory))
    if not isinstance(net, Cell):
        raise ArgumentError(
            f"load_sharded_checkpoint: got {type(net).__name__}; wanted a Cell, such as the "
            "TrainOneStepCell"
        )
    if step is None:
        step = latest_sharded_checkpoint(folder)
        if step is None:
            raise CheckpointError(
                f"load_sharded_checkpoint: got {folder!r}; there is no complete checkpoint"
            )
    layout = _read_layout(folder, step)
    targets = cast("dict[str, Tensor]", dict(_entries(net)))
    missing = [name for name in targets if name not in layout["values"]]
    if missing:
        raise CheckpointError(
            f"load_sharded_checkpoint: step {step} has no {', '.join(missing[:5])}"
            f"{' ...' if missing[5:] else ''}; nothing was loaded"
        )
    values = _assembled(folder, layout, targets)
    for name, target in targets.items():
        problem = _problem(name, target, values[name], False)
        if problem is not None:
            raise CheckpointError(f"load_sharded_checkpoint: {problem}; nothing was loaded")
    for name, target in targets.items():
        _write(target, cast("Tensor", values.pop(name)))
    return values


def _assembled(folder: str, layout: _Layout, targets: Mapping[str, Tensor]) -> dict[str, object]:
    """Return the values of a checkpoint by name; for a sharded target, this rank's shard.

    `targets` are the Parameters and buffers to load, by name.
    """
    flat: dict[str, Array] = {}
    ranges: dict[str, tuple[int, int]] = {}  # of the flat unsharded value, in elements
    lengths: dict[str, int] = {}  # of the flat local shard, padding included
    needed: list[list[tuple[str, int]]] = [[] for _ in layout["files"]]
    for name, value in layout["values"].items():
        size = math.prod(value["shape"])
        part = getattr(targets.get(name), "part", None)
        if part is not None and list(part.shape) != value["shape"]:
            raise CheckpointError(
                f"load_sharded_checkpoint: {name} has shape {tuple(value['shape'])} in the "
                f"checkpoint and {part.shape} in the net; nothing was loaded"
            )
        n = lengths[name] = size if part is None else part_length(size, part.size)
        begin = 0 if part is None else min(part.rank * n, size)
        end = min(begin + n, size)
        ranges[name] = begin, end
        for piece in value["pieces"]:
            start, count = piece["start"], piece["count"]
            if (start < end and start + count > begin) or start == 0:  # its dtype, if empty
                needed[piece["file"]].append((name, start))
    for file, pieces in zip(layout["files"], needed, strict=True):
        if not pieces:
            continue
        content = _checkpoint_file.read(os.path.join(folder, file["name"]), True)
        for name, start in pieces:
            piece = np.asarray(content[name]).reshape(-1)
            begin, end = ranges[name]
            held = flat.setdefault(name, np.zeros(lengths[name], piece.dtype))
            a, b = max(begin, start), min(end, start + piece.size)
            if a < b:
                held[a - begin : b - begin] = piece[a - start : b - start]
    return {
        name: _value(value, flat[name], getattr(targets.get(name), "part", None) is not None)
        for name, value in layout["values"].items()
    }


def _value(value: _Value, array: Array, is_part: bool) -> object:
    """Return a loaded value: a string, a number or a Tensor.

    `value` is its description in the layout. With `is_part`, `array` is a flat shard and keeps its
    shape.
    """
    if value["dtype"] == "text":
        return json.loads(array.tobytes())
    if value["dtype"] == "number":
        return array.reshape(()).item()
    return Tensor(array if is_part else array.reshape(value["shape"]))
