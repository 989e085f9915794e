"""Classes of Python objects, by what can change them: constants, and containers of the library.

The door to outside objects (`evaluation.outside`) and the host calls decide with these tables.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import operator
import pathlib
import re
import types
import uuid

import numpy as np

from ...dtype import DType
from ...ir.values import HostValue
from ...op import Op
from ...tensor import Tensor
from .flow import Maybe, Undefined
from .functions import Choice, Function
from .ranges import GraphRange

__all__ = ["CONTAINERS", "COPIED", "IMMUTABLE", "VALUE_TYPES"]

# Classes of the standard library whose objects nothing can change, compared by `==`.
VALUE_TYPES: tuple[type, ...] = (
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal,
    fractions.Fraction, pathlib.PurePath, range, slice, uuid.UUID, np.dtype,
)  # fmt: skip
# Classes whose objects nothing can change, or whose changes the evaluation follows.
IMMUTABLE: tuple[type, ...] = (
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), type,
    types.ModuleType, types.FunctionType, types.CodeType, types.CellType, np.generic, re.Pattern,
    re.Match, enum.Enum, BaseException, types.TracebackType, Tensor, HostValue, Op, DType, Function,
    Choice, GraphRange, Maybe, Undefined, operator.itemgetter, operator.attrgetter,
    operator.methodcaller, *VALUE_TYPES,
)  # fmt: skip
# Containers that are copied when they are read from outside; see `state.containers`.
COPIED: tuple[type, ...] = (list, dict, set)
# Containers of the standard library whose items a guard can compare.
CONTAINERS: tuple[type, ...] = (
    list, dict, set, collections.deque, array.array, bytearray, memoryview, types.MappingProxyType,
    type({}.keys()), type({}.values()), type({}.items()),
)  # fmt: skip
