"""Options of compiled functions, and marks that change how a value or a class is compiled.

Users call these functions; `compiler.arguments` and the front end recognise the marks. Nothing here
compiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..autodiff.pytrees import rebuilt
from ..context import COMPATIBLE, LAX, STRICT
from ..errors import ArgumentError, ArgumentValueError
from ..frontend.types import Value
from ..ir.values import kind_of
from ..nn.cell import Cell
from ..option_checks import check_options, warn_moot
from ..runtime_state import staged_builder
from ..tensor import Tensor

__all__ = [
    "JitConfig",
    "jit_class",
    "ms_class",
    "mutable",
    "lazy_inline",
    "no_inline",
    "MutableTuple",
    "MutableList",
    "MutableDict",
    "MutableInt",
    "MutableFloat",
    "MutableBool",
    "is_mutable",
]

T = TypeVar("T")

_CHANGED = ("jit_level", "jit_syntax_level")
_LEVELS = ("", "O0", "O1", "O2")
_EXEC = ("auto", "sink", "no_sink", "")
_SYNTAX = {"": None, "STRICT": STRICT, "COMPATIBLE": COMPATIBLE, "LAX": LAX}


class JitConfig:
    """Options of a compiled function as one object (`mindspore.JitConfig`).

    Args:
        jit_level: "O0", "O1", "O2", or "" for the default.
        exc_mode: "auto", "sink" or "no_sink"; has no meaning here. `exec_mode` is the same option.
        jit_syntax_level: "STRICT" or "LAX", or the constants of those names.
        debug_level: "RELEASE" or "DEBUG"; has no meaning here.
        infer_boost: "on" or "off"; has no meaning here.

    Options without a meaning cause one warning.

    Raises:
        TypeError: an unknown option.
        ValueError: a value outside those.

    Examples:
        >>> import duograph as ms
        >>> ms.JitConfig(jit_level="O0").jit_config_dict["jit_level"]
        'O0'
    """

    def __init__(
        self,
        jit_level: str = "",
        exc_mode: str = "auto",
        jit_syntax_level: str | int = "",
        debug_level: str = "RELEASE",
        infer_boost: str = "off",
        **kwargs: Value,
    ) -> None:
        _one_of("jit_level", jit_level, _LEVELS)
        for order in (exc_mode, kwargs.get("exec_mode", "")):
            _one_of("exec_mode", order, _EXEC)
        _one_of("debug_level", debug_level, ("RELEASE", "DEBUG"))
        _one_of("infer_boost", infer_boost, ("on", "off"))
        if isinstance(jit_syntax_level, int) and jit_syntax_level in (STRICT, COMPATIBLE, LAX):
            jit_syntax_level = {STRICT: "STRICT", COMPATIBLE: "COMPATIBLE", LAX: "LAX"}[
                jit_syntax_level
            ]
        _one_of("jit_syntax_level", jit_syntax_level, tuple(_SYNTAX))
        others = {"exc_mode": exc_mode, "debug_level": debug_level, "infer_boost": infer_boost}
        check_options("JitConfig", **others, **kwargs)
        others["exc_mode"] = kwargs.get("exec_mode", exc_mode)
        self.jit_config_dict: dict[str, object] = {
            "jit_level": jit_level, "jit_syntax_level": jit_syntax_level, **others
        }  # fmt: skip

    @classmethod
    def of(cls, where: str, value: object) -> JitConfig:
        """Return `value` as a JitConfig; it may be a JitConfig or a dictionary of options.

        Args:
            where: the name of the function that received the value, for the message.
            value: the JitConfig or dictionary.

        Raises:
            TypeError: any other value.
        """
        if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
            return cls(**value)
        if isinstance(value, cls):
            return value
        raise ArgumentError(
            f"{where}: got jit_config={value!r}; wanted a JitConfig or a dictionary of its options"
        )

    def but(self, jit_level: str, jit_syntax_level: Value) -> JitConfig:
        """Return a copy with another jit level and syntax level; "" keeps the present value."""
        own = self.jit_config_dict
        level = self.jit_level if jit_level == "" else jit_level
        syntax: Value = own["jit_syntax_level"] if jit_syntax_level == "" else jit_syntax_level
        made = JitConfig(level, jit_syntax_level=syntax)
        made.jit_config_dict = {**own, **{k: made.jit_config_dict[k] for k in _CHANGED}}
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JitConfig) and self.jit_config_dict == other.jit_config_dict

    def __hash__(self) -> int:
        return hash(tuple(self.jit_config_dict.items()))

    @property
    def jit_level(self) -> str:
        """The optimisation level of the options: "O0", "O1" or "O2"; "" for the default."""
        return str(self.jit_config_dict["jit_level"])

    @property
    def strict(self) -> bool | None:
        """True for syntax level STRICT, False for another level, None if no level was given."""
        level = _SYNTAX[str(self.jit_config_dict["jit_syntax_level"])]
        return None if level is None else level == STRICT

    def __repr__(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.jit_config_dict.items())
        return f"JitConfig({inner})"


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise ArgumentValueError unless a JitConfig option has one of the allowed values."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentValueError(
            f"JitConfig: got {name}={value!r}; wanted one of "
            f"{', '.join(repr(a) for a in allowed if a)}"
        )


def jit_class(cls: T) -> T:
    """Mark a plain class as one whose objects compiled code uses (`mindspore.jit_class`).

    Compiled code evaluates methods of any plain class from their source; the mark is kept for
    scripts that have it.

    Raises:
        TypeError: `cls` is no class, or is a Cell.

    Examples:
        >>> import duograph as ms
        >>> @ms.jit_class
        ... class Scale:
        ...     def __init__(self, k):
        ...         self.k = k
        ...     def __call__(self, x):
        ...         return x * self.k
        >>> scale = Scale(3)
        >>> print(ms.jit(lambda x: scale(x))(ms.Tensor([1.0])))
        [3.]
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"jit_class: got {type(cls).__name__}; wanted a class")
    if issubclass(cls, Cell):
        raise ArgumentError(
            f"jit_class: got {cls.__name__}, which is a Cell; Cells are compiled as they are, "
            "remove the decorator"
        )
    cls.__ms_class__ = True  # type: ignore[attr-defined]
    return cls


ms_class = jit_class


class MutableInt(int):
    """An int that is an input of compiled functions rather than a constant."""


class MutableFloat(float):
    """A float that is an input of compiled functions rather than a constant."""


class MutableTuple(tuple[Value, ...]):
    """A tuple whose numbers are inputs of compiled functions."""

    dynamic_len = False


class MutableList(list[Value]):
    """A list whose numbers are inputs of compiled functions."""

    dynamic_len = False


class MutableDict(dict[Value, Value]):
    """A dict whose numbers are inputs of compiled functions."""

    dynamic_len = False


class MutableBool(int):
    """A bool that is an input of compiled functions; Python allows no subclass of bool."""

    def __repr__(self) -> str:
        return repr(bool(self))


_KINDS = (MutableInt, MutableFloat, MutableTuple, MutableList, MutableDict, MutableBool)


def is_mutable(value: object) -> bool:
    """Return whether `mutable` marked a value as a run-time input of compiled functions."""
    return isinstance(value, _KINDS)


def mutable(input_data: Value, dynamic_len: bool = False) -> Value:
    """Mark a value as an input of the graph rather than a constant (`mindspore.mutable`).

    Args:
        input_data: a number, Tensor, or tuple, list or dict of those.
        dynamic_len: has no meaning here: each length is compiled on its own.

    Raises:
        TypeError: another kind of value, or `dynamic_len` for something else than a tuple or list.

    Examples:
        >>> import duograph as ms
        >>> f = ms.jit(lambda x, k: x * k)
        >>> print(f(ms.Tensor([2.0]), ms.mutable(3)), f(ms.Tensor([2.0]), ms.mutable(4)))
        [6.] [8.]
        >>> f.cache_info().misses
        1
    """
    if staged_builder() is not None:
        check_options("mutable", dynamic_len=bool(dynamic_len))
        return _mutable_inside(input_data)
    made: Value
    if isinstance(input_data, Tensor):
        return input_data
    if isinstance(input_data, bool):
        made = MutableBool(input_data)
    elif isinstance(input_data, int):
        made = MutableInt(input_data)
    elif isinstance(input_data, float):
        made = MutableFloat(input_data)
    elif isinstance(input_data, tuple):
        made = MutableTuple(input_data)
    elif isinstance(input_data, list):
        made = MutableList(input_data)
    elif isinstance(input_data, dict):
        made = MutableDict(input_data)
    else:
        raise ArgumentError(
            f"mutable: got {type(input_data).__name__}; wanted a number, Tensor, tuple, list or "
            "dict"
        )
    if dynamic_len:
        if isinstance(input_data, (dict, bool, int, float)):
            raise ArgumentError(
                f"mutable: got dynamic_len=True for a {type(input_data).__name__}; wanted a tuple "
                "or list"
            )
        check_options("mutable", dynamic_len=True)
        made.dynamic_len = True
    return made


def _mutable_inside(value: Value) -> Value:
    """Return a constant as a run-time value of the graph, for code that calls `mutable` on it.

    Called while a function is being compiled. A number becomes a node of the graph. Tuples, lists
    and dicts are converted item by item; any other value is returned unchanged.
    """
    builder = staged_builder()
    if isinstance(value, (bool, int, float)):
        assert kind_of(value) is not None
        return builder.host(value)
    if isinstance(value, (tuple, list)):
        return rebuilt(value, [_mutable_inside(v) for v in value])
    if isinstance(value, dict):
        return {k: _mutable_inside(v) for k, v in value.items()}
    return value


def lazy_inline(fn: Value = None, attrs: object = None, policy: object = None) -> Value:
    """Mark a Cell's `__init__` so that equal Cells are compiled once (`mindspore.lazy_inline`).

    The mark has no effect, because every Cell is inlined here. The first use gives a warning.
    """
    del attrs, policy
    warn_moot("lazy_inline")
    return fn if fn is not None else lazy_inline


def no_inline(fn: Value = None) -> Value:
    """Mark a function that is not to be inlined (`mindspore.no_inline`).

    The mark has no effect, because every function is inlined here. The first use gives a warning.
    """
    warn_moot("no_inline")
    return fn if fn is not None else no_inline
