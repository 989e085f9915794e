"""Makes objects of the user's classes in compiled code.

`calls` calls `make_object` where a class is called. An `__init__` or `__new__` that the user wrote
is evaluated from source, and so are the `__post_init__` and the default factories that the
generated `__init__` of a dataclass calls.
"""

from __future__ import annotations

import dataclasses
import inspect
import types

from ..libraries import in_classes, is_user_function
from ..state.captures import entries_of
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from .attributes import set_attribute
from .dispatch import call
from .functions import record_definition
from .native import native


def make_object(ev: Evaluation, cls: Value, args: Args, kwargs: Kwargs) -> Value:
    """Make an object as a class of the user does when it is called without its metaclass's part.

    Returns the object, recorded as made by evaluated code.
    """
    for name in ("__new__", "__init__", "__post_init__", "__abstractmethods__"):
        ev.captures.class_attribute(cls, name)
    init, new = cls.__init__, getattr(cls, "__new__")  # noqa: B009  (not of an object)
    plain = type(cls).__call__ is type.__call__  # the metaclass of enums has its own
    is_data = record_fields(ev, cls)
    of_library = type(cls) is type and new is object.__new__ and not is_data
    has_init = is_user_function(init) or (of_library and isinstance(init, types.FunctionType))
    fills = is_data and _has_hooks(ev, cls)
    if plain and is_user_function(new):
        made = call(ev, new, (cls, *args), kwargs)
    elif plain and (has_init or fills):
        made = ev.owned.add(new(cls) if new is object.__new__ else new(cls, *args, **kwargs))
    else:  # enums, named tuples and other classes construct themselves
        for generated in (init, new):
            if isinstance(generated, types.FunctionType):
                record_definition(ev, generated)
        ev.copies.observe(cls)  # an enum looks its members up
        return ev.owned.add(native(ev, cls, args, kwargs))
    if isinstance(made, cls) and has_init:
        call(ev, init, (made, *args), kwargs)
    elif isinstance(made, cls) and fills:
        _fill_dataclass(ev, made, args, kwargs)
    elif isinstance(made, cls) and init is not object.__init__:
        native(ev, init, (made, *args), kwargs)
    return made


def record_fields(ev: Evaluation, cls: type) -> bool:
    """Record the fields of a dataclass as a constant; return whether the class is a dataclass."""
    fields = in_classes(cls, "__dataclass_fields__")
    if fields is None:
        return False
    label = f"the fields of {cls.__name__}"
    ev.captures.add("entries", fields, None, entries_of(fields), label)
    return True


def _has_hooks(ev: Evaluation, cls: Value) -> bool:
    """Return whether the generated `__init__` of a dataclass calls code of the user.

    Such code is `__post_init__`, a default factory or `__setattr__`.
    """
    if not cls.__dataclass_params__.init or is_user_function(cls.__init__):
        return False
    ev.captures.class_attribute(cls, "__setattr__")
    if is_user_function(cls.__setattr__):
        return True
    factories = [f.default_factory for f in cls.__dataclass_fields__.values()]
    return in_classes(cls, "__post_init__") is not None or any(map(is_user_function, factories))


def _fill_dataclass(ev: Evaluation, made: Value, args: Args, kwargs: Kwargs) -> None:
    """Set the fields of a new object, like the generated `__init__` of a dataclass.

    Default factories and `__post_init__` are evaluated.
    """
    cls: Value = type(made)
    record_definition(ev, cls.__init__)
    given = inspect.signature(cls.__init__).bind(made, *args, **kwargs).arguments
    only_for_init = []
    for name, field in cls.__dataclass_fields__.items():
        if field._field_type is dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
            continue
        if name in given:
            value = given[name]
        elif field.default_factory is not dataclasses.MISSING:
            value = call(ev, field.default_factory, (), {})
        elif field.default is not dataclasses.MISSING:
            value = field.default
        else:
            continue  # `__post_init__` sets it
        if field._field_type is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            only_for_init.append(value)
        elif is_user_function(cls.__setattr__) and not cls.__dataclass_params__.frozen:
            set_attribute(ev, made, name, value)
        else:
            object.__setattr__(made, name, value)
    if in_classes(cls, "__post_init__") is not None:
        call(ev, cls.__post_init__, (made, *only_for_init), {})
