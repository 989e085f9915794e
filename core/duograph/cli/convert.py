"""The `duograph convert` command: converts files of weights between formats.

`cli.main` runs it. The suffix of a file says its format: .ckpt (MindSpore's), .safetensors, .npz,
and .pt, .pth or .bin (a PyTorch state dict, `_torch_files`).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import DuographError
from ..status_line import counted, size_text, status_line
from ..tensor import Tensor
from ..train._atomic_file import replacing
from ..train.serialization import load_checkpoint, save_checkpoint
from . import _torch_files
from .command import Commands, UsageError, command, print_json

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["add", "read", "write"]

EXAMPLES = """\
duograph convert resnet50.pt resnet50.ckpt
duograph convert model.ckpt model.safetensors
duograph convert model.pt model.ckpt --rename "running_mean=moving_mean"
"""

TORCH = (".pt", ".pth", ".bin")
FORMATS = (".ckpt", ".safetensors", ".npz", *TORCH)


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "convert",
        _run,
        "convert weights between .ckpt, .safetensors, .npz and PyTorch's .pt",
        EXAMPLES.rstrip(),
        {1: "the input is damaged, or the output cannot hold it or cannot be written"},
        json=True,
    )
    made.add_argument("source", help=f"the file to read ({', '.join(FORMATS)})")
    made.add_argument("target", help="the file to write, in the format of its suffix")
    made.add_argument(
        "--rename",
        nargs="+",
        default=[],
        metavar="PATTERN=NAME",
        help="replace a regular expression in all names; \\1 is its first group",
    )
    made.add_argument("--force", action="store_true", help="replace an existing file")


def _run(options: argparse.Namespace) -> int:
    source, target = pathlib.Path(options.source), pathlib.Path(options.target)
    for path in (source, target):
        if path.suffix not in FORMATS:
            raise UsageError(f"{path} has the suffix {path.suffix!r}; wanted one of {FORMATS}")
    if not source.is_file():
        raise UsageError(f"there is no file {source}")
    if not os.access(source, os.R_OK):
        raise UsageError(f"{source} cannot be read: permission denied")
    if target.exists() and not options.force:
        raise UsageError(f"{target} exists already; pass --force to replace it")
    try:
        values = _renamed(read(source), options.rename)
        write(values, target)
    except (DuographError, ValueError) as error:
        sys.stderr.write(f"duograph convert: {error}\n")
        return 1
    nbytes = sum(array.nbytes for array in values.values())
    if options.json:
        facts = [
            {"name": name, "shape": list(a.shape), "dtype": a.dtype.name}
            for name, a in values.items()
        ]
        print_json({"target": str(target), "bytes": nbytes, "tensors": facts})
    else:
        sys.stdout.write(f"wrote {target}: {len(values)} tensors, {size_text(nbytes)}\n")
    return 0


def _renamed(values: dict[str, Array], rules: list[str]) -> dict[str, Array]:
    """Return the same values under new names.

    A rule is a text PATTERN=NAME: in every name, each match of the regular expression PATTERN is
    replaced by NAME, in which ``\\1`` stands for the first group. The rules are applied one after
    another.

    Raises:
        UsageError: a rule is malformed, or gives the same name to two values.
    """
    for rule in rules:
        pattern, equals, name = rule.partition("=")
        if not equals:
            raise UsageError(f"--rename: got {rule!r}; wanted PATTERN=NAME")
        try:
            made = {re.sub(pattern, name, key): value for key, value in values.items()}
        except re.error as error:
            raise UsageError(f"--rename: {rule!r} is no regular expression: {error}") from None
        if "" in made:
            raise UsageError(f"--rename: {rule!r} leaves nothing of a name")
        if len(made) < len(values):
            raise UsageError(f"--rename: {rule!r} gives several tensors one name")
        values = made
    return values


def read(path: pathlib.Path) -> dict[str, Array]:
    """Read a file of weights in the format of its suffix; return NumPy arrays by name.

    Entries that are no tensors, such as texts, are left out.

    Raises:
        ValueError: the file is damaged, or a PyTorch file holds objects of classes other than
            tensors.
    """
    if path.suffix in TORCH:
        return _torch_files.read(path)
    if path.suffix == ".npz":
        try:
            with (
                open(path, "rb") as opened,  # np.load would leave a damaged file open
                np.load(opened, allow_pickle=False) as file,
                status_line(f"loading {path}", len(file.files), "tensors") as line,
            ):
                return {name: file[name] for name in counted(file.files, line)}
        except Exception as error:  # noqa: BLE001 (a damaged archive may raise anything)
            raise ValueError(f"{path} is damaged, or no .npz file: {error}") from None
    found = load_checkpoint(str(path), format=path.suffix[1:])
    texts = [name for name, value in found.items() if not isinstance(value, Tensor)]
    _torch_files.say_left_out(texts)
    return {name: value.asnumpy() for name, value in found.items() if isinstance(value, Tensor)}


def write(values: dict[str, Array], path: pathlib.Path) -> None:
    """Write NumPy arrays, by name, to a file of weights in the format of the file's suffix.

    Raises:
        ValueError: the format does not support a dtype, or is that of PyTorch, which is not
            installed.
        OSError: the file cannot be written.
    """
    if path.suffix in TORCH:
        with status_line(f"saving {path}"), replacing(str(path)) as file:
            _torch_files.write(values, path, file)
    elif path.suffix == ".npz":
        odd = [name for name, array in values.items() if array.dtype.kind not in "biufc"]
        if odd:
            raise ValueError(
                f".npz has no dtype {values[odd[0]].dtype.name}, which {odd[0]} has; write "
                ".safetensors"
            )
        with status_line(f"saving {path}"), replacing(str(path)) as file:
            np.savez(file, **cast("dict[str, Any]", values))
    else:
        tensors: dict[str, Tensor] = {}
        for name, array in values.items():
            try:
                tensors[name] = Tensor(array)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name} cannot be in a {path.suffix} file: {error}") from None
        save_checkpoint(tensors, str(path), format=path.suffix[1:])
