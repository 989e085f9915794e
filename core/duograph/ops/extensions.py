"""Registration of the ops, gradient rules, decompositions and kernels that plugins provide.

The registry of backends calls it when plugins are loaded or disabled; programs call `add_kernels`
and `remove_kernels`. Nothing of a plugin may be registered unless all of it is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

from ..backend import added_kernels
from ..backend.added_kernels import KernelSpec
from ..backend.protocol import Backend
from ..errors import ArgumentError
from ..op import OPS, Op
from ..op_tables import rules_changed

__all__ = ["add_kernels", "check", "check_backend", "remove_kernels", "withdraw"]

Rules = Mapping[str, Callable[..., object]]


def check(module: ModuleType) -> Callable[[], None]:
    """Check what the hooks of a plugin's module return; return a function that registers all of it.

    Raises:
        ArgumentError: a hook returned a value of another type than `backend.hookspecs` declares,
            or named an unknown op.
    """
    ops = {made.name: made for made in _ops(module)}
    known = OPS | ops
    rules = _rules(module, "duograph_bprops", known)
    decompositions = _rules(module, "duograph_decompositions", known)
    kernels = added_kernels.checked(_returned(module, "duograph_kernels", ()), known)
    for name, rule in rules.items():
        known[name].check_rule_arity(rule)

    def register() -> None:
        OPS.update(ops)
        for name, rule in rules.items():
            OPS[name].bprop(rule)
            OPS[name].own_rule = False
            OPS[name].differentiable = True
        for name, rule in decompositions.items():
            OPS[name].decompose(rule)
        added_kernels.install(kernels, f"the plugin {module.__name__}")
        if rules or decompositions or kernels:
            rules_changed()

    return register


def check_backend(made: Backend) -> str | None:
    """Return why the decompositions of backend `made` cannot be used, or None if they can."""
    for name in made.decompositions:
        if name not in OPS:
            return (
                f"{type(made).__name__}.decompositions has a rule for the op {name!r}, which there "
                "is not"
            )
    return None


def add_kernels(*specs: KernelSpec, owner: str = "the program") -> None:
    """Add kernels to installed backends without an installed plugin, for tests and notebooks.

    Later calls and compiled functions use them. `owner` names their provider in messages.

    Raises:
        ArgumentError: a spec has a malformed field; then none is added.
    """
    added_kernels.install(added_kernels.checked(specs, OPS), owner)
    rules_changed()


def remove_kernels(*specs: KernelSpec) -> None:
    """Remove kernels that `add_kernels` added; specs that are not installed are ignored."""
    added_kernels.uninstall(specs)
    rules_changed()


def withdraw(module: str) -> None:
    """Remove the ops that a module or its submodules defined, because its plugin is disabled."""
    for name in [n for n, made in OPS.items() if f"{made.__module__}.".startswith(f"{module}.")]:
        del OPS[name]


def _ops(module: ModuleType) -> list[Op]:
    """Call the hook `duograph_ops` of a plugin's module; return the ops after checking them."""
    found = _returned(module, "duograph_ops", ())
    if isinstance(found, (str, Mapping)) or not isinstance(found, Iterable):
        raise ArgumentError(f"duograph_ops returned {type(found).__name__}; wanted a list of ops")
    ops = list(found)
    for made in ops:
        if not isinstance(made, Op):
            raise ArgumentError(f"duograph_ops returned {type(made).__name__}; wanted ops")
        if OPS.get(made.name, made) is not made:
            raise ArgumentError(
                f"duograph_ops returned an op {made.name!r}; there is one of that name in "
                f"{OPS[made.name].__module__}"
            )
    return ops


def _rules(module: ModuleType, hook: str, known: Mapping[str, Op]) -> Rules:
    """Call a hook of a plugin module that returns a dict from op names to functions; check it.

    Returns the dict. Raises ArgumentError for a name that is not in `known`, the ops by name.
    """
    found = _returned(module, hook, {})
    if not isinstance(found, Mapping):
        raise ArgumentError(f"{hook} returned {type(found).__name__}; wanted rules by op name")
    for name, rule in found.items():
        if name not in known:
            raise ArgumentError(f"{hook} returned a rule for the op {name!r}, which there is not")
        if not callable(rule):
            raise ArgumentError(f"{hook} returned {rule!r} for the op {name!r}; wanted a function")
    return found


def _returned(module: ModuleType, hook: str, default: object) -> object:
    function = getattr(module, hook, None)
    return default if function is None else function()
