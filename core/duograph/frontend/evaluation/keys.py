"""Keys of dicts and items of sets in compiled code: may they be looked up while compiling?

`containers`, `expressions` and `operators` call this module before they look a key up. A hash or
comparison that the user wrote must not run while compiling.
"""

from __future__ import annotations

from ...ir.values import HostValue, NeedsValue
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.symbols import without_symbols
from .outside import ask, is_live, is_outside, special_method


def as_key(ev: Evaluation, key: Value) -> Value:
    """Return a dict key or set item, after checking that its hash may be computed at compile time.

    Symbolic sizes in the key become fixed numbers. The hash of an object from outside the function
    is recorded as a constant, which is compared before each later call.

    Raises:
        NeedsValue: code of the user computes the hash or decides which keys are equal, or the key
            is known only when the graph runs.
    """
    key = without_symbols(ev.scope, key)
    if isinstance(key, HostValue):
        raise NeedsValue("dict: got a key that is known only when the compiled function runs")
    if _decides_equality(ev, key):
        raise _own_hash(key)
    if is_outside(ev, key):
        if is_live(ev, key) or ev.outside.writes_to(key):
            raise NeedsValue(f"dict: got a key of {type(key).__name__} that the function changes")
        for item in key if isinstance(key, tuple) else (key,):
            if is_outside(ev, item):
                ask(ev, hash, item)
    return key


def look_up(ev: Evaluation, owner: Value, key: Value) -> Value:
    """Return a key after checking that finding it in a dict or set runs no user code.

    Symbolic sizes in the key become fixed numbers.

    Raises:
        NeedsValue: the key or a key in `owner` has a `__hash__` or `__eq__` that the user wrote.
    """
    if id(owner) not in ev.copies.plain_keys:
        for k in owner:
            if _decides_equality(ev, k):
                raise _own_hash(k)
        if id(owner) in ev.copies.originals:  # copies are kept alive, so that the id stays valid
            ev.copies.plain_keys.add(id(owner))
    return as_key(ev, key)


def _decides_equality(ev: Evaluation, key: Value) -> bool:
    """Return whether the user's `__hash__` or `__eq__` finds a key; record what they are."""
    if type(key) in (str, int, float, bool):
        return False
    own = [special_method(ev, key, name) for name in ("__hash__", "__eq__")]
    items = key if isinstance(key, tuple) else ()
    return any(own) or any([_decides_equality(ev, item) for item in items])


def _own_hash(key: Value) -> NeedsValue:
    return NeedsValue(
        f"dict: got a key of {type(key).__name__}, whose own methods decide which keys are equal; "
        "wanted a key of Python's classes"
    )
