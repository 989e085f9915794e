"""The cache of the compiled programs of one function, or of one method for one receiver.

`compiler.jit_call` looks programs up here and adds new ones; the cache never compiles. A cache must
never be copied or pickled with the Cell that holds it, because programs refer to their tensors by
identity.
"""

from __future__ import annotations

import collections
import contextlib
import weakref
from collections.abc import Callable
from typing import TypeAlias

from ..backend.prepared import HandleFunction
from ..types import TensorType
from .compiled_program import CompiledProgram
from .guards import Guard
from .key import JitKey
from .recorded_call import RecordedProgram
from .symbolic import SymbolicPrograms
from .varying_numbers import VaryingNumbers

__all__ = [
    "LIMIT",
    "SPECIALISED_LIMIT",
    "VARIANTS",
    "Compiled",
    "FastCall",
    "Interpreted",
    "ProgramCache",
    "ReceiverCaches",
]

# The most signatures of which the cache of a function, for one receiver, keeps programs.
LIMIT = 128
# The limit where sizes vary, as most programs are then specialised from symbolic ones.
SPECIALISED_LIMIT = 1024
# The most programs of one signature; they differ in captured values, such as a training flag.
VARIANTS = 8


class Compiled:
    """A program cache entry: a compiled program and the guard that checks captured values.

    Attributes:
        program: the program.
        guard: checks the captured values of the program.
        recorded: runs the program while a gradient tape records.
        specialised: whether the program was made from a program for symbolic sizes.
    """

    __slots__ = ("program", "guard", "recorded", "specialised")

    def __init__(self, program: CompiledProgram) -> None:
        self.program = program
        self.specialised = program.symbolic is not None
        symbolic = program.symbolic
        self.guard = Guard(program.captures) if symbolic is None else symbolic.guard.copy()
        self.recorded = RecordedProgram(program)

    def valid(self) -> bool:
        """Return whether the program may serve a call if no other program in the cache fits better.

        The tensors that the program reads besides its arguments must have the types of compile
        time. The user's setting `stale_captures` decides whether captured values may have changed.

        Raises:
            CaptureError: a captured value has changed, and the setting is "error".
        """
        return self.guard.holds(chosen=True) and self._state_fits()

    def fits(self) -> bool:
        """Return whether the program was compiled for the present captured values and tensor types.

        The tensors are those that the program reads besides its arguments, such as Parameters.
        """
        return self.guard.unchanged() and self._state_fits()

    def _state_fits(self) -> bool:
        program = self.program
        return not program.state or program.ready() or program.fits()


class Interpreted:
    """A program cache entry for a signature whose calls run uncompiled, as ordinary Python.

    Attributes:
        reason: why the function could not be compiled.
    """

    __slots__ = ("reason",)
    specialised = False

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def valid(self) -> bool:
        """Return True, because running the function uncompiled is right for every call."""
        return True

    def fits(self) -> bool:
        """Return False, so that a program compiled for the present captured values is preferred."""
        return False


# A program that runs on handles, for arguments that are all plain Tensors: a function from their
# handles to the handle of the result, the type of the result, and the version of the settings for
# which it was compiled. It is a plain tuple, because each call unpacks it.
FastCall: TypeAlias = tuple[HandleFunction, TensorType, object]
ArgumentTypes: TypeAlias = tuple[TensorType, ...]


class ProgramCache:
    """The compiled programs of one function, or of one method for one receiver.

    Attributes:
        entries: key -> programs for that key, which differ in their captures; the one used last
            comes last.
        fast: argument types -> `CompiledProgram.fast_call`, the settings version and the result
            type, for arguments that are all plain Tensors.
        quick: argument types -> (cache entry, settings version), for programs whose captures, and
            types of the tensors that they read besides their arguments, are checked before a call.
        aliased: whether some call had a list, dict or set as an argument that the function also
            reached in another way, such as by a global variable.
        symbolic: programs for symbolic sizes, from which programs for the sizes of a call are made.
        numbers: which Python numbers among the arguments are inputs of the programs.
    """

    def __init__(self) -> None:
        self.entries: collections.OrderedDict[JitKey, list[Compiled | Interpreted]] = (
            collections.OrderedDict()
        )
        self.fast: dict[ArgumentTypes, FastCall] = {}
        self.quick: dict[ArgumentTypes, tuple[Compiled, object]] = {}
        self.aliased = False
        self.symbolic = SymbolicPrograms()
        self.numbers = VaryingNumbers()

    def find(self, key: JitKey) -> Compiled | Interpreted | None:
        """Return the entry of a key that may serve a call now, or None.

        Captured values are the variables outside the function that it reads. The first choice is
        an entry whose program was compiled for their present values. Otherwise two kinds of entries
        may serve: programs that the user's setting `stale_captures` allows to run with old values,
        and entries that run uncompiled; of these, the most recently used one is returned. The
        returned entry becomes the most recently used one.
        """
        variants = self.entries.get(key, [])
        latest = variants[::-1]
        found = next((e for e in latest if e.fits()), None) if len(latest) > 1 else None
        if found is None or not found.valid():
            found = next((e for e in latest if e.valid()), None)
        if found is not None:
            with contextlib.suppress(KeyError):  # another thread may have removed it
                self.entries.move_to_end(key)
        if found is not None and found is not variants[-1]:
            self.entries[key] = [*(e for e in variants if e is not found), found]
        return found

    def add(self, key: JitKey, entry: Compiled | Interpreted) -> None:
        """Add an entry to the program cache; remove those not used for longest beyond the limits.

        There is a limit to the number of keys, and one to the number of entries for one key.
        """
        while len(self.entries) >= (SPECIALISED_LIMIT if self.symbolic.programs() else LIMIT):
            self.entries.popitem(last=False)
            self.quick.clear()
        variants = self.entries.setdefault(key, [])
        if variants:
            self.quick.clear()
        del variants[: max(0, len(variants) + 1 - VARIANTS)]
        variants.append(entry)
        for known in variants if len(variants) > 1 else ():
            if isinstance(known, Compiled):
                known.guard.alone = False

    def programs(self) -> list[CompiledProgram]:
        """Return all compiled programs in the cache."""
        return [
            entry.program
            for entries in list(self.entries.values())
            for entry in entries
            if isinstance(entry, Compiled)
        ]

    def clear(self) -> None:
        """Remove all programs from the cache."""
        self.entries.clear()
        self.quick.clear()
        self.fast.clear()
        self.symbolic = SymbolicPrograms()
        self.numbers = VaryingNumbers()

    def __deepcopy__(self, memo: object) -> ProgramCache:
        return ProgramCache()

    def __reduce__(self) -> tuple[type[ProgramCache], tuple[()]]:
        return ProgramCache, ()


class ReceiverCaches(weakref.WeakKeyDictionary[object, ProgramCache]):
    """Program caches of the compiled methods of one object, stored in its `__dict__`.

    Maps the `JitFunction` of a method to a `ProgramCache`.

    Attributes:
        owner: function that returns the object. After a shallow copy, the copy holds this same
            mapping, but its owner is still the original; this is how a copy is recognised.
    """

    def __init__(self, owner: object = None) -> None:
        super().__init__()
        self.owner: Callable[[], object]
        try:
            self.owner = weakref.ref(owner)
        except TypeError:  # None, or a class without weak references
            self.owner = lambda: owner

    def __deepcopy__(self, memo: object) -> ReceiverCaches:
        return ReceiverCaches()

    def __copy__(self) -> ReceiverCaches:
        return ReceiverCaches()

    def __reduce__(self) -> tuple[type[ReceiverCaches], tuple[()]]:
        return ReceiverCaches, ()
