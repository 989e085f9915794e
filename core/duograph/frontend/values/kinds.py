"""Tables of Python classes, grouped by whether and how their objects can change.

Modules of `frontend.evaluation` use these tables to decide whether an object may be used at compile
time, as a constant or as a copy, or only when the graph runs. Nothing here inspects an object.
"""

from __future__ import annotations

import array
import collections
import enum
import operator
import os
import re
import types

import numpy as np

from ...dtype import DType
from ...ir.values import HostValue
from ...op import Op
from ...tensor import Tensor
from ..state.captures import VALUE_TYPES
from .flow import Maybe, Undefined
from .functions import Choice, Function
from .ranges import GraphRange

__all__ = ["CONTAINERS", "COPIED", "HOLDERS", "IMMUTABLE", "MUTATORS", "WINDOWS"]

# Classes whose objects nothing can change, or whose changes the evaluation follows.
IMMUTABLE: tuple[type, ...] = (
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), type,
    types.ModuleType, types.FunctionType, types.CodeType, types.CellType, np.generic, re.Pattern,
    re.Match, enum.Enum, types.TracebackType, Tensor, HostValue, Op, DType, Function,
    Choice, GraphRange, Maybe, Undefined, operator.itemgetter, operator.attrgetter,
    operator.methodcaller, *VALUE_TYPES,
)  # fmt: skip
# Classes of IMMUTABLE whose objects hold arbitrary values, which cannot be replaced in place.
HOLDERS = (types.CellType, operator.itemgetter, operator.methodcaller)
# Containers that are copied when they are read from outside; see `state.containers`.
COPIED: tuple[type, ...] = (list, dict, set)
# Views of other objects, and of the environment, which may change while the function runs.
WINDOWS: tuple[type, ...] = (
    type(os.environ), memoryview, types.MappingProxyType, type({}.keys()), type({}.values()),
    type({}.items()),
)  # fmt: skip
# Containers of the standard library whose items a guard can compare.
CONTAINERS: tuple[type, ...] = (
    list, dict, set, collections.deque, array.array, bytearray, *WINDOWS
)  # fmt: skip
# Methods of `CONTAINERS` that change them; all others only ask.
MUTATORS = {
    "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem",
    "remove", "clear", "reverse", "rotate", "sort", "update", "subtract", "setdefault", "add",
    "discard", "difference_update", "intersection_update", "symmetric_difference_update",
    "move_to_end", "frombytes", "fromfile", "fromlist", "fromunicode", "byteswap", "release",
    "__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__", "__iand__", "__isub__",
    "__ixor__", "__init__", "__setstate__", "__missing__", "__exit__",
}  # fmt: skip
