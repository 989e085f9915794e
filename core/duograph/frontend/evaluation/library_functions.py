"""Replacements, for compiled code, of functions of the standard library that call the user's code.

They register in `dispatch.REPLACEMENTS`. A function without a replacement runs while compiling, or
in Python when the graph runs; nothing of the user's may run there unseen.
"""

from __future__ import annotations

import dataclasses

from ..state.evaluation import Evaluation
from ..types import Value
from .attributes import get_attribute
from .dispatch import call, replaces


@replaces(dataclasses.replace)
def _replace(ev: Evaluation, /, *args: Value, **changes: Value) -> Value:
    """Trace `dataclasses.replace(obj, **changes)`, whose class may have a `__post_init__`."""
    if len(args) != 1 or not hasattr(type(args[0]), "__dataclass_fields__"):
        return dataclasses.replace(*args, **changes)  # an error
    (owner,) = args
    for field in type(owner).__dataclass_fields__.values():
        kind = field._field_type.name
        if kind == "_FIELD_CLASSVAR":
            continue
        if not field.init:
            if field.name in changes:
                raise ValueError(
                    f"field {field.name} is declared with init=False, it cannot be specified with "
                    "replace()"
                )
        elif field.name not in changes:
            if kind == "_FIELD_INITVAR" and field.default is dataclasses.MISSING:
                raise ValueError(f"InitVar {field.name!r} must be specified with replace()")
            changes[field.name] = get_attribute(ev, owner, field.name)
    return call(ev, type(owner), (), changes)
