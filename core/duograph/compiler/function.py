"""The object that `jit` returns: compiles a function once per signature and caches programs.

A call tries three lookups, the fastest first. The first one is by the types of plain Tensors, for
programs that need no other check. The second one is also by types, but checks state and captures.
The third one is by a `JitKey` and may compile. Nothing here evaluates source or runs kernels.
"""

from __future__ import annotations

import copy
import functools
import sys
import types
import warnings
import weakref
from collections.abc import Callable

from ..context import STRICT, settings
from ..errors import IndexRangeError, UnsupportedOpError
from ..frontend.diagnostics import forget_marks, is_located
from ..frontend.libraries import is_defined_in_class
from ..frontend.types import Args, Kwargs, Value
from ..ir.values import NeedsValue
from ..nn.cell import Cell
from ..pages import Page, render
from ..placement import device_of, thread_device
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Tensor
from ..tracebacks import hide_own_frames
from ..types import Device
from .arguments import Slots
from .bound_function import BoundFunction
from .compiled_program import CompiledProgram
from .explain import Explanation, facts_of, programs_html
from .guard_code import StateChanged
from .guards import callers_level
from .history import History
from .jit_call import JitCall
from .key import JitKey
from .options import JitConfig
from .program_cache import (
    LIMIT,
    SPECIALISED_LIMIT,
    Compiled,
    Interpreted,
    ProgramCache,
    ReceiverCaches,
)
from .program_facts import page_facts
from .signature import check_signature
from .statistics import CacheInfo, register, unregister

__all__ = ["JitFunction"]

# The jit level where none is set; on a backend without a compiler, functions run at O0.
DEFAULT_LEVEL = "O1"


_new = object.__new__
# Entry of the fast route for arguments without a program; no settings version is equal to None.
_NO_CALL: tuple[Value, Value, None] = (None, None, None)


class JitFunction:
    """A Python function that `jit` compiles at its first call with each signature of arguments.

    Attributes:
        function: the Python function that was decorated.
        dynamic: when sizes become symbolic; see `jit`.
    """

    # attributes that calls change; a compiled function that calls this one must not capture them
    counts = frozenset(("_misses", "_hits", "_fallbacks", "_seconds", "_specialised", "_method"))

    _misses = 0
    _hits = 0
    _fallbacks = 0
    _seconds = 0.0
    _specialised = 0

    def __init__(
        self,
        function: Callable[..., Value],
        config: JitConfig,
        strict: bool | None,
        input_signature: Value = None,
        target: Value = None,
        backend: str = "",
        dynamic: int | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.config = config
        self._strict = strict
        self._input_signature = input_signature
        self._backend = backend  # name of the device; "" means that of the arguments
        self.dynamic = dynamic
        self._target = target  # a Cell or callable object that is called instead of `function`
        self._own = ProgramCache()
        self._fast = self._own.fast
        # all caches, those of the receivers of a method included
        self._caches: weakref.WeakSet[ProgramCache] = weakref.WeakSet((self._own,))
        self._reasons = History()
        self._name: str = getattr(function, "__qualname__", type(function).__name__)
        self._method: bool | None = None
        register(self)

    # ---- calling ------------------------------------------------------------------------------

    def __get__(self, instance: Value, owner: Value = None) -> Value:
        return self if instance is None else BoundFunction(self, instance)

    def __call__(self, /, *args: Value, **kwargs: Value) -> Value:
        # the fast route; a Parameter has the type of a Tensor, but a program of its own
        if not kwargs and not runtime_state.staging:
            try:
                if len(args) == 2:
                    x, y = args
                    run, type_, version = self._fast.get((x._type, y._type), _NO_CALL)
                    if (
                        version is runtime_state.settings_version
                        and x.__class__ is y.__class__ is Tensor
                    ):
                        made = _new(Tensor)
                        made._buf = run(x._buf, y._buf)
                        made._type = type_
                        self._hits += 1
                        return made
                elif len(args) == 1:
                    (x,) = args
                    run, type_, version = self._fast.get((x._type,), _NO_CALL)
                    if version is runtime_state.settings_version and x.__class__ is Tensor:
                        made = _new(Tensor)
                        made._buf = run(x._buf)
                        made._type = type_
                        self._hits += 1
                        return made
                else:
                    run, type_, version = self._fast.get(tuple([x._type for x in args]), _NO_CALL)
                    if version is runtime_state.settings_version and _plain_tensors(args):
                        made = _new(Tensor)
                        made._buf = run(*[x._buf for x in args])
                        made._type = type_
                        self._hits += 1
                        return made
            except (AttributeError, TypeError, IndexRangeError, StateChanged):
                pass  # the long route repeats the call, so that the error has the source line
            except Exception as error:
                self._locate(error, args)
                raise
        try:
            return self.long_call(args, kwargs)
        except Exception as error:
            hide_own_frames(error)
            raise

    def _locate(self, error: Exception, args: Args) -> None:
        """Add the op and the user's source line to an error of a kernel on the fast route."""
        found = self._own.quick.get(tuple([x._type for x in args]))
        if found is not None:
            found[0].program.locate(error, [x._buf for x in args])
        if _is_outermost():
            forget_marks(error)
        hide_own_frames(error)

    def long_call(self, args: Args, kwargs: Kwargs) -> Value:
        """Call the compiled function with all checks on the arguments and captured values.

        If an error is marked with the line of user code that caused it, the framework's own frames
        are removed from its traceback before it is raised again.
        """
        try:
            return self._call(args, kwargs)
        except Exception as error:
            known = is_located(error)
            if _is_outermost():
                forget_marks(error)
            if known:
                hide_own_frames(error, located=True)
                if sys.version_info < (3, 11):  # a bare `raise` adds the hidden frames again
                    raise error
            raise

    def _call(self, args: Args, kwargs: Kwargs) -> Value:
        builder = staged_builder()
        if builder is not None:  # another function is being compiled: add the call to its graph
            target = self.function if self._target is None else self._target
            builder.evaluation.check_device(self._device(), f"a call of {self._name} with backend")
            return builder.evaluation.call(target, args, kwargs)
        cache, given = self._cache_of(args)
        if not kwargs:
            program = self._quick(cache, given)
            if program is not None:
                return program.call(given)
        if not settings.jit:
            return self._line_by_line(args, kwargs)
        if self._input_signature is not None:
            names = self.parameter_names(len(args) - len(given))
            check_signature(self._name, self._input_signature, given, names)
        call = JitCall.bound(self, cache, args, given, kwargs)
        if call is None:
            return self._call(args, kwargs)
        entry = call.entry()
        slots = call.slots
        if not call.compiled and isinstance(entry, Compiled):
            self._hits += 1
        if isinstance(entry, Interpreted):
            self._fallbacks += 1
            return self._line_by_line(args, kwargs)
        if runtime_state.derivatives and entry.recorded.is_recorded(slots.leaves):
            result = self._call_recorded(entry, slots, args, kwargs)
            entry.guard.returned = True
            return result
        result = entry.program.call(slots.leaves, slots.numbers, slots.containers)
        entry.guard.returned = True
        if not kwargs:
            self._remember(cache, args, given, entry)
        return result

    def _quick(self, cache: ProgramCache, given: Args) -> CompiledProgram | None:
        """Return the cached program for the types of the arguments `given`, or None.

        The result is None if there is no such program, if a captured value or the type of a tensor
        that it reads besides its arguments has changed, if an argument is not a plain Tensor, if
        arguments are the same object and the program depends on that, or while a gradient tape
        records.
        """
        try:
            found = cache.quick.get(tuple([x._type for x in given]))
        except AttributeError:
            return None
        if (
            found is None
            or found[1] is not runtime_state.settings_version
            or runtime_state.derivatives
            or not _plain_tensors(given)
        ):
            return None
        program = found[0].program
        if (
            found[0].guard.holds()
            and program.ready()
            and not (program.distinguishes and program.shared(given))
        ):
            self._hits += 1
            return program
        return None

    def _remember(self, cache: ProgramCache, args: Args, given: Args, entry: Compiled) -> None:
        """Register a program for lookup by argument types, so that later calls need no `JitKey`.

        `args` are the positional arguments of the present call, `given` the same without the
        receiver of a method. `entry` is the program's cache entry. The program is not registered if
        this lookup cannot serve it, such as when an argument is not a plain Tensor.
        """
        program = entry.program
        if program.for_shared_tensors or runtime_state.thread_worlds:
            return
        version = runtime_state.settings_version
        if self._input_signature is None and _plain_tensors(given):
            if len(cache.quick) >= SPECIALISED_LIMIT:
                cache.quick.clear()
            cache.quick[tuple([x._type for x in given])] = (entry, version)
        run = program.fast_call(entry.guard)
        if run is None or cache is not self._own:
            return
        if all(type(x) is Tensor and not x._type.level for x in args):
            if len(self._fast) >= SPECIALISED_LIMIT:
                self._fast.clear()
            (type_,) = program.result_types
            assert type_ is not None  # a fast call has one result, a Tensor
            self._fast[tuple([x._type for x in args])] = (run, type_, version)

    def _call_recorded(self, entry: Compiled, slots: Slots, args: Args, kwargs: Kwargs) -> Value:
        """Run a program while a gradient tape records; return the function's result.

        The derivative cannot be compiled if a gradient rule, such as a user's `bprop`, needs the
        value of a tensor in Python. The function then runs uncompiled, and a warning says so once.

        Args:
            entry: the cache entry of the program.
            slots: the run-time inputs among the arguments.
            args, kwargs: all arguments of the call.

        Raises:
            NeedsValue: the derivative cannot be compiled, in strict mode.
            UnsupportedOpError: the program is divided among ranks; no derivative is taken of such
                a program from outside.
        """
        if entry.program.divided is not None:
            raise UnsupportedOpError(
                f"{self._name}: it is divided among ranks, and a derivative of it is taken by code "
                "that is not compiled. Compile the whole training step: with jit around it, "
                "nn.TrainOneStepCell or Model.train in GRAPH_MODE"
            )
        try:
            return entry.recorded.call(slots.leaves, slots.numbers, slots.containers)
        except NeedsValue as error:  # raised before anything runs
            if self.strict():
                raise
            self._fallbacks += 1
            said = f"runs line by line under a derivative: {error}"
            if said not in self._reasons:
                self._reasons.add(said)
                warnings.warn(f"{self._name} {said}", RuntimeWarning, stacklevel=callers_level())
            return self._line_by_line(args, kwargs)

    def _line_by_line(self, args: Args, kwargs: Kwargs) -> Value:
        if isinstance(self._target, Cell):
            return NotImplemented  # the Cell then runs its own construct
        run = self.function if self._target is None else self._target
        device = self._device()
        if device is None:
            return run(*args, **kwargs)
        with thread_device(device):
            return run(*args, **kwargs)

    def with_backend(self, backend: str) -> JitFunction:
        """Return a compiled function with the same options that runs on the device `backend`."""
        return JitFunction(*self._arguments(self._target, backend))

    def _arguments(self, target: Value, backend: str) -> tuple[Value, ...]:
        """Return the arguments that make a JitFunction like this one, for `target` on `backend`."""
        return (
            self.function, self.config, self._strict, self._input_signature, target, backend,
            self.dynamic,
        )  # fmt: skip

    def _device(self) -> Device | None:
        """Return the device named by the option `backend`; None if the arguments determine it."""
        return device_of(self._backend) if self._backend else None

    def _cache_of(self, args: Args) -> tuple[ProgramCache, Args]:
        """Return the program cache of a call, and its arguments without the receiver of a method.

        Each receiver of a compiled method has a separate cache.
        """
        if args and self._is_method():
            held = getattr(args[0], "__dict__", None)
            if held is not None and not isinstance(args[0], type):
                caches: ReceiverCaches | None = held.get("_jit_caches")
                # a shallow copy of the receiver still has the original's caches
                if caches is None or caches.owner() is not args[0]:
                    caches = held["_jit_caches"] = ReceiverCaches(args[0])
                found = caches.get(self)
                if found is None:
                    found = caches[self] = ProgramCache()
                    self._caches.add(found)
                return found, args[1:]
        return self._own, args

    def _is_method(self) -> bool:
        """Return whether the function was defined in a class, so that it takes a receiver first."""
        if self._method is None:
            self._method = (
                is_defined_in_class(self.function)
                and self._target is None
                and isinstance(self.function, types.FunctionType)
            )
        return self._method

    def parameter_names(self, receivers: int) -> tuple[str, ...]:
        """Return the names of the positional parameters, as far as they are known.

        `receivers` is the number of leading arguments that are no part of a cache key: 1 for the
        receiver of a method, which has a program cache of its own, else 0.
        """
        code = getattr(self.function, "__code__", None)
        names: tuple[str, ...] = code.co_varnames[: code.co_argcount] if code is not None else ()
        return names[1 if isinstance(self._target, Cell) else receivers :]

    def _tensor_names(self, key: JitKey) -> list[str]:
        """Return the names of the tensor arguments of the program in the cache under `key`."""
        receiver = self._is_method() and key not in self._own.entries
        return key.tensor_names(self.parameter_names(int(receiver)))

    # ---- compiling ----------------------------------------------------------------------------

    def strict(self) -> bool:
        """Return whether code that only Python can run is refused.

        Refused code raises an error; otherwise the function runs uncompiled. The function's own
        options decide. If they leave it open, the `jit_config` of the context decides, and if that
        leaves it open too, the syntax level of the context.
        """
        if self._strict is not None:
            return self._strict
        if self.config.strict is not None:
            return self.config.strict
        own = settings.jit_config
        if isinstance(own, JitConfig) and own.strict is not None:
            return own.strict
        return settings.jit_syntax_level == STRICT

    def level(self) -> str:
        """Return the jit level, "O0", "O1" or "O2".

        It is the function's own level if set, else the context's if set, else the default.
        """
        own = settings.jit_config
        of_context = own.jit_level if isinstance(own, JitConfig) else ""
        return self.config.jit_level or of_context or settings.jit_level or DEFAULT_LEVEL

    def compile(self, *args: Value, **kwargs: Value) -> None:
        """Compile the function for the types of the given arguments without running it."""
        self._entry(args, kwargs)

    def _entry(self, args: Args, kwargs: Kwargs) -> tuple[JitCall, Compiled | Interpreted]:
        """Return (call, program cache entry) for arguments; compile if needed, but run nothing."""
        call = self._bind(args, kwargs)
        try:
            return call, call.entry()
        except Exception as error:
            if _is_outermost():
                forget_marks(error)
            raise

    def has(self, args: Args, kwargs: Kwargs) -> bool:
        """Return whether the function's program cache has an entry for the arguments' types."""
        call = self._bind(args, kwargs)
        return call.key in call.cache.entries

    def _bind(self, args: Args, kwargs: Kwargs) -> JitCall:
        """Return a `JitCall` with its program cache key and the arguments' run-time inputs.

        Does not run or compile the function; may move tensors to a device.
        """
        cache, given = self._cache_of(args)
        call = JitCall.bound(self, cache, args, given, kwargs)
        while call is None:
            call = JitCall.bound(self, cache, args, given, kwargs)
        return call

    # ---- questions ----------------------------------------------------------------------------

    def cache_info(self) -> CacheInfo:
        """Return counts of how the program cache was used, as a named tuple.

        Its items are: hits, misses (compilations), maxsize (the limit of the cache), currsize
        (entries), fallbacks (calls that ran line by line because the function, or its derivative,
        could not be compiled) and the seconds spent on compiling.
        """
        kept = sum(len(cache.entries) for cache in list(self._caches))
        return CacheInfo(self._hits, self._misses, LIMIT, kept, self._fallbacks, self._seconds)

    def programs(self) -> list[CompiledProgram]:
        """Return the cached programs of the function, for all receivers if it is a method."""
        return [program for cache in list(self._caches) for program in cache.programs()]

    def clear(self) -> None:
        """Remove all cached programs of the function, for all receivers if it is a method."""
        for cache in list(self._caches):
            cache.clear()

    def explain(self, *args: Value, **kwargs: Value) -> Explanation:
        """Return a report of what a call reads, writes and captures, and why it was compiled.

        Compiles the function for these arguments if it has not been compiled yet, but does not run
        it.
        """
        call, entry = self._entry(args, kwargs)
        program = entry.program if isinstance(entry, Compiled) else None
        reason = entry.reason if isinstance(entry, Interpreted) else ""
        sizes = call.cache.symbolic.describe(call.key)
        names = self._tensor_names(call.key)
        facts = facts_of(self._name, call.key, program, reason, list(self._reasons), sizes, names)
        slots = call.slots
        return Explanation(facts, call.key, program, lambda: self.page_of(call.key, entry, slots))

    def show(self, *args: Value, **kwargs: Value) -> Page:
        """Return an HTML page about the function compiled for these arguments.

        The page has the source beside the graph after each pass, the facts of `explain`, why nodes
        were fused, the generated kernels, the memory plan and the graphs of the gradient. It needs
        no network. Compiles the function for these arguments if it has not been compiled yet. If
        the function has no side effects, its kernels run a few times to be timed; their results are
        dropped.
        """
        call, entry = self._entry(args, kwargs)
        return self.page_of(call.key, entry, call.slots)

    @property
    def name(self) -> str:
        """The qualified name of the Python function."""
        return self._name

    def first_entry(self) -> tuple[JitKey, Compiled | Interpreted] | None:
        """Return (key, entry) of the first compiled program in the cache, else of the first entry.

        The result is None if the cache is empty, such as before the first call.
        """
        found = [
            (key, entry)
            for cache in list(self._caches)
            for key, entries in list(cache.entries.items())
            for entry in entries
        ]
        compiled = [each for each in found if isinstance(each[1], Compiled)]
        return next(iter(compiled or found), None)

    def page_of(
        self, key: JitKey, entry: Compiled | Interpreted, slots: Slots | None = None
    ) -> Page:
        """Return the HTML page that `show` returns, for an entry of the program cache.

        `slots` are the run-time inputs with which kernels are timed; if it is None, they are not
        timed.
        """
        program = entry.program if isinstance(entry, Compiled) else None
        reason = entry.reason if isinstance(entry, Interpreted) else ""
        names = self._tensor_names(key)
        facts = facts_of(self._name, key, program, reason, list(self._reasons), (), names)
        target = self._target
        if isinstance(target, Cell):
            target = type(target).construct
        source = self.function if target is None else target
        data = page_facts(facts, program, source, names, slots)
        return render(self._name, data)

    def graph(self, *args: Value, **kwargs: Value) -> Value:
        """Return the unoptimised graph of the function for the given arguments.

        Compiles the function if needed. The result is None if the function runs uncompiled.
        """
        return self.explain(*args, **kwargs).graph

    def __del__(self) -> None:
        unregister(self)

    def __repr__(self) -> str:
        return f"<jit {self._name}>"

    def _repr_html_(self) -> str:
        facts = [
            facts_of(self._name, key, entry.program, "", [], (), self._tensor_names(key))
            if isinstance(entry, Compiled)
            else facts_of(self._name, key, None, entry.reason, [])
            for cache in list(self._caches)
            for key, variants in list(cache.entries.items())
            for entry in variants
        ]
        return programs_html(self._name, facts)

    # ---- copies -------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, object]) -> JitFunction:
        return self._of_copy(copy.deepcopy(self._target, memo))

    def _of_copy(self, target: Value) -> JitFunction:
        """Return the JitFunction for `target`, a copy of the Cell that this function belongs to.

        The result is a new JitFunction with the same options, bound to `target`. If this function
        belongs to no Cell, the result is the function itself.
        """
        if not isinstance(self._target, Cell):
            return self
        return JitFunction(*self._arguments(target, self._backend))

    def __copy__(self) -> JitFunction:
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        if self._target is None:
            return str(self.function.__qualname__)  # found by its name, as functions are
        return JitFunction, self._arguments(self._target, self._backend)


def _is_outermost() -> bool:
    """Return whether only one call of a compiled function is on the Python stack of this thread."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is JitFunction.long_call.__code__:
            return False
        frame = frame.f_back
    return True


def _plain_tensors(args: Args) -> bool:
    """Return whether all arguments are exactly of class Tensor, not a subclass like Parameter."""
    for x in args:  # noqa: SIM110 (a generator costs more than the call)
        if x.__class__ is not Tensor:
            return False
    return True
