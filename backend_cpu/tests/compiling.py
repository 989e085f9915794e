"""Shared by the tests of compiled code: a small source, and what is run of it."""

import shutil
import weakref

import numpy as np
import pytest
from duograph.dtype import float32
from duograph.types import TensorType
from duograph_cpu import region_calls, toolchain
from duograph_cpu.toolchain import Library
from harness import CPU_BACKEND

COMPILER = next(filter(None, map(shutil.which, toolchain.NAMES)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")

EXPORT = '__attribute__((visibility("default"))) '


def source(expression, operands=1, results=1):
    """Return C source of a function f that computes an expression of x0, x1 ... for each float."""
    lines = [f"const float *restrict x{i} = args[{i}];" for i in range(operands)]
    lines += [f"float *restrict y{i} = args[{operands + i}];" for i in range(results)]
    stores = "".join(f"y{i}[i] = ({expression}) * {i + 1};" for i in range(results))
    body = "\n    ".join(lines)
    return (
        f"{EXPORT}int f(void **args, long begin, long end) {{\n    {body}\n"
        f"    for (long i = begin; i < end; i++) {{ {stores} }}\n    return 0;\n}}\n"
    )


DOUBLE = source("x0[i] * 2")


def forget(monkeypatch):
    """Make the process forget all that it has found out about compilers and libraries."""
    monkeypatch.setattr(toolchain, "_found", {})
    monkeypatch.setattr(toolchain, "_failed", {})
    monkeypatch.setattr(toolchain, "_loaded", weakref.WeakValueDictionary())


def floats(n):
    return TensorType.of((n,), float32)


def run(call, *arrays):
    """Call a prepared kernel on arrays; return its results as arrays."""
    found = call(*[CPU_BACKEND.copy_in(a, 0) for a in arrays])
    several = found if isinstance(found, tuple) else (found,)
    return [CPU_BACKEND.copy_out(h, arrays[0].shape, np.dtype(np.float32), 0) for h in several]


def doubles(library):
    """Return whether a library built from the source DOUBLE computes right results."""
    assert isinstance(library, Library), library
    call = region_calls.make_call(library.function("f"), 3, 1000, 1, [floats(3)], "double")
    (found,) = run(call, np.array([1, -2, np.inf], np.float32))
    return found.tolist() == [2, -4, np.inf]
