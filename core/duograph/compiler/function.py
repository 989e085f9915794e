"""A function that compiles itself for each signature that it is called with, and keeps what it
compiled.
"""

from __future__ import annotations

import collections
import copy
import functools
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from ..backend import registry
from ..context import STRICT, settings
from ..errors import (
    ArgumentValueError,
    IndexRangeError,
    RefusedError,
    UnsupportedSyntaxError,
)
from ..frontend.diagnostics import forget_own_frames, is_located
from ..frontend.state.evaluation import Evaluation
from ..ir.values import NeedsValue
from ..nn.cell import Cell
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Placeholder, Tensor, check_index, commit
from ..types import Device
from .arguments import Slots, signature
from .evaluate import compile_program
from .guards import Guard, callers_level
from .options import JitConfig
from .program import Changed, Program

__all__ = ["JitFunction", "jit_stats", "CacheInfo", "LIMIT"]

# Signatures that one function keeps for one receiver.
LIMIT = 128
# The level of functions that ask for none; where a backend has no compiler they run at O0.
DEFAULT_LEVEL = "O1"
# Programs of one signature that differ in what they captured: a training flag, say.
VARIANTS = 8

CacheInfo = collections.namedtuple("CacheInfo", "hits misses maxsize currsize fallbacks seconds")

_all: weakref.WeakSet[JitFunction] = weakref.WeakSet()
# What functions that are gone have counted, so that the sums of `jit_stats` never fall.
_gone: dict[str, Any] = dict.fromkeys(("compiles", "hits", "fallbacks", "seconds"), 0)
_compiling = threading.RLock()
_new = object.__new__
_NOTHING: Any = (None, None, None)  # what the short way finds where no program is


class _Entry:
    """A program and its guard; or the news that the function runs line by line for this signature."""

    __slots__ = ("program", "guard", "reason")

    def __init__(self, program: Program | None, guard: Guard | None, reason: str = "") -> None:
        self.program = program
        self.guard = guard
        self.reason = reason


class _Cache:
    """Programs of one function for one receiver. Copies of the receiver start without."""

    def __init__(self) -> None:
        self.entries: collections.OrderedDict[Any, list[_Entry]] = collections.OrderedDict()
        # by the types of the arguments alone, when these are all tensors: see JitFunction
        self.fast: dict[Any, tuple[Any, Any, Any]] = {}
        self.quick: dict[Any, tuple[Any, Any]] = {}

    def __deepcopy__(self, memo: Any) -> _Cache:
        return _Cache()

    def __reduce__(self) -> Any:
        return _Cache, ()


class JitFunction:
    """A compiled function; see `jit`.

    Attributes:
        function: the function as it was written.
    """

    _misses = 0
    _hits = 0
    _fallbacks = 0
    _seconds = 0.0

    def __init__(
        self,
        function: Callable[..., Any],
        config: JitConfig,
        strict: bool | None,
        input_signature: Any = None,
        target: Any = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.config = config
        self._strict = strict
        self._signature_given = input_signature
        self._target = target
        self._own = _Cache()
        self._caches: weakref.WeakSet[_Cache] = weakref.WeakSet(
            (self._own,)
        )  # those of receivers too
        self._fast = self._own.fast
        self._reasons: list[str] = []
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._parameters: Any = None
        _all.add(self)

    # ---- calling ------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # the short way: tensors alone, a program without state, and nothing that could have changed
        if not kwargs and not runtime_state.staging:
            try:
                if len(args) == 2:
                    x, y = args
                    run, type_, now = self._fast.get((x._type, y._type), _NOTHING)
                    # a Parameter of that type has a program of its own
                    if (
                        now is runtime_state.settings_version
                        and x.__class__ is y.__class__ is Tensor
                    ):
                        self._hits += 1
                        made = _new(Tensor)
                        made._buf = run(x._buf, y._buf)
                        made._type = type_
                        return made
                elif len(args) == 1:
                    (x,) = args
                    run, type_, now = self._fast.get((x._type,), _NOTHING)
                    if now is runtime_state.settings_version and x.__class__ is Tensor:
                        self._hits += 1
                        made = _new(Tensor)
                        made._buf = run(x._buf)
                        made._type = type_
                        return made
                else:
                    run, type_, now = self._fast.get(tuple([x._type for x in args]), _NOTHING)
                    if now is runtime_state.settings_version and _plain_tensors(args):
                        self._hits += 1
                        made = _new(Tensor)
                        made._buf = run(*[x._buf for x in args])
                        made._type = type_
                        return made
            except (AttributeError, TypeError, IndexRangeError, Changed):
                pass  # the long way says where in the source an index was out of range
        return self.long_call(args, kwargs)

    def long_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that looks at everything; an error that says where it arose does not show how
        duograph came there.
        """
        try:
            return self._call(args, kwargs)
        except Exception as error:
            if is_located(error):
                forget_own_frames(error)
                if sys.version_info < (3, 11):  # there `raise` alone brings them back
                    raise error
            raise

    def _staged_call(self, ev: Evaluation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called while another function is compiled: this one becomes part of that graph."""
        return ev.call(self.function if self._target is None else self._target, args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        builder = staged_builder()
        if builder is not None:
            return self._staged_call(builder.evaluation, args, kwargs)
        cache, given = self._cache_of(args)
        if not kwargs:
            try:
                quick = cache.quick.get(tuple([x._type for x in given]))
            except AttributeError:
                quick = None
            if (
                quick is not None
                and quick[1] is runtime_state.settings_version
                and not runtime_state.derivatives
                and _plain_tensors(given)
            ):
                program, guard = quick[0].program, quick[0].guard
                if (
                    program is not None
                    and guard.holds()
                    and program.ready()
                    and not (program.writes and program.shared(given))
                ):
                    self._hits += 1
                    program.hits += 1
                    return program.call(given, (), ())
        if not settings.jit:
            return self._line_by_line(args, kwargs)
        slots = Slots()
        if self._signature_given is not None:
            _check_signature(self._name, self._signature_given, given)
        key_args = tuple([signature(a, slots) for a in given])
        key_kwargs = tuple([(k, signature(v, slots)) for k, v in kwargs.items()]) if kwargs else ()
        device = self._place(slots.leaves)
        if device is None:
            device = registry.current_device()
        if any(x._type.device is None for x in slots.leaves):
            check_index(device.name, device.index)
            for x in slots.leaves:
                commit(x, device)
            return self._call(args, kwargs)
        key: Any = (key_args, key_kwargs, device, _context_key(), runtime_state.rules_version)
        entry = self._entry(cache, key, args, given, kwargs, device)
        program = entry.program
        if program is not None and program.writes:
            shared = program.shared(slots.leaves)
            if shared:
                state = [id(x) for i, x in enumerate(slots.leaves) if shared.get(i, 0) is None]
                key = (*key, (*shared.items(), *state))
                entry = self._entry(cache, key, args, given, kwargs, device, shared)
                program = entry.program
        if program is None:
            return self._line_by_line(args, kwargs)
        program.hits += 1
        if runtime_state.derivatives and program.recorded(
            slots.leaves, slots.numbers, slots.containers
        ):
            try:
                return program.call_recorded(slots.leaves, slots.numbers, slots.containers)
            except NeedsValue as error:  # raised before anything runs
                self._fallbacks += 1
                self._reasons.append(f"runs line by line under a derivative: {error}")
                if self.strict():
                    raise
                return self._line_by_line(args, kwargs)
        result = program.call(slots.leaves, slots.numbers, slots.containers)
        plain = not kwargs and self._signature_given is None and not program.knows_shared
        if plain and all(type(x) is Tensor for x in given):
            if len(cache.quick) >= LIMIT:
                cache.quick.clear()
            cache.quick[tuple([x._type for x in given])] = (entry, runtime_state.settings_version)
        if entry.guard is not None and not kwargs and not program.knows_shared:
            run = program.short(entry.guard)
            if run is not None:
                self._remember(cache, args, program, run)
        return result

    def _remember(self, cache: _Cache, args: tuple[Any, ...], program: Program, run: Any) -> None:
        if cache is self._own and all(type(x) is Tensor and not x._type.level for x in args):
            if len(self._fast) >= LIMIT:
                self._fast.clear()
            self._fast[tuple([x._type for x in args])] = (
                run,
                program.tensor_types[0],
                runtime_state.settings_version,
            )

    def _entry(
        self,
        cache: _Cache,
        key: Any,
        args: tuple[Any, ...],
        given: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: Device,
        shared: dict[int, int | None] | None = None,
    ) -> _Entry:
        """The program for a key, compiled if there is none."""
        entry = self._found(cache, key)
        if entry is None:
            return self._compile(cache, key, args, given, kwargs, device, shared)
        if entry.program is not None:
            self._hits += 1
        return entry

    def _found(self, cache: _Cache, key: Any) -> _Entry | None:
        """The program for a key whose captures are still what they were."""
        for entry in cache.entries.get(key, ()):
            if self._valid(entry):
                return entry
        return None

    def _valid(self, entry: _Entry) -> bool:
        if entry.guard is not None and not entry.guard.empty and not entry.guard.holds():
            return False
        program = entry.program
        if program is None or not program.state:
            return True
        return program.ready() or program.fits()

    def _place(self, leaves: list[Tensor]) -> Device | None:
        found: Device | None = None
        for x in leaves:
            own = x._type.device
            if own is not None:
                found = own
                break
        return found

    def _cache_of(self, args: tuple[Any, ...]) -> tuple[_Cache, tuple[Any, ...]]:
        """Where the programs of this call are kept, and the arguments that are part of the key."""
        if args and self._is_method():
            held = getattr(args[0], "__dict__", None)
            if held is not None and not isinstance(args[0], type):
                caches = held.get("_jit_caches")
                if (
                    caches is None or caches.owner() is not args[0]
                ):  # a copy has those of the original
                    caches = held["_jit_caches"] = _Caches(args[0])
                found = caches.get(self)
                if found is None:
                    found = caches[self] = _Cache()
                    self._caches.add(found)
                return found, args[1:]
        return self._own, args

    def _is_method(self) -> bool:
        known = self.__dict__.get("_method")
        if known is None:
            name = getattr(self.function, "__qualname__", "")
            parts = name.split(".")
            known = len(parts) > 1 and parts[-2] != "<locals>" and self._target is None
            known = known and isinstance(self.function, types.FunctionType)
            self._method = known
        return bool(known)

    # ---- compiling ----------------------------------------------------------------------------

    def strict(self) -> bool:
        """Whether what only Python can run is refused."""
        if self._strict is not None:
            return self._strict
        if self.config.strict is not None:
            return self.config.strict
        own = settings.jit_config
        if isinstance(own, JitConfig) and own.strict is not None:
            return own.strict
        return settings.jit_syntax_level == STRICT

    def level(self) -> str:
        """ "O0", "O1" or "O2": the function's own, else that of the context."""
        own = settings.jit_config
        of_context = own.jit_level if isinstance(own, JitConfig) else ""
        return self.config.jit_level or of_context or settings.jit_level or DEFAULT_LEVEL

    def _compile(
        self,
        cache: _Cache,
        key: Any,
        args: tuple[Any, ...],
        given: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: Device,
        shared: dict[int, int | None] | None = None,
    ) -> _Entry:
        with _compiling:
            found = self._found(cache, key)  # another thread may have been faster
            if found is not None:
                self._hits += 1
                return found
            known = cache.entries.get(key)
            if known and known[-1].guard is not None:
                self._reasons.append(
                    f"recompiled: {', '.join(known[-1].guard.differing()) or 'its state'} changed"
                )
            elif cache.entries:
                self._reasons.append(f"compiled: {_difference(next(reversed(cache.entries)), key)}")
            strict = self.strict()
            target = self._target if self._target is not None else self.function
            call_args = args if self._target is None else given
            try:
                program = compile_program(
                    target, call_args, kwargs, strict, device, self._name, self.level(), shared
                )
            except (UnsupportedSyntaxError, NeedsValue) as error:
                if strict or isinstance(error, RefusedError):
                    raise
                entry = _Entry(None, None, str(error))
                self._fallbacks += 1
                self._reasons.append(f"runs line by line: {error}")
                warnings.warn(
                    f"{self._name} runs line by line, not compiled: {error}",
                    RuntimeWarning,
                    stacklevel=callers_level(),
                )
            else:
                entry = _Entry(program, Guard(program.captures))
                self._seconds += program.seconds
                self._misses += 1
            while len(cache.entries) >= LIMIT:
                cache.entries.popitem(last=False)
            cache.quick.clear()
            entries = cache.entries.setdefault(key, [])
            del entries[: max(0, len(entries) + 1 - VARIANTS)]
            entries.append(entry)
            return entry

    def _line_by_line(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self._target, Cell):
            return NotImplemented  # the call of the Cell goes on without
        run = self.function if self._target is None else self._target
        return run(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running."""
        cache, given = self._cache_of(args)
        slots = Slots()
        key_args = tuple(signature(a, slots) for a in given)
        key_kwargs = tuple((k, signature(v, slots)) for k, v in kwargs.items())
        device = self._place(slots.leaves) or registry.current_device()
        if any(x._type.device is None for x in slots.leaves):
            for x in slots.leaves:
                commit(x, device)
            self.compile(*args, **kwargs)
            return
        key = (key_args, key_kwargs, device, _context_key(), runtime_state.rules_version)
        if self._found(cache, key) is None:
            self._compile(cache, key, args, given, kwargs, device)

    def has(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether there is a program for these arguments."""
        cache, given = self._cache_of(args)
        slots = Slots()
        key_args = tuple([signature(a, slots) for a in given])
        key_kwargs = tuple([(k, signature(v, slots)) for k, v in kwargs.items()])
        device = self._place(slots.leaves) or registry.current_device()
        for x in slots.leaves:
            if x._type.device is None:
                commit(x, device)
                return self.has(args, kwargs)
        return (
            key_args,
            key_kwargs,
            device,
            _context_key(),
            runtime_state.rules_version,
        ) in cache.entries

    # ---- questions ----------------------------------------------------------------------------

    def cache_info(self) -> CacheInfo:
        """Hits, misses (compilations), the bound, programs kept, calls that run line by line,
        seconds of compiling.
        """
        kept = sum(len(cache.entries) for cache in list(self._caches))
        return CacheInfo(self._hits, self._misses, LIMIT, kept, self._fallbacks, self._seconds)

    def clear(self) -> None:
        """Forget every program of this function, those for receivers of a method too."""
        for cache in list(self._caches):
            cache.entries.clear()
            cache.quick.clear()
            cache.fast.clear()

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """What a call with these arguments reads, writes, captures and prints, and why it was
        compiled.

        Compiles the function for these arguments if it was not; does not run it.
        """
        from .explain import Explanation

        cache, given = self._cache_of(args)
        self.compile(*args, **kwargs)
        slots = Slots()
        key_args = tuple(signature(a, slots) for a in given)
        key_kwargs = tuple((k, signature(v, slots)) for k, v in kwargs.items())
        device = self._place(slots.leaves) or registry.current_device()
        key = (key_args, key_kwargs, device, _context_key(), runtime_state.rules_version)
        entry = cache.entries[key][-1]
        return Explanation(self._name, key, entry.program, entry.reason, list(self._reasons))

    def graph(self, *args: Any, **kwargs: Any) -> Any:
        """The graph for these arguments, before optimisation."""
        return self.explain(*args, **kwargs).graph

    def __del__(self) -> None:
        counts = {"compiles": self._misses, "hits": self._hits, "fallbacks": self._fallbacks}
        for name, count in (*counts.items(), ("seconds", self._seconds)):
            _gone[name] += count

    def __repr__(self) -> str:
        return f"<jit {self._name}>"

    def __deepcopy__(self, memo: Any) -> JitFunction:
        return self._of_copy(copy.deepcopy(self._target, memo))

    def _of_copy(self, target: Any) -> JitFunction:
        """The compiled form of a copy of the Cell that this one is of."""
        if not isinstance(self._target, Cell):
            return self
        return JitFunction(self.function, self.config, self._strict, self._signature_given, target)

    def __copy__(self) -> JitFunction:
        return self

    def __reduce__(self) -> Any:
        if self._target is None:
            return str(self.function.__qualname__)  # found by its name, as functions are
        return _again, (
            self.function, self.config, self._strict, self._signature_given, self._target
        )  # fmt: skip


class _Caches(weakref.WeakKeyDictionary[Any, Any]):
    """Per receiver: the caches of its compiled methods. Copies and pickles of the receiver start
    without.
    """

    def __init__(self, owner: Any = None) -> None:
        super().__init__()
        self.owner: Callable[[], Any]
        try:
            self.owner = weakref.ref(owner)
        except TypeError:  # None, or a class without weak references
            self.owner = lambda: owner

    def __deepcopy__(self, memo: Any) -> _Caches:
        return _Caches()

    def __copy__(self) -> _Caches:
        return _Caches()

    def __reduce__(self) -> Any:
        return _Caches, ()


def _again(function: Any, config: JitConfig, strict: Any, input_signature: Any, target: Any) -> Any:
    return JitFunction(function, config, strict, input_signature, target)


def _plain_tensors(args: tuple[Any, ...]) -> bool:
    """Whether no argument is a Parameter."""
    for x in args:  # noqa: SIM110 (a generator costs more than the call)
        if x.__class__ is not Tensor:
            return False
    return True


def _context_key() -> Any:
    return (
        settings.device_target,
        settings.device_id,
        settings.jit_level,
        settings.jit_config,
        settings.jit_syntax_level,
    )


def _difference(old: Any, new: Any) -> str:
    names = ("arguments", "keyword arguments", "device", "context", "gradient rules")
    if len(old) != len(new):
        return "arguments that are one Tensor, or state, of which the function writes some"
    for name, a, b in zip(names, old, new):
        if a != b:
            if name == "arguments" and len(a) == len(b):
                for i, (x, y) in enumerate(zip(a, b)):
                    if x != y:
                        return f"argument {i} was {x!r} and is {y!r}"
            return f"{name} were {a!r} and are {b!r}"
    return "nothing differs"


def _check_signature(name: str, wanted: Any, given: tuple[Any, ...]) -> None:
    """Raise ArgumentValueError when the arguments do not fit the `input_signature`."""
    items = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    if len(items) != len(given):
        raise ArgumentValueError(
            f"{name}: got {len(given)} arguments; its input_signature has {len(items)}"
        )
    for i, (want, x) in enumerate(zip(items, given)):
        if isinstance(want, Tensor) and isinstance(x, Tensor):
            placeholder = getattr(want, "_init", None)
            shape = placeholder.shape if isinstance(placeholder, Placeholder) else want.shape
            fits = len(shape) == len(x.shape) and all(
                a is None or a == -1 or a == b for a, b in zip(shape, x.shape)
            )
            if not fits or want.dtype is not x.dtype:
                raise ArgumentValueError(
                    f"{name}: got a Tensor of shape {x.shape} and dtype {x.dtype} for argument {i}; its "
                    f"input_signature says shape {shape} and dtype {want.dtype}"
                )


def jit_stats() -> dict[str, Any]:
    """Sums over all compiled functions: compilations, hits, functions that run line by line,
    seconds, and why.

    Examples:
        >>> import duograph as ms
        >>> sorted(ms.jit_stats())
        ['compiles', 'fallbacks', 'functions', 'guards', 'hits', 'reasons', 'seconds']
    """
    functions = list(_all)
    reasons: dict[str, list[str]] = {}
    for f in functions:  # several functions may have one name
        if f._reasons:
            reasons.setdefault(f._name, []).extend(f._reasons)
    return {
        "functions": len(functions),
        "compiles": _gone["compiles"] + sum(f._misses for f in functions),
        "hits": _gone["hits"] + sum(f._hits for f in functions),
        "fallbacks": _gone["fallbacks"] + sum(f._fallbacks for f in functions),
        "guards": sum(
            len(e.program.captures.items)
            for f in functions
            for cache in list(f._caches)
            for entries in list(cache.entries.values())
            for e in entries
            if e.program is not None
        ),
        "seconds": _gone["seconds"] + sum(f._seconds for f in functions),
        "reasons": reasons,
    }
