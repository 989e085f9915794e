"""Checkpoints of several files: conversion between formats, and networks saved in parts.

For user code. `files` reads and writes single files and loads values into a network.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence

from ...call_errors import explaining
from ...errors import ArgumentError, ArgumentValueError, CheckpointError
from ...nn.cell import Cell
from ...option_checks import check_options
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _background_saves, _checkpoint_file
from .._encryption import Secret, secret_of
from .files import NameFilter, load_param_into_net, read_chosen, save_checkpoint

__all__ = [
    "ckpt_to_safetensors", "safetensors_to_ckpt", "load_segmented_checkpoints",
    "load_distributed_checkpoint",
]  # fmt: skip

_FORMATS = ("ckpt", "safetensors")
_NAME_MAP = "param_name_map.json"  # in a folder: which file holds which entry
_SETTINGS = "hyper_param.safetensors"  # in a folder: entries that the name map need not list


# ---- conversion ---------------------------------------------------------------------------------


@explaining
def ckpt_to_safetensors(
    file_path: str,
    save_path: str | None = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Convert checkpoints to ``.safetensors`` (`mindspore.ckpt_to_safetensors`).

    Args:
        file_path: a file; or a folder, to convert every ``.ckpt`` file in it and in its sub-folders
            ``rank_0``, ``rank_1``, ...
        save_path: the folder to write to, with the same sub-folders; it is created if necessary. By
            default each file is written next to its source.
        name_map: dictionary from old names of entries to new ones.
        file_name_regex: regular expression that is searched in the name of each file of a folder,
            or in `file_path` itself; files without a match are not converted.

    Raises:
        TypeError: `name_map` is no dictionary.
        ValueError: a file has another format or ending, or there is no file to convert.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
        >>> ms.save_checkpoint(ms.nn.Dense(2, 1), path)
        >>> ms.ckpt_to_safetensors(path, name_map={"bias": "beta"})
        >>> list(ms.load_checkpoint(path.replace(".ckpt", ".safetensors")))
        ['weight', 'beta']
    """
    check_options("ckpt_to_safetensors", processes_num=processes_num)
    _convert_all(
        "ckpt_to_safetensors", file_path, save_path, name_map, file_name_regex,
        ("ckpt", "safetensors"),
    )  # fmt: skip


@explaining
def safetensors_to_ckpt(
    file_path: str,
    save_path: str | None = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Convert checkpoints to ``.ckpt`` (`mindspore.safetensors_to_ckpt`).

    Args:
        file_path: a file; or a folder, to convert every ``.safetensors`` file in it and in its
            sub-folders ``rank_0``, ``rank_1``, ...
        save_path: the folder to write to, with the same sub-folders; it is created if necessary. By
            default each file is written next to its source.
        name_map: dictionary from old names of entries to new ones.
        file_name_regex: regular expression that is searched in the name of each file of a folder,
            or in `file_path` itself; files without a match are not converted.

    Raises:
        TypeError: `name_map` is no dictionary.
        ValueError: a file has another format or ending, or there is no file to convert.

    Examples:
        See `ckpt_to_safetensors`.
    """
    check_options("safetensors_to_ckpt", processes_num=processes_num)
    _convert_all(
        "safetensors_to_ckpt", file_path, save_path, name_map, file_name_regex,
        ("safetensors", "ckpt"),
    )  # fmt: skip


def _convert_all(
    function: str,
    path: str,
    folder: str | None,
    names: Mapping[str, str] | None,
    pattern: str | None,
    suffixes: tuple[str, str],
) -> None:
    """Convert a file, or the files of a folder, from the format `suffixes[0]` to `suffixes[1]`.

    Args:
        function: name of the public function, for messages.
        path: the file or folder.
        folder: folder for the new files; None means the folder of the old ones.
        names: old name -> new name of entries; None keeps all names.
        pattern: regular expression that the files' names must match; None accepts all.
        suffixes: the two formats, as file name suffixes without the dot.
    """
    _check_name_map(function, names)
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{function}: got file_path={path!r}; wanted a path")
    path = os.fspath(path)
    if os.path.isdir(path):
        for relative in _chosen(function, path, pattern, suffixes[0]):
            target = os.path.dirname(os.path.join(folder or path, relative))
            _convert(os.path.join(path, relative), target, names, suffixes[1])
        return
    if not path.endswith("." + suffixes[0]):
        raise CheckpointError(f"{function}: got {path!r}; wanted a file *.{suffixes[0]}")
    if pattern is not None and not re.search(pattern, path):
        raise CheckpointError(f"{function}: got {path!r}, which {pattern!r} does not match")
    _convert(path, folder or os.path.dirname(path), names, suffixes[1])


def _check_name_map(function: str, names: object) -> None:
    if names is not None and not isinstance(names, Mapping):
        raise ArgumentError(f"{function}: got name_map={names!r}; wanted a dictionary")


def _chosen(function: str, folder: str, pattern: str | None, suffix: str) -> list[str]:
    """Return the paths of the files of a folder to convert, relative to the folder.

    These files end in `suffix`, lie in the folder or in a sub-folder ``rank...``, and their names
    match `pattern` if it is given. Raises CheckpointError if there are none.
    """
    ranks = [n for n in _listed(folder) if n.startswith("rank")]
    groups = ["", *(n for n in ranks if os.path.isdir(os.path.join(folder, n)))]
    found = [
        os.path.join(group, name)
        for group in groups
        for name in _listed(os.path.join(folder, group))
        if name.endswith("." + suffix) and (pattern is None or re.search(pattern, name))
    ]
    if not found:
        raise CheckpointError(
            f"{function}: got the folder {folder!r}, which has no file *.{suffix}"
            + (f" that {pattern!r} matches" if pattern else "")
        )
    return found


def _listed(folder: str) -> list[str]:
    return sorted(os.listdir(folder))


def _convert(path: str, folder: str, names: Mapping[str, str] | None, suffix: str) -> None:
    _background_saves.wait(path)
    found = _checkpoint_file.read(path, False)
    names = names or {}
    stem = os.path.splitext(os.path.basename(path))[0]
    if folder:
        os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, f"{stem}.{suffix}")
    _background_saves.wait(target)
    _checkpoint_file.write(target, {names.get(n, n): v for n, v in found.items()}, False)


# ---- networks in parts --------------------------------------------------------------------------


@explaining
def load_segmented_checkpoints(
    ckpt_file_dir: str,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
) -> dict[str, Parameter | str]:
    """Read all ``.ckpt`` files of a folder into one dictionary (`load_segmented_checkpoints`).

    The files are read in the order of their names; of several entries with the same name the last
    is kept. Sub-folders and other files are ignored.

    Args:
        ckpt_file_dir: the folder.
        net: Cell to load the values into, as `load_param_into_net` does, after all files are read.
        strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func: see
            `load_checkpoint`. A file of which no entry is kept is no error as long as another file
            has one.

    Raises:
        TypeError: `ckpt_file_dir` is no path.
        ValueError: there is no such folder, it has no ``.ckpt`` file, one of them is damaged, or
            no entry is left after filtering.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> net = ms.nn.Dense(2, 1)
        >>> ms.save_checkpoint({"weight": net.weight}, os.path.join(folder, "part0"))
        >>> ms.save_checkpoint({"bias": net.bias}, os.path.join(folder, "part1"))
        >>> list(ms.load_segmented_checkpoints(folder, ms.nn.Dense(2, 1)))
        ['weight', 'bias']
    """
    function = "load_segmented_checkpoints"
    folder = _folder(function, "ckpt_file_dir", ckpt_file_dir)
    secret = secret_of(function, "dec", dec_key, dec_mode)
    names = NameFilter(filter_prefix, specify_prefix, choice_func)
    found: dict[str, Parameter | str] = {}
    for path in _files(function, folder, "ckpt"):
        found.update(read_chosen(path, names, secret))
    if not found:
        raise names.nothing_left(f"{function}: nothing is left of {folder!r}")
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


def _folder(function: str, argument: str, path: object) -> str:
    """Return the path `path` of an existing folder as a string.

    `function` and `argument` are the names of the public function and its argument, for the error
    that is raised if there is no such folder.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{function}: got {argument}={path!r}; wanted the path of a folder")
    folder = os.fspath(path)
    if not os.path.isdir(folder):
        raise CheckpointError(f"{function}: got {argument}={folder!r}; there is no such folder")
    return str(folder)


def _files(function: str, folder: str, suffix: str) -> list[str]:
    """Wait for background saves; return the paths of the files of a folder that end in a suffix.

    Raises CheckpointError if there are none.
    """
    _background_saves.wait()
    found = [os.path.join(folder, n) for n in _listed(folder) if n.endswith("." + suffix)]
    if not found:
        raise CheckpointError(f"{function}: got {folder!r}, which has no file *.{suffix}")
    return found


@explaining
def load_distributed_checkpoint(
    network: Cell | None,
    checkpoint_filenames: Sequence[str] | None = None,
    predict_strategy: object = None,
    train_strategy_filename: str | None = None,
    strict_load: bool = False,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    format: str = "ckpt",
    unified_safetensors_dir: str | None = None,
    dst_safetensors_dir: str | None = None,
    rank_id: int | None = None,
    output_format: str = "safetensors",
    name_map: Mapping[str, str] | None = None,
    max_process_num: int = 64,
    return_param_dict: bool = False,
) -> tuple[list[str], list[str]] | dict[str, str | Parameter] | bool:
    """Load a network from a folder of ``.safetensors`` (`mindspore.load_distributed_checkpoint`).

    Only whole Parameters are read, for one process. Files that each hold a slice of a Parameter,
    which MindSpore combines by a strategy file, are not supported; therefore `format` must be
    given.

    If the folder has a file ``param_name_map.json``, a dictionary from names of Parameters to names
    of files, only these Parameters are read, and all entries of ``hyper_param.safetensors``.
    Otherwise every entry of every file is read; MindSpore reads a single file in that case.

    Args:
        network: Cell to load the values into, or None to write them to a file.
        strict_load: refuse values of another dtype, as in `load_param_into_net`.
        dec_key, dec_mode: key and mode of encrypted files, as given to `save_checkpoint`.
        format: must be ``"safetensors"``.
        unified_safetensors_dir: the folder.
        dst_safetensors_dir: without `network`: the folder to write to; the file in it is
            ``rank_R/net.safetensors`` or ``rank_R/net.ckpt``.
        rank_id: without `network`: the number R in that path; 0 by default.
        output_format: without `network`: ``"ckpt"`` or ``"safetensors"``.
        name_map: dictionary from names of Parameters to names of entries in the files.
        return_param_dict: return the values and do not change the network.

    Returns:
        The names of Parameters without a value and of values without a Parameter, as for
        `load_param_into_net`; with `return_param_dict` a dictionary from names to Parameters;
        without `network` True.

    Raises:
        TypeError: `network` is neither a Cell nor None, or `name_map` no dictionary.
        ValueError: `format` is another one; the folder is not given, does not exist or has no
            files; an entry or file of the name map is missing, or a name is in two files; a file is
            damaged; a value does not fit the network.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> net = ms.nn.Dense(2, 1)
        >>> ms.save_checkpoint(net, os.path.join(folder, "net"), format="safetensors")
        >>> ms.load_distributed_checkpoint(
        ...     net, format="safetensors", unified_safetensors_dir=folder
        ... )
        ([], [])
    """
    function = "load_distributed_checkpoint"
    check_options(
        function, checkpoint_filenames=checkpoint_filenames, predict_strategy=predict_strategy,
        train_strategy_filename=train_strategy_filename, max_process_num=max_process_num,
    )  # fmt: skip
    if format != "safetensors":
        raise ArgumentValueError(
            f"{function}: got format={format!r}; wanted 'safetensors': slices of Parameters are "
            f"not put together; load_segmented_checkpoints reads a folder of whole ones as ckpt"
        )
    if output_format not in _FORMATS:
        raise ArgumentValueError(
            f"{function}: got output_format={output_format!r}; wanted 'ckpt' or 'safetensors'"
        )
    if network is not None and not isinstance(network, Cell):
        raise ArgumentError(f"{function}: got {type(network).__name__}; wanted a Cell or None")
    if unified_safetensors_dir is None or (network is None and dst_safetensors_dir is None):
        which = "unified_safetensors_dir" if unified_safetensors_dir is None else "network"
        raise ArgumentValueError(
            f"{function}: got {which}=None; wanted unified_safetensors_dir, and a network or "
            f"dst_safetensors_dir"
        )
    _check_name_map(function, name_map)
    folder = _folder(function, "unified_safetensors_dir", unified_safetensors_dir)
    secret = secret_of(function, "dec", dec_key, dec_mode)
    values = {
        name: value if isinstance(value, str) else Parameter(Tensor(value), name=name)
        for name, value in _unified(folder, name_map or {}, secret).items()
    }
    if network is None:
        target = os.path.join(os.fspath(str(dst_safetensors_dir)), f"rank_{rank_id or 0}")
        os.makedirs(target, exist_ok=True)
        save_checkpoint(values, os.path.join(target, "net"), format=output_format)
        return True
    return values if return_param_dict else load_param_into_net(network, values, strict_load)


def _unified(
    folder: str, name_map: Mapping[str, str], secret: Secret | None
) -> dict[str, _checkpoint_file.Entry]:
    """Return the values in the safetensors files of a folder, by the names of the Parameters.

    The file ``param_name_map.json``, if there is one, says which file has the value of a Parameter;
    otherwise all entries of all files are returned.

    Args:
        name_map: name of a Parameter -> name of its entry; without an item the names are equal.
        secret: the key of encrypted files, or None.

    Raises:
        CheckpointError: there are no files, an entry is missing, or two files have the same entry.
    """
    function = "load_distributed_checkpoint"
    files = {
        os.path.basename(path): _checkpoint_file.read(path, False, secret)
        for path in _files(function, folder, "safetensors")
    }
    places = _places(function, os.path.join(folder, _NAME_MAP))
    found: dict[str, _checkpoint_file.Entry] = {}
    if places is None:
        names = {theirs: ours for ours, theirs in name_map.items()}
        for file, entries in files.items():
            for name, value in entries.items():
                ours = names.get(name, name)
                if ours in found:
                    raise CheckpointError(
                        f"{function}: {folder!r} has {ours!r} twice, also in {file!r}; delete one, "
                        f"or say in {_NAME_MAP} which file to read"
                    )
                found[ours] = value
        return found
    for ours, file in places.items():
        name = name_map.get(ours, ours)
        if file not in files or name not in files[file]:
            what = f"has no entry {name!r}" if file in files else "is not there"
            raise CheckpointError(
                f"{function}: {_NAME_MAP} names the file {file!r} for {ours!r}, which {what}"
            )
        found[ours] = files[file][name]
    return {**found, **files.get(_SETTINGS, {})}


def _places(function: str, path: str) -> dict[str, str] | None:
    """Read a file ``param_name_map.json``, a dictionary from names of Parameters to names of files.

    Return None if there is no such file; `function` is the name of the public function, for
    messages.
    """
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        try:
            places = json.load(f)
        except ValueError as error:
            raise CheckpointError(f"{function}: {path!r} is damaged ({error})") from None
    if not isinstance(places, dict) or not all(isinstance(v, str) for v in places.values()):
        raise CheckpointError(
            f"{function}: {path!r} is no dictionary from names of Parameters to names of files"
        )
    return places
