"""Snapshots of outside objects: their contents, and which object is which from call to call."""

from __future__ import annotations

import collections
import enum
import functools
import types
import weakref
from typing import Any, NamedTuple

import numpy as np
from duograph import Tensor, nn

__all__ = ["Snapshots", "as_text"]

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(...), np.dtype, range, slice)
_DEEP = 12


class _Node(NamedTuple):
    kind: str
    number: str
    parts: tuple[tuple[Any, Any], ...]


class _Data:
    """Contents that are no object of the program: compared by value, not numbered."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Snapshots:
    """Takes snapshots of one world.

    Objects are numbered in the order in which they are met and kept alive, so equal snapshots of
    two worlds mean equal contents and equal identities, at each time and from one time to the next.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def world(self, roots: list[Any]) -> tuple[Any, ...]:
        """Return a nested tuple of everything that can be reached from some objects."""
        seen: dict[int, Any] = {}
        return tuple(self._of(v, seen, 0, True) for v in roots)

    def result(self, value: Any) -> Any:
        """Return the same for a result; an object that is in no earlier snapshot has no number."""
        return self._of(value, {}, 0, False)

    def _of(self, value: Any, seen: dict[int, Any], depth: int, numbered: bool) -> Any:
        if isinstance(value, _Data):
            return value.value
        if type(value) in _ATOMS or isinstance(value, np.dtype):
            return repr(value)
        kind = type(value)
        if kind.__module__.startswith(("duograph.ir", "duograph.frontend", "duograph.compiler")):
            if "JitFunction" in kind.__name__:  # line by line it is the function itself
                return self._of(value.function, seen, depth, numbered)
            return f"<placeholder {kind.__name__}>"
        if _is_interchangeable(value):
            return _Node(kind.__name__, "", self._parts(value, seen, depth, numbered))
        number = self._number(value, numbered)
        if id(value) in seen or depth > _DEEP:
            return number
        seen[id(value)] = value
        return _Node(kind.__name__, number, self._parts(value, seen, depth, numbered))

    def _parts(self, value: Any, seen: dict[int, Any], depth: int, numbered: bool) -> Any:
        return tuple((k, self._of(v, seen, depth + 1, numbered)) for k, v in _parts(value))

    def _number(self, value: Any, add: bool) -> str:
        if id(value) not in self._numbers:
            if not add:
                return "new"
            self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
        return f"#{self._numbers[id(value)]}"


def _is_interchangeable(value: Any) -> bool:
    """Whether programs must not depend on whether two equal values are one object."""
    if isinstance(value, np.ndarray):
        return value.base is not None  # a view; its data are those of another array
    return isinstance(value, (tuple, frozenset, np.generic, types.MethodType))


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """The named parts of an object that decide how it behaves."""
    if isinstance(value, enum.Enum):
        return [("value", value.value)]
    own = (
        []
        if isinstance(value, (type, types.MethodType))
        else list(getattr(value, "__dict__", {}).items())
    )
    own = [(k, v) for k, v in own if not _hidden(value, k)]
    for name in _slots(value):
        if hasattr(value, name):
            own.append((name, getattr(value, name)))
    return [*_contents(value), *own]


def _hidden(value: Any, name: Any) -> bool:
    """Whether an attribute belongs to the framework or the interpreter."""
    if isinstance(value, types.ModuleType):
        return value.__spec__ is not None or str(name).startswith("__")
    return isinstance(value, (Tensor, nn.Cell)) and str(name).startswith("_")


def _slots(value: Any) -> list[str]:
    if isinstance(value, (Tensor, type)):
        return []
    names: list[str] = []
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        names.extend([slots] if isinstance(slots, str) else slots)
    return [n for n in names if not n.startswith("__")]


def _contents(value: Any) -> list[tuple[Any, Any]]:
    """What an object holds besides its attributes, by its class."""
    if isinstance(value, Tensor):
        name = getattr(value, "name", "")
        data = (str(value.dtype), value.asnumpy().tolist())
        return [("data", _Data(data)), ("name", _Data(str(name)))]
    if isinstance(value, np.ndarray):
        large = value.size > 100
        held = (float(value.sum()), float(value.ravel()[0])) if large else repr(value.tolist())
        return [("data", _Data((str(value.dtype), value.shape, held)))]
    if isinstance(value, nn.Cell):
        return [*value.parameters_and_names(expand=False), *value.name_cells().items()]
    if isinstance(value, (set, frozenset)):
        return list(enumerate(sorted(value, key=repr)))
    if isinstance(value, (dict, types.MappingProxyType)):
        pairs = list(value.items())
        return [*((f"key {i}", k) for i, (k, _) in enumerate(pairs)), *pairs]
    if isinstance(value, (list, tuple, collections.deque)):
        return list(enumerate(list(value)))
    return _rare_contents(value)


def _rare_contents(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, types.FunctionType):
        cells = [("cell", _cell(c)) for c in value.__closure__ or ()]
        code = value.__code__
        constants = [c for c in code.co_consts if not hasattr(c, "co_code")]
        return [
            ("code", _Data((code.co_code, constants))),
            ("defaults", value.__defaults__), ("named", value.__kwdefaults__), *cells,
        ]  # fmt: skip
    if isinstance(value, types.MethodType):
        return [("function", value.__func__), ("self", value.__self__)]
    if isinstance(value, functools.partial):
        return [("function", value.func), ("args", value.args), ("named", value.keywords)]
    if isinstance(value, weakref.ref):
        return [("target", value())]
    if isinstance(value, type):
        own = value.__module__ == "__cell__"
        return [(k, v) for k, v in vars(value).items() if own and not k.startswith("__")]
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        return [("locals", _Data(None if frame is None else repr(frame.f_locals)))]
    return _described(value)


def _described(value: Any) -> list[tuple[Any, Any]]:
    """The state of an object by the methods that it has."""
    for name in ("getstate", "get_state"):
        if hasattr(value, name):
            return [("state", _Data(str(getattr(value, name)())))]
    if hasattr(value, "tobytes"):
        return [("bytes", value.tobytes())]
    if isinstance(value, bytearray):
        return [("bytes", bytes(value))]
    if hasattr(value, "getvalue"):
        return [("text", _Data((value.getvalue(), value.tell())))] if not value.closed else []
    for name in ("locked", "qsize", "is_set", "tell"):
        if hasattr(value, name):
            return [(name, getattr(value, name)())]
    if type(value).__module__ in ("itertools", "builtins") and hasattr(value, "__next__"):
        return [("reduced", _Data(_reduced(value)))]
    return []


def _reduced(value: Any) -> str:
    """The state of an iterator of Python's, and of the iterators in it, as text."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_reduced, value))})"
    if hasattr(value, "__next__") and hasattr(value, "__reduce__"):
        return f"{type(value).__name__}{_reduced(value.__reduce__()[1:])}"
    return getattr(value, "__qualname__", None) or repr(value)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "<empty>"


def as_text(value: Any) -> str:
    """A snapshot as short text, with the number of an object after its class."""
    text = _text(value)
    return text if len(text) < 1500 else f"{text[:1500]}..."


def _text(value: Any) -> str:
    if isinstance(value, _Node):
        parts = [
            _text(v) if isinstance(k, int) or k in ("data", "bytes") else f"{k}={_text(v)}"
            for k, v in value.parts
            if (k, v) != ("name", "")
        ]
        return f"{value.kind}{value.number.replace('new', '')}({', '.join(parts)})"
    return f"({', '.join(map(_text, value))})" if isinstance(value, tuple) else str(value)
