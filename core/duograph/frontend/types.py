"""Type aliases for annotations in the front end, such as `Value`, `Flag` and `GraphValue`.

Modules of `frontend` and `compiler` import these aliases. The module defines no behaviour.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ..ir.builder import GraphTensor
from ..ir.values import GraphScalar, HostValue

__all__ = ["Args", "Flag", "GraphValue", "Kwargs", "Value"]

# An object of the evaluated program. It may be anything that Python code can hold: this is the
# border between the compiler and the user's objects.
Value: TypeAlias = Any
Args: TypeAlias = tuple[Value, ...]
Kwargs: TypeAlias = dict[str, Value]
# A value that the graph computes: a tensor, or a host value (number, object).
GraphValue: TypeAlias = GraphTensor | HostValue
# A truth value: known at compile time, or a bool that the graph computes.
Flag: TypeAlias = bool | GraphTensor | GraphScalar
