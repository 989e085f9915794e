"""Process-wide settings: one typed object, read from the environment in one place.

Every field says whether compiled code depends on it (`keyed`); the values of those fields are part
of the cache key of a compiled function. Options of MindSpore without a meaning here are recorded,
so that scripts run unchanged. The module must not import a higher layer; the backend registry
installs the functions that need devices in `runtime_state`.
"""

from __future__ import annotations

import dataclasses
import enum
import os
from collections.abc import Callable
from typing import Any

from ._locks import new_lock
from .advice import unknown_option
from .call_names import name_call
from .errors import (
    ArgumentError,
    ArgumentValueError,
    DeviceError,
    UnsupportedOpError,
    UnsupportedSyntaxError,
)
from .launched import launched
from .option_checks import check_options, warn_unused
from .option_table import MOOT, REFUSED, WORKS, defaults_of
from .runtime_state import runtime_state, staged_builder, thread_state

__all__ = [
    "GRAPH_MODE", "PYNATIVE_MODE", "STRICT", "COMPATIBLE", "LAX", "ParallelMode", "set_context",
    "set_deterministic",
    "get_context", "set_auto_parallel_context", "get_auto_parallel_context",
    "reset_auto_parallel_context", "settings",
]  # fmt: skip

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT = 0
COMPATIBLE = 1
LAX = 2


class ParallelMode(str, enum.Enum):
    """Names of MindSpore's parallel modes; with one rank they change nothing."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"

    def __str__(self) -> str:
        return self.value


def _field(
    default: object, *, keyed: bool = False, allowed: tuple[object, ...] | None = None
) -> Any:
    """Return the dataclass field for a setting in `Settings`.

    `keyed` says whether compiled code depends on the setting. `allowed` lists its values; None if
    `_check` tests the value in another way.
    """
    return dataclasses.field(default=default, metadata={"keyed": keyed, "allowed": allowed})


@dataclasses.dataclass
class Settings:
    """All settings of the process; `set_context` describes them.

    Compiled code depends on the fields that are `keyed`, so their values are part of its cache key.
    """

    mode: int = _field(PYNATIVE_MODE, keyed=True, allowed=(GRAPH_MODE, PYNATIVE_MODE))
    device_target: str | None = _field(None, keyed=True)
    device_id: int = _field(0, keyed=True)
    pynative_synchronize: bool = _field(False, allowed=(True, False))
    deterministic: str = _field("OFF", allowed=("ON", "OFF"))
    debug: bool = _field(False, keyed=True, allowed=(True, False))
    check_bprop: bool = _field(False, keyed=True, allowed=(True, False))
    max_call_depth: int = _field(1000)  # at most MOST_CALLS
    host_fallback: str = _field("backend", allowed=("backend", "off", "warn", "on"))
    stale_captures: str = _field("warn", allowed=("warn", "recompile", "error", "ignore"))
    jit: bool = _field(True, allowed=(True, False))
    jit_level: str = _field("", keyed=True, allowed=("", "O0", "O1", "O2"))
    jit_config: object = _field(None, keyed=True)
    jit_syntax_level: int = _field(LAX, keyed=True, allowed=(STRICT, COMPATIBLE, LAX))
    communication_timeout: float = _field(300.0)
    engine_sums: bool = _field(False, allowed=(True, False))
    save_graphs: int = _field(0, allowed=(0, 1, 2, 3))
    save_graphs_path: str = _field(".")


# Options that MindSpore scripts set and that have no meaning here, with their defaults.
_RECORDED = {**defaults_of("set_context", MOOT), **defaults_of("set_context", REFUSED)}

# Calls of compiled functions nest Python calls in C, whose stack has a fixed size.
MOST_CALLS = 1000

settings = Settings()
_recorded = dict(_RECORDED)
_lock = new_lock()
_FIELDS = {f.name: f for f in dataclasses.fields(Settings)}
# option -> its values, for an error about another one
_VALUES = {
    "save_graphs": "0 (no files), 1 (graphs as read and as run), 2 or True (also after every "
    "pass) or 3 (with drawings too)",
}
_MODES = {GRAPH_MODE: "GRAPH_MODE (0)", PYNATIVE_MODE: "PYNATIVE_MODE (1)"}

# Called after device_target, device_id or debug changed; the eager builder drops the tables of the
# ops.
on_device_change: list[Callable[[], None]] = []


def _read_environment() -> None:
    """Set the settings for which environment variables such as DUOGRAPH_MODE are defined."""
    mode = os.environ.get("DUOGRAPH_MODE")
    if mode:
        names = {"0": 0, "1": 1, "GRAPH_MODE": 0, "PYNATIVE_MODE": 1, "GRAPH": 0, "PYNATIVE": 1}
        if mode.upper() not in names:
            raise ArgumentValueError(
                f"DUOGRAPH_MODE: got {mode!r}; wanted GRAPH or PYNATIVE in the environment"
            )
        settings.mode = _check("mode", names[mode.upper()])
    # MindSpore's name of the switch is known too
    settings.jit = "0" not in (os.environ.get("DUOGRAPH_JIT"), os.environ.get("MS_JIT"))
    timeout = os.environ.get("DUOGRAPH_COMMUNICATION_TIMEOUT")
    if timeout:
        try:
            seconds = float(timeout)
        except ValueError:
            raise ArgumentValueError(
                f"DUOGRAPH_COMMUNICATION_TIMEOUT: got {timeout!r}; wanted seconds"
            ) from None
        settings.communication_timeout = _check("communication_timeout", seconds)
    dump = os.environ.get("DUOGRAPH_DUMP")
    if dump:
        settings.save_graphs, settings.save_graphs_path = 2, dump


# device_target, device_id and mode that hold whatever the program asks for
_forced: dict[str, object] = {}


def force(device: str | None, mode: int | None) -> None:
    """Fix the device and the mode, so that the program's own choices have no effect.

    `compat.install` and `duograph run --device --mode` call this.

    Args:
        device: a device such as ``"CUDA:1"``; None leaves the choice to the program.
        mode: GRAPH_MODE or PYNATIVE_MODE; None leaves the choice to the program.

    Raises:
        RuntimeError: no such device.
        ValueError: `device` has another form than NAME or NAME:INDEX, or `mode` is unknown.
    """
    _forced.clear()
    wanted: dict[str, object] = {}
    if device is not None:
        name, _, index = device.partition(":")
        if index and not index.isdigit():
            raise ArgumentValueError(f"device: got {device!r}; wanted NAME or NAME:INDEX")
        wanted.update(device_target=name, device_id=int(index or 0))
    if mode is not None:
        wanted["mode"] = mode
    set_context(**wanted)
    _forced.update({key: getattr(settings, key) for key in wanted})


def take_device(index: int) -> None:
    """Select the device number `index`, assigned to this rank, of the current device target.

    It also replaces a device index that `force` has fixed.
    """
    if "device_id" in _forced:
        _forced["device_id"] = index
    set_context(device_id=index)


def settle(owner: str, asked: dict[str, object]) -> dict[str, object]:
    """Return the options that a program sets, with the values that `force` has fixed, if any.

    Args:
        owner: the public function that the program called, for the warning.
        asked: the program's options by name. The first time that one is replaced, a warning says
            so.
    """
    changed = {k: v for k, v in _forced.items() if k in asked and asked[k] != v}
    for key, value in changed.items():
        said = "device_target" if key == "device_id" else key
        names = _MODES if key == "mode" else {}
        here = [next((n for m, n in names.items() if m == v), repr(v)) for v in (asked[key], value)]
        text = f"is {here[0]} in the program; this run was told to use {here[1]}"
        warn_unused("set_context", said, f"{text} ({owner})" if owner != "set_context" else text)
    return {**asked, **changed}


def set_context(**kwargs: object) -> None:
    """Set options for the whole process (`mindspore.set_context`).

    Args:
        mode: `GRAPH_MODE` (0) or `PYNATIVE_MODE` (1, the default).
        device_target: name of an installed backend, such as ``"CPU"``.
        device_id: which device of that backend.
        deterministic: ``"ON"`` or ``"OFF"``; both do the same, because results never depend on how
            busy the machine is.
        debug: check the graph after every pass, what gradient rules return, and what kernels
            return: their results have memory of their own, of the right size. The first use of a
            gradient rule that a user or a plugin registered is compared with finite differences.
        check_bprop: refuse a gradient of another dtype than its input from a Cell's own `bprop`.
        max_call_depth: how deep a compiled function may call itself on Tensors; at most 1000.
        host_fallback: what an op without a kernel does: ``"backend"`` (as the backend declares),
            ``"off"``, ``"warn"``, ``"on"``.
        jit: False runs every compiled function line by line, so that breakpoints work everywhere.
        stale_captures, jit_level, jit_syntax_level: options of compiled functions.
        communication_timeout: seconds for which a collective waits for other ranks before it raises
            an error; by default 300, or DUOGRAPH_COMMUNICATION_TIMEOUT of the environment.
        engine_sums: True lets the communication engine choose the order of sums over ranks, which
            can be faster; False adds in a fixed order, so that results do not depend on the number
            of ranks (see docs/parallel.md).
        jit_config: a JitConfig, or a dictionary of its options, for functions that have none.
        save_graphs: write the graphs of functions that are compiled from now on as text: 0 none, 1
            as read and as run, 2 or True after every pass too, 3 with drawings for Graphviz.
        save_graphs_path: the folder to write them to; each compilation makes one inside it.

    Options of MindSpore that mean nothing here (``enable_graph_kernel`` and its like) cause one
    warning, and can be read back.

    Raises:
        ValueError: an unknown option, or a value outside those allowed; nothing is changed then.

    Examples:
        >>> import duograph as ms
        >>> ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
        >>> ms.get_context("device_target")
        'CPU'
    """
    if staged_builder() is not None:
        raise UnsupportedSyntaxError(
            "set_context: got a change of settings inside jit, which would happen while compiling",
            construct="set_context",
            remedy="Change them outside the compiled function",
        )
    checked: dict[str, object] = {}
    kwargs = settle("set_context", kwargs)
    for key, value in kwargs.items():
        if key in _FIELDS:
            try:
                checked[key] = _check(key, value)
            except DeviceError as error:
                name_call(error, "set_context", kwargs)
                raise
        elif key not in _RECORDED:
            raise ArgumentValueError(unknown_option("set_context", key, [*_FIELDS, *_RECORDED]))
    check_options("set_context", **{k: v for k, v in kwargs.items() if k in _RECORDED})
    with _lock:
        moved = any(
            k in checked and checked[k] != getattr(settings, k)
            for k in ("device_target", "device_id", "debug")  # debug mode has other kernel calls
        )
        for key, value in checked.items():
            setattr(settings, key, value)
        runtime_state.settings_version = object()
        runtime_state.cells_version += "stale_captures" in checked  # compare all again
        _recorded.update({k: v for k, v in kwargs.items() if k in _RECORDED})
    if moved:
        for call in on_device_change:
            call()


def set_deterministic(deterministic: bool) -> None:
    """Ask for bit-identical results on every run (`mindspore.set_deterministic`).

    The setting is only recorded: results never depend on how busy the machine is.

    Raises:
        ValueError: not a bool.
    """
    if not isinstance(deterministic, bool):
        raise ArgumentValueError(f"set_deterministic: got {deterministic!r}; wanted True or False")
    set_context(deterministic="ON" if deterministic else "OFF")


def _check(key: str, value: object) -> Any:
    """Return the value for the setting `key` in canonical form.

    Raises:
        ArgumentValueError: the setting does not take this value.
    """
    if key == "mode":
        if isinstance(value, bool) or value not in _MODES:
            raise ArgumentValueError(
                f"set_context: got mode={value!r}; wanted {' or '.join(_MODES.values())}"
            )
        return int(value)
    if key == "device_target":
        if not isinstance(value, str):
            raise ArgumentValueError(
                f"set_context: got device_target={value!r}; wanted the name of a backend as a "
                "string"
            )
        check = runtime_state.check_device
        return value if check is None else check(value)
    if key == "device_id":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ArgumentValueError(
                f"set_context: got device_id={value!r}; wanted an int of 0 or more"
            )
        return value
    if key == "jit_config":
        make = runtime_state.load_compiler().JitConfig.of
        return None if value is None else make("set_context", value)
    if key == "max_call_depth":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentValueError(
                f"set_context: got max_call_depth={value!r}; wanted an int from 1 to {MOST_CALLS}"
            )
        if value > MOST_CALLS:
            warn_unused("set_context", key, f"is {MOST_CALLS} at most, which is used")
        return min(value, MOST_CALLS)
    if key == "communication_timeout":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise ArgumentValueError(
                f"set_context: got communication_timeout={value!r}; wanted seconds, more than 0"
            )
        return float(value)
    if key == "save_graphs_path":
        if not isinstance(value, str) or not value:
            raise ArgumentValueError(
                f"set_context: got save_graphs_path={value!r}; wanted the name of a folder"
            )
        return value
    if key == "save_graphs" and isinstance(value, bool):
        return 2 if value else 0
    if key == "jit_syntax_level" and isinstance(value, str):
        value = {"STRICT": STRICT, "COMPATIBLE": COMPATIBLE, "LAX": LAX}.get(value, value)
    allowed = _FIELDS[key].metadata["allowed"]
    if allowed is not None and value not in allowed:
        wanted = _VALUES.get(key) or f"one of {', '.join(map(repr, allowed))}"
        raise ArgumentValueError(f"set_context: got {key}={value!r}; wanted {wanted}")
    return value


def get_context(attr_key: str) -> Any:
    """Return the present value of an option (`mindspore.get_context`).

    Raises:
        ValueError: an unknown option.

    Examples:
        >>> import duograph as ms
        >>> ms.get_context("mode")
        1
    """
    default_device = runtime_state.default_device
    if not isinstance(attr_key, str):
        raise ArgumentError(f"get_context: got {attr_key!r}; wanted the name of an option")
    if attr_key == "device_target" and settings.device_target is None and default_device:
        return default_device()
    if attr_key in _FIELDS:
        return getattr(settings, attr_key)
    if attr_key in _recorded:
        return _recorded[attr_key]
    raise ArgumentValueError(unknown_option("get_context", attr_key, [*_FIELDS, *_RECORDED]))


_PARALLEL_DEFAULTS = {
    **defaults_of("set_auto_parallel_context", WORKS),
    **defaults_of("set_auto_parallel_context", MOOT),
}
_parallel: dict[str, object] = {}


def _parallel_options() -> dict[str, object]:
    """Return the parallel options that were set; each thread that acts as a rank has its own."""
    return _parallel if thread_state.world is None else thread_state.world.parallel


def set_auto_parallel_context(**kwargs: object) -> None:
    """Set how a program runs on several ranks (`mindspore.set_auto_parallel_context`).

    Args:
        parallel_mode: ``"stand_alone"``, the default, or ``"data_parallel"``: training steps
            (`nn.TrainOneStepCell`, `Model.train`) then combine the gradients of all ranks.
            ``"semi_auto_parallel"``: compiled code sees whole tensors, which are divided among
            ranks as `Cell.shard` and `dataset_strategy` say; ``"auto_parallel"`` is the same.
        gradients_mean: whether the combination is the mean; default False, the sum.
        device_num: number of ranks; by default the number that the launcher started.
        global_rank: recorded only; the launcher numbers the ranks.
        parameter_broadcast: whether training steps start from the Parameters of rank 0.
        enable_parallel_optimizer: whether each rank stores and updates a part of the state of
            optimisers that are made from now on.
        parallel_optimizer_config: dictionary; ``parallel_optimizer_threshold`` is the size of a
            Parameter in KiB, 64 by default, from which on its update is divided among the ranks.
        dataset_strategy: what a rank passes to code that is divided: ``"data_parallel"``, its part
            of the samples; ``"full_batch"``, all samples; or a tuple with one `Layout` or one tuple
            of ints per argument, which says how the argument is divided: the rank passes its own
            part.
        full_batch: the same as ``dataset_strategy="full_batch"``.
        pipeline_stages: into how many stages compiled programs are cut, see `nn.PipelineCell`; it
            divides the number of ranks, and needs ``parallel_mode="semi_auto_parallel"``.
        pipeline_scheduler: in which order the stages run the passes of the micro-batches:
            ``"1f1b"``, one forward, one backward, stores few activations; ``"gpipe"`` runs all
            forward passes first. The results are the same.
        pipeline_config: dictionary in which ``pipeline_scheduler`` may be as well.

    The other options of MindSpore are recorded with one warning. So is any `parallel_mode` in a
    single process, where it changes nothing.

    Raises:
        ValueError: an unknown option, or a value outside those allowed.
        NotImplementedError: there are several ranks, and `parallel_mode` is
            ``"hybrid_parallel"``; interleaved stages.
    """
    for key, value in kwargs.items():
        if key not in _PARALLEL_DEFAULTS:
            raise ArgumentValueError(
                unknown_option("set_auto_parallel_context", key, [*_PARALLEL_DEFAULTS])
            )
        _check_parallel(key, value)
    check_options("set_auto_parallel_context", **kwargs)
    _parallel_options().update(kwargs)
    runtime_state.settings_version = object()


def _check_parallel(key: str, value: object) -> None:
    """Raise an error unless `value` is valid for the option `key`.

    The options are those of `set_auto_parallel_context`; some values are valid only in a program
    with a single rank.
    """
    several = launched() is not None or thread_state.world is not None
    if key == "parallel_mode":
        modes = [str(m) for m in ParallelMode]
        if value not in modes:
            raise ArgumentValueError(
                f"set_auto_parallel_context: got parallel_mode={value!r}; wanted one of "
                f"{', '.join(map(repr, modes))}"
            )
        if several and value == ParallelMode.HYBRID_PARALLEL:
            raise UnsupportedOpError(
                "set_auto_parallel_context: got parallel_mode='hybrid_parallel' on several ranks, "
                "where programs insert all collectives; use 'stand_alone', which does not either, "
                "or 'semi_auto_parallel' with Cell.shard"
            )
    elif key in (
        "gradients_mean", "parameter_broadcast", "enable_parallel_optimizer", "full_batch",
    ):  # fmt: skip
        if not isinstance(value, bool):
            raise ArgumentValueError(
                f"set_auto_parallel_context: got {key}={value!r}; wanted True or False"
            )
    elif key == "pipeline_config":
        _check_pipeline(value)
    elif key == "pipeline_scheduler":
        _check_scheduler("pipeline_scheduler", value)
    elif key == "parallel_optimizer_config":
        _check_sharding(value)
    elif key == "dataset_strategy":
        if value not in ("data_parallel", "full_batch") and not isinstance(value, tuple):
            raise ArgumentValueError(
                f"set_auto_parallel_context: got dataset_strategy={value!r}; wanted "
                "'data_parallel', 'full_batch', or a tuple with one layout per argument"
            )
    elif key in ("device_num", "global_rank", "pipeline_stages"):
        least = int(key != "global_rank")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentValueError(
                f"set_auto_parallel_context: got {key}={value!r}; wanted an int of {least} or more"
            )


def _check_pipeline(config: object) -> None:
    """Raise an error unless the value is a valid `pipeline_config`."""
    if not isinstance(config, dict):
        raise ArgumentError(
            f"set_auto_parallel_context: got pipeline_config={config!r}; wanted a dictionary"
        )
    for key, value in config.items():
        if key == "pipeline_interleave":
            if value:
                raise UnsupportedOpError(
                    "set_auto_parallel_context: got pipeline_interleave=True; wanted False: a "
                    "stage has one segment of the network"
                )
        elif key == "pipeline_scheduler":
            _check_scheduler("pipeline_config['pipeline_scheduler']", value)
        else:
            raise ArgumentValueError(
                f"set_auto_parallel_context: got the key {key!r} in pipeline_config; wanted "
                "'pipeline_interleave' or 'pipeline_scheduler'"
            )


def _check_scheduler(name: str, value: object) -> None:
    if value not in ("1f1b", "gpipe"):
        raise ArgumentValueError(
            f"set_auto_parallel_context: got {name}={value!r}; wanted '1f1b' or 'gpipe'"
        )


_SHARDING = {
    "parallel_optimizer_threshold": 0, "optimizer_weight_shard_size": -1,
    "gradient_accumulation_shard": 0,
}  # fmt: skip


def _check_sharding(config: object) -> None:
    """Raise an error unless the value is a valid `parallel_optimizer_config`."""
    if not isinstance(config, dict) or not set(config) <= set(_SHARDING):
        raise ArgumentValueError(
            f"set_auto_parallel_context: got parallel_optimizer_config={config!r}; wanted a "
            f"dictionary with some of the keys {', '.join(_SHARDING)}"
        )
    for key, value in config.items():
        if not isinstance(value, int) or value < _SHARDING[key]:
            raise ArgumentValueError(
                f"set_auto_parallel_context: got {value!r} for {key}; wanted an int of "
                f"{_SHARDING[key]} or more"
            )
    if config.get("gradient_accumulation_shard"):
        raise UnsupportedOpError(
            "set_auto_parallel_context: got gradient_accumulation_shard=True; gradients are not "
            "accumulated in parts; wanted False"
        )


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return the value of one of the options of `set_auto_parallel_context`.

    Raises:
        ValueError: an unknown option.
    """
    if not isinstance(attr_key, str) or attr_key not in _PARALLEL_DEFAULTS:
        raise ArgumentValueError(
            unknown_option("get_auto_parallel_context", attr_key, [*_PARALLEL_DEFAULTS])
        )
    return _parallel_options().get(attr_key, _PARALLEL_DEFAULTS[attr_key])


def reset_auto_parallel_context() -> None:
    """Set the options of `set_auto_parallel_context` back to their defaults."""
    _parallel_options().clear()
    runtime_state.settings_version = object()


_read_environment()
