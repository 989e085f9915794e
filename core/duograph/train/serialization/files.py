"""Saving and loading of Parameters: save_checkpoint, load_checkpoint, load_param_into_net.

User code and callbacks call it; `_checkpoint_file` implements the formats, and `folders` the
functions for several files. Loading checks all entries before it changes the first Parameter, so
that a file that does not match a network never changes a part of the network.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from ...call_errors import explaining
from ...errors import ArgumentError, ArgumentValueError, CheckpointError
from ...nn._tree import StateMismatch
from ...nn.cell import Cell
from ...option_checks import check_options, warn_unused
from ...parameter import Parameter
from ...status_line import counted, status_line
from ...tensor import Tensor
from .. import _background_saves, _checkpoint_file
from .._encryption import Secret, secret_of

__all__ = [
    "save_checkpoint", "load_checkpoint", "load_checkpoint_async", "load_param_into_net",
    "async_ckpt_thread_status",
]  # fmt: skip


@explaining
def save_checkpoint(
    save_obj: object,
    ckpt_file_name: str,
    integrated_save: bool = True,
    async_save: bool | str = False,
    append_dict: Mapping[str, object] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **kwargs: object,
) -> None:
    """Write Parameters to a file (`mindspore.save_checkpoint`).

    A ``ckpt`` file has MindSpore's own format, which MindSpore reads. The file is replaced
    atomically, after all data is on disk, and keeps its permissions. Saves to one path take effect
    in the order of the calls, asynchronous ones included.

    Args:
        save_obj: Cell (its Parameters by name, and its buffers), dictionary from names to Tensors,
            or list of ``{"name": ..., "data": ...}``.
        ckpt_file_name: path; the suffix of the format is added if it is missing.
        async_save: write in a background thread; ``"thread"`` and ``"process"`` do the same as
            True. If the write fails, the next call of `save_checkpoint`, of
            `async_ckpt_thread_status`, or of `load_checkpoint` for this file raises the error;
            without such a call it is printed when the process ends. A save that has not begun when
            a newer one to the same path is requested is skipped.
        append_dict: additional entries: numbers, strings, Tensors.
        enc_key: bytes of the key to encrypt the file with: 16, 24 or 32 for AES, 16 for SM4. The
            package `cryptography` is needed (``pip install duograph[encryption]``); MindSpore
            cannot read such files, and duograph cannot read encrypted files of MindSpore.
        enc_mode: ``"AES-GCM"``, ``"AES-CBC"`` or ``"SM4-CBC"``.
        choice_func: function of an entry's name; entries for which it returns False are left out.
        crc_check: add a checksum of all names, types and values to the file.
        format: ``"ckpt"`` or ``"safetensors"``, which is also the suffix.

    Raises:
        TypeError: an entry has a type that cannot be saved.
        ValueError: the format or mode is unknown, there is nothing to save, the key has a wrong
            length, or the package `cryptography` is missing; or an earlier asynchronous save
            failed, in which case this call saves nothing.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
        >>> ms.save_checkpoint(ms.nn.Dense(2, 1), path, append_dict={"epoch": 3})
        >>> list(ms.load_checkpoint(path))
        ['weight', 'bias', 'epoch']
    """
    check_options("save_checkpoint", **kwargs)
    secret = secret_of("save_checkpoint", "enc", enc_key, enc_mode)
    if format not in ("ckpt", "safetensors"):
        raise ArgumentValueError(
            f"save_checkpoint: got format={format!r}; wanted 'ckpt' or 'safetensors'"
        )
    if not isinstance(async_save, bool) and async_save not in ("thread", "process"):
        raise (ArgumentValueError if isinstance(async_save, str) else ArgumentError)(
            f"save_checkpoint: got async_save={async_save!r}; wanted True, False or 'thread'; "
            f"'process' writes in a thread, too"
        )
    _check_choice("save_checkpoint", choice_func)
    path = _with_suffix(ckpt_file_name, format)
    _background_saves.raise_failures()
    entries: dict[str, _checkpoint_file.Entry] = {}
    wanted = [
        (n, v)
        for n, v in _entries(save_obj)
        if not _is_elsewhere(v) and (choice_func is None or choice_func(n))
    ]
    # reading a value waits for its device, and a Parameter without a value is initialised
    with status_line(f"reading the values for {path}", len(wanted), "values") as line:
        for name, value in counted(wanted, line):
            if isinstance(value, Parameter) and value.part is not None:
                raise ArgumentValueError(
                    f"save_checkpoint: {name} holds the part of rank {value.part.rank} of "
                    f"{value.part.size} ranks; save all parts with save_sharded_checkpoint, or "
                    "leave the optimiser out"
                )
            entries[name] = _saved(name, value)
    for name, value in _appended(append_dict):
        entries[name] = _saved(name, value)
    if async_save:
        for name, value in entries.items():
            if not isinstance(value, str):
                entries[name] = np.array(value)
        _background_saves.start(
            path, lambda: _checkpoint_file.write(path, entries, crc_check, secret)
        )
    else:
        _background_saves.wait(path)
        _checkpoint_file.write(path, entries, crc_check, secret)


def async_ckpt_thread_status() -> bool:
    """Return whether a thread of `save_checkpoint(async_save=True)` is still writing.

    Raises:
        ValueError: no thread is writing, and an asynchronous save has failed.
    """
    if _background_saves.active():
        return True
    _background_saves.raise_failures()
    return False


def _is_elsewhere(value: object) -> bool:
    """Return whether a value is a Parameter of a pipeline stage that this rank does not run."""
    placement = value._placement if isinstance(value, Parameter) else None
    return placement is not None and placement.elsewhere is not None


def _check_choice(function: str, choice_func: object) -> None:
    if choice_func is not None and not callable(choice_func):
        raise ArgumentError(
            f"{function}: got choice_func={choice_func!r}; wanted a function of a name"
        )


def _with_suffix(name: object, format: str) -> str:
    if not isinstance(name, (str, os.PathLike)):
        raise ArgumentError(f"save_checkpoint: got ckpt_file_name={name!r}; wanted a path")
    path = os.fspath(name)
    if not path:
        raise ArgumentValueError("save_checkpoint: got an empty ckpt_file_name; wanted a path")
    return path if path.endswith("." + format) else f"{path}.{format}"


def _entries(save_obj: object) -> list[tuple[str, object]]:
    """Return the (name, value) pairs of `save_obj`.

    It is a Cell, a dictionary from names to values, or a list of dictionaries with the keys "name"
    and "data".

    Raises:
        ArgumentError: `save_obj` is none of these.
    """
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
                    f"save_checkpoint: got {item!r} in the list; wanted {{'name': ..., 'data': "
                    f"...}}"
                )
            pairs.append((item["name"], item["data"]))
        return pairs
    raise ArgumentError(
        f"save_checkpoint: got {type(save_obj).__name__}; wanted a Cell, a dictionary or a list"
    )


def _appended(append_dict: object) -> list[tuple[str, object]]:
    """Return the (name, value) pairs of `append_dict`: a dictionary or a Cell.

    The list is empty for None.
    """
    if append_dict is None:
        return []
    if isinstance(append_dict, Cell):
        return _entries(append_dict)
    if not isinstance(append_dict, Mapping):
        raise ArgumentError(
            f"save_checkpoint: got append_dict of {type(append_dict).__name__}; wanted a dictionary"
        )
    return list(append_dict.items())


def _saved(name: object, value: object) -> _checkpoint_file.Entry:
    """Convert a value to the array or string that a checkpoint file stores.

    Raises:
        ArgumentError: the value is neither a Tensor, an array, a number nor a string, or `name`,
            its name in the file, is no string or empty.
        ArgumentValueError: the file format reserves the name.
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"save_checkpoint: got the name {name!r}; wanted a string")
    if name == "__metadata__":
        raise ArgumentValueError(
            "save_checkpoint: got the name '__metadata__', which the format reserves; rename it"
        )
    if isinstance(value, str):
        return value
    if isinstance(value, (Tensor, bool, int, float, np.ndarray, np.generic)):
        return (value if isinstance(value, Tensor) else Tensor(value)).asnumpy()
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        return value[0].asnumpy()
    raise ArgumentError(
        f"save_checkpoint: got {type(value).__name__} for {name!r}; wanted a Tensor, a number "
        f"or a text"
    )


@explaining
def load_checkpoint(
    ckpt_file_name: str,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, Parameter | str]:
    """Read a file into a dictionary from names to Parameters (`mindspore.load_checkpoint`).

    The format, safetensors or MindSpore's own, is detected from the content. Asynchronous saves of
    this process to the file are awaited first.

    Args:
        ckpt_file_name: path of the file.
        net: Cell to load the values into, as `load_param_into_net` does.
        strict_load: with `net`: require equal dtypes.
        filter_prefix: prefix, or list of prefixes, of the names to leave out.
        specify_prefix: prefix, or list of prefixes, of the names to keep.
        choice_func: function of an entry's name; entries for which it returns False are left out.
        dec_key, dec_mode: key and mode of an encrypted file, as given to `save_checkpoint`.
        crc_check: verify the checksum written by `save_checkpoint`.

    Raises:
        ValueError: the file does not exist, is truncated or damaged, or has another format; or no
            entry is left after filtering; or an asynchronous save to the file failed.

    Examples:
        See `save_checkpoint`.
    """
    secret = secret_of("load_checkpoint", "dec", dec_key, dec_mode)
    if strict_load and net is None:
        warn_unused("load_checkpoint", "strict_load")
    if not isinstance(ckpt_file_name, (str, os.PathLike)):
        raise ArgumentError(f"load_checkpoint: got {ckpt_file_name!r}; wanted a path")
    path = os.fspath(ckpt_file_name)
    if format not in ("ckpt", "safetensors"):
        raise ArgumentValueError(
            f"load_checkpoint: got format={format!r}; wanted 'ckpt' or 'safetensors'"
        )
    names = NameFilter(filter_prefix, specify_prefix, choice_func)
    found = read_chosen(path, names, secret, crc_check)
    if not found:
        raise names.nothing_left(f"load_checkpoint: nothing is left of {path!r}")
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


class NameFilter:
    """A filter of checkpoint entries by name, made from arguments of `load_checkpoint`.

    An entry is kept if its name starts with none of `filter_prefix`, with one of `specify_prefix`
    (if given), and `choice_func` (if given) returns True for it.

    Raises:
        ArgumentError: prefixes are not strings.
    """

    def __init__(
        self,
        filter_prefix: str | Sequence[str] | None,
        specify_prefix: str | Sequence[str] | None,
        choice_func: Callable[[str], bool] | None,
    ) -> None:
        self.left_out = _prefixes("filter_prefix", filter_prefix)
        self.kept = _prefixes("specify_prefix", specify_prefix)
        _check_choice("load_checkpoint", choice_func)
        self.choice = choice_func

    def keeps(self, name: str) -> bool:
        """Return whether to load the entry with this name."""
        if self.left_out and name.startswith(self.left_out):
            return False
        if self.kept and not name.startswith(self.kept):
            return False
        return self.choice is None or bool(self.choice(name))

    def nothing_left(self, what: str) -> CheckpointError:
        """Return the error for a filter that keeps no entry; `what` begins the message."""
        return CheckpointError(
            f"{what} with filter_prefix={list(self.left_out)}, specify_prefix={list(self.kept)} "
            f"and choice_func={self.choice}"
        )


def read_chosen(
    path: str, names: NameFilter, secret: Secret | None, crc_check: bool = False
) -> dict[str, Parameter | str]:
    """Read the entries of a file that `names` keeps, as Parameters and strings, by name.

    Background saves to the file are awaited first, and their failures raised. `secret` is None for
    a file that is not encrypted; `crc_check` verifies the checksum.
    """
    _background_saves.wait(path)
    _background_saves.raise_failures(path)
    with status_line(f"loading {path}"):
        return {
            name: value if isinstance(value, str) else Parameter(Tensor(value), name=name)
            for name, value in _checkpoint_file.read(path, crc_check, secret).items()
            if names.keeps(name)
        }


def _prefixes(argument: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Check an argument of `load_checkpoint` that holds prefixes; return them as a tuple.

    `argument` is its name and `value` its value; None gives an empty tuple.

    Raises:
        ArgumentError: the value is neither a string nor a list of strings, or one is empty.
    """
    if value is None:
        return ()
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, (list, tuple)) or not all(isinstance(v, str) and v for v in several):
        raise ArgumentError(
            f"load_checkpoint: got {argument}={value!r}; wanted a text or a list of them"
        )
    return tuple(several)


class ParamDictFuture:
    """The result of `load_checkpoint_async`: a dictionary that a background thread reads."""

    def __init__(self, future: concurrent.futures.Future[dict[str, Parameter | str]]) -> None:
        self._future = future

    def result(self) -> dict[str, Parameter | str]:
        """Wait for the thread; return what `load_checkpoint` returns, or raise what it raises."""
        return self._future.result()


@explaining
def load_checkpoint_async(
    ckpt_file_name: str,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
) -> ParamDictFuture:
    """Read a checkpoint file in a background thread (`mindspore.load_checkpoint_async`).

    The arguments are those of `load_checkpoint`. The method ``result()`` of the returned object
    waits for the thread, and returns or raises what `load_checkpoint` does. With `net`, the thread
    changes its Parameters; do not use them before ``result()`` has returned.

    Raises:
        TypeError: `ckpt_file_name` is no path. All other errors come from ``result()``.

    Examples:
        >>> import duograph as ms
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
        >>> ms.save_checkpoint(ms.nn.Dense(2, 1), path)
        >>> future = ms.load_checkpoint_async(path)
        >>> list(future.result())
        ['weight', 'bias']
    """
    if not isinstance(ckpt_file_name, (str, os.PathLike)):
        raise ArgumentError(f"load_checkpoint_async: got {ckpt_file_name!r}; wanted a path")
    executor = concurrent.futures.ThreadPoolExecutor(1, "load_checkpoint")
    future = executor.submit(
        load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode,
        specify_prefix, choice_func,
    )  # fmt: skip
    executor.shutdown(wait=False)
    return ParamDictFuture(future)


def load_param_into_net(
    net: Cell,
    parameter_dict: Mapping[str, Parameter | str],
    strict_load: bool = False,
    remove_redundancy: bool = False,
) -> tuple[list[str], list[str]]:
    """Copy values into the Parameters of a Cell, by name (`mindspore.load_param_into_net`).

    If some Parameters have no value in the dictionary, but all of them have one under their name
    with one common prefix, such as ``network.``, these values are used.

    Args:
        net: the Cell.
        parameter_dict: the result of `load_checkpoint`, or any dictionary from names to Parameters.
        strict_load: refuse values of another dtype; otherwise floating-point values are cast to
            floating-point Parameters, and integers to integer Parameters.

    Returns:
        The names of the Parameters without a value, and the unused names of the dictionary.

    Raises:
        TypeError: `net` is not a Cell, or `parameter_dict` not a dictionary from names to
            Parameters.
        ValueError: a value has another shape, or a dtype that cannot be cast. The error is also a
            RuntimeError, and no Parameter is changed.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> weight = ms.Parameter(ms.ops.ones((1, 2), ms.float32), name="weight")
        >>> ms.load_param_into_net(net, {"weight": weight})
        (['bias'], [])
    """
    if not isinstance(net, Cell):
        raise ArgumentError(
            f"load_param_into_net: got {type(net).__name__}; wanted a Cell first, and the "
            "dictionary second: load_param_into_net(net, parameter_dict)"
        )
    if not isinstance(parameter_dict, Mapping):
        raise ArgumentError(
            f"load_param_into_net: got {type(parameter_dict).__name__}; wanted a dictionary, "
            f"such as load_checkpoint(file) returns"
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
    problems = {
        name: problem
        for name, value in matched.items()
        if (problem := _problem(name, targets[name], value, strict_load))
    }
    if problems:
        first, *others = problems
        more = f" (and these do not fit either: {', '.join(others)})" if others else ""
        raise StateMismatch(
            f"load_param_into_net: {problems[first]}{more}; nothing was changed; wanted a net "
            "built with the sizes and dtypes of the saved one"
        )
    for name, value in matched.items():
        _write(targets[name], cast("Parameter", value))
    not_loaded = [
        n
        for n, t in targets.items()
        if n not in matched and n not in buffers and not _is_elsewhere(t)
    ]
    return not_loaded, [n for n in parameter_dict if n not in used]


def _without_prefix(
    missing: Sequence[str],
    values: Mapping[str, Parameter | str],
    matched: Mapping[str, Parameter | str],
) -> dict[str, Parameter | str]:
    """Match Parameters to checkpoint entries that are named PREFIX + the Parameter's name.

    The prefix is the same for all, is not known in advance, and ends with a dot.

    Args:
        missing: names of the Parameters without an entry.
        values: the checkpoint's entries by name.
        matched: the entries that belong to other Parameters already.

    Returns the entries by Parameter name; {} unless one prefix fits all of `missing`.
    """
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


def _problem(name: str, target: Tensor, value: object, strict: bool) -> str | None:
    """Return why a checkpoint value does not fit the Parameter `target`, or None if it fits.

    With `strict`, a value of another dtype does not fit, even if it could be cast.
    """
    if not isinstance(value, Tensor):
        return f"{name} is a text in the dictionary; wanted a Parameter"
    placement = target._placement if isinstance(target, Parameter) else None
    if value.shape != target.shape and (
        placement is None or value.shape != placement.whole_shape(target.shape)
    ):
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
