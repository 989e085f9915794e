"""Checks of what the core takes from a plugin: specs, backends, calls, linked programs.

`registry` and the modules of `execution` pass each value through here before they use it. A check
that fails raises BackendError, or returns the message as a string where its docstring says so; the
message says what the plugin returned and what was expected. `checked_calls` calls the methods that
take and return data. Buffers that kernels read and write are checked in `execution.kernel_checks`,
in debug mode only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtype import DType
from ..errors import BackendError
from . import observers
from .costs import Costs
from .prepared import LinkedProgram, Packing, PreparedCall
from .protocol import SEAM_VERSION, Backend, BackendSpec, DeviceInfo
from .views import LAYOUTS

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = [
    "array_text",
    "as_fused",
    "as_linked",
    "as_many",
    "as_packing",
    "as_prepared",
    "as_viewing",
    "backend_problem",
    "call_text",
    "checked_costs",
    "checked_reason",
    "checked_observers",
    "checked_specs",
    "error_text",
    "is_int",
    "shown_value",
]

# Methods that `Backend` declares and a subclass must define.
REQUIRED_METHODS = ("devices", "copy_in", "copy_out", "prepare")
OPTIONAL_METHODS = (
    "available", "from_host", "exclusive", "nbytes", "synchronize", "compiles", "compile", "costs",
    "compile_graph", "compiler", "tune", "links", "link", "memory_stats", "empty_cache",
    "copy_between", "copy_out_async", "dlpack_device", "to_dlpack", "from_dlpack", "streams",
    "timer", "watched_call", "region_source", "examine",
)  # fmt: skip
FALLBACKS = ("off", "warn", "on")
_NAME = "a string without spaces and colons, such as 'MyDevice'"


def shown_value(value: object) -> str:
    """Return a short description of a value of unknown type for an error message."""
    if isinstance(value, np.ndarray):
        return array_text(value)
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (an object of a plugin may fail in any way)
        text = ""
    if text and len(text) <= 60 and not text.startswith("<") and "\n" not in text:
        return text
    return f"an object of type {type(value).__name__}"


def error_text(error: BaseException) -> str:
    """Return the class and the message of an exception as one line."""
    try:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    except Exception:  # noqa: BLE001 (an exception of a plugin may fail in any way)
        return type(error).__name__


def array_text(array: Array) -> str:
    """Return a short description of an array for an error message."""
    order = "" if array.flags.c_contiguous else f" with strides {list(array.strides)}"
    return f"an array of {array.dtype}{list(array.shape)}{order}"


def call_text(name: str, types: Sequence[object]) -> str:
    """Return a call as error messages show it, such as ``add(float32[3], float32[])``."""
    return f"{name}({', '.join('none' if t is None else repr(t) for t in types)})"


def is_int(value: object) -> bool:
    """Return whether a value is an int and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


# ---- specs ---------------------------------------------------------------------------------------


def checked_observers(found: object) -> Sequence[observers.Observer]:
    """Return the observers that a plugin's `duograph_observers` hook returned.

    Raises:
        BackendError: the hook returned anything but observers.
    """
    given = found if isinstance(found, (list, tuple)) else (found,)
    for observer in given:
        if not isinstance(observer, observers.Observer):
            raise BackendError(
                f"duograph_observers returned {shown_value(observer)}; wanted an Observer, or a "
                "list of them"
            )
    return given


def checked_specs(found: object) -> tuple[BackendSpec, ...]:
    """Return what a `duograph_backend` hook returned, one spec or a list, as a tuple of specs.

    Raises:
        BackendError: the hook returned something else, or a spec has a malformed field.
    """
    specs = found if isinstance(found, (list, tuple)) else (found,)
    for spec in specs:
        if not isinstance(spec, BackendSpec):
            raise BackendError(
                f"duograph_backend returned {type(spec).__name__}; wanted a BackendSpec, or a list "
                "of them"
            )
        problem = _spec_problem(spec)
        if problem is not None:
            raise BackendError(f"BackendSpec: {problem}")
    return tuple(specs)


def _spec_problem(spec: BackendSpec) -> str | None:
    """Return what is wrong with the fields of a spec, or None if they are valid."""
    if not _is_device_name(spec.name):
        return f"got name={shown_value(spec.name)}; wanted {_NAME}"
    version = spec.seam_version
    if not (isinstance(version, tuple) and len(version) == 2 and all(map(is_int, version))):
        return f"got seam_version={shown_value(version)}; wanted two ints, such as {SEAM_VERSION}"
    if version[0] != SEAM_VERSION[0]:
        return None  # the other fields may have another meaning there; the registry refuses it
    if not isinstance(spec.aliases, (list, tuple)):
        return f"got aliases={shown_value(spec.aliases)}; wanted a tuple of strings"
    for alias in spec.aliases:
        if not _is_device_name(alias):
            return f"got the alias {shown_value(alias)}; wanted {_NAME}"
    if not callable(spec.factory):
        return f"got factory={shown_value(spec.factory)}; wanted a function that makes the backend"
    if spec.priority is not None and not is_int(spec.priority):
        return f"got priority={shown_value(spec.priority)}; wanted an int or None"
    return None


def _is_device_name(value: object) -> bool:
    return (
        isinstance(value, str)
        and value != ""
        and value.isprintable()
        and not any(c.isspace() or c == ":" for c in value)
    )


# ---- backends ------------------------------------------------------------------------------------


def backend_problem(made: object, spec: BackendSpec) -> tuple[str | None, bool]:
    """Return (why a backend cannot be used or None, whether it is malformed).

    `made` is what the factory of `spec` returned. A reason that the backend itself states, such as
    a missing driver, does not make it malformed.
    """
    if not isinstance(made, Backend):
        return f"its factory returned {shown_value(made)}; wanted a Backend", True
    reason = made.available()
    if reason is not None:
        if isinstance(reason, str) and reason:
            return reason, False
        return f"available() returned {shown_value(reason)}; wanted None or the reason", True
    devices = made.devices()
    if isinstance(devices, (list, tuple)) and not devices:
        return "it has no devices", False
    for problem in (
        _devices_problem(devices), _methods_problem(made), _attributes_problem(made, spec)
    ):  # fmt: skip
        if problem is not None:
            return problem, True
    return None, False


def _methods_problem(made: Backend) -> str | None:
    for name in (*REQUIRED_METHODS, *OPTIONAL_METHODS):
        method = getattr(made, name, None)
        if not callable(method):
            return f"{type(made).__name__}.{name} is {shown_value(method)}; wanted a method"
        if name in REQUIRED_METHODS and getattr(method, "__func__", None) is getattr(Backend, name):
            return f"{type(made).__name__} has no {name}(), which every backend must define"
    return None


def _attributes_problem(made: Backend, spec: BackendSpec) -> str | None:
    owner = type(made).__name__
    if made.name != spec.name:
        return f"{owner}.name is {shown_value(made.name)}; wanted that of the spec, {spec.name!r}"
    dtypes = made.dtypes
    if not (isinstance(dtypes, (list, tuple)) and dtypes) or not all(
        isinstance(d, DType) for d in dtypes
    ):
        return f"{owner}.dtypes is {shown_value(dtypes)}; wanted a tuple of duograph dtypes"
    if made.host_fallback not in FALLBACKS:
        wanted = ", ".join(map(repr, FALLBACKS))
        return f"{owner}.host_fallback is {shown_value(made.host_fallback)}; wanted one of {wanted}"
    for name in ("epilogues", "decomposed"):
        ops = getattr(made, name)
        if not isinstance(ops, Set) or not all(isinstance(op, str) for op in ops):
            return f"{owner}.{name} is {shown_value(ops)}; wanted a frozenset of op names"
    if not isinstance(made.symbolic_sizes, bool):
        return f"{owner}.symbolic_sizes is {shown_value(made.symbolic_sizes)}; wanted a bool"
    rules = made.decompositions
    if not isinstance(rules, Mapping) or not all(
        isinstance(op, str) and callable(rule) for op, rule in rules.items()
    ):
        return f"{owner}.decompositions is {shown_value(rules)}; wanted functions by op name"
    passes = made.passes
    if not isinstance(passes, (list, tuple)) or not all(callable(step) for step in passes):
        return f"{owner}.passes is {shown_value(passes)}; wanted a tuple of functions of a graph"
    return None


def _devices_problem(devices: object) -> str | None:
    if not isinstance(devices, (list, tuple)):
        return f"devices() returned {shown_value(devices)}; wanted a list of DeviceInfo"
    seen: set[int] = set()
    for info in devices:
        if not isinstance(info, DeviceInfo):
            return f"devices() lists {shown_value(info)}; wanted DeviceInfo objects"
        if not is_int(info.index) or info.index < 0 or info.index in seen:
            return (
                f"devices() has the index {shown_value(info.index)}; wanted each of 0, 1, ... once"
            )
        seen.add(info.index)
        if not isinstance(info.name, str) or not isinstance(info.description, str):
            return f"devices() names a device {shown_value(info.name)}; wanted strings"
        if not is_int(info.memory_bytes) or info.memory_bytes < 0:
            return f"devices() has memory_bytes={shown_value(info.memory_bytes)}; wanted an int"
    return None


# ---- answers of a backend's methods --------------------------------------------------------------


def checked_reason(found: object) -> str | None:
    """Return what a backend's `compiles` or `links` returned, if it is None or a string.

    Raises:
        BackendError: the method returned something else.
    """
    if found is None or isinstance(found, str):
        return found
    raise BackendError(f"returned {shown_value(found)}; wanted None or the reason why not")


def checked_costs(found: object) -> Costs:
    """Return what a backend's `costs` returned, if it is a `Costs`.

    Raises:
        BackendError: the method returned something else.
    """
    if isinstance(found, Costs):
        return found
    raise BackendError(f"returned {shown_value(found)}; wanted a Costs")


def as_prepared(found: object, n_operands: int, count_results: Callable[[], int]) -> PreparedCall:
    """Return `found` as a valid `PreparedCall`; wrap it in one if it is a plain function.

    Args:
        found: what the `prepare` or `compile` method of a backend returned for one kernel call.
        n_operands: number of operands of the call.
        count_results: function that returns the number of results of the call. It is called only
            if `found.overwrites` is not empty, to check the result numbers there.

    Raises:
        BackendError: `found` is neither a PreparedCall nor a function, or a field of the
            PreparedCall is malformed.
    """
    if not isinstance(found, PreparedCall):
        if not callable(found):
            raise BackendError(
                f"returned {shown_value(found)}; wanted a function from handles to handles"
            )
        return PreparedCall(found)
    if not callable(found.run):
        raise BackendError(f"returned PreparedCall.run={shown_value(found.run)}; wanted a function")
    if found.overwrites:
        _check_overwrites(found.overwrites, n_operands, count_results())
    if found.packings:
        _check_packings(found.packings, n_operands)
    if found.fuse_consumer is not None and not callable(found.fuse_consumer):
        raise BackendError(
            f"returned PreparedCall.fuse_consumer={shown_value(found.fuse_consumer)}; wanted a "
            "function"
        )
    if found.layouts or found.with_views is not None:
        _check_layouts(found, n_operands)
    return found


def _check_layouts(call: PreparedCall, n_operands: int) -> None:
    given = call.layouts
    if not (
        isinstance(given, Mapping)
        and all(is_int(i) and 0 <= i < n_operands for i in given)
        and all(isinstance(names, (tuple, set, frozenset)) for names in given.values())
        and all(name in LAYOUTS for names in given.values() for name in names)
    ):
        raise BackendError(
            f"returned PreparedCall.layouts={shown_value(given)}; wanted tuples of "
            f"{', '.join(map(repr, LAYOUTS))} by operand, of {n_operands} operands"
        )
    if not callable(call.with_views):
        raise BackendError(
            f"returned PreparedCall.with_views={shown_value(call.with_views)} beside layouts; "
            "wanted a function of views"
        )


def as_viewing(found: object, viewed: Collection[int]) -> PreparedCall | None:
    """Return what `PreparedCall.with_views` returned, if it is None or a PreparedCall.

    `viewed` are the numbers of the operands that the call reads with strides from a larger or
    permuted buffer.

    Raises:
        BackendError: the function returned something else, or a call whose `overwrites` or
            `packings` name one of these operands. Such an operand can be neither overwritten nor
            rearranged in advance.
    """
    if found is None or isinstance(found, PreparedCall):
        wrong = () if found is None else {i for i, _ in found.overwrites} | set(found.packings)
        if set(wrong).isdisjoint(viewed):
            return found
        raise BackendError(
            "returned a call that overwrites or packs one of the operands "
            f"{sorted(viewed)}, which it was to read through views"
        )
    if callable(found):
        return PreparedCall(found)
    raise BackendError(f"returned {shown_value(found)}; wanted None or a function")


def _check_overwrites(pairs: object, n_operands: int, n_results: int) -> None:
    limits = (n_operands, n_results)
    if isinstance(pairs, (list, tuple)) and all(
        isinstance(pair, tuple)
        and len(pair) == 2
        and all(is_int(i) and 0 <= i < n for i, n in zip(pair, limits))
        for pair in pairs
    ):
        return
    raise BackendError(
        f"returned PreparedCall.overwrites={shown_value(pairs)}; wanted pairs (operand, result) "
        f"of a call with {n_operands} operands and {n_results} results"
    )


def _check_packings(packings: object, n_operands: int) -> None:
    if isinstance(packings, Mapping) and all(
        is_int(i) and 0 <= i < n_operands and callable(offer) for i, offer in packings.items()
    ):
        return
    raise BackendError(
        f"returned PreparedCall.packings={shown_value(packings)}; wanted functions by operand, of "
        f"{n_operands} operands"
    )


def as_packing(found: object) -> Packing | None:
    """Return what a function of `PreparedCall.packings` returned, if it is None or a `Packing`.

    Raises:
        BackendError: the function returned something else, or a field of the Packing is malformed.
    """
    if found is None:
        return None
    if (
        isinstance(found, Packing)
        and isinstance(found.pack, PreparedCall)
        and isinstance(found.call, PreparedCall)
        and is_int(found.nbytes)
        and found.nbytes >= 0
    ):
        return found
    raise BackendError(f"a packing is {shown_value(found)}; wanted None or a Packing")


def as_many(found: Any, count: int, name: str) -> Sequence[Any]:
    """Return what a call of several results returned, if it has that many.

    It is checked at each call, also outside debug mode, because a missing result would otherwise
    show as an error of the user's.

    Args:
        found: what the call returned.
        count: the number of its results.
        name: name of the call, for the message.

    Raises:
        BackendError: `found` is not a tuple or list of `count` handles.
    """
    if isinstance(found, (tuple, list)) and len(found) == count:
        return found
    got = f"{len(found)} results" if isinstance(found, (tuple, list)) else shown_value(found)
    raise BackendError(
        f"{name}: the backend's call returned {got}; wanted a tuple of {count} handles. "
        "set_context(debug=True) says which kernel it is"
    )


def as_fused(found: object) -> PreparedCall | None:
    """Return what `PreparedCall.fuse_consumer` returned, if it is None or a PreparedCall.

    Raises:
        BackendError: the function returned something else.
    """
    if found is None or isinstance(found, PreparedCall):
        return found
    raise BackendError(
        f"fuse_consumer returned {shown_value(found)}; wanted None or a PreparedCall"
    )


def as_linked(found: object, n_params: int, n_outputs: int) -> LinkedProgram:
    """Return the program that a backend linked; wrap a plain function as a `LinkedProgram`.

    Raises:
        BackendError: `found` is not a function, or a field of the LinkedProgram is malformed.
    """
    if not isinstance(found, LinkedProgram):
        if not callable(found):
            raise BackendError(
                f"returned {shown_value(found)}; wanted a function, a LinkedProgram or the reason "
                "why there is none"
            )
        return LinkedProgram(found)
    optional = {"bind": found.bind, "timed": found.timed, "at": found.at}
    for name, function in {"run": found.run, **optional}.items():
        if not callable(function) and not (function is None and name in optional):
            raise BackendError(
                f"returned LinkedProgram.{name}={shown_value(function)}; wanted a function"
            )
    given = found.donations
    if given is not None and not (
        isinstance(given, Mapping)
        and all(is_int(k) and 0 <= k < n_outputs for k in given)
        and all(is_int(p) and 0 <= p < n_params for p in given.values())
    ):
        raise BackendError(
            f"returned donations={shown_value(given)}; wanted output -> parameter, of "
            f"{n_outputs} outputs and {n_params} parameters"
        )
    return found
