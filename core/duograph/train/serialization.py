"""Saving and loading: save_checkpoint, load_checkpoint, load_param_into_net.

Everything is checked before the first write: a file that does not fit changes nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentValueError, CheckpointError
from ..nn._tree import StateMismatch
from ..nn.cell import Cell
from ..parameter import Parameter
from ..tensor import Tensor
from . import _checkpoint_file

__all__ = [
    "save_checkpoint", "load_checkpoint", "load_param_into_net", "ckpt_to_safetensors",
    "safetensors_to_ckpt", "async_ckpt_thread_status",
]  # fmt: skip

_writers: list[threading.Thread] = []


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: str,
    integrated_save: bool = True,
    async_save: bool | str = False,
    append_dict: Mapping[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **kwargs: Any,
) -> None:
    """Write Parameters to a file (`mindspore.save_checkpoint`).

    The bytes are safetensors under either `format`; the file is replaced at once, when all of it is
    on disk.

    Args:
        save_obj: Cell (its Parameters by name, and its buffers), dictionary from names to Tensors,
            or list of ``{"name": ..., "data": ...}``.
        ckpt_file_name: where; the suffix of the format is added when it is missing.
        async_save: write in a thread.
        append_dict: more entries: numbers, texts, Tensors.
        choice_func: keeps the names for which it returns True.
        crc_check: put a checksum into the file.
        format: ``"ckpt"`` or ``"safetensors"``: the suffix.

    Raises:
        TypeError: something that cannot be saved.
        ValueError: an unknown format, nothing to save, or `enc_key`: files are not encrypted here.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
        >>> ms.save_checkpoint(ms.nn.Dense(2, 1), path, append_dict={"epoch": 3})
        >>> list(ms.load_checkpoint(path))
        ['weight', 'bias', 'epoch']
    """
    del integrated_save, enc_mode, kwargs
    if format not in ("ckpt", "safetensors"):
        raise ArgumentValueError(
            f"save_checkpoint: got format={format!r}; wanted 'ckpt' or 'safetensors'"
        )
    if enc_key is not None:
        raise ArgumentValueError(
            "save_checkpoint: got enc_key; files are not encrypted here, wanted None"
        )
    path = _with_suffix(ckpt_file_name, format)
    entries: dict[str, Any] = {}
    for name, value in _entries(save_obj):
        if choice_func is None or choice_func(name):
            entries[name] = _saved(name, value)
    for name, value in _appended(append_dict):
        entries[name] = _saved(name, value)
    if async_save:
        for name, value in entries.items():
            if not isinstance(value, str):
                entries[name] = np.array(value)
        writer = threading.Thread(
            target=_checkpoint_file.write, args=(path, entries, crc_check), name="save_checkpoint"
        )
        _writers[:] = [t for t in _writers if t.is_alive()]
        _writers.append(writer)
        writer.start()
    else:
        _checkpoint_file.write(path, entries, crc_check)


def async_ckpt_thread_status() -> bool:
    """Whether a thread that `save_checkpoint(async_save=True)` started is still writing."""
    return any(t.is_alive() for t in _writers)


def _with_suffix(name: Any, format: str) -> str:
    if not isinstance(name, (str, os.PathLike)):
        raise ArgumentError(f"save_checkpoint: got ckpt_file_name={name!r}; wanted a path")
    path = os.fspath(name)
    if not path:
        raise ArgumentValueError("save_checkpoint: got an empty ckpt_file_name; wanted a path")
    return path if path.endswith("." + format) else f"{path}.{format}"


def _entries(save_obj: Any) -> list[tuple[str, Any]]:
    if isinstance(save_obj, Cell):
        save_obj.check_names()
        found = [(p.name, p) for p in save_obj.get_parameters()]
        state = save_obj.state_dict(keep_vars=True)
        return found + [(n, t) for n, t in state.items() if not isinstance(t, Parameter)]
    if isinstance(save_obj, Mapping):
        return list(save_obj.items())
    if isinstance(save_obj, (list, tuple)):
        pairs = []
        for item in save_obj:
            if not isinstance(item, Mapping) or "name" not in item or "data" not in item:
                raise ArgumentError(
                    f"save_checkpoint: got {item!r} in the list; wanted {{'name': ..., 'data': ...}}"
                )
            pairs.append((item["name"], item["data"]))
        return pairs
    raise ArgumentError(
        f"save_checkpoint: got {type(save_obj).__name__}; wanted a Cell, a dictionary or a list"
    )


def _appended(append_dict: Any) -> list[tuple[str, Any]]:
    if append_dict is None:
        return []
    if isinstance(append_dict, Cell):
        return _entries(append_dict)
    if not isinstance(append_dict, Mapping):
        raise ArgumentError(
            f"save_checkpoint: got append_dict of {type(append_dict).__name__}; wanted a dictionary"
        )
    return list(append_dict.items())


def _saved(name: Any, value: Any) -> Any:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"save_checkpoint: got the name {name!r}; wanted a string")
    if isinstance(value, str):
        return value
    if isinstance(value, (Tensor, bool, int, float, np.ndarray, np.generic)):
        return (value if isinstance(value, Tensor) else Tensor(value)).asnumpy()
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        return value[0].asnumpy()
    raise ArgumentError(
        f"save_checkpoint: got {type(value).__name__} for {name!r}; wanted a Tensor, a number or a text"
    )


def load_checkpoint(
    ckpt_file_name: str,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, Any]:
    """Read a file to a dictionary from names to Parameters (`mindspore.load_checkpoint`).

    What the file is is found by its content: safetensors, or MindSpore's own format.

    Args:
        ckpt_file_name: the file.
        net: Cell to load into as well, as `load_param_into_net` does.
        strict_load: with `net`: dtypes must agree.
        filter_prefix: text, or list of them: names that start so are left out.
        specify_prefix: text, or list of them: only names that start so are kept.
        choice_func: keeps the names for which it returns True.
        crc_check: check the checksum that `save_checkpoint` put in.

    Raises:
        ValueError: no such file; a truncated, damaged or foreign one; nothing left after filtering.

    Examples:
        See `save_checkpoint`.
    """
    del dec_mode, remove_redundancy, format
    if dec_key is not None:
        raise ArgumentValueError(
            "load_checkpoint: got dec_key; encrypted files are not read here, wanted None"
        )
    if not isinstance(ckpt_file_name, (str, os.PathLike)):
        raise ArgumentError(f"load_checkpoint: got {ckpt_file_name!r}; wanted a path")
    left_out = _prefixes("filter_prefix", filter_prefix)
    kept = _prefixes("specify_prefix", specify_prefix)
    found: dict[str, Any] = {}
    for name, value in _checkpoint_file.read(os.fspath(ckpt_file_name), crc_check).items():
        if left_out and name.startswith(left_out):
            continue
        if kept and not name.startswith(kept):
            continue
        if choice_func is not None and not choice_func(name):
            continue
        found[name] = value if isinstance(value, str) else Parameter(Tensor(value), name=name)
    if not found:
        raise CheckpointError(
            f"load_checkpoint: nothing is left of {os.fspath(ckpt_file_name)!r} with "
            f"filter_prefix={filter_prefix!r} and specify_prefix={specify_prefix!r}"
        )
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


def _prefixes(what: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, (list, tuple)) or not all(isinstance(v, str) and v for v in several):
        raise ArgumentError(
            f"load_checkpoint: got {what}={value!r}; wanted a text or a list of them"
        )
    return tuple(several)


def load_param_into_net(
    net: Cell,
    parameter_dict: Mapping[str, Any],
    strict_load: bool = False,
    remove_redundancy: bool = False,
) -> tuple[list[str], list[str]]:
    """Copy values into the Parameters of a Cell, by name (`mindspore.load_param_into_net`).

    When some Parameters find no value and the names in the dictionary all have one prefix more than
    theirs, that prefix is dropped.

    Args:
        net: the Cell.
        parameter_dict: what `load_checkpoint` returned, or any dictionary from names to Parameters.
        strict_load: refuse values of another dtype; else floats are cast to floats.

    Returns:
        Names of Parameters that got no value, and names in the dictionary that were not used.

    Raises:
        TypeError: `net` is no Cell, `parameter_dict` no dictionary from names to Parameters.
        ValueError: a value of another shape, or of a dtype that cannot be cast (also a
            RuntimeError). Nothing is changed then.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> ms.load_param_into_net(net, {"weight": ms.Parameter(ms.ops.ones((1, 2), ms.float32), name="weight")})
        (['bias'], [])
    """
    del remove_redundancy
    if not isinstance(net, Cell):
        raise ArgumentError(f"load_param_into_net: got {type(net).__name__}; wanted a Cell")
    if not isinstance(parameter_dict, Mapping):
        raise ArgumentError(
            f"load_param_into_net: got {type(parameter_dict).__name__}; wanted a dictionary"
        )
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, (Parameter, str)):
            raise ArgumentError(
                f"load_param_into_net: got {name!r} with {type(value).__name__}; "
                f"wanted names with Parameters"
            )
    targets: dict[str, Tensor] = {p.name: p for p in net.get_parameters()}
    buffers = {
        n: t for n, t in net.state_dict(keep_vars=True).items() if not isinstance(t, Parameter)
    }
    targets.update({n: t for n, t in buffers.items() if n not in targets})
    matched = {n: v for n, v in parameter_dict.items() if n in targets}
    if not strict_load:
        missing = [n for n in targets if n not in matched]
        matched.update(_without_prefix(missing, parameter_dict, matched))
    used: set[str] = set(matched) & set(parameter_dict)
    problems = [
        problem
        for name, value in matched.items()
        if (problem := _problem(name, targets[name], value, strict_load))
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise StateMismatch(f"load_param_into_net: {problems[0]}{more}; nothing was changed")
    for name, value in matched.items():
        _write(targets[name], value)
    not_loaded = [n for n, t in targets.items() if n not in matched and n not in buffers]
    return not_loaded, [n for n in parameter_dict if n not in used]


def _without_prefix(
    missing: Sequence[str], values: Mapping[str, Any], matched: Mapping[str, Any]
) -> dict[str, Any]:
    """Values for the missing names under the one prefix that gives all of them, if there is one."""
    if not missing:
        return {}
    free = [n for n in values if n not in matched and isinstance(values[n], Parameter)]
    for name in free:
        if name.endswith("." + missing[0]):
            prefix = name[: -len(missing[0])]
            found = {m: values[prefix + m] for m in missing if prefix + m in values}
            if len(found) == len(missing):
                return found
    return {}


def _problem(name: str, target: Tensor, value: Any, strict: bool) -> str | None:
    if not isinstance(value, Tensor):
        return f"{name} is a text in the dictionary; wanted a Parameter"
    if value.shape != target.shape:
        return f"{name} has shape {value.shape} in the dictionary and {target.shape} in the net"
    if value.dtype is not target.dtype:
        floats = value.dtype.is_floating and target.dtype.is_floating
        integers = value.dtype.is_integer and target.dtype.is_integer
        if strict or not (floats or integers):
            return (
                f"{name} has dtype {value.dtype.name} in the dictionary and {target.dtype.name} "
                f"in the net"
            )
    return None


def _write(target: Tensor, value: Tensor) -> None:
    if value.dtype is not target.dtype:
        value = Tensor(value.asnumpy(), target.dtype)
    if isinstance(target, Parameter):
        target.set_data(value)
    else:
        target.copy_(value)


def ckpt_to_safetensors(
    file_path: str,
    save_path: str | None = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Write a checkpoint again as ``.safetensors``, renamed by `name_map`
    (`mindspore.ckpt_to_safetensors`).
    """
    del file_name_regex, processes_num
    _convert(file_path, save_path, name_map, "safetensors")


def safetensors_to_ckpt(
    file_path: str,
    save_path: str | None = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Write a checkpoint again as ``.ckpt``, renamed by `name_map`
    (`mindspore.safetensors_to_ckpt`).
    """
    del file_name_regex, processes_num
    _convert(file_path, save_path, name_map, "ckpt")


def _convert(path: str, folder: str | None, names: Mapping[str, str] | None, suffix: str) -> None:
    found = _checkpoint_file.read(path, False)
    names = names or {}
    stem = os.path.splitext(os.path.basename(path))[0]
    target = os.path.join(folder or os.path.dirname(path), f"{stem}.{suffix}")
    _checkpoint_file.write(target, {names.get(n, n): v for n, v in found.items()}, False)
