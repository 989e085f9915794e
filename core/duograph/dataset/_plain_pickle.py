"""Reader of pickles that hold only numbers, strings, containers and NumPy arrays of numbers.

`_files` reads CIFAR's files with it. Nothing that a file names is imported or called: the opcodes
for such values are interpreted here, and every other opcode is refused. A pickle describes arrays
by calls of NumPy's functions; these are recognised by name and carried out by this module.
"""

from __future__ import annotations

import math
import pickletools
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from .rows import Array

__all__ = ["read_plain_pickle"]

_MARK = object()


class _Name(NamedTuple):
    """The name of a function or class that a pickle refers to; the object is never loaded."""

    text: str


class _ArrayInProgress:
    """An array that a pickle creates empty; a later opcode gives it shape, dtype and data.

    `made` is the NumPy array, or None until then.
    """

    made: Array | None = None


class _DType:
    """A numeric dtype that a pickle describes; a later opcode sets its byte order."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.order = "="

    def np(self) -> np.dtype[np.generic]:
        return np.dtype(self.order + self.code)


def read_plain_pickle(data: bytes) -> object:
    """Return the value that a pickle describes; strings of Python 2 become bytes.

    Raises:
        ValueError: the pickle is damaged, or holds objects other than numbers, strings, containers
            and arrays. The message gives the position in bytes.
    """
    machine = _Machine()
    at = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of escapes in damaged texts
            for opcode, argument, position in pickletools.genops(data):
                at = position or 0
                machine.run(opcode.name, argument)
        return _finished(machine.stack[-1])
    except (ValueError, TypeError, IndexError, KeyError, OverflowError) as error:
        raise ValueError(f"at byte {at}: {error}") from None


def _finished(value: object) -> object:
    """Return a value with its array placeholders (`_ArrayInProgress`) replaced by NumPy arrays.

    `value` is a placeholder, or a list or dictionary with placeholders among its items; these are
    copied. Any other value is returned unchanged. Placeholders nested deeper are not replaced.
    """
    if isinstance(value, dict):
        return {k: _array(v) for k, v in value.items()}
    return [_array(v) for v in value] if isinstance(value, list) else _array(value)


def _array(value: object) -> object:
    if not isinstance(value, _ArrayInProgress):
        return value
    if value.made is None:
        raise ValueError("an array has no data")
    return value.made


class _Machine:
    """Interpreter of pickle opcodes, with a stack of values and a memo of values to be reused."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[object, object] = {}

    def run(self, name: str, argument: object) -> None:
        """Execute one opcode of the pickle, given by its name and argument.

        Raises:
            ValueError: the opcode is not one for numbers, strings, containers and arrays.
        """
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name](argument))
        elif name in _STACK:
            _STACK[name](self)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif name == "GLOBAL":
            self.stack.append(_named(cast("str", argument).replace(" ", ".", 1)))
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise ValueError(f"the opcode {name} is refused; only arrays and containers are read")

    def since_mark(self) -> list[object]:
        """Pop and return the values above the topmost mark of the stack.

        Remove the mark as well.
        """
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise ValueError("there is no mark on the stack")
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def last(self, n: int) -> list[object]:
        """Pop and return the last `n` values of the stack.

        Raises ValueError if there are fewer than `n` values above the topmost mark.
        """
        found = self.stack[len(self.stack) - n :]
        if len(found) != n or _MARK in map(_identity, found):
            raise ValueError("the stack has too few values")
        del self.stack[len(self.stack) - n :]
        return found

    def extend(self, values: list[object]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError(f"elements are added to {type(target).__name__}")
        target.extend(values)

    def update(self, values: list[object]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise ValueError(f"items are added to {type(target).__name__}")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, (str, bytes, int)):
                raise ValueError(f"a key is {type(key).__name__}")
            target[key] = value

    def reduce(self) -> None:
        name, arguments = self.last(2)
        if not isinstance(name, _Name) or not isinstance(arguments, tuple):
            raise ValueError("something other than a function is called")
        self.stack.append(_CALLS[name.text](*arguments))

    def build(self) -> None:
        (state,) = self.last(1)
        target = self.stack[-1]
        if not isinstance(state, tuple):
            raise ValueError(f"a state is {type(state).__name__}")
        if isinstance(target, _ArrayInProgress):
            _, shape, dtype, fortran, raw = state
            target.made = _made(raw, dtype, shape, "F" if fortran else "C")
        elif isinstance(target, _DType):
            if state[1] not in ("<", ">", "|", "=", b"<", b">", b"|", b"="):
                raise ValueError(f"a byte order is {state[1]!r}")
            target.order = _text(state[1])
        else:
            raise ValueError(f"{type(target).__name__} has no state")


def _identity(value: object) -> object:
    """Return `value` if it is the mark of the stack, and None for any other value.

    The caller searches a list by `in`, which compares items, and arrays cannot be compared in this
    way.
    """
    return value if value is _MARK else None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("ascii")
    if not isinstance(value, str):
        raise ValueError(f"got {type(value).__name__}; wanted a text")
    return value


def _named(text: str) -> _Name:
    if text not in _CALLS and text != "numpy.ndarray":
        raise ValueError(f"the file wants {text}; only arrays are read")
    return _Name(text)


def _dtype(code: object, *_: object) -> _DType:
    code = _text(code)
    if not re.fullmatch("b1|[iu][1248]|f[248]", code):
        raise ValueError(f"an array has the dtype {code!r}; wanted numbers")
    return _DType(code)


def _encoded(text: object, encoding: object = "latin1") -> bytes:
    if encoding not in ("latin1", b"latin1"):
        raise ValueError(f"bytes are encoded as {encoding!r}")
    return text.encode("latin1") if isinstance(text, str) else b""


def _made(raw: object, dtype: object, shape: object, order: object) -> Array:
    """Return an array of a dtype, shape and memory order ("C" or "F") with the given bytes.

    Raises ValueError unless the number of bytes fits.
    """
    if not isinstance(raw, (bytes, bytearray)) or not isinstance(dtype, _DType):
        raise ValueError("an array is not made of bytes and a dtype")
    sizes = shape if isinstance(shape, tuple) else ()
    if not all(type(n) is int and n >= 0 for n in sizes) or order not in ("C", "F"):
        raise ValueError(f"an array has the shape {shape!r}")
    kind = dtype.np()
    if math.prod(sizes) * kind.itemsize != len(raw):
        raise ValueError(f"an array of shape {sizes} and dtype {kind} has {len(raw)} bytes")
    return np.frombuffer(raw, kind).reshape(sizes, order=order)


def _from_buffer(raw: object, dtype: object, shape: object, order: object) -> _ArrayInProgress:
    made = _ArrayInProgress()
    made.made = _made(raw, dtype, shape, order)
    return made


# What the functions that a pickle of arrays names do, by name.
_CALLS: dict[str, Callable[..., object]] = {
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": lambda *_: _ArrayInProgress(),
    "numpy._core.multiarray._reconstruct": lambda *_: _ArrayInProgress(),
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "_codecs.encode": _encoded,
}


def _same(value: object) -> object:
    return value


def _old_string(value: str) -> bytes:
    return value.encode("latin-1")


# The value that an opcode appends to the stack, from its argument.
_CONSTANTS: dict[str, Callable[..., object]] = {
    **dict.fromkeys(["INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"], _same),
    **dict.fromkeys(["FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"], _same),
    **dict.fromkeys(
        ["BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"], _same
    ),
    **dict.fromkeys(["STRING", "BINSTRING", "SHORT_BINSTRING"], _old_string),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_DICT": lambda _: {},
    "MARK": lambda _: _MARK,
}


def _dictionary(machine: _Machine) -> None:
    values = machine.since_mark()
    machine.stack.append({})
    machine.update(values)


def _stack_global(machine: _Machine) -> None:
    module, name = machine.last(2)
    machine.stack.append(_named(f"{_text(module)}.{_text(name)}"))


# What an opcode without an argument does with the stack.
_STACK: dict[str, Callable[[_Machine], object]] = {
    "POP": lambda m: m.stack.pop(),
    "POP_MARK": lambda m: m.since_mark(),
    "LIST": lambda m: m.stack.append(m.since_mark()),
    "TUPLE": lambda m: m.stack.append(tuple(m.since_mark())),
    "TUPLE1": lambda m: m.stack.append(tuple(m.last(1))),
    "TUPLE2": lambda m: m.stack.append(tuple(m.last(2))),
    "TUPLE3": lambda m: m.stack.append(tuple(m.last(3))),
    "APPEND": lambda m: m.extend(m.last(1)),
    "APPENDS": lambda m: m.extend(m.since_mark()),
    "DICT": _dictionary,
    "SETITEM": lambda m: m.update(m.last(2)),
    "SETITEMS": lambda m: m.update(m.since_mark()),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}
