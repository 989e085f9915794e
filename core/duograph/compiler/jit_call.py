"""One call of a compiled function: finds its program in the cache, or compiles it.

`compiler.function` makes a `JitCall` for each call that none of its faster lookups serves, and then
runs the program that it found. The module itself must not run a program.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._locks import new_lock
from ..backend.observers import reporting
from ..errors import RefusedError, UnsupportedSyntaxError
from ..frontend.state.containers import AliasedError
from ..frontend.types import Args, Kwargs
from ..ir.values import NeedsValue
from ..sharding.mode import dividing
from ..status_line import status_line
from .arguments import Slots
from .evaluate import compile_program
from .guards import callers_level
from .history import FEW, advice, advice_on_captures
from .key import JitKey, bind_call
from .program_cache import Compiled, Interpreted, ProgramCache
from .varying_numbers import is_no_slower

if TYPE_CHECKING:
    from .compiled_program import CompiledProgram
    from .function import JitFunction

__all__ = ["JitCall"]

_compiling = new_lock()


class JitCall:
    """One call of a compiled function that looks for its program in the program cache.

    Attributes:
        function: the compiled function.
        cache: the program cache of the function, or of its receiver if it is a method.
        key: the cache key.
        plain: the key in which objects among the arguments are not compared by identity.
        args, kwargs: the arguments.
        given: the positional arguments without the receiver of a method; these are part of the key.
        slots: the run-time inputs among the arguments.
        compiled: whether the function was compiled for this call.
        unmarked: the arguments (args, given, kwargs) before numbers among them were marked as
            inputs (`varying_numbers`); None if there are no such numbers.
    """

    __slots__ = (
        "function", "cache", "key", "plain", "args", "given", "kwargs", "slots", "compiled",
        "unmarked",
    )  # fmt: skip

    def __init__(
        self,
        function: JitFunction,
        cache: ProgramCache,
        key: JitKey,
        args: Args,
        given: Args,
        kwargs: Kwargs,
        slots: Slots,
    ) -> None:
        self.function = function
        self.slots = slots
        self.cache = cache
        self.key = self.plain = key
        self.args = args
        self.given = given
        self.kwargs = kwargs
        self.compiled = False
        self.unmarked: tuple[Args, Args, Kwargs] | None = None

    @classmethod
    def bound(
        cls, function: JitFunction, cache: ProgramCache, args: Args, given: Args, kwargs: Kwargs
    ) -> JitCall | None:
        """Return a call with its cache key, or None after moving tensors that had no device.

        After None, the caller must call again. Numbers that vary between calls are run-time inputs,
        unless the cache has a program for this call in which they are constants.

        Args:
            function: the compiled function.
            cache: the program cache of the function, or of its receiver if it is a method.
            args: all positional arguments.
            given: the positional arguments without the receiver of a method.
            kwargs: the keyword arguments.
        """
        unmarked = None
        if cache.numbers.inputs:
            unmarked = args, given, kwargs
            given, kwargs = cache.numbers.marked(given, kwargs)
            args = (*args[: len(args) - len(given)], *given)
        found = bind_call(given, kwargs, function._device())
        if found is None:
            return None
        call = cls(function, cache, found[0], args, given, kwargs, found[1])
        if unmarked is not None and call.key not in cache.entries:
            call._use(*unmarked)
            if call.key in cache.entries:  # a program from before the numbers were inputs
                return call
            call._use(args, given, kwargs)
        call.unmarked = unmarked
        return call

    def entry(self) -> Compiled | Interpreted:
        """Return the program cache's entry for the call; compile the function if none is valid.

        The first lookup uses the key of argument types and constants. If the program found depends
        on which objects the arguments are, `key` is replaced by a key that compares them by
        identity, and the lookup is repeated.
        """
        if self.cache.aliased and (self.slots.containers or self.slots.objects):
            own = self.plain.of_objects(self.slots)
            self.key = own if own in self.cache.entries else self.plain
        entry = self._found()
        if isinstance(entry, Compiled) and not entry.program.is_for(self.slots):
            self.key = self.plain.of_objects(self.slots)
            entry = self._found()
        if isinstance(entry, Compiled) and entry.program.distinguishes:
            shared = entry.program.shared(self.slots.leaves)
            if shared:
                self.key = self.plain.sharing_tensors(shared, self.slots)
                entry = self._found(shared)
        return entry

    def _found(self, shared: Mapping[int, int | None] | None = None) -> Compiled | Interpreted:
        """Return the cache entry for `self.key`; compile the function if there is no valid one.

        Args:
            shared: which tensor arguments are the same object, as `CompiledProgram.shared` returns
                it.
        """
        found = self.cache.find(self.key)
        return self.compile(shared) if found is None else found

    def compile(self, shared: Mapping[int, int | None] | None = None) -> Compiled | Interpreted:
        """Compile the function for the call and add the program to the program cache.

        Returns the cache entry. If a program for symbolic sizes fits, a program for the sizes of
        the call is made from it instead. Code that cannot be compiled gets an entry that makes it
        run uncompiled, with a warning. `shared` is that of `_found`.

        Raises:
            UnsupportedSyntaxError, NeedsValue: the code cannot be compiled, and may not run
                uncompiled: in strict mode, if programs are divided among ranks, or if it uses an
                operation that is always refused (RefusedError).
        """
        function, cache = self.function, self.cache
        with _compiling:
            found = cache.find(self.key)  # another thread may have been faster
            if found is not None:
                return found
            self.compiled = True
            again = bool(cache.entries.get(self.key))  # captured values or state have changed
            if again:
                self._say_why()
            specialised = None if shared else cache.symbolic.specialised(self)
            if specialised is not None:
                function._specialised += 1
                function._seconds += specialised.seconds
                made = Compiled(specialised)
                cache.add(self.key, made)
                return made
            number_inputs = self._with_number_inputs(shared)
            if number_inputs is not None:
                return number_inputs
            if not again:
                self._say_why()
            strict = function.strict()
            entry: Compiled | Interpreted
            try:
                program = self._program(shared)
            except (UnsupportedSyntaxError, NeedsValue) as error:
                # divided among ranks, Python code would see only this rank's parts of the tensors
                if strict or isinstance(error, RefusedError) or dividing() is not None:
                    raise
                if isinstance(error, AliasedError):  # other objects may be compiled
                    cache.aliased = True
                    self.key = self.key.of_objects(self.slots)
                entry = Interpreted(str(error))
                function._reasons.add(f"runs line by line: {error}")
                warnings.warn(
                    f"{function._name} runs line by line, not compiled: {error}",
                    RuntimeWarning,
                    stacklevel=callers_level(),
                )
            else:
                entry = Compiled(program)
                if not shared:
                    cache.symbolic.add_shapes(self)
                function._seconds += program.seconds
                function._misses += 1
            cache.add(self.key, entry)
            return entry

    def _program(self, shared: Mapping[int, int | None] | None = None) -> CompiledProgram:
        """Compile the function for the call and return the program, without adding it to the cache.

        `shared` is that of `_found`.

        Raises:
            UnsupportedSyntaxError, NeedsValue: the code cannot be compiled.
        """
        function = self.function
        target, args = function._target, self.given
        if target is None:
            target, args = function.function, self.args
        with (
            status_line(f"compiling {function._name}"),
            reporting("compile", f"compile {function._name}", repr(self.key.device)),
        ):
            return compile_program(
                target, args, self.kwargs, function.strict(), self.key.device, function._name,
                function.level(), shared,
            )  # fmt: skip

    def _with_number_inputs(
        self, shared: Mapping[int, int | None] | None
    ) -> Compiled | Interpreted | None:
        """Compile the function for the call with numbers that vary as inputs.

        A number varies if several different values of it have been compiled as constants. If a
        program with such numbers as inputs cannot be made, or would be slower, they stay constants
        in this call and in all later ones. Returns the cache entry of the program; None if no
        number varies or the caller must compile the function with constants. `shared` is that of
        `_found`.
        """
        cache, function = self.cache, self.function
        numbers = cache.numbers
        if function.dynamic in (0, False) or dividing() is not None:
            return None
        program: CompiledProgram | None
        if self.unmarked is not None:
            program = self._program_of_inputs(None, shared)
            if program is None:
                numbers.keep_constant()
                self._use(*self.unmarked)
                self.unmarked = None
                if shared:
                    self.key = self.plain.sharing_tensors(shared, self.slots)
                return cache.find(self.key)
        else:
            varying = numbers.varying(self.given, self.kwargs)
            constants = [p for p in cache.programs() if p.device is self.key.device]
            if shared or not varying or not constants or self.key is not self.plain:
                return None
            constant_call = self.args, self.given, self.kwargs
            given, kwargs = numbers.marked(self.given, self.kwargs, varying)
            self._use((*self.args[: len(self.args) - len(given)], *given), given, kwargs)
            program = self._program_of_inputs(constants[-1], None)
            if program is None:
                numbers.keep_constant(varying)
                self._use(*constant_call)
                return None
            numbers.inputs |= varying
            self.unmarked = constant_call
        entry = Compiled(program)
        if not shared:
            cache.symbolic.add_shapes(self)
        function._seconds += program.seconds
        function._misses += 1
        function._reasons.add("compiled: numbers that vary among the arguments are inputs")
        cache.add(self.key, entry)
        return entry

    def _use(self, args: Args, given: Args, kwargs: Kwargs) -> None:
        """Replace the call's arguments; recompute its cache key and run-time inputs from them."""
        found = bind_call(given, kwargs, self.function._device())
        assert found is not None  # an earlier key of the call has moved all tensors to the device
        self.args, self.given, self.kwargs = args, given, kwargs
        self.key, self.slots = found
        self.plain = self.key

    def _program_of_inputs(
        self, constant: CompiledProgram | None, shared: Mapping[int, int | None] | None
    ) -> CompiledProgram | None:
        """Return a program with numbers as inputs; None if it cannot be made or would be slower.

        Args:
            constant: a program of the function in which the numbers are constants. A new program
                with more control flow than this one counts as slower. None skips this comparison.
            shared: which tensor arguments are the same object, as `CompiledProgram.shared` returns
                it.
        """
        try:
            program = self._program(shared)
        except Exception:  # noqa: BLE001  (with constants the error is raised again, if at all)
            return None
        if constant is not None and not is_no_slower(program.graph, constant.graph):
            return None
        return program

    def _say_why(self) -> None:
        """Record why a function that has programs is compiled again; warn if that is too often."""
        cache, reasons = self.cache, self.function._reasons
        name = self.function._name
        known = cache.entries.get(self.key)
        said = ""
        if known and isinstance(known[-1], Compiled):
            changed = ", ".join(known[-1].guard.differing()) or "its state"
            reasons.add(f"recompiled: {changed} changed")
            if len(known) >= FEW and changed not in reasons.advised:
                reasons.advised[changed] = ""
                said = advice_on_captures(name, len(known) + 1, changed)
        elif cache.entries:
            last = next(reversed(cache.entries))
            names = self.function.parameter_names(len(self.args) - len(self.given))
            reasons.add(f"compiled: {self.key.difference_from(last, names)}")
            keys = [key for key, entries in cache.entries.items() if not entries[-1].specialised]
            if len(keys) >= FEW:
                said = advice(name, [*keys, self.key], names, reasons.advised)
        if said:
            warnings.warn(said, RuntimeWarning, stacklevel=callers_level())
