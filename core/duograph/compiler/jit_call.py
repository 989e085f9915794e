"""One call of a compiled function: finds its program in the cache, or compiles it.

`compiler.function` makes a `JitCall` for each call that none of its faster lookups serves. The
module runs no program.
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
from ..nn.cell import Cell
from ..sharding.mode import dividing
from .arguments import Slots
from .evaluate import compile_program
from .guards import callers_level
from .history import FEW, advice, advice_on_captures
from .key import JitKey
from .program_cache import Compiled, Interpreted, ProgramCache
from .waiting import shown_on_terminal

if TYPE_CHECKING:
    from .function import JitFunction

__all__ = ["JitCall"]

_compiling = new_lock()


class JitCall:
    """One call of a compiled function that looks for its program in the program cache.

    Attributes:
        function: the compiled function.
        cache: the program cache of the function, or of its receiver if it is a method.
        key: the cache key.
        args, kwargs: the arguments.
        given: the positional arguments without the receiver of a method; these are part of the key.
        slots: the run-time inputs among the arguments.
        compiled: whether the function was compiled for this call.
    """

    __slots__ = ("function", "cache", "key", "args", "given", "kwargs", "slots", "compiled")

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
        self.key = key
        self.args = args
        self.given = given
        self.kwargs = kwargs
        self.compiled = False

    def entry(self) -> Compiled | Interpreted:
        """Return the program cache's entry for the call; compile the function if none is valid.

        The first lookup uses the key of argument types and constants. If the program found depends
        on which objects the arguments are, `key` is replaced by a key that compares them by
        identity, and the lookup is repeated.
        """
        key, slots = self.key, self.slots
        if self.cache.aliased and (slots.containers or slots.objects):
            own = key.of_objects(slots)
            self.key = own if own in self.cache.entries else key
        entry = self._found()
        if isinstance(entry, Compiled) and not entry.program.is_for(slots):
            self.key = key.of_objects(slots)
            entry = self._found()
        if isinstance(entry, Compiled) and entry.program.distinguishes:
            shared = entry.program.shared(slots.leaves)
            if shared:
                self.key = key.sharing_tensors(shared, slots)
                entry = self._found(shared)
        return entry

    def _found(self, shared: Mapping[int, int | None] | None = None) -> Compiled | Interpreted:
        """Return the cache entry for `self.key`; compile the function if there is no valid one.

        Args:
            shared: which tensor arguments are one object; see `CompiledProgram.shared`.
        """
        found = self.cache.find(self.key)
        return self.compile(shared) if found is None else found

    def compile(self, shared: Mapping[int, int | None] | None = None) -> Compiled | Interpreted:
        """Compile the function for the call and add the program to the program cache.

        Code that cannot be compiled gets an entry that makes it run line by line, with a warning;
        in strict mode the error is raised.
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
            if not again:
                self._say_why()
            strict = function.strict()
            target, args = function._target, self.given
            if target is None:
                target, args = function.function, self.args
            entry: Compiled | Interpreted
            try:
                with (
                    shown_on_terminal(function._name),
                    reporting("compile", f"compile {function._name}", repr(self.key.device)),
                ):
                    program = compile_program(
                        target,
                        args,
                        self.kwargs,
                        strict,
                        self.key.device,
                        function._name,
                        function.level(),
                        shared,
                    )
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
            reasons.add(f"compiled: {self.key.difference_from(last)}")
            keys = [key for key, entries in cache.entries.items() if not entries[-1].specialised]
            if len(keys) >= FEW:
                code = getattr(self.function.function, "__code__", None)
                names = code.co_varnames[: code.co_argcount] if code is not None else ()
                skipped = len(self.args) - len(self.given)
                target = isinstance(self.function._target, Cell)
                names = names[max(skipped, int(target)) :]
                said = advice(name, [*keys, self.key], names, reasons.advised)
        if said:
            warnings.warn(said, RuntimeWarning, stacklevel=callers_level())
