"""The names that the programs of cells use; a printed program begins with the same imports."""

from __future__ import annotations

from typing import Any

__all__ = ["HEAD", "SURROUNDINGS"]

HEAD = """
import array, collections, contextlib, contextvars, copy, dataclasses, enum, functools, io
import itertools, operator, os, queue, random, threading, types, typing, weakref
import numpy as np
import duograph as ms
from duograph import Parameter, ParameterTuple, Tensor, nn, ops
"""

SURROUNDINGS: dict[str, Any] = {}
exec(HEAD, SURROUNDINGS)
del SURROUNDINGS["__builtins__"]
