"""The cache key under which a compiled function finds its program; only this module builds it.

`compiler.function` calls `bind_call` for every call that no fast lookup serves. Two calls with
equal keys may run the same program, provided that its captured values are unchanged, which
`compiler.guards` checks. Nothing here reads captured values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from ..backend import registry
from ..context import settings
from ..errors import DeviceError
from ..frontend.types import Value
from ..placement import check_index, commit
from ..runtime_state import runtime_state, thread_state
from ..sharding.mode import dividing_key
from ..types import Device
from .arguments import Identity, Slots, signature, tensor_labels

__all__ = ["ContextKey", "JitKey", "argument_label", "bind_call"]


class ContextKey(NamedTuple):
    """The settings (`context.Settings`) that compiled code depends on, as part of a cache key.

    `rank` is (rank, number of ranks) in a thread that acts as one rank of a group, else None.
    `divided` says how programs are divided among ranks; None if they are not.
    """

    device_target: str | None
    device_id: int
    jit_level: str
    jit_config: Hashable
    jit_syntax_level: int
    debug: bool
    check_bprop: bool
    rank: tuple[int, int] | None
    divided: Hashable


class JitKey(NamedTuple):
    """The types, constants and settings that one compiled program was made for.

    Attributes:
        arguments: for each positional argument its type, or its value if that is a constant.
        keywords: (name, type or value) of each keyword argument.
        device: the device on which the program runs.
        context: the settings.
        rules_version: how many times rules of ops have been replaced in this process.
        sharing: a pair for each tensor argument that is the same object as an earlier one or as a
            state tensor: its position, and the position of the earlier one or the state tensor. It
            is empty unless the program writes in place or compares tensors with `is`.
        containers: for each list, dict and set among the arguments, the position of the first that
            is the same object; empty if all differ. In a key made by `of_objects`: the containers,
            arrays and frozen dataclasses themselves, compared by identity.
    """

    arguments: tuple[Hashable, ...]
    keywords: tuple[tuple[str, Hashable], ...]
    device: Device
    context: ContextKey
    rules_version: int
    sharing: tuple[tuple[int, int | Identity], ...] = ()
    containers: tuple[int | Identity, ...] = ()

    def sharing_tensors(self, shared: Mapping[int, int | None], slots: Slots) -> JitKey:
        """Return a copy of the cache key that also says which tensor arguments are the same object.

        Args:
            shared: the tensor arguments that are the same object, as `CompiledProgram.shared`
                returns them.
            slots: the run-time inputs of the call.
        """
        leaves = slots.leaves
        return self._replace(
            sharing=tuple([(i, Identity(leaves[i]) if k is None else k) for i, k in shared.items()])
        )

    def of_objects(self, slots: Slots) -> JitKey:
        """Return a copy of the cache key that fits only calls with the same argument objects.

        Lists, dicts, sets, arrays and frozen dataclasses in `slots` are then compared by identity.
        """
        objects = (*slots.containers, *slots.objects)
        return self._replace(containers=tuple(map(Identity, objects)))

    def tensor_names(self, parameters: Sequence[str]) -> list[str]:
        """Return a name for each tensor argument, in the order in which a program numbers them.

        It is "argument x", or "argument x[1]" for a tensor in a list. `parameters` are the names of
        the positional arguments; an argument without a name is called by its position.
        """
        found: list[str] = []
        for i, part in enumerate(self.arguments):
            found += tensor_labels(argument_label(parameters, i), part)
        for name, part in self.keywords:
            found += tensor_labels(f"argument {name}", part)
        return found

    def difference_from(self, old: JitKey, parameters: Sequence[str] = ()) -> str:
        """Return a phrase, for messages, about one difference between this cache key and `old`.

        This key is the newer one: "argument x was ... and is ...". If there are several
        differences, those in `sharing`, `containers` and the arguments come first. `parameters` are
        the names of the positional arguments, as far as they are known.
        """
        if self.sharing != old.sharing:
            return "arguments that are one Tensor, or state, of which the function writes some"
        if self.containers != old.containers:
            return "which objects the arguments are"
        if self.arguments != old.arguments and len(self.arguments) == len(old.arguments):
            for i, (was, now) in enumerate(zip(old.arguments, self.arguments)):
                if was != now:
                    return f"{argument_label(parameters, i)} was {was!r} and is {now!r}"
        for name, was, now in (
            ("arguments", old.arguments, self.arguments),
            ("keyword arguments", old.keywords, self.keywords),
            ("device", old.device, self.device),
            *zip(ContextKey._fields, old.context, self.context),
            ("gradient rules", old.rules_version, self.rules_version),
        ):
            if was != now:
                verb = ("were", "are") if name.endswith("s") else ("was", "is")
                return f"{name} {verb[0]} {was!r} and {verb[1]} {now!r}"
        return "nothing differs"


def argument_label(parameters: Sequence[str], i: int) -> str:
    """Return how messages call positional argument `i`: "argument x", or by number without names.

    `parameters` are the names of the positional arguments, as far as they are known.
    """
    return f"argument {parameters[i] if i < len(parameters) else i}"


def bind_call(
    given: Sequence[Value], kwargs: Mapping[str, Value], backend: Device | None = None
) -> tuple[JitKey, Slots] | None:
    """Return the program cache key of a call and the run-time inputs among its arguments.

    Args:
        given: the positional arguments.
        kwargs: the keyword arguments.
        backend: the device that `jit(backend=...)` names; None stands for the device of the
            arguments.

    Returns None after moving tensors that had no device to the device of the call: their types have
    changed, so the caller must call again.

    Raises:
        DeviceError: an argument is on another device than `backend`.
    """
    slots = Slots()
    arguments = tuple([signature(a, slots) for a in given])
    keywords = tuple([(k, signature(v, slots)) for k, v in kwargs.items()]) if kwargs else ()
    device = backend
    uncommitted = []
    for x in slots.leaves:
        own = x._type.device
        if own is None:
            uncommitted.append(x)
        elif device is None:
            device = own
        elif backend is not None and own is not backend:
            raise DeviceError(
                f"jit: got an argument on {own} for a function with backend={str(backend)!r}; "
                f'wanted it there: move it with move_to("{backend}")'
            )
    if device is None:
        device = registry.current_device()
    if uncommitted:
        check_index(device.name, device.index)
        for x in uncommitted:
            commit(x, device)
        return None
    context = ContextKey(
        settings.device_target,
        settings.device_id,
        settings.jit_level,
        settings.jit_config,
        settings.jit_syntax_level,
        settings.debug,
        settings.check_bprop,
        None if thread_state.world is None else (thread_state.world.rank, thread_state.world.size),
        dividing_key(),
    )
    same: tuple[int | Identity, ...] = ()
    if len(slots.containers) > 1:
        first: dict[int, int] = {}
        numbers = [first.setdefault(id(c), i) for i, c in enumerate(slots.containers)]
        same = tuple(numbers) if len(first) < len(numbers) else ()
    version = runtime_state.rules_version
    return JitKey(arguments, keywords, device, context, version, (), same), slots
