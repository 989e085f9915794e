"""Replacements, for compiled code, of `fields`, `asdict`, `astuple` and `replace` of `dataclasses`.

They register in `dispatch.REPLACEMENTS`. They record the fields of the user's dataclasses, for the
guard to compare; `replace` also traces the call of the class. A function without a replacement runs
while compiling, or in Python when the graph runs; nothing of the user's may run there unseen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from .attributes import get_attribute
from .dispatch import call, call_object, replaces
from .objects import record_fields
from .outside import reachable


@replaces(dataclasses.fields)
def _fields(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
    """Call `dataclasses.fields(obj)`, which looks the fields up in the class of the object."""
    return _recorded(ev, dataclasses.fields, args, kwargs)


@replaces(dataclasses.asdict)
def _asdict(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
    """Call `dataclasses.asdict(obj)`, which looks the fields up in the class of the object."""
    return _recorded(ev, dataclasses.asdict, args, kwargs)


@replaces(dataclasses.astuple)
def _astuple(ev: Evaluation, /, *args: Value, **kwargs: Value) -> Value:
    """Call `dataclasses.astuple(obj)`, which looks the fields up in the class of the object."""
    return _recorded(ev, dataclasses.astuple, args, kwargs)


def _recorded(ev: Evaluation, f: Callable[..., Value], args: Args, kwargs: Kwargs) -> Value:
    """Call a function after the fields of all dataclasses in its arguments were recorded."""
    for value in reachable(args).values():
        record_fields(ev, value if isinstance(value, type) else type(value))
    return call_object(ev, f, args, kwargs)


@replaces(dataclasses.replace)
def _replace(ev: Evaluation, /, *args: Value, **changes: Value) -> Value:
    """Trace `dataclasses.replace(obj, **changes)`, whose class may have a `__post_init__`."""
    if len(args) != 1 or not hasattr(type(args[0]), "__dataclass_fields__"):
        return dataclasses.replace(*args, **changes)  # an error
    (owner,) = args
    record_fields(ev, type(owner))
    for field in type(owner).__dataclass_fields__.values():
        kind = field._field_type
        if kind is dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
            continue
        if not field.init:
            if field.name in changes:
                raise ValueError(
                    f"field {field.name} is declared with init=False, it cannot be specified with "
                    "replace()"
                )
        elif field.name not in changes:
            initial = kind is dataclasses._FIELD_INITVAR  # type: ignore[attr-defined]
            if initial and field.default is dataclasses.MISSING:
                raise ValueError(f"InitVar {field.name!r} must be specified with replace()")
            changes[field.name] = get_attribute(ev, owner, field.name)
    return call(ev, type(owner), (), changes)
