"""The tables of prepared calls of all ops: clearing them, and switching observers on and off.

A prepared call is a kernel found for given operand types and attributes. Code that changes the
rules of an op calls `rules_changed`, code that changes the device `drop_tables`, and observers such
as profilers `exchange_tables`. Nothing here may run per call of an op.
"""

from __future__ import annotations

from collections.abc import Hashable

from .call_cache import clear_cached_calls, exchange, exchange_cached_calls
from .op import OPS
from .op_calls import Function
from .runtime_state import runtime_state

__all__ = ["drop_tables", "exchange_tables", "kernel_cache", "rules_changed"]

# Each with the calls of the other form; see `exchange_tables`.
_kernel_caches: list[tuple[dict[Hashable, Function], dict[Hashable, Function]]] = []


def kernel_cache() -> dict[Hashable, Function]:
    """Return a new dict for functions that run prepared op calls, which `drop_tables` clears.

    A prepared call is a kernel found for given operand types and attributes.
    """
    made: dict[Hashable, Function] = {}
    _kernel_caches.append((made, {}))
    return made


def drop_tables() -> None:
    """Clear all caches of prepared calls (kernels found for operand types and attributes).

    It is called after an op's rules or the device changed.
    """
    clear_cached_calls()
    for pair in _kernel_caches:
        for cache in pair:
            cache.clear()
    for known in OPS.values():
        known.forget_calls()


def exchange_tables() -> None:
    """Switch all prepared calls between two forms: with and without reports to observers.

    A prepared call is a kernel found for operand types and attributes; observers are, for example,
    profilers. Both forms are kept, so that a profiler can be switched on and off at every step.
    """
    exchange_cached_calls()
    for cache, other in _kernel_caches:
        exchange(cache, other)
    for known in OPS.values():
        exchange(known.table, known.other_table)


def rules_changed() -> None:
    """Discard all that depends on the rules of ops, after one was replaced.

    These are prepared calls (kernels found for operand types), traced bodies and compiled code.
    """
    runtime_state.rules_version += 1
    runtime_state.settings_version = object()
    drop_tables()
    for known in OPS.values():
        known.expanded.clear()
